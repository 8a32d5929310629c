/** What a client says while it waits: for what a goodbye waits, where it dials and when again, and a keep-alive that was meant otherwise. */
import { describe, expect, it } from 'vitest'
import type { DisconnectOptions } from '../../../src/client/api/index.js'
import { lasting, lose, send, willing } from './across.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { agreed, gate, publish, quiet, subscribe, taken } from './incoming.js'
import { down, Rig } from './rig.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'

/** Lines of a logger, by level, without what every line begins with. */
function journal() {
  const lines: string[] = []
  const note = (level: string) => (line: string) => void lines.push(`${level} ${line.replace(/^mqwire [^:]*: /, '')}`)
  return { lines, logger: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') } }
}

/** What is said by when: nothing before a second has passed, then at most once. */
async function saidBy(world: World, lines: string[], how: 'disconnect' | 'drain' = 'disconnect', options: DisconnectOptions = {}): Promise<string[]> {
  lines.length = 0
  const done = quiet(world.client[how](options))
  await world.clock.advance(999)
  const warnings = (): string[] => lines.filter((line) => line.startsWith('warn') && line.includes('()'))
  expect(warnings()).toEqual([])
  await world.clock.advance(20_000)
  await done
  expect(world.clock.pending).toBe(0)
  return warnings()
}

describe('a goodbye that waits for more than a second says for what', () => {
  it('a message that next() gave', async () => {
    const { lines, logger } = journal()
    const world = await agreed({ logger })
    const subscription = await subscribe(world, 'jobs/#', { qos: 1 })
    await world.send(publish('jobs/1', 'x', 1))
    taken(subscription)
    expect(await saidBy(world, lines)).toEqual(['warn disconnect() waits for next() or ack() on jobs/#'])
  })

  it('acknowledgements, loops, handlers, each with its filters; drain() too', async () => {
    const { lines, logger } = journal()
    const world = await agreed({ logger })
    const manual = await subscribe(world, 'm', { qos: 1, ack: 'manual' })
    const looped = await subscribe(world, ['l/1', 'l/2'], { qos: 1 })
    const looping = (async () => {
      for await (const _ of looped) await gate().promise
    })()
    quiet(looping)
    quiet(world.client.listen('h', () => gate().promise, { qos: 1 }))
    await world.send(publish('m', 'x', 1), publish('l/1', 'x', 2), publish('h', 'x', 3))
    taken(manual)
    expect(await saidBy(world, lines, 'drain')).toEqual(['warn drain() waits for next() or ack() on m, a loop on l/1,l/2, a handler on h'])
  })

  it('of many turns the first few are named, in a line of bounded length', async () => {
    for (const name of ['', 'long'.repeat(200)]) {
      const { lines, logger } = journal()
      const world = await agreed({ logger })
      for (let number = 1; number <= 20; number++) {
        const subscription = await subscribe(world, `${number}${name}`, { qos: 1 })
        await world.send(publish(`${number}${name}`, 'x', number))
        taken(subscription)
      }
      const [line = ''] = await saidBy(world, lines)
      expect(line).toMatch(/^warn disconnect\(\) waits for next\(\) or ack\(\) on 1/)
      expect(line.match(/ on /g)?.length).toBe(name === '' ? 9 : 1)
      expect(line.length).toBeLessThan(300)
    }
  })

  it('the answer to an UNSUBSCRIBE', async () => {
    const { lines, logger } = journal()
    const world = await agreed({ logger }, (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet)))
    const subscriptions = [await subscribe(world, 'a'), await subscribe(world, 'b')]
    for (const subscription of subscriptions) quiet(subscription.unsubscribe())
    await world.settle()
    expect(await saidBy(world, lines)).toEqual(['warn disconnect() waits for UNSUBACK on a, UNSUBACK on b'])
  })

  it('the answer to an UNSUBSCRIBE of what nobody subscribed to here', async () => {
    const { lines, logger } = journal()
    const world = await agreed({ logger }, (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet)))
    quiet(world.client.unsubscribe('elsewhere'))
    await world.settle()
    expect(await saidBy(world, lines)).toEqual(['warn disconnect() waits for the server'])
  })

  it('drain(): publishes without acknowledgement and those in the queue', async () => {
    const { lines, logger } = journal()
    const world = await connected({ logger }, accepting({ receiveMaximum: 2 }))
    send(world, 1, 'one', 'two', 'three')
    expect(await saidBy(world, lines, 'drain')).toEqual([
      'warn drain() waits for 2 PUBLISH in flight, 1 queued',
      'warn drain() gave up 3 publishes (1 queued, 2 sent and not acknowledged): its timeout was 5000 ms; a longer { timeout } waits longer',
    ])
  })

  it('disconnect(): publishes, too', async () => {
    const { lines, logger } = journal()
    const world = await connected({ logger }, accepting())
    send(world, 1, 'one')
    expect((await saidBy(world, lines))[0]).toEqual('warn disconnect() waits for 1 PUBLISH in flight, 0 queued')
  })

  it('drain(): a connection', async () => {
    const { lines, logger } = journal()
    const world = await connected({ ...lasting, reconnect: { backoff: () => 60_000 }, logger }, willing(false))
    await lose(world)
    send(world, 1, 'one')
    expect(await saidBy(world, lines, 'drain')).toEqual([
      'warn drain() waits for 0 PUBLISH in flight, 1 queued, a connection',
      'warn drain() gave up 1 publish (1 queued, 0 sent and not acknowledged): there was no connection; a longer { timeout } waits longer',
    ])
  })

  it.each([
    ['reads nothing', false],
    ['leaves its side open', true],
  ])('a server that %s', async (_what, reads) => {
    const { lines, logger } = journal()
    const stalled = new StalledTransport(1000)
    const world = new World({ logger }, {}, 1, () => stalled)
    const connecting = world.client.connect()
    await world.settle()
    stalled.feed(plainConnack)
    await Promise.all([connecting, world.settle()])
    while (world.client.post('a', 'x'.repeat(100)));
    if (reads) world.clock.setTimer(() => stalled.drain(), 100)
    expect(await saidBy(world, lines)).toEqual(['warn disconnect() waits for the server'])
  })

  it.each(['short', 'destroyed'] as const)('nothing is said of a wait that is shorter, also where destroy() made it so: %s', async (how) => {
    const { lines, logger } = journal()
    const world = await agreed({ logger })
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(publish('a', 'x', 1))
    taken(subscription)
    const done = quiet(world.client.disconnect({ timeout: how === 'short' ? 1000 : 5000 }))
    await world.clock.advance(500)
    if (how === 'destroyed') world.client.destroy()
    await world.clock.advance(10_000)
    await done
    expect(lines.filter((line) => line.includes('waits'))).toEqual([])
    expect(world.clock.pending).toBe(0)
  })
})

describe('while there is no connection', () => {
  it("firstConnect: 'wait': each line names the endpoint without secrets, and the next attempt with its number and delay", async () => {
    const { lines, logger } = journal()
    const rig = new Rig({ firstConnect: 'wait', logger }, { behave: () => down })
    rig.client.setBrokers({ ...(rig.endpoint('a') as object), url: 'x://user:secret1@a/path?token=secret2' })
    quiet(rig.client.connect())
    await rig.settle()
    expect(lines).toEqual([
      'debug attempt 1 at x://a/path',
      'warn attempt 1 at x://a/path: connect failed: connect ECONNREFUSED',
      'info attempt 2 at x://a/path in 1000 ms',
    ])
    lines.length = 0
    await rig.advance(1000)
    expect(lines).toEqual([
      'debug attempt 2 at x://a/path',
      'warn attempt 2 at x://a/path: connect failed: connect ECONNREFUSED',
      'info attempt 3 at x://a/path in 2000 ms',
    ])
    await rig.finish()
  })

  it('a host that does not answer is named when it is dialled, not only when the time is over', async () => {
    const { lines, logger } = journal()
    const rig = new Rig({ firstConnect: 'wait', logger }, { hosts: ['a', 'b'], behave: () => 'hang' })
    quiet(rig.client.connect())
    await rig.settle()
    expect(lines).toEqual(['debug attempt 1 at x://a'])
    await rig.advance(10_000)
    expect(lines.slice(1)).toEqual(['warn attempt 1 at x://a: no CONNACK in 10000 ms', 'debug attempt 2 at x://b'])
    await rig.finish()
  })
})

describe('keepAlive', () => {
  const warnings = async (keepAlive: number | false | undefined): Promise<string[]> => {
    const { lines, logger } = journal()
    const world = await connected({ keepAlive, logger })
    world.peer.cut()
    await world.settle()
    return lines.filter((line) => line.includes('keepAlive'))
  }

  it('of more than an hour: it is said once that these are seconds, and how many hours', async () => {
    expect(await warnings(30_000)).toEqual(['warn keepAlive: 8 hours'])
    expect(await warnings(3601)).toEqual(['warn keepAlive: 1 hours'])
  })

  it.each([3600, 60, 0, false, undefined] as const)('%s: nothing is said', async (keepAlive) => expect(await warnings(keepAlive)).toEqual([]))
})
