/**
 * Bad bytes on both protocol versions, by packet type: what 5.0 answers with a reason, 3.1.1 ends without a word.
 *
 * `hostile.test.ts` has the single cases of 5.0; here are those that hold for every type, field and length. The bytes are written by hand.
 */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { MqttError } from '../../../src/errors.js'
import { join, packet, publish, text, uint16, varint } from '../../lab/budgets/bytes.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { takenTexts } from './incoming.js'

type Version = 4 | 5

/** First byte of each packet that a server may send, with a body that is right. */
function goodPackets(
  version: Version,
): readonly { readonly name: string; readonly first: number; readonly body: Buffer }[] {
  const block = version === 5 ? [0] : []
  const all: [string, number, Buffer][] = [
    ['PUBLISH', 0x30, join(text('a'), block, 'x')],
    ['PUBLISH at QoS 1', 0x32, join(text('a'), uint16(1), block, 'x')],
    ['PUBLISH at QoS 2', 0x34, join(text('a'), uint16(1), block, 'x')],
    ['PUBACK', 0x40, join(uint16(9))],
    ['PUBREC', 0x50, join(uint16(9))],
    ['PUBREL', 0x62, join(uint16(9))],
    ['PUBCOMP', 0x70, join(uint16(9))],
    ['SUBACK', 0x90, join(uint16(9), block, 0)],
    ['UNSUBACK', 0xb0, version === 5 ? join(uint16(9), block, 0) : join(uint16(9))],
    ['PINGRESP', 0xd0, Buffer.alloc(0)],
  ]
  if (version === 5)
    all.push(
      ['DISCONNECT', 0xe0, Buffer.of(0x8b)],
      ['AUTH', 0xf0, Buffer.of(0x18, 4, 0x15, 0, 1, 0x61)],
    )
  return all.map(([name, first, body]) => ({ name, first, body }))
}

/** A connected client that is sent these bytes after SUBACK, with a good message behind them. */
async function afterwards(
  version: Version,
  bytes: Uint8Array,
  follow = true,
  options: ClientOptions = {},
) {
  const world = await connected({ protocolVersion: version, clientId: 'c', ...options }, agreeable)
  const subscription = world.client.subscription('#', { ack: 'on-receive' })
  await world.settle()
  await world.sendBytes(bytes, follow ? publish({ topic: 'behind', version }) : '')
  return { world, delivered: subscription.size + world.seen('unclaimed').length }
}

/** It ends: with a reason on 5.0, without a word on 3.1.1; a typed error, nothing delivered, nothing left behind. */
async function expectEnd(
  version: Version,
  bytes: Uint8Array,
  codes: readonly number[],
  follow = true,
  options: ClientOptions = {},
): Promise<void> {
  const { world, delivered } = await afterwards(version, bytes, follow, options)
  const goodbyes = world.peer.all('disconnect').map(({ reasonCode }) => reasonCode)
  expect([world.client.state, goodbyes.length]).toEqual(['closed', version === 5 ? 1 : 0])
  for (const code of goodbyes) expect(codes).toContain(code)
  const [lost, ...more] = world.seen('disconnect')
  expect(lost?.cause).toMatchObject({ fault: 'remote' })
  expect(lost?.cause?.code).toMatch(
    /^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|PACKET_TOO_LARGE|UNEXPECTED_PACKET)$/,
  )
  expect(world.seen('serverdisconnect')).toEqual([])
  expect([more, delivered, world.clock.pending]).toEqual([[], 0, 0])
}

describe.each([5, 4] as const)('bad bytes, version %i', (version) => {
  const types = goodPackets(version)
  const others = types.filter(({ first }) => first >> 4 !== 3)

  it.each(types)('the packets are good ones (control): $name', async ({ first, body }) => {
    const { world, delivered } = await afterwards(version, packet(first, body))
    const ended = first === 0xe0 || first === 0xf0
    // AUTH was not agreed on, DISCONNECT is a goodbye, what acknowledges nothing is ignored.
    expect(world.client.state).toBe(ended ? 'closed' : 'connected')
    if (!ended) expect(delivered).toBe((first & 0xf0) === 0x30 ? 2 : 1)
  })

  it.each(types)('Remaining Length, too long: $name', async ({ first, body }) => {
    await expectEnd(version, Buffer.of(first, 0xff, 0xff, 0xff, 0xff, 0x01), [0x81])
    await expectEnd(version, join(first, body.length | 0x80, 0, body), [0x81])
  })

  it('reserved type 0: first, and later', async () => {
    await expectEnd(version, Buffer.of(0, 0), [0x81])
    const fresh = new World({ protocolVersion: version, clientId: 'c' })
    const connecting = failure(fresh.client.connect())
    await fresh.settle()
    await fresh.sendBytes([0, 0])
    expect(await connecting).toMatchObject({ code: 'ERR_MALFORMED_PACKET', fault: 'remote' })
    expect(fresh.peer.received.map(({ type }) => type)).toEqual(['connect'])
  })

  it.each(types)('wrong flags, each bit: $name', async ({ first, body }) => {
    // All bits of a PUBLISH mean something: only QoS 3, and DUP at QoS 0 on 5.0, are wrong.
    for (const bit of [1, 2, 4, 8])
      await expectEnd(
        version,
        packet(first >> 4 === 3 ? 0x36 | (bit & 8) : first ^ bit, body),
        [0x81],
      )
  })

  it.each(types)('bodies that are too short: $name', async ({ name, first, body }) => {
    // A PUBLISH may end behind its properties; DISCONNECT and AUTH may be empty, and AUTH may lack what follows its code only when that is none.
    const least = first >> 4 === 3 ? body.length - 1 : body.length
    const from = name === 'DISCONNECT' ? least : name === 'AUTH' ? 1 : 0
    for (let length = from; length < least; length++)
      await expectEnd(version, packet(first, body.subarray(0, length)), [0x81, 0x82])
  })

  it.each(others)('bodies longer than the fields: $name', async ({ first, body }) => {
    // Behind packet identifier and reason code come properties, on 5.0: a byte that claims some, and lacks them.
    const claims =
      version === 5 && first < 0x80 ? [0, 1] : version === 5 && first === 0xe0 ? [1] : [0xff]
    await expectEnd(version, packet(first, body, claims), [0x81, 0x82])
  })

  it.each(others)('far larger than its kind needs: $name', async ({ first }) => {
    const cap = [0x40, 0x50, 0x62, 0x70, 0xd0].includes(first) ? 10_000 : 100_000
    await expectEnd(version, join(first, varint(cap * 10)), [0x95], false)
  })

  it('topics that are no UTF-8, each way to be none, empty, or longer than their packet', async () => {
    const wrong = ['c080', 'eda080', '00', 'c3', 'ff', 'f4908080', 'e282', '80', 'f888808080']
    const topics = wrong.map((hex) => join(text(Buffer.from(hex, 'hex')), version === 5 ? 0 : ''))
    for (const length of [2, 3, 0xffff]) topics.push(join(uint16(length), 'a'))
    for (const topic of topics) await expectEnd(version, packet(0x30, topic), [0x81])
    await expectEnd(version, publish({ topic: '', version }), [0x81, 0x82])
  })

  it('topics of one byte, of 65,535 and with 65,000 levels are handled', async () => {
    const topics = ['a', 'x'.repeat(65_535), `a${'/'.repeat(65_000)}`, '/'.repeat(65_000)]
    const world = await connected({ protocolVersion: version, clientId: 'c' }, agreeable)
    const subscription = world.client.subscription('#')
    await world.settle()
    await world.sendBytes(...topics.map((topic) => publish({ topic, version })))
    expect(topics.map(() => subscription.read()?.topic)).toEqual(topics)
  })

  it('the same stream whole, byte by byte, and in pieces of any size', async () => {
    const good = types
      .filter(({ first }) => first < 0xe0)
      .map(({ first, body }) => packet(first, body))
    const stream = join(...good, packet(0x62, uint16(1)))
    const answers = ['connect', 'subscribe', 'puback', 'pubrec', 'pubrel', 'pubcomp', 'pubcomp']
    for (const size of [stream.length, 1, 2, 3, 4, 5, 7, 11]) {
      const world = await connected({ protocolVersion: version, clientId: 'c' }, accepting())
      const subscription = world.client.subscription('a', { ack: 'on-receive' })
      await world.settle()
      for (let at = 0; at < stream.length; at += size)
        world.peer.sendBytes(stream.subarray(at, at + size))
      await world.settle()
      expect([takenTexts(subscription), world.client.state]).toEqual([['x', 'x', 'x'], 'connected'])
      expect(world.peer.received.map(({ type }) => type)).toEqual(answers)
    }
  })

  it('what stands before the bad packet is delivered, what stands behind it is not, in one chunk or several', async () => {
    const parts = [
      publish({ topic: 'before', version }),
      Buffer.of(0),
      Buffer.of(0),
      publish({ topic: 'behind', version }),
    ]
    for (const chunks of [parts, [join(...parts)]]) {
      const world = await connected({ protocolVersion: version, clientId: 'c' }, agreeable)
      const subscription = world.client.subscription('#')
      await world.settle()
      for (const chunk of chunks) world.peer.sendBytes(chunk)
      await world.settle()
      expect(subscription.read()?.topic).toBe('before')
      expect(subscription.read()).toBeUndefined()
      expect(world.client.state).toBe('closed')
    }
  })

  it("with oversized: 'disconnect' a packet over our Maximum Packet Size ends the link at its header, the least too", async () => {
    const exact: ClientOptions = { maximumPacketSize: 1024 * 1024, oversized: 'disconnect' }
    for (const length of [1024 * 1024 - 3, 268_435_455])
      await expectEnd(version, join(0x30, varint(length)), [0x95], false, exact)
    const fits = publish({ payload: Buffer.alloc(1024 * 1024 - (version === 5 ? 8 : 7)), version })
    expect(fits.length).toBe(1024 * 1024)
    const { world, delivered } = await afterwards(version, fits, true, exact)
    expect([world.client.state, delivered]).toEqual(['connected', 2])
  })

  it('a packet that drips: PINGREQ goes on, and the deadline holds', async () => {
    const world = await connected(
      { protocolVersion: version, clientId: 'c', keepAlive: 20 },
      accepting(),
    )
    const bytes = publish({ payload: Buffer.alloc(1000), version })
    for (let at = 0; at < 59; at++) {
      world.peer.sendBytes(bytes.subarray(at, at + 1))
      await world.clock.advance(1000)
    }
    expect([world.client.state, world.peer.all('pingreq').length]).toEqual(['connected', 2])
    world.peer.sendBytes(bytes.subarray(59, 60))
    await world.clock.advance(2000)
    expect(await world.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT' })
    expect(world.peer.all('disconnect')).toEqual([])
  })

  it('errors and logs about bad bytes hold none of them, and no control character', async () => {
    const log: string[] = []
    const note = (line: string): void => void log.push(line)
    const logger = { debug: note, info: note, warn: note, error: note }
    const secret = 'tweety-5up3r'
    const topic = text(Buffer.from(`zebra\u0000\u001b[31m${secret}`))
    const world = await connected({ protocolVersion: version, clientId: 'c', logger }, agreeable)
    await world.sendBytes(packet(0x30, topic, version === 5 ? 0 : '', secret))
    const error = (await world.client.closed) as MqttError
    for (const line of [...log, error.message, String(error.cause), JSON.stringify(error)])
      expect(line).not.toMatch(/zebra|tweety|\p{Cc}/u)
  })
})

it.each([0, 1, 2, 4, 8, 15])('type 15 on 3.1.1, with flags %i', (flags) =>
  expectEnd(4, Buffer.of(0xf0 | flags, 2, 0x18, 0), []),
)

it.each([[Buffer.of(0xe0, 0)], [Buffer.of(0xe0, 2, 0x8b, 0)]])(
  'DISCONNECT of a 3.1.1 server, empty or with a body, is a protocol error',
  (bytes) => expectEnd(4, bytes, []),
)
