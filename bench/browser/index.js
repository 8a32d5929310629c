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

/** The least program of each client: it connects, subscribes, and takes a message. */
const programs = {
  mqwire: `import { connect } from 'mqwire'
    const client = await connect(url)
    for await (const message of await client.subscribe(['plants/#', 'N1/256'])) taken(message.payload)`,
  'MQTT.js': `import mqtt from 'mqtt'
    const client = mqtt.connect(url, { protocolVersion: 5 })
    client.on('connect', () => client.subscribe(['plants/#', 'N1/256']))
    client.on('message', (topic, payload) => taken(payload))`,
}

/** These programs as users ship them: bundled and minified, all in the same way. */
async function bundlePrograms() {
  const bundles = {}
  for (const [name, contents] of Object.entries(programs)) {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: here },
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
      logLevel: 'error',
    })
    bundles[name] = outputFiles[0].text
  }
  return bundles
}

const head = '<!doctype html><meta charset="utf-8"><title>bench</title>'
const firstPage = (name) => `${head}<script>
  const url = 'ws://' + location.host + '/mqtt'
  let taken
  const first = new Promise((resolve) => { taken = () => resolve(performance.now()) })
</script><script type="module" src="/${name}.js"></script>`

/**
 * Opens the page.
 * @param {number} port of the peer
 * @returns {Promise<{ url: string, version: string, run: (name: string, settings: object) => Promise<object>, close: () => Promise<void> }>}
 */
export async function openPage(port) {
  const files = new Map([
    ['/', `${head}<script src="/page.js"></script>`],
    ['/page.js', await bundle()],
  ])
  const server = createServer(({ url }, response) => {
    const type = url.endsWith('.js') ? 'text/javascript' : 'text/html'
    response.writeHead(files.has(url) ? 200 : 404, { 'content-type': `${type}; charset=utf-8` })
    response.end(files.get(url))
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
  const errors = []
  async function newPage() {
    const page = await browser.newPage()
    page.on('pageerror', (error) => errors.push(error.message))
    const devTools = await page.context().newCDPSession(page)
    const slowDown = (rate) => devTools.send('Emulation.setCPUThrottlingRate', { rate })
    return { page, devTools, slowDown }
  }
  async function orErrors(work) {
    try {
      return await work()
    } catch (error) {
      throw new Error([error.message, ...errors].join('; '))
    }
  }
  const { page, slowDown } = await newPage()
  return {
    url: `ws://${host}/mqtt`,
    version: browser.version(),
    run: (name, settings, { slower = 1 } = {}) =>
      orErrors(async () => {
        // A fresh page for each run: none learns from the one before.
        await page.goto(`http://${host}/`)
        await slowDown(slower)
        return page.evaluate(([called, given]) => globalThis.bench[called](given), [name, settings])
      }),
    /** Bytes of the least program of each client. */
    async prepareFirst() {
      const bundles = await bundlePrograms()
      for (const [name, text] of Object.entries(bundles)) {
        files.set(`/${name}/`, firstPage(name))
        files.set(`/${name}.js`, text)
      }
      return Object.fromEntries(Object.entries(bundles).map(([name, { length }]) => [name, length]))
    },
    /** Milliseconds from navigation to the first message, in a browser context that has loaded nothing yet. */
    first: (name, { slower }) =>
      orErrors(async () => {
        const fresh = await newPage()
        await fresh.devTools.send('Network.setCacheDisabled', { cacheDisabled: true })
        await fresh.slowDown(slower)
        await fresh.page.goto(`http://${host}/${name}/`)
        const took = await fresh.page.evaluate('first')
        await fresh.page.context().close()
        return took
      }),
    async close() {
      await browser.close()
      server.closeAllConnections()
      server.close()
    },
  }
}
