/** The broker of the world: the in-memory broker of `mqwire/testing`, set up for one run. */
import { MemoryBroker, type MemoryBrokerOptions } from '../../src/testing/broker/index.js'
import type { Transport } from '../../src/transport/transport.js'
import type { ClientPacket, ServerPacket } from '../../src/wire/packets.js'
import type { WorldClock } from './clock.js'
import { forgottenTopic, interceptionOf } from './habits.js'
import { payloadOf } from './payloads.js'
import { payloadName } from './reader.js'
import type { Limits, Setup } from './schedule.js'

/** A message that the broker took over from the client under test. */
export interface Accepted {
  readonly topic: string
  readonly payload: string
  readonly qos: number
  readonly retain: boolean
  readonly properties: Readonly<Record<string, unknown>>
  readonly bytes: Uint8Array
}

export interface ModelBroker {
  accept(transport: Transport): void
  restart(keepSessions: boolean): void
  feed(topic: string, payload: string, qos: 0 | 1 | 2, retain: boolean, size: number): void
  accepted(): readonly Accepted[]
  /** How often the will of the client was published. */
  wills(): number
  violations(): readonly string[]
  /** Filters that the session of a client has; undefined where there is none. */
  filters(clientId: string): readonly string[] | undefined
}

const encoder = new TextEncoder()

/** Makes the broker of one run. `reset` cuts the client's link; `speaks`: what the broker refuses it ends with DISCONNECT. */
export function makeBroker(
  setup: Setup,
  clock: WorldClock,
  reset: () => void,
  speaks: boolean,
): ModelBroker {
  const refuse = (): void => {
    for (const clientId of broker.sessions.keys()) broker.disconnect(clientId, 0x87)
  }
  const interceptions = [
    ...(setup.narrower ? [limiting(setup, [{}, { receiveMaximum: 1, topicAliasMaximum: 0 }])] : []),
    ...(setup.limits.length > 0 ? [limiting(setup, setup.limits)] : []),
    interceptionOf(setup.habit, { reset, refuse: speaks ? refuse : undefined }),
  ]
  const broker: MemoryBroker = new MemoryBroker({
    clock,
    receiveMaximum: setup.brokerReceiveMaximum,
    topicAliasMaximum: setup.brokerAliases,
    maximumPacketSize: setup.brokerPacketSize,
    intercept: (direction, packet) => interceptedBy(interceptions, direction, packet),
    ...(setup.auth ? { auth: { world: worldMethod } } : {}),
  })
  broker.on('hookerror', ({ error }) => {
    throw error
  })
  return {
    accept: (transport) => void broker.accept(transport),
    restart: (keepSessions) => void broker.restart({ keepSessions }),
    feed: (topic, payload, qos, retain, size) =>
      void broker.publish({ topic, payload: payloadOf(payload, size), qos, retain }),
    accepted: () =>
      broker.accepted
        .filter(({ will, topic }) => !will && topic !== forgottenTopic)
        .map(({ payload, ...message }) => ({
          ...message,
          properties: { ...message.properties },
          payload: payloadName(payload),
          bytes: payload,
        })),
    wills: () => broker.accepted.filter((message) => message.will).length,
    violations: () => broker.violations.map(({ packet, text }) => `${packet ?? 'bytes'}: ${text}`),
    filters: (clientId) => broker.sessions.get(clientId)?.subscriptions.map(({ filter }) => filter),
  }
}

// One round: the broker asks for a second answer and is satisfied with it.
const worldMethod = {
  start: () => ({ reasonCode: 0x18, data: encoder.encode('more') }),
  continue: () => ({ reasonCode: 0 }),
}

type Intercept = (
  direction: 'in' | 'out',
  packet: ClientPacket | ServerPacket,
) => ClientPacket | ServerPacket | false | undefined

function interceptedBy(
  all: readonly Intercept[],
  direction: 'in' | 'out',
  packet: ClientPacket | ServerPacket,
): ReturnType<Intercept> {
  let now: ClientPacket | ServerPacket = packet
  for (const intercept of all) {
    const given = intercept(direction, now)
    if (given === false) return false
    now = given ?? now
  }
  return now === packet ? undefined : now
}

// Other limits with each CONNACK. The broker itself goes on with its own: it is the monitor that holds the client to them.
function limiting(
  setup: Setup,
  all: readonly Limits[],
): NonNullable<MemoryBrokerOptions['intercept']> & Intercept {
  let connacks = 0
  return (direction, packet) => {
    if (direction !== 'out' || packet.type !== 'connack' || packet.reasonCode !== 0)
      return undefined
    const limits = all[Math.min(connacks, all.length - 1)] as Limits
    connacks += 1
    return { ...packet, properties: { ...packet.properties, ...narrowed(limits, setup) } }
  }
}

// Never more than the broker itself takes. No aliases are said by leaving the property out.
function narrowed(
  { topicAliasMaximum: aliases, receiveMaximum, maximumPacketSize: size, ...limits }: Limits,
  setup: Setup,
): Record<string, unknown> {
  return {
    ...limits,
    ...(receiveMaximum === undefined
      ? {}
      : { receiveMaximum: Math.min(receiveMaximum, setup.brokerReceiveMaximum) }),
    ...(size === undefined ? {} : { maximumPacketSize: Math.min(size, setup.brokerPacketSize) }),
    ...(aliases === undefined
      ? {}
      : { topicAliasMaximum: Math.min(aliases, setup.brokerAliases) || undefined }),
  }
}
