/**
 * The contract of stores as a list of cases for any test runner: for your own stores and those of
 * the package.
 *
 * Each `open()` must return an empty store. Every case closes what it opened. No test framework is
 * imported: a case that finds a broken rule rejects with a message that names it.
 */
import type { Store, StoreEntry, StoreOperation, StoreRange } from '../store/base/store.js'

/** A test of one rule. */
export interface StoreContractCase {
  /** The rule, for the title of a test. */
  readonly name: string
  /**
   * Resolves when the store follows the rule, otherwise rejects with an error that describes the
   * failure.
   */
  run(): Promise<void>
}

/** Capabilities of the store that the cases may use. */
export interface StoreContractOptions {
  /**
   * Reopens the store that the last `open()` opened and a case has closed. If absent, persistence
   * across `close()` is not tested.
   */
  readonly reopen?: (() => Promise<Store>) | undefined
  /**
   * Entries of the largest case, 1,000 or more. Default 65,535, the number of packet identifiers.
   */
  readonly entries?: number | undefined
}

/** The cases for a store. `open` must return an empty one each time. */
export function storeContract(
  open: () => Promise<Store>,
  options: StoreContractOptions = {},
): readonly StoreContractCase[] {
  const { reopen, entries = 65_535 } = options
  const named = [
    ...Object.entries(values),
    ...Object.entries(batches),
    ...Object.entries(ranges),
    ...Object.entries(endings),
  ]
  const many = Object.entries(large).map(([name, check]): [string, Check] => [
    name,
    (store) => check(store, entries),
  ])
  const cases = [...named, ...many].map(([name, check]) => ({
    name,
    run: async () => closing(await open(), check),
  }))
  if (reopen === undefined) return cases
  const name = 'what was stored is there after close() and opening again'
  return [
    ...cases,
    { name, run: async () => closing(await open(), (store) => checkReopened(store, reopen)) },
  ]
}

type Check = (store: Store) => Promise<void>

async function closing(store: Store, check: Check): Promise<void> {
  try {
    await check(store)
  } finally {
    await store.close()
  }
}

const put = (key: string, ...bytes: number[]): StoreOperation => ({
  type: 'put',
  key,
  value: Uint8Array.from(bytes),
})
const remove = (key: string): StoreOperation => ({ type: 'delete', key })

function assert(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

const textOf = (value: Uint8Array | undefined): string =>
  value === undefined ? 'nothing' : `[${value.subarray(0, 16).join()}]${value.length}`

async function assertValue(
  store: Store,
  key: string,
  expected: Uint8Array | readonly number[] | undefined,
): Promise<void> {
  const value = await store.get(key)
  const wanted = expected === undefined ? undefined : Uint8Array.from(expected)
  const isSame =
    value?.length === wanted?.length && (wanted ?? []).every((byte, at) => value?.[at] === byte)
  assert(
    isSame && (value === undefined || value instanceof Uint8Array),
    `${key} holds ${textOf(value)}, not ${textOf(wanted)}`,
  )
}

/** The same promise, which may reject before it is awaited. */
function awaitedLater(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined)
  return promise
}

async function all(store: Store, range?: StoreRange): Promise<StoreEntry[]> {
  const found: StoreEntry[] = []
  for await (const entry of store.entries(range)) found.push(entry)
  return found
}

async function assertKeys(
  store: Store,
  range: StoreRange | undefined,
  expected: string,
): Promise<void> {
  const keys = (await all(store, range)).map(([key]) => key).join(' ')
  assert(keys === expected, `entries(${JSON.stringify(range)}) gives "${keys}", not "${expected}"`)
}

async function assertFails(
  what: string,
  work: () => Promise<unknown>,
  message = '',
): Promise<void> {
  const fulfilled = Symbol('fulfilled')
  const outcome: unknown = await work().then(
    () => fulfilled,
    (error) => error,
  )
  assert(outcome !== fulfilled, `${what} fulfils`)
  const { code, message: said } = outcome as { code?: unknown; message?: unknown }
  assert(
    code === 'ERR_STORE' && String(said).includes(message),
    `${what} rejects with ${code}: ${said}`,
  )
}

const values: Readonly<Record<string, Check>> = {
  async 'get() of a key that is not there is undefined'(store) {
    await assertValue(store, 'a', undefined)
    await store.batch([put('ab', 1)])
    await assertValue(store, 'a', undefined)
  },
  async 'a value is what was put, empty ones and long ones too'(store) {
    const every = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const long = Uint8Array.from({ length: 300_000 }, (_, at) => at * 7)
    const of = (key: string, value: Uint8Array): StoreOperation => ({ type: 'put', key, value })
    await store.batch([
      put('empty'),
      of('every', every),
      of('long', long),
      of('part', every.subarray(10, 20)),
    ])
    await assertValue(store, 'empty', [])
    await assertValue(store, 'every', every)
    await assertValue(store, 'long', long)
    await assertValue(store, 'part', every.subarray(10, 20))
    assert(
      (await all(store)).map(([, { length }]) => length).join() === '0,256,300000,10',
      'entries() gives other values than get()',
    )
  },
  async 'a value is replaced, and deleted'(store) {
    await store.batch([put('a', 1), put('b', 2)])
    await store.batch([put('a', 3, 4)])
    await assertValue(store, 'a', [3, 4])
    await store.batch([remove('a'), remove('never there')])
    await assertValue(store, 'a', undefined)
    await assertKeys(store, undefined, 'b')
  },
  async 'bytes of a batch belong to the caller again once it has settled'(store) {
    const value = Uint8Array.from([1, 2, 3])
    await store.batch([{ type: 'put', key: 'a', value }])
    value.fill(9)
    await assertValue(store, 'a', [1, 2, 3])
  },
  async 'a value belongs to its reader'(store) {
    await store.batch([put('a', 1, 2, 3)])
    const [[, value] = ['', undefined]] = await all(store)
    value?.fill(9)
    ;(await store.get('a'))?.fill(9)
    await assertValue(store, 'a', [1, 2, 3])
  },
  async 'keys are ASCII text of 1 to 1,024 characters, and others are refused with ERR_STORE'(
    store,
  ) {
    const ascii = String.fromCharCode(...Array.from({ length: 128 }, (_, code) => code))
    const longest = 'k'.repeat(1024)
    await store.batch([put(ascii, 1), put(longest, 2)])
    await assertValue(store, ascii, [1])
    await assertValue(store, longest, [2])
    for (const key of ['', `${longest}k`, 'ä', '\u0080', '\ud800']) {
      await assertFails(`batch() of the key ${JSON.stringify(key.slice(0, 4))}`, () =>
        store.batch([put(key, 1)]),
      )
      await assertFails(`get() of the key ${JSON.stringify(key.slice(0, 4))}`, () => store.get(key))
    }
  },
}

const batches: Readonly<Record<string, Check>> = {
  async 'changes of a batch take effect in their order'(store) {
    await store.batch([
      put('a', 1),
      remove('a'),
      put('b', 1),
      put('b', 2),
      remove('c'),
      put('c', 3),
    ])
    await assertKeys(store, undefined, 'b c')
    await assertValue(store, 'b', [2])
  },
  async 'batches take effect in the order of the calls'(store) {
    const settled: number[] = []
    const calls = Array.from({ length: 300 }, (_, at) => {
      const operations =
        at % 3 === 2 ? [remove('a'), put('n', at & 255)] : [put('a', at & 255), put('n', at & 255)]
      return store.batch(operations).then(() => settled.push(at))
    })
    await Promise.all(calls)
    await assertValue(store, 'n', [299 & 255])
    await assertValue(store, 'a', undefined)
    assert(
      settled.join() === [...settled].sort((one, other) => one - other).join(),
      'batches settle in another order than that of the calls',
    )
  },
  async 'a batch that is refused changes nothing, and stops no other'(store) {
    const wrong = { type: 'put', key: 'b', value: 'text' } as unknown as StoreOperation
    const [before, refused, after] = [
      [put('c', 1)],
      [put('a', 1), wrong, remove('c')],
      [put('d', 1)],
    ].map((each) => awaitedLater(store.batch(each)))
    await assertFails('batch() of a value that is no Uint8Array', async () => refused)
    await before
    await after
    await assertKeys(store, undefined, 'c d')
    await assertFails('batch() of an unknown type', () =>
      store.batch([put('e', 1), { type: 'get', key: 'c' } as unknown as StoreOperation]),
    )
    await assertKeys(store, undefined, 'c d')
  },
  async 'an empty batch fulfils'(store) {
    await store.batch([])
    await assertKeys(store, undefined, '')
  },
  async 'many calls at once'(store) {
    const keys = Array.from({ length: 500 }, (_, at) => `k${String(at).padStart(3, '0')}`)
    await Promise.all(keys.map((key, at) => store.batch([put(key, at & 255)])))
    const found = await Promise.all(keys.map((key) => store.get(key)))
    const wrong = found.findIndex((value, at) => value?.[0] !== (at & 255))
    assert(wrong < 0, `${keys[wrong]} holds ${textOf(found[wrong])}`)
    const lists = await Promise.all([all(store), all(store, { reverse: true }), all(store)])
    assert(
      lists.every(({ length }) => length === keys.length),
      `three readers at once see ${lists.map(({ length }) => length)} entries`,
    )
  },
}

/** Pairs of a range and its keys, of the entries a, a/1, a/2, b, b/10, b/9, c. */
const bounds: readonly (readonly [StoreRange | undefined, string])[] = [
  [undefined, 'a a/1 a/2 b b/10 b/9 c'],
  [{ gt: 'a' }, 'a/1 a/2 b b/10 b/9 c'],
  [{ gte: 'a/2' }, 'a/2 b b/10 b/9 c'],
  [{ lt: 'b' }, 'a a/1 a/2'],
  [{ lte: 'b' }, 'a a/1 a/2 b'],
  [{ gt: 'a/', lt: 'a0' }, 'a/1 a/2'],
  [{ gte: 'a/3', lte: 'b/1' }, 'b'],
  [{ gt: 'a', gte: 'b' }, 'b b/10 b/9 c'],
  [{ gt: 'b', gte: 'a' }, 'b/10 b/9 c'],
  [{ gt: 'b', gte: 'b' }, 'b/10 b/9 c'],
  [{ lt: 'b', lte: 'c' }, 'a a/1 a/2'],
  [{ lt: 'c', lte: 'a/1' }, 'a a/1'],
  [{ lt: 'b', lte: 'b' }, 'a a/1 a/2'],
  [
    { gt: undefined, lt: undefined, limit: undefined, reverse: undefined },
    'a a/1 a/2 b b/10 b/9 c',
  ],
  [{ gt: 'c' }, ''],
  [{ gt: 'b', lt: 'b' }, ''],
  [{ gte: 'b', lt: 'b' }, ''],
  [{ gte: 'b', lte: 'b' }, 'b'],
  [{ gte: 'c', lt: 'a' }, ''],
  [{ limit: 3 }, 'a a/1 a/2'],
  [{ limit: 100 }, 'a a/1 a/2 b b/10 b/9 c'],
  [{ gt: 'a', limit: 1 }, 'a/1'],
]

const ranges: Readonly<Record<string, Check>> = {
  async 'entries come in the order of their keys, by code unit'(store) {
    const keys = ['~', 'a', 'A', '0', '00', '/', 'a/', 'a0', '\u0000', ' ', 'Z', 'aa', '9', '10']
    await store.batch(keys.map((key) => put(key, 1)))
    const found = (await all(store)).map(([key]) => key)
    assert(found.join() === [...keys].sort().join(), `the order is ${JSON.stringify(found)}`)
  },
  async 'each bound, and limit'(store) {
    await store.batch(['b/9', 'a', 'c', 'a/2', 'b', 'a/1', 'b/10'].map((key) => put(key, 1)))
    for (const [range, keys] of bounds) await assertKeys(store, range, keys)
  },
  async 'each bound, and limit, from the greatest key down'(store) {
    await store.batch(['b/9', 'a', 'c', 'a/2', 'b', 'a/1', 'b/10'].map((key) => put(key, 1)))
    for (const [{ limit, ...range } = {} as StoreRange, keys] of bounds) {
      if (limit === undefined)
        await assertKeys(store, { ...range, reverse: true }, keys.split(' ').reverse().join(' '))
    }
    await assertKeys(store, { reverse: true, limit: 2 }, 'c b/9')
    await assertKeys(store, { reverse: true, lt: 'b', limit: 1 }, 'a/2')
  },
  async 'a limit that is no whole number of 1 or more is refused with ERR_STORE'(store) {
    await store.batch([put('a', 1), put('b', 1)])
    for (const limit of [0, -1, 1.5, Number.NaN, Number.NEGATIVE_INFINITY]) {
      const error: unknown = await all(store, { limit }).then(
        () => undefined,
        (reason) => reason,
      )
      assert(
        (error as { code?: unknown } | undefined)?.code === 'ERR_STORE',
        `a limit of ${limit} gives ${error ?? 'no error'}`,
      )
    }
    await assertKeys(store, { limit: Number.POSITIVE_INFINITY }, 'a b')
  },
  async 'a loop may be left, and another begun'(store) {
    await store.batch(['a', 'b', 'c'].map((key) => put(key, 1)))
    for (let turn = 0; turn < 20; turn++)
      for await (const [key] of store.entries()) if (key === 'b') break
    const left = store.entries()[Symbol.asyncIterator]()
    await left.next()
    await assertKeys(store, undefined, 'a b c')
  },
}

const large: Readonly<Record<string, (store: Store, count: number) => Promise<void>>> = {
  async 'as many entries as there are packet identifiers, in order, both ways'(store, count) {
    const keyOf = (at: number): string => `k/${String(at).padStart(6, '0')}`
    const order = Array.from({ length: count }, (_, at) => (at * 7919) % count)
    for (let at = 0; at < count; at += 1000)
      await store.batch(
        order.slice(at, at + 1000).map((each) => put(keyOf(each), each & 255, each >> 8)),
      )
    for (const reverse of [false, true]) {
      let seen = 0
      for await (const [key, value] of store.entries({ reverse })) {
        const at = reverse ? count - 1 - seen : seen
        assert(
          key === keyOf(at) && value[0] === (at & 255) && value[1] === at >> 8,
          `entry ${seen} is ${key} ${textOf(value)}, not ${keyOf(at)}`,
        )
        seen++
      }
      assert(seen === count, `${seen} entries of ${count}`)
    }
  },
  async 'a reader may delete what it reads'(store) {
    const keys = Array.from({ length: 1000 }, (_, at) => `k${String(at).padStart(4, '0')}`)
    await store.batch(keys.map((key) => put(key, 1)))
    const seen: string[] = []
    for await (const [key] of store.entries()) {
      seen.push(key)
      await store.batch([remove(key)])
    }
    assert(
      seen.join() === keys.join(),
      `${seen.length} entries of ${keys.length} were seen, or in another order`,
    )
    await assertKeys(store, undefined, '')
  },
}

const endings: Readonly<Record<string, Check>> = {
  async 'close() fulfils once, and what is asked for later rejects with ERR_STORE, "store closed"'(
    store,
  ) {
    await store.batch([put('a', 1)])
    const reading = store.entries()[Symbol.asyncIterator]()
    await store.close()
    await store.close()
    await assertFails('get() after close()', () => store.get('a'), 'store closed')
    await assertFails('batch() after close()', () => store.batch([put('a', 1)]), 'store closed')
    await assertFails('entries() after close()', () => all(store), 'store closed')
    await assertFails('a reader from before close()', () => reading.next(), 'store closed')
  },
  async 'close() waits for what was asked for'(store) {
    const outcomes: string[] = []
    const asked = [store.batch([put('a', 1)]), store.batch([put('b', 1)]), store.get('a')]
    for (const each of asked)
      void each.then(() => outcomes.push('done')).catch((error) => outcomes.push(String(error)))
    await store.close()
    assert(
      outcomes.join() === 'done,done,done',
      `two batches and get() ended as "${outcomes}" before close() did`,
    )
  },
}

async function checkReopened(store: Store, reopen: () => Promise<Store>): Promise<void> {
  await store.batch([put('a', 1), put('b', 2)])
  await store.batch([remove('a'), put('c', 3)])
  const last = awaitedLater(store.batch([put('d', 4)]))
  await store.close()
  await last
  await closing(await reopen(), async (again) => {
    await assertKeys(again, undefined, 'b c d')
    await assertValue(again, 'c', [3])
    await again.batch([remove('b')])
  })
  await closing(await reopen(), (third) => assertKeys(third, undefined, 'c d'))
}
