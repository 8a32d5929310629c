/** The features of `test/real` in a page of a real browser, over the WebSocket listener of mosquitto: the same code, the same expectations. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type Broker,
  mosquittoBefore,
  mosquittoSetups,
  type Setup,
  startMosquitto,
  withMosquitto,
} from '../real/brokers.js'
import { features } from '../real/features.js'
import { type ShapedLink, startProxy } from '../real/link.js'
import { withChromium } from './chromium.js'
import { drivenAndSite } from './setting.js'

/** What is not run: the first freezes the broker between two statements; of the others `test/real` shows what mosquitto does instead. */
const leftOut = [
  'killed broker',
  'overlap within one subscription',
  'enhanced authentication',
  'refused subscription',
  'large payloads',
  ...(mosquittoBefore(2, 1, 0) ? ['takeover', 'topic aliases from the broker'] : []),
  ...(mosquittoBefore(2, 0, 13) ? ['inbound window', 'inbound window at QoS 2'] : []),
]

withChromium(() => {
  const setting = drivenAndSite()

  withMosquitto(['WebSocket'], () => {
    describe('mosquitto over WebSocket, from a page', { concurrent: true }, () => {
      const brokers: Broker[] = []
      const links: ShapedLink[] = []
      let page: Page
      beforeAll(async () => {
        page = await setting.browser.newPage()
        await page.exposeFunction('startBroker', async (setup: Setup) => {
          const broker = await startMosquitto(mosquittoSetups[setup])
          return { number: brokers.push(broker) - 1, url: broker.urls.WebSocket }
        })
        await page.exposeFunction(
          'controlBroker',
          (number: number, what: 'kill' | 'shutDown' | 'live' | 'stop') =>
            brokers[number]?.[what](),
        )
        await page.exposeFunction('proxyTo', async (settings: Parameters<typeof startProxy>[0]) => {
          // The handshake of a WebSocket alone is half a kilobyte each way.
          const link = await startProxy({ ...settings, meanBytes: settings.meanBytes * 4 })
          return { number: links.push(link) - 1, url: link.url.replace(/^mqtt:/, 'ws:') }
        })
        await page.exposeFunction(
          'controlProxy',
          (number: number, what: 'calm' | 'stop' | 'resets') => {
            const link = links[number]
            return what === 'resets' ? link?.resets : link?.[what]()
          },
        )
        await page.goto(`${setting.site.origin}/inside/features.html`)
        await page.waitForFunction('globalThis.features !== undefined')
      })
      afterAll(async () => {
        await page.close()
        for (const broker of brokers) await broker.stop()
        for (const link of links) await link.stop()
      })

      it.each(
        features.filter(({ name }) => !leftOut.includes(name) && !/^over (?!WebSocket)/.test(name)),
      )('$title', { timeout: 60_000 }, async ({ name }) => {
        expect(await page.evaluate(`features.run(${JSON.stringify(name)})`)).toBeUndefined()
      })
    })
  })
})
