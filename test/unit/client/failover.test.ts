import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { agreeable, failure } from './harness.js'
import { causes, down, Rig, reconnect, refusing } from './rig.js'

const up =
  (...names: string[]) =>
  (host: string) =>
    names.includes(host) ? agreeable : down

describe('a list of servers', () => {
  it('all down: tried in order, once each, and the error has each of them', async () => {
    const rig = new Rig({}, { hosts: ['a', 'b', 'c'], behave: () => down })
    const error = await Promise.all([failure(rig.client.connect()), rig.settle()]).then(([thrown]) => thrown)
    expect(rig.hosts).toEqual(['a', 'b', 'c'])
    expect(error.code).toBe('ERR_CONNECT_FAILED')
    expect(causes(error).map((cause) => [cause.code, cause.cause])).toEqual(Array.from({ length: 3 }, () => ['ERR_CONNECT_FAILED', down]))
    const texts = ['a', 'b', 'c'].map((host) => `x://${host}: connect failed: connect ECONNREFUSED`)
    expect(error.message).toBe(texts.join('\n'))
    expect(rig.seen('connecterror').map(({ endpoint, attempt }) => [endpoint, attempt])).toEqual([
      ['x://a', 1],
      ['x://b', 2],
      ['x://c', 3],
    ])
    expect(rig.delays).toEqual([])
  })

  it.each([
    ['only the last is up', ['c'], 'abc'],
    ['only the first is up', ['a'], 'a'],
    ['the second and third are up', ['b', 'c'], 'ab'],
  ])('%s', async (_name, names, order) => {
    const rig = await new Rig({}, { hosts: ['a', 'b', 'c'], behave: up(...names) }).up()
    expect(rig.hosts.join('')).toBe(order)
    expect(rig.seen('connect')).toMatchObject([{ endpoint: `x://${order.at(-1)}` }])
    await rig.finish()
  })

  it('one that is refused counts as tried: mixed reasons are all there', async () => {
    const rig = new Rig({}, { hosts: ['a', 'b', 'c'] })
    rig.behave = (host) => (host === 'a' ? down : refusing(host === 'b' ? 0x89 : 0x8a))
    const error = await Promise.all([failure(rig.client.connect()), rig.settle()]).then(([thrown]) => thrown)
    expect(causes(error).map(({ code, reasonCode }) => [code, reasonCode])).toEqual([
      ['ERR_CONNECT_FAILED', undefined],
      ['ERR_CONNECT_REFUSED', 0x89],
      ['ERR_CONNECT_REFUSED', 0x8a],
    ])
    for (const cause of causes(error)) expect(MqttError.is(cause)).toBe(true)
  })

  it('wait: the round is without delay, then one at a time with back-off', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { hosts: ['a', 'b'], behave: () => down })
    failure(rig.client.connect())
    await rig.advance(7000)
    expect(rig.dials.map(({ at, host }) => `${host} ${at}`)).toEqual(['a 0', 'b 0', 'a 1000', 'b 3000', 'a 7000'])
    await rig.finish()
  })

  it('what worked sticks: it is tried first after a loss, then the next in turn', async () => {
    const rig = await new Rig({}, { hosts: ['a', 'b', 'c'], behave: up('b') }).up()
    await rig.advance(60_000)
    await rig.cut()
    await rig.advance(1000)
    expect(rig.hosts.join('')).toBe('abb')
    expect(rig.client.state).toBe('connected')
    await rig.advance(60_000)
    rig.behave = up('a')
    await rig.cut()
    await rig.advance(10_000)
    expect(rig.hosts.join('')).toBe('abbbca')
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('who refused is asked again once another one has worked and is lost', async () => {
    const rig = new Rig({}, { hosts: ['a', 'b'] })
    rig.behave = (host) => (host === 'a' ? refusing(0x8a) : agreeable)
    await rig.up()
    await rig.advance(60_000)
    rig.behave = up('a')
    await rig.cut()
    await rig.advance(10_000)
    expect(rig.hosts.join('')).toBe('abba')
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('one that takes us in and hangs up again and again is not all there is: the others get their turn', async () => {
    const rig = await new Rig({}, { hosts: ['a', 'b'], behave: up('a', 'b') }).up()
    for (let round = 0; round < 4 && rig.hosts.at(-1) === 'a'; round++) {
      await rig.advance(50)
      await rig.cut()
      await rig.advance(rig.delays.at(-1) ?? 0)
    }
    expect(rig.hosts).toContain('b')
    expect(rig.hosts.slice(0, 2)).toEqual(['a', 'a'])
    await rig.finish()
  })

  it('who refused is asked no more while another is merely down', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { hosts: ['a', 'b', 'c'] })
    rig.behave = (host) => (host === 'b' ? refusing(0x8a) : down)
    failure(rig.client.connect())
    await rig.advance(60_000)
    expect(rig.hosts.slice(0, 3)).toEqual(['a', 'b', 'c'])
    expect(rig.hosts.length).toBeGreaterThan(5)
    expect(rig.hosts.slice(3).join('')).toMatch(/^(ac)+a?$/)
    await rig.finish()
  })
})

describe('setBrokers', () => {
  it('while connected: the connection stays, the next dial goes to the new list', async () => {
    const rig = await new Rig({}, { hosts: ['a', 'b'] }).up()
    rig.client.setBrokers([rig.endpoint('c'), rig.endpoint('d')])
    await rig.advance(60_000)
    expect(rig.client.state).toBe('connected')
    expect(rig.hosts).toEqual(['a'])
    await rig.cut()
    await rig.advance(1000)
    expect(rig.hosts).toEqual(['a', 'c'])
    await rig.finish()
  })

  it('while waiting: the next dial, at its time or at once with reconnect()', async () => {
    for (const hurry of [false, true]) {
      const rig = await new Rig().up()
      rig.behave = up('b')
      await rig.cut()
      await rig.advance(1500)
      rig.client.setBrokers(rig.endpoint('b'))
      if (hurry) rig.client.reconnect()
      await rig.settle()
      expect(rig.client.state).toBe(hurry ? 'connected' : 'reconnecting')
      await rig.advance(1500)
      expect(rig.hosts).toEqual(['a', 'a', 'b'])
      expect(rig.client.state).toBe('connected')
      await rig.finish()
    }
  })

  it('while an attempt is under way at one that is not in it: given up, told as such, and the new list is dialled at once', async () => {
    const rig = await new Rig().up()
    rig.behave = (host) => (host === 'a' ? 'hang' : agreeable)
    await rig.cut()
    await rig.advance(1100)
    rig.client.setBrokers([rig.endpoint('b'), rig.endpoint('c')])
    await rig.settle()
    expect(rig.dials.map(({ host, at }) => [host, at])).toEqual([
      ['a', 0],
      ['a', 1000],
      ['b', 1100],
    ])
    expect(rig.dials[1]?.signal.aborted).toBe(true)
    expect(rig.seen('connecterror')).toMatchObject([{ endpoint: 'x://a', error: { code: 'ERR_CONNECT_FAILED', fault: 'local' } }])
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('while an attempt is under way at one that is in it: that goes on, and the list with what follows it', async () => {
    const rig = await new Rig({ connectTimeout: 500 }).up()
    rig.behave = (host) => (host === 'a' ? 'hang' : agreeable)
    await rig.cut()
    await rig.advance(1100)
    rig.client.setBrokers([rig.endpoint('b'), rig.endpoint('a'), rig.endpoint('c')])
    await rig.settle()
    expect(rig.dials[1]?.signal.aborted).toBe(false)
    await rig.advance(400 + 2000)
    expect(rig.hosts.join('')).toBe('aac')
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it.each(['reject', 'wait'] as const)(
    'during the first dial (%s): a dial that hangs at the old endpoint is given up for the new one',
    async (firstConnect) => {
      const rig = new Rig({ firstConnect }, { behave: (host) => (host === 'a' ? 'hang' : agreeable) })
      const connecting = rig.client.connect()
      await rig.advance(300)
      rig.client.setBrokers(rig.endpoint('b'))
      await rig.settle()
      await connecting
      expect(rig.dials.map(({ host, at }) => [host, at])).toEqual([
        ['a', 0],
        ['b', 300],
      ])
      expect(rig.seen('connect')).toMatchObject([{ endpoint: 'x://b' }])
      await rig.finish()
    },
  )

  it('during the first dial, with the endpoint of it in the new list: the round goes on with the others, each once', async () => {
    const rig = new Rig({ connectTimeout: 500 }, { behave: (host) => (host === 'a' ? 'hang' : down) })
    const error = failure(rig.client.connect())
    await rig.advance(300)
    rig.client.setBrokers([rig.endpoint('b'), rig.endpoint('a'), rig.endpoint('c')])
    await rig.advance(1000)
    expect(rig.hosts.join('')).toBe('acb')
    expect(causes(await error).map(({ code }) => code)).toEqual(['ERR_CONNECT_TIMEOUT', 'ERR_CONNECT_FAILED', 'ERR_CONNECT_FAILED'])
  })

  it('after the stream is open and before CONNACK: that handshake is given up too', async () => {
    const rig = new Rig({}, { behave: (host) => (host === 'a' ? () => undefined : agreeable) })
    const connecting = rig.client.connect()
    await rig.advance(300)
    const [silent] = rig.peers
    rig.client.setBrokers(rig.endpoint('b'))
    await rig.settle()
    await connecting
    expect(silent?.ended).toBeDefined()
    expect(rig.open).toBe(1)
    expect(rig.seen('connect')).toMatchObject([{ endpoint: 'x://b' }])
    await rig.finish()
  })

  it('while credentials() hangs: its signal aborts, and the new endpoint is asked for', async () => {
    const signals: AbortSignal[] = []
    const rig = new Rig({
      credentials: ({ signal, endpoint }) => {
        signals.push(signal)
        return endpoint === 'x://a' ? new Promise(() => undefined) : {}
      },
    })
    const connecting = rig.client.connect()
    await rig.settle()
    rig.client.setBrokers(rig.endpoint('b'))
    await rig.settle()
    await connecting
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false])
    expect(rig.hosts).toEqual(['b'])
    await rig.finish()
  })

  it('in every `dial`, with another host each time: a dial a second, no more', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: () => 'hang' })
    let round = 0
    rig.client.on('dial', () => rig.client.setBrokers(rig.endpoint(`host-${round++}`)))
    failure(rig.client.connect())
    await rig.advance(10_500)
    expect(round).toBeGreaterThan(5)
    expect(round).toBeLessThanOrEqual(12)
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('in connecterror of the first round without reconnecting: the round goes on with the new list', async () => {
    const rig = new Rig({ reconnect: false }, { behave: up('b') })
    rig.client.on('connecterror', () => rig.client.setBrokers([rig.endpoint('c'), rig.endpoint('b')]), { once: true })
    const connecting = rig.client.connect()
    await rig.advance(1000)
    await connecting
    expect(rig.hosts).toEqual(['a', 'c', 'b'])
    await rig.finish()
  })

  it('a dial that was given up counts for nothing against maxAttempts', async () => {
    const rig = await new Rig({ reconnect: { ...reconnect, maxAttempts: 1 } }).up()
    rig.behave = (host) => (host === 'a' ? 'hang' : agreeable)
    await rig.cut()
    await rig.advance(1100)
    rig.client.setBrokers(rig.endpoint('b'))
    await rig.settle()
    expect(rig.client.state).toBe('connected')
    // Each `dial` has its end.
    expect(rig.seen('connecterror')).toMatchObject([
      { endpoint: 'x://a', error: { code: 'ERR_CONNECT_FAILED', message: expect.stringContaining('setBrokers') } },
    ])
    await rig.finish()
  })

  it('in serverdisconnect it turns the end into a try of the new list', async () => {
    for (const code of [0x8e, 0x98, 0x9c, 0x87]) {
      const rig = await new Rig().up()
      rig.client.on('serverdisconnect', () => rig.client.setBrokers(rig.endpoint('b')))
      await rig.goodbye(code)
      expect(rig.client.state).toBe('reconnecting')
      await rig.advance(1000)
      expect(rig.hosts).toEqual(['a', 'b'])
      expect(rig.client.state).toBe('connected')
      await rig.finish()
    }
  })

  it('in connecterror it turns the end into a try of the new list, at the first connect too', async () => {
    for (const firstConnect of ['reject', 'wait'] as const) {
      const rig = new Rig({ firstConnect }, { behave: (host) => (host === 'a' ? refusing(0x8a) : agreeable) })
      rig.client.on('connecterror', () => rig.client.setBrokers(rig.endpoint('b')))
      const connecting = rig.client.connect()
      await rig.advance(1000)
      await connecting
      expect(rig.hosts).toEqual(['a', 'b'])
      await rig.finish()
    }
  })

  it('in connecterror of a later attempt, and the list begins with its first', async () => {
    const rig = await new Rig({}, { hosts: ['a', 'z'] }).up()
    rig.behave = (host) => (host === 'a' ? refusing(0x8a) : agreeable)
    rig.client.on('connecterror', () => rig.client.setBrokers([rig.endpoint('b'), rig.endpoint('c')]))
    await rig.cut()
    await rig.advance(1000 + 2000)
    expect(rig.hosts).toEqual(['a', 'a', 'b'])
    await rig.finish()
  })

  it('in connecterror every time: never without back-off', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: () => refusing(0x8a) })
    let round = 0
    rig.client.on('connecterror', () => rig.client.setBrokers(rig.endpoint(`host-${round++}`)))
    failure(rig.client.connect())
    await rig.advance(30_500)
    expect(rig.delays).toEqual([1000, 2000, 4000, 8000, 16_000])
    await rig.finish()
  })

  it('an endpoint that refused is asked again when it is in the new list', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { hosts: ['a', 'b'] })
    rig.behave = (host) => (host === 'a' ? refusing(0x8a) : down)
    failure(rig.client.connect())
    await rig.advance(2000)
    rig.client.setBrokers([rig.endpoint('a')])
    rig.behave = up('a')
    await rig.advance(2000)
    expect(rig.hosts.at(-1)).toBe('a')
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('before connect(): the new list is dialled', async () => {
    const rig = new Rig()
    rig.client.setBrokers([rig.endpoint('b')])
    await rig.up()
    expect(rig.hosts).toEqual(['b'])
    await rig.finish()
  })

  it('is checked like the constructor, and changes nothing when it throws', async () => {
    const rig = await new Rig().up()
    const thrown = (call: () => void): unknown => {
      try {
        call()
      } catch (error) {
        return (error as MqttError).code
      }
      return undefined
    }
    expect(thrown(() => rig.client.setBrokers([]))).toBe('ERR_MISSING_BROKER')
    expect(thrown(() => rig.client.setBrokers('nowhere'))).toBe('ERR_INVALID_BROKER_URL')
    expect(thrown(() => rig.client.setBrokers(5 as unknown as string))).toMatch(/^ERR_INVALID_(OPTION|BROKER_URL)$/)
    await rig.cut()
    await rig.advance(1000)
    expect(rig.hosts).toEqual(['a', 'a'])
    await rig.finish()
    expect(thrown(() => rig.client.setBrokers(rig.endpoint('b')))).toBe('ERR_CLOSED')
  })
})

describe('maxAttempts over a list', () => {
  it('counts attempts, not rounds', async () => {
    const rig = await new Rig({ reconnect: { ...reconnect, maxAttempts: 5 } }, { hosts: ['a', 'b'] }).up()
    rig.behave = () => down
    await rig.cut()
    await rig.advance(100_000)
    expect(rig.hosts.join('')).toBe('aababa')
    expect(await rig.client.closed).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED' })
  })
})
