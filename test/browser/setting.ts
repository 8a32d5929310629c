/** A real browser and the pages that it opens, for suites that go to both. */
import { beforeAll } from 'vitest'
import { requireDist } from '../package/fixture.js'
import { driven, PlainBrowser } from './chromium.js'
import { type Site, serveSite } from './site.js'

/** What there is once `beforeAll` has run. */
export interface Setting<Browser> {
  site: Site
  browser: Browser
}

/** Starts the pages and a browser as people have it before the tests of a suite, and stops them behind. */
export function browserAndSite(): Setting<PlainBrowser> {
  return started(
    () => PlainBrowser.start(),
    (browser) => browser.stop(),
  )
}

/** The same with a browser in the hands of the driver. */
export function drivenAndSite(): Setting<Awaited<ReturnType<typeof driven>>> {
  return started(driven, (browser) => browser.close())
}

function started<Browser>(
  start: () => Promise<Browser>,
  stop: (browser: Browser) => Promise<void>,
): Setting<Browser> {
  const setting = {} as Setting<Browser>
  beforeAll(async () => {
    await requireDist()
    setting.site = await serveSite()
    setting.browser = await start()
    return async () => {
      await stop(setting.browser)
      await setting.site.stop()
    }
  })
  return setting
}
