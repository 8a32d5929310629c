/** The count: what the line read, what the gateway took, what arrived at the other end, and how often. */

const count = (number) => number.toLocaleString('en')

const unsaid =
  'More was delivered than taken: when the plug was pulled, some was on the disk, and the gateway had not said so yet.'

/** Readings of one QoS. */
class Share {
  taken = new Set()
  delivered = new Map()

  get lost() {
    return [...this.taken].filter((name) => !this.delivered.has(name)).length
  }

  get twice() {
    return [...this.delivered.values()].filter((times) => times > 1).length
  }
}

/** All of them. */
export class Tally {
  /** Measurements and pieces, which travel at QoS 1 and 2. */
  measured = new Share()
  counted = new Share()
  /** Readings of the line, taken or not. */
  read = 0
  givenUp = 0

  handleRead() {
    this.read += 1
  }

  handleTaken([sensor, number]) {
    this.#shareOf(sensor).taken.add(`${sensor} ${number}`)
  }

  handleDelivered({ sensor, number }) {
    const { delivered } = this.#shareOf(sensor)
    const name = `${sensor} ${number}`
    delivered.set(name, (delivered.get(name) ?? 0) + 1)
  }

  handleGivenUp() {
    this.givenUp += 1
  }

  /** Readings that were taken and have not arrived. */
  get lost() {
    return this.measured.lost + this.counted.lost
  }

  get isFlawless() {
    return (
      this.measured.taken.size > 0 &&
      this.counted.taken.size > 0 &&
      this.lost === 0 &&
      this.counted.twice === 0 &&
      this.givenUp === 0
    )
  }

  #shareOf(sensor) {
    return sensor.startsWith('packer') ? this.counted : this.measured
  }
}

/** The count as a table, with the verdict. */
export function report(tally) {
  const { measured, counted, read, givenUp, isFlawless } = tally
  const taken = measured.taken.size + counted.taken.size
  const delivered = measured.delivered.size + counted.delivered.size
  const row = (name, value) =>
    `${name.padEnd(12)}${[measured, counted].map((share) => count(value(share)).padStart(22)).join('')}`
  return [
    `${' '.repeat(12)}${'measurements (QoS 1)'.padStart(22)}${'pieces (QoS 2)'.padStart(22)}`,
    row('taken', ({ taken }) => taken.size),
    row('delivered', ({ delivered }) => delivered.size),
    row('lost', ({ lost }) => lost),
    row('twice', ({ twice }) => twice),
    '',
    ...(measured.twice > 0
      ? [
          'QoS 1 may bring a message twice: an acknowledgement was lost with the process or the connection.',
        ]
      : []),
    `The line read ${count(read)} times. ${count(read - taken)} were not taken: the gateway was off, or the plug was pulled before they were on its disk.`,
    ...(givenUp > 0 ? [`The gateway gave up ${count(givenUp)}.`] : []),
    ...(delivered > taken ? [unsaid] : []),
    isFlawless
      ? 'Nothing that was taken is lost, and no piece was counted twice.'
      : 'FAILED: see above.',
  ].join('\n')
}
