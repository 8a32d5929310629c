/**
 * A server in memory, as a transport of mqwire: it grants every subscription and then delivers prepared chunks, each in a task of its own.
 *
 * Runs in browsers as well. For measurements only: it answers CONNECT, SUBSCRIBE, UNSUBSCRIBE and PINGREQ, and swallows the rest.
 */
import { Decoder, encode } from 'mqwire/wire'

/** Runs `callback` in the next task, without the patience that timers of zero milliseconds need in browsers. */
export function inNextTask(callback) {
  if (typeof setImmediate === 'function') {
    setImmediate(callback)
    return
  }
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = () => {
    port1.close()
    callback()
  }
  port2.postMessage(undefined)
}

/** The transport, to be given as `transport: () => source` of an endpoint. */
export class Source {
  #sink
  #decoder = new Decoder({ from: 'client' })
  #paused = false
  #waiting

  open(sink) {
    this.#sink = sink
  }

  write(bytes, written) {
    for (const packet of this.#decoder.push(bytes.slice())) this.#answer(packet)
    if (written !== undefined) queueMicrotask(() => written())
    return true
  }

  close() {
    this.destroy()
  }

  destroy(cause) {
    const sink = this.#sink
    this.#sink = undefined
    if (sink !== undefined) queueMicrotask(() => sink.closed(cause))
  }

  pause() {
    this.#paused = true
  }

  resume() {
    this.#paused = false
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) inNextTask(waiting)
  }

  /** Delivers chunks in turn until `passes` times all of them were delivered; settles then. */
  stream(chunks, passes = 1) {
    let [index, pass] = [0, 0]
    let done
    const delivered = new Promise((resolve) => {
      done = resolve
    })
    const step = () => {
      if (this.#sink === undefined || pass === passes) return done()
      if (this.#paused) {
        this.#waiting = step
        return
      }
      this.#deliver(chunks[index])
      index++
      if (index === chunks.length) {
        index = 0
        pass++
      }
      inNextTask(step)
    }
    inNextTask(step)
    return delivered
  }

  // As a socket does: into the buffer that the client wants it in.
  #deliver(chunk) {
    for (let at = 0; at < chunk.length && this.#sink !== undefined; ) {
      const buffer = this.#sink.buffer()
      const length = Math.min(buffer.length, chunk.length - at)
      buffer.set(at === 0 && length === chunk.length ? chunk : chunk.subarray(at, at + length))
      this.#sink.read(length)
      at += length
    }
  }

  #answer(packet) {
    const { packetId } = packet
    if (packet.type === 'connect') {
      const properties = { subscriptionIdentifierAvailable: 0, topicAliasMaximum: 0 }
      this.#reply({ type: 'connack', sessionPresent: false, reasonCode: 0, properties })
    } else if (packet.type === 'subscribe') {
      this.#reply({
        type: 'suback',
        packetId,
        properties: {},
        reasonCodes: packet.subscriptions.map(({ qos }) => qos),
      })
    } else if (packet.type === 'unsubscribe') {
      this.#reply({
        type: 'unsuback',
        packetId,
        properties: {},
        reasonCodes: packet.filters.map(() => 0),
      })
    } else if (packet.type === 'pingreq') this.#reply({ type: 'pingresp' })
  }

  #reply(packet) {
    const bytes = encode(packet)
    inNextTask(() => this.#deliver(bytes))
  }
}
