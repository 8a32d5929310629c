/**
 * Streams opened by other code: checked, awaited, and destroyed when no longer wanted. Never reads
 * or writes.
 */

import { MqttError } from '../errors.js'

/** The part of a Node `Duplex` that is used. */
export interface DuplexStream {
  /** Adds a listener for `data`, `drain`, `end`, `finish`, `error` or `close`. */
  on(event: string, listener: (...given: unknown[]) => void): DuplexStream
  /** Removes a listener. */
  off(event: string, listener: (...given: unknown[]) => void): DuplexStream
  /** Writes bytes; false asks to wait for `drain`. */
  write(bytes: Uint8Array, written?: (error?: Error | null) => void): boolean
  /** Ends the writing side after what was written. */
  end(): unknown
  /** Stops `data` events. */
  pause(): unknown
  /** Resumes `data` events. */
  resume(): unknown
  /** Ends both directions immediately. */
  destroy(error?: Error): unknown
  /** True once it was destroyed. */
  readonly destroyed?: boolean | undefined
  /** False when nothing can be read any more. */
  readonly readable?: boolean | undefined
  /** False when nothing can be written any more. */
  readonly writable?: boolean | undefined
  /** True once everything was written, after `end()`. */
  readonly writableFinished?: boolean | undefined
  /** True when it reads objects. */
  readonly readableObjectMode?: boolean | undefined
  /** True when it writes objects. */
  readonly writableObjectMode?: boolean | undefined
  /** Set when it reads text. */
  readonly readableEncoding?: string | null | undefined
  /** True while a socket is still connecting. */
  readonly connecting?: boolean | undefined
}

/**
 * Waits for a stream and, if it is a socket, until it is connected. Rejects with the signal's
 * reason, with the stream's error, or with what `open` threw; a stream that exists by then, or
 * comes later, is destroyed.
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

/** Destroys anything that was returned, without letting an error escape. */
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

/**
 * Returns the stream if it is open and of bytes. @throws MqttError ERR_INVALID_OPTION; the stream
 * is then destroyed
 */
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

// Waits until a connecting socket is connected or fails.
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
