import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../src/client/client.js'
import { MqttError } from '../../../src/errors.js'
import { agreeable, connected, World } from './harness.js'

const long = 'x'.repeat(65_536)
const surrogate = 'a\ud800'
const nul = 'a\0b'
const bytes65536 = new Uint8Array(65_536)

/** What is wrong, the call, the option that the error names, and its code. */
type Row = readonly [name: string, call: (client: BaseClient) => unknown, option: string | RegExp, code?: RegExp]

const topics = /^ERR_INVALID_TOPIC$/
const options = /^ERR_INVALID_OPTION$/

/** Text that no MQTT string can hold. */
const badTexts = { long, surrogate, nul } as const

const publishRows: Row[] = [
  ...Object.entries({ empty: '', plus: 'a/+', hash: '#', within: 'a#b', ...badTexts }).map(
    ([name, topic]): Row => [`topic ${name}`, (client) => client.publish(topic, 'x'), 'topic', topics],
  ),
  ...Object.entries({ empty: '', plus: 'a/+', ...badTexts }).map(
    ([name, topic]): Row => [`topic ${name} of post`, (client) => client.post(topic, 'x'), 'topic', topics],
  ),
  ...[5, null, undefined, {}, ['a'], Symbol('x')].map(
    (topic): Row => [`topic ${String(topic)}`, (client) => client.publish(topic as never, 'x'), 'topic', topics],
  ),
  ...[5, null, undefined, {}, ['a'], true, () => 'x'].map(
    (payload): Row => [`payload ${String(payload)}`, (client) => client.publish('a', payload as never), 'payload', options],
  ),
  ['payload of post', (client) => client.post('a', 5 as never), 'payload', options],
  ...[3, -1, 0.5, '1', null, true].map(
    (qos): Row => [`qos ${String(qos)}`, (client) => client.publish('a', 'b', { qos: qos as never }), 'qos', options],
  ),
  ['retain', (client) => client.publish('a', 'b', { retain: 1 as never }), 'retain', options],
  ['flush', (client) => client.publish('a', 'b', { flush: 'yes' as never }), 'flush', options],
  ['ackTimeout', (client) => client.publish('a', 'b', { ackTimeout: -1 }), 'ackTimeout', options],
  ['ackTimeout NaN', (client) => client.publish('a', 'b', { ackTimeout: Number.NaN }), 'ackTimeout', options],
  ['signal', (client) => client.publish('a', 'b', { signal: {} as never }), 'signal', options],
  ['options', (client) => client.publish('a', 'b', 1 as never), 'options', options],
  ['options: an array', (client) => client.publish('a', 'b', [] as never), 'options', options],
  ['an option that is none', (client) => client.publish('a', 'b', { qoss: 1 } as never), 'qoss', options],
  ['properties', (client) => client.publish('a', 'b', { properties: 'x' as never }), 'properties', options],
  [
    'a property that is none',
    (client) => client.publish('a', 'b', { properties: { serverKeepAlive: 1 } as never }),
    'properties.serverKeepAlive',
    options,
  ],
  [
    'Subscription Identifier',
    (client) => client.publish('a', 'b', { properties: { subscriptionIdentifiers: [1] } as never }),
    /subscriptionIdentifiers/,
    options,
  ],
  ['topic alias', (client) => client.publish('a', 'b', { properties: { topicAlias: 1 } as never }), /topicAlias/, options],
  ...[2, -1, '1', true].map(
    (value): Row => [
      `payload format ${String(value)}`,
      (client) => client.publish('a', 'b', { properties: { payloadFormatIndicator: value as never } }),
      /payloadFormatIndicator/,
      options,
    ],
  ),
  ...[-1, 4_294_967_296, 1.5, '1'].map(
    (value): Row => [
      `message expiry ${value}`,
      (client) => client.publish('a', 'b', { properties: { messageExpiryInterval: value as never } }),
      /messageExpiryInterval/,
      options,
    ],
  ),
  ...Object.entries({ ...badTexts, type: 5 }).flatMap(([name, text]): Row[] => [
    [`content type ${name}`, (client) => client.publish('a', 'b', { properties: { contentType: text as never } }), /contentType/, options],
    [`response topic ${name}`, (client) => client.publish('a', 'b', { properties: { responseTopic: text as never } }), /responseTopic/, options],
    [
      `user property name ${name}`,
      (client) => client.publish('a', 'b', { properties: { userProperties: [[text as never, 'x']] } }),
      /userProperties/,
      options,
    ],
    [
      `user property value ${name}`,
      (client) => client.publish('a', 'b', { qos: 1, properties: { userProperties: [['x', text as never]] } }),
      /userProperties/,
      options,
    ],
  ]),
  ['response topic with wildcard', (client) => client.publish('a', 'b', { properties: { responseTopic: 'a/#' } }), /responseTopic/, options],
  ['response topic empty', (client) => client.publish('a', 'b', { properties: { responseTopic: '' } }), /responseTopic/, options],
  ['correlation data too long', (client) => client.publish('a', 'b', { properties: { correlationData: bytes65536 } }), /correlationData/, options],
  ['correlation data', (client) => client.publish('a', 'b', { properties: { correlationData: 5 as never } }), /correlationData/, options],
  [
    'user properties as an object',
    (client) => client.publish('a', 'b', { properties: { userProperties: { a: 'b' } as never } }),
    /userProperties/,
    options,
  ],
  [
    'user properties of three',
    (client) => client.publish('a', 'b', { properties: { userProperties: [['a', 'b', 'c']] as never } }),
    /userProperties/,
    options,
  ],
  [
    'packet above 268,435,455',
    (client) => client.publish('a', new Uint8Array(268_435_456)),
    /payload|packet|^$/,
    /^ERR_(INVALID_OPTION|PACKET_TOO_LARGE)$/,
  ],
]

const badFilters = {
  '#/a': '#/a',
  'a#': 'a#',
  'a/#/b': 'a/#/b',
  '+a': '+a',
  empty: '',
  long: long,
  NUL: nul,
  surrogate: surrogate,
  '$share without filter': '$share/g',
  '$share with wildcard': '$share/+/a',
  '$share empty name': '$share//a',
}

const subscribeRows: Row[] = [
  ...Object.entries(badFilters).flatMap(([name, filter]): Row[] => [
    [`${name} subscribe`, (client) => client.subscribe(filter), 'filter', topics],
    [`${name} subscription`, (client) => client.subscription(filter), 'filter', topics],
    [`${name} of a list`, (client) => client.subscribe(['ok', { filter }]), 'filters[1]', topics],
    [`${name} listen`, (client) => client.listen(filter, () => undefined), 'filter', topics],
    [`${name} unsubscribe`, (client) => client.unsubscribe(filter), /^filter/, topics],
  ]),
  ['empty list', (client) => client.subscribe([]), 'filters', options],
  ['empty list of unsubscribe', (client) => client.unsubscribe([]), 'filters', options],
  ...[5, null, undefined, true, {}, [5], [null]].flatMap((filter): Row[] => [
    [`subscribe ${JSON.stringify(filter)}`, (client) => client.subscribe(filter as never), /^filter/, options],
    [`unsubscribe ${JSON.stringify(filter)}`, (client) => client.unsubscribe(filter as never), /^filter/, options],
  ]),
  ...[3, '1', null].map((qos): Row => [`subscribe qos ${String(qos)}`, (client) => client.subscribe('a', { qos: qos as never }), 'qos', options]),
  ['qos of a filter', (client) => client.subscribe({ filter: 'a', qos: 3 as never }), 'filter.qos', options],
  ['retain handling 3', (client) => client.subscribe('a', { retainHandling: 3 as never }), 'retainHandling', options],
  ['retain handling of a filter', (client) => client.subscribe([{ filter: 'a', retainHandling: 3 as never }]), 'filters[0].retainHandling', options],
  ['noLocal on a shared subscription', (client) => client.subscribe('$share/g/a', { noLocal: true }), 'filter.noLocal', options],
  ...['noLocal', 'retainAsPublished', 'requireQos'].map((name): Row => [`${name}`, (client) => client.subscribe('a', { [name]: 1 }), name, options]),
  ...['onExit', 'lifetime', 'ack', 'overflow'].map((name): Row => [`${name}`, (client) => client.subscribe('a', { [name]: 'x' }), name, options]),
  ...['buffer', 'bufferBytes'].flatMap((name) =>
    [0, -1, 1.5, '5'].map((value): Row => [`${name} ${value}`, (client) => client.subscribe('a', { [name]: value }), name, options]),
  ),
  ['onDrop', (client) => client.subscribe('a', { onDrop: 'x' as never }), 'onDrop', options],
  ['until', (client) => client.subscribe('a', { until: 'x' as never }), 'until', options],
  ['subscribe options', (client) => client.subscribe('a', 'x' as never), 'options', options],
  ['backpressure and on-receive', (client) => client.subscribe('a', { ack: 'on-receive', overflow: 'backpressure' }), 'overflow', options],
  ...[0, 268_435_456, -1, '1'].map(
    (value): Row => [
      `Subscription Identifier ${value}`,
      (client) => client.subscribe('a', { properties: { subscriptionIdentifier: value as never } }),
      'properties.subscriptionIdentifier',
      options,
    ],
  ),
  ...Object.entries({ ...badTexts, type: 5 }).flatMap(([name, text]): Row[] => [
    [
      `user property of SUBSCRIBE ${name}`,
      (client) => client.subscribe('a', { properties: { userProperties: [['k', text as never]] } }),
      /userProperties/,
      options,
    ],
    [
      `user property of UNSUBSCRIBE ${name}`,
      (client) => client.unsubscribe('a', { properties: { userProperties: [[text as never, 'v']] } }),
      /userProperties/,
      options,
    ],
  ]),
  ['a subscribe option that is none', (client) => client.subscribe('a', { Qos: 1 } as never), 'Qos', options],
  ['an option of a filter that is none', (client) => client.subscribe({ filter: 'a', ack: 'manual' } as never), 'filter.ack', options],
  ['handler', (client) => client.listen('a', 'x' as never), 'handler', /^ERR_INVALID_HANDLER$/],
  ['concurrency', (client) => client.listen('a', () => undefined, { concurrency: 0 }), 'concurrency', options],
  ['onError', (client) => client.listen('a', () => undefined, { onError: 'x' as never }), 'onError', options],
  ['listen has no manual acks', (client) => client.listen('a', () => undefined, { ack: 'manual' as never }), 'ack', options],
]

const otherRows: Row[] = [
  ...Object.entries({ ...badTexts, type: 5 }).flatMap(([name, text]): Row[] => [
    [`reason string ${name}`, (client) => client.disconnect({ reasonString: text as never }), 'reasonString', options],
    [`user property of DISCONNECT ${name}`, (client) => client.disconnect({ userProperties: [['k', text as never]] }), /userProperties/, options],
  ]),
  ...[1, 0x87, 0x8e, 256, -1, '0', null].map(
    (code): Row => [`reason code ${code}`, (client) => client.disconnect({ reasonCode: code as never }), 'reasonCode', options],
  ),
  ...[-1, 4_294_967_296, 1.5].map(
    (value): Row => [`expiry ${value}`, (client) => client.disconnect({ sessionExpiryInterval: value }), 'sessionExpiryInterval', options],
  ),
  ['timeout', (client) => client.disconnect({ timeout: -1 }), 'timeout', options],
  ['timeout Infinity', (client) => client.disconnect({ timeout: Number.POSITIVE_INFINITY }), 'timeout', options],
  ['signal of disconnect', (client) => client.disconnect({ signal: 5 as never }), 'signal', options],
  ['options of disconnect', (client) => client.disconnect('x' as never), 'options', options],
  ['an option of disconnect that is none', (client) => client.disconnect({ force: true } as never), 'force', options],
  ['options of connect', (client) => client.connect('x' as never), 'options', options],
  ['signal of connect', (client) => client.connect({ signal: 'x' as never }), 'signal', options],
  ['listener', (client) => client.on('connect', 'x' as never), 'listener', /^ERR_INVALID_HANDLER$/],
  ['options of on', (client) => client.on('connect', () => undefined, null as never), /./, options],
  ['once', (client) => client.on('connect', () => undefined, { once: 5 as never }), 'once', options],
  ['signal of on', (client) => client.on('connect', () => undefined, { signal: 5 as never }), 'signal', options],
]

async function refusal(call: (client: BaseClient) => unknown, client: BaseClient): Promise<unknown> {
  try {
    await call(client)
    return undefined
  } catch (error) {
    return error
  }
}

describe.each(['connected', 'idle'] as const)('refused with the name of what is wrong, and no byte is sent: %s', (state) => {
  let world: World

  beforeAll(async () => {
    world = state === 'connected' ? await connected({}, agreeable) : new World({ outbound: { offline: { qos0: 'queue' } } })
  })

  afterAll(() => {
    world.client.destroy()
  })

  it.each([...publishRows, ...subscribeRows, ...otherRows].map((row) => [row[0], row] as const))(
    '%s',
    async (_name, [, call, option, code = options]) => {
      const bytes = world.peers[0]?.bytes.length
      const outcome = refusal(call, world.client)
      await world.settle()
      const error = await outcome
      expect(MqttError.is(error)).toBe(true)
      const { code: told, option: named, fault, outcome: fate } = error as MqttError
      expect(told).toMatch(code)
      if (typeof option === 'string') expect(named).toBe(option)
      else expect(named ?? '').toMatch(option)
      expect([fault, fate]).toEqual(['local', 'not-sent'])
      expect(world.peers[0]?.bytes.length).toBe(bytes)
      expect(world.client.state).toBe(state)
      expect(world.client.outbound.size).toBe(0)
    },
  )
})

it.each([
  [{ timeout: -1 }, 'timeout'],
  [{ timeout: '5' }, 'timeout'],
  [{ signal: 5 }, 'signal'],
  [{ wait: 5 }, 'wait'],
  [5, 'options'],
])('options of next: %o', async (given, option) => {
  const world = new World()
  const subscription = world.client.subscription('a')
  expect(await world.outcome(subscription.next(given as never))).toMatchObject({ state: 'rejected', error: { code: 'ERR_INVALID_OPTION', option } })
})

it('what is just right is sent', async () => {
  const world = await connected({}, agreeable)
  const { client } = world
  const most = 'x'.repeat(65_535)
  const calls = [
    client.publish(most, '', { qos: 1 }),
    client.publish('a', new Uint8Array(0), {
      qos: 1,
      properties: {
        contentType: '',
        correlationData: new Uint8Array(65_535),
        responseTopic: most,
        userProperties: [['', most]],
        messageExpiryInterval: 4_294_967_295,
      },
    }),
    client.subscribe(['#', '+/a/#', '/', most, '$share/g/#'], { properties: { subscriptionIdentifier: 268_435_455 } }),
    client.publish('\u0001ä𝄞\ufeff', new DataView(new ArrayBuffer(3), 1), { qos: 1 }),
    client.publish('a', new ArrayBuffer(2), { qos: 1, signal: new AbortController().signal }),
    client.publish('a', new Uint16Array([1]), { qos: 1, properties: undefined }),
  ]
  await world.settle()
  await Promise.all(calls)
  expect(world.peer.all('publish').map((packet) => packet.payload.length)).toEqual([0, 0, 2, 2, 2])
})
