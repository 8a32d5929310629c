/** Rejections that nobody handled: what a program dies of by default. */
import { afterAll, beforeAll, expect } from 'vitest'

/** What nobody handled while this ran, and for a moment after it. */
export async function unhandledIn(run: () => unknown): Promise<unknown[]> {
  const seen: unknown[] = []
  const note = (reason: unknown): void => void seen.push(reason)
  process.on('unhandledRejection', note)
  try {
    await run()
    // They are told of after the microtasks of their turn.
    await new Promise((resolve) => setTimeout(resolve, 20))
  } finally {
    process.off('unhandledRejection', note)
  }
  return seen
}

/** What nobody handled so far in the tests of this file. At its end there must be none. */
export function unhandledInFile(): readonly unknown[] {
  const seen: unknown[] = []
  const note = (reason: unknown): void => void seen.push(reason)
  beforeAll(() => void process.on('unhandledRejection', note))
  afterAll(async () => {
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(seen).toEqual([])
  })
  return seen
}
