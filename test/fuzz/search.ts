/**
 * The coverage-guided search: inputs that reach something new are kept, and new inputs are made from those.
 *
 * What is reached is counted in buckets, as is usual: that a way was taken once is another thing than that it was taken a hundred times. The same
 * seed gives the same search. It must never keep an input that adds nothing.
 */
import { Random } from '../world/random.js'
import { crossed, longest, type Mutation, mutate, mutationKinds } from './mutate.js'
import { OracleError, shownError } from './oracle.js'
import type { Target } from './targets.js'

/** Something wrong, with the smallest input found for it. */
export interface Finding {
  readonly target: string
  readonly rule: string
  readonly detail: string
  readonly bytes: Uint8Array
}

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
  if (count < 8) return 8
  if (count < 16) return 16
  if (count < 32) return 32
  return count < 128 ? 64 : 128
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
  readonly findings: Finding[] = []
  readonly #known = new Set<string>()
  readonly #target: Target
  readonly #random: Random
  readonly #seen: Uint8Array
  /** Told of each input before it runs. */
  readonly #before: (bytes: Uint8Array) => void

  constructor(target: Target, seed: number, before: (bytes: Uint8Array) => void = () => undefined) {
    this.#target = target
    this.#random = new Random(seed)
    this.#seen = new Uint8Array(target.counters().length)
    this.#before = before
  }

  /** Ways that were taken at least once. */
  get edges(): number {
    return this.#seen.reduce((sum, bits) => sum + (bits === 0 ? 0 : 1), 0)
  }

  /** Tries inputs that are given, for example the corpus. */
  async start(seeds: readonly Uint8Array[]): Promise<void> {
    for (const bytes of seeds) await this.#consider(bytes, false)
    if (this.kept.length === 0) this.kept.push({ bytes: new Uint8Array(this.#target.header), picks: 0 })
  }

  /** Makes an input and tries it. */
  async step(): Promise<void> {
    await this.#consider(this.#make(), true)
  }

  async #consider(bytes: Uint8Array, trims: boolean): Promise<void> {
    const error = await this.#run(bytes)
    if (error !== undefined) return this.#report(bytes, error)
    if (!this.#merge(true)) return
    const small = trims ? await this.#trim(bytes) : bytes
    if (this.kept.length < mostKept) this.kept.push({ bytes: small, picks: 0 })
    else this.kept[this.#random.below(mostKept)] = { bytes: small, picks: 0 }
  }

  // Counters afterwards hold this input alone.
  async #run(bytes: Uint8Array): Promise<OracleError | undefined> {
    this.inputs += 1
    this.#target.counters().fill(0)
    this.#before(bytes)
    try {
      const running = this.#target.run(bytes.slice())
      if (running !== undefined) await running
      return undefined
    } catch (error) {
      return error instanceof OracleError ? error : new OracleError('throw', shownError(error), error)
    }
  }

  // True when there is something new; it is taken note of where `keep`.
  #merge(keep: boolean): boolean {
    const hits = this.#target.counters()
    const seen = this.#seen
    let found = false
    for (let index = 0; index < hits.length; index++) {
      const count = hits[index] as number
      if (count === 0) continue
      const bit = bucket(count)
      if (((seen[index] as number) & bit) !== 0) continue
      found = true
      if (!keep) return true
      seen[index] = (seen[index] as number) | bit
    }
    return found
  }

  // Shorter, with the same buckets as far as they matter: those that were new are known by now, so that exactly they are compared.
  async #trim(bytes: Uint8Array): Promise<Uint8Array> {
    const hits = this.#target.counters()
    const wanted = signature(hits)
    let small = bytes
    let tries = mostTrimming
    for (let size = small.length >> 1; size > 0 && tries > 0; size >>= 1) {
      for (let at = this.#target.header; at + size <= small.length && tries > 0; at += size) {
        const shorter = joined(small.subarray(0, at), small.subarray(at + size))
        tries -= 1
        if ((await this.#run(shorter)) === undefined && signature(hits) === wanted) small = shorter
      }
    }
    return small
  }

  #make(): Uint8Array {
    const random = this.#random
    const parent = this.#pick()
    let bytes = random.chance(0.15) ? crossed(parent, this.#pick(), random.below(longest), random.below(longest)) : parent
    for (let count = 1 << random.below(5); count > 0; count--) bytes = mutate(bytes, this.#target.header, this.#mutation())
    return bytes
  }

  // Young ones and those that were picked least.
  #pick(): Uint8Array {
    const { kept } = this
    const random = this.#random
    const recent = random.chance(0.4) ? Math.max(0, kept.length - 40) : 0
    let best = kept[recent + random.below(kept.length - recent)] as Kept
    for (let tries = 0; tries < 2; tries++) {
      const other = kept[recent + random.below(kept.length - recent)] as Kept
      if (other.picks < best.picks) best = other
    }
    best.picks += 1
    return best.bytes
  }

  #mutation(): Mutation {
    const random = this.#random
    return { kind: random.pick(mutationKinds), at: random.below(longest), value: random.below(65_536), size: random.below(256) }
  }

  async #report(bytes: Uint8Array, error: OracleError): Promise<void> {
    const kind = kindOf(error)
    if (this.#known.has(kind)) return
    this.#known.add(kind)
    if (this.findings.length >= mostFindings) return
    const small = await shrink(bytes, async (candidate) => {
      const other = await this.#run(candidate)
      return other !== undefined && kindOf(other) === kind
    })
    const last = (await this.#run(small)) ?? error
    this.findings.push({ target: this.#target.name, rule: last.rule, detail: last.message, bytes: small })
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

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const all = new Uint8Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

/** A smaller input for which `fails` still holds: parts left out, then bytes made 0. */
export async function shrink(bytes: Uint8Array, fails: (bytes: Uint8Array) => Promise<boolean>): Promise<Uint8Array> {
  let small = bytes
  let tries = mostShrinking
  for (let size = small.length >> 1 || 1; tries > 0; size >>= 1) {
    for (let at = small.length - size; at >= 0 && tries > 0; at -= size) {
      const shorter = joined(small.subarray(0, at), small.subarray(at + size))
      tries -= 1
      if (await fails(shorter)) small = shorter
    }
    if (size <= 1) break
  }
  for (let at = 0; at < small.length && tries > 0; at++) {
    if (small[at] === 0) continue
    const plain = small.slice()
    plain[at] = 0
    tries -= 1
    if (await fails(plain)) small = plain
  }
  return small
}

/** The fewest of these inputs that reach all that they reach together, short ones first. */
export async function minimised(target: Target, inputs: readonly Uint8Array[]): Promise<Uint8Array[]> {
  const search = new Search(target, 1)
  const ordered = [...inputs].sort((first, second) => first.length - second.length)
  await search.start(ordered)
  return search.kept.map(({ bytes }) => bytes)
}
