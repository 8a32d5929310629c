/** What calls and packets cost: counted work, the tests of the benches, and their rows beside the commit before (`bench`). */
import { type Lab, type Result, together } from './lab.js'

export const about =
  'four times the number at no more than six times the cost, by counted work; the benches once; what rows of the benches cost beside the commit before, or beside `against=COMMIT`: `work`, `benches`, `alarm`'
export const minutes = 5

/** Processor time of the steadiest rows, beside an earlier commit. */
async function alarm(lab: Lab, against: readonly string[]): Promise<Result> {
  const given = against.flatMap((ref) => ['--against', ref])
  const { code, output } = await lab.node(['bench/alarm.js', ...given])
  const lines = output.split('\n')
  const rows = lines.filter((line) => line.includes(' → '))
  const dearer = rows.filter((line) => line.endsWith('costs more'))
  const skipped = lines.filter((line) => line.includes('skipped: ')).join('; ')
  const command = ['node bench/alarm.js', ...given].join(' ')
  const broke = code !== 0 && dearer.length === 0 ? ['bench/alarm.js broke'] : []
  return {
    did: `${rows.length} rows beside an earlier commit`,
    findings: [
      ...dearer.map((line) => ({
        what: line,
        command: `${command} --only '${line.slice(0, line.indexOf('  ')).trim()}'`,
      })),
      ...broke.map((what) => ({ what, command })),
    ],
    ...(skipped !== '' && { skipped }),
  }
}

export async function run(lab: Lab): Promise<Result> {
  const isReference = (word: string): boolean => word.startsWith('against=')
  const against = lab.words.filter(isReference).map((word) => word.slice('against='.length))
  const words = lab.words.filter((word) => !isReference(word))
  const has = (word: string): boolean => words.length === 0 || words.includes(word)
  const results: Result[] = []
  if (has('work'))
    results.push(
      await lab.vitest([
        'test/unit/client/cost',
        'test/unit/client/subscription-cost',
        'test/unit/queue/cost',
        'test/unit/typed/latest-cost',
      ]),
    )
  if (has('benches')) results.push(await lab.vitest(['test/lab/bench/']))
  if (has('alarm')) results.push(await alarm(lab, against))
  return together(...results)
}
