/** Options of the client: what is refused, by name; the objects of the caller, which are read once and never written to; and options in combination. */
import { expect, it, test, vi } from 'vitest'
import { constant, exponential } from '../../../src/client/options/backoff.js'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { MqttError } from '../../../src/errors.js'
import { accepting, agreeable, connected, thrown, World } from './harness.js'
import { publish, quiet } from './incoming.js'
import { Rig, reconnect } from './rig.js'
import { toy } from './toy-auth.js'
import { unhandledIn } from './unhandled.js'

const long = 'x'.repeat(65_536)

const refusal = (options: unknown) => thrown(() => new World(options as ClientOptions))

/** Freezes everything that can be reached, but for bytes, signals and functions. */
function deepFreeze<T>(value: T): T {
  if (
    typeof value !== 'object' ||
    value === null ||
    ArrayBuffer.isView(value) ||
    value instanceof AbortSignal ||
    value instanceof URL
  )
    return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}

/** Options with wrong values; those of `outer.inner` are values of the inner one. */
const bad: readonly (readonly [option: string, ...values: unknown[]])[] = [
  ['clientId', 5, null, long, 'a\ud800', 'a\0'],
  ['protocolVersion', 6, '5', null],
  ['username', 5, null, long, 'a\ud800', 'a\0'],
  ['password', 5, null, {}, [1], new Uint8Array(65_536), long],
  ['credentials', 5, { username: 'a' }],
  ['keepAlive', -1, 65_536, 0.5, '30', true, null],
  ['pingTimeout', -1, '5', Number.NaN, Number.POSITIVE_INFINITY, 2_147_483_648],
  ['connectTimeout', -1, '5', Number.NaN],
  ['cleanStart', 0, 'false', null],
  ['sessionExpiryInterval', -1, 4_294_967_296, 1.5, '5', Number.POSITIVE_INFINITY],
  ['receiveMaximum', 0, 65_536, 1.5, '5'],
  ['receiveMaximumExceeded', true, 'ignore', 1],
  ['maximumPacketSize', 0, 4_294_967_296, 1.5],
  ['topicAliasMaximum', -1, 65_536],
  ['requestResponseInformation', 1, 'true'],
  ['requestProblemInformation', 0, null],
  ['userProperties', 5, { a: 'b' }],
  ['userProperties[0]', [['a']], ['ab'], [['a', 5]], [['a', 'b', 'c']]],
  ['will', 5, 'gone', []],
  ['will.topic', undefined, 5, '', 'a/#', '+', long, 'a\0', '\ud800'],
  ['will.payload', 5, new Uint8Array(65_536)],
  ['will.qos', 3, '1'],
  ['will.retain', 1],
  ['will.properties', 5],
  ['will.topics', 'b'],
  ['will.properties.willDelayInterval', -1, 4_294_967_296],
  ['will.properties.payloadFormatIndicator', 2],
  ['will.properties.messageExpiryInterval', 4_294_967_296],
  ['will.properties.contentType', 5, long],
  ['will.properties.responseTopic', 'a/+', ''],
  ['will.properties.correlationData', new Uint8Array(65_536)],
  ['will.properties.userProperties', [['k', long]]],
  ['unclaimedHold', -1, '5'],
  ['subscriptions', 5, 'x'],
  ['subscriptions.buffer', 0, 1.5],
  ['subscriptions.bufferBytes', 0],
  ['subscriptions.overflow', 'drop'],
  ['subscriptions.size', 5],
  ['outbound', 5],
  ['outbound.maxQueuedMessages', 0, '5'],
  ['outbound.maxQueuedBytes', -1],
  ['outbound.maxInflight', 0, 65_536],
  ['outbound.overflow', 'backpressure'],
  ['outbound.offline', 'queue'],
  ['outbound.offline.qos0', true],
  ['outbound.offline.qos3', 'queue'],
  ['outbound.ackTimeout', -1],
  ['maxFiltersPerSubscribe', 0, -1, 1.5],
  ['memoryBudget', 0, '5'],
  ['logger', 5, 'console'],
  ['store', {}],
  ['stats', 1, 'yes', null],
  ['scanner', 1, 'yes', true, {}, null, { frames: 1 }],
  ['firstConnect', 'later'],
  ['refreshBefore', -1],
  ['reconnect', 5000],
  ['reconnect.backoff', 5],
  ['reconnect.stableAfter', -1],
  ['reconnect.maxAttempts', 0, 1.5],
  ['reconnect.decide', 'retry'],
  ['reconnect.period', 1000],
  ['outbound.rate', 5],
  ['outbound.rate.messages', 0, 1.5],
  ['outbound.rate.bytes', -1],
  ['outbound.rate.per', 0],
  ['outbound.rate.message', 1],
  // No server can ever be one of these.
  ['serverReferences', [''], ['mqtt://b'], ['b/path'], ['b c']],
  // What no string can hold.
  ...[
    [long, 'v'],
    ['k', long],
    ['k\ud800', 'v'],
    ['k', '\0'],
  ].map((pair) => ['userProperties', [pair]] as const),
]

it.each(bad.flatMap(([option, ...values]) => values.map((value) => [option, value] as const)))(
  'refused by name: %s',
  (option, value) => {
    const names = option.replace('[0]', '').split('.')
    // A will has a topic, or that is what is refused.
    const around = (inner: unknown, name: string, at: number) => ({
      ...(names[at - 1] === 'will' ? { topic: 'a' } : {}),
      [name]: inner,
    })
    const error = refusal(names.reduceRight<unknown>(around, value))
    expect(MqttError.is(error)).toBe(true)
    // Some wrong values belong to a version to come.
    expect(error.code).toMatch(/^ERR_(INVALID|UNSUPPORTED)_OPTION$/)
    const isList = option.endsWith('userProperties') || option === 'serverReferences'
    const named = isList ? expect.stringContaining(option) : option
    expect(error).toMatchObject({ option: named, fault: 'local', outcome: 'not-sent' })
    expect(error.message).toContain(option)
    expect(error.message.length).toBeLessThan(1000)
  },
)

it.each([{}, { clientId: '' }, { protocolVersion: 4 }])(
  'refused by name: a session to go on with needs a client id: %j [3.1.1: MQTT-3.1.3-7]',
  (options) => {
    const error = { code: 'ERR_INVALID_OPTION', option: 'clientId' }
    expect(refusal({ cleanStart: false, ...options })).toMatchObject(error)
  },
)

it('only options of a client are taken for those of an endpoint', () => {
  const error = refusal({ will: { topic: 'a', headers: {} } })
  expect(error.message).not.toContain('endpoint')
})

it.each([5, 'x', null, []])('refused by name: options that are no object: %j', (options) => {
  expect(refusal(options)).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'options' })
})

it.each<[option: string, nearest?: string]>([
  ['clientID', 'clientId'],
  ['keepalive', 'keepAlive'],
  ['reconnectPeriod', 'reconnect'],
  ['clean', 'cleanStart'],
  ['rejectUnauthorized', 'tls.insecure of the endpoint'],
  ['tls', 'the endpoint, as { url, tls }?'],
  ['headers', 'the endpoint, as { url, headers }?'],
  ['host', 'the URL'],
  ['toString'],
  ['qos'],
  ['strictTopics'],
  ['checkPayloadFormat'],
  ['x'.repeat(100_000)],
])(
  'unknown options: %#: %.20s is refused by name, with the one that is nearest',
  (option, nearest) => {
    const error = refusal({ [option]: true })
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    if (nearest === undefined) expect(error.message).not.toContain('did you mean')
    else expect(error.message).toContain(`; did you mean ${nearest}`)
    expect(error.message).toMatch(/^unknown option /)
    expect(error.message.length).toBeLessThan(400)
  },
)

it('unknown options: inside another option the nearest name is one of that place; __proto__ as a key of its own is one too', () => {
  expect(refusal({ will: { topc: 'a' } }).message).toBe(
    'unknown option will.topc; did you mean topic?',
  )
  expect(refusal(JSON.parse('{"__proto__": {"keepAlive": 5}}'))).toMatchObject({
    code: 'ERR_INVALID_OPTION',
    option: '__proto__',
  })
})

it('unknown options: what was given is shown where it is no secret, and bounded', () => {
  expect(refusal({ keepAlive: '30' }).message).toBe(
    'keepAlive must be a whole number from 0 to 65535 (seconds), or false, not "30"',
  )
  expect(refusal({ protocolVersion: 3 }).message).toBe(
    'protocolVersion must be 5, 4 or "auto", not 3',
  )
  expect(refusal({ connectTimeout: 'x\n'.repeat(10_000) }).message.length).toBeLessThan(400)
  for (const options of [
    { username: 31_415 },
    { password: 31_415 },
    { clientId: 31_415 },
    { will: { topic: 'a', payload: 31_415 } },
  ])
    expect(refusal(options).message).not.toContain('31')
})

it('unknown options: undefined counts as left out, whatever the name', async () => {
  const world = await connected({
    keepAlive: undefined,
    will: undefined,
    nonsense: undefined,
  } as ClientOptions)
  expect(world.peer.last('connect').keepAlive).toBe(30)
})

it('the objects of the caller: are never written to: everything works with frozen ones', async () => {
  const options: ClientOptions = deepFreeze({
    ...{
      clientId: 'a',
      username: 'u',
      password: 'p',
      userProperties: [['a', 'b']],
      subscriptions: { buffer: 5 },
    },
    will: {
      topic: 'w',
      payload: Uint8Array.of(1),
      properties: { userProperties: [['c', 'd']], correlationData: Uint8Array.of(2) },
    },
    outbound: { offline: { qos0: 'queue' } },
    logger: { info: () => undefined },
  } as const) as unknown as ClientOptions
  const before = JSON.stringify(options)
  const properties = { userProperties: [['a', 'b']] }
  for (const world of [await connected(options, agreeable), await connected(options, agreeable)]) {
    const { client } = world
    const calls = [
      client.publish(
        'a',
        'b',
        deepFreeze({ qos: 1, properties, signal: new AbortController().signal }) as never,
      ),
      client.subscribe(
        deepFreeze([{ filter: 'a', qos: 1, retainHandling: 2 }, 'b']) as never,
        deepFreeze({ properties }) as never,
      ),
      client.subscribe(deepFreeze({ filter: 'a', qos: 2 })),
      client.listen(deepFreeze(['c']), () => undefined, deepFreeze({ concurrency: 2 })),
      client.unsubscribe(deepFreeze(['d']), deepFreeze({ properties }) as never),
    ]
    await world.settle()
    await Promise.all(calls)
    await world.send(publish('a', 'x', 1))
    await Promise.all([
      client.disconnect(deepFreeze({ timeout: 0, ...properties }) as never),
      world.settle(),
    ])
  }
  expect(JSON.stringify(options)).toBe(before)
})

it('the objects of the caller: are read once, by the client and by each call: later changes have no effect', async () => {
  const userProperties: [string, string][] = [['a', 'b']]
  const payload = Uint8Array.of(1)
  const options = { clientId: 'a', keepAlive: 10, userProperties, will: { topic: 'w', payload } }
  const filters = [{ filter: 'a', qos: 1 as 0 | 1 }]
  const world = new World(options)
  world.answer = agreeable
  const change = (): void => {
    userProperties[0] = ['changed', 'x']
    userProperties.push(['more', 'x'])
    payload[0] = 9
    Object.assign(options, { clientId: 'changed', keepAlive: 99 })
    options.will.topic = 'changed'
    filters[0] = { filter: 'changed', qos: 0 }
  }
  change()
  await world.up()
  const properties = { userProperties: [['a', 'b']] }
  expect(world.peer.last('connect')).toMatchObject({
    clientId: 'a',
    keepAlive: 10,
    properties,
    will: { topic: 'w', payload: Uint8Array.of(1) },
  })
  userProperties.splice(0, 2, ['a', 'b'])
  filters[0] = { filter: 'a', qos: 1 }
  const calls = [
    world.client.subscribe(filters, { properties: { userProperties } }),
    world.client.publish('t', 'x', { qos: 1, properties: { userProperties } }),
  ]
  change()
  await world.settle()
  await Promise.all(calls)
  expect(world.peer.last('subscribe')).toMatchObject({
    subscriptions: [{ filter: 'a', qos: 1 }],
    properties,
  })
  expect(world.peer.last('publish')).toMatchObject({ properties })
})

it('a logger keeps its this', async () => {
  const lines: string[] = []
  const logger = {
    prefix: '>',
    info(message: string) {
      lines.push(this.prefix + message)
    },
  }
  await connected({ logger, clientId: 'me' })
  expect(lines).toEqual(['>mqwire me: connected'])
})

test.each([
  [
    '[MQTT-3.14.2-2] opened with expiry 0 is not given one by disconnect()',
    undefined,
    0,
    { sessionExpiryInterval: 60, timeout: 100 },
    [],
  ],
  ['let live on ends with a clean disconnect()', 0, 300, { timeout: 100 }, [0]],
] as const)('a session that credentials() %s', async (_title, ours, given, options, sent) => {
  const world = await connected({
    sessionExpiryInterval: ours,
    credentials: () => ({ connect: { sessionExpiryInterval: given } }),
  })
  await Promise.all([
    world.client.disconnect(options).catch(() => undefined),
    world.clock.advance(2000),
  ])
  expect(
    world.peer.all('disconnect').map(({ properties }) => properties.sessionExpiryInterval),
  ).toEqual(sent)
  world.client.destroy()
})

test('exponential gives a number whatever the attempt, and grows from { min: 0 } too', () => {
  for (const options of [{ min: 0 }, { min: 1 }, { min: 0, max: 0 }])
    for (const attempt of [1, 1023, 1024, 1025, 5000, Number.MAX_SAFE_INTEGER])
      expect(exponential(options)(attempt, undefined)).toBeGreaterThanOrEqual(0)
  expect(constant(0)(1, undefined)).toBe(0)
  expect(exponential({ min: 0, max: 30_000, jitter: 'none' })(20, undefined)).toBeGreaterThan(1000)
})

test.each(['backoff', 'decide'] as const)('a rejection of %s() is handled', async (name) => {
  const rig = await new Rig({
    reconnect: { ...reconnect, [name]: async () => Promise.reject(new Error('later')) },
  }).up()
  const unhandled = await unhandledIn(async () => {
    await rig.cut()
    await rig.advance(100)
  })
  rig.client.destroy()
  expect(unhandled).toEqual([])
})

test('reconnect() that nothing awaits, in a listener, is no unhandled rejection when the client ends', async () => {
  const rig = await new Rig().up()
  rig.client.on('disconnect', () => {
    rig.client.reconnect()
  })
  const unhandled = await unhandledIn(async () => {
    await rig.cut()
    rig.client.destroy()
  })
  expect(unhandled).toEqual([])
})

test('a re-authentication whose start() takes its time survives one that the server begins and ends meanwhile', async () => {
  let slow: ((data: string) => void) | undefined
  let starts = 0
  const { auth } = toy({
    start: () => (starts++ === 0 ? 'hello' : new Promise<string>((resolve) => (slow = resolve))),
  })
  const properties = { authenticationMethod: 'toy' }
  const world = await connected({ auth }, accepting(properties))
  const renewing = quiet(world.client.reauthenticate())
  await world.settle()
  for (const reasonCode of [0x18, 0]) await world.send({ type: 'auth', reasonCode, properties })
  // Nothing of ours has left: it cannot have succeeded, and the connection is good.
  expect(world.client.state).toBe('connected')
  expect(await world.outcome(renewing)).toMatchObject({ state: 'pending' })
  slow?.('again')
  await world.settle()
  expect(world.peer.all('auth').filter(({ reasonCode }) => reasonCode === 0x19)).toHaveLength(1)
})

it('a prototype that was polluted while a client was made leaves the defaults of later ones alone', async () => {
  // A fresh copy: defaults are made once.
  vi.resetModules()
  const { parseOptions } = await import('../../../src/client/options/check-options.js')
  const root = Object.prototype as { outbound?: object }
  root.outbound = { maxInflight: 3 }
  try {
    parseOptions({})
  } finally {
    delete root.outbound
  }
  const { outbound, connectTimeout } = parseOptions({ clientId: 'a' })
  expect([outbound.maxInflight, outbound.overflow, connectTimeout]).toEqual([
    undefined,
    'wait',
    10_000,
  ])
})
