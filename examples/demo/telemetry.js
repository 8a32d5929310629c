/**
 * What a device sends, as bytes and back: a temperature, a pressure, the number of the message, and the time it was sent.
 *
 * Some devices send JSON, the others 20 bytes of binary; the last topic level tells which.
 */

/** The formats, as they stand in topics. */
export const formats = ['json', 'binary']

/** Their content types. */
export const contentTypes = { json: 'application/json', binary: 'application/octet-stream' }

const length = 20

const rounded = (value, digits) => Number(value.toFixed(digits))

/**
 * A sensor of its own for each device: gives, for a time in milliseconds, degrees Celsius and bars. They wander slowly, each around a level of its
 * own, with something faster and a little noise on top.
 */
export function makeSensor(index) {
  const wave = (at, seconds, phase) => Math.sin((at * 2 * Math.PI) / (seconds * 1000) + index * phase)
  const [warmth, force] = [18 + ((index * 7) % 11) * 0.9, 2.4 + ((index * 5) % 7) * 0.12]
  return (at) => ({
    temperature: rounded(warmth + 2.2 * wave(at, 140, 1.3) + 0.7 * wave(at, 26, 2.1) + 0.12 * (Math.random() - 0.5), 2),
    pressure: rounded(force + 0.16 * wave(at, 90, 1.9) + 0.05 * wave(at, 17, 0.7) + 0.008 * (Math.random() - 0.5), 3),
  })
}

/** The payload of one message. */
export function encode(format, { temperature, pressure, number, at }) {
  if (format === 'json') return JSON.stringify({ temperature, pressure, number, at })
  const view = new DataView(new ArrayBuffer(length))
  view.setFloat64(0, at)
  view.setUint32(8, number)
  view.setFloat32(12, temperature)
  view.setFloat32(16, pressure)
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
  if (format !== 'binary' || payload.length !== length) return undefined
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length)
  return { at: view.getFloat64(0), number: view.getUint32(8), temperature: view.getFloat32(12), pressure: view.getFloat32(16) }
}
