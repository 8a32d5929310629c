/**
 * A process with a durable session and a queue in one store is killed with SIGKILL at random moments, 20 times, and with MQWIRE_LONG 300 times: what was
 * stored arrives, at QoS 2 once, and each message that it gets has one id.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect, constant } from '../../src/client/node.js'
import { fileStore } from '../../src/store/file.js'
import type { Store } from '../../src/store/index.js'
import { levelStore } from '../../src/store/level.js'
import { requireDist, root } from '../package/fixture.js'
import { Random } from '../world/random.js'
import { type Broker, startMosquitto, withMosquitto } from './brokers.js'
import { eventually, within } from './waiting.js'

/** Messages to the process that it has not consumed, at most. */
const mostAhead = 500
/** Milliseconds that the last run may take. */
const lastPatience = 120_000

/** What the broker does meanwhile: it stays, ends orderly and comes back with everything, or is killed and has forgotten everything. */
type BrokerLife = 'stays' | 'comes back' | 'forgets'

const stores = { levelStore, fileStore }

interface KillsPlan {
  readonly kills: number
  readonly seed: number
  readonly store: keyof typeof stores
  readonly durability: 'sync' | 'os'
  readonly broker: BrokerLife
}

/** What the process is told: `test/real/process-kills-child.js`. */
interface ChildSettings {
  readonly url: string
  readonly folder: string
  readonly run: number
  readonly store: KillsPlan['store']
  readonly durability: 'sync' | 'os'
  /** False: it publishes nothing new. */
  readonly publishes: boolean
}

interface KillsResult {
  /** Kills before the process had connected. */
  readonly early: number
  /** Times that the broker was restarted. */
  readonly restarts: number
  /** Processes that found their session lost. */
  readonly sessionsLost: number
  /** Entries whose `publish()` fulfilled. */
  readonly stored: number
  /** Of them: never arrived, and not told as a dead letter. */
  readonly lost: readonly string[]
  /** At QoS 2, and arrived more than once. */
  readonly twice: readonly string[]
  /** Arrived behind one that was published to the same topic later. */
  readonly disordered: readonly string[]
  /** Dead letters, with their codes. */
  readonly dead: readonly string[]
  /** Times that it consumed one. */
  readonly consumed: number
  /** Of the messages: never consumed. */
  readonly missing: readonly string[]
  /** Messages that had two ids, and ids that two messages had. */
  readonly confused: readonly string[]
  /** What the process reported, and records that are left in its store. */
  readonly trouble: readonly string[]
}

async function runKills(plan: KillsPlan): Promise<KillsResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-kills-'))
  const broker = await startMosquitto({
    lines: ['max_inflight_messages 50'],
    memory: plan.broker === 'comes back' ? 'all of it' : 'nothing',
  })
  const kills = new Kills(plan, broker, folder)
  try {
    return await kills.run()
  } finally {
    kills.end()
    await broker.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Whole lines of a file that another process appends to, as words. */
class LineFile {
  readonly #place: string

  constructor(place: string) {
    this.#place = place
  }

  lines(): readonly (readonly string[])[] {
    if (!existsSync(this.#place)) return []
    const lines = readFileSync(this.#place, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => line.split(' '))
  }
}

class Kills {
  readonly #plan: KillsPlan
  readonly #broker: Broker
  readonly #folder: string
  readonly #random: Random
  readonly #url: string
  readonly #files: Readonly<Record<'stored' | 'consumed' | 'dead' | 'lost' | 'trouble', LineFile>>
  /** What arrived at the checker, and how often. */
  readonly #arrived = new Map<string, number>()
  readonly #sent: string[] = []
  /** Messages that a broker which forgot them will never deliver, as far as anybody knows. */
  #forgotten = 0
  #checker: Client | undefined
  #child: ChildProcess | undefined
  #early = 0
  #restarts = 0
  #going = true
  /** The sender waits for it. */
  #pause: Promise<void> = Promise.resolve()
  #sending: Promise<void> = Promise.resolve()

  constructor(plan: KillsPlan, broker: Broker, folder: string) {
    this.#plan = plan
    this.#broker = broker
    this.#folder = folder
    this.#random = new Random(plan.seed)
    this.#url = broker.urls.TCP ?? ''
    const file = (name: string): LineFile => new LineFile(path.join(folder, name))
    this.#files = {
      stored: file('stored'),
      consumed: file('consumed'),
      dead: file('dead'),
      lost: file('lost'),
      trouble: file('trouble'),
    }
  }

  async run(): Promise<KillsResult> {
    this.#checker = await connect(this.#url, {
      clientId: 'checker',
      cleanStart: false,
      sessionExpiryInterval: 3600,
      reconnect: { backoff: constant(20) },
    })
    await this.#checker.listen('out/#', (message) => void this.#count(message.text()), { qos: 2 })
    // It subscribes before anything is sent to it.
    await this.#live(0, false, async () => undefined)
    const sender = this.#send()
    for (let run = 1; run <= this.#plan.kills; run += 1) {
      await Promise.all([this.#killOne(run), this.#restartMeanwhile()])
      if (this.#plan.broker === 'forgets' && this.#random.below(3) === 0)
        await this.#restartForgetting()
    }
    this.#going = false
    await within(sender, 'the end of the sender', lastPatience)
    await this.#live(this.#plan.kills + 1, false, () => this.#completed())
    await this.#checker.disconnect()
    return this.#result()
  }

  /** Works in every state. */
  end(): void {
    this.#going = false
    this.#child?.kill('SIGKILL')
    this.#checker?.destroy()
  }

  #count(text: string): void {
    this.#arrived.set(text, (this.#arrived.get(text) ?? 0) + 1)
  }

  #spawn(run: number, publishes: boolean): ChildProcess {
    const { durability, store } = this.#plan
    const settings: ChildSettings = {
      url: this.#url,
      folder: this.#folder,
      run,
      store,
      durability,
      publishes,
    }
    const file = path.join(root, 'test', 'real', 'process-kills-child.js')
    const child = spawn(
      process.execPath,
      ['--unhandled-rejections=strict', file, JSON.stringify(settings)],
      {
        cwd: root,
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      },
    )
    this.#child = child
    return child
  }

  // One in ten dies while it starts.
  async #killOne(run: number): Promise<void> {
    const child = this.#spawn(run, true)
    const gone = ended(child)
    const early = this.#random.below(10) === 0
    const delay = this.#random.below(early ? 400 : 300)
    if (!early)
      await within(
        Promise.race([said(child, 'connected'), gone]),
        `process ${run} connecting`,
        lastPatience,
      )
    let connected = false
    if (early) child.once('message', () => (connected = true))
    await sleep(delay)
    child.kill('SIGKILL')
    const signal = await gone
    if (signal !== 'SIGKILL') throw new Error(`process ${run} ended by itself`)
    if (early && !connected) this.#early += 1
  }

  // One that ends by itself, when `until` has fulfilled.
  async #live(run: number, publishes: boolean, until: () => Promise<void>): Promise<void> {
    const child = this.#spawn(run, publishes)
    const gone = ended(child)
    await within(Promise.race([said(child, 'drained'), gone]), 'an empty queue', lastPatience)
    await until()
    child.send('end')
    if ((await within(gone, 'the end of the process', lastPatience)) !== undefined)
      throw new Error(`process ${run} was killed`)
  }

  // What never comes is told by the result, not by a deadline that is missed.
  async #completed(): Promise<void> {
    const complete = (): boolean => this.#lost().length + this.#missing().length === 0
    if (this.#plan.broker === 'forgets') await this.#settled()
    else await eventually(complete, 'everything arrived', 30_000).catch(() => undefined)
  }

  // Publishes without pause, and never more ahead than the broker should hold.
  async #send(): Promise<void> {
    for (let number = 1; this.#going; number += 1) {
      await this.#pause
      const open = (): number =>
        this.#sent.length - this.#forgotten - this.#files.consumed.lines().length
      while (this.#going && number % 20 === 0 && open() > mostAhead) await sleep(20)
      const qos = (number % 2) + 1
      const text = `m${number}`
      this.#sending = this.#publish(text, qos as 1 | 2)
      await this.#sending
      if (number % 20 === 0) await sleep(10)
    }
  }

  async #publish(text: string, qos: 1 | 2): Promise<void> {
    await this.#checker?.publish(`in/${qos}`, text, { qos })
    this.#sent.push(text)
  }

  async #restartMeanwhile(): Promise<void> {
    if (this.#plan.broker !== 'comes back' || this.#random.below(3) > 0) return
    await sleep(this.#random.below(900))
    await this.#broker.shutDown()
    await sleep(this.#random.below(50))
    await this.#broker.live()
    this.#restarts += 1
  }

  // Between two lives of the process, and once everything that the broker took has arrived: else what it forgets could not be told from what is lost.
  async #restartForgetting(): Promise<void> {
    let goOn = (): void => undefined
    this.#pause = new Promise((resolve) => {
      goOn = resolve
    })
    await this.#sending
    await this.#settled()
    await this.#broker.kill()
    await this.#broker.live()
    this.#restarts += 1
    this.#forgotten = this.#sent.length - this.#files.consumed.lines().length
    await eventually(() => this.#checker?.state === 'connected', 'the checker connecting')
    await this.#settled()
    goOn()
  }

  // What the checker sends itself comes behind all that the broker took before. Its subscription may take its time after a reconnect.
  async #settled(): Promise<void> {
    const probe = `probe ${this.#random.next()}`
    await eventually(async () => {
      await this.#checker?.publish('out/probe', probe, { qos: 2 })
      await sleep(20)
      return this.#arrived.has(probe)
    }, 'a message of the checker to itself')
  }

  #lost(): string[] {
    const dead = new Set(this.#files.dead.lines().map(([, text]) => text))
    const gone = ([, text = '']: readonly string[]): boolean =>
      !this.#arrived.has(text) && !dead.has(text)
    return this.#files.stored
      .lines()
      .filter(gone)
      .map((words) => words.join(' '))
  }

  #missing(): string[] {
    if (this.#plan.broker === 'forgets') return []
    const seen = new Set(this.#files.consumed.lines().map(([, text]) => text))
    return this.#sent.filter((text) => !seen.has(text))
  }

  // One message has one id, and one id is of one message.
  #confused(): string[] {
    const ids = new Map<string, string>()
    const texts = new Map<string, string>()
    return this.#files.consumed.lines().flatMap(([id = '', text = '']) => {
      const [knownId, knownText] = [ids.get(text) ?? id, texts.get(id) ?? text]
      ids.set(text, id)
      texts.set(id, text)
      return knownId === id && knownText === text
        ? []
        : [`${text} with ${id}: ${knownId} before, and ${id} was of ${knownText}`]
    })
  }

  // Counts the first time of each. Messages to the process are left out: mosquitto 2.0.11 changes their order where many wait for a session.
  #disordered(): string[] {
    const last = new Map<string, readonly number[]>()
    return [...this.#arrived.keys()].filter((text) => {
      const [run = 0, worker, number = 0] = text.split('-').map(Number)
      if (worker === undefined) return false
      // Even and odd ones have a topic each.
      const place = `${worker} ${number % 2}`
      const [lastRun = 0, lastNumber = -1] = last.get(place) ?? []
      const isLater = run > lastRun || (run === lastRun && number > lastNumber)
      if (isLater) last.set(place, [run, number])
      return !isLater
    })
  }

  async #result(): Promise<KillsResult> {
    const { stored, consumed, dead, lost, trouble } = this.#files
    const again = stored.lines().filter(([, text = '']) => (this.#arrived.get(text) ?? 0) > 1)
    const left = await leftIn(await stores[this.#plan.store](path.join(this.#folder, 'store')))
    const words = (file: LineFile): string[] => file.lines().map((each) => each.join(' '))
    return {
      early: this.#early,
      restarts: this.#restarts,
      sessionsLost: lost.lines().length,
      stored: stored.lines().length,
      lost: this.#lost(),
      twice: again.filter(([qos]) => qos === '2').map((each) => each.join(' ')),
      disordered: this.#disordered(),
      dead: words(dead),
      consumed: consumed.lines().length,
      missing: this.#missing(),
      confused: this.#confused(),
      trouble: [...words(trouble), ...left.map((key) => `left in the store: ${key}`)],
    }
  }
}

// Entries, and publishes in flight.
async function leftIn(store: Store): Promise<string[]> {
  const keys: string[] = []
  for await (const [key] of store.entries())
    if (/^(q\/\w+\/e|c\/\w+\/o)\//.test(key)) keys.push(key)
  await store.close()
  return keys
}

/** Fulfils with the signal that ended it; undefined where it ended by itself, and well. */
function ended(child: ChildProcess): Promise<NodeJS.Signals | undefined> {
  const end = new Promise<NodeJS.Signals | undefined>((resolve, reject) => {
    child.once('exit', (code, signal) =>
      code === null || code === 0
        ? resolve(signal ?? undefined)
        : reject(new Error(`the process ended with ${code}`)),
    )
  })
  end.catch(() => undefined)
  return end
}

function said(child: ChildProcess, wanted: string): Promise<void> {
  return new Promise((resolve) => {
    child.on('message', (word) => word === wanted && resolve())
  })
}

const kills = process.env['MQWIRE_LONG'] === undefined ? 20 : 300
/** `concurrency` of a queue. */
const mostInFlight = 64
const timeout = 120_000 + kills * 5000

beforeAll(requireDist)

async function killed(
  plan: Pick<KillsPlan, 'store' | 'durability' | 'broker'>,
): Promise<KillsResult> {
  const result = await runKills({ ...plan, kills, seed: 1 })
  expect(result.trouble).toEqual([])
  expect(result.lost).toEqual([])
  expect(result.twice).toEqual([])
  expect(result.disordered).toEqual([])
  expect(result.missing).toEqual([])
  expect(result.confused).toEqual([])
  expect(result.stored).toBeGreaterThan(kills)
  expect(result.consumed).toBeGreaterThan(kills)
  return result
}

/** A process that dies between CONNECT and CONNACK leaves open which session the next one finds: what was in flight at QoS 2 is a dead letter then, and nothing else. */
function expectCertain({ dead, early, restarts }: KillsResult): void {
  expect(dead.filter((line) => !line.startsWith('ERR_SESSION_LOST '))).toEqual([])
  expect(dead.length).toBeLessThanOrEqual((early + restarts) * mostInFlight)
}

withMosquitto(['TCP'], () => {
  describe(`${kills} kills with SIGKILL`, () => {
    it.each([
      ['levelStore', 'sync'],
      ['fileStore', 'os'],
    ] as const)(
      '%s, with durability %s: nothing is lost, doubled or confused',
      { timeout },
      async (store, durability) => {
        const result = await killed({ store, durability, broker: 'stays' })
        expectCertain(result)
        expect(result.sessionsLost).toBe(0)
      },
    )

    it('nor where the broker is restarted meanwhile, and remembers', { timeout }, async () => {
      const plan = { store: 'levelStore', durability: 'sync', broker: 'comes back' } as const
      const result = await killed(plan)
      expectCertain(result)
      expect(result.sessionsLost).toBe(0)
      expect(result.restarts).toBeGreaterThan(0)
    })

    it('a broker that forgets loses no entry in silence: at QoS 2 one whose outcome is unknown is a dead letter, and none arrives twice', {
      timeout,
    }, async () => {
      const { dead, restarts, sessionsLost } = await killed({
        store: 'levelStore',
        durability: 'sync',
        broker: 'forgets',
      })
      expect(restarts).toBeGreaterThan(0)
      expect(sessionsLost).toBeGreaterThan(0)
      expect(dead.filter((line) => !line.startsWith('ERR_SESSION_LOST '))).toEqual([])
    })
  })
})
