/**
 * The coverage-guided search: inputs that reach something new are kept, and new inputs are made from those.
 *
 * What is reached is counted in buckets, as is usual: that a way was taken once is another thing than that it was taken a hundred times. The same
 * seed gives the same search. It must never keep an input that adds nothing.
 */
import { Random } from '../world/random.js'
import { join } from './build.js'
import { crossed, longest, mutate, mutationKinds } from './mutate.js'
import { OracleError, shownError } from './oracle.js'
import type { Target } from './targets.js'

interface Kept {
  readonly bytes: Uint8Array
  picks: number
}

const mostKept = 4000
const mostFindings = 12
const mostShrinking = 400
const mostTrimming = 24

/** Counts 1, 2, 3, 4-7, 8-15, 16-31, 32-127 and more have a bit each. */
function bucket(count: number): number {
  if (count < 4) return 1 << (count - 1)
  const edges = [8, 16, 32, 128]
  const at = edges.findIndex((edge) => count < edge)
  return 8 << (at < 0 ? edges.length : at)
}

/** Findings of one kind differ in numbers only. */
export function kindOf(error: OracleError): string {
  return error.message
    .replace(/file:\S+/g, '')
    .replace(/\d+/g, '#')
    .slice(0, 160)
}

/** One search over one target. */
export class Search {
  inputs = 0
  readonly kept: Kept[] = []
  /** What is wrong, each with the smallest input found for it. */
  readonly findings: {
    readonly rule: string
    readonly detail: string
    readonly bytes: Uint8Array
  }[] = []
  readonly #known = new Set<string>()
  readonly #target: Target
  readonly #random: Random
  readonly #seen: Uint8Array
  readonly #before: (bytes: Uint8Array) => void

  /** @param before called with each input before it runs */
  constructor(target: Target, seed: number, before: (bytes: Uint8Array) => void = () => undefined) {
    this.#target = target
    this.#random = new Random(seed)
    this.#seen = new Uint8Array(target.counters().length)
    this.#before = before
  }

  /** Ways that were taken at least once. */
  get edges(): number {
    return this.#seen.filter((bits) => bits > 0).length
  }

  /** Tries inputs that are given, for example the corpus. */
  start(seeds: readonly Uint8Array[]): void {
    for (const bytes of seeds) this.#consider(bytes, false)
    if (this.kept.length === 0)
      this.kept.push({ bytes: new Uint8Array(this.#target.header), picks: 0 })
  }

  /** Makes an input and tries it. */
  step(): void {
    this.#consider(this.#make(), true)
  }

  #consider(bytes: Uint8Array, trims: boolean): void {
    const error = this.#run(bytes)
    if (error !== undefined) return this.#report(bytes, error)
    if (!this.#merge()) return
    const small = trims ? this.#trim(bytes) : bytes
    const place = this.kept.length < mostKept ? this.kept.length : this.#random.below(mostKept)
    this.kept[place] = { bytes: small, picks: 0 }
  }

  // Counters afterwards hold this input alone.
  #run(bytes: Uint8Array): OracleError | undefined {
    this.inputs += 1
    this.#target.counters().fill(0)
    this.#before(bytes)
    try {
      this.#target.run(bytes.slice())
      return undefined
    } catch (error) {
      return error instanceof OracleError
        ? error
        : new OracleError('throw', shownError(error), error)
    }
  }

  // True when there is something new, which is taken note of.
  #merge(): boolean {
    let found = false
    const hits = this.#target.counters()
    for (let index = 0; index < hits.length; index++) {
      const count = hits[index] as number
      if (count === 0) continue
      const before = this.#seen[index] as number
      this.#seen[index] = before | bucket(count)
      found ||= this.#seen[index] !== before
    }
    return found
  }

  // Shorter, with the same buckets as far as they matter: those that were new are known by now, so that exactly they are compared.
  #trim(bytes: Uint8Array): Uint8Array {
    const hits = this.#target.counters()
    const wanted = signature(hits)
    let small = bytes
    let tries = mostTrimming
    for (let size = small.length >> 1; size > 0 && tries > 0; size >>= 1) {
      for (let at = this.#target.header; at + size <= small.length && tries > 0; at += size) {
        const shorter = without(small, at, size)
        tries -= 1
        if (this.#run(shorter) === undefined && signature(hits) === wanted) small = shorter
      }
    }
    return small
  }

  #make(): Uint8Array {
    const random = this.#random
    const parent = this.#pick()
    let bytes = random.chance(0.15)
      ? crossed(parent, this.#pick(), random.below(longest), random.below(longest))
      : parent
    for (let count = 1 << random.below(5); count > 0; count--) {
      const change = {
        kind: random.pick(mutationKinds),
        at: random.below(longest),
        value: random.below(65_536),
        size: random.below(256),
      }
      bytes = mutate(bytes, this.#target.header, change)
    }
    return bytes
  }

  // Young ones and those that were picked least.
  #pick(): Uint8Array {
    const { kept } = this
    const recent = this.#random.chance(0.4) ? Math.max(0, kept.length - 40) : 0
    const [best] = [0, 1, 2]
      .map(() => kept[recent + this.#random.below(kept.length - recent)] as Kept)
      .sort((first, second) => first.picks - second.picks) as [Kept]
    best.picks += 1
    return best.bytes
  }

  #report(bytes: Uint8Array, error: OracleError): void {
    const kind = kindOf(error)
    if (this.#known.has(kind)) return
    this.#known.add(kind)
    if (this.findings.length >= mostFindings) return
    const small = shrink(bytes, (candidate) => {
      const other = this.#run(candidate)
      return other !== undefined && kindOf(other) === kind
    })
    const last = this.#run(small) ?? error
    this.findings.push({ rule: last.rule, detail: last.message, bytes: small })
  }
}

/** What an input reaches, in buckets, as a number that others hardly share. */
function signature(hits: Uint32Array): number {
  let hash = 0
  for (let index = 0; index < hits.length; index++) {
    const count = hits[index] as number
    if (count > 0) hash = (Math.imul(hash ^ index, 0x01000193) + bucket(count)) | 0
  }
  return hash
}

const without = (bytes: Uint8Array, at: number, size: number): Uint8Array =>
  join(bytes.subarray(0, at), bytes.subarray(at + size))

/** A smaller input for which `fails` still holds: parts left out, then bytes made 0. */
export function shrink(bytes: Uint8Array, fails: (bytes: Uint8Array) => boolean): Uint8Array {
  let small = bytes
  let tries = mostShrinking
  for (let size = small.length >> 1 || 1; tries > 0; size >>= 1) {
    for (let at = small.length - size; at >= 0 && tries > 0; at -= size) {
      const shorter = without(small, at, size)
      tries -= 1
      if (fails(shorter)) small = shorter
    }
    if (size <= 1) break
  }
  for (let at = 0; at < small.length && tries > 0; at++) {
    if (small[at] === 0) continue
    const plain = small.with(at, 0)
    tries -= 1
    if (fails(plain)) small = plain
  }
  return small
}

/** Few of these inputs that enter every way that all of them enter together, and `known` do not. Those that are longest are kept first, as they stand for most. */
export function minimised(
  target: Target,
  inputs: readonly Uint8Array[],
  known: readonly Uint8Array[],
): Uint8Array[] {
  const hits = target.counters()
  const entered = new Uint8Array(hits.length)
  const adds = (bytes: Uint8Array): boolean => {
    hits.fill(0)
    if (broken(target, bytes)) return false
    let found = false
    for (let index = 0; index < hits.length; index++) {
      if (hits[index] === 0 || entered[index] === 1) continue
      entered[index] = 1
      found = true
    }
    return found
  }
  for (const bytes of known) adds(bytes)
  return [...inputs].sort((first, second) => second.length - first.length).filter(adds)
}

/** A finding, which is no part of a corpus. */
function broken(target: Target, bytes: Uint8Array): boolean {
  try {
    target.run(bytes.slice())
    return false
  } catch {
    return true
  }
}
