import mqttPacket from 'mqtt-packet'
import { describe, expect, it } from 'vitest'
import type { Vector } from './vector-files.js'
import { bytesOf, plain, readVectors } from './vector-files.js'

const valid = readVectors('./vectors-311.json').filter((vector) => vector.valid)

type Fields = Record<string, unknown>

function parse(vector: Vector): Fields[] {
  const parser = mqttPacket.parser({ protocolVersion: 4 })
  const packets: Fields[] = []
  parser.on('packet', (packet) => packets.push(packet as unknown as Fields))
  parser.on('error', (error) => {
    throw error
  })
  parser.parse(Buffer.from(bytesOf(vector)))
  return packets
}

/** Our field names and values in those of mqtt-packet. */
function translated(decoded: Fields): Fields {
  const { type, properties: _, ...fields } = decoded
  const out: Fields = { cmd: type }
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'packetId') out['messageId'] = value
    else if (name === 'protocolName') out['protocolId'] = value
    else if (name === 'cleanStart') out['clean'] = value
    else if (name === 'keepAlive') out['keepalive'] = value
    else if (name === 'reasonCode' && type === 'connack') out['returnCode'] = value
    else if (name === 'reasonCodes' && type === 'suback') out['granted'] = value
    else if (name === 'filters') out['unsubscriptions'] = value
    else if (name === 'will') out['will'] = { ...(value as Fields), properties: undefined }
    else if (name === 'subscriptions') out['subscriptions'] = (value as Fields[]).map(({ filter, qos }) => ({ topic: filter, qos }))
    else if (name !== 'reasonCode' && name !== 'reasonCodes') out[name] = value
  }
  return out
}

function binary(hex: unknown): Buffer {
  return Buffer.from(hex as string, 'hex')
}

describe('the 3.1.1 vectors, read by an independent codec', () => {
  for (const vector of valid) {
    it(vector.name, () => {
      const [packet, ...more] = parse(vector)
      expect(more).toEqual([])
      const expected = translated(vector.decoded as Fields)
      expect(plain(packet)).toMatchObject(plain(expected) as Fields)
    })
  }
})

describe('the 3.1.1 vectors, written by an independent codec', () => {
  for (const vector of valid) {
    it(vector.name, () => {
      const packet = translated(vector.decoded as Fields)
      if (packet['payload'] !== undefined) packet['payload'] = binary(packet['payload'])
      if (packet['password'] !== undefined) packet['password'] = binary(packet['password'])
      const will = packet['will'] as Fields | undefined
      if (will !== undefined) will['payload'] = binary(will['payload'])
      // It sets Clean Session by the client's options, and has a default for the length of ours.
      expect(mqttPacket.generate(packet as never, { protocolVersion: 4 }).toString('hex')).toBe(vector.hex)
    })
  }
})
