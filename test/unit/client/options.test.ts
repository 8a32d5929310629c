import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { MqttError } from '../../../src/errors.js'
import { agreeable, connected, failure, World } from './harness.js'
import { publish } from './incoming.js'

const long = 'x'.repeat(65_536)

function refusal(options: unknown): MqttError {
  try {
    new World(options as ClientOptions)
  } catch (error) {
    return error as MqttError
  }
  throw new Error('it was to throw')
}

/** Freezes everything that can be reached, but for bytes, signals and functions. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || value instanceof AbortSignal || value instanceof URL) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}

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
  ['will.topic', {}, { topic: 5 }, { topic: '' }, { topic: 'a/#' }, { topic: '+' }, { topic: long }, { topic: 'a\0' }, { topic: '\ud800' }],
  ['will.payload', { topic: 'a', payload: 5 }, { topic: 'a', payload: new Uint8Array(65_536) }],
  ['will.qos', { topic: 'a', qos: 3 }, { topic: 'a', qos: '1' }],
  ['will.retain', { topic: 'a', retain: 1 }],
  ['will.properties', { topic: 'a', properties: 5 }],
  ['will.topics', { topic: 'a', topics: 'b' }],
  [
    'will.properties.willDelayInterval',
    { topic: 'a', properties: { willDelayInterval: -1 } },
    { topic: 'a', properties: { willDelayInterval: 4_294_967_296 } },
  ],
  ['will.properties.payloadFormatIndicator', { topic: 'a', properties: { payloadFormatIndicator: 2 } }],
  ['will.properties.messageExpiryInterval', { topic: 'a', properties: { messageExpiryInterval: 4_294_967_296 } }],
  ['will.properties.contentType', { topic: 'a', properties: { contentType: 5 } }, { topic: 'a', properties: { contentType: long } }],
  ['will.properties.responseTopic', { topic: 'a', properties: { responseTopic: 'a/+' } }, { topic: 'a', properties: { responseTopic: '' } }],
  ['will.properties.correlationData', { topic: 'a', properties: { correlationData: new Uint8Array(65_536) } }],
  ['unclaimedHold', -1, '5'],
  ['subscriptions', 5, 'x'],
  ['subscriptions.buffer', { buffer: 0 }, { buffer: 1.5 }],
  ['subscriptions.bufferBytes', { bufferBytes: 0 }],
  ['subscriptions.overflow', { overflow: 'drop' }],
  ['subscriptions.size', { size: 5 }],
  ['outbound', 5],
  ['outbound.maxQueuedMessages', { maxQueuedMessages: 0 }, { maxQueuedMessages: '5' }],
  ['outbound.maxQueuedBytes', { maxQueuedBytes: -1 }],
  ['outbound.maxInflight', { maxInflight: 0 }, { maxInflight: 65_536 }],
  ['outbound.overflow', { overflow: 'backpressure' }],
  ['outbound.offline', { offline: 'queue' }],
  ['outbound.offline.qos0', { offline: { qos0: true } }],
  ['outbound.offline.qos3', { offline: { qos3: 'queue' } }],
  ['outbound.ackTimeout', { ackTimeout: -1 }],
  ['maxFiltersPerSubscribe', 0, -1, 1.5],
  ['memoryBudget', 0, '5'],
  ['logger', 5, 'console'],
]

/** Some wrong values belong to a version to come. */
const codes = /^ERR_(INVALID|UNSUPPORTED)_OPTION$/

describe('wrong values are refused by name when the client is made', () => {
  it.each(bad.flatMap(([option, ...values]) => values.map((value) => [option, value] as const)))('%s', (option, value) => {
    const name = option.split(/[.[]/)[0] as string
    const error = refusal({ [name]: value })
    expect(MqttError.is(error)).toBe(true)
    expect(error.code).toMatch(codes)
    expect(error).toMatchObject({ option, fault: 'local', outcome: 'not-sent' })
    expect(error.message).toContain(option)
    expect(error.message.length).toBeLessThan(1000)
  })

  it('user properties of CONNECT that no string can hold', () => {
    for (const pair of [
      [long, 'v'],
      ['k', long],
      ['k\ud800', 'v'],
      ['k', '\0'],
    ])
      expect(refusal({ userProperties: [pair] })).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: expect.stringMatching(/^userProperties/) as string,
      })
    expect(refusal({ will: { topic: 'a', properties: { userProperties: [['k', long]] } } })).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option: expect.stringMatching(/^will\.properties\.userProperties/) as string,
    })
  })

  it('cleanStart false without a client id', () => {
    expect(refusal({ cleanStart: false })).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'clientId' })
    expect(refusal({ cleanStart: false, clientId: '' })).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'clientId' })
  })

  it('options that are no object', () => {
    for (const options of [5, 'x', null, []]) expect(refusal(options)).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'options' })
  })
})

describe('unknown options', () => {
  it('inside another option the nearest name is one of that place', () => {
    const message = refusal({ will: { topc: 'a' } }).message
    expect(message).toBe('unknown option will.topc; did you mean topic?')
  })

  it.each([
    ['clientID', 'clientId'],
    ['keepalive', 'keepAlive'],
    ['reconnectPeriod', 'reconnect'],
    ['clean', 'cleanStart'],
    ['rejectUnauthorized', 'tls.insecure of the endpoint'],
    ['host', 'the URL'],
    ['toString', undefined],
    ['qos', undefined],
    ['x'.repeat(100_000), undefined],
  ])('%#: %.20s is refused by name, with the one that is nearest', (option, nearest) => {
    const error = refusal({ [option]: 1 })
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    if (nearest === undefined) expect(error.message).not.toContain('did you mean')
    else expect(error.message).toContain(`; did you mean ${nearest}`)
    expect(error.message).toMatch(/^unknown option /)
    expect(error.message.length).toBeLessThan(400)
  })

  it('what was given is shown where it is no secret, and bounded', () => {
    expect(refusal({ keepAlive: '30' }).message).toBe('keepAlive must be a whole number from 0 to 65535 (seconds), or false, not "30"')
    expect(refusal({ protocolVersion: 3 }).message).toBe('protocolVersion must be 5, 4 or "auto", not 3')
    expect(refusal({ connectTimeout: 'x\n'.repeat(10_000) }).message.length).toBeLessThan(400)
    for (const option of ['username', 'password', 'clientId']) expect(refusal({ [option]: 31_415 }).message).not.toContain('31')
    expect(refusal({ will: { topic: 'a', payload: 31_415 } }).message).not.toContain('31')
  })

  it('__proto__ as a key of its own, and keys that were inherited', () => {
    expect(refusal(JSON.parse('{"__proto__": {"keepAlive": 5}}'))).toMatchObject({ code: 'ERR_INVALID_OPTION', option: '__proto__' })
  })

  it('undefined counts as left out, whatever the name', async () => {
    const world = await connected({ keepAlive: undefined, will: undefined, nonsense: undefined } as ClientOptions)
    expect(world.peer.last('connect').keepAlive).toBe(30)
  })

  it.each([
    ['store', {}],
    ['strictTopics', true],
    ['checkPayloadFormat', true],
  ])('%s: %o: an option that there is not is no option', (option, value) => {
    expect(refusal({ [option]: value })).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
  })

  it.each([
    ['protocolVersion', 5],
    ['firstConnect', 'reject'],
    ['reconnect', false],
    ['stats', false],
    ['resubscribe', 'when-lost'],
  ])('%s: %o is what there is', (option, value) => {
    expect(new World({ [option]: value }).client.state).toBe('idle')
  })
})

describe('the objects of the caller', () => {
  it('are never written to: everything works with frozen ones', async () => {
    const options: ClientOptions = deepFreeze({
      clientId: 'a',
      username: 'u',
      password: 'p',
      userProperties: [['a', 'b']],
      will: { topic: 'w', payload: Uint8Array.of(1), properties: { userProperties: [['c', 'd']], correlationData: Uint8Array.of(2) } },
      subscriptions: { buffer: 5 },
      outbound: { offline: { qos0: 'queue' } },
      logger: { info: () => undefined },
    } as const) as unknown as ClientOptions
    const before = JSON.stringify(options)
    const worlds = [await connected(options, agreeable), await connected(options, agreeable)]
    for (const world of worlds) {
      const { client } = world
      const message = deepFreeze({ qos: 1, properties: { userProperties: [['a', 'b']] }, signal: new AbortController().signal }) as never
      const calls = [
        client.publish('a', 'b', message),
        client.subscribe(deepFreeze([{ filter: 'a', qos: 1 }, 'b']) as never, deepFreeze({ properties: { userProperties: [['a', 'b']] } }) as never),
        client.listen(deepFreeze(['c']), () => undefined, deepFreeze({ concurrency: 2 })),
        client.unsubscribe(deepFreeze(['d']), deepFreeze({ properties: { userProperties: [['x', 'y']] } }) as never),
      ]
      await world.settle()
      await Promise.all(calls)
      await world.send(publish('a', 'x', 1))
      const done = client.disconnect(deepFreeze({ timeout: 0, userProperties: [['a', 'b']] }) as never)
      await world.settle()
      await done
    }
    expect(JSON.stringify(options)).toBe(before)
  })

  it('are read once: later changes have no effect', async () => {
    const userProperties: [string, string][] = [['a', 'b']]
    const payload = Uint8Array.of(1)
    const options = { clientId: 'a', keepAlive: 10, userProperties, will: { topic: 'w', payload } }
    const world = new World(options)
    world.answer = agreeable
    options.clientId = 'changed'
    options.keepAlive = 99
    userProperties[0] = ['changed', 'x']
    userProperties.push(['more', 'x'])
    payload[0] = 9
    options.will.topic = 'changed'
    await Promise.all([world.client.connect(), world.settle()])
    const packet = world.peer.last('connect')
    expect(packet).toMatchObject({ clientId: 'a', keepAlive: 10, properties: { userProperties: [['a', 'b']] }, will: { topic: 'w' } })
    expect([...(packet.will?.payload ?? [])]).toEqual([1])
  })

  it('requests of one subscribe call are copied too', async () => {
    const world = await connected({}, agreeable)
    const filters = [{ filter: 'a', qos: 1 as 0 | 1 }]
    const userProperties: [string, string][] = [['a', 'b']]
    const calls = [
      world.client.subscribe(filters, { properties: { userProperties } }),
      world.client.publish('t', 'x', { qos: 1, properties: { userProperties } }),
    ]
    filters[0] = { filter: 'changed', qos: 0 }
    userProperties[0] = ['changed', 'x']
    await world.settle()
    await Promise.all(calls)
    expect(world.peer.last('subscribe')).toMatchObject({ subscriptions: [{ filter: 'a', qos: 1 }], properties: { userProperties: [['a', 'b']] } })
    expect(world.peer.last('publish')).toMatchObject({ properties: { userProperties: [['a', 'b']] } })
  })
})

it('a logger that throws harms nobody', async () => {
  const logger = {
    info: () => {
      throw new Error('disk full')
    },
    error: () => {
      throw new Error('disk full')
    },
  }
  const world = new World({ logger })
  world.answer = agreeable
  world.client.on('connect', () => {
    throw new Error('mine')
  })
  await Promise.all([world.client.connect(), world.settle()])
  expect(world.client.state).toBe('connected')
  await Promise.all([world.client.disconnect(), world.settle()])
  expect(world.client.state).toBe('closed')
})

it('a logger keeps its this', async () => {
  const lines: string[] = []
  const logger = {
    prefix: '>',
    info(message: string) {
      lines.push(this.prefix + message)
    },
  }
  const world = await connected({ logger, clientId: 'me' })
  expect(lines).toEqual(['>mqwire me: connected'])
  failure(world.client.disconnect({ timeout: 0 }))
})
