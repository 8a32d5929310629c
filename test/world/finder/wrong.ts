/**
 * Calls and options that are wrong, and what has to be said of each: the code of the error, and the name of the option.
 *
 * None of them may have an effect. Those with `version` 4 are wrong for a client of MQTT 3.1.1 only.
 */
import type { BaseClient } from '../../../src/client/client.js'
import { Client } from '../../../src/client/node.js'
import type { MqttErrorCode } from '../../../src/errors.js'

/** One wrong call. */
export interface WrongCall {
  readonly make: (client: BaseClient) => Promise<unknown> | undefined
  readonly code: MqttErrorCode
  readonly option: string | undefined
  readonly version?: 4
}

type Make = WrongCall['make']

function wrong(option: string | undefined, make: Make, code: MqttErrorCode = 'ERR_INVALID_OPTION'): WrongCall {
  return { make, code, option }
}

/** Wrong on 3.1.1. */
function unspoken(option: string | undefined, make: Make): WrongCall {
  return { make, code: 'ERR_UNSUPPORTED_OPTION', option, version: 4 }
}

/** A client with options; none is ever made. */
function made(options: Readonly<Record<string, unknown>>, endpoints: unknown = 'mqtt://nowhere'): Make {
  return () => {
    new Client(endpoints as string, options as never)
    return undefined
  }
}

const pairs = [['name', 'value']] as const
const text = 'wrong'
const five = { protocolVersion: 4 } as const

/** Options of MQTT 5.0 that 3.1.1 does not have, each with a value. */
const fiveOnly: Readonly<Record<string, unknown>> = {
  sessionExpiryInterval: 10,
  receiveMaximum: 10,
  topicAliasMaximum: 5,
  requestResponseInformation: true,
  requestProblemInformation: false,
  userProperties: pairs,
  serverReferences: ['host'],
}

const constructions: Readonly<Record<string, WrongCall>> = {
  ...Object.fromEntries(
    Object.entries(fiveOnly).map(([name, value]) => [`3.1.1 with ${name}`, wrong(name, made({ ...five, [name]: value }), 'ERR_UNSUPPORTED_OPTION')]),
  ),
  '3.1.1 with will properties': wrong(
    'will.properties',
    made({ ...five, will: { topic: 'w', properties: { contentType: 'x' } } }),
    'ERR_UNSUPPORTED_OPTION',
  ),
  'a negative keep-alive': wrong('keepAlive', made({ keepAlive: -1 })),
  'too long a keep-alive': wrong('keepAlive', made({ keepAlive: 65_536 })),
  'an unknown option': wrong('keepalive', made({ keepalive: 5 })),
  'no window': wrong('receiveMaximum', made({ receiveMaximum: 0 })),
  'a durable session without a name': wrong('clientId', made({ cleanStart: false })),
  'no attempts': wrong('reconnect.maxAttempts', made({ reconnect: { maxAttempts: 0 } })),
  'an inner window of 0': wrong('outbound.maxInflight', made({ outbound: { maxInflight: 0 } })),
  'an unknown policy': wrong('outbound.offline.qos0', made({ outbound: { offline: { qos0: 'keep' } } })),
  'a buffer of 0': wrong('subscriptions.buffer', made({ subscriptions: { buffer: 0 } })),
  'an unknown version': wrong('protocolVersion', made({ protocolVersion: 3 })),
  'no endpoint': wrong(undefined, made({}, []), 'ERR_MISSING_BROKER'),
  'an endpoint without a scheme': wrong(undefined, made({}, '127.0.0.1'), 'ERR_INVALID_BROKER_URL'),
}

const calls: Readonly<Record<string, WrongCall>> = {
  'publish at QoS 3': wrong('qos', (client) => client.publish(text, text, { qos: 3 as never })),
  'publish to a wildcard': wrong('topic', (client) => client.publish('wrong/#', text, { qos: 1 }), 'ERR_INVALID_TOPIC'),
  'publish a number': wrong('payload', (client) => client.publish(text, 5 as never)),
  'publish with an unknown option': wrong('retained', (client) => client.publish(text, text, { retained: true } as never)),
  'publish with an alias': wrong('properties.topicAlias', (client) => client.publish(text, text, { properties: { topicAlias: 1 } as never })),
  'publish with a negative wait': wrong('ackTimeout', (client) => client.publish(text, text, { qos: 1, ackTimeout: -1 })),
  'publish with another signal': wrong('signal', (client) => client.publish(text, text, { signal: {} as never })),
  'subscribe in the middle of a wildcard': wrong('filter', (client) => client.subscribe('a/#/b'), 'ERR_INVALID_TOPIC'),
  'subscribe to nothing': wrong('filters', (client) => client.subscribe([])),
  'subscribe at QoS 3': wrong('qos', (client) => client.subscribe('a', { qos: 3 as never })),
  'subscribe to a share without our own': wrong('filter.noLocal', (client) => client.subscribe('$share/g/a', { noLocal: true })),
  'hold back what was acknowledged': wrong('overflow', (client) => client.subscribe('a', { ack: 'on-receive', overflow: 'backpressure' })),
  'unsubscribe from nothing': wrong('filters', (client) => client.unsubscribe([])),
  'listen without a handler': wrong('handler', (client) => client.listen('a', undefined as never), 'ERR_INVALID_HANDLER'),
  'listen with nobody': wrong('concurrency', (client) => client.listen('a', () => undefined, { concurrency: 0 })),
  'disconnect with a negative wait': wrong('timeout', (client) => client.disconnect({ timeout: -1 })),
  'request with a response topic': wrong('properties.responseTopic', (client) =>
    client.request(text, text, { properties: { responseTopic: 'a' } as never }),
  ),
  'no brokers': wrong(
    undefined,
    (client) => {
      client.setBrokers([])
      return undefined
    },
    'ERR_MISSING_BROKER',
  ),
  'an event that there is not': wrong('type', (client) => {
    client.on('message' as never, () => undefined)
    return undefined
  }),
}

const oldCalls: Readonly<Record<string, WrongCall>> = {
  '3.1.1 publish with properties': unspoken('properties.userProperties', (client) =>
    client.publish(text, text, { qos: 1, properties: { userProperties: [...pairs] as never } }),
  ),
  '3.1.1 publish with expiry': unspoken('properties.messageExpiryInterval', (client) =>
    client.publish(text, text, { properties: { messageExpiryInterval: 5 } }),
  ),
  '3.1.1 subscribe without our own': unspoken('noLocal', (client) => client.subscribe('a', { noLocal: true })),
  '3.1.1 subscribe with retain handling': unspoken('retainHandling', (client) => client.subscribe('a', { retainHandling: 2 })),
  '3.1.1 unsubscribe with properties': unspoken('properties.userProperties', (client) =>
    client.unsubscribe('a', { properties: { userProperties: [...pairs] as never } }),
  ),
  '3.1.1 disconnect with a reason': unspoken('reasonCode', (client) => client.disconnect({ reasonCode: 4 })),
  '3.1.1 request': unspoken(undefined, (client) => client.request(text, text)),
}

/** All of them, by what is wrong. */
export const wrongCalls: Readonly<Record<string, WrongCall>> = { ...constructions, ...calls, ...oldCalls }
