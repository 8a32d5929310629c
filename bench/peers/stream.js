/**
 * What the peer in Node needs to know of MQTT: lengths, the answer to CONNECT, what a SUBSCRIBE asks for, and blocks of prepared PUBLISH packets.
 *
 * Written out byte by byte, so that no client measures itself against its own codec. Trusts what it reads.
 */

const topics = 100
const blockBytes = 1 << 20

/** CONNECT of a bare socket. */
export function hello(id = 'limit-0') {
  const name = Buffer.from(id)
  return Buffer.from([
    ...[0x10, 13 + name.length, 0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 2, 0, 0, 0, 0, name.length],
    ...name,
  ])
}

/** SUBSCRIBE with one filter, at QoS 0. */
export function subscribeTo(filter) {
  const body = [0, 1, 0, 0, filter.length, ...Buffer.from(filter), 0]
  return Buffer.from([0x82, body.length, ...body])
}

/**
 * SUBSCRIBE of a bare socket for a stream at QoS 0, and how many bytes answer it: SUBACK, and the messages. With a `filter` of its own, for those that
 * another sends.
 */
export function asking(count, size, properties, filter = `N${count}/${size}/${properties}`) {
  return {
    subscribe: subscribeTo(filter),
    answered: 6 + count * makeBlock(0, size, properties).frame,
  }
}

/** The remaining length at `at`, and where the body begins; 0 when it is not all there. */
export function lengthOf(bytes, at) {
  let length = 0
  for (let index = 0; index < 4 && at + index < bytes.length; index++) {
    const byte = bytes[at + index]
    length += (byte & 127) * 128 ** index
    if (byte < 128) return { body: at + index + 1, length }
  }
  return { body: 0, length: 0 }
}

const propertySizes = new Map([
  [0x11, 5],
  [0x17, 2],
  [0x19, 2],
  [0x21, 3],
  [0x22, 3],
  [0x27, 5],
])

/** CONNACK for a CONNECT, and the Receive Maximum that the client asked for. Subscription Identifiers are not available: the stream has none. */
export function connackOf(body) {
  let receiveMaximum = 65_535
  if (body[6] === 4) return { answer: Buffer.of(0x20, 2, 0, 0), receiveMaximum }
  const end = 11 + body[10]
  for (let at = 11; at < end; at += propertySizes.get(body[at]) ?? end)
    if (body[at] === 0x21) receiveMaximum = body.readUInt16BE(at + 1)
  return { answer: Buffer.of(0x20, 5, 0, 0, 2, 0x29, 0), receiveMaximum }
}

/** The reason codes for a SUBSCRIBE or UNSUBSCRIBE, the stream it asks for, and whether it asks for the end of all connections. */
export function wishOf(body, subscribe, version = 5) {
  const codes = []
  let wish
  let all = false
  for (let at = version === 5 ? 3 + body[2] : 2; at < body.length; ) {
    const size = body.readUInt16BE(at)
    const filter = body.toString('utf8', at + 2, at + 2 + size)
    const qos = subscribe ? body[at + 2 + size] & 3 : 0
    const asked = /^N(\d+)(?:\/(\d+))?(?:\/(\d+))?(?:\/(\d+))?$/.exec(filter)
    if (subscribe && asked !== null)
      wish = {
        count: Number(asked[1]),
        size: Number(asked[2] ?? 256),
        properties: Number(asked[3] ?? 0),
        rate: Number(asked[4] ?? 0),
        qos,
      }
    all ||= subscribe && filter === 'X'
    codes.push(qos)
    at += 2 + size + (subscribe ? 1 : 0)
  }
  return { codes, wish, all }
}

function variable(length) {
  const bytes = []
  let rest = length
  do {
    bytes.push((rest & 127) | (rest > 127 ? 128 : 0))
    rest >>>= 7
  } while (rest > 0)
  return bytes
}

function text(value) {
  const bytes = Buffer.from(value)
  return [bytes.length >> 8, bytes.length & 255, ...bytes]
}

/** About 1 MiB of PUBLISH packets, at least 64 of them, with packet identifiers from 1 upwards. */
export function makeBlock(qos, size, properties, version = 5) {
  const pairs = []
  for (let index = 0; index < properties; index++)
    pairs.push(0x26, ...text(`key-${index % 10}`), ...text(`value-${index % 10}`))
  const tail = version === 5 ? [...variable(pairs.length), ...pairs] : []
  const remaining = 22 + (qos > 0 ? 2 : 0) + tail.length + size
  const frame = 1 + variable(remaining).length + remaining
  const count = Math.min(20_000, Math.max(64, Math.floor(blockBytes / frame)))
  const frames = []
  let random = 12345
  for (let index = 0; index < count; index++) {
    random ^= random << 13
    random ^= random >>> 17
    random ^= random << 5
    const topic = text(`plants/hall-${String((random >>> 0) % topics).padStart(2, '0')}/level`)
    const id = qos > 0 ? [(index + 1) >> 8, (index + 1) & 255] : []
    frames.push(
      Buffer.from([0x30 | (qos << 1), ...variable(remaining), ...topic, ...id, ...tail]),
      Buffer.alloc(size, 97 + (index % 26)),
    )
  }
  return { qos, frame, count, bytes: Buffer.concat(frames) }
}
