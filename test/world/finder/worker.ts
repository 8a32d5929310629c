/**
 * One worker of the finder: runs its part of the programs, judges them, makes what fails smaller, and posts what it found.
 *
 * It must never print: whoever started it collects the parts and says what came of them.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { generate } from './generate.js'
import type { Finding } from './history.js'
import { judge } from './model.js'
import { type Program, parsed, shown } from './program.js'
import { shrink } from './shrink.js'
import { startWorld } from './sockets.js'
import { catchStrays, type World, type WorldName } from './worlds.js'

/** What a worker is told. */
export interface Task {
  readonly worlds: readonly WorldName[]
  /** It takes every `parts`-th program from the first seed on, beginning with number `part`. */
  readonly first: number
  readonly seeds: number
  readonly part: number
  readonly parts: number
  /** Seconds after which no further program is begun. */
  readonly limit: number
  /** A program as a finding prints it, to be run alone. */
  readonly replay?: string
}

/** A finding on its way to whoever prints it. */
export interface Told extends Finding {
  readonly world: WorldName
  readonly seed: number
  readonly program: string
  /** After so many seconds. */
  readonly after: number
}

/** What a worker did. */
export interface Done {
  readonly programs: number
  readonly failed: number
  readonly told: readonly Told[]
  /** Of a program that was run alone: everything that happened. */
  readonly trace: readonly string[]
}

const task = workerData as Task
const started = performance.now()
const seconds = (): number => (performance.now() - started) / 1000
/** Findings of one kind are told once; of so many kinds the program is made smaller. */
const mostShrunk = 12
/** Milliseconds that something at once may take. */
const slacks: Readonly<Record<WorldName, number>> = { virtual: 1, tcp: 1500, mosquitto: 1500 }
/** Programs at a time: in real time most of it is waiting. */
const together: Readonly<Record<WorldName, number>> = { virtual: 1, tcp: 20, mosquitto: 20 }

class Finder {
  programs = 0
  failed = 0
  readonly told: Told[] = []
  readonly #known = new Set<string>()

  get over(): boolean {
    return seconds() > task.limit
  }

  async explore(world: World): Promise<void> {
    let next = task.first + task.part
    const lane = async (): Promise<void> => {
      while (!this.over && next < task.first + task.seeds) {
        const seed = next
        next += task.parts
        await this.#one(world, generate(seed))
      }
    }
    await Promise.all(Array.from({ length: together[world.name] }, lane))
  }

  async #one(world: World, program: Program): Promise<void> {
    const findings = await verdict(world, program)
    this.programs += 1
    if (findings.length === 0) return
    this.failed += 1
    for (const finding of findings) await this.#tell(world, program, finding)
  }

  async #tell(world: World, program: Program, finding: Finding): Promise<void> {
    const kind = `${world.name} ${finding.rule} ${finding.detail.replaceAll(/\d+|\{.*\}/g, '#').slice(0, 80)}`
    if (this.#known.has(kind)) return
    this.#known.add(kind)
    const after = seconds()
    const same = this.told.filter(({ rule, program: told }) => rule === finding.rule && told !== '').length
    const plain = same > 1 || this.#known.size > (world.name === 'virtual' ? mostShrunk : 2)
    const most = world.name === 'virtual' ? 500 : 10
    const small = plain ? program : await shrink(program, finding.rule, (candidate) => verdict(world, candidate), most)
    const found = plain ? [finding] : (await verdict(world, small)).filter(({ rule }) => rule === finding.rule)
    const { rule, detail } = found[0] ?? finding
    this.told.push({ rule, detail, world: world.name, seed: program.seed, program: plain ? '' : shown(small), after })
  }
}

async function verdict(world: World, program: Program): Promise<readonly Finding[]> {
  return judge(await world.run(program), { slack: slacks[world.name] })
}

/** Everything that happened, in order. */
async function trace(world: World, text: string): Promise<string[]> {
  // A number is the seed of one.
  const history = await world.run(/^\d+$/.test(text) ? generate(Number(text)) : parsed(text))
  const { calls, deliveries, events, taken } = history
  const lines = [
    ...calls.map(({ seq, at, name, client, call, state }) => ({ seq, text: `${at} c${client} ${state} ${name} ${JSON.stringify(call)}` })),
    ...calls.map(({ settledSeq, settledAt, how, name, call, error, value }) => ({
      seq: settledSeq,
      text: `${settledAt} ${call.call} ${name} ${how} ${error === undefined ? JSON.stringify(value) : String(error)}`,
    })),
    ...deliveries.map(({ seq, at, id, name, topic, qos }) => ({ seq, text: `${at} step ${id} got ${name} on ${topic} at QoS ${qos}` })),
    ...events.map(({ seq, at, client, type, event }) => ({ seq, text: `${at} c${client} event ${type} ${brief(event)}` })),
  ]
  lines.sort((a, b) => a.seq - b.seq)
  const found = judge(history, { slack: slacks[world.name] })
  return [
    ...lines.map((line) => line.text),
    `the broker took ${taken.map(({ name, topic, qos }) => `${name} (${topic}, ${qos})`).join(', ')}`,
    ...found.map(({ rule, detail }) => `FINDING ${rule}: ${detail}`),
  ]
}

function brief(event: Readonly<Record<string, unknown>>): string {
  return Object.entries(event)
    .filter(([key]) => !['connack', 'negotiated', 'message', 'packet'].includes(key))
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(' ')
}

catchStrays()
const finder = new Finder()
const traces: string[] = []
for (const name of task.worlds) {
  const world = await startWorld(name)
  try {
    if (task.replay === undefined) await finder.explore(world)
    else traces.push(`in the world ${name}:`, ...(await trace(world, task.replay)))
  } finally {
    await world.stop()
  }
}
const { programs, failed, told } = finder
parentPort?.postMessage({ programs, failed, told, trace: traces } satisfies Done)
