/** Vectors of a client's packets, fed to the broker in memory. Each in the state that its context names, whole and byte by byte: what is valid is handled, what is not ends that connection with a code that the vector accepts, and no other. And mutated, in every state of a connection, with faults and restarts, from fixed seeds. */
import { describe, expect, it } from 'vitest'
import type { BrokerAuthMethod, Fault, MemoryBrokerOptions } from '../../src/testing/index.js'
import { readVectors, type Vector } from '../unit/wire/vector-files.js'
import { Random } from '../world/random.js'
import {
  bytesOf,
  codeOf,
  hexOf,
  packetOf,
  propertiesOf,
  type RawClient,
  textOf,
  type World,
  world,
} from './raw-client.js'

const vectors = readVectors('../../rules/vectors.json').filter(
  ({ direction, fill }) => direction === 'c2s' && fill === undefined,
)

const codes: Readonly<Record<string, string>> = {
  MalformedPacket: '81',
  ProtocolError: '82',
  UnsupportedProtocolVersion: '84',
  ClientIdentifierNotValid: '85',
  TopicFilterInvalid: '8f',
  TopicNameInvalid: '90',
  TopicAliasInvalid: '94',
  PacketTooLarge: '95',
  RetainNotSupported: '9a',
  QoSNotSupported: '9b',
  SharedSubscriptionsNotSupported: '9e',
  SubscriptionIdentifiersNotSupported: 'a1',
}
const acceptedCodes = ({ acceptErrors = [] }: Vector) => acceptErrors.map((error) => codes[error])

/** Lets every client in; an exchange that the client begins later asks for one step more. */
const anyData: BrokerAuthMethod = {
  start: (_data, { reauthentication }) => ({ reasonCode: reauthentication ? 0x18 : 0 }),
  continue: () => ({}),
}

function methodOf({ context, decoded, name }: Vector): string | undefined {
  const { authenticationMethod } = ((
    decoded as { properties?: Record<string, unknown> } | undefined
  )?.properties ?? {}) as Record<string, string>
  if (name === 'auth-without-connect-method-c2s') return undefined
  const wanted = context?.connect?.['authenticationMethod'] as string | undefined
  return wanted ?? authenticationMethod ?? (name.startsWith('auth-') ? 'm' : undefined)
}

function brokerOf(vector: Vector): World {
  const { connack } = vector.context ?? {}
  const method = methodOf(vector)
  const flags = [
    'retainAvailable',
    'sharedSubscriptionAvailable',
    'subscriptionIdentifierAvailable',
  ] as const
  return world({
    topicAliasMaximum: connack === undefined ? 65_535 : 0,
    ...connack,
    ...Object.fromEntries(flags.map((flag) => [flag, connack?.[flag] !== 0])),
    auth: method === undefined ? {} : { [method]: anyData },
  } as MemoryBrokerOptions)
}

const answeredIn311 = ['connect-protocol-version-0', 'connect-v31-mqisdp']

async function enter(vector: Vector, { dial }: World): Promise<RawClient> {
  // The decoder of the scripted client has to know which form a refusal has: that of 3.1.1 for levels below 5.
  const client = dial(answeredIn311.includes(vector.name) ? 4 : 5)
  const method = methodOf(vector)
  if (vector.name.startsWith('connect-')) return client
  const sessionExpiryInterval = vector.context?.connect?.['sessionExpiryInterval']
  await client.connect({
    clientId: 'v',
    properties: { sessionExpiryInterval, authenticationMethod: method },
  })
  if (vector.name.startsWith('auth-') && method !== undefined) {
    await client.send({
      type: 'auth',
      reasonCode: 0x19,
      properties: { authenticationMethod: method },
    })
  }
  client.heard()
  return client
}

const ids = ({ statements = [] }: Vector): string => statements.map((id) => ` [${id}]`).join('')

/** Plays the vector both ways. `check` sees what came. */
function each(
  vector: Vector,
  check: (answers: string[], client: RawClient, all: World) => Promise<void> | void,
): void {
  it(`${vector.name}${vector.valid ? '' : ids(vector)}`, async () => {
    for (const feed of ['say', 'drip'] as const) {
      const all = brokerOf(vector)
      const bystander = await all.join('b')
      await bystander.subscribe('b')
      bystander.heard()
      const client = await enter(vector, all)
      await check(await client[feed](vector.hex), client, all)
      all.broker.publish({ topic: 'b', payload: 'x' })
      expect(await bystander.say('c0 00')).toEqual(['30 05 00 01 62 00 78', 'd0 00'])
    }
  })
}

const invalid = vectors.filter(({ valid }) => !valid)

describe('what breaks the format or the rules ends the connection, after CONNACK [MQTT-4.13.1-1] [MQTT-4.13.2-1]', () => {
  for (const vector of invalid.filter(({ name }) => !name.startsWith('connect-'))) {
    each(vector, (answers, client) => {
      // What stands before the bad packet of a stream is answered before.
      const last = answers.at(-1)
      expect(last?.slice(0, 2)).toBe('e0')
      expect(acceptedCodes(vector)).toContain(codeOf(last))
      expect(client.gone).toBe(true)
    })
  }
})

describe('a CONNECT that breaks the format or the rules is refused, and the connection closed [MQTT-3.1.4-1] [MQTT-3.2.2-7] [MQTT-3.14.0-1]', () => {
  for (const vector of invalid.filter(({ name }) => name.startsWith('connect-'))) {
    each(vector, async (answers, client, { dial }) => {
      expect(client.gone).toBe(true)
      expect(answers.length).toBeLessThanOrEqual(1)
      const [connack] = answers
      if (connack === '20 02 00 01')
        expect(vector.acceptErrors).toContain('UnsupportedProtocolVersion')
      else if (connack !== undefined) {
        expect(connack).toMatch(/^20 .. 00 [89a]/)
        expect(acceptedCodes(vector)).toContain(codeOf(connack))
      }
      expect(await dial().connect({ clientId: 'v' })).toMatchObject({ reasonCode: 0 })
    })
  }
})

describe('what is in order is handled, and the connection goes on', () => {
  for (const vector of vectors.filter(({ valid }) => valid)) {
    each(vector, async (answers, client, { broker }) => {
      expect(broker.violations.filter(({ reasonCode }) => reasonCode !== undefined)).toEqual([])
      // No CONNACK is that short.
      const unfit = vector.name === 'connect-maximum-packet-size-1'
      if (unfit || vector.name.startsWith('disconnect-'))
        expect([answers, client.gone]).toEqual([[], true])
      else {
        if (vector.name.startsWith('connect-')) expect(codeOf(answers[0])).toBe('00')
        expect(await client.say('c0 00')).toEqual(['d0 00'])
      }
    })
  }
})

const corpus = readVectors('../../rules/vectors.json')
  .filter(
    ({ direction, fill, hex }) => direction === 'c2s' && fill === undefined && hex.length < 2000,
  )
  .map(({ hex }) => bytesOf(hex))

type Mutation = (bytes: number[], below: (limit: number) => number) => number[]
const mutations: Mutation[] = [
  (bytes) => bytes,
  (bytes, below) =>
    bytes.map((byte, at) => (at === below(bytes.length) ? byte ^ (1 << below(8)) : byte)),
  (bytes, below) => bytes.with(below(bytes.length), [below(256), 0, 1, 0x7f, 0xff][below(5)] ?? 0),
  (bytes, below) => bytes.toSpliced(below(bytes.length), 1 + below(3)),
  (bytes, below) => bytes.toSpliced(below(bytes.length), 0, ...bytes.slice(below(bytes.length))),
  (bytes, below) => bytes.slice(0, 1 + below(bytes.length)),
  // The Remaining Length, where it is one byte.
  (bytes, below) => bytes.with(1, ((bytes[1] ?? 0) + below(5) - 2) & 0x7f),
]

function mutated(random: Random): number[] {
  const below = (limit: number): number => random.below(limit)
  return Array.from({ length: 1 + below(3) }, () => {
    const bytes = random.pick(corpus)
    return bytes.length < 2 ? bytes : random.pick(mutations)(bytes, below)
  }).flat()
}

const connect = (...properties: string[]): string =>
  packetOf('10', textOf('MQTT'), '05 00 00 0a', propertiesOf(...properties), textOf('fuzz'))

/** What is sent before, by state, and how the answer to it begins. */
const states: Readonly<Record<string, readonly [answer: string, ...sent: string[]]>> = {
  'before CONNECT': [''],
  connected: ['20 0b 00 00', connect('11 00 00 00 3c')],
  'connected by 3.1.1': [
    '20 02 00 00',
    packetOf('10', textOf('MQTT'), '04 02 00 0a', textOf('fuzz')),
  ],
  'in QoS 2, both ways': [
    '20 0b 00 00',
    connect('11 00 00 00 3c'),
    packetOf('82', '00 09 00', textOf('t'), '02'),
    packetOf('34', textOf('t'), '00 01 00 78'),
    '50 02 00 01',
  ],
  'in an exchange before CONNACK': ['f0 06 18', connect('15', textOf('m'))],
  'in an exchange after CONNACK': [
    '20 0f 00 00',
    connect('15', textOf('n')),
    packetOf('f0', '19', propertiesOf('15', textOf('n'))),
  ],
}

const options: MemoryBrokerOptions = {
  auth: {
    m: { start: () => ({ reasonCode: 0x18 }), continue: () => ({}) },
    n: {
      start: (_data, { reauthentication }) => ({ reasonCode: reauthentication ? 0x18 : 0 }),
      continue: () => ({}),
    },
  },
  maximumPacketSize: 70_000,
}

/** What came of these pieces on one stream, beside a bystander who is served on. */
async function outcomeOf(pieces: readonly Uint8Array[], version: 4 | 5) {
  const { broker, clock, dial, join } = world(options)
  let left = false
  broker.on('disconnect', ({ by }) => {
    left = by === 'client'
  })
  const bystander = await join('bystander')
  const client = dial(version)
  for (const piece of pieces) client.transport.write(piece)
  await clock.settle()
  if (!bystander.gone) expect(await bystander.send({ type: 'pingreq' })).toHaveLength(1)
  const outcome = { heard: hexOf(client.bytes), closed: client.gone, left }
  checkOrder(client, outcome)
  broker.close()
  await clock.advance(100_000)
  expect([broker.sessions.size, broker.clients.size, clock.pending]).toEqual([0, 0, 0])
  return outcome
}

function checkOrder(
  { received }: RawClient,
  { heard, closed, left }: { heard: string; closed: boolean; left: boolean },
): void {
  const kinds = received.map(({ type }) => type)
  const welcome = kinds.indexOf('connack')
  // Nothing but AUTH before CONNACK, of which there is one; nothing behind DISCONNECT [MQTT-3.2.0-1] [MQTT-3.2.0-2] [MQTT-3.14.4-1].
  const before = kinds.slice(0, welcome < 0 ? undefined : welcome)
  expect(before.filter((type) => type !== 'auth')).toEqual([])
  expect(kinds.lastIndexOf('connack')).toBe(welcome)
  const connack = received[welcome]
  const refused = connack?.type === 'connack' && connack.reasonCode !== 0
  const goodbye = kinds.indexOf('disconnect')
  if (refused || goodbye >= 0)
    expect([kinds.length - 1, closed]).toEqual([refused ? welcome : goodbye, true])
  // After a welcome by 5.0 the broker ends nothing without its last word [MQTT-4.13.1-1].
  else if (closed && welcome >= 0 && !heard.startsWith('20 02')) expect(left).toBe(true)
}

/** Bytes that are no packet of a server would throw in the client, and fail the test. */
describe('mutated packets of a client', () => {
  it.each(Object.entries(states))(
    '%s: no throw, legal packets in a legal order, the same for any chunking [MQTT-4.13.1-1] [MQTT-4.13.2-1]',
    async (state, [answer, ...before]) => {
      let ends = 0
      for (let seed = 0; seed < 80; seed++) {
        const random = new Random(seed * 7919 + state.length)
        const whole = Uint8Array.from([...before.flatMap(bytesOf), ...mutated(random)])
        const pieces: Uint8Array[] = []
        for (let at = 0; at < whole.length; at += pieces.at(-1)?.length ?? 0)
          pieces.push(whole.slice(at, at + 1 + random.below(20)))
        const version = answer === '20 02 00 00' ? 4 : 5
        const [one, other] = [await outcomeOf([whole], version), await outcomeOf(pieces, version)]
        // How a CONNECT is refused whose first bytes are wrong already depends on whether its version has come by then: 3.1.1 is closed without a word.
        const isSilent = one.closed && [one.heard, other.heard].includes('')
        expect([seed, isSilent || other]).toEqual([seed, isSilent || one])
        expect([seed, one.heard.startsWith(answer)]).toEqual([seed, true])
        if (one.closed) ends++
      }
      // The mutations are neither all fatal nor all harmless.
      expect(ends).toBeGreaterThan(20)
      expect(ends).toBeLessThan(80)
    },
  )

  const kinds = ['*', 'publish', 'puback', 'pubrec', 'pubrel', 'connack'] as const
  const closing = ['close-before', 'close-after', 'restart-keep', 'restart-lose'] as const
  const actions = ['drop', 'delay', 'twice', 'reorder', ...closing] as const
  const faultOf = (random: Random): Fault => ({
    packet: random.pick(kinds),
    direction: random.pick(['in', 'out'] as const),
    nth: random.pick([1, 2, 3, 'every'] as const),
    action: random.pick(actions),
  })

  it('with faults, cuts, restarts and time nothing stays behind, bounds hold, and every run is the same again', async () => {
    const run = async (seed: number): Promise<string[]> => {
      const random = new Random(seed)
      const faults = Array.from({ length: random.below(4) }, () => faultOf(random))
      const bounds = { maxQueuedMessages: 5, receiveMaximum: 3, faults }
      const { broker, clock, dial } = world({ ...options, ...bounds })
      const clients: RawClient[] = []
      for (let step = 0; step < 12; step++) {
        let client = clients.at(-1 - random.below(2))
        if (client === undefined || client.gone) {
          client = dial(5)
          clients.push(client)
          const will = { topic: 't', qos: 1 }
          const properties = { sessionExpiryInterval: 20, receiveMaximum: 2 }
          const clientId = random.pick(['a', 'b'])
          const settings = { cleanStart: false, keepAlive: 20, will, properties }
          await client.send({ type: 'connect', clientId, ...settings })
          await client.subscribe(random.pick(['#', '$share/g/#']))
        }
        const chance = random.below(10)
        if (chance === 0) await client.cut()
        else if (chance === 1) await clock.advance(random.below(40_000))
        else if (chance === 2) broker.restart({ keepSessions: random.chance(0.5) })
        else if (chance < 6) await client.sendBytes(mutated(random))
        else await client.sendBytes(...Array.from({ length: 4 }, () => random.pick(corpus)))
        for (const session of broker.sessions.values())
          expect(session.queued).toBeLessThanOrEqual(5)
      }
      broker.close()
      await clock.advance(100_000)
      expect([broker.sessions.size, broker.clients.size, clock.pending]).toEqual([0, 0, 0])
      return clients.map(({ bytes }) => hexOf(bytes))
    }
    for (let seed = 0; seed < 150; seed++) expect(await run(seed)).toEqual(await run(seed))
  }, 60_000)
})
