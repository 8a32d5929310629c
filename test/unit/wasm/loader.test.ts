/**
 * `mqwire/wasm`: one scanner for a thread where there can be one, undefined where there cannot, and never an error.
 */
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { FrameScanner } from '../../../src/wire/frames.js'
import { differs, tellFramer } from './scanner.js'
import { tell } from './story.js'

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
