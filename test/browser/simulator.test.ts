/** The simulator in a real browser: hundreds of clients in a page, over its broker in memory with no network at all, and over a real one. */
import type { Browser } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { MemoryBroker } from '../../src/testing/node.js'
import { requireDist } from '../package/fixture.js'
import { expectAccessible } from './accessible.js'
import { driven, withChromium } from './chromium.js'
import { type Opening, SimulatorPage, type SimulatorSite, serveSimulator } from './simulator.js'

withChromium(() => {
  let site: SimulatorSite
  let browser: Browser
  let broker: MemoryBroker
  let query = ''
  const pages: SimulatorPage[] = []
  beforeAll(async () => {
    await requireDist()
    const decoder = new TextDecoder()
    broker = new MemoryBroker({
      maxLog: 0,
      authenticate: ({ username, password }) =>
        username === 'ann' && decoder.decode(password) === 'canary' ? true : 0x86,
    })
    const { urls } = await broker.serve({ ws: 0 })
    query = `?url=${encodeURIComponent(urls[0] ?? '')}`
    site = await serveSimulator()
    browser = await driven()
    return async () => {
      await browser.close()
      await site.stop()
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

    it('can be read and used on a phone; a device is stopped in its details', async () => {
      const sight = await open({ width: 320, height: 640 })
      const { page } = sight
      await expectAccessible(page, 8)
      await sight.apply({ devices: 25 })
      await sight.allConnected(25)
      await page.locator('#devices button').nth(1).click()
      await page.click('#device-toggle')
      await page.locator('#details-list', { hasText: 'stopped' }).waitFor()
      expect(await page.locator('#devices button').nth(1).getAttribute('data-state')).toBe('closed')
      await page.keyboard.press('Escape')
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

    it('says so when the address is none of a WebSocket', async () => {
      const page = await open({ query: '?url=javascript:alert(1)' })
      expect(await page.page.locator('#broker').textContent()).toContain('no ws: or wss: address')
      expect(await page.page.locator('#start').isDisabled()).toBe(true)
    })
  })
})
