/**
 * `mqwire` on a page of the site: the same exports, with a platform whose every URL leads to the broker in memory. Settings of sockets and TLS are
 * checked and have no effect.
 */
import { clientOn, connectWith } from '../../../dist/client/client.js'
import { socketSettings, tlsSettings } from '../../../dist/client/options/check-sockets.js'
import { runtime, spaced } from '../../../dist/client/platform.js'
import { attend, broker } from './broker.js'

const platform = {
  ...runtime,
  attend,
  report: spaced(
    (code, text, detail) =>
      console.warn(`${code}: ${text}`, ...(detail === undefined ? [] : [detail])),
    (callback) => setTimeout(callback, 1000),
  ),
  // Nested timers are clamped to 4 ms.
  nextTurn(callback) {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      callback()
    }
    port2.postMessage(undefined)
  },
  schemes: 'any',
  dialler: () => broker.dial,
  isTlsError: () => false,
  describe: (error) => error.message,
  unsupported: () => undefined,
  tls: tlsSettings,
  socket: socketSettings,
}

export class Client extends clientOn(platform) {}

export const connect = connectWith(Client)

export * from '../../../dist/client/public.js'
