/**
 * The async iterator over a source that says what is there and waits for what is not.
 *
 * It knows nothing of messages, and calls back its maker once when it is over.
 */

/** `over` is called with true when the loop was left, with false when there was nothing more or the source failed. */
export function iteration<T>(
  pull: () => Promise<T | undefined>,
  buffered: () => T | undefined,
  over: (left: boolean) => void,
): AsyncIterableIterator<T> {
  const told = (value: T | undefined): IteratorResult<T> => {
    if (value !== undefined) return { done: false, value }
    over(false)
    return { done: true, value: undefined }
  }
  const failed = (error: unknown): never => {
    over(false)
    throw error
  }
  return {
    next: () => {
      try {
        const value = buffered()
        return value === undefined
          ? pull().then(told, failed)
          : Promise.resolve<IteratorResult<T>>({ done: false, value })
      } catch (error) {
        over(false)
        return Promise.reject(error)
      }
    },
    return: async (value?: unknown) => {
      over(true)
      return { done: true, value }
    },
    throw: async (error: unknown) => {
      over(true)
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
  } as AsyncIterableIterator<T>
}

/** What an iterator gives, as a web stream that reads nothing ahead by itself; cancelling it leaves the iterator. */
export function streamOf<T>(messages: AsyncIterableIterator<T>): ReadableStream<T> {
  return new ReadableStream<T>(
    {
      pull: async (controller) => {
        const { value, done } = await messages.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: async () => {
        await messages.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
