/**
 * Injected faults: chooses the packets that they hit, by kind, direction and occurrence.
 *
 * The table only decides; `fault-injector.ts` applies the fault. Each fault counts occurrences over
 * all connections, from the moment it was added.
 */

import { checkNames, unknownName } from '../../../transport/names.js'
import {
  CONNACK,
  DISCONNECT,
  PUBACK,
  PUBCOMP,
  PUBREC,
  PUBREL,
  SUBACK,
  UNSUBACK,
} from '../../../wire/constants.js'
import type { ClientPacket, Packet, ServerPacket } from '../../../wire/packets.js'
import { isReasonCode } from '../../../wire/reason-codes.js'
import { checkInteger, checkOneOf, checkType, invalid } from './check.js'

/** A packet refused, or sent, with another reason code. */
export interface RefusedPacket {
  /** The code. */
  readonly reasonCode: number
}

/** A packet replaced by another one. */
export interface ReplacedPacket {
  /** Returns the replacement: a packet, or bytes. */
  readonly replace: (packet: Packet) => Packet | Uint8Array
}

/** What a fault does to a packet. */
export type FaultAction =
  /** The packet is lost. */
  | 'drop'
  /** The packet is delayed by `delay` milliseconds; later packets overtake it. */
  | 'delay'
  /** The packet is handled, or sent, twice. */
  | 'twice'
  /**
   * The next packet of the same direction overtakes it. Without one, the packet continues after one
   * second.
   */
  | 'reorder'
  /** The connection is cut and the packet is lost. */
  | 'close-before'
  /**
   * Incoming: the packet is handled, then the connection is cut and its answers are lost. Outgoing:
   * the packet arrives, then the connection ends.
   */
  | 'close-after'
  /**
   * The broker restarts before the packet is handled or sent, and keeps its sessions and retained
   * messages.
   */
  | 'restart-keep'
  /** The same, but the broker loses them. */
  | 'restart-lose'
  /**
   * Incoming PUBLISH, SUBSCRIBE, UNSUBSCRIBE, PUBREL or CONNECT: it is refused with this code and
   * has no effect. Outgoing: the packet carries this code, whatever the outcome was. A CONNACK or
   * DISCONNECT of 0x80 or more ends the connection. Under `'*'`, packets that cannot carry the code
   * pass unchanged.
   */
  | RefusedPacket
  /** Another packet takes its place; bytes are sent as they are (outgoing only). */
  | ReplacedPacket

/** One row of the table. */
export interface Fault {
  /** Kind of packet, or `'*'` for any. */
  readonly packet: Packet['type'] | '*'
  /** `'in'` is from a client. */
  readonly direction: 'in' | 'out'
  /**
   * Which occurrence, from 1. `'every'` hits each packet, except one: when the fault lost a packet
   * of a QoS 1/2 message, the next packet of this kind with the same packet identifier and client
   * passes, so that a retry succeeds.
   */
  readonly nth: number | 'every'
  /** The action on the packet. */
  readonly action: FaultAction
  /** Milliseconds for `'delay'`. Default 1,000. */
  readonly delay?: number | undefined
  /** Only packets of this client. */
  readonly clientId?: string | undefined
}

/** A fault that happened. */
export interface FiredFault {
  /** The fault. */
  readonly fault: Fault
  /** Identifier of the client whose packet was hit. */
  readonly clientId: string
  /** Milliseconds of the broker's clock. */
  readonly time: number
}

interface Row {
  readonly fault: Fault
  seen: number
  /** Packets lost under `'every'`, by client and packet identifier. */
  readonly lost: Set<string>
}

/** Actions that lose the packet, so that its sender will retry. */
const losses: readonly unknown[] = [
  'drop',
  'close-before',
  'close-after',
  'restart-keep',
  'restart-lose',
]

const mostRemembered = 100_000

/** The faults of one broker; may be changed at any time. */
export class FaultTable {
  /** Faults that happened, oldest first; the first 100,000. */
  readonly fired: FiredFault[] = []
  #rows: Row[] = []

  constructor(faults: readonly Fault[] = []) {
    for (const fault of faults) this.add(fault)
  }

  /** Faults in the table. */
  get size(): number {
    return this.#rows.length
  }

  /**
   * Adds a fault, which counts from now on; returns a function that removes it.
   *
   * @throws MqttError `ERR_INVALID_OPTION` for an invalid fault, and for a reason code that neither
   * the packet nor its answer can carry
   */
  add(fault: Fault): () => void {
    checkFault(fault)
    const row: Row = { fault, seen: 0, lost: new Set() }
    this.#rows.push(row)
    return () => {
      this.#rows = this.#rows.filter((other) => other !== row)
    }
  }

  /** Removes all faults. */
  clear(): void {
    this.#rows = []
  }

  /** Counts the packet; returns the first fault that applies. */
  match(
    direction: 'in' | 'out',
    packet: ClientPacket | ServerPacket,
    clientId: string,
    time: number,
  ): Fault | undefined {
    let hit: Fault | undefined
    for (const row of this.#rows) {
      const { fault } = row
      if (fault.direction !== direction || (fault.packet !== '*' && fault.packet !== packet.type))
        continue
      if (fault.clientId !== undefined && fault.clientId !== clientId) continue
      row.seen++
      if (hit === undefined && hits(row, packet, clientId)) hit = fault
    }
    if (hit !== undefined && this.fired.length < mostRemembered)
      this.fired.push({ fault: hit, clientId, time })
    return hit
  }
}

/**
 * The packet type that carries the reason code: the answer to an incoming packet, or an outgoing
 * packet itself.
 */
const speakers: Readonly<
  Record<Fault['direction'], Readonly<Partial<Record<Packet['type'], number>>>>
> = {
  in: {
    connect: CONNACK,
    publish: PUBACK,
    pubrel: PUBCOMP,
    subscribe: SUBACK,
    unsubscribe: UNSUBACK,
  },
  out: {
    connack: CONNACK,
    puback: PUBACK,
    pubrec: PUBREC,
    pubrel: PUBREL,
    pubcomp: PUBCOMP,
    suback: SUBACK,
    unsuback: UNSUBACK,
    disconnect: DISCONNECT,
  },
}

const packets = [
  'connect',
  'connack',
  'publish',
  'puback',
  'pubrec',
  'pubrel',
  'pubcomp',
  'subscribe',
  'suback',
  'unsubscribe',
  'unsuback',
  'pingreq',
  'pingresp',
  'disconnect',
  'auth',
  '*',
]

const actions = [
  'drop',
  'delay',
  'twice',
  'reorder',
  'close-before',
  'close-after',
  'restart-keep',
  'restart-lose',
]

/** @throws MqttError `ERR_INVALID_OPTION` for an invalid fault */
export function checkFault(fault: Fault): void {
  checkNames('fault', fault, ['packet', 'direction', 'nth', 'action', 'delay', 'clientId'])
  const { packet, direction, nth, delay, clientId } = fault
  if (!packets.includes(packet)) throw unknownName('fault.packet', packet, packets)
  checkOneOf('fault.direction', direction, ['in', 'out'])
  if (nth !== 'every') checkInteger("fault.nth, if not 'every',", nth, 1, Number.MAX_SAFE_INTEGER)
  if (delay !== undefined) checkInteger('fault.delay', delay, 0, Number.MAX_SAFE_INTEGER)
  if (clientId !== undefined) checkType('fault.clientId', clientId, 'string')
  checkAction(fault.action)
  if (packet !== '*' && !canSay(fault, packet))
    throw invalid('faults', 'has a packet that has no such reason code')
}

function checkAction(action: FaultAction): void {
  if (typeof action !== 'object' || action === null) {
    if (!actions.includes(action)) throw unknownName('fault.action', action, actions)
  } else if ('replace' in action) {
    checkNames('fault.action', action, ['replace'])
    checkType('fault.action.replace', action.replace, 'function')
  } else {
    checkNames('fault.action', action, ['reasonCode'])
    checkInteger('fault.action.reasonCode', action.reasonCode, 0, 255)
  }
}

function canSay({ direction, action }: Fault, type: Packet['type']): boolean {
  if (typeof action !== 'object' || !('reasonCode' in action)) return true
  const speaker = speakers[direction][type]
  return speaker !== undefined && isReasonCode(speaker, action.reasonCode, 'server')
}

function hits(row: Row, packet: ClientPacket | ServerPacket, clientId: string): boolean {
  const { nth, action } = row.fault
  if (!canSay(row.fault, packet.type)) return false
  if (nth !== 'every') return row.seen === nth
  const packetId = 'packetId' in packet ? packet.packetId : undefined
  if (packetId === undefined || !losses.includes(action)) return true
  const key = `${packetId} ${packet.type} ${clientId}`
  if (row.lost.delete(key)) return false
  if (row.lost.size < mostRemembered) row.lost.add(key)
  return true
}
