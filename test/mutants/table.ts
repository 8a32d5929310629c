/**
 * The committed table of mutants, `MUTANTS.md`: made from the list and from what a run caught, and taken apart again.
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
    'Written by `npm run mutants -- --write` from the lists of this folder; not to be edited by hand. Each mutant is one planted defect; the tests named',
    'with it pass without it, and fail with it.',
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

/** The last column of a table, by id. */
export function readCaught(table: string): Map<string, string> {
  const caught = new Map<string, string>()
  for (const line of table.split('\n')) {
    const [, id, last] = /^\| ([\w-]+) \| `src\/[^`]+` \|(?:.*) \| ((?:`test\/|\*\*).*) \|$/.exec(line) ?? []
    if (id !== undefined && last !== undefined && last !== '**nothing**') caught.set(id, last)
  }
  return caught
}
