/**
 * Proofs of the server role, section 3.1: which CONNECT the broker in memory takes, which it refuses, and what a second one does.
 *
 * Wills are in `broker-will.test.ts`, limits that a CONNECT announces in `broker-flow-control.test.ts`.
 */
import { describe, expect, it } from 'vitest'
import type { Verdict } from '../../../src/testing/index.js'
import type { Properties } from '../../../src/wire/index.js'
import { bytes, type ConnectSettings, durable, type RawClient, world } from '../raw-client.js'
import { endOf, heard, packetOf, say, textOf } from './wire.js'

/** CONNECT by its parts, for names and levels that an encoder would not write. */
function connectOf({ name = '00 04 4d 51 54 54', level = '05', flags = '02', properties = '00', clientId = 'a' } = {}): string {
  return packetOf('10', name, level, flags, '00 00', properties, textOf(clientId))
}

const welcome = '20 0b 00 00 08 27 00 10 00 00 22 00 0a'

describe('one CONNECT', () => {
  it('a second one is a protocol error: DISCONNECT 0x82, the end, and nothing of it is done [MQTT-3.1.0-2]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    heard(client)
    const [last, ...more] = await say(client, connectOf({ clientId: 'b' }))
    expect([last?.slice(0, 2), last?.slice(6, 8), more, client.ended !== undefined]).toEqual(['e0', '82', [], true])
    expect([...broker.sessions.keys()]).toEqual([])
  })

  it('a second one while the first waits for its authentication ends the connection too [MQTT-3.1.0-2]', async () => {
    const { dial, broker } = world({ authenticate: () => new Promise<boolean>(() => undefined) })
    const client = dial()
    expect(await say(client, connectOf(), connectOf())).toEqual([])
    expect([client.ended !== undefined, broker.sessions.size]).toEqual([true, 0])
  })
})

describe('protocol name, level and flags', () => {
  it.each([
    ['MQTX', '00 04 4d 51 54 58'],
    ['mqtt', '00 04 6d 71 74 74'],
    ['MQIsdp', '00 06 4d 51 49 73 64 70'],
    ['MQT', '00 03 4d 51 54'],
    ['nothing', '00 00'],
  ])('the name %s is refused by CONNACK 0x84 at the most, and closed [MQTT-3.1.2-1]', async (_what, name) => {
    const { dial, broker } = world()
    const client = dial()
    const answers = await say(client, connectOf({ name }))
    expect(answers.filter((answer) => answer !== '20 03 00 84 00' && answer !== '20 03 00 81 00')).toEqual([])
    expect([client.ended !== undefined, broker.sessions.size]).toEqual([true, 0])
  })

  it('the name MQTT is taken [MQTT-3.1.2-1]', async () => {
    expect(await say(world().dial(), connectOf())).toEqual([welcome])
  })

  it.each(['06', '07', '85', 'ff'])('the version %s is answered by CONNACK 0x84, and closed [MQTT-3.1.2-2]', async (level) => {
    const client = world().dial()
    expect(await say(client, connectOf({ level }))).toEqual(['20 03 00 84 00'])
    expect(client.ended).toBeDefined()
  })

  it('a version that is known and not offered gets the same [MQTT-3.1.2-2]', async () => {
    const client = world({ protocolVersions: [4] }).dial()
    expect(await say(client, connectOf())).toEqual(['20 03 00 84 00'])
    expect(client.ended).toBeDefined()
  })

  it('the reserved flag is a malformed packet: CONNACK 0x81, and the end [MQTT-3.1.2-3]', async () => {
    for (const flags of ['01', '03']) {
      const { dial, broker } = world()
      const client = dial()
      expect(await say(client, connectOf({ flags }))).toEqual(['20 03 00 81 00'])
      expect([client.ended !== undefined, broker.sessions.size]).toEqual([true, 0])
    }
  })
})

describe('client identifiers', () => {
  const characters = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'

  it('1 to 23 bytes of digits and letters are taken, all 62 of them [MQTT-3.1.3-5]', async () => {
    const { dial, broker } = world()
    const all = [...characters, characters.slice(0, 23), characters.slice(23, 46), characters.slice(39)]
    expect(all.slice(-3).map(({ length }) => length)).toEqual([23, 23, 23])
    for (const clientId of all) expect(await say(dial(), connectOf({ clientId }))).toEqual([welcome])
    expect(broker.clients.size).toBe(65)
  })

  it('each empty one gets its own, and nobody is displaced [MQTT-3.1.3-6]', async () => {
    const { dial, broker } = world()
    const clients = [dial(), dial()]
    const assigned = await Promise.all(clients.map((client) => client.connect({ clientId: '' })))
    const names = assigned.map((packet) => (packet.type === 'connack' ? packet.properties.assignedClientIdentifier : undefined))
    expect(names.every((name) => name !== undefined && name.length > 0)).toBe(true)
    expect(new Set(names).size).toBe(2)
    expect([...broker.clients.keys()]).toEqual(names)
    for (const client of clients) expect((await say(client, 'c0 00')).at(-1)).toBe('d0 00')
  })

  it('an assigned one is the key of the session from then on [MQTT-3.1.3-7]', async () => {
    const { dial, broker } = world()
    const client = dial()
    const connack = await client.connect({ clientId: '', properties: { sessionExpiryInterval: 60 } })
    const clientId = connack.type === 'connack' ? connack.properties.assignedClientIdentifier : undefined
    await client.subscribe('t')
    await client.cut()
    expect(broker.publish({ topic: 't', payload: 'kept', qos: 1 })).toBe(true)
    const again = dial()
    expect(await again.connect({ clientId: clientId ?? 'none', ...durable })).toMatchObject({ sessionPresent: true, reasonCode: 0 })
    expect(again.takeMessages()).toEqual(['t kept'])
  })

  it('one that is refused hears 0x85 with Session Present 0, then the end [MQTT-3.1.3-8] [MQTT-3.1.4-2]', async () => {
    const { dial, join, broker } = world({ authenticate: ({ clientId }) => (clientId === 'bad' ? 0x85 : true) })
    await join('good')
    const client = dial()
    expect(await say(client, connectOf({ clientId: 'bad' }))).toEqual(['20 03 00 85 00'])
    expect([client.ended !== undefined, broker.clients.size, broker.sessions.has('bad')]).toEqual([true, 1, false])
  })
})

describe('a CONNECT that does not fit', () => {
  it.each([
    ['a cut-off body', packetOf('10', '00 04 4d 51 54 54 05 02')],
    ['a byte behind the payload', `${connectOf().replace('10 0e', '10 0f')} 00`],
    ['a property of another packet', connectOf({ properties: '03 23 00 01' })],
    ['a property twice', connectOf({ properties: '06 21 00 05 21 00 06' })],
    ['Will QoS 3', connectOf({ flags: '1e' })],
    ['a will flag without a will', connectOf({ flags: '06' })],
    ['a user name flag without a user name', connectOf({ flags: '82' })],
  ])('%s: CONNACK 0x81 or 0x82 and the end; the next one is welcome [MQTT-3.1.4-1]', async (_what, connect) => {
    const { dial, broker } = world()
    const client = dial()
    expect((await say(client, connect)).join()).toMatch(/^20 03 00 8[12] 00$/)
    expect([client.ended !== undefined, broker.sessions.size]).toEqual([true, 0])
    expect(await say(dial(), connectOf())).toEqual([welcome])
  })
})

describe('further checks', () => {
  const refusals: [string, { authenticate?: () => Verdict; maximumQoS?: 0; retainAvailable?: false; maxSessions?: number }, string][] = [
    ['a wrong password', { authenticate: () => 0x86 }, '86'],
    ['no permission', { authenticate: () => false }, '87'],
    ['a banned client', { authenticate: () => 0x8a }, '8a'],
    [
      'a hook that fails',
      {
        authenticate: () => {
          throw new Error('broken')
        },
      },
      '80',
    ],
    ['a will QoS that is not supported', { maximumQoS: 0 }, '9b'],
    ['a retained will that is not supported', { retainAvailable: false }, '9a'],
    ['no room', { maxSessions: 0 }, '97'],
  ]

  it.each(refusals)('%s closes the connection behind its CONNACK, and leaves nothing [MQTT-3.1.4-2] [MQTT-3.2.2-7]', async (_what, options, code) => {
    const { dial, broker } = world(options)
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a', ...durable, will: { topic: 'w', qos: 1, retain: true } })
    expect(endOf(client)).toEqual({ last: `20 03 00 ${code} 00`, closed: true })
    expect([broker.sessions.size, broker.clients.size, broker.accepted.length]).toEqual([0, 0, 0])
  })

  it('what follows a refused CONNECT in the same write is not handled [MQTT-3.1.4-6]', async () => {
    const { dial, join, broker } = world({ authenticate: ({ clientId }) => clientId === 'watcher' })
    const watcher = await join('watcher')
    await watcher.subscribe('#')
    heard(watcher)
    const client = dial()
    const publish = packetOf('33', textOf('t'), '00 01 00 78')
    const subscribe = packetOf('82', '00 02 00', textOf('t'), '00')
    expect(await say(client, connectOf(), publish, subscribe, 'c0 00')).toEqual(['20 03 00 87 00'])
    expect([heard(watcher), broker.accepted, broker.retained.size]).toEqual([[], [], 0])
  })

  it('nor while the verdict is awaited [MQTT-3.1.4-6]', async () => {
    let refuse = (_verdict: boolean): void => undefined
    const { dial, broker, clock } = world({ authenticate: () => new Promise<boolean>((resolve) => (refuse = resolve)) })
    const client = dial()
    expect(await say(client, connectOf(), packetOf('33', textOf('t'), '00 01 00 78'))).toEqual([])
    refuse(false)
    await clock.settle()
    expect(endOf(client)).toEqual({ last: '20 03 00 87 00', closed: true })
    expect([broker.accepted, broker.retained.size]).toEqual([[], 0])
  })

  it('every variant that is in order is answered by 0x00 [MQTT-3.1.4-5]', async () => {
    const properties: Properties = {
      sessionExpiryInterval: 1,
      receiveMaximum: 5,
      maximumPacketSize: 1000,
      topicAliasMaximum: 3,
      requestResponseInformation: 1,
      requestProblemInformation: 0,
      userProperties: [['a', 'b']],
    }
    const variants: readonly ConnectSettings[] = [
      {},
      { cleanStart: false },
      { keepAlive: 65_535 },
      { username: 'u' },
      { password: bytes('p') },
      { username: 'u', password: bytes('') },
      ...([0, 1, 2] as const).map((qos) => ({ will: { topic: 'w', qos, retain: qos === 1 } })),
      ...Object.entries(properties).map(([name, value]) => ({ properties: { [name]: value } })),
      { properties },
    ]
    for (const variant of variants) {
      const client = world().dial()
      await client.connect(variant)
      expect(
        heard(client).map((packet) =>
          packet
            .split(' ')
            .filter((_byte, at) => at !== 1)
            .slice(0, 3),
        ),
      ).toEqual([['20', '00', '00']])
    }
  })
})

describe('takeover', () => {
  const older = async (cleanStart: boolean): Promise<[RawClient, ReturnType<typeof world>]> => {
    const all = world()
    const client = await all.join('a', { ...durable, cleanStart })
    await client.subscribe('t')
    heard(client)
    return [client, all]
  }

  it('the older connection hears 0x8E and is closed, the newer is welcome [MQTT-3.1.4-3]', async () => {
    const [first, { dial, broker, clock }] = await older(false)
    const second = dial()
    expect(await say(second, connectOf())).toEqual([welcome])
    await clock.settle()
    const end = endOf(first)
    expect([end.last?.slice(0, 2), end.last?.slice(6, 8), end.closed]).toEqual(['e0', '8e', true])
    expect(broker.clients.size).toBe(1)
    expect(await say(second, 'c0 00')).toEqual(['d0 00'])
  })

  it('Clean Start 1 of the newer one drops the session, 0 keeps it [MQTT-3.1.4-4]', async () => {
    const [, first] = await older(false)
    const clean = first.dial()
    expect((await say(clean, connectOf({ flags: '02' })))[0]?.slice(0, 11)).toBe('20 0b 00 00')
    first.broker.publish({ topic: 't', payload: 'x' })
    expect(await clean.messages()).toEqual([])
    const [, second] = await older(false)
    const resumed = second.dial()
    expect((await say(resumed, connectOf({ flags: '00', properties: '05 11 00 00 00 3c' })))[0]?.slice(0, 11)).toBe('20 0b 01 00')
    second.broker.publish({ topic: 't', payload: 'x' })
    expect(await resumed.messages()).toEqual(['t x'])
  })
})

describe('keep alive', () => {
  it('1.5 intervals of silence end the connection as a failure of the network does [MQTT-3.1.2-22]', async () => {
    const { join, clock, broker } = world()
    const watcher = await join('watcher')
    await watcher.subscribe('w')
    const [pinging, silent] = [await join('pinging', { keepAlive: 2 }), await join('silent', { keepAlive: 2, will: { topic: 'w' } })]
    heard(silent)
    await clock.advance(2000)
    expect((await say(pinging, 'c0 00')).at(-1)).toBe('d0 00')
    await clock.advance(999)
    expect(silent.ended).toBeUndefined()
    await clock.advance(1)
    expect(endOf(silent)).toEqual({ last: expect.stringMatching(/^e0 .. 8d/), closed: true })
    expect(await watcher.messages()).toEqual(['w '])
    expect([...broker.clients.keys()]).toEqual(['watcher', 'pinging'])
  })

  it('any packet counts, and one that goes on coming in; not one that stands still; 0 is off [MQTT-3.1.2-22]', async () => {
    const { join, clock } = world()
    const [busy, dripping, stuck] = [
      await join('busy', { keepAlive: 2 }),
      await join('dripping', { keepAlive: 2 }),
      await join('stuck', { keepAlive: 2 }),
    ]
    const off = await join('off')
    for (let second = 0; second < 10; second++) {
      await clock.advance(1000)
      await say(busy, packetOf('30', textOf('t'), '00'))
      // PUBLISHes of 100 bytes that never come to their end.
      await say(dripping, second === 0 ? '30 64' : '00')
      if (second === 0) await say(stuck, '30 64 00')
    }
    expect([busy, dripping, stuck, off].map(({ ended }) => ended !== undefined)).toEqual([false, false, true, false])
  })
})
