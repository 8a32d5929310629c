/**
 * The page in headless Chromium: bundles it, serves it, and puts WebSockets in front of the peer. Everything ends with `close()`.
 */
import { createServer } from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { find } from '../peers/index.js'
import { relayTo } from '../peers/relay.js'

const here = path.dirname(fileURLToPath(import.meta.url))

/** Where Chromium is; undefined when it is not installed. */
export function findChromium() {
  return find('chromium') ?? find('chromium-browser') ?? find('google-chrome')
}

async function bundle() {
  const { outputFiles } = await build({
    entryPoints: [path.join(here, 'page.js')],
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'error',
    // What mqtt-packet expects of Node.
    alias: { stream: 'readable-stream', 'node:stream': 'readable-stream' },
    inject: [path.join(here, 'node-names.js')],
    define: { global: 'globalThis' },
  })
  return outputFiles[0].text
}

/**
 * Opens the page.
 * @param {number} port of the peer
 * @returns {Promise<{ url: string, version: string, run: (name: string, settings: object) => Promise<object>, close: () => Promise<void> }>}
 */
export async function openPage(port) {
  const script = await bundle()
  const server = createServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.writeHead(200, {
      'content-type': isScript ? 'text/javascript; charset=utf-8' : 'text/html; charset=utf-8',
    })
    response.end(
      isScript
        ? script
        : '<!doctype html><meta charset="utf-8"><title>bench</title><script src="/page.js"></script>',
    )
  })
  relayTo(port, server)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${server.address().port}`
  const flags = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
  const browser = await chromium.launch({ executablePath: findChromium(), args: flags })
  const page = await browser.newPage()
  const errors = []
  page.on('pageerror', (error) => errors.push(error.message))
  return {
    url: `ws://${host}/mqtt`,
    version: browser.version(),
    async run(name, settings) {
      try {
        // A fresh page for each run: none learns from the one before.
        await page.goto(`http://${host}/`)
        return await page.evaluate(
          ([called, given]) => globalThis.bench[called](given),
          [name, settings],
        )
      } catch (error) {
        throw new Error([error.message, ...errors].join('; '))
      }
    },
    async close() {
      await browser.close()
      server.closeAllConnections()
      server.close()
    },
  }
}
