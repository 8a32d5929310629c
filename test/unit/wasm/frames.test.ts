/** The binary and its loader, and what the frames of the scanner promise beyond what the Framer does: where they read, what they copy, and what happens when it fails. */

import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { binary } from '../../../src/wasm/binary.js'
import { WasmFrames, type Worth } from '../../../src/wasm/frames.js'
import type { Memory } from '../../../src/wasm/memory.js'
import type { FrameScanner } from '../../../src/wire/frames.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'
import { field, join, packet, variable } from '../../fuzz/build.js'
import { always, differs, instantiate, tellFramer, tellScanner } from './scanner.js'
import { type Delivery, tell } from './story.js'

const { readSource, compile, moduleOf } = (await import(
  new URL('../../../.ci/wasm.mjs', import.meta.url).href
)) as {
  readSource(): string
  /** WebAssembly of a source. Rejects with what does not compile. */
  compile(source: string): Promise<Uint8Array<ArrayBuffer>>
  /** The text of src/wasm/binary.ts for a source, and bytes of the WebAssembly in it. */
  moduleOf(source: string): Promise<{ readonly text: string; readonly size: number }>
}

const committed = readFileSync(new URL('../../../src/wasm/binary.ts', import.meta.url), 'utf8')

it('src/wasm/binary.ts is that of scanner.as (if not: npm run build)', {
  timeout: 60_000,
}, async () => {
  const { text, size } = await moduleOf(readSource())
  expect(committed).toBe(text)
  expect(Buffer.from(binary, 'base64')).toHaveLength(size)
})

it('a source gives the same bytes whenever it is compiled, and another source others', {
  timeout: 60_000,
}, async () => {
  const source = readSource()
  const bytes = await compile(source)
  expect(await compile(source)).toEqual(bytes)
  expect(
    await compile(source.replace('const MOST_PROBES: u32 = 8', 'const MOST_PROBES: u32 = 9')),
  ).not.toEqual(bytes)
})

it('a source that does not compile is refused with what is wrong', {
  timeout: 60_000,
}, async () => {
  await expect(compile('export function scan(): i32 { return nothing }')).rejects.toThrow(
    /does not compile[\s\S]*nothing/,
  )
})

it('the binary is small, asks for nothing, and has a memory that never grows', () => {
  const bytes = Buffer.from(binary, 'base64')
  expect(bytes.length).toBeLessThan(4096)
  const module = new WebAssembly.Module(bytes)
  expect(WebAssembly.Module.imports(module)).toEqual([])
  const names = WebAssembly.Module.exports(module).map(({ name }) => name)
  expect(names.sort()).toEqual(['memory', 'scan'])
  const { memory } = new WebAssembly.Instance(module).exports as { memory: WebAssembly.Memory }
  expect(memory.buffer.byteLength).toBe(7 * 65_536)
  expect(() => memory.grow(1)).toThrow(RangeError)
})

async function fresh(): Promise<() => Promise<FrameScanner | undefined>> {
  vi.resetModules()
  return (await import('../../../src/wasm/index.js')).loadScanner
}

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

describe('loadScanner', () => {
  it('gives the one scanner of the thread, which tells what the framer tells', async () => {
    const loadScanner = await fresh()
    const scanner = await loadScanner()
    expect(scanner).toBeDefined()
    expect(await loadScanner()).toBe(scanner)
    const setting = { protocolVersion: 5, maximumPacketSize: 1000 } as const
    const deliveries = [
      {
        bytes: new Uint8Array(Buffer.from('3005000161007830050001610078d000', 'hex')),
        inPlace: true,
      },
    ]
    const frames = (scanner as FrameScanner).frames(setting)
    expect(
      differs(tellFramer(setting, deliveries), tell(frames, deliveries, scanner?.window)),
    ).toBeUndefined()
  })

  it('compiles without blocking', async () => {
    const compiled = vi.spyOn(WebAssembly, 'Module')
    const loadScanner = await fresh()
    expect(await loadScanner()).toBeDefined()
    expect(compiled).not.toHaveBeenCalled()
  })

  const refuse = () => {
    throw new WebAssembly.CompileError('refused by Content Security Policy')
  }
  it.each<readonly [name: string, given: unknown]>([
    ['there is no WebAssembly', undefined],
    ['there is no SIMD', { validate: () => false, instantiate: refuse }],
    ['the page forbids it', { validate: () => true, instantiate: refuse }],
    [
      'the page forbids it, and tells later',
      { validate: () => true, instantiate: async () => refuse() },
    ],
    [
      'there is no memory',
      { validate: () => true, instantiate: () => Promise.reject(new RangeError('out of memory')) },
    ],
    ['it is something else', { validate: () => true, instantiate: async () => ({}) }],
  ])('gives undefined where %s, and says nothing', async (_, given) => {
    const said = (['log', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name))
    const loadScanner = await fresh()
    vi.stubGlobal('WebAssembly', given)
    await expect(loadScanner()).resolves.toBeUndefined()
    await expect(loadScanner()).resolves.toBeUndefined()
    for (const spy of said) expect(spy).not.toHaveBeenCalled()
  })
})

const setting = { protocolVersion: 5, maximumPacketSize: 1 << 20 } as const
const never: Worth = { ...always, rich: 1e6, plain: 1e6, copied: 1e6 }
const publish = (size: number, topic = 'a/b'): Uint8Array =>
  packet(0x30, field(topic), 0, new Uint8Array(size).fill(0x70))
const many = (count: number, size = 20): Uint8Array =>
  join(...Array.from({ length: count }, () => publish(size)))

/** How often the scanner is asked for these, while it tells what the Framer tells. */
function asked(memory: Memory, deliveries: readonly Delivery[]): number {
  const scan = vi.spyOn(memory, 'scan')
  const found = differs(tellFramer(setting, deliveries), tellScanner(memory, setting, deliveries))
  const { length } = scan.mock.calls
  scan.mockRestore()
  expect(found).toBeUndefined()
  return length
}

/** How often for each of these, one after the other on one connection. */
function askedEach(memory: Memory, deliveries: readonly Delivery[]): number[] {
  const scan = vi.spyOn(memory, 'scan')
  const frames = new WasmFrames(memory, setting)
  const calls = deliveries.map((delivery) => {
    const before = scan.mock.calls.length
    tell(frames, [delivery], memory.window)
    return scan.mock.calls.length - before
  })
  scan.mockRestore()
  return calls
}

function walk(frames: WasmFrames): number {
  let count = 0
  while (frames.next()) count += 1
  return count
}

describe('the scanner is asked', () => {
  const memory = instantiate()

  it('for a chunk in the window with sixteen frames, or two with properties', () => {
    const inPlace = true
    expect(asked(memory, [{ bytes: many(16), inPlace }])).toBe(1)
    expect(asked(memory, [{ bytes: many(15), inPlace }])).toBe(0)
    const rich = packet(0x30, field('a/b'), variable(9), 38, field('k'), field('val'))
    const some = (count: number) => join(...new Array<Uint8Array>(count).fill(rich))
    const deliveries = [1, 2, 2, 1].map((count) => ({ bytes: some(count), inPlace }))
    // What came last tells what will come.
    expect(askedEach(memory, deliveries)).toEqual([0, 1, 1, 0])
  })

  it('for small frames elsewhere, which are copied in, as far as the window is long', () => {
    const few = [publish(20), many(40), publish(20).subarray(0, 5), publish(505), many(40, 600)]
    expect(few.map((bytes) => asked(memory, [{ bytes }]))).toEqual([1, 1, 0, 0, 0])
    expect(asked(memory, [{ bytes: many(2300) }])).toBeGreaterThan(1)
    expect(asked(memory, [{ bytes: many(2500) }])).toBe(0)
  })

  it('never for memory elsewhere that is given with its view: that is as good as the window', () => {
    expect(askedEach(memory, [{ bytes: many(40), viewed: true }, { bytes: many(40) }])).toEqual([
      0, 1,
    ])
  })

  it('again when there are more frames than rows', () => {
    expect(asked(memory, [{ bytes: many(1000), inPlace: true }])).toBe(4)
  })

  it('behind a frame whose beginning came before', () => {
    const bytes = many(100)
    const parts = [bytes.slice(0, 10), bytes.slice(10, 1000), bytes.slice(1000, 2500)]
    expect(
      asked(
        memory,
        parts.map((part) => ({ bytes: part, inPlace: true })),
      ),
    ).toBe(2)
  })
})

function inWindow(
  memory: Memory,
  bytes: Uint8Array,
  worth?: Worth,
  frames = new WasmFrames(memory, setting, worth),
): WasmFrames {
  memory.window.bytes.set(bytes)
  frames.push(memory.window.bytes, bytes.length, memory.window.data)
  return frames
}

describe('frames', () => {
  it('lie in the window, and are read without a copy', () => {
    const memory = instantiate()
    const frames = inWindow(memory, many(40))
    const view = new PublishView()
    expect(frames.next()).toBe(true)
    frames.read(view, new TopicTable())
    expect(frames.bytes).toBe(memory.window.bytes)
    expect(view.bytes).toBe(memory.window.bytes)
    expect(view.payload().buffer).toBe(memory.window.bytes.buffer)
    expect(walk(frames)).toBe(39)
    expect(frames.bytes).toHaveLength(0)
  })

  it('whose topic only an alias names are read like others', () => {
    const aliased = (topic: string) =>
      packet(0x30, field(topic), variable(3), 0x23, 0, 1, new Uint8Array(20).fill(0x70))
    const bytes = join(aliased('a/b'), ...Array.from({ length: 20 }, () => aliased('')))
    expect(asked(instantiate(), [{ bytes, inPlace: true }])).toBe(1)
  })

  it('are found in a part of the window too', () => {
    const memory = instantiate()
    const frames = new WasmFrames(memory, setting)
    const bytes = many(40)
    memory.window.bytes.set(bytes, 1000)
    frames.push(memory.window.bytes.subarray(1000, 1000 + bytes.length))
    expect(frames.next()).toBe(true)
    expect(frames.bytes.slice(frames.start, frames.end)).toEqual(publish(20))
    expect(walk(frames)).toBe(39)
  })

  it('of another connection are not overwritten while they are walked', () => {
    const memory = instantiate()
    const one = new WasmFrames(memory, setting, always)
    const other = new WasmFrames(memory, setting, always)
    one.push(many(30))
    expect(one.next()).toBe(true)
    other.push(many(50))
    expect(walk(other)).toBe(50)
    expect(walk(one)).toBe(29)
    // The window is free again.
    const scan = vi.spyOn(memory, 'scan')
    other.push(many(50))
    expect(walk(other)).toBe(50)
    expect(scan).toHaveBeenCalledTimes(1)
  })

  it.each(['clear', 'keep', 'the end'])('give the window back at %s', (how) => {
    const memory = instantiate()
    for (const worth of [always, never]) {
      const frames = inWindow(memory, many(3), worth)
      expect(frames.next()).toBe(true)
      expect(memory.owner === frames).toBe(true)
      if (how === 'clear') frames.clear()
      else if (how === 'keep') frames.keep()
      else expect(walk(frames)).toBe(2)
      expect(memory.owner === undefined).toBe(true)
    }
  })

  it('that were kept are not copied again', () => {
    const frames = new WasmFrames(instantiate(), setting, never)
    frames.push(many(4))
    expect(frames.next()).toBe(true)
    frames.keep()
    expect(frames.next()).toBe(true)
    const { bytes } = frames
    frames.keep()
    expect([frames.next(), frames.bytes === bytes, walk(frames)]).toEqual([true, true, 1])
  })

  it('are over when another connection reads into the window in their midst', () => {
    const memory = instantiate()
    const one = new WasmFrames(memory, setting, always)
    const other = new WasmFrames(memory, setting, always)
    one.push(many(30))
    expect(one.next()).toBe(true)
    expect(walk(inWindow(memory, many(5), always, other))).toBe(5)
    expect([one.next(), one.unread, one.pending]).toEqual([false, 0, 0])
    one.push(many(7))
    expect(walk(one)).toBe(7)
  })

  it('hold nothing after clear', () => {
    const frames = new WasmFrames(instantiate(), setting, always)
    frames.push(join(many(3), [0x30, 9]))
    expect(walk(frames)).toBe(3)
    expect(frames.pending).toBe(2)
    frames.clear()
    expect([frames.pending, frames.unread, frames.next()]).toEqual([0, 0, false])
  })
})

it('a scanner that fails: is not asked again, for any connection, and nothing is lost', () => {
  const memory = instantiate()
  const failing = vi.fn(() => {
    throw new WebAssembly.RuntimeError('unreachable')
  })
  const Broken = memory.constructor as new (exports: object) => Memory
  const broken = new Broken({ memory: { buffer: memory.window.bytes.buffer }, scan: failing })
  const stream = [true, false].map((inPlace) => ({ bytes: many(30), inPlace }))
  const expected = tellFramer(setting, stream)
  for (const _connection of [1, 2]) {
    expect(differs(expected, tellScanner(broken, setting, stream, always))).toBeUndefined()
  }
  expect(failing).toHaveBeenCalledTimes(1)
  expect(broken.broken).toBe(true)
})
