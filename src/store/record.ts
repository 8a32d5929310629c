/**
 * What a record is in a store: a version, a checksum over it and the body, and the body.
 */
export function sealRecord(body: Uint8Array): Uint8Array {
  const sealed = new Uint8Array(body.length + 5)
  sealed[0] = 1
  sealed.set(body, 5)
  new DataView(sealed.buffer).setUint32(1, sumOf(body))
  return sealed
}

/** The body of a record; undefined where it is damaged or of a version that nobody knows. */
export function openRecord(sealed: Uint8Array): Uint8Array | undefined {
  if (sealed.length < 5 || sealed[0] !== 1) return undefined
  const body = sealed.subarray(5)
  return new DataView(sealed.buffer, sealed.byteOffset).getUint32(1) === sumOf(body) ? body : undefined
}

function sumOf(body: Uint8Array): number {
  let sum = 1
  for (const byte of body) sum = (Math.imul(sum, 31) + byte) >>> 0
  return sum
}

/** Moves a damaged record out of the way. */
export async function quarantine(store: import('./store.js').Store, key: string, bytes: Uint8Array, _why: string): Promise<void> {
  await store.batch([
    { type: 'put', key: `x/${key}`, value: bytes },
    { type: 'delete', key },
  ])
}
