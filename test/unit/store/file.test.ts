/**
 * The log of `fileStore`: cut and damaged at every byte, and on a file system that fails or dies at each of its steps, or is full.
 *
 * What it has in common with other stores in folders, and real processes, are in `level.test.ts`.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { crc32c } from '../../../src/store/base/checksum.js'
import { fileStore } from '../../../src/store/file.js'
import { lockFolder } from '../../../src/store/file-lock.js'
import type { StoreOperation } from '../../../src/store/index.js'
import * as places from './places.js'

const { batchOf, bytesOf, del, failureOf, failureWith, folderWith, newPlace, numbersFrom, put } =
  places
const { stateAfter, stateOf } = places

type Step = {
  readonly name: string
  readonly path: string
  readonly length: number
  readonly at?: number
}
type Fault = { readonly code: string; readonly part?: number }

/** Each write, sync, rename and truncation is a step. */
const steps: Step[] = []
/** What goes wrong at a step: it fails, with a part of its bytes written. After 'crash' nothing is done any more. */
let faultAt: (step: Step, number: number) => Fault | undefined = () => undefined
let dead = false
/** Bytes that are free on the disk. */
let free: (() => number) | undefined
/** What a folder is seen to hold the next time: what it held a while ago. */
let seenBefore: string[] | undefined

async function take<T>(step: Step, work: (length: number) => Promise<T>): Promise<T> {
  steps.push(step)
  const fault = dead ? { code: 'crash' } : faultAt(step, steps.length)
  if (fault === undefined) return work(step.length)
  if (!dead && fault.part !== undefined) await work(Math.floor(step.length * fault.part))
  dead ||= fault.code === 'crash'
  throw Object.assign(new Error(`${fault.code}: ${step.name}`), { code: fault.code })
}

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>()
  const open = async (path: string, ...rest: [string, number]) => {
    const file = await real.open(path, ...rest)
    const { write, truncate } = file
    const step = (name: string, length = 0): Step => ({ name, path, length })
    return Object.assign(file, {
      write: (bytes: Buffer, from: number, length: number, at: number) =>
        take(
          { ...step('write', length), at },
          (count): Promise<unknown> => Reflect.apply(write, file, [bytes, from, count, at]),
        ),
      // The disk loses no power here.
      sync: () => take(step('sync'), async () => undefined),
      datasync: () => take(step('datasync'), async () => undefined),
      truncate: (length: number) => take(step('truncate'), () => truncate.call(file, length)),
    })
  }
  const appendFile = (path: string, bytes: Uint8Array, options: object) =>
    take({ name: 'append', path, length: bytes.length }, (count) =>
      real.appendFile(path, bytes.subarray(0, count), options),
    )
  const rename = (path: string, to: string) =>
    take({ name: 'rename', path, length: 0 }, () => real.rename(path, to))
  const statfs = async (path: string) =>
    free === undefined ? real.statfs(path) : { bavail: free(), bsize: 1 }
  const readdir = async (path: string) => {
    const names = seenBefore ?? (await real.readdir(path))
    seenBefore = undefined
    return names
  }
  return { ...real, open, appendFile, rename, statfs, readdir }
})

afterEach(() => {
  vi.restoreAllMocks()
  faultAt = () => undefined
  dead = false
  free = undefined
  steps.length = 0
})

const renames = (): number => steps.filter(({ name }) => name === 'rename').length
const outcome = [(): boolean => true, (): boolean => false] as const
const logOf = (place: string): string => join(place, 'mqwire.log')

async function openedWith(log: Uint8Array, options = {}): Promise<string> {
  const place = folderWith('mqwire.log', log)
  const states: string[] = []
  for (let time = 0; time < 2; time++) {
    const store = await fileStore(place, options)
    states.push(await stateOf(store))
    await store.close()
  }
  // Finding it twice gives the same.
  expect(states[1]).toBe(states[0])
  return states[0] as string
}

const keyOf = (entry: string): string | undefined => entry.split('=')[0]

/** A log of five batches, and where each of them ends. */
async function five(
  durability: 'sync' | 'os',
): Promise<{ open: Buffer; closed: Buffer; ends: number[] }> {
  const place = newPlace()
  const store = await fileStore(place, { durability })
  const ends: number[] = []
  for (let number = 1; number <= 5; number++) {
    await store.batch(batchOf(number))
    ends.push(statSync(logOf(place)).size)
  }
  const open = readFileSync(logOf(place))
  await store.close()
  return { open, closed: readFileSync(logOf(place)), ends }
}

describe('the log', () => {
  it('cut at every byte: gives the state after some batch, all those before the cut', async () => {
    for (const durability of ['sync', 'os'] as const) {
      const { open, ends } = await five(durability)
      for (let length = 24; length <= open.length; length++) {
        const count = ends.filter((end) => end <= length).length
        expect(await openedWith(open.subarray(0, length)), `cut at ${length}`).toBe(
          stateAfter(count),
        )
      }
    }
  })

  it('with a bit flipped at every byte: nothing but one value is another, or it is refused; repaired, it has what was written at some time', async () => {
    const { closed } = await five('sync')
    const counts = { same: 0, value: 0, refused: 0 }
    for (let at = 0; at < closed.length; at++) {
      const damaged = Buffer.from(closed)
      damaged[at] = (damaged[at] as number) ^ (1 << (at % 8))
      const state = await openedWith(damaged).catch((error) => error)
      if (typeof state === 'string') {
        const [found, whole] = [state.split(' '), stateAfter(5).split(' ')]
        expect(found.map(keyOf)).toEqual(whole.map(keyOf))
        const others = found.filter((each, index) => each !== whole[index]).length
        expect(others).toBeLessThanOrEqual(1)
        counts[others === 0 ? 'same' : 'value'] += 1
      } else {
        expect(state).toMatchObject({
          code: 'ERR_STORE',
          message: expect.stringMatching(/damaged at byte \d+; the option repair/),
        })
        counts.refused += 1
        for (const each of (await openedWith(damaged, { repair: true })).split(' ')) {
          const [key = '', value = ''] = each.split('=')
          expect(
            key.startsWith('q/') ? value.length === Number(key.slice(2)) : Number(value) <= 5,
            each,
          ).toBe(true)
        }
      }
    }
    expect(counts.value).toBeGreaterThan(5)
    expect(counts.refused).toBeGreaterThan(200)
  })

  it('inside a value is no log: neither of this store nor, in its very place, of another', async () => {
    const filled = async (
      name: string,
      count: number,
      copy?: (from: number, log: Buffer) => Uint8Array,
    ): Promise<Buffer> => {
      const place = newPlace()
      const store = await fileStore(place)
      for (let number = 0; number < count; number++) {
        await store.batch([put(name, 'x'.repeat(20))])
        if (copy !== undefined) await store.batch([del(name)])
      }
      const before = readFileSync(logOf(place))
      if (copy !== undefined)
        for (const each of [put('copy', copy(before.length, before)), put('last')])
          await store.batch([each])
      await store.close()
      const log = readFileSync(logOf(place))
      if (copy !== undefined) log[before.length + 8] = 1
      return log
    }
    const ghost = await filled('ghost', 20)
    const valueAt = 32 + 2 + 4 + 'copy'.length
    const deletion = 32 + 2 + 'gone'.length
    expect(
      await openedWith(await filled('gone', 2, (_, log) => log.subarray(0, -deletion)), {
        repair: true,
      }),
    ).toBe('last=1')
    expect(
      await openedWith(await filled('gone', 2, (from) => ghost.subarray(from + valueAt)), {
        repair: true,
      }),
    ).toBe('last=1')
  })

  it('a hole in what was never synced is its torn end; in what was, it is damage', async () => {
    const { open, closed, ends } = await five('os')
    for (const log of [open, closed]) log.fill(0, ends[1], ends[2])
    expect(await openedWith(open)).toBe(stateAfter(2))
    // What stood behind the hole stays away when the hole is filled.
    const place = folderWith('mqwire.log', open)
    const store = await fileStore(place)
    expect(steps.at(-1)?.name).toBe('datasync')
    await store.batch(batchOf(3))
    expect(await openedWith(readFileSync(logOf(place)))).toBe(stateAfter(3))
    await store.close()
    await expect(openedWith(closed)).rejects.toEqual(failureWith(`at byte ${ends[1]};`))
  })

  it('that is none, or of a later version, and a folder of LevelDB are refused, and left as they are', async () => {
    await expect(openedWith(bytesOf('something else'))).rejects.toEqual(
      failureWith('store: the log does not begin as one'),
    )
    const later = Buffer.concat([Buffer.from('mqwire\u0002\n'), Buffer.alloc(12)])
    later.writeUInt32BE(crc32c(later.subarray(0, 16)), 16)
    await expect(openedWith(Buffer.concat([later, later]))).rejects.toEqual(
      failureWith('by a later version'),
    )
    const place = folderWith('CURRENT')
    await expect(fileStore(place)).rejects.toEqual(failureWith('holds a store of levelStore()'))
    expect(readdirSync(place)).toEqual(['CURRENT'])
  })
})

/** Batches that fill a log until it is compacted, in the middle. */
const program = Array.from({ length: 14 }, (_, at): StoreOperation[] => [
  put('left', String(at)),
  put('large', new Uint8Array(400_000).fill(97 + at)),
  put(`q/${at}`, String(at)),
  del(`q/${at - 2}`),
  put('right', String(at)),
])

/** The states that these batches lead to, each put behind the ones before. */
function stateOfBatches(numbers: readonly number[]): string {
  const entries = new Map<string, string>()
  for (const each of numbers.flatMap((number) => program[number] as StoreOperation[])) {
    if (each.type === 'put')
      entries.set(each.key, `${each.key}=${places.textOf(each.value.subarray(0, 20))}`)
    else entries.delete(each.key)
  }
  return [...entries.keys()]
    .sort()
    .map((key) => entries.get(key))
    .join(' ')
}

async function play(
  place: string,
  durability: 'sync' | 'os',
): Promise<{ fulfilled: number[]; called: number }> {
  const fulfilled: number[] = []
  let called = 0
  const store = await fileStore(place, { durability }).catch(() => undefined)
  for (const [number, batch] of store === undefined ? [] : program.entries()) {
    called += 1
    await store?.batch(batch).then(
      () => fulfilled.push(number),
      (error) => expect(error.code).toBe('ERR_STORE'),
    )
    if (dead) break
    expect(await store?.get('left')).toEqual(
      fulfilled.length === 0 ? undefined : bytesOf(String(fulfilled.at(-1))),
    )
  }
  await store?.close().catch(() => undefined)
  return { fulfilled, called }
}

const found = async (place: string): Promise<string> => {
  dead = false
  faultAt = () => undefined
  const store = await fileStore(place)
  const state = await stateOf(store)
  await store.close()
  return state
}

describe.each(['sync', 'os'] as const)('a file system, %s', (durability) => {
  it('that dies at each step: the next process finds all that was said to be safe, and nothing by half', async () => {
    await play(newPlace(), durability)
    expect(renames()).toBe(2)
    const total = steps.length
    for (let crashAt = 1; crashAt <= total; crashAt++)
      for (const part of [0, 0.6, 1]) {
        steps.length = 0
        faultAt = (_, number) => (number === crashAt ? { code: 'crash', part } : undefined)
        const place = newPlace()
        const { fulfilled, called } = await play(place, durability)
        expect(fulfilled).toEqual(numbersFrom(0, fulfilled.length))
        const possible = [fulfilled.length, Math.max(called, fulfilled.length)].map((count) =>
          stateOfBatches(numbersFrom(0, count)),
        )
        expect(possible, `${crashAt} ${part}`).toContain(await found(place))
      }
  })

  it('that fails at each step, once or twice: one batch rejects at most, is not there, and the others are', async () => {
    await play(newPlace(), durability)
    const total = steps.length
    for (const [times, fault] of [
      [1, { code: 'EIO' }],
      [2, { code: 'EIO', part: 0.6 }],
      [1, { code: 'ENOSPC', part: 0.6 }],
    ] as const)
      for (let failAt = 1; failAt <= total; failAt++) {
        steps.length = 0
        faultAt = (_, number) => (number >= failAt && number < failAt + times ? fault : undefined)
        const place = newPlace()
        const { fulfilled, called } = await play(place, durability)
        expect(called - fulfilled.length).toBeLessThanOrEqual(times)
        expect(await found(place), `${fault.code} ${times} ${failAt}`).toBe(
          stateOfBatches(fulfilled),
        )
      }
  })
})

describe('a failure', () => {
  it('of a sync: the log is left for another one before anything else is written', async () => {
    const place = newPlace()
    const store = await fileStore(place)
    await store.batch(batchOf(1))
    steps.length = 0
    faultAt = (_, number) => (number === 2 ? { code: 'EIO' } : undefined)
    await expect(store.batch(batchOf(2))).rejects.toEqual(failureOf('EIO'))
    expect(await stateOf(store)).toBe(stateAfter(1))
    faultAt = () => undefined
    // What the disk made of it is looked at first.
    const log = readFileSync(logOf(place))
    writeFileSync(logOf(place), Buffer.from(log).fill(0, 80))
    await expect(store.batch(batchOf(2))).rejects.toMatchObject({
      code: 'ERR_STORE',
      message: expect.stringMatching(/damaged at byte \d+/),
    })
    writeFileSync(logOf(place), log)
    steps.length = 0
    await store.batch(batchOf(2))
    const what = steps.map(({ name, path }) => `${name} ${path.slice(place.length + 1)}`)
    expect(what.slice(0, 2)).toEqual(['write mqwire.new', 'write mqwire.new'])
    expect(what.slice(-5)).toEqual([
      'sync mqwire.new',
      'rename mqwire.new',
      'sync ',
      'write mqwire.new',
      'datasync mqwire.new',
    ])
    await store.close()
    expect(await found(place)).toBe(stateAfter(2))
  })

  it('of a truncation behind a batch that failed: nothing is written until it works', async () => {
    const store = await fileStore(newPlace())
    await store.batch(batchOf(1))
    let mends = false
    faultAt = ({ name }) =>
      name === 'truncate' && !mends
        ? { code: 'EIO' }
        : name === 'write'
          ? { code: 'ENXIO', part: 0.5 }
          : undefined
    await expect(store.batch(batchOf(2))).rejects.toEqual(failureOf('ENXIO'))
    faultAt = ({ name }) => (name === 'truncate' && !mends ? { code: 'EIO' } : undefined)
    await expect(store.batch(batchOf(2))).rejects.toEqual(failureOf('EIO'))
    expect(await stateOf(store)).toBe(stateAfter(1))
    mends = true
    await store.batch(batchOf(2))
    expect(await stateOf(store)).toBe(stateAfter(2))
    await store.close()
  })
})

/** A disk of so many bytes, of which this folder has all, in blocks of this size. */
function limit(place: string, capacity: number, block = 1): void {
  const used = (name: string): number => Math.ceil(statSync(join(place, name)).size / block) * block
  free = () => capacity - readdirSync(place).reduce((sum, name) => sum + used(name), 0)
  faultAt = ({ name, length }) => {
    const room = free?.() ?? 0
    const fails = (name === 'write' || name === 'append') && length > room
    return fails ? { code: 'ENOSPC', part: Math.max(0, room) / length } : undefined
  }
}

describe('a disk that is full', () => {
  it.each([200, 3000])(
    'takes nothing more, is read, and drains by single deletions and small records; values of %i bytes',
    async (size) => {
      const place = newPlace()
      mkdirSync(place, { mode: 0o700 })
      limit(place, 3_000_000, 4096)
      let store = await fileStore(place)
      const keys: string[] = []
      for (let refused = 0; refused < 3; ) {
        const added = numbersFrom(keys.length, 20).map((at) => `q/${String(at).padStart(9, '0')}`)
        await store.batch(added.map((key) => put(key, new Uint8Array(size).fill(120)))).then(
          () => keys.push(...added),
          (error) => {
            expect(error).toEqual(failureOf('ENOSPC'))
            refused++
          },
        )
      }
      expect(keys.length * size).toBeGreaterThan(700_000)
      // Nothing that was refused has taken the reserve. The rest is taken by others.
      expect(existsSync(join(place, 'mqwire.reserve'))).toBe(true)
      const rest = Math.max(0, free?.() ?? 0)
      limit(place, 3_000_000 - rest, 4096)
      await store.close()
      store = await fileStore(place)
      expect((await stateOf(store)).split(' ').map(keyOf)).toEqual(keys)
      for (const key of keys) {
        await store.batch([put(`c/m/${key}`, new Uint8Array(100))])
        await store.batch([put(`c/m/${key}`, new Uint8Array(60)), del(key)])
        await store.batch([del(`c/m/${key}`)])
      }
      expect(await stateOf(store)).toBe('')
      await store.batch([put('q/new')])
      await store.close()
      expect(await found(place)).toBe('q/new=1')
    },
  )
})

it('small records that fill a disk leave room for deleting each of them, also by the next process', async () => {
  const place = newPlace()
  mkdirSync(place, { mode: 0o700 })
  limit(place, 1_500_000)
  const store = await fileStore(place)
  const keys: string[] = []
  for (let number = 0; ; number++) {
    const key = `c/o/${number}`
    if (!(await store.batch([put(key, new Uint8Array(500))]).then(...outcome))) break
    keys.push(key)
  }
  expect(keys.length).toBeGreaterThan(1000)
  for (const key of keys.slice(0, 200)) await store.batch([del(key)])
  await store.close()
  const next = await fileStore(place)
  for (const key of keys.slice(200)) await next.batch([del(key)])
  expect(await stateOf(next)).toBe('')
  await next.batch([put('q/new')])
  await next.close()
})

describe('a limit for each file', () => {
  const most = 600_000
  const tooLong: typeof faultAt = ({ name, path, length, at }) => {
    if (name !== 'write' && name !== 'append') return undefined
    const room = Math.max(0, most - (at ?? (existsSync(path) ? statSync(path).size : 0)))
    return length > room ? { code: 'EFBIG', part: room / length } : undefined
  }
  const numbered = (number: number): string => `q/${String(number).padStart(9, '0')}`

  it.each([20, 200, 20_000])(
    'that is reached: everything can be deleted one by one, and then there is room; values of %i bytes',
    async (size) => {
      const place = newPlace()
      const store = await fileStore(place, { durability: 'os' })
      faultAt = tooLong
      const value = new Uint8Array(size).fill(120)
      const publish = (number: number): Promise<boolean> =>
        store.batch([put(numbered(number), value)]).then(...outcome)
      let last = 0
      for (let refused = 0; refused < 3; ) {
        if (await publish(last)) last++
        else refused++
      }
      await expect(store.batch([put('q/new', new Uint8Array(size))])).rejects.toEqual(
        failureOf('EFBIG'),
      )
      expect(last * size).toBeGreaterThan(most / 6)
      // One goes, and one comes, as room allows.
      let first = 0
      for (const from = last; first < from; first++) {
        await store.batch([put(`c/m/${first}`, new Uint8Array(60))]).then(...outcome)
        await store.batch([del(numbered(first)), del(`c/m/${first}`)])
        if (await publish(last)) last++
      }
      expect(last).toBeGreaterThan(first + 5)
      // Each time much is dead, but for the first few.
      expect(renames()).toBeLessThan(60)
      for (; first < last; first++) await store.batch([del(numbered(first))])
      expect(await stateOf(store)).toBe('')
      expect(await publish(last)).toBe(true)
      await store.close()
      expect((await found(place)).startsWith(`${numbered(last)}=xx`)).toBe(true)
    },
  )
})

it('a disk that was full and has room again: the log is not compacted for each 256 KiB', async () => {
  const store = await fileStore(newPlace())
  for (let number = 0; number < 5; number++)
    await store.batch([put(`q/${number}`, new Uint8Array(1_048_576))])
  faultAt = ({ name, length }) =>
    name === 'write' && length > 900_000 ? { code: 'ENOSPC' } : undefined
  await store.batch([put('q/0', new Uint8Array(1_048_576))]).then(...outcome)
  faultAt = () => undefined
  steps.length = 0
  for (let time = 0; time < 20; time++) await store.batch([put('q/0', new Uint8Array(100_000))])
  expect(renames()).toBe(0)
  await store.close()
})

it('a batch that a full disk refuses does not take the reserve', async () => {
  const place = newPlace()
  const store = await fileStore(place)
  await store.batch([put('a')])
  faultAt = ({ name }) => (name === 'write' ? { code: 'ENOSPC' } : undefined)
  await expect(store.batch([put('b')])).rejects.toEqual(failureOf('ENOSPC'))
  expect(existsSync(join(place, 'mqwire.reserve'))).toBe(true)
  await store.close()
})

it('a log that has to be replaced on a full disk is tried again once there is room, not with each batch', async () => {
  const store = await fileStore(newPlace())
  await store.batch([put('a'), put('b')])
  faultAt = ({ name }) => (name === 'datasync' ? { code: 'EIO' } : undefined)
  await expect(store.batch([put('c')])).rejects.toEqual(failureOf('EIO'))
  free = () => 0
  faultAt = ({ name }) => (name === 'write' ? { code: 'ENOSPC' } : undefined)
  steps.length = 0
  for (let time = 0; time < 3; time++)
    await expect(store.batch([del('a')])).rejects.toEqual(failureOf('ENOSPC'))
  // The first attempt, after which the disk is asked how much is free.
  expect(steps.filter(({ name }) => name === 'write')).toHaveLength(1)
  free = undefined
  faultAt = () => undefined
  await store.batch([del('a')])
  expect(await stateOf(store)).toBe('b=1')
  await store.close()
})

describe('the lock', () => {
  it('that its owner left behind goes to one of those who find it at once', async () => {
    for (let round = 0; round < 20; round++) {
      const place = folderWith('mqwire.lock-7')
      for (let time = 0; time < 2; time++) {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 8 }, () => lockFolder(place)),
        )
        const [winner, ...more] = outcomes.flatMap((each) =>
          each.status === 'fulfilled' ? [each.value] : [],
        )
        expect(more).toEqual([])
        for (const each of outcomes)
          if (each.status === 'rejected') expect(each.reason.code).toBe('ELOCKED')
        expect(readdirSync(place)).toHaveLength(1)
        await winner?.()
      }
      expect(readdirSync(place)).toEqual(['mqwire.lock-11'])
    }
  })

  it('is not taken by one that has looked a while ago, which leaves no file and no open socket', async () => {
    const place = folderWith('mqwire.lock-8')
    const release = await lockFolder(place)
    seenBefore = ['mqwire.lock-3']
    const listen = vi.spyOn(Server.prototype, 'listen')
    await expect(lockFolder(place)).rejects.toMatchObject({ code: 'ELOCKED' })
    expect(readdirSync(place)).toEqual(['mqwire.lock-9'])
    expect(listen.mock.contexts.map((each) => (each as Server).listening)).toEqual([false])
    await release()
  })

  it('works in a folder whose name is too long for a socket', async () => {
    const place = join(newPlace(), 'x'.repeat(120))
    const store = await fileStore(place)
    await expect(fileStore(place)).rejects.toMatchObject({ code: 'ERR_STORE_LOCKED' })
    await store.close()
    await (await fileStore(place)).close()
  })
})

it('an opening that a full disk stops, and the reserve lets through, does not put off the next compaction', async () => {
  const place = newPlace()
  const value = new Uint8Array(500_000)
  const keys = numbersFrom(0, 6).map((number) => `k${number}`)
  const before = await fileStore(place, { durability: 'os' })
  for (const key of keys) await before.batch([put(key, value)])
  await before.close()
  faultAt = (_step, number) => (number === 1 ? { code: 'ENOSPC' } : undefined)
  steps.length = 0
  const store = await fileStore(place, { durability: 'os' })
  expect(steps[0]?.name).toBe('datasync')
  for (const key of [...keys, ...keys]) await store.batch([put(key, value)])
  await store.close()
  expect(statSync(logOf(place)).size).toBeLessThan(7_000_000)
})

it.each(['moved', 'deleted'])(
  'a folder that was %s leaves the store that has its name now alone: its log, and its lock',
  async (what) => {
    const place = newPlace()
    const before = await fileStore(place)
    await before.batch([put('a', new Uint8Array(1_000_000))])
    if (what === 'moved') renameSync(place, `${place}-before`)
    else rmSync(place, { recursive: true })
    const now = await fileStore(place)
    await now.batch([put('b')])
    for (let time = 0; time < 6; time++) await before.batch([put('a', new Uint8Array(1_000_000))])
    await before.close()
    await now.batch([put('c')])
    await expect(fileStore(place)).rejects.toMatchObject({ code: 'ERR_STORE_LOCKED' })
    await now.close()
    expect(await found(place)).toBe('b=1 c=1')
    if (what === 'moved') expect(await found(`${place}-before`)).toContain('a=')
  },
)

it('what is deleted goes from the log in time, while readers are at it', async () => {
  const place = newPlace()
  const store = await fileStore(place, { durability: 'os' })
  const value = new Uint8Array(50_000).fill(1)
  await store.batch([put('kept', value)])
  const read = async (): Promise<void> => {
    for (let time = 0; time < 300; time++) expect((await store.get('kept'))?.length).toBe(50_000)
  }
  const reading = Promise.all([read(), read()])
  for (let number = 0; number < 400; number++)
    await store.batch([put(`q/${number}`, value), del(`q/${number - 1}`)])
  await reading
  await store.close()
  expect(statSync(logOf(place)).size).toBeLessThan(5_000_000)
  expect(existsSync(join(place, 'mqwire.new'))).toBe(false)
  const copy = folderWith('mqwire.log', readFileSync(logOf(place)))
  expect((await found(copy)).split(' ').map(keyOf)).toEqual(['kept', 'q/399'])
})
