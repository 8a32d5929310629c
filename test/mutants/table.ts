/**
 * The table of mutants, made from the lists and from what a run caught; and what a run caught, as it is kept in `results/caught.json`.
 *
 * Pure text, the same for the same list and run: no times, no machine, no order of finishing.
 */
import type { Mutant, Statement } from './list.js'

const header = '| id | file | what is wrong then | breaks | caught by |'

/** A cell: one line, without a bar of its own. */
function cell(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/\|/g, '\\|')
}

/** What stands in the last column. */
export function caughtBy({ file, title, late }: { readonly file: string; readonly title: string; readonly late: boolean }): string {
  return cell(`\`${file}\` › ${title}${late ? ' (it hangs: the test ran out of time)' : ''}`)
}

function row({ id, file, why, statements, rows = [] }: Mutant, caught: string): string {
  return `| ${id} | \`${file}\` | ${cell(why)} | ${[...statements, ...rows].join(', ')} | ${caught} |`
}

function areaLines(area: string, mutants: readonly Mutant[], caught: ReadonlyMap<string, string>): string[] {
  const mine = mutants.filter((mutant) => mutant.area === area)
  return [
    '',
    `## ${area}`,
    '',
    header,
    '| --- | --- | --- | --- | --- |',
    ...mine.map((mutant) => row(mutant, caught.get(mutant.id) ?? '**nothing**')),
  ]
}

function statementLines(statements: readonly Statement[], mutants: readonly Mutant[]): string[] {
  const binding = statements.filter(({ applies }) => applies !== 'server')
  return binding.map(({ id, applies }) => {
    const breakers = mutants.filter((mutant) => mutant.statements.includes(id)).map((mutant) => mutant.id)
    return `| ${id} | ${applies} | ${breakers.join(', ') || '**none**'} |`
  })
}

/** Statements that bind a client and that no mutant breaks. */
export function unbroken(statements: readonly Statement[], mutants: readonly Mutant[]): string[] {
  const broken = new Set(mutants.flatMap((mutant) => mutant.statements))
  return statements.filter(({ id, applies }) => applies !== 'server' && !broken.has(id)).map(({ id }) => id)
}

/** The whole table; `caught` holds the last column by id. */
export function markdown(mutants: readonly Mutant[], statements: readonly Statement[], caught: ReadonlyMap<string, string>): string {
  const areas = [...new Set(mutants.map((mutant) => mutant.area))]
  const binding = statements.filter(({ applies }) => applies !== 'server').length
  return [
    '# Mutants and the tests that catch them',
    '',
    'Written by `npm run mutants -- --table` from the lists of test/mutants and the last whole run. Each mutant is one planted defect; the tests named with it',
    'pass without it, and fail with it.',
    '',
    `${mutants.length} mutants, ${caught.size} caught. They break ${binding - unbroken(statements, mutants).length} of the ${binding} statements that bind a client.`,
    ...areas.flatMap((area) => areaLines(area, mutants, caught)),
    '',
    '## Statements that bind a client, and the mutants that break them',
    '',
    '| statement | binds | mutants |',
    '| --- | --- | --- |',
    ...statementLines(statements, mutants),
    '',
  ].join('\n')
}

/** What a run caught, by id, as text to keep: one line each, in the order of their names. */
export function writeCaught(caught: ReadonlyMap<string, string>): string {
  const sorted = [...caught].sort(([one], [other]) => (one < other ? -1 : 1))
  return `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`
}

/** What was kept of a run, by id. */
export function readCaught(text: string): Map<string, string> {
  return new Map(Object.entries(JSON.parse(text) as Record<string, string>))
}

/** Mutants of which it is not kept what caught them, or a test that is none of theirs; and what is kept of mutants that there are not. */
export function staleCaught(mutants: readonly Mutant[], caught: ReadonlyMap<string, string>): string[] {
  const known = new Set(mutants.map(({ id }) => id))
  const wrong = mutants.filter(({ id, tests }) => !tests.includes(/^`([^`]+)`/.exec(caught.get(id) ?? '')?.[1] ?? ''))
  return [...wrong.map(({ id }) => id), ...[...caught.keys()].filter((id) => !known.has(id))].sort()
}
