/** Records: sealed, opened, damaged in every way, and put aside. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { crc32c } from '../../../src/store/base/checksum.js'
import { setAside } from '../../../src/store/base/record.js'
import {
  isOfLaterVersion,
  memoryStore,
  openRecord,
  quarantine,
  type Store,
  sealRecord,
} from '../../../src/store/index.js'
import { bytesOf, del, numbersFrom, put, textOf } from './places.js'

describe('the checksum', () => {
  it.each([
    ['', 0],
    ['123456789', 0xe3069283],
    ['a', 0xc1d04330],
    ['The quick brown fox jumps over the lazy dog', 0x22620404],
  ])('of %j is that of CRC-32C', (given, expected) => {
    expect(crc32c(bytesOf(given))).toBe(expected)
  })

  // RFC 3720, B.4.
  it('is that of the published vectors', () => {
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa)
    expect(crc32c(new Uint8Array(32).fill(255))).toBe(0x62a8ab43)
    expect(crc32c(Uint8Array.from({ length: 32 }, (_, at) => at))).toBe(0x46dd794e)
  })

  it('goes on where another one stopped', () => {
    const all = Uint8Array.from({ length: 1000 }, (_, at) => at * 31)
    for (const cut of [0, 1, 7, 8, 500, 1000])
      expect(crc32c(all.subarray(cut), crc32c(all.subarray(0, cut)))).toBe(crc32c(all))
  })
})

describe('a record', () => {
  it('opens as it was sealed, wherever it lies in memory', () => {
    for (const length of [0, 1, 2, 100, 70_000]) {
      const body = Uint8Array.from({ length }, (_, at) => at * 13)
      const record = sealRecord(body)
      expect(record.length).toBe(length + 5)
      const shifted = new Uint8Array(length + 12)
      shifted.set(record, 7)
      expect(openRecord(record)).toEqual(body)
      expect(openRecord(shifted.subarray(7))).toEqual(body)
      expect(openRecord(Buffer.from(record))).toEqual(Buffer.from(body))
    }
  })

  it('is a copy: the body may change afterwards', () => {
    const body = bytesOf('abc')
    const record = sealRecord(body)
    body.fill(0)
    expect(textOf(openRecord(record))).toBe('abc')
  })

  it('with any bit flipped, cut anywhere, or with bytes behind it, is damaged', () => {
    for (const body of ['', 'a', 'twenty bytes of body', 'x'.repeat(300)].map(bytesOf)) {
      const record = sealRecord(body)
      for (let bit = 0; bit < record.length * 8; bit++) {
        const flipped = record.slice()
        flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7))
        expect(openRecord(flipped)).toBeUndefined()
      }
      for (let length = 0; length < record.length; length++)
        expect(openRecord(record.subarray(0, length))).toBeUndefined()
      expect(openRecord(Uint8Array.of(...record, 0))).toBeUndefined()
    }
  })

  it('of the wrong type is damaged, and throws nothing', () => {
    for (const wrong of [
      undefined,
      null,
      'text',
      7,
      {},
      [1, 0, 0, 0, 0],
      new ArrayBuffer(9),
      new Uint8Array(5),
      new Uint8Array(500),
    ])
      expect(openRecord(wrong as Uint8Array)).toBeUndefined()
  })
})

describe('records of version 1, as they are on disks', () => {
  type Golden = Record<string, { body: string; record: string }>
  const golden: Golden = JSON.parse(
    readFileSync(new URL('golden/records-1.json', import.meta.url), 'utf8'),
  )

  it.each(Object.entries(golden))('%s: is written and read as ever', (_name, { body, record }) => {
    expect(Buffer.from(sealRecord(Buffer.from(body, 'hex'))).toString('hex')).toBe(record)
    expect(Buffer.from(openRecord(Buffer.from(record, 'hex')) ?? 'damaged').toString('hex')).toBe(
      body,
    )
  })

  it('one of a version to come is not opened, and told from a damaged one', () => {
    for (let version = 0; version < 256; version++) {
      if (version === 1) continue
      const record = Uint8Array.of(version, 0, 0, 0, 0, 1, 2, 3)
      new DataView(record.buffer).setUint32(
        1,
        crc32c(record.subarray(5), crc32c(record.subarray(0, 1))),
      )
      expect(openRecord(record)).toBeUndefined()
      expect(isOfLaterVersion(record)).toBe(version > 1)
      record[6] = 9
      expect(isOfLaterVersion(record)).toBe(false)
    }
    expect(isOfLaterVersion(sealRecord(bytesOf('a')))).toBe(false)
    for (const wrong of [undefined, 'text', new Uint8Array(4)])
      expect(isOfLaterVersion(wrong as Uint8Array)).toBe(false)
  })
})

async function keysOf(store: Store, prefix = ''): Promise<string[]> {
  const keys: string[] = []
  for await (const [key] of store.entries({ gte: prefix, lt: `${prefix}~` })) keys.push(key)
  return keys
}

/** A store that can write nothing as long as the disk is full. */
function fillable() {
  const kept = memoryStore()
  const disk = { full: true }
  const store: Store = {
    get: (key) => kept.get(key),
    batch: (operations) =>
      disk.full ? Promise.reject(new Error('ENOSPC')) : kept.batch(operations),
    entries: (range) => kept.entries(range),
    close: () => kept.close(),
  }
  return { store, kept, disk }
}

describe('quarantine', () => {
  it('moves the record in one batch, with its key and the reason, byte for byte', async () => {
    const store = memoryStore()
    const damaged = Uint8Array.of(1, 0, 10, 255)
    await store.batch([put('q/1', damaged)])
    const key = await quarantine(store, 'q/1', damaged, 'bad checksum\n"here"')
    expect(await keysOf(store)).toEqual([key])
    expect(key.startsWith('x/')).toBe(true)
    const value = (await store.get(key)) as Uint8Array
    const end = value.indexOf(10)
    expect(JSON.parse(textOf(value.subarray(0, end)))).toEqual({
      key: 'q/1',
      why: 'bad checksum\n"here"',
    })
    expect(value.subarray(end + 1)).toEqual(damaged)
  })

  it('keeps the order of the calls, and one place for each, however many come at once', async () => {
    const store = memoryStore()
    await store.batch(['a', 'b', 'c', 'd'].map((key) => put(key, key)))
    const keys = await Promise.all(
      ['c', 'a', 'd', 'b'].map((key) => quarantine(store, key, bytesOf(key), 'damaged')),
    )
    expect(keys).toEqual([...keys].sort())
    expect(await keysOf(store)).toEqual(keys)
  })

  it('keeps the last 1,000, also when some were taken out by hand', async () => {
    const store = memoryStore()
    const add = async (from: number, to: number): Promise<void> => {
      for (let number = from; number < to; number++)
        await quarantine(store, `q/${number}`, bytesOf(String(number)), 'damaged')
    }
    const numbers = async (): Promise<number[]> => {
      const found: number[] = []
      for await (const [, value] of store.entries({ gt: 'x/' }))
        found.push(Number(textOf(value.subarray(value.indexOf(10) + 1))))
      return found
    }
    await add(0, 1000)
    expect(await numbers()).toHaveLength(1000)
    await add(1000, 1500)
    expect(await numbers()).toEqual(numbersFrom(500, 1000))
    await store.batch((await keysOf(store, 'x/')).slice(900).map(del))
    await add(1500, 1700)
    expect(await numbers()).toEqual([...numbersFrom(600, 800), ...numbersFrom(1500, 200)])
  })

  it('rejects where the store cannot write, leaves the record, and the next one is tried', async () => {
    const { store, kept, disk } = fillable()
    await kept.batch([put('q/1', 'a')])
    await expect(quarantine(store, 'q/1', bytesOf('a'), 'damaged')).rejects.toThrow('ENOSPC')
    expect(await keysOf(store)).toEqual(['q/1'])
    disk.full = false
    await quarantine(store, 'q/1', bytesOf('a'), 'damaged')
    expect(await keysOf(store)).toEqual(['x/000000000000001'])
  })

  it('reports a record that cannot be moved once, as long as no more than 1,000 stay, and says whether it was moved', async () => {
    const { store, disk } = fillable()
    const reported: string[] = []
    const move = (number: number): Promise<boolean> =>
      setAside(store, `q/${number}`, bytesOf('a'), (key) => void reported.push(key))
    const moved = new Set<boolean>()
    for (let round = 0; round < 2; round++)
      for (let number = 1; number <= 1001; number++) moved.add(await move(number))
    expect([...moved]).toEqual([false])
    expect(reported).toEqual([...numbersFrom(1, 1001), 1001].map((number) => `q/${number}`))
    disk.full = false
    expect(await move(1)).toBe(true)
    expect(reported).toHaveLength(1002)
  })
})
