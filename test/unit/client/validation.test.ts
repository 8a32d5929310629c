/** What the client's methods are given: what is accepted, what is refused, and how it is named; and the parsers of options underneath. */

import { beforeAll, describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../src/client/client.js'
import * as schema from '../../../src/common/schema.js'
import { MqttError } from '../../../src/errors.js'
import { agreeable, connected, thrown, World } from './harness.js'

const nul = 'a\0b'

/** Text that no MQTT string can hold. */
const badTexts = ['x'.repeat(65_536), 'a\ud800', nul]
const noTexts = [...badTexts, 5]
const nothing = (): undefined => undefined

/** A call, the option that its error names, and the code. */
type Row = readonly [
  method: keyof BaseClient,
  args: readonly unknown[],
  option: string | RegExp,
  code?: string,
]

/** Options of these names at these values, one at a time, after other arguments. */
const each = (
  method: keyof BaseClient,
  before: readonly unknown[],
  wrong: Readonly<Record<string, readonly unknown[]>>,
): Row[] =>
  Object.entries(wrong).flatMap(([name, values]) =>
    values.map((value): Row => [method, [...before, { [name]: value }], name]),
  )

/** Properties, in the same way. */
const eachProperty = (
  method: keyof BaseClient,
  before: readonly unknown[],
  wrong: Readonly<Record<string, readonly unknown[]>>,
): Row[] =>
  each(method, before, wrong).map(([, args, name]) => [
    method,
    [...before, { properties: args.at(-1) }],
    new RegExp(`^properties\\.${name}`),
  ])

const publishRows: Row[] = [
  ...['', 'a/+', '#', 'a#b', ...badTexts, 5, null, undefined, {}, ['a'], Symbol('x')].map(
    (topic): Row => ['publish', [topic, 'x'], 'topic', 'ERR_INVALID_TOPIC'],
  ),
  ...['', 'a/+', ...badTexts].map(
    (topic): Row => ['post', [topic, 'x'], 'topic', 'ERR_INVALID_TOPIC'],
  ),
  ...[5, null, undefined, {}, ['a'], true, () => 'x', Symbol('x')].map(
    (payload): Row => ['publish', ['a', payload], 'payload'],
  ),
  ['post', ['a', 5], 'payload'],
  ...[1, []].map((options): Row => ['publish', ['a', 'b', options], 'options']),
  ...each('publish', ['a', 'b'], {
    qos: [3, -1, 0.5, '1', null, true],
    retain: [1],
    flush: ['yes'],
    ackTimeout: [-1, Number.NaN],
    signal: [{}],
    qoss: [1],
    dup: [true],
    properties: ['x'],
  }),
  ...eachProperty('publish', ['a', 'b'], {
    serverKeepAlive: [1],
    subscriptionIdentifiers: [[1]],
    topicAlias: [1],
    payloadFormatIndicator: [2, -1, '1', true],
    messageExpiryInterval: [-1, 4_294_967_296, 1.5, '1'],
    contentType: noTexts,
    responseTopic: [...noTexts, 'a/#', ''],
    correlationData: [new Uint8Array(65_536), 5],
    userProperties: [
      { a: 'b' },
      [['a', 'b', 'c']],
      ...noTexts.flatMap((text) => [[[text, 'x']], [['x', text]]]),
    ],
  }),
]

const badFilters = [
  '#/a',
  'a#',
  'a/#/b',
  '+a',
  '',
  ...badTexts,
  '$share/g',
  '$share/+/a',
  '$share//a',
]

const subscribeRows: Row[] = [
  ...badFilters.flatMap((filter): Row[] => [
    ['subscribe', [filter], 'filter', 'ERR_INVALID_TOPIC'],
    ['subscription', [filter], 'filter', 'ERR_INVALID_TOPIC'],
    ['subscribe', [['ok', { filter }]], 'filters[1]', 'ERR_INVALID_TOPIC'],
    ['listen', [filter, nothing], 'filter', 'ERR_INVALID_TOPIC'],
    ['unsubscribe', [filter], /^filter/, 'ERR_INVALID_TOPIC'],
  ]),
  ...(['subscribe', 'unsubscribe'] as const).flatMap((method): Row[] => [
    [method, [[]], 'filters'],
    ...[5, null, undefined, true, {}, [5], [null], { filter: 5 }, [['a']]].map(
      (filter): Row => [method, [filter], /^filter/],
    ),
  ]),
  ['subscribe', [{ filter: 'a', qos: 3 }], 'filter.qos'],
  ['subscribe', [[{ filter: 'a', retainHandling: 3 }]], 'filters[0].retainHandling'],
  ['subscribe', [{ filter: 'a', ack: 'manual' }], 'filter.ack'],
  ['subscribe', ['$share/g/a', { noLocal: true }], 'filter.noLocal'],
  ['subscribe', ['a', 'x'], 'options'],
  ['subscribe', ['a', { ack: 'on-receive', overflow: 'backpressure' }], 'overflow'],
  ...each('subscribe', ['a'], {
    qos: [3, '1', null],
    retainHandling: [3],
    noLocal: [1],
    retainAsPublished: [1],
    requireQos: [1],
    onExit: ['x'],
    lifetime: ['x'],
    ack: ['x'],
    overflow: ['x'],
    buffer: [0, -1, 1.5, '5'],
    bufferBytes: [0, -1, 1.5, '5'],
    onDrop: ['x'],
    until: ['x', {}],
    Qos: [1],
  }),
  ...eachProperty('subscribe', ['a'], {
    subscriptionIdentifier: [0, 268_435_456, -1, 1.5, '1'],
    userProperties: noTexts.map((text) => [['k', text]]),
  }),
  ...eachProperty('unsubscribe', ['a'], { userProperties: noTexts.map((text) => [[text, 'v']]) }),
  ['listen', ['a', 'x'], 'handler', 'ERR_INVALID_HANDLER'],
  ...each('listen', ['a', nothing], { concurrency: [0], onError: ['x'], ack: ['manual'] }),
]

const requestRows: Row[] = [
  ...['', 'a/+', '#', 'a\0', 5, undefined].map(
    (topic): Row => ['request', [topic, 'x'], 'topic', 'ERR_INVALID_TOPIC'],
  ),
  ...[undefined, null, 5, {}].map((payload): Row => ['request', ['a', payload], 'payload']),
  ['request', ['a', 'x', null], 'options'],
  ...each('request', ['a', 'x'], {
    timeout: [-1, Number.POSITIVE_INFINITY, '1'],
    qos: [3],
    signal: [{}],
    retain: [true],
  }),
  ...eachProperty('request', ['a', 'x'], {
    responseTopic: ['mine'],
    correlationData: ['mine'],
    topicAlias: [1],
    userProperties: ['a'],
  }),
  ...[undefined, 5, {}].map(
    (handler): Row => ['respond', ['a', handler], 'handler', 'ERR_INVALID_HANDLER'],
  ),
  ['respond', ['a', nothing, null], 'options'],
  ...each('respond', ['a', nothing], {
    allow: [5, '', ['a', 5], 'a/#'],
    concurrency: [0],
    ack: ['manual'],
    onError: ['ignore'],
    nonsense: [1],
  }),
]

const otherRows: Row[] = [
  ...each('disconnect', [], {
    reasonString: noTexts,
    reasonCode: [1, 0x87, 0x8c, 0x8e, 0x9b, 256, -1, '0', null],
    sessionExpiryInterval: [-1, 4_294_967_296, 1.5],
    timeout: [-1, Number.POSITIVE_INFINITY],
    signal: [5],
    force: [true],
  }),
  ...noTexts.map(
    (text): Row => ['disconnect', [{ userProperties: [['k', text]] }], /userProperties/],
  ),
  ['disconnect', ['x'], 'options'],
  ['connect', ['x'], 'options'],
  ['connect', [{ signal: 'x' }], 'signal'],
  ...each('reconnect', [], { force: [1], reason: [5], now: [true] }),
  ['reconnect', [5], 'options'],
  ['on', ['connect', 'x'], 'listener', 'ERR_INVALID_HANDLER'],
  ['on', ['connect', nothing, null], /./],
  ...each('on', ['connect', nothing], { once: [5], signal: [5] }),
]

describe.each(['connected', 'idle'] as const)(
  'refused by name, and no byte is sent: %s [MQTT-3.3.2-2] [MQTT-3.3.2-14] [MQTT-3.3.4-6] [MQTT-4.7.0-1] [MQTT-4.7.3-1]',
  (state) => {
    let world: World

    beforeAll(async () => {
      world =
        state === 'connected'
          ? await connected({}, agreeable)
          : new World({ outbound: { offline: { qos0: 'queue' } } })
    })

    async function refused([
      method,
      args,
      option,
      code = 'ERR_INVALID_OPTION',
    ]: Row): Promise<void> {
      const bytes = world.peers[0]?.bytes.length
      const call = (async () =>
        (world.client[method] as (...given: readonly unknown[]) => unknown)(...args))()
      const { error } = (await world.outcome(call)) as { error?: unknown }
      expect(MqttError.is(error) && error).toMatchObject({
        code,
        fault: 'local',
        outcome: 'not-sent',
      })
      const { option: named = '' } = error as MqttError
      if (typeof option === 'string') expect(named).toBe(option)
      else expect(named).toMatch(option)
      expect(world.peers[0]?.bytes.length).toBe(bytes)
      expect([world.client.state, world.client.outbound.size]).toEqual([state, 0])
    }

    const shown = (args: readonly unknown[]): string => JSON.stringify(args).slice(0, 60)
    const rows = [...publishRows, ...subscribeRows, ...requestRows, ...otherRows].map(
      (row) => [row[0], shown(row[1]), row] as const,
    )

    it.each(rows)('%s %s', (_name, _args, row) => refused(row))

    it('publish of more than a packet can have', () =>
      refused([
        'publish',
        ['a', new Uint8Array(268_435_456)],
        /payload|packet|^$/,
        'ERR_PACKET_TOO_LARGE',
      ]))
  },
)

it('what is just right is sent', async () => {
  const world = await connected({}, agreeable)
  const { client } = world
  const most = 'x'.repeat(65_535)
  const properties = {
    contentType: '',
    correlationData: new Uint8Array(65_535),
    responseTopic: most,
    userProperties: [['', most]] as [string, string][],
    messageExpiryInterval: 4_294_967_295,
  }
  const filters = ['#', '+/a/#', '/', most, '$share/g/#']
  const calls = [
    client.publish(most, '', { qos: 1 }),
    client.publish('a', new Uint8Array(0), { qos: 1, properties }),
    client.subscribe(filters, { properties: { subscriptionIdentifier: 268_435_455 } }),
    client.publish('\u0001ä𝄞\ufeff', new DataView(new ArrayBuffer(3), 1), { qos: 1 }),
    client.publish('a', new ArrayBuffer(2), { qos: 1, signal: new AbortController().signal }),
    client.publish('a', new Uint16Array([1]), { qos: 1, properties: undefined }),
  ]
  await world.settle()
  await Promise.all(calls)
  expect(world.peer.all('publish').map((packet) => packet.payload.length)).toEqual([0, 0, 2, 2, 2])
})

const {
  bytes,
  callable,
  duration,
  integer,
  limit,
  oneOf,
  optional,
  string,
  userProperties,
  viewBytes,
  withDefault,
} = schema

/** The error of a parser that refuses. */
const refusal = (parser: schema.Parser<unknown>, value: unknown, name = 'a.b') =>
  thrown(() => parser(value, name))

const { NaN: none, POSITIVE_INFINITY: infinite, NEGATIVE_INFINITY: least } = Number

it.each<[string, schema.Parser<unknown>, unknown[], unknown[]]>([
  ['integer', integer(-1, 5), [-1, 0, 5], [-2, 6, 0.5, none, infinite, '1', null, undefined, 1n]],
  ['duration', duration, [0, 0.5, 2_147_483_647], [-1, 2_147_483_648, none, infinite, '5', null]],
  ['limit', limit, [1, 1e9, infinite], [0, -1, 1.5, least, none, '1']],
  ['boolean', schema.boolean, [true, false], [0, 1, 'true', null, undefined]],
  ['string', string, ['', 'a'], [5, null, undefined, new String('a')]],
  ['callable', callable, [() => undefined], [{}, 'f', undefined]],
  ['oneOf', oneOf('a', 2, false), ['a', 2, false], ['b', '2', 0, undefined]],
  ['optional', optional(string), ['a', undefined], [null, 5]],
  ['withDefault', withDefault(string, 'x'), ['a'], [null, 5]],
  ['bytes', (value, name) => bytes(value, name) && value, ['a'], [5, null, [1], {}]],
])('takes and refuses: %s', (_, parser, good, bad) => {
  for (const value of good) expect(parser(value, 'a.b')).toBe(value)
  const error = { code: 'ERR_INVALID_OPTION', option: 'a.b', fault: 'local', outcome: 'not-sent' }
  const message = expect.stringMatching(/^a\.b must be /)
  for (const value of bad) expect(refusal(parser, value)).toMatchObject({ ...error, message })
})

it('withDefault fills in what is undefined, and nothing else', () => {
  expect(withDefault(integer(0, 9), 5)(undefined, 'a')).toBe(5)
  expect(withDefault(integer(0, 9), 5)(0, 'a')).toBe(0)
})

it('oneOf lists what may be', () => {
  expect(refusal(oneOf('a', 'b', 3), 'c').message).toBe('a.b must be "a", "b" or 3, not "c"')
})

it.each([
  ['a view', Uint8Array.of(9, 1, 2, 9).subarray(1, 3), [1, 2]],
  ['a view of other numbers', Uint16Array.of(0x0201), [1, 2]],
  ['a DataView', new DataView(Uint8Array.of(1, 2, 3).buffer, 1), [2, 3]],
  ['a buffer', Uint8Array.of(4, 5).buffer, [4, 5]],
  ['a Buffer, which is a view of the pool', Buffer.from([1, 2, 3]), [1, 2, 3]],
  ['text', 'é', [0xc3, 0xa9]],
])('bytes: copies %s', (_what, given, expected) => {
  const parsed = bytes(given, 'p')
  viewBytes(given)?.fill(0)
  expect([...parsed]).toEqual(expected)
  if (typeof given !== 'string') expect(parsed.buffer.byteLength).toBe(expected.length)
})

it('bytes: viewBytes stays in place', () => {
  const source = Uint8Array.of(9, 1, 2, 9)
  const view = viewBytes(new DataView(source.buffer, 1, 2))
  source[1] = 7
  expect([...(view ?? [])]).toEqual([7, 2])
  expect(viewBytes(source)).toBe(source)
  expect(viewBytes('text')).toBeUndefined()
})

it('user properties: order, duplicates and empty text are kept; the pairs are copies', () => {
  const pairs = () => ['b=', '=x', 'b='].map((pair) => pair.split('=') as [string, string])
  const given = pairs()
  const parsed = userProperties(given, 'p')
  for (const pair of given) pair[0] = 'changed'
  expect(parsed).toEqual(pairs())
})

it('user properties: anything else names its place', () => {
  expect(refusal(userProperties, { a: 'b' })).toMatchObject({ option: 'a.b' })
  for (const pair of [['a'], ['a', 'b', 'c'], ['a', 5], [null, 'b'], 'ab', undefined])
    expect(refusal(userProperties, [['x', 'y'], pair])).toMatchObject({ option: 'a.b[1]' })
})

describe('objects', () => {
  const two = withDefault(integer(0, 9), 2)
  const parse = schema.object<{ one: string; two: number | undefined }>({ one: string, two })

  it('every field is there and the result is frozen; the given object is untouched', () => {
    const given = { one: 'a' }
    const parsed = parse(given, '')
    expect([parsed, given]).toEqual([{ one: 'a', two: 2 }, { one: 'a' }])
    expect(Object.isFrozen(parsed)).toBe(true)
    // What is undefined counts as left out, also where there is no such field.
    expect(parse({ one: 'a', three: undefined, two: undefined }, '')).toEqual(parsed)
  })

  it.each([
    [{ one: 'a', three: 3 }, '', 'three'],
    [{ one: 'a', three: 3 }, 'outer', 'outer.three'],
    [JSON.parse('{"one":"a","__proto__":{"two":5}}'), '', '__proto__'],
    [{ one: 'a', constructor: 1 }, '', 'constructor'],
    [{ one: 5 }, 'outer', 'outer.one'],
    [{ one: 5 }, '', 'one'],
    ...[null, 5, 'text', [], true].flatMap((value) => [
      [value, '', 'options'] as const,
      [value, 'outer', 'outer'] as const,
    ]),
  ] as [unknown, string, string][])('%j as "%s": refused as %s', (value, name, option) => {
    expect(refusal(parse, value, name)).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
  })

  it('each field is read once', () => {
    let reads = 0
    const given = {
      get one(): string {
        reads += 1
        return reads === 1 ? 'a' : (5 as never)
      },
    }
    expect(parse(given, '')).toEqual({ one: 'a', two: 2 })
  })
})
