import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../src/client/api/index.js'
import { Client as BrowserClient } from '../../../src/client/browser.js'
import { BaseClient } from '../../../src/client/client.js'
import { Client } from '../../../src/client/node.js'
import type { Platform } from '../../../src/client/platform/platform.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import type { Target } from '../../../src/transport/transport.js'
import { agreeable, failure, World } from './harness.js'
import { StalledTransport } from './stalled-transport.js'

const schemes = ['mqtt', 'tcp', 'mqtts', 'ssl', 'tls', 'ws', 'wss', 'unix']

/** Dials endpoints on a platform that notes what it is to dial; gives what the transports were told, and the CONNECT bytes. */
async function dialled(endpoint: Endpoint): Promise<{ target: Target; written: Buffer }> {
  const clock = new VirtualClock()
  const targets: Target[] = []
  const transport = new StalledTransport()
  const platform: Platform = {
    ...virtualPlatform(clock),
    dialler: (scheme) =>
      schemes.includes(scheme)
        ? async (target) => {
            targets.push(target)
            return transport
          }
        : undefined,
  }
  const client = new BaseClient(platform, endpoint, {})
  failure(client.connect())
  await clock.settle()
  client.destroy()
  return { target: targets[0] as Target, written: Buffer.from(transport.written) }
}

function thrown(make: () => unknown): MqttError {
  try {
    make()
  } catch (error) {
    return error as MqttError
  }
  throw new Error('it was to throw')
}

describe('URL forms', () => {
  it.each([
    ['mqtt://host', 'host', ''],
    ['mqtt://host:1884', 'host', '1884'],
    ['tcp://10.0.0.1:1883', '10.0.0.1', '1883'],
    ['mqtts://host', 'host', ''],
    ['ssl://host:8884', 'host', '8884'],
    ['tls://host', 'host', ''],
    ['mqtt://[::1]:1883', '[::1]', '1883'],
    ['mqtts://[2001:db8::1]', '[2001:db8::1]', ''],
    ['ws://host/mqtt', 'host', ''],
    ['wss://host:443/mqtt?x=1', 'host', ''],
    ['unix:///run/mqtt.sock', '', ''],
  ])('%s', async (url, hostname, port) => {
    const { target } = await dialled(url)
    expect([target.url.hostname, target.url.port]).toEqual([hostname, port])
    expect(target.protocols).toEqual(['mqtt'])
    const object = await dialled(new URL(url))
    expect(object.target.url.href).toBe(target.url.href)
    const settings = await dialled({ url })
    expect(settings.target.url.href).toBe(target.url.href)
  })

  it('credentials in the URL go into CONNECT, decoded, and nowhere else', async () => {
    const { target, written } = await dialled('mqtt://us%40er:p%3Ass%C3%BC@host:1883')
    expect(target.url.href).toBe('mqtt://host:1883')
    expect(written.toString('utf8')).toContain('us@er')
    expect(written.toString('utf8')).toContain('p:ssü')
    const [user] = [await dialled('mqtt://only@host')]
    expect(user.written.toString('utf8')).toContain('only')
  })

  it('options go over the credentials of the URL', async () => {
    const clock = new VirtualClock()
    const transport = new StalledTransport()
    const client = new BaseClient(
      virtualPlatform(clock),
      { url: 'x://urluser:urlpass@host', transport: () => transport },
      { username: 'optuser', password: 'optpass' },
    )
    failure(client.connect())
    await clock.settle()
    const text = Buffer.from(transport.written).toString('latin1')
    expect(text).toContain('optuser')
    expect(text).toContain('optpass')
    expect(text).not.toContain('url')
    client.destroy()
  })

  it('the URL object of the caller is not written to, and read once', () => {
    const url = new URL('mqtt://user:pass@host')
    const client = new Client(url)
    expect(url.href).toBe('mqtt://user:pass@host')
    client.destroy()
  })

  it.each([
    ['no URL', 'ERR_INVALID_BROKER_URL'],
    ['', 'ERR_INVALID_BROKER_URL'],
    ['host', 'ERR_INVALID_BROKER_URL'],
    ['host:1883', 'ERR_INVALID_BROKER_URL'],
    ['mqtt://', 'ERR_INVALID_BROKER_URL'],
    ['mqtt:host', 'ERR_INVALID_BROKER_URL'],
    ['mqtt://host:99999', 'ERR_INVALID_BROKER_URL'],
    ['http://host', 'ERR_INVALID_BROKER_URL'],
    ['mqtt+tls://host', 'ERR_INVALID_BROKER_URL'],
    ['constructor://host', 'ERR_INVALID_BROKER_URL'],
    ['socks5://proxy:1080', 'ERR_INVALID_BROKER_URL'],
    ['mqtt://us%E0er@host', 'ERR_INVALID_BROKER_URL'],
    ['unix://', 'ERR_INVALID_BROKER_URL'],
  ])('%s is refused', (url, code) => {
    expect(thrown(() => new Client(url))).toMatchObject({ code, fault: 'local', outcome: 'not-sent', option: 'url' })
  })

  it.each(['ws://host/mqtt#x', 'ws://host/mqtt#', 'mqtt://user:pass#word@host', 'mqtt://u:1#secret@host'])(
    '%s: a fragment, which a WebSocket refuses and which often is half a password, is refused before anything is dialled',
    (url) => {
      for (const make of [() => new Client(url), () => new BrowserClient(url.replace('mqtt:', 'ws:'))]) {
        const error = thrown(make)
        expect(error).toMatchObject({ code: 'ERR_INVALID_BROKER_URL', option: 'url' })
        expect(error.message).not.toMatch(/secret|pass|word/)
      }
    },
  )

  it.each([
    [[]],
    [['mq tt']],
    [['mqtt', 'mqtt']],
    [['']],
    [['mqtt', 'a,b']],
    [['ü']],
    [['a\n']],
    [['a/b']],
    [['a"']],
    [[5]],
    ['mqtt'],
    [{ 0: 'mqtt' }],
  ])('the sub-protocols %j, of which no handshake can come, are refused in Node and in a browser', (protocols) => {
    for (const make of [
      () => new Client({ url: 'ws://host', protocols: protocols as never }),
      () => new BrowserClient({ url: 'ws://host', protocols: protocols as never }),
    ])
      expect(thrown(make)).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'endpoint.protocols' })
  })

  it("sub-protocols may be any token: all of HTTP's characters", () => {
    new Client({ url: 'ws://host', protocols: ['mqtt', 'mqttv3.1', "!#$%&'*+-.^_`|~09azAZ"] }).destroy()
  })

  it('the scheme that has no transport is named; where it may be a user name, the form is', () => {
    expect(thrown(() => new Client('http://host')).message).toBe(
      'invalid broker URL "http://host": no transport for http: but mqtt:, tcp:, mqtts:, ssl:, tls:, ws:, wss:, unix:',
    )
    expect(thrown(() => new BrowserClient('mqtt://host')).message).toBe(
      'invalid broker URL "mqtt://host": no transport for mqtt: but wss:, ws: (WebSocket port of the broker)',
    )
    expect(thrown(() => new Client('user:pass@host')).message).toBe('invalid broker URL: no scheme, as in mqtt://host or wss://host')
    // Neither can be parsed.
    expect(thrown(() => new Client('host name')).message).toBe('invalid broker URL "host name": no scheme, as in mqtt://host or wss://host')
    expect(thrown(() => new Client('ws://host:99999')).message).toBe('invalid broker URL "ws://host:99999": the port must be from 1 to 65535')
  })

  it('no endpoint at all', () => {
    for (const endpoints of [undefined, null, []] as never[]) expect(thrown(() => new Client(endpoints)).code).toBe('ERR_MISSING_BROKER')
  })

  it.each([[5], [true], [() => 'x'], [Symbol('x')], [{}], [{ url: 5 }], [{ url: undefined }], [[undefined]], [[['mqtt://a']]]])(
    '%s is no endpoint',
    (endpoint) => {
      const error = thrown(() => new Client(endpoint as never))
      expect(MqttError.is(error)).toBe(true)
      expect(error.code).toMatch(/^ERR_(INVALID_OPTION|MISSING_BROKER)$/)
    },
  )

  it('one bad endpoint of a list is named', () => {
    expect(thrown(() => new Client(['mqtt://a', { url: 'mqtt://b', socket: { family: 5 as never } }]))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option: 'endpoints[1].socket.family',
    })
  })
})

describe('settings that cannot be honoured are refused', () => {
  it.each([
    [{ url: 'mqtt://h', headers: { a: 'b' } }, 'endpoint.headers'],
    [{ url: 'mqtt://h', tls: { servername: 'x' } }, 'endpoint.tls'],
    [{ url: 'ws://h', tls: { ca: 'x' } }, 'endpoint.tls'],
    [{ url: 'unix:///x', socket: { noDelay: true } }, 'endpoint.socket'],
  ] as [Endpoint, string][])('Node: %o', (endpoint, option) => {
    expect(thrown(() => new Client(endpoint))).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option })
  })

  it.each([
    [{ url: 'wss://h', headers: { a: 'b' } }, 'endpoint.headers'],
    [{ url: 'wss://h', tls: { ca: 'x' } }, 'endpoint.tls'],
    [{ url: 'wss://h', socket: { family: 4 } }, 'endpoint.socket'],
  ] as [Endpoint, string][])('browser: %o', (endpoint, option) => {
    expect(thrown(() => new BrowserClient(endpoint))).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option })
  })

  it('browser: schemes other than ws and wss', () => {
    for (const url of ['mqtt://h', 'mqtts://h', 'unix:///x']) expect(thrown(() => new BrowserClient(url)).code).toBe('ERR_INVALID_BROKER_URL')
  })

  it.each([
    [{ url: 'mqtts://h', tls: { insecure: true } }, 'endpoint.tls.insecure'],
    [{ url: 'mqtts://h', tls: { insecure: '' } }, 'endpoint.tls.insecure'],
    [{ url: 'mqtts://h', tls: { minVersion: 'TLSv1' } }, 'endpoint.tls.minVersion'],
    [{ url: 'mqtts://h', tls: { rejectUnauthorized: false } }, 'endpoint.tls.rejectUnauthorized'],
    [{ url: 'mqtt://h', keepAlive: 5 }, 'endpoint.keepAlive'],
    [{ url: 'ws://h', headers: { a: 5 } }, 'endpoint.headers'],
    [{ url: 'ws://h', protocols: 'mqtt' }, 'endpoint.protocols'],
    [{ url: 'ws://h', transport: 'x' }, 'endpoint.transport'],
    [{ url: 'mqtt://h', socket: { lookup: 1 } }, 'endpoint.socket.lookup'],
  ])('%o', (endpoint, option) => {
    expect(thrown(() => new Client(endpoint as never))).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
  })

  it('a custom transport takes any scheme and every setting', async () => {
    const given: unknown[] = []
    const clock = new VirtualClock()
    const endpoint = {
      url: 'carrier-pigeon://loft',
      headers: { a: 'b' },
      transport: (...parameters: unknown[]) => {
        given.push(...parameters)
        return new StalledTransport()
      },
    }
    const client = new BaseClient(virtualPlatform(clock), endpoint, {})
    failure(client.connect())
    await clock.settle()
    expect(given[0]).toBe(endpoint)
    expect(given[1]).toMatchObject({ signal: expect.any(AbortSignal) as unknown })
    client.destroy()
  })
})

describe('the first round', () => {
  const down = (index: number): Error => Object.assign(new Error(`down ${index}`), { code: 'ECONNREFUSED' })

  /** Endpoints of which only some can be dialled. */
  function round(up: readonly boolean[]): { world: World; tried: number[] } {
    const tried: number[] = []
    const world = new World({}, {}, up.length, (index, open) => {
      tried.push(index)
      if (up[index] !== true) throw down(index)
      return open()
    })
    world.answer = agreeable
    return { world, tried }
  }

  it('all down: tried in order, once each, with one cause for each', async () => {
    const { world, tried } = round([false, false, false])
    const error = await failure(world.client.connect())
    expect(tried).toEqual([0, 1, 2])
    expect(error).toMatchObject({ code: 'ERR_CONNECT_FAILED', fault: 'remote' })
    const causes = (error.cause as AggregateError).errors as MqttError[]
    expect(causes.map((cause) => [cause.code, (cause.cause as Error).message])).toEqual(
      [0, 1, 2].map((index) => ['ERR_CONNECT_FAILED', `down ${index}`]),
    )
    expect(world.seen('connecterror').map(({ attempt, endpoint, error: one }) => [attempt, endpoint, one])).toEqual(
      causes.map((cause, index) => [index + 1, `memory://peer-${index}`, cause]),
    )
    expect(world.seen('dial')).toEqual([0, 1, 2].map((index) => ({ attempt: index + 1, endpoint: `memory://peer-${index}` })))
    expect(await world.client.closed).toBe(error)
    expect(world.clock.pending).toBe(0)
  })

  it('only the last up', async () => {
    const { world, tried } = round([false, false, true])
    await Promise.all([world.client.connect(), world.settle()])
    expect(tried).toEqual([0, 1, 2])
    expect(world.seen('connect')).toMatchObject([{ endpoint: 'memory://peer-2' }])
    expect(world.seen('connecterror')).toHaveLength(2)
  })

  it('the first up: the others are left alone', async () => {
    const { world, tried } = round([true, true])
    await Promise.all([world.client.connect(), world.settle()])
    expect(tried).toEqual([0])
    expect(world.seen('connecterror')).toEqual([])
  })

  it('a refusal, silence and a bad packet, then one that works: a clean start for each', async () => {
    const world = new World({ clientId: 'a', username: 'u', will: { topic: 'w' } }, {}, 4, (index, open) => {
      world.answer = [
        (): never[] => [],
        () => ({ type: 'connack', sessionPresent: false, reasonCode: 0x87, properties: {} }) as const,
        () => ({ type: 'pingresp' }) as const,
        agreeable,
      ][index]
      return open()
    })
    const connecting = world.client.connect()
    await world.clock.advance(10_000)
    await connecting
    expect(world.seen('connecterror').map(({ error }) => error.code)).toEqual(['ERR_CONNECT_TIMEOUT', 'ERR_CONNECT_REFUSED', 'ERR_UNEXPECTED_PACKET'])
    expect(world.peers).toHaveLength(4)
    for (const peer of world.peers) expect(peer.bytes).toEqual(world.peers[0]?.bytes)
    for (const peer of world.peers.slice(0, 3)) expect(peer.ended).toBeDefined()
    expect(world.client.state).toBe('connected')
    expect(world.seen('state')).toHaveLength(2)
    const publishing = world.client.publish('a', 'b', { qos: 1 })
    await world.settle()
    await publishing
    await Promise.all([world.client.disconnect(), world.settle()])
    expect(world.clock.pending).toBe(0)
  })

  it('connectTimeout is for each endpoint', async () => {
    const world = new World({ connectTimeout: 1000 }, {}, 3, () => new Promise<never>(() => undefined))
    const connecting = failure(world.client.connect())
    await world.clock.advance(2999)
    expect(world.client.state).toBe('connecting')
    await world.clock.advance(1)
    const error = await connecting
    expect(((error.cause as AggregateError).errors as MqttError[]).map((one) => one.code)).toEqual(Array(3).fill('ERR_CONNECT_TIMEOUT'))
  })

  it('a transport function that throws, or gives something else', async () => {
    for (const bad of [
      () => {
        throw new TypeError('mine')
      },
      () => Promise.reject('text'),
      () => undefined,
      () => ({}),
    ] as (() => never)[]) {
      const world = new World({}, {}, 2, (index, open) => {
        if (index === 1) return open()
        return bad()
      })
      world.answer = agreeable
      await Promise.all([world.client.connect(), world.settle()])
      expect(world.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_CONNECT_FAILED' } }])
      expect(world.client.state).toBe('connected')
      await Promise.all([world.client.disconnect(), world.settle()])
      expect(world.clock.pending).toBe(0)
    }
  })
})
