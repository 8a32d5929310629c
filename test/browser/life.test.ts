/**
 * What happens to a page while its client is connected: the network goes and comes, it is frozen, reloaded, left and gone back to, hidden and shown.
 *
 * A lost connection would be made good after a minute: whatever comes sooner, comes because the client was woken.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { brokerAndClient } from '../real/broker-and-client.js'
import { startAedes } from '../real/brokers.js'
import { eventually, take } from '../real/waiting.js'
import { withChromium } from './chromium.js'
import { browserAndSite } from './setting.js'
import { between, Stay } from './stay.js'

withChromium(() => {
  const setting = browserAndSite()
  describe('the life of a page', () => {
    const both = brokerAndClient(startAedes)
    const open: Stay[] = []
    let count = 0
    afterEach(async () => {
      await setting.browser.context.setOffline(false)
      for (const stay of open.splice(0)) await stay.close()
    })

    async function stay(keepAlive?: number): Promise<Stay> {
      count += 1
      const made = await Stay.open(
        setting.browser,
        setting.site.origin,
        both.broker.urls.WebSocket ?? '',
        `life-${count}`,
        keepAlive,
      )
      open.push(made)
      return made
    }

    async function send(to: Stay, ...texts: string[]): Promise<void> {
      for (const text of texts) await both.client.publish(`${to.id}/in`, text, { qos: 1 })
    }

    it('back online with a dead link: replaced within 2 s', async () => {
      const page = await stay()
      await setting.browser.context.setOffline(true)
      await page.until('offline')
      page.tap.links[0]?.silence()
      await setting.browser.context.setOffline(false)
      const diary = await page.until('connect', 2)
      expect(between(diary, 'online', 'connect')).toBeLessThan(2000)
      expect(page.tap.connects).toBe(2)
      expect(page.tap.open).toHaveLength(1)
    })

    it('frozen and resumed: what came meanwhile is read within 2 s, also when the browser ended the connection', async () => {
      const page = await stay()
      await page.lifecycle('frozen')
      await send(page, 'one', 'two', 'three')
      await page.lifecycle('active')
      const diary = await eventually(async () => {
        const soFar = await page.diary()
        return soFar.some(({ text }) => text === 'three') && soFar
      }, 'the last message')
      const resumed = diary.findIndex(({ type }) => type === 'resume')
      const messages = diary.filter(({ type }) => type === 'message')
      expect(diary.findIndex(({ type }) => type === 'message')).toBeGreaterThan(resumed)
      // Where the connection ended before an acknowledgement had left, the broker repeats the message.
      expect([...new Set(messages.map(({ text }) => text))]).toEqual(['one', 'two', 'three'])
      expect((messages.at(-1)?.at ?? Number.NaN) - (diary[resumed]?.at ?? Number.NaN)).toBeLessThan(
        2000,
      )
      expect(page.tap.open).toHaveLength(1)
    })

    it('reloaded: the old client goes, and there is exactly one new CONNECT', async () => {
      const page = await stay()
      await page.page.reload()
      await page.until('ready')
      await eventually(() => page.tap.links[0]?.closed, 'the end of the old connection')
      await send(page, 'there')
      await page.until('message')
      expect(page.tap.links.map((link) => link.count('connect'))).toEqual([1, 1])
      expect(page.tap.open).toEqual([page.tap.links[1]])
    })

    it.each(['live', 'dead'])(
      'left, and gone back to from the back-forward cache with a %s link: connected, one client',
      async (link) => {
        const shown = await both.client.subscribe(`life-${count + 1}/shown`, { qos: 1 })
        const page = await stay()
        expect((await take(shown)).json()).toMatchObject({ persisted: false })
        await page.page.goto(`${setting.site.origin}/other.html`)
        if (link === 'dead') page.tap.links[0]?.silence()
        await page.page.evaluate('history.back()')
        const since = performance.now()
        expect((await take(shown)).json()).toMatchObject({ persisted: true })
        expect(performance.now() - since).toBeLessThan(3000)
        // A link that lives may be ended by the browser all the same, a moment after the page came back.
        await eventually(
          () => page.tap.open.length === 1 && page.tap.open[0]?.count('connect') === 1,
          'one connection',
        )
        expect(page.tap.connects).toBeLessThanOrEqual(2)
        expect(page.tap.links.map((each) => each.count('connect'))).toEqual(
          page.tap.links.map(() => 1),
        )
        if (link === 'live') return
        expect(page.tap.connects).toBe(2)
        expect(between(await page.until('connect', 2), 'pageshow', 'connect')).toBeLessThan(2000)
      },
    )

    it('closed without a word: the broker hears of it, and publishes the will', async () => {
      const wills = await both.client.subscribe(`life-${count + 1}/will`, { qos: 1 })
      const page = await stay()
      await page.page.close()
      expect((await take(wills, 'the will')).text()).toBe('gone')
      await eventually(() => page.tap.links[0]?.closed, 'the end of the connection')
    })

    it('a second tab with the same client id: the first stops with a typed error, and there is no war', async () => {
      const first = await stay()
      const second = await Stay.open(
        setting.browser,
        setting.site.origin,
        both.broker.urls.WebSocket ?? '',
        first.id,
      )
      open.push(second)
      const diary = await first.until('disconnect')
      const error = diary.findLast(({ type }) => type === 'disconnect')?.error
      expect(error).toMatchObject({ code: 'ERR_SESSION_TAKEN_OVER' })
      await send(second, 'there')
      await second.until('message')
      // A lost connection would be made good after a minute.
      expect([first.tap.connects, second.tap.connects]).toEqual([1, 1])
      expect(await second.state()).toBe('connected')
    })

    it('back online with a live link: one PINGREQ, and nothing else', async () => {
      const page = await stay()
      await setting.browser.context.setOffline(true)
      await page.until('offline')
      await setting.browser.context.setOffline(false)
      await eventually(() => page.tap.links[0]?.count('pingreq') === 1, 'PINGREQ')
      // What is sent after the patience of the probe went the same way.
      await page.page.evaluate('new Promise((resolve) => setTimeout(resolve, 1600))')
      await send(page, 'there')
      await page.until('message')
      expect(page.tap.connects).toBe(1)
      expect(page.tap.links[0]?.count('pingreq')).toBe(1)
    })

    it('the broker hangs up on a frozen page: dialled at once when resumed', async () => {
      const page = await stay()
      await page.lifecycle('frozen')
      page.tap.links[0]?.cut()
      await send(page, 'kept')
      await page.lifecycle('active')
      const diary = await page.until('message')
      expect(between(diary, 'resume', 'connect')).toBeLessThan(2000)
      expect(diary.findLast(({ type }) => type === 'message')?.text).toBe('kept')
      expect(page.tap.connects).toBe(2)
    })
  })
})
