import { describe, expect, it, vi } from 'vitest'
import { Client as BrowserClient } from '../../../src/client/browser.js'
import { BaseClient } from '../../../src/client/client.js'
import { Client } from '../../../src/client/node.js'
import type { ClientOptions, Endpoint } from '../../../src/client/options/index.js'
import type { Platform } from '../../../src/client/platform.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import type { Target } from '../../../src/transport/transport.js'
import { agreeable, coded, failure, World } from './harness.js'
import { StalledTransport } from './stalled-transport.js'
import { settled } from './steps.js'

const schemes = ['mqtt', 'tcp', 'mqtts', 'ssl', 'tls', 'ws', 'wss', 'unix']

/** Dials an endpoint on a platform where only TLS takes `tls`, and only WebSocket takes `headers`; gives what the transport was to do, the error, and the CONNECT bytes as text. */
async function dialled(endpoint: Endpoint, options: ClientOptions = {}) {
  const clock = new VirtualClock()
  const targets: Target[] = []
  const transport = new StalledTransport()
  const dial = async (target: Target): Promise<StalledTransport> => {
    targets.push(target)
    return transport
  }
  const platform: Platform = {
    ...virtualPlatform(clock),
    dialler: (scheme) => (schemes.includes(scheme) ? dial : undefined),
    unsupported({ url: { protocol }, tls, headers }) {
      if (Object.keys(tls).length > 0 && !/^(mqtts|wss):$/.test(protocol)) return 'tls'
      return Object.keys(headers).length > 0 && !/^wss?:$/.test(protocol) ? 'headers' : undefined
    },
  }
  const client = new BaseClient(platform, endpoint, options)
  const error = failure(client.connect())
  await clock.settle()
  client.destroy()
  const written = Buffer.from(transport.written).toString('utf8')
  return { target: targets[0] as Target, written, error: await error }
}

const inNode = (endpoint: unknown): Client => new Client(endpoint as Endpoint)
const inBrowser = (endpoint: unknown): BrowserClient => new BrowserClient(endpoint as Endpoint)

function refused(make: (endpoint: unknown) => unknown, endpoint: unknown): MqttError {
  try {
    make(endpoint)
  } catch (error) {
    return error as MqttError
  }
  throw new Error('it was to throw')
}

describe('URL forms', () => {
  it.each([
    ['mqtt://host', 'host', ''],
    ['tcp://10.0.0.1:1883', '10.0.0.1', '1883'],
    ['mqtts://host', 'host', ''],
    ['mqtts://[2001:db8::1]', '[2001:db8::1]', ''],
    ['ws://host/mqtt', 'host', ''],
    ['wss://host:443/mqtt?x=1', 'host', ''],
    ['unix:///run/mqtt.sock', '', ''],
  ])('%s, also as an object', async (url, hostname, port) => {
    const { target } = await dialled(url)
    expect(target.url.hostname).toEqual(hostname)
    expect(target.url.port).toEqual(port)
    expect(target.protocols).toEqual(['mqtt'])
    for (const form of [new URL(url), { url }])
      expect((await dialled(form)).target.url.href).toBe(target.url.href)
  })

  it('credentials in the URL go into CONNECT, decoded, and nowhere else; options go over them', async () => {
    const { target, written } = await dialled('mqtt://us%40er:p%3Ass%C3%BC@host:1883')
    expect(target.url.href).toBe('mqtt://host:1883')
    expect(written).toMatch(/us@er.*p:ssü/)
    expect((await dialled('mqtt://only@host')).written).toContain('only')
    const over = await dialled('mqtt://urluser:urlpass@host', {
      username: 'optuser',
      password: 'optpass',
    })
    expect(over.written).toMatch(/optuser.*optpass/)
    expect(over.written).not.toContain('url')
  })

  it('the URL object of the caller is not written to', () => {
    const url = new URL('mqtt://user:pass@host')
    inNode(url).destroy()
    expect(url.href).toBe('mqtt://user:pass@host')
  })

  it.each([
    ...['', 'host', 'host:1883', 'mqtt://', 'mqtt:host', 'mqtt://host:99999', 'http://host'],
    ...['constructor://host', 'socks5://proxy:1080', 'mqtt://us%E0er@host', 'unix://'],
  ])('%s is refused', (url) => {
    expect(refused(inNode, url)).toMatchObject({
      code: 'ERR_INVALID_BROKER_URL',
      fault: 'local',
      outcome: 'not-sent',
      option: 'url',
    })
  })

  it.each([
    'ws://host/mqtt#x',
    'ws://host/mqtt#',
    'mqtt://user:pass#word@host',
    'mqtt://u:1#secret@host',
  ])(
    '%s: a fragment, which a WebSocket refuses and which often is half a password, is refused before anything is dialled',
    (url) => {
      for (const error of [refused(inNode, url), refused(inBrowser, url.replace('mqtt:', 'ws:'))]) {
        expect(error).toMatchObject({ code: 'ERR_INVALID_BROKER_URL', option: 'url' })
        expect(error.message).not.toMatch(/secret|pass|word/)
      }
    },
  )

  it('sub-protocols of which no handshake can come are refused in Node and in a browser; any token is taken', () => {
    const tokens = ['mq tt', '', 'mqtt,a', 'ü', 'a\n', 'a/b', 'a"', 5].map((token) => [token])
    const wrong = [[], ['mqtt', 'mqtt'], 'mqtt', { 0: 'mqtt' }, ...tokens]
    for (const protocols of wrong)
      for (const make of [inNode, inBrowser])
        expect(refused(make, { url: 'ws://host', protocols })).toEqual(
          coded('ERR_INVALID_OPTION', 'endpoint.protocols'),
        )
    inNode({ url: 'ws://host', protocols: ['mqtt', 'mqttv3.1', "!#$%&'*+-.^_`|~09azAZ"] }).destroy()
  })

  it.each([
    [
      inNode,
      'http://host',
      ' "http://host": no transport for http: but mqtt:, tcp:, mqtts:, ssl:, tls:, ws:, wss:, unix:',
    ],
    [
      inBrowser,
      'mqtt://host',
      ' "mqtt://host": no transport for mqtt: but wss:, ws: (WebSocket port of the broker)',
    ],
    // This scheme may be a user name.
    [inNode, 'user:pass@host', ': no scheme, as in mqtt://host or wss://host'],
    [inNode, 'host name', ' "host name": no scheme, as in mqtt://host or wss://host'],
    [inNode, 'ws://host:99999', ' "ws://host:99999": the port must be from 1 to 65535'],
  ])('%s %s: the message says what is wrong%s', (make, url, message) => {
    expect(refused(make, url).message).toBe(`invalid broker URL${message}`)
  })

  it('what is no endpoint is refused, and one of a list is named', () => {
    for (const endpoints of [undefined, null, []])
      expect(refused(inNode, endpoints).code).toBe('ERR_MISSING_BROKER')
    for (const endpoint of [
      5,
      () => 'x',
      Symbol('x'),
      {},
      { url: 5 },
      [undefined],
      [['mqtt://a']],
    ]) {
      const error = refused(inNode, endpoint)
      expect(MqttError.is(error)).toBe(true)
      expect(error.code).toMatch(/^ERR_(INVALID_OPTION|MISSING_BROKER)$/)
    }
    const list = ['mqtt://a', { url: 'mqtt://b', socket: { family: 5 } }]
    expect(refused(inNode, list)).toEqual(coded('ERR_INVALID_OPTION', 'endpoints[1].socket.family'))
  })
})

describe('settings that cannot be honoured are refused', () => {
  it.each([
    [inNode, { url: 'mqtt://h', headers: { a: 'b' } }, 'headers'],
    [inNode, { url: 'mqtt://h', tls: { servername: 'x' } }, 'tls'],
    [inNode, { url: 'ws://h', tls: { ca: 'x' } }, 'tls'],
    [inNode, { url: 'unix:///x', socket: { noDelay: true } }, 'socket'],
    [inBrowser, { url: 'wss://h', headers: { a: 'b' } }, 'headers'],
    [inBrowser, { url: 'wss://h', tls: { ca: 'x' } }, 'tls'],
    [inBrowser, { url: 'wss://h', socket: { family: 4 } }, 'socket'],
  ])('%s: %o', (make, endpoint, option) => {
    expect(refused(make, endpoint)).toEqual(coded('ERR_UNSUPPORTED_OPTION', `endpoint.${option}`))
  })

  it.each([
    [{ url: 'mqtts://h', tls: { insecure: true } }, 'tls.insecure'],
    [{ url: 'mqtts://h', tls: { insecure: '' } }, 'tls.insecure'],
    [{ url: 'mqtts://h', tls: { minVersion: 'TLSv1' } }, 'tls.minVersion'],
    [{ url: 'mqtts://h', tls: { rejectUnauthorized: false } }, 'tls.rejectUnauthorized'],
    [{ url: 'mqtt://h', keepAlive: 5 }, 'keepAlive'],
    [{ url: 'ws://h', headers: { a: 5 } }, 'headers'],
    [{ url: 'ws://h', transport: 'x' }, 'transport'],
    [{ url: 'mqtt://h', socket: { lookup: 1 } }, 'socket.lookup'],
  ])('%o', (endpoint, option) => {
    expect(refused(inNode, endpoint)).toEqual(coded('ERR_INVALID_OPTION', `endpoint.${option}`))
  })

  it('a custom transport takes any scheme and every setting', async () => {
    const given: unknown[] = []
    const transport = (...parameters: unknown[]): StalledTransport => {
      given.push(...parameters)
      return new StalledTransport()
    }
    const endpoint = { url: 'carrier-pigeon://loft', headers: { a: 'b' }, transport }
    await dialled(endpoint)
    const context = { signal: expect.any(AbortSignal) as unknown }
    expect(given).toMatchObject([endpoint, context])
  })
})

// More of lists of endpoints in failover.test.ts.
it.each<[string, () => unknown]>([
  ['throws', () => expect.fail('mine')],
  ['rejects with text', () => Promise.reject('text')],
  ['gives nothing', () => undefined],
  ['gives something else', () => ({})],
])('a transport function that %s: the next endpoint is tried', async (_what, bad) => {
  const world = await new World({}, {}, 2, (index, open) =>
    index === 1 ? open() : (bad() as never),
  ).up(agreeable)
  expect(world.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_CONNECT_FAILED' } }])
  expect(world.client.state).toBe('connected')
  await settled(world, world.client.disconnect())
  expect(world.clock.pending).toBe(0)
})

describe('what credentials() gives to dial', () => {
  const given = (endpoint: Endpoint, credentials: object) =>
    dialled(endpoint, { credentials: () => credentials })

  it('a url instead of the endpoint, with headers; its user-info is for CONNECT', async () => {
    const headers = { authorization: 'x' }
    const { target } = await given('wss://host/mqtt', { url: 'wss://other/mqtt?sign=1', headers })
    expect([target.url.href, target.headers]).toEqual(['wss://other/mqtt?sign=1', headers])
    const signed = await given('mqtt://h', { url: 'mqtt://signed:pass@other' })
    expect([signed.target.url.href, signed.written]).toEqual([
      'mqtt://other',
      expect.stringContaining('signed'),
    ])
  })

  it('headers are added to those of the endpoint', async () => {
    const endpoint = { url: 'ws://host', headers: { a: '1', b: '1' } }
    const { target } = await given(endpoint, { headers: { b: '2', c: '2' } })
    expect(target.headers).toEqual({ a: '1', b: '2', c: '2' })
  })

  it.each([
    ['headers that the transport cannot honour', 'mqtt://host', { headers: { a: '1' } }],
    [
      'a url that would drop the TLS settings of the endpoint',
      { url: 'mqtts://host', tls: { servername: 'x' } },
      { url: 'mqtt://host' },
    ],
  ])('%s fail the attempt, and are never ignored', async (_title, endpoint, credentials) => {
    const { target, error } = await given(endpoint, credentials)
    expect([target, error.code]).toEqual([undefined, 'ERR_UNSUPPORTED_OPTION'])
  })
})

it('the first client of a process, without a URL: says what is missing', async () => {
  vi.resetModules()
  const { Client: First } = await import('../../../src/client/node.js')
  expect(() => new First(undefined as never)).toThrow('missing broker')
})
