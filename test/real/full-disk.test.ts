/**
 * A queue and its client whose stores lie on a disk of 8 MB that is really full: a file system in memory, which only root may mount.
 *
 * What the queue has taken arrives, exactly once at QoS 2, in the next process, and the disk has room again.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { Client } from '../../src/client/node.js'
import { openQueue, type Queue } from '../../src/queue/index.js'
import { fileStore } from '../../src/store/file.js'
import type { Store } from '../../src/store/index.js'
import { levelStore } from '../../src/store/level.js'
import { MemoryBroker } from '../../src/testing/broker/index.js'
import { newPlace } from '../unit/store/places.js'
import { eventually } from './waiting.js'

const endpoint = (broker: MemoryBroker, isOnline = () => true) => ({
  url: 'memory://broker',
  transport: ((...given) =>
    isOnline()
      ? broker.dial(...given)
      : Promise.reject(new Error('offline'))) as typeof broker.dial,
})

function mounted(): { readonly place: string } | { readonly reason: string } {
  const place = path.join(newPlace(), 'disk')
  try {
    mkdirSync(place, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'mqwire', place], { stdio: 'pipe' })
  } catch (error) {
    return {
      reason: `a disk of 8 MB cannot be mounted here: ${(error as Error).message.split('\n')[0]}`,
    }
  }
  onTestFinished(() => void execFileSync('umount', ['--lazy', place]))
  return { place }
}

/** A device on that disk, as one process after another. */
class Device {
  readonly arrived: string[] = []
  readonly taken: string[] = []
  online = false
  store!: Store
  client!: Client
  queue!: Queue
  readonly #open: () => Promise<Store>
  readonly #broker: MemoryBroker

  constructor(open: () => Promise<Store>, broker: MemoryBroker) {
    this.#open = open
    this.#broker = broker
  }

  async listen(): Promise<void> {
    const peer = new Client(endpoint(this.#broker), { clientId: 'peer' })
    onTestFinished(() => peer.destroy())
    await peer.connect()
    await peer.listen('out', (message) => void this.arrived.push(message.text().slice(0, 8)), {
      qos: 2,
    })
  }

  async start(): Promise<void> {
    this.store = await this.#open()
    this.client = new Client(
      endpoint(this.#broker, () => this.online),
      {
        clientId: 'device',
        store: this.store,
        firstConnect: 'wait',
        reconnect: { backoff: () => 20 },
      },
    )
    this.client.connect().catch(() => undefined)
    this.queue = await openQueue(this.client, { store: this.store, backoff: () => 100 })
  }

  async stop(): Promise<void> {
    await this.queue.close({ timeout: 0 })
    this.client.destroy()
    await this.store.close()
  }

  /** Publishes until nothing more is taken, however small. */
  async fill(): Promise<void> {
    for (const length of [100_000, 10_000, 1000, 10]) {
      for (let refusals = 0; refusals < 5; ) {
        const n = this.taken.length
        const qos = n % 2 === 0 ? 2 : 1
        const text = `${qos} ${String(n).padStart(6, '0')}`
        const error: unknown = await this.queue
          .publish('out', text + 'x'.repeat(length), { qos })
          .then(
            () => void this.taken.push(text),
            (reason) => reason,
          )
        if (error === undefined) continue
        // LevelDB has a code of its own where it writes itself.
        expect(error).toMatchObject({
          code: 'ERR_STORE',
          outcome: 'not-sent',
          message: expect.stringMatching(/no space left on device/i),
        })
        refusals += 1
      }
    }
  }

  async drained(): Promise<void> {
    this.online = true
    this.client.reconnect().catch(() => undefined)
    await eventually(() => this.queue.size === 0, 'size 0', 60_000)
    await eventually(
      () => new Set(this.arrived).size === this.taken.length,
      'all that was taken',
      60_000,
    )
    expect(this.queue.bytes).toBe(0)
    const once = this.arrived.filter((text) => text.startsWith('2'))
    expect(once.length).toBe(new Set(once).size)
    expect([...new Set(this.arrived)].sort()).toEqual([...this.taken].sort())
  }
}

it.for([
  ['levelStore', levelStore],
  ['fileStore', fileStore],
] as const)(
  'on a disk of 8 MB that is full, over %s: what was taken arrives',
  { timeout: 180_000 },
  async ([, open], { skip }) => {
    const disk = mounted()
    if ('reason' in disk) return skip(disk.reason)
    const broker = new MemoryBroker()
    onTestFinished(() => broker.close())
    const device = new Device(() => open(path.join(disk.place, 'store')), broker)
    await device.listen()
    await device.start()
    await device.fill()
    expect(device.taken.length).toBeGreaterThan(20)
    await device.stop()
    await device.start()
    expect(device.queue.size).toBe(device.taken.length)
    await device.drained()
    // LevelDB gives room back when it is compacted, at most once a second.
    const ending = await eventually(
      () => device.queue.publish('out', '2 ending', { qos: 2 }).catch(() => undefined),
      'room',
    )
    await ending.delivered
    await device.stop()
  },
)
