/** Secrets on Node, with real sockets: SCRAM, diagnostics channels, process warnings, and the errors of sockets, TLS and WebSocket. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { scramSha256 } from '../../../src/auth/index.js'
import { Client, type ClientOptions, type Endpoint } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import { scramServer } from '../../../src/testing/scram-server.js'
import { listening } from '../../support/servers.js'
import { thrown } from './harness.js'
import { eventTypes, Listener, secrets, told } from './telling.js'

let listener: Listener
const endings: (() => unknown)[] = []

const traced = (message: unknown, name: string | symbol): void =>
  listener.hear(String(name), message)
const warned = (warning: Error): void => listener.hear('warning', warning)

beforeEach(() => {
  listener = new Listener()
  for (const type of eventTypes) subscribe(`mqwire:${type}`, traced)
  process.on('warning', warned)
})

afterEach(async () => {
  for (const type of eventTypes) unsubscribe(`mqwire:${type}`, traced)
  process.off('warning', warned)
  for (const end of endings.splice(0)) await end()
})

function made(endpoint: Endpoint, options: ClientOptions = {}): Client {
  const client = new Client(endpoint, {
    clientId: 'a',
    stats: true,
    logger: listener.logger,
    reconnect: { backoff: () => 1 },
    ...options,
  })
  listener.attend(client)
  endings.push(() => client.destroy())
  return client
}

/** Ends a client; nothing may have come out of it. */
async function silent(client: Client, ...kinds: string[]): Promise<void> {
  await listener.follow('disconnect()', client.disconnect({ timeout: 0 }))
  await listener.follow('closed', client.closed)
  listener.interrogate(client)
  // Process warnings come a turn late.
  await new Promise((resolve) => setImmediate(resolve))
  expect(listener.leaks).toEqual([])
  for (const kind of ['mqwire:state', 'mqwire:dial', 'state', 'client', ...kinds])
    expect(listener.heard.get(kind), kind).toBeGreaterThan(0)
}

describe('SCRAM-SHA-256', () => {
  const scene = (password: string): { broker: MemoryBroker; client: Client } => {
    const lookup = (name: string): string | undefined =>
      name === secrets.scramUser ? secrets.scramPassword : undefined
    const broker = new MemoryBroker({ auth: { 'SCRAM-SHA-256': scramServer(lookup) } })
    const auth = scramSha256({ username: secrets.scramUser, password })
    listener.hear('auth', auth)
    return {
      broker,
      client: made({ url: 'memory://broker', transport: () => broker.connect() }, { auth }),
    }
  }

  it('logs in, again on the open connection, and after a lost one', async () => {
    const { broker, client } = scene(secrets.scramPassword)
    await listener.follow('connect()', client.connect())
    await listener.follow('reauthenticate()', client.reauthenticate())
    const again = new Promise((resolve) => client.on('connect', resolve, { once: true }))
    broker.disconnect('a', 0x8b)
    await again
    expect(client.stats().connects).toBe(2)
    await silent(client, 'mqwire:packet', 'packet', 'mqwire:connect')
  })

  it('a wrong password', async () => {
    const { client } = scene(`${secrets.scramPassword}x`)
    await listener.follow('connect()', client.connect())
    expect((await client.closed)?.reasonCode).toBe(0x87)
    await silent(client, 'mqwire:connecterror')
  })
})

async function served(server: Server): Promise<number> {
  endings.push(() => server.close())
  return listening(server)
}

/** A server that does one thing to whoever comes. */
const doing = (act: (socket: Socket) => void): Promise<number> =>
  served(
    createServer((socket) => {
      socket.on('error', () => undefined)
      act(socket)
    }),
  )

const login = `${secrets.urlUser}:${secrets.urlPassword}`

describe('errors of the platform', () => {
  const { username, password } = secrets
  const options: ClientOptions = { username, password, connectTimeout: 300, reconnect: false }

  it.each(['mqtt', 'mqtts', 'ws', 'wss'])('%s: nobody listens', async (scheme) => {
    const client = made(`${scheme}://${login}@127.0.0.1:1/?${secrets.query}`, options)
    await listener.follow('connect()', client.connect())
    await silent(client, 'mqwire:connecterror')
  })

  it.each(['mqtt', 'mqtts', 'ws', 'wss'])('%s: hang-up, reset, or nonsense', async (scheme) => {
    const acts: ((socket: Socket) => void)[] = [
      (socket) => socket.end(),
      (socket) => socket.resetAndDestroy(),
      (socket) => socket.end('nonsense\r\n\r\n'),
      (socket) =>
        void socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')),
      (socket) => void socket.once('data', () => socket.resetAndDestroy()),
    ]
    for (const act of acts) {
      const client = made(
        { url: `${scheme}://${login}@127.0.0.1:${await doing(act)}/?${secrets.query}` },
        options,
      )
      await listener.follow('connect()', client.connect())
      await silent(client, 'mqwire:connecterror')
    }
  })

  it.each([401, 302, 500])('ws: a handshake that is answered with %i', async (status) => {
    const heard: string[] = []
    const server = createHttpServer((request, response) => {
      heard.push(String(request.headers['cookie']), String(request.url))
      response.writeHead(status, { location: 'ws://127.0.0.1:1/' })
      response.end('no')
    })
    const port = await served(server)
    const url = `ws://${login}@127.0.0.1:${port}/mqtt?token=${secrets.query}`
    const client = made({ url, headers: { cookie: secrets.header } }, options)
    await listener.follow('connect()', client.connect())
    expect(heard.join(' ')).toMatch(new RegExp(`${secrets.header}.*${secrets.query}`))
    await silent(client, 'mqwire:connecterror')
  })

  it('an insecure endpoint is warned of, without its secrets', async () => {
    const port = await doing((socket) => socket.end())
    const client = made(
      { url: `mqtts://${login}@127.0.0.1:${port}/?${secrets.query}`, tls: { insecure: 'a test' } },
      options,
    )
    await listener.follow('connect()', client.connect())
    await silent(client, 'warning')
  })

  it('a private key and its passphrase that do not fit', async () => {
    const { wrong } = secrets
    for (const key of [wrong, `-----BEGIN PRIVATE KEY-----\n${wrong}\n-----END PRIVATE KEY-----`]) {
      const tls = { key, cert: wrong, passphrase: wrong }
      const connecting = async () => made({ url: 'mqtts://127.0.0.1:1', tls }, options).connect()
      await listener.follow('connect()', connecting())
    }
    expect([listener.heard.get('connect()'), listener.leaks]).toEqual([2, []])
  })
})

/** What making a client throws: it has this code, and no secret. */
function expectRefusal(
  code: string,
  endpoint: Endpoint | readonly Endpoint[],
  options?: ClientOptions,
): void {
  const error = thrown(() => new Client(endpoint, options))
  expect(error).toMatchObject({ code })
  expect(told(error)).not.toMatch(/canary/i)
}

describe('what is refused when the client is made', () => {
  it.each([
    'mqtt://canaryuser:canarypass@',
    'mqtt://canaryuser:canarypass@host:99999',
    'http://canaryuser:canarypass@host',
    'mqtt://canaryuser:canary%E0pass@host',
    'mqtt://canaryuser:canarypass@ho st',
    '//canaryuser:canarypass@host',
    'canaryuser:canarypass@host:1883',
  ])('a URL that is refused: %s', (url) => {
    for (const endpoint of [url, { url }, ['mqtt://ok', url]])
      expectRefusal('ERR_INVALID_BROKER_URL', endpoint)
  })

  it('options that are refused do not repeat their values', () => {
    for (const options of [
      { password: 'canary'.repeat(20_000) },
      { username: 'canary\ud800' },
      { username: ['canary'] },
      { password: { canary: 1 } },
      { credentials: 'canary' },
      { clientId: 'a', keepAlive: -1, password: 'canary' },
    ])
      expectRefusal('ERR_INVALID_OPTION', 'mqtt://h', options as never)
  })
})
