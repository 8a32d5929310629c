/** Pictures of the dashboard as `npm start` opens it, after a while: light, dark, and on a phone. */
import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { Program } from '../package/examples/program.js'
import { requireDist } from '../package/fixture.js'
import { eventually } from '../real/waiting.js'
import { driven, withChromium } from './chromium.js'
import { DashboardPage } from './dashboard-page.js'
import { shoot } from './shots.js'

/** Seconds that the charts shall show. */
const seconds = 40

const views = {
  'dashboard-light': { colorScheme: 'light', viewport: { width: 1280, height: 860 } },
  'dashboard-dark': { colorScheme: 'dark', viewport: { width: 1280, height: 860 } },
  'dashboard-phone': { colorScheme: 'light', viewport: { width: 360, height: 1300 } },
} as const

withChromium(() => {
  describe('pictures of the dashboard', () => {
    let browser: Browser
    beforeAll(async () => {
      await requireDist()
      browser = await driven()
      return () => browser.close()
    })

    it('are taken', async () => {
      const program = new Program(
        'demo/main.js',
        ['--devices', '12', '--rate', '12'],
        '',
        {},
        170_000,
      )
      await program.prints('Stop with')
      const address = /^Dashboard +(http:\S+)$/m.exec(program.output)?.[1] ?? ''
      const pages = await Promise.all(
        Object.values(views).map((options) => DashboardPage.open(browser, address, options)),
      )
      for (const { page } of pages) {
        await eventually(
          () =>
            page
              .locator('#rows button')
              .count()
              .then((count) => count >= 12),
          'topics',
        )
        await page.getByRole('button', { name: 'Publish' }).click()
      }
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
      for (const [index, name] of Object.keys(views).entries()) {
        const { page, complaints } = pages[index] ?? expect.unreachable()
        await page.bringToFront()
        await page.evaluate("document.querySelector('#rows button').click()")
        await page.mouse.move(0, 0)
        await eventually(() => page.locator('#message').isVisible(), 'a message')
        await new Promise((resolve) => setTimeout(resolve, 1000))
        await page.evaluate('scrollTo(0, 0)')
        await shoot(page, name)
        expect(complaints).toEqual([])
        await page.close()
      }
      program.signal('SIGINT')
      expect((await program.ending).code).toBe(0)
    })
  })
})
