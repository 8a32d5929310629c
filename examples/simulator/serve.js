/**
 * Serves the simulator: `node examples/simulator/serve.js [--port N]`, or `npm run simulator`, prints where.
 *
 * The page is bundled by esbuild from the built package (`npm run build`) when it is first asked for. Two addresses, one page: `/` runs over the broker
 * in memory, under a Content Security Policy that lets no connection out; `/?url=wss://…` runs over a real broker, and may connect to WebSockets.
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'

const folder = fileURLToPath(new URL('.', import.meta.url))
const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' }
const files = { '/': 'index.html', '/style.css': 'style.css' }

const common = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

/** Content Security Policies of the page. Nothing leaves under the first one, whatever the page tries. */
export const policies = {
  memory: `${common}; connect-src 'none'`,
  webSocket: `${common}; connect-src ws: wss:`,
}

/** A module for browsers and all that it imports, as one classic script that needs nothing else. */
export async function bundleOf(entry, options = {}) {
  const settings = { bundle: true, write: false, format: 'iife', platform: 'browser', target: 'es2022', minify: true, logLevel: 'silent' }
  const { outputFiles } = await build({ ...settings, entryPoints: [entry], ...options })
  return outputFiles[0].text
}

async function answer({ pathname, searchParams }, bundle) {
  if (pathname === '/main.js') return [types['.js'], await bundle(), {}]
  const file = Object.hasOwn(files, pathname) ? files[pathname] : undefined
  if (file === undefined) return undefined
  const policy = searchParams.has('url') ? policies.webSocket : policies.memory
  return [types[path.extname(file)], await readFile(path.join(folder, file)), { 'content-security-policy': policy }]
}

/** Starts the server; gives where it listens, and what stops it. Port 0 is any that is free. */
export async function serve({ port = 0, host = '127.0.0.1' } = {}) {
  let bundled
  const bundle = () => {
    bundled ??= bundleOf(path.join(folder, 'main.js')).catch((error) => {
      bundled = undefined
      throw error
    })
    return bundled
  }
  const server = createServer(async (request, response) => {
    try {
      const found = ['GET', 'HEAD'].includes(request.method) ? await answer(new URL(request.url ?? '/', 'http://localhost'), bundle) : undefined
      if (found === undefined) {
        response.writeHead(404).end()
        return
      }
      const [type, body, headers] = found
      const safe = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'cache-control': 'no-cache' }
      response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, ...safe, ...headers }).end(body)
    } catch (error) {
      console.error(error)
      response.writeHead(500).end()
    }
  })
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  return {
    url: `http://${host}:${server.address().port}/`,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function main() {
  const { values } = parseArgs({ options: { port: { type: 'string', default: '8088' } } })
  try {
    const { url } = await serve({ port: Number(values.port) })
    console.log(`The simulator is at ${url}  (Ctrl-C stops)`)
  } catch (error) {
    console.error(`The simulator cannot be served: ${error.message}`)
    process.exitCode = 1
  }
}

if (pathToFileURL(process.argv[1] ?? '').href === import.meta.url) await main()
