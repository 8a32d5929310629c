/**
 * WireError, the only error of the codec for invalid bytes and packets.
 *
 * Messages name the broken rule. They never contain bytes or text of the packet, which may be
 * secret and are chosen by the peer.
 */
import type { MqttErrorCode } from '../errors.js'
import { MqttError, programFault } from '../errors.js'
import { reasonName } from './reason-codes.js'

/**
 * `'malformed'`: cannot be parsed; `'protocol'`: can be parsed but is forbidden; `'too-large'`:
 * exceeds the allowed packet size; `'incomplete'`: the beginning of a packet (only from `decode`).
 */
export type WireErrorKind = 'malformed' | 'protocol' | 'incomplete' | 'too-large'

const codes: Record<WireErrorKind, [MqttErrorCode, number | undefined]> = {
  malformed: ['ERR_MALFORMED_PACKET', 0x81],
  protocol: ['ERR_PROTOCOL_ERROR', 0x82],
  incomplete: ['ERR_MALFORMED_PACKET', undefined],
  'too-large': ['ERR_PACKET_TOO_LARGE', 0x95],
}

/**
 * Bytes that are not a valid control packet (fault `'remote'`, with the reason code of section 4.13
 * for a DISCONNECT), or a packet that cannot be encoded (fault `'local'`, no reason code, `option`
 * names the field).
 */
export class WireError extends MqttError {
  /** What is wrong. */
  readonly kind: WireErrorKind
  /** Position of the error in bytes from the start of the packet; 0 when encoding. */
  readonly offset: number

  constructor(
    kind: WireErrorKind,
    message: string,
    offset: number,
    option?: string,
    reasonCode = codes[kind][1],
  ) {
    super(
      codes[kind][0],
      message,
      option === undefined
        ? {
            fault: 'remote',
            reasonCode,
            reasonName: reasonCode === undefined ? undefined : reasonName(reasonCode),
          }
        : { fault: 'local', option },
    )
    this.kind = kind
    this.offset = offset
  }
}

/** The bytes break the format (section 4.13: Malformed Packet). */
export function malformed(message: string, offset: number): WireError {
  return new WireError('malformed', message, offset)
}

/**
 * The bytes break a rule (section 4.13: Protocol Error), reported with 0x82 or a more specific
 * code.
 */
export function protocolError(message: string, offset: number, reasonCode?: number): WireError {
  return new WireError('protocol', message, offset, undefined, reasonCode)
}

/** The packet exceeds what is accepted (section 3.1.2.11.4). */
export function tooLarge(): WireError {
  return new WireError('too-large', 'packet exceeds maximumPacketSize', 1)
}

/** The path of a field, or how to make it: only errors need the text. */
export type FieldPath = string | (() => string)

/** A field that cannot be encoded. */
export function refused(
  field: FieldPath,
  message: string,
  kind: WireErrorKind = 'malformed',
): WireError {
  const option = typeof field === 'string' ? field : field()
  return new WireError(kind, `${option}: ${message}`, 0, option)
}

/**
 * A field that does not exist or whose value has the wrong type: a fault of the program, not of its
 * data.
 */
export function mistyped(option: FieldPath, message: string): MqttError {
  return programFault(refused(option, message))
}

/** Converts the offset of a WireError from the buffer to the packet. */
export function rebased(error: unknown, start: number): unknown {
  if (error instanceof WireError) (error as { offset: number }).offset -= start
  return error
}
