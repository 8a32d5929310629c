import { describe, expect, it } from 'vitest'
import type { AuthMechanism, ClientOptions } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, failure } from './harness.js'
import { Rig, reconnect, refusing } from './rig.js'
import { asking, bytes, text, toy } from './toy-auth.js'

/** What a connect() that is to fail rejects with. */
async function refused(rig: Rig): Promise<Awaited<ReturnType<typeof failure>>> {
  return Promise.all([failure(rig.client.connect()), rig.settle()]).then(([error]) => error)
}

describe('an exchange', () => {
  it('CONNECT, AUTH 0x18 both ways, CONNACK: in order, data exact [MQTT-4.12.0-2] [MQTT-4.12.0-3]', async () => {
    const { auth, calls } = toy()
    const rig = await new Rig({ auth }, { behave: () => asking('one', 'two') }).up()
    const { received } = rig.peer
    expect(received.map(({ type }) => type)).toEqual(['connect', 'auth', 'auth'])
    expect(received.map((packet) => 'properties' in packet && text(packet.properties.authenticationData))).toEqual(['hello', '<one>', '<two>'])
    for (const packet of received) expect(packet).toMatchObject({ properties: { authenticationMethod: 'toy' } })
    for (const packet of rig.peer.all('auth')) expect(packet.reasonCode).toBe(0x18)
    expect(calls.map(({ name, data }) => [name, data])).toEqual([
      ['start', undefined],
      ['continue', 'one'],
      ['continue', 'two'],
      ['success', 'bye'],
    ])
    for (const { context } of calls) expect(context).toMatchObject({ attempt: 1, endpoint: 'x://a', reauthentication: false })
    expect(calls[0]?.context.signal).toBeInstanceOf(AbortSignal)
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('the bytes as they are on the wire', async () => {
    const { auth } = toy()
    const rig = await new Rig({ auth }, { behave: () => asking('1') }).up()
    const all = Buffer.from(rig.peer.bytes).toString('hex')
    // CONNECT: Authentication Method 0x15, Authentication Data 0x16.
    expect(all).toContain(`150003${Buffer.from('toy').toString('hex')}160005${Buffer.from('hello').toString('hex')}`)
    // AUTH, Remaining Length 14, 0x18, property length 12.
    expect(all).toMatch(new RegExp(`f00e180c150003${Buffer.from('toy').toString('hex')}160003${Buffer.from('<1>').toString('hex')}$`))
    await rig.finish()
  })

  it('without a round: CONNACK may follow CONNECT at once; success is optional', async () => {
    const { auth, calls } = toy({ success: undefined })
    const rig = await new Rig({ auth }, { behave: () => asking() }).up()
    expect(calls.map(({ name }) => name)).toEqual(['start'])
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it.each([
    ['text', 'grüße', 'grüße'],
    ['bytes', bytes('raw'), 'raw'],
    ['a view', new Uint8Array([120, 121, 122]).subarray(1), 'yz'],
    ['an ArrayBuffer', bytes('buffer').buffer, 'buffer'],
    ['nothing', undefined, undefined],
    ['a promise', Promise.resolve('late'), 'late'],
    ['no bytes', new Uint8Array(0), ''],
  ])('data as %s', async (_name, given, onWire) => {
    const { auth } = toy({ start: () => given as string, continue: () => given as string })
    const rig = await new Rig({ auth }, { behave: () => asking('x') }).up()
    expect(text(rig.peer.last('connect').properties.authenticationData)).toBe(onWire)
    expect(text(rig.peer.last('auth').properties.authenticationData)).toBe(onWire)
    await rig.finish()
  })

  it('a mechanism may be an object with state of its own', async () => {
    class Counting implements AuthMechanism {
      readonly method = 'toy'
      #count = 0
      start(): string {
        this.#count += 1
        return `start ${this.#count}`
      }
      continue(): string {
        return 'more'
      }
    }
    const rig = await new Rig({ auth: new Counting() }, { behave: () => asking() }).up()
    rig.behave = () => asking()
    await rig.cut()
    await rig.advance(1000)
    expect(rig.peers.map((peer) => text(peer.last('connect').properties.authenticationData))).toEqual(['start 1', 'start 2'])
    await rig.finish()
  })

  it('every connection has an exchange of its own, with the number of the attempt', async () => {
    const { auth, calls } = toy()
    const rig = await new Rig({ auth }, { behave: () => asking('q') }).up()
    rig.behave = (_host, dial) => (dial === 2 ? refusing(0x88) : asking('q'))
    await rig.cut()
    await rig.advance(3000)
    expect(rig.client.state).toBe('connected')
    expect(calls.filter(({ name }) => name === 'start').map(({ context }) => context.attempt)).toEqual([1, 2, 3])
    await rig.finish()
  })

  it('until CONNACK nothing leaves but AUTH [MQTT-3.1.2-30]', async () => {
    const { auth } = toy()
    const rig = new Rig({ auth }, { behave: () => (packet) => (packet.type === 'connect' ? challenge('one') : undefined) })
    failure(rig.client.connect())
    rig.client.subscription('s')
    failure(rig.client.publish('t', 'x', { qos: 1 }))
    failure(rig.client.unsubscribe('u'))
    await rig.settle()
    expect(rig.client.post('t', 'x')).toBe(false)
    await rig.advance(5000)
    expect(rig.peer.received.map(({ type }) => type)).toEqual(['connect', 'auth'])
    await rig.finish()
  })

  it('nothing is read, and nobody is told, before success() has spoken', async () => {
    let speak: () => void = () => undefined
    const { auth } = toy({
      success: () =>
        new Promise<void>((resolve) => {
          speak = resolve
        }),
    })
    const rig = new Rig({ auth }, { behave: () => asking() })
    const subscription = rig.client.subscription('t')
    const connecting = rig.client.connect()
    await rig.settle()
    rig.peer.send({ type: 'publish', topic: 't', payload: bytes('early'), qos: 0, retain: false, dup: false, properties: {} })
    await rig.settle()
    expect(rig.client.state).toBe('connecting')
    expect(rig.seen('connect')).toEqual([])
    expect(subscription.size).toBe(0)
    expect(rig.peer.received.map(({ type }) => type)).toEqual(['connect'])
    speak()
    await rig.settle()
    await connecting
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })
})

function challenge(data: string, method = 'toy'): ReturnType<Answer> {
  return { type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: method, authenticationData: bytes(data) } }
}

describe('a mechanism that fails', () => {
  const cause = new Error('no ticket')
  const boom = (): never => {
    throw cause
  }
  const late = (): Promise<never> => Promise.reject(cause)

  it.each([
    ['throws', boom],
    ['rejects', late],
  ])('start %s: not a byte leaves', async (_name, start) => {
    const rig = new Rig({ auth: toy({ start }).auth }, { behave: () => asking() })
    expect(await refused(rig)).toMatchObject({ code: 'ERR_AUTH_FAILED', cause })
    expect(rig.peers.flatMap((peer) => peer.bytes)).toEqual([])
    expect(rig.open).toBe(0)
    expect(rig.clock.pending).toBe(0)
  })

  it.each([
    ['throws', boom],
    ['rejects', late],
  ])('continue %s: the socket is closed without a further byte', async (_name, proceed) => {
    const rig = new Rig({ auth: toy({ continue: proceed }).auth }, { behave: () => asking('one') })
    expect(await refused(rig)).toMatchObject({ code: 'ERR_AUTH_FAILED', cause })
    expect(rig.peer.received.map(({ type }) => type)).toEqual(['connect'])
    expect(rig.peer.ended).toBeDefined()
    expect(rig.clock.pending).toBe(0)
  })

  it.each([
    ['throws', boom],
    ['rejects', late],
  ])('success %s (the server is not who it says): no connect, the socket is closed', async (_name, success) => {
    const rig = new Rig({ auth: toy({ success }).auth }, { behave: () => asking() })
    expect(await refused(rig)).toMatchObject({ code: 'ERR_AUTH_FAILED', cause })
    expect(rig.seen('connect')).toEqual([])
    expect(rig.peer.received.map(({ type }) => type)).toEqual(['connect'])
    expect(rig.peer.ended).toBeDefined()
    expect(rig.clock.pending).toBe(0)
  })

  it.each([5, true, {}, null, Promise.resolve(5)])('what is no data (%s) fails the exchange', async (given) => {
    for (const name of ['start', 'continue'] as const) {
      const rig = new Rig({ auth: toy({ [name]: () => given }).auth }, { behave: () => asking('one') })
      expect((await refused(rig)).code).toBe('ERR_AUTH_FAILED')
      expect(rig.peers.flatMap((peer) => peer.all('auth'))).toEqual([])
      expect(rig.open).toBe(0)
    }
  })

  it('one that never answers: connectTimeout, signal aborted, nothing left', async () => {
    for (const name of ['start', 'continue', 'success'] as const) {
      const signals: AbortSignal[] = []
      const auth = toy({
        [name]: (...given: unknown[]) => {
          signals.push((given.at(-1) as { signal: AbortSignal }).signal)
          return new Promise(() => undefined)
        },
      }).auth
      const rig = new Rig({ auth, connectTimeout: 2000 }, { behave: () => asking('one') })
      const error = failure(rig.client.connect())
      await rig.advance(2000)
      expect((await error).code).toBe('ERR_CONNECT_TIMEOUT')
      expect(signals.map((signal) => signal.aborted)).toEqual([true])
      expect(rig.open).toBe(0)
      expect(rig.clock.pending).toBe(0)
    }
  })

  it('after a loss it fails that attempt only', async () => {
    let broken = false
    const rig = await new Rig({ auth: toy({ start: () => (broken ? boom() : 'x') }).auth }, { behave: () => asking() }).up()
    broken = true
    await rig.cut()
    await rig.advance(3000)
    expect(rig.seen('connecterror').map(({ error }) => error.code)).toEqual(['ERR_AUTH_FAILED', 'ERR_AUTH_FAILED'])
    broken = false
    rig.behave = () => asking()
    await rig.advance(4000)
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('an answer that comes after the connection is gone leaves on no other', async () => {
    const answers: ((value: string) => void)[] = []
    const { auth } = toy({
      continue: () =>
        new Promise<string>((resolve) => {
          answers.push(resolve)
        }),
    })
    const rig = new Rig({ auth, firstConnect: 'wait' }, { behave: (_host, dial) => (dial === 1 ? asking('one') : asking()) })
    const connecting = rig.client.connect()
    await rig.settle()
    await rig.cut()
    await rig.advance(1000)
    await connecting
    answers[0]?.('too late')
    await rig.settle()
    expect(rig.peers.map((peer) => peer.all('auth').length)).toEqual([0, 0])
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })
})

describe('a server that does not keep to it', () => {
  it('AUTH when no method was given: before CONNACK the connection just ends', async () => {
    const rig = new Rig({}, { behave: () => (packet) => (packet.type === 'connect' ? challenge('one') : undefined) })
    expect(await refused(rig)).toMatchObject({ reasonCode: 0x82, fault: 'remote' })
    expect(rig.peer.received.map(({ type }) => type)).toEqual(['connect'])
    expect(rig.open).toBe(0)
  })

  it('AUTH when no method was given: after CONNACK DISCONNECT 0x82', async () => {
    const rig = await new Rig().up()
    rig.peer.send({ type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'toy' } })
    await rig.settle()
    expect(rig.peer.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
    expect(rig.seen('disconnect')).toMatchObject([{ cause: { reasonCode: 0x82, fault: 'remote' } }])
    await rig.finish()
  })

  it('AUTH on 3.1.1 ends the connection', async () => {
    const rig = new Rig({ protocolVersion: 4, reconnect: false }, { version: 4 })
    await rig.up()
    rig.peer.sendBytes('f0 00')
    await rig.settle()
    expect((await rig.client.closed)?.code).toMatch(/^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|UNEXPECTED_PACKET)$/)
    expect(rig.peer.all('disconnect')).toEqual([])
    expect(rig.peer.ended).toBeDefined()
  })

  it('AUTH with another method [MQTT-4.12.0-5]', async () => {
    const rig = new Rig({ auth: toy().auth }, { behave: () => (packet) => (packet.type === 'connect' ? challenge('one', 'plain') : undefined) })
    expect(await refused(rig)).toMatchObject({ code: 'ERR_PROTOCOL_ERROR', reasonCode: 0x82 })
    expect(rig.peer.all('auth')).toEqual([])
  })

  it('AUTH 0x18 without a method', async () => {
    const rig = new Rig({ auth: toy().auth }, { behave: () => () => undefined })
    const error = failure(rig.client.connect())
    await rig.settle()
    rig.peer.sendBytes('f0 02 18 00')
    await rig.settle()
    expect((await error).reasonCode).toBe(0x82)
    expect(rig.peer.all('auth')).toEqual([])
  })

  it.each([
    ['another method', { authenticationMethod: 'plain' }],
    ['no method', {}],
  ])('CONNACK with %s: no downgrade, DISCONNECT 0x82 [MQTT-4.12.0-5]', async (_name, properties) => {
    const { auth, calls } = toy()
    const rig = new Rig({ auth }, { behave: () => (packet) => (packet.type === 'connect' ? { ...accepted, properties } : undefined) })
    expect(await refused(rig)).toMatchObject({ code: 'ERR_PROTOCOL_ERROR', reasonCode: 0x82 })
    expect(rig.peer.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
    expect(calls.map(({ name }) => name)).toEqual(['start'])
    expect(rig.seen('connect')).toEqual([])
  })

  it('no more than 16 rounds', async () => {
    const { auth, calls } = toy()
    const rig = new Rig(
      { auth },
      { behave: () => (packet) => (packet.type === 'connect' || packet.type === 'auth' ? challenge('again') : undefined) },
    )
    expect(await refused(rig)).toMatchObject({ code: 'ERR_PROTOCOL_ERROR', reasonCode: 0x82 })
    expect(calls.filter(({ name }) => name === 'continue')).toHaveLength(16)
    expect(rig.open).toBe(0)
  })

  it('a flood of AUTH in one write: as many answers as are allowed, at most', async () => {
    const { auth, calls } = toy()
    const rig = new Rig({ auth }, { behave: () => () => undefined })
    const error = failure(rig.client.connect())
    await rig.settle()
    rig.peer.send(...Array.from({ length: 1000 }, () => challenge('x') as { type: 'auth'; reasonCode: 0x18; properties: object }))
    await rig.settle()
    expect((await error).reasonCode).toBe(0x82)
    expect(calls.length).toBeLessThanOrEqual(17)
    expect(rig.open).toBe(0)
  })

  it.each([0x00, 0x19, 0x87])('AUTH %s instead of a challenge', async (reasonCode) => {
    const rig = new Rig({ auth: toy().auth }, { behave: () => () => undefined })
    const error = failure(rig.client.connect())
    await rig.settle()
    rig.peer.sendBytes([0xf0, 8, reasonCode, 6, 0x15, 0, 3, 0x74, 0x6f, 0x79])
    await rig.settle()
    expect([0x81, 0x82]).toContain((await error).reasonCode)
    expect(rig.seen('connect')).toEqual([])
    expect(rig.open).toBe(0)
  })

  it('0x8C Bad authentication method is the end for this server', async () => {
    const rig = new Rig({ auth: toy().auth, firstConnect: 'wait' }, { hosts: ['a', 'b'] })
    rig.behave = (host) => (host === 'a' ? refusing(0x8c) : asking())
    await rig.up()
    expect(rig.hosts).toEqual(['a', 'b'])
    await rig.finish()
  })

  it('with protocolVersion auto a server cannot talk us out of it: never a CONNECT without the method', async () => {
    const rig = new Rig({ auth: toy().auth, protocolVersion: 'auto', firstConnect: 'wait' })
    rig.behave = () => (packet) => {
      if (packet.type !== 'connect') return agreeable(packet)
      return packet.protocolVersion === 5 ? { ...accepted, reasonCode: 0x84 } : undefined
    }
    failure(rig.client.connect())
    await rig.advance(20_000)
    for (const peer of rig.peers)
      for (const connect of peer.all('connect')) expect([connect.protocolVersion, connect.properties.authenticationMethod]).toEqual([5, 'toy'])
    await rig.finish()
  })
})

const accepted = { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} } as const

const step = (): string => 'x'

describe('the option', () => {
  it.each([
    ['no method', { start: step, continue: step }],
    ['a method that is no text', { method: 5, start: step, continue: step }],
    ['no start', { method: 'toy', continue: step }],
    ['no continue', { method: 'toy', start: step }],
    ['a success that is no function', { method: 'toy', start: step, continue: step, success: 5 }],
    ['text', 'toy'],
  ] as [string, unknown][])('%s is refused', (_name, auth) => {
    expect(() => new Rig({ auth: auth as AuthMechanism })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: expect.stringMatching(/^auth/) as string }) as Error,
    )
  })

  it.each(['x'.repeat(65_536), 'a\u0000b', 'a\ud800'])(
    'a method that no packet can carry is refused, or fails the attempt before a byte',
    async (method) => {
      let dials = 0
      try {
        const rig = new Rig({ auth: { ...toy().auth, method } } as ClientOptions)
        expect((await refused(rig)).code).toBe('ERR_INVALID_OPTION')
        dials = rig.peers.flatMap((peer) => peer.bytes).length
      } catch (error) {
        expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' })
      }
      expect(dials).toBe(0)
    },
  )

  it('is for 5.0', () => {
    expect(() => new Rig({ auth: toy().auth, protocolVersion: 4 })).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED_OPTION', option: 'auth' }) as Error,
    )
  })
})

it('a mechanism that never answers one challenge answers those of later connections', async () => {
  let calls = 0
  const { auth } = toy({ continue: () => (++calls === 1 ? new Promise<string>(() => undefined) : 'x') })
  const rig = new Rig({ auth, firstConnect: 'wait', connectTimeout: 1000, reconnect }, { behave: () => asking('one') })
  rig.client.connect().catch(() => undefined)
  await rig.advance(30_000)
  expect(rig.client.state).toBe('connected')
  await rig.finish()
})
