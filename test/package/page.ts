/**
 * The page of the one program that every runtime runs and every bundler bundles, and pages in the browser of the system: a folder is served, its
 * `index.html` opened, and what the page said is given.
 */
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { driven, withChromium } from '../browser/chromium.js'
import { serveFolder } from '../support/servers.js'
import { nodeBelow } from './browser-code.js'
import { project } from './fixture.js'

/**
 * `round(url)`, which promises what it came to. What it asks itself at the end loads the module for requests, which bundlers put into a file of its own.
 */
export const round = `
async function round(url) {
  const client = await connect(url, { reconnect: false })
  const topic = 'round/' + client.clientId
  const subscription = await client.subscribe(topic, { qos: 2 })
  for (const qos of [0, 1, 2]) await client.publish(topic, 'sent at ' + qos, { qos })
  const received = []
  for await (const message of subscription) {
    received.push(message.text() + ', came at ' + message.qos)
    if (received.length === 3) break
  }
  await client.respond(topic + '/question', (message) => message.text() + '!')
  const answer = await client.request(topic + '/question', 'answered', { timeout: 5000 })
  await client.disconnect()
  return [...received.sort(), answer.text(), client.state].join('; ')
}
`

const fromArguments = `
async function main() {
  for (const url of process.argv.slice(2)) console.log(await round(url))
}
main()
`

export const wellDone =
  'sent at 0, came at 0; sent at 1, came at 1; sent at 2, came at 2; answered!; closed'

/** Goes round with each URL of the command line. For Node, Deno and Bun: it ends when nothing is left that would keep it alive. */
export const programs: Readonly<Record<'round.mjs' | 'round.cjs', string>> = {
  'round.mjs': `import { connect } from 'mqwire'\n${round}${fromArguments}`,
  'round.cjs': `const { connect } = require('mqwire')\n${round}${fromArguments}`,
}

/** For a page: goes round with the URL behind the `?`, and promises the outcome as a global. */
const pageScript = `import { connect } from 'mqwire'
${round}
globalThis.outcome = round(decodeURIComponent(location.search.slice(1)))
`

/** A page that runs a script, with what stands before it in its head. */
export function pageWith(script: string, head = ''): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>round</title>
    <link rel="icon" href="data:," />
    ${head}
  </head>
  <body>
    <script type="module" src="${script}"></script>
  </body>
</html>
`
}

/** What a page came to: the value of its global `outcome`, awaited, and everything it wrote to the console or did not catch. */
interface PageOutcome {
  readonly outcome: unknown
  readonly console: readonly string[]
}

async function visit(chrome: Browser, url: string): Promise<PageOutcome> {
  const page = await chrome.newPage()
  const said: string[] = []
  page.on('console', (message) => said.push(message.text()))
  page.on('pageerror', (error) => said.push(String(error)))
  try {
    // Module scripts have run when it resolves; what a framework runs may come later.
    await page.goto(url)
    await page.waitForFunction('globalThis.outcome !== undefined')
    return { outcome: await page.evaluate('globalThis.outcome'), console: said }
  } finally {
    await page.close()
  }
}

async function open(chrome: Browser, folder: string, query: string): Promise<PageOutcome> {
  const { origin, stop } = await serveFolder(folder)
  try {
    return await visit(chrome, `${origin}/index.html?${encodeURIComponent(query)}`)
  } finally {
    stop()
  }
}

type OpenPage = (folder: string, query: string) => Promise<PageOutcome>

type Visit = (url: string) => Promise<PageOutcome>

/** Defines tests in the browser, which is started once for all of them. */
export function withBrowser(define: (openPage: OpenPage, visit: Visit) => void): void {
  withChromium(() => {
    let chrome: Browser
    beforeAll(async () => {
      chrome = await driven()
    })
    afterAll(() => chrome.close())
    define(
      (folder, query) => open(chrome, folder, query),
      (url) => visit(chrome, url),
    )
  })
}

/** Bundles `page.js` of a folder into its `site/`, which has a page that loads `page.js`, and gives the warnings. */
export type Bundle = (folder: string) => Promise<readonly string[]>

interface Bundled extends PageOutcome {
  readonly warnings: readonly string[]
  /** What the code has of Node. */
  readonly node: readonly string[]
}

/** Bundles the program of all runtimes with a bundler as it comes, and opens the page with the URL of a broker. */
export async function bundled(bundle: Bundle, openPage: OpenPage, url: string): Promise<Bundled> {
  const page = pageWith('/page.js')
  const folder = await project({
    'page.js': pageScript,
    'index.html': page,
    'site/index.html': page,
  })
  const warnings = await bundle(folder)
  const site = path.join(folder, 'site')
  return { warnings, node: await nodeBelow(site), ...(await openPage(site, url)) }
}

/** A bundle without a flaw, of which a page has run. */
export const flawless = (outcome: string): Bundled => ({
  warnings: [],
  node: [],
  outcome,
  console: [],
})
