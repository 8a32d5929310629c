/**
 * What a program needs of the world that it runs in, and the virtual world: the client's platform, links and broker under one virtual clock.
 *
 * A place belongs to one run of one program. In the virtual world nothing waits in real time, and every run of a program is the same.
 */
import type { BaseClient } from '../../../src/client/client.js'
import type { ClientOptions, Endpoint } from '../../../src/client/public.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import type { Transport } from '../../../src/transport/transport.js'
import { clientWith, type Defect } from '../../support/defective.js'
import { WorldClock } from '../clock.js'
import { Pipe } from '../pipe.js'
import { type ScriptedPlatform, scriptedPlatform } from '../platform.js'
import { Random } from '../random.js'
import { History, type Taken } from './history.js'
import { nameIn, wrongIn } from './naming.js'
import { Performer } from './perform.js'
import type { EndpointName, Program } from './program.js'

export type WorldName = 'virtual' | 'tcp' | 'mosquitto'

/** One run's part of a world. */
export interface Place {
  readonly world: WorldName
  /** Before each topic, filter and client identifier. */
  readonly prefix: string
  now(): number
  timer(callback: () => void, delay: number): () => void
  endpoint(client: number, name: EndpointName): Endpoint
  /** The name of the endpoint that an event tells of. */
  nameOf(url: string): EndpointName
  client(index: number, endpoints: readonly Endpoint[], options: ClientOptions): BaseClient
  /** The links of a client break. */
  cut(client: number): void
  stall(client: number, duration: number): void
  /** For so long nobody listens at the good endpoints. */
  down(duration: number): void
  /** Nothing goes wrong any more. */
  heal(): void
  /** What the broker took, once everything has come to its end. */
  taken(): Promise<readonly Taken[]>
  /** What is left of the clients. */
  left(): readonly string[]
}

/** Runs programs. */
export interface World {
  readonly name: WorldName
  run(program: Program): Promise<History>
  stop(): Promise<void>
}

/** Runs of this thread that have not ended: what nobody catches may be any one's. */
const running = new Set<History>()

/** Sends what nobody catches to the runs that are under way. To be called once for each thread. */
export function catchStrays(): () => void {
  const rejected = (reason: unknown): void => told('unhandled', reason)
  const thrown = (reason: unknown): void => told('thrown', reason)
  process.on('unhandledRejection', rejected).on('uncaughtException', thrown)
  return () => void process.off('unhandledRejection', rejected).off('uncaughtException', thrown)
}

function told(rule: string, reason: unknown): void {
  const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)
  for (const history of running) history.report(rule, text.slice(0, 600))
}

/** Runs a program in its place, with strays going to its history. */
export async function underWatch(history: History, body: () => Promise<void>): Promise<History> {
  running.add(history)
  try {
    await body()
    await new Promise((resolve) => setImmediate(resolve))
  } catch (error) {
    history.report('finder', `the finder itself failed: ${error instanceof Error ? error.stack : String(error)}`)
  } finally {
    running.delete(history)
  }
  return history
}

/** Virtual milliseconds after which a program that has not ended hangs. */
const longest = 600_000

/** The virtual world. */
export class VirtualWorld implements World {
  readonly name = 'virtual'
  readonly #defect: Defect | undefined

  /** @param defect what is wrong with the clients, which has to be found */
  constructor(defect?: Defect) {
    this.#defect = defect
  }

  run(program: Program): Promise<History> {
    const history = new History(program)
    return underWatch(history, async () => {
      const place = new VirtualPlace(program, history, this.#defect)
      let over = false
      const done = new Performer(program, place, history).run().finally(() => {
        over = true
      })
      place.clock.onQuiet = () => over
      while (!over && place.clock.now() < longest) await place.clock.advance(10_000)
      if (over) return done
      done.catch(() => undefined)
      history.report('hang', `the program did not end in ${longest} ms`)
    })
  }

  async stop(): Promise<void> {}
}

/** The answer of a peer that refuses, to the first bytes that it got. */
export function refusal(connect: Uint8Array, name: EndpointName): Uint8Array {
  // The protocol level lies behind the fixed header and the name; the header has at least two bytes.
  const at = connect.findIndex((byte, index) => byte === 0x4d && connect[index + 1] === 0x51) + 4
  if (connect[at] === 4) return Uint8Array.of(0x20, 2, 0, name === 'busy' ? 3 : 5)
  return Uint8Array.of(0x20, 3, 0, name === 'busy' ? 0x89 : 0x8a, 0)
}

const untapped = { sent: () => undefined, arriving: () => undefined, over: () => undefined, answered: () => undefined }

/** What the clients of one run share. */
class VirtualPlace implements Place {
  readonly world = 'virtual'
  readonly prefix = 'f/'
  readonly clock = new WorldClock()
  readonly #random: Random
  readonly #broker: MemoryBroker
  readonly #program: Program
  readonly #history: History
  readonly #pipes: { readonly client: number; readonly pipe: Pipe }[] = []
  readonly #platforms: ScriptedPlatform[] = []
  readonly #defect: Defect | undefined
  #open = 0
  #downUntil = 0

  constructor(program: Program, history: History, defect: Defect | undefined) {
    this.#defect = defect
    this.#program = program
    this.#history = history
    this.#random = new Random(program.seed)
    const more = { start: () => ({ reasonCode: 0x18, data: new TextEncoder().encode('more') }), continue: () => ({ reasonCode: 0 }) }
    this.#broker = new MemoryBroker({ clock: this.clock, auth: { finder: more } })
  }

  now(): number {
    return this.clock.now()
  }

  timer(callback: () => void, delay: number): () => void {
    return this.clock.setTimer(callback, delay)
  }

  endpoint(_client: number, name: EndpointName): Endpoint {
    return `mqtt://${name}`
  }

  nameOf(url: string): EndpointName {
    return new URL(url).hostname as EndpointName
  }

  client(index: number, endpoints: readonly Endpoint[], options: ClientOptions): BaseClient {
    const told = (where: string, error: unknown): void =>
      this.#history.report('thrown', `${where} threw ${error instanceof Error ? error.stack : String(error)}`.slice(0, 600))
    const dial = (target: { readonly url: URL }, { signal }: { readonly signal: AbortSignal }): Promise<Transport> =>
      this.#dial(index, target.url.hostname as EndpointName, signal)
    const scripted = scriptedPlatform(this.clock, this.#random, dial, told, () => true)
    const client = clientWith(this.#defect, scripted.platform, endpoints, options)
    this.#platforms.push(scripted)
    return client
  }

  cut(client: number): void {
    for (const { pipe } of this.#of(client)) pipe.reset()
  }

  stall(client: number, duration: number): void {
    for (const { pipe } of this.#of(client)) {
      pipe.up.stalled = true
      pipe.down.stalled = true
      this.clock.setTimer(() => this.#resume(pipe), duration)
    }
  }

  down(duration: number): void {
    this.#downUntil = this.now() + duration
    for (const { pipe } of this.#pipes) if (!pipe.over) pipe.reset()
  }

  heal(): void {
    this.#downUntil = 0
    for (const { pipe } of this.#pipes) if (!pipe.over) this.#resume(pipe)
  }

  async taken(): Promise<readonly Taken[]> {
    for (const violation of this.#broker.violations) this.#history.report('violation', `${violation.packet ?? 'bytes'}: ${violation.text}`)
    return this.#broker.accepted
      .filter(({ topic }) => topic.startsWith(this.prefix))
      .map(({ topic, payload, qos, retain, properties, will }) => {
        const name = nameIn(topic, payload)
        return { topic: topic.slice(this.prefix.length), name, wrong: wrongIn(this.#program, name, payload), qos, retain, properties, will }
      })
  }

  left(): readonly string[] {
    const timers = this.#platforms.reduce((sum, platform) => sum + platform.timers(), 0)
    return [...(timers > 0 ? [`${timers} timers`] : []), ...(this.#open > 0 ? [`${this.#open} streams`] : [])]
  }

  #of(client: number): { readonly pipe: Pipe }[] {
    return this.#pipes.filter((each) => each.client === client && !each.pipe.over)
  }

  #resume(pipe: Pipe): void {
    pipe.up.resume()
    pipe.down.resume()
  }

  #dial(client: number, name: EndpointName, signal: AbortSignal): Promise<Transport> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const abort = (): void => {
        cancel()
        reject(signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
      const answer = (): void => {
        signal.removeEventListener('abort', abort)
        const down = this.now() < this.#downUntil && ['good', 'other', 'late'].includes(name)
        if (name === 'dead' || down) reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
        else resolve(this.#accept(client, name))
      }
      const wait = name === 'late' ? 60 : this.#program.link.latency
      const cancel = name === 'hang' ? (): void => undefined : this.clock.setTimer(answer, wait)
    })
  }

  #accept(client: number, name: EndpointName): Transport {
    const { latency, pieces, rate } = this.#program.link
    this.#open += 1
    let held = true
    const tap = {
      ...untapped,
      over: () => {
        if (held) this.#open -= 1
        held = false
      },
      fault: (what: string) => this.#history.report('transport', what),
    }
    const options = { latency, pieces, highWaterMark: 65_536, delivery: 'buffer' as const, ...(rate === undefined ? {} : { rateUp: rate }) }
    const pipe = new Pipe(this.clock, this.#random, options, tap)
    this.#pipes.push({ client, pipe })
    if (name === 'good' || name === 'other' || name === 'late') this.#broker.accept(pipe.server)
    else strange(pipe.server, name)
    return pipe.client
  }
}

// A peer that refuses, or says nothing.
function strange(transport: Transport, name: EndpointName): void {
  const room = new Uint8Array(4096)
  let answered = name === 'silent'
  const answer = (bytes: Uint8Array): void => {
    if (answered) return
    answered = true
    transport.write(refusal(bytes, name))
    transport.close()
  }
  const closed = (): void => undefined
  transport.open({ buffer: () => room, read: (length) => answer(room.subarray(0, length)), chunk: answer, drain: closed, closed })
}
