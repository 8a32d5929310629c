// A tab with stores in IndexedDB: what the tests call stands on the global object.

import { openRecord, quarantine, sealRecord } from '/dist/store/index.js'
import { levelStore } from '/dist/store/level-browser.js'
import { storeContract } from '/dist/testing/store-contract.js'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const tell = (error) => ({
  code: error.code,
  message: error.message,
  option: error.option,
  cause: error.cause?.name ?? error.cause,
})
let count = 0
let place = ''
const reopen = () => levelStore(place)
const cases = storeContract(
  () => {
    count += 1
    place = `contract-${location.pathname}-${count}`
    return reopen()
  },
  { reopen },
)

const stores = {}
globalThis.tab = {
  stored: [],
  async contract(name) {
    await cases.find((each) => each.name === name).run()
  },
  /** What came of opening, as text or as the fields of the error. */
  open(name, options = {}, abortAfter = undefined) {
    const signal = abortAfter === undefined ? undefined : AbortSignal.timeout(abortAfter)
    return levelStore(name, { ...options, signal }).then((store) => {
      stores[name] = store
      return 'open'
    }, tell)
  },
  put(name, key, text) {
    return stores[name]
      .batch([{ type: 'put', key, value: encoder.encode(text) }])
      .then(() => 'stored', tell)
  },
  /** Many values that are small enough to lie in the database itself. */
  putMany(name, count, length) {
    const value = new Uint8Array(length)
    return stores[name]
      .batch(Array.from({ length: count }, (_, at) => ({ type: 'put', key: `many/${at}`, value })))
      .then(() => 'stored', tell)
  },
  forget(name, key) {
    return stores[name].batch([{ type: 'delete', key }]).then(() => 'stored', tell)
  },
  get(name, key) {
    return stores[name]
      .get(key)
      .then((value) => (value === undefined ? 'nothing' : decoder.decode(value)), tell)
  },
  async keys(name) {
    const keys = []
    for await (const [key] of stores[name].entries()) keys.push(key)
    return keys
  },
  close(name) {
    return stores[name].close().then(() => 'closed', tell)
  },
  /** Writes one after the other, for ever; says what was stored by way of a binding of the test. */
  write(name) {
    void (async () => {
      for (let number = 1; ; number++) {
        await stores[name].batch([
          {
            type: 'put',
            key: `q/${String(number).padStart(6, '0')}`,
            value: sealRecord(new Uint8Array(1000).fill(number)),
          },
          { type: 'put', key: 'last', value: encoder.encode(String(number)) },
        ])
        globalThis.said?.(number)
        globalThis.tab.stored.push(number)
      }
    })()
  },
  /** What is there of it: how many, whether they follow each other, the last one, how many are damaged. */
  async read(name) {
    let found = 0
    let inOrder = true
    let damaged = 0
    for await (const [key, value] of stores[name].entries({ gt: 'q/', lt: 'q0' })) {
      found += 1
      inOrder &&= Number(key.slice(2)) === found
      if (openRecord(value)?.every((byte) => byte === (found & 255)) !== true) damaged += 1
    }
    return { found, inOrder, damaged, last: Number(decoder.decode(await stores[name].get('last'))) }
  },
  /** Batches of one turn, and in which transactions they left. */
  async watched(name, batches) {
    const seen = []
    const { transaction } = IDBDatabase.prototype
    IDBDatabase.prototype.transaction = function (...given) {
      const made = transaction.apply(this, given)
      seen.push([given[1], made.durability])
      return made
    }
    await Promise.all(
      Array.from({ length: batches }, (_, at) => globalThis.tab.put(name, `k${at}`, 'a')),
    )
    IDBDatabase.prototype.transaction = transaction
    return seen
  },
  /** Writes a value into the database behind the store's back. */
  tamper(name, key, value) {
    return new Promise((resolve, reject) => {
      const request = indexedDB.open(`mqwire:${name}`)
      request.onerror = () => reject(request.error)
      request.onsuccess = () => {
        const transaction = request.result.transaction('records', 'readwrite')
        transaction.objectStore('records').put(value, key)
        transaction.oncomplete = () => {
          request.result.close()
          resolve('done')
        }
      }
    })
  },
  /** Of the memory behind a value as it is stored: how many bytes. */
  storedMemory(name, key) {
    return new Promise((resolve) => {
      indexedDB.open(`mqwire:${name}`).onsuccess = ({ target: { result } }) => {
        result.transaction('records').objectStore('records').get(key).onsuccess = ({ target }) => {
          result.close()
          resolve(target.result.buffer.byteLength)
        }
      }
    })
  },
  putView(name, key) {
    return stores[name]
      .batch([{ type: 'put', key, value: new Uint8Array(1_000_000).subarray(10, 20) }])
      .then(() => 'stored', tell)
  },
  async quarantineDamaged(name) {
    const moved = []
    for await (const [key, value] of stores[name].entries({ lt: 'x/' }))
      if (openRecord(value) === undefined)
        moved.push(await quarantine(stores[name], key, value, 'damaged'))
    return moved
  },
  remove(name) {
    return new Promise((resolve) => {
      const request = indexedDB.deleteDatabase(`mqwire:${name}`)
      request.onblocked = () => resolve('blocked')
      request.onsuccess = () => resolve('deleted')
    })
  },
  /** A database of a version to come. */
  later(name) {
    return new Promise((resolve) => {
      indexedDB.open(`mqwire:${name}`, 2).onsuccess = ({ target }) => {
        target.result.close()
        resolve('there')
      }
    })
  },
  steal(name) {
    void navigator.locks.request(
      `mqwire:${name}`,
      { steal: true },
      () => new Promise(() => undefined),
    )
  },
}
