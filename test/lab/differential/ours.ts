/** What our codec makes of a packet. Other forms of memory, pieces and streams: `test/unit/wire/given-bytes.test.ts` and `test/fuzz/wire.ts`. */
import { decode, type Packet, WireError } from '../../../src/wire/index.js'
import type { Case } from './generate.js'
import { type Fields, normalized } from './normalize.js'

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
