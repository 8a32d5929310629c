/**
 * Draws mutants from a seed: the same seed gives the same ones while the sources stay the same.
 *
 * Each file gets a share by its number of sites. It must never read a clock, and nothing of the repository but `src`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { Random } from '../../world/random.js'
import { type Change, type Site, sitesOf } from './sites.js'

/** One defect, drawn at random. */
export interface RandomMutant extends Change {
  /** Counts from 0, in the order of files and lines. */
  readonly number: number
  /** Below the root of the repository, with `/`. */
  readonly file: string
  /** Counts from 1. */
  readonly line: number
  /** The line on which it begins, without spaces around it. */
  readonly lineText: string
  /** What changes, on one line. */
  readonly change: string
}

/** Path below the root, with `/`, to text. */
export type Sources = ReadonlyMap<string, string>

/** All of `src`, sorted by path. */
export function readSources(root: string): Sources {
  const names = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const files = names.map((name) => `src/${name.split(path.sep).join('/')}`).sort()
  return new Map(files.map((file) => [file, readFileSync(path.join(root, file), 'utf8')]))
}

const oneLine = (text: string): string => text.trim().replace(/\s+/g, ' ')

function described(text: string, { form, start, end, replacement }: Change): string {
  const original = oneLine(text.slice(start, end))
  if (form === 'entry') return '+ return'
  return form === 'statement' ? `- ${original}` : `${original} → ${oneLine(replacement)}`
}

/** How many of `count` each file gets: by its sites, the largest rests first. */
function shares(sites: ReadonlyMap<string, readonly Site[]>, count: number): Map<string, number> {
  const all = [...sites.values()].reduce((sum, each) => sum + each.length, 0)
  if (count > all) throw new Error(`there are only ${all} places for mutants`)
  const exact = [...sites].map(([file, each]) => ({ file, share: (count * each.length) / all }))
  const given = new Map(exact.map(({ file, share }) => [file, Math.floor(share)]))
  const left = count - [...given.values()].reduce((sum, each) => sum + each, 0)
  // Sorting is stable: of equal rests the first file by name.
  const byRest = exact.toSorted((one, other) => (other.share % 1) - (one.share % 1))
  for (const { file, share } of byRest.slice(0, left)) given.set(file, Math.floor(share) + 1)
  return given
}

/** So many mutants of these sources, sorted by file and place. */
export function draw(sources: Sources, count: number, seed: number): RandomMutant[] {
  const random = new Random(seed)
  const sites = new Map([...sources].map(([file, text]) => [file, sitesOf(file, text)]))
  const drawn = [...shares(sites, count)].map(([file, share]): [string, Change[]] => {
    const left = [...(sites.get(file) ?? [])]
    const chosen = Array.from({ length: share }, () => {
      const [site = []] = left.splice(random.below(left.length), 1)
      return site[random.below(site.length)] as Change
    })
    return [file, chosen]
  })
  return numbered(sources, drawn)
}

/** Those with these changes, the first of each in its file. @throws Error when there is none */
export function named(sources: Sources, names: readonly { readonly file: string; readonly change: string }[]): RandomMutant[] {
  const chosen = names.map(({ file, change }): [string, Change[]] => {
    const text = sources.get(file) ?? ''
    const found = sitesOf(file, text)
      .flat()
      .find((each) => described(text, each) === change)
    if (found === undefined) throw new Error(`${file} has no place for '${change}'`)
    return [file, [found]]
  })
  return numbered(sources, chosen)
}

function numbered(sources: Sources, drawn: readonly (readonly [string, readonly Change[]])[]): RandomMutant[] {
  const all = drawn.flatMap(([file, changes]) => {
    const text = sources.get(file) ?? ''
    const lines = text.split('\n')
    return changes
      .toSorted((one, other) => one.start - other.start || other.end - one.end)
      .map((change) => {
        const line = text.slice(0, change.start).split('\n').length
        return { ...change, file, line, lineText: lines[line - 1]?.trim() ?? '', change: described(text, change) }
      })
  })
  return all.map((mutant, number) => ({ ...mutant, number }))
}

/** The source with this mutant alone in it. */
export function mutated(text: string, { start, end, replacement }: Change): string {
  return `${text.slice(0, start)}${replacement}${text.slice(end)}`
}

/** The source with all of these in it, each behind a switch: `mutantIs(number)` says whether it is on. */
export function switched(text: string, mutants: readonly RandomMutant[]): string {
  // Of two at the same place the statement is around the expression.
  const rank = ({ form }: RandomMutant): number => (form === 'statement' ? 0 : 1)
  const sorted = mutants.toSorted((one, other) => one.start - other.start || other.end - one.end || rank(one) - rank(other))
  return render(text, 0, text.length, sorted)
}

function render(text: string, from: number, to: number, mutants: readonly RandomMutant[]): string {
  let made = ''
  let at = from
  for (let index = 0; index < mutants.length; ) {
    const mutant = mutants[index] as RandomMutant
    const { start, end } = mutant
    let after = index + 1
    while (mutant.form !== 'entry' && after < mutants.length && (mutants[after] as RandomMutant).end <= end) after++
    made += text.slice(at, start) + planted(mutant, render(text, start, end, mutants.slice(index + 1, after)))
    at = end
    index = after
  }
  return made + text.slice(at, to)
}

function planted({ number, form, replacement, opens }: RandomMutant, original: string): string {
  if (form === 'entry') return ` if (mutantIs(${number})) return;`
  if (form === 'statement') return `{ if (!mutantIs(${number})) { ${original} } }`
  return `${opens ? 'void ' : ''}(mutantIs(${number}) ? (${replacement}) : (${original}))`
}
