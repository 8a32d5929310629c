/** The simulator in a real browser: hundreds of clients in a page, over its broker in memory with no network at all, and over a real one. */
import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { requireDist } from '../package/fixture.js'
import { eventually } from '../real/waiting.js'
import { faint, nameless, tooWide, unseenFocus } from './accessible.js'
import { driven, withChromium } from './chromium.js'
import { type Opening, SimulatorPage, type SimulatorSite, serveSimulator } from './simulator.js'

/** Options of choices that are wider than the place for them; the arrow takes a part of it. */
const cutOff = `[...document.querySelectorAll('select')].filter((each) => each.checkVisibility()).flatMap((select) => {
  const { fontSize, fontFamily, paddingLeft, paddingRight } = getComputedStyle(select)
  const pen = document.createElement('canvas').getContext('2d')
  pen.font = fontSize + ' ' + fontFamily
  const room = select.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - 18
  return [...select.options].map(({ text }) => text).filter((text) => pen.measureText(text).width > room)
})`

withChromium(() => {
  let site: SimulatorSite
  let browser: Browser
  let broker: MemoryBroker
  let query = ''
  let reader: Client
  /** By client identifier, who logged in. */
  const logins = new Map<string, string>()
  const pages: SimulatorPage[] = []
  beforeAll(async () => {
    await requireDist()
    const decoder = new TextDecoder()
    broker = new MemoryBroker({
      maxLog: 0,
      authenticate({ username = '', password, clientId }) {
        logins.set(clientId, username)
        const own = /^dev-(\w+)$/.exec(username)?.[1]
        const expected = username === 'ann' ? 'canary' : `canary-${own}`
        if (decoder.decode(password) === expected) return true
        return { reasonCode: 0x86, properties: { reasonString: 'ask <b>Bob</b>' } }
      },
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

  const small = {
    name: 'lamps <img src=x onerror=alert(1)>',
    devices: [
      {
        name: 'lamp',
        count: 3,
        state: { on: false },
        topics: [
          { topic: 'flat/{id}/watts', every: '100ms', qos: 2, payload: { $: 'counter' } },
          { topic: 'flat/{id}/state', on: 'change', qos: 1, retain: true, payload: '{on}' },
        ],
        commands: [{ topic: 'flat/{id}/set', set: 'on' }],
        will: { topic: 'flat/{id}/gone', payload: 'gone' },
      },
    ],
  }
  const sharedLink = async (page: SimulatorPage): Promise<URL> => {
    await page.press('Copy link')
    await page.says('#link-about', 'no user name and no password')
    return new URL(await page.page.getByLabel('Link', { exact: true }).inputValue())
  }

  describe('scenarios in the simulator', () => {
    it('trucks run with nothing lost, and a report of it is kept', async () => {
      const sight = await open({ colorScheme: 'dark' })
      const { page } = sight
      await sight.choose('trucks')
      expect(await page.locator('[name=devices]').inputValue()).toBe('20')
      await sight.says('#scenario-about', '12 × truck, 8 × van; up to 19 messages a second')
      expect([await nameless(page), await faint(page)]).toEqual([[], []])
      await sight.apply({ ramp: 100_000 })
      await sight.allConnected(20)
      await sight.press('Drop all links')
      await sight.allConnected(20)
      await sight.says('#log', 'after the fault')
      await page.locator('#devices button').first().click()
      expect(await page.locator('#details-title').textContent()).toBe('truck-1')
      await sight.says('#details-list', 'fleet/truck-1/')
      const { sent, lost, twice, open: left } = await sight.stop()
      expect([lost, twice, left]).toEqual([0, 0, 0])
      const saving = page.waitForEvent('download')
      await sight.press('Save report')
      const saved = await saving
      expect(saved.suggestedFilename()).toMatch(/^mqwire-simulator-.*\.html$/)
      const report = await readFile(await saved.path(), 'utf8')
      expect(report).not.toMatch(/src=|href=|<script/)
      const other = await browser.newPage()
      await other.setContent(report)
      const words = await other.locator('body').innerText()
      await other.close()
      for (const part of [/Nothing was lost at QoS 1 and 2, and nothing came twice/, /Seed\s+1\n/])
        expect(words).toMatch(part)
      expect(words).toMatch(/fault: drop all links\s+all after [\d.]+ s/)
      expect(words).toMatch(new RegExp(`of ${sent.toLocaleString('en')} arrived`))
      // Other devices, counted from the beginning.
      await sight.choose('fleet')
      await sight.apply({ devices: 5 })
      expect((await sight.allConnected(5)).sent).toBeLessThan(sent)
      // The grid is drawn in the next frame.
      await eventually(async () => (await page.locator('#devices button').count()) === 5, 'cells')
      await sight.stop()
    })

    it('a wrong description says where and why, and is not started; a link takes a right one elsewhere', async () => {
      const sight = await open()
      await sight.choose('own', '{"name":"x","devices":[{"name":"a","topics":1}]}')
      await sight.says('#scenario-about', 'devices[0].topics: must be a list of 0 to 100; it is 1')
      await sight.press('Start')
      await sight.choose('own', '{')
      await sight.says('#scenario-about', 'not JSON')
      await sight.press('Start')
      expect(await sight.page.evaluate('simulator.fleet.state')).toBe('stopped')
      await sight.choose('own', JSON.stringify(small))
      await sight.press('Format')
      await sight.page.getByLabel('Seed', { exact: true }).fill('9')
      await sight.page.locator('[name=devices]').fill('2')
      const { search, hash } = await sharedLink(sight)
      const next = await open({ query: `${search}${hash}` })
      await next.says('#link-about', 'Nothing has been started')
      expect(await next.page.evaluate('simulator.fleet.state')).toBe('stopped')
      const field = next.page.getByLabel('Description, JSON', { exact: true })
      expect(JSON.parse(await field.inputValue())).toEqual(small)
      expect(await field.inputValue()).toContain('\n      "state": { "on": false },\n')
      expect(await next.page.getByLabel('Seed', { exact: true }).inputValue()).toBe('9')
      await next.press('Start')
      await next.allConnected(2)
      expect(await next.stop()).toMatchObject({ lost: 0, twice: 0, open: 0 })
      for (const broken of [hash.slice(0, -9), '#s=%%%', '#other']) {
        const page = await open({ query: broken })
        await page.says('#link-about', 'The link is broken')
      }
    })

    it.each([390, 768, 1280, 1920])(
      'every choice has room for its words at %i pixels',
      async (width) => {
        const sight = await open({ width })
        for (const what of ['fleet', 'own']) {
          await sight.choose(what)
          await sight.fits()
          expect(await sight.page.evaluate(cutOff)).toEqual([])
        }
      },
    )
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

    it('says beside Start who is refused and why, and what to do where there is no broker', async () => {
      const sight = await open({ query })
      const alert = sight.page.getByRole('alert')
      await sight.apply({ devices: 2, username: 'ann', password: 'wrong' })
      await sight.says('#failure', 'ERR_CONNECT_REFUSED, reason code 0x86')
      expect(await alert.textContent()).toMatch(
        /^The consumer.*Bad User Name or Password.*“ask <b>Bob<\/b>”. Check user/i,
      )
      await sight.until("simulator.fleet.state === 'stopped'")
      const own = { username: 'dev-{device}', password: 'canary-{device}' }
      await sight.page.locator('#access summary').click()
      await sight.apply({ devices: 3, ...own, clientid: 'plant-{device}', ramp: 100_000 })
      await sight.allConnected(3)
      expect(await alert.textContent()).toBe('')
      const found = [1, 2, 3].map((number) => logins.get(`plant-${number}`))
      expect(found).toEqual(['dev-1', 'dev-2', 'dev-3'])
      const link = String(await sharedLink(sight))
      expect(link).not.toMatch(/canary|dev-/)
      await sight.stop()
      const consumer = { 'Consumer’s login': 'ann', 'Consumer’s secret': 'canary' }
      for (const [label, value] of Object.entries(consumer))
        await sight.page.getByLabel(label).fill(value)
      await sight.apply({ password: 'wrong' })
      await sight.says('#failure', '3 devices cannot connect')
      await sight.stop()
      const nowhere = await open({ query: '?url=ws://ann:secret@127.0.0.1:9/mqtt?key=secret' })
      await nowhere.press('Start')
      await nowhere.says('#failure', 'ERR_CONNECT_FAILED. Check address and port')
      expect(String(await sharedLink(nowhere))).not.toContain('secret')
      await nowhere.press('Stop')
      await nowhere.until("simulator.fleet.state === 'stopped'")
      nowhere.complaints.length = 0
    })

    it('runs a scenario with its client identifiers, wills and commands', async () => {
      const sight = await open({ query })
      await sight.choose('own', JSON.stringify(small))
      await sight.apply({ prefix: 'p/', ...access } as object)
      await sight.allConnected(3)
      expect(logins.get('p/lamp-3')).toBe('ann')
      const gone: string[] = []
      const subscription = await reader.listen(
        'p/flat/+/gone',
        ({ topic }) => void gone.push(topic),
      )
      const answer = await reader.request('p/flat/lamp-2/set', 'true')
      expect(answer.text()).toBe('{"on":true}')
      await sight.press('Drop all links')
      await eventually(() => gone.length === 3, 'the wills')
      await sight.allConnected(3)
      await subscription.unsubscribe()
      expect(await sight.stop()).toMatchObject({ lost: 0, twice: 0, open: 0 })
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
