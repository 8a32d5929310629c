/**
 * What a device sends, as text or bytes and back: the number of the message, the time it was sent (milliseconds), and filling.
 */

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
  return view
}

const markName = 'simulator'

/** What tells a message whose topic and payload come from templates: a user property of MQTT 5.0. */
export const marks = {
  write: ({ prefix, index, qos, number, at }) => [markName, [prefix, index, qos, number, at].join(' ')],
  /** Undefined for a message that has none, or that of another run. */
  read({ properties: { userProperties = [] } }, prefix) {
    const [, text = ''] = userProperties.find(([name]) => name === markName) ?? []
    const [run, ...rest] = text.split(' ')
    const [index, qos, number, at] = rest.map(Number)
    return run === prefix ? { index, qos, number, at } : undefined
  },
}

/** What a message says; undefined when it is none of ours. */
export function decode(message) {
  const { payload } = message
  if (payload[0] === braceOpen) {
    try {
      return message.json() ?? undefined
    } catch {
      return undefined
    }
  }
  if (payload.length < 16) return undefined
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length)
  return { at: view.getFloat64(0), number: view.getUint32(8) }
}
