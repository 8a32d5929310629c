/**
 * Tabs that nobody sees, for eight minutes of real time, because Chromium runs their timers once a minute only after five: `npm run lab -- browsers hidden`.
 *
 * Two of them, with a keep-alive of 30 s, at a broker that ends what is silent for 45 s: one gets a message every ten seconds, the other gets none.
 * Says each minute how often they connected and how often a timer of 50 ms fired, and at the end what was sent and told. MQWIRE_MINUTES sets the time.
 */
import { describe, expect, it } from 'vitest'
import { brokerAndClient } from '../real/broker-and-client.js'
import { startAedes } from '../real/brokers.js'
import { pause } from '../support/pausing.js'
import { withChromium } from './chromium.js'
import { browserAndSite } from './setting.js'
import { Stay } from './stay.js'

const minutes = Number(process.env['MQWIRE_MINUTES'] ?? 8)

/** What a stay was like: PINGREQ over each connection, what ended them, and the lateness of timers that the client told of. */
async function toldOf(stay: Stay): Promise<string> {
  const diary = await stay.diary()
  const ends = diary
    .filter(({ type }) => type === 'disconnect')
    .map(({ error }) => JSON.stringify(error))
  const late = diary.flatMap(({ type, lateness = 0 }) =>
    type === 'late' ? Math.round(lateness / 1000) : [],
  )
  const pings = stay.tap.links.map((link) => link.count('pingreq'))
  return `PINGREQ [${pings}], messages ${diary.filter(({ type }) => type === 'message').length}, ended by [${ends}], seconds late [${late}]`
}

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
      const ticksOf = async (stay: Stay): Promise<number> => stay.page.evaluate('life.ticks()')
      const before = new Map<Stay, number>()
      for (let minute = 1; minute <= minutes; minute++) {
        for (const stay of [fed, quiet]) before.set(stay, await ticksOf(stay))
        for (let part = 0; part < 6; part++) {
          await pause(10_000)
          await both.client.publish('fed/in', `${minute}.${part}`, { qos: 1 })
        }
        for (const stay of [fed, quiet]) {
          const ticks = (await ticksOf(stay)) - (before.get(stay) ?? 0)
          console.log(
            `minute ${minute}, ${stay.id}: ${stay.tap.connects} CONNECT, ${ticks} ticks, ${await stay.state()}`,
          )
        }
      }
      for (const stay of [fed, quiet]) console.log(`${stay.id}: ${await toldOf(stay)}`)
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
