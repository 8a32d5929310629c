/**
 * The list of mutants: one planted defect each, kept as data in the `.json` files of this folder, one file per area.
 *
 * Reads and checks, and runs nothing. It may assume nothing of the sources but that they can be read: they move on, and a mutant whose text is gone, or
 * occurs twice, is named here instead of being planted somewhere else.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** One defect. */
export interface Mutant {
  readonly id: string
  /** Source file, below the root of the repository. */
  readonly file: string
  /** Occurs exactly once in the file, and is replaced. */
  readonly find: string
  readonly replace: string
  /** What is wrong then. */
  readonly why: string
  /** Normative statements that it breaks, as in `test/conformance/statements.json`. */
  readonly statements: readonly string[]
  /** Acceptance rows that it breaks, where no statement says it. */
  readonly rows?: readonly string[]
  /** Test files that catch it, the fewest; the first that does is named in the table. */
  readonly tests: readonly string[]
  /** Full name of the one test that is to catch it, where what others say does not count. */
  readonly title?: string
  /** Name of the file in this folder, without its ending. */
  readonly area: string
}

/** A normative statement; `applies` names the side that it binds. */
export interface Statement {
  readonly id: string
  readonly applies: 'client' | 'server' | 'both'
}

/** The mutants of a list file, or of all list files in a folder, in the order of file names. */
export function readMutants(from: string): Mutant[] {
  const files = from.endsWith('.json') ? [from] : readdirSync(from).map((name) => path.join(from, name))
  return files
    .filter((name) => name.endsWith('.json'))
    .sort()
    .flatMap((file) => {
      const area = path.basename(file, '.json')
      return (JSON.parse(readFileSync(file, 'utf8')) as Omit<Mutant, 'area'>[]).map((mutant) => ({ ...mutant, area }))
    })
}

/** The statements of the standard. */
export function readStatements(root: string): Statement[] {
  return JSON.parse(readFileSync(path.join(root, 'test', 'conformance', 'statements.json'), 'utf8')) as Statement[]
}

/** The ids of the acceptance rows. */
function readRows(root: string): Set<string> {
  const sections = JSON.parse(readFileSync(path.join(root, 'test', 'conformance', 'rows.json'), 'utf8')) as { rows: object }[]
  return new Set(sections.flatMap(({ rows }) => Object.keys(rows)))
}

/** The source with the defect in it. @throws Error when its text does not occur exactly once */
export function planted({ id, file, find, replace }: Mutant, text: string): string {
  const times = text.split(find).length - 1
  if (times !== 1) throw new Error(`mutant '${id}': its text occurs ${times} times in ${file}`)
  return text.replace(find, () => replace)
}

/** Everything that is wrong with the list, one line each. */
export function objections(root: string, mutants: readonly Mutant[], statements: readonly Statement[]): string[] {
  const known = { statements: new Set(statements.map((statement) => statement.id)), rows: readRows(root) }
  const found = mutants.flatMap((mutant) => objectionsTo(root, mutant, known).map((text) => `mutant '${mutant.id}': ${text}`))
  const sameAs = (key: (mutant: Mutant) => string): string[] => {
    const first = new Map<string, string>()
    return mutants.flatMap((mutant) => {
      const other = first.get(key(mutant))
      if (other === undefined) first.set(key(mutant), mutant.id)
      return other === undefined ? [] : [`mutant '${mutant.id}' is '${other}' again`]
    })
  }
  return [...found, ...sameAs(({ id }) => id), ...sameAs(({ file, find, replace }) => JSON.stringify([file, find, replace]))]
}

function objectionsTo(root: string, mutant: Mutant, known: { statements: ReadonlySet<string>; rows: ReadonlySet<string> }): string[] {
  const { file, find, replace, why, statements, rows = [], tests, title } = mutant
  const found: string[] = []
  if (!file.startsWith('src/') || !existsSync(path.join(root, file))) found.push(`there is no ${file}`)
  else {
    const times = readFileSync(path.join(root, file), 'utf8').split(find).length - 1
    if (times !== 1) found.push(`its text occurs ${times} times in ${file}`)
  }
  if (find === replace) found.push('it changes nothing')
  if (why === '') found.push('it does not say what is wrong')
  if (statements.length + rows.length === 0 && title === undefined) found.push('it breaks neither a statement nor a row')
  if (tests.length === 0) found.push('no test catches it')
  for (const id of statements) if (!known.statements.has(id)) found.push(`there is no statement ${id}`)
  for (const id of rows) if (!known.rows.has(id)) found.push(`there is no row ${id}`)
  for (const name of tests) if (!existsSync(path.join(root, name))) found.push(`there is no ${name}`)
  return found
}
