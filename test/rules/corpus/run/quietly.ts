/** Runs it without stack traces of errors, which some runs make by the hundred thousand. */
export async function quietly<T>(run: () => T | Promise<T>): Promise<T> {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return await run()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
