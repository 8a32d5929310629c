/** MQTT 3.1.1: what it does not have is refused by name where it is asked for, and named where `'auto'` goes without it. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, DisconnectOptions } from '../../../src/client/options/index.js'
import { MqttError } from '../../../src/errors.js'
import { failure, World } from './harness.js'
import { agreed, publish, quiet, subscribe, takenTexts } from './incoming.js'
import { Rig, refusing, welcoming } from './rig.js'

const auth = { method: 'x', start: () => undefined, continue: () => undefined }
const userProperties: [string, string][] = [['a', 'b']]
const delayed = { topic: 'w', properties: { willDelayInterval: 5 } }

/** Every option of 5.0 alone; also at the values that are the defaults. */
const fiveOnly: readonly ClientOptions[] = [
  ...[60, 300, 0].map((sessionExpiryInterval) => ({ sessionExpiryInterval })),
  ...[10, 256].map((receiveMaximum) => ({ receiveMaximum })),
  ...[0, 10].map((topicAliasMaximum) => ({ topicAliasMaximum })),
  { requestResponseInformation: false },
  ...[false, true].map((requestProblemInformation) => ({ requestProblemInformation })),
  ...[userProperties, []].map((given) => ({ userProperties: given })),
  { auth },
  { serverReferences: ['a.example'] },
  { will: delayed },
]
const nameOf = (options: ClientOptions) =>
  'will' in options ? 'will.properties' : Object.keys(options)[0]

it.each(fiveOnly)('protocolVersion 4: %j is refused by name', (options) => {
  const refused = {
    code: 'ERR_UNSUPPORTED_OPTION',
    option: nameOf(options),
    fault: 'local',
    outcome: 'not-sent',
  }
  expect(() => new World({ protocolVersion: 4, ...options })).toThrow(
    expect.objectContaining(refused),
  )
})

it('protocolVersion 4: what is undefined, and a will without properties, is not set', () => {
  const options = Object.fromEntries(fiveOnly.map((given) => [Object.keys(given)[0], undefined]))
  const will = { topic: 'w', properties: { willDelayInterval: undefined } }
  expect(() => new World({ protocolVersion: 4, ...options, will }).client.destroy()).not.toThrow()
})

it.each(fiveOnly.filter((options) => !('auth' in options || 'serverReferences' in options)))(
  'protocolVersion 4: %j of credentials()',
  async (connect) => {
    const world = new World({
      protocolVersion: 4,
      credentials: () => ({ connect: connect as object }),
    })
    const error = failure(world.client.connect())
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: nameOf(connect) })
    expect(world.peers.flatMap((peer) => peer.bytes)).toEqual([])
  },
)

it.each<DisconnectOptions>([
  { reasonCode: 4 },
  { reasonString: 'why' },
  { reasonString: '' },
  { sessionExpiryInterval: 0 },
  { userProperties },
])('protocolVersion 4: %j of disconnect() and drain() is refused', async (options) => {
  const world = await agreed({ protocolVersion: 4 })
  const refused = { code: 'ERR_UNSUPPORTED_OPTION', option: Object.keys(options)[0] }
  for (const call of ['disconnect', 'drain'] as const)
    expect(await failure(world.client[call](options))).toMatchObject(refused)
  expect(world.client.state).toBe('connected')
})

it('protocolVersion 4: disconnect({ reasonCode: 0 }) says what 3.1.1 says', async () => {
  const world = await agreed({ protocolVersion: 4 })
  quiet(world.client.disconnect({ reasonCode: 0, timeout: 10 }))
  await world.settle()
  expect(world.peer.bytes.slice(-2)).toEqual([0xe0, 0])
})

it('protocolVersion 4: properties of subscribe() and unsubscribe() are refused by name, and the subscription stays', async () => {
  const world = await agreed({ protocolVersion: 4 })
  const { client } = world
  const subscription = await subscribe(world, 'a')
  for (const [option, call] of [
    ['userProperties', quiet<unknown>(client.unsubscribe('a', { properties: { userProperties } }))],
    [
      'subscriptionIdentifier',
      quiet<unknown>(client.subscribe('b', { properties: { subscriptionIdentifier: 5 } })),
    ],
  ] as const) {
    const error = { code: 'ERR_UNSUPPORTED_OPTION', option: `properties.${option}` }
    expect(await world.outcome(call)).toMatchObject({ error })
  }
  await world.send(publish('a', 'x'))
  expect(takenTexts(subscription)).toEqual(['x'])
  expect(world.peer.all('unsubscribe')).toEqual([])
})

describe("'auto'", () => {
  /** A client whose server refused 5.0 in the form of 3.1.1, which it takes. */
  async function fallenBack(
    options: ClientOptions = {},
    before: (client: Rig['client']) => void = () => undefined,
  ): Promise<Rig> {
    const rig = new Rig(
      { protocolVersion: 'auto', ...options },
      { version: 4, behave: (_host, dial) => (dial === 1 ? () => undefined : welcoming()) },
    )
    before(rig.client)
    const connecting = rig.client.connect()
    await rig.settle()
    rig.peer.sendBytes('20 02 00 01')
    await Promise.all([connecting, rig.settle()])
    return rig
  }

  it('takes every option for 5.0; on a 3.1.1 connection the `connect` event names what it goes without', async () => {
    const five = { sessionExpiryInterval: 60, receiveMaximum: 10 }
    const rig = await fallenBack({
      ...five,
      clientId: 'c',
      requestProblemInformation: false,
      serverReferences: ['b.example'],
      keepAlive: 20,
      will: { ...delayed, payload: 'gone' },
    })
    expect(rig.peers[0]?.last('connect').properties).toMatchObject({
      ...five,
      requestProblemInformation: 0,
    })
    const will = { topic: 'w', properties: {} }
    expect(rig.peer.last('connect')).toMatchObject({
      protocolVersion: 4,
      keepAlive: 20,
      properties: {},
      will,
    })
    expect([...(rig.seen('connect')[0]?.dropped ?? [])].sort().join(' ')).toBe(
      'receiveMaximum requestProblemInformation serverReferences sessionExpiryInterval will.properties',
    )
    await rig.finish()
  })

  it('what credentials() gave for the connection is named too; a will without properties is not', async () => {
    const connect = { topicAliasMaximum: 3, will: { topic: 'other' } }
    const rig = await fallenBack({ will: delayed, credentials: () => ({ connect }) })
    expect(rig.seen('connect')).toMatchObject([{ dropped: ['topicAliasMaximum'] }])
    expect(rig.peer.last('connect').will).toMatchObject({ topic: 'other' })
    await rig.finish()
  })

  it('what was queued with properties of 5.0 is refused by itself when it turns out to be 3.1.1; the rest goes', async () => {
    const calls: Promise<unknown>[] = []
    const rig = await fallenBack({}, (client) => {
      const properties = { contentType: 'x' }
      calls.push(failure(client.publish('t', 'bad', { qos: 1, properties })))
      calls.push(failure(client.subscription('a', { noLocal: true }).ready))
      calls.push(client.publish('t', 'good', { qos: 1 }))
    })
    const refused = { code: 'ERR_UNSUPPORTED_OPTION' }
    expect(await Promise.all(calls)).toMatchObject([refused, refused, { reasonCode: 0 }])
    await rig.finish()
  })

  it('on a 5.0 connection nothing is dropped', async () => {
    const rig = await new Rig({ protocolVersion: 'auto', receiveMaximum: 10, will: delayed }).up()
    expect(rig.seen('connect')).toMatchObject([{ dropped: [] }])
    await rig.finish()
  })

  it.each<[string, ClientOptions]>([
    ['auth', { auth }],
    ['userProperties', { userProperties }],
    ['user properties of credentials()', { credentials: () => ({ connect: { userProperties } }) }],
  ])('%s forbids the fall-back: no CONNECT of 3.1.1 ever leaves', async (_name, options) => {
    const rig = new Rig({ protocolVersion: 'auto', ...options }, { behave: () => refusing(0x84) })
    const error = failure(rig.client.connect())
    await rig.settle()
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 })
    expect(new Set(rig.peers.map((peer) => peer.last('connect').protocolVersion))).toEqual(
      new Set([5]),
    )
    expect(rig.dials.length).toBeLessThanOrEqual(2)
  })
})

describe("'auto': the version belongs to the endpoint", () => {
  const versionOf = (connect: { protocolVersion: number } | undefined) =>
    connect?.protocolVersion ?? ''
  const versions = (rig: Rig) =>
    rig.dials.map(({ host, peer }) => host + versionOf(peer?.all('connect')[0])).join(' ')
  const forms = ['5.0', '3.1.1'] as const

  /** Hosts by the versions that they speak; others are refused in 5.0's form, or in 3.1.1's. */
  function hosts(
    speaks: Readonly<Record<string, number[]>>,
    form: '5.0' | '3.1.1',
    options: ClientOptions = {},
  ): Rig {
    const rig: Rig = new Rig(
      { protocolVersion: 'auto', ...options },
      { hosts: Object.keys(speaks) },
    )
    const refusal = form === '5.0' ? '20 03 00 84 00' : '20 02 00 01'
    rig.behave = (host) => (packet) => {
      if (packet.type !== 'connect') return welcoming()(packet)
      const accepted = speaks[host]?.includes(packet.protocolVersion) === true
      const welcome = packet.protocolVersion === 5 ? '20 03 00 00 00' : '20 02 00 00'
      rig.peer.sendBytes(accepted ? welcome : refusal)
      return undefined
    }
    return rig
  }

  it.each(forms)('one of 3.1.1 alone does not lower another one (form of %s)', async (form) => {
    const rig = await hosts({ a: [4], b: [5] }, form).up()
    expect(versions(rig)).toBe('a5 a4')
    const { behave } = rig
    rig.behave = (host, dial) => (host === 'a' ? new Error('gone') : behave(host, dial))
    await rig.cut()
    await rig.advance(60_000)
    expect(rig.client.state).toBe('connected')
    expect(versions(rig)).toMatch(/ b5$/)
    expect(rig.client.negotiated?.protocolVersion).toBe(5)
    await rig.finish()
  })

  it.each(forms)('one that moved on to 5.0 alone: one try at 5.0, at once (%s)', async (form) => {
    const speaks = { a: [4] }
    const rig = await hosts(speaks, form).up()
    speaks.a = [5]
    await rig.again()
    expect(versions(rig)).toBe('a5 a4 a4 a5')
    expect(rig.client.negotiated?.protocolVersion).toBe(5)
    await rig.advance(60_000)
    await rig.again()
    expect(versions(rig)).toBe('a5 a4 a4 a5 a5')
    await rig.finish()
  })

  it.each(forms)('one that refuses both is asked twice, no more (form of %s)', async (form) => {
    const rig = await hosts({ a: [], b: [5] }, form, { firstConnect: 'wait' }).up()
    expect(versions(rig)).toBe('a5 a4 b5')
    await rig.finish()
    const alone = hosts({ a: [] }, form, { firstConnect: 'wait' })
    const error = failure(alone.client.connect())
    await alone.advance(60_000)
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 })
    // In the form of 5.0 the second refusal is no packet of 3.1.1: it may have been an accident, and is seen once more.
    expect(versions(alone)).toBe(form === '3.1.1' ? 'a5 a4' : 'a5 a4 a4 a5')
  })

  it('the try at the other version is no attempt of its own, but has a number: maxAttempts 1 and reconnect: false allow it', async () => {
    const speaks = { a: [5] }
    const rig = await hosts(speaks, '5.0', {
      reconnect: { backoff: () => 1000, maxAttempts: 1 },
    }).up()
    speaks.a = [4]
    await rig.again()
    expect(versions(rig)).toBe('a5 a5 a4')
    expect(rig.client.state).toBe('connected')
    await rig.finish()
    const single = await hosts({ a: [4] }, '5.0', { reconnect: false }).up()
    expect(versions(single)).toBe('a5 a4')
    expect(single.seen('dial').map(({ attempt }) => attempt)).toEqual([1, 2])
    await single.finish()
  })

  it('setBrokers() in the connecterror of such a refusal goes to the new list, at 5.0', async () => {
    const rig = hosts({ a: [4], b: [5] }, '3.1.1')
    rig.client.on('connecterror', () => rig.client.setBrokers(rig.endpoint('b')), { once: true })
    await Promise.all([rig.client.connect(), rig.advance(1000)])
    expect(versions(rig)).toBe('a5 b5')
    await rig.finish()
  })

  it('a password without a user name, which 3.1.1 cannot say, ends it with the name of the option: no retry cures it', async () => {
    const rig = hosts({ a: [4] }, '5.0', { password: 'secret', firstConnect: 'wait' })
    const error = failure(rig.client.connect())
    await rig.advance(60_000)
    expect(await error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'password' })
    expect(MqttError.is(await rig.client.closed)).toBe(true)
  })
})
