/**
 * Rules about what a program published: what the broker took of it, how often, in which order, with which bytes.
 *
 * Pure. The observer sees what the broker took over, once for each time.
 */
import { MqttError } from '../../../src/errors.js'
import { type Facts, isCall, isForgotten, outcomeOf, titleOf } from './facts.js'
import type { CallRecord, Taken } from './history.js'
import type { Report } from './model.js'
import { callNamed, topicOf } from './naming.js'

/** Judges all publishes. */
export function checkPublishes(facts: Facts, report: Report): void {
  const taken = new Map<string, Taken[]>()
  for (const each of facts.history.taken) {
    if (each.will || each.topic.startsWith('w/')) continue
    checkTaken(facts, each, report)
    taken.set(each.name, [...(taken.get(each.name) ?? []), each])
  }
  for (const record of facts.history.calls) {
    if (isCall(record, 'publish')) checkPublish(facts, record, taken.get(record.name) ?? [], report)
    if (isCall(record, 'post')) checkPost(facts, record, taken.get(record.name) ?? [], report)
  }
  checkOrder(facts, report)
}

// What it took is what was given.
function checkTaken(facts: Facts, taken: Taken, report: Report): void {
  const found = callNamed(facts.history.program, taken.name)
  const against = (what: string): void => report('bytes', `the broker took ${taken.name} on ${taken.topic}: ${what}`)
  if (found === undefined) return against('nobody published that')
  if (taken.wrong !== undefined) against(taken.wrong)
  const { call } = found
  if (call.call === 'request') return
  if (taken.topic !== topicOf(call, taken.name)) against(`the topic was ${topicOf(call, taken.name)}`)
  if (call.call !== 'publish') return
  if (taken.qos !== call.qos) against(`QoS ${taken.qos}, not ${call.qos}`)
  if (taken.retain !== (call.options['retain'] === true)) against(`retain ${taken.retain}`)
  const { userProperties, contentType } = (call.options['properties'] ?? {}) as Record<string, unknown>
  if (contentType !== taken.properties['contentType']) against(`the content type ${String(taken.properties['contentType'])}`)
  if (JSON.stringify(userProperties ?? []) !== JSON.stringify(taken.properties['userProperties'] ?? [])) against('other user properties')
}

type Publish = CallRecord & { readonly call: { readonly call: 'publish'; readonly qos: number } }

function checkPublish(facts: Facts, record: Publish, taken: readonly Taken[], report: Report): void {
  const { client, how, error, value, call } = record
  const { qos } = call
  const count = taken.length
  const against = (rule: string): void => report(rule, `${titleOf(record)}: ${outcomeOf(record)}, and the broker took it ${count} times`)
  const lost = facts.events(client, 'sessionlost').length > 0
  if (qos !== 1 && count > 1 && !lost) against('twice')
  if (qos === 1 && count > 1 && facts.events(client, 'dial').length < 2) against('twice')
  if (isForgotten(record)) return
  if (how === 'fulfilled' && qos > 0 && count === 0) against('lost')
  if (how === 'fulfilled' && qos === 0 && count === 0 && facts.peaceful(client)) against('lost')
  if (how === 'fulfilled') return checkReceipt(facts, record, value as Readonly<Record<string, unknown>>, report)
  if (!MqttError.is(error)) return
  if (error.outcome === 'not-sent' && count > 0) against('not-sent')
  if (error.outcome === 'refused') against('refused')
}

function checkReceipt(facts: Facts, record: Publish, receipt: Readonly<Record<string, unknown>>, report: Report): void {
  const { reasonCode, packetId } = receipt
  // PUBCOMP says 0x92 to a PUBREL that is repeated on the next connection (section 4.4). One that is made while the client ends has no `connect` event.
  if (reasonCode === 0x92 && record.call.qos === 2 && facts.events(record.client, 'dial').length > 1) return
  const right =
    record.call.qos === 0 ? packetId === undefined && reasonCode === 0 : typeof packetId === 'number' && packetId > 0 && Number(reasonCode) < 0x80
  if (!right) report('receipt', `${titleOf(record)}: reason code ${String(reasonCode)}, packet identifier ${String(packetId)}`)
}

function checkPost(facts: Facts, record: CallRecord, taken: readonly Taken[], report: Report): void {
  const { how, value, client } = record
  const against = (rule: string): void => report(rule, `${titleOf(record)}: ${outcomeOf(record)}, and the broker took it ${taken.length} times`)
  if (how !== 'fulfilled') return
  if (value !== true && value !== false) against('receipt')
  if (value === true && taken.length === 0 && facts.peaceful(client)) against('lost')
  if (value === false && taken.length > 0) against('not-sent')
  if (taken.length > 1) against('twice')
}

// One publisher, one topic, one QoS: the first time each was taken is in the order of the calls [MQTT-4.6.0-6].
function checkOrder(facts: Facts, report: Report): void {
  const place = new Map<string, number>()
  facts.history.taken.forEach(({ name }, index) => {
    if (!place.has(name)) place.set(name, index)
  })
  const latest = new Map<string, CallRecord>()
  for (const record of facts.history.calls) {
    if (!isCall(record, 'publish') || !place.has(record.name)) continue
    const key = JSON.stringify([record.client, topicOf(record.call, record.name), record.call.qos])
    const before = latest.get(key)
    if (before !== undefined && (place.get(before.name) ?? 0) > (place.get(record.name) ?? 0))
      report('order', `the broker took ${record.name} before ${before.name}: ${titleOf(before)}; ${titleOf(record)}`)
    else latest.set(key, record)
  }
}
