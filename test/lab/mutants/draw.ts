/** Which mutants there are: those of the lists in this folder, and those that a seed draws from all of `src`, known by their line and their change. */
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
  /** Of a listed one: the test files that judge it before all others, and the full name of the only test that counts. */
  readonly tests?: readonly string[]
  readonly title?: string
}

/** One entry of a list: `find` is replaced where it occurs once. */
interface Listed {
  readonly id: string
  readonly file: string
  readonly find: string
  readonly replace: string
  readonly why: string
  readonly tests: readonly string[]
  readonly title?: string
}

/** Path below the root, with `/`, to text. */
export type Sources = ReadonlyMap<string, string>

export const hashOf = (...texts: readonly string[]): string =>
  createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 12)

/** All of `src`, sorted by path. */
export function readSources(root: string): Sources {
  const names = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts'),
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

/** Those with these ids, of the lists or drawn, and the ids of which the text is gone. */
export function withIds(sources: Sources, root: string, ids: readonly string[]): Chosen {
  const listed = readListed(sources, root)
  const files = new Set(ids.map((id) => id.split('#')[0] ?? ''))
  const drawable = [...files].flatMap((file) => sitesIn(file, sources.get(file) ?? '').flat())
  const known = new Map([...listed.mutants, ...drawable].map((mutant) => [mutant.id, mutant]))
  return {
    mutants: ids.flatMap((id) => known.get(id) ?? []),
    gone: ids.filter((id) => !known.has(id)),
  }
}

/** Mutants, and the ids of those whose text is gone, or occurs more than once. */
export interface Chosen {
  readonly mutants: readonly Mutant[]
  readonly gone: readonly string[]
}

/** All that are listed in this folder. */
export function readListed(sources: Sources, root: string): Chosen {
  const folder = path.join(root, 'test', 'lab', 'mutants', 'hand')
  const lists = readdirSync(folder).sort()
  const listed = lists.flatMap(
    (name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as Listed[],
  )
  const mutants = listed.flatMap(({ id, file, find, replace, why, tests, title }): Mutant[] => {
    const text = sources.get(file) ?? ''
    const start = text.indexOf(find)
    if (start < 0 || start !== text.lastIndexOf(find)) return []
    const change = {
      start,
      end: start + find.length,
      replacement: replace,
      change: why,
      ...lineAt(text, start),
    }
    return [{ ...change, id, file, tests, ...(title !== undefined && { title }) }]
  })
  const known = new Set(mutants.map(({ id }) => id))
  return { mutants, gone: listed.filter(({ id }) => !known.has(id)).map(({ id }) => id) }
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
