/** A page that is connected through a tap, and its diary, as `programs/life.js` keeps it. */
import type { Page } from 'playwright-core'
import { eventually } from '../real/waiting.js'
import type { PlainBrowser } from './chromium.js'
import { Tap } from './tap.js'

/** One entry of the diary of a page. */
export interface Entry {
  readonly type: string
  /** Milliseconds since the page was loaded. */
  readonly at: number
  readonly persisted?: boolean
  readonly visibility?: string
  readonly text?: string
  readonly error?: unknown
  readonly lateness?: number
}

/** Milliseconds from the last entry of one type to the first of another behind it; NaN where one is missing. */
export function between(diary: readonly Entry[], first: string, then: string): number {
  const start = diary.findLastIndex(({ type }) => type === first)
  const next = diary.slice(start).find(({ type }) => type === then)
  return (next?.at ?? Number.NaN) - (diary[start]?.at ?? Number.NaN)
}

/** A page with a client, and what its broker sees of it. */
export class Stay {
  readonly page: Page
  readonly tap: Tap
  readonly id: string

  private constructor(page: Page, tap: Tap, id: string) {
    this.page = page
    this.tap = tap
    this.id = id
  }

  /** Opens the page, in front of all others. */
  static async open(
    browser: PlainBrowser,
    origin: string,
    brokerUrl: string,
    id: string,
    keepAlive = 30,
  ): Promise<Stay> {
    const tap = await Tap.before(brokerUrl)
    const page = await browser.context.newPage()
    const stay = new Stay(page, tap, id)
    const query = new URLSearchParams({ url: tap.url, id, keepAlive: String(keepAlive) })
    await page.goto(`${origin}/pages/life.html?${query}`)
    await stay.until('ready')
    return stay
  }

  diary(): Promise<Entry[]> {
    return this.page.evaluate('life.diary')
  }

  /** The diary, once it holds so many entries of this type. */
  until(type: string, count = 1): Promise<Entry[]> {
    const enough = async (): Promise<Entry[] | undefined> => {
      // While the page is being loaded there is none.
      const diary = await this.diary().catch(() => [])
      return diary.filter((entry) => entry.type === type).length >= count ? diary : undefined
    }
    return eventually(enough, `${count} × ${type} in the diary`)
  }

  state(): Promise<string> {
    return this.page.evaluate('life.client.state')
  }

  /** Freezes the page, or lets it go on. */
  async lifecycle(state: 'frozen' | 'active'): Promise<void> {
    const session = await this.page.context().newCDPSession(this.page)
    await session.send('Page.enable')
    await session.send('Page.setWebLifecycleState', { state })
  }

  async close(): Promise<void> {
    await this.page.close()
    await this.tap.stop()
  }
}
