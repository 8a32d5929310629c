/** The virtual world in a page and in a worker of it: its histories are those of Node to the last event. */
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { withChromium } from './chromium.js'
import { type Histories, histories, historyOf } from './inside/world.js'
import { drivenAndSite } from './setting.js'

/** Seeds in each place: each is run in Node as well. */
const seeds = process.env['MQWIRE_LONG'] === undefined ? 50 : 500

withChromium(() => {
  const setting = drivenAndSite()
  let page: Page
  beforeAll(async () => {
    page = await setting.browser.newPage()
    await page.goto(`${setting.site.origin}/inside/page.html`)
    await page.waitForFunction('globalThis.inside !== undefined')
  })

  it.each([
    ['page', 1],
    ['worker', 2],
  ] as const)(
    `in a %s ${seeds} seeds have no finding, and the histories of Node`,
    {
      timeout: 300_000,
    },
    async (place, first) => {
      const call = <T>(name: string, ...given: number[]): Promise<T> =>
        page.evaluate(`inside.${place}.${name}(...${JSON.stringify(given)})`)
      const { digests, findings, events } = await call<Histories>('histories', first, seeds, 2)
      const here = await histories(first, seeds, 2)
      expect(findings).toEqual([])
      const differing = digests.findIndex((digest, index) => digest !== here.digests[index])
      if (differing >= 0) {
        const seed = first + 2 * differing
        expect(await call('historyOf', seed), `seed ${seed}`).toEqual(await historyOf(seed))
      }
      expect(digests).toEqual(here.digests)
      expect(events).toBe(here.events)
      expect(events).toBeGreaterThan(seeds * 20)
    },
  )
})
