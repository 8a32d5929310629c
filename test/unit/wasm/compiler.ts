/** The compiler of the scanner, as the build uses it. */

interface Compiler {
  /** The AssemblyScript source. */
  readSource(): string
  /** WebAssembly of a source, for tries with less care. Rejects with what does not compile. */
  compile(source: string, isTry?: boolean): Promise<Uint8Array<ArrayBuffer>>
  /** The text of src/wasm/binary.ts for a source, and bytes of the WebAssembly in it. */
  moduleOf(source: string): Promise<{ readonly text: string; readonly size: number }>
}

export const { readSource, compile, moduleOf } = (await import(
  new URL('../../../.ci/wasm.mjs', import.meta.url).href
)) as Compiler
