/** What options of MQTT.js become, and which are refused by their names, before anything is dialled. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect, type IClientOptions } from '../../../src/compat/index.js'
import { planOf } from '../../../src/compat/options.js'

/** An option `log`, and the lines that it is given. */
function journal() {
  const lines: string[] = []
  return { lines, log: ((line: string) => lines.push(line)) as never }
}

const plan = (url: string, options: object = {}) => planOf(url, options as IClientOptions, {})
const url = (given: string, options: object = {}) =>
  (plan(given, options).endpoints[0] as { url: string }).url
const own = (options: object) => plan('mqtt://h', options).options

/** What connect() throws for these options. */
const expectRefusal = (code: string, option: string | undefined, ...given: unknown[]): void => {
  const error = option === undefined ? { code } : { code, option }
  expect(() => connect(...(given as [string]))).toThrow(expect.objectContaining(error))
}

it.each([
  ['mqtt://h', {}, 'mqtt://h'],
  ['mqtt://h:1', { port: 2 }, 'mqtt://h:2'],
  ['mqtt://h:1', { host: 'g' }, 'mqtt://g:1'],
  ['mqtt://h', { host: 'g', hostname: 'f' }, 'mqtt://f'],
  ['mqtt://h', { protocol: 'mqtts' }, 'mqtts://h'],
  ['mqtt://h/path', {}, 'mqtt://h'],
  ['ws://h/path?a=b', {}, 'ws://h/path?a=b'],
  ['ws://h/path', { path: '/other' }, 'ws://h/other'],
  ['ws://h', { query: { token: 'x y' } }, 'ws://h/?token=x+y'],
  ['', {}, 'mqtt://localhost'],
  ['', { host: 'h', port: 1, protocol: 'ws', path: '/mqtt' }, 'ws://h:1/mqtt'],
  ['', { host: 'h', defaultProtocol: 'tcp' }, 'tcp://h'],
  ['', { host: '::1' }, 'mqtt://[::1]'],
  ['mqtt://[::1]:5', {}, 'mqtt://[::1]:5'],
  ['unix:///run/a', {}, 'unix:///run/a'],
  ['mqtt+unix:///run/a', {}, 'unix:///run/a'],
  ['', { protocol: 'mqtt+unix', path: '/run/a' }, 'unix:///run/a'],
  ['', { unixSocket: true, path: '/run/a' }, 'unix:///run/a'],
  ['', { unixSocket: true, path: '/run/a%20b?c#d' }, 'unix:///run/a%2520b%3Fc%23d'],
  ['', { unixSocket: true, path: 'run/a' }, 'unix:run/a'],
  ['unix:///run/a%20b', {}, 'unix:///run/a%20b'],
  ['mqtt+unix:///run/a?b', {}, 'unix:///run/a%3Fb'],
  ['mqtt://h', { cert: 'c', key: 'k' }, 'mqtts://h'],
  ['ws://h', { cert: 'c', key: 'k' }, 'wss://h/'],
  ['mqtt://h', { protocol: 'mqtts:' }, 'mqtts://h'],
])('%s with %j is %s', (given, options, expected) => {
  expect(url(given, options)).toBe(expected)
})

it('servers, each with its own, and with the scheme of all', () => {
  const servers = [{ host: 'a', port: 1 }, { host: 'b', port: 2, protocol: 'ws' }, { host: 'c' }]
  expect(plan('mqtt://h:9', { servers }).endpoints).toEqual([
    { url: 'mqtt://a:1' },
    { url: 'ws://b:2' },
    { url: 'mqtt://c' },
  ])
})

it('TLS, by the names of MQTT.js', () => {
  const options = {
    ca: ['a', 'b'],
    cert: ['c'],
    key: 'k',
    passphrase: 'p',
    servername: 's',
    ALPNProtocols: ['x', new TextEncoder().encode('y')],
  }
  const tls = {
    ca: ['a', 'b'],
    cert: 'c',
    key: 'k',
    passphrase: 'p',
    servername: 's',
    alpn: ['x', 'y'],
  }
  expect(plan('mqtts://h', options).endpoints).toEqual([{ url: 'mqtts://h', tls }])
  expect(plan('mqtts://h', { rejectUnauthorized: true }).endpoints).toEqual([{ url: 'mqtts://h' }])
  const [endpoint] = plan('wss://h', { wsOptions: { rejectUnauthorized: false } }).endpoints
  expect(endpoint).toEqual({ url: 'wss://h/', tls: { insecure: 'rejectUnauthorized is false' } })
})

it('wsOptions: headers, sub-protocols, TLS and the local side', () => {
  const wsOptions = {
    headers: { a: 'b' },
    protocols: ['x'],
    ca: 'c',
    family: 4,
    localAddress: '127.0.0.1',
  }
  expect(plan('wss://h/', { wsOptions }).endpoints).toEqual([
    {
      url: 'wss://h/',
      headers: { a: 'b' },
      protocols: ['x'],
      tls: { ca: 'c' },
      socket: { family: 4, localAddress: '127.0.0.1' },
    },
  ])
  expect(plan('mqtt://h', { wsOptions }).endpoints).toEqual([{ url: 'mqtt://h' }])
})

it('transformWsUrl is asked before each attempt over a WebSocket, with options and client', async () => {
  const client = {}
  const transformWsUrl = (...given: unknown[]) =>
    `${given[0]}?signed=${(given[1] as IClientOptions).clientId}&${given[2] === client}`
  const { options } = planOf('ws://h/', { transformWsUrl, clientId: 'me' } as never, client)
  const context = {
    attempt: 1,
    endpoint: 'ws://h/',
    lastError: undefined,
    signal: new AbortController().signal,
  }
  expect(await options.credentials?.(context)).toEqual({ url: 'ws://h/?signed=me&true' })
  expect(await options.credentials?.({ ...context, endpoint: 'mqtt://h' })).toEqual({})
})

it('defaults of MQTT.js, but for the delays', () => {
  expect(own({})).toMatchObject({
    protocolVersion: 4,
    cleanStart: true,
    keepAlive: 60,
    connectTimeout: 30_000,
    firstConnect: 'wait',
    reconnect: {},
  })
  expect(own({}).clientId).toMatch(/^mqttjs_[0-9a-f]{1,8}$/)
  expect(own({}).clientId).not.toBe(own({}).clientId)
  expect(own({}).outbound).toEqual({ offline: { qos0: 'queue' }, onSessionLost: 'republish' })
  expect(own({}).maximumPacketSize).toBe(16_777_216)
})

it.each([
  ['mqtt://me:secret%20%3A@h', {}, 'me', 'secret :'],
  ['mqtt://me@h', { username: 'you', password: 'p' }, 'me', 'p'],
  ['mqtt://h', { username: 'you', password: 'p' }, 'you', 'p'],
  ['mqtt://h', { auth: 'you:p', username: 'other' }, 'you', 'p'],
  ['mqtt://h', { auth: 'you' }, 'you', undefined],
])('%s with %j', (given, options, username, password) => {
  expect(plan(given, options).options).toMatchObject({
    username,
    ...(password !== undefined && { password }),
  })
  expect(plan(given, options).shown).toMatchObject({ username })
})

it('a client identifier may stand in the query', () => {
  expect(plan('ws://h/?clientId=x', { clientId: 'y' }).options.clientId).toBe('x')
  expect(own({ query: { clientId: 'x' } }).clientId).toBe('x')
})

it.each([
  [
    { clean: false, clientId: 'a' },
    { cleanStart: false, clientId: 'a' },
  ],
  [{ keepalive: 0 }, { keepAlive: 0 }],
  [{ protocolVersion: 5 }, { protocolVersion: 5 }],
  [{ connectTimeout: 5 }, { connectTimeout: 5 }],
  [{ connectTimeout: Number.POSITIVE_INFINITY }, { connectTimeout: 2_147_483_647 }],
  [{ subscribeBatchSize: 7 }, { maxFiltersPerSubscribe: 7 }],
  [{ queueQoSZero: false }, { outbound: { offline: { qos0: 'reject' } } }],
  [{ reconnectPeriod: 0 }, { reconnect: false, firstConnect: 'reject' }],
  [
    { protocolVersion: 5, properties: { maximumPacketSize: 99, receiveMaximum: 5 } },
    { maximumPacketSize: 99, receiveMaximum: 5 },
  ],
  [{ properties: { maximumPacketSize: 2 ** 25 } }, { maximumPacketSize: 2 ** 25 }],
  [
    { protocolVersion: 5, properties: { userProperties: { a: ['1', '2'], b: '3' } } },
    {
      userProperties: [
        ['a', '1'],
        ['a', '2'],
        ['b', '3'],
      ],
    },
  ],
  [
    { will: { topic: 't', payload: 'p', qos: 1, retain: true } },
    { will: { topic: 't', payload: 'p', qos: 1, retain: true } },
  ],
  [
    {
      protocolVersion: 5,
      will: {
        topic: 't',
        payload: 'p',
        properties: { payloadFormatIndicator: true, userProperties: { a: '1' } },
      },
    },
    {
      will: {
        topic: 't',
        payload: 'p',
        properties: { payloadFormatIndicator: 1, userProperties: [['a', '1']] },
      },
    },
  ],
])('%j becomes %j', (given, expected) => {
  expect(own(given)).toMatchObject(expected)
})

it('reconnectPeriod is the delay, always the same; reconnectOnConnackError decides on refusals alone', () => {
  const { reconnect } = own({ reconnectPeriod: 250, reconnectOnConnackError: true })
  const { backoff, decide } = reconnect as {
    backoff: (attempt: number, error: undefined) => number
    decide: (error: object) => unknown
  }
  expect([1, 2, 9].map((attempt) => backoff(attempt, undefined))).toEqual([250, 250, 250])
  expect([{ code: 'ERR_CONNECT_REFUSED' }, { code: 'ERR_TLS' }].map(decide)).toEqual([
    'retry',
    undefined,
  ])
  const never = own({ reconnectOnConnackError: false }).reconnect as {
    decide: (error: object) => unknown
  }
  expect(never.decide({ code: 'ERR_CONNECT_REFUSED' })).toBe('stop')
})

it('log is given each line', () => {
  const { lines, log } = journal()
  const { logger } = own({ log })
  for (const level of ['debug', 'info', 'warn', 'error'] as const) logger?.[level]?.(level)
  expect(lines).toEqual(['debug', 'info', 'warn', 'error'])
})

it('what changes nothing is taken', () => {
  const nothing = {
    protocolId: 'MQTT',
    reschedulePings: true,
    timerVariant: 'auto',
    writeCache: true,
    autoUseTopicAlias: true,
    incomingStore: null,
  }
  expect(() =>
    plan('mqtt://h', {
      ...nothing,
      autoAssignTopicAlias: false,
      outgoingStore: undefined,
      resubscribe: true,
    }),
  ).not.toThrow()
})

it('the options given are not written to, and those shown are a copy with defaults', () => {
  const given = Object.freeze({ host: 'h', keepalive: 5 })
  expect(plan('', given).shown).toMatchObject({
    host: 'h',
    keepalive: 5,
    clean: true,
    protocolVersion: 4,
  })
})

describe('what MQTT.js heeds, and mqwire has no need of', () => {
  const reports = (): unknown[] => {
    const seen: unknown[] = []
    const hear = (warning: Error & { code?: string }) =>
      void (warning.code === 'MQWIRE_OPTION_IGNORED' && seen.push(warning.message))
    process.on('warning', hear)
    onTestFinished(() => void process.off('warning', hear))
    return seen
  }
  const dial = (options: object) =>
    connect({ manualConnect: true, protocol: 'ws', host: '127.0.0.1', ...options } as never).end(
      true,
    )

  it('is silent where it is the default, without WebSocket, and of names that MQTT.js does not know', async () => {
    const seen = reports()
    dial({
      binary: true,
      browserBufferSize: 524_288,
      browserBufferTimeout: 1000,
      objectMode: false,
      subscribeOptions: {},
      serializer: {},
      url: 'x',
    })
    dial({ protocol: 'mqtt', objectMode: true, nonsense: 1 })
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual([])
  })

  it('is reported once by name in a process, or is a line of the log', async () => {
    const seen = reports()
    const { lines, log } = journal()
    dial({ log, browserBufferTimeout: 5 })
    for (let client = 0; client < 3; client += 1)
      dial({ browserBufferSize: 5, browserBufferTimeout: 5 })
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual([
      expect.stringContaining(
        'mqwire/compat has its own way in place of browserBufferSize: leave it out',
      ),
    ])
    expect(lines.filter((line) => line.includes('own way'))).toEqual([
      expect.stringContaining('browserBufferTimeout'),
    ])
  })
})

it('what MQTT.js ignores is ignored, and named in one line of the log: names that nobody knows, TLS without TLS', () => {
  const { lines, log } = journal()
  const options = {
    url: 'mqtt://h',
    nonsense: 1,
    binary: true,
    rejectUnauthorized: false,
    ca: 'x',
    ALPNProtocols: ['x'],
    ciphers: 'y',
  }
  const { endpoints, shown } = plan('mqtt://h', {
    ...options,
    log,
  })
  expect(endpoints).toEqual([{ url: 'mqtt://h' }])
  expect(shown).toMatchObject(options)
  expect(lines).toEqual([
    expect.stringMatching(
      /ignores url, nonsense, binary, rejectUnauthorized, ca, ALPNProtocols, ciphers/,
    ),
  ])
  lines.length = 0
  plan('mqtts://h', {
    rejectUnauthorized: false,
    ca: 'x',
    log,
  })
  expect(lines).toEqual([])
})

it('what MQTT.js ignores is ignored, and named in one line of the log: what CONNECT of 3.1.1 does not have', () => {
  const { lines, log } = journal()
  const properties = {
    sessionExpiryInterval: 5,
    maximumPacketSize: 99,
    authenticationMethod: 'x',
  }
  const will = {
    topic: 'a',
    payload: 'x',
    qos: 1,
    retain: true,
    properties: { contentType: 'x' },
  } as const
  const client = connect('mqtt://127.0.0.1:1', { manualConnect: true, properties, will, log })
  expect(client.options).toMatchObject({ properties, will })
  expect(lines).toEqual([
    'mqwire/compat ignores properties.sessionExpiryInterval, properties.maximumPacketSize, properties.authenticationMethod, will.properties, as MQTT.js does',
  ])
  const { options } = plan('mqtt://h', { properties, will })
  expect(options).toMatchObject({
    maximumPacketSize: 16_777_216,
    will: { topic: 'a', payload: 'x', qos: 1, retain: true },
  })
  expect(options).not.toHaveProperty('sessionExpiryInterval')
  expect(options.will).not.toHaveProperty('properties')
  expect(lines.length).toBe(1)
})

it('what MQTT.js ignores a URL that is not there: the options alone say where to dial', () => {
  for (const nothing of [undefined, null, '']) {
    const client = connect(nothing as never, {
      host: 'h',
      port: 5,
      clientId: 'me',
      manualConnect: true,
    })
    expect(client.options).toMatchObject({ hostname: 'h', port: 5, clientId: 'me' })
  }
  expect(connect({ host: 'x' }, { host: 'h', manualConnect: true }).options).toMatchObject({
    hostname: 'h',
  })
})

describe('what is refused by its name', () => {
  const refused = `authPacket caPaths certPath createWebsocket customHandleAcks encoding
forceNativeWebSocket incomingStore keyPath messageIdProvider my outgoingStore pfx socksProxy`

  it.each(refused.split(/\s+/))('%s', (name) => {
    expectRefusal('ERR_UNSUPPORTED_OPTION', name, 'mqtt://127.0.0.1:1', { [name]: {} })
  })

  it.each([
    [{ protocolVersion: 3 }, 'protocolVersion'],
    [{ protocolId: 'MQIsdp' }, 'protocolId'],
    [{ reschedulePings: false }, 'reschedulePings'],
    [{ timerVariant: 'worker' }, 'timerVariant'],
    [{ writeCache: false }, 'writeCache'],
    [{ resubscribe: false, clean: false, clientId: 'a' }, 'resubscribe'],
    [{ protocol: 'mqtts', ciphers: 'x' }, 'ciphers'],
    [{ protocol: 'wss', minVersion: 'TLSv1.3' }, 'minVersion'],
    [
      {
        servers: [{ host: 'a' }, { host: 'b', protocol: 'mqtts' }],
        checkServerIdentity: () => undefined,
      },
      'checkServerIdentity',
    ],
    [{ wsOptions: { agent: {} } }, 'wsOptions.agent'],
    [{ wsOptions: { perMessageDeflate: false } }, 'wsOptions.perMessageDeflate'],
    [
      { protocolVersion: 5, properties: { authenticationMethod: 'x' } },
      'properties.authenticationMethod',
    ],
    [{ protocolVersion: 5, properties: { topic: 'x' } }, 'properties.topic'],
  ])('%j', (options, option) => {
    expectRefusal('ERR_UNSUPPORTED_OPTION', option, 'mqtt://127.0.0.1:1', options)
  })

  it.each([
    [{ clean: false }, 'clientId'],
    [{ keepalive: 70_000 }, 'keepalive'],
    [{ keepalive: '60' }, 'keepalive'],
    [{ clean: 'no' }, 'clean'],
    [{ subscribeBatchSize: 'x' }, 'subscribeBatchSize'],
    [{ connectTimeout: '5' }, 'connectTimeout'],
    [{ connectTimeout: -1 }, 'connectTimeout'],
    [{ protocol: 5 }, 'protocol'],
    [{ defaultProtocol: 5, protocol: 'mqtt' }, 'defaultProtocol'],
    [{ host: 5 }, 'host'],
    [{ hostname: 5 }, 'hostname'],
    [{ path: 5 }, 'path'],
    [{ auth: 5 }, 'auth'],
    [{ servers: 5 }, 'servers'],
    [{ servers: [null] }, 'servers'],
    [{ servers: [{ host: 5 }] }, 'host'],
    [{ protocol: 'mqtts', ALPNProtocols: 'mqtt' }, 'ALPNProtocols'],
    [{ will: {} }, 'will.topic'],
    [{ will: 'x' }, 'will'],
    [{ properties: 'x' }, 'properties'],
    [{ wsOptions: 5 }, 'wsOptions'],
    [{ query: 'x' }, 'query'],
    [{ reconnectPeriod: -1 }, 'reconnectPeriod'],
    [{ reconnectPeriod: 'soon' }, 'reconnectPeriod'],
    [{ reconnectOnConnackError: 1 }, 'reconnectOnConnackError'],
    [{ rejectUnauthorized: 'no' }, 'rejectUnauthorized'],
    [{ queueQoSZero: 'no' }, 'queueQoSZero'],
    [{ manualConnect: 1 }, 'manualConnect'],
    [{ log: 'x' }, 'log'],
    [{ transformWsUrl: 'x' }, 'transformWsUrl'],
    [{ cert: ['a', 'b'] }, 'cert'],
    [{ protocolVersion: 6 }, 'protocolVersion'],
    [{ will: { payload: 'x' } }, 'will.topic'],
  ])('a wrong value: %j', (options, option) => {
    expectRefusal('ERR_INVALID_OPTION', option, 'mqtt://127.0.0.1:1', options)
  })

  it.each([
    ['localhost:1883'],
    ['h'],
    ['http://h'],
    ['mqtt:'],
    ['wx://h'],
    ['mqtt://u%zz@h'],
    ['mqtt://u:%zz@h'],
    ['unix:///run/%zz'],
  ])('a URL that is none: %s', (given) => {
    expectRefusal('ERR_INVALID_BROKER_URL', undefined, given)
  })

  it('a function that makes streams, of the constructor of MQTT.js', () => {
    expectRefusal('ERR_UNSUPPORTED_OPTION', 'streamBuilder', () => undefined)
  })
})
