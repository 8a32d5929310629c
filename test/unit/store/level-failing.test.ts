/**
 * A LevelDB whose writes and openings fail on demand: what the store asks of it then. What LevelDB makes of a real disk that is full is in `level.test.ts`.
 */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import type { Store } from '../../../src/store/index.js'
import { levelStore } from '../../../src/store/level.js'
import { bytesOf, del, failureOf, failureWith, newPlace, put } from './places.js'

/** What is asked of LevelDB, in order, and what fails: by the name of the call. */
const asked: string[] = []
const failures = new Map<string, { code: string; times: number }>()

function ask(call: string): void {
  asked.push(call)
  const [name = ''] = call.split(' ')
  const failure = failures.get(name)
  if (failure === undefined || failure.times === 0) return
  failure.times -= 1
  const cause = Object.assign(new Error(`IO error: ${name}`), { code: failure.code })
  throw name === 'open' ? new Error('Database failed to open', { cause }) : cause
}

/** Bytes of the disk, and those that are free on it; undefined: as they are. */
let disk: { readonly size: number; readonly free: number } | undefined

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>()
  const statfs = async (path: string): Promise<unknown> =>
    disk === undefined ? real.statfs(path) : { bsize: 1, blocks: disk.size, bavail: disk.free }
  return { ...real, statfs }
})

vi.mock('classic-level', async (original) => {
  const { ClassicLevel } = await original<typeof import('classic-level')>()
  class Failing extends ClassicLevel<string, Uint8Array> {
    override async open(): Promise<void> {
      ask('open')
      await super.open()
    }
    override async close(): Promise<void> {
      asked.push('close')
      await super.close()
    }
    override async compactRange(start: string, end: string): Promise<void> {
      asked.push('compact')
      await super.compactRange(start, end)
    }
    override get(key: string): Promise<Uint8Array | undefined> {
      asked.push(`get ${key}`)
      return super.get(key)
    }
    // Filled step by step, or given an array.
    override batch(...given: unknown[]): never {
      if (given.length === 0) return this.#chained() as never
      const [operations, { sync }] = given as [{ key: string }[], { sync: boolean }]
      const doing = async (): Promise<void> => {
        ask(`batch ${operations.map(({ key }) => key).join()} ${sync}`)
        await super.batch(operations as never, { sync })
      }
      return doing() as never
    }
    #chained(): unknown {
      const chained = super.batch()
      const keys: string[] = []
      return {
        put: (key: string, value: Uint8Array) => keys.push(key) && chained.put(key, value),
        del: (key: string) => keys.push(key) && chained.del(key),
        async write({ sync }: { sync: boolean }): Promise<void> {
          ask(`batch ${keys.join()} ${sync}`)
          await chained.write({ sync } as never)
        },
      }
    }
  }
  return { ClassicLevel: Failing }
})

const one = bytesOf('1')
const megabyte = 1_048_576
let store: Store

beforeEach(async () => {
  failures.clear()
  disk = undefined
  store = await levelStore(newPlace())
  await store.batch([put('a')])
  asked.length = 0
})
afterEach(() => store.close())

it('syncs each write, or none, as it was asked', async () => {
  await store.batch([put('b')])
  await store.batch([put('c'), put('d')])
  const other = await levelStore(newPlace(), { durability: 'os' })
  await other.batch([put('e')])
  await other.close()
  expect(asked).toEqual(['batch b true', 'batch c,d true', 'open', 'batch e false', 'close'])
})

it('writes large values as small ones', async () => {
  const value = new Uint8Array(5000).fill(7)
  await store.batch([put('large', value), put('b'), del('a')])
  expect(asked).toEqual(['batch large,b,a true'])
  expect(await Promise.all(['large', 'b', 'a'].map((key) => store.get(key)))).toEqual([
    value,
    one,
    undefined,
  ])
})

it('opens LevelDB anew after a write that failed, before anything else is asked of it', async () => {
  failures.set('batch', { code: 'LEVEL_IO_ERROR', times: 1 })
  await expect(store.batch([put('b')])).rejects.toEqual(failureOf('LEVEL_IO_ERROR'))
  const [value, , nothing] = await Promise.all([
    store.get('a'),
    store.batch([put('c')]),
    store.get('b'),
  ])
  expect([value, nothing]).toEqual([one, undefined])
  expect(asked.slice(0, 3)).toEqual(['batch b true', 'close', 'open'])
  expect(asked.filter((call) => call === 'open')).toHaveLength(1)
  asked.length = 0
  await store.batch([put('d')])
  expect(asked).toEqual(['batch d true'])
})

it('a LevelDB that does not open any more: each call says so and tries again', async () => {
  failures.set('batch', { code: 'LEVEL_IO_ERROR', times: 1 })
  failures.set('open', { code: 'LEVEL_CORRUPTION', times: 2 })
  await expect(store.batch([put('b')])).rejects.toMatchObject({ code: 'ERR_STORE' })
  await expect(store.get('a')).rejects.toEqual(failureOf('LEVEL_CORRUPTION'))
  await expect(store.entries()[Symbol.asyncIterator]().next()).rejects.toEqual(
    failureOf('LEVEL_CORRUPTION'),
  )
  expect(await store.get('a')).toEqual(one)
})

it('a process that took the lock meanwhile keeps it', async () => {
  failures.set('batch', { code: 'LEVEL_IO_ERROR', times: 1 })
  failures.set('open', { code: 'LEVEL_LOCKED', times: 1 })
  await expect(store.batch([put('b')])).rejects.toMatchObject({ code: 'ERR_STORE' })
  await expect(store.batch([put('c')])).rejects.toEqual(failureOf('LEVEL_LOCKED'))
  await store.batch([put('d')])
})

it('a disk that is full: what is open is read, and the room that was kept is given up for what lets go of more', async () => {
  const place = newPlace()
  const other = await levelStore(place)
  const reserve = join(place, 'reserve')
  await other.batch([put('a')])
  await expect.poll(() => existsSync(reserve) && statSync(reserve).size).toBeGreaterThan(100_000)
  asked.length = 0
  failures.set('batch', { code: 'ENOSPC', times: 1 })
  await expect(other.batch([put('b')])).rejects.toEqual(failureOf('ENOSPC'))
  expect([await other.get('a'), await other.get('b'), existsSync(reserve)]).toEqual([
    one,
    undefined,
    false,
  ])
  expect(asked).toEqual(['batch b true', 'get a', 'get b'])
  await other.batch([del('a')])
  expect([await other.get('a'), existsSync(reserve)]).toEqual([undefined, false])
  await other.batch([put('c')])
  await expect.poll(() => existsSync(reserve)).toBe(true)
  await other.close()
})

it('a disk that is full when it is opened: it opens with the room that was kept', async () => {
  const place = newPlace()
  const first = await levelStore(place)
  await first.batch([put('a')])
  await first.close()
  failures.set('open', { code: 'ENOSPC', times: 1 })
  const second = await levelStore(place)
  expect([await second.get('a'), existsSync(join(place, 'reserve'))]).toEqual([one, false])
  await second.close()
})

it('a disk that was full: more was written than is free now, and LevelDB opens anew all the same, as its logs are short', async () => {
  disk = { size: 8 * megabyte, free: 8 * megabyte }
  const other = await levelStore(newPlace())
  for (let n = 0; n < 60; n++) await other.batch([put(`k${n}`, new Uint8Array(50_000))])
  failures.set('batch', { code: 'ENOSPC', times: 1 })
  await expect(other.batch([put('b')])).rejects.toEqual(failureOf('ENOSPC'))
  disk = { size: 8 * megabyte, free: 2 * megabyte }
  await other.batch([del('k0')])
  expect(await other.get('k0')).toBe(undefined)
  await other.close()
})

it('a full disk of which something was deleted is compacted at most once a second, also where the clock is set back', async () => {
  disk = { size: 8 * megabyte, free: 8 * megabyte }
  const other = await levelStore(newPlace())
  onTestFinished(() => other.close())
  await other.batch([put('a'), put('b'), put('c')])
  const compacted = (): number => asked.filter((call) => call === 'compact').length
  const free = async (key: string): Promise<void> => {
    disk = { size: 8 * megabyte, free: 0 }
    await other.batch([del(key)])
    await expect(other.batch([put('large', new Uint8Array(1_000_000))])).rejects.toMatchObject({
      code: 'ERR_STORE',
    })
  }
  await free('a')
  expect(compacted()).toBe(1)
  await free('b')
  expect(compacted()).toBe(1)
  const now = Date.now()
  const spies = [
    vi.spyOn(Date, 'now').mockImplementation(() => now - 3_600_000),
    vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1001),
  ]
  onTestFinished(() => spies.forEach((spy) => void spy.mockRestore()))
  await free('c')
  expect(compacted()).toBe(2)
})

it('without classic-level: says what to install, and makes no folder', async () => {
  vi.resetModules()
  vi.doMock('classic-level', () => {
    throw new Error('Cannot find package')
  })
  const { levelStore: withoutPeer } = await import('../../../src/store/level.js')
  const place = newPlace()
  const needed = failureWith(
    'levelStore needs the package classic-level: npm install classic-level',
  )
  await expect(withoutPeer(place)).rejects.toEqual(needed)
  expect(existsSync(place)).toBe(false)
})
