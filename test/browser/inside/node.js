/**
 * The little of Node that the tests of pure code use themselves, for browsers.
 *
 * Only files of tests get it: code of `src` that asked for `Buffer` or `process` finds nothing, and fails as it must.
 */
const latin1 = {
  read: (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0)),
  write: (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''),
}

const encodings = {
  utf8: {
    read: (text) => new TextEncoder().encode(text),
    write: (bytes) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes),
  },
  latin1,
  ascii: latin1,
  hex: {
    read: (text) =>
      Uint8Array.from(text.match(/[0-9a-f]{2}/gi) ?? [], (pair) => Number.parseInt(pair, 16)),
    write: (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(''),
  },
  base64: { read: (text) => latin1.read(atob(text)), write: (bytes) => btoa(latin1.write(bytes)) },
}

const encoding = (name = 'utf8') => encodings[name.toLowerCase().replace('utf-8', 'utf8')]

export class Buffer extends Uint8Array {
  static from(source, second, length) {
    if (source instanceof ArrayBuffer) return new Buffer(source, second, length)
    const { buffer, byteOffset, byteLength } =
      typeof source === 'string' ? encoding(second).read(source) : Uint8Array.from(source)
    return new Buffer(buffer, byteOffset, byteLength)
  }

  static alloc(length, fill = 0) {
    return new Buffer(length).fill(fill)
  }

  static byteLength(text) {
    return encodings.utf8.read(text).length
  }

  static concat(parts) {
    const all = new Buffer(parts.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const part of parts) {
      all.set(part, at)
      at += part.length
    }
    return all
  }

  static compare(one, other) {
    const common = Math.min(one.length, other.length)
    for (let at = 0; at < common; at++)
      if (one[at] !== other[at]) return one[at] < other[at] ? -1 : 1
    return Math.sign(one.length - other.length)
  }

  static isBuffer(value) {
    return value instanceof Buffer
  }

  toString(name) {
    return encoding(name).write(this)
  }

  readUIntBE(offset, size) {
    return this.subarray(offset, offset + size).reduce((value, byte) => value * 256 + byte, 0)
  }

  readUInt16BE(offset) {
    return this.readUIntBE(offset, 2)
  }

  equals(other) {
    return Buffer.compare(this, other) === 0
  }

  indexOf(wanted, from = 0) {
    if (typeof wanted === 'number') return super.indexOf(wanted, from)
    return latin1.write(this).indexOf(latin1.write(Buffer.from(wanted)), from)
  }

  includes(wanted) {
    return this.indexOf(wanted) >= 0
  }
}

/** Listeners of `process.on`, with what listens for them here. */
const listeners = new Map()
const names = {
  unhandledRejection: ['unhandledrejection', 'reason'],
  uncaughtException: ['error', 'error'],
}

export const process = {
  env: {},
  on(type, listener) {
    const [name, field] = names[type]
    const heard = (event) => {
      event.preventDefault()
      listener(event[field])
    }
    listeners.set(listener, [name, heard])
    addEventListener(name, heard)
  },
  off(_type, listener) {
    removeEventListener(...(listeners.get(listener) ?? []))
  },
  cpuUsage: (since = { user: 0 }) => ({ user: performance.now() * 1000 - since.user, system: 0 }),
  memoryUsage: () => ({ heapUsed: performance.memory?.usedJSHeapSize ?? 0 }),
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

/** A file of the tests, by its address on this site. */
export function readFileSync(url) {
  const request = new XMLHttpRequest()
  request.open('GET', url, false)
  request.send()
  if (request.status !== 200) throw new Error(`no file ${url}`)
  return request.responseText
}

/** Tests that need it are left out. */
export const setFlagsFromString = undefined

/** The value of an expression in a frame, whose globals are others than ours. A worker has no frames, and no globals but its own. */
export function runInNewContext(code) {
  // biome-ignore lint/security/noGlobalEval: the code is that of a test
  if (globalThis.document === undefined) return globalThis.eval(code)
  const frame = document.body.appendChild(document.createElement('iframe'))
  return frame.contentWindow.eval(code)
}

/** Equal in every value and every prototype. */
export function isDeepStrictEqual(one, other) {
  if (Object.is(one, other)) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return false
  const names = Reflect.ownKeys(one)
  if (
    Object.getPrototypeOf(one) !== Object.getPrototypeOf(other) ||
    names.length !== Reflect.ownKeys(other).length
  )
    return false
  return names.every(
    (name) => Object.hasOwn(other, name) && isDeepStrictEqual(one[name], other[name]),
  )
}

/** Names and values, to a depth. */
export function inspect(value, { depth = 2 } = {}, seen = new Set()) {
  if (typeof value === 'string') return `'${value}'`
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null)
    return String(value)
  if (ArrayBuffer.isView(value))
    return `${value.constructor.name}(${value.byteLength}) [ ${Array.from(value).slice(0, 64).join(', ')} ]`
  if (seen.has(value)) return '[Circular]'
  const own = value[Symbol.for('nodejs.util.inspect.custom')]
  if (typeof own === 'function') return String(own.call(value, depth, {}, inspect))
  if (seen.size > depth) return '[Object]'
  const within = new Set(seen).add(value)
  const entries = [
    ...(value instanceof Map ? value : []),
    ...Reflect.ownKeys(value).map((name) => [name, Reflect.get(value, name)]),
  ]
  const parts = entries.map(
    ([name, inner]) => `${String(name)}: ${inspect(inner, { depth }, within)}`,
  )
  return `${value instanceof Error ? value.stack : (value.constructor?.name ?? '[null]')} { ${parts.join(', ')} }`
}
