/**
 * Bad properties, every one of the standard's table in every packet that a server sends: what ends the link, with which reason.
 *
 * The table is the standard's (`conformance/tables.json`), the bytes are written by hand. Names of user properties that would do harm to objects,
 * and text that would do harm to terminals, are tried wherever a packet carries them.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { MqttError } from '../../../src/errors.js'
import { connack, join, type Part, packet, properties, publish, text, uint16, varint } from '../../lab/budgets/bytes.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'

interface Property {
  readonly id: number
  readonly name: string
  readonly type: 'byte' | 'u16' | 'u32' | 'varint' | 'utf8' | 'binary' | 'utf8pair'
  readonly packets: readonly string[]
  readonly repeatableIn: readonly string[]
  readonly limits: { readonly values?: readonly number[]; readonly min?: number }
}

const table = (JSON.parse(readFileSync(new URL('../../rules/tables.json', import.meta.url), 'utf8')) as { properties: Property[] }).properties

const values: Readonly<Record<Property['type'], Part>> = {
  byte: 1,
  u16: [0, 1],
  u32: [0, 0, 0, 1],
  varint: 1,
  utf8: text('a'),
  binary: text('a'),
  utf8pair: join(text('a'), text('b')),
}

const propertyOf = ({ id, type }: Property): Buffer => join(id, values[type])

/** What a server sends that has properties, made around a block of them. */
const packets: Readonly<Record<string, (block: Uint8Array) => Buffer>> = {
  CONNACK: (block) => connack(0, block),
  PUBLISH: (block) => publish({ properties: block }),
  PUBACK: (block) => packet(0x40, uint16(9), 0, block),
  PUBREC: (block) => packet(0x50, uint16(9), 0, block),
  PUBREL: (block) => packet(0x62, uint16(9), 0, block),
  PUBCOMP: (block) => packet(0x70, uint16(9), 0, block),
  SUBACK: (block) => packet(0x90, uint16(9), block, 0),
  UNSUBACK: (block) => packet(0xb0, uint16(9), block, 0),
  DISCONNECT: (block) => packet(0xe0, 0x8b, block),
  AUTH: (block) => packet(0xf0, 0x18, block),
}
const kinds = Object.keys(packets)

/** Sends one packet where it belongs: CONNACK as the first, all others on a connection that is up. */
async function send(
  kind: string,
  block: Uint8Array,
  options: ClientOptions = {},
): Promise<{ readonly world: World; readonly error: MqttError | undefined }> {
  const bytes = (packets[kind] as (block: Uint8Array) => Buffer)(block)
  if (kind !== 'CONNACK') {
    const world = await connected(options, agreeable)
    world.client.subscription('#', { ack: 'on-receive' })
    await world.settle()
    await world.sendBytes(bytes)
    return { world, error: world.client.state === 'closed' ? await world.client.closed : undefined }
  }
  const world = new World(options)
  const connecting = world.client.connect().then(
    () => undefined,
    (error: MqttError) => error,
  )
  await world.settle()
  await world.sendBytes(bytes)
  return { world, error: world.client.state === 'connected' ? undefined : await connecting }
}

/** The link ended because of the bytes; the reason is one of these where there was a connection to say it on. */
async function expectRefused(kind: string, block: Uint8Array, codes: readonly number[], what: string): Promise<void> {
  const { world, error } = await send(kind, block)
  expect(error, what).toMatchObject({ fault: 'remote' })
  expect(error?.code, what).toMatch(/^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|UNEXPECTED_PACKET|PACKET_TOO_LARGE)$/)
  const goodbyes = world.peer.all('disconnect').map(({ reasonCode }) => reasonCode)
  expect(goodbyes, what).toHaveLength(kind === 'CONNACK' ? 0 : 1)
  for (const code of goodbyes) expect(codes, what).toContain(code)
  expect(world.seen('serverdisconnect'), what).toEqual([])
  expect(world.clock.pending, what).toBe(0)
}

const willDelay = table.find(({ id }) => id === 0x18) as Property

describe.each(kinds)('properties of %s', (kind) => {
  const allowed = table.filter((each) => each.packets.includes(kind) && !(kind === 'DISCONNECT' && each.id === 0x11))
  // Some servers leave a Will Delay Interval in a PUBLISH, which is ignored: see faulty-messages.test.ts.
  const others = table.filter((each) => !each.packets.includes(kind) && !(kind === 'PUBLISH' && each.name === willDelay.name))

  it('each that it may have, cut at each byte', async () => {
    for (const property of allowed) {
      const whole = propertyOf(property)
      for (let length = 1; length < whole.length; length++) {
        await expectRefused(kind, properties(whole.subarray(0, length)), [0x81], `${property.name} cut to ${length}`)
      }
    }
  })

  it('what is no property: each gap to 0x7f, and identifiers of several bytes', async () => {
    const known = new Set(table.map(({ id }) => id))
    const gaps = Array.from({ length: 128 }, (_, id) => id).filter((id) => !known.has(id))
    for (const id of gaps) await expectRefused(kind, properties(id, 0, 1), [0x81], `0x${id.toString(16)}`)
    for (const bytes of [varint(128), varint(16_384), [0x81, 0x00], [0xff, 0xff, 0xff, 0x7f], [0xff, 0xff, 0xff, 0xff, 0x01]]) {
      await expectRefused(kind, properties(bytes, 0, 1), [0x81], `identifier ${bytes}`)
    }
  })

  it('each that it may not have', async () => {
    for (const property of others) await expectRefused(kind, properties(propertyOf(property)), [0x81, 0x82], property.name)
  })

  it('each that it may have, twice: a protocol error, but for those that may repeat', async () => {
    for (const property of allowed) {
      const block = properties(propertyOf(property), propertyOf(property))
      if (!property.repeatableIn.includes(kind)) await expectRefused(kind, block, [0x82], property.name)
    }
    if (kind === 'AUTH' || kind === 'DISCONNECT') return
    const pairs = properties(0x26, text(''), text(''), 0x26, text('a'), text(''), 0x26, text(''), text('b'), 0x26, text('a'), text(''))
    expect((await send(kind, pairs)).error, 'user properties: repeated, empty name, empty value').toBeUndefined()
  })

  it('user properties without a value, and without a name', async () => {
    for (const half of [join(0x26, text('a')), join(0x26), join(0x26, 0), join(0x26, text('a'), 0)]) {
      await expectRefused(kind, properties(half), [0x81], half.toString('hex'))
    }
  })

  it('values that are out of range', async () => {
    for (const { id, name, type, limits } of allowed) {
      const wrong: Part[] = []
      if (limits.values !== undefined) wrong.push(2, 255)
      if ((limits.min ?? 0) > 0) wrong.push(type === 'u16' ? [0, 0] : type === 'u32' ? [0, 0, 0, 0] : 0)
      for (const value of wrong) {
        const codes = id === 0x23 ? [0x94, 0x82] : [0x82, 0x81]
        await expectRefused(kind, properties(id, value), codes, `${name} ${value}`)
      }
    }
  })

  it('lengths and identifiers of too many bytes', async () => {
    await expectRefused(kind, Buffer.from([0x80, 0x00]), [0x81], 'Property Length 0 in two bytes')
    await expectRefused(kind, Buffer.from([0xff, 0xff, 0xff, 0xff, 0x01]), [0x81], 'Property Length of five bytes')
    if (kind === 'PUBLISH') {
      await expectRefused(kind, properties(0x0b, [0xff, 0xff, 0xff, 0xff, 0x01]), [0x81], 'identifier of five bytes')
      await expectRefused(kind, properties(0x0b, [0x81, 0x00]), [0x81], 'identifier longer than needed')
    }
  })

  it('text that is no UTF-8, and text longer than its packet, in each field', async () => {
    const wrong = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x00], [0xc3]]
    for (const { id, name, type } of allowed) {
      if (type !== 'utf8' && type !== 'utf8pair' && type !== 'binary') continue
      await expectRefused(kind, properties(id, uint16(9), 'a'), [0x81], `${name} beyond the packet`)
      if (type === 'binary') continue
      for (const bytes of wrong) {
        const bad = text(Buffer.from(bytes))
        await expectRefused(kind, properties(id, bad, type === 'utf8pair' ? text('a') : ''), [0x81], `${name} ${bytes}`)
        if (type === 'utf8pair') await expectRefused(kind, properties(id, text('a'), bad), [0x81], `value of ${name} ${bytes}`)
      }
    }
  })
})

describe('Subscription Identifiers and Response Topics', () => {
  it('identifiers at each edge of their encoding are accepted', async () => {
    for (const identifier of [1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455]) {
      const { world, error } = await send('PUBLISH', properties(0x0b, varint(identifier)))
      expect(error, String(identifier)).toBeUndefined()
      expect(world.client.state).toBe('connected')
    }
  })

  it('Response Topics that are none: empty, and with each wildcard at each place', async () => {
    for (const topic of ['', '#', '+', 'a/#', 'a/+/b', '+/a', 'a#', 'a+']) {
      await expectRefused('PUBLISH', properties(0x08, text(topic)), [0x82, 0x81], topic)
    }
  })

  it('128 user properties are accepted in every kind of packet, 129 and 1,900 are not', async () => {
    for (const kind of kinds) {
      const pairs = (count: number): Buffer => properties(Buffer.concat(new Array<Buffer>(count).fill(join(0x26, text(''), text('')))))
      const few = await send(kind, pairs(128))
      if (kind !== 'AUTH' && kind !== 'DISCONNECT') expect(few.error, kind).toBeUndefined()
      for (const count of [129, 1900]) {
        const { world, error } = await send(kind, pairs(count))
        expect(error, kind).toBeDefined()
        const codes = world.peer.all('disconnect').map(({ reasonCode }) => reasonCode)
        // Before CONNACK nothing is sent; an AUTH that nobody agreed on is wrong for that alone.
        const wanted = kind === 'CONNACK' ? [undefined] : kind === 'AUTH' ? [0x97, 0x82] : [0x97]
        expect(wanted, kind).toContain(codes[0])
      }
    }
  })
})

describe('DISCONNECT of a server that breaks the rules', () => {
  const cases: readonly (readonly [name: string, bytes: Buffer, codes: readonly number[]])[] = [
    ['with a Session Expiry Interval', packet(0xe0, 0x8b, properties(0x11, 0, 0, 0, 1)), [0x82]],
    ['with a Session Expiry Interval of 0', packet(0xe0, 0x00, properties(0x11, 0, 0, 0, 0)), [0x82]],
    ['with a code that only clients send', packet(0xe0, 0x04, 0), [0x81, 0x82]],
    ['with a code that is none', packet(0xe0, 0x7f, 0), [0x81, 0x82]],
    ['with truncated properties', packet(0xe0, 0x8b, 5, 0x1f, 0, 9), [0x81]],
    ['with a property length beyond the packet', packet(0xe0, 0x8b, 9), [0x81]],
    ['with bytes behind its properties', packet(0xe0, 0x8b, 0, 0), [0x81]],
  ]
  it.each(cases)('%s', async (_name, bytes, codes) => {
    const world = await connected({}, agreeable)
    await world.sendBytes(bytes)
    expect(world.client.state).toBe('closed')
    const sent = world.peer.all('disconnect').map(({ reasonCode }) => reasonCode)
    expect(sent).toHaveLength(1)
    expect(codes).toContain(sent[0])
    expect(world.seen('serverdisconnect')).toEqual([])
    expect(world.seen('disconnect')).toHaveLength(1)
  })
})

const nasty: readonly (readonly [name: string, value: string])[] = [
  ['__proto__', 'polluted'],
  ['constructor', 'polluted'],
  ['prototype', 'polluted'],
  ['toString', ''],
  ['hasOwnProperty', 'x'],
  ['', ''],
  ['', ''],
  ['__proto__', 'again'],
]
const block = (...parts: Part[]): Buffer => properties(...nasty.map(([name, value]) => join(0x26, text(name), text(value))), ...parts)
const escapes = '\u001b[31m\u001b]0;owned\u0007\r\nERROR forged\u202e\u2066\u009b\u0085\u2028'.repeat(30)
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u

/** What a program can print of an error without meaning harm. */
function printed(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  return [error.message, String(error), ...(error.cause instanceof AggregateError ? error.cause.errors.flatMap(printed) : printed(error.cause))]
}

/** A world whose every packet and log line is kept. */
function noted(): { readonly options: ClientOptions; readonly log: string[] } {
  const log: string[] = []
  const note = (line: string): void => void log.push(line)
  return { log, options: { logger: { debug: note, info: note, warn: note, error: note } } }
}

describe('hostile names and text, in every packet that carries them', () => {
  it('user properties are pairs in their order, in CONNACK, PUBLISH, acknowledgements, SUBACK, UNSUBACK, DISCONNECT and AUTH', async () => {
    const seen = new Map<string, unknown>()
    const auth = { method: 'toy', start: () => 'hello', continue: () => 'again' }
    const world = new World({ auth })
    world.client.on('packet', ({ direction, packet: each }) => {
      if (direction === 'in' && 'properties' in each) seen.set(each.type, each.properties)
    })
    const connecting = world.client.connect()
    await world.settle()
    const method = join(0x15, text('toy'))
    await world.sendBytes(packet(0xf0, 0x18, block(method)))
    await world.sendBytes(connack(0, block(method)))
    await connecting
    expect(world.client.negotiated?.userProperties).toEqual(nasty)
    expect(world.seen('connect')[0]?.connack.properties.userProperties).toEqual(nasty)

    const subscribing = world.client.subscribe('a', { qos: 2 })
    await world.settle()
    await world.sendBytes(packet(0x90, uint16(world.peer.last('subscribe').packetId), block(), 2))
    const subscription = await subscribing
    await world.sendBytes(publish({ topic: 'a', properties: block(), payload: 'x' }))
    expect(subscription.read()?.properties.userProperties).toEqual(nasty)

    const receipts = [world.client.publish('b', '', { qos: 1 }), world.client.publish('b', '', { qos: 2 })]
    await world.settle()
    const [first, second] = world.peer.all('publish').map(({ packetId }) => packetId as number)
    await world.sendBytes(packet(0x40, uint16(first as number), 0, block()), packet(0x50, uint16(second as number), 0, block()))
    await world.sendBytes(packet(0x70, uint16(second as number), 0, block()))
    expect((await Promise.all(receipts)).map(({ userProperties }) => userProperties)).toEqual([nasty, nasty])

    await world.sendBytes(publish({ topic: 'a', qos: 2, id: 7, properties: block() }))
    subscription.read()?.ack()
    subscription.read()
    await world.settle()
    await world.sendBytes(packet(0x62, uint16(7), 0, block()))
    const leaving = world.client.unsubscribe('a')
    await world.settle()
    await world.sendBytes(packet(0xb0, uint16(world.peer.last('unsubscribe').packetId), block(), 0))
    await leaving
    await world.sendBytes(packet(0xe0, 0x8b, block()))
    expect(world.seen('serverdisconnect')[0]?.packet.properties.userProperties).toEqual(nasty)

    const carriers = ['auth', 'connack', 'disconnect', 'puback', 'pubcomp', 'publish', 'pubrec', 'pubrel', 'suback', 'unsuback']
    expect([...seen.keys()].sort()).toEqual(carriers)
    for (const [type, found] of seen) expect((found as { userProperties?: unknown }).userProperties, type).toEqual(nasty)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain('polluted')
    expect(Object.keys(Object.prototype)).toEqual([])
  })

  it('stats() counts failures in a map without a prototype', async () => {
    const world = await connected({ stats: true }, agreeable)
    await world.sendBytes(packet(0xe0, 0x8b, block()))
    const { failures } = world.client.stats()
    expect(Object.getPrototypeOf(failures)).toBeNull()
    expect(Object.keys(failures)).toEqual(['ERR_SERVER_DISCONNECT'])
  })

  const refusals: readonly (readonly [name: string, act: (world: World) => Promise<unknown>])[] = [
    ['CONNACK', (world) => world.sendBytes(connack(0x87, properties(0x1f, text(escapes), 0x1c, text(escapes))))],
    [
      'SUBACK',
      async (world) => {
        const done = failure(world.client.subscribe('a'))
        await world.settle()
        await world.sendBytes(packet(0x90, uint16(world.peer.last('subscribe').packetId), properties(0x1f, text(escapes)), 0x87))
        return done
      },
    ],
    [
      'UNSUBACK',
      async (world) => {
        const done = failure(world.client.unsubscribe('b'))
        await world.settle()
        const sent = world.peer.all('unsubscribe').at(-1)
        if (sent !== undefined) await world.sendBytes(packet(0xb0, uint16(sent.packetId), properties(0x1f, text(escapes)), 0x87))
        return done
      },
    ],
    [
      'PUBACK',
      async (world) => {
        const done = failure(world.client.publish('a', '', { qos: 1 }))
        await world.settle()
        await world.sendBytes(packet(0x40, uint16(world.peer.last('publish').packetId as number), 0x87, properties(0x1f, text(escapes))))
        return done
      },
    ],
    [
      'PUBREC',
      async (world) => {
        const done = failure(world.client.publish('a', '', { qos: 2 }))
        await world.settle()
        await world.sendBytes(packet(0x50, uint16(world.peer.last('publish').packetId as number), 0x87, properties(0x1f, text(escapes))))
        return done
      },
    ],
    ['DISCONNECT', (world) => world.sendBytes(packet(0xe0, 0x8b, properties(0x1f, text(escapes), 0x1c, text(escapes))))],
    [
      'PUBLISH',
      (world) => world.sendBytes(publish({ topic: escapes, properties: properties(0x03, text(escapes), 0x26, text(escapes), text(escapes)) })),
    ],
    ['AUTH', (world) => world.sendBytes(packet(0xf0, 0x18, properties(0x15, text(escapes), 0x1f, text(escapes))))],
  ]

  it.each(refusals)('control characters in %s: escaped and cut in every error and log line', async (kind, act) => {
    const { options, log } = noted()
    const world = kind === 'CONNACK' ? new World(options) : await connected(options, accepting())
    const connecting = kind === 'CONNACK' ? failure(world.client.connect()) : undefined
    await world.settle()
    const error = await act(world)
    const lines = [...log, ...printed(error), ...printed(await connecting)]
    if (world.client.state === 'closed') lines.push(...printed(await world.client.closed))
    for (const { event } of world.events) {
      const told = (event as { error?: unknown; cause?: unknown }).error ?? (event as { cause?: unknown }).cause
      lines.push(...printed(told))
    }
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
