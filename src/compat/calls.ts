/**
 * Publishing, subscribing and unsubscribing: converts arguments of MQTT.js, and results for its
 * callbacks.
 */
import { type FilterRequest, MqttError, type PublishOptions } from 'mqwire'
import { anyObject } from '../common/schema.js'
import type { BackingClient, Wanted } from './backing.js'
import { familiar } from './errors.js'
import { refused, unknownIn } from './options.js'
import type { IPublishPacket, ISubackPacket, Packet, QoS } from './packet-types.js'
import { propertiesOf } from './packets.js'
import type {
  IClientPublishOptions,
  IClientSubscribeOptions,
  IClientUnsubscribeProperties,
  ISubscriptionGrant,
  ISubscriptionMap,
  SubscribeTopics,
} from './types.js'

type SubscribeOptions = Partial<IClientSubscribeOptions>

/** The result passed to a callback of `subscribe`. */
export interface Granting {
  readonly grants: ISubscriptionGrant[]
  readonly packet: ISubackPacket | undefined
  readonly error: Error | undefined
}

/**
 * Publishes; returns the packet at QoS 1 and 2.
 * @throws MqttError as `publish` of mqwire, ERR_UNSUPPORTED_OPTION
 */
export async function publish(
  backing: BackingClient,
  topic: string,
  message: string | Uint8Array,
  options: IClientPublishOptions,
): Promise<Packet | undefined> {
  backing.ignore('publish', unknownIn(options, 'cbStorePut dup properties qos retain'))
  const { qos = 0, retain = false, dup, cbStorePut } = options
  if (dup === true) throw refused('dup')
  const payload = message ?? ''
  const properties = spoken(backing, 'publish', options.properties)
  const own = { qos, retain, properties: propertiesOf(properties) } as PublishOptions
  const receipt = backing.publish(topic, payload, own)
  // From now on the message is in memory.
  if (qos > 0) cbStorePut?.()
  const { packetId } = await receipt
  if (packetId === undefined) return undefined
  const packet = {
    cmd: 'publish',
    topic,
    payload,
    qos,
    retain,
    dup: false,
    messageId: packetId,
  } as IPublishPacket
  return properties === undefined ? packet : { ...packet, properties }
}

// Only packets of 5.0 have properties.
function spoken<P extends object>(
  backing: BackingClient,
  call: string,
  properties: P | undefined,
): P | undefined {
  if (backing.modern) return properties
  backing.ignore(call, unknownIn({ properties }, ''))
  return undefined
}

/**
 * Subscribes to filters that are not subscribed yet.
 * @throws MqttError as `listen` of mqwire, except when the broker refuses
 */
export async function subscribe(
  backing: BackingClient,
  topics: SubscribeTopics,
  common: SubscribeOptions,
): Promise<Granting> {
  const { list, again } = listed(topics, common)
  const { wanted, modern } = backing
  const properties = spoken(backing, 'subscribe', common.properties)
  const requests = list.map(([filter, options]) => requestOf(backing, filter, options))
  const fresh = requests.filter(
    ({ filter, qos }) => again || !((wanted.get(filter)?.request.qos ?? -1) >= qos),
  )
  if (requests.length > 0 && fresh.length === 0)
    return { grants: [], packet: undefined, error: undefined }
  const { codes, error } = await granted(backing, fresh, propertiesOf(properties))
  const grants = fresh.map(({ filter, noLocal, retainAsPublished, retainHandling }, index) => {
    const grant = { topic: filter, qos: codes[index] as QoS }
    if (!modern) return grant
    return {
      ...grant,
      nl: noLocal ?? false,
      rap: retainAsPublished ?? false,
      rh: retainHandling ?? 0,
      properties,
    }
  })
  return { grants, packet: { cmd: 'suback', granted: [...codes] }, error }
}

// If every filter is refused, the error is that of the first one.
async function granted(
  backing: BackingClient,
  requests: readonly FilterRequest[],
  properties: Wanted['properties'],
) {
  const { modern } = backing
  try {
    const grants = await backing.subscribe(requests, properties)
    const refused = grants.find(({ error }) => error !== undefined)
    return {
      codes: grants.map(({ reasonCode }) => reasonCode),
      error: refused && familiar(refused.error, modern),
    }
  } catch (error) {
    if (!MqttError.is(error) || error.code !== 'ERR_SUBSCRIBE_REFUSED') throw error
    return { codes: requests.map(() => error.reasonCode ?? 0x80), error: familiar(error, modern) }
  }
}

/** Unsubscribes. @throws MqttError as `unsubscribe` of mqwire */
export async function unsubscribe(
  backing: BackingClient,
  topics: readonly string[],
  options: IClientUnsubscribeProperties,
): Promise<Packet> {
  backing.ignore('unsubscribe', unknownIn(options, 'properties'))
  const properties = propertiesOf(spoken(backing, 'unsubscribe', options.properties))
  const results = await backing.unsubscribe(topics, properties && { properties })
  return { cmd: 'unsuback', granted: results.map(({ reasonCode }) => reasonCode) }
}

function requestOf(backing: BackingClient, filter: string, options: SubscribeOptions) {
  anyObject(options, `options of ${filter}`)
  backing.ignore(
    'subscribe',
    unknownIn(options, backing.modern ? 'nl properties qos rap rh' : 'properties qos'),
  )
  const { qos = 0, nl, rap, rh } = backing.modern ? options : { qos: options.qos }
  return {
    filter,
    qos,
    noLocal: nl || undefined,
    retainAsPublished: rap || undefined,
    retainHandling: (rh || undefined) as 0 | 1 | 2 | undefined,
  }
}

// The filters with their options, in the given order, and whether to request existing ones again.
function listed(
  topics: SubscribeTopics,
  common: SubscribeOptions,
): { readonly list: readonly [string, SubscribeOptions][]; readonly again: boolean } {
  if (typeof topics === 'object' && topics !== null && !Array.isArray(topics)) {
    const { resubscribe, ...map } = topics as ISubscriptionMap
    return { list: Object.entries(map), again: resubscribe === true }
  }
  const { properties: _, ...options } = common
  return { list: [topics as string].flat().map((topic) => [topic, options]), again: false }
}
