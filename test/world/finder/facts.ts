/**
 * Questions about a history that several rules ask. Pure.
 */
import { MqttError } from '../../../src/errors.js'
import type { CallRecord, EventRecord, History } from './history.js'
import type { Call, EndpointName } from './program.js'

type Of<N extends Call['call']> = Extract<Call, { readonly call: N }>

/** The record, if it is of that call. */
export function isCall<N extends Call['call']>(record: CallRecord, name: N): record is CallRecord & { readonly call: Of<N> } {
  return record.call.call === name
}

/** True where the program did not look at what came of it. */
export function isForgotten({ call }: CallRecord): boolean {
  return 'forget' in call && call.forget === true
}

/** The code of an error of ours. */
export function codeOf(error: unknown): string {
  return MqttError.is(error) ? error.code : `no MqttError: ${String(error)}`
}

/** A call in a few words. */
export function titleOf({ id, name, call, client, at }: CallRecord): string {
  const { call: what, ...rest } = call
  return `${what} ${name} of step ${id}, client ${client}, at ${at} ms, ${JSON.stringify(rest)}`
}

/** What came of a call, in a few words. */
export function outcomeOf({ how, error, settledAt, value }: CallRecord): string {
  if (how === 'pending') return 'it is pending'
  if (how === 'fulfilled') return `it fulfilled at ${settledAt} ms${typeof value === 'boolean' || typeof value === 'string' ? ` with ${value}` : ''}`
  const details = MqttError.is(error) ? `${error.code} (${error.outcome}, ${error.message})` : String(error)
  return `it ${how} at ${settledAt} ms with ${details}`
}

/** A history with questions. */
export class Facts {
  readonly history: History

  constructor(history: History) {
    this.history = history
  }

  events(client: number, ...types: string[]): EventRecord[] {
    return this.history.events.filter((event) => event.client === client && types.includes(event.type))
  }

  calls(client: number): CallRecord[] {
    return this.history.calls.filter((record) => record.client === client)
  }

  /** True when the client had one connection and left it in order, so that nothing may be lost or come twice. */
  peaceful(client: number): boolean {
    const closed = this.history.closed.find((each) => each.client === client)
    const abrupt = this.calls(client).some(
      ({ call, signal }) =>
        call.call === 'destroy' || ((call.call === 'disconnect' || call.call === 'drain') && (call.timeout === 0 || signal !== undefined)),
    )
    return this.connects(client) === 1 && !abrupt && closed !== undefined && closed.error === undefined && !this.troubled
  }

  /** The network of the program goes wrong somewhere. */
  get troubled(): boolean {
    const { calls, program } = this.history
    return program.link.rate !== undefined || calls.some(({ call }) => ['cut', 'stall', 'down'].includes(call.call))
  }

  connects(client: number): number {
    return this.events(client, 'connect').length
  }

  /** The endpoints at a point of the history. */
  endpointsAt(client: number, seq: number): readonly EndpointName[] {
    const calls = this.calls(client).filter((record) => isCall(record, 'setBrokers') && record.how === 'fulfilled' && record.seq < seq)
    const last = calls.at(-1)?.call as Of<'setBrokers'> | undefined
    return last?.endpoints ?? this.history.program.clients[client]?.endpoints ?? []
  }

  /** The earliest point at which the program ended the client; undefined where it ended by itself. */
  ending(client: number, ...names: string[]): CallRecord | undefined {
    return this.calls(client).find(({ call, how }) => names.includes(call.call) && how !== 'rejected')
  }

  /** Whether a signal of that number had aborted by then. */
  aborted(signal: number | undefined, seq: number): boolean {
    return signal !== undefined && (this.history.aborts.get(signal)?.seq ?? Number.POSITIVE_INFINITY) < seq
  }
}

/** A filter without its share. */
export function plainFilter(filter: string): string {
  return filter.startsWith('$share/') ? filter.slice(filter.indexOf('/', 7) + 1) : filter
}

/** Whether a topic is one that a filter asks for. */
export function matches(filter: string, topic: string): boolean {
  const wanted = plainFilter(filter).split('/')
  const levels = topic.split('/')
  const rest = wanted.indexOf('#')
  if (rest < 0 ? wanted.length !== levels.length : levels.length < rest) return false
  return wanted.every((level, index) => level === '#' || level === '+' || level === levels[index])
}
