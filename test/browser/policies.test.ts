/** What the browser or the server forbids: a strict Content Security Policy, mixed content, and a WebSocket that is closed with a reason. */
import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { type Broker, startAedes } from '../real/brokers.js'
import { selfSigned } from '../support/certificates.js'
import { listening } from '../support/servers.js'
import { withChromium } from './chromium.js'
import { drivenAndSite } from './setting.js'
import { type Site, serveSite } from './site.js'

const connack = Uint8Array.of(0x20, 3, 0, 0, 0)

/** A WebSocket server that ends connections so: at the first packet (`/before`), or at the next one after CONNACK (`/after`). */
async function startClosing(
  code: number,
  reason: string,
): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, { url }) => {
    socket.once('message', () => {
      if (url === '/before') return socket.close(code, reason)
      socket.send(connack)
      socket.once('message', () => socket.close(code, reason))
    })
  })
  const port = await listening(server)
  return {
    url: `ws://127.0.0.1:${port}`,
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

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

  describe('under a strict Content Security Policy', () => {
    let broker: Broker
    beforeAll(async () => {
      broker = await startAedes()
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
