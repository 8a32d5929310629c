/**
 * A device whose process can die: a client with its session in a store, and a queue in the same store.
 *
 * Each `start` is a process that finds what is in `store`. What a process saw is kept outside of it.
 */
import type { ClientOptions } from '../../../../src/client/api/index.js'
import type { BaseClient } from '../../../../src/client/client.js'
// The client loads it when it needs it: loaded before, that takes no time.
import '../../../../src/client/durable/keeper.js'
import { openQueue, type Queue } from '../../../../src/queue/index.js'
import type { Store } from '../../../../src/store/index.js'
import { VirtualWorld } from '../../../../src/testing/virtual-world.js'
import { MapStore } from '../../queue/rig.js'

export const url = 'mqtt://broker.example'

/** What a handler saw. */
export interface Seen {
  readonly id: string | undefined
  readonly text: string
  readonly redelivered: boolean
}

/** One process. */
export interface Process {
  readonly client: BaseClient
  readonly queue: Queue
  readonly store: Store
}

/** Lets everything happen that takes no time. */
export async function settled(turns = 12): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** The process dies: nothing more of it reaches the store, or the network. */
export function kill(device: Device, client: BaseClient): void {
  if (device.store instanceof MapStore) device.store = device.store.copy()
  client.destroy()
}

/** A world with one device and one peer of it. */
export class Device {
  readonly world = new VirtualWorld()
  /** What the peer got. */
  readonly arrived: string[] = []
  /** What the handler of the device got. */
  readonly seen: Seen[] = []
  /** Packets of the device, without those of the connection itself. */
  readonly packets: string[] = []
  store: Store = new MapStore()
  /** What is done with a message; undefined: nothing. */
  handle: ((text: string, client: BaseClient) => Promise<void> | void) | undefined
  /** Called with each packet of the device, before it is read or written. */
  onPacket: ((packet: string, client: BaseClient) => void) | undefined
  /** Every client that was made. */
  readonly clients: BaseClient[] = []
  readonly #told: [string, unknown][] = []

  /** The peer: it gets what comes to `out/#`. */
  async peer(): Promise<BaseClient> {
    const peer = await this.world.connect(url, { clientId: 'peer' })
    await peer.listen('out/#', (message) => void this.arrived.push(message.text()), { qos: 2 })
    return peer
  }

  /** Starts a client. */
  async client(options: ClientOptions = {}): Promise<BaseClient> {
    const note = (name: string) => (event: unknown) => void this.#told.push([name, event])
    const names = ['recovered', 'connect', 'storecorrupt', 'sessionlost', 'error'] as const
    const on = Object.fromEntries(names.map((name) => [name, note(name)]))
    const client = new this.world.Client(url, { clientId: 'device', store: this.store, on, ...options })
    this.clients.push(client)
    client.on('packet', ({ direction, packet }) => {
      const { type } = packet
      if (!type.startsWith('pu')) return
      const { packetId, dup, reasonCode } = packet as { packetId?: number; dup?: boolean; reasonCode?: number }
      const text = `${direction} ${type} ${packetId ?? 0}${dup ? ' dup' : ''}${reasonCode ? ` 0x${reasonCode.toString(16)}` : ''}`
      this.packets.push(text)
      this.onPacket?.(text, client)
    })
    await client.connect()
    return client
  }

  /** Starts a process: a client that handles what comes to `in/#`, and a queue. */
  async start(options?: ClientOptions): Promise<Process> {
    const { store } = this
    const client = await this.client(options)
    await client.listen(
      'in/#',
      async (message) => {
        const text = message.text()
        this.seen.push({ id: message.id, text, redelivered: message.redelivered })
        await this.handle?.(text, client)
      },
      { qos: 2 },
    )
    return { client, queue: await openQueue(client, { store }), store }
  }

  /** What was told by events of this name. */
  events(name: string): unknown[] {
    return this.#told.filter(([each]) => each === name).map(([, event]) => event)
  }

  /** Keys of publishes in flight, or of incoming messages. */
  keys(kind: 'o' | 'i'): string[] {
    return [...(this.store as MapStore).content.keys()].filter((key) => key.startsWith(`c/device/${kind}/`))
  }
}
