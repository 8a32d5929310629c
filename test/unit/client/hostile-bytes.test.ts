/**
 * Bad bytes on both protocol versions, by packet type: what 5.0 answers with a reason, 3.1.1 ends without a word.
 *
 * `hostile.test.ts` has the single cases of 5.0; here are those that hold for every type, field and length. The bytes are written by hand.
 */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { MqttError } from '../../../src/errors.js'
import { join, packet, publish, text, uint16, varint } from '../../lab/budgets/bytes.js'
import { Random } from '../../world/random.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'

const versions = [5, 4] as const
type Version = (typeof versions)[number]

/** First byte of each packet that a server may send, with a body that is right. */
function goodPackets(version: Version): readonly (readonly [name: string, first: number, body: Buffer])[] {
  const block = version === 5 ? [0] : []
  const all = [
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
  ] as const
  return version === 5 ? [...all, ['DISCONNECT', 0xe0, Buffer.of(0x8b)], ['AUTH', 0xf0, Buffer.of(0x18, 4, 0x15, 0, 1, 0x61)]] : all
}

/** A connected client that is sent these bytes after SUBACK, with a good message behind them. */
async function afterwards(
  version: Version,
  bytes: Uint8Array,
  follow = true,
  options: ClientOptions = {},
): Promise<{ readonly world: World; readonly delivered: number }> {
  const world = await connected({ protocolVersion: version, clientId: 'c', ...options }, agreeable)
  const subscription = world.client.subscription('#', { ack: 'on-receive' })
  let unclaimed = 0
  world.client.on('unclaimed', () => {
    unclaimed += 1
  })
  await world.settle()
  await world.sendBytes(bytes, follow ? publish({ topic: 'behind', version }) : '')
  return { world, delivered: subscription.size + unclaimed }
}

/** It ended: with a reason on 5.0, without a word on 3.1.1; a typed error, nothing delivered, nothing left behind. */
function expectEnded(world: World, delivered: number, codes: readonly number[], version: Version): void {
  expect(world.client.state).toBe('closed')
  const goodbyes = world.peer.all('disconnect').map(({ reasonCode }) => reasonCode)
  expect(goodbyes).toHaveLength(version === 5 ? 1 : 0)
  for (const code of goodbyes) expect(codes).toContain(code)
  const [lost, ...more] = world.seen('disconnect')
  expect(lost?.cause).toMatchObject({ fault: 'remote' })
  expect(lost?.cause?.code).toMatch(/^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|PACKET_TOO_LARGE|UNEXPECTED_PACKET)$/)
  expect([more, delivered, world.clock.pending]).toEqual([[], 0, 0])
}

describe.each(versions)('bad bytes, version %i', (version) => {
  const good = goodPackets(version)
  const types = good.map(([name, first, body]) => ({ name, first, body }))

  it.each(types)('the packets are good ones (control): $name', async ({ first, body }) => {
    const { world, delivered } = await afterwards(version, packet(first, body))
    const ended = first === 0xe0 || first === 0xf0
    // AUTH was not agreed on, DISCONNECT is a goodbye, what acknowledges nothing is ignored.
    expect(world.client.state).toBe(ended ? 'closed' : 'connected')
    if (!ended) expect(delivered).toBe((first & 0xf0) === 0x30 ? 2 : 1)
  })

  it.each(types)('Remaining Length of five bytes: $name', async ({ first }) => {
    const { world, delivered } = await afterwards(version, Buffer.of(first, 0xff, 0xff, 0xff, 0xff, 0x01))
    expectEnded(world, delivered, [0x81], version)
  })

  it.each(types)('Remaining Length that is longer than needed: $name', async ({ first, body }) => {
    const { world, delivered } = await afterwards(version, join(first, body.length | 0x80, 0, body))
    expectEnded(world, delivered, [0x81], version)
  })

  it('reserved type 0: first, and later', async () => {
    const { world, delivered } = await afterwards(version, Buffer.of(0, 0))
    expectEnded(world, delivered, [0x81], version)
    const fresh = new World({ protocolVersion: version, clientId: 'c' })
    const connecting = failure(fresh.client.connect())
    await fresh.settle()
    await fresh.sendBytes([0, 0])
    expect(await connecting).toMatchObject({ code: 'ERR_MALFORMED_PACKET', fault: 'remote' })
    expect(fresh.peer.received.map(({ type }) => type)).toEqual(['connect'])
  })

  it.each(types)('wrong flags, each bit: $name', async ({ first, body }) => {
    for (const bit of [1, 2, 4, 8]) {
      // All bits of a PUBLISH mean something: only QoS 3, and DUP at QoS 0 on 5.0, are wrong.
      const wrong = first >> 4 === 3 ? 0x36 | (bit & 8) : first ^ bit
      const { world, delivered } = await afterwards(version, packet(wrong, body))
      expectEnded(world, delivered, [0x81], version)
    }
  })

  it.each(types)('bodies shorter than the mandatory fields, each length: $name', async ({ name, first, body }) => {
    // A PUBLISH may end behind its properties; DISCONNECT and AUTH may be empty, and AUTH may lack what follows its code only when that is none.
    const least = first >> 4 === 3 ? body.length - 1 : body.length
    const from = name === 'DISCONNECT' ? least : name === 'AUTH' ? 1 : 0
    for (let length = from; length < least; length++) {
      const { world, delivered } = await afterwards(version, packet(first, body.subarray(0, length)))
      expectEnded(world, delivered, [0x81, 0x82], version)
    }
  })

  it.each(types.filter(({ first }) => first >> 4 !== 3))('bodies longer than the fields: $name', async ({ first, body }) => {
    // Behind packet identifier and reason code come properties, on 5.0: a byte that claims some, and lacks them.
    const longer = version === 5 && first < 0x80 ? join(body, 0, 1) : version === 5 && first === 0xe0 ? join(body, 1) : join(body, 0xff)
    const { world, delivered } = await afterwards(version, packet(first, longer))
    expectEnded(world, delivered, [0x81, 0x82], version)
  })

  it('topics that are no UTF-8, each way to be none', async () => {
    const wrong = [
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0x00],
      [0xc3],
      [0xff],
      [0xf4, 0x90, 0x80, 0x80],
      [0xe2, 0x82],
      [0x80],
      [0xf8, 0x88, 0x80, 0x80, 0x80],
    ]
    for (const bytes of wrong) {
      const { world, delivered } = await afterwards(version, packet(0x30, text(Buffer.from(bytes)), version === 5 ? 0 : ''))
      expectEnded(world, delivered, [0x81], version)
    }
  })

  it('a topic that is longer than its packet, by one byte and by far', async () => {
    for (const length of [2, 3, 0xffff]) {
      const { world, delivered } = await afterwards(version, packet(0x30, uint16(length), 'a'))
      expectEnded(world, delivered, [0x81], version)
    }
  })

  it('topics: empty is refused; of one byte, of 65,535 and with 65,000 levels are handled', async () => {
    const empty = await afterwards(version, publish({ topic: '', version }))
    expectEnded(empty.world, empty.delivered, [0x81, 0x82], version)
    const topics = ['a', 'x'.repeat(65_535), `a${'/'.repeat(65_000)}`, '/'.repeat(65_000)]
    const world = await connected({ protocolVersion: version, clientId: 'c' }, agreeable)
    const subscription = world.client.subscription('#')
    await world.settle()
    await world.sendBytes(...topics.map((topic) => publish({ topic, version })))
    expect(topics.map(() => subscription.read()?.topic)).toEqual(topics)
  })

  it('the same stream whole, byte by byte, and in pieces of any size', async () => {
    const stream = join(...good.filter(([, first]) => first < 0xe0).map(([, first, body]) => packet(first, body)), packet(0x62, uint16(1)))
    const outcomes: unknown[] = []
    for (const size of [stream.length, 1, 2, 3, 4, 5, 7, 11]) {
      const world = await connected({ protocolVersion: version, clientId: 'c' }, accepting())
      const subscription = world.client.subscription('a', { ack: 'on-receive' })
      await world.settle()
      for (let at = 0; at < stream.length; at += size) world.peer.sendBytes(stream.subarray(at, at + size))
      await world.settle()
      outcomes.push([subscription.size, world.client.state, world.peer.received.map(({ type }) => type)])
    }
    for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0])
    const answers = ['connect', 'subscribe', 'puback', 'pubrec', 'pubrel', 'pubcomp', 'pubcomp']
    expect(outcomes[0]).toEqual([3, 'connected', answers])
  })

  it('what stands before the bad packet is delivered, what stands behind it is not, in one chunk or several', async () => {
    const before = publish({ topic: 'before', version })
    for (const parts of [
      [join(before, [0, 0], publish({ topic: 'behind', version }))],
      [before, Buffer.of(0), Buffer.of(0), publish({ topic: 'behind', version })],
    ]) {
      const world = await connected({ protocolVersion: version, clientId: 'c' }, agreeable)
      const subscription = world.client.subscription('#')
      await world.settle()
      for (const part of parts) world.peer.sendBytes(part)
      await world.settle()
      expect([subscription.read()?.topic, subscription.read()]).toEqual(['before', undefined])
      expect(world.client.state).toBe('closed')
    }
  })

  it("with oversized: 'disconnect' a packet over our Maximum Packet Size ends the link at its header, the least too", async () => {
    const exact: ClientOptions = { maximumPacketSize: 1024 * 1024, oversized: 'disconnect' }
    for (const size of [1024 * 1024 + 1, 268_435_455]) {
      const { world, delivered } = await afterwards(version, join(0x30, varint(size - (size > 2_097_151 ? 0 : 4))), false, exact)
      expectEnded(world, delivered, [0x95], version)
    }
    const fits = publish({ payload: Buffer.alloc(1024 * 1024 - (version === 5 ? 8 : 7)), version })
    expect(fits.length).toBe(1024 * 1024)
    const { world, delivered } = await afterwards(version, fits, true, exact)
    expect([world.client.state, delivered]).toEqual(['connected', 2])
  })

  it.each(types.filter(({ first }) => first >> 4 !== 3))('far larger than its kind needs: $name', async ({ first }) => {
    const cap = [0x40, 0x50, 0x62, 0x70, 0xd0].includes(first) ? 10_000 : 100_000
    const { world, delivered } = await afterwards(version, join(first, varint(cap * 10)), false)
    expectEnded(world, delivered, [0x95], version)
  })

  it('a packet that drips: PINGREQ goes on, and the deadline holds', async () => {
    const world = await connected({ protocolVersion: version, clientId: 'c', keepAlive: 20 }, accepting())
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
    const secret = 'tweety-5up3r'
    const payload = join(text(Buffer.from(`zebra\u0000\u001b[31m${secret}`)), version === 5 ? 0 : '', secret)
    const world = await connected(
      { protocolVersion: version, clientId: 'c', logger: { debug: note, info: note, warn: note, error: note } },
      agreeable,
    )
    await world.sendBytes(packet(0x30, payload))
    const error = (await world.client.closed) as MqttError
    const all = [...log, error.message, String(error.cause), JSON.stringify(error)]
    for (const line of all) {
      expect(line).not.toMatch(/zebra/)
      expect(line.includes(secret)).toBe(false)
      expect(line).not.toMatch(/\p{Cc}/u)
    }
  })
})

it.each([0, 1, 2, 4, 8, 15])('type 15 on 3.1.1, with flags %i', async (flags) => {
  const { world, delivered } = await afterwards(4, Buffer.of(0xf0 | flags, 2, 0x18, 0))
  expectEnded(world, delivered, [], 4)
})

it('DISCONNECT of a 3.1.1 server, empty or with a body, is a protocol error', async () => {
  for (const bytes of [Buffer.of(0xe0, 0), Buffer.of(0xe0, 2, 0x8b, 0)]) {
    const { world, delivered } = await afterwards(4, bytes)
    expectEnded(world, delivered, [], 4)
    expect(world.seen('serverdisconnect')).toEqual([])
  }
})

it('ten thousand mutations of valid streams: no throw, no hang, one typed end each', async () => {
  const stream = join(...goodPackets(5).map(([, first, body]) => packet(first, body)))
  const random = new Random(0x2545f491)
  const world = await connected({ reconnect: { backoff: () => 1 } }, accepting())
  for (let round = 0; round < 10_000; round++) {
    const bytes = Buffer.from(stream)
    for (let count = random.below(4); count >= 0; count--) bytes[random.below(bytes.length)] = random.below(256)
    world.peer.sendBytes(bytes.subarray(0, 1 + random.below(bytes.length)))
    if (round % 20 === 19) await world.clock.advance(2)
  }
  await world.clock.advance(5)
  expect(world.peers.length).toBeGreaterThan(100)
  for (const { cause } of world.seen('disconnect')) expect(cause?.code).toMatch(/^ERR_/)
  world.client.destroy()
}, 60_000)
