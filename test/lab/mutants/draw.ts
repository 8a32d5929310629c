/** Which mutants there are: those that a seed draws from all of `src`, known by their line and their change. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { type Change, placesOf } from './sites.js'

/** One defect. */
export interface Mutant extends Change {
  readonly id: string
  /** Below the root of the repository, with `/`. */
  readonly file: string
  /** Counts from 1. */
  readonly line: number
  /** The line on which the change begins, without spaces around it. */
  readonly lineText: string
}

/** Path below the root, with `/`, to text. */
export type Sources = ReadonlyMap<string, string>

export const hashOf = (...texts: readonly string[]): string =>
  createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 12)

/** All of `src`, sorted by path. */
export function readSources(root: string): Sources {
  // The tests of the command line run it as it is packed, so no defect of its source reaches them.
  const names = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.startsWith('cli'),
  )
  const files = names.map((name) => `src/${name.split(path.sep).join('/')}`).sort()
  return new Map(files.map((file) => [file, readFileSync(path.join(root, file), 'utf8')]))
}

function lineAt(text: string, start: number): Pick<Mutant, 'line' | 'lineText'> {
  const from = text.lastIndexOf('\n', start - 1) + 1
  const to = text.indexOf('\n', start)
  return {
    line: text.slice(0, from).split('\n').length,
    lineText: text.slice(from, to < 0 ? undefined : to).trim(),
  }
}

/** The mutants of each site of a file. */
function sitesIn(file: string, text: string): Mutant[][] {
  const times = new Map<string, number>()
  return placesOf(file, text).sites.map((site) =>
    site.map((change) => {
      const at = lineAt(text, change.start)
      const same = hashOf(at.lineText, change.change)
      const nth = times.get(same) ?? 0
      times.set(same, nth + 1)
      return { ...change, ...at, id: `${file}#${same}${nth === 0 ? '' : `.${nth}`}`, file }
    }),
  )
}

/** So many mutants of these sources. A seed ranks all sites by their ids: a change of one line moves no other in or out. */
export function draw(sources: Sources, count: number, seed: number): Mutant[] {
  const sites = [...sources]
    .flatMap(([file, text]) => sitesIn(file, text))
    .map((site) => ({ site, rank: hashOf(`${seed}`, site[0]?.id ?? '') }))
  const ranked = sites.sort((one, other) => (one.rank < other.rank ? -1 : 1)).slice(0, count)
  return ranked.map(({ site, rank }) => site[Number.parseInt(rank, 16) % site.length] as Mutant)
}

/** Those with these ids, and the ids of which the text is gone. */
export function withIds(sources: Sources, ids: readonly string[]): Chosen {
  const files = new Set(ids.map((id) => id.split('#')[0] ?? ''))
  const drawable = [...files].flatMap((file) => sitesIn(file, sources.get(file) ?? '').flat())
  const known = new Map(drawable.map((mutant) => [mutant.id, mutant]))
  return {
    mutants: ids.flatMap((id) => known.get(id) ?? []),
    gone: ids.filter((id) => !known.has(id)),
  }
}

/** Mutants, and the ids of those whose text is gone. */
export interface Chosen {
  readonly mutants: readonly Mutant[]
  readonly gone: readonly string[]
}

/** A mutant that no test can notice, and why. `line` and `change` are for people. One whose text is gone explains nothing any more. */
export interface Explained {
  readonly id: string
  readonly line: string
  readonly change: string
  readonly reason: string
}

/** The source with the defect in it. */
export function planted(text: string, { start, end, replacement }: Change): string {
  return `${text.slice(0, start)}${replacement}${text.slice(end)}`
}
