/**
 * What each process of the budget tests runs: one scenario, its hostile server, or the list of them.
 *
 *     node --expose-gc main.mjs --list
 *     node --expose-gc main.mjs --run 'T01 TCP'     prints one line of JSON, the result
 *     node main.mjs --serve 'T01 TCP'               the server's side, started by the one above
 */
import { Bench } from './bench.js'
import { nameOf, type Result, type Scenario, usualGarbage } from './scenario.js'
import { scenarios } from './scenarios.js'
import { serve } from './server.js'

const [, , command, name] = process.argv

function scenario(): Scenario {
  const found = scenarios.find((each) => nameOf(each) === name)
  if (found === undefined) throw new Error(`there is no scenario '${name}'`)
  return found
}

async function run(each: Scenario): Promise<Result> {
  const { row, variant, limit, fed, budget, garbage = usualGarbage } = each
  const started = performance.now()
  const bench = new Bench(each)
  const escaped = (error: unknown): void => void bench.wrong.push(`escaped: ${String(error)}`)
  process.on('uncaughtException', escaped).on('unhandledRejection', escaped)
  try {
    await each.run(bench)
  } catch (error) {
    bench.wrong.push(`failed: ${error instanceof Error ? error.message : String(error)}`)
  }
  const { held, peak, resident, samples } = await bench.meter.stop()
  bench.end()
  if (samples === 0) bench.wrong.push('nothing was measured')
  if (held > budget) bench.wrong.push(`over budget: ${held} bytes held, ${budget} allowed`)
  if (peak > budget + garbage)
    bench.wrong.push(`over budget: ${peak} bytes at the peak, ${budget + garbage} allowed`)
  const { seen, wrong } = bench
  return {
    row,
    variant,
    limit,
    fed,
    budget,
    garbage,
    held,
    peak,
    resident,
    samples,
    seen,
    wrong,
    seconds: (performance.now() - started) / 1000,
  }
}

if (command === '--serve') serve(scenario())
else if (command === '--list')
  console.log(
    JSON.stringify(scenarios.map(({ row, variant, idle = false }) => ({ row, variant, idle }))),
  )
else {
  const result = await run(scenario())
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit())
}
