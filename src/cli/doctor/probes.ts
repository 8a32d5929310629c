/**
 * Tries what the broker has announced (`--probe`), each feature on topics of its own.
 *
 * A probe loses at most one connection, because brokers ban clients that flap, and leaves nothing
 * behind: sessions end with their connections, retained messages are cleared.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Client,
  type ClientOptions,
  connect,
  type EndpointOptions,
  type Message,
  MqttError,
  type Negotiated,
  type Packet,
  type QoS,
  type Subscription,
} from 'mqwire'
import { assertGranted } from '../common/ending.js'
import type { Findings, Verdict } from './finding.js'
import { leave } from './look.js'

/** How a probe came out. */
type Outcome = readonly [verdict: Verdict, seen: string, meaning?: string]

const notOffered: Outcome = ['not offered', 'not announced, not tried']

/** Milliseconds in which a message must arrive, and in which one that must not would have. */
const patience = 3000
const silence = 700

/** The broker under test, with what the probes have opened and retained there. */
class World {
  readonly negotiated: Negotiated
  readonly #endpoint: EndpointOptions
  readonly #options: ClientOptions
  readonly #prefix: string
  readonly #clients = new Set<Client>()
  readonly #retained = new Set<string>()
  /** Identifiers whose sessions outlive their connections. */
  readonly #kept = new Set<string>()

  constructor(
    endpoint: EndpointOptions,
    options: ClientOptions,
    prefix: string,
    negotiated: Negotiated,
  ) {
    this.#endpoint = endpoint
    this.#options = options
    this.#prefix = `${prefix}/${name()}`
    this.negotiated = negotiated
  }

  /** A topic that only one probe uses. */
  topic(part: string): string {
    return `${this.#prefix}/${part}-${name()}`
  }

  /** The highest QoS that the broker announces, at most this. */
  qos(wanted: QoS): QoS {
    return Math.min(wanted, this.negotiated.maximumQoS) as QoS
  }

  async dial(more: ClientOptions = {}): Promise<Client> {
    const client = await connect(this.#endpoint, {
      ...this.#options,
      protocolVersion: this.negotiated.protocolVersion,
      reconnect: false,
      logger: null,
      ...more,
    })
    this.#clients.add(client)
    return client
  }

  /** On 5.0, a session that lasts so many seconds; on 3.1.1, which has no expiry, none of it. */
  lasting(seconds: number): Pick<ClientOptions, 'sessionExpiryInterval'> {
    return this.negotiated.protocolVersion === 5 ? { sessionExpiryInterval: seconds } : {}
  }

  /** Ends the session of this identifier with the probe: on 3.1.1 it takes a clean connection. */
  forget(clientId: string): void {
    if (this.negotiated.protocolVersion < 5) this.#kept.add(clientId)
  }

  async retain(client: Client, topic: string, payload: string, more: object = {}): Promise<void> {
    this.#retained.add(topic)
    await client.publish(topic, payload, { qos: this.qos(1), retain: true, ...more })
  }

  /** Ends what a probe has left. */
  async tidy(): Promise<void> {
    const topics = [...this.#retained]
    const clients = [...this.#clients]
    this.#retained.clear()
    this.#clients.clear()
    if (topics.length > 0) {
      const client = await this.dial()
      for (const topic of topics)
        await client.publish(topic, '', { qos: this.qos(1), retain: true })
      await leave(client)
    }
    await Promise.all(clients.map(leave))
    for (const clientId of this.#kept) await leave(await this.dial({ clientId }))
    this.#kept.clear()
    this.#clients.clear()
  }
}

function name(): string {
  return randomBytes(4).toString('hex')
}

/** The next message, or undefined after a while without one. */
async function next(subscription: Subscription, timeout = patience): Promise<Message | undefined> {
  try {
    return await subscription.next({ timeout })
  } catch (error) {
    if (MqttError.is(error) && error.code === 'ERR_TIMEOUT') return undefined
    throw error
  }
}

/** Tries each feature. `shown` is called with each name before it is tried. */
export async function probe(
  endpoint: EndpointOptions,
  options: ClientOptions,
  prefix: string,
  negotiated: Negotiated,
  findings: Findings,
  signal: AbortSignal,
  shown: (check: string) => void,
): Promise<void> {
  const world = new World(endpoint, options, prefix, negotiated)
  for (const [check, run] of Object.entries(probes)) {
    shown(check)
    try {
      findings.add(`try: ${check}`, ...(await inTime(run(world), signal)))
    } catch (error) {
      signal.throwIfAborted()
      if (!MqttError.is(error)) throw error
      findings.add(`try: ${check}`, 'differs', error.message)
    }
    await inTime(world.tidy(), signal).catch(() => signal.throwIfAborted())
  }
}

/** Milliseconds for one probe, and for what it leaves: a broker may answer nothing at all. */
const most = 15_000

async function inTime<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  const over = new AbortController()
  const late = sleep(most, undefined, { signal: AbortSignal.any([over.signal, signal]) }).then(() =>
    Promise.reject(new MqttError('ERR_TIMEOUT', `no answer in ${most / 1000} s`)),
  )
  // The slower one may still fail.
  for (const each of [late, running]) each.catch(() => undefined)
  return Promise.race([running, late]).finally(() => over.abort())
}

/** By name, in the order in which they run. */
const probes: Readonly<Record<string, (world: World) => Promise<Outcome>>> = {
  'QoS 0 round trip': (world) => roundTrip(world, 0),
  'QoS 1 round trip': (world) => roundTrip(world, 1),
  'QoS 2 round trip': (world) => roundTrip(world, 2),
  'retained messages': retainedMessages,
  'shared subscriptions': sharedSubscriptions,
  'subscription identifiers': subscriptionIdentifiers,
  'topic aliases to the broker': aliasesOut,
  'topic aliases from the broker': aliasesIn,
  'session resumed': resumed,
  'session ends with its expiry': expired,
  will,
  'message expiry': messageExpiry,
  'Receive Maximum of the client': receiveMaximum,
  'Maximum Packet Size of the client': maximumPacketSize,
  'filters in a SUBSCRIBE': manyFilters,
  latency,
}

async function roundTrip(world: World, qos: QoS): Promise<Outcome> {
  if (world.negotiated.maximumQoS < qos) return notOffered
  const client = await world.dial()
  const topic = world.topic(`qos${qos}`)
  const subscription = await client.subscribe(topic, { qos })
  const granted = subscription.granted[0]?.qos
  if (granted !== qos)
    return [
      'differs',
      `granted QoS ${granted}`,
      `the broker announces Maximum QoS ${world.negotiated.maximumQoS}`,
    ]
  const count = 20
  for (let index = 0; index < count; index++) await client.publish(topic, String(index), { qos })
  for (let index = 0; index < count; index++) {
    const message = await next(subscription)
    if (message === undefined)
      return ['differs', `${index} of ${count} messages came back`, 'messages are lost']
    if (message.text() !== String(index))
      return [
        'differs',
        `number ${message.text()} came where ${index} was due`,
        'lost, twice, or out of order [MQTT-4.6.0-6]',
      ]
    if (message.qos !== qos) return ['differs', `delivered at QoS ${message.qos}`]
  }
  return (await next(subscription, silence)) === undefined
    ? ['ok', `${count} messages came back in order`]
    : ['differs', 'a message came twice', 'handlers must expect repeats']
}

async function retainedMessages(world: World): Promise<Outcome> {
  if (!world.negotiated.retainAvailable) return notOffered
  const client = await world.dial()
  const topic = world.topic('retained')
  await world.retain(client, topic, 'kept')
  const reader = await world.dial()
  const message = await next(await reader.subscribe(topic, { qos: world.qos(1) }))
  if (message === undefined)
    return [
      'differs',
      'a retained message was not sent to a new subscriber',
      'announced, but not kept',
    ]
  if (!message.retain)
    return [
      'differs',
      'it was sent without RETAIN 1',
      'it looks like a live message [MQTT-3.3.1-8]',
    ]
  await client.publish(topic, '', { qos: world.qos(1), retain: true })
  const another = await world.dial()
  return (await next(await another.subscribe(topic), silence)) === undefined
    ? ['ok', 'kept, sent to a new subscriber, and cleared']
    : [
        'differs',
        'an empty payload did not clear it',
        'retained messages cannot be removed [MQTT-3.3.1-6]',
      ]
}

async function sharedSubscriptions(world: World): Promise<Outcome> {
  if (!world.negotiated.sharedSubscriptionAvailable) return notOffered
  const topic = world.topic('shared')
  const filter = `$share/${name()}/${topic}`
  const readers = await Promise.all([world.dial(), world.dial()])
  const subscriptions = await Promise.all(
    readers.map((each) => each.subscribe(filter, { qos: world.qos(1) })),
  )
  const client = await world.dial()
  const count = 20
  for (let index = 0; index < count; index++)
    await client.publish(topic, String(index), { qos: world.qos(1) })
  const got = await Promise.all(subscriptions.map(drained))
  const all = got.flat()
  if (new Set(all).size < count)
    return ['differs', `${new Set(all).size} of ${count} messages came`, 'the group loses messages']
  if (all.length > count)
    return [
      'differs',
      `${all.length} deliveries of ${count} messages`,
      'each member gets a copy: it is no shared subscription',
    ]
  return [
    'ok',
    `${count} messages between two members: ${got.map(({ length }) => length).join(' and ')}`,
  ]
}

async function drained(subscription: Subscription): Promise<string[]> {
  const texts: string[] = []
  for (
    let message = await next(subscription, silence);
    message !== undefined;
    message = await next(subscription, silence)
  )
    texts.push(message.text())
  return texts
}

async function subscriptionIdentifiers(world: World): Promise<Outcome> {
  const { protocolVersion, subscriptionIdentifierAvailable } = world.negotiated
  if (protocolVersion < 5 || !subscriptionIdentifierAvailable) return notOffered
  const client = await world.dial()
  const topic = world.topic('identifier')
  const subscription = await client.subscribe(topic, {
    properties: { subscriptionIdentifier: 4711 },
  })
  await client.publish(topic, '')
  const message = await next(subscription)
  if (message === undefined) return ['differs', 'the message did not come back']
  const identifiers = message.properties.subscriptionIdentifiers ?? []
  return identifiers.length === 1 && identifiers[0] === 4711
    ? ['ok', 'the identifier comes with the message']
    : [
        'differs',
        `the message has ${identifiers.length === 0 ? 'no identifier' : identifiers.join(', ')}`,
        'announced, but not kept [MQTT-3.3.4-3]',
      ]
}

/** Packets of one direction and type that a client sees. */
function seen<T extends Packet['type']>(
  client: Client,
  direction: 'in' | 'out',
  type: T,
): Extract<Packet, { type: T }>[] {
  const packets: Extract<Packet, { type: T }>[] = []
  client.on('packet', (event) => {
    if (event.direction === direction && event.packet.type === type)
      packets.push(event.packet as Extract<Packet, { type: T }>)
  })
  return packets
}

async function aliasesOut(world: World): Promise<Outcome> {
  if (world.negotiated.topicAliasMaximum === 0) return notOffered
  const reader = await world.dial()
  const client = await world.dial()
  const topic = world.topic('alias')
  const subscription = await reader.subscribe(topic, { qos: world.qos(1) })
  const sent = seen(client, 'out', 'publish')
  const count = 10
  for (let index = 0; index < count; index++) await client.publish(topic, String(index))
  const texts = await drained(subscription)
  const short = sent.filter(({ topic: text }) => text === '').length
  if (short === 0) return ['note', 'the client sent no topic by its alias']
  return texts.length === count
    ? ['ok', `${short} of ${count} topics went as an alias`]
    : [
        'differs',
        `${texts.length} of ${count} messages arrived, ${short} of them sent with an alias`,
        'the broker loses them: topics must be sent in full',
      ]
}

async function aliasesIn(world: World): Promise<Outcome> {
  if (world.negotiated.protocolVersion < 5) return notOffered
  const reader = await world.dial({ topicAliasMaximum: 10 })
  const client = await world.dial()
  const topic = world.topic('alias')
  const received = seen(reader, 'in', 'publish')
  const subscription = await reader.subscribe(topic)
  const count = 10
  for (let index = 0; index < count; index++) await client.publish(topic, String(index))
  const texts = await drained(subscription)
  const short = received.filter(({ topic: text }) => text === '').length
  if (texts.length < count)
    return [
      'differs',
      `${texts.length} of ${count} messages arrived at a client that accepts aliases`,
      'do not set topicAliasMaximum with this broker',
    ]
  return short > 0
    ? ['ok', `${short} of ${count} topics came as an alias`]
    : ['not offered', 'the broker uses none']
}

async function resumed(world: World): Promise<Outcome> {
  const clientId = `doctor-${name()}`
  const topic = world.topic('resume')
  const settings: ClientOptions = { clientId, cleanStart: false, ...world.lasting(60) }
  world.forget(clientId)
  const first = await world.dial(settings)
  await first.subscribe(topic, { qos: world.qos(1), onExit: 'detach' })
  await first.disconnect(world.lasting(60))
  const client = await world.dial()
  await client.publish(topic, 'waiting', { qos: world.qos(1) })
  const again = await world.dial(settings)
  if (again.negotiated?.sessionPresent !== true)
    return [
      'differs',
      'the broker did not keep the session',
      'subscriptions and messages are lost with a connection',
    ]
  if (world.qos(1) === 0) return ['ok', 'the session is kept; there is no QoS 1']
  const message = await next(again.subscription(topic, { qos: world.qos(1) }))
  return message?.text() === 'waiting'
    ? ['ok', 'the session is kept, with the message that came meanwhile']
    : [
        'differs',
        'the session is kept, but not the message that came meanwhile',
        'QoS 1 messages are lost while a client is away',
      ]
}

async function expired(world: World): Promise<Outcome> {
  if (world.negotiated.protocolVersion < 5) return notOffered
  const settings: ClientOptions = {
    clientId: `doctor-${name()}`,
    cleanStart: false,
    sessionExpiryInterval: 1,
  }
  const first = await world.dial(settings)
  await first.disconnect({ sessionExpiryInterval: 1 })
  await sleep(2500)
  const again = await world.dial(settings)
  return again.negotiated?.sessionPresent
    ? [
        'differs',
        'the session was still there after 2.5 s of 1 s',
        'sessions of clients that are gone use memory for long',
      ]
    : ['ok', 'the session was gone after its second']
}

async function will(world: World): Promise<Outcome> {
  const topic = world.topic('will')
  const reader = await world.dial()
  const subscription = await reader.subscribe(topic, { qos: world.qos(1) })
  const client = await world.dial({
    ...world.lasting(0),
    will: { topic, payload: 'gone', qos: world.qos(1) },
  })
  await client.destroy()
  const message = await next(subscription)
  if (message === undefined)
    return ['differs', 'a client was cut off, and its will did not come', 'wills are not published']
  return message.text() === 'gone'
    ? ['ok', 'published when the client was cut off']
    : ['differs', 'another payload came']
}

async function messageExpiry(world: World): Promise<Outcome> {
  const { protocolVersion, retainAvailable } = world.negotiated
  if (protocolVersion < 5 || !retainAvailable) return notOffered
  const client = await world.dial()
  const [short, long] = [world.topic('expires'), world.topic('lasts')]
  await world.retain(client, short, 'soon gone', { properties: { messageExpiryInterval: 1 } })
  await world.retain(client, long, 'here', { properties: { messageExpiryInterval: 100 } })
  await sleep(2500)
  const reader = await world.dial()
  const subscription = await reader.subscribe([short, long], { qos: world.qos(1) })
  const got: Message[] = []
  for (
    let message = await next(subscription, silence);
    message !== undefined;
    message = await next(subscription, silence)
  )
    got.push(message)
  if (got.some(({ topic }) => topic === short))
    return [
      'differs',
      'a message came 1.5 s after its expiry',
      'old messages are delivered [MQTT-3.3.2-5]',
    ]
  const left = got.find(({ topic }) => topic === long)?.properties.messageExpiryInterval
  if (left === undefined)
    return [
      'differs',
      got.length === 0 ? 'the message that lasts did not come' : 'its remaining time was not sent',
    ]
  return left < 100
    ? ['ok', `expired messages are dropped; ${left} of 100 s were left after 2.5 s`]
    : [
        'differs',
        `${left} of 100 s were left after 2.5 s`,
        'the time is not counted down [MQTT-3.3.2-6]',
      ]
}

async function receiveMaximum(world: World): Promise<Outcome> {
  if (world.negotiated.protocolVersion < 5 || world.qos(1) === 0) return notOffered
  const reader = await world.dial({ receiveMaximum: 2, receiveMaximumExceeded: 'tolerate' })
  const topic = world.topic('window')
  const received = seen(reader, 'in', 'publish')
  const subscription = await reader.subscribe(topic, { qos: 1, ack: 'manual' })
  const client = await world.dial()
  const count = 6
  for (let index = 0; index < count; index++) await client.publish(topic, String(index), { qos: 1 })
  await sleep(silence)
  const most = received.length
  if (most > 2)
    return [
      'differs',
      `${most} unacknowledged messages came, 2 are allowed`,
      'a slow client is overrun [MQTT-3.3.4-9]',
    ]
  for (let index = 0; index < count; index++) {
    const message = await next(subscription)
    if (message === undefined)
      return [
        'differs',
        `${index} of ${count} messages came`,
        'messages beyond Receive Maximum are dropped: leave receiveMaximum at its default',
      ]
    message.ack()
  }
  return ['ok', 'two at a time, and all of them']
}

async function maximumPacketSize(world: World): Promise<Outcome> {
  const { protocolVersion, maximumPacketSize: accepted } = world.negotiated
  if (protocolVersion < 5) return notOffered
  if (accepted < 2500) return ['note', `the broker accepts ${accepted} bytes itself, not tried`]
  const reader = await world.dial({ maximumPacketSize: 1000, oversized: 'skip' })
  const topic = world.topic('large')
  let tooLarge = 0
  reader.on('drop', ({ reason }) => {
    if (reason === 'too-large') tooLarge += 1
  })
  const subscription = await reader.subscribe(topic, { qos: world.qos(1) })
  const client = await world.dial()
  await client.publish(topic, 'x'.repeat(2000), { qos: world.qos(1) })
  await client.publish(topic, 'small', { qos: world.qos(1) })
  const message = await next(subscription)
  if (tooLarge > 0)
    return [
      'differs',
      'a packet of 2 kB was sent to a client that accepts 1 kB',
      'clients must skip it [MQTT-3.1.2-24]',
    ]
  return message?.text() === 'small'
    ? ['ok', 'larger messages are left out, the others come']
    : [
        'differs',
        'the message behind a larger one did not come',
        'one large message stops a client',
      ]
}

async function manyFilters(world: World): Promise<Outcome> {
  let most = 0
  let problem: unknown
  // A broker that refuses a number of filters may hang up, so the first that fails ends it.
  for (const count of [1, 8, 16, 64, 256]) {
    const client = await world.dial()
    const filters = Array.from({ length: count }, () => world.topic('filter'))
    try {
      const { granted } = await client.subscribe(filters)
      assertGranted(granted)
    } catch (error) {
      problem = error
      break
    }
    most = count
  }
  if (most === 0)
    return [
      'failed',
      `a filter is refused: ${(problem as Error).message}`,
      'may this user subscribe there? --prefix takes another topic',
    ]
  if (most === 1)
    return ['differs', 'eight filters in one SUBSCRIBE are refused', 'set maxFiltersPerSubscribe']
  return most < 256
    ? [
        'note',
        `${most} are accepted, the next number was not`,
        `set maxFiltersPerSubscribe to ${most} if you subscribe to more`,
      ]
    : ['ok', '256 are accepted']
}

async function latency(world: World): Promise<Outcome> {
  const client = await world.dial()
  const topic = world.topic('latency')
  const subscription = await client.subscribe(topic)
  const times: number[] = []
  for (let index = 0; index < 100; index++) {
    const start = performance.now()
    await client.publish(topic, String(index))
    if ((await next(subscription)) === undefined)
      return ['differs', `number ${index} did not come back`]
    times.push(performance.now() - start)
  }
  times.sort((one, other) => one - other)
  const [p50, p99] = [times[49], times[98]].map((time) => (time as number).toFixed(1))
  return ['ok', `p50 ${p50} ms, p99 ${p99} ms, to the broker and back`]
}
