/** CONNACK: refusals, what it may not carry, what the server assigns and allows, and packets that are not due beside it. */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { MqttError } from '../../../src/errors.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { accepting, connected, failure, World } from './harness.js'

/** Connects, and answers CONNECT with these bytes. */
async function answeredWith(hex: string, options = {}): Promise<{ world: World; error: unknown }> {
  const world = new World(options)
  const outcome = world.client.connect().then(
    () => undefined,
    (error: unknown) => error,
  )
  await world.settle()
  await world.sendBytes(hex)
  return { world, error: await outcome }
}

/** The attempt failed with this code, nothing was sent but CONNECT (and a DISCONNECT with the reason), and all is closed. */
function expectRejected(
  { world, error }: { world: World; error: unknown },
  code = 'ERR_PROTOCOL_ERROR',
  reasonCode: number | undefined = 0x82,
): void {
  expect(MqttError.is(error)).toBe(true)
  expect(error).toMatchObject({ code, reasonCode, fault: 'remote' })
  const [first, ...rest] = world.peer.received
  expect(first?.type).toBe('connect')
  for (const packet of rest) expect(packet).toMatchObject({ type: 'disconnect', reasonCode })
  expect(world.peer.ended).toBeDefined()
  expect([world.seen('connect'), world.seen('disconnect')]).toEqual([[], []])
  expect([world.client.state, world.clock.pending]).toEqual(['closed', 0])
}

const hexOf = (byte: number): string => byte.toString(16).padStart(2, '0')

/** What a server may not offer. */
const flags = [
  'retain',
  'wildcardSubscription',
  'subscriptionIdentifier',
  'sharedSubscription',
].map((name) => `${name}Available`)
/** Options of a client that may have a session. */
const declared = { clientId: 'a', cleanStart: false }

describe('refusals', () => {
  it.each([
    0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99,
    0x9a, 0x9b, 0x9c, 0x9d, 0x9f,
  ])(
    'CONNACK 0x%s rejects with code, name and reason string [MQTT-3.2.2-7]',
    async (reasonCode) => {
      const { world, error } = await answeredWith(
        `20 0b 00 ${hexOf(reasonCode)} 08 1f 00 05 77 68 79 20 3f`,
      )
      expectRejected({ world, error }, 'ERR_CONNECT_REFUSED', reasonCode)
      const reasonName = expect.stringMatching(/^[A-Z]/)
      expect(error).toMatchObject({ outcome: 'refused', reasonString: 'why ?', reasonName })
      expect(world.peer.received).toHaveLength(1)
      expect(world.seen('connecterror')).toMatchObject([
        { error: { reasonCode }, attempt: 1, endpoint: 'memory://peer-0' },
      ])
      expect(await world.client.closed).toBe(error)
    },
  )

  it.each([
    ['Session Present and an error [MQTT-3.2.2-6]', '20 03 01 87 00', declared],
    ['Session Present 1 after Clean Start 1 [MQTT-3.2.2-4]', '20 03 01 00 00', {}],
    ['Session Present 1 after expiry 0', '20 03 01 00 00', { sessionExpiryInterval: 0 }],
    ['an empty assigned identifier', '20 06 00 00 03 12 00 00', { clientId: 'mine' }],
    ['an assigned one to one of ours', '20 07 00 00 04 12 00 01 78', { clientId: 'mine' }],
    ['Receive Maximum 0', '20 06 00 00 03 21 00 00', {}],
    ['Maximum Packet Size 0', '20 08 00 00 05 27 00 00 00 00', {}],
    ['an authentication method that we did not name', '20 07 00 00 04 15 00 01 61', {}],
  ])('%s', async (_title, hex, options) => {
    expectRejected(await answeredWith(hex, options))
  })

  it.each([
    ['mqtt://h:1', 'TLS (mqtts://h:1), or another port?'],
    ['ws://h:1/a', 'TLS (wss://h:1), or another port?'],
    ['mqtts://h:1', 'a client certificate, or another port?'],
    ['wss://h:1/a', 'a client certificate, or another port?'],
  ])('a server at %s that closes before CONNACK: what the port may be', async (url, hint) => {
    const clock = new VirtualClock()
    const dialler = () => async () => {
      const [near, far] = memoryPair({
        schedule: (callback, delay) => clock.setTimer(callback, delay),
      })
      const peer = new ScriptedPeer(far, 5, () => void peer.end())
      return near
    }
    const client = new BaseClient({ ...virtualPlatform(clock), dialler }, url, { reconnect: false })
    const refused = failure(client.connect())
    await clock.settle()
    const message = `closed before CONNACK: ${hint}`
    expect(await refused).toMatchObject({ code: 'ERR_CONNECT_FAILED', message, fault: 'remote' })
  })
})

describe('what the server assigns and allows', () => {
  it.each([0, 1])('Session Present %i is welcome to a declared session', async (flag) => {
    const { world, error } = await answeredWith(`20 03 0${flag} 00 00`, declared)
    expect([error, world.seen('connect')]).toMatchObject([
      undefined,
      [{ sessionPresent: flag === 1 }],
    ])
  })

  it('everything is visible, frozen, with the defaults of the standard filled in', async () => {
    const { client } = await connected({ clientId: 'a', keepAlive: 20, sessionExpiryInterval: 77 })
    const { userProperties, ...rest } = { ...client.negotiated }
    const known = Object.entries(rest).filter(([, value]) => value !== undefined)
    expect(known.map(([name, value]) => `${name} ${value}`).sort()).toEqual([
      'clientId a',
      'keepAlive 20',
      'maximumPacketSize 268435460',
      'maximumQoS 2',
      'pingTimeout 10000',
      'protocolVersion 5',
      'receiveMaximum 65535',
      'retainAvailable true',
      'sessionExpiryInterval 77',
      'sessionPresent false',
      'sharedSubscriptionAvailable true',
      'subscriptionIdentifierAvailable true',
      'topicAliasMaximum 0',
      'wildcardSubscriptionAvailable true',
    ])
    expect(userProperties).toEqual([])
    expect(Object.isFrozen(client.negotiated)).toBe(true)
  })

  it('what the server does not offer is refused without a byte, and the link stays', async () => {
    const limits = { receiveMaximum: 1, maximumQoS: 0, maximumPacketSize: 64 }
    const missing = Object.fromEntries(flags.map((name) => [name, 0]))
    const world = await connected({}, accepting({ ...limits, ...missing }))
    const { client } = world
    const sent = world.peer.bytes.length
    const refused: [string, Promise<unknown>][] = [
      ['ERR_QOS_UNSUPPORTED', client.publish('a', 'b', { qos: 1 })],
      ['ERR_QOS_UNSUPPORTED', client.publish('a', 'b', { qos: 2 })],
      ['ERR_RETAIN_UNSUPPORTED', client.publish('a', 'b', { retain: true })],
      ['ERR_PACKET_TOO_LARGE', client.publish('a', new Uint8Array(60))],
      ['ERR_PACKET_TOO_LARGE', client.subscribe('x'.repeat(60))],
      ['ERR_PACKET_TOO_LARGE', client.unsubscribe('y'.repeat(60))],
      ['ERR_WILDCARD_SUBS_UNSUPPORTED', client.subscribe('a/#')],
      ['ERR_SHARED_SUBS_UNSUPPORTED', client.subscribe('$share/g/a')],
      [
        'ERR_SUBSCRIPTION_IDS_UNSUPPORTED',
        client.subscribe('a', { properties: { subscriptionIdentifier: 5 } }),
      ],
    ]
    const errors = Promise.all(refused.map(([, promise]) => failure(promise)))
    await world.settle()
    expect(await errors).toMatchObject(
      refused.map(([code]) => ({ code, outcome: 'not-sent', fault: 'local' })),
    )
    expect(() => client.post('a', new Uint8Array(60))).toThrow(
      expect.objectContaining({ code: 'ERR_PACKET_TOO_LARGE' }),
    )
    await world.settle()
    expect([world.peer.bytes.length, client.state]).toEqual([sent, 'connected'])
    expect(client.post('a', 'fits')).toBe(true)
    await world.settle()
    expect(world.peer.last('publish')).toMatchObject({ topic: 'a', qos: 0 })
  })
})

describe('packets that are not due', () => {
  it.each([
    ['PUBLISH', '30 04 00 01 61 00'],
    ['PUBACK', '40 02 00 01'],
    ['PUBACK with a reason string', '40 08 00 01 00 04 1f 00 01 61'],
    ['PUBREC', '50 02 00 01'],
    ['PUBREL', '62 02 00 01'],
    ['PUBREL with a reason string', '62 08 00 01 00 04 1f 00 01 61'],
    ['PUBCOMP', '70 02 00 01'],
    ['SUBACK', '90 04 00 01 00 00'],
    ['UNSUBACK', 'b0 04 00 01 00 00'],
    ['PINGRESP', 'd0 00'],
    ['DISCONNECT', 'e0 00'],
    ['AUTH', 'f0 06 18 04 15 00 01 61'],
  ])('%s before CONNACK: nothing is delivered [MQTT-3.2.0-1]', async (_name, hex) => {
    const world = new World()
    const subscription = world.client.subscription('#')
    const error = failure(world.client.connect())
    await world.settle()
    await world.sendBytes(hex)
    expectRejected({ world, error: await error }, 'ERR_UNEXPECTED_PACKET')
    expect(subscription.size).toBe(0)
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_UNEXPECTED_PACKET' })
  })

  it.each([
    ['a server DISCONNECT', 'e0 02 8b 00', 'ERR_SERVER_DISCONNECT', 0x8b],
    ['a second CONNACK', '20 03 00 00 00', 'ERR_PROTOCOL_ERROR', 0x82],
    ['bad bytes', '00 00', 'ERR_MALFORMED_PACKET', 0x81],
  ])(
    'CONNACK and %s in one read: the client is closed, not left for connected',
    async (_name, hex, code, reasonCode) => {
      const { world } = await answeredWith(`20 03 00 00 00 ${hex}`)
      expect(await world.client.closed).toMatchObject({ code, reasonCode })
      expect(world.peer.ended).toBeDefined()
      expect(world.seen('disconnect')).toHaveLength(world.seen('connect').length)
      expect([world.client.state, world.clock.pending]).toEqual(['closed', 0])
    },
  )

  it('a good packet behind CONNACK in one read is delivered', async () => {
    const world = new World(declared)
    const subscription = world.client.subscription('a')
    const connecting = world.client.connect()
    await world.settle()
    await world.sendBytes('20 03 01 00 00', '30 05 00 01 61 00 62')
    await connecting
    expect(subscription.read()?.text()).toBe('b')
  })
})
