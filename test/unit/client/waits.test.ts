/** Waits: what a client says while it waits, the `stalled` event, and that every call that may wait settles. */
import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../src/client/client.js'
import type { ClientOptions, Subscription } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { lasting, lose, send, willing } from './across.js'
import { accepting, agreeable, connected, type World } from './harness.js'
import { agreed, gate, publish, quiet, series, subscribe, taken, takenTexts } from './incoming.js'
import { Ledger } from './ledger.js'
import { down, Rig } from './rig.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'
import { deafTo, loop, over } from './steps.js'
import { unhandledInFile } from './unhandled.js'

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

/** The subscriptions that events named. */
const named = (world: World): (Subscription | undefined)[] =>
  world.seen('stalled').map((event) => event.subscription)

it('an unread message: the event names the subscription and the age', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'x', 1))
  await world.clock.advance(5000)
  expect(named(world)).toEqual([])
  await world.clock.advance(10_000)
  expect(named(world)).toEqual([subscription])
  const age = world.seen('stalled')[0]?.age
  expect(age).toBeGreaterThanOrEqual(9000)
  expect(age).toBeLessThanOrEqual(15_000)
})

it('a message in hand that is never acknowledged; keep-alive goes on', async () => {
  const world = await agreed({ keepAlive: 10 })
  const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
  await world.send(publish('a', 'x', 1))
  taken(subscription)
  await world.clock.advance(60_000)
  expect(named(world)).toEqual([subscription])
  expect(world.peer.all('pingreq').length).toBeGreaterThanOrEqual(5)
  expect(world.client.state).toBe('connected')
})

it('a full window is reported sooner', async () => {
  const world = await agreed({ receiveMaximum: 2 })
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(...series('a', 2))
  await world.clock.advance(4000)
  expect(named(world)).toEqual([subscription])
})

it('once per standstill: again only after progress', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(...series('a', 2))
  await world.clock.advance(120_000)
  expect(named(world)).toHaveLength(1)
  taken(subscription)
  taken(subscription)
  await world.clock.advance(120_000)
  expect(named(world)).toHaveLength(2)
})

it.each(['b', 'a'])('that of the oldest is named, not one on %s that is read', async (filter) => {
  const world = await agreed()
  const innocent = await subscribe(world, filter, { qos: 1 })
  const guilty = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'zero'), publish('a', 'x', 1), publish('b', 'y', 2))
  takenTexts(innocent)
  await world.clock.advance(15_000)
  expect(named(world)).toEqual([guilty])
})

it.each(['after', 'before'])('a filter detached %s the message: none is named', async (when) => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  if (when === 'before') subscription.detach()
  await world.send(publish('a', 'x', 1))
  subscription.detach()
  await world.clock.advance(15_000)
  expect(named(world)).toEqual([undefined])
})

it('no event while acknowledgements move on, and no timer when nothing is owed', async () => {
  const world = await agreed({ keepAlive: false })
  const subscription = await subscribe(world, 'a', { qos: 1 })
  for (let id = 1; id <= 20; id++) {
    await world.send(publish('a', String(id), id))
    await world.clock.advance(3000)
    takenTexts(subscription)
  }
  await world.clock.advance(60_000)
  expect(named(world)).toEqual([])
  expect(world.clock.pending).toBe(0)
})

const unhandled = unhandledInFile()

/** One call of every kind that may wait, on a client in any state. */
function callEverything(ledger: Ledger, client: BaseClient): void {
  ledger.add('publish 0', () => client.publish('a', 'x'))
  ledger.add('publish 0 flush', () => client.publish('a', 'x', { flush: true }))
  ledger.add('publish 0 large', () => client.publish('a', new Uint8Array(40_000)))
  ledger.add('publish 1', () => client.publish('a', 'x', { qos: 1 }))
  ledger.add('publish 2', () => client.publish('a', 'x', { qos: 2 }))
  ledger.add('subscribe', () => client.subscribe('s/1'))
  ledger.add('listen', () => client.listen('s/2', () => undefined))
  ledger.add('unsubscribe', () => client.unsubscribe('s/3'))
  ledger.add('flush', () => client.flush())
  ledger.add('writable', () => client.writable)
  ledger.add('closed', () => client.closed)
  let own: Subscription | undefined
  ledger.add('ready', () => {
    own = client.subscription(['s/4', 's/5'])
    return own.ready
  })
  // A client that has ended makes none.
  if (own === undefined) return
  const subscription = own
  const iterated = client.subscription('s/6')
  const batched = client.subscription('s/7', { ack: 'manual' })
  ledger.add('next', () => subscription.next())
  ledger.add('iterator', () => loop(iterated))
  ledger.add('batches', () => batched.batches().next())
  ledger.add('next manual', () => batched.next({ timeout: 60_000 }))
  ledger.add('unsubscribe of a subscription', () => client.subscription('s/8').unsubscribe())
  ledger.add('dispose', () => client.subscription('s/9')[Symbol.asyncDispose]())
}

it.each<[string, (world: World) => unknown, string]>([
  ['cut', (world) => world.peer.cut(), 'ERR_CONNECTION_LOST'],
  ['end', (world) => world.peer.end(), 'ERR_CONNECTION_LOST'],
  ['server DISCONNECT', (world) => world.peer.sendBytes('e0 02 89 00'), 'ERR_SERVER_DISCONNECT'],
  ['bad bytes', (world) => world.peer.sendBytes('00 00'), 'ERR_MALFORMED_PACKET'],
  ['silence', (world) => world.clock.advance(40_000), 'ERR_KEEPALIVE_TIMEOUT'],
])(
  'every promise settles, typed, and nothing is left: a lost connection: %s',
  async (_name, lose, code) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const ledger = new Ledger()
    callEverything(ledger, world.client)
    await world.settle()
    callEverything(ledger, world.client)
    const ended = lose(world)
    await world.settle()
    await ended
    const { pending, untyped } = ledger
    expect([pending, untyped, world.clock.pending]).toEqual([[], [], 0])
    const waiting = [
      'publish 1',
      'publish 2',
      'subscribe',
      'listen',
      'unsubscribe',
      'ready',
      'next',
    ]
    for (const entry of [...waiting, 'iterator', 'batches', 'next manual'])
      expect(ledger.codes.filter((line) => line === `${entry}: ${code}`)).toHaveLength(2)
  },
)

describe('a signal aborts each call, and the link is not affected', () => {
  const abortable: Record<string, (client: BaseClient, signal: AbortSignal) => Promise<unknown>> = {
    'publish 1': (client, signal) => client.publish('a', 'x', { qos: 1, signal }),
    'publish 2': (client, signal) => client.publish('a', 'x', { qos: 2, signal }),
    subscribe: (client, signal) => client.subscribe('a', { signal }),
    'subscription.ready': (client, signal) => client.subscription('a', { signal }).ready,
    listen: (client, signal) => client.listen('a', () => undefined, { signal }),
    unsubscribe: (client, signal) => client.unsubscribe('a', { signal }),
    next: (client, signal) => client.subscription('a').next({ signal }),
  }

  it.each(Object.keys(abortable))('%s: before it was sent, and after', async (name) => {
    for (const sent of [true, false]) {
      const world = await connected({})
      const controller = new AbortController()
      const cause = new Error('enough')
      const call = abortable[name]?.(world.client, controller.signal) as Promise<unknown>
      call.catch(() => undefined)
      if (sent) await world.settle()
      controller.abort(cause)
      const error = { code: 'ERR_ABORTED', name: 'AbortError', cause }
      expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error })
      expect(world.client.state).toBe('connected')
      world.answer = agreeable
      const publishing = world.client.publish('b', 'x', { qos: 1 })
      await world.settle()
      await publishing
    }
  })

  it.each(Object.keys(abortable))('%s: aborted before it began: nothing is sent', async (name) => {
    const world = await connected({})
    const call = abortable[name]?.(world.client, AbortSignal.abort()) as Promise<unknown>
    expect(await world.outcome(call)).toMatchObject({
      state: 'rejected',
      error: { code: 'ERR_ABORTED' },
    })
    if (name !== 'next')
      expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
  })
})

it('what nobody awaits is no unhandled rejection: closed, ready, writable, done, publish', async () => {
  const world = await connected({}, agreeable)
  world.client.publish('a', 'x', { qos: 1, signal: AbortSignal.abort() })
  world.client.publish('a/#', 'x')
  world.client.subscription('a')
  const starting = world.client.listen('b', () => Promise.reject(new Error('mine')), { qos: 1 })
  await world.settle()
  void (await starting).done
  void world.client.closed
  void world.client.writable
  world.answer = undefined
  world.client.publish('a', 'x', { qos: 2 })
  world.client.subscription('c')
  await world.send(publish('b', '', 1))
  world.peer.cut()
  await world.clock.advance(100_000)
  world.client.publish('a', 'x')
  await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled).toEqual([])
})
