/** Reason codes of the broker in memory, whatever hooks, methods and faults decide, and what explains them (2.4, 3.1.2.11.7). */
import { describe, expect, it } from 'vitest'
import {
  encode,
  type PacketInput,
  type Properties,
  type ServerPacket,
} from '../../src/wire/index.js'
import {
  codeOf,
  hexOfCode,
  joined,
  packetOf,
  propertiesOf,
  someCodes,
  textOf,
  world,
} from './raw-client.js'

const method = propertiesOf('15', textOf('m'))
const again = packetOf('f0', '19', method)
const enhanced = { properties: { authenticationMethod: 'm' } }
const publish = (first: string, topic = 't', packetId = '00 01'): string =>
  packetOf(first, textOf(topic), packetId, '00 78')
const subscribe = packetOf('82', '00 01 00', textOf('t'), '02')
const unsubscribe = packetOf('a2', '00 01 00', textOf('t'))

const lastByte = ([answer = '']: readonly string[]): string => answer.slice(-2)

async function connected(
  options: Parameters<typeof world>[0],
  settings = {},
): Promise<string | undefined> {
  const client = world(options).dial()
  await client.connect(settings)
  const code = codeOf(client.heard()[0])
  expect(client.gone).toBe(code !== '00')
  return code
}

/** A broker that answers authentication with this code: at once, or when it is begun again. */
const exchanging = (reasonCode: number, later: boolean) => ({
  auth: {
    m: {
      start: (_data: unknown, { reauthentication }: { reauthentication: boolean }) =>
        reauthentication === later ? { reasonCode } : {},
      continue: () => ({}),
    },
  },
})

const connack = '80 81 82 83 84 85 86 87 88 89 8a 8c 90 95 97 99 9a 9b 9c 9d 9f'
const goodbye = '80 81 82 83 87 89 8b 8d 8e 8f 90 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 9f a0 a1 a2'
const ack = '80 83 87 90 91 97 99'
const refused = 'refused'

/** `success` stands for all that is below 0x80, `otherwise` for what the packet cannot say. */
const oneOf = (own: string, otherwise: string, success?: string) => (code: number) => {
  const hex = hexOfCode(code)
  return (code < 0x80 ? success : undefined) ?? (own.includes(hex) ? hex : otherwise)
}

type Code = string | undefined
it.each<[title: string, expected: (code: number) => string, say: (code: number) => Promise<Code>]>([
  [
    'CONNACK [MQTT-3.2.2-8] [MQTT-3.2.2-7] [MQTT-4.13.2-1]',
    oneOf(connack, '80', '00'),
    async (code) => {
      const said = await connected({ authenticate: () => code })
      if (code >= 0x80) expect(await connected(exchanging(code, false), enhanced)).toBe(said)
      return said
    },
  ],
  [
    'PUBACK and PUBREC [MQTT-3.4.2-1] [MQTT-3.5.2-1]',
    oneOf(ack, '80', '10'),
    async (code) => {
      const { client, broker } = await joined({ authorizePublish: () => code })
      const said = lastByte(await client.say(publish('32')))
      expect(lastByte(await client.say(publish('34')))).toBe(said)
      expect(broker.accepted).toHaveLength(code < 0x80 ? 2 : 0)
      return said
    },
  ],
  [
    'SUBACK [MQTT-3.9.3-2]',
    oneOf('80 83 87 8f 91 97 9e a1 a2', '80', '02'),
    async (code) => {
      const { client, broker } = await joined({ authorizeSubscribe: () => code })
      const said = lastByte(await client.say(subscribe))
      expect(broker.publish({ topic: 't' })).toBe(code < 0x80)
      return said
    },
  ],
  [
    'UNSUBACK, by a fault [MQTT-3.11.3-2]',
    oneOf('00 11 80 83 87 8f 91', refused),
    async (reasonCode) => {
      const { client, broker } = await joined()
      const fault = { packet: 'unsubscribe', direction: 'in', nth: 1 } as const
      try {
        broker.faults.add({ ...fault, action: { reasonCode } })
      } catch {
        return refused
      }
      return lastByte(await client.say(unsubscribe))
    },
  ],
  [
    'DISCONNECT, by an administrator: those of a client are not said [MQTT-3.14.2-1]',
    (code) => ([4, 0x8c].includes(code) ? '82' : oneOf(`00 ${goodbye}`, refused)(code)),
    async (code) => {
      const { client, broker } = await joined()
      try {
        broker.disconnect('a', code)
      } catch {
        return refused
      }
      return client.refusal()
    },
  ],
  [
    'AUTH or DISCONNECT, by a method [MQTT-3.15.1-1] [MQTT-3.15.2-1] [MQTT-3.14.2-1]',
    (code) => (code === 0x18 ? 'AUTH 18' : oneOf(goodbye, '82', 'AUTH 00')(code)),
    async (code) => {
      const { client } = await joined(exchanging(code, true), enhanced)
      const [answer = ''] = await client.say(again)
      return answer.startsWith('f0') ? `AUTH ${answer.split(' ')[2]}` : codeOf(answer)
    },
  ],
])('%s: the code is one of its own', async (_title, expected, say) => {
  for (const code of someCodes) expect([code, await say(code)]).toEqual([code, expected(code)])
})

describe('Reason String and User Properties', () => {
  const reason: Properties = { reasonString: 'why it is so, at some length, that it does not fit' }
  const user: Properties = { userProperties: [['name', `value${reason.reasonString}`]] }

  it.each<[type: ServerPacket['type'], statements: string, ...said: string[]]>([
    ['connack', '[MQTT-3.2.2-19] [MQTT-3.2.2-20]'],
    ['puback', '[MQTT-3.4.2-2] [MQTT-3.4.2-3]', publish('32')],
    ['pubrec', '[MQTT-3.5.2-2] [MQTT-3.5.2-3]', publish('34')],
    ['pubrel', '[MQTT-3.6.2-2] [MQTT-3.6.2-3]', subscribe, publish('34'), '50 02 00 01'],
    ['pubcomp', '[MQTT-3.7.2-2] [MQTT-3.7.2-3]', publish('34'), '62 02 00 01'],
    ['suback', '[MQTT-3.9.2-1] [MQTT-3.9.2-2]', subscribe],
    ['unsuback', '[MQTT-3.11.2-1] [MQTT-3.11.2-2]', unsubscribe],
    ['disconnect', '[MQTT-3.14.2-3] [MQTT-3.14.2-4]', 'c1 00'],
    ['auth', '[MQTT-3.15.2-2] [MQTT-3.15.2-3]', again],
  ])('of %s are left out where they do not fit %s [MQTT-3.1.2-24]', async (type, _ids, ...said) => {
    for (const properties of [reason, user, { ...reason, ...user }]) {
      const answer = async (maximumPacketSize: number) => {
        const client = world({
          ...exchanging(0x18, true),
          intercept: (direction, packet) =>
            direction === 'out' && packet.type === type && 'properties' in packet
              ? ({ ...packet, properties: { ...packet.properties, ...properties } } as never)
              : undefined,
        }).dial()
        const given = { ...enhanced.properties, maximumPacketSize }
        await client.send({ type: 'connect', clientId: 'a', properties: given })
        for (const packet of said) await client.say(packet)
        return client.received.findLast(
          (packet) => packet.type === type,
        ) as (typeof client.received)[0] & { properties: Properties }
      }
      const whole = await answer(1000)
      expect(whole.properties).toMatchObject(properties)
      const { reasonString: _reason, userProperties: _user, ...rest } = whole.properties
      const { length } = encode(whole as PacketInput)
      expect(await answer(length)).toEqual(whole)
      expect(await answer(length - 1)).toEqual({ ...whole, properties: rest })
    }
  })

  it('0 keeps explanations to CONNACK and DISCONNECT, and User Properties to those and PUBLISH [MQTT-3.1.2-29]', async () => {
    const explained: Properties = { reasonString: 'why', userProperties: [['a', 'b']] }
    const { dial, broker } = world({
      auth: { m: { start: () => ({ reasonCode: 0x18 }), continue: () => ({}) } },
      intercept: (direction, packet) =>
        direction === 'out' && 'properties' in packet && packet.type !== 'publish'
          ? ({ ...packet, properties: { ...packet.properties, ...explained } } as typeof packet)
          : undefined,
    })
    for (const requestProblemInformation of [0, 1]) {
      const client = dial()
      const method = { authenticationMethod: 'm' }
      await client.send({
        type: 'connect',
        clientId: 'a',
        properties: { ...method, requestProblemInformation },
      })
      await client.send({ type: 'auth', reasonCode: 0x18, properties: method })
      await client.say(
        packetOf('82', '00 01 00', textOf('t'), '02'),
        packetOf('a2', '00 02 00', textOf('u')),
        publish('32', 'n', '00 03'),
        publish('34', 'n', '00 04'),
      )
      broker.publish({ topic: 't', qos: 2, properties: { userProperties: [['a', 'b']] } })
      await client.say('62 02 00 04', '50 02 00 01', '70 02 00 01', 'c1 00')
      const said = client.received.map((packet) => {
        const { reasonString, userProperties }: Properties =
          'properties' in packet ? packet.properties : {}
        return `${packet.type} ${reasonString !== undefined} ${userProperties !== undefined}`
      })
      const own = `${requestProblemInformation === 1} ${requestProblemInformation === 1}`
      const kinds = [
        'auth',
        'connack',
        'suback',
        'unsuback',
        'puback',
        'pubrec',
        'publish',
        'pubcomp',
        'pubrel',
        'disconnect',
      ]
      const always: Record<string, string> = {
        connack: 'true true',
        publish: 'false true',
        disconnect: 'true true',
      }
      expect(said).toEqual(kinds.map((kind) => `${kind} ${always[kind] ?? own}`))
    }
  })
})
