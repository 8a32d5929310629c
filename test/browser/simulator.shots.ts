/** Writes the pictures of the simulator: `npm run lab -- browsers screenshots`. */
import { mkdir, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { requireDist, root } from '../package/fixture.js'
import { driven, withChromium } from './chromium.js'
import { type Opening, SimulatorPage, type SimulatorSite, serveSimulator } from './simulator.js'

const folder = path.join(root, 'examples', 'screenshots')
/** Bytes of a picture. */
const most = 150_000

const pictures: readonly (readonly [name: string, devices: number, opening: Opening])[] = [
  ['light', 250, { width: 1100, height: 1010, colorScheme: 'light' }],
  ['dark', 250, { width: 1100, height: 1010, colorScheme: 'dark' }],
  ['phone', 120, { width: 390, height: 1000, colorScheme: 'light' }],
]

withChromium(() => {
  let site: SimulatorSite
  let browser: Browser
  beforeAll(async () => {
    await requireDist()
    await mkdir(folder, { recursive: true })
    site = await serveSimulator()
    browser = await driven()
    return async () => {
      await browser.close()
      await site.stop()
    }
  })

  it.each(pictures)('simulator-%s.png', async (name, devices, opening) => {
    const sight = await SimulatorPage.open(browser, site, opening)
    const { page } = sight
    await sight.apply({ devices, rate: 1, qos: 2, ramp: 100_000 })
    await sight.allConnected(devices)
    await sight.press('Drop all links')
    await sight.allConnected(devices)
    await sight.until("simulator.fleet.journal.entries[0].text.startsWith('all connected')")
    await sight.press('Refuse credentials')
    // Some seconds of a broker that says no.
    await sight.until(
      "simulator.fleet.journal.entries.some(({ text, count }) => text.includes('Not authorized') && count > 8)",
    )
    if (name !== 'phone') await page.locator('#devices button').nth(7).click()
    // The figures follow twice a second.
    await new Promise((resolve) => setTimeout(resolve, 600))
    if (name === 'phone')
      await page.locator('#figures-title').evaluate((title) => title.scrollIntoView())
    else await page.evaluate('document.activeElement.blur(), scrollTo(0, 0)')
    await page.mouse.move(0, 0)
    const file = path.join(folder, `simulator-${name}.png`)
    await page.screenshot({ path: file })
    expect((await stat(file)).size).toBeLessThan(most)
    expect(sight.complaints).toEqual([])
    await sight.close()
  })
})
