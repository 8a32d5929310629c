/**
 * The progress of a queue as a bar in the terminal: `for await (const status of queue.status()) bar.show(status)`.
 *
 * The bar is that of the package cli-progress. It only writes: it never reads the keyboard, and leaves Ctrl-C to the program.
 */
import { MultiBar } from 'cli-progress'

const count = (number) => number.toLocaleString('en')

/** Milliseconds as people say them. */
function duration(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1000)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** A status of a queue in one line. */
export function textOf({ pending, inFlight, rate, timeLeft }) {
  const left = pending > 0 && timeLeft !== undefined ? `, ${duration(timeLeft)} left` : ''
  return `${count(pending)} pending, ${count(inFlight)} in flight, ${count(Math.round(rate))}/s${left}`
}

/** A bar, with lines above it. Where the stream is no terminal there are the lines alone. */
export class ProgressBar {
  #stream
  #bars
  #bar

  constructor(stream) {
    this.#stream = stream
    if (!stream.isTTY) return
    const format = ' {bar} {percentage}% delivered, {text}'
    this.#bars = new MultiBar({
      stream,
      format,
      barsize: 24,
      barCompleteChar: '█',
      barIncompleteChar: '░',
      hideCursor: true,
      gracefulExit: false,
    })
  }

  /** Shows a status of a queue. */
  show(status) {
    if (this.#bars === undefined) return
    const { delivered, pending } = status
    this.#bar ??= this.#bars.create(1, 0, { text: '' })
    // Both are 0 before anything was taken.
    this.#bar.setTotal(Math.max(1, delivered + pending))
    this.#bar.update(delivered, { text: textOf(status) })
  }

  /** Prints a line above the bar. */
  print(line) {
    if (this.#bar === undefined) this.#stream.write(`${line}\n`)
    else this.#bars.log(`${line}\n`)
  }

  /** The bar stays as it is; what is printed next comes below. */
  end() {
    this.#bars?.stop()
    this.#bar = undefined
  }
}
