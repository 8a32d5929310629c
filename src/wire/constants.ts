/**
 * The numbers of MQTT's wire format: packet types, limits and the two senders.
 *
 * Constants and types only. Nothing here may do work at import.
 */

/** Control packet types (section 2.1.2). */
export const CONNECT = 1
/** Section 3.2. */
export const CONNACK = 2
/** Section 3.3. */
export const PUBLISH = 3
/** Section 3.4. */
export const PUBACK = 4
/** Section 3.5. */
export const PUBREC = 5
/** Section 3.6. */
export const PUBREL = 6
/** Section 3.7. */
export const PUBCOMP = 7
/** Section 3.8. */
export const SUBSCRIBE = 8
/** Section 3.9. */
export const SUBACK = 9
/** Section 3.10. */
export const UNSUBSCRIBE = 10
/** Section 3.11. */
export const UNSUBACK = 11
/** Section 3.12. */
export const PINGREQ = 12
/** Section 3.13. */
export const PINGRESP = 13
/** Section 3.14. */
export const DISCONNECT = 14
/** Section 3.15; reserved on 3.1.1. */
export const AUTH = 15

/**
 * Stands for the Will Properties of a CONNECT where a packet type is asked for; type 0 is reserved
 * on the wire (section 3.1.3.2).
 */
export const WILL = 0

/**
 * Largest Variable Byte Integer, and so the largest Remaining Length and Property Length (section
 * 1.5.5).
 */
export const MAXIMUM_VARIABLE_BYTE_INTEGER = 268_435_455
/**
 * Largest control packet of the format: one byte, four bytes of Remaining Length, and the length
 * these express.
 */
export const MAXIMUM_PACKET_SIZE = 268_435_460
/** Most bytes of a UTF-8 Encoded String or Binary Data (sections 1.5.4, 1.5.6). */
export const MAXIMUM_STRING_LENGTH = 65_535

/** The sender of a packet. */
export type Sender = 'client' | 'server'

/** The sender whose rules apply when a packet is written, or either one's. */
export type Author = Sender | 'either'
