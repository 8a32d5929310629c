/**
 * Rules about the life of a client: the order of states and events, dials and their number, brokers, wills, the end.
 *
 * Pure.
 */
import { codeOf, type Facts, isCall } from './facts.js'
import type { EventRecord } from './history.js'
import type { Precision, Report } from './model.js'
import { beginnerAborted } from './model-calls.js'
import type { EndpointName } from './program.js'

/** State to the states that may follow (`docs/events.md`). */
const legal: Readonly<Record<string, readonly string[]>> = {
  idle: ['connecting', 'disconnecting', 'closed'],
  connecting: ['connected', 'disconnecting', 'closed'],
  connected: ['reconnecting', 'disconnecting', 'closed'],
  reconnecting: ['connected', 'disconnecting', 'closed'],
  disconnecting: ['closed'],
  closed: [],
}

const reachable: readonly EndpointName[] = ['good', 'other', 'late']

/** Judges the life of each client. */
export function checkLife(facts: Facts, precision: Precision, report: Report): void {
  facts.history.program.clients.forEach((_plan, client) => {
    const against: Report = (rule, detail) => report(rule, `client ${client}: ${detail}`)
    checkStates(facts, client, against)
    checkConnections(facts, client, against)
    checkBrokers(facts, client, against)
    checkAttempts(facts, client, against)
    checkPeace(facts, client, against)
    checkBack(facts, client, precision, against)
    checkWill(facts, client, against)
    checkClosed(facts, client, against)
  })
}

function checkStates(facts: Facts, client: number, report: Report): void {
  let state = 'idle'
  for (const { event, at } of facts.events(client, 'state')) {
    const next = String(event['state'])
    if (event['previous'] !== state) report('events', `a state event says ${String(event['previous'])} where the state was ${state}, at ${at} ms`)
    if (legal[state]?.includes(next) !== true) report('events', `${state} became ${next}, at ${at} ms`)
    state = next
  }
}

// One `disconnect` for each `connect`, and nothing but what was let go after the end.
function checkConnections(facts: Facts, client: number, report: Report): void {
  let up = false
  for (const { type, at } of facts.events(client, 'connect', 'disconnect')) {
    if (up === (type === 'connect')) report('events', `a second ${type} event in a row, at ${at} ms`)
    up = type === 'connect'
  }
  const closed = facts.events(client, 'state').find(({ event }) => event['state'] === 'closed')
  if (closed === undefined) return
  if (up) report('events', 'a connect event without its disconnect event')
  const late = facts.history.events.find(
    (event) => event.client === client && event.seq > closed.seq && !['drop', 'disconnect', 'error'].includes(event.type),
  )
  if (late !== undefined) report('events', `a ${late.type} event after it was closed, at ${late.at} ms`)
}

function nameOf(facts: Facts, event: EventRecord): EndpointName {
  return facts.history.nameOf(String(event.event['endpoint']))
}

// A new list counts at once.
function checkBrokers(facts: Facts, client: number, report: Report): void {
  for (const event of facts.events(client, 'dial')) {
    const name = nameOf(facts, event)
    const list = facts.endpointsAt(client, event.seq)
    if (!list.includes(name)) report('brokers', `dialled ${name} at ${event.at} ms, when the list was ${list.join(', ')}`)
  }
  for (const event of facts.events(client, 'connect')) {
    const name = nameOf(facts, event)
    const list = facts.endpointsAt(client, event.seq)
    const asked = facts.calls(client).findLast((record) => isCall(record, 'setBrokers') && record.how === 'fulfilled' && record.seq < event.seq)
    if (asked !== undefined && !['connected', 'disconnecting'].includes(asked.state) && !list.includes(name))
      report('brokers', `connected to ${name} at ${event.at} ms, when the list was ${list.join(', ')}`)
  }
}

// maxAttempts gives up after exactly that many dials since a connection that was stable.
function checkAttempts(facts: Facts, client: number, report: Report): void {
  const plan = facts.history.program.clients[client]
  const most = plan?.maxAttempts
  if (plan === undefined || most === undefined || plan.options['reconnect'] === false || plan.options['protocolVersion'] === 'auto') return
  const meddled = facts.calls(client).some(({ call }) => ['setBrokers', 'reconnect', 'connect'].includes(call.call) && call.call !== 'connect')
  const waits = plan.options['firstConnect'] === 'wait' || facts.connects(client) > 0
  if (meddled || !waits || plan.endpoints.includes('banned')) return
  const stable = plan.stableAfter ?? 30_000
  let dials = 0
  // The one round of `firstConnect: 'reject'` goes over the whole list.
  let counts = plan.options['firstConnect'] === 'wait'
  let since = Number.NEGATIVE_INFINITY
  let exact = true
  let first = true
  for (const { type, at } of facts.events(client, 'dial', 'connect', 'disconnect')) {
    if (type === 'dial' && counts) dials += 1
    if (type === 'connect') since = at
    if (type === 'disconnect') {
      // What counts after a connection that was not stable is left open here.
      exact = at - since > stable || facts.events(client, 'connect').length === 1
      dials = 0
      counts = true
    }
    // What led to the first connection was not to come back.
    if (type === 'connect' && first) dials = 0
    if (type === 'connect') first = false
    // The first round goes over the whole list, whatever the limit.
    const bound = first ? Math.max(most, plan.endpoints.length) : most
    if (dials > bound) return report('attempts', `${dials} dials in a row with maxAttempts ${most}`)
  }
  const closed = facts.history.closed.find((each) => each.client === client)
  if (
    closed !== undefined &&
    codeOf(closed.error) === 'ERR_RETRIES_EXHAUSTED' &&
    exact &&
    dials !== (first ? Math.max(most, plan.endpoints.length) : most)
  )
    report('attempts', `gave up after ${dials} dials with maxAttempts ${most}`)
}

// No connection is lost where nothing goes wrong.
function checkPeace(facts: Facts, client: number, report: Report): void {
  if (facts.troubled) return
  for (const { event, at } of facts.events(client, 'disconnect')) {
    const { cause } = event
    // Who gives up a large message in the middle of its packet has the connection cut.
    if ((cause as Error | undefined)?.message === 'given up midway' && limitedBytes(facts, client)) continue
    if (cause !== undefined && !facts.calls(client).some(({ call }) => call.call === 'destroy'))
      report('peace', `a connection was lost at ${at} ms although nothing went wrong: ${codeOf(cause)} ${String(cause)}`)
  }
}

function limitedBytes(facts: Facts, client: number): boolean {
  const outbound = facts.history.program.clients[client]?.options['outbound'] as { readonly maxQueuedBytes?: number } | undefined
  return outbound?.maxQueuedBytes !== undefined
}

// With a broker in the list it comes back.
function checkBack(facts: Facts, client: number, { slack }: Precision, report: Report): void {
  const { calm, program } = facts.history
  const plan = program.clients[client]
  if (calm === undefined || plan === undefined || calm.to - calm.from < 4000 + slack || plan.auth === true) return
  const state = facts.events(client, 'state').findLast(({ at }) => at <= calm.to)?.event['state']
  const list = facts.endpointsAt(client, calm.seq)
  if ((state === 'connecting' || state === 'reconnecting') && list.some((name) => reachable.includes(name)))
    report('back', `still ${state} after ${calm.to - calm.from} ms of calm, with the endpoints ${list.join(', ')}`)
}

function checkWill(facts: Facts, client: number, report: Report): void {
  const plan = facts.history.program.clients[client]
  if (plan?.will !== true || facts.events(client, 'dial').length !== 1 || facts.connects(client) !== 1 || facts.troubled) return
  const wills = facts.history.taken.filter(({ topic }) => topic === `w/c${client}`).length
  const destroyed = facts.ending(client, 'destroy')
  if (facts.peaceful(client) && wills > 0) report('will', `the will was published ${wills} times although the client said goodbye`)
  // A connection that we replace ourselves has said goodbye.
  const replaced = facts.calls(client).some(({ call }) => call.call === 'reconnect' && call.force)
  if (destroyed?.state === 'connected' && !replaced && wills !== 1) report('will', `the will was published ${wills} times after destroy()`)
}

// `closed` tells of what ended the client, and of nothing where the program did.
function checkClosed(facts: Facts, client: number, report: Report): void {
  const ends = facts.history.closed.filter((each) => each.client === client)
  if (ends.length > 1) report('events', `closed settled ${ends.length} times`)
  const [end] = ends
  if (end === undefined || end.error === undefined) return
  const code = codeOf(end.error)
  if (code.startsWith('no ')) report('kinds', `closed fulfilled with ${code}`)
  const last = { client, settledSeq: end.seq }
  if (code === 'ERR_ABORTED' && !beginnerAborted(facts, last)) report('reason', `it ended with ${String(end.error)}, which nobody asked for`)
}
