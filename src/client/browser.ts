/**
 * The client: `connect()` and everything that it gives and takes.
 *
 * This is the entry file of `mqwire` for browsers, workers and every other runtime with a global WebSocket; in Node the same names have more
 * transports. One of the two places that choose a transport. Importing it has no effect.
 *
 * @module
 */
import { textOf } from '../errors.js'
import { dialWebSocket } from '../transport/websocket.js'
import { unsupportedSetting } from '../transport/websocket-rules.js'
import { clientOn, connectWith } from './client.js'
import type { ClientOptions, ConnectOptions, Endpoint } from './options/index.js'
import { type Platform, runtime, spaced } from './platform.js'

/** Back on a network, on the screen, or from a freeze: in a worker there is no document, and in some runtimes nothing of all this. */
const wakeEvents = {
  online: 'globalThis',
  pageshow: 'globalThis',
  visibilitychange: 'document',
  resume: 'document',
} as const

const isHidden = (): boolean => globalThis.document?.visibilityState === 'hidden'

function isAwake(event: Event): boolean {
  // The first show of a page is no return to it.
  if (event.type === 'pageshow') return (event as PageTransitionEvent).persisted
  return event.type !== 'visibilitychange' || !isHidden()
}

const platform: Platform = {
  ...runtime,
  // A page that is left gives up what it has in hand: that is no fault of the program.
  report: /* @__PURE__ */ spaced(
    (code, text, detail) =>
      code !== 'MQWIRE_UNSENT' &&
      console.error(`${code}: ${text}`, ...(detail === undefined ? [] : [detail])),
    (callback) => void setTimeout(callback, 1000),
  ),
  // Timers are held back to 4 ms when they follow each other. React Native has no channels.
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
  /** Consoles show it by this name, whatever a bundler calls it. */
  static override readonly name = 'Client'
}

/**
 * Makes a client and connects it: one endpoint, or a list that is tried in order.
 * @throws MqttError as `new Client` and `client.connect`
 */
export const connect: (
  endpoints: Endpoint | readonly Endpoint[],
  options?: ClientOptions & ConnectOptions,
) => Promise<Client> = /* @__PURE__ */ connectWith(Client)

export * from './public.js'
