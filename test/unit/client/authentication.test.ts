/** Enhanced authentication: the exchange before CONNACK, mechanisms that fail, and re-authentication that either side begins. */
import { describe, expect, it } from 'vitest'
import type { AuthMechanism, ClientOptions } from '../../../src/client/options/index.js'
import { deferred } from '../../../src/common/abort.js'
import type { MqttError } from '../../../src/errors.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, failure } from './harness.js'
import { publish } from './incoming.js'
import { Rig, refusing, rigged } from './rig.js'
import { asking, bytes, text, toy } from './toy-auth.js'

type Overrides = Parameters<typeof toy>[0]

/** A client with this mechanism, of a server that answers so. */
function prepared(
  overrides: Overrides = {},
  answer: Answer = asking(),
  options: ClientOptions = {},
) {
  const { auth, calls } = toy(overrides)
  const rig = rigged({ auth, ...options }, { behave: () => answer })
  return { rig, calls }
}

/** The same, connected. */
async function authenticated(...given: Parameters<typeof prepared>) {
  const made = prepared(...given)
  await made.rig.up()
  return made
}

/** What a connect() that is to fail rejects with. */
async function refused(rig: Rig): Promise<MqttError> {
  const [error] = await Promise.all([failure(rig.client.connect()), rig.settle()])
  return error
}

const types = (rig: Rig): string[] => rig.peer.received.map(({ type }) => type)

describe('an exchange', () => {
  it('CONNECT, AUTH 0x18 both ways, CONNACK: in order, data exact [MQTT-4.12.0-2] [MQTT-4.12.0-3]', async () => {
    const { rig, calls } = await authenticated({}, asking('one', 'two'))
    expect(types(rig)).toEqual(['connect', 'auth', 'auth'])
    const packets = [...rig.peer.all('connect'), ...rig.peer.all('auth')]
    const sent = packets.map(({ properties }) => properties)
    const data = sent.map(({ authenticationData }) => text(authenticationData))
    expect(data).toEqual(['hello', '<one>', '<two>'])
    for (const { authenticationMethod } of sent) expect(authenticationMethod).toBe('toy')
    for (const packet of rig.peer.all('auth')) expect(packet.reasonCode).toBe(0x18)
    const called = calls.map(({ name, data }) => `${name} ${data}`).join()
    expect(called).toBe('start undefined,continue one,continue two,success bye')
    const context = { attempt: 1, endpoint: 'x://a', reauthentication: false }
    for (const call of calls) expect(call.context).toMatchObject(context)
    expect(calls[0]?.context.signal).toBeInstanceOf(AbortSignal)
    expect(rig.client.state).toBe('connected')
  })

  it('without a round: CONNACK may follow CONNECT at once; success is optional', async () => {
    const { rig, calls } = await authenticated({ success: undefined })
    expect([calls.map(({ name }) => name), rig.client.state]).toEqual([['start'], 'connected'])
  })

  it.each([
    ['text', 'grüße', 'grüße'],
    ['a view', new Uint8Array([120, 121, 122]).subarray(1), 'yz'],
    ['an ArrayBuffer', bytes('buffer').buffer, 'buffer'],
    ['nothing', undefined, undefined],
    ['a promise', Promise.resolve('late'), 'late'],
  ])('data as %s', async (_name, given, onWire) => {
    const give = () => given as string
    const { rig } = await authenticated({ start: give, continue: give }, asking('x'))
    for (const type of ['connect', 'auth'] as const)
      expect(text(rig.peer.last(type).properties.authenticationData)).toBe(onWire)
  })

  it('every connection has an exchange of its own, with the number of the attempt; the mechanism may be an object with state', async () => {
    class Counting implements AuthMechanism {
      readonly method = 'toy'
      readonly #attempts: number[] = []
      start({ attempt }: { attempt: number }): string {
        this.#attempts.push(attempt)
        return this.#attempts.join()
      }
      continue(): string {
        return 'more'
      }
    }
    const { rig } = await authenticated({}, asking('q'), { auth: new Counting() })
    rig.behave = (_host, dial) => (dial === 2 ? refusing(0x88) : asking('q'))
    await rig.cut(3000)
    expect(rig.client.state).toBe('connected')
    expect(
      rig.peers.map((peer) => text(peer.last('connect').properties.authenticationData)),
    ).toEqual(['1', '1,2', '1,2,3'])
  })

  it('nothing is read, and no event raised, before success() has spoken', async () => {
    let speak: () => void = () => undefined
    const { rig } = prepared({ success: () => new Promise<void>((resolve) => (speak = resolve)) })
    const subscription = rig.client.subscription('t')
    const connecting = rig.client.connect()
    await rig.settle()
    rig.peer.send(publish('t', 'early'))
    await rig.settle()
    expect(rig.client.state).toBe('connecting')
    expect(rig.seen('connect')).toEqual([])
    expect(subscription.size).toBe(0)
    expect(types(rig)).toEqual(['connect'])
    speak()
    await rig.settle()
    await connecting
    expect(rig.client.state).toBe('connected')
  })
})

describe('a mechanism that fails', () => {
  const cause = new Error('no ticket')
  const boom = (): never => {
    throw cause
  }

  it.each([
    ['start', [], 'not a byte leaves'],
    ['continue', ['connect'], 'the socket is closed without a further byte'],
    ['success', ['connect', 'auth'], 'the server is not who it says, the socket is closed'],
  ] as const)('%s that throws or rejects, after %j: %s', async (name, sent, _title) => {
    for (const fails of [boom, () => Promise.reject(cause)]) {
      const { rig } = prepared({ [name]: fails }, asking('one'))
      expect(await refused(rig)).toMatchObject({ code: 'ERR_AUTH_FAILED', cause })
      expect(rig.peers.flatMap((peer) => peer.received.map(({ type }) => type))).toEqual(sent)
      expect([rig.seen('connect'), rig.open, rig.clock.pending]).toEqual([[], 0, 0])
    }
  })

  it.each([5, true, {}, null, Promise.resolve(5)])('%s is no data', async (given) => {
    for (const name of ['start', 'continue'] as const) {
      const { rig } = prepared({ [name]: () => given }, asking('one'))
      expect((await refused(rig)).code).toBe('ERR_AUTH_FAILED')
      expect([rig.peers.flatMap((peer) => peer.all('auth')), rig.open]).toEqual([[], 0])
    }
  })

  it.each(['start', 'continue', 'success'] as const)('%s that never answers', async (name) => {
    const signals: AbortSignal[] = []
    const hang = (...given: unknown[]) => {
      signals.push((given.at(-1) as { signal: AbortSignal }).signal)
      return new Promise<never>(() => undefined)
    }
    const { rig } = prepared({ [name]: hang }, asking('one'), { connectTimeout: 2000 })
    const error = failure(rig.client.connect())
    await rig.advance(2000)
    expect((await error).code).toBe('ERR_CONNECT_TIMEOUT')
    expect(signals.map((signal) => signal.aborted)).toEqual([true])
    expect(rig.open).toBe(0)
    expect(rig.clock.pending).toBe(0)
  })

  it('after a loss it fails that attempt only', async () => {
    let broken = false
    const { rig } = await authenticated({ start: () => (broken ? boom() : 'x') })
    broken = true
    await rig.cut(3000)
    const error = { code: 'ERR_AUTH_FAILED' }
    expect(rig.seen('connecterror')).toMatchObject([{ error }, { error }])
    broken = false
    rig.behave = () => asking()
    await rig.advance(4000)
    expect(rig.client.state).toBe('connected')
  })

  it('an answer that comes after the connection is gone leaves on no other', async () => {
    const answers: ((value: string) => void)[] = []
    const { rig } = prepared(
      { continue: () => new Promise<string>((resolve) => void answers.push(resolve)) },
      asking('one'),
      {
        firstConnect: 'wait',
      },
    )
    const connecting = rig.client.connect()
    await rig.settle()
    rig.behave = () => asking()
    await rig.cut(1000)
    await connecting
    answers[0]?.('too late')
    await rig.settle()
    expect(rig.peers.map((peer) => peer.all('auth').length)).toEqual([0, 0])
    expect(rig.client.state).toBe('connected')
  })
})

describe('the option', () => {
  const step = (): string => 'x'

  it.each([
    ['no method', { start: step, continue: step }],
    ['a method that is no text', { method: 5, start: step, continue: step }],
    ['no start', { method: 'toy', continue: step }],
    ['no continue', { method: 'toy', start: step }],
    ['a success that is no function', { method: 'toy', start: step, continue: step, success: 5 }],
    ['text', 'toy'],
  ] as [string, unknown][])('%s is refused', (_name, auth) => {
    const error = { code: 'ERR_INVALID_OPTION', option: expect.stringMatching(/^auth/) }
    expect(() => new Rig({ auth: auth as AuthMechanism })).toThrow(expect.objectContaining(error))
  })

  it.each(['x'.repeat(65_536), 'a\u0000b', 'a\ud800'])(
    'no packet carries the method',
    async (method) => {
      const connecting = async (): Promise<never> => {
        const rig = new Rig({ auth: { ...toy().auth, method } })
        const error = await refused(rig)
        expect(rig.peers.flatMap((peer) => peer.bytes)).toEqual([])
        throw error
      }
      await expect(connecting()).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION' })
    },
  )

  it('is for 5.0', () => {
    const error = expect.objectContaining({ code: 'ERR_UNSUPPORTED_OPTION', option: 'auth' })
    expect(() => new Rig({ auth: toy().auth, protocolVersion: 4 })).toThrow(error)
  })
})

/** Connected, with a server that asks this much of a re-authentication. */
async function proven(overrides: Overrides = {}, ...challenges: string[]) {
  const options = { clientId: 'c', cleanStart: false }
  const made = await authenticated(overrides, asking(...challenges), options)
  made.calls.length = 0
  return { ...made, names: () => made.calls.map(({ name }) => name) }
}

/** The same, with a server that is silent about AUTH. */
async function mute(overrides?: Overrides) {
  const made = await proven(overrides)
  made.rig.peer.answer = (packet) => (packet.type === 'auth' ? undefined : agreeable(packet))
  return made
}

/** The same, in the midst of `reauthenticate()`. */
async function renewing() {
  const made = await mute()
  const error = failure(made.rig.client.reauthenticate())
  await made.rig.settle()
  return { ...made, error }
}

const auth = (reasonCode: number, authenticationMethod = 'toy') =>
  ({ type: 'auth', reasonCode, properties: { authenticationMethod } }) as const

async function give(rig: Rig, ...packets: Parameters<Rig['peer']['send']>): Promise<void> {
  rig.peer.send(...packets)
  await rig.settle()
}

describe('reauthenticate()', () => {
  it('AUTH 0x19, 0x18 both ways, 0x00: resolves, on the open connection [MQTT-4.12.1-1] [MQTT-4.12.0-5]', async () => {
    const { rig, calls } = await proven({}, 'one')
    const from = rig.peer.received.length
    await Promise.all([rig.client.reauthenticate(), rig.settle()])
    expect(rig.peer.received.slice(from)).toMatchObject([auth(0x19), auth(0x18)])
    expect(calls.map(({ name, data, context }) => [name, data, context.reauthentication])).toEqual([
      ['start', undefined, true],
      ['continue', 'one', true],
      ['success', 'bye', true],
    ])
    expect([rig.dials.length, rig.seen('disconnect')]).toEqual([1, []])
  })

  // The row reads it as success; the vector `auth-length-0` as a protocol error, and vectors decide.
  it('AUTH with Remaining Length 0 names no method: DISCONNECT 0x82 [MQTT-4.12.0-5]', async () => {
    const { rig, names, error } = await renewing()
    rig.peer.sendBytes('f0 00')
    await rig.settle()
    expect(await error).toMatchObject({ reasonCode: 0x82 })
    expect(rig.peers[0]?.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
    expect(names()).toEqual(['start'])
  })

  it('messages go both ways meanwhile, and success may have no data [section 4.12.1]', async () => {
    const { rig, calls } = await mute()
    const done = rig.client.reauthenticate()
    await rig.settle()
    const [subscription] = await Promise.all([rig.client.subscribe('t'), rig.settle()])
    const publishing = rig.client.publish('t', 'x', { qos: 1 })
    await give(rig, publish('t', 'y'))
    expect([(await publishing).reasonCode, subscription.size]).toEqual([0, 1])
    await give(rig, auth(0))
    await done
    expect(calls.at(-1)).toMatchObject({ name: 'success', data: undefined })
  })

  it('called again meanwhile it joins; afterwards it is a new exchange', async () => {
    const { rig, names } = await proven()
    await Promise.all([rig.client.reauthenticate(), rig.client.reauthenticate(), rig.settle()])
    expect(rig.peer.all('auth')).toHaveLength(1)
    await Promise.all([rig.client.reauthenticate(), rig.settle()])
    expect(rig.peer.all('auth')).toHaveLength(2)
    expect(names().filter((name) => name === 'start')).toHaveLength(2)
  })

  it('its signal drops the caller, not the exchange', async () => {
    const { rig } = await mute()
    const controller = new AbortController()
    const aborted = failure(rig.client.reauthenticate({ signal: controller.signal }))
    const other = rig.client.reauthenticate()
    await rig.settle()
    controller.abort()
    expect(await aborted).toMatchObject({ name: 'AbortError', outcome: 'unknown' })
    await give(rig, auth(0))
    await other
  })

  it('no answer for 30 s: rejects, and a new connection is made [MQTT-4.12.1-2]', async () => {
    const { rig, error } = await renewing()
    await rig.advance(29_999)
    expect(rig.client.state).toBe('connected')
    rig.behave = () => asking()
    await rig.advance(1)
    expect(await error).toMatchObject({ code: 'ERR_AUTH_FAILED' })
    expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_AUTH_FAILED' } }])
    await rig.advance(1000)
    expect(rig.client.state).toBe('connected')
  })

  it.each([
    ['start', []],
    ['continue', [0x19]],
    ['success', [0x19, 0x18]],
  ] as const)('%s that throws ends the connection [MQTT-4.12.1-2]', async (name, expected) => {
    const cause = new Error('no ticket')
    let broken = false
    const whole = toy().auth[name] as (...all: unknown[]) => unknown
    const guarded = (...given: unknown[]): unknown => {
      if (broken) throw cause
      return whole(...given)
    }
    const { rig } = await proven({ [name]: guarded }, 'one')
    broken = true
    const { peer } = rig
    const before = peer.received.length
    const error = failure(rig.client.reauthenticate())
    await rig.settle()
    expect(await error).toMatchObject({ code: 'ERR_AUTH_FAILED', cause })
    expect(peer.ended).toBeDefined()
    const sent = peer.received.slice(before)
    expect(sent.map((packet) => packet.type === 'auth' && packet.reasonCode)).toEqual(expected)
  })

  it('an answer, or a failure, that comes when the connection is gone concerns no other', async () => {
    for (const end of ['resolve', 'reject'] as const) {
      const late = deferred<string>()
      let slow = false
      const { rig } = await proven({ start: () => (slow ? late.promise : 'x') })
      slow = true
      const error = failure(rig.client.reauthenticate())
      await rig.settle()
      slow = false
      rig.behave = () => asking()
      await rig.cut(1000)
      expect((await error).code).toBe('ERR_CONNECTION_LOST')
      late[end]('late')
      await rig.settle()
      expect(rig.peers.map((peer) => peer.all('auth').length)).toEqual([0, 0])
      expect(rig.client.state).toBe('connected')
    }
  })

  it.each([
    ['the connection is lost', 'cut', 'ERR_CONNECTION_LOST'],
    ['the server says no', 'goodbye', 'ERR_SERVER_DISCONNECT'],
    ['the client ends', 'finish', 'ERR_CLOSED'],
  ] as const)('rejects when %s, the signal aborts', async (_when, end, code) => {
    const { rig, calls, error } = await renewing()
    expect(calls[0]?.context.signal.aborted).toBe(false)
    await rig[end](0x87)
    expect([(await error).code, calls[0]?.context.signal.aborted]).toEqual([code, true])
  })

  it('is refused where it cannot be', async () => {
    const refusal = ({ client }: Rig, signal?: AbortSignal): Promise<MqttError> =>
      failure(client.reauthenticate(signal && { signal }))
    const plain = await rigged().up()
    expect(await refusal(plain)).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'auth' })
    const { rig } = await proven()
    expect((await refusal(rig, 5 as never)).code).toBe('ERR_INVALID_OPTION')
    expect((await refusal(rig, AbortSignal.abort())).code).toBe('ERR_ABORTED')
    expect(rig.peer.all('auth')).toEqual([])
    await rig.cut()
    expect((await refusal(rig)).code).toBe('ERR_NOT_CONNECTED')
    await rig.finish()
    expect((await refusal(rig)).code).toBe('ERR_CLOSED')
  })
})

describe('re-authentication that the server begins', () => {
  it('is answered, on the open connection, as one', async () => {
    const { rig, calls } = await mute()
    const { properties } = auth(0x18)
    const asked = { ...properties, authenticationData: bytes('who?') }
    await give(rig, { ...auth(0x18), properties: asked })
    expect(rig.peer.all('auth')).toMatchObject([{ reasonCode: 0x18 }])
    expect(text(rig.peer.last('auth').properties.authenticationData)).toBe('<who?>')
    await give(rig, auth(0))
    expect(calls.map(({ name, context }) => [name, context.reauthentication])).toEqual([
      ['continue', true],
      ['success', true],
    ])
    expect(rig.client.state).toBe('connected')
  })

  it('one that it never ends is given up after 30 s', async () => {
    const { rig } = await mute()
    rig.peer.send(auth(0x18))
    await rig.advance(31_000)
    expect(rig.seen('disconnect')).toHaveLength(1)
  })
})
