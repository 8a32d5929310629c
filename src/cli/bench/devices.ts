/**
 * One thread's part of a load of devices: each publishes telemetry and receives commands. The first
 * part has the backend, which does the reverse. In a storm, all devices lose their connections at
 * once; the library connects them again and resumes their sessions.
 */
import { createConnection, type NetConnectOpts, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, type ClientOptions, connect, type EndpointOptions, exponential } from 'mqwire'
import { Ledger, microseconds, type Storm, type Sums } from './ledger.js'
import { Load } from './load.js'
import {
  commandsOf,
  type DevicePlan,
  nearestStorm,
  shareOf,
  stormAt,
  wholeMicroseconds,
} from './plan.js'

/** Seconds that the broker keeps the session of a device that is away. */
const sessionExpiryInterval = 60

/** The devices of one part. */
export class Fleet extends Load {
  // Broker and devices may need a while after a storm at the end.
  protected override readonly patience = 30_000
  declare protected readonly plan: DevicePlan
  /** The newest socket of each device. */
  readonly #sockets = new Map<number, Socket>()
  /** Devices that are not back since the last storm. */
  readonly #away = new Set<number>()
  /** Clients on MQTT 3.1.1, where DISCONNECT cannot end a session. */
  readonly #old = new Set<Client>()
  /** Storms that have begun. */
  #storms = 0
  /** When the last one began, in microseconds. */
  #cutAt = 0

  /** Opens the backend, and the devices at the rate of the plan. */
  override async open(): Promise<void> {
    if (this.part === 0) await this.#backend()
    const devices = shareOf(this.plan.publishers, this.part, this.parts)
    const { signal } = this
    await Promise.all(
      devices.map(async (device) => {
        await sleep((device * 1000) / this.plan.ramp, undefined, { signal })
        await this.#device(device)
      }),
    )
  }

  async #backend(): Promise<void> {
    const { prefix, publishers } = this.plan
    const client = await this.connected()
    await this.listen(client, [`${prefix}/+/telemetry`], this.sums, this.#ledger(this.sums))
    const { commands } = this.sums
    const load = commandsOf(this.plan)
    for (let device = 0; device < publishers; device++)
      this.send(client, load, device, `${prefix}/${device}/command`, commands)
  }

  async #device(device: number): Promise<void> {
    const topic = `${this.plan.prefix}/${device}`
    const { clientId, protocolVersion } = this.dial.options
    const options: ClientOptions = {
      clientId: `${clientId}d${device}`,
      cleanStart: false,
      sessionExpiryInterval: protocolVersion === 4 ? undefined : sessionExpiryInterval,
      // At once, then ever later; the next storm begins again.
      reconnect: { backoff: exponential({ min: 10, max: 5000 }), stableAfter: 0 },
    }
    const client = await this.connected(options, this.#endpoint(device))
    if (client.negotiated?.protocolVersion === 4) this.#old.add(client)
    await this.listen(
      client,
      [`${topic}/command`],
      this.sums.commands,
      this.#ledger(this.sums.commands),
    )
    client.on('connect', ({ sessionPresent }) => {
      if (sessionPresent) return this.#handleBack(device)
      // The session was lost, and the library subscribes again.
      const stop = client.on('packet', ({ packet }) => {
        if (packet.type !== 'suback') return
        stop()
        this.#handleBack(device)
      })
    })
    this.send(client, this.plan, device, `${topic}/telemetry`, this.sums)
  }

  /** The endpoint of a device: its sockets are made here, so that a storm can destroy them. */
  #endpoint(device: number): EndpointOptions {
    const dial = (to: NetConnectOpts): Socket => {
      const socket = createConnection(to)
      this.#sockets.set(device, socket)
      return socket
    }
    return { ...this.dial.endpoint, socket: { agent: { createConnection: dial } } }
  }

  #ledger(sums: Sums): Ledger {
    return new Ledger(sums, (due) => {
      const time = wholeMicroseconds((due - this.start) / 1000)
      const storm = this.sums.storms[nearestStorm(this.plan, time)]
      if (storm !== undefined) storm.received += 1
    })
  }

  /** Begins the next storm when it is due. True until all storms are over. */
  protected override busy(now: number): boolean {
    const { storms } = this.plan
    if (this.#storms < storms && now >= stormAt(this.plan, this.#storms)) this.#cut()
    return this.#storms < storms || this.#away.size > 0
  }

  #cut(): void {
    this.#storms += 1
    this.#cutAt = microseconds()
    for (const [device, socket] of this.#sockets) {
      this.#away.add(device)
      socket.destroy()
    }
  }

  #handleBack(device: number): void {
    if (!this.#away.delete(device)) return
    const { back } = this.sums.storms[this.#storms - 1] as Storm
    back.record(Math.max(1, microseconds() - this.#cutAt))
  }

  /** Disconnects one client, and ends its session. A device that is away is waited for. */
  protected override async leave(client: Client): Promise<void> {
    const isOld = this.#old.has(client)
    await client.drain({ timeout: 1000, sessionExpiryInterval: isOld ? undefined : 0 })
    if (!isOld) return
    const { clientId } = client
    const options = { ...this.dial.options, clientId, reconnect: false, logger: null } as const
    const clean = await connect(this.dial.endpoint, options)
    await clean.disconnect({ timeout: 1000 })
  }
}
