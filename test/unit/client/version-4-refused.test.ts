/** MQTT 3.1.1: what it does not have is refused by name where it is asked for, and named where `'auto'` goes without it. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, DisconnectOptions } from '../../../src/client/api/index.js'
import { parseOptions } from '../../../src/client/parsing/options.js'
import { MqttError } from '../../../src/errors.js'
import { failure, World } from './harness.js'
import { agreed, quiet } from './incoming.js'
import { Rig, refusing, welcoming } from './rig.js'

const auth = { method: 'x', start: () => undefined, continue: () => undefined }

/** Every option of 5.0 alone; also at the values that are the defaults. */
const fiveOnly: readonly (readonly [option: string, options: ClientOptions])[] = [
  ['sessionExpiryInterval', { sessionExpiryInterval: 60 }],
  ['sessionExpiryInterval', { sessionExpiryInterval: 300 }],
  ['sessionExpiryInterval', { sessionExpiryInterval: 0 }],
  ['receiveMaximum', { receiveMaximum: 10 }],
  ['receiveMaximum', { receiveMaximum: 256 }],
  ['topicAliasMaximum', { topicAliasMaximum: 0 }],
  ['topicAliasMaximum', { topicAliasMaximum: 10 }],
  ['requestResponseInformation', { requestResponseInformation: false }],
  ['requestProblemInformation', { requestProblemInformation: false }],
  ['requestProblemInformation', { requestProblemInformation: true }],
  ['userProperties', { userProperties: [['a', 'b']] }],
  ['userProperties', { userProperties: [] }],
  ['auth', { auth }],
  ['serverReferences', { serverReferences: ['a.example'] }],
  ['will.properties', { will: { topic: 'w', properties: { willDelayInterval: 5 } } }],
]

describe('protocolVersion 4', () => {
  it.each(fiveOnly)('%s is refused by name: %j', (option, options) => {
    expect(() => new World({ protocolVersion: 4, ...options })).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED_OPTION', option, fault: 'local', outcome: 'not-sent' }),
    )
  })

  it('what is undefined, and a will without properties, is not set', () => {
    const options = Object.fromEntries(fiveOnly.map(([, given]) => Object.keys(given)[0]).map((name) => [name, undefined]))
    const will = { topic: 'w', properties: { willDelayInterval: undefined } }
    expect(() => new World({ protocolVersion: 4, ...options, will }).client.destroy()).not.toThrow()
  })

  it('maximumPacketSize is a limit of ours, and keepAlive is in both', async () => {
    const world = await agreed({ protocolVersion: 4, maximumPacketSize: 100, keepAlive: 5 })
    expect(world.peer.last('connect')).toMatchObject({ keepAlive: 5, properties: {} })
  })

  it.each(fiveOnly.filter(([option]) => !['auth', 'serverReferences'].includes(option)))(
    '%s that credentials() gives for one connection fails that attempt by name: %j',
    async (option, connect) => {
      const world = new World({ protocolVersion: 4, credentials: () => ({ connect: connect as object }) })
      const error = failure(world.client.connect())
      await world.settle()
      expect(await error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option })
      expect(world.peers.flatMap((peer) => peer.bytes)).toEqual([])
    },
  )

  it.each([
    ['reasonCode', { reasonCode: 4 }],
    ['reasonString', { reasonString: 'why' }],
    ['reasonString', { reasonString: '' }],
    ['sessionExpiryInterval', { sessionExpiryInterval: 0 }],
    ['userProperties', { userProperties: [['a', 'b']] }],
  ] as const)('%s of disconnect() and drain() is refused by name, and the connection stays: %j', async (option, options) => {
    const world = await agreed({ protocolVersion: 4 })
    for (const call of ['disconnect', 'drain'] as const)
      expect(await failure(world.client[call](options as DisconnectOptions))).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option })
    expect(world.client.state).toBe('connected')
  })

  it('disconnect({ reasonCode: 0 }) says what 3.1.1 says', async () => {
    const world = await agreed({ protocolVersion: 4 })
    quiet(world.client.disconnect({ reasonCode: 0, timeout: 10 }))
    await world.settle()
    expect(world.peer.bytes.slice(-2)).toEqual([0xe0, 0])
  })

  it('user properties of unsubscribe() are refused by name, and the subscription stays', async () => {
    const world = await agreed({ protocolVersion: 4 })
    const subscribing = quiet(world.client.subscribe('a'))
    await world.settle()
    await subscribing
    const error = await failure(world.client.unsubscribe('a', { properties: { userProperties: [['a', 'b']] } }))
    expect(error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'properties.userProperties' })
    await world.send({ type: 'publish', topic: 'a', payload: new TextEncoder().encode('x') })
    expect((await subscribing).read()?.text()).toBe('x')
    expect(world.peer.all('unsubscribe')).toEqual([])
  })

  it('a Subscription Identifier of subscribe() is refused by name', async () => {
    const world = await agreed({ protocolVersion: 4 })
    const error = failure(world.client.subscribe('a', { properties: { subscriptionIdentifier: 5 } }))
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'properties.subscriptionIdentifier' })
  })

  it('getters and proxies are read once: no second look finds another value', () => {
    let reads = 0
    const sly = {
      protocolVersion: 4,
      get receiveMaximum() {
        reads += 1
        return reads === 1 ? undefined : 5
      },
    } as ClientOptions
    new World(sly).client.destroy()
    expect(reads).toBe(1)
    const proxy = new Proxy({ protocolVersion: 4, sessionExpiryInterval: 5 } as ClientOptions, {})
    expect(() => new World(proxy)).toThrow(expect.objectContaining({ option: 'sessionExpiryInterval' }))
    const inherited = Object.create({ protocolVersion: 4, topicAliasMaximum: 5 }) as ClientOptions
    expect(() => parseOptions(inherited)).toThrow(expect.objectContaining({ option: 'topicAliasMaximum' }))
  })
})

describe("'auto'", () => {
  it('takes every option for 5.0; on a 3.1.1 connection the `connect` event names what it goes without', async () => {
    const rig = new Rig(
      {
        protocolVersion: 'auto',
        clientId: 'c',
        sessionExpiryInterval: 60,
        receiveMaximum: 10,
        requestProblemInformation: false,
        serverReferences: ['b.example'],
        keepAlive: 20,
        will: { topic: 'w', payload: 'gone', properties: { willDelayInterval: 5 } },
      },
      { version: 4, behave: (_host, dial) => (dial === 1 ? () => undefined : welcoming()) },
    )
    const connecting = rig.client.connect()
    await rig.settle()
    expect(rig.peer.last('connect').properties).toMatchObject({ sessionExpiryInterval: 60, receiveMaximum: 10, requestProblemInformation: 0 })
    rig.peer.sendBytes('20 02 00 01')
    await rig.settle()
    await connecting
    expect(rig.peer.last('connect')).toMatchObject({ protocolVersion: 4, keepAlive: 20, properties: {}, will: { topic: 'w', properties: {} } })
    expect([...(rig.seen('connect')[0]?.dropped ?? [])].sort()).toEqual([
      'receiveMaximum',
      'requestProblemInformation',
      'serverReferences',
      'sessionExpiryInterval',
      'will.properties',
    ])
    await rig.finish()
  })

  it('what credentials() gave for the connection is named too; a will without properties is not', async () => {
    const rig = new Rig(
      {
        protocolVersion: 'auto',
        will: { topic: 'w', properties: { willDelayInterval: 5 } },
        credentials: () => ({ connect: { topicAliasMaximum: 3, will: { topic: 'other' } } }),
      },
      { version: 4, behave: (_host, dial) => (dial === 1 ? () => undefined : welcoming()) },
    )
    const connecting = rig.client.connect()
    await rig.settle()
    rig.peer.sendBytes('20 02 00 01')
    await rig.settle()
    await connecting
    expect(rig.seen('connect')).toMatchObject([{ dropped: ['topicAliasMaximum'] }])
    expect(rig.peer.last('connect').will).toMatchObject({ topic: 'other' })
    await rig.finish()
  })

  it('on a 5.0 connection nothing is dropped', async () => {
    const rig = await new Rig({ protocolVersion: 'auto', receiveMaximum: 10, will: { topic: 'w', properties: { willDelayInterval: 5 } } }).up()
    expect(rig.seen('connect')).toMatchObject([{ dropped: [] }])
    await rig.finish()
  })

  it.each([
    ['auth', { auth }],
    ['userProperties', { userProperties: [['a', 'b']] }],
    ['user properties of credentials()', { credentials: () => ({ connect: { userProperties: [['a', 'b']] } }) }],
  ] as [string, ClientOptions][])('%s forbids the fall-back: no CONNECT of 3.1.1 ever leaves', async (_name, options) => {
    const rig = new Rig({ protocolVersion: 'auto', ...options }, { behave: () => refusing(0x84) })
    const error = failure(rig.client.connect())
    await rig.settle()
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 })
    expect(new Set(rig.peers.map((peer) => peer.last('connect').protocolVersion))).toEqual(new Set([5]))
    expect(rig.dials.length).toBeLessThanOrEqual(2)
  })

  it('on a 3.1.1 connection calls are refused by name as with protocolVersion 4', async () => {
    const rig = new Rig({ protocolVersion: 'auto' }, { version: 4, behave: (_host, dial) => (dial === 1 ? () => undefined : welcoming()) })
    const connecting = rig.client.connect()
    await rig.settle()
    rig.peer.sendBytes('20 02 00 01')
    await rig.settle()
    await connecting
    const { client } = rig
    const calls = [
      client.publish('t', 'x', { properties: { contentType: 'x' } }),
      client.disconnect({ reasonCode: 4 }),
      client.unsubscribe('a', { properties: { userProperties: [['a', 'b']] } }),
    ].map(failure)
    await rig.settle()
    for (const call of calls) expect(await call).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION' })
    expect(client.state).toBe('connected')
    await rig.finish()
  })
})

describe("'auto': the version belongs to the endpoint", () => {
  const versions = (rig: Rig): string[] => rig.dials.map(({ host, peer }) => `${host}${peer?.all('connect')[0]?.protocolVersion ?? ''}`)

  /** Hosts by the versions that they speak; others are refused in 5.0's form, or in 3.1.1's. */
  function hosts(speaks: Readonly<Record<string, readonly number[]>>, form: '5.0' | '3.1.1', options: ClientOptions = {}): Rig {
    const rig: Rig = new Rig({ protocolVersion: 'auto', ...options }, { hosts: Object.keys(speaks) })
    rig.behave = (host) => (packet) => {
      if (packet.type !== 'connect') return welcoming()(packet)
      const { peer } = rig
      const accepted = speaks[host]?.includes(packet.protocolVersion) === true
      const bytes = accepted ? (packet.protocolVersion === 5 ? '20 03 00 00 00' : '20 02 00 00') : form === '5.0' ? '20 03 00 84 00' : '20 02 00 01'
      peer.sendBytes(bytes)
      return undefined
    }
    return rig
  }

  it.each(['5.0', '3.1.1'] as const)('one that speaks 3.1.1 alone does not lower another one (refusals in the form of %s)', async (form) => {
    const rig = hosts({ a: [4], b: [5] }, form)
    await rig.up()
    expect(versions(rig)).toEqual(['a5', 'a4'])
    const { behave } = rig
    rig.behave = (host, dial) => (host === 'a' ? new Error('gone') : behave(host, dial))
    await rig.cut()
    await rig.advance(60_000)
    expect(rig.client.state).toBe('connected')
    expect(versions(rig).at(-1)).toBe('b5')
    expect(rig.client.negotiated?.protocolVersion).toBe(5)
    await rig.finish()
  })

  it.each(['5.0', '3.1.1'] as const)('an endpoint that has moved on from 3.1.1 to 5.0 alone: one try at 5.0, at once (form of %s)', async (form) => {
    const speaks: Record<string, number[]> = { a: [4] }
    const rig = hosts(speaks, form)
    await rig.up()
    speaks['a'] = [5]
    await rig.cut()
    await rig.advance(1000)
    expect(versions(rig)).toEqual(['a5', 'a4', 'a4', 'a5'])
    expect(rig.client.negotiated?.protocolVersion).toBe(5)
    await rig.advance(60_000)
    await rig.cut()
    await rig.advance(1000)
    expect(versions(rig).at(-1)).toBe('a5')
    await rig.finish()
  })

  it('one that refuses both is asked twice, and then no more', async () => {
    for (const form of ['5.0', '3.1.1'] as const) {
      const rig = hosts({ a: [], b: [5] }, form, { firstConnect: 'wait' })
      await rig.up()
      expect(versions(rig)).toEqual(['a5', 'a4', 'b5'])
      await rig.finish()
      const alone = hosts({ a: [] }, form, { firstConnect: 'wait' })
      const error = failure(alone.client.connect())
      await alone.advance(60_000)
      expect(await error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 })
      // In the form of 5.0 the second refusal is no packet of 3.1.1: it may have been an accident, and is seen once more.
      expect(versions(alone)).toEqual(form === '3.1.1' ? ['a5', 'a4'] : ['a5', 'a4', 'a4', 'a5'])
    }
  })

  it('the try at the other version is no attempt of its own: maxAttempts 1 and reconnect: false allow it', async () => {
    const speaks: Record<string, number[]> = { a: [5] }
    const rig = hosts(speaks, '5.0', { reconnect: { backoff: () => 1000, maxAttempts: 1 } })
    await rig.up()
    speaks['a'] = [4]
    await rig.cut()
    await rig.advance(1000)
    expect(versions(rig)).toEqual(['a5', 'a5', 'a4'])
    expect(rig.client.state).toBe('connected')
    await rig.finish()
    const single = hosts({ a: [4] }, '5.0', { reconnect: false })
    await single.up()
    expect(versions(single)).toEqual(['a5', 'a4'])
    await single.finish()
  })

  it('each try is told with its own number', async () => {
    const rig = hosts({ a: [4] }, '5.0')
    await rig.up()
    expect(rig.seen('dial').map(({ attempt }) => attempt)).toEqual([1, 2])
    await rig.finish()
  })

  it('setBrokers() in the connecterror of such a refusal goes to the new list, at 5.0', async () => {
    const rig = hosts({ a: [4], b: [5] }, '3.1.1')
    rig.client.on('connecterror', () => rig.client.setBrokers(rig.endpoint('b')), { once: true })
    const connecting = rig.client.connect()
    await rig.advance(1000)
    await connecting
    expect(versions(rig)).toEqual(['a5', 'b5'])
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
