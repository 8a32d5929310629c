/**
 * The numbers of a session: what its two halves answer, the states in which they hold packet identifiers and messages, and its bounds.
 *
 * A module of its own so that bundlers put the numbers where the names are. Constants only.
 */

// What the two windows answer.
/** The peer broke the protocol; `Fault` was told how. */
export const FAULT = -2

// What the receive window answers besides tickets, which are 0 or above.
/** Deliver nothing. */
export const REPEAT = -1

// What the send window answers.
/** The exchange is over; its identifier is free. */
export const DONE = 1
/** PUBREC was accepted: PUBREL is queued, PUBCOMP is to come. */
export const RELEASED = 2
/** An identifier that an earlier process may have left in use is free now: what waits for one may go. */
export const CLEARED = 3
/** No such exchange: nothing to settle. */
export const UNKNOWN = 0

// States of an incoming packet identifier.
export const QOS1_IN_HAND = 1
export const QOS2_IN_HAND = 2
export const QOS2_RECEIVED = 3
/** PUBREC was due on an earlier connection: it counts here only when the server starts again with PUBLISH. */
export const QOS2_EARLIER = 4
/** PUBREL came: PUBCOMP leaves once the store has forgotten the identifier, for the server uses it anew then. */
export const QOS2_ENDING = 5

// Low bits of a slot: what happened to an incoming message so far.
export const PENDING = 0
export const STORING = 1
export const READY = 2
export const statusMask = 3
/** A slot's message is one of QoS 2. */
export const qos2Flag = 4
/** Where a slot holds the reason code, and the packet identifier. */
export const reasonShift = 8
export const idShift = 16
/** In place of a slot: this connection has not brought the message. */
export const nowhere = -1

// States of a packet identifier of ours.
export const AWAIT_PUBACK = 1
export const AWAIT_PUBREC = 2
export const STORING_RELEASE = 3
export const AWAIT_PUBCOMP = 4
export const AWAIT_SUBACK = 5
export const AWAIT_UNSUBACK = 6
/** PUBREL was sent for an identifier whose past this process does not know. */
export const CLEARING = 7
/** Known to be free on the server, and kept for the next QoS 2 publish. */
export const CLEAR = 8
/** In use on the server by an earlier process. */
export const DISOWNED = 9
/** Added to the state of a publish that this connection has not carried yet. */
export const held = 16

/** Reason codes from here on refuse (section 2.4). */
export const errorReason = 0x80

/** Ticket of a message that needs no acknowledgement. */
export const noTicket = -1

// Bounds.
/** Slots to begin with, and slots that are kept when all is settled. */
export const initialSlots = 16
export const mostIdleSlots = 1024
/** Most identifiers of a session that are given up as in use. */
export const mostDisowned = 256
/** Identifiers of unknown past that are cleared at a time. */
export const clearBatch = 16
/** Aliases of ours are no more than this, whatever the server would take: each costs a topic of memory. */
export const mostAliases = 256
/** Rounds of one authentication exchange: a server that asks for more wants something else. */
export const mostAuthRounds = 16
/** Milliseconds in which exchanges that the server begins share their rounds. */
export const calm = 60_000
