/**
 * Standard output is data and standard error is talk.
 */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { setImmediate as immediate } from 'node:timers/promises'
import { isatty } from 'node:tty'
import picocolors from 'picocolors'
import { Ending, misuse } from './ending.js'

/** Paints text, or leaves it as it is. */
export type Colours = ReturnType<typeof picocolors.createColors>

/** Colours for one stream: none without a terminal, and with `NO_COLOR`. */
export function coloursOf(stream: NodeJS.WriteStream): Colours {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env
  const wanted = FORCE_COLOR !== undefined && FORCE_COLOR !== '0'
  return picocolors.createColors(
    (NO_COLOR ?? '') === '' && (wanted || (stream.isTTY === true && TERM !== 'dumb')),
  )
}

/** Milliseconds of writing after which signals get their turn: a file is written at once. */
const turn = 50
let turned = 0

/** Writes data, and waits until it is written. @throws the reason of the signal */
export async function write(
  data: string | Uint8Array,
  stream: Writable = process.stdout,
  signal?: AbortSignal,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => reject(signal?.reason)
    signal?.addEventListener('abort', stop)
    stream.write(data, (error) => {
      signal?.removeEventListener('abort', stop)
      if (error) reject(error)
      else resolve()
    })
  })
  if (performance.now() - turned < turn) return
  await immediate()
  turned = performance.now()
  signal?.throwIfAborted()
}

let silent = false

/** Leaves out what `say` would print. */
export function beQuiet(): void {
  silent = true
}

/** Says something to the person. */
export function say(text: string): void {
  if (!silent) process.stderr.write(`${text}\n`)
}

/** Asks on the terminal. @throws Ending without one, and without an answer */
export async function ask(question: string, signal: AbortSignal, hidden = false): Promise<string> {
  if (!isatty(0))
    throw misuse(`'${question.trim()}' cannot be asked: standard input is no terminal`)
  const output = hidden
    ? new Writable({ write: (_chunk, _encoding, done) => done() })
    : process.stderr
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  const show = (): void => {
    // What the interface prints is dropped, the question as well.
    if (hidden) process.stderr.write(question)
    else lines.prompt()
  }
  // The terminal sends no signal while it reads key by key.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  lines.on('SIGCONT', () => {
    lines.resume()
    show()
  })
  try {
    const answer = lines.question(question, { signal })
    if (hidden) show()
    return await answer
  } catch {
    throw new Ending('interrupted', 'nothing was answered')
  } finally {
    lines.close()
    process.stderr.write(hidden ? '\n' : '')
  }
}

/** A line that is written over, on a terminal only. */
export class ProgressLine {
  #shown = 0
  #last = 0

  /** Shows a text, at most ten times a second. */
  show(text: () => string): void {
    const now = performance.now()
    if (silent || process.stderr.isTTY !== true || now - this.#last < 100) return
    this.#last = now
    const line = text().slice(0, Math.max(20, (process.stderr.columns ?? 80) - 1))
    process.stderr.write(`\r${line.padEnd(this.#shown)}`)
    this.#shown = line.length
  }

  /** Removes the line. */
  clear(): void {
    if (this.#shown > 0) process.stderr.write(`\r${' '.repeat(this.#shown)}\r`)
    this.#shown = 0
  }
}
