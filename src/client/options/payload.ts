/**
 * Bytes that callers give and get. Types only.
 */
import type { Bytes } from '../../wire/packets.js'

/** Bytes that a caller may give; a string means its UTF-8. */
export type Payload = string | ArrayBuffer | ArrayBufferView

/** Bytes that belong to the one who got them. */
export type { Bytes }
