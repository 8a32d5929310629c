/**
 * What the suites about several connections share: losing one, coming back, and what each of them carried, in short and byte by byte.
 *
 * Connections follow each other after `pause` milliseconds of virtual time. The server is the test's, packet by packet, but for `keeps()` and
 * `forgets()`: answers to CONNECT and nothing else.
 */

import { constant } from '../../../src/client/options/backoff.js'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import type { ClientPacket, Properties } from '../../../src/wire/packets.js'
import { accepting, agreeable, connected, type World } from './harness.js'

/** Milliseconds from a lost connection to the next one. */
export const pause = 10

const decoder = new TextDecoder()

/** A client that comes back after `pause`. */
export const lasting: ClientOptions = { keepAlive: false, reconnect: { backoff: constant(pause) } }

/** A connected client that comes back. */
export function steady(options: ClientOptions = {}, answer: Answer = accepting()): Promise<World> {
  return connected({ ...lasting, ...options }, answer)
}

/** Accepts, and has the session. */
export const keeps = (properties: Properties = {}): Answer => accepting(properties, true)

/** Accepts, and has no session. */
export const forgets = (properties: Properties = {}): Answer => accepting(properties, false)

/** Says yes to everything, and has the session or not. */
export function willing(sessionPresent: boolean, properties: Properties = {}): Answer {
  return (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent, reasonCode: 0, properties }
      : agreeable(packet)
}

/** Loses the connection. */
export async function lose(world: World): Promise<void> {
  world.peer.cut()
  await world.settle()
}

/** The next connection, after the pause. */
export async function comeBack(world: World, answer: Answer = keeps()): Promise<ScriptedPeer> {
  const before = world.peers.length
  world.answer = answer
  await world.clock.advance(pause)
  if (world.peers.length !== before + 1)
    throw new Error(`${world.peers.length - before} connections were made, not one`)
  return world.peer
}

/** Loses the connection, and gets the next one. */
export async function again(world: World, answer: Answer = keeps()): Promise<ScriptedPeer> {
  await lose(world)
  return comeBack(world, answer)
}

/** A packet in short: `publish a=text q1 #1 dup`, `pubrel #1`, `subscribe a,b #2`. */
export function short(packet: ClientPacket): string {
  switch (packet.type) {
    case 'publish': {
      const id = packet.packetId === undefined ? '' : ` #${packet.packetId}`
      return `publish ${packet.topic}=${decoder.decode(packet.payload)} q${packet.qos}${id}${packet.dup ? ' dup' : ''}`
    }
    case 'subscribe':
      return `subscribe ${packet.subscriptions.map((item) => item.filter).join(',')} #${packet.packetId}`
    case 'unsubscribe':
      return `unsubscribe ${packet.filters.join(',')} #${packet.packetId}`
    case 'puback':
    case 'pubrec':
    case 'pubrel':
    case 'pubcomp':
      return `${packet.type} #${packet.packetId}${packet.reasonCode === 0 ? '' : ` 0x${packet.reasonCode.toString(16)}`}`
    default:
      return packet.type
  }
}

/** What a connection carried after CONNECT, in short. */
export function carried(peer: ScriptedPeer): string[] {
  return peer.received.slice(1).map(short)
}

/** The packets of a connection as they came, byte by byte. Knows no more of MQTT than the fixed header (section 2.1). */
export function frames(peer: ScriptedPeer): number[][] {
  const found: number[][] = []
  for (let at = 0; at < peer.bytes.length; ) {
    let length = 0
    let body = at + 1
    for (let shift = 0; ; shift += 7) {
      const byte = peer.bytes[body++] as number
      length += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    found.push(peer.bytes.slice(at, body + length))
    at = body + length
  }
  return found
}

/** The frames of PUBLISH packets, with DUP taken out. */
export function publishFrames(
  peer: ScriptedPeer,
): { readonly dup: boolean; readonly rest: number[] }[] {
  return frames(peer)
    .filter(([first = 0]) => first >> 4 === 3)
    .map(([first = 0, ...rest]) => ({ dup: (first & 8) !== 0, rest: [first & ~8, ...rest] }))
}

/** Publishes nobody awaits; gives the promises. */
export function send(world: World, qos: 1 | 2, ...texts: string[]): Promise<unknown>[] {
  return texts.map((text) => {
    const promise = world.client.publish('t', text, { qos })
    promise.catch(() => undefined)
    return promise
  })
}
