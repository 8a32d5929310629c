/** A run made by hand, for the tests of what a run must look like. */
import { MqttError } from '../../src/errors.js'
import type { Accepted } from './broker.js'
import { type Call, type Delivered, History, type Subscribed } from './history.js'
import { checkHistory } from './invariants.js'
import type { Checked } from './invariants-tools.js'
import type { Passed } from './monitor.js'
import * as packet from './packets.js'
import { payloadOf } from './payloads.js'
import { readPacket } from './reader.js'
import { defaultSetup, type Fault, type Op, type Setup } from './schedule.js'

/** A run made by hand: nothing in it is wrong until a test makes it so. */
export class Story {
  readonly history = new History(() => 0)
  readonly passed: Passed[] = []
  readonly accepted: Accepted[] = []
  readonly violations: { rule: string; detail: string }[] = []
  readonly complaints: string[] = []
  readonly ops: Op[] = []
  readonly faults: Fault[] = []
  setup: Partial<Setup> = {}
  begun = 0
  seed = 1
  wills = 0
  span = 0
  filters: string[] | undefined
  now = 0

  get run(): Checked {
    return {
      history: this.history,
      monitor: { violations: this.violations, passed: this.passed },
      broker: { accepted: () => this.accepted, violations: () => this.complaints, wills: () => this.wills, filters: () => this.filters },
      setup: { ...defaultSetup, ...this.setup },
      schedule: { name: 'by hand', seed: this.seed, setup: {}, ops: this.ops, faults: this.faults, span: this.span },
      network: { begun: this.begun },
    }
  }

  /** The rules that were broken. */
  check(): string[] {
    checkHistory(this.run)
    return this.history.findings.map(({ rule }) => rule)
  }

  publish(n: number, qos: 0 | 1 | 2, outcome: { ok?: true; error?: unknown; accepted?: number }): void {
    const call: Call = {
      what: `publish p${n}`,
      process: 1,
      at: 0,
      begun: this.history.next(),
      settled: 1,
      ended: this.history.next(),
      endedAt: 0,
      error: outcome.error,
      value: undefined,
    }
    this.history.calls.push(call)
    this.history.published.push({ op: { do: 'publish', n, topic: 'out', qos }, payload: `p${n}`, call })
    for (let copy = 0; copy < (outcome.accepted ?? 0); copy++) this.accepted.push({ topic: 'out', payload: `p${n}`, qos, bytes: payloadOf(`p${n}`) })
  }

  subscribe(s: number, filter: string, more: Partial<Subscribed> = {}): void {
    const seq = this.history.next()
    const record = {
      s,
      filter,
      filters: [filter],
      drops: false,
      concurrency: 1,
      dismissed: 0,
      buffer: Number.POSITIVE_INFINITY,
      qos: 2,
      style: 'loop',
      process: 1,
      live: true,
      granted: seq,
      left: 0,
      grantedAt: 0,
      grantedQos: 2,
      ended: undefined,
      size: () => 0,
    }
    this.history.subscribed.push({ ...record, ...more })
  }

  /** A PUBLISH reaches the client. */
  arrive(payload: string, qos = 1, topic = 'in/a'): void {
    this.pass('down', packet.publish({ qos, topic, payload, id: 1 }))
  }

  pass(way: 'up' | 'down', bytes: Uint8Array, connection = 1): void {
    this.passed.push({ way, connection, at: this.passed.length, seen: readPacket(bytes, 5) })
  }

  deliver(payload: string, more: Partial<Delivered> = {}): void {
    const seq = this.history.next()
    this.history.delivered.push({
      s: 1,
      process: 1,
      payload,
      topic: 'in/a',
      qos: 1,
      redelivered: false,
      seq,
      done: this.history.next(),
      waits: 0,
      ...more,
    })
  }

  acknowledge(payload: string): void {
    this.history.acks.push({ payload, reason: 0, repeat: false, seq: this.history.next(), connection: 1 })
  }

  event(type: string, event: unknown = {}): void {
    this.history.events.push({ type, event, at: this.now, seq: this.history.next(), process: 1 })
  }
}

/** An error with a fate. */
export function error(outcome: 'not-sent' | 'refused' | 'unknown', message = 'lost'): MqttError {
  return new MqttError('ERR_CONNECTION_LOST', message, { outcome })
}
