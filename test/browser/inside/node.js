/**
 * The little of Node that the world uses itself, in a browser.
 *
 * Files of `src` get nothing of it: code that asked for `Buffer` or `process` fails, as it must.
 */
export class Buffer extends Uint8Array {
  static concat(parts) {
    return Buffer.from(parts.flatMap((part) => [...part]))
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
