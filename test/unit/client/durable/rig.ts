/** A device whose process can die: a client with its session in a store, and a queue in the same store. Each `start` is a process. */
import { onTestFinished } from 'vitest'
import type { BaseClient } from '../../../../src/client/client.js'
import type { ClientOptions, PublishOptions } from '../../../../src/client/options/index.js'
// The client loads it when it needs it: loaded before, that takes no time.
import '../../../../src/client/durable/keeper.js'
import { openQueue, type Queue, type QueueOptions } from '../../../../src/queue/index.js'
import type { Store, StoreOperation } from '../../../../src/store/index.js'
import { VirtualWorld } from '../../../../src/testing/virtual-world.js'
import { MapStore } from '../../queue/rig.js'

export const url = 'mqtt://broker.example'

/** Lets everything happen that takes no time. */
export async function settled(turns = 12): Promise<void> {
  for (let turn = 0; turn < turns; turn++)
    await new Promise<void>((resolve) => setImmediate(resolve))
}

/** What a promise comes to, its error too. */
export const outcome = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: unknown) => error)

export const fail = (): never => {
  throw new Error('EIO')
}

/** Whether something is written under such a key. */
export const puts = (operations: readonly StoreOperation[], part: string): boolean =>
  operations.some(({ type, key }) => type === 'put' && key.includes(part))

/** A world with one device and one peer of it. */
export class Device {
  readonly world = new VirtualWorld()
  /** What the peer got. */
  readonly arrived: string[] = []
  /** What the handler of the device got. */
  readonly seen: {
    readonly id: string | undefined
    readonly text: string
    readonly redelivered: boolean
  }[] = []
  /** Packets of the device, without those of the connection itself. */
  readonly packets: string[] = []
  store: Store = new MapStore()
  /** What is done with a message; undefined: nothing. */
  handle: ((text: string, client: BaseClient) => Promise<void> | void) | undefined
  /** Called with each packet of the device, before it is read or written. */
  onPacket: ((packet: string, client: BaseClient) => unknown) | undefined
  /** Every client that was made. */
  readonly clients: BaseClient[] = []
  readonly #heard: [string, unknown][] = []

  /** A device with its peer, in a world that ends with the test. */
  static async opened(): Promise<Device> {
    const device = new Device()
    onTestFinished(() => device.world.close())
    await device.peer()
    return device
  }

  /** The peer: it gets what comes to `out/#`. */
  async peer(clientId = 'peer'): Promise<BaseClient> {
    const peer = await this.world.connect(url, { clientId })
    if (clientId === 'peer')
      await peer.listen('out/#', (message) => void this.arrived.push(message.text()), { qos: 2 })
    return peer
  }

  /** A device with its peer, and its first process. */
  static async started(options?: ClientOptions) {
    const device = await Device.opened()
    return { device, ...(await device.start(options)) }
  }

  /** Lets so much time pass, and all that follows from it. */
  async pass(milliseconds: number): Promise<void> {
    await this.world.pass(milliseconds)
    await settled()
  }

  /** A client that has not connected. */
  made(options: ClientOptions = {}): BaseClient {
    const { Client } = this.world
    return new Client(url, { clientId: 'device', store: this.store, ...options })
  }

  /** A queue in the same store. */
  queue(client: BaseClient, options: Partial<Omit<QueueOptions, 'store'>> = {}): Promise<Queue> {
    return openQueue(client, { store: this.store, ...options })
  }

  /** Starts a client. */
  async client(options: ClientOptions = {}): Promise<BaseClient> {
    const note = (name: string) => (event: unknown) => void this.#heard.push([name, event])
    const names = ['recovered', 'connect', 'storecorrupt', 'sessionlost', 'error'] as const
    const on = Object.fromEntries(names.map((name) => [name, note(name)]))
    const client = this.made({ on, ...options })
    this.clients.push(client)
    client.on('packet', ({ direction, packet }) => {
      const { type } = packet
      if (!type.startsWith('pu')) return
      const {
        packetId,
        dup,
        reasonCode = 0,
      } = packet as unknown as Record<string, number | undefined>
      const text = `${direction} ${type} ${packetId ?? 0}${dup ? ' dup' : ''}${reasonCode > 0 ? ` 0x${reasonCode.toString(16)}` : ''}`
      this.packets.push(text)
      this.onPacket?.(text, client)
    })
    await client.connect()
    return client
  }

  /** Starts a process: a client that handles what comes to `in/#`, and a queue. */
  async start(
    options?: ClientOptions,
  ): Promise<{ readonly client: BaseClient; readonly queue: Queue }> {
    const { store } = this
    const client = await this.client(options)
    const handle = async (message: {
      id: string | undefined
      text(): string
      redelivered: boolean
    }): Promise<void> => {
      const text = message.text()
      this.seen.push({ id: message.id, text, redelivered: message.redelivered })
      await this.handle?.(text, client)
    }
    await client.listen('in/#', handle, { qos: 2 })
    return { client, queue: await openQueue(client, { store }) }
  }

  /** The process dies: nothing more of it reaches the store, or the network. */
  kill(client: BaseClient): void {
    if (this.store instanceof MapStore) this.store = this.store.copy()
    client.destroy()
  }

  /** Acts, and dies at a packet that begins so, at the first or a later one. Forgets the packets so far. */
  async dying(
    client: BaseClient,
    at: string,
    act: () => Promise<unknown>,
    times = 1,
  ): Promise<void> {
    let left = times
    this.onPacket = (packet) => packet.startsWith(at) && --left === 0 && this.kill(client)
    await outcome(act())
    await settled()
    this.onPacket = undefined
    this.packets.length = 0
  }

  /** The broker forgets the session of the device. */
  async loseSession(): Promise<void> {
    const ending = { clientId: 'device', cleanStart: true, sessionExpiryInterval: 0 }
    await (await this.world.connect(url, ending)).disconnect()
  }

  /** The same store, where it is one in memory. */
  get map(): MapStore {
    return this.store as MapStore
  }

  /** Packets that begin so. */
  got(start: string): string[] {
    return this.packets.filter((packet) => packet.startsWith(start))
  }

  /** Texts that the handler got. */
  get texts(): string[] {
    return this.seen.map(({ text }) => text)
  }

  /** What was said by events of this name. */
  events(name: string): unknown[] {
    return this.#heard.filter(([each]) => each === name).map(([, event]) => event)
  }

  /** Keys of publishes in flight, or of incoming messages. */
  keys(kind: 'o' | 'i'): string[] {
    return [...this.map.content.keys()].filter((key) => key.startsWith(`c/device/${kind}/`))
  }

  /** Keys of entries of queues, and of publishes in flight. */
  get left(): string[] {
    return [...this.map.content.keys()].filter((key) => /\/[eo]\//.test(key))
  }
}

/** What was published before the process died, with which options of the client, and at which packet it died. */
interface Interrupted {
  readonly texts?: string[]
  readonly options?: ClientOptions
  readonly at?: string
  readonly times?: number
}

/** A device whose process died when it had sent its publishes and nothing was acknowledged. */
export async function interrupted(
  publish: PublishOptions,
  { texts = ['one'], options, at = `out publish ${texts.length}` }: Interrupted = {},
) {
  const device = await Device.opened()
  // Without a subscription: nothing else takes an identifier.
  const client = await device.client(options)
  await device.dying(client, at, () =>
    Promise.all(texts.map((text) => client.publish('out/1', text, publish))),
  )
  return device
}

/** The same for the entries of a queue. */
export async function interruptedEntries(
  publish: PublishOptions,
  { texts = ['one'], times = texts.length, at = 'out publish' }: Interrupted = {},
) {
  const device = await Device.opened()
  const { client, queue } = await device.start()
  await device.dying(
    client,
    at,
    () => Promise.all(texts.map((text) => queue.publish('out/1', text, publish))),
    times,
  )
  await queue.close({ timeout: 0 })
  return device
}
