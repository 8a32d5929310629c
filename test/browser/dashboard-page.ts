/** The dashboard of the examples in a page of a real browser, as a person sees it. */
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { eventually } from '../real/waiting.js'

/** An open dashboard. */
export class DashboardPage {
  readonly page: Page
  /** What the page or the browser complained of. */
  readonly complaints: string[] = []
  /** Addresses that the page asked for. */
  readonly requests: string[] = []

  private constructor(page: Page) {
    this.page = page
    page.on('pageerror', (error) => this.complaints.push(error.stack ?? error.message))
    page.on('console', (message) => this.complaints.push(`${message.type()}: ${message.text()}`))
    page.on('request', (request) => this.requests.push(request.url()))
  }

  /** Opens it in a context of its own. */
  static async open(
    browser: Browser,
    address: string,
    options: BrowserContextOptions = {},
  ): Promise<DashboardPage> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
    const dashboard = new DashboardPage(await context.newPage())
    await dashboard.page.goto(address)
    return dashboard
  }

  at(selector: string): Locator {
    return this.page.locator(selector)
  }

  button(name: string): Locator {
    return this.page.getByRole('button', { name, exact: true })
  }

  /** Fulfils with the text of an element, once it has this. */
  async shows(selector: string, text: string | RegExp): Promise<string> {
    let last = ''
    const probe = async (): Promise<string | false> => {
      last = (await this.at(selector).first().textContent()) ?? ''
      return (typeof text === 'string' ? last.includes(text) : text.test(last)) && last
    }
    return eventually(probe, `${text} in ${selector}`).catch((error: Error) => {
      throw new Error(`${error.message}; it has ${JSON.stringify(last.slice(0, 300))}`)
    })
  }

  /** The figures at the top, by name. */
  figures(): Promise<Record<string, string>> {
    return this.page.evaluate(() => {
      const pairs = [...document.querySelectorAll('#figures > div')].map((pair) =>
        [...pair.children].map(({ textContent }) => textContent),
      )
      return Object.fromEntries(pairs)
    })
  }

  /** The texts of a column of the table, as it is on the screen. */
  column(name: string): Promise<string[]> {
    return this.at(`#rows td.${name}`).allTextContents()
  }

  /** How many lines are drawn in a chart: those whose colours its canvas has. The eighth is too close to that of the axes to be told. */
  lines(chart: string): Promise<number> {
    return this.page.evaluate((id) => {
      const drawn = document.querySelector<HTMLCanvasElement>(`#${id} canvas`)
      if (!drawn || drawn.width === 0) return 0
      const context = new OffscreenCanvas(drawn.width, drawn.height).getContext('2d', {
        willReadFrequently: true,
      })
      if (context === null) return 0
      context.drawImage(drawn, 0, 0)
      const { data } = context.getImageData(0, 0, drawn.width, drawn.height)
      const probe = document.body.appendChild(document.createElement('i'))
      const colours = Array.from({ length: 7 }, (_, index) => {
        probe.style.color = `var(--line-${index})`
        return getComputedStyle(probe).color.match(/\d+/g)?.map(Number) ?? []
      })
      probe.remove()
      const isNear = (at: number, colour: readonly number[]): boolean =>
        (data[at + 3] ?? 0) > 200 &&
        colour.every((value, part) => Math.abs(value - (data[at + part] ?? 0)) < 24)
      return colours.filter((colour) => {
        let pixels = 0
        for (let at = 0; at < data.length && pixels < 8; at += 4)
          if (isNear(at, colour)) pixels += 1
        return pixels === 8
      }).length
    }, chart)
  }

  async close(): Promise<void> {
    await this.page.context().close()
  }
}
