/** The whole program in a page, a dedicated worker, a shared worker and a service worker of a real browser, against real brokers. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, startAedes, startMosquitto, withMosquitto } from '../interop/brokers.js'
import { withChromium } from './chromium.js'
import { drivenAndSite } from './setting.js'

const places = [
  ['page', 'Window'],
  ['worker', 'DedicatedWorkerGlobalScope'],
  ['sharedWorker', 'SharedWorkerGlobalScope'],
  ['serviceWorker', 'ServiceWorkerGlobalScope'],
] as const

const everyByte = Array.from({ length: 256 }, (_, index) => index)

/** What came of a program that ran in this place, and was called so. */
function expected(scope: string, name: string): object {
  const properties = {
    contentType: 'application/octet-stream',
    payloadFormatIndicator: 0,
    correlationData: [0, 255, 128],
    responseTopic: 'somewhere/else',
    userProperties: [
      ['name', 'värde'],
      ['other', ''],
    ],
  }
  return {
    scope,
    roundTrips: {
      granted: [2],
      receipts: [0, 0, 0],
      messages: [0, 1, 2].map((qos) => ({ topic: `${name}/qos/${qos}`, qos, retain: false, bytes: everyByte, properties })),
    },
    longPayload: true,
    retained: { text: 'kept', retain: true },
    unsubscribed: { came: ['found'], leftOver: 0, ended: true },
    listened: ['0', '1', '2', '3', '4'],
    asked: [255, 254, 1],
    invalid: 'ERR_INVALID_TOPIC',
    nobody: 'ERR_CONNECT_FAILED',
    headers: 'ERR_UNSUPPORTED_OPTION',
    closed: true,
    after: 'ERR_CLOSED',
    states: ['connected', 'disconnecting', 'closed'],
    stats: { connects: 1, disconnects: 1, sessionsLost: 0 },
  }
}

withChromium(() => {
  const setting = drivenAndSite()

  function suite(brokerName: string, start: () => Promise<Broker>): void {
    describe(`the package in a browser, with ${brokerName}`, () => {
      let broker: Broker
      let page: Page
      const errors: string[] = []
      beforeAll(async () => {
        broker = await start()
        page = await setting.browser.newPage()
        page.on('pageerror', (error) => errors.push(error.message))
        await page.goto(`${setting.site.origin}/pages/places.html`)
        await page.waitForFunction('globalThis.places !== undefined')
      })
      afterAll(async () => {
        await page.close()
        await broker.stop()
      })

      it.each(places)('%s: every QoS, properties, retained, unsubscribe, listen, request and response, disconnect', async (place, scope) => {
        const name = `${brokerName}-${place}`
        const question = JSON.stringify({ url: broker.urls.WebSocket, name })
        expect(await page.evaluate(`places.${place}(${question})`)).toEqual({ result: expected(scope, name) })
        expect(errors).toEqual([])
      })
    })
  }

  suite('aedes', startAedes)
  withMosquitto(['WebSocket'], () => suite('mosquitto', startMosquitto))
})
