/**
 * Rules about single calls: that they settle, with what, and when; what an abort does; what is said of wrong ones.
 *
 * Pure. What messages became of calls is not judged here.
 */
import { MqttError } from '../../../src/errors.js'
import { codeOf, type Facts, isCall, isForgotten, outcomeOf, titleOf } from './facts.js'
import type { CallRecord } from './history.js'
import type { Precision, Report } from './model.js'
import type { Call } from './program.js'
import { wrongCalls } from './wrong.js'

const ended = ['CLOSED', 'ABORTED']
const connecting = [
  ...ended,
  'CONNECT_REFUSED',
  'CONNECT_TIMEOUT',
  'CONNECT_FAILED',
  'TLS',
  'RETRIES_EXHAUSTED',
  'AUTH_FAILED',
  'UNSUPPORTED_OPTION',
  'CONNECTION_LOST',
  'KEEPALIVE_TIMEOUT',
]
const publishing = [
  ...ended,
  'NOT_CONNECTED',
  'QUEUE_FULL',
  'DROPPED',
  'EXPIRED',
  'TIMEOUT',
  'CONNECTION_LOST',
  'SESSION_LOST',
  'UNSUPPORTED_OPTION',
  'PACKET_TOO_LARGE',
  'POISONED',
]
const subscribing = [
  ...ended,
  'SUBSCRIBE_REFUSED',
  'SUBSCRIPTION_CONFLICT',
  'CONNECTION_LOST',
  'UNSUPPORTED_OPTION',
  'SHARED_SUBS_UNSUPPORTED',
  'QUEUE_FULL',
]

/** With what each call may reject, as the reference has it. */
const codes: Readonly<Partial<Record<Call['call'], readonly string[]>>> = {
  connect: [...connecting, 'ALREADY_CONNECTED'],
  reconnect: connecting,
  publish: publishing,
  post: ['PACKET_TOO_LARGE'],
  subscribe: subscribing,
  unsubscribe: [...ended, 'UNSUBSCRIBE_REFUSED', 'CONNECTION_LOST', 'PACKET_TOO_LARGE', 'QUEUE_FULL'],
  leave: [...ended, 'CONNECTION_LOST', 'UNSUBSCRIBE_REFUSED'],
  request: [...publishing, ...subscribing, 'REMOTE'],
  respond: subscribing,
  reauthenticate: [...ended, 'UNSUPPORTED_OPTION', 'NOT_CONNECTED', 'AUTH_FAILED', 'CONNECTION_LOST'],
  setBrokers: ['CLOSED'],
  flush: ['NOT_CONNECTED', 'CONNECTION_LOST', 'CLOSED'],
  writable: ['CLOSED'],
}

/** Calls that may throw rather than reject. */
const throwing: readonly Call['call'][] = ['post', 'setBrokers']

/** Judges all calls. */
export function checkCalls(facts: Facts, precision: Precision, report: Report): void {
  for (const record of facts.history.calls) {
    if (isCall(record, 'wrong')) checkWrong(facts, record, report)
    else checkSettled(facts, record, report)
    if (isForgotten(record)) continue
    checkAbort(facts, record, precision, report)
    checkLive(facts, record, report)
    checkGoodbye(record, precision, report)
    checkOver(facts, record, precision, report)
    checkState(record, report)
  }
}

function checkSettled(facts: Facts, record: CallRecord, report: Report): void {
  if (record.how === 'pending') return report('settles', `${titleOf(record)}: its client is closed, and it is still pending`)
  if (record.how === 'fulfilled') return
  const { error, call } = record
  const subscription = call.call === 'subscribe' && call.through === 'subscription'
  if (record.how === 'threw' && !throwing.includes(call.call) && !subscription) return report('throws', `${titleOf(record)}: ${outcomeOf(record)}`)
  if (!MqttError.is(error)) return report('kinds', `${titleOf(record)}: ${outcomeOf(record)}, which is no MqttError`)
  const code = error.code.slice('ERR_'.length)
  // Whatever ended the client ends what waits.
  const ending = facts.history.closed.find((each) => each.client === record.client)?.error
  const documented = codes[call.call]?.includes(code) === true || (ending !== undefined && error.code === codeOf(ending))
  if (!documented) report('kinds', `${titleOf(record)}: ${outcomeOf(record)}, which is not documented for it`)
  if (!['not-sent', 'refused', 'unknown'].includes(error.outcome)) report('kinds', `${titleOf(record)}: the outcome is ${error.outcome}`)
  checkReason(facts, record, code, report)
}

/** Each code has its condition. */
function checkReason(facts: Facts, record: CallRecord, code: string, report: Report): void {
  const { client, settledSeq, call, stateAfter } = record
  const plan = facts.history.program.clients[client]
  const against = (why: string): void => report('reason', `${titleOf(record)}: ${outcomeOf(record)}, but ${why}`)
  const closing = ['closed', 'disconnecting'].includes(stateAfter)
  if (code === 'CLOSED' && !closing) against(`the client is ${stateAfter}`)
  if (code === 'ABORTED') checkAborted(facts, record, against)
  if (code === 'CONNECTION_LOST' && !facts.events(client, 'disconnect').some(({ seq }) => seq < settledSeq + 40) && facts.connects(client) > 0)
    against('no connection was lost')
  if (code === 'RETRIES_EXHAUSTED' && plan?.maxAttempts === undefined) against('there is no limit')
  if (!isCall(record, 'publish')) return
  const options: Readonly<Record<string, unknown>> = { ...(plan?.options['outbound'] as object | undefined), ...record.call.options }
  if (code === 'TIMEOUT' && options['ackTimeout'] === undefined) against('there is no ackTimeout')
  if (code === 'EXPIRED' && options['ttl'] === undefined && record.call.options['properties'] === undefined) against('there is no ttl')
  if (code === 'SESSION_LOST' && facts.events(client, 'disconnect').length === 0) against('no connection was lost')
  if (code === 'QUEUE_FULL' && options['maxQueuedMessages'] === undefined && options['maxQueuedBytes'] === undefined)
    against('the queue is not limited')
  if (code === 'NOT_CONNECTED' && record.state === 'connected' && facts.events(client, 'disconnect').length === 0) against('there is a connection')
  if (code === 'UNSUPPORTED_OPTION' && plan?.options['protocolVersion'] === undefined) against(`MQTT 5.0 has ${Object.keys(call).join(', ')}`)
}

// Only the caller whose signal it is may see it.
function checkAborted(facts: Facts, record: CallRecord, against: (why: string) => void): void {
  const { signal, settledSeq, error, call } = record
  const own = facts.aborted(signal, settledSeq) ? signal : undefined
  // Whoever began the attempt gives it up for all: it ends the client, and with it whatever waits.
  const joined = beginnerAborted(facts, record)
  // One that is left before its grant has none.
  if (own === undefined && call.call === 'subscribe' && left(facts, record)) return
  if (own === undefined && !joined) return against('its signal has not aborted')
  const { name, cause } = error as Error
  if (name !== 'AbortError') against(`its name is ${name}`)
  const reason = own === undefined ? undefined : facts.history.aborts.get(own)?.reason
  if (!joined && cause !== reason && !left(facts, record)) against(`its cause is ${String(cause)}`)
}

function left(facts: Facts, { id, client, call, settledSeq }: CallRecord): boolean {
  if (call.call !== 'subscribe') return false
  // A client that leaves gives up its shares first.
  if (facts.ending(client, 'disconnect', 'drain', 'dispose') !== undefined && call.filters.some((filter) => filter.startsWith('$share/'))) return true
  if (facts.aborted(call.until, Number.POSITIVE_INFINITY)) return true
  // Its loop was left by what came over another subscription on the filter.
  if ((facts.history.ended.get(id)?.seq ?? Number.POSITIVE_INFINITY) < settledSeq + 20) return true
  const { filters } = call
  return facts.calls(client).some((record) => {
    if (isCall(record, 'leave')) return record.call.of === id
    return isCall(record, 'unsubscribe') && record.call.filters.some((filter) => filters.includes(filter))
  })
}

/** Whether the call that began the first attempt was given up by its signal. */
export function beginnerAborted(facts: Facts, { client, settledSeq }: Pick<CallRecord, 'client' | 'settledSeq'>): boolean {
  return facts.calls(client).some((record) => isCall(record, 'connect') && record.state === 'idle' && facts.aborted(record.signal, settledSeq))
}

const abortable: readonly Call['call'][] = ['connect', 'publish', 'subscribe', 'unsubscribe', 'request', 'reauthenticate']

function checkAbort(facts: Facts, record: CallRecord, { slack }: Precision, report: Report): void {
  const { signal, call, at, seq, settledAt, settledSeq, how } = record
  const abort = signal === undefined ? undefined : facts.history.aborts.get(signal)
  if (abort === undefined || how === 'pending' || !abortable.includes(call.call) || abort.seq > settledSeq) return
  if (abort.seq < seq && how === 'fulfilled') report('abort', `${titleOf(record)}: its signal had aborted before the call, and ${outcomeOf(record)}`)
  const due = Math.max(abort.at, at)
  if (settledAt - due > slack) report('abort', `${titleOf(record)}: its signal aborted at ${abort.at} ms, and ${outcomeOf(record)}`)
}

const lively: readonly Call['call'][] = [
  'connect',
  'publish',
  'subscribe',
  'unsubscribe',
  'leave',
  'request',
  'respond',
  'reauthenticate',
  'reconnect',
  'flush',
  'drain',
  'disconnect',
  'dispose',
  'writable',
]

// While a connection is up and nothing goes wrong any more, nothing waits for ever.
function checkLive(facts: Facts, record: CallRecord, report: Report): void {
  const { calm } = facts.history
  const { client, call, at, settledAt, how } = record
  if (
    calm === undefined ||
    facts.history.program.link.rate !== undefined ||
    calm.to - calm.from < 4000 ||
    !lively.includes(call.call) ||
    at > calm.from
  )
    return
  if (how !== 'pending' && settledAt <= calm.to) return
  const state = facts.events(client, 'state').findLast((event) => event.at <= calm.from + 2000)?.event['state']
  if (state === 'connected' || state === 'disconnecting' || state === 'closed')
    report('live', `${titleOf(record)}: after ${calm.to - calm.from} ms of calm, ${state}, it was pending; at the end ${outcomeOf(record)}`)
}

// What waits when the client is closed settles with it.
function checkOver(facts: Facts, record: CallRecord, { slack }: Precision, report: Report): void {
  const closed = facts.history.closed.find((each) => each.client === record.client)
  if (closed === undefined || record.at > closed.at || record.how === 'pending') return
  if (record.settledAt > closed.at + slack) report('over', `${titleOf(record)}: the client was closed at ${closed.at} ms, and ${outcomeOf(record)}`)
}

function checkGoodbye(record: CallRecord, { slack }: Precision, report: Report): void {
  const { call, at, settledAt, how, stateAfter } = record
  const timeout = call.call === 'dispose' ? 5000 : call.call === 'disconnect' || call.call === 'drain' ? call.timeout : undefined
  if (timeout === undefined) return
  if (how === 'rejected') return report('goodbye', `${titleOf(record)}: ${outcomeOf(record)}`)
  if (how !== 'fulfilled') return
  if (stateAfter !== 'closed') report('goodbye', `${titleOf(record)}: ${outcomeOf(record)}, and the client is ${stateAfter}`)
  // An earlier goodbye that it joins has a bound of its own.
  if (settledAt - at > Math.max(timeout, 5000) + slack) report('goodbye', `${titleOf(record)}: ${outcomeOf(record)}, after ${settledAt - at} ms`)
}

const opening: readonly Call['call'][] = [
  'connect',
  'publish',
  'subscribe',
  'request',
  'unsubscribe',
  'reconnect',
  'respond',
  'setBrokers',
  'reauthenticate',
]

function checkState(record: CallRecord, report: Report): void {
  const { call, state, how, error } = record
  const refused = ['ERR_CLOSED', 'ERR_UNSUPPORTED_OPTION'].includes(codeOf(error))
  if (state === 'closed' && opening.includes(call.call) && (how === 'fulfilled' || !refused))
    report('closed', `${titleOf(record)}: the client was closed, and ${outcomeOf(record)}`)
  if (call.call === 'connect' && state === 'connected' && codeOf(error) !== 'ERR_ALREADY_CONNECTED')
    report('closed', `${titleOf(record)}: the client was connected, and ${outcomeOf(record)}`)
  if (call.call === 'post' && record.value === true && !['connected', 'disconnecting'].includes(state))
    report('closed', `${titleOf(record)}: taken by a client that was ${state}`)
}

function checkWrong(facts: Facts, record: CallRecord, report: Report): void {
  const wrong = isCall(record, 'wrong') ? wrongCalls[record.call.what] : undefined
  const options = facts.history.program.clients[record.client]?.options ?? {}
  if (wrong === undefined || (wrong.version === 4 && options['protocolVersion'] !== 4)) return
  const { error, how } = record
  if (how === 'fulfilled' || how === 'pending')
    return report('options', `${titleOf(record)}: ${outcomeOf(record)}, not ${wrong.code} (${wrong.option})`)
  if (codeOf(error) === 'ERR_CLOSED' && ['closed', 'disconnecting'].includes(record.state)) return
  // What is queued is checked when it is sent, and may be given up before.
  if (wrong.version === 4 && codeOf(error) !== wrong.code) return
  const { code, option } = error as MqttError
  // MQTT 3.1.1 has no requests at all.
  if (options['protocolVersion'] === 4 && code === 'ERR_UNSUPPORTED_OPTION' && option === 'protocolVersion') return
  if (code !== wrong.code || (wrong.option !== undefined && wrong.option.startsWith(option ?? '-') === false))
    report('options', `${titleOf(record)}: ${outcomeOf(record)}, option ${option}, not ${wrong.code} (${wrong.option})`)
}
