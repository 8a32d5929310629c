/**
 * The web server of the browser tests: pages, the built package as it is published, and programs, as modules and bundled.
 *
 * `/inside/page.html` has the virtual world. `/pages/NAME.html` loads the module `/programs/NAME.js` and finds
 * `mqwire` by an import map; `/strict/NAME.html` loads its bundle under a strict Content Security Policy. Call `requireDist()` first.
 */
import { readFile } from 'node:fs/promises'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import path from 'node:path'
import { build } from 'esbuild'
import { root } from '../package/fixture.js'
import type { Identity } from '../support/certificates.js'
import { closed, listening } from '../support/servers.js'
import { bundleInside } from './inside/bundle.js'

/** A running server. */
export interface Site {
  readonly origin: string
  stop(): Promise<void>
}

/** No script but that of the site, none from text, no WebAssembly, no blobs; connections to WebSockets on this machine only. */
const strictPolicy = "default-src 'self'; script-src 'self'; connect-src ws://127.0.0.1:*"

/** What a page has to say for itself to have shared memory. */
const isolated = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
}
const importMap = JSON.stringify({
  imports: { mqwire: '/dist/client/browser.js', 'mqwire/wasm': '/dist/wasm/index.js' },
})

type Answer = readonly [
  type: string,
  body: string | Buffer,
  headers?: Readonly<Record<string, string>>,
]

const html = (head: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>test</title>${head}</html>`

const bundles = new Map<string, Promise<string>>()

function bundled(name: string): Promise<string> {
  const known = bundles.get(name)
  if (known !== undefined) return known
  const options = {
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'silent',
  } as const
  const made = build({
    ...options,
    absWorkingDir: root,
    entryPoints: [`test/browser/programs/${name}`],
  }).then(({ outputFiles: [file] }) => file?.text ?? '')
  bundles.set(name, made)
  return made
}

/** Made when they are first asked for. */
let suites: ReturnType<typeof bundleInside> | undefined

async function inside(name: string): Promise<string> {
  suites ??= bundleInside()
  const text = (await suites).get(name)
  if (text === undefined) throw new Error(`no module ${name}`)
  return text
}

async function answer(pathname: string): Promise<Answer> {
  const name = path.basename(pathname)
  switch (pathname.split('/')[1]) {
    case 'pages':
      return [
        'text/html',
        html(
          `<script type="importmap">${importMap}</script><script type="module" src="/programs/${name.replace('.html', '.js')}"></script>`,
        ),
      ]
    case 'strict':
      return [
        'text/html',
        html(`<script src="/bundles/${name.replace('.html', '.js')}"></script>`),
        { 'content-security-policy': strictPolicy },
      ]
    case 'bundles':
      return ['text/javascript', await bundled(name)]
    case 'programs':
      return [
        'text/javascript',
        await readFile(path.join(root, 'test', 'browser', 'programs', name)),
      ]
    case 'inside':
      return name.endsWith('.html')
        ? [
            'text/html',
            html(`<script type="module" src="/inside/${name.replace('.html', '.js')}"></script>`),
            isolated,
          ]
        : ['text/javascript', await inside(name), isolated]
    case 'dist':
      return ['text/javascript', await readFile(path.join(root, path.normalize(pathname)))]
    default:
      return ['text/html', html('<p>Another page.</p>')]
  }
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const [type, body, headers = {}] = await answer(
      new URL(request.url ?? '/', 'http://localhost').pathname,
    )
    response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, ...headers }).end(body)
  } catch (error) {
    response.writeHead(404).end(String(error))
  }
}

/** Starts a server; over TLS with an identity. */
export async function serveSite(identity?: Identity): Promise<Site> {
  const server =
    identity === undefined ? createHttpServer(serve) : createHttpsServer({ ...identity }, serve)
  const port = await listening(server)
  return {
    origin: `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    async stop() {
      server.closeAllConnections()
      await closed(server)
    },
  }
}
