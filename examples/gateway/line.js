/** A line of sensors: what each of them reads, and when. */

const measuring = ['oven', 'press', 'cooler', 'belt', 'mixer', 'dryer']
const counting = ['packer-1', 'packer-2']
const names = [...measuring, ...counting]

const round = (number) => Math.round(number * 10) / 10

/** What a sensor reads for the nth time: a counter says how many pieces came since the last reading. */
function readingOf(sensor, number) {
  if (counting.includes(sensor)) return { pieces: 1 + (number % 5) }
  return { celsius: round(60 + measuring.indexOf(sensor) * 20 + 5 * Math.sin(number / 30)) }
}

/** Sensors that read in turn, so many readings a second together. Each numbers its readings from 1. */
export class Line {
  #rate
  #made = 0

  constructor(rate) {
    this.#rate = rate
  }

  /** What they have read since the last call; `elapsed` are milliseconds since the line was started, `time` goes into the readings. */
  *readings(elapsed, time) {
    for (const due = (elapsed * this.#rate) / 1000; this.#made < due; this.#made += 1) {
      const sensor = names[this.#made % names.length]
      const number = Math.floor(this.#made / names.length) + 1
      yield { sensor, number, time, ...readingOf(sensor, number) }
    }
  }
}
