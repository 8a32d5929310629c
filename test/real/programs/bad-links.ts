/** Links that are slow, cut, or dead without a word. Written against mqwire itself: what they are about has no counterpart elsewhere. */
import { createHash, randomFillSync } from 'node:crypto'
import mqtt from 'mqtt'
import { Client, type ClientOptions, constant, MqttError } from '../../../src/client/node.js'
import { Random } from '../../world/random.js'
import { type Program, sleep, type World, within } from './world.js'

/** Sum, and the number of the message, before the bytes themselves. */
const head = 36

function fill(bytes: Uint8Array, number: number): void {
  randomFillSync(bytes)
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(32, number)
  bytes.set(createHash('sha256').update(bytes.subarray(32)).digest(), 0)
}

/** Number of the message; undefined when its bytes are not those that were published. */
function numberIn(bytes: Uint8Array): number | undefined {
  const sum = createHash('sha256').update(bytes.subarray(32)).digest()
  if (bytes.length < head || !sum.equals(bytes.subarray(0, 32))) return undefined
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(32)
}

/** Somebody else's client, directly at the broker: what it gets is what the broker got. */
async function witness(
  world: World,
  filter: string,
  handle: (payload: Uint8Array) => void,
): Promise<() => void> {
  const client = await mqtt.connectAsync(world.assignment.directUrl, { protocolVersion: 5 })
  client.on('message', (_topic, payload) => handle(payload))
  await client.subscribeAsync(filter, { qos: 2 })
  return () => void client.end(true)
}

function client(world: World, options: ClientOptions): Client {
  const { tally, assignment } = world
  const made = new Client(assignment.url, options)
  made.on('connect', () => {
    tally.connections += 1
  })
  made.on('disconnect', ({ cause }) => {
    if (cause === undefined) return
    const what = `${cause.code} (${cause.message})`
    if (cause.code === 'ERR_CONNECTION_LOST' || cause.code === 'ERR_SERVER_DISCONNECT')
      tally.endedByPeerBecause(what)
    else tally.endedByUsBecause(what)
  })
  return made
}

/** One upload, with what may happen to it. The bytes are overwritten as soon as its promise has settled. */
interface Upload {
  readonly number: number
  readonly size: number
  readonly qos: 0 | 1 | 2
  readonly fate: 'none' | 'abort' | 'timeout'
  /** Milliseconds until its fate. */
  readonly after: number
}

class Uploads {
  readonly #world: World
  readonly #client: Client
  readonly #arrived = new Map<number, number>()
  readonly #settled = new Map<number, { readonly qos: number; readonly fulfilled: boolean }>()
  wrong = 0
  bytes = 0

  constructor(world: World, made: Client) {
    this.#world = world
    this.#client = made
  }

  handle(payload: Uint8Array): void {
    const number = numberIn(payload)
    if (number === undefined) {
      this.wrong += 1
      this.#world.tally.fail(`${payload.length} bytes arrived that nobody published`)
    } else this.#arrived.set(number, (this.#arrived.get(number) ?? 0) + 1)
  }

  async send({ number, size, qos, fate, after }: Upload, patience: number): Promise<void> {
    const bytes = new Uint8Array(Math.max(size, head))
    fill(bytes, number)
    const abort = new AbortController()
    const timer = fate === 'abort' ? setTimeout(() => abort.abort(), after) : undefined
    const options = {
      qos,
      signal: abort.signal,
      ...(fate === 'timeout' && qos > 0 && { ackTimeout: after }),
    }
    const publishing = this.#client.publish(this.#world.topic('upload'), bytes, options)
    let fulfilled = false
    try {
      await within(publishing, `upload ${number} of ${size} bytes at QoS ${qos}`, patience)
      fulfilled = true
    } catch (error) {
      this.#judge(error, qos, fate)
    } finally {
      clearTimeout(timer)
      bytes.fill(0x42)
    }
    this.bytes += size
    this.#settled.set(number, { qos, fulfilled })
  }

  /** Rejections that the program did not ask for. At QoS 0 a lost link may take a message along. */
  #judge(error: unknown, qos: number, fate: Upload['fate']): void {
    const code = MqttError.is(error) ? error.code : String(error)
    const wanted: Readonly<Record<string, string>> = {
      abort: 'ERR_ABORTED',
      timeout: 'ERR_TIMEOUT',
    }
    if (code === wanted[fate]) return
    if (qos === 0 && (code === 'ERR_CONNECTION_LOST' || code === 'ERR_NOT_CONNECTED')) return
    this.#world.tally.fail(`a publish at QoS ${qos} was rejected: ${code}`)
  }

  async conclude(): Promise<void> {
    const { tally } = this.#world
    const owed = [...this.#settled]
      .filter(([, { qos, fulfilled }]) => qos > 0 && fulfilled)
      .map(([number]) => number)
    for (const number of owed) tally.expect(String(number))
    await this.#world.until(() => owed.every((number) => this.#arrived.has(number)), 15_000)
    for (const number of owed) if (this.#arrived.has(number)) tally.arrived(String(number))
    for (const [number, times] of this.#arrived) {
      if (times > 1 && this.#settled.get(number)?.qos === 2)
        tally.fail(`upload ${number} at QoS 2 arrived ${times} times`)
    }
    tally.sent = this.#settled.size
    tally.measured['MB'] = Math.round(this.bytes / 1e6)
    tally.measured['wrong'] = this.wrong
  }
}

/** Random uploads until the time is over. */
async function randomUploads(world: World, options: ClientOptions): Promise<void> {
  const { seconds, seed } = world.assignment
  const random = new Random(seed)
  const sender = client(world, {
    clientId: world.id('sender'),
    reconnect: { backoff: constant(50) },
    ...options,
  })
  const uploads = new Uploads(world, sender)
  const leave = await witness(world, world.topic('upload'), (payload) => uploads.handle(payload))
  await sender.connect()
  const end = performance.now() + seconds * 1000
  let number = 0
  const logarithmic = (low: number, high: number): number =>
    Math.round(low * (high / low) ** random.float())
  while (performance.now() < end) {
    const rate = logarithmic(100_000, 10_000_000)
    await world.order('shape', { up: rate, down: rate })
    const left = Math.max((end - performance.now()) / 1000, 1)
    const batch = Array.from({ length: 1 + random.below(3) }, (): Upload => {
      const size = random.chance(0.1)
        ? 0
        : logarithmic(10, Math.min(50_000_000, rate * Math.min(left, 40)))
      const fate = random.chance(0.25) ? 'abort' : random.chance(0.15) ? 'timeout' : 'none'
      return {
        number: ++number,
        size,
        qos: random.below(3) as 0 | 1 | 2,
        fate,
        after: random.below(2 + Math.round((1500 * size) / rate)),
      }
    })
    const expected = (batch.reduce((sum, { size }) => sum + size, 0) / rate) * 1000
    const disturbing = disturb(world, random, expected)
    await Promise.all(batch.map((upload) => uploads.send(upload, 60_000 + 6 * expected)))
    await disturbing
  }
  await world.order('shape', { up: undefined, down: undefined })
  await within(sender.drain({ timeout: 30_000 }), 'leaving', 60_000)
  await uploads.conclude()
  leave()
}

async function disturb(world: World, random: Random, expected: number): Promise<void> {
  const what = random.below(10)
  const after = random.below(Math.max(1, Math.round(expected)))
  if (what > 2) return
  await sleep(after)
  if (what === 0) await world.order('cut links')
  else {
    // Shorter than the client is to bear: a stall is no dead link.
    await world.order('stall')
    await sleep(200 + random.below(1000))
    await world.order('go on')
  }
}

async function deadLink(world: World): Promise<void> {
  const [keepAlive, pingTimeout] = [2, 1]
  const device = client(world, { keepAlive })
  await device.connect()
  await sleep(300)
  world.tally.allowEnds('ERR_KEEPALIVE_TIMEOUT')
  let found = 0
  let why = ''
  device.on('disconnect', ({ cause }) => {
    found ||= performance.now()
    why ||= cause?.code ?? ''
  })
  await world.order('stall')
  const began = performance.now()
  const posting = setInterval(() => device.post(world.topic('telemetry'), 'x'.repeat(100)), 100)
  await world.until(() => found > 0, 20_000)
  clearInterval(posting)
  await world.order('go on')
  const took = found === 0 ? Number.POSITIVE_INFINITY : found - began
  world.tally.measured['ms to find it'] = Math.round(took)
  if (took > (keepAlive + pingTimeout) * 1000 + 700)
    world.tally.fail(`the dead link was found after ${Math.round(took)} ms`)
  if (why !== 'ERR_KEEPALIVE_TIMEOUT') world.tally.fail(`it ended with ${why}`)
  device.destroy()
}

/** Publishes at QoS 1 and 2 while connections die; nothing may be rejected, everything has to arrive. */
async function dyingBroker(world: World, mute: boolean): Promise<void> {
  const times = world.many(50)
  const device = client(world, {
    clientId: world.id('device'),
    cleanStart: false,
    reconnect: { backoff: constant(20) },
  })
  const arrived = new Map<string, number>()
  const leave = await witness(world, world.topic('+'), (payload) => {
    const text = Buffer.from(payload).toString()
    arrived.set(text, (arrived.get(text) ?? 0) + 1)
  })
  await world.order('doom', { after: 200, times, mute })
  await device.connect()
  const texts = Array.from({ length: 20 }, (_, index) => `m${index}`)
  const publishing = texts.map((text, index) =>
    device.publish(world.topic(text), text, { qos: index % 2 === 0 ? 1 : 2 }),
  )
  for (const each of publishing)
    each.catch((error: unknown) =>
      world.tally.fail(`rejected: ${MqttError.is(error) ? error.code : String(error)}`),
    )
  // Something to do on every connection, as there is in a service.
  const more: Promise<unknown>[] = []
  for (let index = 0; (await world.order('doomed')) !== 0 && index < 400; index += 1) {
    const text = `n${index}`
    texts.push(text)
    more.push(
      device
        .publish(world.topic(text), text, { qos: 1 })
        .catch((error: unknown) => world.tally.fail(`rejected: ${String(error)}`)),
    )
    await sleep(100)
  }
  await within(Promise.allSettled([...publishing, ...more]), 'every publish', 60_000)
  for (const text of texts) world.tally.expect(text)
  await world.until(() => texts.every((text) => arrived.has(text)), 10_000)
  for (const text of texts) if (arrived.has(text)) world.tally.arrived(text)
  for (const [text, count] of arrived) {
    if (count > 1 && /^m\d*[13579]$/.test(text))
      world.tally.fail(`${text} at QoS 2 arrived ${count} times`)
  }
  await device.disconnect()
  leave()
}

async function largeThroughCuts(world: World): Promise<void> {
  const [size, every, times] = [world.many(20_000_000), 5000 * world.assignment.scale, 6]
  const device = client(world, {
    clientId: world.id('device'),
    cleanStart: false,
    reconnect: { backoff: constant(50) },
  })
  const uploads = new Uploads(world, device)
  const leave = await witness(world, world.topic('upload'), (payload) => uploads.handle(payload))
  await device.connect()
  // A connection carries three quarters of it.
  await world.order('shape', { up: Math.round((size * 0.75 * 1000) / every) })
  const cutting = (async () => {
    for (let cut = 0; cut < times; cut += 1) {
      await sleep(every)
      await world.order('cut links')
    }
  })()
  await uploads.send(
    { number: 1, size, qos: 2, fate: 'none', after: 0 },
    every * (times + 6) + 30_000,
  )
  await cutting
  await uploads.conclude()
  await device.disconnect()
  leave()
}

export const badLinks: readonly Program[] = [
  {
    name: 'random uploads',
    title:
      '0 to 50 MB at QoS 0, 1, 2 over 100 kB/s to 10 MB/s with aborts, timeouts, stalls and cuts: no wrong byte, nothing hangs, no connection ended by us',
    setup: 'plain',
    patience: 1200,
    link: 'Unix socket',
    bare: true,
    // A short keep-alive stands for a longer upload: what matters is how one compares with the other.
    run: (world) => randomUploads(world, { keepAlive: 10 }),
  },
  {
    name: 'random uploads, TCP',
    title:
      'the same over TCP, whose buffers on loopback swallow megabytes, with the default keep-alive',
    setup: 'plain',
    patience: 1200,
    bare: true,
    run: (world) => randomUploads(world, {}),
  },
  {
    name: 'dead link',
    title: 'a dead link under `post` every 100 ms is found within keepAlive + pingTimeout',
    run: deadLink,
  },
  {
    name: 'dying broker',
    title: 'connections that die 200 ms after CONNACK, 50 times: nothing is rejected',
    setup: 'plain',
    run: (world) => dyingBroker(world, false),
  },
  {
    name: 'dying broker, silent',
    title: 'the same, where the broker says nothing after CONNACK',
    setup: 'plain',
    bare: true,
    run: (world) => dyingBroker(world, true),
  },
  {
    name: 'large through cuts',
    title: '20 MB at QoS 2 over a link that is cut every 5 s, 6 times, before it is through',
    setup: 'plain',
    run: largeThroughCuts,
  },
]
