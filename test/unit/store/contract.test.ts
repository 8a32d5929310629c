/** The contract of stores: kept by those of the package, and broken, rule by rule, by stores that were made for it; and batches of one turn, which share a write. Failures and crashes at every step are in `file.test.ts` and in `test/world/durable`. */

import { describe, expect, it } from 'vitest'
import { BackedStore } from '../../../src/store/base/backed-store.js'
import { fileStore } from '../../../src/store/file.js'
import { memoryStore, type Store } from '../../../src/store/index.js'
import { levelStore } from '../../../src/store/level.js'
import { storeContract } from '../../../src/testing/index.js'
import { breakers } from './breakers.js'
import { newPlace, put } from './places.js'
import { LogBackend, recovered, SimulatedDisk, simulatedStore } from './simulated-disk.js'

/** A store on the disk, and the way to open it again. */
function onDisk(store: typeof levelStore | typeof fileStore, durability: 'sync' | 'os') {
  let place = ''
  const reopen = (): Promise<Store> => store(place, { durability })
  const open = (): Promise<Store> => {
    place = newPlace()
    return reopen()
  }
  return [open, { reopen }] as const
}

function simulated() {
  let disk = new SimulatedDisk()
  const reopen = async (): Promise<Store> => new BackedStore(new LogBackend(disk, true))
  const open = (): Promise<Store> => {
    disk = new SimulatedDisk()
    return reopen()
  }
  // Its log is read anew with each write.
  return [open, { reopen, entries: 1000 }] as const
}

const stores = {
  'memoryStore()': [async () => memoryStore(), {}],
  'levelStore(), sync': onDisk(levelStore, 'sync'),
  'levelStore(), os': onDisk(levelStore, 'os'),
  'fileStore(), sync': onDisk(fileStore, 'sync'),
  'fileStore(), os': onDisk(fileStore, 'os'),
  'the simulated store': simulated(),
} as const

describe.each(Object.entries(stores))('%s keeps the contract', (_name, [open, options]) => {
  for (const { name, run } of storeContract(open, options)) it(name, { timeout: 60_000 }, run)
})

describe('the contract', () => {
  const names = storeContract(async () => memoryStore(), { reopen: async () => memoryStore() }).map(
    ({ name }) => name,
  )

  it('has a store that breaks it for each of its cases', () => {
    expect(new Set(names).size).toBe(names.length)
    expect(Object.keys(breakers).sort()).toEqual([...names].sort())
  })

  it.each(Object.entries(breakers))(
    'is seen to be broken: %s',
    { timeout: 60_000 },
    async (name, broken) => {
      for (const [what, breaks] of Object.entries(broken)) {
        const open = async (): Promise<Store> => breaks(memoryStore())
        const [found] = storeContract(open, { reopen: open, entries: 2000 }).filter(
          (each) => each.name === name,
        )
        await expect(found?.run(), what).rejects.toThrow(/./)
      }
    },
  )
})

describe('batches of one turn', () => {
  it.each([
    ['sync', 2],
    ['os', 1],
  ] as const)('share a write (%s)', async (durability, steps) => {
    const disk = new SimulatedDisk()
    const store = simulatedStore(disk, durability)
    await Promise.all(['a', 'b', 'c', 'd'].map((key) => store.batch([put(key)])))
    expect(disk.steps).toBe(steps)
  })

  it('one that is too large for the disk fails alone', async () => {
    const disk = new SimulatedDisk()
    disk.fault = (_step, length) => (length > 3000 ? { code: 'ENOSPC', bytes: 2000 } : undefined)
    const store = simulatedStore(disk)
    const large = [put('large', new Uint8Array(3000)), put('with it')]
    const outcomes = await Promise.allSettled(
      [[put('a')], large, [put('b')], [put('c')]].map((each) => store.batch(each)),
    )
    const reason = { code: 'ERR_STORE', cause: { code: 'ENOSPC' } }
    expect(outcomes).toMatchObject([{}, { reason }, {}, {}])
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1)
    expect([...recovered(disk.afterCrash(0).written).entries.keys()]).toEqual(['a', 'b', 'c'])
  })
})

it('a backend that cannot close: close() says so, once more too', async () => {
  const nothing = {
    get: async () => undefined,
    write: async () => undefined,
    page: async () => [],
  }
  const store = new BackedStore({
    ...nothing,
    close: () => Promise.reject(new Error('EIO: close')),
  })
  const message = 'store: Error: EIO: close'
  for (let time = 0; time < 2; time++)
    await expect(store.close()).rejects.toMatchObject({ code: 'ERR_STORE', message })
})
