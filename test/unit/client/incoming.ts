/**
 * What the suites about receiving share: packets as a broker sends them, acknowledgements as a broker sees them, and readers that note what
 * they get.
 */

import type {
  ClientOptions,
  Filters,
  Message,
  SubscribeOptions,
  Subscription,
} from '../../../src/client/options/index.js'
import { deferred } from '../../../src/common/abort.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { encode, type PacketInput } from '../../../src/wire/encode.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { willing } from './across.js'
import { agreeable, connected, times, type World } from './harness.js'

const utf8 = new TextEncoder()

/** A PUBLISH of the broker. QoS 1 unless said otherwise when there is an identifier, QoS 0 when there is none. */
export function publish(
  topic: string,
  text: string,
  packetId?: number,
  rest: Partial<Omit<PublishPacket, 'type'>> = {},
): PacketInput {
  return {
    type: 'publish',
    topic,
    payload: utf8.encode(text),
    qos: packetId === undefined ? 0 : 1,
    packetId,
    ...rest,
  }
}

/** `count` QoS 1 messages in a row; identifiers and texts count up from `from`. */
export function series(topic: string, count: number, from = 1): PacketInput[] {
  return times(count, (index) => publish(topic, String(from + index), from + index))
}

/** `count` QoS 0 messages in a row, with texts that count up from `from`. */
export function quick(topic: string, count: number, from = 1): PacketInput[] {
  return times(count, (index) => publish(topic, String(from + index)))
}

/** Says yes to everything, and releases QoS 2 messages. */
export const obliging: Answer = (packet) =>
  packet.type === 'pubrec' && packet.reasonCode < 0x80
    ? { type: 'pubrel', packetId: packet.packetId, reasonCode: 0 }
    : agreeable(packet)

/** A connected client of a broker that says yes to everything. */
export const agreed = (options: ClientOptions = {}, answer: Answer = agreeable): Promise<World> =>
  connected(options, answer)

/** A connected client whose CONNACK tells of a session. */
export const resumed = (options: ClientOptions = {}): Promise<World> =>
  connected({ clientId: 'c', cleanStart: false, ...options }, willing(true))

/** Subscribes and waits for the grant. */
export async function subscribe(
  world: World,
  filters: Filters,
  options?: SubscribeOptions,
): Promise<Subscription> {
  const promise = quiet(world.client.subscribe(filters, options))
  await world.settle()
  return promise
}

type Request = 'subscribe' | 'unsubscribe'

/** Answers requests of this type with these codes, and everything else as `base` does. */
export function answering(
  request: Request,
  reasonCodes: number[],
  base: Answer = agreeable,
): Answer {
  const type = request === 'subscribe' ? 'suback' : 'unsuback'
  return (packet) =>
    packet.type === request ? { type, packetId: packet.packetId, reasonCodes } : base(packet)
}

/** Answers the latest request of this type. */
export function answer(world: World, request: Request, ...reasonCodes: number[]): Promise<void> {
  const type = request === 'subscribe' ? 'suback' : 'unsuback'
  return world.send({ type, packetId: world.peer.last(request).packetId, reasonCodes })
}

/** Filters of each SUBSCRIBE of the latest connection. */
export const subscribes = ({ peer }: World): string[] =>
  peer
    .all('subscribe')
    .map(({ subscriptions }) => subscriptions.map(({ filter }) => filter).join(' '))

/** Filters of each UNSUBSCRIBE of the latest connection. */
export const unsubscribes = ({ peer }: World): string[] =>
  peer.all('unsubscribe').map(({ filters }) => filters.join(' '))

/** Acknowledgements that the broker got, in order, as `puback 1` or `pubrec 2 0x80`. */
export function acks(world: World): string[] {
  return world.peer.received.flatMap((packet) => {
    if (packet.type !== 'puback' && packet.type !== 'pubrec' && packet.type !== 'pubcomp') return []
    return [
      `${packet.type} ${packet.packetId}${packet.reasonCode === 0 ? '' : ` 0x${packet.reasonCode.toString(16)}`}`,
    ]
  })
}

/** The same, once everything has happened that happens by itself. */
export async function acked(world: World): Promise<string[]> {
  await world.settle()
  return acks(world)
}

/** `puback from … puback to`. */
export function pubacks(from: number, to: number): string[] {
  return times(to - from + 1, (index) => `puback ${from + index}`)
}

/** What somebody read, and how it ended. */
export interface Reading {
  readonly texts: string[]
  readonly messages: Message[]
  readonly end: { state: 'running' | 'done' | 'failed'; error: unknown }
}

/** Reads everything, without delay. */
export function read(subscription: AsyncIterable<Message>): Reading {
  const reading: Reading = { texts: [], messages: [], end: { state: 'running', error: undefined } }
  const run = async (): Promise<void> => {
    for await (const message of subscription) {
      reading.messages.push(message)
      reading.texts.push(message.text())
    }
  }
  run().then(
    () => Object.assign(reading.end, { state: 'done' }),
    (error: unknown) => Object.assign(reading.end, { state: 'failed', error }),
  )
  return reading
}

/** A message that is known to be there. */
export function taken(subscription: Subscription): Message {
  const message = subscription.read()
  if (message === undefined) throw new Error('no message waits')
  return message
}

/** Everything that waits, as texts, without acknowledging the last. */
export function takenTexts(subscription: Subscription): string[] {
  const texts: string[] = []
  for (let message = subscription.read(); message !== undefined; message = subscription.read())
    texts.push(message.text())
  return texts
}

/** A promise that a test settles. */
export interface Gate {
  readonly promise: Promise<void>
  open(): Promise<void>
  fail(error: unknown): void
}

export function gate(): Gate {
  const { promise, resolve, reject } = deferred<void>()
  const open = (): Promise<void> => {
    resolve()
    return promise
  }
  return { promise: quiet(promise), open, fail: reject }
}

/** The reason code of the DISCONNECT that the client sent; undefined when there was none. */
export function goodbyeCode(world: World): number | undefined {
  return world.peer.all('disconnect').at(-1)?.reasonCode
}

/** Bytes of several packets, for one write of more than encodes comfortably by hand. */
export function bytesOf(packets: readonly PacketInput[]): Uint8Array {
  const parts = packets.map((packet) => encode(packet))
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** The same promise; that nobody awaits it yet is no unhandled rejection. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}
