/** Worlds for tests of programs: clients, a broker and links on one virtual clock. */
import { describe, expect, it } from 'vitest'
import type { Client, connect as realConnect } from '../../../src/client/node.js'
import { VirtualWorld, type VirtualWorldOptions } from '../../../src/testing/index.js'

const minute = 60_000
const hour = 60 * minute
const url = 'mqtts://broker.example'

/** A world that is closed behind the test, with nothing left on its clock. */
async function inWorld(
  run: (world: VirtualWorld) => Promise<void>,
  options?: VirtualWorldOptions,
): Promise<void> {
  const world = new VirtualWorld(options)
  await run(world)
  await world.close()
  expect(world.clock.pending).toBe(0)
}

describe('what takes no time', () => {
  it('happens without being told: connect, subscribe, publish at each QoS, request, disconnect', () =>
    inWorld(async (world) => {
      const [one, other] = await Promise.all([
        world.connect(url),
        world.connect(['ws://a', { url: 'tls://b', tls: { ca: 'x' } }]),
      ])
      const subscription = await other.subscribe('a/#', { qos: 2 })
      for (const qos of [0, 1, 2] as const) await one.publish(`a/${qos}`, 'hi', { qos })
      const topics: string[] = []
      for await (const message of subscription) if (topics.push(message.topic) === 3) break
      expect(topics).toEqual(['a/0', 'a/1', 'a/2'])
      await other.respond('sum', (request) => String(request.json<number[]>().length))
      expect((await one.request('sum', '[1,2]')).text()).toBe('2')
      await one.disconnect()
      expect([...world.broker.clients.keys()]).toEqual([other.clientId])
      expect(world.clock.now()).toBe(0)
      expect(world.broker.violations).toEqual([])
    }))

  it('has the real names, so that a program takes it for the real thing', () =>
    inWorld(async ({ connect, Client: VirtualClient }) => {
      const program = async (dial: typeof realConnect): Promise<Client> =>
        dial(url, { clientId: 'real' })
      const client: Client = await program(connect)
      expect(client.clientId).toBe('real')
      const later = new VirtualClient(url, { clientId: 'later' })
      expect(later.state).toBe('idle')
      await later.connect()
      expect(later.state).toBe('connected')
    }))

  it('rejects as the real thing does', () =>
    inWorld(
      async (world) => {
        await expect(world.connect(url)).rejects.toMatchObject({
          code: 'ERR_CONNECT_REFUSED',
          reasonCode: 0x87,
        })
        await expect(world.connect(url, { keepAlive: -1 })).rejects.toMatchObject({
          code: 'ERR_INVALID_OPTION',
          option: 'keepAlive',
        })
        await expect(world.connect({ url, tls: { ca: 7 as never } })).rejects.toMatchObject({
          code: 'ERR_INVALID_OPTION',
        })
        await expect(world.connect('broker.example')).rejects.toMatchObject({
          code: 'ERR_INVALID_BROKER_URL',
        })
      },
      { broker: { authenticate: () => false } },
    ))
})

describe('what takes time', () => {
  it('is that of the world for clients and broker: keep-alive, session expiry, will delay, message expiry', () =>
    inWorld(async (world) => {
      const watcher = await world.connect(url, { clientId: 'watcher', keepAlive: 30 })
      const seen: string[] = []
      await watcher.listen(
        'will',
        (message) => void seen.push(`${message.text()} at ${world.clock.now() / minute}`),
      )
      const will = { topic: 'will', payload: 'gone', properties: { willDelayInterval: 600 } }
      const device = await world.connect(url, {
        clientId: 'device',
        cleanStart: false,
        sessionExpiryInterval: 1800,
        will,
        reconnect: false,
      })
      await device.subscribe('orders', { qos: 1 })
      await world.pass(5 * minute)
      device.destroy()
      await watcher.publish('orders', 'soon stale', {
        qos: 1,
        properties: { messageExpiryInterval: 300 },
      })
      await watcher.publish('orders', 'fresh', { qos: 1 })
      await world.pass(20 * minute)
      expect(seen).toEqual(['gone at 15'])
      expect(world.broker.sessions.get('device')).toMatchObject({ connected: false })
      const again = new world.Client(url, {
        clientId: 'device',
        cleanStart: false,
        sessionExpiryInterval: 1800,
      })
      const orders = again.subscription('orders', { qos: 1 })
      await again.connect()
      expect((await orders.next())?.text()).toBe('fresh')
      again.destroy()
      await world.pass(30 * minute)
      expect(world.broker.sessions.has('device')).toBe(false)
      expect(watcher.state).toBe('connected')
      expect(world.clock.now()).toBe(55 * minute)
      expect(world.broker.violations).toEqual([])
    }))

  it('is the same at every run of a seed, and another one at another', async () => {
    const delaysOf = async (options?: VirtualWorldOptions): Promise<number[]> => {
      const delays: number[] = []
      await inWorld(async (world) => {
        const client = await world.connect(url, { clientId: 'a' })
        client.on('reconnecting', ({ delay }) => delays.push(delay))
        world.cut('a')
        await world.pass(10 * minute)
      }, options)
      return delays
    }
    const first = await delaysOf()
    expect(first.length).toBeGreaterThan(10)
    expect(await delaysOf({ seed: 1 })).toEqual(first)
    expect(await delaysOf({ seed: 2 })).not.toEqual(first)
  })

  it('differs between the clients of a world: they do not come back all at once', () =>
    inWorld(async (world) => {
      const delays: number[] = []
      for (const clientId of ['a', 'b', 'c'])
        (await world.connect(url, { clientId })).on('reconnecting', ({ delay }) =>
          delays.push(delay),
        )
      world.broker.restart({ keepSessions: true })
      await world.pass(0)
      expect(new Set(delays).size).toBe(3)
    }))

  it('has a calendar, by which credentials are renewed', async () => {
    const date = new Date('2030-05-01T12:00:00Z')
    await inWorld(
      async (world) => {
        expect(world.now()).toBe(date.getTime())
        const renewed: string[] = []
        const credentials = () => {
          renewed.push(new Date(world.now()).toISOString())
          return { username: 'a', expiresAt: world.now() + hour }
        }
        await world.connect(url, { credentials, refreshBefore: minute })
        await world.pass(2 * hour)
        expect(renewed.map((text) => text.slice(11, 16))).toEqual(['12:00', '12:59', '13:58'])
      },
      { date },
    )
  })

  it('is slept through, until a signal wakes the sleeper', () =>
    inWorld(async (world) => {
      const { sleep } = world
      const stop = new AbortController()
      const slept: unknown[] = []
      const late = sleep(3 * hour, undefined, { signal: stop.signal }).catch((error: unknown) =>
        slept.push(error),
      )
      void sleep(hour, 'an hour').then((value) => slept.push(value, world.clock.now()))
      await world.pass(hour - 1)
      expect(slept).toEqual([])
      await world.pass(1)
      expect(slept).toEqual(['an hour', hour])
      stop.abort('enough')
      await late
      expect(slept[2]).toMatchObject({ name: 'AbortError', code: 'ERR_ABORTED', cause: 'enough' })
      await expect(sleep(1, undefined, { signal: stop.signal })).rejects.toMatchObject({
        name: 'AbortError',
      })
      expect(world.clock.pending).toBe(0)
      await expect(sleep(-1)).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'delay' })
    }))
})

describe('until', () => {
  it('lets time pass to the moment when a promise has settled', () =>
    inWorld(async (world) => {
      expect(await world.until(world.sleep(90_000, 'done'))).toBe('done')
      expect(world.clock.now()).toBe(90_000)
      const failure = new Error('no')
      await expect(world.until(world.sleep(1).then(() => Promise.reject(failure)))).rejects.toBe(
        failure,
      )
      expect(world.clock.now()).toBe(90_001)
    }))

  it('lets time pass until a function gives something true', () =>
    inWorld(async (world) => {
      const client = await world.connect(url, { reconnect: { backoff: () => 7000 } })
      world.broker.restart({ keepSessions: true })
      await world.until(() => client.state === 'reconnecting')
      expect(world.clock.now()).toBe(0)
      expect(await world.until(() => client.state === 'connected' && client.clientId)).toBe(
        client.clientId,
      )
      expect(world.clock.now()).toBe(7000)
    }))

  it('ends when it takes too long, or when nothing is left that it could come from', () =>
    inWorld(async (world) => {
      await expect(world.until(() => false)).rejects.toMatchObject({
        code: 'ERR_TIMEOUT',
        message: expect.stringContaining('no timer is set'),
      })
      const never = world.sleep(2 * hour)
      await expect(world.until(never)).rejects.toMatchObject({
        code: 'ERR_TIMEOUT',
        message: expect.stringContaining('3600000 ms'),
      })
      expect(world.clock.now()).toBeLessThanOrEqual(hour)
      await world.until(never, 2 * hour)
      await expect(world.until(7 as never)).rejects.toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: 'until',
      })
      await expect(world.until(never, Number.NaN)).rejects.toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: 'within',
      })
    }))
})

describe('a cut', () => {
  const options = { keepAlive: 60, reconnect: { backoff: () => 10_000 } }

  it('breaks the connection of one client and lets it come back when it is mended', () =>
    inWorld(async (world) => {
      const a = await world.connect(url, { ...options, clientId: 'a' })
      const b = await world.connect(url, { ...options, clientId: 'b' })
      const failures: unknown[] = []
      a.on('connecterror', ({ error }) => failures.push(error.cause))
      const mend = world.cut('a')
      await world.pass(0)
      expect([a.state, b.state]).toEqual(['reconnecting', 'connected'])
      expect([...world.broker.clients.keys()]).toEqual(['b'])
      await world.pass(20 * minute)
      expect(a.state).toBe('reconnecting')
      expect(failures).toHaveLength(120)
      expect(failures[0]).toMatchObject({ code: 'ENETUNREACH' })
      mend()
      await world.pass(10_000)
      expect([...world.broker.clients.keys()].sort()).toEqual(['a', 'b'])
    }))

  it('that is silent is found out by keep-alive at both ends, and dialling hangs', () =>
    inWorld(async (world) => {
      const client = await world.connect(url, { ...options, clientId: 'a' })
      const seen: string[] = []
      client.on('disconnect', ({ cause }) => seen.push(`${cause?.code} ${world.clock.now()}`))
      client.on('connecterror', ({ error }) => seen.push(`${error.code} ${world.clock.now()}`))
      const mend = world.cut('a', { silently: true })
      await world.pass(60_000)
      expect([client.state, world.broker.clients.size]).toEqual(['connected', 1])
      await world.pass(30_000)
      expect(world.broker.clients.size).toBe(0)
      // PINGREQ at 60 s, the reconnect 10 s after its time-out, and the first dial that hangs for the whole connectTimeout.
      expect(seen).toEqual(['ERR_KEEPALIVE_TIMEOUT 70000', 'ERR_CONNECT_TIMEOUT 90000'])
      await world.pass(12_000)
      expect(client.state).toBe('reconnecting')
      mend()
      await world.until(() => client.state === 'connected')
      // The dial that hung goes on.
      expect(world.clock.now()).toBe(102_000)
    }))

  it('stops a connection at whatever moment of its making it comes', async () => {
    for (let hops = 0; hops < 30; hops++) {
      await inWorld(async (world) => {
        const client = new world.Client(url, { firstConnect: 'wait' })
        const connected = client.connect()
        for (let hop = 0; hop < hops; hop++) await undefined
        const mend = world.cut()
        await world.pass(minute)
        expect([hops, client.state === 'connected', world.broker.clients.size]).toEqual([
          hops,
          false,
          0,
        ])
        mend()
        await world.until(connected.then(() => client.state === 'connected'))
      })
    }
  })

  it('of all holds for future clients too, and two cuts want two mends', () =>
    inWorld(async (world) => {
      const mends = [world.cut(), world.cut()]
      const client = new world.Client(url, {
        firstConnect: 'wait',
        reconnect: { backoff: () => 1000 },
      })
      const connected = client.connect()
      await world.pass(minute)
      mends[0]?.()
      mends[0]?.()
      await world.pass(minute)
      expect(client.state).toBe('connecting')
      mends[1]?.()
      await world.until(connected)
      expect(client.state).toBe('connected')
    }))

  it('carries no goodbye when it is silent, and the client ends all the same', () =>
    inWorld(async (world) => {
      const client = await world.connect(url, {
        clientId: 'a',
        will: { topic: 'gone', payload: '' },
      })
      world.cut('a', { silently: true })
      await world.until(client.disconnect())
      expect(client.state).toBe('closed')
      expect(world.broker.clients.size).toBe(1)
      await world.pass(2 * minute)
      expect(world.broker.accepted.map(({ topic }) => topic)).toEqual(['gone'])
    }))

  it('of a client that is none of this world is refused by name', () =>
    inWorld(async (world) => {
      await world.connect(url, { clientId: 'meter' })
      expect(() => world.cut('metre')).toThrow(
        expect.objectContaining({
          code: 'ERR_INVALID_OPTION',
          message: expect.stringContaining('meter'),
        }),
      )
      expect(() => world.cut(7 as never)).toThrow('clientId must be a string')
      expect(() => world.cut('meter', { silent: true } as never)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
      )
      expect(() => world.cut('meter', { silently: 1 as never })).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'silently' }),
      )
    }))
})

describe('the options of a world', () => {
  it.each([
    ['broker.clock', { broker: { clock: { now: () => 0, setTimer: () => () => undefined } } }],
    ['seed', { seed: -1 }],
    ['date', { date: new Date(Number.NaN) }],
    ['brokers', { brokers: {} }],
    ['keepSesions', { broker: { keepSesions: true } }],
  ])('refuse a wrong %s', (option, options) => {
    expect(() => new VirtualWorld(options as never)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option }),
    )
  })

  it('leave nothing behind when a client is refused', () =>
    inWorld(async (world) => {
      expect(() => new world.Client(url, { clientId: 7 as never })).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
      )
      expect(() => world.cut('7')).toThrow('there is none')
    }))
})
