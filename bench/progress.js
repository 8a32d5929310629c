/**
 * How far a long run is, and the time left: one line that is rewritten where standard error is a terminal, else a line every 30 seconds.
 *
 * It writes to standard error only, and keeps no process alive. On a terminal it makes way for whatever else is printed. It must never be the reason
 * that a run fails, so it takes any figures; the time left is a guess by the time gone.
 */

const every = 30_000
const redraw = 250

/** `40 s`, `12 min`, `3.5 h`. */
export function duration(milliseconds) {
  const seconds = milliseconds / 1000
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`
}

/** One run. */
export class Progress {
  #name
  #unit
  #stream
  #clock
  #started
  #timer
  #state
  #drawn = false
  #restore

  /** `name` begins each line, `unit` is what is counted. */
  constructor(
    name,
    unit,
    {
      stream = process.stderr,
      clock = () => performance.now(),
      interval = stream.isTTY ? redraw : every,
    } = {},
  ) {
    this.#name = name
    this.#unit = unit
    this.#stream = stream
    this.#clock = clock
    this.#started = clock()
    this.#timer = setInterval(() => this.#tell(), interval)
    this.#timer.unref()
    if (stream.isTTY && process.stdout.isTTY) this.#makeWay(process.stdout)
  }

  /** So much is done of so much, which may be undefined while nobody knows; `left` are milliseconds, where the caller knows better. */
  at(done, total, { left, note = '' } = {}) {
    this.#state = { done, total, left, note }
  }

  /** The text of the line now; undefined as long as nothing is known. */
  get line() {
    if (this.#state === undefined) return undefined
    const { done, total, left = this.#guess(), note } = this.#state
    const of = total === undefined ? '' : ` of ${total.toLocaleString('en')}`
    const rest = left === undefined ? '' : `, about ${duration(left)} left`
    return `${this.#name}: ${done.toLocaleString('en')}${of} ${this.#unit}${note && `, ${note}`}, ${duration(this.#clock() - this.#started)} gone${rest}`
  }

  end() {
    clearInterval(this.#timer)
    this.#clear()
    this.#restore?.()
    this.#restore = undefined
  }

  #guess() {
    const { done, total } = this.#state
    if (total === undefined || done <= 0) return undefined
    return ((this.#clock() - this.#started) * Math.max(0, total - done)) / done
  }

  #tell() {
    const { line } = this
    if (line === undefined) return
    if (!this.#stream.isTTY) return void this.#stream.write(`${line}\n`)
    this.#stream.write(`\r\x1b[K${line.slice(0, (this.#stream.columns || 80) - 1)}`)
    this.#drawn = true
  }

  #clear() {
    if (this.#drawn) this.#stream.write('\r\x1b[K')
    this.#drawn = false
  }

  // Results appear on the same screen: they begin where the line was.
  #makeWay(output) {
    const { write } = output
    output.write = (...given) => {
      this.#clear()
      return write.apply(output, given)
    }
    this.#restore = () => {
      output.write = write
    }
  }
}
