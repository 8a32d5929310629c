/** A hostile broker against memory, time and identifiers, and messages whose contents break a rule, which end three connections, and then no more. */
import { describe, expect, it } from 'vitest'
import { sliceLength } from '../../../src/client/connection/stream-reader.js'
import type { ClientOptions, PublishOptions } from '../../../src/client/options/index.js'
import {
  packet,
  pairs,
  properties,
  publish as publishBytes,
  text,
  uint16,
} from '../../lab/budgets/bytes.js'
import { comeBack, steady, willing } from './across.js'
import { agreeable, connected, times, type World } from './harness.js'
import { acks, agreed, goodbyeCode, obliging, publish, subscribe, takenTexts } from './incoming.js'
import { Rig, welcoming } from './rig.js'
import { listen, over, settled } from './steps.js'
import { PausableTransport } from './stub.js'

const mebibyte = 1024 * 1024

/** A client of a peer in the hands of the test. `reads`: what is written leaves; else every write is taken, and none leaves. */
async function facing(reads: boolean, options: ClientOptions = {}) {
  const peer = new PausableTransport()
  peer.holds = !reads
  const world = await over(peer, (connack) => peer.sink?.chunk(connack), {
    stats: true,
    ...options,
  })
  peer.takes = reads
  return { world, peer }
}

it('the memory budget bounds small writes to a peer that reads nothing: each costs far more than its bytes', async () => {
  const { world, peer } = await facing(false, { memoryBudget: mebibyte })
  // PUBREL of an unknown identifier, each in a read of its own: five bytes of PUBCOMP.
  for (let read = 0; read < 20_000 && !peer.over; read++) {
    peer.sink?.chunk(Uint8Array.of(0x62, 2, 0, 9))
    if (read % 500 === 0) await world.settle()
  }
  // 256 bytes for each are fewer than they take.
  expect(peer.writes.length).toBeLessThanOrEqual(4096)
  world.client.destroy()
})

it('reads that bring no whole packet count against a slice as well', async () => {
  const { world, peer } = await facing(true)
  // The beginning of a PUBLISH of 16,000 bytes, a byte at a time.
  peer.sink?.chunk(Uint8Array.of(0x30, 0x80, 0x7d))
  for (let read = 0; read < sliceLength + 100; read++) peer.sink?.chunk(Uint8Array.of(1))
  expect(peer.calls).toContain('pause')
  await world.settle()
  expect([peer.calls.at(-1), world.client.state]).toEqual(['resume', 'connected'])
  world.client.destroy()
})

it('[MQTT-3.14.4-1] nothing follows DISCONNECT, also when acknowledgements waited for a peer that reads nothing', async () => {
  const { world, peer } = await facing(false)
  for (let id = 1; id <= 100; id++) {
    peer.sink?.chunk(Uint8Array.of(0x32, 6, 0, 1, 0x61, 0, id, 0))
    await world.settle()
  }
  await settled(world, world.client.disconnect(), 10_000)
  const sent = ['connect', ...new Array<string>(100).fill('puback'), 'disconnect']
  expect(peer.packets.map(({ type }) => type)).toEqual(sent)
})

it('small messages cannot hold much more memory than the budget says', async () => {
  const world = await agreed({ stats: true, memoryBudget: mebibyte })
  await subscribe(world, 'a', { buffer: 1_000_000_000, bufferBytes: 1_000_000_000 })
  await world.sendBytes(Buffer.alloc(20_000 * 6, Buffer.of(0x30, 4, 0, 1, 0x61, 0)))
  // What each takes in the heap of V8 is 370 bytes.
  expect(world.client.stats().unread).toBeLessThanOrEqual(mebibyte / 256)
  expect(world.client.state).toBe('connected')
})

it('one message that does not fit into the memory budget by itself does not end every connection', async () => {
  const rig = await new Rig({ memoryBudget: mebibyte, cleanStart: false, clientId: 'c' }).up()
  // Four readers, each with a copy of its own: 1.2 MB.
  for (let reader = 0; reader < 4; reader++)
    await settled(
      rig,
      rig.client.listen('a', () => undefined, { qos: 1 }),
    )
  for (let attempt = 0; attempt < 5; attempt++) {
    rig.peer.send(publish('a', 'x'.repeat(300_000), 1, { dup: attempt > 0 }))
    await rig.settle()
    if (rig.client.state === 'connected') break
    rig.behave = () => welcoming({}, true)
    await rig.advance(60_000)
  }
  // Delivered, or refused: in both cases the server is answered, and does not send it again.
  expect([rig.seen('disconnect'), rig.peer.all('puback').length]).toEqual([[], 1])
  await rig.finish()
})

it('outbound.maxQueuedBytes counts the properties of messages that wait and of those in flight', async () => {
  const world = await connected({ outbound: { maxQueuedBytes: mebibyte } })
  const options: PublishOptions = {
    qos: 1,
    properties: { userProperties: [['k', 'x'.repeat(60_000)]] },
  }
  let refused = 0
  for (let message = 0; message < 100; message++)
    world.client.publish('a', '', options).catch((error: { code?: string }) => {
      if (error.code === 'ERR_QUEUE_FULL') refused += 1
    })
  await world.settle()
  // Seventeen of them are a mebibyte, and as many again may wait.
  expect(refused).toBeGreaterThanOrEqual(60)
  world.client.destroy()
})

it('[MQTT-3.3.4-4] seventy overlapping subscriptions of ours may all be named in one message', async () => {
  const world = await agreed()
  let copies = 0
  for (let combination = 0; combination < 70; combination++) {
    const filter = times(7, (level) => ((combination >> level) & 1 ? '+' : 'x')).join('/')
    await listen(world, filter, () => void copies++)
  }
  const subscriptionIdentifiers = world.peer
    .all('subscribe')
    .flatMap(({ properties }) => properties.subscriptionIdentifiers ?? [])
  expect(new Set(subscriptionIdentifiers).size).toBe(70)
  await world.send(
    publish('x/x/x/x/x/x/x', 'x', undefined, { properties: { subscriptionIdentifiers } }),
  )
  expect([world.client.state, copies]).toEqual(['connected', 70])
  world.client.destroy()
})

const kept = willing(true)

async function rig(options: ClientOptions = {}) {
  const warnings: string[] = []
  const logger = { warn: (line: string) => void warnings.push(line) }
  const world = await steady(
    { clientId: 'c', cleanStart: false, topicAliasMaximum: 10, stats: true, logger, ...options },
    kept,
  )
  return { world, warnings }
}

/** Ends three connections with these bytes, each time with this code; gives them a fourth time. */
async function fourTimes(world: World, bytes: (id: number) => Uint8Array, code?: number) {
  for (let id = 1; id < 4; id++) {
    await world.sendBytes(bytes(id))
    if (code !== undefined) expect([goodbyeCode(world), world.seen('error')]).toEqual([code, []])
    await comeBack(world, kept)
  }
  await world.sendBytes(bytes(4))
}

describe('a PUBLISH whose contents break a rule', () => {
  /** At QoS 1 with an identifier; what comes behind the topic is given. */
  const publishing = (fields: Parameters<typeof publishBytes>[0]) => (id: number) =>
    publishBytes({ qos: 1, id, ...fields })
  it.each<[string, (id: number) => Uint8Array, number]>([
    ['a wildcard in the topic', publishing({ topic: 'a/#' }), 0x82],
    [
      'ill-formed text in the topic',
      (id) => packet(0x32, uint16(3), [0x61, 0xff, 0x62], uint16(id), 0, 'p'),
      0x81,
    ],
    ['a property of others', publishing({ properties: properties([0x11, 0, 0, 0, 1]) }), 0x81],
    [
      'a Property Length beyond the packet',
      (id) => packet(0x32, text('a'), uint16(id), 0x7f, 'p'),
      0x81,
    ],
    ['more than 128 user properties', publishing({ properties: properties(pairs(129)) }), 0x97],
    ['[MQTT-3.3.2-11] an alias', publishing({ properties: properties([0x23, 0, 99]) }), 0x94],
  ])('%s: ends three connections, and then no more', async (_name, bytes, code) => {
    const { world, warnings } = await rig()
    const subscription = await subscribe(world, '#', { qos: 1 })
    await fourTimes(world, bytes, code)
    await world.send(publish('a', 'next', 10))
    expect(world.client.state).toBe('connected')
    expect(takenTexts(subscription)).toEqual(['next'])
    expect(acks(world)).toEqual(['puback 4 0x97'])
    expect(world.seen('error')).toMatchObject([{ error: { fault: 'remote', reasonCode: code } }])
    expect(world.client.stats().dropped).toBe(1)
    expect(warnings.filter((line) => line.includes('read past'))).toHaveLength(1)
  })

  it('two connections, one that was cut, and one more: that is not in a row', async () => {
    const { world } = await rig()
    const bytes = publishBytes({ topic: 'a/+' })
    for (const send of [true, true, false, true, true, true]) {
      if (send) await world.sendBytes(bytes)
      else world.peer.cut()
      await world.settle()
      expect(world.client.state).toBe('reconnecting')
      await comeBack(world, kept)
    }
    await world.sendBytes(bytes)
    expect(world.client.state).toBe('connected')
  })

  it('two of them that take turns are both read past in the end', async () => {
    const { world } = await rig()
    const two = [publishBytes({ topic: 'a/+' }), publishBytes({ topic: 'b/+' })]
    for (let round = 0; round < 6; round++) {
      await world.sendBytes(two[round % 2] as Uint8Array)
      await comeBack(world, kept)
    }
    await world.sendBytes(...two)
    expect([world.client.state, world.seen('error').length]).toEqual(['connected', 2])
  })

  const wild = { topic: 'a/+', id: 5 }
  it.each<[string, Uint8Array, string[], ClientOptions?]>([
    ['at QoS 0', publishBytes({ topic: 'a/+' }), []],
    ['at QoS 2', publishBytes({ ...wild, qos: 2 }), ['pubrec 5 0x97']],
    ['with identifier 0, which has no answer', publishBytes({ topic: 'a', qos: 1, id: 0 }), []],
    [
      'on 3.1.1',
      publishBytes({ ...wild, qos: 2, version: 4 }),
      ['pubrec 5'],
      { protocolVersion: 4, topicAliasMaximum: undefined },
    ],
    [
      'above maximumPacketSize',
      publishBytes({ ...wild, qos: 1, payload: 'x'.repeat(3000) }),
      ['puback 5 0x97'],
      { maximumPacketSize: 1000 },
    ],
  ])('%s it is answered as any other', async (name, bytes, answers, options) => {
    const { world } = await rig(options)
    await fourTimes(world, () => bytes, name.includes('maximum') ? 0x82 : undefined)
    expect([world.client.state, acks(world)]).toEqual(['connected', answers])
    if (options?.protocolVersion !== 4) return
    // The exchange is completed.
    await world.send({ type: 'pubrel', packetId: 5 })
    expect(acks(world)).toEqual(['pubrec 5', 'pubcomp 5'])
  })
})

it('a Will Delay Interval in a PUBLISH is ignored, and logged once', async () => {
  const warnings: string[] = []
  const world = await connected({ logger: { warn: (line) => void warnings.push(line) } }, obliging)
  const subscription = await subscribe(world, '#')
  for (const payload of ['one', 'two'])
    await world.sendBytes(
      publishBytes({ payload, properties: properties([0x18, 0, 0, 0, 5, 1, 1]) }),
    )
  const message = subscription.read()
  expect([message?.text(), message?.properties]).toEqual(['one', { payloadFormatIndicator: 1 }])
  expect(takenTexts(subscription)).toEqual(['two'])
  expect(warnings).toEqual([expect.stringContaining('Will Delay Interval')])
})

describe('an acknowledgement of packet identifier 0, which mochi sends after a restart', () => {
  const both = [0x40, 0x50, 0x62, 0x70].map((first) => packet(first, uint16(0)))
  it.each([
    [5, [...both, packet(0x90, uint16(0), 0, 1), packet(0xb0, uint16(0), 0, 0)]],
    [4, [...both, packet(0x90, uint16(0), 0), packet(0xb0, uint16(0))]],
  ] as const)(
    'of any type, version %i: ignored, counted, and logged once',
    async (protocolVersion, packets) => {
      const warnings: string[] = []
      const logger = { warn: (line: string) => void warnings.push(line) }
      const world = await steady({ protocolVersion, stats: true, logger }, willing(false))
      await world.sendBytes(...packets)
      expect(world.client.state).toBe('connected')
      await settled(world, world.client.publish('a', 'x', { qos: 2 }))
      expect(world.client.stats().unsolicitedAcks).toBe(packets.length)
      expect(warnings.filter((line) => line.includes('identifier 0'))).toHaveLength(1)
      expect(acks(world)).toEqual([])
    },
  )
})

it('[MQTT-3.1.2-29] a Reason String that was not asked for does no harm, and the log says so once a connection', async () => {
  const log: string[] = []
  const logger = { warn: (text: string) => log.push(text) }
  const options = { requestProblemInformation: false, logger }
  let explains = false
  const world = await connected(options, (packet) => {
    const answer = agreeable(packet)
    if (answer === undefined || !explains) return answer
    return { ...answer, properties: { reasonString: 'because' } } as typeof answer
  })
  const { client } = world
  await settled(world, client.publish('t', 'x', { qos: 1 }))
  expect(log).toEqual([])
  explains = true
  const calls = [client.subscribe('a'), client.publish('t', 'x', { qos: 1 })]
  await settled(world, Promise.all<unknown>(calls))
  expect(log).toEqual([expect.stringContaining('explains itself')])
})
