/** The contract of stores: kept by those of the package, and broken, rule by rule, by stores that were made for it. */
import { describe, expect, it } from 'vitest'
import { BackedStore } from '../../../src/store/base/backed-store.js'
import { fileStore } from '../../../src/store/file.js'
import { memoryStore, type Store } from '../../../src/store/index.js'
import { levelStore } from '../../../src/store/level.js'
import { storeContract } from '../../../src/testing/index.js'
import { breakers } from './breakers.js'
import { newPlace } from './places.js'
import { LogBackend, SimulatedDisk } from './simulated-disk.js'

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
