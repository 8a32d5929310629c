/**
 * Failures at every step of a store on a simulated disk: what is found afterwards is whole batches. Crashes at every step are in `file.test.ts` and in
 * `test/world/durable`.
 */
import { describe, expect, it } from 'vitest'
import { BackedStore } from '../../../src/store/base/backed-store.js'
import type { Store, StoreOperation } from '../../../src/store/index.js'
import { del, numbersFrom, put } from './places.js'
import { type Fault, SimulatedDisk, simulatedStore } from './simulated-disk.js'

/** The nth batch of the program: two keys that only change together, one that comes and one that goes. */
function batchOf(number: number): StoreOperation[] {
  const value = Uint8Array.of(number)
  const changes = ['left', `q/${number}`, 'right'].map((key) => put(key, value))
  return number > 2 ? [...changes, del(`q/${number - 2}`)] : changes
}

/** How many batches are called in each turn: alone, and several that may share a write. */
const turns = [1, 3, 1, 1, 4, 2, 1]
const total = turns.reduce((sum, count) => sum + count, 0)

type State = string

const stateOf = (entries: Iterable<readonly [string, Uint8Array]>): State =>
  [...entries]
    .map(([key, value]) => `${key}=${value.join()}`)
    .sort()
    .join(' ')

/** The states after those of the batches that took effect, in order. */
function stateAfter(numbers: readonly number[]): State {
  const entries = new Map<string, Uint8Array>()
  for (const number of numbers)
    for (const each of batchOf(number)) {
      if (each.type === 'put') entries.set(each.key, each.value)
      else entries.delete(each.key)
    }
  return stateOf(entries)
}

const numbersTo = (count: number): number[] => numbersFrom(1, count)

async function play(store: Store) {
  const [fulfilled, rejected]: [number[], number[]] = [[], []]
  let called = 0
  for (const count of turns) {
    const calls = Array.from({ length: count }, () => {
      called += 1
      const number = called
      return store.batch(batchOf(number)).then(
        () => fulfilled.push(number),
        (error) => {
          expect(error).toMatchObject({
            code: 'ERR_STORE',
            cause: { code: expect.stringMatching(/^E/) },
          })
          rejected.push(number)
        },
      )
    })
    await Promise.all(calls)
  }
  return { called, fulfilled, rejected }
}

async function found(disk: SimulatedDisk): Promise<State> {
  const entries: [string, Uint8Array][] = []
  for await (const [key, value] of simulatedStore(disk).entries()) entries.push([key, value])
  return stateOf(entries)
}

async function stepsOf(durability: 'sync' | 'os'): Promise<number> {
  const disk = new SimulatedDisk()
  const run = await play(simulatedStore(disk, durability))
  expect(run.fulfilled).toEqual(numbersTo(total))
  return disk.steps
}

it('several batches of one turn share a write, and its sync', async () => {
  expect(await stepsOf('sync')).toBe(2 * turns.length)
  expect(await stepsOf('os')).toBe(turns.length)
})

describe('a write or a sync that fails', () => {
  const codes: readonly Fault['code'][] = ['ENOSPC', 'EIO']

  it.each(codes)(
    '%s at every step, with as many bytes written as there may be: rejects, nothing is stored by half, and the rest goes on',
    async (code) => {
      let rejections = 0
      const steps = await stepsOf('sync')
      for (let failAt = 1; failAt <= steps; failAt++) {
        for (const part of [0, 0.3, 0.999, 1]) {
          const disk = new SimulatedDisk()
          disk.fault = (step, length) =>
            step === failAt ? { code, bytes: Math.floor(length * part) } : undefined
          const run = await play(simulatedStore(disk))
          expect(run.called).toBe(total)
          // One that shared its write is done again by itself.
          expect(run.rejected.length).toBeLessThanOrEqual(1)
          if (run.rejected.length === 1) rejections += 1
          expect([...run.fulfilled, ...run.rejected].sort((one, other) => one - other)).toEqual(
            numbersTo(total),
          )
          // What was rejected may be there all the same, but never in part.
          expect([stateAfter(run.fulfilled), stateAfter(numbersTo(total))]).toContain(
            await found(disk.afterCrash(0)),
          )
        }
      }
      expect(rejections).toBeGreaterThan(10)
    },
  )

  it('a batch that is too large for the disk fails alone, whatever shares its turn', async () => {
    const disk = new SimulatedDisk()
    disk.fault = (_step, length) => (length > 3000 ? { code: 'ENOSPC', bytes: 2000 } : undefined)
    const store = simulatedStore(disk)
    const large: StoreOperation[] = [put('large', new Uint8Array(3000)), ...batchOf(9)]
    const outcomes = await Promise.allSettled(
      [batchOf(1), large, batchOf(2), batchOf(3)].map((each) => store.batch(each)),
    )
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
    expect(await found(disk.afterCrash(0))).toBe(stateAfter([1, 2, 3]))
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
})
