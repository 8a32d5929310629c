/** Re-authentication on an open connection, begun by the client or by the server. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { MqttError } from '../../../src/errors.js'
import { agreeable, failure } from './harness.js'
import { publish } from './incoming.js'
import { Rig } from './rig.js'
import { asking, bytes, text, toy } from './toy-auth.js'

/** Connected, with a server that asks this much of a re-authentication. */
async function authenticated(overrides: Parameters<typeof toy>[0] = {}, ...challenges: string[]) {
  const { auth, calls } = toy(overrides)
  const rig = await new Rig(
    { auth, clientId: 'c', cleanStart: false },
    { behave: () => asking(...challenges) },
  ).up()
  onTestFinished(() => rig.finish())
  calls.length = 0
  return { rig, calls, names: () => calls.map(({ name }) => name) }
}

/** The same, with a server that is silent about AUTH. */
async function mute(overrides?: Parameters<typeof toy>[0]) {
  const made = await authenticated(overrides)
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

const expectProtocolError = (rig: Rig): void =>
  expect(rig.peers[0]?.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })

describe('reauthenticate()', () => {
  it('AUTH 0x19, 0x18 both ways, 0x00: resolves, on the open connection [MQTT-4.12.1-1]', async () => {
    const { rig, calls } = await authenticated({}, 'one')
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

  it.each([
    // The row reads it as success; the vector `auth-length-0` as a protocol error, and vectors decide.
    ['AUTH with Remaining Length 0 names no method [MQTT-4.12.0-5]', 'f0 00'],
    ['success with another method', 'f0 0a 00 08 15 00 05 70 6c 61 69 6e'],
    ['a challenge with another method', 'f0 0a 18 08 15 00 05 70 6c 61 69 6e'],
  ])('%s: DISCONNECT 0x82', async (_title, hex) => {
    const { rig, names, error } = await renewing()
    rig.peer.sendBytes(hex)
    await rig.settle()
    expect(await error).toMatchObject({ reasonCode: 0x82 })
    expectProtocolError(rig)
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
    const { rig, names } = await authenticated()
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

  it('no answer for 30 s: rejects, and a new connection is made', async () => {
    const { rig, error } = await renewing()
    await rig.advance(29_999)
    expect(rig.client.state).toBe('connected')
    rig.behave = () => asking()
    await rig.advance(1)
    expect(await error).toMatchObject({ code: 'ERR_AUTH_FAILED' })
    expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_AUTH_FAILED' } }])
    await rig.advance(1000)
    expect(rig.client.state).toBe('connected')
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it.each([
    ['start', []],
    ['continue', [0x19]],
    ['success', [0x19, 0x18]],
  ] as const)('%s that throws ends the connection at once', async (name, expected) => {
    const cause = new Error('no ticket')
    let broken = false
    const whole = toy().auth[name] as (...all: unknown[]) => unknown
    const guarded = (...given: unknown[]): unknown => {
      if (broken) throw cause
      return whole(...given)
    }
    const { rig } = await authenticated({ [name]: guarded }, 'one')
    broken = true
    const { peer } = rig
    const before = peer.received.length
    const error = failure(rig.client.reauthenticate())
    await rig.settle()
    expect(await error).toMatchObject({ code: 'ERR_AUTH_FAILED', cause })
    expect(peer.ended).toBeDefined()
    expect(
      peer.received.slice(before).map((packet) => packet.type === 'auth' && packet.reasonCode),
    ).toEqual(expected)
  })

  it.each([
    ['the connection is lost', 'cut', 'ERR_CONNECTION_LOST'],
    ['the server says no', 'goodbye', 'ERR_SERVER_DISCONNECT'],
    ['the client ends', 'finish', 'ERR_CLOSED'],
  ] as const)(
    'rejects when %s, and the signal of the mechanism aborts',
    async (_when, end, code) => {
      const { rig, calls, error } = await renewing()
      expect(calls[0]?.context.signal.aborted).toBe(false)
      await rig[end](0x87)
      expect([(await error).code, calls[0]?.context.signal.aborted]).toEqual([code, true])
      await rig.finish()
      expect(rig.clock.pending).toBe(0)
    },
  )

  it('is refused where it cannot be', async () => {
    const refusal = ({ client }: Rig, signal?: AbortSignal): Promise<MqttError> =>
      failure(client.reauthenticate(signal && { signal }))
    const plain = await new Rig().up()
    expect(await refusal(plain)).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'auth' })
    await plain.finish()
    const { rig } = await authenticated()
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
    await give(rig, {
      ...auth(0x18),
      properties: { ...properties, authenticationData: bytes('who?') },
    })
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
