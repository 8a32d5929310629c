/**
 * Streams that others open: checked, waited for, and destroyed when they are not wanted any more.
 *
 * It may assume nothing of what it is given. It must never read or write.
 */

import { MqttError } from '../errors.js'

/** The part of a Node `Duplex` that is used here. */
export interface DuplexStream {
  /** Listens to `data`, `drain`, `end`, `finish`, `error` and `close`. */
  on(event: string, listener: (...given: unknown[]) => void): DuplexStream
  /** Listens no more. */
  off(event: string, listener: (...given: unknown[]) => void): DuplexStream
  /** Takes bytes; false asks to wait for `drain`. */
  write(bytes: Uint8Array, written?: (error?: Error | null) => void): boolean
  /** Ends the writing side, after what was written. */
  end(): unknown
  /** Holds `data` back. */
  pause(): unknown
  /** Lets `data` come. */
  resume(): unknown
  /** Ends both sides at once. */
  destroy(error?: Error): unknown
  /** True once it was destroyed. */
  readonly destroyed?: boolean | undefined
  /** False when nothing can be read any more. */
  readonly readable?: boolean | undefined
  /** False when nothing can be written any more. */
  readonly writable?: boolean | undefined
  /** True once all of it was written, after `end()`. */
  readonly writableFinished?: boolean | undefined
  /** True when it gives objects. */
  readonly readableObjectMode?: boolean | undefined
  /** True when it takes objects. */
  readonly writableObjectMode?: boolean | undefined
  /** Set when it gives text. */
  readonly readableEncoding?: string | null | undefined
  /** True while it is a socket that is not up yet. */
  readonly connecting?: boolean | undefined
}

/**
 * Waits for a stream, and until it is connected where it is a socket. Rejects with the signal's reason when aborted, with the stream's error, or with
 * what `open` threw; a stream that is there by then, or comes later, is destroyed.
 */
export function openStream(
  open: () => Promise<DuplexStream>,
  signal: AbortSignal,
): Promise<DuplexStream> {
  if (signal.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    open()
      .then(async (stream) => {
        if (signal.aborted) return discard(stream)
        await connected(checkStream(stream), signal)
        resolve(stream)
      })
      .catch(reject)
      .finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Destroys whatever came, without an error that escapes. */
export function discard(stream: unknown): void {
  const { on, destroy } = Object(stream) as Partial<DuplexStream>
  try {
    if (typeof on === 'function') on.call(stream, 'error', () => undefined)
    if (typeof destroy === 'function') destroy.call(stream)
  } catch {
    // It cannot be destroyed.
  }
}

const methods = ['on', 'off', 'write', 'end', 'pause', 'resume', 'destroy'] as const

/** Gives the stream, if it is one of bytes, and open. @throws MqttError ERR_INVALID_OPTION; what was given is destroyed then */
export function checkStream(given: DuplexStream): DuplexStream {
  const wrong = objection(given)
  if (wrong === undefined) return given
  discard(given)
  throw new MqttError('ERR_INVALID_OPTION', `stream must be ${wrong}`, { option: 'stream' })
}

function objection(given: DuplexStream): string | undefined {
  const stream = Object(given) as DuplexStream
  if (methods.some((name) => typeof stream[name] !== 'function'))
    return 'a Duplex, or a function that opens one'
  if (stream.readableObjectMode || stream.writableObjectMode)
    return 'a Duplex of bytes, not of objects'
  if (typeof stream.readableEncoding === 'string')
    return 'a Duplex of bytes, not of text: no setEncoding()'
  if (stream.destroyed || stream.readable === false || stream.writable === false) return 'open'
  return undefined
}

// A socket that is given while it connects fails by an error, or closes.
function connected(stream: DuplexStream, signal: AbortSignal): Promise<void> {
  if (stream.connecting !== true) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const settle = () => {
      signal.removeEventListener('abort', abort)
      stream.off('connect', up).off('error', fail).off('close', fail)
    }
    const up = () => {
      settle()
      resolve()
    }
    const fail = (error: unknown) => {
      settle()
      discard(stream)
      reject(
        error instanceof Error ? error : new Error('The stream closed before it was connected'),
      )
    }
    const abort = () => fail(signal.reason)
    signal.addEventListener('abort', abort)
    stream.on('connect', up).on('error', fail).on('close', fail)
  })
}
