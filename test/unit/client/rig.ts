/**
 * A client over several named hosts that come, go and refuse as a test says: what tests of reconnecting start from.
 *
 * Unlike `harness.ts` it keeps reconnecting on, stamps dials and events with the time, and speaks 3.1.1 where the test's peer does.
 */

import { expect, onTestFinished } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import type { ClientEvents, ClientOptions, Endpoint } from '../../../src/client/options/index.js'
import type { Platform } from '../../../src/client/platform.js'
import type { MqttError } from '../../../src/errors.js'
import { type Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import type { Transport } from '../../../src/transport/transport.js'
import type { Properties } from '../../../src/wire/packets.js'
import { eventNames } from './event-names.js'
import { agreeable } from './harness.js'
import { quiet } from './incoming.js'

/** What happens to a dial: it fails with the error, never opens, or meets a peer that answers. */
export type Behaviour = Error | 'hang' | Answer

export interface Dial {
  /** Virtual milliseconds. */
  readonly at: number
  readonly host: string
  /** Undefined where nobody was met. */
  readonly peer: ScriptedPeer | undefined
  readonly signal: AbortSignal
}

export interface RigOptions {
  /** Names of the endpoints. Default one, `a`. */
  readonly hosts?: readonly string[]
  /** What the n-th dial (from 1, over all hosts) comes to. Default: an agreeable server. */
  readonly behave?: (host: string, dial: number) => Behaviour
  readonly seed?: number
  /** Version that the peers write. Default 5. */
  readonly version?: 4 | 5
  readonly platform?: Partial<Platform>
}

/** Exactly one, two, four … seconds. */
export const reconnect = {
  backoff: (attempt: number): number => Math.min(30_000, 1000 * 2 ** (attempt - 1)),
}

export class Rig {
  readonly clock = new VirtualClock()
  readonly client: BaseClient
  readonly dials: Dial[] = []
  readonly events: {
    readonly at: number
    readonly type: keyof ClientEvents
    readonly event: unknown
  }[] = []
  /** What is told to the logger. */
  readonly log: string[] = []
  /** What the next dial comes to. */
  behave: (host: string, dial: number) => Behaviour
  readonly #version: 4 | 5

  constructor(
    options: ClientOptions = {},
    {
      hosts = ['a'],
      behave = () => agreeable,
      seed = 1,
      version = 5,
      platform = {},
    }: RigOptions = {},
  ) {
    this.behave = behave
    this.#version = version
    const note = (message: string): void => {
      this.log.push(message)
    }
    this.client = new BaseClient(
      { ...virtualPlatform(this.clock, seed), ...platform },
      hosts.map((host) => this.endpoint(host)),
      { reconnect, logger: { info: note, warn: note, error: note }, ...options },
    )
    for (const type of eventNames)
      this.client.on(type, (event) => this.events.push({ at: this.clock.now(), type, event }))
  }

  /** An endpoint that this rig plays. */
  endpoint(host: string): Endpoint {
    return {
      url: `x://${host}`,
      transport: (endpoint, { signal }) =>
        this.#dial(new URL((endpoint as { url: string }).url).host, signal),
    }
  }

  /** The hosts that were dialled, in order. */
  get hosts(): string[] {
    return this.dials.map((dial) => dial.host)
  }

  /** The peer of the latest dial that met one. */
  get peer(): ScriptedPeer {
    const peer = this.peers.at(-1)
    if (peer === undefined) throw new Error('nobody was met')
    return peer
  }

  /** All that were met, oldest first. */
  get peers(): ScriptedPeer[] {
    return this.dials.flatMap(({ peer }) => peer ?? [])
  }

  /** Streams that are open at this moment. */
  get open(): number {
    return this.peers.filter((peer) => peer.ended === undefined).length
  }

  seen<K extends keyof ClientEvents>(type: K): ClientEvents[K][] {
    return this.events
      .filter((entry) => entry.type === type)
      .map((entry) => entry.event as ClientEvents[K])
  }

  /** Names of the events so far; `state` with the new one. */
  get order(): string[] {
    return this.events.map(({ type, event }) =>
      type === 'state' ? `state ${(event as ClientEvents['state']).state}` : type,
    )
  }

  /** Milliseconds of each wait that was announced. */
  get delays(): number[] {
    return this.seen('reconnecting').map(({ delay }) => delay)
  }

  settle(): Promise<void> {
    return this.clock.settle()
  }

  advance(milliseconds: number): Promise<void> {
    return this.clock.advance(milliseconds)
  }

  /** Connects, which is to work at once. */
  async up(): Promise<this> {
    await Promise.all([this.client.connect(), this.settle()])
    return this
  }

  /** The latest connection breaks, and then so much time passes. */
  async cut(time = 0): Promise<void> {
    this.peer.cut()
    await this.settle()
    if (time > 0) await this.advance(time)
  }

  /** It breaks, and a second later there is the next one. */
  again(): Promise<void> {
    return this.cut(1000)
  }

  /** The server says goodbye. */
  async goodbye(reasonCode: number, properties: Properties = {}): Promise<void> {
    // 0x8C is sent by some and has no place in the table of the standard.
    if (reasonCode === 0x8c) this.peer.sendBytes([0xe0, 1, reasonCode])
    else this.peer.send({ type: 'disconnect', reasonCode, properties })
    this.peer.end()
    await this.settle()
  }

  /** Ends the client; fails when anything is left that could go on. */
  async finish(): Promise<void> {
    const ending = this.client.disconnect({ timeout: 0 })
    await this.advance(1000)
    await ending
  }

  async #dial(host: string, signal: AbortSignal): Promise<Transport> {
    const behaviour = this.behave(host, this.dials.length + 1)
    const meets = typeof behaviour === 'function'
    const [near, far] = memoryPair({
      schedule: (callback, delay) => this.clock.setTimer(callback, delay),
    })
    this.dials.push({
      at: this.clock.now(),
      host,
      signal,
      peer: meets ? new ScriptedPeer(far, this.#version, behaviour) : undefined,
    })
    if (meets) return near
    if (behaviour instanceof Error) throw behaviour
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  }
}

/** A server that refuses. */
export function refusing(reasonCode: number, properties: Properties = {}): Answer {
  return (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent: false, reasonCode, properties }
      : undefined
}

/** An agreeable server with these CONNACK properties. */
export function welcoming(properties: Properties = {}, sessionPresent = false): Answer {
  return (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent, reasonCode: 0, properties }
      : agreeable(packet)
}

/** A host that is not there. */
export const down: Error = Object.assign(new Error('connect ECONNREFUSED'), {
  code: 'ECONNREFUSED',
})

/** The errors that another one stands for: those of an AggregateError, else itself. */
export function causes(error: MqttError | undefined): MqttError[] {
  if (error === undefined) return []
  return error.cause instanceof AggregateError ? (error.cause.errors as MqttError[]) : [error]
}

/** A client that has not connected. At its end no timer may be left. */
export function rigged(options?: ClientOptions, more?: RigOptions): Rig {
  const rig = new Rig(options, more)
  onTestFinished(async () => {
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })
  return rig
}

/** A connected client. */
export const up = (options?: ClientOptions, more?: RigOptions) => rigged(options, more).up()

/** Loses an established connection; what is dialled from then on does this, for so long. */
export async function lost(
  behave: Rig['behave'],
  time: number,
  options?: ClientOptions,
  more?: RigOptions,
): Promise<Rig> {
  const rig = await up(options, more)
  rig.behave = behave
  await rig.cut(time)
  return rig
}

/** What a promise comes to in this time. */
export async function within<T>(rig: Rig, time: number, promise: Promise<T>): Promise<T> {
  quiet(promise)
  await rig.advance(time)
  return promise
}

/** What has happened so far. */
export function story(rig: Rig) {
  return {
    state: rig.client.state,
    /** One letter for each dial. */
    hosts: rig.hosts.join(''),
    times: rig.dials.map(({ at }) => at),
    delays: rig.delays,
    open: rig.open,
    failed: rig.seen('connecterror').map(({ error }) => error.code),
    lost: rig.seen('disconnect').map(({ cause }) => cause?.code),
  }
}

/** A field of each CONNECT. */
export const connects = <K extends string>(rig: Rig, name: K) =>
  rig.peers.map((peer) => (peer.last('connect') as unknown as Record<K, unknown>)[name])
