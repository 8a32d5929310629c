/**
 * Errors without stack traces, for runs in which they are made by the hundred thousand and nobody looks where.
 */

/** Runs it. */
export async function quietly<T>(run: () => T | Promise<T>): Promise<T> {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return await run()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
