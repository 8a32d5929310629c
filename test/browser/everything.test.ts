/** The whole program in a page, a dedicated worker, a shared worker and a service worker of a real browser, against real brokers. */
import { readFileSync } from 'node:fs'
import { transform } from 'esbuild'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connect } from '../../src/client/node.js'
import { blocksOf } from '../package/code-blocks.js'
import { root } from '../package/fixture.js'
import { type Broker, startAedes, startMosquitto, withMosquitto } from '../real/brokers.js'
import { eventually } from '../real/waiting.js'
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
      messages: [0, 1, 2].map((qos) => ({
        topic: `${name}/qos/${qos}`,
        qos,
        retain: false,
        bytes: everyByte,
        properties,
      })),
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

      it.each(places)(
        '%s: every QoS, properties, retained, unsubscribe, listen, request and response, disconnect',
        async (place, scope) => {
          const name = `${brokerName}-${place}`
          const question = JSON.stringify({ url: broker.urls.WebSocket, name })
          expect(await page.evaluate(`places.${place}(${question})`)).toEqual({
            result: expected(scope, name),
          })
          expect(errors).toEqual([])
        },
      )
    })
  }

  suite('aedes', startAedes)
  withMosquitto(['WebSocket'], () => suite('mosquitto', startMosquitto))

  describe('a module in a page', () => {
    let broker: Broker
    let page: Page
    /** Everything on the console, behind its kind. */
    let said: string[]
    beforeAll(async () => {
      broker = await startAedes()
      return () => broker.stop()
    })
    beforeEach(async () => {
      said = []
      page = await setting.browser.newPage()
      page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`))
      page.on('pageerror', (error) => said.push(`thrown: ${error.message}`))
      await page.goto(`${setting.site.origin}/pages/places.html`)
      return () => page.close()
    })

    async function run(program: string): Promise<void> {
      const { code } = await transform(
        program.replace("'wss://broker.example/mqtt'", `'${broker.urls.WebSocket}'`),
        { loader: 'ts', format: 'esm' },
      )
      await page.addScriptTag({ type: 'module', content: code })
    }

    it('that of the README: its title is the state, and its console has what comes until it is too warm', async () => {
      const shown = blocksOf(readFileSync(`${root}/README.md`, 'utf8')).filter(({ code }) =>
        code.includes('document.title'),
      )
      expect(shown).toHaveLength(1)
      await run(shown[0]?.code ?? '')
      await page.waitForFunction("document.title === 'connected'")
      const plant = await connect(broker.urls.TCP as string)
      await plant.publish('plant/1/temperature', '{ "celsius": 21.5 }', { qos: 1, retain: true })
      await eventually(() => said.length === 1, 'the first line')
      expect(await page.title()).toBe('connected')
      await plant.publish('plant/2/temperature', '{ "celsius": 95 }', { qos: 1 })
      await page.waitForFunction("document.title === 'closed'")
      await plant.disconnect()
      expect(said).toEqual(['log: plant/1/temperature 21.5', 'log: plant/2/temperature 95'])
    })

    it('whose publish nobody awaits: the console has the report as an error', async () => {
      await run(`import { connect } from 'mqwire'
        const client = await connect('wss://broker.example/mqtt', { clientId: 'page' })
        client.publish('a/#', 'x')`)
      await eventually(() => said.length > 0, 'the report')
      expect(said).toEqual([
        expect.stringMatching(
          /^error: MQWIRE_PUBLISH_REFUSED: mqwire page: publish to "a\/#" failed: ERR_INVALID_TOPIC/,
        ),
      ])
    })
  })
})
