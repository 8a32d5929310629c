/**
 * Sessions and queues of a page, in IndexedDB of a Chromium that keeps it: a reload in the middle, a killed renderer, two tabs on one store, and a database
 * that is deleted underneath. The other end counts what arrives, and how often.
 */
import type { Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { eventually } from '../real/waiting.js'
import { withChromium } from './chromium.js'
import { browserAndSite } from './setting.js'
import { serveSite } from './site.js'

/** An entry of a page's diary. */
interface Entry {
  readonly type: string
  readonly [field: string]: unknown
}

interface Opening {
  readonly lock?: 'wait'
  readonly queued?: boolean
  readonly offline?: boolean
  /** What the page does with a message; `'nothing'`: it does not subscribe. */
  readonly handle?: 'never' | 'done' | 'nothing'
}

const texts = (count: number, word = 'text'): string[] =>
  Array.from({ length: count }, (_, at) => `${word} ${at}`)

/** The process of a page ends, without a word. */
async function kill(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const crashed = new Promise((resolve) => page.once('crash', resolve))
  void session.send('Page.crash').catch(() => undefined)
  await crashed
}

withChromium(() => {
  const setting = browserAndSite()
  const pages: Page[] = []
  let broker: MemoryBroker
  let url: string
  let peer: Client
  /** What the peer got. */
  let arrived: string[]
  let name = ''
  let count = 0
  /** Holds back the broker's answers to publishes, and what the publishes cause. */
  let gate: { readonly opened: Promise<true>; open(): void } | undefined

  function closeGate(): void {
    let release: () => void = () => undefined
    const opened = new Promise<true>((resolve) => {
      release = () => resolve(true)
    })
    gate = { opened, open: release }
  }

  beforeAll(async () => {
    broker = new MemoryBroker({
      authorizePublish: ({ clientId }) => (clientId === 'peer' ? true : (gate?.opened ?? true)),
      maxLog: 0,
    })
    const { ws, tcp } = await broker.serve({ ws: 0, tcp: 0 })
    url = ws?.url ?? ''
    peer = await connect(tcp?.url ?? '', { clientId: 'peer' })
    await peer.listen('+/out', (message) => void arrived.push(message.text()), { qos: 2 })
    return async () => {
      await peer.disconnect({ timeout: 0 })
      await broker.close()
    }
  })
  beforeEach(() => {
    count += 1
    name = `device-${count}`
    arrived = []
    gate = undefined
  })
  afterEach(async () => {
    gate?.open()
    for (const page of pages.splice(0)) await page.close().catch(() => undefined)
  })

  const call = <T = string>(page: Page, method: string, ...given: unknown[]): Promise<T> =>
    page.evaluate(`tab.${method}(...${JSON.stringify(given)})`)
  const ready = async (page: Page): Promise<void> =>
    void (await page.waitForFunction('globalThis.tab !== undefined'))

  async function tab(origin = setting.site.origin): Promise<Page> {
    const page = await setting.browser.context.newPage()
    pages.push(page)
    await page.goto(`${origin}/pages/durable.html?url=${url}&name=${name}`)
    await ready(page)
    return page
  }

  async function start(opening: Opening = {}): Promise<Page> {
    const page = await tab()
    await call(page, 'open', opening)
    await told(page, 'connect')
    return page
  }

  /** The page is loaded anew. Its lock may take a moment to be free. */
  async function reload(page: Page, opening: Opening = {}): Promise<void> {
    await page.reload()
    await ready(page)
    await call(page, 'open', { lock: 'wait', ...opening })
  }

  /** Entries of the diary, once there are so many of a kind. */
  async function told(page: Page, type: string, least = 1): Promise<Entry[]> {
    const of = async (): Promise<Entry[]> =>
      (await page.evaluate<Entry[]>('tab.diary')).filter((entry) => entry.type === type)
    return eventually(async () => {
      const found = await of()
      return found.length >= least && found
    }, `${least} ${type}`)
  }

  /** What had been sent has arrived by now, and what would come twice has come. */
  async function arrivals(least: number): Promise<string[]> {
    await eventually(() => arrived.length >= least, `${least} messages`)
    await peer.publish('peer/out', 'end', { qos: 2 })
    await eventually(() => arrived.includes('end'), 'the end')
    return arrived.filter((text) => text !== 'end')
  }

  describe('a durable session in a page', () => {
    it('reloaded while publishes are in flight: they are recovered, each is told of, and QoS 2 arrives once', async () => {
      const page = await start()
      closeGate()
      await call(page, 'publish', texts(5, 'once'), 2)
      await call(page, 'publish', texts(3, 'least'), 1)
      // They are stored before they are sent, and no answer comes.
      await eventually(() => stored(page).then((keys) => keys === 8), 'eight records')
      expect(await page.evaluate<Entry[]>('tab.diary')).not.toContainEqual(
        expect.objectContaining({ type: 'published' }),
      )
      await reload(page)
      const [again] = await told(page, 'connect')
      expect(again).toMatchObject({ recovered: { outbound: 8, inbound: 0 }, sessionPresent: true })
      gate?.open()
      const recovered = await told(page, 'recovered', 8)
      expect(recovered.map(({ error }) => error)).toEqual(texts(8).map(() => undefined))
      expect(recovered.filter(({ qos }) => qos === 2)).toHaveLength(5)
      const all = await arrivals(8)
      expect(all.filter((text) => text.startsWith('once'))).toEqual(texts(5, 'once'))
      expect([...new Set(all.filter((text) => text.startsWith('least')))]).toEqual(
        texts(3, 'least'),
      )
      await eventually(() => stored(page).then((keys) => keys === 0), 'an empty store')
      await reload(page)
      expect((await told(page, 'connect'))[0]).toMatchObject({
        recovered: { outbound: 0, inbound: 0 },
      })
    })

    it('reloaded while a message is in hand: it comes again, with the id that it had', async () => {
      const page = await start({ handle: 'never' })
      await eventually(
        async () =>
          peer.publish(`${name}/in`, 'job', { qos: 2 }).then(({ reasonCode }) => reasonCode === 0),
        'a subscriber',
      )
      const [first] = await told(page, 'message')
      expect(first).toMatchObject({ text: 'job', redelivered: false, id: expect.any(String) })
      await reload(page, { handle: 'done' })
      const [second] = await told(page, 'message')
      expect(second).toMatchObject({ text: 'job', redelivered: true, id: first?.['id'] })
      expect((await told(page, 'connect'))[0]).toMatchObject({ recovered: { inbound: 1 } })
    })
  })

  describe('a queue in a page, in the store of its session', () => {
    const opening = { queued: true, handle: 'nothing' } as const

    it('reloaded again and again while it delivers: everything arrives, once', {
      timeout: 90_000,
    }, async () => {
      const page = await start(opening)
      closeGate()
      expect(await call(page, 'enqueue', texts(300), 2)).toBe(300)
      gate?.open()
      gate = undefined
      for (let turn = 0; turn < 4; turn++) {
        const before = arrived.length
        await eventually(
          () => arrived.length > before + 5 || arrived.length === 300,
          'some messages',
        )
        await reload(page, opening)
      }
      expect(await arrivals(300)).toEqual(texts(300))
      await eventually(async () => (await call<number>(page, 'size')) === 0, 'an empty queue')
    })

    it('a tab that is killed while it delivers is followed by the one that waits: everything arrives, once', {
      timeout: 90_000,
    }, async () => {
      const first = await start(opening)
      const second = await tab()
      const waiting = call(second, 'open', { ...opening, lock: 'wait' })
      closeGate()
      expect(await call(first, 'enqueue', texts(400), 2)).toBe(400)
      gate?.open()
      gate = undefined
      await eventually(() => arrived.length > 10, 'some messages')
      expect(await second.evaluate('tab.diary.length')).toBe(0)
      await kill(first)
      expect(await waiting).toBe('open')
      expect(arrived.length).toBeLessThan(400)
      expect(await arrivals(400)).toEqual(texts(400))
      await eventually(async () => (await call<number>(second, 'size')) === 0, 'an empty queue')
    })

    it.each([
      // Chromium deletes on a quota that is used up, and puts nothing, however small.
      [1, 'drains', 8_000_000],
      [2, 'waits, and drains once there is more', 64_000_000],
    ])(
      'whose quota is reached while it is offline, at QoS %i: %s; what was taken arrives once',
      { timeout: 240_000 },
      async (qos, _what, later) => {
        // An origin of its own: the browser remembers for a while how much room one had.
        const other = await serveSite()
        try {
          const page = await tab(other.origin)
          const session = await setting.browser.context.newCDPSession(page)
          const limit = (quotaSize: number): Promise<object> =>
            session.send('Storage.overrideQuotaForOrigin', { origin: other.origin, quotaSize })
          await limit(8_000_000)
          await call(page, 'open', { ...opening, offline: true })
          const { count: taken, error } = await call<{ count: number; error: object }>(
            page,
            'fill',
            20_000,
            qos,
          )
          expect(error).toMatchObject({
            code: 'ERR_STORE',
            cause: 'QuotaExceededError',
            outcome: 'not-sent',
          })
          expect(taken).toBeGreaterThan(100)
          expect(await call(page, 'size')).toBe(taken)
          await page.evaluate('tab.connect()')
          if (qos === 2)
            expect((await told(page, 'error', 3))[0]).toMatchObject({
              code: 'ERR_STORE',
              cause: 'QuotaExceededError',
            })
          await limit(later)
          await eventually(
            async () => (await call<number>(page, 'size')) === 0,
            'an empty queue',
            180_000,
          )
          expect(await call(page, 'bytes')).toBe(0)
          const all = (await arrivals(taken)).map((text) => text.split(' ', 2).join(' '))
          expect(qos === 2 ? all : all.sort()).toEqual(
            qos === 2 ? texts(taken) : texts(taken).sort(),
          )
          await eventually(
            async () => (await call(page, 'tryEnqueue', 'more')) === 'stored',
            'room',
            60_000,
          )
          await eventually(() => arrived.includes('more'), 'the new one')
        } finally {
          await other.stop()
        }
      },
    )

    it('its database is deleted underneath: it says so, everything settles, and it can be opened anew', async () => {
      const page = await start(opening)
      closeGate()
      await call(page, 'enqueue', texts(3), 2)
      expect(await call(page, 'remove')).toBe('deleted')
      expect(await call(page, 'tryEnqueue', 'late')).toMatchObject({
        code: 'ERR_STORE',
        cause: 'InvalidStateError',
      })
      gate?.open()
      gate = undefined
      expect((await told(page, 'error'))[0]).toMatchObject({ code: 'ERR_STORE' })
      expect(await call(page, 'close')).toBe('closed')
      await reload(page, opening)
      expect(await call(page, 'size')).toBe(0)
      expect(await call(page, 'tryEnqueue', 'anew')).toBe('stored')
      await eventually(() => arrived.includes('anew'), 'the new one')
    })
  })

  /** Records of publishes in flight. */
  function stored(page: Page): Promise<number> {
    return page.evaluate(
      (database) =>
        new Promise<number>((resolve) => {
          const request = indexedDB.open(database)
          request.onsuccess = () => {
            const keys = request.result.transaction('records').objectStore('records').getAllKeys()
            keys.onsuccess = () => {
              request.result.close()
              resolve(keys.result.filter((key) => String(key).includes('/o/')).length)
            }
          }
        }),
      `mqwire:durable-${name}`,
    )
  }
})
