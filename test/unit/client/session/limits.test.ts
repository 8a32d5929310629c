/** What CONNACK settles (section 3.2.2.3), and the checks before anything is sent. */
import { describe, expect, it } from 'vitest'
import type { Negotiated } from '../../../../src/client/options/index.js'
import { checkFilter, checkPublish, negotiate } from '../../../../src/client/session/limits.js'
import type { Properties, QoS } from '../../../../src/wire/packets.js'
import { connackPacket, connectPacket } from './drive.js'

const agreed = (properties: Properties = {}): Negotiated =>
  negotiate(connectPacket(), connackPacket(properties), 10_000)

/** All that a server may say it has. */
const available = <T>(value: T) => ({
  ...{ retainAvailable: value, wildcardSubscriptionAvailable: value },
  ...{ subscriptionIdentifierAvailable: value, sharedSubscriptionAvailable: value },
})

describe('what CONNACK settles', () => {
  it('is the defaults of the standard where it says nothing, frozen with its user properties', () => {
    expect(agreed()).toEqual({
      ...{ protocolVersion: 5, sessionPresent: false, clientId: 'me', keepAlive: 30 },
      ...{ pingTimeout: 10_000, sessionExpiryInterval: 0, receiveMaximum: 65_535, maximumQoS: 2 },
      ...available(true),
      ...{ maximumPacketSize: 268_435_460, topicAliasMaximum: 0, userProperties: [] },
    })
    for (const one of [agreed(), agreed({ userProperties: [['a', 'b']] })])
      expect([Object.isFrozen(one), Object.isFrozen(one.userProperties)]).toEqual([true, true])
  })

  it.each([
    [30, 10_000, 10_000],
    [30, 60_000, 15_000],
    [5, 10_000, 2500],
    [2, 10_000, 1000],
    [1, 10_000, 1000],
    [1, 200, 200],
    [0, 10_000, 10_000],
  ])('keep-alive %i s, pingTimeout %i ms: %i ms count', (keepAlive, pingTimeout, counts) => {
    expect(negotiate(connectPacket({ keepAlive }), connackPacket(), pingTimeout).pingTimeout).toBe(
      counts,
    )
    expect(
      negotiate(
        connectPacket({ keepAlive: 60 }),
        connackPacket({ serverKeepAlive: keepAlive }),
        pingTimeout,
      ).pingTimeout,
    ).toBe(counts)
  })

  it('takes over everything that the server says', () => {
    const same: Properties = {
      ...{ sessionExpiryInterval: 77, receiveMaximum: 3, maximumQoS: 1, maximumPacketSize: 64 },
      ...{ topicAliasMaximum: 5, serverKeepAlive: 9, serverReference: 'elsewhere' },
      ...{
        assignedClientIdentifier: 'given',
        reasonString: 'why not',
        responseInformation: 'here',
      },
      userProperties: ['1', '2'].map((value): [string, string] => ['a', value]),
    }
    const connect = connectPacket({ clientId: '', properties: { sessionExpiryInterval: 300 } })
    const connack = connackPacket({ ...same, ...available(0 as const) }, { sessionPresent: true })
    expect(negotiate(connect, connack, 10_000)).toEqual({
      ...{ ...same, ...available(false), protocolVersion: 5, sessionPresent: true },
      ...{ clientId: 'given', keepAlive: 9, pingTimeout: 4500 },
    })
  })

  it('takes a one as "available" and a zero as what it is', () => {
    expect(agreed(available(1 as const))).toMatchObject(available(true))
    const zero = { serverKeepAlive: 0, sessionExpiryInterval: 0, topicAliasMaximum: 0 }
    const none = { ...zero, maximumQoS: 0 } as const
    expect(agreed(none)).toMatchObject({ ...none, keepAlive: 0 })
  })

  it('keeps the session expiry that we asked for when the server says nothing', () => {
    const connect = connectPacket({ properties: { sessionExpiryInterval: 300 } })
    expect(negotiate(connect, connackPacket(), 10_000).sessionExpiryInterval).toBe(300)
    expect(
      negotiate(connect, connackPacket({ sessionExpiryInterval: 0 }), 10_000).sessionExpiryInterval,
    ).toBe(0)
  })

  it('knows that 3.1.1 has neither identifiers nor shared subscriptions', () => {
    const negotiated = negotiate(connectPacket({ protocolVersion: 4 }), connackPacket(), 10_000)
    expect(negotiated).toMatchObject({
      ...{ maximumQoS: 2, retainAvailable: true, wildcardSubscriptionAvailable: true },
      ...{ subscriptionIdentifierAvailable: false, sharedSubscriptionAvailable: false },
    })
  })
})

describe('checks before anything is sent', () => {
  it('refuse a QoS above Maximum QoS, and no other [MQTT-3.2.2-11]', () => {
    const levels: QoS[] = [0, 1, 2]
    for (const maximumQoS of levels)
      for (const qos of levels)
        expect(checkPublish(agreed({ maximumQoS }), qos, false)).toBe(
          qos > maximumQoS ? 'ERR_QOS_UNSUPPORTED' : undefined,
        )
  })

  it('refuse RETAIN where the server does not retain, and only then [MQTT-3.2.2-14]', () => {
    for (const qos of [0, 2] as const)
      for (const [retainAvailable, retain] of [
        [0, true],
        [0, false],
        [1, true],
      ] as const)
        expect(checkPublish(agreed({ retainAvailable }), qos, retain)).toBe(
          retain && !retainAvailable ? 'ERR_RETAIN_UNSUPPORTED' : undefined,
        )
  })

  it.each<[string, boolean, Properties, string | undefined]>([
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
  ])('filter %s, identifier %s, server %o: %s', (filter, withIdentifier, properties, expected) => {
    expect(checkFilter(agreed(properties), filter, withIdentifier)).toBe(expected)
  })
})
