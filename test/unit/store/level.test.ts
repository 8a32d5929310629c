/** Stores in folders: LevelDB and the log of `fileStore`, their files and locks, and other processes, some of which are killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { fileStore } from '../../../src/store/file.js'
import { openRecord, type Store, sealRecord } from '../../../src/store/index.js'
import { levelStore } from '../../../src/store/level.js'
import { requireDist, root } from '../../package/fixture.js'
import { pause } from '../../support/pausing.js'
import * as places from './places.js'

const { existsSync, readdirSync, readFileSync, statSync, writeFileSync } = fs
const { bytesOf, failureOf, failureWith, folderWith, newPlace, put, textOf } = places

const program = fileURLToPath(new URL('writer.mjs', import.meta.url))

const open: Store[] = []

class Writer {
  readonly child: ChildProcess
  readonly lines: string[] = []
  #tell: () => void = () => undefined

  constructor(store: string, location: string, options: object = {}) {
    const args = [program, store, location, JSON.stringify(options)]
    this.child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    let rest = ''
    this.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      this.lines.push(...lines)
      this.#tell()
    })
  }

  say(line: string): void {
    this.child.stdin?.write(`${line}\n`)
  }

  async until(beginning: string): Promise<string> {
    for (;;) {
      const found = this.lines.find((line) => line.startsWith(beginning))
      if (found !== undefined) return found
      await new Promise<void>((resolve) => {
        this.#tell = resolve
      })
    }
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.kill('SIGKILL')
    await once(this.child, 'exit')
  }
}

const writers: Writer[] = []

beforeAll(requireDist)
afterEach(async () => {
  for (const each of writers.splice(0)) await each.kill()
  for (const each of open.splice(0)) await each.close()
})

const numbersIn = (lines: readonly string[], word: string): number[] =>
  lines.filter((line) => line.startsWith(word)).map((line) => Number(line.split(' ')[1]))

async function entriesOf(store: Store): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>()
  for await (const [key, value] of store.entries()) found.set(key, value)
  return found
}

/** Checks what the writer left: whole batches, all that it was told are safe, none out of order. */
async function assertWritten(store: Store, stored: number[]) {
  const entries = await entriesOf(store)
  const queued = [...entries.keys()].filter((key) => key.startsWith('q/'))
  const numbers = queued.map((key) => Number(key.slice(2)))
  expect(stored.filter((number) => !numbers.includes(number))).toEqual([])
  const next = stored.length + 1
  expect(numbers.filter((number) => !stored.includes(number) && number !== next)).toEqual([])
  expect(textOf(entries.get('last'))).toBe(String(numbers.at(-1)))
  for (const key of queued)
    expect(entries.get(key)).toEqual(new Uint8Array(2000).fill(Number(key.slice(2))))
}

describe.each([
  ['levelStore', 'level', levelStore, 'LEVEL_LOCKED', '1.log CURRENT LOCK LOG MANIFEST-1 reserve'],
  ['fileStore', 'file', fileStore, 'ELOCKED', 'mqwire.lock-1 mqwire.log mqwire.reserve'],
] as const)('%s', (name, file, folderStore, lockedCode, files) => {
  const opened = async (...given: Parameters<typeof levelStore>): Promise<Store> => {
    const store = await folderStore(...given)
    open.push(store)
    return store
  }
  const writer = (location: string, options?: object): Writer => {
    const made = new Writer(name, location, options)
    writers.push(made)
    return made
  }

  describe('the lock', () => {
    it('a second opener gets ERR_STORE_LOCKED: in this process, by any name of the folder, and in a worker', async () => {
      const place = newPlace()
      const store = await opened(place)
      const link = newPlace()
      fs.symlinkSync(place, link)
      const names = [place, path.relative('.', place), `${place}/../${path.basename(place)}/`, link]
      for (const name of names) {
        const message = `store locked: ${name}`
        await expect(folderStore(name)).rejects.toMatchObject({ code: 'ERR_STORE_LOCKED', message })
      }
      const source = `import(process.argv[2]).then((entry) => entry[process.argv[3]](process.argv[4])).then(() => 'open', (error) => error.code)
        .then((said) => require('node:worker_threads').parentPort.postMessage(said))`
      const built = path.join(root, 'dist', 'store', `${file}.js`)
      const [said] = await once(
        new Worker(source, { eval: true, argv: [built, name, place] }),
        'message',
      )
      expect(said).toBe('ERR_STORE_LOCKED')
      await store.batch([put('a')])
      await store.close()
      expect(textOf(await (await opened(link)).get('a'))).toBe('1')
    })

    it('another process gets ERR_STORE_LOCKED, and the store once it is closed', async () => {
      const place = newPlace()
      const first = writer(place)
      await first.until('open')
      await expect(folderStore(place)).rejects.toMatchObject({
        code: 'ERR_STORE_LOCKED',
        cause: { code: lockedCode },
      })
      expect(await writer(place).until('refused')).toBe('refused ERR_STORE_LOCKED')
      first.say('close')
      await first.until('closed')
      await opened(place)
    })

    it('one that waits gets the store when it is closed; an abort ends the waiting, before and during it', async () => {
      const place = newPlace()
      const store = await opened(place)
      const reason = new Error('enough')
      const aborted = folderStore(place, { lock: 'wait', signal: AbortSignal.abort(reason) })
      await expect(aborted).rejects.toMatchObject({ code: 'ERR_ABORTED', cause: reason })
      const controller = new AbortController()
      const waiting = folderStore(place, { lock: 'wait', signal: controller.signal })
      setTimeout(() => controller.abort(reason), 300)
      await expect(waiting).rejects.toMatchObject({
        code: 'ERR_ABORTED',
        name: 'AbortError',
        cause: reason,
      })
      const next = opened(place, { lock: 'wait' })
      await store.batch([put('a')])
      await store.close()
      expect(textOf(await (await next).get('a'))).toBe('1')
    })

    it('a leader that is killed is replaced in less than 2 s, with all that it was told is safe', {
      timeout: 60_000,
    }, async () => {
      for (const durability of ['sync', 'os']) {
        const place = newPlace()
        const first = writer(place, { durability })
        first.say('write 1 100000')
        await first.until('stored 20')
        const [second, third] = [writer(place, { lock: 'wait' }), writer(place, { lock: 'wait' })]
        await pause(500)
        expect([...second.lines, ...third.lines]).toEqual([])
        await first.kill()
        const winner = await Promise.race([
          second.until('open').then(() => second),
          third.until('open').then(() => third),
        ])
        const other = winner === second ? third : second
        expect(other.lines).toEqual([])
        winner.say('close')
        await other.until('open')
        other.say('close')
        await other.until('closed')
        const stored = numbersIn(first.lines, 'stored')
        expect(stored.length).toBeGreaterThanOrEqual(20)
        await assertWritten(await opened(place), stored)
      }
    })
  })

  describe('files', () => {
    const mode = (file: string): number => statSync(file).mode & 0o777

    it('lie in a folder that is the owner’s alone, with the folders above it that were made', async () => {
      const place = path.join(newPlace(), 'deep', 'er')
      await (await opened(place)).batch([put('a')])
      for (const folder of [place, path.dirname(place)]) expect(mode(folder)).toBe(0o700)
      const named = () => readdirSync(place).map((each) => each.replaceAll(/\d+/g, '1')).sort().join(' ') // biome-ignore format: short
      await expect.poll(named).toBe(files)
      const names = readdirSync(place).filter(
        (each) => each.endsWith('reserve') || each.startsWith('mqwire'),
      )
      for (const each of names) expect(mode(path.join(place, each))).toBe(0o600)
    })

    it('an empty folder, or one of a store, is closed to others; one with other files is left alone and refused', async () => {
      const place = newPlace()
      fs.mkdirSync(place)
      for (const open of [0o755, 0o777]) {
        fs.chmodSync(place, open)
        await (await opened(place)).close()
        expect(mode(place)).toBe(0o700)
      }
      const home = folderWith('letter')
      fs.chmodSync(home, 0o755)
      await expect(folderStore(home)).rejects.toEqual(failureWith('holds other files'))
      expect([mode(home), readdirSync(home)]).toEqual([0o755, ['letter']])
    })

    it('what is no folder is refused with ERR_STORE and its cause', async () => {
      const file = newPlace()
      writeFileSync(file, '')
      await expect(folderStore(file)).rejects.toEqual(failureOf('EEXIST'))
      await expect(folderStore(path.join(file, 'below'))).rejects.toEqual(failureOf('ENOTDIR'))
    })
  })

  describe('options', () => {
    it.each([
      [['']],
      [[7]],
      [['a', null]],
      [['a', 'sync']],
      [['a', { durability: 'strict' }], 'durability must be "sync" or "os"', 'durability'],
      [['a', { lock: true }], 'lock must be "fail" or "wait"', 'lock'],
      name === 'fileStore'
        ? [['a', { repair: 1 }], 'repair must be false or true', 'repair']
        : [['a', { persist: 1 }], 'persist must be false or true', 'persist'],
      [['a', { signal: {} }], 'signal must be an AbortSignal', 'signal'],
      [['a', { fsync: true }], 'unknown option fsync', 'fsync'],
    ])('%j is refused, and nothing is made', async (given, message?: string, option?: string) => {
      const place = newPlace()
      const [location, options] = given as [string, object]
      const wrong = folderStore(location === 'a' ? place : location, options)
      await expect(wrong).rejects.toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: option ?? expect.any(String),
        ...(message && { message }),
      })
      expect(existsSync(place)).toBe(false)
    })

    it('undefined ones count as left out, and persist has nothing to do in LevelDB', async () => {
      const none = { durability: undefined, lock: undefined, signal: undefined }
      await opened(newPlace(), { ...none, ...(name === 'levelStore' && { persist: true }) })
    })
  })

  it('the store at work: close() while readers and writers are busy: each ends, nothing crashes', async () => {
    const store = await folderStore(newPlace())
    await store.batch(Array.from({ length: 5000 }, (_, at) => put(`k${at}`, 'x'.repeat(100))))
    const readers = Array.from({ length: 5 }, async () => {
      for await (const [key] of store.entries()) await store.get(key)
    })
    const writes = Array.from({ length: 100 }, (_, at) => store.batch([put(`z${at}`, '1')]))
    const closing = store.close()
    for (const each of await Promise.allSettled(readers))
      expect(each).toMatchObject({ status: 'rejected', reason: { code: 'ERR_STORE' } })
    await Promise.all(writes)
    await closing
  })
})

describe('a damaged file', () => {
  it('a bit that is flipped in a value damages that record, which the checksum tells, and no other', {
    timeout: 60_000,
  }, async () => {
    const place = newPlace()
    const store = await levelStore(place)
    const bodies = Array.from({ length: 40 }, (_, at) => bytesOf(`body ${at} `.repeat(20)))
    await store.batch(
      bodies.map((body, at) => put(`q/${String(at).padStart(3, '0')}`, sealRecord(body))),
    )
    await store.close()
    // Opening writes the log into a table.
    await (await levelStore(place)).close()
    const table = path.join(place, readdirSync(place).find((name) => name.endsWith('.ldb')) ?? '')
    const whole = readFileSync(table)
    let damagedOnes = 0
    for (let at = 7; at < bodies.length; at += 8) {
      const where = whole.indexOf(Buffer.from(bodies[at] as Uint8Array))
      expect(where).toBeGreaterThan(0)
      for (const byte of [-5, -4, -1, 0, 100]) {
        const bytes = Buffer.from(whole)
        bytes[where + byte] = (bytes[where + byte] as number) ^ 4
        writeFileSync(table, bytes)
        const again = await levelStore(place)
        const opened = [...(await entriesOf(again)).values()].map((record) => openRecord(record))
        await again.close()
        expect(opened.map(textOf)).toEqual(
          bodies.map((body, index) => (index === at ? '' : textOf(body))),
        )
        damagedOnes += 1
      }
    }
    expect(damagedOnes).toBe(25)
  })

  it('one that LevelDB cannot read rejects with ERR_STORE and its cause', async () => {
    const place = newPlace()
    await (await levelStore(place)).close()
    writeFileSync(path.join(place, 'CURRENT'), 'nothing')
    await expect(levelStore(place)).rejects.toEqual(failureOf(expect.stringMatching(/^LEVEL_/)))
  })
})
