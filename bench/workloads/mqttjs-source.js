/**
 * `source.js` for MQTT.js: a stream in memory that grants every subscription and then delivers prepared chunks, each in a task of its own.
 * Runs in browsers as well, with a stand-in for Node's streams.
 */
import { Duplex } from 'node:stream'
import { lengthOf } from '../peers/stream.js'
import { inNextTask } from './source.js'

/** The stream, to be given by the stream builder of an `MqttClient`. */
export class StreamSource extends Duplex {
  #wanted

  _read() {
    const wanted = this.#wanted
    this.#wanted = undefined
    wanted?.()
  }

  #held = Buffer.alloc(0)

  // A packet may come in pieces.
  _write(piece, _, done) {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, piece]) : piece
    let at = 0
    for (;;) {
      const { body, length } = lengthOf(bytes, at + 1)
      if (body === 0 || bytes.length - body < length) break
      this.#answer(bytes[at] >> 4, bytes[body], bytes[body + 1])
      at = body + length
    }
    this.#held = bytes.subarray(at)
    done()
  }

  #answer(type, high, low) {
    const answers = {
      1: [0x20, 3, 0, 0, 0],
      8: [0x90, 4, high, low, 0, 0],
      10: [0xb0, 4, high, low, 0, 0],
      12: [0xd0, 0],
    }
    if (answers[type] !== undefined) inNextTask(() => this.push(Buffer.from(answers[type])))
  }

  /** Delivers chunks in turn until `passes` times all of them were delivered; settles then. */
  stream(chunks, passes = 1) {
    const buffers = chunks.map((chunk) => Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length))
    let [index, pass] = [0, 0]
    let done
    const delivered = new Promise((resolve) => {
      done = resolve
    })
    const step = () => {
      if (this.destroyed || pass === passes) return done()
      const goesOn = this.push(buffers[index])
      index++
      if (index === buffers.length) {
        index = 0
        pass++
      }
      // The next one when it is asked for, as from a socket.
      if (goesOn) inNextTask(step)
      else this.#wanted = () => inNextTask(step)
    }
    inNextTask(step)
    return delivered
  }
}
