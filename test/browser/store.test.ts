/**
 * Stores in IndexedDB, in a Chromium that keeps them on the disk: the contract, tabs that share a store and are reloaded, closed and killed, quotas, databases
 * that are deleted, and what browsers have not.
 */
import type { CDPSession, Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/store/index.js'
import { storeContract } from '../../src/testing/store-contract.js'
import { eventually } from '../real/waiting.js'
import { withChromium } from './chromium.js'
import { browserAndSite } from './setting.js'
import { serveSite } from './site.js'

withChromium(() => {
  const setting = browserAndSite()
  const pages: Page[] = []
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.close().catch(() => undefined)
  })

  const ready = async (page: Page): Promise<void> =>
    void (await page.waitForFunction('globalThis.tab !== undefined'))

  /** A tab; what it says by `said(number)` is in the list. */
  async function open(): Promise<{ page: Page; said: number[] }> {
    const page = await setting.browser.context.newPage()
    pages.push(page)
    const said: number[] = []
    await page.exposeFunction('said', (number: number) => void said.push(number))
    await page.goto(`${setting.site.origin}/pages/store.html`)
    await ready(page)
    return { page, said }
  }

  const call = <T = string>(page: Page, name: string, ...given: unknown[]): Promise<T> =>
    page.evaluate(`tab.${name}(...${JSON.stringify(given)})`)
  const lockedError = (name: string) =>
    expect.objectContaining({ code: 'ERR_STORE_LOCKED', message: `store locked: ${name}` })

  interface Read {
    readonly found: number
    readonly inOrder: boolean
    readonly damaged: number
    readonly last: number
  }

  /** All that a tab heard is stored is there, and whole batches only. */
  async function assertRead(page: Page, name: string, said: readonly number[]): Promise<void> {
    const read = await call<Read>(page, 'read', name)
    expect(read).toMatchObject({ inOrder: true, damaged: 0, last: read.found })
    expect(read.found).toBeGreaterThanOrEqual(said.at(-1) ?? 0)
    expect(said.length).toBeGreaterThan(5)
  }

  describe('levelStore() in a page keeps the contract', () => {
    let page: Page
    beforeAll(async () => {
      page = (await open()).page
      pages.splice(0)
      return () => page.close()
    })
    const names = storeContract(async () => memoryStore(), {
      reopen: async () => memoryStore(),
    }).map(({ name }) => name)
    it.each(names)('%s', { timeout: 120_000 }, async (name) => {
      await call(page, 'contract', name)
    })
  })

  describe('two tabs', () => {
    it('the second gets ERR_STORE_LOCKED, or waits until the first closes the store, or gives up', async () => {
      const [{ page: first }, { page: second }] = [await open(), await open()]
      expect(await call(first, 'open', 'shared')).toBe('open')
      expect(await call(first, 'open', 'shared')).toEqual(lockedError('shared'))
      expect(await call(second, 'open', 'shared')).toEqual(lockedError('shared'))
      expect(await call(second, 'open', 'shared', { lock: 'wait' }, 200)).toMatchObject({
        code: 'ERR_ABORTED',
        cause: 'TimeoutError',
      })
      expect(await call(second, 'open', 'other')).toBe('open')
      const waiting = call(second, 'open', 'shared', { lock: 'wait' })
      expect(await call(first, 'put', 'shared', 'a', 'text')).toBe('stored')
      expect(await call(first, 'close', 'shared')).toBe('closed')
      expect(await waiting).toBe('open')
      expect(await call(second, 'get', 'shared', 'a')).toBe('text')
      expect(await call(first, 'open', 'shared')).toEqual(lockedError('shared'))
    })

    it.each([
      ['is closed', (page: Page) => page.close()],
      [
        'has its process killed',
        async (page: Page, session: CDPSession) => {
          const crashed = new Promise((resolve) => page.once('crash', resolve))
          void session.send('Page.crash').catch(() => undefined)
          await crashed
        },
      ],
    ])(
      'a tab that %s is replaced in less than 2 s, with all that it was told is safe',
      { timeout: 60_000 },
      async (how, end) => {
        const name = `leader ${how}`
        const [{ page: first, said }, { page: second }] = [await open(), await open()]
        expect(await call(first, 'open', name)).toBe('open')
        await call(first, 'write', name)
        const waiting = call(second, 'open', name, { lock: 'wait' })
        await eventually(async () => said.length > 20, 'twenty entries')
        const session = await setting.browser.context.newCDPSession(first)
        await end(first, session)
        const since = performance.now()
        expect(await waiting).toBe('open')
        expect(performance.now() - since).toBeLessThan(2000)
        await assertRead(second, name, said)
      },
    )

    it('a lock that somebody else takes by force ends the store: two do not write', async () => {
      const [{ page: first }, { page: second }] = [await open(), await open()]
      await call(first, 'open', 'stolen')
      await call(first, 'put', 'stolen', 'a', 'text')
      await call(second, 'steal', 'stolen')
      await eventually(
        async () => (await call(first, 'put', 'stolen', 'b', 'text')) !== 'stored',
        'the end of the store',
      )
      expect(await call(first, 'put', 'stolen', 'b', 'text')).toMatchObject({
        code: 'ERR_STORE',
        cause: 'InvalidStateError',
      })
    })
  })

  it('a reload in the middle of writing: whole batches, in order, all that the page was told are safe', {
    timeout: 60_000,
  }, async () => {
    const { page, said } = await open()
    for (let turn = 0; turn < 5; turn++) {
      const name = `reloaded ${turn}`
      said.length = 0
      await call(page, 'open', name)
      await call(page, 'write', name)
      await eventually(async () => said.length > 10 + turn * 3, 'some entries')
      await page.reload()
      await ready(page)
      expect(await call(page, 'open', name, { lock: 'wait' })).toBe('open')
      await assertRead(page, name, said)
    }
  })

  it('a quota that is reached: rejects with the cause, nothing of the batch is stored, and deleting makes room', {
    timeout: 60_000,
  }, async () => {
    // An origin of its own: the browser remembers for a while how much room one had.
    const other = await serveSite()
    const page = await setting.browser.context.newPage()
    pages.push(page)
    try {
      await page.goto(`${other.origin}/pages/store.html`)
      await ready(page)
      const session = await setting.browser.context.newCDPSession(page)
      await session.send('Storage.overrideQuotaForOrigin', {
        origin: other.origin,
        quotaSize: 1_000_000,
      })
      await call(page, 'open', 'quota')
      expect(await call(page, 'put', 'quota', 'a', 'text')).toBe('stored')
      expect(await call(page, 'putMany', 'quota', 400, 50_000)).toMatchObject({
        code: 'ERR_STORE',
        cause: 'QuotaExceededError',
      })
      expect(await call(page, 'keys', 'quota')).toEqual(['a'])
      expect(await call(page, 'get', 'quota', 'a')).toBe('text')
      // Who is to make room can.
      expect(await call(page, 'forget', 'quota', 'a')).toBe('stored')
      expect(await call(page, 'keys', 'quota')).toEqual([])
    } finally {
      await page.close()
      await other.stop()
    }
  })

  it('a database that is deleted underneath: nobody is blocked, the store says so, and can be opened anew', async () => {
    const [{ page: first }, { page: second }] = [await open(), await open()]
    await call(first, 'open', 'deleted')
    await call(first, 'put', 'deleted', 'a', 'text')
    expect(await call(second, 'remove', 'deleted')).toBe('deleted')
    expect(await call(first, 'put', 'deleted', 'b', 'text')).toMatchObject({
      code: 'ERR_STORE',
      cause: 'InvalidStateError',
    })
    expect(await call(first, 'get', 'deleted', 'a')).toMatchObject({ code: 'ERR_STORE' })
    expect(await call(second, 'open', 'deleted')).toBe('open')
    expect(await call(second, 'keys', 'deleted')).toEqual([])
    expect(await call(first, 'close', 'deleted')).toBe('closed')
  })

  it('a database of a later version is refused, and left as it is', async () => {
    const { page } = await open()
    expect(await call(page, 'later', 'later')).toBe('there')
    expect(await call(page, 'open', 'later')).toMatchObject({
      code: 'ERR_STORE',
      cause: 'VersionError',
    })
    // Nor is the lock held.
    expect(await call(page, 'open', 'later', { lock: 'wait' })).toMatchObject({
      code: 'ERR_STORE',
      cause: 'VersionError',
    })
  })

  it('what somebody else put into the database is damaged, put aside, and stops nothing', async () => {
    const { page } = await open()
    await call(page, 'open', 'tampered')
    const values = [7, 'text', null, { a: 1 }, [1, 2]]
    for (const [at, value] of values.entries())
      await call(page, 'tamper', 'tampered', `q/${at}`, value)
    await call(page, 'put', 'tampered', 'q/3a', 'no record either')
    expect(await call<string[]>(page, 'quarantineDamaged', 'tampered')).toHaveLength(
      values.length + 1,
    )
    expect(
      (await call<string[]>(page, 'keys', 'tampered')).every((key) => key.startsWith('x/')),
    ).toBe(true)
  })

  it('writes strictly or not, as it was asked; batches of one turn share a transaction; a view takes no more than its length', async () => {
    const { page } = await open()
    await call(page, 'open', 'strict')
    await call(page, 'open', 'relaxed', { durability: 'os' })
    expect(await call(page, 'watched', 'strict', 50)).toEqual([['readwrite', 'strict']])
    expect(await call(page, 'watched', 'relaxed', 50)).toEqual([['readwrite', 'relaxed']])
    expect(await call(page, 'putView', 'strict', 'view')).toBe('stored')
    expect(await call(page, 'storedMemory', 'strict', 'view')).toBe(10)
  })

  it('asks for lasting storage on request only', async () => {
    const { page } = await open()
    await page.evaluate(
      'globalThis.asked = 0; StorageManager.prototype.persist = async () => { asked += 1; return false }',
    )
    for (const options of [{}, { persist: false }]) {
      await call(page, 'open', 'lasting', options)
      await call(page, 'close', 'lasting')
    }
    expect(await page.evaluate('asked')).toBe(0)
    expect(await call(page, 'open', 'lasting', { persist: true })).toBe('open')
    expect(await page.evaluate('asked')).toBe(1)
  })

  it.each([
    ['location', "Object.defineProperty(globalThis, 'indexedDB', { value: undefined })", {}],
    ['lock', "Object.defineProperty(navigator, 'locks', { value: undefined })", {}],
    ['durability', 'delete IDBTransaction.prototype.durability', {}],
    [
      'persist',
      "Object.defineProperty(navigator, 'storage', { value: undefined })",
      { persist: true },
    ],
  ])(
    'a browser without what %s needs: ERR_UNSUPPORTED_OPTION names it',
    async (option, remove, options) => {
      const { page } = await open()
      await page.evaluate(remove)
      expect(await call(page, 'open', 'missing', options)).toMatchObject({
        code: 'ERR_UNSUPPORTED_OPTION',
        option,
      })
      if (option === 'durability')
        expect(await call(page, 'open', 'missing', { durability: 'os' })).toBe('open')
    },
  )
})
