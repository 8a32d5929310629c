/**
 * The thread's output buffers: three sizes, so that a few bytes do not hold much, and lists of free ones that are bounded.
 *
 * The taker of a buffer gives it back once, when nothing reads it any more: not before the transport said that its bytes have left.
 */

/** Bytes of a small buffer: an acknowledgement, a lone publish. */
export const smallBuffer = 2048
/** Bytes of a large one: what is handed to the transport at most in one write, unless a single packet is larger. */
export const largeBuffer = 64 * 1024
/** Bytes of the largest: what is handed over at most of one packet. */
export const sliceBuffer = 128 * 1024

/** Free buffers that are kept, of each size. */
const mostSmall = 1024
const mostLarge = 32
const mostSlices = 8

const small: Uint8Array[] = []
const large: Uint8Array[] = []
const slices: Uint8Array[] = []

/** A buffer of at least `size` bytes, with any content. One that fits neither size is made for the purpose. */
export function takeBuffer(size: number): Uint8Array {
  if (size > sliceBuffer) return new Uint8Array(size)
  if (size > largeBuffer) return slices.pop() ?? new Uint8Array(sliceBuffer)
  return size > smallBuffer
    ? (large.pop() ?? new Uint8Array(largeBuffer))
    : (small.pop() ?? new Uint8Array(smallBuffer))
}

/** Takes a buffer back; one of another size, and one too many, are let go. */
export function giveBuffer(bytes: Uint8Array): void {
  if (bytes.length === largeBuffer) {
    if (large.length < mostLarge) large.push(bytes)
  } else if (bytes.length === sliceBuffer) {
    if (slices.length < mostSlices) slices.push(bytes)
  } else if (bytes.length === smallBuffer && small.length < mostSmall) small.push(bytes)
}

/** A buffer of at least `size` bytes in place of one that was taken before. */
export function swapBuffer(size: number, old: Uint8Array): Uint8Array {
  giveBuffer(old)
  return takeBuffer(size)
}
