/**
 * The connections of simulated devices: each device is a client of its own.
 *
 * Needs timers and `mqwire` only, so that it also runs in a browser.
 */
import {
  type Client,
  type ClientOptions,
  connect,
  type EndpointOptions,
  type Message,
  type PublishOptions,
} from 'mqwire'
import { validateTopicName } from 'mqwire/wire'
import { answered, assertGranted, Ending, endOf } from '../common/ending.js'
import type { DeviceMessage, SimulatedDevice } from './device.js'

/** Connections that are opened at a time. */
const atOnce = 32

/** Publishes of one device that may be on their way; more are held back. */
const mostPending = 100

/** Publishes of all devices that may be on their way. */
const mostPendingOfAll = 100_000

/** Messages of one device between two looks at the others. */
const mostInTurn = 100

/** Milliseconds between two looks at what is due. */
const tick = 10

/** Milliseconds that devices may keep the event loop busy. */
const turn = 50

/** Bytes of the largest command: they are short, and there are many devices. */
const maximumPacketSize = 65_536

interface Link {
  readonly device: SimulatedDevice
  client: Client | undefined
  isDialling: boolean
  /** The connection has ended for good. */
  isGone: boolean
  pending: number
}

/** How a fleet runs. */
export interface FleetOptions {
  readonly endpoint: EndpointOptions
  readonly options: ClientOptions
  /** Simulated seconds in one second. */
  readonly speed: number
  readonly signal: AbortSignal
  /** Called now and then, to show the counts. */
  readonly onProgress: () => void
}

function willOf({ will }: SimulatedDevice): ClientOptions['will'] {
  return will && { topic: will.topic, payload: will.payload, qos: will.qos, retain: will.retain }
}

/** Devices that are connected. */
export class DeviceFleet {
  readonly #links: readonly Link[]
  readonly #with: FleetOptions
  readonly #stop = new AbortController()
  readonly #signal: AbortSignal
  #start: number | undefined
  #pending = 0
  #gone = 0
  #isClosing = false
  /** Devices that have connected. */
  connected = 0
  /** Messages that were published according to their QoS. */
  published = 0
  /** Messages that were not published, because too many were unacknowledged or nothing was connected. */
  heldBack = 0
  /** Commands that changed a state, and those that were refused. */
  commands = 0
  refused = 0
  /** Publishes that failed, and connections that ended for good. */
  failures = 0
  /** The first error of these. */
  problem: unknown

  constructor(devices: readonly SimulatedDevice[], given: FleetOptions) {
    this.#links = devices.map((device) => ({
      device,
      client: undefined,
      isDialling: false,
      isGone: false,
      pending: 0,
    }))
    this.#with = given
    this.#signal = AbortSignal.any([given.signal, this.#stop.signal])
  }

  /** Connects all devices. @throws Ending that names the first device that could not */
  async open(): Promise<void> {
    const waiting = this.#links.values()
    const work = async (): Promise<void> => {
      for (const link of waiting) {
        await this.#dial(link, this.#with.options).catch((error: unknown) => {
          this.#signal.throwIfAborted()
          const { end, text } = endOf(error)
          throw new Ending(end, `${link.device.id}: ${text}`)
        })
        this.#with.onProgress()
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
  }

  /** Publishes what is due, until this many simulated milliseconds. @throws Ending when no device is left */
  async run(until: number): Promise<void> {
    const { speed, signal, onProgress } = this.#with
    this.#start = performance.now()
    while (!signal.aborted && !this.#stop.signal.aborted) {
      const now = Math.min(this.#now(), until)
      await this.#publishDue(now)
      onProgress()
      if (now >= until) return
      await new Promise((resolve) => setTimeout(resolve, Math.min(tick, (until - now) / speed)))
      if (this.#gone < this.#links.length) continue
      const { end, text } = endOf(this.problem)
      throw new Ending(end, `no device is connected any more: ${text}`)
    }
  }

  /** Disconnects all devices. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#stop.abort()
    const timeout = this.#with.signal.aborted ? 1000 : 2000
    const clients = this.#links.flatMap(({ client }) => client ?? [])
    await Promise.allSettled(clients.map((client) => client.disconnect({ timeout })))
  }

  /** Simulated milliseconds since the beginning. */
  #now(): number {
    return this.#start === undefined ? 0 : (performance.now() - this.#start) * this.#with.speed
  }

  async #dial(link: Link, options: ClientOptions): Promise<void> {
    const { device } = link
    this.#signal.throwIfAborted()
    const client = await connect(this.#with.endpoint, {
      maximumPacketSize,
      ...options,
      clientId: device.id,
      will: willOf(device),
      signal: this.#signal,
    })
    if (this.#isClosing) return client.destroy()
    link.client = client
    this.connected += 1
    client.closed.then((error) => {
      if (link.client !== client || this.#isClosing) return
      link.client = undefined
      this.connected -= 1
      this.#lose(link, error)
    })
    if (device.commands.size > 0) await this.#listen(link, client)
    if (link.client !== client) return
    const greet = (): void => {
      for (const message of device.connected(this.#now())) this.#send(link, message)
    }
    client.on('connect', greet)
    greet()
  }

  async #listen(link: Link, client: Client): Promise<void> {
    try {
      const listening = client.listen(
        [...link.device.commands.keys()],
        (message) => this.#handle(link, message),
        { qos: 1, buffer: 100 },
      )
      const { granted } = await answered(listening, this.#signal)
      assertGranted(granted)
    } catch (error) {
      // Otherwise a fault has cut the connection meanwhile.
      if (link.client === client) throw error
    }
  }

  async #publishDue(now: number): Promise<void> {
    let since = performance.now()
    for (const link of this.#links) {
      const { device } = link
      for (let left = mostInTurn; left > 0; left--) {
        const message = device.poll(now)
        if (message === undefined) break
        this.#send(link, message)
      }
      if (device.losesConnection && device.due > now) this.#follow(link, now)
      if (performance.now() - since < turn) continue
      await new Promise((resolve) => setTimeout(resolve))
      if (this.#signal.aborted) return
      since = performance.now()
    }
  }

  /** Takes the device off the network, or brings it back. */
  #follow(link: Link, now: number): void {
    const { client, device } = link
    const isOffline = device.isOffline(now)
    if (isOffline && client !== undefined) {
      link.client = undefined
      this.connected -= 1
      // Without DISCONNECT, as by a cut cable: the broker publishes the will.
      client.destroy()
    } else if (!isOffline && client === undefined && !link.isDialling && !link.isGone) {
      link.isDialling = true
      this.#dial(link, { ...this.#with.options, firstConnect: 'wait' })
        .catch((error: unknown) => {
          if (!this.#signal.aborted) this.#lose(link, error)
        })
        .finally(() => {
          link.isDialling = false
        })
    }
  }

  #handle(link: Link, { topic, payload, properties }: Message): void {
    const result = link.device.handle(topic, new TextDecoder().decode(payload), this.#now())
    if (result === undefined) return
    if (result.problem === undefined) this.commands += 1
    else this.refused += 1
    for (const message of result.messages) this.#send(link, message)
    const { responseTopic, correlationData } = properties
    if (responseTopic === undefined || validateTopicName(responseTopic) !== undefined) return
    // Topics of the broker itself are not for answers.
    if (responseTopic.startsWith('$')) return
    this.#publish(link, responseTopic, result.reply, {
      qos: 1,
      properties: {
        correlationData,
        ...(result.problem !== undefined && { userProperties: [['error', 'REFUSED']] as const }),
      },
    })
  }

  #send(link: Link, { topic, payload, qos, retain, contentType }: DeviceMessage): void {
    const hasProperties = link.client?.negotiated?.protocolVersion === 5
    this.#publish(link, topic, payload, {
      qos,
      retain,
      ...(hasProperties && contentType !== undefined && { properties: { contentType } }),
    })
  }

  #publish(link: Link, topic: string, payload: string | Uint8Array, options: PublishOptions): void {
    const { client } = link
    const isFull = link.pending >= mostPending || this.#pending >= mostPendingOfAll
    if (client === undefined || isFull || (options.qos === 0 && client.state !== 'connected')) {
      this.heldBack += 1
      return
    }
    link.pending += 1
    this.#pending += 1
    const done = (): void => {
      link.pending -= 1
      this.#pending -= 1
    }
    client.publish(topic, payload, { flush: true, ...options }).then(
      () => {
        done()
        this.published += 1
      },
      (error: unknown) => {
        done()
        // What a cut connection had not sent is held back, as on a real device.
        if (link.client !== client) this.heldBack += 1
        else if (!this.#isClosing) this.#fail(error)
      },
    )
  }

  #lose(link: Link, error: unknown): void {
    link.isGone = true
    this.#gone += 1
    this.#fail(error)
  }

  #fail(error: unknown): void {
    this.failures += 1
    this.problem ??= error
  }
}
