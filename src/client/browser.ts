/**
 * The client: `connect()` and its public types.
 *
 * This is the entry file of `mqwire` for browsers, workers and every other runtime with a global
 * WebSocket; Node has the same exports with more transports. One of the two places that choose a
 * transport. Importing it has no side effect.
 *
 * @module
 */
import { textOf } from '../errors.js'
import { dialWebSocket } from '../transport/websocket.js'
import { unsupportedSetting } from '../transport/websocket-rules.js'
import { clientOn, connectWith } from './client.js'
import type { ClientOptions, ConnectOptions, Endpoint } from './options/index.js'
import { type Platform, runtime, spaced } from './platform.js'

/**
 * Events after which the network, the page or its timers may be back. Workers have no document, and
 * some runtimes none of these.
 */
const wakeEvents = {
  online: 'globalThis',
  pageshow: 'globalThis',
  visibilitychange: 'document',
  resume: 'document',
} as const

const isHidden = (): boolean => globalThis.document?.visibilityState === 'hidden'

function isAwake(event: Event): boolean {
  // The first `pageshow` of a page is not a return.
  if (event.type === 'pageshow') return (event as PageTransitionEvent).persisted
  return event.type !== 'visibilitychange' || !isHidden()
}

const platform: Platform = {
  ...runtime,
  // A page that is closed gives up its messages; that is not the program's fault.
  report: /* @__PURE__ */ spaced(
    (code, text, detail) =>
      code !== 'MQWIRE_UNSENT' &&
      console.error(`${code}: ${text}`, ...(detail === undefined ? [] : [detail])),
    (callback) => void setTimeout(callback, 1000),
  ),
  // Nested timers are clamped to 4 ms, so a message channel is used. React Native has none.
  nextTurn(callback) {
    if (globalThis.MessageChannel === undefined) return void setTimeout(callback)
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      callback()
    }
    port2.postMessage(undefined)
  },
  onWake(callback) {
    const listener = (event: Event): void => {
      if (isAwake(event)) callback()
    }
    const each = (act: 'addEventListener' | 'removeEventListener'): void => {
      for (const [type, target] of Object.entries(wakeEvents))
        globalThis[target]?.[act]?.(type, listener)
    }
    each('addEventListener')
    return () => each('removeEventListener')
  },
  hidden: isHidden,
  schemes: 'wss:, ws: (WebSocket port of the broker)',
  dialler: (scheme) => (scheme === 'ws' || scheme === 'wss' ? dialWebSocket : undefined),
  isTlsError: () => false,
  describe: (error) => textOf(error.message),
  unsupported: unsupportedSetting,
}

/** An MQTT client; `await using` disconnects it at the end of the block. */
export class Client extends /* @__PURE__ */ clientOn(platform) {
  /** Fixed, because bundlers may rename the class. */
  static override readonly name = 'Client'
}

/**
 * Creates a client and connects it to one endpoint, or to a list that is tried in order.
 * @throws MqttError as `new Client` and `client.connect`
 */
export const connect: (
  endpoints: Endpoint | readonly Endpoint[],
  options?: ClientOptions & ConnectOptions,
) => Promise<Client> = /* @__PURE__ */ connectWith(Client)

export * from './public.js'
