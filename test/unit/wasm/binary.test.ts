/**
 * The committed binary is that of the source, and the same source gives the same bytes.
 */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { binary } from '../../../src/wasm/binary.js'

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
