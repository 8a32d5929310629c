/**
 * What has to come of a call, whatever the application does: an error that is documented for it and has its reason, at once where it was given up,
 * and nothing from a client that is closed.
 */
import { MqttError } from '../../src/errors.js'
import type { Call, Happened, History } from './history.js'
import { type Checked, does, has, overlapping } from './invariants-tools.js'
import { operationsOf, type Schedule, type Setup } from './schedule.js'

const ended = 'CLOSED ABORTED CONNECTION_LOST UNSUPPORTED_OPTION'
const connecting = `${ended} CONNECT_REFUSED CONNECT_TIMEOUT CONNECT_FAILED RETRIES_EXHAUSTED AUTH_FAILED KEEPALIVE_TIMEOUT`
const limited = `${ended} QUEUE_FULL PACKET_TOO_LARGE`
const publishing = `${limited} NOT_CONNECTED DROPPED EXPIRED TIMEOUT SESSION_LOST POISONED PUBLISH_REFUSED QOS_UNSUPPORTED`
const subscribing = `${limited} SUBSCRIBE_REFUSED SUBSCRIPTION_CONFLICT SHARED_SUBS_UNSUPPORTED WILDCARD_SUBS_UNSUPPORTED`

/** With what each call may reject, or throw. */
const documented: Readonly<Record<string, string>> = {
  connect: `${connecting} ALREADY_CONNECTED`,
  reconnect: connecting,
  publish: publishing,
  post: 'PACKET_TOO_LARGE',
  subscribe: subscribing,
  listen: subscribing,
  respond: subscribing,
  request: `${publishing} ${subscribing} REMOTE`,
  unsubscribe: `${limited} UNSUBSCRIBE_REFUSED`,
  'unsubscribe-from': `${limited} UNSUBSCRIBE_REFUSED`,
  dispose: `${limited} UNSUBSCRIBE_REFUSED`,
  reauthenticate: `${ended} NOT_CONNECTED AUTH_FAILED`,
  'set-brokers': 'CLOSED',
  flush: 'NOT_CONNECTED CONNECTION_LOST CLOSED',
  writable: 'CLOSED',
  'post-all': 'CLOSED PACKET_TOO_LARGE',
}
const refused =
  'connect publish subscribe listen respond request unsubscribe-from reconnect reauthenticate'.split(
    ' ',
  )

const codeOf = (error: unknown): string =>
  MqttError.is(error) ? error.code.slice('ERR_'.length) : String(error)
const nameOf = ({ what }: Call): string => what.split(' ')[0] as string

class Life {
  readonly events: readonly Happened[]

  constructor({ events }: History, process: number) {
    this.events = events.filter((event) => event.process === process)
  }

  state(before: number): string {
    const last = this.events.findLast(({ type, seq }) => type === 'state' && seq < before)
    return (last?.event as { state: string } | undefined)?.state ?? 'idle'
  }

  has(...types: readonly string[]): boolean {
    return this.events.some(({ type }) => types.includes(type))
  }

  get losses(): readonly unknown[] {
    return this.events.flatMap(({ type, event }) =>
      type === 'disconnect' ? [(event as { error?: unknown }).error] : [],
    )
  }

  get closed(): Happened | undefined {
    return this.events.find(
      ({ type, event }) => type === 'state' && (event as { state: string }).state === 'closed',
    )
  }
}

export function checkCalls(run: Checked): void {
  const { history, schedule } = run
  for (let process = 1; process <= history.process; process++) {
    const life = new Life(history, process)
    for (const call of history.calls) {
      if (call.process !== process || call.settled === 0) continue
      if (call.error !== undefined) checkError(run, life, call)
      checkState(history, life, call)
      if (has(schedule, 'jump')) continue
      checkTimes(history, life, call)
    }
  }
  for (const { op, payload, call } of history.published)
    checkReceipt(history, op.qos, payload, call)
  if (overlapping(history)) return
  for (const { s, process, qos, payload } of history.delivered) {
    const record = history.subscribed.find((each) => each.s === s && each.process === process)
    // What came for a subscription of an earlier process is handed to the next one on its filter.
    const isEarlier = history.subscribed.some(
      (each) =>
        each.process < process && each.filters.some((filter) => record?.filters.includes(filter)),
    )
    if (record !== undefined && qos > record.qos && !isEarlier)
      history.report(
        'receipt',
        `${payload} at QoS ${qos} was given to subscription ${s} of QoS ${record.qos}`,
      )
  }
}

function checkError({ history, setup, schedule }: Checked, life: Life, call: Call): void {
  const { what, error, process, ended: place, state: before } = call
  const [code, name, state] = [codeOf(error), nameOf(call), life.state(place)]
  const against = (why: string): void =>
    history.report('reason', `${what} ended with ${code}, but ${why}`)
  // Whatever ended a connection or the client ends what waits for it.
  const endings = [history.closed.get(process), ...life.losses].map(codeOf)
  const isKnown = documented[name]?.split(' ').includes(code) ?? true
  if (!isKnown && !endings.includes(code)) against('that is not documented for it')
  if (code === 'ABORTED') checkAborted(history, call, name, against)
  const { maxQueuedMessages: most, maxQueuedBytes: bytes, retries } = setup
  const { ackTimeout, ttl, expiry } = limitsOf(setup, schedule, what)
  // While the client ends, a connection comes and goes without `connect` and `disconnect`.
  const isLost = life.has('disconnect', 'reconnecting', 'sessionlost')
  // Those of a publish may have other reasons elsewhere.
  const wrong: Readonly<Record<string, readonly [isWrong: boolean, why: string]>> = {
    CLOSED: [!['closed', 'disconnecting'].includes(state), `the client is ${state}`],
    CONNECTION_LOST: [
      life.has('connect') && !life.has('disconnect', 'connecterror', 'reconnecting'),
      'none was lost',
    ],
    RETRIES_EXHAUSTED: [retries.maxAttempts === undefined, 'there is no limit'],
    ...(name === 'publish' && {
      TIMEOUT: [ackTimeout === undefined, 'there is no ackTimeout'],
      EXPIRED: [ttl === undefined && expiry === undefined, 'nothing of it expires'],
      SESSION_LOST: [!isLost, 'no connection was lost'],
      QUEUE_FULL: [most === 10_000 && bytes > 1_000_000, 'the queue has room'],
      // A connection that `reconnect()` replaces takes nothing more.
      NOT_CONNECTED: [
        before === 'connected' && !isLost && !does(schedule, 'reconnect'),
        'there is a connection',
      ],
    }),
  }
  const [isWrong, why] = wrong[code] ?? [false, '']
  if (isWrong) against(why)
}

// Only the caller whose signal it is may see it; whoever began the first attempt gives it up for all.
function checkAborted(
  { calls }: History,
  call: Call,
  name: string,
  against: (why: string) => void,
): void {
  const { abortedAt, error, signal, process } = call
  const connects = calls.filter((each) => each.process === process && nameOf(each) === 'connect')
  if (connects.some((each) => each.abortedAt !== undefined)) return
  // One that is left before its grant has none.
  if (['subscribe', 'listen', 'respond', 'dispose'].includes(name)) return
  if (abortedAt === undefined || signal === undefined) return against('its signal has not aborted')
  const { name: title, cause } = error as Error
  if (title !== 'AbortError' || cause !== signal.reason)
    against(`it is ${title} because of ${String(cause)}`)
}

type Own = {
  readonly options?: { readonly ackTimeout?: number; readonly ttl?: number }
  readonly expiry?: number
}

// Times that a publish has, by itself or from its client.
function limitsOf({ ackTimeout, ttl }: Setup, { ops }: Schedule, what: string) {
  const own = operationsOf(ops).find((op) => op.do === 'publish' && `publish p${op.n}` === what) as
    | Own
    | undefined
  return { ackTimeout, ttl, ...own?.options, expiry: own?.expiry }
}

function checkState(history: History, life: Life, call: Call): void {
  const { what, state, ended: place, error } = call
  const [code, name] = [codeOf(error), nameOf(call)]
  const against = (why: string): void =>
    history.report('closed', `${what} on a client that was ${state} ended with ${code}: ${why}`)
  const isOver =
    state === 'closed' && refused.includes(name) && !['CLOSED', 'UNSUPPORTED_OPTION'].includes(code)
  if (isOver || (name === 'connect' && state === 'connected' && code !== 'ALREADY_CONNECTED'))
    against('it had to be refused')
  if (name !== 'disconnect' && name !== 'drain') return
  if (error !== undefined) against('it never rejects')
  if (life.state(place) !== 'closed') against(`the client is ${life.state(place)}`)
}

// What is given up, and what waits when the client is closed, settles at once; a goodbye has its bound, or that of one that it joins.
function checkTimes(history: History, { closed }: Life, call: Call): void {
  const { what, at, begun, abortedAt, abortedBefore, endedAt, error, timeout } = call
  const late = (since: number, why: string): void => {
    if (endedAt > since + 1)
      history.report('time', `${what} of ${at} ms ended at ${endedAt} ms, ${why}`)
  }
  if (abortedAt !== undefined && abortedAt <= endedAt)
    late(Math.max(abortedAt, at), `and was given up at ${abortedAt} ms`)
  if (abortedBefore === true && error === undefined)
    history.report('time', `${what} of ${at} ms was given up before, and was done`)
  if (closed !== undefined && begun < closed.seq)
    late(closed.at, `and the client was closed at ${closed.at} ms`)
  if (timeout !== undefined) late(at + Math.max(timeout, 5000), `and was given ${timeout} ms`)
}

function checkReceipt(
  history: History,
  qos: number,
  payload: string,
  { settled, error, value }: Call,
): void {
  if (settled === 0 || error !== undefined) return
  const { reasonCode = 0, packetId } = (value ?? {}) as {
    readonly reasonCode?: number
    readonly packetId?: number
  }
  // PUBCOMP says 0x92 to a PUBREL that is repeated on the next connection (section 4.4).
  const isTaken = reasonCode < 0x80 || (qos === 2 && reasonCode === 0x92)
  const isRight =
    qos === 0 ? packetId === undefined && reasonCode === 0 : Number(packetId) > 0 && isTaken
  if (!isRight)
    history.report(
      'receipt',
      `${payload} at QoS ${qos}: reason code ${reasonCode}, packet identifier ${packetId}`,
    )
}

/** Only endpoints of the list are dialled, and a new list counts at once. */
export function checkDials({ history, setup }: Checked): void {
  for (const { type, event, seq, process } of history.events) {
    if (type !== 'dial') continue
    const { endpoint = '' } = event as { readonly endpoint?: string }
    const most =
      history.lists.findLast((list) => list.process === process && list.seq < seq)?.count ??
      setup.endpoints
    const number = Number(/broker-(\d+)/.exec(endpoint)?.[1] ?? 0)
    if (number >= most)
      history.report('brokers', `${endpoint} was dialled, and the list has ${most}`)
  }
}
