/**
 * The little of Node and vitest that the world and the features use themselves, in a browser.
 *
 * Files of `src` get nothing of it: code that asked for `Buffer` or `process` fails, as it must.
 */
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  GLOBAL_EXPECT,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect'
import * as chai from 'chai'

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin)
export const expect = Object.assign(
  (value, message) => chai.expect(value, message),
  chai.expect,
  globalThis[ASYMMETRIC_MATCHERS_OBJECT],
  { unreachable: (message = '') => chai.assert.fail(`this was not to be reached ${message}`) },
)
setState({ assertionCalls: 0 }, expect)
Object.defineProperty(globalThis, GLOBAL_EXPECT, { value: expect, writable: true })
/** What defines tests does nothing here. */
export const [afterAll, beforeAll, describe, it] = Array(4).fill(() => undefined)

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

/** The link that resets runs beside the broker. */
export async function startProxy(settings) {
  const { number, url } = await globalThis.proxyTo(settings)
  let resets = 0
  const asked = setInterval(async () => {
    resets = await globalThis.controlProxy(number, 'resets')
  }, 20)
  return {
    url,
    get resets() {
      return resets
    },
    calm: () => globalThis.controlProxy(number, 'calm'),
    async stop() {
      clearInterval(asked)
      await globalThis.controlProxy(number, 'stop')
    },
  }
}
