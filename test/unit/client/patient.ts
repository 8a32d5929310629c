/** A stream in memory that can be paused, as sockets can. */
import type { Transport } from '../../../src/transport/transport.js'

export function patient(transport: Transport): Transport {
  const waiting: (() => void)[] = []
  let paused = false
  const later = (call: () => void): void => {
    if (paused) waiting.push(call)
    else call()
  }
  return {
    open(sink) {
      const bytes = new Uint8Array(65_536)
      const take = (part: Uint8Array): void => later(() => sink.chunk(part))
      transport.open({
        buffer: () => bytes,
        read: (length) => take(bytes.slice(0, length)),
        chunk: (part) => take(part.slice()),
        drain: () => sink.drain(),
        closed: (cause) => later(() => sink.closed(cause)),
      })
    },
    write: (bytes, written) => transport.write(bytes, written),
    close: () => transport.close(),
    destroy: (cause) => transport.destroy(cause),
    pause: () => {
      paused = true
    },
    resume: () => {
      paused = false
      while (!paused && waiting.length > 0) waiting.shift()?.()
    },
  }
}
