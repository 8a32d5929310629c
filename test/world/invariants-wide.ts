/** What the history of a run must look like beyond I1 to I9: bytes, turns, what the broker holds, ends, and peace where nothing is wrong. */
import { MqttError } from '../../src/errors.js'
import { closedFilter, isHarsh, isPoison, mannersOf, mostFilters, smallPacket } from './habits.js'
import type { Call, History } from './history.js'
import {
  type Checked,
  concerns,
  detaches,
  does,
  droppedSizes,
  type Held,
  has,
  isFickle,
  isUnheard,
  overlapping,
  oversized,
  packets,
  sizeKey,
  toldLarge,
} from './invariants-tools.js'
import { differs, printed } from './payloads.js'
import { operationsOf } from './schedule.js'

/** Every byte that the broker took is what was published. */
function checkBytes({ history, broker, schedule }: Checked): void {
  const sizes = new Map<string, number>(
    history.published.map(({ op, payload }) => [payload, op.size ?? 0]),
  )
  const ops = new Map(history.published.map(({ op, payload }) => [payload, op]))
  for (const op of operationsOf(schedule.ops)) {
    if (op.do === 'post') sizes.set(`p${op.n}`, op.size ?? 0)
    else if (op.do === 'post-all')
      for (let index = 0; index < op.count; index++) sizes.set(`p${op.n + index}`, op.size ?? 0)
  }
  for (const { payload, bytes, topic, qos, retain, properties } of broker.accepted()) {
    // Answers, requests and reports are texts of their own.
    if (!/^[p!]/.test(payload)) continue
    const size = sizes.get(payload)
    const wrong =
      size === undefined ? 'of no message that was published' : differs(bytes, payload, size)
    if (wrong !== undefined)
      history.report('bytes', `${payload.slice(0, 20)} is with the broker, ${wrong}`)
    const op = ops.get(payload)
    if (op === undefined) continue
    if (op.topic !== topic || op.qos !== qos)
      history.report('bytes', `${payload} is with the broker on ${topic} at QoS ${qos}`)
    const options = (op.do === 'publish' ? op.options : undefined) ?? {}
    const isSame =
      optionsOf(retain, properties) ===
      optionsOf(options['retain'] === true, options['properties'] ?? {})
    if (!isSame) history.report('bytes', `${payload} is with the broker, and has other options`)
  }
}

function optionsOf(retain: boolean, properties: object): string {
  const { contentType, userProperties = [] } = properties as Readonly<Record<string, unknown>>
  return JSON.stringify([retain, contentType, userProperties])
}

/** `disconnect()` and `drain()` that end within their time have waited for the turns that ran. */
function checkTurns({ history, schedule }: Checked): void {
  const calls = endsOf(history)
  // Of several, the one that is in most of a hurry decides.
  if (does(schedule, 'destroy') || calls.length > 1) return
  for (const call of calls) {
    const { timeout = 0 } = call
    if (call.settled === 0 || call.error !== undefined || call.endedAt - call.at >= timeout)
      continue
    // Closed already, or for good by what the server said.
    const over = history.events.some(
      ({ type, event, seq }) =>
        type === 'serverdisconnect' || (isClosed(type, event) && seq < call.begun),
    )
    if (over) continue
    for (const { s, payload, seq, done, waits, process } of history.delivered) {
      if (process !== call.process || seq > call.ended || (done > 0 && done < call.ended)) continue
      // No turn runs between two attempts: there will be no other, and the message comes again.
      if (waits > 0 && waits < call.ended) continue
      const record = history.subscribed.find((other) => other.s === s && other.process === process)
      if (
        record === undefined ||
        !['loop', 'listen', 'batches'].includes(record.style) ||
        record.left < call.begun
      )
        continue
      history.report(
        'turn',
        `${call.what} ended after ${call.endedAt - call.at} of ${timeout} ms, while ${payload} was in hand`,
      )
    }
  }
}

const endsOf = ({ calls }: History): Call[] =>
  calls.filter(({ what }) => what === 'disconnect' || what === 'drain')
const isClosed = (type: string, event: unknown): boolean =>
  type === 'state' && (event as { state?: string }).state === 'closed'

/** What the broker holds while the client is connected and at rest is what the calls said. */
export function checkHeld(run: Held): void {
  const { history, broker, application } = run
  // A SUBACK that was lost leaves it open what the server holds.
  if (isFickle(run.setup) || has(run.schedule, 'drop-packet')) return
  if (detaches(run) || isUnheard(run) || history.process > 1 || run.setup.tokens) return
  // A connection that is new has its SUBSCRIBEs under way.
  const last = history.events.findLast(({ type }) => type === 'connect')
  // What was left over a dead link is not known to the server, until keep-alive finds out.
  if (last === undefined || !run.passable || run.now() - last.at < 3000) return
  const { clientId } = application.client
  const held = new Set(broker.filters(clientId) ?? [])
  const wanted = new Set(
    history.subscribed.filter(({ live }) => live).flatMap(({ filters }) => filters),
  )
  wanted.delete(closedFilter)
  for (const filter of wanted)
    if (!held.has(filter))
      history.report('held', `${filter} is subscribed to, and the broker does not know`)
  const open = history.subscribed
    .filter(({ granted, left, ended }) => granted === 0 && left === 0 && ended === undefined)
    .flatMap(({ filters }) => filters)
  for (const filter of held) {
    if (
      wanted.has(filter) ||
      open.includes(filter) ||
      !history.subscribed.some(({ filters }) => filters.includes(filter))
    )
      continue
    // A grant that could not be used may be left with a server; a filter that was left may not.
    if (
      history.subscribed.some(({ filters, dismissed }) => dismissed > 0 && filters.includes(filter))
    )
      history.report('held', `${filter} was left, and the broker still has it`)
  }
}

const moving = ['reconnect', 'restart-process', 'set-brokers'] as const
const ending = ['disconnect', 'drain', 'destroy'] as const
export const restless = [...moving, ...ending, 'reauthenticate', 'unsubscribe'] as const

/** After an orderly end nothing is left with the broker that the application was done with before, and no will was published. */
function checkEnd(run: Checked): void {
  const { history, broker, setup, schedule, monitor } = run
  const [end] = endsOf(history)
  if (end === undefined || end.settled === 0 || end.error !== undefined) return
  if (schedule.faults.length > 0 || history.process > 1 || isHarsh(setup.habit)) return
  if (detaches(run) || does(schedule, 'destroy')) return
  // Of several, whoever is in most of a hurry decides.
  if (
    operationsOf(schedule.ops).some(
      (op) => (op.do === 'disconnect' || op.do === 'drain') && op.timeout < 2000,
    )
  )
    return
  if (setup.clientId === '' || monitor.passed.length === 0) return
  for (const filter of broker.filters(setup.clientId) ?? []) {
    const readers = history.subscribed.filter(({ filters }) => filters.includes(filter))
    if (
      readers.length > 0 &&
      readers.every(({ dismissed }) => dismissed > 0 && dismissed < end.begun)
    )
      history.report('held', `${filter} was left before ${end.what}, and the broker still has it`)
  }
}

/** In a world without faults the client ends no connection but where it was asked to. */
function checkPeace({ history, schedule, setup }: Checked): void {
  if (
    schedule.faults.length > 0 ||
    setup.tokens ||
    setup.memoryBudget !== undefined ||
    isHarsh(setup.habit)
  )
    return
  if (does(schedule, ...moving, 'reauthenticate', 'destroy')) return
  const ended = endsOf(history)[0]?.begun ?? Number.POSITIVE_INFINITY
  // The caller has its bytes back at once: what is left of a large message is not copied beyond this limit, and the link is cut.
  const { maxQueuedBytes = Number.POSITIVE_INFINITY } = setup
  if (
    operationsOf(schedule.ops).some(
      (op) => op.do === 'abortable' && (op.size ?? 0) > maxQueuedBytes,
    )
  )
    return
  for (const { type, event, seq } of history.events) {
    if (type !== 'disconnect' || seq > ended) continue
    const { cause } = event as { cause?: unknown }
    // Undefined: after our own goodbye.
    if (cause !== undefined)
      history.report(
        'peace',
        `a connection ended although nothing was wrong: ${printed(cause).slice(0, 200)}`,
      )
  }
}

/** `destroy()` and `disconnect()` hand nothing out any more, but `disconnect()` what no other would get; `post()` never throws for what could be sent. */
function checkAfterwards({ history }: Checked): void {
  const { destroyed, destroyedIn } = history
  for (const { payload, seq, process } of history.delivered) {
    if (destroyed > 0 && seq > destroyed && process === destroyedIn)
      history.report('after', `${payload} was handed out after destroy()`)
  }
  for (let process = 1; process <= history.process; process++) {
    // `drain()` waits until everything is handed out.
    const end = history.calls.find(
      (call) => call.process === process && ['disconnect', 'drain'].includes(call.what),
    )
    if (end?.what !== 'disconnect') continue
    for (const { s, payload } of history.delivered.filter(
      (each) => each.process === process && each.seq > end.begun,
    )) {
      const record = history.subscribed.find((each) => each.s === s && each.process === process)
      const isLast =
        record === undefined ||
        record.dismissed > 0 ||
        // Its filter was being left, in vain.
        history.calls.some(
          (call) => call.process === process && call.what === `unsubscribe ${record.filter}`,
        ) ||
        record.filters.some((filter) => filter.startsWith('$share/'))
      if (!isLast) history.report('after', `${payload} was handed out after disconnect()`)
    }
  }
  for (const { what, error } of history.calls)
    if (what === 'post' && error !== undefined)
      history.report('after', `post() threw ${printed(error).slice(0, 200)}`)
}

/** Only what the server closes at is given up: a message, a filter, or more filters in one packet than a call has. */
function checkBlame({ history, setup, monitor, schedule }: Checked): void {
  const manners = mannersOf(setup.habit)
  const poisoned = manners.includes('poisoned')
  const closes = manners.includes('closes-at-filter')
  for (const { payload, call } of history.published) {
    if (!MqttError.is(call.error) || call.error.code !== 'ERR_POISONED') continue
    if (!poisoned || !isPoison(payload))
      history.report('blame', `${payload} was given up as poisoned`)
  }
  const refused = (error: unknown): boolean =>
    MqttError.is(error) && /^ERR_(UN)?SUBSCRIBE_REFUSED$/.test(error.code)
  const ops = operationsOf(schedule.ops)
  const calm = !has(schedule, 'takeover') && !does(schedule, ...restless, 'dispose', 'detach')
  for (const { what, error, settled } of history.calls) {
    const closed = closes && what === `subscribe ${closedFilter}`
    if (!closed && refused(error))
      history.report('blame', `${what} was refused, and the broker did not: ${String(error)}`)
    if (closed && settled > 0 && (error === undefined || (calm && !refused(error))))
      history.report('blame', `${what}, where the broker closes, ended with ${String(error)}`)
  }
  for (const { type, event } of history.events) {
    const { error } = event as { readonly error?: unknown }
    if (type === 'error' && refused(error)) history.report('blame', String(error))
  }
  if (
    !manners.includes('few-filters') ||
    ops.some((op) => op.do === 'subscribe' && (op.more ?? []).length >= mostFilters)
  )
    return
  for (const { way, seen } of monitor.passed)
    if (way === 'up' && seen.filters.length > mostFilters)
      history.report(
        'blame',
        `${seen.kind} with ${seen.filters.length} filters, no call had so many`,
      )
}

/** A message that is larger than the client takes is reported once for each copy at most, no other message is, and none of them is delivered. */
function checkSizes(run: Checked): void {
  const { history, monitor } = run
  const copies = oversized(run)
  const left = copies.map(sizeKey)
  for (const key of droppedSizes(history)) {
    const index = left.indexOf(key)
    if (index < 0)
      history.report('size', `${key} is reported as too large, and no such message came`)
    else left.splice(index, 1)
  }
  const fitting = new Set(
    monitor.passed.flatMap(({ way, seen }) =>
      way === 'down' && seen.size <= smallPacket ? [seen.payload] : [],
    ),
  )
  const large = new Set(copies.map(({ payload }) => payload))
  for (const { payload } of history.delivered)
    if (large.has(payload) && !fitting.has(payload))
      history.report('size', `${payload} is too large and was delivered`)
}

/** A member of a fleet that leaves in time hands out what came for its shared filter: nobody else gets it. */
function checkFleet(run: Checked): void {
  const { history, schedule, setup } = run
  const large = toldLarge(run)
  if (
    schedule.faults.length > 0 ||
    history.process > 1 ||
    isHarsh(setup.habit) ||
    setup.memoryBudget !== undefined
  )
    return
  const [end, ...others] = operationsOf(schedule.ops).filter(
    (op) => op.do === 'disconnect' || op.do === 'drain',
  )
  if (end === undefined || !('timeout' in end) || end.timeout < 5000 || others.length > 0) return
  if (does(schedule, 'destroy', 'reconnect', 'detach') || overlapping(history)) return
  for (const record of history.subscribed) {
    const { filter, drops, dismissed, style, granted, grantedAt } = record
    if (
      !filter.startsWith('$share/') ||
      drops ||
      dismissed > 0 ||
      !['loop', 'listen'].includes(style) ||
      granted === 0
    )
      continue
    for (const { seen, at } of packets(run, 'down', 'publish')) {
      if (!/^f\d/.test(seen.payload) || large.has(seen.payload)) continue
      if (!concerns(record, seen.topic) || at < grantedAt) continue
      if (!history.delivered.some(({ s, payload }) => s === record.s && payload === seen.payload))
        history.report(
          'fleet',
          `${seen.payload} came for ${filter} and was not handed out before ${end.do}() ended`,
        )
    }
  }
}

function checkRenewal({ history, schedule, setup }: Checked): void {
  if (!setup.tokens || schedule.faults.length > 0 || setup.habit !== 'none') return
  for (const { type, event } of history.events) {
    const { cause } = event as { cause?: unknown }
    if (type === 'disconnect' && MqttError.is(cause) && cause.code === 'ERR_CONNECTION_LOST')
      history.report('peace', `renewing credentials is told as ${printed(cause).slice(0, 200)}`)
  }
}

/** A link that is dead both ways is found out: keep-alive, half of it for the answer, and a moment. */
function checkDetection({ history, schedule, setup }: Checked): void {
  const [fault, ...others] = schedule.faults
  const { keepAlive } = setup
  if (fault?.kind !== 'stall' || fault.at === undefined || others.length > 0 || keepAlive === 0)
    return
  if ((fault.k ?? 0) < 60_000 || isHarsh(setup.habit) || does(schedule, ...moving, ...ending))
    return
  const { at } = fault
  // By then the network is whole.
  if (at > schedule.span) return
  const upBefore = history.events.findLast(
    (entry) => entry.at <= at && ['connect', 'disconnect'].includes(entry.type),
  )
  if (upBefore?.type !== 'connect') return
  const lost = history.events.find((entry) => entry.type === 'disconnect' && entry.at > at)
  const most =
    keepAlive * 1000 +
    Math.max(1000, Math.min(10_000, keepAlive * 500)) +
    500 +
    setup.pipe.latency * 2
  const took = (lost?.at ?? Number.POSITIVE_INFINITY) - at
  if (took > most)
    history.report(
      'dead',
      `a dead link was found after ${took} ms, ${most} are enough with keepAlive ${keepAlive}`,
    )
}

const sound = [checkBytes, checkTurns, checkEnd, checkPeace, checkAfterwards]
export const wideChecks = [
  ...sound,
  checkBlame,
  checkFleet,
  checkRenewal,
  checkDetection,
  checkSizes,
]
