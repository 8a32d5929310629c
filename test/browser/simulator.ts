/** The simulator in a page of a browser: opens it, presses its buttons, and reads what it shows. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Figures, Settings } from '../package/examples/simulator.js'
import { root } from '../package/fixture.js'
import { eventually, patience } from '../real/waiting.js'

/** A running server of the page. */
export interface SimulatorSite {
  readonly url: string
  stop(): Promise<void>
}

/** Starts the server of the page, on a free port. */
export async function serveSimulator(): Promise<SimulatorSite> {
  const module = await import(
    pathToFileURL(path.join(root, 'examples', 'simulator', 'serve.js')).href
  )
  return module.serve({ port: 0 })
}

// Counts timers that have not run and were not cancelled.
const countTimers = `
const live = new Set()
for (const [set, clear] of [['setTimeout', 'clearTimeout'], ['setInterval', 'clearInterval']]) {
  const [begin, end] = [globalThis[set], globalThis[clear]]
  globalThis[set] = (callback, ...rest) => {
    const timer = begin((...values) => { if (set === 'setTimeout') live.delete(timer); callback(...values) }, ...rest)
    live.add(timer)
    return timer
  }
  globalThis[clear] = (timer) => { live.delete(timer); end(timer) }
}
globalThis.liveTimers = live
`

/** How a page is opened. */
export interface Opening {
  readonly query?: string
  readonly width?: number
  readonly height?: number
  readonly colorScheme?: 'light' | 'dark'
}

/** One page. */
export class SimulatorPage {
  /** What the page or the browser complained of. */
  readonly complaints: string[] = []
  /** Paths of what was requested, and addresses of WebSockets. */
  readonly requests: string[] = []
  readonly page: Page

  private constructor(page: Page) {
    this.page = page
    page.on('pageerror', (error) => this.complaints.push(error.message))
    page.on('console', (message) => this.complaints.push(`${message.type()}: ${message.text()}`))
    page.on('request', (request) => this.requests.push(new URL(request.url()).pathname))
    page.on('websocket', (socket) => this.requests.push(socket.url()))
  }

  static async open(
    browser: Browser,
    site: SimulatorSite,
    { query = '', width = 1200, height = 900, colorScheme = 'light' }: Opening = {},
  ) {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme })
    await page.addInitScript(countTimers)
    const made = new SimulatorPage(page)
    await page.goto(`${site.url}${query}`)
    return made
  }

  /** Waits until an expression is true there. The driver's own way to wait is forbidden by the page's policy. */
  async until(expression: string): Promise<void> {
    await eventually(async () => (await this.page.evaluate(expression)) === true, expression)
  }

  /** Fills the form and sends it off: starts the fleet, or changes it. */
  async apply(
    settings: Partial<Settings & Record<'username' | 'password' | 'clientid', string>>,
  ): Promise<void> {
    for (const [name, value] of Object.entries(settings)) {
      const field = this.page.locator(`#settings [name=${name}]`)
      const isChoice = ['what', 'qos', 'payload', 'ramp', 'line'].includes(name)
      if (isChoice) await field.selectOption(String(value))
      else await field.fill(String(value))
    }
    await this.page.click('#start')
  }

  async press(button: string): Promise<void> {
    await this.page.getByRole('button', { name: button, exact: true }).click()
  }

  figures(): Promise<Figures> {
    return this.page.evaluate('simulator.fleet.figures()')
  }

  /** Waits until so many devices are connected, and more messages arrived than before. */
  async allConnected(devices: number): Promise<Figures> {
    const before = await this.figures()
    return eventually(
      async () => {
        const figures = await this.figures()
        return (
          figures.connected === devices &&
          figures.devices === devices &&
          figures.arrived > before.arrived &&
          figures
        )
      },
      `${devices} devices connected`,
      2 * patience,
    )
  }

  /** Chooses what the devices do; a description of one's own is written into its field. */
  async choose(what: string, description?: string): Promise<void> {
    await this.page.getByLabel('What the devices do', { exact: true }).selectOption(what)
    if (description !== undefined)
      await this.page.getByLabel('Description, JSON', { exact: true }).fill(description)
  }

  /** Waits until an element says this. */
  async says(selector: string, text: string): Promise<void> {
    await this.page.locator(selector, { hasText: text }).waitFor()
  }

  /** Waits until no fault is going on. */
  async faultsOver(): Promise<void> {
    await this.until("document.querySelector('#faults [aria-pressed=true]') === null")
  }

  /** Stops the fleet; gives what was counted. */
  async stop(): Promise<Figures> {
    await this.page.click('#stop')
    await this.until(
      "simulator.fleet.state === 'stopped' && document.getElementById('start').textContent === 'Start'",
    )
    const left =
      '[simulator.broker.links.size, liveTimers.size, [...new Set(simulator.fleet.devices.map(({ state }) => state))].join()]'
    await eventually(
      async () => JSON.stringify(await this.page.evaluate(left)) === '[0,0,"closed"]',
      'no link and no timer',
    )
    return this.figures()
  }

  /** The text of a tile. */
  async tile(title: string): Promise<string> {
    const tile = this.page.locator('#figures div', {
      has: this.page.getByText(title, { exact: true }),
    })
    return (await tile.locator('dd span').textContent()) ?? ''
  }

  /** Nothing reaches out of the page to the right. */
  async fits(): Promise<void> {
    expect(
      await this.page.evaluate('document.documentElement.scrollWidth - innerWidth'),
    ).toBeLessThanOrEqual(0)
  }

  close(): Promise<void> {
    return this.page.close()
  }
}
