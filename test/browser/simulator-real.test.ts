/** The simulator in a real browser at a real WebSocket broker: user name and password, templates, and a thousand devices over the connections that there are. */
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

  async function open(opening: Opening = {}): Promise<SimulatorPage> {
    const page = await SimulatorPage.open(browser, site, { query, ...opening })
    pages.push(page)
    return page
  }

  const access = { username: 'ann', password: 'canary', ramp: 100_000 }

  describe('the simulator, at a real broker', () => {
    it('gives user name and password to all its clients, and keeps the password nowhere', async () => {
      const page = await open()
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
      const page = await open()
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
      const page = await open()
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

    it.each([
      ['light', 1200],
      ['dark', 1200],
      ['light', 320],
    ] as const)(
      'in %s, %i pixels wide: what is new has its names, contrast and focus, and is not too wide',
      async (colorScheme, width) => {
        const page = await open({ colorScheme, width })
        await page.page.locator('[name=payload]').selectOption('template')
        await page.page.locator('[name=template]').fill('{nobody}')
        expect(await nameless(page.page)).toEqual([])
        expect(await faint(page.page)).toEqual([])
        expect(await unseenFocus(page.page, 8)).toEqual([])
        expect(await tooWide(page.page)).toBe(0)
      },
    )
  })
})
