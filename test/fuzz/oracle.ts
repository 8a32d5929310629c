/**
 * What a fuzz target raises when something is wrong, and how it compares two stories that should be the same.
 *
 * Shared by all targets. It knows nothing of MQTT, and must never compare by printing: fields that differ are named by their path.
 */

/** A finding: `rule` names the promise that was broken, the message says how. */
export class OracleError extends Error {
  /** Short name of the promise: findings of one rule are one kind. */
  readonly rule: string

  constructor(rule: string, detail: string, cause?: unknown) {
    super(`${rule}: ${detail}`, { cause })
    this.rule = rule
  }
}

/** Raises a finding unless `holds`. */
export function check(holds: boolean, rule: string, detail: () => string): asserts holds {
  if (!holds) throw new OracleError(rule, detail())
}

/** Raises a finding unless both are the same. */
export function checkSame(found: unknown, expected: unknown, rule: string, what: string): void {
  check(found === expected, rule, () => `${what}: ${String(found)}, and not ${String(expected)}`)
}

/** Raises a finding unless it is as much at most. */
export function checkMost(found: number, most: number, rule: string, what: string): void {
  check(found <= most, rule, () => `${what}: ${found}, at most ${most} may be`)
}

/** Raises a finding where two plain values differ. */
export function checkAlike(first: unknown, second: unknown, rule: string, what: string): void {
  const found = difference(first, second)
  check(found === undefined, rule, () => `${what}: ${found}`)
}

/** Runs it; what is thrown, and is no finding, is one. */
export function guarded(rule: string, what: string, call: () => void): void {
  try {
    call()
  } catch (error) {
    throw error instanceof OracleError
      ? error
      : new OracleError(rule, `${what} ${shownError(error)}`, error)
  }
}

/** An error in one line, with the place that threw it. */
export function shownError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const places = (error.stack ?? '').split('\n').slice(1, 4)
  return `${error.name}: ${error.message} ${places.map((line) => line.trim()).join(' ')}`
}

/** The path of the first difference between two plain values, or undefined when they are equal. */
export function difference(first: unknown, second: unknown, path = 'it'): string | undefined {
  if (Object.is(first, second)) return undefined
  if (first instanceof Uint8Array && second instanceof Uint8Array) {
    return Buffer.compare(first, second) === 0 ? undefined : `${path}: other bytes`
  }
  if (
    typeof first !== 'object' ||
    typeof second !== 'object' ||
    first === null ||
    second === null
  ) {
    return `${path}: ${brief(first)} and ${brief(second)}`
  }
  if (Array.isArray(first) && Array.isArray(second)) {
    for (let index = 0; index < Math.max(first.length, second.length); index++) {
      const found = difference(first[index], second[index], `${path}[${index}]`)
      if (found !== undefined) return found
    }
    return undefined
  }
  const [one, other] = [first as Record<string, unknown>, second as Record<string, unknown>]
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const found = difference(one[name], other[name], `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

function brief(value: unknown): string {
  const text = typeof value === 'object' ? (JSON.stringify(value) ?? '') : String(value)
  return text.length > 120 ? `${text.slice(0, 120)}…` : text
}
