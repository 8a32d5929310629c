/**
 * A client against a scripted peer under virtual time: what every client test starts from.
 *
 * `connected()` answers CONNECT and nothing else, unless the test says so: SUBACK, PUBACK and the rest are the test's to send.
 */

import { expect } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import type { ClientEvents, ClientOptions } from '../../../src/client/options/index.js'
import type { Platform } from '../../../src/client/platform.js'
import type { MqttError } from '../../../src/errors.js'
import { type Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { type MemoryOptions, memoryPair } from '../../../src/transport/memory.js'
import type { Transport } from '../../../src/transport/transport.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import type { Properties } from '../../../src/wire/packets.js'
import { eventNames } from './event-names.js'

/** Dials the endpoint of this index; `open` makes the usual pair. */
export type Dialling = (
  index: number,
  open: () => Transport,
  signal: AbortSignal,
) => Transport | Promise<Transport>

type Outcome<T> =
  | { state: 'pending' }
  | { state: 'fulfilled'; value: T }
  | { state: 'rejected'; error: unknown }

/** Everything of one test. */
export class World {
  readonly clock = new VirtualClock()
  readonly client: BaseClient
  /** One for each time the client dialled, oldest first. */
  readonly peers: ScriptedPeer[] = []
  /** Every event, in order. */
  readonly events: { readonly type: keyof ClientEvents; readonly event: unknown }[] = []
  answer: Answer | undefined
  /** What the peers of later connections speak. */
  version: 4 | 5

  /** `dial` stands between the client and the pair: it may fail, wait, or give a transport of its own. */
  constructor(
    options: ClientOptions = {},
    memory: MemoryOptions = {},
    endpoints = 1,
    dial: Dialling = (_index, open) => open(),
    platform: Partial<Platform> = {},
  ) {
    this.version = isPlain(options) && options.protocolVersion === 4 ? 4 : 5
    const endpoint = (index: number) => ({
      url: `memory://peer-${index}`,
      transport: async (_endpoint: unknown, { signal }: { signal: AbortSignal }) =>
        dial(index, () => this.#open(memory), signal),
    })
    this.client = new BaseClient(
      { ...virtualPlatform(this.clock), ...platform },
      Array.from({ length: endpoints }, (_, index) => endpoint(index)),
      // Most tests are about one connection; those about several say so.
      isPlain(options) ? { reconnect: false, ...options } : options,
    )
    for (const type of eventNames)
      this.client.on(type, (event) => this.events.push({ type, event }))
  }

  /** Connects, to a server that answers so. */
  async up(answer = this.answer): Promise<this> {
    this.answer = answer
    await Promise.all([this.client.connect(), this.settle()])
    return this
  }

  /** The peer of the latest connection. */
  get peer(): ScriptedPeer {
    const peer = this.peers.at(-1)
    if (peer === undefined) throw new Error('the client has not dialled')
    return peer
  }

  /** Events of one type. */
  seen<K extends keyof ClientEvents>(type: K): ClientEvents[K][] {
    return this.events
      .filter((entry) => entry.type === type)
      .map((entry) => entry.event as ClientEvents[K])
  }

  /** Lets everything happen that happens by itself. */
  settle(): Promise<void> {
    return this.clock.settle()
  }

  /** Sends from the peer, and lets it arrive. */
  async send(...packets: PacketInput[]): Promise<void> {
    this.peer.send(...packets)
    await this.settle()
  }

  /** Sends bytes from the peer, and lets them arrive. */
  async sendBytes(...parts: (Uint8Array | readonly number[] | string)[]): Promise<void> {
    this.peer.sendBytes(...parts)
    await this.settle()
  }

  /** What a promise has come to by now. */
  async outcome<T>(promise: Promise<T>): Promise<Outcome<T>> {
    let result: Outcome<T> = { state: 'pending' }
    promise.then(
      (value) => (result = { state: 'fulfilled', value }),
      (error: unknown) => (result = { state: 'rejected', error }),
    )
    await this.settle()
    return result
  }

  #open(memory: MemoryOptions): Transport {
    const [near, far] = pairOn(this.clock, memory)
    this.peers.push(new ScriptedPeer(far, this.version, (packet) => this.answer?.(packet)))
    return near
  }
}

/** Both ends of a connection under this clock. */
export const pairOn = (clock: VirtualClock, memory: MemoryOptions = {}): [Transport, Transport] =>
  memoryPair({ ...memory, schedule: (callback, delay) => clock.setTimer(callback, delay) })

// What is no object of options goes through as it is.
function isPlain(options: unknown): boolean {
  return typeof options === 'object' && options !== null && !Array.isArray(options)
}

/** What a server that says yes to everything answers. */
export const agreeable: Answer = (packet) => {
  if (packet.type === 'connect')
    return { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} }
  if (packet.type === 'pingreq') return { type: 'pingresp' }
  const { packetId } = packet as { packetId: number }
  if (packet.type === 'subscribe')
    return { type: 'suback', packetId, reasonCodes: packet.subscriptions.map(({ qos }) => qos) }
  if (packet.type === 'unsubscribe')
    return { type: 'unsuback', packetId, reasonCodes: packet.filters.map(() => 0) }
  if (packet.type === 'publish' && packet.qos > 0)
    return { type: packet.qos === 1 ? 'puback' : 'pubrec', packetId, reasonCode: 0 }
  return packet.type === 'pubrel' ? { type: 'pubcomp', packetId, reasonCode: 0 } : undefined
}

/** What a server answers that only accepts the connection. */
export function accepting(properties: Properties = {}, sessionPresent = false): Answer {
  return (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent, reasonCode: 0, properties }
      : undefined
}

/** A connected client. */
export const connected = (
  options: ClientOptions = {},
  answer: Answer = accepting(),
  memory: MemoryOptions = {},
): Promise<World> => new World(options, memory).up(answer)

/** What a promise rejects with. Listens at once, so that it may be awaited later; itself rejects when the promise fulfils. */
export function failure(promise: PromiseLike<unknown>): Promise<MqttError> {
  const outcome = Promise.resolve(promise).then(
    (value) => {
      throw new Error(`it was to reject, and fulfilled with ${String(value)}`)
    },
    (error: unknown) => error as MqttError,
  )
  outcome.catch(() => undefined)
  return outcome
}

/** What a call throws. */
export function thrown(call: () => unknown): MqttError {
  try {
    call()
  } catch (error) {
    return error as MqttError
  }
  throw new Error('it was to throw')
}

/** An error with this code, and of this option where one is named. */
export const coded = (code: string, option?: string): Error =>
  expect.objectContaining(option === undefined ? { code } : { code, option }) as Error

/** What this gives for 0, 1, 2 … */
export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index))
