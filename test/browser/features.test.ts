/**
 * The features of the interop suites in a page of a real browser, over the WebSocket listeners of aedes and mosquitto: the same code, the same
 * expectations. What is not run here stands below, with the reason.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../src/client/node.js'
import { aedesSetups } from '../real/aedes.js'
import {
  type Broker,
  mosquittoBefore,
  mosquittoSetups,
  type Setup,
  startAedes,
  startMosquitto,
  withMosquitto,
} from '../real/brokers.js'
import { features } from '../real/features.js'
import { type ShapedLink, startProxy } from '../real/link.js'
import type { Feature } from '../real/target.js'
import { withChromium } from './chromium.js'
import { drivenAndSite } from './setting.js'

/** A broker in the page's hands. */
interface Target {
  readonly start: (setup: Setup) => Promise<Broker>
  readonly clientOptions?: ClientOptions
  /** Those that are run. Default all. */
  readonly only?: (feature: Feature) => boolean
  /** Names of features that this broker does not have as the standard says: `test/real` shows what there is instead. */
  readonly lacks: readonly string[]
}

const names = features.map(({ name }) => name)

/** Names of features, each of which there must be. */
function known(...given: string[]): string[] {
  for (const name of given)
    if (!names.includes(name)) throw new Error(`no feature is called '${name}'`)
  return given
}

/** Features that are not of a page. */
const leftOut: Readonly<Record<string, string>> = {
  'killed broker': 'freezes the broker between two statements, which a page is too far away for',
}

withChromium(() => {
  const setting = drivenAndSite()

  it('what is left out is there', () => {
    expect(known(...Object.keys(leftOut), 'over TCP', 'over WebSocket').length).toBeGreaterThan(2)
    expect(() => known('retained', 'unheard of')).toThrow("no feature is called 'unheard of'")
  })

  function suite(
    name: string,
    { start, clientOptions = {}, only = () => true, lacks }: Target,
  ): void {
    const run = features
      .filter(only)
      .filter(
        (feature) =>
          !(feature.name in leftOut) &&
          !lacks.includes(feature.name) &&
          !/^over (?!WebSocket)/.test(feature.name),
      )

    describe(`${name} over WebSocket, from a page`, { concurrent: true }, () => {
      const brokers: Broker[] = []
      const proxies: ShapedLink[] = []
      let page: Page
      beforeAll(async () => {
        page = await setting.browser.newPage()
        await page.exposeFunction('startBroker', async (setup: Setup) => {
          const broker = await start(setup)
          return { number: brokers.push(broker) - 1, url: broker.urls.WebSocket }
        })
        await page.exposeFunction(
          'controlBroker',
          (number: number, what: 'kill' | 'shutDown' | 'live' | 'stop') =>
            brokers[number]?.[what](),
        )
        await page.exposeFunction('proxyTo', async (settings: Parameters<typeof startProxy>[0]) => {
          // The handshake of a WebSocket alone is half a kilobyte each way.
          const proxy = await startProxy({ ...settings, meanBytes: settings.meanBytes * 4 })
          return { number: proxies.push(proxy) - 1, url: proxy.url.replace(/^mqtt:/, 'ws:') }
        })
        await page.exposeFunction(
          'controlProxy',
          (number: number, what: 'calm' | 'stop' | 'resets') => {
            const proxy = proxies[number]
            return what === 'resets' ? proxy?.resets : proxy?.[what]()
          },
        )
        await page.goto(`${setting.site.origin}/inside/features.html`)
        await page.waitForFunction('globalThis.features !== undefined')
      })
      afterAll(async () => {
        await page.close()
        for (const broker of brokers) await broker.stop()
        for (const proxy of proxies) await proxy.stop()
      })

      for (const feature of run)
        it(feature.title, { timeout: feature.timeout ?? 40_000 }, async () => {
          expect(
            await page.evaluate(
              `features.run(${JSON.stringify(feature.name)}, ${JSON.stringify(clientOptions)})`,
            ),
          ).toBeUndefined()
        })
    })
  }

  suite('aedes', {
    start: (setup) => startAedes(aedesSetups[setup]),
    // It sends without regard to the Receive Maximum of its clients.
    clientOptions: { receiveMaximum: 65_535 },
    // The others show the browser with one broker as well as with two.
    only: ({ reach, name }) =>
      reach === 'everywhere' || known('cuts at QoS 2', 'retained', 'MQTT 3.1.1').includes(name),
    lacks: [],
  })
  withMosquitto(['WebSocket'], () =>
    suite('mosquitto', {
      start: (setup) => startMosquitto(mosquittoSetups[setup]),
      lacks: known(
        'overlap within one subscription',
        'enhanced authentication',
        'refused subscription',
        // Its WebSocket listener sends 4 KB ten times in a second.
        'large payloads',
        ...(mosquittoBefore(2, 1, 0) ? ['takeover', 'topic aliases from the broker'] : []),
        ...(mosquittoBefore(2, 0, 13) ? ['inbound window', 'inbound window at QoS 2'] : []),
      ),
    }),
  )
})
