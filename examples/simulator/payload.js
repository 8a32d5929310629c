/**
 * What a device sends, as text or bytes and back: the number of the message, the time it was sent (milliseconds), and filling.
 */
import * as mq from 'mqwire/typed'

/** Kinds of payload, as the page names them. */
export const payloadKinds = {
  json: 'JSON, 50 bytes',
  binary: 'binary, 16 bytes',
  kilobyte: 'binary, 1 KiB',
  large: 'binary, 16 KiB',
  template: 'a template of yours',
}

const sizes = { binary: 16, kilobyte: 1024, large: 16 * 1024 }
const braceOpen = '{'.charCodeAt(0)

/** The payload of one message. */
export function encode(kind, number, at) {
  const value = Math.round(200 + 20 * Math.sin(at / 5000)) / 10
  if (kind === 'json') return JSON.stringify({ number, at, value })
  const view = new DataView(new ArrayBuffer(sizes[kind]))
  view.setFloat64(0, at)
  view.setUint32(8, number)
  view.setFloat32(12, value)
  return new Uint8Array(view.buffer)
}

const markName = 'simulator'

/** What tells a message whose topic and payload come from templates: a user property of MQTT 5.0. */
export const marks = {
  write: ({ prefix, index, qos, number, at }) => [
    markName,
    [prefix, index, qos, number, at].join(' '),
  ],
  /** Undefined for a message that has none, or that of another run. */
  read({ properties: { userProperties = [] } }, prefix) {
    const [, text = ''] = userProperties.find(([name]) => name === markName) ?? []
    const [run, ...rest] = text.split(' ')
    const [index, qos, number, at] = rest.map(Number)
    return run === prefix ? { index, qos, number, at } : undefined
  },
}

function decode(bytes, message) {
  if (bytes[0] === braceOpen) return message.json()
  if (bytes.length < 16) throw new RangeError('must have 16 bytes')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return { at: view.getFloat64(0), number: view.getUint32(8) }
}

const report = mq.codec({
  encode: ({ kind, number, at }) => encode(kind, number, at),
  decode,
  inPlace: true,
})

/** What the devices of a run publish, as long as neither topic nor payload comes from a template. */
export const reportOf = (prefix) => mq.channel(`${prefix}/{device:number}/{qos:number}`, report)
