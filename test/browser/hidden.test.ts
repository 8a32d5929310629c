/**
 * A tab that nobody sees, in a real browser that holds back its timers. What takes minutes is `npm run lab -- browsers hidden`,
 * and under virtual time `test/unit/client/keep-alive.test.ts`.
 */
import type { Page } from 'playwright-core'
import { afterEach, describe, expect, it } from 'vitest'
import { brokerAndClient } from '../real/broker-and-client.js'
import { startAedes } from '../real/brokers.js'
import { eventually } from '../real/waiting.js'
import { withChromium } from './chromium.js'
import { browserAndSite } from './setting.js'
import { between, Stay } from './stay.js'

withChromium(() => {
  describe('a hidden tab', () => {
    const setting = browserAndSite()
    const both = brokerAndClient(startAedes)
    let stay: Stay
    let other: Page
    let count = 0
    afterEach(async () => {
      await stay.close()
      await other.close()
    })

    /** A connected page with another one in front of it. */
    async function hidden(keepAlive?: number): Promise<void> {
      count += 1
      stay = await Stay.open(
        setting.browser,
        setting.site.origin,
        both.broker.urls.WebSocket ?? '',
        `hidden-${count}`,
        keepAlive,
      )
      other = await setting.browser.context.newPage()
      await other.bringToFront()
      const diary = await stay.until('visibilitychange')
      expect(diary.at(-1)?.visibility).toBe('hidden')
    }

    it('its timers are held back, and what comes in is read all the same, and PINGREQ leaves in time', async () => {
      await hidden(4)
      const ticks = await stay.page.evaluate<number>('life.ticks()')
      await eventually(() => stay.tap.links[0]?.count('pingreq') === 1, 'PINGREQ')
      // Eighty of them, were it seen.
      expect((await stay.page.evaluate<number>('life.ticks()')) - ticks).toBeLessThan(20)
      await both.client.publish(`${stay.id}/in`, 'there', { qos: 1 })
      await stay.until('message')
      expect(stay.tap.connects).toBe(1)
    })

    it('shown again with a dead link: replaced within 2 s', async () => {
      await hidden()
      stay.tap.links[0]?.silence()
      await stay.page.bringToFront()
      const diary = await stay.until('connect', 2)
      expect(between(diary, 'visibilitychange', 'connect')).toBeLessThan(2000)
      expect(stay.tap.open).toHaveLength(1)
    })

    it('a connection that it makes asks the broker for more patience', async () => {
      await hidden()
      stay.tap.links[0]?.cut()
      await stay.until('disconnect')
      await stay.page.evaluate('life.client.reconnect()')
      await stay.until('connect', 2)
      expect(
        stay.tap.links.map(({ packets: [first] }) => first?.type === 'connect' && first.keepAlive),
      ).toEqual([30, 180])
    })
  })
})
