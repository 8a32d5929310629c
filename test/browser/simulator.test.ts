/** The simulator in a real browser: hundreds of clients in a page, over its broker in memory with no network at all, and over a real one. */
import type { Browser } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { requireDist } from '../package/fixture.js'
import { eventually } from '../real/waiting.js'
import { faint, nameless, tooWide, unseenFocus } from './accessible.js'
import { driven, withChromium } from './chromium.js'
import { type Opening, SimulatorPage, type SimulatorSite, serveSimulator } from './simulator.js'

withChromium(() => {
  let site: SimulatorSite
  let browser: Browser
  let broker: MemoryBroker
  let query = ''
  let reader: Client
  const pages: SimulatorPage[] = []
  beforeAll(async () => {
    await requireDist()
    const decoder = new TextDecoder()
    broker = new MemoryBroker({
      maxLog: 0,
      authenticate: ({ username, password }) =>
        username === 'ann' && decoder.decode(password) === 'canary' ? true : 0x86,
    })
    const { urls } = await broker.serve({ tcp: 0, ws: 0 })
    query = `?url=${encodeURIComponent(urls[1] ?? '')}`
    reader = await connect(urls[0] ?? '', { username: 'ann', password: 'canary' })
    site = await serveSimulator()
    browser = await driven()
    return async () => {
      await browser.close()
      await site.stop()
      await reader.disconnect({ timeout: 0 })
      await broker.close()
    }
  })
  afterEach(async () => {
    for (const page of pages.splice(0)) {
      expect(page.complaints).toEqual([])
      await page.close()
    }
  })

  async function open(opening?: Opening): Promise<SimulatorPage> {
    const page = await SimulatorPage.open(browser, site, opening)
    pages.push(page)
    return page
  }

  /** Two faults that hit everybody, one after the other, then all others at a time. */
  async function survive(page: SimulatorPage, devices: number): Promise<void> {
    for (const fault of ['Drop all links', 'Lose the sessions']) {
      await page.press(fault)
      await page.allConnected(devices)
    }
    await page.press('Silence one in ten')
    for (const fault of [
      'Take over a client id',
      'Drop one in ten',
      'Cut at acknowledgements',
      'Refuse credentials',
    ])
      await page.press(fault)
    for (const fault of ['Restart the broker', 'Stall the broker']) await page.press(fault)
    await page.faultsOver()
    expect(await page.allConnected(devices)).toMatchObject({ lost: 0, twice: 0 })
  }

  describe('the simulator, over the broker in the page', () => {
    it('300 devices: messages flow, every fault is survived at QoS 1 and 2, and not one request leaves', {
      timeout: 60_000,
    }, async () => {
      const [first, second] = [await open(), await open()]
      await first.apply({ devices: 300, ramp: 100_000, qos: 1 })
      await second.apply({ devices: 40, ramp: 100_000, qos: 2, rate: 5, payload: 'kilobyte' })
      await Promise.all([
        first.allConnected(300).then(() => survive(first, 300)),
        second.allConnected(40).then(() => survive(second, 40)),
      ])
      const connects = 'simulator.fleet.devices.filter(({ connects }) => connects > 1).length'
      expect(await first.page.evaluate(connects)).toBe(300)
      const [atLeastOnce, exactlyOnce] = await Promise.all([first.stop(), second.stop()])
      for (const figures of [atLeastOnce, exactlyOnce]) {
        expect(figures).toMatchObject({ lost: 0, twice: 0, open: 0, awaited: 0 })
        expect(figures.acknowledged + figures.unsure).toBe(figures.sent)
        expect(figures.arrived).toBeGreaterThanOrEqual(figures.acknowledged)
      }
      expect(atLeastOnce.unsure).toBe(0)
      for (const page of [first, second]) {
        expect(page.requests).toEqual(['/', '/style.css', '/main.js'])
        expect(await page.page.locator('#network').textContent()).toContain('0 requests')
        expect(await page.page.evaluate('simulator.broker.violations')).toBe(0)
        // What was counted stays in view.
        expect([await page.tile('Lost, QoS 1 and 2'), await page.tile('Twice, QoS 2')]).toEqual([
          '0',
          '0',
        ])
      }
      expect(await first.tile('Arrived')).toBe(atLeastOnce.arrived.toLocaleString('en'))
    })

    it('a page that tries to connect is stopped by the policy, and says so', async () => {
      const page = await open()
      const refused = "fetch('/style.css').then(() => 'fetched', () => 'refused')"
      expect(await page.page.evaluate(refused)).toBe('refused')
      await page.apply({ devices: 1 })
      await page.allConnected(1)
      await page.until("document.getElementById('network').textContent.includes(': 1 requests')")
      await page.stop()
      expect(page.complaints.splice(0)).toEqual(
        Array(2).fill(expect.stringContaining('Content Security Policy')),
      )
    })

    it('by keyboard on a phone: start, a device in detail, stop and start it, back; nothing sticks out', async () => {
      const sight = await open({ width: 320, height: 640 })
      const { page } = sight
      await sight.fits()
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        expect(await nameless(page)).toEqual([])
        expect(await faint(page)).toEqual([])
      }
      expect(await unseenFocus(page, 8)).toEqual([])
      expect(await tooWide(page)).toBe(0)
      await page.locator('#settings [name=devices]').focus()
      await page.keyboard.press('ControlOrMeta+A')
      await page.keyboard.type('25')
      await page.keyboard.press('Enter')
      await sight.allConnected(25)
      await page.locator('#devices button').first().focus()
      for (const key of ['End', 'ArrowLeft', 'Home', 'ArrowRight', 'ArrowDown', 'ArrowUp'])
        await page.keyboard.press(key)
      const focused =
        'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent'
      expect(await page.evaluate(focused)).toBe('Device 2, connected')
      await page.keyboard.press('Enter')
      expect(await page.evaluate(focused)).toBe('Device 2')
      await sight.fits()
      await page.keyboard.press('Tab')
      expect(await page.evaluate(focused)).toBe('Stop')
      await page.keyboard.press('Enter')
      await page.locator('#details-list', { hasText: 'stopped' }).waitFor()
      expect(await page.locator('#devices button').nth(1).getAttribute('data-state')).toBe('closed')
      await page.keyboard.press('Enter')
      await sight.allConnected(25)
      await page.keyboard.press('Escape')
      // The grid is drawn with the next frame.
      await sight.until(`(${focused}) === 'Device 2, connected'`)
      expect(await page.locator('#details').isVisible()).toBe(false)
      // One stop for the whole grid.
      expect(await page.locator('#devices button[tabindex="0"]').count()).toBe(1)
      expect(await sight.stop()).toMatchObject({ lost: 0 })
    })
  })

  const access = { username: 'ann', password: 'canary', ramp: 100_000 }

  describe('the simulator, at a real broker', () => {
    it('gives user name and password to all its clients, and keeps the password nowhere', async () => {
      const page = await open({ query })
      await page.apply({ devices: 2, username: 'ann', password: 'wrong' })
      await page.until(
        "document.getElementById('log').textContent.includes('the consumer could not start: ERR_')",
      )
      expect(await page.page.locator('#log').textContent()).toMatch(/Bad User Name or Password/i)
      await page.until("simulator.fleet.state === 'stopped'")
      await page.apply({ devices: 4, ...access })
      await page.allConnected(4)
      expect(await page.page.locator('[name=password]').isDisabled()).toBe(true)
      await page.press('Take over a client id')
      await page.allConnected(4)
      const kept = await page.page.evaluate(
        'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.body.textContent])',
      )
      expect(kept).not.toContain('canary')
      expect(await page.stop()).toMatchObject({ lost: 0, twice: 0 })
      expect(await page.page.locator('[name=password]').isDisabled()).toBe(false)
    })

    it('publishes what the templates say, and says what is wrong with one', {
      timeout: 40_000,
    }, async () => {
      const page = await open({ query })
      const seen: [string, string][] = []
      const subscription = await reader.listen(
        'plant/+/state',
        (message) => void seen.push([message.topic, message.text()]),
        { qos: 1 },
      )
      await page.page.locator('[name=payload]').selectOption('template')
      const about = page.page.locator('#template-about')
      await page.page.locator('[name=template]').fill('{nobody}')
      await eventually(
        async () => (await about.textContent()) === 'There is no placeholder {nobody}.',
        'the complaint',
      )
      await page.page.click('#start')
      expect(await page.page.evaluate('simulator.fleet.state')).toBe('stopped')
      await page.page.locator('[name=template]').fill('{"id":{device},"count":{n},"x":{random}}')
      await page.page.locator('[name=topic]').fill('plant/{device}/state')
      expect(await about.textContent()).toMatch(
        /^For example topic plant\/1\/state, payload \{"id":1,"count":1,"x":0\.5000\}$/,
      )
      expect(await page.page.locator('#placeholders dt').allTextContents()).toContain('{device}')
      await page.apply({ devices: 3, qos: 1, rate: 5, ...access })
      await page.allConnected(3)
      await eventually(() => seen.length > 20, 'messages')
      const { lost, twice, arrived } = await page.stop()
      await subscription.unsubscribe()
      expect([lost, twice]).toEqual([0, 0])
      expect(arrived).toBeGreaterThan(20)
      expect(new Set(seen.map(([topic]) => topic))).toEqual(
        new Set(['plant/1/state', 'plant/2/state', 'plant/3/state']),
      )
      for (const [topic, text] of seen)
        expect(JSON.parse(text)).toMatchObject({
          id: Number(topic.split('/')[1]),
          count: expect.any(Number),
        })
    })

    it('runs 1,000 devices over 190 connections, says so, and loses nothing when all of them break', {
      timeout: 120_000,
    }, async () => {
      const page = await open({ query })
      const crowd = page.page.locator('#crowd')
      expect(await crowd.textContent()).toContain(
        'up to 190 devices have a connection each. Of more, several share one.',
      )
      await page.page.locator('[name=devices]').fill('1000')
      expect(await crowd.textContent()).toContain(
        '1,000 devices share 190 connections, up to 6 devices each',
      )
      await page.apply({ qos: 1, rate: 0.2, ...access })
      await page.allConnected(1000)
      await page.until(
        "document.getElementById('network').textContent === 'WebSockets open: 191, 190 of them shared by 1000 devices'",
      )
      await page.page.locator('#devices button').first().click()
      expect(await page.page.locator('#details-list').textContent()).toContain('with 5 others')
      await page.press('Drop all links')
      await page.allConnected(1000)
      expect(await page.stop()).toMatchObject({ lost: 0, twice: 0, open: 0 })
    })

    it('says so when the address is none of a WebSocket', async () => {
      const page = await open({ query: '?url=javascript:alert(1)' })
      expect(await page.page.locator('#broker').textContent()).toContain('no ws: or wss: address')
      expect(await page.page.locator('#start').isDisabled()).toBe(true)
    })
  })
})
