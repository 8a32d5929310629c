/** Large messages over a transport that reads in place: their payload is read to where it is to stay, among others and whoever gets it. */
import { describe, expect, it } from 'vitest'
import { WasmFrames } from '../../../src/wasm/frames.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import type { FrameScanner } from '../../../src/wire/frames.js'
import { instantiate } from '../wasm/scanner.js'
import { times } from './harness.js'
import { acks, bytesOf, pubacks, publish, subscribe, taken } from './incoming.js'
import { listen } from './steps.js'
import { windowed } from './windowed.js'

const big = (letter: string, size: number, id: number): PacketInput =>
  publish('a', letter.repeat(size), id, { properties: { contentType: `t${letter}` } })

function inWebAssembly(): FrameScanner {
  const memory = instantiate()
  return { window: memory.window, frames: (options) => new WasmFrames(memory, options) }
}

describe.each<[string, () => FrameScanner | false]>([
  ['without a scanner', () => false],
  ['with the scanner in WebAssembly', inWebAssembly],
])('%s', (_how, scanner) => {
  it.each(['owned', 'borrowed'] as const)('among small ones: %s', async (lifetime) => {
    const rig = await windowed({ receiveMaximum: 65_535, scanner: scanner() })
    const seen: string[] = []
    await listen(
      rig.world,
      'a',
      (message) =>
        void seen.push(
          `${message.payloadLength} ${message.text().slice(0, 3)} ${message.properties.contentType ?? '-'}`,
        ),
      { qos: 1, lifetime },
    )
    await rig.busy()
    const small = (text: string, id: number): PacketInput => publish('a', text, id)
    await rig.send(
      small('one', 1),
      big('b', 100_000, 2),
      small('two', 3),
      big('c', 300_000, 4),
      big('d', 20_000, 5),
      small('end', 6),
    )
    const lines = '3 one -,100000 bbb tb,3 two -,300000 ccc tc,20000 ddd td,3 end -'
    expect(seen.join()).toBe(lines)
    expect(acks(rig.world)).toEqual(pubacks(1, 6))
  })

  it('one behind the other, larger than a window: of all but the first, a sixteenth and a little is read before there is a place for it', async () => {
    const rig = await windowed({ scanner: scanner() })
    const subscription = await subscribe(rig.world, 'a', { buffer: 100 })
    await rig.busy()
    const link = rig.connections[0] as (typeof rig.connections)[number]
    const before = link.windows.length
    const whole = link.latest?.length ?? 0
    const size = 2 * whole
    await rig.send(
      ...times(3, () => publish('a', 'z'.repeat(size))),
      publish('a', 'end'),
      publish('a', 'more'),
    )
    const lengths = times(5, () => taken(subscription).payloadLength)
    expect(lengths).toEqual([size, size, size, 'end'.length, 'more'.length])
    const given = link.windows.slice(before).map(({ length }) => length)
    const peek = size / 16 + 512
    // The beginning of each in a window, the rest in its place.
    expect(given.filter((length) => length === peek)).toHaveLength(3)
    expect(given.filter((length) => length < whole && length !== peek)).toEqual([])
    expect(link.latest?.length).toBe(whole)
  })

  it('cut off in its midst: nothing of it is left, and the next connection reads on', async () => {
    const rig = await windowed({ reconnect: { backoff: () => 10 }, scanner: scanner() })
    const subscription = await subscribe(rig.world, 'a', { qos: 1 })
    await rig.world.sendBytes(bytesOf([publish('a', 'z'.repeat(200_000), 1)]).subarray(0, 100_000))
    rig.world.peer.cut()
    await rig.world.clock.advance(1000)
    await rig.send(publish('a', 'after', 7))
    expect([taken(subscription).text(), subscription.size]).toEqual(['after', 0])
  })
})
