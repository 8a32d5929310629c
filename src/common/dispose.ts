/**
 * `using` and `await using` for every runtime: the global types for compilers whose library lacks
 * them, and the symbols.
 *
 * A runtime without the symbols gets registered ones, so that the methods exist and nothing throws.
 * No global is changed.
 */
declare global {
  interface SymbolConstructor {
    readonly dispose: unique symbol
    readonly asyncDispose: unique symbol
  }
  interface Disposable {
    [Symbol.dispose](): void
  }
  interface AsyncDisposable {
    [Symbol.asyncDispose](): PromiseLike<void>
  }
}

/** `Symbol.dispose`, or a replacement if the runtime has none. */
export const disposeSymbol: typeof Symbol.dispose =
  Symbol.dispose ?? (Symbol.for('Symbol.dispose') as typeof Symbol.dispose)

/** `Symbol.asyncDispose`, or a replacement if the runtime has none. */
export const asyncDisposeSymbol: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose)
