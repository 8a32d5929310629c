import { describe, expect, it } from 'vitest'
import { agreeable, failure } from './harness.js'
import { Rig } from './rig.js'
import { asking, bytes, text, toy } from './toy-auth.js'

/** Connected, with a server that asks this much of a re-authentication; undefined answers it nothing. */
async function authenticated(
  overrides: Parameters<typeof toy>[0] = {},
  ...challenges: string[]
): Promise<{ rig: Rig; calls: ReturnType<typeof toy>['calls'] }> {
  const { auth, calls } = toy(overrides)
  const rig = await new Rig({ auth, clientId: 'c', cleanStart: false }, { behave: () => asking(...challenges) }).up()
  calls.length = 0
  return { rig, calls }
}

const satisfied = { type: 'auth', reasonCode: 0, properties: { authenticationMethod: 'toy' } } as const

/** The server falls silent about AUTH. */
function mute(rig: Rig): void {
  rig.peer.answer = (packet) => (packet.type === 'auth' ? undefined : agreeable(packet))
}

describe('reauthenticate()', () => {
  it('AUTH 0x19, 0x18 both ways, 0x00: resolves, on the open connection [MQTT-4.12.1-1]', async () => {
    const { rig, calls } = await authenticated({}, 'one')
    const from = rig.peer.received.length
    await Promise.all([rig.client.reauthenticate(), rig.settle()])
    const sent = rig.peer.received.slice(from)
    expect(sent).toMatchObject([
      { type: 'auth', reasonCode: 0x19, properties: { authenticationMethod: 'toy' } },
      { type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'toy' } },
    ])
    expect(calls.map(({ name, data, context }) => [name, data, context.reauthentication])).toEqual([
      ['start', undefined, true],
      ['continue', 'one', true],
      ['success', 'bye', true],
    ])
    expect(rig.dials).toHaveLength(1)
    expect(rig.seen('disconnect')).toEqual([])
    await rig.finish()
  })

  // The row reads it as success; the vector `auth-length-0` as a protocol error, and vectors decide.
  it('AUTH with Remaining Length 0 names no method: DISCONNECT 0x82 [MQTT-4.12.0-5]', async () => {
    const { rig, calls } = await authenticated()
    mute(rig)
    const renewing = failure(rig.client.reauthenticate())
    await rig.settle()
    rig.peer.sendBytes('f0 00')
    await rig.settle()
    expect(await renewing).toMatchObject({ reasonCode: 0x82 })
    expect(rig.peers[0]?.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
    expect(calls.map(({ name }) => name)).toEqual(['start'])
    await rig.finish()
  })

  it('success without data', async () => {
    const { rig, calls } = await authenticated()
    mute(rig)
    const renewing = rig.client.reauthenticate()
    await rig.settle()
    rig.peer.send(satisfied)
    await rig.settle()
    await renewing
    expect(calls.at(-1)).toMatchObject({ name: 'success', data: undefined })
    await rig.finish()
  })

  it('messages go both ways meanwhile [section 4.12.1]', async () => {
    const { rig } = await authenticated()
    mute(rig)
    const renewing = rig.client.reauthenticate()
    await rig.settle()
    const subscription = await Promise.all([rig.client.subscribe('t'), rig.settle()]).then(([made]) => made)
    const publishing = rig.client.publish('t', 'x', { qos: 1 })
    rig.peer.send({ type: 'publish', topic: 't', payload: bytes('y'), qos: 0, retain: false, dup: false, properties: {} })
    await rig.settle()
    expect((await publishing).reasonCode).toBe(0)
    expect(subscription.size).toBe(1)
    rig.peer.send(satisfied)
    await rig.settle()
    await renewing
    await rig.finish()
  })

  it('called again meanwhile it joins; afterwards it is a new exchange', async () => {
    const { rig, calls } = await authenticated()
    await Promise.all([rig.client.reauthenticate(), rig.client.reauthenticate(), rig.settle()])
    expect(rig.peer.all('auth')).toHaveLength(1)
    await Promise.all([rig.client.reauthenticate(), rig.settle()])
    expect(rig.peer.all('auth')).toHaveLength(2)
    expect(calls.filter(({ name }) => name === 'start')).toHaveLength(2)
    await rig.finish()
  })

  it('its signal drops the caller, not the exchange', async () => {
    const { rig } = await authenticated()
    mute(rig)
    const controller = new AbortController()
    const renewing = failure(rig.client.reauthenticate({ signal: controller.signal }))
    const other = rig.client.reauthenticate()
    await rig.settle()
    controller.abort()
    expect(await renewing).toMatchObject({ name: 'AbortError', outcome: 'unknown' })
    rig.peer.send(satisfied)
    await rig.settle()
    await other
    await rig.finish()
  })

  it('no answer for 30 s: rejects, and the connection is made anew', async () => {
    const { rig } = await authenticated()
    mute(rig)
    const renewing = failure(rig.client.reauthenticate())
    await rig.advance(29_999)
    expect(rig.client.state).toBe('connected')
    rig.behave = () => asking()
    await rig.advance(1)
    expect(await renewing).toMatchObject({ code: 'ERR_AUTH_FAILED' })
    expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_AUTH_FAILED' } }])
    await rig.advance(1000)
    expect(rig.client.state).toBe('connected')
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('success with another method', async () => {
    const { rig } = await authenticated()
    mute(rig)
    const renewing = failure(rig.client.reauthenticate())
    await rig.settle()
    rig.peer.send({ type: 'auth', reasonCode: 0, properties: { authenticationMethod: 'plain' } })
    await rig.settle()
    await renewing
    expect(rig.peers[0]?.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
    await rig.finish()
  })

  it('a challenge with another method', async () => {
    const { rig, calls } = await authenticated()
    mute(rig)
    const renewing = failure(rig.client.reauthenticate())
    await rig.settle()
    rig.peer.send({ type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'plain' } })
    await rig.settle()
    await renewing
    expect(calls.map(({ name }) => name)).toEqual(['start'])
    expect(rig.peers[0]?.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
    await rig.finish()
  })

  it.each(['start', 'continue', 'success'] as const)('%s that throws ends the connection without a further byte', async (name) => {
    const cause = new Error('no ticket')
    let broken = false
    const { auth } = toy()
    const guarded = (...given: unknown[]): unknown => {
      if (broken) throw cause
      return (auth[name] as (...all: unknown[]) => unknown)(...given)
    }
    const { rig } = await authenticated({ [name]: guarded }, 'one')
    broken = true
    const [peer] = rig.peers
    const before = peer?.received.length ?? 0
    const renewing = failure(rig.client.reauthenticate())
    await rig.settle()
    expect(await renewing).toMatchObject({ code: 'ERR_AUTH_FAILED', cause })
    expect(peer?.ended).toBeDefined()
    const expected = { start: [], continue: [0x19], success: [0x19, 0x18] }[name]
    expect(peer?.received.slice(before).map((packet) => packet.type === 'auth' && packet.reasonCode)).toEqual(expected)
    await rig.finish()
  })

  it('rejects when the connection is lost, when the server says no, and when the client ends', async () => {
    for (const [end, code] of [
      ['cut', 'ERR_CONNECTION_LOST'],
      ['goodbye', 'ERR_SERVER_DISCONNECT'],
      ['finish', 'ERR_CLOSED'],
    ] as const) {
      const { rig } = await authenticated()
      mute(rig)
      const renewing = failure(rig.client.reauthenticate())
      await rig.settle()
      await rig[end](0x87)
      expect((await renewing).code).toBe(code)
      await rig.finish()
      expect(rig.clock.pending).toBe(0)
    }
  })

  it('the signal of the mechanism aborts when the exchange is given up', async () => {
    const { rig, calls } = await authenticated()
    mute(rig)
    failure(rig.client.reauthenticate())
    await rig.settle()
    expect(calls[0]?.context.signal.aborted).toBe(false)
    await rig.cut()
    expect(calls[0]?.context.signal.aborted).toBe(true)
    await rig.finish()
  })

  it('a late answer of the mechanism leaves on no other connection', async () => {
    const answers: ((value: string) => void)[] = []
    let slow = false
    const { rig } = await authenticated({
      start: () =>
        slow
          ? new Promise<string>((resolve) => {
              answers.push(resolve)
            })
          : 'x',
    })
    slow = true
    failure(rig.client.reauthenticate())
    await rig.settle()
    slow = false
    rig.behave = () => asking()
    await rig.cut()
    await rig.advance(1000)
    answers[0]?.('late')
    await rig.settle()
    expect(rig.peers.map((peer) => peer.all('auth').length)).toEqual([0, 0])
    await rig.finish()
  })

  it('is refused where it cannot be', async () => {
    const plain = await new Rig().up()
    expect(await failure(plain.client.reauthenticate())).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'auth' })
    await plain.finish()
    const { rig } = await authenticated()
    expect((await failure(rig.client.reauthenticate({ signal: 5 as unknown as AbortSignal }))).code).toBe('ERR_INVALID_OPTION')
    const controller = new AbortController()
    controller.abort()
    expect((await failure(rig.client.reauthenticate({ signal: controller.signal }))).code).toBe('ERR_ABORTED')
    expect(rig.peer.all('auth')).toEqual([])
    await rig.cut()
    expect((await failure(rig.client.reauthenticate())).code).toBe('ERR_NOT_CONNECTED')
    await rig.finish()
    expect((await failure(rig.client.reauthenticate())).code).toBe('ERR_CLOSED')
  })
})

describe('re-authentication that the server begins', () => {
  it('is answered, on the open connection, as one', async () => {
    const { rig, calls } = await authenticated()
    mute(rig)
    rig.peer.send({ type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'toy', authenticationData: bytes('who?') } })
    await rig.settle()
    expect(rig.peer.all('auth')).toMatchObject([{ reasonCode: 0x18 }])
    expect(text(rig.peer.last('auth').properties.authenticationData)).toBe('<who?>')
    rig.peer.send(satisfied)
    await rig.settle()
    expect(calls.map(({ name, context }) => [name, context.reauthentication])).toEqual([
      ['continue', true],
      ['success', true],
    ])
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('success that nobody asked for is a protocol error', async () => {
    const { rig } = await authenticated()
    rig.peer.send(satisfied)
    await rig.settle()
    expect(rig.peers[0]?.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
    await rig.finish()
  })

  it('no more than 16 rounds', async () => {
    const { rig, calls } = await authenticated()
    rig.peer.answer = (packet) =>
      packet.type === 'auth' ? { type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'toy' } } : agreeable(packet)
    rig.peer.send({ type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'toy' } })
    await rig.settle()
    expect(calls.filter(({ name }) => name === 'continue')).toHaveLength(16)
    expect(rig.peers[0]?.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
    await rig.finish()
  })

  it('one that it never ends is given up after 30 s', async () => {
    const { rig } = await authenticated()
    mute(rig)
    rig.peer.send({ type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'toy' } })
    await rig.advance(31_000)
    expect(rig.seen('disconnect')).toHaveLength(1)
    await rig.finish()
  })
})
