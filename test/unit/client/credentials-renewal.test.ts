import { describe, expect, it } from 'vitest'
import type { AuthMechanism, ClientOptions, Credentials, CredentialsContext } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { agreeable, failure } from './harness.js'
import { down, Rig, refusing, welcoming } from './rig.js'

const minute = 60_000
const text = (value: Uint8Array | undefined): string => new TextDecoder().decode(value)
const passwords = (rig: Rig): string[] => rig.peers.map((peer) => text(peer.last('connect').password))

/** Tokens that are numbered, and good for so long. */
function tokens(rig: () => Rig, lifetime: number | undefined): { options: ClientOptions; contexts: CredentialsContext[] } {
  const contexts: CredentialsContext[] = []
  const credentials = async (context: CredentialsContext): Promise<Credentials> => {
    contexts.push(context)
    await Promise.resolve()
    return { username: 'u', password: `token-${contexts.length}`, expiresAt: lifetime === undefined ? undefined : rig().clock.now() + lifetime }
  }
  return { options: { credentials }, contexts }
}

describe('credentials() before every CONNECT', () => {
  it('after losses and failures too: what was used once is never on the wire again', async () => {
    const { options, contexts } = tokens(() => rig, undefined)
    const rig: Rig = new Rig({ ...options, firstConnect: 'wait' })
    rig.behave = (_host, dial) => (dial === 2 ? refusing(0x88) : dial === 3 ? down : agreeable)
    await rig.up()
    await rig.cut()
    await rig.advance(10_000)
    expect(passwords(rig)).toEqual(['token-1', 'token-2', 'token-4'])
    expect(contexts.map(({ attempt, endpoint, lastError }) => [attempt, endpoint, lastError?.code, lastError?.reasonCode])).toEqual([
      [1, 'x://a', undefined, undefined],
      [2, 'x://a', 'ERR_CONNECTION_LOST', undefined],
      [3, 'x://a', 'ERR_CONNECT_REFUSED', 0x88],
      [4, 'x://a', 'ERR_CONNECT_FAILED', undefined],
    ])
    await rig.finish()
  })

  it.each(['mqtt', 'mqtts', 'ws', 'wss', 'unix'])('awaited before each of three attempts on %s', async (scheme) => {
    const clock = new VirtualClock()
    const log: string[] = []
    let dials = 0
    const platform = {
      ...virtualPlatform(clock),
      dialler: () => async () => {
        log.push('dial')
        if (++dials < 3) throw new Error('not yet')
        const [near, far] = memoryPair({ schedule: (callback, delay) => clock.setTimer(callback, delay) })
        const peer = new ScriptedPeer(far, 5, agreeable)
        peer.answer = (packet) => {
          if (packet.type === 'connect') log.push(`CONNECT ${text(packet.password)}`)
          return agreeable(packet)
        }
        return near
      },
    }
    const credentials = async ({ attempt }: CredentialsContext): Promise<Credentials> => {
      log.push('asked')
      await new Promise<void>((resolve) => clock.setTimer(resolve, 100))
      log.push('given')
      return { username: 'u', password: `token-${attempt}` }
    }
    const url = scheme === 'unix' ? 'unix:///run/mqtt' : `${scheme}://host`
    const client = new BaseClient(platform, url, { credentials, firstConnect: 'wait', reconnect: { backoff: () => 10 } })
    const connecting = client.connect()
    await clock.advance(1000)
    await connecting
    expect(log).toEqual(['asked', 'given', 'dial', 'asked', 'given', 'dial', 'asked', 'given', 'dial', 'CONNECT token-3'])
    client.destroy()
  })

  it('a throw fails that attempt only: connecterror, back-off, no storm', async () => {
    let healthy = true
    const cause = new Error('vault is sealed')
    const rig = await new Rig({
      credentials: () => {
        if (!healthy) throw cause
        return {}
      },
    }).up()
    healthy = false
    await rig.cut()
    await rig.advance(3000)
    expect(rig.seen('connecterror')).toMatchObject([
      { attempt: 2, error: { code: 'ERR_CONNECT_FAILED', cause } },
      { attempt: 3, error: { code: 'ERR_CONNECT_FAILED', cause } },
    ])
    expect(rig.delays).toEqual([1000, 2000, 4000])
    expect(rig.dials).toHaveLength(1)
    healthy = true
    await rig.advance(4000)
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('slow ones are bounded by credentialsTimeout, and their signal aborts', async () => {
    let slow = false
    let aborted = 0
    const rig = await new Rig({
      credentialsTimeout: 2000,
      connectTimeout: 1000,
      credentials: ({ signal }) => {
        if (!slow) return {}
        signal.addEventListener('abort', () => {
          aborted += 1
        })
        return new Promise(() => undefined)
      },
    }).up()
    slow = true
    await rig.cut()
    await rig.advance(1000 + 2000)
    expect(rig.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_CONNECT_TIMEOUT' } }])
    expect(aborted).toBe(1)
    expect(rig.delays).toEqual([1000, 2000])
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('slower ones than connectTimeout lead to a connection: the time to connect begins behind them', async () => {
    const rig: Rig = new Rig({
      connectTimeout: 1000,
      firstConnect: 'wait',
      credentials: () => new Promise((resolve) => rig.clock.setTimer(() => resolve({}), 5000)),
    })
    rig.behave = (_host, dial) => (dial === 1 ? 'hang' : agreeable)
    const connecting = rig.client.connect()
    await rig.advance(5000 + 999)
    expect(rig.seen('connecterror')).toEqual([])
    await rig.advance(1)
    expect(rig.seen('connecterror')).toMatchObject([
      { error: { code: 'ERR_CONNECT_TIMEOUT', message: expect.stringContaining('1000 ms') as string } },
    ])
    await rig.advance(1000 + 5000)
    await connecting
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('an url and what CONNECT says may change with each attempt', async () => {
    const rig = new Rig({
      keepAlive: 30,
      receiveMaximum: 7,
      credentials: ({ attempt }) => ({
        url: `x://host-${attempt}`,
        connect: attempt === 1 ? {} : { keepAlive: 5, sessionExpiryInterval: 9, userProperties: [['n', '1']], will: { topic: 'w', payload: 'gone' } },
      }),
    })
    await rig.up()
    await rig.cut()
    await rig.advance(1000)
    expect(rig.hosts).toEqual(['host-1', 'host-2'])
    const [first, second] = rig.peers.map((peer) => peer.last('connect'))
    expect(first).toMatchObject({ keepAlive: 30, will: undefined, properties: { receiveMaximum: 7, sessionExpiryInterval: 300 } })
    expect(second).toMatchObject({
      keepAlive: 5,
      will: { topic: 'w' },
      properties: { receiveMaximum: 7, sessionExpiryInterval: 9, userProperties: [['n', '1']] },
    })
    expect(rig.client.negotiated?.keepAlive).toBe(5)
    await rig.finish()
  })

  it.each(['clientId', 'cleanStart', 'protocolVersion', 'username'])('connect.%s is refused: that attempt fails', async (name) => {
    const rig = new Rig({ credentials: () => ({ connect: { [name]: name === 'cleanStart' ? false : 'x' } }) as Credentials })
    const error = await Promise.all([failure(rig.client.connect()), rig.settle()]).then(([thrown]) => thrown)
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: expect.stringContaining(name) as string })
    expect(rig.dials).toEqual([])
  })
})

describe('expiresAt without enhanced authentication', () => {
  it('a session-keeping reconnect, refreshBefore ahead, in order', async () => {
    const { options } = tokens(() => rig, 10 * minute)
    const rig: Rig = new Rig({ ...options, clientId: 'c', cleanStart: false })
    await rig.up()
    rig.behave = () => welcoming({}, true)
    await rig.advance(9 * minute - 1)
    expect(rig.dials).toHaveLength(1)
    const old = rig.peer
    await rig.advance(1)
    old.end()
    await rig.settle()
    expect(rig.dials.map(({ at }) => at)).toEqual([0, 9 * minute])
    expect(passwords(rig)).toEqual(['token-1', 'token-2'])
    expect(old.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0 })
    expect(rig.peer.last('connect').cleanStart).toBe(false)
    expect(rig.seen('sessionlost')).toEqual([])
    expect(rig.seen('disconnect')).toHaveLength(1)
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('again and again, each time before the token in use runs out', async () => {
    const { options } = tokens(() => rig, 5 * minute)
    const rig: Rig = new Rig({ ...options, clientId: 'c', cleanStart: false, refreshBefore: 2 * minute })
    rig.behave = (_host, dial) => welcoming({}, dial > 1)
    await rig.up()
    await rig.advance(31 * minute)
    const times = rig.dials.map(({ at }) => at)
    expect(times.length).toBeGreaterThanOrEqual(10)
    times.slice(1).forEach((at, index) => {
      const gap = at - (times[index] ?? 0)
      expect(gap).toBeGreaterThanOrEqual(3 * minute)
      expect(gap).toBeLessThanOrEqual(3 * minute + 1100)
    })
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('a Date is as good as a number; a loss before it is due starts anew', async () => {
    const rig: Rig = new Rig({ credentials: () => ({ expiresAt: new Date(rig.clock.now() + 10 * minute) }) })
    await rig.up()
    await rig.advance(5 * minute)
    await rig.cut()
    await rig.advance(1000)
    await rig.advance(9 * minute - 1)
    expect(rig.dials).toHaveLength(2)
    await rig.advance(1 + 1100)
    expect(rig.dials).toHaveLength(3)
    await rig.finish()
  })

  it('what lives shorter than refreshBefore is renewed before it runs out, and without hurry', async () => {
    const { options } = tokens(() => rig, 30_000)
    const rig: Rig = new Rig({ ...options, clientId: 'c', cleanStart: false })
    rig.behave = (_host, dial) => welcoming({}, dial > 1)
    await rig.up()
    await rig.advance(5 * minute)
    const times = rig.dials.map(({ at }) => at)
    times.slice(1).forEach((at, index) => {
      const gap = at - (times[index] ?? 0)
      expect(gap).toBeLessThan(30_000)
      expect(gap).toBeGreaterThanOrEqual(5000)
    })
    expect(times.length).toBeGreaterThan(5)
    await rig.finish()
  })

  it.each([
    ['has run out', -10 * minute],
    ['runs out now', 0],
    ['runs out in a blink', 5],
  ])('a clock that is wrong: what always %s makes no loop', async (_name, lifetime) => {
    const { options } = tokens(() => rig, lifetime)
    const rig: Rig = new Rig({ ...options, clientId: 'c', cleanStart: false })
    rig.behave = (_host, dial) => welcoming({}, dial > 1)
    await rig.up()
    await rig.advance(10 * minute)
    // At the cap of the back-off there are twenty.
    expect(rig.dials.length).toBeLessThanOrEqual(40)
    await rig.finish()
  })

  it('it shows as what it is: a `disconnect` without a cause and with a reason', async () => {
    const { options } = tokens(() => rig, 10 * minute)
    const rig: Rig = new Rig({ ...options, stats: true })
    await rig.up()
    await rig.advance(9 * minute + 1100)
    expect(rig.seen('disconnect')).toEqual([{ cause: undefined, reason: 'credentials expire' }])
    expect(rig.client.stats().failures).toEqual({})
    await rig.cut()
    expect(rig.seen('disconnect')[1]).toMatchObject({ cause: { code: 'ERR_CONNECTION_LOST' }, reason: undefined })
    await rig.finish()
  })

  it('without reconnecting too: it is no lost connection; one that fails ends the client', async () => {
    const { options } = tokens(() => rig, 10 * minute)
    const rig: Rig = new Rig({ ...options, reconnect: false })
    await rig.up()
    await rig.advance(9 * minute + 1100)
    expect(rig.client.state).toBe('connected')
    expect(passwords(rig)).toEqual(['token-1', 'token-2'])
    rig.behave = () => down
    await rig.advance(9 * minute + 1100)
    expect(await rig.client.closed).toMatchObject({ code: 'ERR_CONNECT_FAILED' })
    expect(rig.dials).toHaveLength(3)
  })

  it('as far ahead as timers do not reach is no renewal now, but when it is due', async () => {
    const { options } = tokens(() => rig, 2_147_483_647 + 10 * minute)
    const rig: Rig = new Rig({ ...options, keepAlive: false })
    await rig.up()
    await rig.advance(minute)
    expect(rig.dials).toHaveLength(1)
    await rig.advance(2_147_483_647)
    expect(rig.dials).toHaveLength(1)
    await rig.advance(9 * minute)
    expect(rig.dials).toHaveLength(2)
    await rig.finish()
  })

  it('disconnect() ends it', async () => {
    const { options } = tokens(() => rig, 10 * minute)
    const rig: Rig = new Rig(options)
    await rig.up()
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
    await rig.advance(20 * minute)
    expect(rig.dials).toHaveLength(1)
  })

  it('a server that ends it before we do: fresh credentials, recovered', async () => {
    const { options } = tokens(() => rig, 10 * minute)
    const rig: Rig = new Rig(options)
    await rig.up()
    await rig.advance(minute)
    await rig.goodbye(0x87)
    await rig.advance(1000)
    expect(passwords(rig)).toEqual(['token-1', 'token-2'])
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('a token that the server takes back twice, with a long life in between, is refreshed twice', async () => {
    const { options } = tokens(() => rig, undefined)
    const rig: Rig = new Rig(options)
    await rig.up()
    for (let round = 0; round < 3; round++) {
      await rig.advance(minute)
      rig.behave = (_host, dial) => (dial % 2 === 0 ? refusing(0x86) : agreeable)
      await rig.goodbye(0x8b)
      await rig.advance(5000)
      expect(rig.client.state).toBe('connected')
    }
    expect(passwords(rig)).toEqual(['token-1', 'token-2', 'token-3', 'token-4', 'token-5', 'token-6', 'token-7'])
    await rig.finish()
  })

  it('asked before the old connection is given up, and once: the new one goes with what was given', async () => {
    const contexts: CredentialsContext[] = []
    const rig: Rig = new Rig({
      clientId: 'c',
      cleanStart: false,
      credentials: async (context) => {
        contexts.push(context)
        const password = `token-${contexts.length}`
        if (contexts.length > 1) await new Promise<void>((resolve) => rig.clock.setTimer(resolve, 20_000))
        return { username: 'u', password, expiresAt: rig.clock.now() + 10 * minute }
      },
    })
    rig.behave = (_host, dial) => welcoming({}, dial > 1)
    await rig.up()
    await rig.advance(9 * minute + 19_999)
    expect(contexts).toHaveLength(2)
    expect(rig.client.state).toBe('connected')
    expect(rig.peer.all('disconnect')).toEqual([])
    await rig.advance(1 + 1100)
    expect(rig.client.state).toBe('connected')
    expect(passwords(rig)).toEqual(['token-1', 'token-2'])
    expect(contexts).toHaveLength(2)
    // A loss after that is none of the renewal: asked as ever.
    await rig.cut()
    await rig.advance(1000 + 20_000)
    expect(passwords(rig)).toEqual(['token-1', 'token-2', 'token-3'])
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it.each(['throws', 'hangs'])(
    'a function that %s: the old connection stays up past the end of the old ones, and it is asked again with backoff',
    async (how) => {
      const times: number[] = []
      const errors: (string | undefined)[] = []
      let sealed = false
      const rig: Rig = new Rig({
        clientId: 'c',
        cleanStart: false,
        credentialsTimeout: 1000,
        credentials: ({ lastError }) => {
          times.push(rig.clock.now())
          errors.push(lastError?.code)
          if (sealed && how === 'hangs') return new Promise(() => undefined)
          if (sealed) throw new Error('sealed')
          return { expiresAt: rig.clock.now() + 10 * minute }
        },
      })
      rig.behave = (_host, dial) => welcoming({}, dial > 1)
      await rig.up()
      sealed = true
      await rig.advance(30 * minute)
      expect(rig.client.state).toBe('connected')
      expect(rig.dials).toHaveLength(1)
      expect((await Promise.all([rig.client.publish('t', 'x', { qos: 1 }), rig.settle()]))[0].reasonCode).toBe(0)
      const gaps = times.slice(2).map((at, index) => at - (times[index + 1] as number))
      expect(times[1]).toBe(9 * minute)
      expect(gaps[0]).toBeLessThanOrEqual(3000)
      expect(Math.max(...gaps)).toBeLessThanOrEqual(5 * minute + 1000)
      expect(gaps.length).toBeGreaterThan(8)
      expect(gaps.length).toBeLessThan(25)
      expect(errors.slice(0, 3)).toEqual([undefined, undefined, how === 'hangs' ? 'ERR_CONNECT_TIMEOUT' : 'ERR_CONNECT_FAILED'])
      expect(rig.log.filter((line) => line.includes('renewal failed'))).toHaveLength(times.length - 1)
      sealed = false
      await rig.advance(5 * minute + 2100)
      expect(rig.dials).toHaveLength(2)
      expect(rig.client.state).toBe('connected')
      await rig.finish()
      expect(rig.clock.pending).toBe(0)
    },
  )

  it('a connection that is lost while it asks: given up, and asked for the attempt', async () => {
    const signals: AbortSignal[] = []
    const rig: Rig = new Rig({
      credentials: ({ signal }) => {
        signals.push(signal)
        return signals.length === 2 ? new Promise(() => undefined) : { password: `token-${signals.length}`, expiresAt: rig.clock.now() + 10 * minute }
      },
    })
    await rig.up()
    await rig.advance(9 * minute)
    await rig.cut()
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true])
    await rig.advance(1000)
    expect(passwords(rig)).toEqual(['token-1', 'token-3'])
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })
})

describe('expiresAt with enhanced authentication', () => {
  function world(lifetime: number): { rig: Rig; starts: boolean[]; asked: () => number } {
    const starts: boolean[] = []
    let asked = 0
    const auth: AuthMechanism = {
      method: 'toy',
      start: ({ reauthentication }) => {
        starts.push(reauthentication)
        return `start-${starts.length}`
      },
      continue: () => undefined,
    }
    const rig: Rig = new Rig({
      auth,
      credentials: () => {
        asked += 1
        return { expiresAt: rig.clock.now() + lifetime }
      },
    })
    rig.behave = () => (packet) => {
      if (packet.type === 'connect') return { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { authenticationMethod: 'toy' } }
      if (packet.type === 'auth') return { type: 'auth', reasonCode: 0, properties: { authenticationMethod: 'toy' } }
      return agreeable(packet)
    }
    return { rig, starts, asked: () => asked }
  }

  it('renewed in place: AUTH 0x19 on the same connection, again and again', async () => {
    const { rig, starts, asked } = world(10 * minute)
    await rig.up()
    await rig.advance(9 * minute)
    expect(rig.dials).toHaveLength(1)
    expect(rig.peer.all('auth')).toMatchObject([{ reasonCode: 0x19, properties: { authenticationMethod: 'toy' } }])
    expect(text(rig.peer.last('auth').properties.authenticationData)).toBe('start-2')
    await rig.advance(9 * minute)
    expect(rig.peer.all('auth')).toHaveLength(2)
    expect(starts).toEqual([false, true, true])
    expect(asked()).toBe(3)
    expect(rig.dials).toHaveLength(1)
    expect(rig.seen('disconnect')).toEqual([])
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('credentials() that fail once at renewal are asked again before what is in use runs out', async () => {
    const { rig } = world(10 * minute)
    const auth: AuthMechanism = { method: 'toy', start: () => 'x', continue: () => undefined }
    let calls = 0
    const other: Rig = new Rig({
      auth,
      credentials: () => {
        calls += 1
        if (calls === 2) throw new Error('vault is sealed')
        return { expiresAt: other.clock.now() + 10 * minute }
      },
    })
    other.behave = rig.behave
    await other.up()
    await other.advance(9 * minute)
    expect(calls).toBe(2)
    await other.advance(minute)
    expect(calls).toBeGreaterThan(2)
    await other.finish()
  })

  it('credentials() that never answer at renewal: asked again, and their signal aborts with the client', async () => {
    const signals: AbortSignal[] = []
    const auth: AuthMechanism = { method: 'toy', start: () => 'x', continue: () => undefined }
    const rig: Rig = new Rig({
      auth,
      credentials: ({ signal }) => {
        signals.push(signal)
        return signals.length === 1 ? { expiresAt: rig.clock.now() + 10 * minute } : new Promise(() => undefined)
      },
    })
    rig.behave = world(0).rig.behave
    await rig.up()
    await rig.advance(9 * minute)
    expect(signals).toHaveLength(2)
    await rig.advance(minute - 1)
    expect(signals.length).toBeGreaterThan(2)
    await rig.finish()
    expect(signals.slice(1).map((signal) => signal.aborted)).toEqual(signals.slice(1).map(() => true))
    expect(rig.clock.pending).toBe(0)
  })

  it('a server that does not agree: the connection is made anew', async () => {
    const { rig } = world(10 * minute)
    await rig.up()
    rig.behave = (_host, _dial) => (packet) =>
      packet.type === 'connect'
        ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { authenticationMethod: 'toy' } }
        : packet.type === 'auth'
          ? { type: 'disconnect', reasonCode: 0x87, properties: {} }
          : agreeable(packet)
    await rig.cut()
    await rig.advance(1000 + 9 * minute)
    expect(rig.seen('serverdisconnect')).toMatchObject([{ packet: { reasonCode: 0x87 } }])
    await rig.advance(5000)
    expect(rig.client.state).toBe('connected')
    expect(rig.dials).toHaveLength(3)
    await rig.finish()
  })
})
