/**
 * Every vector of a client's packets, fed to the broker in memory in the state that its context names, whole and byte by byte: what is valid is
 * handled, what is not ends that connection with a code that the vector accepts, and no other.
 */
import { describe, expect, it } from 'vitest'
import type { BrokerAuthMethod, MemoryBrokerOptions } from '../../src/testing/index.js'
import { readVectors, type Vector } from '../unit/wire/vector-files.js'
import { codeOf, type RawClient, type World, world } from './raw-client.js'

const vectors = readVectors('../../rules/vectors.json').filter(
  ({ direction, fill }) => direction === 'c2s' && fill === undefined,
)

const codes: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...[
      'MalformedPacket 81',
      'ProtocolError 82',
      'UnsupportedProtocolVersion 84',
      'ClientIdentifierNotValid 85',
      'TopicFilterInvalid 8f',
    ],
    ...[
      'TopicNameInvalid 90',
      'TopicAliasInvalid 94',
      'PacketTooLarge 95',
      'RetainNotSupported 9a',
      'QoSNotSupported 9b',
    ],
    ...['SharedSubscriptionsNotSupported 9e', 'SubscriptionIdentifiersNotSupported a1'],
  ].map((pair) => pair.split(' ')),
)
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
