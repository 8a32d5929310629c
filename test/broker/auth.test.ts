/** AUTH of the broker in memory, at CONNECT and again (sections 3.15 and 4.12). */
import { expect, it } from 'vitest'
import type { BrokerAuthContext, BrokerAuthMethod } from '../../src/testing/index.js'
import {
  bytes,
  hexOfCode,
  packetOf,
  propertiesOf,
  type RawClient,
  someCodes,
  textOf,
  type World,
  world,
} from './raw-client.js'

/** Asks for more after `1`, welcomes after `2`, and refuses `0` by a throw, `f` by a code and `e` by a throw with a code. */
function methodOf(seen: BrokerAuthContext[] = []): BrokerAuthMethod {
  const step = (data: Uint8Array | undefined, context: BrokerAuthContext) => {
    const first = data?.[0]
    seen.push({ ...context })
    if (first === 0) throw new Error('wrong')
    if (first === 0xee) throw Object.assign(new Error('no'), { reasonCode: 0x8a })
    if (first === 0xff) return { reasonCode: 0x8a }
    return first === 2
      ? { data: Uint8Array.of(0xbb) }
      : { reasonCode: 0x18, data: Uint8Array.of(0xaa) }
  }
  return { start: step, continue: step }
}

const named = (name: string, data = ''): string =>
  propertiesOf(`15 ${textOf(name)}`, data === '' ? '' : `16 00 01 ${data}`)
const auth = (code: string, data: string, name = 'm'): string =>
  packetOf('f0', code, named(name, data))

const connect = (data: string, name = 'm'): string =>
  packetOf('10', textOf('MQTT'), '05 02 00 00', named(name, data), textOf('a'))

async function exchanging(
  first = '01',
  seen?: BrokerAuthContext[],
): Promise<World & { client: RawClient; answers: string[] }> {
  const all = world({ auth: { m: methodOf(seen) }, topicAliasMaximum: 0 })
  const client = all.dial()
  return { ...all, client, answers: await client.say(connect(first)) }
}

const question = 'f0 0a 18 08 15 00 01 6d 16 00 01 aa'
const welcome = '20 10 00 00 0d 27 00 10 00 00 15 00 01 6d 16 00 01 bb'

it.each(['X-NONE', 'constructor'])(
  'the unknown method %s: CONNACK 0x8C, and the end [MQTT-4.12.0-1]',
  async (name) => {
    for (const all of [world(), world({ auth: { m: methodOf() } })]) {
      expect(await all.dial().refusal(connect('01', name))).toBe('8c')
      expect(all.broker.sessions.size).toBe(0)
    }
  },
)

it('more data is asked for by AUTH 0x18 with the method, as often as it takes [MQTT-4.12.0-2] [MQTT-4.12.0-5] [MQTT-3.15.2-1]', async () => {
  const { client, answers } = await exchanging()
  expect(answers).toEqual([question])
  for (let i = 0; i < 2; i++) expect(await client.say(auth('18', '01'))).toEqual([question])
  expect(await client.say(auth('18', '02'))).toEqual([welcome])
  // Where nothing is asked CONNACK comes at once.
  expect((await exchanging('02')).answers).toEqual([welcome])
})

it('the method knows the client, keeps state between its steps and gets the data', async () => {
  const seen: BrokerAuthContext[] = []
  const method: BrokerAuthMethod = {
    start(data, context) {
      context.state['wanted'] = [...(data ?? [])].reverse().join()
      seen.push(context)
      return { reasonCode: 0x18 }
    },
    continue: (data, { state }) => (data?.join() === state['wanted'] ? {} : { reasonCode: 0x87 }),
  }
  const client = world({ auth: { m: method } }).dial()
  const properties = { authenticationMethod: 'm', authenticationData: bytes('abc') }
  await client.send({ type: 'connect', clientId: 'a', username: 'u', properties })
  const answer = {
    type: 'auth',
    reasonCode: 0x18,
    properties: { ...properties, authenticationData: bytes('cba') },
  } as const
  expect(await client.send(answer)).toMatchObject([{ type: 'connack', reasonCode: 0 }])
  expect(seen).toMatchObject([{ clientId: 'a', username: 'u', reauthentication: false }])
})

it.each([
  ['at the first step, by a throw', ['00'], '87'],
  ['at the first step, by a code', ['ff'], '8a'],
  ['by a throw with a code', ['ee'], '8a'],
  ['at the second step', ['01', '00'], '87'],
  ['at the third step', ['01', '01', 'ff'], '8a'],
] as const)(
  'the server ends it by CONNACK and closes: %s [MQTT-4.12.0-4]',
  async (_what, data, code) => {
    const { client, answers, broker } = await exchanging(data[0])
    const all = [...answers]
    for (const each of data.slice(1)) all.push(...(await client.say(auth('18', each))))
    expect(all).toEqual([...data.slice(1).map(() => question), `20 03 00 ${code} 00`])
    expect([client.gone, broker.clients.size, broker.sessions.size]).toEqual([true, 0, 0])
  },
)

it('without a method in CONNECT there is neither AUTH nor a method [MQTT-4.12.0-6] [MQTT-4.12.0-7]', async () => {
  const { broker, dial, clock } = world({
    auth: { m: methodOf(), '': methodOf() },
    topicAliasMaximum: 0,
  })
  const client = dial()
  expect(await client.say(packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('a')))).toEqual([
    '20 08 00 00 05 27 00 10 00 00',
  ])
  await clock.advance(1_000_000)
  await client.say('c0 00')
  expect(await client.refusal(auth('19', '01'))).toBe('82')
  expect([broker.clients.size, broker.violations.length]).toEqual([0, 1])
})

it.each([
  ['another method', auth('18', '02', 'n')],
  ['no method', packetOf('f0', '18 00')],
  ['no properties', 'f0 00'],
  ['no reason beyond the first byte', 'f0 01 18'],
])(
  'the client that goes on with %s is refused: no welcome, no AUTH, the end [MQTT-4.12.0-5]',
  async (_what, packet) => {
    const { client, broker } = await exchanging()
    expect(
      (await client.say(packet)).filter((answer) => !/^20 03 00 8[1-9a-f]/.test(answer)),
    ).toEqual([])
    expect([client.gone, broker.sessions.size]).toEqual([true, 0])
  },
)

it('nothing but AUTH and DISCONNECT passes before CONNACK [MQTT-3.1.2-30]', async () => {
  const { client, broker, dial } = await exchanging()
  await client.publish('t', 'x')
  const text = 'more than AUTH and DISCONNECT before CONNACK [MQTT-3.1.2-30]'
  expect(broker.violations).toMatchObject([{ packet: 'publish', reasonCode: 0x82, text }])
  const polite = dial()
  await polite.say(connect('01'), 'e0 00')
  expect([client.gone, polite.gone, broker.accepted, broker.violations.length]).toEqual([
    true,
    true,
    [],
    1,
  ])
})

it('AUTH while the broker still thinks is a protocol error', async () => {
  const { dial, broker } = world({
    auth: { m: { start: () => new Promise(() => undefined), continue: () => ({}) } },
  })
  const client = dial()
  await client.say(connect('01'), auth('18', '01'))
  expect([client.gone, broker.violations]).toMatchObject([
    true,
    [{ packet: 'auth', reasonCode: 0x82 }],
  ])
})

it('reason codes and flags: of the client it takes 0x18 and 0x19, each in its place; any other is an error [MQTT-3.15.2-1]', async () => {
  for (const hex of someCodes.map(hexOfCode)) {
    const [before, after] = [await exchanging(), await exchanging('02')]
    const [first = '20'] = await before.client.say(auth(hex, '01'))
    expect([hex, first, before.client.gone]).toEqual([
      hex,
      hex === '18' ? question : expect.stringMatching(/^20/),
      hex !== '18',
    ])
    const [second] = await after.client.say(auth(hex, '01'))
    expect([hex, second, after.client.gone]).toEqual([
      hex,
      hex === '19' ? question : expect.stringMatching(/^e0 .. 8[12]/),
      hex !== '19',
    ])
  }
})

it('authentication again: goes by AUTH 0x18 to AUTH 0x00, all with the method, while work goes on; there is no second CONNACK [MQTT-3.2.0-2] [MQTT-4.12.0-2] [MQTT-4.12.0-5] [MQTT-4.12.1-1]', async () => {
  const seen: BrokerAuthContext[] = []
  const { client, broker } = await exchanging('02', seen)
  expect(
    await client.say(auth('19', '01'), 'c0 00', packetOf('32', textOf('t'), '00 01 00')),
  ).toEqual([question, 'd0 00', '40 03 00 01 10'])
  expect(await client.say(auth('18', '02'), 'c0 00')).toEqual([
    'f0 0a 00 08 15 00 01 6d 16 00 01 bb',
    'd0 00',
  ])
  expect([seen.map(({ reauthentication }) => reauthentication), broker.violations]).toEqual([
    [false, true, true],
    [],
  ])
})

it.each([
  ['at once', [auth('19', '00')], '87', 0],
  ['by a code', [auth('19', 'ff')], '82', 0],
  ['at the second step', [auth('19', '01'), auth('18', '00')], '87', 0],
  ['with another method [MQTT-4.12.1-1] [MQTT-4.12.0-5]', [auth('19', '01', 'n')], '82', 1],
] as const)(
  'authentication again: that fails ends the connection behind a DISCONNECT: %s [MQTT-4.12.1-2]',
  async (_what, packets, code, violations) => {
    const { client, broker } = await exchanging('02')
    for (const packet of packets.slice(0, -1)) await client.say(packet)
    expect(await client.refusal(packets.at(-1) ?? '')).toBe(code)
    expect([broker.clients.size, broker.violations.length]).toEqual([0, violations])
  },
)
