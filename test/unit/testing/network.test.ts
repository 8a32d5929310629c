/** The parts of a virtual world: its clock, its links as transports, and the option `platform` through the public entries. */

import { describe, expect, it, vi } from 'vitest'
import { Client, connect } from '../../../src/client/browser.js'
import { MemoryBroker, virtualPlatform } from '../../../src/testing/index.js'
import { LiveClock } from '../../../src/testing/live-clock.js'
import { Network } from '../../../src/testing/network.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform as wholePlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import type { DialOptions, Sink, Target, Transport } from '../../../src/transport/transport.js'

const at = (clock: LiveClock, delay: number): Promise<number> =>
  new Promise((resolve) => void clock.setTimer(() => resolve(clock.now()), delay))

it('a clock runs what is due now without being told, and what that makes due, in order', async () => {
  const clock = new LiveClock()
  const seen: number[] = []
  clock.setTimer(() => {
    seen.push(1)
    clock.setTimer(() => seen.push(3), 0)
  }, 0)
  clock.setTimer(() => seen.push(2), 0)
  expect(seen).toEqual([])
  await at(clock, 0)
  await at(clock, 0)
  expect(seen).toEqual([1, 2, 3])
  expect(clock.pending).toBe(0)
})

it('a clock runs what was set while the last of what is due settles', async () => {
  const clock = new LiveClock()
  for (let hops = 0; hops < 12; hops++) {
    await at(clock, 0)
    for (let hop = 0; hop < hops; hop++) await undefined
    expect(await at(clock, 0)).toBe(0)
  }
})

it('a clock lets promises settle between two timers', async () => {
  const clock = new LiveClock()
  const seen: string[] = []
  clock.setTimer(async () => {
    for (let hop = 0; hop < 20; hop++) await undefined
    seen.push('first')
  }, 5)
  clock.setTimer(() => seen.push('second'), 5)
  await clock.advance(5)
  expect(seen).toEqual(['first', 'second'])
})

it('a clock puts calls that overlap one behind the other, so that time never goes back', async () => {
  const clock = new LiveClock()
  const times: number[] = []
  for (const delay of [0, 10, 20, 40]) clock.setTimer(() => times.push(clock.now()), delay)
  const passing = [clock.advance(30), clock.advance(10), clock.settle()]
  await passing[0]
  expect(clock.now()).toBe(30)
  await Promise.all(passing)
  expect(times).toEqual([0, 10, 20, 40])
  expect(clock.now()).toBe(40)
})

it('a clock runs what is late after a jump', async () => {
  const clock = new LiveClock()
  const late = at(clock, 100)
  clock.jump(500)
  expect(await late).toBe(500)
})

it('a clock goes on after a timer that throws, runs what else is due, and says so to the caller that let the time pass', async () => {
  const clock = new LiveClock()
  clock.setTimer(() => {
    throw new Error('broken')
  }, 10)
  const [other, later] = [at(clock, 10), at(clock, 20)]
  await expect(clock.advance(15)).rejects.toThrow('broken')
  expect(await other).toBe(10)
  await clock.advance(10)
  expect(await later).toBe(20)
})

it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '5'])(
  'a clock refuses %s milliseconds',
  async (duration) => {
    for (const clock of [new LiveClock(), new VirtualClock()]) {
      await expect(clock.advance(duration as number)).rejects.toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: 'duration',
      })
      expect(() => clock.jump(duration as number)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'duration' }),
      )
      expect(clock.now()).toBe(0)
    }
  },
)

it.each([LiveClock, VirtualClock])(
  '%o does not go back after a jump while time passes',
  async (Clock) => {
    const clock = new Clock()
    clock.setTimer(() => clock.jump(1000), 10)
    await clock.advance(100)
    expect(clock.now()).toBe(1010)
  },
)

it('a clock needs no channels: not every test environment has them', async () => {
  vi.stubGlobal('MessageChannel', undefined)
  try {
    const clock = new LiveClock()
    expect(await at(clock, 0)).toBe(0)
    const later = at(clock, 10)
    await clock.advance(10)
    expect(await later).toBe(10)
  } finally {
    vi.unstubAllGlobals()
  }
})

function hearing(): Sink & { readonly events: string[] } {
  const events: string[] = []
  const bytes = new Uint8Array(16)
  return {
    events,
    buffer: () => bytes,
    read: (length) => void events.push(`read ${length}`),
    chunk: (given) => void events.push(`chunk ${given}`),
    drain: () => void events.push('drain'),
    closed: (cause) => void events.push(`closed ${cause instanceof Error ? cause.message : cause}`),
  }
}

const target = {} as Target
const never: DialOptions = { signal: new AbortController().signal }
async function linked() {
  const clock = new VirtualClock()
  const tasks = (): Promise<void> => clock.settle()
  const [client, server] = memoryPair({
    schedule: (callback, delay) => clock.setTimer(callback, delay),
  })
  const network = new Network(async () => client)
  const dial = network.add(() => 'a')
  const link: Transport = await dial(target, never)
  const [near, far] = [hearing(), hearing()]
  link.open(near)
  server.open(far)
  await tasks()
  return { network, dial, link, server, near, far, tasks }
}

it('a link tells both ends of a cut, once, and refuses what is written afterwards', async () => {
  const { network, link, near, far, tasks } = await linked()
  const written: unknown[] = []
  network.cut('a', false)
  network.cut(undefined, false)
  expect(near.events).toEqual([])
  expect(link.write(Uint8Array.of(1), (error) => written.push(error))).toBe(false)
  await tasks()
  expect(near.events).toEqual(['closed the link was cut'])
  expect(far.events).toEqual(['closed The peer cut the stream'])
  expect(written).toEqual([expect.any(Error)])
})

it('a link swallows everything after a silent cut, the end included, and is closed by its own end alone', async () => {
  const { network, link, server, near, far, tasks } = await linked()
  const written: unknown[] = []
  network.cut('b', true)
  server.write(Uint8Array.of(1))
  await tasks()
  network.cut('a', true)
  expect(link.write(Uint8Array.of(2), (error) => written.push(error))).toBe(true)
  server.write(Uint8Array.of(3))
  await tasks()
  server.destroy(new Error('gone'))
  await tasks()
  expect(written).toEqual([undefined])
  expect(near.events).toEqual(['chunk 1'])
  expect(far.events).toEqual(['closed gone'])
  link.destroy(new Error('given up'))
  link.destroy(new Error('again'))
  expect(link.write(Uint8Array.of(4), (error) => written.push(error))).toBe(false)
  expect(near.events).toEqual(['chunk 1'])
  await tasks()
  expect(near.events).toEqual(['chunk 1', 'closed given up'])
  expect(written).toEqual([undefined, expect.any(Error)])
})

it.each([
  ['before', (cut: () => void, close: () => void) => [cut(), close()], []],
  ['after', (cut: () => void, close: () => void) => [close(), cut()], ['closed undefined']],
])(
  'a link ends when it is cut silently %s close(): what was said before then arrives',
  async (_, act, told) => {
    const { network, link, near, far, tasks } = await linked()
    act(
      () => void network.cut('a', true),
      () => link.close(),
    )
    expect(near.events).toEqual([])
    await tasks()
    expect(near.events).toEqual(['closed undefined'])
    expect(far.events).toEqual(told)
  },
)

it('a link cannot be dialled while it is cut; silently, dialling waits for the mend or the signal', async () => {
  const { network, dial } = await linked()
  const mend = network.cut('a', false)
  await expect(dial(target, never)).rejects.toMatchObject({ code: 'ENETUNREACH' })
  mend()
  const mendAgain = network.cut('a', true)
  const stop = new AbortController()
  const given = dial(target, { signal: stop.signal })
  const waiting = dial(target, never)
  stop.abort('too late')
  await expect(given).rejects.toBe('too late')
  mendAgain()
  expect(await waiting).toMatchObject({ open: expect.any(Function) })
})

const minute = 60_000

function virtual() {
  const clock = new VirtualClock()
  const broker = new MemoryBroker({ clock })
  return {
    clock,
    broker,
    endpoint: { url: 'mqtt://broker', transport: broker.dial },
    platform: virtualPlatform(clock),
  }
}

describe('the option platform', () => {
  it('an hour passes in a test', async () => {
    const { clock, broker, endpoint, platform } = virtual()
    const connecting = connect(endpoint, { platform, keepAlive: 60, clientId: 'meter' })
    await clock.advance(10)
    const client = await connecting
    const pings: number[] = []
    client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === 'pingreq') pings.push(clock.now())
    })
    await clock.advance(60 * minute)
    expect(pings.length).toBeGreaterThanOrEqual(59)
    expect(client.state).toBe('connected')
    const leaving = client.disconnect()
    await clock.advance(10)
    await leaving
    await broker.close()
  })

  it('new Client takes it as well: a first connection that hangs fails after its connectTimeout', async () => {
    const { clock, platform } = virtual()
    const client = new Client(
      { url: 'mqtt://broker', transport: () => new Promise<never>(() => undefined) },
      { platform, connectTimeout: 5 * minute },
    )
    const error = client.connect().catch((reason: unknown) => reason)
    await clock.advance(5 * minute + 1)
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT' })
  })

  it.each([5, 'virtual', {}, { now: 5 }])('refuses %j before anything is dialled', (platform) => {
    let dialled = 0
    const transport = (): never => {
      dialled += 1
      throw new Error('dialled')
    }
    const make = (): Client =>
      new Client({ url: 'mqtt://broker', transport }, { platform: platform as never })
    expect(make).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'platform' }),
    )
    expect(dialled).toBe(0)
  })
})

it('the random numbers of a seed are the same everywhere: those of xorshift32', () => {
  const numbers = (seed?: number): number[] => {
    const platform = wholePlatform(new VirtualClock(), seed)
    return Array.from({ length: 3 }, () => platform.random() * 4_294_967_296)
  }
  expect(numbers()).toEqual([270_369, 67_634_689, 2_647_435_461])
  expect(numbers(0)).toEqual(numbers(1))
  expect(numbers(7)).not.toEqual(numbers(1))
})
