/** Names of user properties that would do harm to objects, and text that would do harm to terminals, wherever a packet carries them. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import {
  connack,
  join,
  type Part,
  packet,
  properties,
  publish,
  text,
  uint16,
} from '../../lab/budgets/bytes.js'
import { accepting, connected, failure, World } from './harness.js'
import { quiet } from './incoming.js'

const nasty = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  '',
  '__proto__',
].map((name) => [name, `x${name}`])
const block = (...parts: Part[]): Buffer =>
  properties(
    ...nasty.map(([name = '', value = '']) => join(0x26, text(name), text(value))),
    ...parts,
  )
const escapes =
  '\u001b[31m\u001b]0;owned\u0007\r\nERROR forged\u202e\u2066\u009b\u0085\u2028'.repeat(30)
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u

/** What a program can print of an error without meaning harm. */
function printed(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const inner =
    error.cause instanceof AggregateError
      ? error.cause.errors.flatMap(printed)
      : printed(error.cause)
  return [error.message, String(error), ...inner]
}

/** Options under which each log line is kept. */
function noted(): { readonly options: ClientOptions; readonly log: string[] } {
  const log: string[] = []
  const note = (line: string): void => void log.push(line)
  return { log, options: { logger: { debug: note, info: note, warn: note, error: note } } }
}

describe('hostile names and text, in every packet that carries them', () => {
  it('user properties are pairs in their order: of CONNACK, messages, receipts and DISCONNECT', async () => {
    const world = new World({ stats: true })
    const connecting = world.client.connect()
    await world.settle()
    await world.sendBytes(connack(0, block()))
    await connecting
    const subscription = world.client.subscription('a')
    await world.sendBytes(publish({ topic: 'a', properties: block() }))
    const receipt = world.client.publish('b', '', { qos: 1 })
    await world.settle()
    await world.sendBytes(
      packet(0x40, uint16(world.peer.last('publish').packetId as number), 0, block()),
    )
    await world.sendBytes(packet(0xe0, 0x8b, block()))
    const goodbye = world.seen('serverdisconnect')[0]?.packet.properties
    const found = [world.client.negotiated, subscription.read()?.properties, await receipt, goodbye]
    expect(found.map((each) => each?.userProperties)).toEqual(Array(4).fill(nasty))
    expect(Object.keys(Object.prototype)).toEqual([])
    const { failures } = world.client.stats()
    expect(Object.getPrototypeOf(failures)).toEqual(null)
    expect(Object.keys(failures)).toEqual(['ERR_SERVER_DISCONNECT'])
  })

  const reason = properties(0x1f, text(escapes))
  /** Calls, answers them so, and gives what they are rejected with. */
  const answered = async (
    world: World,
    call: Promise<unknown>,
    first: number,
    ...rest: Part[]
  ): Promise<unknown> => {
    quiet(call)
    await world.settle()
    const sent = world.peer.received.at(-1) as { packetId: number }
    await world.sendBytes(packet(first, uint16(sent.packetId), ...rest))
    return failure(call)
  }
  it.each<[string, (world: World) => Promise<unknown>]>([
    [
      'CONNACK',
      (world) =>
        world.sendBytes(connack(0x87, properties(0x1f, text(escapes), 0x1c, text(escapes)))),
    ],
    ['SUBACK', (world) => answered(world, world.client.subscribe('a'), 0x90, reason, 0x87)],
    ['UNSUBACK', (world) => answered(world, world.client.unsubscribe('b'), 0xb0, reason, 0x87)],
    [
      'PUBACK',
      (world) => answered(world, world.client.publish('a', '', { qos: 1 }), 0x40, 0x87, reason),
    ],
    [
      'PUBREC',
      (world) => answered(world, world.client.publish('a', '', { qos: 2 }), 0x50, 0x87, reason),
    ],
    [
      'DISCONNECT',
      (world) =>
        world.sendBytes(packet(0xe0, 0x8b, properties(0x1f, text(escapes), 0x1c, text(escapes)))),
    ],
    [
      'PUBLISH',
      (world) =>
        world.sendBytes(publish({ topic: escapes, properties: properties(0x03, text(escapes)) })),
    ],
    [
      'AUTH',
      (world) =>
        world.sendBytes(packet(0xf0, 0x18, properties(0x15, text(escapes), 0x1f, text(escapes)))),
    ],
  ])('control characters in %s: escaped and cut in every error and log line', async (kind, act) => {
    const { options, log } = noted()
    const world = kind === 'CONNACK' ? new World(options) : await connected(options, accepting())
    const connecting = kind === 'CONNACK' ? failure(world.client.connect()) : undefined
    await world.settle()
    const error = await act(world)
    const lines = [...log, ...printed(error), ...printed(await connecting)]
    if (world.client.state === 'closed') lines.push(...printed(await world.client.closed))
    for (const { event } of world.events as { event: { error?: unknown; cause?: unknown } }[])
      lines.push(...printed(event.error ?? event.cause))
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) {
      expect(line).not.toMatch(controls)
      expect(line.length).toBeLessThan(400)
    }
  })

  it('an assigned client identifier of control characters is escaped in every log line', async () => {
    const { options, log } = noted()
    const world = new World(options)
    const connecting = world.client.connect()
    await world.settle()
    await world.sendBytes(connack(0, properties(0x12, text(escapes))))
    await connecting
    world.client.destroy()
    expect(world.client.clientId).toBe(escapes)
    expect(log.length).toBeGreaterThan(1)
    for (const line of log) expect(line).not.toMatch(controls)
  })
})
