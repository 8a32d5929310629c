/** What calls and packets cost: counted work, the tests of the benches, and ratios to the peers that must not have fallen (`bench`). */
import { type Lab, type Result, together } from './lab.js'

export const about =
  'four times the number at no more than six times the cost, by counted work; the benches once, with an alarm for ratios that fell: `work`, `benches`'
export const minutes = 2

async function alarm(lab: Lab): Promise<Result> {
  const { code, output } = await lab.node(['bench/alarm.js'])
  const rows = output.split('\n').filter((line) => line.includes('committed'))
  const what =
    code === 0
      ? []
      : [
          `a ratio to a peer fell under 60 % of what is committed, or the run broke:\n${rows.join('\n')}`,
        ]
  return {
    did: `${rows.length} ratios to peers`,
    findings: what.map((each) => ({ what: each, command: 'node bench/alarm.js' })),
  }
}

export async function run(lab: Lab): Promise<Result> {
  const has = (word: string): boolean => lab.words.length === 0 || lab.words.includes(word)
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
  if (has('benches')) results.push(await lab.vitest(['test/lab/bench/']), await alarm(lab))
  return together(...results)
}
