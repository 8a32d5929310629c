/** The rules of `tables.json` that only a connection with a past can keep: what a server answers to whom, and when a client has an identifier back. */
import { describe, expect, it } from 'vitest'
import type { MemoryBrokerOptions } from '../../src/testing/index.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../src/wire/constants.js'
import type { PacketInput } from '../../src/wire/index.js'
import { world } from '../broker/raw-client.js'
import { connected } from '../unit/client/session/drive.js'

/** What a connected client does, and the reason code with which the broker in memory ends its connection. */
const broken: [string, MemoryBrokerOptions, PacketInput, number][] = [
  [
    '[rule errorHandling.explicitProtocolError.0] [rule errorHandling.codesForThese.1] a second CONNECT',
    {},
    { type: 'connect', clientId: 'a' },
    0x82,
  ],
  [
    '[rule errorHandling.explicitProtocolError.13] [rule errorHandling.codesForThese.5] a QoS above Maximum QoS',
    { maximumQoS: 1 },
    { type: 'publish', topic: 't', qos: 2, packetId: 1 },
    0x9b,
  ],
  [
    '[rule errorHandling.explicitProtocolError.14] [rule errorHandling.codesForThese.4] RETAIN though it is not available',
    { retainAvailable: false },
    { type: 'publish', topic: 't', retain: true },
    0x9a,
  ],
  [
    '[rule errorHandling.explicitProtocolError.16] [rule errorHandling.codesForThese.8] a wildcard though there are none',
    { wildcardSubscriptionAvailable: false },
    { type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'a/#' }] },
    0xa2,
  ],
  [
    '[rule errorHandling.explicitProtocolError.16] [rule errorHandling.codesForThese.6] a shared subscription though there are none',
    { sharedSubscriptionAvailable: false },
    { type: 'subscribe', packetId: 1, subscriptions: [{ filter: '$share/g/a' }] },
    0x9e,
  ],
  [
    '[rule errorHandling.explicitProtocolError.16] [rule errorHandling.codesForThese.7] a Subscription Identifier though there are none',
    { subscriptionIdentifierAvailable: false },
    { type: 'subscribe', packetId: 1, properties: { subscriptionIdentifiers: [1] }, subscriptions: [{ filter: 'a' }] },
    0xa1,
  ],
  [
    '[rule errorHandling.explicitProtocolError.17] DISCONNECT that raises the Session Expiry Interval from 0',
    {},
    { type: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 1 } },
    0x82,
  ],
  [
    '[rule errorHandling.codesForThese.3] more than Maximum Packet Size',
    { maximumPacketSize: 100 },
    { type: 'publish', topic: 't', payload: new Uint8Array(100) },
    0x95,
  ],
]

describe('a server', () => {
  it.each(broken)('%s: DISCONNECT with that code, the end [rule errorHandling.server]', async (_rule, options, packet, reasonCode) => {
    const { join } = world(options)
    const client = await join('a')
    await client.send(packet)
    expect(client.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode })
    expect(client.ended).toBeDefined()
  })

  it('[rule errorHandling.codesForThese.2] more than its Receive Maximum: DISCONNECT 0x93, the end', async () => {
    const { join } = world({ receiveMaximum: 2 })
    const client = await join('a')
    await client.send(...[1, 2, 3].map((packetId): PacketInput => ({ type: 'publish', topic: 't', qos: 2, packetId })))
    expect(client.goodbye).toBe(0x93)
    expect(client.ended).toBeDefined()
  })

  it('[rule errorHandling.codesForThese.0] [rule errorHandling.server] bytes that are malformed: DISCONNECT 0x81, in CONNECT CONNACK 0x81, the end', async () => {
    const { join, dial } = world()
    const client = await join('a')
    await client.sendBytes([0xff, 0])
    expect(client.goodbye).toBe(0x81)
    expect(client.ended).toBeDefined()
    const early = dial()
    await early.sendBytes([...Buffer.from('100d00044d51545405030000000000', 'hex')])
    expect(early.received).toMatchObject([{ type: 'connack', reasonCode: 0x81, sessionPresent: false }])
    expect(early.ended).toBeDefined()
  })

  it('[rule sharedSubscription.noRetained] sends no retained messages for a shared subscription', async () => {
    const { join, broker } = world()
    broker.publish({ topic: 't', payload: 'kept', retain: true })
    const client = await join('a')
    expect(await client.subscribe('$share/g/t')).toMatchObject([{ type: 'suback' }])
    expect(await client.subscribe('t', 2)).toMatchObject([{ type: 'suback' }, { type: 'publish', retain: true }])
  })
})

describe('packet identifiers', () => {
  type Outbound = ReturnType<typeof connected>['sendWindow']
  const cases: [string, (outbound: Outbound) => number, ((outbound: Outbound, id: number) => unknown)[]][] = [
    ['PUBLISH at QoS 1: PUBACK', (outbound) => outbound.publish(1), [(outbound, id) => outbound.handleAck(PUBACK, id, 0)]],
    ['PUBLISH at QoS 2: PUBREC with an error', (outbound) => outbound.publish(2), [(outbound, id) => outbound.handleAck(PUBREC, id, 0x80)]],
    [
      'PUBLISH at QoS 2: PUBREC, PUBCOMP',
      (outbound) => outbound.publish(2),
      [(outbound, id) => outbound.handleAck(PUBREC, id, 0), (outbound, id) => outbound.handleAck(PUBCOMP, id, 0)],
    ],
    ['SUBSCRIBE: SUBACK', (outbound) => outbound.request('subscribe', 1), [(outbound, id) => outbound.handleAnswer('subscribe', id, 1)]],
    ['UNSUBSCRIBE: UNSUBACK', (outbound) => outbound.request('unsubscribe', 1), [(outbound, id) => outbound.handleAnswer('unsubscribe', id, 1)]],
  ]

  it.each(cases)('[rule packetIdentifierFreedBy] %s frees it, and nothing before does', (_what, take, answers) => {
    const { sendWindow } = connected()
    const id = take(sendWindow)
    for (let other = 1; other < 65_535; other++) sendWindow.request('subscribe', 1)
    for (const answer of answers) {
      expect(sendWindow.hasIdentifier).toBe(false)
      answer(sendWindow, id)
    }
    expect(sendWindow.hasIdentifier).toBe(true)
    expect(sendWindow.request('subscribe', 1)).toBe(id)
    expect(sendWindow.hasIdentifier).toBe(false)
  })
})
