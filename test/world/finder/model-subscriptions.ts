/**
 * Rules about what subscriptions were given: only what their filters ask for, whole, in order, nothing after their end, nothing missing.
 *
 * Pure. What a subscription must get is judged only where nothing allows it to miss something.
 */
import { type Facts, isCall, matches, outcomeOf, plainFilter, titleOf } from './facts.js'
import type { CallRecord, Delivery } from './history.js'
import type { Precision, Report } from './model.js'
import { callNamed, topicOf } from './naming.js'
import type { Call } from './program.js'

type Subscribe = CallRecord & { readonly call: Extract<Call, { readonly call: 'subscribe' }> }
type Publish = CallRecord & { readonly call: Extract<Call, { readonly call: 'publish' }> }

/** Ends of a reader behind which nothing may come. */
const final = ['unsubscribe', 'detach', 'dispose', 'break', 'end', 'done', 'failed']

/** Judges all subscriptions. */
export function checkSubscriptions(facts: Facts, precision: Precision, report: Report): void {
  const { calls, deliveries } = facts.history
  const subscriptions = new Map<number, Subscribe>()
  for (const record of calls) if (isCall(record, 'subscribe') && !record.nested) subscriptions.set(record.id, record)
  for (const delivery of deliveries) {
    const subscription = subscriptions.get(delivery.id)
    if (subscription === undefined) continue
    checkDelivery(facts, subscription, delivery, report)
    checkOver(facts, subscription, delivery, precision, report)
  }
  for (const subscription of subscriptions.values()) {
    const got = deliveries.filter(({ id }) => id === subscription.id)
    checkTwice(facts, subscription, got, report)
    checkOrder(facts, subscription, got, report)
    checkMissing(facts, subscription, got, report)
  }
}

function against(report: Report, rule: string, subscription: Subscribe, delivery: Delivery, what: string): void {
  const { name, topic, qos, at } = delivery
  report(rule, `${name} on ${topic} at QoS ${qos}, at ${at} ms, was given to a subscription ${what}: ${titleOf(subscription)}`)
}

function checkDelivery(facts: Facts, subscription: Subscribe, delivery: Delivery, report: Report): void {
  const { filters, options } = subscription.call
  const { topic, name, wrong, qos } = delivery
  if (!filters.some((filter) => matches(filter, topic))) against(report, 'filter', subscription, delivery, 'that has not asked for it')
  if (wrong !== undefined) against(report, 'bytes', subscription, delivery, `with ${wrong}`)
  const found = callNamed(facts.history.program, name)
  if (found === undefined) {
    if (!topic.startsWith('w/')) against(report, 'bytes', subscription, delivery, 'and nobody published it')
    return
  }
  if (found.call.call === 'publish' && (topicOf(found.call, name) !== topic || qos > found.call.qos))
    against(report, 'bytes', subscription, delivery, 'but was published otherwise')
  if (qos > Number(options['qos'] ?? 0) && !overlapping(facts, subscription)) against(report, 'filter', subscription, delivery, 'of a lower QoS')
  // A promise that was kept in the same instant cannot be taken back.
  if (subscription.how === 'rejected' && delivery.seq > subscription.settledSeq && delivery.at > subscription.settledAt)
    against(report, 'over', subscription, delivery, 'that was refused')
}

function checkOver(facts: Facts, subscription: Subscribe, delivery: Delivery, { slack }: Precision, report: Report): void {
  const { client, id, call } = subscription
  const end = facts.history.ended.get(id)
  // What was buffered for somebody who reads may still be read.
  const reads = call.reading.hold === undefined
  if (end !== undefined && (reads || end.how !== 'unsubscribe') && final.includes(end.how) && end.seq < delivery.seq && end.at < delivery.at)
    against(report, 'over', subscription, delivery, `that ended (${end.how})`)
  const left = facts.calls(client).find((record) => {
    if (!isCall(record, 'unsubscribe') || record.how !== 'fulfilled' || 'forget' in record.call) return false
    return call.filters.every((filter) => record.call.filters.includes(filter)) && record.seq > subscription.seq
  })
  if (left !== undefined && reads && left.settledSeq < delivery.seq && delivery.at > left.settledAt + slack)
    against(report, 'over', subscription, delivery, 'whose filters were unsubscribed')
  const destroyed = facts.ending(client, 'destroy')
  if (destroyed !== undefined && delivery.at > destroyed.at) against(report, 'over', subscription, delivery, 'of a client that was destroyed')
  const goodbye = facts.ending(client, 'disconnect', 'drain', 'dispose')
  // What comes of filters that are being left is handed out.
  const leaving = facts.calls(client).some((record) => {
    const about = isCall(record, 'leave')
      ? record.call.of === id
      : isCall(record, 'unsubscribe') && record.call.filters.some((each) => call.filters.includes(each))
    // When a call settles that is not waited for is not known.
    const isOver = record.how !== 'pending' && !('forget' in record.call) && record.settledSeq < (goodbye?.seq ?? 0)
    return about && record.seq < delivery.seq && !isOver
  })
  if (goodbye !== undefined && delivery.at > goodbye.at + slack && !leaving && !call.filters.some((filter) => filter.startsWith('$share/')))
    against(report, 'over', subscription, delivery, 'of a client that was leaving')
  const closed = facts.history.closed.find((each) => each.client === client)
  if (closed !== undefined && (reads || closed.error === undefined) && delivery.at > closed.at)
    against(report, 'over', subscription, delivery, 'of a client that was closed')
}

// At QoS 2, and where identifiers tell copies apart.
function checkTwice(facts: Facts, subscription: Subscribe, got: readonly Delivery[], report: Report): void {
  const { client, call } = subscription
  const old = facts.history.program.clients[client]?.options['protocolVersion'] !== undefined
  // Copies for the filters of one call cannot be told apart: whoever shares one of them gets both.
  const several = facts.calls(client).some((other) => isCall(other, 'subscribe') && other.call.filters.length > 1 && sharesOne(other.call, call))
  if (several || facts.events(client, 'sessionlost').length > 0 || (old && overlapping(facts, subscription))) return
  const live = got.filter(({ qos, retain }) => qos === 2 && !retain)
  const names = live.map(({ name }) => name)
  live.forEach((delivery, index) => {
    const taken = facts.history.taken.filter(({ name }) => name === delivery.name).length
    if (names.indexOf(delivery.name) < index && taken === 1) against(report, 'twice', subscription, delivery, 'twice')
  })
}

function overlapping(facts: Facts, { client, id }: Subscribe): boolean {
  return facts.calls(client).some((other) => isCall(other, 'subscribe') && other.id !== id)
}

function sharesOne(one: Subscribe['call'], other: Subscribe['call']): boolean {
  return one.filters.some((filter) => other.filters.includes(filter))
}

// Messages of one publisher, topic and QoS come in the order in which the broker took them; repeats and retained ones do not count.
function checkOrder(facts: Facts, subscription: Subscribe, got: readonly Delivery[], report: Report): void {
  const { call, client } = subscription
  if (Number(call.options['concurrency'] ?? 1) > 1 || facts.connects(client) > 1) return
  const place = new Map(facts.history.taken.map(({ name }, index) => [name, index]))
  const latest = new Map<string, Delivery>()
  for (const delivery of got) {
    if (delivery.retain || delivery.redelivered) continue
    const published = callNamed(facts.history.program, delivery.name)
    const key = `${published?.client} ${delivery.topic} ${delivery.qos}`
    const before = latest.get(key)
    if (before !== undefined && before.name !== delivery.name && (place.get(before.name) ?? 0) > (place.get(delivery.name) ?? 0))
      against(report, 'order', subscription, delivery, `behind ${before.name}`)
    latest.set(key, delivery)
  }
}

function checkMissing(facts: Facts, subscription: Subscribe, got: readonly Delivery[], report: Report): void {
  if (!attentive(facts, subscription)) return
  const { call } = subscription
  for (const record of facts.history.calls) {
    if (!isCall(record, 'publish') || !counts(facts, subscription, record)) continue
    const topic = topicOf(record.call, record.name)
    if (!call.filters.some((filter) => matches(filter, topic))) continue
    if (!got.some(({ name }) => name === record.name))
      report('missing', `${titleOf(record)}: ${outcomeOf(record)}, and never came to a subscription that reads: ${titleOf(subscription)}`)
  }
}

// It was there before, and everything between is without losses.
function counts(facts: Facts, subscription: Subscribe, record: Publish): boolean {
  const { calm } = facts.history
  const done = record.how === 'fulfilled' && record.call.qos > 0 && record.settledSeq < (calm?.seq ?? 0)
  return done && !('forget' in record.call) && record.seq > subscription.settledSeq && facts.peaceful(record.client)
}

/** True when nothing allows the subscription to miss a message at QoS 1 or 2. */
function attentive(facts: Facts, subscription: Subscribe): boolean {
  const { client, call, how, value, id, seq } = subscription
  const { history } = facts
  const options = history.program.clients[client]?.options ?? {}
  if (how !== 'fulfilled' || !facts.peaceful(client) || Number(call.options['qos'] ?? 0) === 0) return false
  if ((value as readonly unknown[]).some((qos) => qos === undefined) || call.filters.some((filter) => filter.startsWith('$'))) return false
  if (call.options['overflow'] !== undefined || options['subscriptions'] !== undefined || options['receiveMaximum'] !== undefined) return false
  const ended = history.ended.get(id)
  if (ended !== undefined && ended.seq < (history.calm?.seq ?? 0) + 1e9 && !endedLate(facts, ended)) return false
  if (call.until !== undefined || !reads(call)) return false
  const leaves = facts.calls(client).some((record) => {
    if (isCall(record, 'unsubscribe')) return record.seq > seq - 1e9 && record.call.filters.some((filter) => call.filters.includes(filter))
    if (isCall(record, 'leave')) return record.call.of === id
    return ['disconnect', 'drain', 'dispose', 'destroy'].includes(record.call.call) && record.id < 1000
  })
  return !leaves && !sharesFilter(facts, subscription)
}

// Ended with its client, after everything was calm.
function endedLate(facts: Facts, ended: { readonly at: number }): boolean {
  return ended.at >= (facts.history.calm?.to ?? 0)
}

function reads({ reading, through, inside, options }: Subscribe['call']): boolean {
  if (options['lifetime'] === 'borrowed') return false
  const { how, most, hold = 0 } = reading
  if (hold > 0) return false
  return through === 'listen' ? inside === undefined : how !== 'none' && most === undefined
}

// Another on the same filter may have left what is unacknowledged to it, or may hold its acknowledgements.
function sharesFilter(facts: Facts, { client, id, call }: Subscribe): boolean {
  const filters = call.filters.map(plainFilter)
  return facts
    .calls(client)
    .some((other) => isCall(other, 'subscribe') && other.id !== id && other.call.filters.some((each) => filters.includes(plainFilter(each))))
}
