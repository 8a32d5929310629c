/**
 * Serves the simulator: `node examples/simulator/serve.js [--port N]`, or `npm run simulator`, prints where.
 *
 * The page is bundled by esbuild from the built package (`npm run build`) when it is first asked for. Two addresses, one page: `/` runs over the broker
 * in memory, under a Content Security Policy that lets no connection out; `/?url=wss://…` runs over a real broker, and may connect to WebSockets.
 */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { argumentsOf } from '../arguments.js'
import { bundled, lazily, servePage, strict } from '../serving.js'

const folder = fileURLToPath(new URL('.', import.meta.url))

/** Starts the server; gives where it listens, and what stops it. Port 0 is any that is free. */
export async function serve({ port = 0 } = {}) {
  const bundle = lazily(() =>
    bundled({ absWorkingDir: folder, entryPoints: ['main.js', 'style.css'], format: 'iife' }),
  )
  const files = new Map([
    ['/', ['text/html; charset=utf-8', () => readFile(path.join(folder, 'index.html'))]],
    ['/style.css', ['text/css; charset=utf-8', async () => (await bundle()).get('.css')]],
    ['/main.js', ['text/javascript; charset=utf-8', async () => (await bundle()).get('.js')]],
  ])
  // Nothing leaves the page with the broker in memory, whatever it tries.
  const policy = (query) =>
    `${strict}; img-src data:; connect-src ${query.has('url') ? 'ws: wss:' : "'none'"}; form-action 'self'`
  const { origin, stop } = await servePage({ files, policy, port })
  return { url: origin, stop }
}

if (pathToFileURL(process.argv[1] ?? '').href === import.meta.url) {
  const { values } = argumentsOf({
    usage: 'npm run simulator -- [options]',
    about:
      'Serves a page that simulates hundreds of devices, at a broker in the page or at a real one.',
    options: {
      port: {
        value: 'N',
        number: [0, 65_535],
        whole: true,
        initial: 8088,
        text: 'where it listens, or the next port that is free',
      },
    },
  })
  const { url } = await serve(values)
  console.log(`The simulator is at ${url}  (Ctrl-C stops)`)
}
