/**
 * Serves the dashboard on this machine: `node examples/dashboard/serve.js [--port 8080] [--url ws://127.0.0.1:9001] [--topic '#'] [--qos 1]` once the
 * package is built, or from a program with `serveDashboard()`.
 *
 * It knows four names and reads no others from the disk: whatever else is asked for is not there. The page may load nothing from elsewhere, run no
 * script but its own, and connect to WebSockets only.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { withoutSecrets } from './settings.js'

const folder = fileURLToPath(new URL('.', import.meta.url))

const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-cache',
}

/** Ports that are tried, one after the other. */
const attempts = 20

let bundled

// At the first request, and once: whoever opens no page does not wait for it.
function bundle() {
  bundled ??= import('esbuild').then(async ({ build }) => {
    const { outputFiles } = await build({
      absWorkingDir: folder,
      entryPoints: { dashboard: 'main.js', style: 'dashboard.css' },
      outdir: folder,
      bundle: true,
      write: false,
      minify: true,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
      logLevel: 'silent',
    })
    return new Map(outputFiles.map((file) => [path.extname(file.path), file.contents]))
  })
  return bundled
}

/** Path of a request to content type and content: nothing else is served. */
const files = new Map([
  ['/', ['text/html; charset=utf-8', () => readFile(path.join(folder, 'index.html'))]],
  ['/icon.svg', ['image/svg+xml', () => readFile(path.join(folder, 'icon.svg'))]],
  ['/dashboard.js', ['text/javascript; charset=utf-8', async () => (await bundle()).get('.js')]],
  ['/dashboard.css', ['text/css; charset=utf-8', async () => (await bundle()).get('.css')]],
])

async function answer(request, response) {
  const end = (status, more, body) => response.writeHead(status, { ...headers, ...more }).end(request.method === 'HEAD' ? undefined : body)
  const text = { 'content-type': 'text/plain; charset=utf-8' }
  if (request.method !== 'GET' && request.method !== 'HEAD') return end(405, { ...text, allow: 'GET, HEAD' }, 'GET and HEAD only\n')
  const [pathname] = request.url.split('?')
  const file = files.get(pathname)
  if (file === undefined) return end(404, text, 'there is nothing here\n')
  const [type, read] = file
  try {
    const content = await read()
    return end(200, { 'content-type': type, 'content-length': content.length }, content)
  } catch (error) {
    console.error(`The dashboard could not be made: ${error.message}`)
    return end(500, text, 'the page could not be made\n')
  }
}

/** Listens on a port of this machine, or on the next one that is free. */
async function listen(server, port) {
  for (let attempt = 0; ; attempt += 1) {
    // The system chooses, when so many are taken.
    const wanted = attempt < attempts && port + attempt <= 65_535 ? port + attempt : 0
    server.listen(wanted, '127.0.0.1')
    try {
      await once(server, 'listening')
      return server.address().port
    } catch (error) {
      if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error
      if (wanted === 0) throw error
    }
  }
}

/** Starts the server. Gives its address, `open(settings)`, which is the address with them, and what stops it. */
export async function serveDashboard({ port = 8080 } = {}) {
  const server = createServer(answer)
  const origin = `http://127.0.0.1:${await listen(server, port)}/`
  return {
    origin,
    /** The address of the page with `url`, `topic`, `qos` and `publish` filled in. */
    address: (settings = {}) => {
      const query = new URLSearchParams(settings).toString().replaceAll('%2F', '/').replaceAll('%3A', ':')
      return query === '' ? origin : `${origin}?${query}`
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const text = { type: 'string' }
  const { port = '8080', ...settings } = parseArgs({ options: { port: text, url: text, topic: text, qos: text } }).values
  if (settings.url !== undefined) settings.url = withoutSecrets(settings.url)
  const dashboard = await serveDashboard({ port: Number(port) })
  console.log(`The dashboard is at ${dashboard.address(settings)}`)
}
