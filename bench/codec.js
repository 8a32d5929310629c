/**
 * The codec against `mqtt-packet`: reading a stream of PUBLISH packets in 64 KiB chunks, and writing PUBLISH packets.
 *
 * Equal work: both parse every packet to its topic and payload and build every byte. What mqtt-packet does not check it is not charged for.
 */

import mqtt from 'mqtt-packet'
import { Decoder, decode, encode } from 'mqwire/wire'
import { compare } from './measure.js'

const payload = new Uint8Array(256).fill(120)
const userProperties = Array.from({ length: 5 }, (_, index) => [`key-${index}`, `value-${index}`])
const plain = { type: 'publish', topic: 'plant/7/temperature', payload, qos: 0 }
const rich = { ...plain, qos: 1, packetId: 7, properties: { userProperties } }

/** Rows: name and nanoseconds per packet of each. */
export function codecRows() {
  return [
    ['read PUBLISH, 256 B', reading(plain)],
    ['read PUBLISH, 256 B, QoS 1, 5 user properties', reading(rich)],
    [
      'write PUBLISH, 256 B',
      writing(plain, { cmd: 'publish', topic: plain.topic, payload: Buffer.from(payload), qos: 0, dup: false, retain: false }),
    ],
  ]
}

function reading(packet) {
  const one = encode(packet)
  if (decode(one, { from: 'server' }).type !== 'publish') throw new Error('the packet does not survive')
  const perChunk = Math.floor(65_536 / one.length)
  const chunk = new Uint8Array(perChunk * one.length)
  for (let index = 0; index < perChunk; index++) chunk.set(one, index * one.length)
  const buffer = Buffer.from(chunk.buffer)
  const decoder = new Decoder({ from: 'server' })
  const parser = mqtt.parser({ protocolVersion: 5 })
  let seen = 0
  parser.on('packet', (parsed) => {
    seen += parsed.payload.length
  })
  const result = compare({
    mqwire: (count) => {
      for (let done = 0; done < count; done += perChunk) for (const parsed of decoder.push(chunk)) seen += parsed.payload.length
    },
    'mqtt-packet': (count) => {
      for (let done = 0; done < count; done += perChunk) parser.parse(buffer)
    },
  })
  if (seen === 0) throw new Error('nothing was read')
  return result
}

function writing(packet, theirs) {
  let bytes = 0
  const result = compare({
    mqwire: (count) => {
      for (let index = 0; index < count; index++) bytes += encode(packet).length
    },
    'mqtt-packet': (count) => {
      for (let index = 0; index < count; index++) bytes += mqtt.generate(theirs, { protocolVersion: 5 }).length
    },
  })
  if (bytes === 0) throw new Error('nothing was written')
  return result
}
