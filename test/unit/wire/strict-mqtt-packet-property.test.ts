/**
 * Ours against mqtt-packet, an independent codec: what one writes, the other reads, both versions and both directions.
 *
 * Valid packets only: it takes far more than the standard allows. It loses the order of user properties, and those whose first value is empty;
 * it will not write a password without a user name, nor an empty client identifier without a clean start.
 */
import fc from 'fast-check'
import mqttPacket from 'mqtt-packet'
import { describe, expect, it } from 'vitest'
import type { Packet, PacketInput, Properties } from '../../../src/wire/index.js'
import { decode, encode } from '../../../src/wire/index.js'
import type { Sample } from './arbitrary-packets.js'
import { samples } from './arbitrary-packets.js'
import { plain } from './vector-files.js'

type Fields = Record<string, unknown>

const flags = new Set([
  'payloadFormatIndicator',
  'requestProblemInformation',
  'requestResponseInformation',
  'retainAvailable',
  'wildcardSubscriptionAvailable',
  'subscriptionIdentifierAvailable',
  'sharedSubscriptionAvailable',
])

function grouped(pairs: readonly (readonly [string, string])[]): Fields {
  const groups = new Map<string, string[]>()
  for (const [name, value] of pairs) groups.set(name, [...(groups.get(name) ?? []), value])
  return Object.fromEntries([...groups].map(([name, values]) => [name, values.length === 1 ? values[0] : values]))
}

function theirProperties(properties: Properties): Fields {
  const fields = Object.entries(properties).flatMap(([key, value]): [string, unknown][] => {
    if (value === undefined) return []
    if (key === 'userProperties') return [[key, grouped(value as [string, string][])]]
    if (key === 'subscriptionIdentifiers') return [['subscriptionIdentifier', (value as number[]).length === 1 ? (value as number[])[0] : value]]
    const name = key === 'subscriptionIdentifierAvailable' ? 'subscriptionIdentifiersAvailable' : key
    return [[name, flags.has(key) ? value === 1 : value]]
  })
  return Object.fromEntries(fields)
}

const names: Record<string, string> = {
  type: 'cmd',
  packetId: 'messageId',
  protocolName: 'protocolId',
  cleanStart: 'clean',
  keepAlive: 'keepalive',
  reasonCodes: 'granted',
  filters: 'unsubscriptions',
}

/** A packet of ours in the words of mqtt-packet. */
function theirs(packet: Packet, version: 4 | 5): Fields {
  const fields: Fields = {}
  for (const [key, value] of Object.entries(packet)) {
    if (value === undefined || key === 'properties') continue
    fields[names[key] ?? key] = value
  }
  if ('properties' in packet && Object.keys(packet.properties).length > 0) fields['properties'] = theirProperties(packet.properties)
  if (packet.type === 'connect' && packet.will !== undefined) {
    const { properties, ...will } = packet.will
    fields['will'] = Object.keys(properties).length > 0 ? { ...will, properties: theirProperties(properties) } : will
  }
  if (packet.type === 'subscribe') {
    fields['subscriptions'] = packet.subscriptions.map(({ filter, qos, noLocal, retainAsPublished, retainHandling }) =>
      version === 5 ? { topic: filter, qos, nl: noLocal, rap: retainAsPublished, rh: retainHandling } : { topic: filter, qos },
    )
  }
  if (version === 4) {
    if (packet.type === 'connack') fields['returnCode'] = packet.reasonCode
    if (packet.type === 'unsuback') delete fields['granted']
    delete fields['reasonCode']
  }
  return fields
}

function parsed(bytes: Uint8Array, protocolVersion: number): Fields {
  const packets: Fields[] = []
  const parser = mqttPacket.parser({ protocolVersion })
  parser.on('packet', (packet) => packets.push(packet as unknown as Fields))
  parser.on('error', (error) => {
    throw error
  })
  parser.parse(Buffer.from(bytes))
  expect(packets).toHaveLength(1)
  return packets[0] as Fields
}

/** User properties that survive being an object. */
function tame(properties: Properties): Properties {
  const pairs = properties.userProperties?.map(([, value], index): [string, string] => [`name ${index % 2}`, value || 'empty'])
  if (pairs === undefined) return properties
  // In the order in which an object gives them back.
  return { ...properties, userProperties: pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)) }
}

function tamed({ packet, ...rest }: Sample): Sample {
  if (!('properties' in packet)) return { packet, ...rest }
  const copy = { ...packet, properties: tame(packet.properties) } as Packet
  if (copy.type === 'connect' && copy.will !== undefined) copy.will = { ...copy.will, properties: tame(copy.will.properties) }
  return { packet: copy, ...rest }
}

/** It takes binary values as Buffers only. */
function buffers(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value)
  if (Array.isArray(value)) return value.map(buffers)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, buffers(field)]))
}

function canWrite(packet: Packet): boolean {
  if (packet.type !== 'connect') return true
  return (packet.password === undefined || packet.username !== undefined) && (packet.clientId !== '' || packet.cleanStart)
}

const tameSamples = samples.map(tamed)

describe('mqtt-packet', () => {
  it('reads what we write', () => {
    fc.assert(
      fc.property(tameSamples, ({ packet, protocolVersion }) => {
        const bytes = encode(packet as PacketInput, { protocolVersion })
        const version = packet.type === 'connect' ? packet.protocolVersion : protocolVersion
        const found = plain(parsed(bytes, version)) as Fields
        const expected = plain(theirs(packet, version)) as Fields
        expect(found).toMatchObject(expected)
        expect(found['properties']).toEqual(expected['properties'])
      }),
      { numRuns: 1500 },
    )
  })

  it('writes what we read, to the same packet', () => {
    fc.assert(
      fc.property(tameSamples, ({ packet, protocolVersion, from }) => {
        fc.pre(canWrite(packet))
        const version = packet.type === 'connect' ? packet.protocolVersion : protocolVersion
        const bytes = mqttPacket.generate(buffers(theirs(packet, version)) as never, { protocolVersion: version })
        expect(plain(decode(bytes, { from, protocolVersion }))).toEqual(plain(packet))
      }),
      { numRuns: 1500 },
    )
  })
})
