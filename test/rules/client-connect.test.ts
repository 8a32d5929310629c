/** Section 3.1, by the bytes of a client: CONNECT and what stands in it, keep-alive, the session that it asks for. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../src/client/options/index.js'
import { toy } from '../unit/client/toy-auth.js'
import {
  block,
  connack,
  dialled,
  field,
  firsts,
  fresh,
  opened,
  packet,
  pubcomp,
  publish,
  pubrec,
  pubrel,
  quiet,
  refusal,
  resumed,
  text,
  u16,
} from './bytes.js'

/** The parts of the only packet of a client that has dialled: its flags, and its payload. */
async function connect(options: ClientOptions): Promise<{ flags: number; payload: string }> {
  const wire = await dialled(options)
  const sent = wire.take()
  expect(sent).toHaveLength(1)
  const [bytes = ''] = sent
  const start = 2 + (Number.parseInt(bytes.slice(2, 4), 16) < 128 ? 2 : 4)
  expect(bytes.slice(0, 2)).toBe('10')
  expect(bytes.slice(start, start + 14)).toBe(`${text('MQTT')}05`)
  const properties = Number.parseInt(bytes.slice(start + 20, start + 22), 16)
  expect(properties).toBeLessThan(128)
  return {
    flags: Number.parseInt(bytes.slice(start + 14, start + 16), 16),
    payload: bytes.slice(start + 22 + properties * 2),
  }
}

describe('CONNECT', () => {
  it('[MQTT-3.1.0-1] is the first packet, also when other things have been asked for before, and on each connection', async () => {
    const wire = await dialled()
    wire.publish(1, 'x')
    wire.client.post('t', 'x')
    quiet(wire.client.subscribe('s'))
    await wire.advance(5000)
    expect(firsts(wire.take())).toEqual(['10'])
    await wire.give(fresh)
    expect(firsts(wire.take())).toEqual(['82', '32'])
    await wire.cut()
    wire.publish(1, 'y')
    await wire.redialled()
    expect(firsts(wire.take())).toEqual(['10'])
    await wire.give(resumed)
    expect(firsts(wire.take()).sort()).toEqual(['32', '3a', 'c0'])
  })

  it.each([
    [5, '05'],
    [4, '04'],
  ] as const)('[MQTT-3.1.2-1] version %i', async (protocolVersion, level) => {
    const wire = await dialled({ protocolVersion })
    expect(wire.take()[0]).toMatch(new RegExp(`^10..00044d515454${level}`))
  })

  const [none, w] = [text(''), text('w')]
  const noWill = '[MQTT-3.1.2-11] [MQTT-3.1.2-13]'
  const password = '[MQTT-3.1.2-19] [MQTT-3.1.2-16] a password without a user name'
  const everything = {
    ...{ clientId: 'ï', username: 'ü', password: 'p' },
    will: {
      topic: 'ẅ',
      payload: Uint8Array.of(0xff),
      qos: 1,
      properties: { willDelayInterval: 7 },
    },
  } as const

  it.each<[string, ClientOptions, flags: number, ...payload: string[]]>([
    ...([0, 1, 2] as const).map((qos): [string, ClientOptions, number, ...string[]] => [
      `[MQTT-3.1.2-9] [MQTT-3.1.2-12] a will of QoS ${qos}`,
      { will: { topic: 'w/t', payload: 'gone', qos, retain: true } },
      0x26 + qos * 8,
      ...[none, '00', text('w/t'), text('gone')],
    ]),
    [
      '[MQTT-3.1.2-9] a will without payload and properties',
      { will: { topic: 'w' } },
      0x06,
      none,
      '00',
      w,
      none,
    ],
    [`${noWill} [MQTT-3.1.2-16] [MQTT-3.1.3-3] nothing but an empty client id`, {}, 0x02, none],
    [`${noWill} a will that is undefined`, { will: undefined }, 0x02, none],
    [
      `${noWill} a user name and a password`,
      { username: 'u', password: 'p' },
      0xc2,
      none,
      text('u'),
      field('70'),
    ],
    ...['u', '', 'jörg'].map((username): [string, ClientOptions, number, ...string[]] => [
      `[MQTT-3.1.2-17] [MQTT-3.1.2-18] the user name "${username}", without a password`,
      { username },
      0x82,
      ...[none, text(username)],
    ]),
    [`${password}, as text`, { password: 'ß' }, 0x42, none, field('c39f')],
    [
      `${password}, bytes that are no UTF-8`,
      { password: Uint8Array.of(0, 0xff, 0xc0) },
      0x42,
      none,
      field('00ffc0'),
    ],
    [`${password}, empty`, { password: '' }, 0x42, none, field('')],
    [
      '[MQTT-3.1.3-3] no client id: empty, in front',
      { will: { topic: 'w' }, username: 'u' },
      0x86,
      none,
      '00',
      w,
      none,
      text('u'),
    ],
    [
      '[MQTT-3.1.3-1] [MQTT-3.1.3-3] [MQTT-3.1.3-4] [MQTT-3.1.3-11] [MQTT-3.1.3-12] everything: client id, will, user name, password',
      everything,
      0xce,
      ...['0002c3af', '051800000007', '0003e1ba85', '0001ff', '0002c3bc', '000170'],
    ],
  ])('%s: flags and fields, in their order', async (_what, options, flags, ...payload) => {
    expect(await connect(options)).toEqual({ flags, payload: payload.join('') })
  })

  it.each([3, -1, 1.5, '1'])('[MQTT-3.1.2-12] a will of QoS %s is refused', async (qos) => {
    expect(await refusal(() => dialled({ will: { topic: 'w', qos: qos as 1 } }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    })
  })

  it('[MQTT-3.1.2-11] [MQTT-3.1.2-13] a will of earlier credentials leaves no flag behind', async () => {
    let calls = 0
    const wire = await opened({
      credentials: () => {
        calls += 1
        return calls === 1 ? { connect: { will: { topic: 'w', qos: 2, retain: true } } } : {}
      },
    })
    await wire.cut()
    await wire.redialled()
    expect(wire.take()[0]?.slice(18, 20)).toBe('00')
  })
})

describe('Keep Alive', () => {
  it('[MQTT-3.1.2-20] no more than 1 s lies between any two packets, whatever they are', async () => {
    const wire = await opened({ keepAlive: 1 })
    let last = wire.world.clock.now()
    for (let step = 1; step <= 100; step++) {
      await wire.advance(100)
      if (step % 17 === 0) wire.client.post('t', 'x')
      const sent = await wire.sent()
      if (sent.includes('c000')) await wire.give('d000')
      const now = wire.world.clock.now()
      if (sent.length > 0) last = now
      expect(now - last).toBeLessThanOrEqual(1000)
    }
  })

  it.each([
    [60, 1, 1000],
    [60, 2, 2000],
    [false, 2, 2000],
    [5, 60, 60_000],
    [1, 0, Number.POSITIVE_INFINITY],
  ] as const)(
    '[MQTT-3.1.2-21] [MQTT-3.2.2-21] %s s, server %i s: %i ms',
    async (keepAlive, server, due) => {
      const wire = await opened({ keepAlive }, connack(`13${u16(server)}`))
      await wire.advance(Math.min(due, 3600_000) - 1)
      expect(wire.take()).toEqual([])
      await wire.advance(1)
      expect(wire.take()).toEqual(due === Number.POSITIVE_INFINITY ? [] : ['c000'])
    },
  )

  it('[MQTT-3.1.2-21] the word of the server is for its connection: on the next, ours counts again', async () => {
    const wire = await opened({ keepAlive: 3 }, connack(`13${u16(60)}`))
    expect(await wire.again()).toEqual([])
    await wire.advance(3000)
    expect(wire.take()).toEqual(['c000'])
  })
})

describe('the session', () => {
  it('[MQTT-3.1.2-4] Clean Start 1 is asked for, and nothing of another session is sent: what was published before the connection is new', async () => {
    const wire = await dialled()
    wire.publish(1, 'one')
    wire.publish(2, 'two')
    expect(wire.take()[0]?.slice(18, 20)).toBe('02')
    expect(await wire.answers(fresh)).toEqual([
      publish(0x32, 't', 1, 'one'),
      publish(0x34, 't', 2, 'two'),
    ])
  })

  it('[MQTT-3.1.2-4] [MQTT-3.1.2-23] of expiry 0 ends with its connection: Clean Start 1 on the next, nothing goes on, and identifiers mean new messages', async () => {
    const wire = await opened({ sessionExpiryInterval: 0, outbound: { onSessionLost: 'reject' } })
    const reader = await wire.subscribed('a', 2)
    wire.publish(1, 'one')
    wire.publish(2, 'two')
    await wire.give(pubrec(3), publish(0x34, 'a', 9, 'x'))
    expect(reader.read()?.text()).toBe('x')
    reader.read()
    await wire.cut()
    await wire.redialled()
    expect(wire.take()[0]?.slice(18, 20)).toBe('02')
    await wire.give(fresh)
    // The subscription is made anew, and that is all.
    expect(firsts(wire.take())).toEqual(['82'])
    await wire.give(publish(0x34, 'a', 9, 'y'))
    expect(reader.read()?.text()).toBe('y')
  })

  it('[MQTT-3.1.2-23] Session Expiry Interval above 0: what was open on either side goes on with the next connection', async () => {
    const wire = await opened({
      sessionExpiryInterval: 1000,
      reconnect: { backoff: () => 900_000 },
    })
    wire.publish(1, 'one')
    wire.publish(2, 'two')
    wire.publish(2, 'three')
    await wire.give(pubrec(3), publish(0x34, 'a', 7, 'x'))
    expect(wire.take().at(-1)).toBe(pubrec(7))
    await wire.cut()
    await wire.advance(900_000 - 10)
    await wire.redialled()
    expect(wire.take()[0]?.slice(18, 20)).toBe('00')
    expect(await wire.answers(resumed)).toEqual([
      pubrel(3),
      publish(0x3a, 't', 1, 'one'),
      publish(0x3c, 't', 2, 'two'),
    ])
    expect(await wire.answers(publish(0x3c, 'a', 7, 'x'), pubrel(7))).toEqual([
      pubrec(7),
      pubcomp(7),
    ])
    expect(wire.world.seen('unclaimed')).toHaveLength(1)
  })

  it('[MQTT-3.1.2-30] with an Authentication Method nothing but AUTH leaves before CONNACK; the rest comes behind it', async () => {
    const method = `15${text('toy')}`
    const wire = await dialled({ auth: toy().auth, keepAlive: 1, connectTimeout: 60_000 })
    expect(firsts(wire.take())).toEqual(['10'])
    wire.publish(1, 'x')
    wire.client.post('t', 'x')
    quiet(wire.client.subscribe('s'))
    quiet(wire.client.unsubscribe('u'))
    for (let round = 0; round < 3; round++) {
      await wire.give(packet(0xf0, '18', block(method)))
      wire.publish(1, 'y')
      await wire.advance(5000)
      expect(wire.take().map((bytes) => bytes.slice(0, 6))).toEqual([
        expect.stringMatching(/^f0..18$/),
      ])
    }
    await wire.give(connack(`2900${method}`))
    expect(firsts(wire.take()).sort()).toEqual(['32', '32', '32', '32', '82', 'a2'])
  })
})
