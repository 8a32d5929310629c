/** Section 3.3, by the bytes of a client: PUBLISH in both directions, its topic, its properties, and what may be open at a time. */
import { describe, expect, it } from 'vitest'
import type { Message } from '../../src/client/api/index.js'
import { toy } from '../unit/client/toy-auth.js'
import {
  block,
  connack,
  dialled,
  field,
  firsts,
  fresh,
  goodbye,
  opened,
  packet,
  puback,
  pubcomp,
  publish,
  pubrec,
  pubrel,
  quiet,
  raw,
  refusal,
  suback,
  text,
  u16,
  unsuback,
  type Wire,
} from './bytes.js'

/** A client with a reader of everything, and the topics that it has read. */
async function reading(
  options: Parameters<typeof opened>[0] = {},
): Promise<{ wire: Wire; seen: string[] }> {
  const wire = await opened(options)
  const reader = await wire.subscribed('#', 2)
  const seen: string[] = []
  ;(async () => {
    for await (const message of reader) seen.push(`${message.topic}=${message.text()}`)
  })().catch(() => undefined)
  return { wire, seen }
}

/** The bytes end the connection with one of these reason codes, and nothing of them is delivered. */
async function ends(bytes: string, ...codes: number[]): Promise<void> {
  const { wire, seen } = await reading()
  const sent = await wire.answers(bytes)
  expect(sent).toHaveLength(1)
  expect(codes.map(goodbye)).toContain(sent[0])
  expect(wire.ended).toBe(true)
  expect(seen).toEqual([])
}

describe('the flags of PUBLISH', () => {
  it('[MQTT-3.3.1-1] [MQTT-4.3.2-2] [MQTT-4.3.3-2] DUP is 0 at first and 1 when it is sent again, with the same identifier and all the rest', async () => {
    const wire = await opened()
    const properties = { contentType: 'c', messageExpiryInterval: 60 }
    wire.publish(1, 'one', { properties })
    wire.publish(2, 'two', { retain: true })
    const first = await wire.sent()
    expect(firsts(first)).toEqual(['32', '35'])
    expect(first[1]).toBe(publish(0x35, 't', 2, 'two'))
    const [one = '', two = ''] = first
    for (let round = 0; round < 2; round++)
      expect(await wire.again()).toEqual([`3a${one.slice(2)}`, `3d${two.slice(2)}`])
  })

  it('[MQTT-3.3.1-2] [MQTT-4.3.1-1] QoS 0 has no DUP, whatever the application says, and is not sent again', async () => {
    const wire = await opened()
    expect(
      await refusal(() => wire.client.publish('t', 'x', { dup: true } as object)),
    ).toMatchObject({ code: 'ERR_INVALID_OPTION' })
    const done = wire.publish(0, 'x')
    wire.publish(0, 'x', { retain: true })
    wire.client.post('t', 'x')
    expect(await done).toMatchObject({ reasonCode: 0, packetId: undefined })
    await wire.settle()
    expect(firsts(wire.take())).toEqual(['30', '31', '30'])
    await wire.advance(60_000)
    expect([await wire.again(), await wire.again(fresh)]).toEqual([[], []])
  })

  it.each(['38', '39'])(
    '[MQTT-3.3.1-2] QoS 0 with DUP from the server (%s): the end',
    async (first) => {
      await ends(`${first}050001610078`, 0x81, 0x82)
    },
  )

  it.each(['36', '37', '3e', '3f'])(
    '[MQTT-3.3.1-4] QoS 3 from the server (%s): DISCONNECT 0x81, the end',
    async (first) => {
      await ends(`${first}0700016100010078`, 0x81)
    },
  )

  it.each([3, -1, 0.5, '1', null])('[MQTT-3.3.1-4] QoS %s is refused', async (qos) => {
    const wire = await opened()
    const options = { qos: qos as 0 }
    expect(await refusal(() => wire.client.publish('t', 'x', options))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    })
    expect(await refusal(() => wire.client.subscribe('t', options))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    })
    expect(await wire.sent()).toEqual([])
  })
})

describe('the topic of PUBLISH', () => {
  it.each(['a', '/', ' ', 'a/b', '$SYS/x', 'ä/€/😀'])(
    '[MQTT-3.3.2-1] "%s" opens the variable header',
    async (topic) => {
      const wire = await opened()
      for (const qos of [0, 1, 2] as const)
        wire.client.publish(topic, 'x', { qos }).catch(() => undefined)
      wire.client.post(topic, 'x')
      const sent = await wire.sent()
      expect(sent).toHaveLength(4)
      for (const bytes of sent) expect(bytes.slice(4).startsWith(text(topic))).toBe(true)
    },
  )

  it.each([
    ['past the end of the packet', '3003000278'],
    ['in one byte', '300100'],
    ['in no byte', '3000'],
    ['with the identifier left out', '3203000161'],
  ])('[MQTT-3.3.2-1] a topic %s: DISCONNECT 0x81, the end', async (_what, bytes) => {
    await ends(bytes, 0x81)
  })

  const wildcards = ['#', '+', 'a/#', 'a/+', '+/b', 'a+b', 'a#', 'x/+/y']

  it.each(wildcards)(
    '[MQTT-3.3.2-2] [MQTT-4.7.0-1] "%s" is no topic: refused, nothing is sent',
    async (topic) => {
      const wire = await opened()
      for (const qos of [0, 1, 2] as const)
        expect(await refusal(() => wire.client.publish(topic, 'x', { qos }))).toMatchObject({
          code: 'ERR_INVALID_TOPIC',
        })
      expect(await refusal(() => wire.client.post(topic, 'x'))).toMatchObject({
        code: 'ERR_INVALID_TOPIC',
      })
      expect(await refusal(() => dialled({ will: { topic } }))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      })
      expect(await wire.sent()).toEqual([])
    },
  )

  it.each(wildcards)(
    '[MQTT-3.3.2-14] [MQTT-4.7.0-1] "%s" is no response topic: refused, nothing is sent',
    async (responseTopic) => {
      const wire = await opened()
      const properties = { responseTopic }
      expect(await refusal(() => wire.client.publish('t', 'x', { properties }))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      })
      expect(await refusal(() => dialled({ will: { topic: 'w', properties } }))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      })
      expect(await wire.sent()).toEqual([])
    },
  )

  it.each(wildcards)(
    '[MQTT-3.3.2-2] [MQTT-3.3.2-14] [MQTT-4.7.0-1] "%s" from the server, as topic or response topic: the end',
    async (bad) => {
      await ends(packet(0x30, text(bad), '00', '78'), 0x81, 0x82, 0x90)
      await ends(packet(0x32, text(bad), u16(1), '00', '78'), 0x81, 0x82, 0x90)
      await ends(packet(0x30, text('a'), block(`08${text(bad)}`)), 0x81, 0x82, 0x90)
    },
  )
})

describe('topic aliases of the server', () => {
  const aliased = (topic: string, alias: number, payload: string): string =>
    publish(0x30, topic, 0, payload, `23${u16(alias)}`)

  it('[MQTT-3.3.2-10] each from 1 to the maximum that CONNECT gave is taken, defined anew too', async () => {
    const { wire, seen } = await reading({ topicAliasMaximum: 300 })
    const all = Array.from({ length: 300 }, (_, index) => index + 1)
    await wire.give(...all.map((alias) => aliased(`t${alias}`, alias, 'a')))
    await wire.give(...all.map((alias) => aliased('', alias, 'b')))
    await wire.give(aliased('new', 300, 'c'), aliased('', 300, 'd'), aliased('', 1, 'e'))
    expect(seen).toEqual([
      ...all.map((alias) => `t${alias}=a`),
      ...all.map((alias) => `t${alias}=b`),
      'new=c',
      'new=d',
      't1=e',
    ])
    expect(wire.take()).toEqual([])
  })

  it.each([1, 2])('[MQTT-3.3.2-10] at QoS %i as well', async (qos) => {
    const { wire, seen } = await reading()
    await wire.give(
      publish(0x30 + 2 * qos, 'a', 1, 'x', '23000a'),
      publish(0x30 + 2 * qos, '', 2, 'y', '23000a'),
    )
    expect(seen).toEqual(['a=x', 'a=y'])
    expect(wire.ended).toBe(false)
  })

  it('[MQTT-3.3.2-7] die with the connection: on the next, an empty topic with a former alias is DISCONNECT 0x82, the end', async () => {
    const { wire, seen } = await reading()
    await wire.give(aliased('a', 1, 'x'), aliased('', 1, 'y'))
    expect(seen).toEqual(['a=x', 'a=y'])
    expect(await wire.again()).toEqual([])
    expect([await wire.answers(aliased('', 1, 'z')), wire.ended]).toEqual([[goodbye(0x82)], true])
    expect(seen).toEqual(['a=x', 'a=y'])
  })

  it('[MQTT-3.3.2-7] ours die with the connection, too: the first use on the next carries the topic', async () => {
    const wire = await opened({}, connack(`290022${u16(5)}`))
    const send = async (): Promise<string[]> => {
      wire.client.post('a', 'x')
      await wire.settle()
      return wire.take()
    }
    expect([await send(), await send()]).toEqual([[aliased('a', 1, 'x')], [aliased('', 1, 'x')]])
    await wire.again(connack(`290022${u16(5)}`, 1))
    expect([await send(), await send()]).toEqual([[aliased('a', 1, 'x')], [aliased('', 1, 'x')]])
  })

  it.each([
    ['a', 0],
    ['', 0],
    ['a', 11],
    ['a', 65_535],
  ])(
    '[MQTT-3.3.2-8] topic "%s" with alias %i of 10: DISCONNECT 0x94, the end',
    async (topic, alias) => {
      await ends(aliased(topic, alias, 'x'), 0x94)
    },
  )
})

describe('what PUBLISH is answered with, and what it may carry', () => {
  it('[MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT-4.3.3-8] nothing at QoS 0, PUBACK at 1, PUBREC at 2', async () => {
    const { wire, seen } = await reading()
    expect(await wire.answers(publish(0x30, 'a', 0, 'x'))).toEqual([])
    expect(await wire.answers(publish(0x32, 'a', 0x1234, 'y'))).toEqual(['40021234'])
    expect(await wire.answers(publish(0x34, 'a', 0x0102, 'z'))).toEqual(['50020102'])
    expect(seen).toEqual(['a=x', 'a=y', 'a=z'])
  })

  it('[MQTT-3.3.4-6] no Subscription Identifier is on a PUBLISH of ours, not even with the properties of one that came in', async () => {
    const wire = await opened()
    const reader = await wire.subscribed('a')
    await wire.give(publish(0x30, 'a', 0, 'x', `0b070b08${'03'}${text('c')}`))
    const { properties } = reader.read() as Message
    expect(properties.subscriptionIdentifiers).toEqual([7, 8])
    for (const given of [
      properties,
      { subscriptionIdentifiers: [1] },
      { subscriptionIdentifier: 1 },
    ] as object[]) {
      for (const qos of [0, 1, 2] as const) {
        expect(
          await refusal(() => wire.client.publish('t', 'x', { qos, properties: given })),
        ).toMatchObject({ code: 'ERR_INVALID_OPTION' })
      }
      expect(
        await refusal(() => dialled({ will: { topic: 'w', properties: given } })),
      ).toMatchObject({ code: 'ERR_INVALID_OPTION' })
    }
    expect(await wire.sent()).toEqual([])
  })
})

/** The QoS 1 and 2 publishes that leave when `count` are asked for. */
async function flood(wire: Wire, qos: 1 | 2, count: number): Promise<number> {
  for (let index = 0; index < count; index++) wire.publish(qos, 'x')
  await wire.settle()
  return wire.take().length
}

describe('Receive Maximum of the server', () => {
  const atMost = (count: number, rest = ''): string => connack(`290021${u16(count)}${rest}`)

  it('[MQTT-3.3.4-7] [MQTT-4.9.0-1] [MQTT-4.9.0-2] QoS 1: no more are open, and each PUBACK frees one place', async () => {
    const wire = await opened({}, atMost(2))
    expect(await flood(wire, 1, 5)).toBe(2)
    await wire.advance(60_000)
    expect(wire.take()).toEqual([])
    for (const [id, code, next] of [
      [1, 0, [3]],
      [2, 0x97, [4]],
      [3, 0x10, [5]],
      [4, 0, []],
    ] as const) {
      expect(await wire.answers(puback(id, code))).toEqual(
        next.map((packetId) => publish(0x32, 't', packetId, 'x')),
      )
    }
  })

  it('[MQTT-3.3.4-7] [MQTT-4.9.0-2] QoS 2: PUBCOMP and a failing PUBREC free a place, a good PUBREC does not', async () => {
    const wire = await opened({}, atMost(2))
    expect(await flood(wire, 2, 5)).toBe(2)
    expect(await wire.answers(pubrec(1))).toEqual([pubrel(1)])
    expect(await wire.answers(pubcomp(1))).toEqual([publish(0x34, 't', 3, 'x')])
    expect(await wire.answers(pubrec(2, 0x97))).toEqual([publish(0x34, 't', 4, 'x')])
    expect(await wire.answers(pubrec(3), pubrec(4))).toEqual([pubrel(3), pubrel(4)])
    expect(await wire.answers(pubcomp(4, 0x92))).toEqual([publish(0x34, 't', 5, 'x')])
  })

  it('[MQTT-4.9.0-1] 1: the first leaves at once; without the property 65,535 may be open', async () => {
    const narrow = await opened({}, atMost(1))
    expect(await flood(narrow, 1, 3)).toBe(1)
    const wide = await opened({ outbound: { maxQueuedMessages: 100_000 } })
    expect(await flood(wide, 1, 65_600)).toBe(65_535)
  })

  it('[MQTT-4.9.0-2] answers to nothing lift it no higher than its start', async () => {
    const wire = await opened({}, atMost(2))
    expect(await wire.answers(puback(7), pubcomp(8), pubrec(9, 0x80))).toEqual([])
    expect(await flood(wire, 1, 5)).toBe(2)
    expect(await wire.answers(puback(1), puback(1), puback(1))).toEqual([
      publish(0x32, 't', 3, 'x'),
    ])
  })

  it('[MQTT-4.9.0-1] [MQTT-4.9.0-2] starts anew with each connection, and what is sent again counts', async () => {
    const wire = await opened({}, atMost(3))
    expect(await flood(wire, 1, 5)).toBe(3)
    expect(await wire.again(connack(`290021${u16(2)}`, 1))).toEqual([
      publish(0x3a, 't', 1, 'x'),
      publish(0x3a, 't', 2, 'x'),
    ])
    expect(await wire.answers(puback(1))).toEqual([publish(0x3a, 't', 3, 'x')])
    expect(await wire.answers(puback(2), puback(3))).toEqual([
      publish(0x32, 't', 4, 'x'),
      publish(0x32, 't', 5, 'x'),
    ])
  })

  it('[MQTT-3.3.4-8] [MQTT-4.9.0-3] used up, it holds back PUBLISH at QoS 1 and 2, and nothing else', async () => {
    const method = `15${text('toy')}`
    const wire = await opened({ auth: toy().auth, keepAlive: 10 }, atMost(2, method))
    await wire.subscribed('a', 2)
    expect(await flood(wire, 2, 4)).toBe(2)
    const now = async (what: () => unknown): Promise<string[]> => {
      what()
      await wire.settle()
      return firsts(wire.take())
    }
    const first =
      (bytes: string): (() => unknown) =>
      () =>
        wire.give(bytes)
    expect(await now(() => wire.publish(0, 'x'))).toEqual(['30'])
    expect(await now(() => wire.client.post('t', 'x'))).toEqual(['30'])
    expect(await now(() => quiet(wire.client.subscribe('s')))).toEqual(['82'])
    expect(await now(() => quiet(wire.client.unsubscribe('u')))).toEqual(['a2'])
    expect(await now(first(publish(0x32, 'b', 1, 'x')))).toEqual(['40'])
    expect(await now(first(publish(0x34, 'b', 2, 'x')))).toEqual(['50'])
    expect(await now(first(pubrel(2)))).toEqual(['70'])
    expect(await now(first(pubrec(2)))).toEqual(['62'])
    expect(await now(() => quiet(wire.client.reauthenticate()))).toEqual(['f0'])
    await wire.advance(10_000)
    expect(wire.take()).toEqual(['c000'])
    await wire.give('d000', suback(6, 0), unsuback(7, 0), packet(0xf0, '00', block(method)))
    expect(wire.ended).toBe(false)
    quiet(wire.client.disconnect({ timeout: 0 }))
    await wire.settle()
    expect(firsts(wire.take())).toEqual(['e0'])
  })
})

describe('fields of PUBLISH that the standard gives a form', () => {
  it('[MQTT-3.3.2-13] [MQTT-3.3.2-19] Response Topic and Content Type leave as UTF-8, and come in so', async () => {
    const wire = await opened()
    const properties = { responseTopic: 'ä/😀', contentType: 'text/ß' }
    wire.publish(0, 'x', { properties })
    const [sent = ''] = await wire.sent()
    expect(sent).toContain(`08${field(raw('ä/😀'))}`)
    expect(sent).toContain(`03${field(raw('text/ß'))}`)
    const reader = await wire.subscribed('t')
    await wire.give(sent)
    expect(reader.read()?.properties).toMatchObject(properties)
  })
})
