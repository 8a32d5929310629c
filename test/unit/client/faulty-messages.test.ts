/** A message of the server whose contents break a rule ends three connections, and then no more. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { packet, pairs, properties, publish as publishBytes, text, uint16 } from '../../lab/budgets/bytes.js'
import { comeBack, steady, willing } from './across.js'
import { agreeable, connected, failure, World } from './harness.js'
import { acks, goodbyeCode, obliging, publish, subscribe, takenTexts } from './incoming.js'

/** Each of these, at QoS 1 with this identifier and payload. */
const faults: readonly (readonly [name: string, bytes: (id: number, payload: string) => Uint8Array, code: number])[] = [
  ['a wildcard in the topic', (id, payload) => publishBytes({ topic: 'a/#', qos: 1, id, payload }), 0x82],
  ['ill-formed text in the topic', (id, payload) => packet(0x32, uint16(3), [0x61, 0xff, 0x62], uint16(id), 0, payload), 0x81],
  ['a property that is none of a PUBLISH', (id, payload) => publishBytes({ qos: 1, id, payload, properties: properties([0x11, 0, 0, 0, 1]) }), 0x81],
  ['a Property Length beyond the packet', (id, payload) => packet(0x32, text('a'), uint16(id), 0x7f, payload), 0x81],
  ['more user properties than any needs', (id, payload) => publishBytes({ qos: 1, id, payload, properties: properties(pairs(129)) }), 0x97],
  ['an alias that is out of range', (id, payload) => publishBytes({ qos: 1, id, payload, properties: properties([0x23, 0, 99]) }), 0x94],
]

async function rig(options: ClientOptions = {}): Promise<{ readonly world: World; readonly warnings: string[] }> {
  const warnings: string[] = []
  const world = await steady(
    { clientId: 'c', cleanStart: false, topicAliasMaximum: 10, stats: true, logger: { warn: (line) => void warnings.push(line) }, ...options },
    willing(true),
  )
  return { world, warnings }
}

describe('a PUBLISH whose contents break a rule', () => {
  it.each(faults)('%s: ends three connections with its reason code, and is read past on the fourth', async (_name, bytes, code) => {
    const { world, warnings } = await rig()
    const subscription = await subscribe(world, '#', { qos: 1 })
    for (let round = 0; round < 3; round++) {
      // Each time under another identifier.
      await world.sendBytes(bytes(round + 1, 'payload'))
      expect(goodbyeCode(world)).toBe(code)
      expect(world.seen('error')).toEqual([])
      await comeBack(world, willing(true))
    }
    await world.sendBytes(bytes(9, 'payload'))
    await world.send(publish('a', 'next', 10))
    expect(world.client.state).toBe('connected')
    expect(takenTexts(subscription)).toEqual(['next'])
    expect(acks(world)).toEqual(['puback 9 0x97'])
    expect(world.seen('error')).toMatchObject([{ error: { fault: 'remote', reasonCode: code } }])
    expect(world.client.stats().dropped).toBe(1)
    expect(warnings.filter((line) => line.includes('read past'))).toHaveLength(1)
  })

  it('two connections, one that was cut, and one more: that is not in a row', async () => {
    const { world } = await rig()
    const bytes = publishBytes({ topic: 'a/+' })
    for (const send of [true, true, false, true, true]) {
      if (send) await world.sendBytes(bytes)
      else world.peer.cut()
      await world.settle()
      expect(world.client.state).toBe('reconnecting')
      await comeBack(world, willing(true))
    }
    await world.sendBytes(bytes)
    expect(world.client.state).toBe('reconnecting')
    await comeBack(world, willing(true))
    await world.sendBytes(bytes)
    expect(world.client.state).toBe('connected')
  })

  it('two of them that take turns are both read past in the end', async () => {
    const { world } = await rig()
    const two = [publishBytes({ topic: 'a/+' }), publishBytes({ topic: 'b/+' })]
    for (let round = 0; round < 6; round++) {
      await world.sendBytes(two[round % 2] as Uint8Array)
      await comeBack(world, willing(true))
    }
    for (const bytes of two) await world.sendBytes(bytes)
    expect(world.client.state).toBe('connected')
    expect(world.seen('error')).toHaveLength(2)
  })

  it.each([
    ['at QoS 0', publishBytes({ topic: 'a/+' }), []],
    ['at QoS 2', publishBytes({ topic: 'a/+', qos: 2, id: 5 }), ['pubrec 5 0x97']],
    ['with identifier 0, which nobody can answer', publishBytes({ topic: 'a', qos: 1, id: 0 }), []],
  ] as const)('%s it is answered as any other', async (_name, bytes, answers) => {
    const { world } = await rig()
    for (let round = 0; round < 3; round++) {
      await world.sendBytes(bytes)
      await comeBack(world, willing(true))
    }
    await world.sendBytes(bytes)
    expect([world.client.state, acks(world)]).toEqual(['connected', answers])
  })

  it('on 3.1.1 it is answered plainly, and an exchange of QoS 2 is completed', async () => {
    const { world } = await rig({ protocolVersion: 4, topicAliasMaximum: undefined })
    const bytes = publishBytes({ topic: 'a/+', qos: 2, id: 5, version: 4 })
    for (let round = 0; round < 3; round++) {
      await world.sendBytes(bytes)
      await comeBack(world, willing(true))
    }
    world.answer = obliging
    await world.sendBytes(bytes)
    expect(acks(world)).toEqual(['pubrec 5', 'pubcomp 5'])
  })

  it('above maximumPacketSize, too', async () => {
    const { world } = await rig({ maximumPacketSize: 1000 })
    const bytes = publishBytes({ topic: 'a/+', qos: 1, id: 5, payload: 'x'.repeat(3000) })
    for (let round = 0; round < 3; round++) {
      await world.sendBytes(bytes)
      expect(goodbyeCode(world)).toBe(0x82)
      await comeBack(world, willing(true))
    }
    await world.sendBytes(bytes)
    expect([world.client.state, acks(world)]).toEqual(['connected', ['puback 5 0x97']])
  })
})

describe('a Will Delay Interval in a PUBLISH', () => {
  it('is ignored, and told once', async () => {
    const warnings: string[] = []
    const world = await connected({ logger: { warn: (line) => void warnings.push(line) } }, obliging)
    const subscription = await subscribe(world, '#')
    for (const payload of ['one', 'two']) await world.sendBytes(publishBytes({ payload, properties: properties([0x18, 0, 0, 0, 5, 1, 1]) }))
    const message = subscription.read()
    expect([message?.text(), message?.properties]).toEqual(['one', { payloadFormatIndicator: 1 }])
    expect(takenTexts(subscription)).toEqual(['two'])
    expect(warnings).toEqual([expect.stringContaining('Will Delay Interval')])
  })
})

describe('an acknowledgement of packet identifier 0, which mochi sends after a restart', () => {
  it.each([
    ['PUBACK', 5, packet(0x40, uint16(0))],
    ['PUBREC', 5, packet(0x50, uint16(0))],
    ['PUBREL', 5, packet(0x62, uint16(0))],
    ['PUBCOMP', 5, packet(0x70, uint16(0))],
    ['PUBREC with a reason', 5, packet(0x50, uint16(0), 0x10, 0)],
    ['SUBACK', 5, packet(0x90, uint16(0), 0, 1)],
    ['UNSUBACK', 5, packet(0xb0, uint16(0), 0, 0)],
    ['PUBACK of 3.1.1', 4, packet(0x40, uint16(0))],
    ['PUBREC of 3.1.1', 4, packet(0x50, uint16(0))],
    ['PUBREL of 3.1.1', 4, packet(0x62, uint16(0))],
    ['PUBCOMP of 3.1.1', 4, packet(0x70, uint16(0))],
    ['SUBACK of 3.1.1', 4, packet(0x90, uint16(0), 0)],
    ['UNSUBACK of 3.1.1', 4, packet(0xb0, uint16(0))],
  ] as const)('%s is ignored, counted, and told once a connection', async (_name, protocolVersion, bytes) => {
    const warnings: string[] = []
    const world = await steady({ protocolVersion, stats: true, logger: { warn: (line) => void warnings.push(line) } }, willing(false))
    world.client.on('packet', () => undefined)
    await world.sendBytes(bytes, bytes)
    expect(world.client.state).toBe('connected')
    expect(await world.outcome(world.client.publish('a', 'x', { qos: 2 }))).toMatchObject({ state: 'fulfilled' })
    expect(world.client.stats().unsolicitedAcks).toBe(2)
    expect(warnings.filter((line) => line.includes('identifier 0'))).toHaveLength(1)
    expect(acks(world)).toEqual([])
  })

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
  const options = { requestProblemInformation: false, logger: { warn: (text: string) => log.push(text) } }
  const world = await connected(options, (packet) => {
    const answer = agreeable(packet)
    return answer === undefined ? undefined : ({ ...answer, properties: { reasonString: 'because' } } as typeof answer)
  })
  const calls = [world.client.subscribe('a'), world.client.subscribe('b'), world.client.publish('t', 'x', { qos: 1 })]
  await world.settle()
  await expect(Promise.all(calls)).resolves.toHaveLength(3)
  expect(log).toEqual([expect.stringContaining('explains itself')])
})
