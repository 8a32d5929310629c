/**
 * Streams of PUBLISH packets, cut into chunks as a socket would: the same bytes for every candidate. Runs in browsers as well.
 */

/** Topics of 20 bytes. */
export const topicOf = (index) => `plants/hall-${String(index % 100).padStart(2, '0')}/level`

const ascii = [
  ['trace-id', '7be1043c9a5d2f68'],
  ['region', 'north-4'],
  ['customer', 'blue-harbour'],
  ['schema', 'reading.v3'],
  ['number', '000000123456'],
]
const international = [
  ['trace-id', '7be1043c9a5d2f68'],
  ['Größe', 'sehr groß, überall'],
  ['κωδικός', 'τέσσερα-7'],
  ['schema', '読み取り.v3'],
  ['number', '000000123456'],
]

/** Telemetry in JSON. It has its own size in it, so that who has read it knows that. */
const jsonOf = (size) => {
  const reading = {
    device: 'sensor-0042',
    at: 1_760_000_000_000,
    celsius: 21.53,
    humidity: 48.1,
    battery: 3.71,
    status: 'ok',
    size,
  }
  return new TextEncoder().encode(JSON.stringify(reading).padEnd(size))
}

/** What codec and delivery are measured with. */
export const workloads = {
  plain: { size: 256 },
  small: { size: 16 },
  properties: { size: 256, qos: 1, userProperties: ascii },
  international: { size: 256, qos: 1, userProperties: international },
  large: { size: 4096 },
  json: { size: 120, payload: jsonOf(120) },
  'new topics': {
    size: 256,
    topic: (index) => `p/${String(index).padStart(7, '0')}/level/up`,
    // More topics than any table remembers, so that a second pass meets none again.
    bytes: 32 << 20,
  },
}

function random(seed) {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
}

function patternOf(size, index) {
  const payload = new Uint8Array(size)
  for (let at = 0; at < size; at++) payload[at] = 32 + ((at * 5 + index) % 90)
  return payload
}

/** The packet number `index` of a workload, as `encode` takes it. */
export function packetOf(
  { size, qos = 0, userProperties, topic = topicOf, payload },
  index,
  number = index,
) {
  const properties = userProperties === undefined ? {} : { properties: { userProperties } }
  return {
    type: 'publish',
    topic: topic(number),
    payload: payload ?? patternOf(size, index),
    qos,
    ...(qos > 0 && { packetId: 1 + (index % 60_000) }),
    ...properties,
  }
}

/**
 * About `bytes` (default 1 MiB) of a workload.
 * @param {(packet: object) => Uint8Array} encode
 * @returns chunks of 64 KiB with packets across their borders, the last one shorter; how many packets; what topics and payloads add up to
 */
export function streamOf(workload, encode) {
  const { bytes = 1 << 20, topic } = workload
  const next = random(12345)
  const frames = []
  let [total, sum] = [0, 0]
  for (let index = 0; total < bytes; index++) {
    const packet = packetOf(workload, index, topic === undefined ? next() % 100 : index)
    const frame = encode(packet)
    frames.push(frame)
    total += frame.length
    sum += packet.topic.length + packet.payload.length
  }
  const whole = new Uint8Array(total)
  let at = 0
  for (const frame of frames) {
    whole.set(frame, at)
    at += frame.length
  }
  const chunks = []
  for (let from = 0; from < total; from += 65_536) chunks.push(whole.slice(from, from + 65_536))
  return { chunks, count: frames.length, sum, frames }
}

/** As many whole packets of a workload as fit into 64 KiB. */
export function windowOf(workload, encode) {
  const { frames, count, sum } = streamOf({ ...workload, bytes: 60_000 }, encode)
  const length = frames.reduce((total, frame) => total + frame.length, 0)
  if (length > 65_536) throw new Error('more than a window')
  const bytes = new Uint8Array(length)
  let at = 0
  for (const frame of frames) {
    bytes.set(frame, at)
    at += frame.length
  }
  return { bytes, count, sum }
}
