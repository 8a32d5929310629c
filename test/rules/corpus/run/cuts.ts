/**
 * Where sequences are cut: everywhere, at each place in turn, or at places that the name of the case decides, so that every run is the same.
 */

/** The bytes between the cuts. */
export function pieces(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  return [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index] ?? bytes.length))
}

/** Every byte alone. */
export const bytewise = (length: number): number[] =>
  Array.from({ length: Math.max(0, length - 1) }, (_, index) => index + 1)

/** A few cuts, by chance, but the same for the same name. */
export function someCuts(name: string, length: number, most = 3): number[] {
  let state = 2_166_136_261
  for (let i = 0; i < name.length; i++) state = Math.imul(state ^ name.charCodeAt(i), 16_777_619)
  const cuts = new Set<number>()
  for (let i = 0; i < most && length > 1; i++) {
    state = Math.imul(state ^ (state >>> 15), 2_246_822_519) + i
    // Half of the cuts fall near the beginning, where headers are.
    const range = i % 2 === 0 ? Math.min(length - 1, 12) : length - 1
    cuts.add(1 + ((state >>> 8) % range))
  }
  return [...cuts].sort((a, b) => a - b)
}
