/**
 * What each call of a program does to a client. Payloads lie in memory that is written over as soon as it is the program's again.
 *
 * Everything that a call gives, throws or rejects with goes into its record. Nothing is judged but the caller's memory, which only lives here.
 */
import type { BaseClient } from '../../../src/client/client.js'
import type { ClientEvents, Payload, PublishOptions } from '../../../src/client/public.js'
import { type Given, given } from '../payloads.js'
import type { CallRecord } from './history.js'
import { bytesOf, topicOf } from './naming.js'
import { frozen, type Performer } from './perform.js'
import type { Call, PayloadPlan } from './program.js'
import { subscribe } from './reading.js'
import { wrongCalls } from './wrong.js'

type Of<N extends Call['call']> = Extract<Call, { readonly call: N }>
type Doing = (performer: Performer, client: BaseClient, record: CallRecord) => Promise<unknown> | undefined

/** Makes the call of a record. */
export function doCall(performer: Performer, client: BaseClient, record: CallRecord): void {
  try {
    const promise = doings[record.call.call](performer, client, record)
    if (promise === undefined) {
      if (record.how === 'pending') performer.settle(record, 'fulfilled', record.value, undefined)
    } else performer.follow(record, promise)
  } catch (error) {
    performer.settle(record, 'threw', undefined, error)
  }
}

const doings: Readonly<Record<Call['call'], Doing>> = {
  connect: (performer, client, { call }) => client.connect(withSignal(performer, call as Of<'connect'>)),
  publish: (performer, client, record) => publish(performer, client, record, record.call as Of<'publish'>),
  post: (performer, client, record) => post(performer, client, record, record.call as Of<'post'>),
  subscribe: (performer, client, record) => subscribe(performer, client, record, record.call as Of<'subscribe'>),
  unsubscribe: (performer, client, record) => unsubscribe(performer, client, record.call as Of<'unsubscribe'>),
  leave: (performer, _client, { call, client: index }) => leave(performer, call as Of<'leave'>, index),
  request: (performer, client, record) => request(performer, client, record, record.call as Of<'request'>),
  respond: (performer, client, { call }) => respond(performer, client, call as Of<'respond'>),
  reauthenticate: (performer, client, { call }) => client.reauthenticate(withSignal(performer, call as Of<'reauthenticate'>)),
  setBrokers: (performer, client, { call, client: index }) => {
    client.setBrokers(performer.endpoints(index, (call as Of<'setBrokers'>).endpoints))
    return undefined
  },
  reconnect: (_performer, client, { call }) => {
    const { force, forget } = call as Of<'reconnect'>
    return forgotten(client.reconnect(frozen({ force, reason: 'the program' })), forget)
  },
  disconnect: (performer, client, { call }) => client.disconnect(goodbye(performer, call as Of<'disconnect'>)),
  drain: (performer, client, { call }) => client.drain(goodbye(performer, call as Of<'drain'>)),
  destroy: (_performer, client) => {
    client.destroy()
    return undefined
  },
  dispose: (_performer, client) => client[Symbol.asyncDispose](),
  flush: (_performer, client) => client.flush(),
  writable: (_performer, client) => client.writable,
  stats: (_performer, client, record) => {
    record.value = client.stats()
    return undefined
  },
  clear: (_performer, client) => {
    client.outbound.clear()
    return undefined
  },
  on: (performer, client, record) => listen(performer, client, record, record.call as Of<'on'>),
  wrong: (performer, client, { call, client: index }) => {
    const { make, version } = wrongCalls[(call as Of<'wrong'>).what] ?? {}
    // It is right in MQTT 5.0.
    const right = version === 4 && performer.program.clients[index]?.options['protocolVersion'] !== 4
    return right ? undefined : make?.(client)
  },
  cut: (performer, _client, { client: index }) => void performer.place.cut(index),
  stall: (performer, _client, { call, client: index }) => void performer.place.stall(index, (call as Of<'stall'>).milliseconds),
  down: (performer, _client, { call }) => void performer.place.down((call as Of<'down'>).milliseconds),
}

function withSignal(performer: Performer, call: { readonly signal?: number }): { readonly signal?: AbortSignal } {
  const signal = performer.signal(call.signal)
  return signal === undefined ? {} : Object.freeze({ signal })
}

function goodbye(performer: Performer, call: Of<'disconnect' | 'drain'>): { readonly timeout: number; readonly signal?: AbortSignal } {
  return Object.freeze({ timeout: call.timeout, ...withSignal(performer, call) })
}

/** Nothing is attached to the promise: a rejection of it must not be an unhandled one. */
function forgotten(promise: Promise<unknown>, forget: boolean | undefined): Promise<unknown> | undefined {
  return forget === true ? undefined : promise
}

/** The bytes of a payload in the caller's memory, and a check that they were left alone. */
function memory(performer: Performer, record: CallRecord, plan: PayloadPlan): Given {
  const bytes = bytesOf(plan, record.name)
  const wanted = bytes.slice()
  const lent = given(bytes, plan.form)
  const { payload } = lent
  const overwrite = (): void => {
    if (typeof payload !== 'string' && Buffer.compare(viewOf(payload), wanted) !== 0)
      performer.history.report('untouched', `${plan.form} payload of ${record.name} was written to by the client`)
    lent.overwrite()
  }
  return { payload, overwrite }
}

function viewOf(payload: ArrayBuffer | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(payload) ? new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength) : new Uint8Array(payload)
}

function publish(performer: Performer, client: BaseClient, record: CallRecord, call: Of<'publish'>): Promise<unknown> | undefined {
  const { payload, overwrite } = memory(performer, record, call)
  const topic = performer.place.prefix + topicOf(call, record.name)
  const options = frozen({ ...call.options, qos: call.qos, ...withSignal(performer, call) }) as PublishOptions
  const promise = client.publish(topic, payload as Payload, options)
  if (call.forget === true) return undefined
  return promise.finally(overwrite)
}

function post(performer: Performer, client: BaseClient, record: CallRecord, call: Of<'post'>): undefined {
  const { payload, overwrite } = memory(performer, record, call)
  record.value = client.post(performer.place.prefix + topicOf(call, record.name), payload as Payload)
  overwrite()
  return undefined
}

function unsubscribe(performer: Performer, client: BaseClient, call: Of<'unsubscribe'>): Promise<unknown> | undefined {
  const filters = Object.freeze(call.filters.map((filter) => prefixed(performer, filter)))
  return forgotten(client.unsubscribe(filters, withSignal(performer, call)), call.forget)
}

/** A filter with the prefix of the run, behind the name of its share. */
export function prefixed(performer: Performer, filter: string): string {
  const { prefix } = performer.place
  if (!filter.startsWith('$share/')) return prefix + filter
  const at = filter.indexOf('/', 7) + 1
  return filter.slice(0, at) + prefix + filter.slice(at)
}

function leave(performer: Performer, { of, how }: Of<'leave'>, client: number): Promise<unknown> | undefined {
  const { client: owner } = performer.program.steps.find(({ id }) => id === of) ?? {}
  const subscription = owner === client ? performer.subscriptions.get(of) : undefined
  if (subscription === undefined) return undefined
  const mark = (): void => {
    performer.history.end(of, performer.place.now(), how)
  }
  if (how !== 'detach') return Promise.resolve(how === 'dispose' ? subscription[Symbol.asyncDispose]() : subscription.unsubscribe()).finally(mark)
  subscription.detach()
  mark()
  return undefined
}

async function request(performer: Performer, client: BaseClient, record: CallRecord, call: Of<'request'>): Promise<unknown> {
  const { payload, overwrite } = memory(performer, record, call)
  const options = Object.freeze({ timeout: call.timeout, ...withSignal(performer, call) })
  try {
    const answer = await client.request(`${performer.place.prefix}q/1`, payload as Payload, options)
    return Buffer.compare(answer.payload, bytesOf(call, record.name)) === 0 ? 'the answer' : 'another answer'
  } finally {
    overwrite()
  }
}

async function respond(performer: Performer, client: BaseClient, { filter, fails }: Of<'respond'>): Promise<unknown> {
  const responder = await client.respond(
    prefixed(performer, filter),
    (asked) => {
      if (fails === true) throw new Error('the responder of the program failed')
      return asked.payload
    },
    frozen({ onError: 'reject' as const }),
  )
  const done = performer.waiting(`a responder on ${filter}`)
  responder.done.then(done, done)
  return undefined
}

function listen(performer: Performer, client: BaseClient, { id, client: index }: CallRecord, { event, does, throws }: Of<'on'>): undefined {
  client.on(event as keyof ClientEvents, () => {
    if (does !== undefined) performer.perform(does, { id, client: index, nested: true })
    if (throws) throw new Error('a listener of the program throws')
  })
  return undefined
}
