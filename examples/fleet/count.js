/** The count: which jobs were published, by whom each was done, and what the killed one had in hand. */

const figure = (number) => number.toLocaleString('en')

/** All jobs. */
export class Count {
  #hand
  #published = new Set()
  /** By job: the workers that did it. */
  #doers = new Map()
  #killed = new Map()

  /** @param hand jobs that a worker may have in its hands */
  constructor(hand) {
    this.#hand = hand
  }

  handlePublished(job) {
    this.#published.add(job)
  }

  handleDone(job, worker) {
    this.#doers.set(job, [...(this.#doers.get(job) ?? []), worker])
  }

  /** What it began last may have been in its hands: done, perhaps, and not acknowledged. */
  handleKilled(worker, began) {
    this.#killed.set(worker, new Set(began.slice(-this.#hand)))
  }

  /** Jobs that were published and not done. */
  get open() {
    return [...this.#published].filter((job) => !this.#doers.has(job)).length
  }

  get published() {
    return this.#published.size
  }

  /** Jobs done twice, and those of them that no kill explains. */
  get twice() {
    const jobs = [...this.#doers].filter(([, workers]) => workers.length > 1)
    const unexplained = jobs.filter(
      ([job]) => ![...this.#killed.values()].some((inHand) => inHand.has(job)),
    )
    return { all: jobs.length, unexplained: unexplained.length }
  }

  /** By worker: how many it did. */
  get shares() {
    const shares = new Map()
    for (const workers of this.#doers.values())
      for (const worker of workers) shares.set(worker, (shares.get(worker) ?? 0) + 1)
    return [...shares].sort(([one], [other]) => one.localeCompare(other))
  }

  get isFlawless() {
    return this.published > 0 && this.open === 0 && this.twice.unexplained === 0
  }
}

/** The count as text, with the verdict. */
export function report(count) {
  const { published, open, twice, shares, isFlawless } = count
  return [
    '',
    ...shares.map(([worker, number]) => `${worker.padEnd(12)}${figure(number).padStart(8)}`),
    '',
    `${'published'.padEnd(12)}${figure(published).padStart(8)}`,
    `${'lost'.padEnd(12)}${figure(open).padStart(8)}`,
    `${'done twice'.padEnd(12)}${figure(twice.all).padStart(8)}${twice.all > 0 ? `  ${figure(twice.all - twice.unexplained)} of them were in the hands of the one that was killed` : ''}`,
    '',
    isFlawless
      ? 'Each job was done at least once, and twice only what the killed worker had in hand.'
      : 'FAILED: see above.',
  ].join('\n')
}
