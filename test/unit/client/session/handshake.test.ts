/** CONNECT and CONNACK (sections 3.1, 3.2): what they settle, and reason codes of the peer as errors, with nothing of its text in a message. */
import { describe, expect, it } from 'vitest'
import type { Negotiated } from '../../../../src/client/options/index.js'
import { checkFilter, checkPublish, negotiate } from '../../../../src/client/session/limits.js'
import {
  broken,
  nameOf,
  refusal,
  tooLarge,
  version5Code,
} from '../../../../src/client/session/refusal.js'
import type { SessionConfig } from '../../../../src/client/session/session.js'
import { MqttError } from '../../../../src/errors.js'
import type { ConnectPacket, Properties, QoS, ServerPacket } from '../../../../src/wire/packets.js'
import { connackPacket, connected, connecting, connectPacket, Driven } from './drive.js'

describe('a session without a connection', () => {
  it('speaks 5.0 until a CONNECT says otherwise, and says what the last CONNECT did', () => {
    const session = new Driven()
    expect(session.version).toBe(5)
    session.connect(connectPacket({ protocolVersion: 4, properties: {} }))
    expect(session.version).toBe(4)
    session.suspend()
    expect(session.version).toBe(4)
  })

  it('is opened for what its CONNECT will say, then for what it said; absent is 0 (section 3.1.2.11.2) [MQTT-3.14.2-2]', () => {
    expect(new Driven().openedFor).toBe(0)
    const session = new Driven({ sessionExpiryInterval: 300 })
    expect(session.openedFor).toBe(300)
    session.connect(connectPacket({ properties: { sessionExpiryInterval: 60 } }))
    expect(session.openedFor).toBe(60)
    session.suspend()
    session.connect(connectPacket({ properties: {} }))
    expect(session.openedFor).toBe(0)
  })

  it('stays idle when the transport is lost before CONNECT, times and probes nothing, and can still connect', () => {
    const session = new Driven()
    session.suspend()
    session.handleTimeout(1e9)
    session.probe(1e9)
    expect([session.state, session.takeActions()]).toEqual(['idle', []])
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
    session.connect(connectPacket())
    expect([session.state, session.takeActions().length]).toEqual(['connecting', 1])
    // One that was begun is over.
    session.suspend()
    expect(session.state).toBe('closed')
  })
})

describe('CONNACK', () => {
  it('makes the connection, after CONNECT as the first thing asked for [MQTT-3.1.0-1]', () => {
    const session = new Driven()
    expect([session.state, session.takeActions()]).toEqual(['idle', []])
    expect(session.negotiated).toBeUndefined()
    const packet = connectPacket()
    session.connect(packet)
    expect(session.state).toBe('connecting')
    expect(session.takeActions()).toEqual([{ type: 'send', packet }])
    const connack = connackPacket({ receiveMaximum: 7 })
    session.handlePacket(connack, 0)
    expect(session.takeActions()).toEqual([{ type: 'connected', connack, lost: false, stale: 0 }])
    expect([session.state, session.negotiated?.receiveMaximum]).toEqual(['connected', 7])
    expect(Object.isFrozen(session.negotiated)).toBe(true)
  })

  it.each([0x80, 0x84, 0x86, 0x87, 0x8a, 0x95, 0x9c, 0x9d, 0x9f, 1, 5])(
    '%i: refused, closed, nothing sent, nothing heard; a new attempt starts afresh',
    (reasonCode) => {
      const session = connecting()
      const properties = { reasonString: 'no', serverReference: 'there' }
      const connack = connackPacket(properties, { reasonCode })
      session.handlePacket(connack, 0)
      expect(session.takeActions()).toEqual([{ type: 'refused', connack }])
      expect([session.state, session.negotiated, session.deadline]).toEqual([
        'closed',
        undefined,
        Number.POSITIVE_INFINITY,
      ])
      session.handlePacket(connackPacket(), 0)
      session.close(new MqttError('ERR_CLOSED', 'too late'), 0x82)
      expect([session.takeActions(), session.state]).toEqual([[], 'closed'])
      const packet = connectPacket({ clientId: 'again' })
      session.connect(packet)
      expect(session.takeActions()).toEqual([{ type: 'send', packet }])
      session.handlePacket(connackPacket(), 1000)
      expect([session.state, session.deadline]).toEqual(['connected', 31_000])
      expect(session.negotiated?.clientId).toBe('again')
      session.takeActions()
      session.expectQuiet()
    },
  )

  // The server took us in: DISCONNECT 0x82 goes first (section 4.13.1).
  it.each(['other', 'me', ''])(
    'a client id "%s" that is not ours: close',
    (assignedClientIdentifier) => {
      const session = connecting()
      session.handlePacket(connackPacket({ assignedClientIdentifier }), 0)
      expect(session.actions).toMatchObject([{ reasonCode: 0x82 }])
      session.expectClose(0x82)
      expect(session.negotiated).toBeUndefined()
    },
  )

  it.each<[Partial<ConnectPacket>, Partial<SessionConfig>, boolean]>([
    [{ cleanStart: true }, {}, false],
    [{ cleanStart: true }, { ownsSession: true }, false],
    [{ cleanStart: false }, {}, false],
    [{ cleanStart: false }, { ownsSession: true }, true],
  ])(
    'Session Present 1 after %o by a client with %o: welcome %s; 0 always is [MQTT-3.2.2-2] [MQTT-3.2.2-4]',
    (connect, config, welcome) => {
      const session = connecting(config, connect)
      session.handlePacket(connackPacket({}, { sessionPresent: true }), 0)
      if (welcome)
        expect(session.takeActions()).toMatchObject([
          { type: 'connected', connack: { sessionPresent: true } },
        ])
      else expect(session.actions).toMatchObject([{ reasonCode: 0x82 }])
      if (welcome) expect(session.negotiated?.sessionPresent).toBe(true)
      else session.expectClose(0x82)
      expect(connected(config, {}, connect).negotiated?.sessionPresent).toBe(false)
    },
  )

  it.each([
    [undefined, 'SCRAM', false],
    ['SCRAM', undefined, false],
    ['SCRAM', 'KERBEROS', false],
    ['SCRAM', 'SCRAM', true],
  ])('CONNECT with method %s, CONNACK with %s: welcome %s', (ours, theirs, welcome) => {
    const session = connecting({}, { properties: { authenticationMethod: ours } })
    session.handlePacket(connackPacket({ authenticationMethod: theirs }), 0)
    expect(session.actions).toMatchObject([welcome ? { type: 'connected' } : { reasonCode: 0x82 }])
    if (!welcome) session.expectClose(0x82)
  })

  it.each([0, 0x87])('a second one, with %i: close(0x82) [MQTT-3.2.0-2]', (reasonCode) => {
    const session = connected()
    session.handlePacket(connackPacket({}, { reasonCode }), 0)
    expect(session.actions).toMatchObject([{ reasonCode: 0x82 }])
    session.expectClose(0x82)
  })

  it('before CONNECT: close, and no DISCONNECT', () => {
    const session = new Driven()
    session.handlePacket(connackPacket(), 0)
    expect(session.actions).toMatchObject([{ reasonCode: undefined }])
    session.expectClose(0x82)
  })
})

describe('packets before CONNACK', () => {
  const packets: ServerPacket[] = [
    { type: 'suback', packetId: 1, properties: {}, reasonCodes: [0] },
    { type: 'unsuback', packetId: 1, properties: {}, reasonCodes: [0] },
    { type: 'pingresp' },
    { type: 'disconnect', reasonCode: 0x8b, properties: {} },
    { type: 'auth', reasonCode: 0x18, properties: {} },
  ]

  it.each(packets)('$type: close(0x82), nothing handed on [MQTT-3.2.0-1]', (packet) => {
    const session = connecting()
    session.sendWindow.request('subscribe', 1)
    session.handlePacket(packet, 0)
    expect(session.actions).toMatchObject([{ reasonCode: undefined }])
    session.expectClose(0x82, 'ERR_UNEXPECTED_PACKET')
  })
})

const CONNACK = 2
const PUBACK = 4
const SUBACK = 9
const DISCONNECT = 14

it.each([
  [0x00, PUBACK, 'Success'],
  [0x00, SUBACK, 'Granted QoS 0'],
  [0x00, DISCONNECT, 'Normal disconnection'],
  [0x00, undefined, 'Success'],
  [0x87, CONNACK, 'Not authorized'],
  [0x8e, undefined, 'Session taken over'],
  // A broker's own codes, and those of another packet.
  [0x8e, PUBACK, 'unknown'],
  [0x03, undefined, 'unknown'],
  [0x42, undefined, 'unknown'],
  [0xff, CONNACK, 'unknown'],
])('%i of packet type %s is named "%s" (section 2.4)', (code, packetType, name) => {
  expect(nameOf(code, packetType)).toBe(name)
})

it.each([
  [0, 0, 'Success'],
  [1, 0x84, 'Unsupported Protocol Version'],
  [2, 0x85, 'Client Identifier not valid'],
  [3, 0x88, 'Server unavailable'],
  [4, 0x86, 'Bad User Name or Password'],
  [5, 0x87, 'Not authorized'],
  // Reserved: refused, for a reason that is not known.
  [6, 0x80, 'Unspecified error'],
  [255, 0x80, 'Unspecified error'],
])('return code %i of a 3.1.1 CONNACK is %i on 5.0: %s', (returnCode, code, name) => {
  expect(version5Code(returnCode)).toBe(code)
  expect(nameOf(code, CONNACK)).toBe(name)
})

it.each([
  ['ERR_CONNECT_REFUSED', 0x86, 'connect refused: Bad User Name or Password (username, password?)'],
  [
    'ERR_CONNECT_REFUSED',
    0x84,
    'connect refused: Unsupported Protocol Version (protocolVersion auto?)',
  ],
  ['ERR_CONNECT_REFUSED', 0x89, 'connect refused: Server busy'],
  ['ERR_PUBLISH_REFUSED', 0x87, 'publish refused: Not authorized'],
  ['ERR_SESSION_TAKEN_OVER', 0x8e, 'session taken over: another client has this clientId'],
] as const)('%s 0x%x names the reason, and what to look at', (code, reasonCode, message) => {
  expect(refusal(code, reasonCode).message).toBe(message)
})

describe('a refusal', () => {
  it('is the peer’s fault, carries the code with its name, and what the peer said apart from the message', () => {
    const error = refusal('ERR_PUBLISH_REFUSED', 0x97, 'evil \u001b[2J', PUBACK)
    expect(error).toMatchObject({
      ...{ code: 'ERR_PUBLISH_REFUSED', fault: 'remote', outcome: 'refused' },
      ...{ reasonCode: 0x97, reasonName: 'Quota exceeded', reasonString: 'evil \u001b[2J' },
    })
    expect(error.message).not.toContain('evil')
    expect(refusal('ERR_SUBSCRIBE_REFUSED', 0x80, undefined, SUBACK, 'unknown').outcome).toBe(
      'unknown',
    )
  })

  it('differs from a connection that broke: what was sent may have arrived', () => {
    const cause = new Error('reset')
    const error = broken('ERR_CONNECTION_LOST', 'closed', cause)
    expect(error).toMatchObject({
      code: 'ERR_CONNECTION_LOST',
      fault: 'remote',
      outcome: 'unknown',
      reasonCode: undefined,
      cause,
    })
    expect(error.message).toContain('closed')
  })

  it('of a packet that was too large says by how much, and whose limit it is', () => {
    expect(tooLarge(300, 256)).toMatchObject({
      code: 'ERR_PACKET_TOO_LARGE',
      message: 'packet too large: 300 bytes, the server takes 256',
    })
  })
})

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
