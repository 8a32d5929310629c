/**
 * What a device sends: a temperature, a pressure, the number of the message, and the time it was sent. Devices and reader share it as a contract.
 *
 * Some devices send JSON, the others 20 bytes of binary; the last topic level tells which.
 */
import * as mq from 'mqwire/typed'

/** The formats, as they stand in topics. */
export const formats = ['json', 'binary']

const length = 20

const binary = mq.codec({
  encode({ temperature, pressure, number, at }) {
    const view = new DataView(new ArrayBuffer(length))
    view.setFloat64(0, at)
    view.setUint32(8, number)
    view.setFloat32(12, temperature)
    view.setFloat32(16, pressure)
    return new Uint8Array(view.buffer)
  },
  decode({ buffer, byteOffset, byteLength }) {
    if (byteLength !== length) throw new RangeError(`must have ${length} bytes`)
    const view = new DataView(buffer, byteOffset, byteLength)
    return {
      at: view.getFloat64(0),
      number: view.getUint32(8),
      temperature: view.getFloat32(12),
      pressure: view.getFloat32(16),
    }
  },
  contentType: 'application/octet-stream',
  inPlace: true,
})

/** What the devices of a run publish, by format. */
export const telemetryOf = (prefix) =>
  mq.contract({
    json: mq.channel(`${prefix}/{device:number}/json`, mq.json()),
    binary: mq.channel(`${prefix}/{device:number}/binary`, binary),
  })

const rounded = (value, digits) => Number(value.toFixed(digits))

/**
 * A sensor of its own for each device: gives, for a time in milliseconds, degrees Celsius and bars. They wander slowly, each around a level of its
 * own, with something faster and a little noise on top.
 */
export function makeSensor(index) {
  const wave = (at, seconds, phase) =>
    Math.sin((at * 2 * Math.PI) / (seconds * 1000) + index * phase)
  const [warmth, force] = [18 + ((index * 7) % 11) * 0.9, 2.4 + ((index * 5) % 7) * 0.12]
  return (at) => ({
    temperature: rounded(
      warmth + 2.2 * wave(at, 140, 1.3) + 0.7 * wave(at, 26, 2.1) + 0.12 * (Math.random() - 0.5),
      2,
    ),
    pressure: rounded(
      force + 0.16 * wave(at, 90, 1.9) + 0.05 * wave(at, 17, 0.7) + 0.008 * (Math.random() - 0.5),
      3,
    ),
  })
}
