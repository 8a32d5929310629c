/**
 * Runs a program: makes its clients, takes its steps in order, waits until all is calm, and ends what has not ended.
 *
 * It records what can be seen and judges nothing. It must never hold back an error of the client, and never wait without a bound.
 */
import type { BaseClient } from '../../../src/client/client.js'
import { type ClientOptions, constant, type Endpoint } from '../../../src/client/public.js'
import { eventNames } from '../../unit/client/event-names.js'
import { doCall } from './calls.js'
import type { CallRecord, History } from './history.js'
import { nameOf } from './naming.js'
import type { Call, ClientPlan, EndpointName, Program } from './program.js'
import type { Place } from './worlds.js'

/** Milliseconds for which a step that waits does so at most. */
const patience = 1200
/** Milliseconds in which a world without trouble has to come to rest. */
const calmPatience = 6000
const calmLeast = 150
/** Milliseconds that `disconnect()` and `drain()` may take in the end, and what all else may take behind it. */
const goodbye = 1000
const endPatience = 7000
const tick = 50
/** Nobody calls back for ever. */
const mostNested = 3
const mostCalls = 400

/** What a listener or handler was when it made its call. */
export interface Caller {
  readonly id: number
  readonly client: number
  readonly nested: boolean
}

/** One run of one program. */
export class Performer {
  readonly program: Program
  readonly place: Place
  readonly history: History
  readonly clients: (BaseClient | undefined)[] = []
  /** What `leave` acts on, by step. */
  readonly subscriptions = new Map<number, { unsubscribe(): Promise<void>; detach(): void; [Symbol.asyncDispose](): PromiseLike<void> }>()
  readonly #controllers = new Map<number, AbortController>()
  readonly #times = new Map<number, number>()
  /** Reading loops and the like that have not ended. */
  readonly #waits = new Map<string, number>()

  constructor(program: Program, place: Place, history: History) {
    this.program = program
    this.place = place
    this.history = history
  }

  async run(): Promise<void> {
    this.history.nameOf = (url) => this.place.nameOf(url)
    this.program.clients.forEach((plan, index) => {
      this.clients.push(this.#make(plan, index))
    })
    for (const step of this.program.steps) {
      if (step.after > 0) await this.sleep(step.after)
      const record = this.perform(step.call, { id: step.id, client: step.client, nested: false })
      if (step.wait && record !== undefined) await this.until(() => record.how !== 'pending', patience)
    }
    await this.#calm()
    await this.#end()
    this.history.taken = await this.place.taken()
    this.history.left = this.place.left()
  }

  /** Makes a call; listeners and handlers do so too. */
  perform(call: Call, { id, client: index, nested }: Caller): CallRecord | undefined {
    const client = this.clients[index]
    const time = nested ? (this.#times.get(id) ?? 0) + 1 : 0
    if (client === undefined || time > mostNested || this.history.calls.length > mostCalls) return undefined
    if (nested) this.#times.set(id, time)
    const record = this.#record(call, id, nameOf(id, time), index, nested, client.state)
    doCall(this, client, record)
    if ('signal' in call && call.signal !== undefined) this.#used(call.signal)
    return record
  }

  /** Follows what a call has given. */
  follow(record: CallRecord, promise: Promise<unknown>, done?: () => void): void {
    const settle = (how: 'fulfilled' | 'rejected', value: unknown, error: unknown): void => {
      this.settle(record, how, value, error)
      done?.()
    }
    promise.then(
      (value) => settle('fulfilled', value, undefined),
      (error: unknown) => settle('rejected', undefined, error),
    )
  }

  settle(record: CallRecord, how: CallRecord['how'], value: unknown, error: unknown): void {
    const { place, history } = this
    Object.assign(record, { how, value, error, settledAt: place.now(), settledSeq: history.next(), stateAfter: this.clients[record.client]?.state })
  }

  /** The signal of that number; it aborts when the program says. */
  signal(index: number | undefined): AbortSignal | undefined {
    if (index === undefined) return undefined
    const known = this.#controllers.get(index)
    if (known !== undefined) return known.signal
    const controller = new AbortController()
    this.#controllers.set(index, controller)
    const time = this.program.signals[index]
    if (time === 'before') this.#abort(index)
    else if (typeof time === 'number') this.place.timer(() => this.#abort(index), time)
    return controller.signal
  }

  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => this.place.timer(resolve, milliseconds))
  }

  async until(done: () => boolean, most: number): Promise<void> {
    const end = this.place.now() + most
    // What settles in this turn has done so after a turn.
    for (let step = 1; !done() && this.place.now() < end; step = Math.min(tick, step * 2)) await this.sleep(step)
  }

  /** Says that something waits, until what this gives is called. */
  waiting(what: string): () => void {
    this.#waits.set(what, (this.#waits.get(what) ?? 0) + 1)
    return () => {
      this.#waits.set(what, (this.#waits.get(what) ?? 0) - 1)
    }
  }

  /** The options of a client, frozen through and through: nothing may be written to them. */
  endpoints(client: number, names: readonly EndpointName[]): readonly Endpoint[] {
    return Object.freeze(names.map((name) => this.place.endpoint(client, name)))
  }

  #record(call: Call, id: number, name: string, client: number, nested: boolean, state: string): CallRecord {
    const { place, history } = this
    const signal = 'signal' in call && call.signal !== undefined ? { signal: call.signal } : {}
    const at = place.now()
    const from = { id, name, client, call, nested, at, seq: history.next(), state, ...signal }
    const record: CallRecord = { ...from, how: 'pending', value: undefined, error: undefined, settledAt: 0, settledSeq: 0, stateAfter: '' }
    history.calls.push(record)
    return record
  }

  #used(index: number): void {
    if (this.program.signals[index] === 'turn') this.#abort(index)
  }

  #abort(index: number): void {
    const controller = this.#controllers.get(index)
    if (controller === undefined || controller.signal.aborted) return
    const reason = new Error(`signal ${index}`)
    this.history.aborts.set(index, { at: this.place.now(), seq: this.history.next(), reason })
    controller.abort(reason)
  }

  #make(plan: ClientPlan, index: number): BaseClient | undefined {
    const { place, history } = this
    const given = frozen(optionsOf(plan, index, place.prefix))
    try {
      const client = place.client(index, this.endpoints(index, plan.endpoints), given)
      for (const type of eventNames)
        client.on(type, (event) => {
          history.events.push({ client: index, at: place.now(), seq: history.next(), type, event: event as never })
        })
      void client.closed.then((error) => history.closed.push({ client: index, at: place.now(), seq: history.next(), error }))
      return client
    } catch (error) {
      history.report('construct', `options that are right were refused: ${String(error)}`)
      return undefined
    }
  }

  async #calm(): Promise<void> {
    const { place, history } = this
    place.heal()
    const from = place.now()
    const seq = history.next()
    await this.sleep(calmLeast)
    await this.until(() => history.calls.every((record) => record.how !== 'pending'), calmPatience)
    await this.sleep(calmLeast)
    history.calm = { from, to: place.now(), seq }
  }

  async #end(): Promise<void> {
    const { program, history } = this
    this.clients.forEach((client, index) => {
      const { end: call } = program
      const end: Call = call === 'disconnect' || call === 'drain' ? { call, timeout: goodbye } : { call }
      if (client !== undefined && client.state !== 'closed') this.perform(end, { id: 1000 + index, client: index, nested: false })
    })
    const over = (): boolean =>
      this.clients.every((client) => client === undefined || client.state === 'closed') &&
      history.calls.every((record) => record.how !== 'pending') &&
      [...this.#waits.values()].every((count) => count === 0)
    await this.until(over, endPatience)
    // The stream of a client that left at its timeout may still be closing.
    await this.sleep(this.place.world === 'virtual' ? 7000 : 20)
    this.clients.forEach((client, index) => {
      if (client !== undefined && client.state !== 'closed') history.report('end', `client ${index} is ${client.state} at the end`)
    })
    for (const [what, count] of this.#waits) if (count > 0) history.report('end', `${what} waits although its client is closed`)
  }
}

function optionsOf(plan: ClientPlan, index: number, prefix: string): ClientOptions {
  const { options, backoff, maxAttempts, stableAfter, auth, will } = plan
  const { clientId, reconnect, ...rest } = options
  return {
    connectTimeout: 400,
    ...rest,
    scanner: false,
    ...(clientId === undefined ? {} : { clientId: `${prefix.replaceAll('/', '-')}c${index}` }),
    reconnect: reconnect === false ? false : { backoff: constant(backoff), ...known({ maxAttempts, stableAfter }) },
    ...(will === true ? { will: { topic: `${prefix}w/c${index}`, payload: 'gone', qos: 1 as const } } : {}),
    ...(auth === true ? { auth: { method: 'finder', start: () => 'begin', continue: () => 'again' } } : {}),
  }
}

/** What has a value. */
function known<T extends object>(settings: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as never
}

/** Freezes plain data all the way down; functions, signals and bytes stay as they are. */
export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value
  const plain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype
  if (!plain) return value
  for (const each of Object.values(value)) frozen(each)
  return Object.freeze(value)
}
