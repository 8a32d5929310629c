/**
 * Clients that reach their broker by way of real proxies, over each transport, with the agents of users; and agents that behave badly.
 */
import { Agent as HttpAgent } from 'node:http'
import { connect as connectSocket, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { inspect } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Client as BrowserClient } from '../../../src/client/browser.js'
import { Client } from '../../../src/client/node.js'
import type { EndpointOptions } from '../../../src/client/options/index.js'
import type { MqttError } from '../../../src/errors.js'
import type { SocketAgent } from '../../../src/transport/transport.js'
import { type Broker, startAedes, type TransportName } from '../../real/brokers.js'
import { eventually, take, within } from '../../real/waiting.js'
import { hasOpenssl, issue, selfSigned } from '../../support/certificates.js'
import { pause } from '../../support/pausing.js'
import { proxies, type RunningProxy, startOddProxy } from './proxies.js'
import { duplexPair } from './rig.js'

const transports = [
  'TCP',
  'TLS',
  'WebSocket',
  'Secure WebSocket',
] as const satisfies readonly TransportName[]
const secure = ['TLS', 'Secure WebSocket'] as const
const authority = hasOpenssl() ? selfSigned('authority') : undefined
const stranger = hasOpenssl() ? selfSigned('stranger') : undefined
const account = { username: 'proxy-user', password: 'proxy-canary' }

function identity() {
  if (authority === undefined) throw new Error('openssl not found')
  return authority
}

let broker: Broker
const running: RunningProxy[] = []
const clients: Client[] = []

beforeAll(async () => {
  broker = await startAedes({}, { server: issue(identity()) })
})
afterAll(() => broker?.stop())
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy()
  for (const proxy of running.splice(0)) proxy.close()
})

async function start(name: string, given?: typeof account): Promise<RunningProxy> {
  const proxy = await (proxies[name] as NonNullable<(typeof proxies)[string]>)(given)
  running.push(proxy)
  return proxy
}

async function startOdd(react: (socket: Socket) => void) {
  const proxy = await startOddProxy(react)
  running.push(proxy)
  return proxy
}

function urlAt(transport: TransportName): string {
  return broker.urls[transport] as string
}

function by(
  agent: SocketAgent,
  transport: TransportName,
  tls: EndpointOptions['tls'] = { ca: authority?.cert },
): EndpointOptions {
  const encrypted = transport === 'TLS' || transport === 'Secure WebSocket'
  return { url: urlAt(transport), socket: { agent }, ...(encrypted && { tls }) }
}

function clientOf(
  endpoint: EndpointOptions,
  options: ConstructorParameters<typeof Client>[1] = {},
): Client {
  const client = new Client(endpoint, { reconnect: false, ...options })
  clients.push(client)
  return client
}

async function failureOf(client: Client): Promise<MqttError> {
  return client.connect().then(
    () => {
      throw new Error('it connected')
    },
    (error: MqttError) => error,
  )
}

const empty = (proxy: RunningProxy): Promise<boolean> =>
  eventually(() => proxy.open === 0, `no connection at the proxy; ${proxy.open} are open`, 2000)

/** Publishes and receives, also what takes many reads. */
async function exchange(client: Client): Promise<void> {
  const messages = await client.subscribe('a/#', { qos: 1 })
  await client.publish('a/b', 'hello', { qos: 1 })
  expect((await take(messages)).text()).toBe('hello')
  const large = new Uint8Array(300_000).map((_value, index) => index * 7)
  await client.publish('a/large', large, { qos: 1 })
  const message = await take(messages)
  expect(Buffer.compare(message.payload, large)).toBe(0)
  // disconnect() waits for what is in hand.
  message.ack()
}

describe.each(Object.keys(proxies))('by way of %s', (name) => {
  describe.each(transports)('over %s', (transport) => {
    it('publishes and receives on one connection of the proxy, and leaves none after disconnect()', async () => {
      const proxy = await start(name)
      const client = clientOf(by(proxy.agent(), transport))
      await client.connect()
      await exchange(client)
      expect([proxy.open, proxy.total, proxy.led]).toEqual([1, 1, [new URL(urlAt(transport)).host]])
      await client.disconnect()
      await empty(proxy)
      expect(proxy.total).toBe(1)
    })

    it('a proxy that wants a password gets it, and refuses another: the attempt fails, without its words', async () => {
      const proxy = await start(name, account)
      const client = clientOf(by(proxy.agent(), transport))
      await client.connect()
      await client.disconnect()
      const error = await failureOf(
        clientOf(by(proxy.agent({ ...account, password: 'wrong-canary' }), transport)),
      )
      expect(error).toMatchObject({
        code: 'ERR_CONNECT_FAILED',
        outcome: 'not-sent',
        fault: 'remote',
      })
      expect(error.message).toContain(
        name === 'SOCKS5' ? 'uthentication' : 'the proxy answered 407',
      )
      const shown = [
        inspect(client, { depth: 20, showHidden: true }),
        inspect(error, { depth: 20, showHidden: true }),
        JSON.stringify(error),
      ]
      expect(shown.filter((text) => text.includes('canary'))).toEqual([])
      await empty(proxy)
      expect([proxy.total, proxy.led.length]).toEqual([2, 1])
    })

    it('a proxy that is not there: the attempt fails, and nothing is dialled directly', async () => {
      const proxy = await start(name)
      const agent = proxy.agent()
      proxy.close()
      const error = await failureOf(clientOf(by(agent, transport)))
      expect(error.code).toBe('ERR_CONNECT_FAILED')
      expect(error.message).toContain('no stream from the agent')
      expect(error.message).toContain('ECONNREFUSED')
    })

    it('a proxy that dies in the middle is a lost connection, and the next one goes by way of it too', async () => {
      const proxy = await start(name)
      const client = clientOf(by(proxy.agent(), transport), { reconnect: { backoff: () => 10 } })
      const causes: unknown[] = []
      client.on('disconnect', ({ cause }) => causes.push(cause?.code))
      await client.connect()
      const again = new Promise<void>((resolve) => client.on('connect', () => resolve()))
      proxy.cut()
      await within(again, 'the second connection')
      await exchange(client)
      expect([proxy.open, proxy.total, causes]).toEqual([1, 2, ['ERR_CONNECTION_LOST']])
      await client.disconnect()
      await empty(proxy)
    })
  })

  it('a URL that credentials() gave is dialled by way of the proxy too', async () => {
    const proxy = await start(name)
    const credentials = () => ({ url: `${urlAt('WebSocket')}/signed?by=me` })
    const client = clientOf(
      { url: 'ws://broker.invalid', socket: { agent: proxy.agent() } },
      { credentials },
    )
    await client.connect()
    expect([proxy.total, proxy.led]).toEqual([1, [new URL(urlAt('WebSocket')).host]])
    await client.disconnect()
    await empty(proxy)
  })

  describe.each(secure)('over %s, the certificate of the broker is verified', (transport) => {
    it.each([
      ['an authority that did not sign it', { ca: stranger?.cert }],
      ['a name that it has not', { ca: authority?.cert, servername: 'other.test' }],
    ])('for %s: ERR_TLS, no byte of MQTT, nothing left at the proxy', async (_name, tls) => {
      const proxy = await start(name)
      const error = await failureOf(clientOf(by(proxy.agent(), transport, tls)))
      expect(error).toMatchObject({ code: 'ERR_TLS', outcome: 'not-sent' })
      await empty(proxy)
      expect(proxy.total).toBe(1)
    })
  })
})

describe('a proxy that hangs', () => {
  const tunnel = (socket: Socket) =>
    void socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
  it.each([
    ['at once', () => undefined],
    ['after it made the tunnel', tunnel],
  ])(
    '%s: connectTimeout ends the attempt, and the socket that the agent made',
    async (_, react) => {
      for (const transport of transports) {
        const proxy = await startOdd(react)
        const client = clientOf(by(proxy.agent(), transport), { connectTimeout: 100 })
        expect(await failureOf(client)).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT' })
        expect(proxy.total).toBe(1)
        await empty(proxy)
      }
    },
  )

  it('and answers after the attempt was given up: the stream is destroyed', async () => {
    const sockets: Socket[] = []
    const proxy = await startOdd((socket) => void sockets.push(socket))
    const client = clientOf(by(proxy.socks, 'TCP'), { connectTimeout: 200 })
    const failed = failureOf(client)
    await eventually(() => sockets.length === 1, 'the dial')
    sockets[0]?.write(Buffer.of(5, 0))
    expect((await failed).code).toBe('ERR_CONNECT_TIMEOUT')
    expect(proxy.open).toBe(1)
    sockets[0]?.write(Buffer.of(5, 0, 0, 1, 127, 0, 0, 1, 1, 1))
    await empty(proxy)
  })
})

describe('a proxy that answers', () => {
  it.each([
    [
      '403',
      'HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\nsecret',
      'the proxy answered 403 Forbidden',
    ],
    ['502', 'HTTP/1.1 502 Bad Gateway\r\n\r\n', 'the proxy answered 502 Bad Gateway'],
    ['no HTTP', 'hello\r\n\r\n', 'the proxy answered NaN'],
    [
      'control characters',
      'HTTP/1.1 500 \u001b[31mred\r\n\r\n',
      'the proxy answered 500 \\u{1b}[31mred',
    ],
  ])('%s: the attempt fails, and says so', async (_name, answer, words) => {
    const proxy = await startOdd((socket) => void socket.once('data', () => socket.write(answer)))
    for (const transport of transports) {
      const error = await failureOf(clientOf(by(proxy.agent(), transport)))
      expect(error).toMatchObject({ code: 'ERR_CONNECT_FAILED', outcome: 'not-sent' })
      expect(error.message).toContain(words)
    }
    await empty(proxy)
  })

  it.each([
    ['HTTP', (proxy: Awaited<ReturnType<typeof startOddProxy>>) => proxy.agent()],
    ['SOCKS5', (proxy: Awaited<ReturnType<typeof startOddProxy>>) => proxy.socks],
  ])('nothing, and hangs up, by %s: the attempt fails', async (_name, agentOf) => {
    const proxy = await startOdd((socket) => void socket.once('data', () => socket.destroy()))
    expect(await failureOf(clientOf(by(agentOf(proxy), 'TCP')))).toMatchObject({
      code: 'ERR_CONNECT_FAILED',
    })
    await empty(proxy)
  })
})

describe('agents of other kinds', () => {
  const port = (): number => Number(new URL(urlAt('TCP')).port)

  it.each([
    [
      'connect() that gives a socket that still connects',
      { connect: () => connectSocket(port(), '127.0.0.1') },
    ],
    [
      'connect() that gives an agent',
      { connect: () => ({ connect: async () => connectSocket(port(), '127.0.0.1') }) },
    ],
    [
      'createConnection() that returns a socket',
      { createConnection: () => connectSocket(port(), '127.0.0.1') },
    ],
    [
      'createConnection() that calls back',
      {
        createConnection: (_options: never, callback: (error: null, stream: Duplex) => void) =>
          void callback(null, connectSocket(port(), '127.0.0.1')),
      },
    ],
    ['an http.Agent', new HttpAgent()],
  ])('%s', async (_name, agent) => {
    const client = clientOf(by(agent as SocketAgent, 'TCP'))
    await client.connect()
    await exchange(client)
    await client.disconnect()
  })

  it('get host, port and settings, and the agent as this', async () => {
    const asked: unknown[] = []
    const agent = {
      createConnection(options: object) {
        asked.push(this === agent, options)
        return connectSocket(port(), '127.0.0.1')
      },
    }
    const url = 'mqtt://[::1]:1234'
    const client = clientOf({
      url,
      socket: { agent, family: 6, localAddress: '::1', noDelay: false },
    })
    await client.connect()
    await client.disconnect()
    expect(asked).toEqual([
      true,
      { host: '::1', port: 1234, secureEndpoint: false, family: 6, localAddress: '::1' },
    ])
  })

  it.each([
    ['ws://broker.example/mqtt', 80],
    ['wss://broker.example/mqtt', 443],
    ['mqtt://broker.example', 1883],
    ['mqtts://broker.example', 8883],
  ])('of %s are asked for port %i', async (url, expected) => {
    const asked: unknown[] = []
    const agent = {
      connect: (_request: never, options: never) => Promise.reject(asked.push(options)),
    }
    await failureOf(clientOf({ url, socket: { agent } }))
    expect(asked).toEqual([
      expect.objectContaining({ host: 'broker.example', port: expected, secureEndpoint: false }),
    ])
  })

  it('TLS is spoken on a stream that is no socket', async () => {
    const agent = {
      connect: () => {
        const [near, far] = duplexPair()
        const socket = connectSocket(Number(new URL(urlAt('TLS')).port), '127.0.0.1')
        far.pipe(socket).pipe(far)
        return near
      },
    }
    const client = clientOf(by(agent, 'TLS'))
    await client.connect()
    await exchange(client)
    await client.disconnect()
  })

  const canary = { code: 'ENOWAY', options: { password: 'canary' } }
  const ofBroker = { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }
  const rejecting = (error: object) => ({
    connect: () => Promise.reject(Object.assign(new Error('no way'), error)),
  })
  const endless: SocketAgent = { connect: () => endless }
  const notToday = new Error('not today')
  const thrower = {
    createConnection() {
      throw notToday
    },
  }
  const refuser = {
    createConnection: (_options: never, callback: (error: Error) => void) =>
      void callback(notToday),
  }
  it.each([
    ['nothing', { connect: () => undefined }, 'a Duplex'],
    ['an object', { connect: () => ({}) }, 'a Duplex'],
    ['an error', rejecting(canary), 'ENOWAY: no way'],
    ['an error of TLS, which is not that of the broker', rejecting(ofBroker), 'no stream from the'],
    ['agents without end', endless, 'ever more agents'],
    ['what they throw', thrower, 'not today'],
    ['an error to the callback', refuser, 'not today'],
  ])('that give %s fail the attempt', async (_name, agent, words) => {
    for (const transport of transports) {
      const error = await failureOf(clientOf(by(agent as SocketAgent, transport)))
      expect(error.code).toBe('ERR_CONNECT_FAILED')
      expect(error.message).toContain(words)
      expect(JSON.stringify(error.cause)).not.toContain('canary')
    }
  })

  it('that give two streams lose the second', async () => {
    const [spare] = duplexPair()
    const generous = {
      createConnection(_options: never, callback: (error: null, stream: Duplex) => void) {
        queueMicrotask(() => callback(null, spare))
        return connectSocket(port(), '127.0.0.1')
      },
    }
    const client = clientOf(by(generous as SocketAgent, 'TCP'))
    await client.connect()
    await client.disconnect()
    expect(spare.destroyed).toBe(true)
  })
})

describe('a socket that an agent made', () => {
  const hung = (): Promise<RunningProxy> => startOdd(() => undefined)

  it.each([
    [
      'after a while',
      (inner: SocketAgent): SocketAgent => ({ connect: () => pause(20).then(() => inner) }),
    ],
    [
      'by another one',
      (inner: SocketAgent): SocketAgent => ({
        connect: async () => ({ connect: async () => inner }),
      }),
    ],
  ])('to which another agent led %s ends with the attempt', async (_name, choosing) => {
    const proxy = await hung()
    expect(
      await failureOf(clientOf(by(choosing(proxy.agent()), 'TCP'), { connectTimeout: 150 })),
    ).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT' })
    expect(proxy.total).toBe(1)
    await empty(proxy)
  })

  it('is not asked for when another agent leads on after the attempt', async () => {
    const proxy = await hung()
    let lead: (inner: SocketAgent) => void = () => undefined
    const choosing = { connect: () => new Promise<SocketAgent>((resolve) => (lead = resolve)) }
    expect(await failureOf(clientOf(by(choosing, 'TCP'), { connectTimeout: 50 }))).toMatchObject({
      code: 'ERR_CONNECT_TIMEOUT',
    })
    lead(proxy.agent())
    await pause(50)
    expect(proxy.total).toBe(0)
  })

  it.each([
    [
      'rejects',
      (dial: () => Socket) => ({
        connect: () => up(dial()).then(() => Promise.reject(new Error('not today'))),
      }),
    ],
    [
      'gives no stream',
      (dial: () => Socket) => ({ connect: async () => ({ socket: await up(dial()) }) }),
    ],
    [
      'calls back with an error',
      (dial: () => Socket) => ({
        createConnection: (_options: never, callback: (error: Error) => void) =>
          void up(dial()).then(() => callback(new Error('not today'))),
      }),
    ],
  ])('which then %s ends with the attempt', async (_name, agentOf) => {
    const proxy = await hung()
    const error = await failureOf(
      clientOf(by(agentOf(() => connectSocket(proxy.port, '127.0.0.1')) as SocketAgent, 'TCP')),
    )
    expect(error.code).toBe('ERR_CONNECT_FAILED')
    expect(proxy.total).toBe(1)
    await empty(proxy)
  })
  const up = (socket: Socket): Promise<Socket> =>
    new Promise((resolve) => socket.once('connect', () => resolve(socket)))
})

describe('the option', () => {
  it.each([
    ['a URL', 'http://proxy.example'],
    ['an empty object', {}],
    ['a function', () => undefined],
    ['null', null],
  ])('%s is no agent: ERR_INVALID_OPTION', (_name, agent) => {
    const make = () =>
      new Client({ url: 'mqtt://broker.example', socket: { agent: agent as never } })
    expect(make).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'endpoint.socket.agent' }),
    )
  })

  it('is refused for Unix sockets, and in browsers: ERR_UNSUPPORTED_OPTION', () => {
    const agent = { connect: () => undefined }
    const refused = expect.objectContaining({
      code: 'ERR_UNSUPPORTED_OPTION',
      option: 'endpoint.socket',
    })
    expect(() => new Client({ url: 'unix:///mqtt.sock', socket: { agent } })).toThrow(refused)
    expect(
      () => new BrowserClient({ url: 'wss://broker.example/mqtt', socket: { agent } }),
    ).toThrow(refused)
  })
})
