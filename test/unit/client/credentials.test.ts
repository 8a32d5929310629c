/** Credentials that a function gives: before every CONNECT, with what an attempt dials and says, and again before they expire. */
import { describe, expect, it } from 'vitest'
import type {
  AuthMechanism,
  ClientOptions,
  Credentials,
  CredentialsContext,
} from '../../../src/client/options/index.js'
import type { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { agreeable, failure, World } from './harness.js'
import { down, type Rig, refusing, rigged, welcoming } from './rig.js'
import { settled } from './steps.js'

const minute = 60_000
const text = (value: Uint8Array | undefined): string => new TextDecoder().decode(value)
const passwords = (rig: Rig) => rig.peers.map((peer) => text(peer.last('connect').password))
const never = (): Promise<never> => new Promise(() => undefined)

/** A client whose calls of `credentials()` are kept, with their times; ends with its test. */
function asking(
  give: (context: CredentialsContext, count: number, clock: VirtualClock) => unknown,
  options: ClientOptions = {},
) {
  const contexts: (CredentialsContext & { readonly at: number })[] = []
  const credentials = (context: CredentialsContext): Credentials => {
    contexts.push({ ...context, signal: context.signal, at: rig.clock.now() })
    return give(context, contexts.length, rig.clock) as Credentials
  }
  const rig: Rig = rigged({ credentials, ...options })
  return { rig, contexts }
}

/** Tokens that are numbered, and good for so long, of a server that keeps the session. */
function tokens(lifetime: number | undefined, options: ClientOptions = {}) {
  const give = async (
    _context: CredentialsContext,
    count: number,
    clock: VirtualClock,
  ): Promise<Credentials> => ({
    username: 'u',
    password: `token-${count}`,
    expiresAt: lifetime === undefined ? undefined : clock.now() + lifetime,
  })
  const made = asking(give, { clientId: 'c', cleanStart: false, ...options })
  made.rig.behave = (_host, dial) => welcoming({}, dial > 1)
  return made
}

describe('credentials() before every CONNECT', () => {
  it('is awaited, and its values are on the wire; a refusal asks once more, then the next server', async () => {
    const contexts: CredentialsContext[] = []
    const credentials = async (context: CredentialsContext): Promise<Credentials> => {
      contexts.push(context)
      await new Promise<void>((resolve) => world.clock.setTimer(resolve, 100))
      return { username: `user-${context.attempt}`, password: `token-${context.attempt}` }
    }
    const world: World = new World({ username: 'static', password: 'static', credentials }, {}, 3)
    world.answer = (packet) =>
      packet.type === 'connect' && packet.username !== 'user-3'
        ? refusing(0x86)(packet)
        : agreeable(packet)
    const connecting = world.client.connect()
    await world.clock.advance(99)
    expect(world.peers).toHaveLength(0)
    await world.clock.advance(1000)
    await connecting
    const connects = world.peers.map((peer) => peer.last('connect'))
    const sent = connects.map(({ username, password }) => [username, text(password)])
    expect(sent).toEqual([1, 2, 3].map((attempt) => [`user-${attempt}`, `token-${attempt}`]))
    expect(contexts).toMatchObject([
      { attempt: 1, endpoint: 'memory://peer-0', lastError: undefined },
      { attempt: 2, endpoint: 'memory://peer-0', lastError: { reasonCode: 0x86 } },
      { attempt: 3, endpoint: 'memory://peer-1', lastError: { reasonCode: 0x86 } },
    ])
    for (const { signal } of contexts) expect(signal).toBeInstanceOf(AbortSignal)
  })

  it('after losses and failures too: what was used once is never on the wire again', async () => {
    const { rig, contexts } = tokens(undefined, { firstConnect: 'wait', cleanStart: true })
    rig.behave = (_host, dial) => (dial === 2 ? refusing(0x88) : dial === 3 ? down : agreeable)
    await rig.up()
    await rig.cut(10_000)
    expect(passwords(rig)).toEqual(['token-1', 'token-2', 'token-4'])
    expect(contexts).toMatchObject([
      { attempt: 1, endpoint: 'x://a', lastError: undefined },
      { attempt: 2, endpoint: 'x://a', lastError: { code: 'ERR_CONNECTION_LOST' } },
      { attempt: 3, endpoint: 'x://a', lastError: { reasonCode: 0x88 } },
      { attempt: 4, endpoint: 'x://a', lastError: { code: 'ERR_CONNECT_FAILED' } },
    ])
  })

  it.each([undefined, {}, { username: undefined }] as Credentials[])(
    '%j: the options count',
    async (answer) => {
      const { rig } = asking(() => answer, { username: 'u', password: 'p' })
      await rig.up()
      expect([rig.peer.last('connect').username, ...passwords(rig)]).toEqual(['u', 'p'])
    },
  )

  it.each(['throw', 'rejection'])('a %s fails that attempt only, with back-off', async (how) => {
    let healthy = true
    const cause = new Error('vault is sealed')
    const { rig } = asking(() => {
      if (healthy) return {}
      if (how === 'throw') throw cause
      return Promise.reject(cause)
    })
    await rig.up()
    healthy = false
    await rig.cut(3000)
    const error = { code: 'ERR_CONNECT_FAILED', fault: 'local', cause }
    expect(rig.seen('connecterror')).toMatchObject([2, 3].map((attempt) => ({ attempt, error })))
    expect([rig.delays, rig.dials.length]).toEqual([[1000, 2000, 4000], 1])
    healthy = true
    await rig.advance(4000)
    expect(rig.client.state).toBe('connected')
  })

  it('slower ones than connectTimeout lead to a connection: the time to connect begins behind them', async () => {
    const slow = (clock: VirtualClock) =>
      new Promise((resolve) => clock.setTimer(() => resolve({}), 5000))
    const options = { connectTimeout: 1000, firstConnect: 'wait' } as const
    const { rig } = asking((_context, _count, clock) => slow(clock), options)
    rig.behave = (_host, dial) => (dial === 1 ? 'hang' : agreeable)
    const connecting = rig.client.connect()
    await rig.advance(5000 + 999)
    expect(rig.seen('connecterror')).toEqual([])
    await rig.advance(1)
    expect(rig.seen('connecterror')).toMatchObject([
      { error: { code: 'ERR_CONNECT_TIMEOUT', message: expect.stringContaining('1000 ms') } },
    ])
    await rig.advance(1000 + 5000)
    await connecting
    expect(rig.client.state).toBe('connected')
  })

  it.each(['disconnect', 'abort'] as const)('its signal aborts with %s', async (stop) => {
    const controller = new AbortController()
    const { rig, contexts } = asking(never)
    const connecting = failure(rig.client.connect({ signal: controller.signal }))
    await rig.settle()
    if (stop === 'disconnect') void rig.client.disconnect()
    else controller.abort()
    expect(contexts[0]?.signal.aborted).toBe(true)
    expect((await connecting).code).toBe(stop === 'disconnect' ? 'ERR_CLOSED' : 'ERR_ABORTED')
    await rig.settle()
    expect([rig.dials.length, rig.clock.pending]).toEqual([0, 0])
  })
})

describe('what an attempt says', () => {
  it('an url and what CONNECT says may change with each', async () => {
    const limit = { receiveMaximum: 7 }
    const own = { sessionExpiryInterval: 9, userProperties: [['n', '1']] }
    const changes = [{}, { keepAlive: 5, will: { topic: 'w', payload: 'gone' }, ...own }]
    const give = (_context: unknown, count: number) => ({
      url: `x://host-${count}`,
      connect: changes[count - 1],
    })
    const { rig } = asking(give, { keepAlive: 30, ...limit })
    await rig.up()
    await rig.cut(1000)
    expect(rig.hosts).toEqual(['host-1', 'host-2'])
    expect(rig.peers.map((peer) => peer.last('connect'))).toMatchObject([
      { keepAlive: 30, will: undefined, properties: { ...limit, sessionExpiryInterval: 300 } },
      { keepAlive: 5, will: { topic: 'w' }, properties: { ...limit, ...own } },
    ])
    expect(rig.client.negotiated?.keepAlive).toBe(5)
  })

  it.each(['clientId', 'cleanStart', 'username'])('connect.%s is refused', async (name) => {
    const { rig } = asking(() => ({ connect: { [name]: name === 'cleanStart' ? false : 'x' } }))
    const [error] = await Promise.all([failure(rig.client.connect()), rig.settle()])
    const option = expect.stringContaining(name)
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    expect(rig.dials).toEqual([])
  })

  it.each([
    ['username of the wrong type', { username: 5 }],
    ['username with a lone surrogate', { username: 'a\ud800' }],
    ['headers of the wrong type', { headers: 5 }],
    ['url of the wrong type', { url: 5 }],
    ['url that is none', { url: 'nowhere' }],
    ['a field that is none', { user: 'x' }],
    ['no object', 'token'],
  ])('%s: that attempt fails, typed, and nothing is sent', async (_name, answer) => {
    const give = ({ attempt }: CredentialsContext) => (attempt === 1 ? (answer as Credentials) : {})
    const world = await new World({ credentials: give }, {}, 2).up(agreeable)
    const code = expect.stringMatching(/^ERR_(INVALID_OPTION|INVALID_BROKER_URL|CONNECT_FAILED)$/)
    expect(world.seen('connecterror')[0]?.error).toMatchObject({ fault: 'local', code })
    for (const { bytes, ended } of world.peers.slice(0, -1))
      expect([bytes, ended === undefined]).toEqual([[], false])
    expect(world.client.state).toBe('connected')
  })
})

describe('expiresAt without enhanced authentication', () => {
  it('a session-keeping reconnect, refreshBefore ahead, in order, without a cause and with a reason', async () => {
    const { rig } = tokens(10 * minute, { stats: true })
    await rig.up()
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
    expect([rig.seen('sessionlost'), rig.client.stats().failures]).toEqual([[], {}])
    expect(rig.seen('disconnect')).toEqual([{ cause: undefined, reason: 'credentials expire' }])
    await rig.cut()
    const cause = { code: 'ERR_CONNECTION_LOST' }
    expect(rig.seen('disconnect')[1]).toMatchObject({ cause, reason: undefined })
  })

  it.each([
    ['again and again, before the token in use runs out', 300, 120, 31, 180, 181.1, 10],
    ['shorter than refreshBefore before it runs out, without hurry', 30, undefined, 5, 5, 29.9, 6],
  ])('what lives %s is renewed', async (_title, lifetime, before, minutes, least, most, times) => {
    const options = before === undefined ? {} : { refreshBefore: before * 1000 }
    const { rig } = tokens(lifetime * 1000, options)
    await rig.up()
    await rig.advance(minutes * minute)
    const gaps = rig.dials.slice(1).map(({ at }, index) => at - (rig.dials[index]?.at ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(least * 1000)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(most * 1000)
    expect(rig.dials.length).toBeGreaterThanOrEqual(times)
    expect(rig.client.state).toBe('connected')
  })

  it('a Date is as good as a number; a loss before it is due starts again', async () => {
    const { rig } = asking((_context, _count, clock) => ({
      expiresAt: new Date(clock.now() + 10 * minute),
    }))
    await rig.up()
    await rig.advance(5 * minute)
    await rig.cut(1000)
    await rig.advance(9 * minute - 1)
    expect(rig.dials).toHaveLength(2)
    await rig.advance(1 + 1100)
    expect(rig.dials).toHaveLength(3)
  })

  it.each([
    ['has run out', -10 * minute],
    ['runs out now', 0],
    ['runs out in a blink', 5],
  ])('a clock that is wrong: what always %s makes no loop', async (_name, lifetime) => {
    const { rig } = tokens(lifetime)
    await rig.up()
    await rig.advance(10 * minute)
    // At the cap of the back-off there are twenty.
    expect(rig.dials.length).toBeLessThanOrEqual(40)
  })

  it('without reconnecting too: it is no lost connection; one that fails ends the client', async () => {
    const { rig } = tokens(10 * minute, { reconnect: false })
    await rig.up()
    await rig.advance(9 * minute + 1100)
    expect([rig.client.state, ...passwords(rig)]).toEqual(['connected', 'token-1', 'token-2'])
    rig.behave = () => down
    await rig.advance(9 * minute + 1100)
    expect(await rig.client.closed).toMatchObject({ code: 'ERR_CONNECT_FAILED' })
    expect(rig.dials).toHaveLength(3)
  })

  it('as far ahead as timers do not reach is no renewal now, but when it is due', async () => {
    const { rig } = tokens(2_147_483_647 + 10 * minute, { keepAlive: false })
    await rig.up()
    for (const [span, dials] of [
      [minute, 1],
      [2_147_483_647, 1],
      [9 * minute, 2],
    ] as const) {
      await rig.advance(span)
      expect(rig.dials).toHaveLength(dials)
    }
  })

  it('a token that the server takes back twice, with a long life in between, is refreshed twice', async () => {
    const { rig } = tokens(undefined)
    await rig.up()
    for (let round = 0; round < 3; round++) {
      await rig.advance(minute)
      rig.behave = (_host, dial) => (dial % 2 === 0 ? refusing(0x86) : agreeable)
      await rig.goodbye(0x8b)
      await rig.advance(5000)
      expect(rig.client.state).toBe('connected')
    }
    expect(passwords(rig)).toEqual([1, 2, 3, 4, 5, 6, 7].map((count) => `token-${count}`))
  })

  it('asked before the old connection is given up, and once: the new one goes with what was given', async () => {
    const { rig, contexts } = asking(
      async (_context, count, clock) => {
        if (count > 1) await new Promise<void>((resolve) => clock.setTimer(resolve, 20_000))
        return { username: 'u', password: `token-${count}`, expiresAt: clock.now() + 10 * minute }
      },
      { clientId: 'c', cleanStart: false },
    )
    rig.behave = (_host, dial) => welcoming({}, dial > 1)
    await rig.up()
    await rig.advance(9 * minute + 19_999)
    expect(contexts.length).toBe(2)
    expect(rig.client.state).toBe('connected')
    expect(rig.peer.all('disconnect')).toEqual([])
    await rig.advance(1 + 1100)
    expect([contexts.length, rig.client.state]).toEqual([2, 'connected'])
    expect(passwords(rig)).toEqual(['token-1', 'token-2'])
    // A loss after that is none of the renewal: asked as ever.
    await rig.cut(1000 + 20_000)
    expect(passwords(rig)).toEqual(['token-1', 'token-2', 'token-3'])
  })

  it.each(['throws', 'hangs'])(
    'a function that %s: the connection stays, and it is asked again with back-off',
    async (how) => {
      let sealed = false
      const { rig, contexts } = asking(
        (_context, _count, clock) => {
          if (sealed && how === 'hangs') return never()
          if (sealed) throw new Error('sealed')
          return { expiresAt: clock.now() + 10 * minute }
        },
        { clientId: 'c', cleanStart: false, credentialsTimeout: 1000 },
      )
      rig.behave = (_host, dial) => welcoming({}, dial > 1)
      await rig.up()
      sealed = true
      await rig.advance(30 * minute)
      expect([rig.client.state, rig.dials.length]).toEqual(['connected', 1])
      const receipt = await settled(rig, rig.client.publish('t', 'x', { qos: 1 }))
      expect(receipt.reasonCode).toBe(0)
      const gaps = contexts
        .slice(2)
        .map(({ at }, index) => at - (contexts[index + 1]?.at as number))
      expect(contexts[1]?.at).toBe(9 * minute)
      expect(gaps[0]).toBeLessThanOrEqual(3000)
      expect(Math.max(...gaps)).toBeLessThanOrEqual(5 * minute + 1000)
      expect(gaps.length).toBeGreaterThan(8)
      expect(gaps.length).toBeLessThan(25)
      const errors = contexts.slice(0, 3).map(({ lastError }) => lastError?.code)
      expect(errors.join()).toBe(`,,ERR_CONNECT_${how === 'hangs' ? 'TIMEOUT' : 'FAILED'}`)
      const lines = rig.log.filter((line) => line.includes('renewal failed'))
      expect(lines).toHaveLength(contexts.length - 1)
      sealed = false
      await rig.advance(5 * minute + 2100)
      expect([rig.dials.length, rig.client.state]).toEqual([2, 'connected'])
    },
  )

  it('a connection that is lost while it asks: given up, and asked for the attempt', async () => {
    const { rig, contexts } = asking((_context, count, clock) =>
      count === 2 ? never() : { password: `token-${count}`, expiresAt: clock.now() + 10 * minute },
    )
    await rig.up()
    await rig.advance(9 * minute)
    await rig.cut()
    expect(contexts.map(({ signal }) => signal.aborted)).toEqual([false, true])
    await rig.advance(1000)
    expect(passwords(rig)).toEqual(['token-1', 'token-3'])
  })
})

describe('expiresAt with enhanced authentication', () => {
  /** Credentials for ten minutes, but for calls where `odd` says otherwise; the server agrees, or answers AUTH so. */
  function renewing(
    odd: (count: number) => unknown = () => undefined,
    answer: object = { type: 'auth', reasonCode: 0 },
  ) {
    const starts: boolean[] = []
    const auth: AuthMechanism = {
      method: 'toy',
      start: ({ reauthentication }) => `start-${starts.push(reauthentication)}`,
      continue: () => undefined,
    }
    const made = asking(
      (_context, count, clock) => odd(count) ?? { expiresAt: clock.now() + 10 * minute },
      { auth },
    )
    const properties = { authenticationMethod: 'toy' }
    made.rig.behave = () => (packet) => {
      if (packet.type === 'connect')
        return { type: 'connack', sessionPresent: false, reasonCode: 0, properties }
      return packet.type === 'auth' ? ({ properties, ...answer } as never) : agreeable(packet)
    }
    return { ...made, starts }
  }

  it('renewed in place: AUTH 0x19 on the same connection, again and again', async () => {
    const { rig, starts, contexts } = renewing()
    await rig.up()
    await rig.advance(9 * minute)
    expect(rig.dials).toHaveLength(1)
    expect(rig.peer.all('auth')).toMatchObject([
      { reasonCode: 0x19, properties: { authenticationMethod: 'toy' } },
    ])
    expect(text(rig.peer.last('auth').properties.authenticationData)).toBe('start-2')
    await rig.advance(9 * minute)
    expect(rig.peer.all('auth').length).toBe(2)
    expect(starts).toEqual([false, true, true])
    expect(contexts.length).toBe(3)
    expect([rig.dials.length, rig.seen('disconnect')]).toEqual([1, []])
  })

  it('credentials() that never answer at renewal: asked again, and their signal aborts with the client', async () => {
    const { rig, contexts } = renewing((count) => (count === 1 ? undefined : never()))
    await rig.up()
    await rig.advance(9 * minute)
    expect(contexts).toHaveLength(2)
    await rig.advance(minute - 1)
    expect(contexts.length).toBeGreaterThan(2)
    await rig.finish()
    expect(contexts.slice(1).every(({ signal }) => signal.aborted)).toBe(true)
  })

  it('a server that does not agree: a new connection is made', async () => {
    const { rig } = renewing(undefined, { type: 'disconnect', reasonCode: 0x87, properties: {} })
    await rig.up()
    await rig.advance(9 * minute)
    expect(rig.seen('serverdisconnect')).toMatchObject([{ packet: { reasonCode: 0x87 } }])
    await rig.advance(5000)
    expect([rig.client.state, rig.dials.length]).toEqual(['connected', 2])
  })
})
