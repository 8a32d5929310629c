/**
 * Pages in the browser of the system: serves a folder, opens its `index.html`, and tells what the page said.
 */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { serveFolder } from '../support/servers.js'

const executable = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((file) => existsSync(file))
/** What a page came to: the value of its global `outcome`, awaited, and everything it wrote to the console or did not catch. */
export interface PageOutcome {
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

/** Opens the page of a folder, with a query. */
export type OpenPage = (folder: string, query: string) => Promise<PageOutcome>

/** Opens the page at a URL. */
export type Visit = (url: string) => Promise<PageOutcome>

/** Defines tests in the browser, which is started once for all of them. Where there is none they fail in CI; elsewhere that is said. */
export function withBrowser(define: (openPage: OpenPage, visit: Visit) => void): void {
  if (executable === undefined) {
    it('pages are not tried: chromium not found', () => expect(process.env['CI']).toBeUndefined())
    return
  }
  let chrome: Browser | undefined
  beforeAll(async () => {
    chrome = await chromium.launch({ executablePath: executable, args: ['--no-sandbox'] })
  })
  afterAll(() => chrome?.close())
  const started = (): Browser => {
    if (chrome === undefined) throw new Error('the browser did not start')
    return chrome
  }
  define(
    async (folder, query) => open(started(), folder, query),
    async (url) => visit(started(), url),
  )
}
