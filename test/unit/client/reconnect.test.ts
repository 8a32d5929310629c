import { describe, expect, it } from 'vitest'
import { constant, exponential } from '../../../src/client/parsing/backoff.js'
import type { MqttError } from '../../../src/errors.js'
import { agreeable, failure, World } from './harness.js'
import { type Behaviour, down, Rig, reconnect, refusing } from './rig.js'

const silent = (): undefined => undefined
/** CONNACK 0x00. */
const welcome = { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} } as const

describe('a lost connection', () => {
  it.each(['reset', 'end'] as const)('%s: one disconnect with cause, then reconnect', async (kind) => {
    const rig = await new Rig().up()
    if (kind === 'reset') rig.peer.cut(new Error('ECONNRESET'))
    else rig.peer.end()
    await rig.settle()
    expect(rig.client.state).toBe('reconnecting')
    expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_CONNECTION_LOST', fault: 'remote' } }])
    await rig.advance(999)
    expect(rig.dials).toHaveLength(1)
    await rig.advance(1)
    expect(rig.client.state).toBe('connected')
    expect(rig.dials.map((dial) => dial.at)).toEqual([0, 1000])
    expect(rig.seen('connect')).toHaveLength(2)
    expect(rig.seen('disconnect')).toHaveLength(1)
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('six failures in a row: the series, exactly, on the clock', async () => {
    const rig = await new Rig({ reconnect: { backoff: exponential({ jitter: 'none' }) } }).up()
    rig.behave = () => down
    await rig.cut()
    await rig.advance(120_000)
    const gaps = rig.dials.slice(1).map((dial, index) => dial.at - (rig.dials[index]?.at ?? 0))
    expect(gaps.slice(0, 7)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
    expect(rig.delays.slice(0, 7)).toEqual(gaps.slice(0, 7))
    expect(rig.seen('reconnecting').map(({ attempt, endpoint }) => [attempt, endpoint])).toEqual(
      rig.delays.map((_delay, index) => [index + 2, 'x://a']),
    )
    await rig.finish()
  })

  it('the default jitters from the platform: inside each band, and by the seed alone', async () => {
    const run = async (seed: number): Promise<number[]> => {
      const rig = new Rig({ reconnect: true, firstConnect: 'wait' }, { seed, behave: () => down })
      failure(rig.client.connect())
      await rig.advance(300_000)
      await rig.finish()
      return rig.delays
    }
    const delays = await run(123_456_789)
    expect(delays.length).toBeGreaterThan(8)
    delays.forEach((delay, index) => {
      expect(delay).toBeGreaterThanOrEqual(1000)
      expect(delay).toBeLessThanOrEqual(Math.min(30_000, 1000 * 2 ** (index + 1)))
    })
    expect(new Set(delays).size).toBe(delays.length)
    expect(await run(123_456_789)).toEqual(delays)
    expect(await run(987_654_321)).not.toEqual(delays)
  })

  it('a connection shorter than stableAfter: delays go on growing; a longer one: back to the minimum', async () => {
    const rig = await new Rig({ reconnect: { ...reconnect, stableAfter: 5000 } }).up()
    for (let round = 0; round < 3; round++) {
      await rig.advance(4999)
      await rig.cut()
      await rig.advance(rig.delays.at(-1) ?? 0)
      expect(rig.client.state).toBe('connected')
    }
    expect(rig.delays).toEqual([1000, 2000, 4000])
    await rig.advance(5000)
    await rig.cut()
    expect(rig.delays.at(-1)).toBe(1000)
    expect(rig.seen('reconnecting').at(-1)?.attempt).toBe(1)
    await rig.finish()
  })

  it('a new Client starts with the minimum', async () => {
    for (let round = 0; round < 2; round++) {
      const rig = await new Rig().up()
      rig.behave = () => down
      await rig.cut()
      await rig.advance(10_000)
      expect(rig.delays.slice(0, 3)).toEqual([1000, 2000, 4000])
      await rig.finish()
      expect(rig.clock.pending).toBe(0)
    }
  })

  it('reconnect off: one attempt, everything pending settles', async () => {
    const rig = new Rig({ reconnect: false }, { behave: () => (packet) => (packet.type === 'connect' ? welcome : undefined) })
    await rig.up()
    const pending = [
      rig.client.publish('a', 'b', { qos: 1 }),
      rig.client.publish('a', 'b', { qos: 2 }),
      rig.client.subscribe('a'),
      rig.client.unsubscribe('b'),
    ].map((promise) => failure(promise))
    await rig.settle()
    await rig.cut()
    for (const error of await Promise.all(pending)) expect(error.code).toBe('ERR_CONNECTION_LOST')
    expect(rig.client.state).toBe('closed')
    expect(await rig.client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
    await rig.advance(1_000_000)
    expect(rig.dials).toHaveLength(1)
    expect(rig.clock.pending).toBe(0)
  })

  it('a flapping link: what is queued is on the wire at most once per connection', async () => {
    // Every other connection ends right after CONNACK, some with half of it answered.
    const rig = new Rig({ clientId: 'c', cleanStart: false }, {})
    rig.behave = (_host, dial) => (packet) => {
      if (packet.type === 'connect') return { type: 'connack', sessionPresent: dial > 1, reasonCode: 0, properties: {} }
      if (dial < 6) {
        if (packet.type === 'subscribe' || packet.type === 'publish') rig.clock.setTimer(() => rig.dials[dial - 1]?.peer?.cut(), 0)
        return undefined
      }
      return agreeable(packet)
    }
    const subscription = rig.client.subscription('f', { qos: 1 })
    const publishing = rig.client.publish('t', 'x', { qos: 1 })
    const connecting = rig.client.connect()
    await rig.advance(200_000)
    await connecting
    expect((await publishing).reasonCode).toBe(0)
    expect((await subscription.ready).granted).toMatchObject([{ filter: 'f', qos: 1 }])
    expect(rig.peers).toHaveLength(6)
    for (const [index, peer] of rig.peers.entries()) {
      expect(peer.all('subscribe').length).toBeLessThanOrEqual(1)
      expect(peer.all('publish').map((packet) => packet.dup)).toEqual([index > 0])
    }
    await rig.finish()
  })
})

describe('the first connection', () => {
  it('rejected by default: one round, then closed', async () => {
    const rig = new Rig({}, { behave: () => down })
    const error = await Promise.all([failure(rig.client.connect()), rig.settle()]).then(([thrown]) => thrown)
    expect(error).toMatchObject({ code: 'ERR_CONNECT_FAILED', cause: down })
    expect(rig.client.state).toBe('closed')
    await rig.advance(1_000_000)
    expect(rig.dials).toHaveLength(1)
    expect(rig.order).toEqual(['state connecting', 'dial', 'connecterror', 'state closed'])
    expect(await failure(rig.client.connect())).toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('wait: goes on until it works; connect() joins and fulfils then', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: () => down })
    const connecting = [rig.client.connect()]
    await rig.advance(7500)
    connecting.push(rig.client.connect())
    expect(rig.dials.map((dial) => dial.at)).toEqual([0, 1000, 3000, 7000])
    expect(rig.client.state).toBe('connecting')
    rig.behave = () => (packet) => (packet.type === 'connect' ? welcome : undefined)
    await rig.advance(7500)
    await Promise.all(connecting)
    expect(rig.client.state).toBe('connected')
    expect(rig.seen('state').map(({ state }) => state)).toEqual(['connecting', 'connected'])
    await rig.finish()
  })

  it('wait: a signal of whoever began it gives up, between two attempts too', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: () => down })
    const controller = new AbortController()
    const connecting = failure(rig.client.connect({ signal: controller.signal }))
    const joined = failure(rig.client.connect())
    await rig.advance(1500)
    controller.abort()
    expect((await connecting).name).toBe('AbortError')
    await joined
    await rig.settle()
    expect(rig.client.state).toBe('closed')
    expect(rig.clock.pending).toBe(0)
  })

  it('wait: a signal of a joiner drops only the joiner', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: (_host, dial) => (dial < 3 ? down : () => welcome) })
    const connecting = rig.client.connect()
    const controller = new AbortController()
    const joined = failure(rig.client.connect({ signal: controller.signal }))
    await rig.advance(1500)
    controller.abort()
    expect((await joined).code).toBe('ERR_ABORTED')
    await rig.advance(5000)
    await connecting
    await rig.finish()
  })

  it('wait: what every server refuses is refused at once', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: () => refusing(0x8a) })
    const error = failure(rig.client.connect())
    await rig.settle()
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x8a })
    expect(rig.client.state).toBe('closed')
  })

  it('wait and maxAttempts: retries exhausted', async () => {
    const rig = new Rig({ firstConnect: 'wait', reconnect: { backoff: constant(10), maxAttempts: 4 } }, { behave: () => down })
    const error = failure(rig.client.connect())
    await rig.advance(1000)
    expect(await error).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED', cause: { code: 'ERR_CONNECT_FAILED' } })
    expect(rig.dials).toHaveLength(4)
    expect(rig.client.state).toBe('closed')
    expect(rig.clock.pending).toBe(0)
  })

  it('reconnect() on an idle client connects', async () => {
    const rig = new Rig()
    const connecting = rig.client.reconnect()
    await rig.settle()
    await connecting
    expect(rig.client.state).toBe('connected')
    expect(rig.dials).toHaveLength(1)
    await rig.finish()
  })
})

describe('an attempt that comes to nothing', () => {
  it.each([
    ['no CONNACK', silent, 'ERR_CONNECT_TIMEOUT', 10_000],
    ['a dial that never opens', 'hang', 'ERR_CONNECT_TIMEOUT', 10_000],
    ['a refused port, a wrong host, DNS', down, 'ERR_CONNECT_FAILED', 0],
  ] as [string, Behaviour, string, number][])(
    '%s: an error at the deadline, nothing left behind, and the next attempt by policy',
    async (_name, behaviour, code, after) => {
      const rig = await new Rig().up()
      rig.behave = () => behaviour
      await rig.cut()
      await rig.advance(1000)
      await rig.advance(after)
      expect(rig.seen('connecterror')).toMatchObject([{ attempt: 2, endpoint: 'x://a', error: { code, fault: 'remote' } }])
      expect(rig.open).toBe(0)
      expect(rig.delays).toEqual([1000, 2000])
      rig.behave = () => () => welcome
      await rig.advance(2000)
      expect(rig.client.state).toBe('connected')
      await rig.finish()
      expect(rig.clock.pending).toBe(0)
    },
  )

  it.each(['end', 'cut'] as const)('the stream is closed (%s) before CONNACK', async (how) => {
    const rig = await new Rig().up()
    rig.behave = (_host, dial) => (): undefined => {
      rig.clock.setTimer((): void => rig.dials[dial - 1]?.peer?.[how](), 5)
    }
    await rig.cut()
    await rig.advance(1100)
    expect(rig.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_CONNECT_FAILED' } }])
    expect(rig.client.state).toBe('reconnecting')
    expect(rig.delays).toEqual([1000, 2000])
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('each attempt asks the resolver anew; a slow one is given up at its deadline', async () => {
    const rig = new Rig(
      { firstConnect: 'wait', connectTimeout: 3000 },
      { behave: (_host, dial) => (dial === 1 ? 'hang' : dial < 4 ? down : () => welcome) },
    )
    const connecting = rig.client.connect()
    await rig.advance(3000 + 1000 + 2000 + 4000)
    await connecting
    expect(rig.dials.map((dial) => dial.at)).toEqual([0, 4000, 6000, 10_000])
    expect(rig.dials[0]?.signal.aborted).toBe(true)
    await rig.finish()
  })

  it('a dial that opens after its deadline is destroyed: it has no owner', async () => {
    const opened: (() => void)[] = []
    const world = new World({ connectTimeout: 1000, reconnect: { backoff: () => 500 }, firstConnect: 'wait' }, {}, 1, (_index, open) => {
      if (opened.length > 0) return open()
      return new Promise((resolve) => {
        opened.push(() => resolve(open()))
      })
    })
    world.answer = agreeable
    const connecting = world.client.connect()
    await world.clock.advance(1500)
    await connecting
    opened[0]?.()
    await world.settle()
    expect(world.peers).toHaveLength(2)
    // The late one came second.
    expect(world.peers[1]?.bytes).toEqual([])
    expect(world.peers[1]?.ended).toBeDefined()
    expect(world.peers[0]?.ended).toBeUndefined()
    world.client.destroy()
  })

  it('a proxy that answers HTTP: a typed error, and back-off', async () => {
    const rig = await new Rig().up()
    rig.behave = (_host, dial) => (): undefined => {
      rig.dials[dial - 1]?.peer?.sendBytes(new TextEncoder().encode('HTTP/1.1 302 Found\r\nLocation: http://portal/\r\n\r\n'))
    }
    await rig.cut()
    await rig.advance(1000)
    expect(rig.seen('connecterror')[0]?.error.code).toMatch(/^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|UNEXPECTED_PACKET|PACKET_TOO_LARGE)$/)
    expect(rig.delays).toEqual([1000, 2000])
    await rig.finish()
  })

  it('a certificate that is not accepted is tried again, slowly: one error for each attempt', async () => {
    const rig = await new Rig({}, { platform: { isTlsError: (error) => error === certificate } }).up()
    rig.behave = () => certificate
    await rig.cut()
    await rig.advance(70_000)
    expect(rig.seen('connecterror').every(({ error }) => error.code === 'ERR_TLS')).toBe(true)
    expect(rig.seen('connecterror')).toHaveLength(rig.dials.length - 1)
    expect(rig.seen('disconnect')).toHaveLength(1)
    expect(rig.delays.slice(0, 5)).toEqual([1000, 2000, 4000, 8000, 16_000])
    await rig.finish()
  })

  it('disconnect() during each phase of an attempt: one terminal event, nothing left', async () => {
    for (const phase of ['hang', 'silent', 'waiting'] as const) {
      const rig = await new Rig().up()
      rig.behave = () => (phase === 'hang' ? 'hang' : () => undefined)
      await rig.cut()
      if (phase !== 'waiting') await rig.advance(1500)
      const ending = [rig.client.disconnect(), rig.client.disconnect({ timeout: 0 })]
      await Promise.all(ending)
      rig.client.destroy()
      expect(rig.seen('state').filter(({ state }) => state === 'closed')).toHaveLength(1)
      expect(rig.seen('disconnect')).toHaveLength(1)
      expect(await rig.client.closed).toBeUndefined()
      expect(rig.dials.at(-1)?.signal.aborted ?? true).toBe(phase !== 'waiting')
      await rig.settle()
      expect(rig.open).toBe(0)
      expect(rig.clock.pending).toBe(0)
    }
  })
})

const certificate = new Error('CERT_HAS_EXPIRED')

describe('the options', () => {
  it.each([
    ['reconnect.backoff', { reconnect: { backoff: 5 } }],
    ['reconnect.stableAfter', { reconnect: { stableAfter: -1 } }],
    ['reconnect.maxAttempts', { reconnect: { maxAttempts: 0 } }],
    ['reconnect.maxAttempts', { reconnect: { maxAttempts: 1.5 } }],
    ['reconnect.decide', { reconnect: { decide: 'retry' } }],
    ['reconnect.period', { reconnect: { period: 1000 } }],
    ['reconnect', { reconnect: 5000 }],
    ['firstConnect', { firstConnect: 'later' }],
    ['refreshBefore', { refreshBefore: -1 }],
    ['connectTimeout', { connectTimeout: Number.POSITIVE_INFINITY }],
  ])('%s: %j is refused with its name', (option, options) => {
    expect(() => new Rig(options as object)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option }) as Error)
  })

  it('are read once: what is written to them later means nothing', async () => {
    const options = { reconnect: { backoff: (): number => 1000, maxAttempts: 5 } }
    const rig = await new Rig(options).up()
    options.reconnect.maxAttempts = 1
    options.reconnect.backoff = () => 7
    await rig.cut()
    expect(rig.delays).toEqual([1000])
    await rig.finish()
  })
})

describe('the error that ends it', () => {
  it('retries exhausted: reported on closed, on what was pending, and by the disconnect that already came', async () => {
    const rig = await new Rig({ reconnect: { ...reconnect, maxAttempts: 3 } }).up()
    rig.behave = () => down
    const subscription = await Promise.all([rig.client.subscribe('a'), rig.settle()]).then(([made]) => made)
    const next = failure(subscription.next())
    await rig.cut()
    const publishing = failure(rig.client.publish('a', 'x', { qos: 1 }))
    const waiting = failure(rig.client.connect())
    await rig.advance(100_000)
    expect(rig.dials).toHaveLength(1 + 3)
    const errors: MqttError[] = await Promise.all([publishing, waiting, next])
    for (const error of errors) expect(error).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED', cause: { code: 'ERR_CONNECT_FAILED' } })
    expect(await rig.client.closed).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED' })
    expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_CONNECTION_LOST' } }])
    expect(rig.clock.pending).toBe(0)
  })
})
