/**
 * Web streams that publish what is written to them. Backpressure is that of the publisher: a write ends when the next one would not have to wait.
 */
import type { Payload, Publisher, PublishOptions } from '../client/api/index.js'

/**
 * A stream whose chunks are published to a topic, in order. Closing it waits for every acknowledgement; a publish that fails makes the stream fail with
 * its error, so that `readable().pipeTo(writableStream(…))` rejects with it and leaves the subscription.
 */
export function writableStream<Chunk = Payload>(
  publisher: Publisher<unknown>,
  topic: string,
  options?: PublishOptions,
  payloadOf: (chunk: Chunk) => Payload | Promise<Payload> = (chunk) => chunk as Payload,
): WritableStream<Chunk> {
  const open = new Set<Promise<unknown>>()
  return new WritableStream<Chunk>({
    async write(chunk, controller) {
      const payload = await payloadOf(chunk)
      await publisher.writable
      const sent = publisher.publish(topic, payload, options)
      open.add(sent)
      sent.then(
        () => open.delete(sent),
        (error: unknown) => controller.error(error),
      )
    },
    async close() {
      await Promise.all(open)
    },
  })
}
