/**
 * Serves the dashboard on this machine: `node examples/dashboard/serve.js [--port 8080] [--url ws://127.0.0.1:9001] [--topic '#'] [--qos 1]` once the
 * package is built, or from a program with `serveDashboard()`.
 *
 * The page may load nothing from elsewhere, run no script but its own, and connect to WebSockets only.
 */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { argumentsOf } from '../arguments.js'
import { bundled, lazily, servePage, strict } from '../serving.js'
import { withoutSecrets } from './settings.js'

const folder = fileURLToPath(new URL('.', import.meta.url))
const bundle = lazily(() =>
  bundled({
    absWorkingDir: folder,
    entryPoints: { dashboard: 'main.js', style: 'dashboard.css' },
    // The other one makes code from text, which the policy of the page forbids.
    alias: { msgpackr: 'msgpackr/index-no-eval' },
  }),
)

const files = new Map([
  ['/', ['text/html; charset=utf-8', () => readFile(path.join(folder, 'index.html'))]],
  ['/icon.svg', ['image/svg+xml', () => readFile(path.join(folder, 'icon.svg'))]],
  ['/dashboard.js', ['text/javascript; charset=utf-8', async () => (await bundle()).get('.js')]],
  ['/dashboard.css', ['text/css; charset=utf-8', async () => (await bundle()).get('.css')]],
])

const policy = () =>
  `${strict}; img-src 'self' blob:; connect-src 'self' ws: wss:; form-action 'none'`

/** Starts the server. Gives its address, `address(settings)`, which is the address with them, and what stops it. */
export async function serveDashboard({ port = 8080 } = {}) {
  const { origin, stop } = await servePage({ files, policy, port })
  return {
    origin,
    /** The address of the page with `url`, `topic`, `qos` and `publish` filled in. */
    address: (settings = {}) => {
      const query = new URLSearchParams(settings)
        .toString()
        .replaceAll('%2F', '/')
        .replaceAll('%3A', ':')
      return query === '' ? origin : `${origin}?${query}`
    },
    stop,
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = argumentsOf({
    usage: 'node examples/dashboard/serve.js [options]',
    about: 'Serves the dashboard for a broker that listens on WebSocket.',
    options: {
      port: {
        value: 'N',
        number: [0, 65_535],
        whole: true,
        initial: 8080,
        text: 'where it listens, or the next port that is free',
      },
      url: { value: 'URL', text: 'the broker, filled in on the page, as ws://127.0.0.1:9001' },
      topic: { value: 'FILTER', text: 'the topic filter, filled in on the page' },
      qos: { value: 'N', number: [0, 2], whole: true, text: 'the QoS, filled in on the page' },
    },
  })
  const { port, ...given } = values
  const settings = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  )
  if (settings.url !== undefined) settings.url = withoutSecrets(settings.url)
  const dashboard = await serveDashboard({ port })
  console.log(`The dashboard is at ${dashboard.address(settings)}`)
}
