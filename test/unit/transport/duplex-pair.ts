/** Two ends of a stream in memory, as a Duplex each: bytes, backpressure, ends and cuts go across, a turn later. */
import { Duplex } from 'node:stream'

/** One end. What it is written becomes what the other one reads, as soon as that one wants more. */
class Side extends Duplex {
  other: Side | undefined
  /** Lets a write of the other side go on. */
  #more: (() => void) | undefined

  override _read(): void {
    const more = this.#more
    this.#more = undefined
    more?.()
  }

  override _write(
    bytes: Buffer,
    _encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    setImmediate(() => {
      const { other } = this
      if (!other || other.destroyed) done(new Error('The other side is gone'))
      else if (other.push(bytes)) done()
      else other.#more = done
    })
  }

  override _final(done: () => void): void {
    this.other?.push(null)
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { other } = this
    if (other) {
      const more = other.#more
      other.#more = undefined
      more?.()
      // A cut, not an end: the other side has nothing more to come.
      if (!other.destroyed && !this.readableEnded) other.destroy()
    }
    done(error)
  }
}

export function duplexPair(highWaterMark = 16 * 1024): [Duplex, Duplex] {
  const [one, two] = [new Side({ highWaterMark }), new Side({ highWaterMark })]
  one.other = two
  two.other = one
  return [one, two]
}
