/**
 * The broker of the world: the in-memory broker of `mqwire/testing`, set up for one run.
 *
 * Everything that the world asks of a broker is in `ModelBroker`; nothing else here knows which broker it is.
 */
import { MemoryBroker, type MemoryBrokerOptions } from '../../src/testing/broker/index.js'
import type { Transport } from '../../src/transport/transport.js'
import type { WorldClock } from './clock.js'
import { payloadName } from './reader.js'
import type { Setup } from './schedule.js'

/** A message that the broker took over from the client under test. */
export interface Accepted {
  readonly topic: string
  readonly payload: string
  readonly qos: number
}

/** What the world needs of a broker. */
export interface ModelBroker {
  accept(transport: Transport): void
  restart(keepSessions: boolean): void
  /** Another client publishes. */
  feed(topic: string, payload: string, qos: 0 | 1 | 2, retain: boolean): void
  accepted(): readonly Accepted[]
  /** How often the will of the client was published. */
  wills(): number
  violations(): readonly string[]
}

const encoder = new TextEncoder()

/** Makes the broker of one run. */
export function makeBroker(setup: Setup, clock: WorldClock): ModelBroker {
  const broker = new MemoryBroker({
    clock,
    receiveMaximum: setup.brokerReceiveMaximum,
    topicAliasMaximum: setup.brokerAliases,
    maximumPacketSize: setup.brokerPacketSize,
    ...(setup.narrower ? { intercept: narrower() } : {}),
    ...(setup.auth ? { auth: { world: worldMethod } } : {}),
  })
  return {
    accept: (transport) => {
      broker.accept(transport)
    },
    restart: (keepSessions) => {
      broker.restart({ keepSessions })
    },
    feed: (topic, payload, qos, retain) => {
      broker.publish({ topic, payload: encoder.encode(payload), qos, retain })
    },
    accepted: () =>
      broker.accepted.filter((message) => !message.will).map(({ topic, payload, qos }) => ({ topic, payload: payloadName(payload), qos })),
    wills: () => broker.accepted.filter((message) => message.will).length,
    violations: () => broker.violations.map(({ packet, text }) => `${packet ?? 'bytes'}: ${text}`),
  }
}

// One round: the broker asks for a second answer and is satisfied with it.
const worldMethod = {
  start: () => ({ reasonCode: 0x18, data: encoder.encode('more') }),
  continue: () => ({ reasonCode: 0 }),
}

// Lower limits from the second CONNACK on. The broker itself goes on with the old ones: it is the monitor that holds the client to them.
function narrower(): NonNullable<MemoryBrokerOptions['intercept']> {
  let connacks = 0
  return (direction, packet) => {
    if (direction !== 'out' || packet.type !== 'connack' || packet.reasonCode !== 0) return undefined
    connacks += 1
    if (connacks === 1) return undefined
    return { ...packet, properties: { ...packet.properties, receiveMaximum: 1, topicAliasMaximum: undefined } }
  }
}
