/**
 * What a bundle for React Native finds around it, in a Node process: the globals of React Native 0.88 on Hermes, and none of the others that Node has.
 *
 * Of them, `URL` stands for react-native-url-polyfill and `crypto` for react-native-get-random-values: React Native has a URL that knows http only, and
 * no `crypto`. Everything made by the host is given as the bundle's own realm has it. `WebSocket` is as strict as that of React Native: it takes text,
 * and shows no `bufferedAmount`.
 */

/** Runs in the host: `node run.cjs bundle.js URL`. Prints what the global `outcome` comes to. */
export const runner = `
const { randomFillSync } = require('node:crypto')
const { readFileSync } = require('node:fs')
const vm = require('node:vm')
const { WebSocket } = require('ws')

const [bundle, url] = process.argv.slice(2)
const host = {
  fill: (view) => randomFillSync(view),
  encode: (text) => new TextEncoder().encode(text),
  decoder: (label, options) => new TextDecoder(label, options),
  dial(url, protocols, socket) {
    const stream = new WebSocket(url, protocols)
    stream.on('open', () => socket.opened(stream.protocol))
    stream.on('message', (data) => socket.got(data))
    stream.on('close', (code, reason) => socket.closed(code, String(reason)))
    stream.on('error', (error) => socket.failed(error.message))
    return stream
  },
}
const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, queueMicrotask, performance } = globalThis
const { AbortController, AbortSignal, Event, EventTarget, URL, URLSearchParams, console } = globalThis
const timers = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, queueMicrotask }
const context = vm.createContext({ ...timers, performance, AbortController, AbortSignal, Event, EventTarget, URL, URLSearchParams, console, host, url })
const run = (code, filename) => vm.runInContext(code, context, { filename })

run(\`
  delete globalThis.WebAssembly
  delete globalThis.SharedArrayBuffer
  globalThis.window = globalThis.self = globalThis
  globalThis.process = { env: { NODE_ENV: 'production' } }
  globalThis.navigator = { product: 'ReactNative' }
  globalThis.crypto = { getRandomValues: ((fill) => (view) => (fill(view), view))(host.fill) }
  globalThis.TextEncoder = ((encode) => class { encode(text) { return new Uint8Array(encode(text)) } })(host.encode)
  globalThis.TextDecoder = ((make) => class {
    #decoder
    constructor(label, options) { this.#decoder = make(label, options) }
    decode(bytes, options) { return this.#decoder.decode(bytes, options) }
  })(host.decoder)
  globalThis.WebSocket = ((dial) => class {
    binaryType = 'blob'
    onopen = null
    onmessage = null
    onclose = null
    onerror = null
    #stream
    constructor(url, protocols) {
      if (typeof url !== 'string' || !Array.isArray(protocols)) throw new TypeError('the native side takes text, and a list of it')
      this.#stream = dial(url, protocols, {
        opened: (protocol) => { this.protocol = protocol; this.onopen?.({ type: 'open' }) },
        got: (data) => {
          if (this.binaryType !== 'arraybuffer') throw new Error('there are no blobs here')
          this.onmessage?.({ type: 'message', data: Uint8Array.from(data).buffer })
        },
        closed: (code, reason) => this.onclose?.({ type: 'close', code, reason }),
        failed: (message) => this.onerror?.({ type: 'error', message }),
      })
    }
    send(data) { this.#stream.send(data.slice()) }
    close(code, reason) { this.#stream.close(code, reason) }
  })(host.dial)
  delete globalThis.host
\`, 'setup.js')

run(readFileSync(bundle, 'utf8'), 'bundle.js')
run('outcome', 'end.js').then(console.log, (error) => {
  console.log(error)
  process.exitCode = 1
})
`
