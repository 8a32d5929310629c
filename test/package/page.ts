/** Pages in the browser of the system: serves a folder, opens its `index.html`, and gives what the page said. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { driven, withChromium } from '../browser/chromium.js'
import { serveFolder } from '../support/servers.js'

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

export type OpenPage = (folder: string, query: string) => Promise<PageOutcome>

export type Visit = (url: string) => Promise<PageOutcome>

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
