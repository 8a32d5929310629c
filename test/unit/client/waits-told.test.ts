/** What a client says while it waits: for what a goodbye waits, where it dials and when again, and a keep-alive that was meant otherwise. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { lasting, lose, send, willing } from './across.js'
import { accepting, agreeable, connected, type World } from './harness.js'
import { gate, publish, quiet, subscribe, taken } from './incoming.js'
import { down, Rig } from './rig.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'
import { deafTo, loop, over } from './steps.js'

/** Lines of a logger, by level, without what every line begins with. */
function journal() {
  const lines: string[] = []
  const note = (level: string) => (line: string) =>
    void lines.push(`${level} ${line.replace(/^mqwire [^:]*: /, '')}`)
  return {
    lines,
    logger: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
  }
}

/** A connected client with a journal. */
async function noted(options: ClientOptions = {}, answer: Answer = agreeable) {
  const { lines, logger } = journal()
  return { lines, world: await connected({ logger, ...options }, answer) }
}

/** A message is taken of a subscription to this filter, which is not acknowledged. */
async function holding(world: World, filter: string, topic = filter, id = 1, ack?: 'manual') {
  const subscription = await subscribe(world, filter, { qos: 1, ack })
  await world.send(publish(topic, 'x', id))
  taken(subscription)
}

/** What is said by when: nothing before a second has passed, then at most once. */
async function saidBy(
  { world, lines }: { world: World; lines: string[] },
  how: 'disconnect' | 'drain' = 'disconnect',
): Promise<string[]> {
  lines.length = 0
  const done = quiet(world.client[how]())
  await world.clock.advance(999)
  const warnings = (): string[] =>
    lines.filter((line) => line.startsWith('warn') && line.includes('()'))
  expect(warnings()).toEqual([])
  await world.clock.advance(20_000)
  await done
  expect(world.clock.pending).toBe(0)
  return warnings()
}

describe('a goodbye that waits for more than a second says for what', () => {
  it('a message that next() gave', async () => {
    const made = await noted()
    await holding(made.world, 'jobs/#', 'jobs/1')
    expect(await saidBy(made)).toEqual(['warn disconnect() waits for next() or ack() on jobs/#'])
  })

  it('acknowledgements, loops, handlers, each with its filters; drain() too', async () => {
    const made = await noted()
    const { world } = made
    await holding(world, 'm', 'm', 1, 'manual')
    const looped = await subscribe(world, ['l/1', 'l/2'], { qos: 1 })
    quiet(loop(looped, () => gate().promise))
    quiet(world.client.listen('h', () => gate().promise, { qos: 1 }))
    await world.send(publish('l/1', 'x', 2), publish('h', 'x', 3))
    expect(await saidBy(made, 'drain')).toEqual([
      'warn drain() waits for next() or ack() on m, a loop on l/1,l/2, a handler on h',
    ])
  })

  it.each([
    ['', 9],
    ['long'.repeat(200), 1],
  ])('of many turns the first few are named, in a bounded line: %s', async (name, named) => {
    const made = await noted()
    for (let number = 1; number <= 20; number++)
      await holding(made.world, `${number}${name}`, undefined, number)
    const [line = ''] = await saidBy(made)
    expect(line).toMatch(/^warn disconnect\(\) waits for next\(\) or ack\(\) on 1/)
    expect(line.match(/ on /g)?.length).toBe(named)
    expect(line.length).toBeLessThan(300)
  })

  it('the answer to an UNSUBSCRIBE', async () => {
    const made = await noted({}, deafTo('unsubscribe'))
    for (const filter of ['a', 'b']) quiet((await subscribe(made.world, filter)).unsubscribe())
    await made.world.settle()
    expect(await saidBy(made)).toEqual(['warn disconnect() waits for UNSUBACK on a, UNSUBACK on b'])
  })

  it('drain(): publishes without acknowledgement and those in the queue', async () => {
    const made = await noted({}, accepting({ receiveMaximum: 2 }))
    send(made.world, 1, 'one', 'two', 'three')
    expect(await saidBy(made, 'drain')).toEqual([
      'warn drain() waits for 2 PUBLISH in flight, 1 queued',
      'warn drain() gave up 3 publishes (1 queued, 2 sent and not acknowledged): its timeout was 5000 ms; a longer { timeout } waits longer',
    ])
  })

  it('drain(): a connection', async () => {
    const made = await noted({ ...lasting, reconnect: { backoff: () => 60_000 } }, willing(false))
    await lose(made.world)
    send(made.world, 1, 'one')
    expect(await saidBy(made, 'drain')).toEqual([
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
    const world = await over(stalled, () => stalled.feed(plainConnack), { logger })
    await world.settle()
    while (world.client.post('a', 'x'.repeat(100)));
    if (reads) world.clock.setTimer(() => stalled.drain(), 100)
    expect(await saidBy({ world, lines })).toEqual(['warn disconnect() waits for the server'])
  })

  it.each(['short', 'destroyed'] as const)('nothing is said of a shorter wait: %s', async (how) => {
    const { world, lines } = await noted()
    await holding(world, 'a')
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
    rig.client.setBrokers({
      ...(rig.endpoint('a') as object),
      url: 'x://user:secret1@a/path?token=secret2',
    })
    quiet(rig.client.connect())
    await rig.settle()
    for (const attempt of [1, 2]) {
      expect(lines.splice(0)).toEqual([
        `debug attempt ${attempt} at x://a/path`,
        `warn attempt ${attempt} at x://a/path: connect failed: connect ECONNREFUSED`,
        `info attempt ${attempt + 1} at x://a/path in ${attempt}000 ms`,
      ])
      await rig.advance(1000)
    }
    await rig.finish()
  })

  it('a host that does not answer is named when it is dialled, not only when the time is over', async () => {
    const { lines, logger } = journal()
    const hanging = { hosts: ['a', 'b'], behave: () => 'hang' as const }
    const rig = new Rig({ firstConnect: 'wait', logger }, hanging)
    quiet(rig.client.connect())
    await rig.settle()
    expect(lines).toEqual(['debug attempt 1 at x://a'])
    await rig.advance(10_000)
    expect(lines.slice(1)).toEqual([
      'warn attempt 1 at x://a: no CONNACK in 10000 ms',
      'debug attempt 2 at x://b',
    ])
    await rig.finish()
  })
})

it.each<[number | false | undefined, string[]]>([
  [30_000, ['warn keepAlive: 8 hours']],
  [3601, ['warn keepAlive: 1 hours']],
  [3600, []],
  [undefined, []],
])('a keepAlive of more than an hour is said, in hours: %s', async (keepAlive, expected) => {
  const { world, lines } = await noted({ keepAlive }, accepting())
  await lose(world)
  expect(lines.filter((line) => line.includes('keepAlive'))).toEqual(expected)
})
