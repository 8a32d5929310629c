/**
 * The numbers behind the table of properties: data types, sets of packets, the identifiers that have rules of their own, and what is noted of them.
 *
 * A module of its own so that bundlers put the numbers where the names are. Constants only.
 */

// The numeric types of fixed size are their size; bytes are limited to 0 and 1. What comes behind VARINT has a length prefix.
/** One byte, 0 or 1. */
export const FLAG = 1
/** Two Byte Integer. */
export const U16 = 2
/** Four Byte Integer. */
export const U32 = 4
/** Variable Byte Integer. */
export const VARINT = 5
/** UTF-8 Encoded String. */
export const UTF8 = 6
/** Binary Data. */
export const BINARY = 7
/** UTF-8 String Pair. */
export const PAIR = 8

// Packets as bits by packet type, bit 0 is the will.
/** PUBLISH and the will. */
export const ON_PUBLISH = 0b1001
/** CONNECT. */
export const ON_CONNECT = 0b10
/** CONNACK. */
export const ON_CONNACK = 0b100
/** CONNECT and CONNACK. */
export const ON_BOTH = 0b110
/** DISCONNECT. */
export const ON_DISCONNECT = 0b100_0000_0000_0000
/** AUTH. */
export const ON_AUTH = 0b1000_0000_0000_0000
/** CONNACK, the four PUBLISH acknowledgements, SUBACK, UNSUBACK, DISCONNECT, AUTH. */
export const ON_REASON = 0b1100_1010_1111_0100
/** Everything but PINGREQ and PINGRESP. */
export const ON_ANY = 0b1100_1111_1111_1111

/** Section 3.3.2.3.5. */
export const RESPONSE_TOPIC = 0x08
/** Sections 3.3.2.3.8, 3.8.2.1.2. */
export const SUBSCRIPTION_IDENTIFIER = 0x0b
/** Sections 3.1.2.11.2, 3.14.2.2.2. */
export const SESSION_EXPIRY_INTERVAL = 0x11
/** Sections 3.1.2.11.9, 3.2.2.3.17, 3.15.2.2.2. */
export const AUTHENTICATION_METHOD = 0x15
/** Sections 3.1.2.11.10, 3.2.2.3.18, 3.15.2.2.3. */
export const AUTHENTICATION_DATA = 0x16
/** Sections 3.2.2.3.16, 3.14.2.2.5. */
export const SERVER_REFERENCE = 0x1c
/** Section 3.3.2.3.4. */
export const TOPIC_ALIAS = 0x23
/** Section 2.2.2.2. */
export const USER_PROPERTY = 0x26

/** Subscription Identifiers that are noted of one packet: a million of them must not make a list of a million. */
export const MOST_NOTED = 256

// What `writeProperties` wrote of those that other fields depend on, as bits.
export const WROTE_ALIAS = 1
export const WROTE_METHOD = 2
export const WROTE_DATA = 4
