/** What the browser or the server forbids: a strict Content Security Policy, mixed content, and a WebSocket that is closed with a reason. */
import type { Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, startAedes, startMosquitto, withMosquitto } from '../real/brokers.js'
import { selfSigned } from '../support/certificates.js'
import { withChromium } from './chromium.js'
import { startClosing } from './closing-server.js'
import { drivenAndSite } from './setting.js'
import { type Site, serveSite } from './site.js'

withChromium(() => {
  const setting = drivenAndSite()
  let page: Page
  /** What the page or the browser complained of. */
  const complaints: string[] = []
  afterEach(() => page.close())

  async function open(url: string): Promise<void> {
    complaints.length = 0
    page = await setting.browser.newPage({ ignoreHTTPSErrors: true })
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`))
    await page.goto(url)
    await page.waitForFunction('globalThis.policies !== undefined')
  }

  const ask = (name: string, question: object): Promise<unknown> =>
    page.evaluate(`policies.${name}(${JSON.stringify(question)})`)

  function strict(brokerName: string, start: () => Promise<Broker>, brief: boolean): void {
    describe(`under a strict Content Security Policy, with ${brokerName}`, () => {
      let broker: Broker
      beforeAll(async () => {
        broker = await start()
        return () => broker.stop()
      })

      it('the client does everything', async () => {
        await open(`${setting.site.origin}/strict/policies.html`)
        const { result, failure } = (await ask('everything', {
          url: broker.urls.WebSocket,
          name: 'strict',
        })) as { result?: object; failure?: string }
        expect(failure).toBeUndefined()
        expect(result).toMatchObject({
          scope: 'Window',
          longPayload: true,
          listened: ['0', '1', '2', '3', '4'],
          asked: [255, 254, 1],
          closed: true,
        })
        expect(await page.evaluate('policies.violations')).toEqual([])
      })

      // What is forbidden does not depend on the broker.
      if (brief) return

      it('loadScanner() gives none, and the client reads without', async () => {
        await open(`${setting.site.origin}/strict/policies.html`)
        expect(await ask('scanner', { url: broker.urls.WebSocket, name: 'scanner' })).toEqual({
          scanner: 'undefined',
          text: 'read',
        })
        expect(complaints).toEqual([])
      })

      it('loadScanner() gives one where the policy allows it', async () => {
        await open(`${setting.site.origin}/pages/policies.html`)
        expect(await ask('scanner', { url: broker.urls.WebSocket, name: 'scanner' })).toEqual({
          scanner: 'function',
          text: 'read',
        })
        expect(complaints).toEqual([])
      })
    })
  }
  strict('aedes', startAedes, false)
  withMosquitto(['WebSocket'], () => strict('mosquitto', startMosquitto, true))

  describe('ws: from an https page', () => {
    let secure: Site
    beforeAll(async () => {
      secure = await serveSite(selfSigned('site'))
      return () => secure.stop()
    })

    it('is refused with a typed error that says why, before the browser is asked', async () => {
      await open(`${secure.origin}/pages/policies.html`)
      const refused = await ask('refused', { url: 'ws://broker.example/mqtt' })
      expect(refused).toMatchObject({
        code: 'ERR_INVALID_BROKER_URL',
        outcome: 'not-sent',
        message: expect.stringContaining('wss:'),
      })
      expect(complaints).toEqual([])
    })

    it('goes to the machine itself, as the browser allows', async () => {
      const broker = await startAedes()
      try {
        await open(`${secure.origin}/pages/policies.html`)
        expect(await ask('scanner', { url: broker.urls.WebSocket, name: 'local' })).toMatchObject({
          text: 'read',
        })
      } finally {
        await broker.stop()
      }
    })
  })

  describe('a server that closes with 4401 and a reason', () => {
    const cause = { code: 4401, reason: 'expired' }
    let server: Awaited<ReturnType<typeof startClosing>>
    beforeAll(async () => {
      server = await startClosing(cause.code, cause.reason)
      return () => server.stop()
    })

    it('before CONNACK: both are in the cause of the error', async () => {
      await open(`${setting.site.origin}/pages/policies.html`)
      expect(await ask('refused', { url: `${server.url}/before` })).toMatchObject({
        code: 'ERR_CONNECT_FAILED',
        cause,
      })
    })

    it('after CONNACK: both are in the cause of the event, and of what closed the client', async () => {
      await open(`${setting.site.origin}/pages/policies.html`)
      const error = { code: 'ERR_CONNECTION_LOST', cause }
      expect(await ask('ended', { url: `${server.url}/after` })).toMatchObject({
        lost: error,
        closed: error,
      })
    })
  })
})
