/** A real browser and the pages that it opens, for suites that go to both. */
import { beforeAll } from 'vitest'
import { requireDist } from '../package/fixture.js'
import { PlainBrowser } from './chromium.js'
import { type Site, serveSite } from './site.js'

/** What there is once `beforeAll` has run. */
export interface Setting {
  site: Site
  browser: PlainBrowser
}

/** Starts both before the tests of a suite, and stops them behind. */
export function browserAndSite(): Setting {
  const setting = {} as Setting
  beforeAll(async () => {
    await requireDist()
    setting.site = await serveSite()
    setting.browser = await PlainBrowser.start()
    return async () => {
      await setting.browser.stop()
      await setting.site.stop()
    }
  })
  return setting
}
