/**
 * How much the codec remembers and how its buffers grow: bounds that the protocol does not name.
 *
 * A module of its own so that bundlers put the numbers where the names are. Constants only.
 */

// Topic tables.
/** Most topics, and bytes of topics, that are remembered. */
export const mostTopics = 4096
export const mostTopicBytes = 262_144
/** Longer names are not remembered. */
export const longestTopic = 1024
/** Places that are looked at for one name: names chosen to collide cost no more. */
export const mostProbes = 8
/** Topics without room after which the table begins anew. */
export const mostMisses = 4096
export const firstSlots = 16
/** Places for each topic, at least: with fewer some names find none among those that are looked at. */
export const roominess = 4
export const wordSize = 4
export const leastTopicBytes = 256
/** Bytes of an entry and its string, about; and with its places and name, of a table that may take so many. */
export const entryBytes = 128
export const bytesPerTopic = 256

// Incomplete packets.
export const smallestCarry = 64
/** A buffer that is no larger is used again. */
export const largestKept = 8192
/** Bytes that are made room for, for each that came in. */
export const growth = 16
/** Packets from this size on have their payload apart. */
export const largePacket = 16_384

/** Fewer bytes than this are copied faster one by one. */
export const shortCopy = 24
/** More than the head of a PUBLISH without properties takes, but for the topic. */
export const headRoom = 16
