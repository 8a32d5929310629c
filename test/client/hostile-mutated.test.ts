/**
 * Packets of a server, changed here and there, in every state that a connection can be in and cut anywhere: nothing is thrown outside the API, nobody's
 * rejection is left alone, little is held, and each connection that they end is ended by a typed error (pain 22). The share of CI is small;
 * `npm run pains` sends ten million.
 */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ClientOptions } from '../../src/client/api/index.js'
import { join, packet, text, uint16 } from '../budgets/bytes.js'
import { World } from './harness.js'

const long = process.env['MQWIRE_LONG'] !== undefined
const packets = Number(process.env['MQWIRE_PACKETS'] ?? (long ? 10_000_000 : 20_000))

/** What a connection is in the middle of when the bytes come; asked anew for each one. */
const states = {
  'before CONNACK': () => undefined,
  idle: () => undefined,
  'with a reader': ({ client }: World) => void drain(client.subscription('#', { qos: 2 })),
  'with a reader that hangs': ({ client }: World) => void client.subscription('+', { qos: 2 }).next(),
  'with a subscription that nobody reads': ({ client }: World) => void client.subscription('+/#', { qos: 1, buffer: 4 }),
  'with publishes in flight': ({ client }: World) => {
    if (client.outbound.size < 100) for (const qos of [0, 1, 2, 2] as const) client.publish('t', 'x', { qos }).catch(nothing)
  },
  'with a subscription that is not granted': ({ client }: World) =>
    void client.subscription('a', { signal: AbortSignal.abort() }).ready.catch(nothing),
  'with an UNSUBSCRIBE that is not answered': ({ client }: World) => void client.unsubscribe('b').catch(nothing),
  'with a request': ({ client }: World) => void client.request('svc', 'x', { timeout: 5 }).catch(nothing),
  'authenticating again': ({ client }: World) => void client.reauthenticate().catch(nothing),
} as const
type State = keyof typeof states
const names = Object.keys(states) as State[]

const nothing = (): void => undefined

async function drain(subscription: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const _ of subscription);
  } catch {
    // The end of the client is told by the client.
  }
}

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
    all.push([0xf0, Buffer.of(0x18, 4, 0x15, 0, 1, 0x61)], [0x30, join(text('b'), 8, 0x0b, 1, 0x26, 0, 1, 0x61, 0, 0, 'x')], [0xe0, Buffer.of(0x8b)])
  return all.map(([first, body]) => packet(first, body))
}

const strays: unknown[] = []
const note = (reason: unknown): void => void strays.push(reason)
beforeEach(() => void process.on('unhandledRejection', note))
afterEach(() => void process.off('unhandledRejection', note))

it(`pain 22 N26 N27 ${packets.toLocaleString('en')} packets, changed and cut, in ${names.length} states: typed ends only`, {
  timeout: packets > 20_000 ? 7_200_000 : 60_000,
}, async () => {
  let seed = 0x2545f491
  const random = (below: number): number => {
    seed ^= seed << 13
    seed ^= seed >>> 17
    seed ^= seed << 5
    return (seed >>> 0) % below
  }
  const seen = new Map<string, number>()
  let sent = 0
  let ends = 0
  let connections = 0
  for (let life = 0; sent < packets; life++) {
    const version = life % 3 === 0 ? 4 : 5
    const good = goodPackets(version)
    let state: State = 'idle'
    let fresh = true
    const options: ClientOptions = {
      protocolVersion: version,
      clientId: 'c',
      cleanStart: false,
      reconnect: { backoff: () => 1, decide: () => 'retry' },
      memoryBudget: 4 * 1024 * 1024,
      auth: version === 5 ? { method: 'a', start: () => undefined, continue: () => undefined } : undefined,
    }
    const world = new World(options)
    world.answer = (heard) => {
      if (heard.type !== 'connect') return undefined
      connections += 1
      fresh = true
      state = names[random(names.length)] ?? 'idle'
      if (state === 'before CONNACK') return undefined
      return { type: 'connack', sessionPresent: random(2) === 0, reasonCode: 0, properties: version === 5 ? { authenticationMethod: 'a' } : {} }
    }
    world.client.connect().catch(nothing)
    await world.settle()
    for (let round = 0; round < 500 && sent < packets; round++) {
      if (world.client.state !== 'connecting' && world.client.state !== 'connected') await world.clock.advance(20)
      const key = state as State
      if (fresh && world.client.state === 'connected') states[key](world)
      fresh = false
      seen.set(key, (seen.get(key) ?? 0) + 1)
      const chosen = Array.from({ length: 1 + random(6) }, () => good[random(good.length)] as Buffer)
      sent += chosen.length
      const bytes = Buffer.concat(chosen)
      for (let count = random(4); count > 0; count--) bytes[random(bytes.length)] = random(256)
      const end = random(4) === 0 ? random(bytes.length) : bytes.length
      const most = [1, 3, 20, 10_000][random(4)] ?? 1
      for (let at = 0; at < end; ) {
        const length = Math.min(end - at, 1 + random(most))
        world.peer.sendBytes(bytes.subarray(at, at + length))
        at += length
      }
      if (random(4) === 0) await world.clock.advance(2)
    }
    // Also while it says goodbye, with a turn that does not end.
    const ending = world.client.disconnect({ timeout: random(2) * 50 })
    world.peer.sendBytes(Buffer.concat(good.slice(random(good.length))))
    await world.clock.advance(2000)
    await ending
    expect([life, world.client.state, world.clock.pending]).toEqual([life, 'closed', 0])
    for (const { cause } of world.seen('disconnect')) {
      ends += 1
      if (cause !== undefined) expect(cause.code).toMatch(/^ERR_[A-Z_]+$/)
    }
    // The parts that make up a life are gone with it: what is left over would be seen here.
    if (life % 200 === 0) expect(process.memoryUsage().heapUsed).toBeLessThan(700 * 1024 * 1024)
  }
  expect(strays).toEqual([])
  expect([...seen.keys()].sort()).toEqual([...names].sort())
  expect(Math.min(...seen.values())).toBeGreaterThan(packets / 5000)
  expect(ends).toBeGreaterThan(packets / 100)
  if (packets > 20_000) console.log(`${sent} packets in ${connections} connections, of which ${ends} were up and ended`)
})
