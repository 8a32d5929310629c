/**
 * What the doctor finds: a line for each check.
 */

/** How a check came out. */
export type Verdict = 'ok' | 'differs' | 'not offered' | 'failed' | 'note'

/** One line. */
export interface Finding {
  /** What was looked at: a layer, or a feature. */
  readonly check: string
  readonly verdict: Verdict
  /** What was seen. */
  readonly seen: string
  /** What it means for a client, or what to do about it. */
  readonly meaning?: string | undefined
}

/** Collects findings; a line may be shown as soon as it is known. */
export class Findings {
  readonly all: Finding[] = []
  readonly #show: (finding: Finding) => void

  constructor(show: (finding: Finding) => void) {
    this.#show = show
  }

  add(check: string, verdict: Verdict, seen: string, meaning?: string): void {
    const finding = { check, verdict, seen, ...(meaning !== undefined && { meaning }) }
    this.all.push(finding)
    this.#show(finding)
  }

  /** True when the broker refused a connection, for which it must have answered. */
  isRefused = false

  /** True when something is wrong. */
  get isBad(): boolean {
    return this.all.some(({ verdict }) => verdict === 'differs' || verdict === 'failed')
  }
}
