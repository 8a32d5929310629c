/** Text in memory that the platform's TextDecoder refuses, as those of browsers do with memory that is shared or can grow. */
import { afterEach, expect, it, vi } from 'vitest'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.resetModules()
})

it('is read all the same', async () => {
  const Platform = TextDecoder
  vi.stubGlobal(
    'TextDecoder',
    class {
      readonly #decoder = new Platform('utf-8', { ignoreBOM: true })
      decode(bytes: Uint8Array): string {
        if (bytes.buffer instanceof SharedArrayBuffer)
          throw new TypeError('The provided ArrayBufferView value must not be shared.')
        return this.#decoder.decode(bytes)
      }
    },
  )
  vi.resetModules()
  const { decode, encode } = await import('../../../src/wire/index.js')
  const topic = 'ä'.repeat(100)
  const bytes = encode({ type: 'publish', topic, payload: new Uint8Array(3) })
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length))
  shared.set(bytes)
  expect(decode(shared, { from: 'client' })).toMatchObject({ topic })
})
