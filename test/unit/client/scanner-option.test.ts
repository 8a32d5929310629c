/** The option `scanner`: nothing waits for a scanner, and one that does not come is no failure. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { Platform } from '../../../src/client/platform/platform.js'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { encode } from '../../../src/wire/encode.js'
import type { FrameOptions, FrameScanner } from '../../../src/wire/frames.js'
import { always, instantiate } from '../wasm/scanner.js'
import { failure } from './harness.js'
import { publish, read, series, subscribe } from './incoming.js'
import { Rig } from './rig.js'
import { windowed } from './windowed.js'

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

/** Reads over a connection with the option; gives the texts of 20 messages. */
async function texts(options: ClientOptions): Promise<readonly string[]> {
  const { world, send } = await windowed(options)
  const reading = read(await subscribe(world, 'a', { qos: 1 }))
  await send(...series('a', 20))
  return reading.texts
}

const twenty = Array.from({ length: 20 }, (_, index) => String(index + 1))

describe('the option scanner', () => {
  it('a scanner reads from the first message on, into its own window', async () => {
    const scanner = counting()
    const { world, links, send } = await windowed({ scanner })
    const reading = read(await subscribe(world, 'a', { qos: 1 }))
    await send(...series('a', 20))
    expect(reading.texts).toEqual(twenty)
    expect(scanner.made).toMatchObject([{ protocolVersion: 5 }])
    expect(scanner.pushes).toBeGreaterThanOrEqual(1)
    expect(links[0]?.windows).toEqual([scanner.window.bytes])
  })

  it.each([
    ['false', false],
    ['a promise that never settles', new Promise(() => undefined)],
    ['a promise of nothing', Promise.resolve(undefined)],
    ['a promise of nonsense', Promise.resolve({ window: 1 })],
    ['a promise of null', Promise.resolve(null)],
  ])('%s: reads without', async (_name, scanner) => {
    expect(await texts({ scanner: scanner as never })).toEqual(twenty)
  })

  it('a promise that rejects, or a thenable that throws: reads without, and nothing is unhandled', async () => {
    expect(await texts({ scanner: failure(Promise.resolve()).then(() => Promise.reject(new Error('no'))) as never })).toEqual(twenty)
    const thrower = Object.defineProperty({}, 'then', {
      value: () => {
        throw new Error('no')
      },
    })
    expect(await texts({ scanner: thrower as never })).toEqual(twenty)
  })

  it.each([1, 'yes', true, {}, null, { frames: 1 }])('%j is refused', (scanner) => {
    expect(() => new Rig({ scanner: scanner as never })).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'scanner' }))
  })

  it('one that comes late takes over where a packet ends, never in the midst of one', async () => {
    const scanner = counting()
    let give: (value: FrameScanner) => void = () => undefined
    const { world } = await windowed({
      scanner: new Promise<FrameScanner>((resolve) => {
        give = resolve
      }),
    })
    const reading = read(await subscribe(world, 'a', { qos: 1 }))
    const packet = encode(publish('a', 'in two reads', 1))
    await world.sendBytes(packet.subarray(0, 7))
    give(scanner)
    await world.settle()
    expect(scanner.made.length).toBe(0)
    await world.sendBytes(packet.subarray(7, 9))
    await world.sendBytes(packet.subarray(9))
    expect([reading.texts, scanner.made.length]).toEqual([['in two reads'], 0])
    await world.sendBytes(encode(publish('a', 'the next', 2)))
    expect([reading.texts, scanner.pushes]).toEqual([['in two reads', 'the next'], 1])
  })

  it('the next connection begins with it', async () => {
    const scanner = counting()
    const rig = await new Rig({ scanner: Promise.resolve(scanner) }).up()
    rig.peer.sendBytes([...encode(publish('a', 'before', 1))])
    await rig.settle()
    expect(scanner.made.length).toBe(1)
    await rig.cut()
    await rig.advance(5000)
    expect(scanner.made.length).toBe(1)
    rig.peer.sendBytes([...encode(publish('a', 'after', 1))])
    await rig.settle()
    expect([rig.client.state, scanner.made.length]).toEqual(['connected', 2])
    await rig.finish()
  })

  it('one that comes after the end changes nothing', async () => {
    const scanner = counting()
    let give: (value: FrameScanner) => void = () => undefined
    const { world } = await windowed({
      scanner: new Promise<FrameScanner>((resolve) => {
        give = resolve
      }),
    })
    world.client.destroy()
    give(scanner)
    await world.settle()
    expect(scanner.made.length).toBe(0)
  })

  it('without the option the platform is asked, once, and not with false', async () => {
    for (const [options, expected] of [
      [{}, 1],
      [{ scanner: false }, 0],
    ] as const) {
      let asked = 0
      const platform: Partial<Platform> = {
        loadScanner: async () => {
          asked += 1
          return undefined
        },
      }
      const rig = await new Rig(options, { platform }).up()
      await rig.cut()
      await rig.advance(5000)
      expect([rig.client.state, asked]).toEqual(['connected', expected])
      await rig.finish()
    }
  })

  it('a platform whose scanner cannot be loaded reads without', async () => {
    const rig = await new Rig({}, { platform: { loadScanner: () => Promise.reject(new Error('no')) } }).up()
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })
})
