/** Holds what our codec says of a packet against the other codecs, and against the tables of the standard in the reference decoder of `test/unit/wire`. */
import { decode, type Packet, WireError } from '../../../src/wire/index.js'
import { referenceDecode } from '../../unit/wire/reference-decoder.js'
import type { Codec, Verdict } from './foreign.js'
import type { Case } from './generate.js'
import { type Fields, normalized, normalizedHex, type Place, places } from './normalize.js'

/** A packet, or why there is none. */
export type Ours =
  | { readonly packet: Packet; readonly fields: Fields; readonly error?: undefined }
  | { readonly error: string; readonly packet?: undefined; readonly fields?: undefined }

/** What `decode` says. */
export function decodeOurs(
  bytes: Uint8Array,
  { version, from }: Pick<Case, 'version' | 'from'>,
): Ours {
  try {
    const packet = decode(bytes, { protocolVersion: version, from })
    return { packet, fields: normalized(packet) as Fields }
  } catch (error) {
    // What is no WireError has no place here.
    if (!(error instanceof WireError)) return { error: `throws ${String(error)}` }
    return { error: `${error.kind} at ${error.offset}: ${error.message}` }
  }
}

/**
 * How two codecs differ. `accepts`: the other accepts what we refuse; `refuses`: the other way round; `field`: both accept, one field is not the same;
 * `unwritten`: the other does not write what it read; `unread`: we refuse what the other wrote; `rewritten`: what it wrote has another field.
 */
type Kind = 'accepts' | 'refuses' | 'field' | 'unwritten' | 'unread' | 'rewritten'

/** One difference between our codec and another. */
export interface Difference {
  readonly codec: Codec
  readonly kind: Kind
  readonly each: Case
  /** The packet type that the first byte says. */
  readonly type: string
  /** What we say of the packet, where we accept it. */
  readonly fields: Fields
  /** The rule that the packet breaks, where it breaks one. */
  readonly rule: string
  /** Of a field. */
  readonly place: Place
  /** What the codec that refuses says. */
  readonly error: string
}

/** What the tables of the standard say of a packet. */
export interface Standard {
  readonly fields?: Fields
  readonly rule: string
}

/** Asks the reference decoder. */
export function standardOf({ bytes, from, version }: Case): Standard {
  try {
    return { fields: normalizedHex(referenceDecode(bytes, from, version)) as Fields, rule: '' }
  } catch (error) {
    return { rule: error instanceof TypeError ? 'UTF-8' : (error as Error).message }
  }
}

/** Where our codec does not say what the standard's tables say, or not what was encoded; undefined when it does. */
export function strays(each: Case, ours: Ours, standard: Standard): string | undefined {
  if (each.unencoded !== undefined) return `ours does not encode a valid packet: ${each.unencoded}`
  if (ours.error?.startsWith('throws')) return `ours ${ours.error}`
  if (ours.fields === undefined) {
    return standard.fields === undefined
      ? undefined
      : `ours refuses (${ours.error}) what the standard allows`
  }
  if (standard.fields === undefined)
    return `ours accepts what the standard forbids: ${standard.rule}`
  const [place] = places(ours.fields, standard.fields)
  if (place !== undefined) return `ours and the standard's tables: ${shownPlace(place)}`
  const [lost] = each.packet === undefined ? [] : places(ours.fields, normalized(each.packet))
  return lost && `ours and what was encoded: ${shownPlace(lost)}`
}

/** A place in one line. */
export function shownPlace({ path, ours, theirs }: Place): string {
  return `${path}: ${JSON.stringify(ours)} and ${JSON.stringify(theirs)}`
}

const types =
  `0 connect connack publish puback pubrec pubrel pubcomp subscribe suback unsubscribe unsuback
  pingreq pingresp disconnect auth`.split(/\s+/)
const nowhere: Place = { path: '', ours: undefined, theirs: undefined }

/** Every difference between ours and one other codec. */
export function differences(
  each: Case,
  ours: Ours,
  standard: Standard,
  codec: Codec,
  verdict: Verdict,
): Difference[] {
  const type = types[(each.bytes[0] ?? 0) >> 4] as string
  const base = {
    codec,
    each,
    type,
    fields: ours.fields ?? {},
    rule: standard.rule,
    place: nowhere,
    error: '',
  }
  const { fields, error = '' } = verdict
  if (ours.fields === undefined)
    return fields === undefined ? [] : [{ ...base, kind: 'accepts', error: ours.error }]
  if (fields === undefined) return [{ ...base, kind: 'refuses', error }]
  const found: Difference[] = places(ours.fields, fields).map((place) => ({
    ...base,
    kind: 'field',
    place,
  }))
  if (verdict.writes !== undefined)
    found.push({ ...base, kind: 'unwritten', error: verdict.writes })
  if (verdict.again === undefined) return found
  const again = decodeOurs(verdict.again, each)
  if (again.fields === undefined) return [...found, { ...base, kind: 'unread', error: again.error }]
  for (const place of places(fields, again.fields))
    found.push({ ...base, kind: 'rewritten', place })
  return found
}
