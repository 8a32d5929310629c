/** What a platform gives: a scanner, for which nothing waits; transports that read into what they are lent, without sockets; random numbers. */
import { afterEach, expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/browser.js'
import { sliceLength } from '../../../src/client/connection/stream-reader.js'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { runtime } from '../../../src/client/platform.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { encode } from '../../../src/wire/encode.js'
import type { FrameOptions, FrameScanner } from '../../../src/wire/frames.js'
import { always, instantiate } from '../wasm/scanner.js'
import { agreeable, times } from './harness.js'
import { bytesOf, publish, read, series, subscribe, takenTexts } from './incoming.js'
import { lost, up } from './rig.js'
import { Windowed, windowed } from './windowed.js'

/** A scanner that notes what it was asked for. */
function counting(): FrameScanner & { readonly made: FrameOptions[]; pushes: number } {
  const memory = instantiate()
  const scanner = {
    window: memory.window,
    made: [] as FrameOptions[],
    pushes: 0,
    frames(options: FrameOptions) {
      scanner.made.push(options)
      const frames = new WasmFrames(memory, options, always)
      const { push } = WasmFrames.prototype
      frames.push = (...given) => {
        scanner.pushes += 1
        push.apply(frames, given)
      }
      return frames
    },
  }
  return scanner
}

/** A connection with the option, and what is read over it. */
async function reading(scanner: unknown) {
  const { world, connections, send } = await windowed({ scanner } as ClientOptions)
  const { texts } = read(await subscribe(world, 'a', { qos: 1 }))
  return { world, connections, texts, send }
}

/** The same, with a scanner that comes when `give` is called. */
async function late() {
  const scanner = counting()
  let give: (value: FrameScanner) => void = () => undefined
  const promise = new Promise<FrameScanner>((resolve) => {
    give = resolve
  })
  return { scanner, give: () => give(scanner), ...(await reading(promise)) }
}

const twenty = times(20, (index) => String(index + 1))

it('a scanner reads from the first message on, into its own window', async () => {
  const scanner = counting()
  const { connections, texts, send } = await reading(scanner)
  await send(...series('a', 20))
  expect(texts).toEqual(twenty)
  expect(scanner.made).toMatchObject([{ protocolVersion: 5 }])
  expect(scanner.pushes).toBeGreaterThanOrEqual(1)
  expect(connections[0]?.windows).toEqual([scanner.window.bytes])
})

const no = (): never => {
  throw new Error('no')
}
it.each<[string, () => unknown]>([
  ['false', () => false],
  ['a promise that never settles', () => new Promise(() => undefined)],
  ['a promise of nothing', async () => undefined],
  ['a promise of nonsense', async () => ({ window: 1 })],
  ['a promise of null', async () => null],
  [
    'a promise that rejects',
    () => new Promise((_resolve, reject) => setTimeout(reject, 0, new Error('no'))),
  ],
  ['a thenable that throws', () => Object.defineProperty({}, 'then', { value: no })],
])('%s: reads without, and nothing is unhandled', async (_name, make) => {
  const { texts, send } = await reading(make())
  await send(...series('a', 20))
  expect(texts).toEqual(twenty)
})

it('one that comes late takes over where a packet ends, never in the midst of one', async () => {
  const { world, texts, scanner, give } = await late()
  const packet = encode(publish('a', 'in two reads', 1))
  await world.sendBytes(packet.subarray(0, 7))
  give()
  await world.settle()
  expect(scanner.made).toEqual([])
  await world.sendBytes(packet.subarray(7, 9))
  await world.sendBytes(packet.subarray(9))
  expect([texts, scanner.made.length]).toEqual([['in two reads'], 0])
  await world.sendBytes(encode(publish('a', 'the next', 2)))
  expect([texts, scanner.pushes]).toEqual([['in two reads', 'the next'], 1])
})

it('one that comes after the end changes nothing', async () => {
  const { world, scanner, give } = await late()
  world.client.destroy()
  give()
  await world.settle()
  expect(scanner.made).toEqual([])
})

it('the next connection begins with it', async () => {
  const scanner = counting()
  const rig = await up({ scanner: Promise.resolve(scanner) })
  const receive = async (text: string): Promise<void> => {
    rig.peer.sendBytes([...encode(publish('a', text, 1))])
    await rig.settle()
  }
  await receive('before')
  expect(scanner.made.length).toBe(1)
  await rig.cut()
  await rig.advance(5000)
  expect(scanner.made.length).toBe(1)
  await receive('after')
  expect([rig.client.state, scanner.made.length]).toEqual(['connected', 2])
})

it.each([
  ['without the option the platform is asked, once', {}, 1],
  ['with false it is not', { scanner: false }, 0],
] as const)('%s; one that cannot be loaded is no failure', async (_what, options, expected) => {
  for (const load of [async () => undefined, () => Promise.reject(new Error('no'))]) {
    let asked = 0
    const loadScanner = () => {
      asked += 1
      return load()
    }
    const rig = await lost(() => agreeable, 5000, options, { platform: { loadScanner } })
    expect([rig.client.state, asked]).toEqual(['connected', expected])
  }
})

it.each(['owned', 'borrowed'] as const)('messages of any size are whole: %s', async (lifetime) => {
  const [near, far] = memoryPair()
  const link = new Windowed(near)
  const peer = new ScriptedPeer(far, 5, agreeable)
  const endpoint = { url: 'mqtt://memory', transport: () => link }
  const client = new Client(endpoint, { reconnect: false, keepAlive: false })
  await client.connect()
  const seen: string[] = []
  await client.listen('a', (message) => void seen.push(message.text()), { lifetime })
  const subscription = await client.subscribe('a')
  const texts = ['one', 'b'.repeat(100_000), 'two', 'c'.repeat(300_000), 'end']
  const packets = texts.map((text) => publish('a', text))
  peer.sendBytes(bytesOf(packets.slice(0, 4)))
  peer.sendBytes(bytesOf(packets.slice(4)))
  await vi.waitFor(() => expect(seen).toHaveLength(5))
  expect([seen, takenTexts(subscription)]).toEqual([texts, texts])
  // All of it came through one array.
  expect(new Set(link.windows.map(({ buffer }) => buffer)).size).toBe(1)
  client.destroy()
})

afterEach(() => vi.unstubAllGlobals())

// It goes on in a message of a channel, or in a timer where there is none, as in React Native.
it.each([
  ['with', globalThis.MessageChannel],
  ['without', undefined],
])('walks a flood %s a MessageChannel', async (_how, channel) => {
  vi.stubGlobal('MessageChannel', channel)
  const [near, far] = memoryPair()
  const peer = new ScriptedPeer(far, 5, agreeable)
  const client = new Client({ url: 'mqtt://memory', transport: () => near }, { reconnect: false })
  await client.connect()
  const subscription = await client.subscribe('a', {
    buffer: 2 * sliceLength,
    bufferBytes: 2 ** 24,
  })
  const one = encode({ type: 'publish', topic: 'a', payload: Uint8Array.of(1) })
  const count = 1.5 * sliceLength
  const flood = new Uint8Array(count * one.length)
  for (let at = 0; at < flood.length; at += one.length) flood.set(one, at)
  peer.sendBytes(flood)
  await vi.waitFor(() => expect(subscription.size).toBe(count), 10_000)
  client.destroy()
})

it('random numbers are from 0 to below 1, spread, and none is given twice', () => {
  const numbers = times(1000, () => runtime.random())
  expect(new Set(numbers).size).toBeGreaterThan(995)
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true)
  for (let tenth = 0; tenth < 10; tenth++)
    expect(numbers.some((number) => Math.floor(number * 10) === tenth)).toBe(true)
})

it('they come from the platform, many at a time', () => {
  const get = vi.spyOn(crypto, 'getRandomValues')
  try {
    for (let count = 0; count < 640; count++) runtime.random()
    expect(get).toHaveBeenCalledTimes(10)
    get.mockImplementation((array) => {
      if (array instanceof Uint32Array) array.fill(0xffff_ffff)
      return array
    })
    const last = times(128, () => runtime.random()).at(-1)
    expect(last).toBeGreaterThan(0.999_999)
    expect(last).toBeLessThan(1)
  } finally {
    get.mockRestore()
  }
})
