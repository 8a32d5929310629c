/** Stores that break one rule each, made of one that keeps them all: by the case of the contract that has to notice, and by what is wrong. */
import type { Store, StoreEntry, StoreOperation, StoreRange } from '../../../src/store/index.js'
import { pause } from '../../support/pausing.js'

type Breaks = (store: Store) => Store
type Batch = Store['batch']

const over = (store: Store, members: Partial<Store>): Store => ({
  get: (key) => store.get(key),
  batch: (operations) => store.batch(operations),
  entries: (range) => store.entries(range),
  close: () => store.close(),
  ...members,
})

type Operations = readonly StoreOperation[]

function withBatch(
  made: (batch: Batch, operations: Operations, store: Store) => Promise<void>,
): Breaks {
  return (store) =>
    over(store, { batch: (operations) => made((each) => store.batch(each), operations, store) })
}

/** `count` is how many batches there were, this one with them. */
const withNthBatch =
  (made: (batch: () => Promise<void>, count: number) => Promise<void>): Breaks =>
  (store) => {
    let count = 0
    return over(store, { batch: (operations) => made(() => store.batch(operations), ++count) })
  }

type Value = Uint8Array | undefined

function withGet(
  made: (value: Value, key: string, store: Store) => Value | Promise<Value>,
): Breaks {
  return (store) => over(store, { get: async (key) => made(await store.get(key), key, store) })
}

async function listOf(entries: AsyncIterable<StoreEntry>): Promise<StoreEntry[]> {
  const found: StoreEntry[] = []
  for await (const entry of entries) found.push(entry)
  return found
}

const withEntries =
  (made: (entries: StoreEntry[], range: StoreRange) => Iterable<StoreEntry>): Breaks =>
  (store) =>
    over(store, {
      async *entries(range = {}) {
        yield* made(await listOf(store.entries(range)), range)
      },
    })

function withRange(made: (range: StoreRange) => StoreRange): Breaks {
  return (store) => over(store, { entries: (range = {}) => store.entries(made(range)) })
}

const swallow = (): undefined => undefined
const isPut = (each: StoreOperation): boolean => each.type === 'put'
const later = (): Promise<void> => pause(1)
const fail = (message: string, fields = {}) =>
  Promise.reject(Object.assign(new Error(message), fields))

const given = (value: Uint8Array): Uint8Array => value
const copied = (value: Uint8Array): Uint8Array => value.slice()

/** Keeps what it was given, not a copy of it. */
const sharing = (
  onRead: (value: Uint8Array) => Uint8Array,
  onWrite: (value: Uint8Array) => Uint8Array,
): Breaks => {
  const kept = new Map<string, Uint8Array>()
  return (store) =>
    over(store, {
      batch(operations) {
        for (const each of operations)
          if (each.type === 'put') kept.set(each.key, onWrite(each.value))
        return store.batch(operations)
      },
      async get(key) {
        const value = kept.get(key)
        return value && onRead(value)
      },
    })
}

export const breakers: Readonly<Record<string, Readonly<Record<string, Breaks>>>> = {
  'get() of a key that is not there is undefined': {
    'gives empty bytes': withGet((value) => value ?? new Uint8Array(0)),
  },
  'a value is what was put, empty ones and long ones too': {
    'cuts long ones': withGet((value) => value?.slice(0, 65_536)),
    'takes empty ones for none': withGet((value) => (value?.length === 0 ? undefined : value)),
    'gives other values to readers': withEntries((entries) =>
      entries.map(([key]): StoreEntry => [key, new Uint8Array(0)]),
    ),
  },
  'a value is replaced, and deleted': {
    'never deletes': withBatch((batch, operations) => batch(operations.filter(isPut))),
    'never replaces': withBatch(async (batch, operations, store) => {
      for (const each of operations)
        if (each.type === 'delete' || (await store.get(each.key)) === undefined) await batch([each])
    }),
    'refuses to delete what is not there': withBatch(async (batch, operations, store) => {
      for (const each of operations) {
        if (each.type === 'delete' && (await store.get(each.key)) === undefined)
          throw new Error('not there')
        await batch([each])
      }
    }),
  },
  'bytes of a batch belong to the caller again once it has settled': {
    'keeps them': sharing(copied, given),
  },
  'a value belongs to its reader': { 'gives out its own': sharing(given, copied) },
  'keys are ASCII text of 1 to 1,024 characters, and others are refused with ERR_STORE': {
    'takes every key': (store) => {
      const get = (key: string): Promise<Value> => store.get(key).catch(swallow)
      return over(store, { batch: (operations) => store.batch(operations).catch(swallow), get })
    },
    'has an error of its own': withBatch((batch, operations) =>
      batch(operations).catch(() => fail('no')),
    ),
    'has shorter keys': withBatch((batch, operations) =>
      operations.some(({ key }) => key.length > 512) ? fail('too long') : batch(operations),
    ),
  },
  'changes of a batch take effect in their order': {
    'deletes first': withBatch((batch, operations) =>
      batch([...operations].sort((one, other) => (one.type < other.type ? -1 : 1))),
    ),
  },
  'batches take effect in the order of the calls': {
    'every seventh waits': withNthBatch(async (batch, count) => {
      if (count % 7 === 6) await later()
      return batch()
    }),
    'they settle in any order': withNthBatch(async (batch, count) => {
      await batch()
      if (count === 3) await later()
    }),
  },
  'a batch that is refused changes nothing, and stops no other': {
    'does one change after the other': withBatch(async (batch, operations) => {
      for (const each of operations) await batch([each])
    }),
    'fails for ever': (store) => {
      let failure: Promise<void> | undefined
      return over(store, {
        async batch(operations) {
          const doing = failure ?? store.batch(operations)
          doing.catch(() => {
            failure = doing
          })
          await later()
          return doing.then(() => failure)
        },
      })
    },
  },
  'an empty batch fulfils': {
    'it is refused': withBatch((batch, operations) =>
      operations.length === 0 ? fail('empty') : batch(operations),
    ),
  },
  'many calls at once': {
    'drops what comes while it is busy': (store) => {
      let busy = false
      return over(store, {
        async batch(operations) {
          if (busy) return
          busy = true
          await store.batch(operations)
          busy = false
        },
      })
    },
    'has one reader at a time': (store) => {
      let reading = false
      return over(store, {
        async *entries(range) {
          if (reading) return
          reading = true
          yield* store.entries(range)
          reading = false
        },
      })
    },
  },
  'entries come in the order of their keys, by code unit': {
    'by the order of a language': withEntries((entries) =>
      entries.sort(([one], [other]) => one.localeCompare(other, 'en')),
    ),
  },
  'each bound, and limit': {
    'gt is gte': withRange(({ gt, gte, ...rest }) => ({ ...rest, gte: gt ?? gte })),
    'gte is gt': withRange(({ gt, gte, ...rest }) => ({ ...rest, gt: gt ?? gte })),
    'lt is lte': withRange(({ lt, lte, ...rest }) => ({ ...rest, lte: lt ?? lte })),
    'lte is lt': withRange(({ lt, lte, ...rest }) => ({ ...rest, lt: lt ?? lte })),
    'gte hides gt': withRange(({ gt, gte, ...rest }) => ({
      ...rest,
      ...(gte === undefined ? { gt } : { gte }),
    })),
    'lt hides lte': withRange(({ lt, lte, ...rest }) => ({
      ...rest,
      ...(lt === undefined ? { lte } : { lt }),
    })),
    'limit does not count': withRange(({ limit, ...rest }) => rest),
    'an empty range is refused': withRange((range) => {
      if ((range.gt ?? range.gte ?? '') > (range.lt ?? range.lte ?? '~'))
        throw new Error('no range')
      return range
    }),
  },
  'each bound, and limit, from the greatest key down': {
    'it goes up': withRange(({ reverse, ...rest }) => rest),
    'limit counts from below': withEntries((entries, { limit = 100, reverse }) =>
      reverse === true ? entries.slice(-limit).slice(1) : entries,
    ),
  },
  'a limit that is no whole number of 1 or more is refused with ERR_STORE': {
    'of 0 there is nothing': (store) =>
      over(store, {
        entries: (range) =>
          range?.limit === 0 ? store.entries({ lt: ' ' }) : store.entries(range),
      }),
    'of a part is cut': withRange(({ limit, ...rest }) => ({
      ...rest,
      ...(limit !== undefined && { limit: Math.floor(limit) }),
    })),
    'of NaN is none': withRange(({ limit, ...rest }) =>
      Number.isNaN(limit) ? rest : { ...rest, limit },
    ),
    'infinity is refused': withRange((range) =>
      range.limit === Number.POSITIVE_INFINITY ? { ...range, limit: 0 } : range,
    ),
  },
  'a loop may be left, and another begun': {
    'ten readers are too many': (store) => {
      let count = 0
      return over(store, {
        entries(range) {
          count += 1
          if (count > 10) throw new Error('too many readers')
          return store.entries(range)
        },
      })
    },
    'goes on where the last one stopped': (store) => {
      let one: AsyncIterable<StoreEntry> | undefined
      const entries: Store['entries'] = (range) => {
        one ??= store.entries(range)
        return one
      }
      return over(store, { entries })
    },
  },
  'as many entries as there are packet identifiers, in order, both ways': {
    'a page is all': withEntries((entries) => entries.slice(0, 1000)),
    'the border of a page comes twice': withEntries((entries) => [
      ...entries.slice(0, 1000),
      ...entries.slice(999),
    ]),
  },
  'a reader may delete what it reads': {
    'counts places': (store) =>
      over(store, {
        async *entries(range) {
          for (let at = 0; ; at++) {
            const entry = (await listOf(store.entries({ ...range, limit: at + 1 })))[at]
            if (entry === undefined) return
            yield entry
          }
        },
      }),
  },
  'close() fulfils once, and what is asked for later rejects with ERR_STORE, "store closed"': {
    'reads on': (store) => over(store, { get: (key) => store.get(key).catch(swallow) }),
    'writes on': (store) =>
      over(store, { batch: (operations) => store.batch(operations).catch(swallow) }),
    'iterates on': (store) =>
      over(store, {
        async *entries(range) {
          try {
            yield* store.entries(range)
          } catch {
            // Nothing is there any more.
          }
        },
      }),
    'refuses the second': (store) => {
      let count = 0
      return over(store, { close: () => (++count === 2 ? fail('closed already') : store.close()) })
    },
    'says something else': (store) =>
      over(store, {
        get: (key) => store.get(key).catch(() => fail('gone', { code: 'ERR_STORE' })),
      }),
  },
  'close() waits for what was asked for': {
    'it does not': withBatch((batch, operations) => batch(operations).then(later)),
    'gives up what waits': (store) => {
      let closed = false
      return over(store, {
        async batch(operations) {
          await Promise.resolve()
          if (closed) throw new Error('store closed')
          return store.batch(operations)
        },
        close() {
          closed = true
          return store.close()
        },
      })
    },
  },
  'what was stored is there after close() and opening again': { 'it forgets': (store) => store },
}
