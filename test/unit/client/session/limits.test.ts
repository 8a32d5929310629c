import { describe, expect, it } from 'vitest'
import type { Negotiated } from '../../../../src/client/api/index.js'
import { checkFilter, checkPublish, negotiate } from '../../../../src/client/session/limits.js'
import type { Properties, QoS } from '../../../../src/wire/packets.js'
import { connackPacket, connectPacket } from './drive.js'

const agreed = (properties: Properties = {}): Negotiated => negotiate(connectPacket(), connackPacket(properties), 10_000)

describe('what CONNACK settles (section 3.2.2.3)', () => {
  it('fills in the defaults of the standard', () => {
    expect(agreed()).toEqual({
      protocolVersion: 5,
      sessionPresent: false,
      clientId: 'me',
      keepAlive: 30,
      pingTimeout: 10_000,
      serverKeepAlive: undefined,
      sessionExpiryInterval: 0,
      receiveMaximum: 65_535,
      maximumQoS: 2,
      retainAvailable: true,
      maximumPacketSize: 268_435_460,
      topicAliasMaximum: 0,
      wildcardSubscriptionAvailable: true,
      subscriptionIdentifierAvailable: true,
      sharedSubscriptionAvailable: true,
      assignedClientIdentifier: undefined,
      responseInformation: undefined,
      serverReference: undefined,
      reasonString: undefined,
      userProperties: [],
    })
  })

  it.each([
    [30, 10_000, 10_000],
    [30, 60_000, 15_000],
    [5, 10_000, 2500],
    [2, 10_000, 1000],
    [1, 10_000, 1000],
    [1, 200, 200],
    [0, 10_000, 10_000],
  ])('a keep-alive of %i s and a pingTimeout of %i ms: %i ms count, whoever said what the keep-alive is', (keepAlive, pingTimeout, counts) => {
    expect(negotiate(connectPacket({ keepAlive }), connackPacket(), pingTimeout).pingTimeout).toBe(counts)
    expect(negotiate(connectPacket({ keepAlive: 60 }), connackPacket({ serverKeepAlive: keepAlive }), pingTimeout).pingTimeout).toBe(counts)
  })

  it('takes over everything that the server says', () => {
    const connack = connackPacket(
      {
        sessionExpiryInterval: 77,
        receiveMaximum: 3,
        maximumQoS: 1,
        retainAvailable: 0,
        maximumPacketSize: 64,
        assignedClientIdentifier: 'given',
        topicAliasMaximum: 5,
        reasonString: 'why not',
        userProperties: [
          ['a', '1'],
          ['a', '2'],
        ],
        wildcardSubscriptionAvailable: 0,
        subscriptionIdentifierAvailable: 0,
        sharedSubscriptionAvailable: 0,
        serverKeepAlive: 9,
        responseInformation: 'reply/here',
        serverReference: 'elsewhere',
      },
      { sessionPresent: true },
    )
    expect(negotiate(connectPacket({ clientId: '', properties: { sessionExpiryInterval: 300 } }), connack, 10_000)).toEqual({
      protocolVersion: 5,
      sessionPresent: true,
      clientId: 'given',
      keepAlive: 9,
      pingTimeout: 4500,
      serverKeepAlive: 9,
      sessionExpiryInterval: 77,
      receiveMaximum: 3,
      maximumQoS: 1,
      retainAvailable: false,
      maximumPacketSize: 64,
      topicAliasMaximum: 5,
      wildcardSubscriptionAvailable: false,
      subscriptionIdentifierAvailable: false,
      sharedSubscriptionAvailable: false,
      assignedClientIdentifier: 'given',
      responseInformation: 'reply/here',
      serverReference: 'elsewhere',
      reasonString: 'why not',
      userProperties: [
        ['a', '1'],
        ['a', '2'],
      ],
    })
  })

  it('takes a one as "available" and a zero as what it is', () => {
    const yes = agreed({ retainAvailable: 1, wildcardSubscriptionAvailable: 1, subscriptionIdentifierAvailable: 1, sharedSubscriptionAvailable: 1 })
    expect(yes).toMatchObject({
      retainAvailable: true,
      wildcardSubscriptionAvailable: true,
      subscriptionIdentifierAvailable: true,
      sharedSubscriptionAvailable: true,
    })
    expect(agreed({ serverKeepAlive: 0, sessionExpiryInterval: 0, maximumQoS: 0, topicAliasMaximum: 0 })).toMatchObject({
      keepAlive: 0,
      serverKeepAlive: 0,
      sessionExpiryInterval: 0,
      maximumQoS: 0,
      topicAliasMaximum: 0,
    })
  })

  it('keeps the session expiry that we asked for when the server says nothing', () => {
    const connect = connectPacket({ properties: { sessionExpiryInterval: 300 } })
    expect(negotiate(connect, connackPacket(), 10_000).sessionExpiryInterval).toBe(300)
    expect(negotiate(connect, connackPacket({ sessionExpiryInterval: 0 }), 10_000).sessionExpiryInterval).toBe(0)
  })

  it('is frozen, with its user properties', () => {
    for (const one of [agreed(), agreed({ userProperties: [['a', 'b']] })]) {
      expect(Object.isFrozen(one)).toBe(true)
      expect(Object.isFrozen(one.userProperties)).toBe(true)
    }
  })

  it('knows that 3.1.1 has neither identifiers nor shared subscriptions', () => {
    expect(negotiate(connectPacket({ protocolVersion: 4 }), connackPacket(), 10_000)).toMatchObject({
      maximumQoS: 2,
      retainAvailable: true,
      wildcardSubscriptionAvailable: true,
      subscriptionIdentifierAvailable: false,
      sharedSubscriptionAvailable: false,
    })
  })
})

describe('checks before anything is sent', () => {
  it('refuses a QoS above Maximum QoS, and no other [MQTT-3.2.2-11]', () => {
    const verdicts = ([0, 1, 2] as QoS[]).map((maximumQoS) => {
      const limits = agreed({ maximumQoS })
      return ([0, 1, 2] as QoS[]).map((qos) => checkPublish(limits, qos, false) ?? 'ok')
    })
    expect(verdicts).toEqual([
      ['ok', 'ERR_QOS_UNSUPPORTED', 'ERR_QOS_UNSUPPORTED'],
      ['ok', 'ok', 'ERR_QOS_UNSUPPORTED'],
      ['ok', 'ok', 'ok'],
    ])
  })

  it('refuses RETAIN where the server does not retain, and only then [MQTT-3.2.2-14]', () => {
    const limits = agreed({ retainAvailable: 0 })
    expect(checkPublish(limits, 0, true)).toBe('ERR_RETAIN_UNSUPPORTED')
    expect(checkPublish(limits, 2, true)).toBe('ERR_RETAIN_UNSUPPORTED')
    expect(checkPublish(limits, 2, false)).toBeUndefined()
    expect(checkPublish(agreed(), 0, true)).toBeUndefined()
  })

  it.each([
    ['a/+', false, { wildcardSubscriptionAvailable: 0 }, 'ERR_WILDCARD_SUBS_UNSUPPORTED'],
    ['a/#', false, { wildcardSubscriptionAvailable: 0 }, 'ERR_WILDCARD_SUBS_UNSUPPORTED'],
    ['a/b', true, { wildcardSubscriptionAvailable: 0 }, undefined],
    ['$share/g/a', false, { sharedSubscriptionAvailable: 0 }, 'ERR_SHARED_SUBS_UNSUPPORTED'],
    ['a/#', true, { sharedSubscriptionAvailable: 0 }, undefined],
    ['$share/g/a/#', false, { wildcardSubscriptionAvailable: 0 }, 'ERR_WILDCARD_SUBS_UNSUPPORTED'],
    ['$share/g/a', false, { wildcardSubscriptionAvailable: 0 }, undefined],
    ['a', true, { subscriptionIdentifierAvailable: 0 }, 'ERR_SUBSCRIPTION_IDS_UNSUPPORTED'],
    ['a', false, { subscriptionIdentifierAvailable: 0 }, undefined],
    ['$share/g/a/#', true, {}, undefined],
  ] as [string, boolean, Properties, string | undefined][])(
    'filter %s, identifier %s, server %o: %s',
    (filter, withIdentifier, properties, expected) => {
      expect(checkFilter(agreed(properties), filter, withIdentifier)).toBe(expected)
    },
  )
})
