/**
 * Serves a form that works offline, with a broker for its entries: `npm run offline-form` prints where.
 *
 * Enter takes the broker away, and brings it back; Ctrl-C stops everything, and the page still opens. What arrives is printed. It listens on this machine
 * only. The package has to be built: `npm run offline-form` sees to that.
 */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { MemoryBroker } from 'mqwire/testing'
import { argumentsOf } from '../arguments.js'
import { bundled, lazily, servePage, strict } from '../serving.js'

const folder = fileURLToPath(new URL('.', import.meta.url))
const bundle = lazily(() =>
  bundled({ absWorkingDir: folder, entryPoints: { form: 'main.js', style: 'style.css' } }),
)
const file = (name, type) => [`${type}; charset=utf-8`, () => readFile(path.join(folder, name))]

const files = new Map([
  ['/', file('index.html', 'text/html')],
  ['/style.css', ['text/css; charset=utf-8', async () => (await bundle()).get('.css')]],
  ['/service-worker.js', file('service-worker.js', 'text/javascript')],
  ['/form.js', ['text/javascript; charset=utf-8', async () => (await bundle()).get('.js')]],
])

// The service worker asks this server for the page's files; the page itself connects to its broker only.
const policy = () => `${strict}; connect-src 'self' ws: wss:; img-src data:; form-action 'none'`

/** Starts page and broker. Gives the address of the page, the broker, what takes the broker away and back, and what stops both. Port 0 is any that is free. */
export async function serveForm({
  port = 0,
  brokerPort = 0,
  broker = new MemoryBroker({ maxLog: 0 }),
  printed = () => {},
} = {}) {
  broker.on('publish', ({ message: { topic, payload } }) =>
    printed(`${topic} ${new TextDecoder().decode(payload)}`),
  )
  let listeners = await broker.serve({ ws: brokerPort })
  const [url] = listeners.urls
  const site = await servePage({ files, policy, port })
  return {
    address: `${site.origin}?url=${url}`,
    broker,
    async brokerGoes() {
      await listeners?.close()
      listeners = undefined
    },
    async brokerComes() {
      listeners ??= await broker.serve({ ws: Number(new URL(url).port) })
    },
    /** False while it is away. */
    get isThere() {
      return listeners !== undefined
    },
    async stop() {
      await Promise.all([site.stop(), broker.close()])
    },
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = argumentsOf({
    usage: 'npm run offline-form -- [options]',
    about:
      'Serves a form that works offline, with a broker. Enter takes the broker away and back. Ctrl-C stops both, and the page still opens.',
    options: {
      port: {
        value: 'N',
        number: [0, 65_535],
        whole: true,
        initial: 5175,
        text: 'where the page is, or the next port that is free',
      },
      'broker-port': {
        value: 'N',
        number: [0, 65_535],
        whole: true,
        initial: 5176,
        text: 'where the broker listens on WebSocket',
      },
    },
  })
  const form = await serveForm({
    port: values.port,
    brokerPort: values['broker-port'],
    printed: (line) => console.log(line),
  }).catch((error) => {
    console.error(`It could not start: ${error.message}; --help shows how to choose other ports.`)
    process.exit(1)
  })
  console.log(
    `The form is at ${form.address}  (Enter takes the broker away and back, Ctrl-C stops)`,
  )
  createInterface({ input: process.stdin }).on('line', async () => {
    await (form.isThere ? form.brokerGoes() : form.brokerComes())
    console.log(form.isThere ? 'The broker is back.' : 'The broker is gone.')
  })
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, async () => {
      await form.stop()
      process.exit()
    })
  }
}
