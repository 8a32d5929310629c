/**
 * Tabs that nobody sees, for eight minutes of real time, because Chromium runs their timers once a minute only after five: `npm run lab -- browsers hidden`.
 *
 * Two of them, with a keep-alive of 30 s, at a broker that ends what is silent for 45 s: one gets a message every ten seconds, the other gets none.
 * MQWIRE_MINUTES sets the time.
 */
import { describe, expect, it } from 'vitest'
import { brokerAndClient } from '../real/broker-and-client.js'
import { startAedes } from '../real/brokers.js'
import { pause } from '../support/pausing.js'
import { withChromium } from './chromium.js'
import { browserAndSite } from './setting.js'
import { Stay } from './stay.js'

const minutes = Number(process.env['MQWIRE_MINUTES'] ?? 8)

withChromium(() => {
  describe('hidden tabs in real time', () => {
    const setting = browserAndSite()
    const both = brokerAndClient(startAedes)

    it(`${minutes} minutes: with messages nobody ends the connection, without there is at most one reconnect`, {
      timeout: (minutes + 1) * 60_000,
    }, async () => {
      const open = (id: string): Promise<Stay> =>
        Stay.open(setting.browser, setting.site.origin, both.broker.urls.WebSocket ?? '', id)
      const [fed, quiet] = [await open('fed'), await open('quiet')]
      const other = await setting.browser.context.newPage()
      await other.bringToFront()
      for (let minute = 1; minute <= minutes; minute++) {
        for (let part = 0; part < 6; part++) {
          await pause(10_000)
          await both.client.publish('fed/in', `${minute}.${part}`, { qos: 1 })
        }
      }
      const texts = (await fed.diary()).flatMap(({ text }) => text ?? [])
      expect(texts).toHaveLength(6 * minutes)
      expect(fed.tap.connects).toBe(1)
      expect(quiet.tap.connects).toBeLessThanOrEqual(2)
      expect(await quiet.state()).toBe('connected')
      // Timers stand still from the sixth minute on: then each is told of that comes half a keep-alive late.
      if (minutes > 6)
        expect((await fed.diary()).filter(({ type }) => type === 'late').length).toBeGreaterThan(0)
      for (const stay of [fed, quiet]) await stay.close()
    })
  })
})
