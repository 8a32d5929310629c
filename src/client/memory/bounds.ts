/**
 * The numbers of memory: sizes and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// reads.ts
/** What is read of a packet that follows a large one before its payload has a place: the room for each byte that came, and what stands before it. */
export const peekShare = 16
export const peekHead = 512

// read-windows.ts
/** Bytes of a window. */
export const windowSize = 65_536
/** Windows of one connection; when all are lent, messages that wait move out of them. */
export const mostWindows = 4
/** Bytes of a read from which on a connection is busy enough for windows of its own. */
export const busyRead = 4096
