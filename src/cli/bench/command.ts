/**
 * `mqwire bench`: puts a load on a broker, in an open loop, and counts what arrives.
 */
import { randomBytes } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
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
import { commandsOf, type DevicePlan, expectedOf, hasDevices, type Plan } from './plan.js'
import {
  comparison,
  isComparable,
  page,
  type Result,
  resultOf,
  type Sample,
  textOf,
} from './report.js'
import { Threads } from './threads.js'

/** The options that all scenarios have. */
interface CommonValues
  extends ConnectionValues,
    Pick<Plan, 'rate' | 'duration' | 'qos' | 'size' | 'prefix'> {
  readonly workers?: number
  readonly json?: boolean
  readonly html?: string
  readonly out?: string
  readonly compare?: string
}

type BenchValues = CommonValues & Pick<Plan, 'publishers' | 'subscribers' | 'topics'>

interface DeviceValues extends CommonValues, Pick<DevicePlan, 'ramp' | 'storms'> {
  readonly devices: number
  readonly commands?: number
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
Exit code 5 when messages were lost; of devices at QoS 0, storms may lose some.

Examples:
  mqwire bench fan-out --subscribers 1000 --rate 5
  mqwire bench stress --publishers 2000 --subscribers 100 --topics 100 --rate 1 --duration 60s -q 2
  mqwire bench stress --out today.json --html today.html
  mqwire bench stress --compare yesterday.json
  mqwire bench devices --devices 10000 --ramp 500 --storms 3 -d 2m
`

/** Defines the command. */
export function benchCommand(signal: AbortSignal): Command {
  const command = new Command('bench')
    .description('put a load on a broker, and count')
    .addHelpText('after', examples)
  for (const [name, scenario] of Object.entries(scenarios))
    command.addCommand(scenarioCommand(name, scenario, signal))
  return command.addCommand(devicesCommand(signal))
}

function devicesCommand(signal: AbortSignal): Command {
  const command = new Command('devices')
    .description('devices with telemetry and commands, which lose their connections all at once')
    .addOption(option('--devices <number>', 'devices', whole(1, 1_000_000), 100))
    .addOption(option('--ramp <number>', 'connections opened a second', positive, 200))
    .addOption(
      option(
        '--commands <number>',
        'commands a second, to all devices in turn (default: a hundredth of the devices, at least 1)',
        positive,
      ),
    )
    .addOption(
      option(
        '--storms <number>',
        'times that all devices lose their connections and come back',
        whole(0, 1000),
        1,
      ),
    )
  const defaults = { rate: 0.1, duration: 30_000, qos: 1 }
  return withCommon(command, defaults).action((values: DeviceValues) =>
    run('devices', devicePlanOf(values), values, signal),
  )
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
  const defaults = { rate: scenario.rate, duration: 10_000, qos: 0 }
  return withCommon(command, defaults).action((values: BenchValues) =>
    run(name, planOf(scenario, values, name), values, signal),
  )
}

function withCommon(
  command: Command,
  defaults: Readonly<Record<'rate' | 'duration' | 'qos', number>>,
): Command {
  command
    .addOption(
      option('--rate <number>', 'messages a second of each publisher', positive, defaults.rate),
    )
    .addOption(option('-d, --duration <time>', 'time of publishing', duration, defaults.duration))
    .addOption(option('-q, --qos <qos>', 'QoS', qos, defaults.qos))
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
  return withConnection(command)
}

/** Milliseconds without a message after which nothing more is waited for. */
const silence = 3000

async function run(
  name: string,
  plan: Plan,
  values: CommonValues,
  signal: AbortSignal,
): Promise<void> {
  const before = values.compare === undefined ? undefined : readResult(values.compare, name)
  for (const file of [values.out, values.html]) if (file !== undefined) assertWritable(file)
  const options = await clientOptions(values, signal)
  // Functions do not pass between threads, each client needs an identifier of its own, and nothing
  // is to stay on the broker.
  const { logger: _logger, on: _on, clientId: _id, will: _will, ...rest } = options
  const plain = {
    ...rest,
    cleanStart: true,
    sessionExpiryInterval: endsAtOnce(options),
    ...(hasDevices(plan) && { clientId: `bench${randomBytes(4).toString('hex')}` }),
  }
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
    const commands = hasDevices(plan) ? expectedOf(commandsOf(plan)) : 0
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
        await settled(threads, expected + commands, signal)
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
    const lost = result.lost + (result.commands?.lost ?? 0)
    const dropped = result.dropped + (result.commands?.dropped ?? 0)
    // At QoS 0, what was on its way in a storm is lost.
    const mayLose = plan.qos === 0 && hasDevices(plan) && plan.storms > 0
    if ((lost > 0 && !mayLose) || dropped > 0)
      throw new Ending('lost', `${lost} messages did not arrive${why}`)
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

function devicePlanOf(values: DeviceValues): DevicePlan {
  // A storm destroys the sockets of an agent, which the library uses over TCP only.
  if (values.url.startsWith('unix:')) throw misuse('bench devices needs TCP or WebSocket')
  const { devices, ramp, storms, rate, duration: time, size, prefix, qos: level } = values
  return {
    publishers: devices,
    subscribers: 1,
    topics: devices,
    rate,
    duration: time,
    qos: level,
    size,
    prefix,
    all: true,
    shared: false,
    ramp,
    commands: values.commands ?? Math.max(1, devices / 100),
    storms,
  }
}

/** Waits until all has arrived, or nothing comes any more. */
async function settled(threads: Threads, expected: number, signal: AbortSignal): Promise<void> {
  let received = receivedOf(threads)
  for (
    let since = performance.now();
    performance.now() - since < silence && received < expected;
  ) {
    await sleep(100, undefined, { signal })
    const now = receivedOf(threads)
    if (now > received) since = performance.now()
    received = now
  }
}

function receivedOf({ sums: { received, commands } }: Threads): number {
  return received + commands.received
}

// MQTT 3.1.1 has no expiry: a session that starts clean ends with its connection.
function endsAtOnce({ protocolVersion }: ClientOptions): 0 | undefined {
  return protocolVersion === 4 ? undefined : 0
}

function assertWritable(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) throw misuse(`${file} is a folder`)
  accessSync(existsSync(file) ? file : path.dirname(path.resolve(file)), constants.W_OK)
}

function readResult(file: string, name: string): Result {
  const result = JSON.parse(readFileSync(file, 'utf8')) as Result
  if (typeof result?.scenario !== 'string' || !isComparable(result))
    throw misuse(`${file} is no result of mqwire bench`)
  if (result.scenario !== name)
    throw misuse(`${file} is a result of bench ${result.scenario}, not of ${name}`)
  return result
}

async function output(
  result: Result,
  before: Result | undefined,
  values: CommonValues,
): Promise<void> {
  if (values.out !== undefined)
    writeFileSync(values.out, `${JSON.stringify(result, undefined, 1)}\n`)
  if (values.html !== undefined) writeFileSync(values.html, page(result, before))
  await write(values.json ? `${JSON.stringify(result)}\n` : textOf(result))
  if (before === undefined) return
  if (values.json) say(comparison(result, before))
  else await write(comparison(result, before))
}
