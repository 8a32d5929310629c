/**
 * Web streams that publish their chunks. Backpressure comes from the publisher: a write waits until
 * the publisher is writable.
 */
import type { Message, Payload, Publisher, PublishOptions } from '../client/options/index.js'
import { deferred } from '../common/abort.js'

/**
 * Creates a stream that publishes its chunks in order: payloads, or messages, which are
 * acknowledged once their publish is. Closing it waits for every acknowledgement. A failed publish
 * makes the stream fail with its error, so that `readable().pipeTo(writableStream(…))` rejects with
 * it and leaves the subscription. Aborting it waits for nothing.
 * @param topic the Topic Name, or a function that returns it for each chunk
 */
export function writableStream<Chunk = Payload | Message>(
  publisher: Publisher<unknown>,
  topic: string | ((chunk: Chunk) => string),
  options?: PublishOptions,
  payloadOf: (chunk: Chunk) => Payload | Promise<Payload> = (chunk) =>
    (messageIn(chunk)?.payload ?? chunk) as Payload,
): WritableStream<Chunk> {
  const open = new Set<Promise<unknown>>()
  return new WritableStream<Chunk>({
    async write(chunk, controller) {
      const aborted = deferred<never>()
      const abort = (): void => aborted.reject(controller.signal.reason)
      controller.signal.addEventListener('abort', abort)
      try {
        const payload = await Promise.race([payloadOf(chunk), aborted.promise])
        await Promise.race([publisher.writable, aborted.promise])
        const sent = publisher.publish(
          typeof topic === 'function' ? topic(chunk) : topic,
          payload,
          options,
        )
        open.add(sent)
        sent.then(
          () => {
            open.delete(sent)
            messageIn(chunk)?.ack()
          },
          (error: unknown) => controller.error(error),
        )
      } finally {
        controller.signal.removeEventListener('abort', abort)
      }
    },
    async close() {
      await Promise.all(open)
    },
  })
}

function messageIn(chunk: unknown): Message | undefined {
  const { ack, payload } = Object(chunk) as Partial<Message>
  return typeof ack === 'function' && payload !== undefined ? (chunk as Message) : undefined
}
