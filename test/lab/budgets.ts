/** What a hostile broker can make a client hold, and how late it makes it: each attack in a process of its own (`test/lab/budgets`). */
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import path from 'node:path'
import * as esbuild from 'esbuild'
import { KiB, type Result as Measured, MiB, type Named, nameOf } from './budgets/scenario.js'
import { type Lab, type Result, within } from './lab.js'

/** Milliseconds that one scenario may take. */
const patience = 120_000

/** The scenarios, ready to be run. Call `close` when done. */
class Runner {
  readonly #folder: string
  readonly #program: string

  constructor(root: string) {
    this.#folder = path.join(root, 'node_modules', '.cache', 'mqwire-budgets', String(process.pid))
    this.#program = path.join(this.#folder, 'main.mjs')
    mkdirSync(this.#folder, { recursive: true })
    esbuild.buildSync({
      absWorkingDir: root,
      entryPoints: ['test/lab/budgets/main.ts'],
      outfile: this.#program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      external: ['ws'],
      logLevel: 'silent',
    })
  }

  list(): Named[] {
    return JSON.parse(
      execFileSync(process.execPath, ['--expose-gc', this.#program, '--list'], {
        encoding: 'utf8',
      }),
    ) as Named[]
  }

  /** Runs one scenario. */
  run(name: string): Promise<Measured> {
    return new Promise((resolve, reject) => {
      const given = ['--expose-gc', this.#program, '--run', name]
      execFile(
        process.execPath,
        given,
        { timeout: patience, killSignal: 'SIGKILL', maxBuffer: 16 * MiB },
        (error, output, errors) => {
          const line = output.trim().split('\n').at(-1) ?? ''
          if (line.startsWith('{')) resolve(JSON.parse(line) as Measured)
          else
            reject(
              new Error(`${name}: ${error?.message ?? 'it said nothing'} ${errors.slice(-2000)}`),
            )
        },
      )
    })
  }

  /** Runs scenarios, two at a time, as long as it is `going` on; `tell` gets each result. */
  async runAll(
    names: readonly Named[],
    tell: (result: Measured) => void,
    going: () => boolean,
  ): Promise<Measured[]> {
    // Those that measure time have one beside them that does not.
    const left = [...names].sort(byName)
    const results: Measured[] = []
    const work = async (takesTimed: boolean): Promise<void> => {
      while (left.length > 0 && going()) {
        const wanted = left.findIndex(({ row }) => (row === timed) === takesTimed)
        const [next] = left.splice(Math.max(0, wanted), 1)
        if (next === undefined) return
        const result = await this.#runFairly(next)
        results.push(result)
        tell(result)
      }
    }
    await Promise.all([work(true), work(false)])
    return results.sort(byName)
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  // A machine that is busy otherwise says little about lateness: the better of three counts.
  async #runFairly(named: Named): Promise<Measured> {
    let result = await this.run(nameOf(named))
    for (let again = 0; again < 2 && named.row === timed && isLate(result); again++)
      result = await this.run(nameOf(named))
    return result
  }
}

/** The row that measures time. */
const timed = 'T06'

function isLate({ wrong }: Measured): boolean {
  return wrong.length > 0 && wrong.every((line) => /timers late|in between|PINGREQ/.test(line))
}

const byName = (first: Named, second: Named): number => nameOf(first).localeCompare(nameOf(second))

const amount = (bytes: number): string =>
  bytes >= MiB ? `${(bytes / MiB).toFixed(1)} MiB` : `${Math.max(0, Math.round(bytes / KiB))} KiB`

/** A row of the table: what was fed, what it may take, what it took, and what was seen. */
function lineOf(result: Measured): string {
  const { row, variant, limit, fed, budget, garbage, held, peak, resident, seen, wrong } = result
  const verdict = wrong.length === 0 ? 'within' : '**over**'
  const text = [...seen, ...wrong.map((line) => `**${line}**`)].join('; ').replaceAll('|', '\\|')
  const cells = [
    row,
    variant,
    limit,
    fed,
    amount(budget),
    amount(held),
    `${amount(peak)} of ${amount(budget + garbage)}`,
    amount(resident),
    verdict,
    text,
  ]
  return `| ${cells.join(' | ')} |`
}

/** The whole page. */
function pageOf(results: readonly Measured[]): string {
  const { node, v8 } = process.versions
  const memory = Math.round(totalmem() / (1024 * MiB))
  const lines = [
    '# What a hostile broker can make a client hold',
    '',
    'Written by `npm run lab -- budgets write`; not to be edited by hand. What can be held or delayed is attacked with ten times its budget',
    'or more, by a server in another process, over TCP unless it says otherwise; each client has a process of its own. How other attacks are answered is',
    'shown by the tests of the client.',
    '',
    '- **held**: most that was in use at any pause of the attack after a garbage collection, above what was in use before it began (JavaScript heap and',
    '  external memory, ArrayBuffers included). It has to stay under the budget of the row.',
    '- **peak**: most that was in use at any sample, garbage included; taken every 2 ms and after reads. It has to stay under the budget and what V8 may leave lying around.',
    '- **RSS**: growth of the resident set to its highest, for information: the two figures above do not depend on when memory goes back to the system.',
    '',
    `Machine: Node ${node}, V8 ${v8}, ${process.platform} ${process.arch}, ${cpus().length} cores, ${memory} GiB.`,
    '',
    '| row | variant | default | fed | budget | held | peak | RSS | verdict | seen |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    ...results.map(lineOf),
  ]
  return `${lines.join('\n')}\n`
}

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
