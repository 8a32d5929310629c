/**
 * Packets of a server, changed here and there, in every state that a connection can be in and cut anywhere: nothing is thrown outside the API, no rejection
 * is left alone, little is held, and each connection that they end is ended by a typed error. The share of CI is small;
 * `npm run lab -- fuzz long` sends ten million.
 */
import { expect, it } from 'vitest'
import { join, packet, text, uint16 } from '../../lab/budgets/bytes.js'
import { Random } from '../../world/random.js'
import { times, World } from './harness.js'
import { loop } from './steps.js'
import { unhandledInFile } from './unhandled.js'

const long = process.env['MQWIRE_LONG'] !== undefined
const packets = Number(process.env['MQWIRE_PACKETS'] ?? (long ? 10_000_000 : 20_000))

/** What a connection is in the middle of when the bytes come; asked anew for each one. */
const states = {
  'before CONNACK': () => undefined,
  idle: () => undefined,
  'with a reader': ({ client }: World) =>
    void loop(client.subscription('#', { qos: 2 })).catch(nothing),
  'with a reader that hangs': ({ client }: World) =>
    void client.subscription('+', { qos: 2 }).next(),
  'with a subscription that nobody reads': ({ client }: World) =>
    void client.subscription('+/#', { qos: 1, buffer: 4 }),
  'with publishes in flight': ({ client }: World) => {
    if (client.outbound.size < 100)
      for (const qos of [0, 1, 2, 2] as const) client.publish('t', 'x', { qos }).catch(nothing)
  },
  'with a subscription that is not granted': ({ client }: World) =>
    void client.subscription('a', { signal: AbortSignal.abort() }).ready.catch(nothing),
  'with an UNSUBSCRIBE that is not answered': ({ client }: World) =>
    void client.unsubscribe('b').catch(nothing),
  'with a request': ({ client }: World) =>
    void client.request('svc', 'x', { timeout: 5 }).catch(nothing),
  'authenticating again': ({ client }: World) => void client.reauthenticate().catch(nothing),
} as const
type State = keyof typeof states
const names = Object.keys(states) as State[]

const nothing = (): void => undefined

/** Every packet that a server may send, right as it stands. */
function goodPackets(version: 4 | 5): readonly Buffer[] {
  const block = version === 5 ? [0] : []
  const all: (readonly [number, Buffer])[] = [
    [0x20, join(0, 0, block)],
    [0x30, join(text('a'), block, 'x')],
    [0x32, join(text('a'), uint16(1), block, 'x')],
    [0x34, join(text('a'), uint16(2), block, 'x')],
    [0x40, join(uint16(1))],
    [0x50, join(uint16(2))],
    [0x62, join(uint16(2))],
    [0x70, join(uint16(2))],
    [0x90, join(uint16(3), block, 0)],
    [0xb0, version === 5 ? join(uint16(4), block, 0) : join(uint16(4))],
    [0xd0, Buffer.alloc(0)],
  ]
  if (version === 5)
    all.push(
      [0xf0, Buffer.of(0x18, 4, 0x15, 0, 1, 0x61)],
      [0x30, join(text('b'), 8, 0x0b, 1, 0x26, 0, 1, 0x61, 0, 0, 'x')],
      [0xe0, Buffer.of(0x8b)],
    )
  return all.map(([first, body]) => packet(first, body))
}

/** What was done, over all lives. */
interface Counts {
  readonly seen: Map<State, number>
  sent: number
  ends: number
  connections: number
}

/** Some packets, changed here and there and cut anywhere. */
function changed(good: readonly Buffer[], random: Random) {
  const chosen = times(random.between(1, 6), () => random.pick(good))
  const bytes = Buffer.concat(chosen)
  for (let count = random.below(4); count > 0; count--)
    bytes[random.below(bytes.length)] = random.below(256)
  const end = random.below(4) === 0 ? random.below(bytes.length) : bytes.length
  const most = random.pick([1, 3, 20, 10_000])
  const pieces: Buffer[] = []
  for (let at = 0; at < end; at += pieces.at(-1)?.length ?? 0)
    pieces.push(bytes.subarray(at, Math.min(end, at + random.between(1, most))))
  return { count: chosen.length, pieces }
}

/** One client and its connections, in states by chance. */
async function live(version: 4 | 5, random: Random, counts: Counts): Promise<World> {
  const good = goodPackets(version)
  const world = new World({
    protocolVersion: version,
    clientId: 'c',
    cleanStart: false,
    reconnect: { backoff: () => 1, decide: () => 'retry' },
    memoryBudget: 4 * 1024 * 1024,
    auth:
      version === 5
        ? { method: 'a', start: () => undefined, continue: () => undefined }
        : undefined,
  })
  const { client, clock } = world
  let state = 'idle' as State
  let isFresh = true
  world.answer = (heard) => {
    if (heard.type !== 'connect') return undefined
    counts.connections += 1
    isFresh = true
    state = random.pick(names)
    if (state === 'before CONNACK') return undefined
    const properties = version === 5 ? { authenticationMethod: 'a' } : {}
    return { type: 'connack', sessionPresent: random.chance(0.5), reasonCode: 0, properties }
  }
  client.connect().catch(nothing)
  await world.settle()
  for (let round = 0; round < 500 && counts.sent < packets; round++) {
    if (client.state !== 'connecting' && client.state !== 'connected') await clock.advance(20)
    if (isFresh && client.state === 'connected') states[state](world)
    isFresh = false
    counts.seen.set(state, (counts.seen.get(state) ?? 0) + 1)
    const { count, pieces } = changed(good, random)
    counts.sent += count
    for (const piece of pieces) world.peer.sendBytes(piece)
    if (random.below(4) === 0) await clock.advance(2)
  }
  // Also while it says goodbye, with a turn that does not end.
  const ending = client.disconnect({ timeout: random.below(2) * 50 })
  world.peer.sendBytes(Buffer.concat(good.slice(random.below(good.length))))
  await clock.advance(2000)
  await ending
  return world
}

const strays = unhandledInFile()
const timeout = packets > 20_000 ? 7_200_000 : 60_000

it(`${packets.toLocaleString('en')} packets, changed and cut, in ${names.length} states: typed ends only`, {
  timeout,
}, async () => {
  const random = new Random(0x2545f491)
  const counts: Counts = { seen: new Map(), sent: 0, ends: 0, connections: 0 }
  for (let number = 0; counts.sent < packets; number++) {
    const world = await live(number % 3 === 0 ? 4 : 5, random, counts)
    expect([number, world.client.state, world.clock.pending]).toEqual([number, 'closed', 0])
    for (const { cause } of world.seen('disconnect')) {
      counts.ends += 1
      if (cause !== undefined) expect(cause.code).toMatch(/^ERR_[A-Z_]+$/)
    }
    // The parts that make up a life are gone with it: what is left over would be seen here. Only over millions, in a process of its own.
    if (packets > 20_000 && number % 200 === 0)
      expect(process.memoryUsage().heapUsed).toBeLessThan(700 * 1024 * 1024)
  }
  const { seen, sent, ends, connections } = counts
  expect(strays).toEqual([])
  expect([...seen.keys()].sort()).toEqual([...names].sort())
  expect(Math.min(...seen.values())).toBeGreaterThan(packets / 5000)
  expect(ends).toBeGreaterThan(packets / 100)
  if (packets > 20_000)
    console.log(`${sent} packets in ${connections} connections, of which ${ends} were up and ended`)
})
