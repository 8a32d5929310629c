/**
 * Metrics of a client: its counters, read whenever a metric reader asks. Nothing is counted here,
 * and nothing runs between readings.
 */
import {
  type Attributes,
  type BatchObservableCallback,
  type Meter,
  metrics,
  type Observable,
} from '@opentelemetry/api'
import type { Stats, Unlisten } from '../client/options/index.js'
import { disposeSymbol } from '../common/dispose.js'
import { anyObject, object, optional, type Parser } from '../common/schema.js'

/** The part of a client that is needed. */
export interface MeasuredClient {
  /** The client identifier, an attribute of every metric. */
  readonly clientId: string
  /** The counters: all zero unless the option `stats` of the client is true. */
  stats(): Stats
}

/** Options of `measured`. */
export interface MeasuredOptions {
  /** Creates the instruments. Default: the meter `mqwire` of the global meter provider. */
  readonly meter?: Meter | undefined
}

const parse = /* @__PURE__ */ object<{ meter: Meter | undefined }>({
  meter: /* @__PURE__ */ optional(anyObject as Parser<Meter>),
})

type Kind = 'Counter' | 'UpDownCounter' | 'Gauge'
type Row = readonly [field: keyof Stats, kind: Kind, name: string, unit: string]

/**
 * The instruments with their fields; `failures` is split by error code. Names without a dot get the
 * prefix `mqtt.client.`.
 */
const rows: readonly Row[] = [
  // The messaging conventions define names for these two.
  ['publishesSent', 'Counter', 'messaging.client.sent.messages', '{message}'],
  ['delivered', 'Counter', 'messaging.client.consumed.messages', '{message}'],
  ['connects', 'Counter', 'connects', '{connection}'],
  ['disconnects', 'Counter', 'disconnects', '{connection}'],
  ['failures', 'Counter', 'failures', '{failure}'],
  ['reconnectAttempts', 'Counter', 'reconnect_attempts', '{attempt}'],
  ['subscribes', 'Counter', 'subscribes', '{packet}'],
  ['unsubscribes', 'Counter', 'unsubscribes', '{packet}'],
  ['refusals', 'Counter', 'refusals', '{refusal}'],
  ['publishesAcked', 'Counter', 'publishes_acked', '{message}'],
  ['publishesReplayed', 'Counter', 'publishes_replayed', '{message}'],
  ['publishesDropped', 'Counter', 'publishes_dropped', '{message}'],
  ['publishesInFlight', 'UpDownCounter', 'publishes_in_flight', '{message}'],
  ['publishesQueued', 'UpDownCounter', 'publishes_queued', '{message}'],
  ['received', 'Counter', 'received', '{message}'],
  ['dropped', 'Counter', 'dropped', '{message}'],
  ['duplicates', 'Counter', 'duplicates', '{message}'],
  ['unclaimed', 'Counter', 'unclaimed', '{message}'],
  ['tooLarge', 'Counter', 'too_large', '{message}'],
  ['unread', 'UpDownCounter', 'unread', '{message}'],
  ['unknownIdentifiers', 'Counter', 'unknown_identifiers', '{identifier}'],
  ['handlerFailures', 'Counter', 'handler_failures', '{message}'],
  ['unsolicitedAcks', 'Counter', 'unsolicited_acks', '{packet}'],
  ['receiveMaximumExceeded', 'Counter', 'receive_maximum_exceeded', '{message}'],
  ['sessionsLost', 'Counter', 'sessions_lost', '{session}'],
  ['bytesSent', 'Counter', 'bytes_sent', 'By'],
  ['bytesReceived', 'Counter', 'bytes_received', 'By'],
  ['packetsSent', 'Counter', 'packets_sent', '{packet}'],
  ['packetsReceived', 'Counter', 'packets_received', '{packet}'],
  ['pings', 'Counter', 'pings', '{packet}'],
  ['pingTimeouts', 'Counter', 'ping_timeouts', '{packet}'],
  ['pingRoundTrip', 'Gauge', 'ping_round_trip', 's'],
]

/** Attributes that the conventions require with their names. */
const operations: Readonly<Record<string, string>> = {
  publishesSent: 'publish',
  delivered: 'process',
}

/**
 * Exposes the counters of `client.stats()` to a meter as observable instruments; returns a function
 * that stops this. The client needs the option `stats: true`; otherwise all are zero.
 * @throws MqttError ERR_INVALID_OPTION
 */
export function measured(client: MeasuredClient, options?: MeasuredOptions): Unlisten {
  const meter = parse(options).meter ?? metrics.getMeter('mqwire')
  const instruments = rows.map((row) => instrumentOf(meter, row))
  const observe: BatchObservableCallback = (result) => {
    const stats = client.stats()
    const common: Attributes = {
      'messaging.system': 'mqtt',
      'messaging.client.id': client.clientId,
    }
    rows.forEach(([field], at) => {
      for (const [value, own] of valuesOf(stats, field))
        result.observe(instruments[at] as Observable, value, { ...common, ...own })
    })
  }
  meter.addBatchObservableCallback(observe, instruments)
  const stop = (): void => meter.removeBatchObservableCallback(observe, instruments)
  return Object.assign(stop, { [disposeSymbol]: stop }) as Unlisten
}

function instrumentOf(meter: Meter, [, kind, short, unit]: Row): Observable {
  const name = short.includes('.') ? short : `mqtt.client.${short}`
  if (kind === 'Counter') return meter.createObservableCounter(name, { unit })
  return kind === 'Gauge'
    ? meter.createObservableGauge(name, { unit })
    : meter.createObservableUpDownCounter(name, { unit })
}

// Undefined values are not observed.
function valuesOf(
  stats: Stats,
  field: keyof Stats,
): readonly (readonly [value: number, own?: Attributes])[] {
  const value = stats[field]
  if (value === undefined) return []
  if (typeof value === 'object')
    return Object.entries(value).map(([code, count]) => [count, { 'error.type': code }])
  const operation = operations[field]
  // From milliseconds to seconds.
  if (field === 'pingRoundTrip') return [[value / 1000]]
  return operation === undefined ? [[value]] : [[value, { 'messaging.operation.name': operation }]]
}
