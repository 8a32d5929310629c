/**
 * What a device sends, as bytes and back: the number of the message, the time it was sent, and a temperature.
 *
 * Some devices send JSON, the others 16 bytes of binary; the last topic level tells which.
 */

/** The formats, as they stand in topics. */
export const formats = ['json', 'binary']

/** The payload of one message. */
export function encode(format, { number, at, temperature }) {
  if (format === 'json') return JSON.stringify({ number, at, temperature })
  const view = new DataView(new ArrayBuffer(16))
  view.setFloat64(0, at)
  view.setUint32(8, number)
  view.setFloat32(12, temperature)
  return view
}

/** What a payload says; undefined when it is none of ours. */
export function decode(format, message) {
  if (format === 'json') {
    try {
      return message.json() ?? undefined
    } catch {
      return undefined
    }
  }
  const { payload } = message
  if (format !== 'binary' || payload.length !== 16) return undefined
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length)
  return { at: view.getFloat64(0), number: view.getUint32(8), temperature: view.getFloat32(12) }
}
