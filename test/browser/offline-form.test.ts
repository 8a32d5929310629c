/**
 * The form of the examples that works offline, in a Chromium that keeps what pages store: notes typed without a broker survive a reload in the middle and a
 * closed tab, and arrive once; a second tab waits; a database that is deleted is told of.
 */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Locator, Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { requireDist, root } from '../package/fixture.js'
import { eventually } from '../real/waiting.js'
import { faint, nameless, tooWide, unseenFocus } from './accessible.js'
import { PlainBrowser, withChromium } from './chromium.js'

interface Form {
  readonly address: string
  readonly broker: MemoryBroker
  brokerGoes(): Promise<void>
  brokerComes(): Promise<void>
  stop(): Promise<void>
}

/** A tab with the form. */
class Tab {
  readonly page: Page
  readonly complaints: string[] = []

  private constructor(page: Page) {
    this.page = page
    page.on('pageerror', (error) => this.complaints.push(error.message))
  }

  static async open(browser: PlainBrowser, address: string): Promise<Tab> {
    const tab = new Tab(await browser.context.newPage())
    await tab.page.goto(address)
    return tab
  }

  at(selector: string): Locator {
    return this.page.locator(selector)
  }

  async shows(selector: string, text: string): Promise<void> {
    await eventually(
      async () => (await this.at(selector).textContent())?.includes(text),
      `${text} in ${selector}`,
    )
  }

  async save(place: string): Promise<void> {
    await this.page.getByLabel('Place').fill(place)
    await this.page.getByLabel('What you saw').fill(`seen at ${place}`)
    await this.page.getByRole('button', { name: 'Save' }).click()
    await eventually(
      async () => (await this.page.getByLabel('Place').inputValue()) === '',
      'the note that is saved',
    )
  }

  /** The places of notes in a list. */
  places(list: 'waiting' | 'delivered'): Promise<string[]> {
    return this.at(`#${list} li strong`).allTextContents()
  }

  async has(list: 'waiting' | 'delivered', places: readonly string[]): Promise<void> {
    await eventually(
      async () => (await this.places(list)).join() === places.join(),
      `${places.join()} in ${list}`,
    )
  }
}

withChromium(() => {
  let serve: (options: object) => Promise<Form>
  let browser: PlainBrowser
  let form: Form
  let reader: Client
  let arrived: string[]
  const tabs: Tab[] = []

  beforeAll(async () => {
    await requireDist()
    const example = (await import(
      pathToFileURL(path.join(root, 'examples', 'offline-form', 'serve.js')).href
    )) as { serveForm: typeof serve }
    serve = example.serveForm
    browser = await PlainBrowser.start()
    return () => browser.stop()
  })
  beforeEach(async () => {
    form = await serve({})
    const { urls } = await form.broker.serve({ tcp: 0 })
    reader = await connect(urls[0] ?? '', { clientId: 'reader' })
    arrived = []
    await reader.listen(
      'inspections/#',
      (message) => void arrived.push((message.json() as { place: string }).place),
      { qos: 2 },
    )
  })
  afterEach(async () => {
    for (const { page } of tabs.splice(0)) await page.close().catch(() => undefined)
    await reader.disconnect({ timeout: 0 })
    await form.stop()
  })

  async function open(): Promise<Tab> {
    const tab = await Tab.open(browser, form.address)
    tabs.push(tab)
    return tab
  }

  /** Everything that was typed has arrived, each once; what was on its way twice would have come by now. */
  async function assertArrived(...places: string[]): Promise<void> {
    await eventually(() => arrived.length >= places.length, `${places.length} notes`)
    await reader.publish('inspections/end', JSON.stringify({ place: 'end' }), { qos: 2 })
    await eventually(() => arrived.includes('end'), 'the end')
    expect(arrived.filter((place) => place !== 'end').sort()).toEqual([...places].sort())
  }

  /** The service worker has the page, so that it opens without a server. */
  const installed = (tab: Tab) =>
    tab.page.evaluate('navigator.serviceWorker.ready.then(() => true)')

  describe('the offline form', () => {
    it('delivers a note at once where there is a broker', async () => {
      const tab = await open()
      await tab.shows('#state', 'Connected')
      await tab.save('pump')
      await tab.has('delivered', ['pump'])
      await tab.has('waiting', [])
      await assertArrived('pump')
      expect(tab.complaints).toEqual([])
    })

    it('notes typed offline survive a reload in the middle and a closed tab, and arrive once when the broker is back', async () => {
      await form.brokerGoes()
      const first = await open()
      await first.shows('#state', 'No connection')
      await first.save('boiler')
      await first.save('valve')
      await first.has('waiting', ['boiler', 'valve'])
      await first.page.reload()
      await first.has('waiting', ['boiler', 'valve'])
      await first.save('pipe')
      await first.page.close()
      const second = await open()
      await second.has('waiting', ['boiler', 'valve', 'pipe'])
      expect(await second.at('#progress').textContent()).toMatch(
        /^ ?0 in flight, \d+ bytes, 0\.0\/s/,
      )
      await form.brokerComes()
      await second.shows('#state', 'Connected')
      await second.has('waiting', [])
      await second.has('delivered', ['pipe', 'valve', 'boiler'])
      await assertArrived('boiler', 'valve', 'pipe')
    })

    it('opens without a server, takes notes, and delivers them when there is a broker again', async () => {
      const tab = await open()
      await tab.shows('#state', 'Connected')
      await installed(tab)
      await tab.page.close()
      const { address } = form
      const ports = [new URL(address), new URL(new URL(address).searchParams.get('url') ?? '')].map(
        ({ port }) => Number(port),
      )
      await reader.disconnect({ timeout: 0 })
      await form.stop()
      const offline = await open()
      await offline.save('roof')
      await offline.page.reload()
      await offline.has('waiting', ['roof'])
      form = await serve({ port: ports[0], brokerPort: ports[1] })
      expect(form.address).toBe(address)
      const { urls } = await form.broker.serve({ tcp: 0 })
      reader = await connect(urls[0] ?? '', { clientId: 'reader' })
      await reader.listen(
        'inspections/#',
        (message) => void arrived.push((message.json() as { place: string }).place),
        { qos: 2 },
      )
      await offline.has('delivered', ['roof'])
      await assertArrived('roof')
    })

    it('the second tab waits for the first, says so, and takes over with all that waits', async () => {
      await form.brokerGoes()
      const first = await open()
      await first.save('crane')
      const second = await open()
      await second.shows('#state', 'Another tab has the form open')
      expect(await second.page.getByLabel('Place').isDisabled()).toBe(true)
      await first.page.close()
      await second.shows('#state', 'No connection')
      await second.has('waiting', ['crane'])
      await second.save('hook')
      await form.brokerComes()
      await second.has('delivered', ['hook', 'crane'])
      await assertArrived('crane', 'hook')
    })

    it('tells when the database is deleted: what is lost stays in sight, nothing is taken, and it starts again', async () => {
      await form.brokerGoes()
      const tab = await open()
      await tab.save('ladder')
      await tab.has('waiting', ['ladder'])
      await tab.page.evaluate("void indexedDB.deleteDatabase('mqwire:offline-form')")
      await tab.shows('#problem', 'The browser has deleted the notes that were kept here')
      await tab.shows('#state', 'Stopped')
      expect(await tab.places('waiting')).toEqual(['ladder'])
      expect(await tab.page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
      await tab.page.getByRole('button', { name: 'Start again' }).click()
      await tab.shows('#state', 'No connection')
      await tab.has('waiting', [])
      await tab.save('bridge')
      await form.brokerComes()
      await tab.has('delivered', ['bridge'])
      await assertArrived('bridge')
    })

    it('shows a note that the broker refuses, sends it again, and deletes it', async () => {
      let verdict: true | number = 0x87
      await form.stop()
      form = await serve({ broker: new MemoryBroker({ authorizePublish: () => verdict }) })
      const tab = await open()
      await tab.shows('#state', 'Connected')
      await tab.save('fence')
      await tab.shows('#refused', 'seen at fence')
      await tab.has('waiting', [])
      expect(await tab.places('delivered')).toEqual([])
      verdict = true
      await tab.page.getByRole('button', { name: 'Send them again' }).click()
      await tab.has('delivered', ['fence'])
      expect(await tab.at('#refused-section').isHidden()).toBe(true)
      verdict = 0x87
      await tab.save('gate')
      await tab.shows('#refused', 'seen at gate')
      await tab.page.reload()
      await tab.shows('#refused', 'seen at gate')
      await tab.page.getByRole('button', { name: 'Delete them' }).click()
      await eventually(() => tab.at('#refused-section').isHidden(), 'an empty list')
    })

    it('can be read and used with the keyboard, light and dark, and fits a phone', async () => {
      await form.brokerGoes()
      const tab = await open()
      await tab.page.setViewportSize({ width: 360, height: 740 })
      await tab.save(
        'a place with a long name that does not end so soon, and then goes on for a while',
      )
      await tab.save('another')
      await eventually(async () => (await tab.places('waiting')).length === 2, 'two notes')
      await tab.at('summary').click()
      expect(await nameless(tab.page)).toEqual([])
      for (const colorScheme of ['light', 'dark'] as const) {
        await tab.page.emulateMedia({ colorScheme })
        expect(await faint(tab.page)).toEqual([])
      }
      expect(await tooWide(tab.page)).toBe(0)
      expect(await unseenFocus(tab.page, 6)).toEqual([])
      await form.brokerComes()
      await tab.has('waiting', [])
    })
  })
})
