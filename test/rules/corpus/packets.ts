/** Good packets of a server, with their meanings: what sequences are made of. */
import { type Bytes, block, frame, prefixed, string, text, u16, vbi } from './bytes.js'
import { ids, method, type Step, step } from './case.js'

export const methodProperty = (name: string = method): Bytes => [0x15, ...string(name)]
export const dataProperty = (...bytes: Bytes): Bytes => [0x16, ...prefixed(bytes)]
export const reasonProperty = (reason: string): Bytes => [0x1f, ...string(reason)]
export const pairProperty = (name = 'n', value = 'v'): Bytes => [
  0x26,
  ...string(name),
  ...string(value),
]
export const aliasProperty = (alias: number): Bytes => [0x23, ...u16(alias)]
export const identifierProperty = (identifier: number): Bytes => [0x0b, ...vbi(identifier)]

export const connack = (code = 0, present = false, ...properties: Bytes[]): Step =>
  step(frame(0x20, [present ? 1 : 0, code], block(...properties)), {
    kind: 'connack',
    code,
    present,
  })

export const authenticated = (): Step =>
  step(frame(0x20, [0, 0], block(methodProperty())), { kind: 'connack', code: 0, method })

export interface PublishParts {
  readonly qos?: 0 | 1 | 2
  readonly id?: number
  readonly dup?: boolean
  readonly retain?: boolean
  readonly topic?: Bytes
  readonly alias?: number
  readonly properties?: readonly Bytes[]
  readonly pairs?: number
  readonly identifiers?: number
  readonly payload?: Bytes
}

/** On 3.1.1 without properties. */
export function publish(parts: PublishParts = {}, version: 4 | 5 = 5): Step {
  const {
    qos = 0,
    id = ids.fresh,
    dup = false,
    retain = false,
    topic = text('t'),
    alias,
    properties = [],
    pairs,
    identifiers,
    payload = [],
  } = parts
  const first = 0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
  const all = alias === undefined ? properties : [aliasProperty(alias), ...properties]
  const encoded = version === 5 ? block(...all) : []
  const bytes = frame(first, prefixed(topic), qos > 0 ? u16(id) : [], encoded, payload)
  return step(bytes, {
    kind: 'publish',
    qos,
    id,
    dup,
    nameless: topic.length === 0,
    ...(alias !== undefined && { alias }),
    ...(pairs !== undefined && { pairs }),
    ...(identifiers !== undefined && { identifiers }),
  })
}

export type AckKind = 'puback' | 'pubrec' | 'pubrel' | 'pubcomp'
export const ackFirst: Readonly<Record<AckKind, number>> = {
  puback: 0x40,
  pubrec: 0x50,
  pubrel: 0x62,
  pubcomp: 0x70,
}

export const ack = (kind: AckKind, id: number): Step =>
  step(frame(ackFirst[kind], u16(id)), { kind, id, code: 0 })
/** With a reason code, without a Property Length. */
export const reasonedAck = (kind: AckKind, id: number, code: number): Step =>
  step(frame(ackFirst[kind], u16(id), [code]), { kind, id, code })
export const fullAck = (kind: AckKind, id: number, code: number, ...properties: Bytes[]): Step =>
  step(frame(ackFirst[kind], u16(id), [code], block(...properties)), { kind, id, code })

export const suback = (id: number, codes: Bytes, ...properties: Bytes[]): Step =>
  step(frame(0x90, u16(id), block(...properties), codes), {
    kind: 'suback',
    id,
    count: codes.length,
  })
export const unsuback = (id: number, codes: Bytes, ...properties: Bytes[]): Step =>
  step(frame(0xb0, u16(id), block(...properties), codes), {
    kind: 'unsuback',
    id,
    count: codes.length,
  })

export const pingresp = (): Step => step([0xd0, 0x00], { kind: 'pingresp' })

export const goodbye = (): Step => step([0xe0, 0x00], { kind: 'disconnect', code: 0 })
export const disconnect = (code: number, ...properties: Bytes[]): Step =>
  step(frame(0xe0, [code], block(...properties)), { kind: 'disconnect', code })

export const auth = (code: number, ...properties: Bytes[]): Step =>
  step(frame(0xf0, [code], block(methodProperty(), ...properties)), { kind: 'auth', code, method })
