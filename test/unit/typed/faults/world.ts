/**
 * A world for operations under faults: a caller, a server and a broker on one virtual clock, which `setTimeout` and `Date.now` follow too.
 *
 * `run` carries out a plan and gives what was wrong, a line each. It judges by what the caller was given and by what the generators did; it knows nothing
 * of how answers travel. One run at a time.
 */
import type { Client } from '../../../../src/client/node.js'
import { MqttError } from '../../../../src/errors.js'
import { VirtualWorld } from '../../../../src/testing/index.js'
import * as mq from '../../../../src/typed/index.js'
import type { Defect, Wrapper } from '../../../support/defective.js'
import type { Ask, Plan, Trouble } from './plan.js'

type Job = { readonly length: number; readonly gap: number; readonly fails: boolean }

interface Answer {
  readonly tag: string
  /** Which generator gave it: no two have the same. */
  readonly run: number
  readonly n: number
}

const jobs = mq.operation('jobs/{tag}', mq.json<Job>(), mq.json<Answer>())

/** Milliseconds after which a server gives up a caller. */
const patience = 15_000
/** The longest wait for an answer that a plan has. */
const longestTimeout = 20_000
const url = 'mqtt://broker'

/** What one ask came to. */
interface Record {
  readonly tag: string
  readonly ask: Ask
  readonly values: Answer[]
  end: 'done' | 'left' | 'failed' | undefined
  error: unknown
  /** The longest wait for one answer, and when it ended. */
  longest: number
  endedAt: number
}

interface Run {
  readonly tag: string
  readonly server: Client
  given: number
  endedAt: number | undefined
}

/** Carries out a plan. Gives what was wrong, and how many steps it took. @param defect what is wrong with calls and streams, which has to be found */
export async function run(
  plan: Plan,
  defect?: Defect,
): Promise<{ findings: string[]; steps: number }> {
  const { setTimeout, clearTimeout, MessageChannel } = globalThis
  const { now } = Date
  const world = new FaultWorld(plan, defect)
  try {
    Object.assign(globalThis, world.timers, { MessageChannel: QuickChannel })
    Date.now = world.now
    await world.run()
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout, MessageChannel })
    Date.now = now
  }
  return { findings: world.findings.map((line) => `${plan.name}: ${line}`), steps: world.steps }
}

/** The clock takes a channel for each of its steps; real ones would cost more than all else. */
class QuickChannel {
  readonly port1: { onmessage?: () => void; close(): void } = { close: () => undefined }
  readonly port2 = { postMessage: () => void setImmediate(() => this.port1.onmessage?.()) }
}

class FaultWorld {
  readonly findings: string[] = []
  steps = 0
  readonly #plan: Plan
  readonly #facade: Wrapper['facade']
  readonly #world: VirtualWorld
  readonly #records: Record[] = []
  readonly #runs: Run[] = []
  #caller!: Client
  #server!: Client
  #servers = 0
  #closedAt: number | undefined

  constructor(plan: Plan, defect: Defect | undefined) {
    this.#facade = defect?.make().facade
    this.#plan = plan
    this.#world = new VirtualWorld({ broker: { faults: plan.packets } })
    const { clock } = this.#world
    const setTimer = clock.setTimer.bind(clock)
    clock.setTimer = (callback, delay) =>
      setTimer(() => {
        this.#step()
        callback()
      }, delay)
  }

  readonly now = (): number => this.#world.now()

  get timers(): object {
    const { clock } = this.#world
    return {
      setTimeout: (callback: (...given: unknown[]) => void, delay = 0, ...given: unknown[]) =>
        clock.setTimer(() => callback(...given), delay),
      clearTimeout: (cancel: unknown) => typeof cancel === 'function' && cancel(),
    }
  }

  async run(): Promise<void> {
    const world = this.#world
    this.#caller = this.#client('caller')
    await this.#caller.connect()
    await this.#serve('server')
    const calling = Promise.all(
      this.#plan.asks.map((ask, index) => this.#ask(ask, `${ask.do}-${index}`)),
    )
    this.steps = 0
    this.#isOn = true
    await world
      .until(calling, 3_600_000)
      .catch((error: unknown) => this.findings.push(`the world stopped: ${error}`))
    for (const { tag, end } of this.#records)
      if (end === undefined) this.findings.push(`${tag} never settled`)
    this.#isOn = false
    // A caller that has left says so, or its server notices.
    await world.pass(patience + longestTimeout)
    this.#judge()
    await world.close()
    if (world.clock.pending > 0) this.findings.push(`${world.clock.pending} timers are left`)
  }

  #isOn = false

  #client(clientId: string): Client {
    const client = new this.#world.Client(url, {
      clientId,
      cleanStart: false,
      sessionExpiryInterval: this.#plan.expiry,
      // Only a link that breaks silently needs one.
      keepAlive: this.#plan.troubles.some((trouble) => trouble.what === 'cut' && trouble.silently)
        ? 5
        : 0,
      reconnect: { backoff: () => 100 },
    })
    return client as unknown as Client
  }

  // The server

  async #serve(clientId: string): Promise<void> {
    const server = this.#client(clientId)
    if (!clientId.startsWith('twin')) this.#server = server
    await server.connect()
    const handle = ({
      params,
      value,
    }: {
      params: { tag: string }
      value: Job
    }): AsyncGenerator<Answer> => this.#answers(server, params.tag, value)
    await jobs.on(server).serve(handle, { qos: this.#plan.qos, streamTimeout: patience })
  }

  async *#answers(
    server: Client,
    tag: string,
    { length, gap, fails }: Job,
  ): AsyncGenerator<Answer> {
    const mine: Run = { tag, server, given: 0, endedAt: undefined }
    this.#runs.push(mine)
    try {
      for (let n = 0; n < length; n++) {
        if (gap > 0) await this.#world.sleep(gap)
        mine.given += 1
        yield { tag, run: this.#runs.indexOf(mine), n }
      }
      if (fails) throw new MqttError('ERR_REMOTE', 'as it was told to', { reasonName: 'TOLD' })
    } finally {
      mine.endedAt = this.now()
    }
  }

  // The caller

  get #jobs(): ReturnType<typeof jobs.on> {
    const own = jobs.on(this.#caller)
    return this.#facade?.(own) ?? own
  }

  async #ask(ask: Ask, tag: string): Promise<void> {
    await this.#world.sleep(ask.at)
    const record: Record = {
      tag,
      ask,
      values: [],
      end: undefined,
      error: undefined,
      longest: 0,
      endedAt: 0,
    }
    this.#records.push(record)
    const abort = new AbortController()
    if (ask.abort !== undefined) this.#world.sleep(ask.abort).then(() => abort.abort())
    try {
      record.end = await (ask.do === 'call'
        ? this.#call(record, abort.signal)
        : this.#stream(record, abort.signal))
    } catch (error) {
      Object.assign(record, { end: 'failed', error })
    }
    record.endedAt = this.now()
  }

  async #call(record: Record, signal: AbortSignal): Promise<'done'> {
    const { length, gap, fails = false, timeout, qos } = record.ask
    const call = this.#jobs.call(
      { tag: record.tag },
      { length, gap, fails },
      { timeout, qos, signal },
    )
    record.values.push(await this.#timed(record, call))
    return 'done'
  }

  async #stream(record: Record, signal: AbortSignal): Promise<'done' | 'left'> {
    const { length, gap, fails = false, timeout, window, leave } = record.ask
    const stream = this.#jobs.stream(
      { tag: record.tag },
      { length, gap, fails },
      { timeout, window, signal },
    )
    for (;;) {
      if (leave === record.values.length) {
        await this.#timed(record, Promise.resolve(stream.return?.()))
        return 'left'
      }
      const { value, done } = await this.#timed(record, stream.next())
      if (done === true) return 'done'
      record.values.push(value)
      const [mine, ...more] = this.#runs.filter(({ tag }) => tag === record.tag)
      const [given, read] = [mine?.given ?? 0, record.values.length]
      if (more.length === 0 && given > read + window + 1)
        this.findings.push(
          `${record.tag}: ${given} answers were made, ${read} read, with a window of ${window}`,
        )
    }
  }

  async #timed<T>(record: Record, promise: Promise<T>): Promise<T> {
    const began = this.now()
    return promise.finally(() => {
      record.longest = Math.max(record.longest, this.now() - began)
    })
  }

  // Troubles

  #step(): void {
    if (!this.#isOn) return
    this.steps += 1
    for (const trouble of this.#plan.troubles)
      if (trouble.step === this.steps) this.#strike(trouble)
  }

  #strike(trouble: Trouble): void {
    const { what } = trouble
    if (what === 'cut')
      this.#cut(
        trouble.who === 'caller' ? 'caller' : this.#server.clientId,
        trouble.down,
        trouble.silently,
      )
    else if (what === 'restart') this.#world.broker.restart({ keepSessions: trouble.keep })
    else if (what === 'kill') this.#kill(trouble.down, trouble.next)
    else if (what === 'twin') this.#serve(`twin-${++this.#servers}`).catch(() => undefined)
    else {
      this.#closedAt = this.now()
      this.#caller.destroy()
    }
  }

  #cut(clientId: string, down: number, silently?: boolean): void {
    const mend = this.#world.cut(clientId, { silently })
    this.#world.sleep(down).then(mend)
  }

  // Nothing of what it still wanted to say leaves.
  #kill(down: number, next: 'same' | 'other' | 'none'): void {
    const { clientId } = this.#server
    const mend = this.#world.cut(clientId)
    this.#server.destroy()
    if (next === 'none') return void this.#world.sleep(down).then(mend)
    const name = next === 'same' ? clientId : `server-${++this.#servers}`
    this.#world.sleep(down).then(() => {
      mend()
      return this.#serve(name).catch(() => undefined)
    })
  }

  // The verdict

  #judge(): void {
    for (const record of this.#records) {
      const found = [...this.#wrongAnswers(record), ...this.#wrongEnd(record)]
      this.findings.push(...found.map((what) => `${record.tag}: ${what}`))
    }
    for (const { tag, server, endedAt } of this.#runs)
      if (endedAt === undefined)
        this.findings.push(`${tag}: a generator of ${server.clientId} goes on`)
    if (this.#plan.gentle) this.#judgeLeaving()
    // A silence is what a link that was cut sounds like.
    for (const violation of this.#world.broker.violations)
      if (violation.reasonCode !== 0x8d)
        this.findings.push(
          `the broker was told what no client may say: ${JSON.stringify(violation)}`,
        )
  }

  *#wrongAnswers({ tag, ask, values, end }: Record): Iterable<string> {
    const numbers = values.map(({ n }) => n)
    if (numbers.some((n, index) => n !== index)) yield `it was given ${numbers.join()}`
    if (values.some((value) => value.tag !== tag)) yield 'it was given the answers of another'
    const runs = new Set(values.map(({ run }) => run))
    if (runs.size > 1) yield `its answers are those of ${runs.size} generators`
    if (
      ask.do === 'stream' &&
      end === 'done' &&
      (values.length !== ask.length || ask.fails === true)
    )
      yield `it ended after ${values.length} answers`
  }

  *#wrongEnd({ ask, end, error, longest, endedAt }: Record): Iterable<string> {
    // The first answer may wait for the request to leave, and then for itself.
    const most = ask.timeout * (ask.do === 'call' ? 1 : 2) + 1
    if (longest > most) yield `one answer took ${longest} ms`
    if (this.#closedAt !== undefined && endedAt > Math.max(this.#closedAt, ask.at) + 1)
      yield `it settled at ${endedAt} ms, the client had ended at ${this.#closedAt} ms`
    if (end !== 'failed') return
    const code = MqttError.is(error) ? error.code : String(error)
    const remote = MqttError.is(error) ? error.reasonName : undefined
    const told =
      code === 'ERR_REMOTE' &&
      (ask.do === 'call' ? ask.length === 0 : ask.fails === true && remote === 'TOLD')
    const own =
      (code === 'ERR_ABORTED' && ask.abort !== undefined) ||
      (code === 'ERR_CLOSED' && this.#closedAt !== undefined)
    const lost =
      remote === 'ERR_TIMEOUT' ||
      code === 'ERR_TIMEOUT' ||
      code === 'ERR_SESSION_LOST' ||
      code === 'ERR_CONNECTION_LOST'
    if (!told && !own && !(lost && !this.#plan.gentle)) yield `it failed: ${error}`
  }

  // Nothing was lost for good: a server that heard of the leaving has ended its generator. A request that comes again may be known to none.
  #judgeLeaving(): void {
    for (const { tag, endedAt = 0 } of this.#runs.filter(
      (run, index) => index === this.#runs.findIndex(({ tag }) => tag === run.tag),
    )) {
      const record = this.#records.find((one) => one.tag === tag)
      const late = record === undefined ? 0 : endedAt - record.endedAt
      if (late > patience - 1000)
        this.findings.push(`${tag}: a generator went on for ${late} ms after its caller had left`)
    }
  }
}
