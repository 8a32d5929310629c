/** Writes the pictures of the README to `examples/screenshots`: `npm run lab -- browsers screenshots`. */
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { Program } from '../package/examples/program.js'
import { requireDist, root } from '../package/fixture.js'
import { eventually } from '../real/waiting.js'
import { pause } from '../support/pausing.js'
import { driven, withChromium } from './chromium.js'
import { DashboardPage } from './dashboard-page.js'
import { SimulatorPage, type SimulatorSite, serveSimulator } from './simulator.js'

/** Seconds that the charts of the dashboard shall show. */
const seconds = 40

const dashboards = {
  'dashboard-light': { colorScheme: 'light', viewport: { width: 1280, height: 860 } },
  'dashboard-dark': { colorScheme: 'dark', viewport: { width: 1280, height: 860 } },
  'dashboard-phone': { colorScheme: 'light', viewport: { width: 360, height: 1300 } },
} as const

async function shoot(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0)
  const file = path.join(root, 'examples', 'screenshots', `${name}.png`)
  await page.screenshot({ path: file, animations: 'disabled', caret: 'hide' })
}

withChromium(() => {
  let simulator: SimulatorSite
  let browser: Browser
  beforeAll(async () => {
    await requireDist()
    await mkdir(path.join(root, 'examples', 'screenshots'), { recursive: true })
    simulator = await serveSimulator()
    browser = await driven()
    return async () => {
      await browser.close()
      await simulator.stop()
    }
  })

  it('the dashboard as `npm start` opens it, after a while', async () => {
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
      Object.values(dashboards).map((options) => DashboardPage.open(browser, address, options)),
    )
    for (const { page } of pages) {
      await page.locator('#rows button').nth(11).waitFor()
      await page.getByRole('button', { name: 'Publish' }).click()
    }
    await pause(seconds * 1000)
    for (const [index, name] of Object.keys(dashboards).entries()) {
      const { page, complaints } = pages[index] ?? expect.unreachable()
      await page.bringToFront()
      await page.evaluate("document.querySelector('#rows button').click()")
      await eventually(() => page.locator('#message').isVisible(), 'a message')
      await page.evaluate('scrollTo(0, 0)')
      await shoot(page, name)
      expect(complaints).toEqual([])
    }
    program.signal('SIGINT')
    expect((await program.ending).code).toBe(0)
  })

  it.each([
    ['light', 250, { width: 1280, height: 1010, colorScheme: 'light' }],
    ['dark', 250, { width: 1280, height: 1010, colorScheme: 'dark' }],
    ['phone', 120, { width: 390, height: 1000, colorScheme: 'light' }],
  ] as const)('the simulator with a broker that says no, %s', async (name, devices, opening) => {
    const sight = await SimulatorPage.open(browser, simulator, opening)
    const { page } = sight
    await sight.apply({ devices, rate: 1, qos: 2, ramp: 100_000 })
    await sight.allConnected(devices)
    await sight.press('Refuse credentials')
    await sight.until(
      "simulator.fleet.journal.entries.some(({ text, count }) => text.includes('Not authorized') && count > 8)",
    )
    if (name !== 'phone') await page.locator('#devices button').nth(7).click()
    // The figures follow twice a second.
    await pause(600)
    await page.evaluate(
      name === 'phone'
        ? "document.getElementById('figures-title').scrollIntoView()"
        : 'document.activeElement.blur(), scrollTo(0, 0)',
    )
    await shoot(page, `simulator-${name}`)
    expect(sight.complaints).toEqual([])
    await sight.close()
  })
})
