/**
 * What each process of the budget tests runs: one scenario, its hostile server, or the list of them.
 *
 *     node --expose-gc main.mjs --list
 *     node --expose-gc main.mjs --run 'T01 TCP'     prints one line of JSON, the result
 *     node main.mjs --serve 'T01 TCP'               the server's side, started by the one above
 */
import { createServer, type Socket } from 'node:net'
import { listening } from '../../support/servers.js'
import { Bench } from './bench.js'
import { shake } from './frames.js'
import { type Line, Link } from './link.js'
import { nameOf, type Result, type Scenario, usualGarbage } from './scenario.js'
import { floods } from './scenarios/flood.js'
import { size, tables } from './scenarios/size.js'

const scenarios: readonly Scenario[] = [...size, ...floods, ...tables]

const [, , command, name] = process.argv

function scenario(): Scenario {
  const found = scenarios.find((each) => nameOf(each) === name)
  if (found === undefined) throw new Error(`there is no scenario '${name}'`)
  return found
}

/** Plays the server of a scenario, on a port of its own, until the process that started this one is gone. */
function serve({ way = 'tcp', peer }: Scenario): void {
  const steps: (() => void)[] = []
  let said = 0
  const line: Line = {
    go: (n) =>
      said >= n
        ? Promise.resolve()
        : new Promise((resolve) => steps.push(() => said >= n && resolve())),
    tell: (told) => void process.send?.(told),
  }
  process.on('message', () => {
    said += 1
    for (const step of steps) step()
  })
  process.on('disconnect', () => process.exit())
  const play = async (socket: Socket, number: number): Promise<void> => {
    if (way === 'ws') line.tell({ what: 'handshake', request: await shake(socket) })
    await peer(new Link(socket, number, way, line))
  }
  let connections = 0
  const server = createServer({ noDelay: true }, (socket) => {
    connections += 1
    socket.on('error', () => undefined)
    play(socket, connections).catch((error: unknown) =>
      line.tell({ what: 'failed', error: String(error) }),
    )
  })
  listening(server).then((port) => line.tell({ what: 'listening', port }))
}

async function run(each: Scenario): Promise<Result> {
  const { row, variant, limit, fed, budget, garbage = usualGarbage } = each
  const bench = new Bench(each)
  const { seen, wrong } = bench
  const escaped = (error: unknown): void => void wrong.push(`escaped: ${String(error)}`)
  process.on('uncaughtException', escaped).on('unhandledRejection', escaped)
  try {
    await each.run(bench)
  } catch (error) {
    wrong.push(`failed: ${error instanceof Error ? error.message : String(error)}`)
  }
  const measured = await bench.meter.stop()
  const { held, peak, samples } = measured
  bench.end()
  if (samples === 0) wrong.push('nothing was measured')
  if (held > budget) wrong.push(`over budget: ${held} bytes held, ${budget} allowed`)
  if (peak > budget + garbage)
    wrong.push(`over budget: ${peak} bytes at the peak, ${budget + garbage} allowed`)
  return { row, variant, limit, fed, budget, garbage, ...measured, seen, wrong }
}

if (command === '--serve') serve(scenario())
else if (command === '--list')
  console.log(JSON.stringify(scenarios.map(({ row, variant }) => ({ row, variant }))))
else {
  const result = await run(scenario())
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit())
}
