/**
 * `mqwire bench`: puts a load on a broker, in an open loop, and counts what arrives.
 */
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import type { ClientOptions } from 'mqwire'
import {
  type ConnectionValues,
  clientOptions,
  endpointOf,
  option,
  withConnection,
} from '../common/connection.js'
import { Ending, misuse } from '../common/ending.js'
import { ProgressLine, say, write } from '../common/terminal.js'
import { duration, positive, qos, topic, whole } from '../common/values.js'
import { microseconds, stampSize } from './ledger.js'
import { countOf, type Plan, receiversOf } from './plan.js'
import { comparison, page, type Result, resultOf, type Sample, textOf } from './report.js'
import { Threads } from './threads.js'

interface BenchValues extends ConnectionValues, Omit<Plan, 'all' | 'shared'> {
  readonly workers?: number
  readonly json?: boolean
  readonly html?: string
  readonly out?: string
  readonly compare?: string
}

/** What differs between the scenarios. */
interface Scenario {
  readonly about: string
  readonly publishers: number
  readonly subscribers: number
  readonly topics: number
  readonly rate: number
  readonly all?: boolean
  readonly shared?: boolean
}

const scenarios: Readonly<Record<string, Scenario>> = {
  stress: {
    about: 'many publishers, many subscribers, a topic for each subscriber',
    publishers: 100,
    subscribers: 10,
    topics: 10,
    rate: 10,
  },
  'fan-out': {
    about: 'one publisher, each message to every subscriber',
    publishers: 1,
    subscribers: 100,
    topics: 1,
    rate: 10,
  },
  'fan-in': {
    about: 'many publishers, one subscriber',
    publishers: 100,
    subscribers: 1,
    topics: 100,
    rate: 10,
    all: true,
  },
  mesh: {
    about: 'everyone gets everything',
    publishers: 20,
    subscribers: 20,
    topics: 20,
    rate: 10,
    all: true,
  },
  shared: {
    about: 'many publishers, subscribers that share the load',
    publishers: 100,
    subscribers: 10,
    topics: 100,
    rate: 10,
    shared: true,
  },
  connect: {
    about: 'clients connect, and nothing is published',
    publishers: 1000,
    subscribers: 0,
    topics: 1,
    rate: 1,
  },
}

const examples = `
It is an open loop: each message has a time at which it is due, and its latency counts from then. Every run ends by itself.
Exit code 5 when messages were lost.

Examples:
  mqwire bench fan-out --subscribers 1000 --rate 5
  mqwire bench stress --publishers 2000 --subscribers 100 --topics 100 --rate 1 --duration 60s -q 2
  mqwire bench stress --out today.json --html today.html
  mqwire bench stress --compare yesterday.json
`

/** Defines the command. */
export function benchCommand(signal: AbortSignal): Command {
  const command = new Command('bench')
    .description('put a load on a broker, and count')
    .addHelpText('after', examples)
  for (const [name, scenario] of Object.entries(scenarios))
    command.addCommand(scenarioCommand(name, scenario, signal))
  return command
}

function scenarioCommand(name: string, scenario: Scenario, signal: AbortSignal): Command {
  const command = new Command(name)
    .description(scenario.about)
    .addOption(
      option(
        '--publishers <number>',
        'clients that publish',
        whole(1, 1_000_000),
        scenario.publishers,
      ),
    )
    .addOption(
      option(
        '--subscribers <number>',
        'clients that receive',
        whole(0, 1_000_000),
        scenario.subscribers,
      ),
    )
    .addOption(
      option(
        '--topics <number>',
        'topics that the publishers use',
        whole(1, 1_000_000),
        scenario.topics,
      ),
    )
    .addOption(
      option('--rate <number>', 'messages a second of each publisher', positive, scenario.rate),
    )
    .addOption(option('-d, --duration <time>', 'time of publishing', duration, 10_000))
    .addOption(option('-q, --qos <qos>', 'QoS', qos, 0))
    .addOption(option('--size <bytes>', 'bytes of a payload', whole(stampSize, 268_000_000), 256))
    .addOption(
      option('--prefix <topic>', 'topics are below this one', topic, `mqwire-bench/${process.pid}`),
    )
    .addOption(
      option(
        '--workers <number>',
        'threads (default: one for 500 clients, as many as cores)',
        whole(1, 256),
      ),
    )
    .addOption(option('--json', 'print the result as one JSON object'))
    .addOption(option('--out <file>', 'write the result as JSON, for --compare'))
    .addOption(option('--html <file>', 'write a report with plots, one file'))
    .addOption(option('--compare <file>', 'print the ratios to an earlier result'))
  return withConnection(command).action((values: BenchValues) =>
    run(name, scenario, values, signal),
  )
}

/** Milliseconds without a message after which nothing more is waited for. */
const silence = 3000

async function run(
  name: string,
  scenario: Scenario,
  values: BenchValues,
  signal: AbortSignal,
): Promise<void> {
  const before = values.compare === undefined ? undefined : readResult(values.compare, name)
  for (const file of [values.out, values.html]) if (file !== undefined) assertWritable(file)
  const plan = planOf(scenario, values, name)
  const options = await clientOptions(values, signal)
  // Functions do not pass between threads, each client needs an identifier of its own, and nothing
  // is to stay on the broker.
  const { logger: _logger, on: _on, clientId: _id, will: _will, ...rest } = options
  const plain = { ...rest, cleanStart: true, sessionExpiryInterval: endsAtOnce(options) }
  const clients = plan.publishers + plan.subscribers
  const parts = values.workers ?? Math.min(availableParallelism(), Math.ceil(clients / 500))
  const threads = new Threads(plan, parts, { endpoint: endpointOf(values), options: plain })
  const progress = new ProgressLine()
  const samples: Sample[] = []
  const began = microseconds()
  const cpu = process.cpuUsage()
  try {
    say(`${clients} clients connect, over ${parts} ${parts === 1 ? 'thread' : 'threads'}`)
    await threads.all('open', signal)
    const connected = microseconds()
    const expected = expectedOf(plan)
    const start = microseconds() + 200_000
    if (name !== 'connect') {
      threads.post(start)
      const watch = setInterval(() => {
        const { sent, received } = threads.sums
        samples.push({
          time: (microseconds() - start) / 1e6,
          sent,
          received,
          rss: process.memoryUsage.rss(),
        })
        progress.show(() => `${sent} sent, ${received} of ${expected} received`)
      }, 500)
      try {
        await threads.all('published', signal)
        await settled(threads, expected, signal)
      } finally {
        clearInterval(watch)
        progress.clear()
      }
    }
    const result = resultOf({
      name,
      plan,
      samples,
      expected,
      sums: threads.sums,
      connecting: (connected - began) / 1e6,
      seconds: (microseconds() - start) / 1e6,
      cpu: process.cpuUsage(cpu),
    })
    await output(result, before, values)
    const { problem } = threads
    const why = problem === undefined ? '' : `; ${result.failed} publishes failed: ${problem.text}`
    if (problem !== undefined && result.sent === 0)
      throw new Ending(problem.end, `nothing was published${why}`)
    if (result.lost > 0 || result.dropped > 0)
      throw new Ending('lost', `${result.lost} messages did not arrive${why}`)
  } finally {
    await threads.end()
  }
}

function planOf(scenario: Scenario, values: BenchValues, name: string): Plan {
  const { publishers, subscribers, topics, rate, size, prefix, qos: level } = values
  return {
    publishers,
    subscribers,
    topics,
    rate,
    duration: name === 'connect' ? 0 : values.duration,
    qos: level,
    size,
    prefix,
    all: scenario.all === true,
    shared: scenario.shared === true,
  }
}

function expectedOf(plan: Plan): number {
  let all = 0
  for (let publisher = 0; publisher < plan.publishers; publisher++)
    all += countOf(plan, publisher) * receiversOf(plan, publisher)
  return all
}

/** Waits until all has arrived, or nothing comes any more. */
async function settled(threads: Threads, expected: number, signal: AbortSignal): Promise<void> {
  let { received } = threads.sums
  for (
    let since = performance.now();
    performance.now() - since < silence && received < expected;
  ) {
    await sleep(100, undefined, { signal })
    const now = threads.sums.received
    if (now > received) since = performance.now()
    received = now
  }
}

// MQTT 3.1.1 has no expiry: a session that starts clean ends with its connection.
function endsAtOnce({ protocolVersion }: ClientOptions): 0 | undefined {
  return protocolVersion === 4 ? undefined : 0
}

function assertWritable(file: string): void {
  accessSync(existsSync(file) ? file : path.dirname(path.resolve(file)), constants.W_OK)
}

function readResult(file: string, name: string): Result {
  const result = JSON.parse(readFileSync(file, 'utf8')) as Result
  if (typeof result?.scenario !== 'string' || typeof result.latency?.p50 !== 'number')
    throw misuse(`${file} is no result of mqwire bench`)
  if (result.scenario !== name)
    throw misuse(`${file} is a result of bench ${result.scenario}, not of ${name}`)
  return result
}

async function output(
  result: Result,
  before: Result | undefined,
  values: BenchValues,
): Promise<void> {
  await write(values.json ? `${JSON.stringify(result)}\n` : textOf(result))
  if (before !== undefined) await write(comparison(result, before))
  if (values.out !== undefined)
    writeFileSync(values.out, `${JSON.stringify(result, undefined, 1)}\n`)
  if (values.html !== undefined) writeFileSync(values.html, page(result, before))
}
