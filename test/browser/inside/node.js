/**
 * The little of Node that the world uses itself, in a browser.
 *
 * Files of `src` get nothing of it: code that asked for `Buffer` or `process` fails, as it must.
 */
const latin1 = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
const writers = {
  utf8: (bytes) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes),
  latin1,
  hex: (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(''),
}

export class Buffer extends Uint8Array {
  static from(source, second, length) {
    if (source instanceof ArrayBuffer) return new Buffer(source, second, length)
    const { buffer, byteOffset, byteLength } =
      typeof source === 'string' ? new TextEncoder().encode(source) : Uint8Array.from(source)
    return new Buffer(buffer, byteOffset, byteLength)
  }

  static alloc(length, fill = 0) {
    return new Buffer(length).fill(fill)
  }

  static byteLength(text) {
    return new TextEncoder().encode(text).length
  }

  static concat(parts) {
    return Buffer.from(parts.flatMap((part) => [...part]))
  }

  static compare(one, other) {
    return one.length === other.length && one.every((byte, at) => byte === other[at]) ? 0 : 1
  }

  toString(encoding = 'utf8') {
    return writers[encoding](this)
  }

  readUInt16BE(offset) {
    return this[offset] * 256 + this[offset + 1]
  }

  equals(other) {
    return Buffer.compare(this, other) === 0
  }

  indexOf(wanted, from = 0) {
    if (typeof wanted === 'number') return super.indexOf(wanted, from)
    return latin1(this).indexOf(latin1(Buffer.from(wanted)), from)
  }

  includes(wanted) {
    return this.indexOf(wanted) >= 0
  }
}

const kinds = {
  unhandledRejection: ['unhandledrejection', 'reason'],
  uncaughtException: ['error', 'error'],
}

export const process = {
  env: {},
  on(type, listener) {
    const [name, field] = kinds[type]
    addEventListener(name, (event) => {
      event.preventDefault()
      listener(event[field])
    })
  },
}

/** Turns that wait, oldest first. */
const turns = []
const channel = new MessageChannel()
channel.port1.onmessage = () => turns.shift()?.()

/** After everything that waits now; unlike a timer it is never late. */
export function setImmediate(callback) {
  turns.push(callback)
  channel.port2.postMessage(undefined)
}

/** What is printed is searched for secrets: names and values, to a depth. */
export function inspect(value, { depth = 2 } = {}) {
  if (typeof value !== 'object' || value === null) return String(value)
  if (ArrayBuffer.isView(value)) return Array.from(value).slice(0, 64).join(', ')
  if (depth < 0) return '[Object]'
  const own = value[Symbol.for('nodejs.util.inspect.custom')]
  if (typeof own === 'function') return String(own.call(value, depth, {}, inspect))
  const entries = Reflect.ownKeys(value).map((name) => [name, Reflect.get(value, name)])
  const parts = [...(value instanceof Map ? value : []), ...entries].map(
    ([name, inner]) => `${String(name)}: ${inspect(inner, { depth: depth - 1 })}`,
  )
  return `${value instanceof Error ? value.stack : ''} { ${parts.join(', ')} }`
}
