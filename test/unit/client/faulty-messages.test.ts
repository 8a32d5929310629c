/** A message of the server whose contents break a rule ends three connections, and then no more. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import {
  packet,
  pairs,
  properties,
  publish as publishBytes,
  text,
  uint16,
} from '../../lab/budgets/bytes.js'
import { comeBack, steady, willing } from './across.js'
import { agreeable, connected, failure, World } from './harness.js'
import { acks, goodbyeCode, obliging, publish, subscribe, takenTexts } from './incoming.js'
import { settled } from './steps.js'

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

  it('before CONNACK it is out of place like any other packet', async () => {
    const world = new World()
    const connecting = failure(world.client.connect())
    await world.settle()
    await world.sendBytes(packet(0x40, uint16(0)))
    expect(await connecting).toMatchObject({ code: 'ERR_UNEXPECTED_PACKET' })
  })
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
