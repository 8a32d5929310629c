/** What stands in the console of a page: programs that are broken in many ways, and `console.log` of everything that a program gets into its hands. */
import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { beforeAll, it } from 'vitest'
import { driven, withChromium } from '../../browser/chromium.js'
import { packed, requireDist, root } from '../fixture.js'
import { inPage } from './broken.js'
import { type Pages, startPages } from './in-chromium.js'
import { expectHeads, expectKept, expectRules } from './kept.js'
import { startServers } from './servers.js'

const source = (name: string) =>
  readFile(`${root}/test/package/transcript/programs/${name}.js`, 'utf8')

withChromium(() => {
  let browser: Browser
  let pages: Pages

  beforeAll(async () => {
    await requireDist()
    await packed()
    browser = await driven()
    const servers = await startServers()
    pages = await startPages(browser, servers)
    return async () => {
      await pages.stop()
      await browser.close()
      await servers.stop()
    }
  })

  it('is what is kept for the page of the README, and each line follows the rules', async () => {
    const transcript: [string, string][] = []
    for (const [index, { title, code }] of (await inPage()).entries())
      transcript.push([title, await pages.printed(`page-${index}.js`, code)])
    expectKept(
      transcript.map(([title, text], index) => [
        title,
        text.replaceAll(`page-${index}.js`, 'page.js'),
      ]),
    )
  }, 60_000)

  it('says the same of errors as Node, and each line follows the rules, those of objects too', async () => {
    expectHeads('calling', await pages.printed('calling.js', await source('calling')))
    expectRules([['objects', await pages.printed('objects.js', await source('objects'))]])
  }, 60_000)
})
