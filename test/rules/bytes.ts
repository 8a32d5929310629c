/**
 * Packets by hand, and a client on the other end of them: what the tests of the normative statements start from.
 *
 * Everything is hexadecimal text, written and cut by the few lines below, so that a mistake of the codec cannot hide in its own mirror image. Nothing
 * is answered by itself, not even CONNECT. Connections follow each other after `pause` milliseconds of virtual time.
 */

import type { BaseClient } from '../../src/client/client.js'
import { constant } from '../../src/client/options/backoff.js'
import type { ClientOptions } from '../../src/client/options/index.js'
import type { MqttError } from '../../src/errors.js'
import type { ScriptedPeer } from '../../src/testing/scripted-peer.js'
import { frames, pause } from '../unit/client/across.js'
import { failure, World } from '../unit/client/harness.js'
import { block as blockOf, byte, field, frame, hexOf, uint } from '../unit/wire/hex.js'

/** CONNACK without a session and with one. It offers no Subscription Identifiers, so that every byte of a SUBSCRIBE is known. */
export const fresh = '20050000022900'
export const resumed = '20050100022900'

export { byte as u8, field, hexOf as hex, varint } from '../unit/wire/hex.js'
export const u16 = (value: number): string => uint(2, value)
export const u32 = (value: number): string => uint(4, value)

/** UTF-8 bytes without their length. */
export const raw = (value: string): string => Buffer.from(value, 'utf8').toString('hex')

/** A UTF-8 Encoded String. */
export const text = (value: string): string => field(raw(value))

/** A Property Length with what it announces. */
export const block = (...properties: string[]): string => blockOf(properties.join(''))

/** A packet: its first byte, and everything behind the Remaining Length. */
export const packet = (first: number, ...body: string[]): string =>
  frame(byte(first), body.join(''))

/** What stands behind the Remaining Length. */
export function bodyOf(bytes: string): string {
  let at = 2
  while (Number.parseInt(bytes.slice(at, at + 2), 16) >= 128) at += 2
  return bytes.slice(at + 2)
}

/** The first bytes of packets, which say what they are. */
export const firsts = (packets: readonly string[]): string[] =>
  packets.map((bytes) => bytes.slice(0, 2))

/** The Packet Identifier of a packet that begins with it, PUBLISH excepted. */
export const identifierOf = (bytes: string): number =>
  Number.parseInt(bodyOf(bytes).slice(0, 4), 16)

/** CONNACK with properties. */
export const connack = (properties: string, sessionPresent = 0, reasonCode = 0): string =>
  packet(0x20, byte(sessionPresent), byte(reasonCode), block(properties))

/** PUBLISH; `first` says DUP, QoS and RETAIN, an identifier of 0 is left out. */
export const publish = (
  first: number,
  topic: string,
  packetId: number,
  payload: string,
  properties = '',
): string =>
  packet(first, text(topic), packetId === 0 ? '' : u16(packetId), block(properties), raw(payload))

/** SUBACK and UNSUBACK without properties. */
export const suback = (packetId: number, ...codes: number[]): string =>
  packet(0x90, u16(packetId), '00', ...codes.map(byte))
export const unsuback = (packetId: number, ...codes: number[]): string =>
  packet(0xb0, u16(packetId), '00', ...codes.map(byte))

/** PUBACK, PUBREC, PUBREL and PUBCOMP in their shortest form. */
export const puback = (packetId: number, reasonCode = 0): string =>
  acknowledge(0x40, packetId, reasonCode)
export const pubrec = (packetId: number, reasonCode = 0): string =>
  acknowledge(0x50, packetId, reasonCode)
export const pubrel = (packetId: number, reasonCode = 0): string =>
  acknowledge(0x62, packetId, reasonCode)
export const pubcomp = (packetId: number, reasonCode = 0): string =>
  acknowledge(0x70, packetId, reasonCode)

function acknowledge(first: number, packetId: number, reasonCode: number): string {
  return packet(first, u16(packetId), reasonCode === 0 ? '' : byte(reasonCode))
}

/** DISCONNECT with a reason code alone. */
export const goodbye = (reasonCode: number): string => packet(0xe0, byte(reasonCode))

/** A promise whose failure matters only to a caller that awaits it. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/** A client and the bytes of its connection. */
export class Wire {
  readonly world: World
  #peer: ScriptedPeer
  #taken = 0

  constructor(world: World) {
    this.world = world
    this.#peer = world.peer
  }

  get client(): BaseClient {
    return this.world.client
  }

  /** Both sides of the stream have ended. */
  get ended(): boolean {
    return this.#peer.ended !== undefined
  }

  /** The packets that the client sent since the last call, or since this connection was made. */
  take(): string[] {
    const news = frames(this.#peer).slice(this.#taken)
    this.#taken += news.length
    return news.map(hexOf)
  }

  /** Sends bytes to the client in one write, and lets everything happen that follows. */
  async give(...parts: string[]): Promise<void> {
    this.#peer.sendBytes(...parts)
    await this.world.settle()
  }

  /** {@link give}, then {@link take}. */
  async answers(...parts: string[]): Promise<string[]> {
    await this.give(...parts)
    return this.take()
  }

  /** Lets everything happen that needs no time, then {@link take}. */
  async sent(): Promise<string[]> {
    await this.settle()
    return this.take()
  }

  /** Lets everything happen that needs no time. */
  settle(): Promise<void> {
    return this.world.settle()
  }

  advance(milliseconds: number): Promise<void> {
    return this.world.clock.advance(milliseconds)
  }

  /** The connection breaks. */
  async cut(): Promise<void> {
    this.#peer.cut()
    await this.settle()
  }

  /** The next connection is there: its CONNECT is in `take()`, nothing has been answered. */
  async redialled(): Promise<void> {
    const before = this.world.peers.length
    await this.advance(pause)
    if (this.world.peers.length !== before + 1)
      throw new Error(`${this.world.peers.length - before} connections were made, not one`)
    this.#peer = this.world.peer
    this.#taken = 0
  }

  /** The connection breaks, and the next one is accepted; gives what the client sent behind its CONNECT. */
  async again(answer: string = resumed): Promise<string[]> {
    if (!this.ended) await this.cut()
    await this.redialled()
    await this.give(answer)
    return this.take().slice(1)
  }

  /** Subscribes, and grants what was asked for; gives the subscription. The packets are taken. */
  async subscribed(
    filter: string,
    qos: 0 | 1 | 2 = 0,
    options: Parameters<BaseClient['subscribe']>[1] = {},
  ): ReturnType<BaseClient['subscribe']> {
    const promise = quiet(this.client.subscribe(filter, { qos, ...options }))
    await this.settle()
    const request = this.take().at(-1) as string
    await this.give(suback(identifierOf(request), qos))
    return promise
  }

  /** Publishes, quietly. */
  publish(
    qos: 0 | 1 | 2,
    payload: string,
    options: Parameters<BaseClient['publish']>[2] = {},
  ): ReturnType<BaseClient['publish']> {
    return quiet(this.client.publish('t', payload, { qos, ...options }))
  }
}

/** A client that has sent CONNECT. It comes back when its connection is lost. */
export async function dialled(options: ClientOptions = {}): Promise<Wire> {
  const world = new World({ keepAlive: false, reconnect: { backoff: constant(pause) }, ...options })
  world.client.connect().catch(() => undefined)
  await world.settle()
  return new Wire(world)
}

/** A client that is connected; its CONNECT is taken. */
export async function opened(options: ClientOptions = {}, answer: string = fresh): Promise<Wire> {
  const wire = await dialled(options)
  await wire.give(answer)
  if (wire.client.state !== 'connected') throw new Error(`the client is ${wire.client.state}`)
  wire.take()
  return wire
}

/** What a call throws or rejects with; itself rejects when the call does neither. */
export async function refusal(call: () => unknown): Promise<MqttError> {
  return failure((async () => call())())
}
