import { describe, expect, it } from 'vitest'
import type { Credentials, CredentialsContext, Endpoint } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import type { Platform } from '../../../src/client/platform/platform.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import type { Target } from '../../../src/transport/transport.js'
import { agreeable, failure, World } from './harness.js'
import { StalledTransport } from './stalled-transport.js'

const text = (value: Uint8Array | undefined): string => new TextDecoder().decode(value)

/** A client of this endpoint on a platform with TCP, TLS and WebSocket where only TLS takes `tls`, and only WebSocket takes `headers`. */
async function dialled(
  endpoint: Endpoint,
  credentials: () => unknown,
): Promise<{ targets: Target[]; error: MqttError | undefined; written: string }> {
  const clock = new VirtualClock()
  const targets: Target[] = []
  const transport = new StalledTransport()
  const platform: Platform = {
    ...virtualPlatform(clock),
    dialler: (scheme) =>
      ['mqtt', 'mqtts', 'ws', 'wss'].includes(scheme)
        ? async (target) => {
            targets.push(target)
            return transport
          }
        : undefined,
    unsupported({ url, tls, headers }) {
      if (Object.keys(tls).length > 0 && !['mqtts:', 'wss:'].includes(url.protocol)) return 'tls'
      return Object.keys(headers).length > 0 && !url.protocol.startsWith('ws') ? 'headers' : undefined
    },
  }
  const client = new BaseClient(platform, endpoint, { credentials: credentials as () => Credentials })
  let error: MqttError | undefined
  client.connect().catch((thrown: MqttError) => {
    error = thrown
  })
  await clock.settle()
  const outcome = error
  client.destroy()
  return { targets, error: outcome, written: Buffer.from(transport.written).toString('latin1') }
}

describe('credentials as a function', () => {
  it('is awaited before every attempt, and its values are on the wire', async () => {
    const contexts: CredentialsContext[] = []
    const world = new World(
      {
        username: 'static',
        password: 'static',
        credentials: async (context) => {
          contexts.push(context)
          await new Promise<void>((resolve) => world.clock.setTimer(resolve, 100))
          return { username: `user-${context.attempt}`, password: `token-${context.attempt}` }
        },
      },
      {},
      3,
    )
    world.answer = (packet) =>
      packet.type === 'connect' && packet.username !== 'user-3'
        ? { type: 'connack', sessionPresent: false, reasonCode: 0x86, properties: {} }
        : agreeable(packet)
    const connecting = world.client.connect()
    await world.clock.advance(99)
    expect(world.peers).toHaveLength(0)
    await world.clock.advance(1000)
    await connecting
    expect(world.peers.map((peer) => [peer.last('connect').username, text(peer.last('connect').password)])).toEqual([
      ['user-1', 'token-1'],
      ['user-2', 'token-2'],
      ['user-3', 'token-3'],
    ])
    expect(contexts.map(({ attempt, endpoint, lastError }) => [attempt, endpoint, lastError?.reasonCode])).toEqual([
      [1, 'memory://peer-0', undefined],
      // Asked once more with fresh credentials, then the next one.
      [2, 'memory://peer-0', 0x86],
      [3, 'memory://peer-1', 0x86],
    ])
    for (const { signal } of contexts) expect(signal).toBeInstanceOf(AbortSignal)
  })

  it('what it leaves out comes from the options; null-like answers are fine', async () => {
    for (const answer of [undefined, {}, { username: undefined }] as Credentials[]) {
      const world = new World({ username: 'u', password: 'p', credentials: () => answer })
      world.answer = agreeable
      await Promise.all([world.client.connect(), world.settle()])
      expect([world.peer.last('connect').username, text(world.peer.last('connect').password)]).toEqual(['u', 'p'])
    }
  })

  it('a throw or a rejection fails that attempt only', async () => {
    const cause = new Error('vault is sealed')
    for (const credentials of [
      ({ attempt }: CredentialsContext) => {
        if (attempt === 1) throw cause
        return {}
      },
      ({ attempt }: CredentialsContext) => (attempt === 1 ? Promise.reject(cause) : Promise.resolve({})),
    ]) {
      const world = new World({ credentials }, {}, 2)
      world.answer = agreeable
      await Promise.all([world.client.connect(), world.settle()])
      expect(world.seen('connecterror')).toMatchObject([{ attempt: 1, error: { code: 'ERR_CONNECT_FAILED', fault: 'local', cause } }])
      expect(world.peers).toHaveLength(1)
      expect(world.client.state).toBe('connected')
    }
  })

  it('its signal aborts with disconnect(), and with the caller', async () => {
    for (const stop of ['disconnect', 'abort'] as const) {
      const controller = new AbortController()
      let given: AbortSignal | undefined
      const world = new World({
        credentials: ({ signal }) => {
          given = signal
          return new Promise(() => undefined)
        },
      })
      const connecting = failure(world.client.connect({ signal: controller.signal }))
      await world.settle()
      if (stop === 'disconnect') world.client.disconnect()
      else controller.abort()
      expect(given?.aborted).toBe(true)
      expect((await connecting).code).toBe(stop === 'disconnect' ? 'ERR_CLOSED' : 'ERR_ABORTED')
      await world.settle()
      expect(world.peers).toHaveLength(0)
      expect(world.clock.pending).toBe(0)
    }
  })

  it.each([
    ['username of the wrong type', { username: 5 }],
    ['username too long', { username: 'x'.repeat(65_536) }],
    ['username with a lone surrogate', { username: 'a\ud800' }],
    ['password of the wrong type', { password: 5 }],
    ['password too long', { password: new Uint8Array(65_536) }],
    ['headers of the wrong type', { headers: 5 }],
    ['header of the wrong type', { headers: { a: 5 } }],
    ['url of the wrong type', { url: 5 }],
    ['url that is none', { url: 'nowhere' }],
    ['a field that is none', { user: 'x' }],
    ['no object', 'token'],
    ['a number', 5],
  ])('%s: that attempt fails, typed, and nothing is sent', async (_name, answer) => {
    const world = new World({ credentials: ({ attempt }) => (attempt === 1 ? (answer as Credentials) : {}) }, {}, 2)
    world.answer = agreeable
    await Promise.all([world.client.connect(), world.settle()])
    const [first] = world.seen('connecterror')
    expect(MqttError.is(first?.error)).toBe(true)
    expect(first?.error).toMatchObject({
      fault: 'local',
      code: expect.stringMatching(/^ERR_(INVALID_OPTION|INVALID_BROKER_URL|CONNECT_FAILED)$/) as string,
    })
    for (const peer of world.peers.slice(0, -1)) {
      expect(peer.bytes).toEqual([])
      expect(peer.ended).toBeDefined()
    }
    expect(world.client.state).toBe('connected')
    await Promise.all([world.client.disconnect(), world.settle()])
    expect(world.clock.pending).toBe(0)
  })

  it('url: dialled instead, with its own user-info, for this attempt', async () => {
    const { targets, written } = await dialled('wss://host/mqtt', () => ({ url: 'wss://other/mqtt?signature=1', headers: { authorization: 'x' } }))
    expect(targets.map((target) => target.url.href)).toEqual(['wss://other/mqtt?signature=1'])
    expect(targets[0]?.headers).toEqual({ authorization: 'x' })
    expect(written).not.toBe('')
    const login = await dialled('mqtt://host', () => ({ url: 'mqtt://signeduser:signedpass@other' }))
    expect(login.targets[0]?.url.href).toBe('mqtt://other')
    expect(login.written).toContain('signeduser')
  })

  it('headers are added to those of the endpoint', async () => {
    const { targets } = await dialled({ url: 'ws://host', headers: { a: '1', b: '1' } }, () => ({ headers: { b: '2', c: '2' } }))
    expect(targets[0]?.headers).toEqual({ a: '1', b: '2', c: '2' })
  })

  it('headers that the platform or the transport cannot honour fail the attempt, never ignored', async () => {
    const { targets, error } = await dialled('mqtt://host', () => ({ headers: { a: '1' } }))
    expect(error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION' })
    expect(targets).toEqual([])
  })

  it('a url that would drop the TLS settings of the endpoint fails the attempt', async () => {
    const { targets, error } = await dialled({ url: 'mqtts://host', tls: { servername: 'x' } }, () => ({ url: 'mqtt://host' }))
    expect(error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION' })
    expect(targets).toEqual([])
  })

  it('url and headers reach a custom transport', async () => {
    const clock = new VirtualClock()
    const given: unknown[] = []
    const transport = (endpoint: unknown): StalledTransport => {
      given.push(endpoint)
      return new StalledTransport()
    }
    const client = new BaseClient(virtualPlatform(clock), { url: 'x://host/a', transport }, { credentials: () => ({ url: 'x://other/b' }) })
    failure(client.connect())
    await clock.settle()
    client.destroy()
    expect(String((given[0] as { url: unknown }).url)).toBe('x://other/b')
  })
})

it('user-info of a URL that CONNECT cannot hold is refused before anything is dialled', async () => {
  let dials = 0
  const clock = new VirtualClock()
  const transports: StalledTransport[] = []
  const make = (): BaseClient =>
    new BaseClient(
      virtualPlatform(clock),
      {
        url: `x://${'u'.repeat(65_536)}@host`,
        transport: () => {
          dials += 1
          const transport = new StalledTransport()
          transports.push(transport)
          return transport
        },
      },
      {},
    )
  let error: MqttError | undefined
  let client: BaseClient | undefined
  try {
    client = make()
    const connecting = failure(client.connect())
    await clock.settle()
    error = await connecting
  } catch (thrown) {
    error = thrown as MqttError
  }
  expect(MqttError.is(error)).toBe(true)
  expect(error).toMatchObject({ fault: 'local', code: expect.stringMatching(/^ERR_INVALID_(OPTION|BROKER_URL)$/) as string })
  for (const transport of transports) expect(transport.destroyed).toBeDefined()
  expect(transports.flatMap((transport) => transport.written)).toEqual([])
  expect(dials).toBeLessThanOrEqual(1)
  expect(clock.pending).toBe(0)
})
