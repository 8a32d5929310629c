/** What the history of a run must look like: I1 to I9 of the acceptance matrix, and what follows from them. */
import type { Message } from '../../src/client/options/index.js'
import { MqttError } from '../../src/errors.js'
import { mannersOf } from './habits.js'
import type { Delivered, History, Subscribed } from './history.js'
import { checkCalls, checkDials } from './invariants-calls.js'
import {
  type Checked,
  concerns,
  detaches,
  does,
  has,
  isFickle,
  isUnheard,
  lastLoss,
  overlapping,
  packets,
  retainedPayloads,
  sessionLosses,
  toldLarge,
} from './invariants-tools.js'
import { restless, wideChecks } from './invariants-wide.js'
import { printed, tells } from './payloads.js'
import { operationsOf } from './schedule.js'

/** Runs every check; findings go to the history. */
export function checkHistory(run: Checked): void {
  const sound = [
    checkNoLoss,
    checkOnce,
    checkAcceptedOrder,
    checkDeliveryOrder,
    checkFabrication,
    checkSettlement,
  ]
  const seen = [checkProtocol, checkLifecycle, checkAcks, checkWills, checkAnswers, checkSecrets]
  for (const check of [...sound, ...seen, ...wideChecks, checkCalls, checkDials]) check(run)
}

/** I1: what ended well is with the broker; what was certainly not sent, or refused, is not. */
function checkNoLoss({ history, broker }: Checked): void {
  const accepted = new Set(broker.accepted().map(({ payload }) => payload))
  for (const { op, payload, call } of history.published) {
    if (call.settled === 0) continue
    const { error } = call
    if (error === undefined) {
      if (op.qos > 0 && !accepted.has(payload))
        history.report(
          'I1',
          `${payload} at QoS ${op.qos} was acknowledged and is not with the broker`,
        )
      continue
    }
    if (!MqttError.is(error) || error.outcome === undefined)
      history.report('I1', `${payload} failed without an outcome: ${String(error)}`)
    else if (error.outcome !== 'unknown' && accepted.has(payload))
      history.report('I1', `${payload} ended ${error.outcome} and is with the broker`)
  }
}

/** I2: QoS 2 at most once, both ways; a second copy at QoS 1 says that it is one. */
function checkOnce(run: Checked): void {
  const { history, broker, setup, monitor, schedule } = run
  const lost = sessionLosses(monitor.passed) > 0
  const unheard = isUnheard(run)
  const counts = new Map<string, number>()
  for (const { payload, qos } of broker.accepted()) {
    const count = (counts.get(payload) ?? 0) + 1
    counts.set(payload, count)
    if (qos === 2 && count > 1 && !unheard && !(lost && setup.onSessionLost === 'republish'))
      history.report('I2', `${payload} at QoS 2 is with the broker ${count} times`)
  }
  if (overlapping(history) || does(schedule, 'detach')) return
  const doubled = has(schedule, 'double-packet')
  const retained = retainedPayloads(schedule)
  const seen = new Set<string>()
  for (const { payload, qos, process, s, redelivered } of history.delivered) {
    if (qos === 0 || retained.has(payload)) continue
    const key = `${process} ${s} ${payload}`
    const isFirst = !seen.has(key)
    seen.add(key)
    if (isFirst || lost) continue
    if (qos === 2)
      history.report('I2', `${payload} at QoS 2 was delivered twice to subscription ${s}`)
    else if (!redelivered && !doubled && (counts.get(payload) ?? 1) < 2)
      history.report('I2', `${payload} at QoS 1 was delivered again and does not say so`)
  }
}

/** I3: the broker got first copies in the order of the calls. */
function checkAcceptedOrder({ history, broker }: Checked): void {
  const order = new Map(history.published.map(({ payload }, index) => [payload, index]))
  const seen = new Set<string>()
  const last = [-1, -1, -1]
  for (const { payload, qos } of broker.accepted()) {
    const index = order.get(payload)
    if (seen.has(payload) || index === undefined) continue
    seen.add(payload)
    const before = last[qos] as number
    if (index < before)
      history.report(
        'I3',
        `${payload} came to the broker after ${history.published[before]?.payload}`,
      )
    last[qos] = Math.max(before, index)
  }
}

/** I3: a subscription gets messages in the order in which they came. */
function checkDeliveryOrder(run: Checked): void {
  const { history, schedule } = run
  if (overlapping(history)) return
  const retained = retainedPayloads(schedule)
  const arrival = new Map<string, number>()
  for (const [index, { seen }] of packets(run, 'down', 'publish').entries()) {
    if (seen.topic !== '' && !arrival.has(seen.payload)) arrival.set(seen.payload, index)
  }
  const last = new Map<string, Delivered>()
  const before = new Set<string>()
  for (const entry of history.delivered) {
    // Several handlers at a time keep the order of each topic.
    const record = history.subscribed.find(
      ({ s, process }) => s === entry.s && process === entry.process,
    )
    const key = `${entry.process} ${entry.s}${(record?.concurrency ?? 1) > 1 ? ` ${entry.topic}` : ''}`
    if (retained.has(entry.payload) || before.has(`${key} ${entry.payload}`)) continue
    before.add(`${key} ${entry.payload}`)
    const previous = last.get(key)
    last.set(key, entry)
    if (previous === undefined) continue
    const { payload, done } = previous
    if (
      record !== undefined &&
      ordered(record) &&
      (record.left === 0 || record.left > entry.seq) &&
      !(done > 0 && done < entry.seq)
    )
      history.report(
        'I3',
        `${entry.payload} was handled while ${payload} of the same topic was in hand`,
      )
    if ((arrival.get(payload) ?? 0) > (arrival.get(entry.payload) ?? 0))
      history.report(
        'I3',
        `subscription ${entry.s} got ${payload} before ${entry.payload}, which came first`,
      )
  }
}

// Handlers of a filter with wildcards keep the order of each topic, however many run at a time.
function ordered({ style, concurrency, filter }: Subscribed): boolean {
  return style === 'listen' && concurrency > 1 && /[+#]/.test(filter)
}

/** I4: what is delivered came from the broker, with its topic, to whom it concerns. */
function checkFabrication(run: Checked): void {
  const { history, schedule } = run
  const came = new Set(packets(run, 'down', 'publish').map(({ seen }) => seen.payload))
  const topics = new Map<string, string>()
  for (const op of operationsOf(schedule.ops)) {
    if (op.do === 'feed') topics.set(`f${op.n}`, op.topic)
    if (op.do === 'post') topics.set(`p${op.n}`, op.topic)
  }
  for (const { op, payload } of history.published) topics.set(payload, op.topic)
  for (const { s, payload, topic, process } of history.delivered) {
    if (!came.has(payload)) history.report('I4', `${payload} was delivered and never came`)
    const wanted = topics.get(payload)
    if (wanted !== undefined && wanted !== topic)
      history.report('I4', `${payload} was delivered with topic ${topic}, not ${wanted}`)
    const record = history.subscribed.find((other) => other.s === s && other.process === process)
    if (record !== undefined && !concerns(record, topic))
      history.report('I4', `${topic} was delivered to a subscription of ${record.filter}`)
  }
}

/** I5: a call settles once at most, and fails with a typed error. */
function checkSettlement({ history }: Checked): void {
  for (const { what, settled, error } of history.calls) {
    if (settled > 1) history.report('I5', `${what} settled ${settled} times`)
    if (error !== undefined && !MqttError.is(error))
      history.report('I5', `${what} failed with an untyped error: ${printed(error).slice(0, 300)}`)
  }
}

/** I6: neither the monitor nor the broker saw a rule broken. */
function checkProtocol({ history, monitor, broker, schedule, setup }: Checked): void {
  const poisoned = mannersOf(setup.habit).includes('poisoned')
  for (const { rule, detail } of monitor.violations) {
    // What was given up as poisoned is not sent again.
    if (poisoned && rule === 'replay' && /replay of \S+ p(3|14|25|36) /.test(detail)) continue
    history.report('I6', `${rule}: ${detail}`)
  }
  // The broker does not know which of its packets the world lost or doubled, nor that time stood still.
  if (has(schedule, 'drop-packet', 'double-packet')) return
  const patient = has(schedule, 'jump', 'stall', 'stall-up', 'stall-down', 'delay-packet')
  // A new process cannot know which identifiers the old one left in use on the server; it is told (0x91) and takes another.
  const forgetful = does(schedule, 'restart-process')
  for (const violation of broker.violations()) {
    // What comes behind a message at which the link was cut is read by nobody else.
    if (poisoned && violation.includes('alias without a topic')) continue
    if (patient && /silent|in time/.test(violation)) continue
    if (forgetful && violation.includes('identifier in use')) continue
    history.report('I6', `the broker says ${violation}`)
  }
}

/** I9: connect and disconnect alternate and pair, states follow each other, a lost session is announced. */
function checkLifecycle({ history, monitor, setup }: Checked): void {
  for (let process = 1; process <= history.process; process++) checkProcess(history, process)
  if (history.process > 1 || (setup.version !== 5 && setup.cleanStart)) return
  const announced = history.events.filter(({ type }) => type === 'sessionlost').length
  const lost = sessionLosses(monitor.passed)
  // A session that ran out while we were away is announced before the server says so.
  if (announced < lost)
    history.report('I9', `the session was lost ${lost} times and announced ${announced} times`)
}

function checkProcess(history: History, process: number): void {
  let up = false
  let state = 'idle'
  // What the last dial came to, and whether the next one was announced.
  let dial: 'none' | 'open' | 'over' = 'none'
  let announced = true
  let again = false
  let lostAt = 0
  for (const { type, event, at, process: whose } of history.events) {
    if (whose !== process) continue
    if (type === 'dial') {
      // A client that is ending comes back to send what it has, and tells nobody that it is connected: what it tells is that it tries again.
      if (dial === 'open' && !(state === 'disconnecting' && again))
        history.report('I9', 'a dial event while an attempt is under way')
      // One that follows at once needs no announcement.
      if (!announced && at > lostAt)
        history.report('I9', 'a dial event without reconnecting before it')
      dial = 'open'
      again = false
    } else if (type === 'reconnecting') announced = again = true
    else if (type === 'connecterror') dial = 'over'
    else if (type === 'connect') {
      dial = 'over'
      announced = false
      if (up) history.report('I9', 'two connect events without a disconnect between them')
      up = true
    } else if (type === 'disconnect') {
      if (!up) history.report('I9', 'a disconnect event without a connect')
      up = false
      lostAt = at
    } else if (type === 'state') {
      const change = event as { state: string; previous: string }
      if (change.previous !== state || change.state === state)
        history.report('I9', `state ${change.previous} -> ${change.state} after ${state}`)
      if (state === 'closed') history.report('I9', `state ${change.state} after closed`)
      state = change.state
    }
  }
  if (up && process === history.process)
    history.report('I9', 'a connect event without a disconnect')
}

/** No acknowledgement before the application was done with the message. */
function checkAcks(run: Checked): void {
  const { history, schedule } = run
  const unheard = isUnheard(run)
  const topics = new Map<string, string>()
  for (const { seen } of packets(run, 'down', 'publish'))
    if (seen.topic !== '') topics.set(seen.payload, seen.topic)
  if (does(schedule, 'detach', 'restart-process')) return
  // A retained copy may be for another subscription than the first one.
  const retained = retainedPayloads(schedule)
  const large = toldLarge(run)
  for (const { payload, reason, repeat, seq } of history.acks) {
    const topic = topics.get(payload)
    if (
      reason >= 0x80 ||
      repeat ||
      topic === undefined ||
      retained.has(payload) ||
      large.has(payload)
    )
      continue
    const readers = history.subscribed.filter((record) => record.qos > 0 && concerns(record, topic))
    const [reader] = readers
    if (
      reader === undefined ||
      readers.length > 1 ||
      !waits(reader, seq) ||
      wasRefused(history, reader, seq)
    )
      continue
    const copies = history.delivered.filter(
      (other) => other.payload === payload && other.s === reader.s,
    )
    // In a session that the client has not heard of an identifier may stand for another message.
    if (copies.length === 0 && unheard) continue
    if (copies.length === 0)
      history.report(
        'I1',
        `${payload} was acknowledged and never delivered to subscription ${reader.s}`,
      )
    else if (!copies.some((copy) => copy.seq < seq))
      history.report('I1', `${payload} was acknowledged before it was delivered`)
    else if (!copies.some((copy) => copy.done > 0 && copy.done < seq))
      history.report('I1', `${payload} was acknowledged before its turn had ended`)
  }
}

// A server that changed its limits cannot have it any more: the client said so before this entry, and what still came was for nobody.
function wasRefused({ events }: History, { ended, filters }: Subscribed, before: number): boolean {
  const errors = events
    .filter(({ type, seq }) => type === 'error' && seq < before)
    .map(({ event }) => (event as { error: Error }).error)
  // Of several filters it may keep the others.
  return errors.some(
    (error) =>
      error === ended?.error || filters.some((filter) => error.message.endsWith(`: ${filter}`)),
  )
}

// A subscription whose messages are acknowledged when the application is done with them.
function waits({ style, left, granted, drops }: Subscribed, seq: number): boolean {
  return (
    !drops && style !== 'on-receive' && granted > 0 && granted < seq && (left === 0 || left > seq)
  )
}

// A link that is stuck for a while gets the time that the call gave: no will. But a server that hears nothing for 1.5 times the keep-alive publishes it.
function checkPatience({ history, monitor, broker, setup, schedule }: Checked): void {
  const [end, ...others] = operationsOf(schedule.ops).filter(
    (op) => op.do === 'disconnect' || op.do === 'destroy',
  )
  const [fault, ...more] = schedule.faults
  if (
    end?.do !== 'disconnect' ||
    others.length + more.length > 0 ||
    fault?.kind !== 'stall' ||
    fault.at === undefined
  )
    return
  const over = fault.at + (fault.k ?? 0)
  const stalled = fault.at
  const heard = monitor.passed.findLast(({ way, at }) => way === 'up' && at < stalled)?.at ?? 0
  if (setup.keepAlive > 0 && over - heard > setup.keepAlive * 1500) return
  if (stalled < end.at && over < end.at + end.timeout - 1500 && broker.wills() > 0)
    history.report(
      'will',
      `the will was published although the link came back ${over - end.at} ms after disconnect(${end.timeout})`,
    )
}

/** A connection that ends with DISCONNECT 0x00 publishes no will. */
function checkWills(run: Checked): void {
  const { history, broker, setup, schedule } = run
  if (!setup.will) return
  checkPatience(run)
  if (schedule.faults.length > 0) return
  const goodbyes = packets(run, 'up', 'disconnect').filter(({ seen }) => seen.reason === 0)
  const parted = new Set(goodbyes.map(({ connection }) => connection))
  const opened = new Set(packets(run, 'up', 'connect').map(({ connection }) => connection))
  const most = [...opened].filter((connection) => !parted.has(connection)).length
  // A goodbye that was on its way may have been cut off with its link, and behind much that leaves slowly it is given up.
  if (setup.pipe.rateUp === undefined && broker.wills() > most)
    history.report(
      'will',
      `${broker.wills()} wills were published, ${most} connections ended without DISCONNECT`,
    )
  // What was given up before CONNACK has no session, and so no will.
  const accepted = packets(run, 'down', 'connack').some(({ seen }) => seen.reason === 0)
  if (does(schedule, 'destroy') && accepted && most > 0 && broker.wills() === 0)
    history.report('will', 'the client was destroyed and its will was not published')
}

function checkAnswers({ history, schedule, setup }: Checked): void {
  const failing = operationsOf(schedule.ops).some(
    (op) => op.do === 'respond' && op.fails === true && op.at < 50,
  )
  const calm =
    schedule.faults.length === 0 && setup.habit === 'none' && !does(schedule, ...restless)
  const requests = operationsOf(schedule.ops).filter(
    (op) => op.do === 'request' && op.careless !== true,
  )
  for (const [index, call] of history.calls
    .filter(({ what }) => what.startsWith('request'))
    .entries()) {
    const op = requests[index]
    if (op?.do !== 'request' || call.settled === 0) continue
    if (call.error !== undefined) {
      if (failing && calm && !(MqttError.is(call.error) && call.error.code === 'ERR_REMOTE'))
        history.report(
          'I4',
          `request r${op.n} of a responder that throws ended with ${String(call.error)}`,
        )
      continue
    }
    const text = (call.value as Message).text()
    if (text !== `answer to r${op.n}`) history.report('I4', `request r${op.n} got '${text}'`)
  }
}

function checkSecrets({ history, schedule }: Checked): void {
  for (const { what, error } of history.calls) {
    if (error === undefined) continue
    if (tells(schedule.seed % 8 === 0 ? printed(error) : String(error)))
      history.report('canary', `the error of ${what} tells a secret`)
  }
}

/** Messages at QoS 1 and 2 that must have been delivered by now: of others, to subscriptions that lived all the time, in a session that lived. */
export function missing(run: Checked): string[] {
  const { history, monitor, schedule } = run
  if (detaches(run) || isUnheard(run) || isFickle(run.setup)) return []
  const since = lastLoss(monitor.passed)
  const feeds = operationsOf(schedule.ops).filter((op) => op.do === 'feed' && op.qos > 0)
  const large = toldLarge(run)
  const found: string[] = []
  for (const record of history.subscribed) {
    const { live, drops, process, grantedQos, grantedAt, s } = record
    if (!live || drops || process !== history.process || grantedQos === 0 || grantedAt < since)
      continue
    const got = new Set(
      history.delivered.flatMap((entry) =>
        entry.s === s && entry.process === process ? [entry.payload] : [],
      ),
    )
    for (const op of feeds) {
      if (op.do !== 'feed' || op.at <= grantedAt || !concerns(record, op.topic)) continue
      const payload = `f${op.n}`
      if (!large.has(payload) && !got.has(payload)) found.push(payload)
    }
  }
  return found
}
