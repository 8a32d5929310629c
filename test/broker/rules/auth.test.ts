/**
 * Proofs of the server role, sections 3.15 and 4.12: AUTH of the broker in memory, at CONNECT and again.
 */
import { describe, expect, it } from 'vitest'
import type { BrokerAuthMethod } from '../../../src/testing/index.js'
import type { Properties, ServerPacket } from '../../../src/wire/index.js'
import { type RawClient, type World, world } from '../raw-client.js'
import { endOf, hexOfCode, packetOf, propertiesOf, say, someCodes, textOf } from './wire.js'

/** Asks for more after `1`, welcomes after `2`, and refuses `0` by a throw and `f` by a code. */
const method: BrokerAuthMethod = { start: step, continue: step }

function step(data: Uint8Array | undefined) {
  const first = data?.[0]
  if (first === 0) throw new Error('wrong')
  if (first === 0xff) return { reasonCode: 0x8a }
  return first === 2 ? { data: Uint8Array.of(0xbb) } : { reasonCode: 0x18, data: Uint8Array.of(0xaa) }
}

const named = (name: string, data = ''): string => propertiesOf(`15 ${textOf(name)}`, data === '' ? '' : `16 00 01 ${data}`)

const auth = (code: string, data: string, name = 'm'): string => packetOf('f0', code, named(name, data))

/** CONNECT with the method and its first data. */
const connect = (data: string, name = 'm'): string => packetOf('10', textOf('MQTT'), '05 02 00 00', named(name, data), textOf('a'))

const plain = packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('a'))

async function exchanging(first = '01'): Promise<World & { client: RawClient; answers: string[] }> {
  const all = world({ auth: { m: method }, topicAliasMaximum: 0 })
  const client = all.dial()
  return { ...all, client, answers: await say(client, connect(first)) }
}

const question = 'f0 0a 18 08 15 00 01 6d 16 00 01 aa'
const welcome = '20 10 00 00 0d 27 00 10 00 00 15 00 01 6d 16 00 01 bb'

describe('the exchange before CONNACK', () => {
  it('a method that the server does not know: CONNACK 0x8C, and the end [MQTT-4.12.0-1]', async () => {
    for (const all of [world(), world({ auth: { m: method } })]) {
      const client = all.dial()
      expect(await say(client, connect('01', 'X-NONE'))).toEqual(['20 03 00 8c 00'])
      expect([client.ended !== undefined, all.broker.sessions.size]).toEqual([true, 0])
    }
  })

  it('more data is asked for by AUTH 0x18 with the method, as often as it takes [MQTT-4.12.0-2] [MQTT-4.12.0-5] [MQTT-3.15.2-1]', async () => {
    const { client, answers } = await exchanging()
    expect(answers).toEqual([question])
    expect(await say(client, auth('18', '01'))).toEqual([question])
    expect(await say(client, auth('18', '01'))).toEqual([question])
    expect(await say(client, auth('18', '02'))).toEqual([welcome])
  })

  it('where nothing is asked CONNACK comes at once, with the method [MQTT-4.12.0-5]', async () => {
    const { answers } = await exchanging('02')
    expect(answers).toEqual([welcome])
  })

  it.each([
    ['at the first step, by a throw', ['00'], '87'],
    ['at the first step, by a code', ['ff'], '8a'],
    ['at the second step', ['01', '00'], '87'],
    ['at the third step', ['01', '01', 'ff'], '8a'],
  ] as const)('the server ends it by CONNACK and closes: %s [MQTT-4.12.0-4]', async (_what, data, code) => {
    const { client, answers, broker } = await exchanging(data[0])
    const all = [...answers]
    for (const each of data.slice(1)) all.push(...(await say(client, auth('18', each))))
    expect(all).toEqual([...data.slice(1).map(() => question), `20 03 00 ${code} 00`])
    expect([client.ended !== undefined, broker.clients.size, broker.sessions.size]).toEqual([true, 0, 0])
  })

  it('without a method in CONNECT there is neither AUTH nor a method [MQTT-4.12.0-6]', async () => {
    const { broker, dial, clock } = world({ auth: { m: method, '': method }, topicAliasMaximum: 0 })
    const client = dial()
    expect(await say(client, plain)).toEqual(['20 08 00 00 05 27 00 10 00 00'])
    await clock.advance(1_000_000)
    await say(client, 'c0 00')
    expect(await say(client, auth('19', '01'))).toEqual([expect.stringMatching(/^e0 .. 82/)])
    expect([client.ended !== undefined, broker.clients.size]).toEqual([true, 0])
  })

  it.each([
    ['another method', auth('18', '02', 'n')],
    ['no method', packetOf('f0', '18 00')],
    ['no properties', 'f0 00'],
    ['no reason beyond the first byte', 'f0 01 18'],
  ])('the client that goes on with %s is refused: no welcome, no AUTH, the end [MQTT-4.12.0-5]', async (_what, packet) => {
    const { client, broker } = await exchanging()
    const answers = await say(client, packet)
    expect(answers.filter((answer) => !/^20 03 00 8[1-9a-f]/.test(answer))).toEqual([])
    expect([client.ended !== undefined, broker.sessions.size]).toEqual([true, 0])
  })
})

describe('reason codes and flags', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])(
    'AUTH with the flags %i is malformed, before CONNACK and after [MQTT-3.15.1-1]',
    async (flags) => {
      const bad = `f${flags.toString(16)}${auth('18', '02').slice(2)}`
      const { client } = await exchanging()
      expect(await say(client, bad)).toEqual(['20 03 00 81 00'])
      expect(client.ended).toBeDefined()
      const later = await exchanging('02')
      await say(later.client, auth('19', '01'))
      expect(await say(later.client, bad)).toEqual([expect.stringMatching(/^e0 .. 81/)])
      expect(later.client.ended).toBeDefined()
    },
  )

  it('what the broker sends begins with f0 and has 0x00 or 0x18, whatever a method says [MQTT-3.15.1-1] [MQTT-3.15.2-1]', async () => {
    let reasonCode = 0
    const any = () => ({ reasonCode })
    for (reasonCode of someCodes) {
      const { dial } = world({ auth: { m: { start: (_data, { reauthentication }) => (reauthentication ? any() : {}), continue: any } } })
      const client = dial()
      await say(client, connect('01'))
      const [answer] = await say(client, auth('19', '01'))
      if (reasonCode >= 0x80) expect([reasonCode, answer]).toEqual([reasonCode, expect.stringMatching(/^e0 /)])
      else expect([reasonCode, answer]).toEqual([reasonCode, reasonCode === 0x18 ? 'f0 06 18 04 15 00 01 6d' : 'f0 06 00 04 15 00 01 6d'])
    }
  })

  it('of the client it takes 0x18 and 0x19, each in its place; any other is an error [MQTT-3.15.2-1]', async () => {
    for (const hex of someCodes.map(hexOfCode)) {
      const before = await exchanging()
      const [first] = await say(before.client, auth(hex, '01'))
      if (hex === '18') expect(first).toBe(question)
      else expect([hex, first ?? '20', before.client.ended !== undefined]).toEqual([hex, expect.stringMatching(/^20/), true])
      const after = await exchanging('02')
      const [second] = await say(after.client, auth(hex, '01'))
      if (hex === '19') expect(second).toBe(question)
      else expect([hex, second, after.client.ended !== undefined]).toEqual([hex, expect.stringMatching(/^e0 .. 8[12]/), true])
    }
  })
})

describe('authentication again', () => {
  it('goes by AUTH 0x18 to AUTH 0x00, all with the method, while work goes on [MQTT-4.12.0-2] [MQTT-4.12.0-5]', async () => {
    const { client } = await exchanging('02')
    expect(await say(client, auth('19', '01'), 'c0 00')).toEqual([question, 'd0 00'])
    expect(await say(client, auth('18', '02'), 'c0 00')).toEqual(['f0 0a 00 08 15 00 01 6d 16 00 01 bb', 'd0 00'])
  })

  it.each([
    ['at once', ['00'], '87'],
    ['by a code', ['ff'], '82'],
    ['at the second step', ['01', '00'], '87'],
  ] as const)('that fails ends the connection behind a DISCONNECT: %s [MQTT-4.12.1-2]', async (_what, data, code) => {
    const { client, broker } = await exchanging('02')
    let last = await say(client, auth('19', data[0]))
    for (const each of data.slice(1)) last = await say(client, auth('18', each))
    expect(last).toEqual([expect.stringMatching(new RegExp(`^e0 .. ${code}`))])
    expect([client.ended !== undefined, broker.clients.size]).toEqual([true, 0])
  })

  it('with another method ends the connection too [MQTT-4.12.0-5]', async () => {
    const { client } = await exchanging('02')
    expect(await say(client, auth('19', '01', 'n'))).toEqual([expect.stringMatching(/^e0 .. 82/)])
    expect(client.ended).toBeDefined()
  })
})

describe('what explains is left out where it does not fit', () => {
  const explained: Properties[] = [{ reasonString: 'why it is so' }, { userProperties: [['name', 'value']] }]

  it.each(explained)('%j in AUTH [MQTT-3.15.2-2] [MQTT-3.15.2-3]', async (properties) => {
    const { dial } = world({
      auth: { m: method },
      intercept: (direction, packet) =>
        direction === 'out' && packet.type === 'auth'
          ? ({ ...packet, properties: { ...packet.properties, ...properties } } as ServerPacket)
          : undefined,
    })
    const answer = async (size: number) => {
      const client = dial()
      const limit = `27 00 00 00 ${size.toString(16).padStart(2, '0')}`
      const answers = await say(
        client,
        packetOf('10', textOf('MQTT'), '05 02 00 00', propertiesOf(`15 ${textOf('m')} 16 00 01 01`, limit), textOf('a')),
      )
      return [...answers, endOf(client).closed]
    }
    const [whole] = await answer(200)
    const size = (whole as string).split(' ').length
    expect(size).toBeGreaterThan(24)
    expect(await answer(size)).toEqual([whole, false])
    expect(await answer(size - 1)).toEqual([question, false])
    expect(await answer(question.split(' ').length)).toEqual([question, false])
  })
})
