/**
 * The documentation site: `npm run docs` builds it, no link on it is dead, and in a browser it can be read, by day, by night and on a phone, and searched.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { driven, withChromium } from '../../browser/chromium.js'
import { eventually } from '../../real/waiting.js'
import { serveFolder } from '../../support/servers.js'
import { node, root } from '../fixture.js'
import { leftOut } from './fetched.js'

const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-site-'))
afterAll(() => rm(folder, { recursive: true, force: true }))
const { code, output } = await node(['.ci/docs.mjs', '--out', folder], root, 400_000)

const missing: string[] = []

function fileOf(address: string): string {
  const name = decodeURIComponent(address.split(/[?#]/)[0] ?? '')
  if (name.endsWith('/')) return path.join(folder, name, 'index.html')
  return path.join(folder, path.extname(name) === '' ? `${name}.html` : name)
}

/** Addresses within the site that lead to no page, or to no place on it. */
async function deadLinks(): Promise<string[]> {
  const names = (await readdir(folder, { recursive: true })).filter(
    (name) => name.endsWith('.html') && name !== '404.html',
  )
  const texts = new Map(
    await Promise.all(
      names.map(
        async (name) =>
          [path.join(folder, name), await readFile(path.join(folder, name), 'utf8')] as const,
      ),
    ),
  )
  expect(texts.size).toBeGreaterThan(40)
  const dead: string[] = []
  for (const [file, text] of texts) {
    for (const [, href = ''] of text.matchAll(/<a\b[^>]*\bhref="(\/[^"]*|#[^"]*)"/g)) {
      const target = href.startsWith('#') ? file : fileOf(href)
      const anchor = decodeURIComponent(href.split('#')[1] ?? '')
      const found = texts.get(target)
      if (found === undefined || (anchor !== '' && !found.includes(`id="${anchor}"`)))
        dead.push(`${path.relative(folder, file)}: ${href}`)
    }
  }
  return dead
}

if (output.includes('VitePress cannot be had')) leftOut('the documentation site', output)
else
  describe('the documentation site', () => {
    let browser: Browser
    let origin = ''
    let stop = (): void => undefined

    it('is built', () => expect({ code, output }).toMatchObject({ code: 0 }))
    it('has no dead link', async () => expect([...new Set(await deadLinks())]).toEqual([]))

    withChromium(() => {
      beforeAll(async () => {
        const served = await serveFolder(folder, fileOf, (address) => missing.push(address))
        origin = served.origin
        stop = served.stop
        browser = await driven()
      })
      afterAll(async () => {
        await browser.close()
        stop()
      })

      const open = async (
        address: string,
        settings: Parameters<Browser['newPage']>[0] = {},
      ): Promise<Page> => {
        const page = await browser.newPage(settings)
        page.on('pageerror', (error) => missing.push(error.message))
        await page.goto(origin + address, { waitUntil: 'networkidle' })
        return page
      }
      const ground = (page: Page): Promise<string> =>
        page.evaluate(() => getComputedStyle(document.body).backgroundColor)

      it.each([
        ['light', { colorScheme: 'light', viewport: { width: 1280, height: 900 } }],
        ['dark', { colorScheme: 'dark', viewport: { width: 1280, height: 900 } }],
        ['on a phone', { colorScheme: 'light', viewport: { width: 360, height: 740 } }],
      ] as const)(
        'can be read, %s: nothing hangs over, pictures and code are there',
        async (_name, settings) => {
          for (const address of [
            '/',
            '/options.html',
            '/reference/mqwire.html',
            '/programs/basic.html',
          ]) {
            const page = await open(address, settings)
            expect(
              await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
            ).toBeLessThanOrEqual(0)
            expect(await page.locator('h1').count()).toBe(1)
            expect(
              await page.evaluate(() =>
                [...document.images].every((image) => image.naturalWidth > 0),
              ),
            ).toBe(true)
            const [red = 0] = (await ground(page)).match(/\d+/g)?.map(Number) ?? []
            expect(red > 128).toBe(settings.colorScheme === 'light')
            await page.close()
          }
          expect(missing).toEqual([])
        },
      )

      it.each([
        ['reconnect', '/reconnecting'],
        ['twice', '/reconnecting.html#why-messages-arrive-twice'],
        ['ERR_POISONED', '/errors.html'],
      ])('finds %s', async (words, address) => {
        const page = await open('/')
        // The page listens once its script has run.
        const isOpen = async (): Promise<boolean> => {
          await page.keyboard.press('Control+k')
          return page.locator('input.search-input').isVisible()
        }
        await eventually(isOpen, 'the search')
        await page.fill('input.search-input', words)
        await page.waitForSelector(`.result[href^="${address}"]`, { timeout: 10_000 })
        const found = await page.$$eval('.result', (results) =>
          results.slice(0, 5).map((result) => result.getAttribute('href') ?? ''),
        )
        expect(found.some((href) => href.startsWith(address))).toBe(true)
        await page.click(`.result[href^="${address}"]`)
        await page.waitForURL((url) => url.pathname.startsWith(address.split(/[.#]/)[0] ?? ''))
        await page.close()
      })
    })
  })
