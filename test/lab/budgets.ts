/** What a hostile broker can make a client hold, and how late it makes it: each attack in a process of its own (`test/lab/budgets`). */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { lineOf, pageOf, Runner } from './budgets/runner.js'
import { type Result as Measured, nameOf } from './budgets/scenario.js'
import { type Lab, type Result, within } from './lab.js'

export const about =
  'attacks by a hostile broker, measured; a word takes those whose row begins with it, as T01; `write` writes test/lab/budgets/BUDGETS.md'
export const minutes = 2

export async function run(lab: Lab): Promise<Result> {
  const write = lab.words.includes('write')
  const only = lab.words.filter((word) => word !== 'write').join(' ')
  const runner = new Runner(lab.root)
  try {
    const chosen = runner.list().filter((named) => nameOf(named).startsWith(only))
    if (chosen.length === 0) throw new Error(`no attack begins with '${only}'`)
    const going = write ? () => true : within(lab)
    const results = await runner.runAll(
      chosen,
      (result: Measured) => lab.say(lineOf(result)),
      going,
    )
    if (write && only === '')
      writeFileSync(path.join(lab.root, 'test', 'lab', 'budgets', 'BUDGETS.md'), pageOf(results))
    const over = results.filter(({ wrong }) => wrong.length > 0)
    const left = chosen.length - results.length
    return {
      did: `${results.length} attacks`,
      findings: over.map((result) => ({
        what: `${nameOf(result)}: ${result.wrong.join('; ')}`,
        command: `npm run lab -- budgets ${JSON.stringify(nameOf(result))}`,
      })),
      ...(left > 0 && { skipped: `${left} attacks: the time was over` }),
    }
  } finally {
    runner.close()
  }
}
