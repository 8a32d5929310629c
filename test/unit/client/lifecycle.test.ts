/** States, events and their order; calls from every callback and in every state: everything settles, nothing is left. */
import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/options/index.js'
import { accepting, agreeable, connected, failure } from './harness.js'
import { publish, quiet } from './incoming.js'
import { type Behaviour, down, Rig, reconnect, refusing, rigged, welcoming } from './rig.js'
import { settled } from './steps.js'

type Act = (rig: Rig) => Promise<unknown>

const acts: Readonly<Record<string, Act>> = {
  connect: (rig) => rig.up(),
  'connect that is refused': async (rig) => {
    rig.behave = () => refusing(0x8a)
    await Promise.all([failure(rig.client.connect()), rig.settle()])
  },
  cut: (rig) => rig.cut(),
  'come back': (rig) => rig.advance(1000),
  'stay away': async (rig) => {
    rig.behave = () => down
    await rig.advance(40_000)
  },
  'server shuts down': (rig) => rig.goodbye(0x8b),
  'taken over': (rig) => rig.goodbye(0x8e),
  force: async (rig) => Promise.all([rig.client.reconnect({ force: true }), rig.advance(1500)]),
  disconnect: async (rig) => Promise.all([rig.client.disconnect(), rig.advance(2000)]),
  drain: async (rig) => Promise.all([rig.client.drain({ timeout: 500 }), rig.advance(2000)]),
  destroy: async (rig) => rig.client.destroy(),
}

it.each([
  ['connect, disconnect', 'connecting connected disconnecting'],
  ['connect, destroy', 'connecting connected'],
  ['connect that is refused', 'connecting'],
  ['disconnect', ''],
  ['destroy', ''],
  ['drain', ''],
  ['connect, cut, come back, drain', 'connecting connected reconnecting connected disconnecting'],
  ['connect, cut, destroy', 'connecting connected reconnecting'],
  ['connect, cut, disconnect', 'connecting connected reconnecting'],
  ['connect, cut, stay away, disconnect', 'connecting connected reconnecting'],
  ['connect, cut, stay away, drain', 'connecting connected reconnecting'],
  ['connect, server shuts down, come back, destroy', 'connecting connected reconnecting connected'],
  ['connect, taken over', 'connecting connected'],
  ['connect, force, destroy', 'connecting connected reconnecting connected'],
  ['connect, disconnect, disconnect, destroy', 'connecting connected disconnecting'],
])('%s: %s, each once', async (names, states) => {
  const rig = new Rig()
  for (const name of names.split(', ')) await acts[name]?.(rig)
  const seen = rig.seen('state').map(({ state }) => state)
  expect(seen).toEqual([...states.split(' ').filter(Boolean), 'closed'])
  rig.client.destroy()
  await rig.advance(2000)
  expect(rig.clock.pending).toBe(0)
  expect(rig.open).toBe(0)
})

describe('the order of events', () => {
  it('a whole life', async () => {
    const rig = await rigged({ clientId: 'c', cleanStart: false }).up()
    rig.behave = (_host, dial) => (dial === 2 ? down : welcoming({}, dial === 3))
    await rig.cut(3000)
    await rig.goodbye(0x8b)
    await rig.advance(4000)
    await rig.finish()
    const lives = [
      'state connecting, dial, state connected, connect, state reconnecting, disconnect, reconnecting, dial, connecterror, reconnecting',
      'dial, state connected, connect, serverdisconnect, state reconnecting, disconnect, reconnecting',
      'dial, state connected, connect, sessionlost, state disconnecting, state closed, disconnect',
    ]
    expect(rig.order).toEqual(lives.join(', ').split(', '))
  })

  it('reconnecting comes before the delay, dial right before dialling, both with the same attempt and endpoint', async () => {
    const rig = await rigged({}, { hosts: ['a', 'b'] }).up()
    rig.behave = () => down
    await rig.cut(20_000)
    const [, ...dials] = rig.events.filter(({ type }) => type === 'dial')
    expect(dials.length).toBeGreaterThan(3)
    const waits = rig.events.flatMap(({ type, at, event }) => {
      if (type !== 'reconnecting') return []
      const { delay, attempt, endpoint } = event as ClientEvents['reconnecting']
      return [{ type: 'dial', at: at + delay, event: { attempt, endpoint } }]
    })
    expect(dials).toMatchObject(waits.slice(0, dials.length))
    const dialled = rig.dials
      .slice(1)
      .map(({ at, host }) => ({ at, event: { endpoint: `x://${host}` } }))
    expect(dials).toMatchObject(dialled)
  })

  it('dial comes after credentials() and right before the transport is opened', async () => {
    const order: string[] = []
    const credentials = async (): Promise<object> => {
      order.push('credentials')
      await Promise.resolve()
      order.push('given')
      return {}
    }
    const rig = rigged({ credentials })
    rig.client.on('dial', () => order.push('dial'))
    rig.behave = () => {
      order.push('opened')
      return agreeable
    }
    await rig.up()
    expect(order).toEqual(['credentials', 'given', 'dial', 'opened'])
  })
})

it('a thousand reconnects: the same timers and streams as after the first', async () => {
  const options = { reconnect: { backoff: () => 10 }, clientId: 'c', cleanStart: false }
  const rig = await rigged(options).up()
  rig.behave = () => welcoming({}, true)
  const subscription = await settled(rig, rig.client.subscribe('a', { qos: 1 }))
  const { pending } = rig.clock
  for (let round = 0; round < 1000; round++) {
    rig.peer.cut()
    await rig.advance(10)
  }
  expect([rig.client.state, rig.dials.length, rig.open]).toEqual(['connected', 1001, 1])
  expect([subscription.size, rig.clock.pending]).toEqual([0, pending])
})

/** What a program may call; each gives every promise that came of it, or throws. */
type Call = (rig: Rig) => unknown
const calls: Readonly<Record<string, Call>> = {
  'publish QoS 0': ({ client }) => client.publish('t', 'x'),
  'publish QoS 0, flushed': ({ client }) => client.publish('t', 'x', { flush: true }),
  'publish QoS 1': ({ client }) => client.publish('t', 'x', { qos: 1 }),
  'publish QoS 2': ({ client }) => client.publish('t', 'x', { qos: 2 }),
  post: ({ client }) => void client.post('t', 'x'),
  subscribe: ({ client }) => client.subscribe(['s', 'c/#'], { qos: 1 }),
  subscription: ({ client }) => {
    const subscription = client.subscription('f', { ack: 'manual' })
    const reading = [subscription.next(), subscription[Symbol.asyncIterator]().next()]
    return [subscription.ready, ...reading, subscription.unsubscribe()]
  },
  unsubscribe: ({ client }) => client.unsubscribe('s'),
  listen: ({ client }) =>
    client.listen('l', () => undefined, { qos: 1 }).then((handling) => handling.done),
  request: ({ client }) => client.request('svc', 'x', { timeout: 100 }),
  flush: ({ client }) => [client.flush(), client.writable],
  reauthenticate: ({ client }) => client.reauthenticate(),
  stats: ({ client }) => void client.stats(),
  connect: ({ client }) => client.connect(),
  reconnect: ({ client }) => client.reconnect(),
  'reconnect force': ({ client }) => client.reconnect({ force: true }),
  setBrokers: (rig) => rig.client.setBrokers([rig.endpoint('b'), rig.endpoint('c')]),
  disconnect: ({ client }) => client.disconnect({ timeout: 1000 }),
  'disconnect at once': ({ client }) => client.disconnect({ timeout: 0 }),
  drain: ({ client }) => client.drain({ timeout: 50 }),
  destroy: ({ client }) => client.destroy(),
}

/** Keeps count of promises. */
class Tally {
  pending = 0
  total = 0

  make(call: Call, rig: Rig): void {
    try {
      this.add(...([call(rig)].flat() as Promise<unknown>[]))
    } catch {
      // Refused at once.
    }
  }

  add(...promises: unknown[]): void {
    for (const promise of promises) {
      this.pending += 1
      this.total += 1
      const settled = (): void => void this.pending--
      Promise.resolve(promise).then(settled, settled)
    }
  }
}

/** It is over: everything has settled, and no stream and no timer is left. */
async function expectOver(rig: Rig, tally: Tally, what?: unknown): Promise<void> {
  expect([what, tally.pending, rig.client.state]).toEqual([what, 0, 'closed'])
  await rig.advance(2000)
  expect([what, rig.open, rig.clock.pending]).toEqual([what, 0, 0])
  expect(rig.seen('connect')).toHaveLength(rig.seen('disconnect').length)
  expect(rig.seen('state').filter(({ state }) => state === 'closed')).toHaveLength(1)
}

const events = [
  'dial',
  'connect',
  'connecterror',
  'reconnecting',
  'disconnect',
  'serverdisconnect',
  'sessionlost',
] as const
const states = ['connecting', 'connected', 'reconnecting', 'disconnecting', 'closed'].map(
  (state) => `state ${state}`,
)
/** Where a program may call from. */
const places = [...states, ...events, 'credentials', 'decide', 'backoff', 'transport', 'handler']

/** A life in which every event comes: refused once, up, cut, down once, up, goodbye, up without its session, ended. */
async function life(place: string, made: readonly Call[], most: number): Promise<number> {
  let called = 0
  const tally = new Tally()
  const here = (at: string): void => {
    if (at !== place || called >= most) return
    called += 1
    for (const call of made) tally.make(call, rig)
  }
  const rig: Rig = new Rig({
    clientId: 'c',
    cleanStart: false,
    firstConnect: 'wait',
    credentials: () => {
      here('credentials')
      return {}
    },
    reconnect: {
      backoff: (attempt) => {
        here('backoff')
        return reconnect.backoff(attempt)
      },
      decide: () => {
        here('decide')
        return undefined
      },
    },
  })
  rig.behave = (_host, dial) => {
    here('transport')
    if (dial === 1) return refusing(0x88)
    return dial === 3 ? down : welcoming({}, dial === 4)
  }
  for (const type of events) rig.client.on(type, () => here(type))
  rig.client.on('state', ({ state }: ClientEvents['state']) => here(`state ${state}`))
  tally.add(
    rig.client.listen('in', () => here('handler'), { qos: 1 }),
    rig.client.connect(),
  )
  await rig.advance(1500)
  rig.peers.at(-1)?.send(publish('in', 'x', 9))
  await rig.settle()
  rig.peers.at(-1)?.cut()
  await rig.advance(10_000)
  rig.peers.at(-1)?.send({ type: 'disconnect', reasonCode: 0x8b })
  rig.peers.at(-1)?.end()
  await rig.advance(60_000)
  tally.add(rig.client.disconnect({ timeout: 200 }))
  await rig.advance(2000)
  await expectOver(rig, tally, place)
  return called
}

describe.each(places)('calls from %s', (place) => {
  it('the life that they are made in has it', async () => {
    expect(await life(place, [], 1)).toBe(1)
  })

  it.each(Object.entries(calls))('%s, every time: everything settles', async (_name, call) => {
    expect(await life(place, [call], 25)).toBeGreaterThan(0)
  })
})

describe('what a call from a callback comes to', () => {
  it('publish in disconnect waits for the next connection', async () => {
    const rig = await rigged({ clientId: 'c', cleanStart: false }).up()
    const receipts: Promise<unknown>[] = []
    rig.client.on('disconnect', () => receipts.push(rig.client.publish('t', 'later', { qos: 1 })), {
      once: true,
    })
    await rig.cut(1000)
    expect(await Promise.all(receipts)).toMatchObject([{ reasonCode: 0 }])
    expect(rig.peers.map((peer) => peer.all('publish').length)).toEqual([0, 1])
  })

  it('subscribe in connect, every time: one SUBSCRIBE for each', async () => {
    const rig = rigged({ clientId: 'c', cleanStart: false })
    rig.client.on('connect', () => void rig.client.subscription(`s/${rig.dials.length}`))
    await rig.up()
    rig.behave = () => welcoming({}, true)
    await rig.cut(1000)
    const subscribed = rig.peers.map((peer) =>
      peer.all('subscribe').flatMap(({ subscriptions }) => subscriptions),
    )
    expect(subscribed).toMatchObject([[{ filter: 's/1' }], [{ filter: 's/2' }]])
  })

  it('destroy in dial: nothing is sent, no stream stays', async () => {
    const rig = rigged()
    rig.client.on('dial', () => rig.client.destroy())
    const connecting = failure(rig.client.connect())
    await rig.settle()
    expect(await connecting).toMatchObject({ code: 'ERR_CLOSED' })
    expect(rig.peers.flatMap((peer) => peer.bytes)).toEqual([])
    expect(rig.open).toBe(0)
    expect(rig.clock.pending).toBe(0)
  })

  it.each(['reconnecting', 'serverdisconnect'] as const)('disconnect in %s', async (type) => {
    const rig = await rigged().up()
    rig.client.on(type, () => void quiet(rig.client.disconnect()))
    await (type === 'reconnecting' ? rig.cut() : rig.goodbye(0x8b))
    const ended = (): unknown[] => [rig.client.state, rig.clock.pending, rig.dials.length]
    if (type === 'reconnecting') expect(ended()).toEqual(['closed', 0, 1])
    await rig.advance(100_000)
    expect(ended()).toEqual(['closed', 0, 1])
    expect(rig.seen('disconnect').length).toBe(1)
  })
})

/** Takes us in and answers nothing else. */
const mute = accepting()
const silent: Behaviour = () => undefined

/** States in which a client may be asked to end. */
const situations: Readonly<Record<string, (rig: Rig) => unknown>> = {
  idle: () => undefined,
  'waiting for credentials': (rig) => begin(rig, agreeable),
  reconnector: (rig) => begin(rig, 'hang'),
  'waiting for CONNACK': (rig) => begin(rig, silent),
  'waiting to dial for the first time again': (rig) => begin(rig, down, 500),
  connected: (rig) => rig.up(),
  'connected to one that answers nothing': (rig) => begin(rig, mute),
  'waiting to reconnect': (rig) => rig.up().then(() => rig.cut()),
  'dialling again': (rig) => again(rig, 'hang'),
  'waiting for CONNACK again': (rig) => again(rig, silent),
  'being replaced': (rig) => rig.up().then(() => void quiet(rig.client.reconnect({ force: true }))),
  disconnecting: async (rig) => {
    await begin(rig, mute)
    quiet(rig.client.publish('t', 'x', { qos: 1 }))
    quiet(rig.client.drain({ timeout: 60_000 }))
    await rig.settle()
  },
  closed: (rig) => rig.client.destroy(),
}

async function begin(rig: Rig, behaviour: Behaviour, wait = 0): Promise<void> {
  rig.behave = () => behaviour
  quiet(rig.client.connect())
  await rig.advance(wait)
}

async function again(rig: Rig, behaviour: Behaviour): Promise<void> {
  await rig.up()
  rig.behave = () => behaviour
  await rig.cut(1200)
}

const ending = /^(reconnect force|setBrokers|disconnect|drain|destroy)/
const harmless = Object.entries(calls).flatMap(([name, call]) => (ending.test(name) ? [] : [call]))

describe.each(Object.keys(situations))('the end while %s: every promise settles', (name) => {
  /** In that state, with every call under way. */
  async function situation(all = true): Promise<{ rig: Rig; tally: Tally }> {
    const never =
      name === 'waiting for credentials'
        ? { credentials: () => new Promise<never>(() => undefined) }
        : {}
    const rig = new Rig({ firstConnect: 'wait', ...never })
    await situations[name]?.(rig)
    const tally = new Tally()
    if (all) for (const call of harmless) tally.make(call, rig)
    return { rig, tally }
  }

  it('within 50 ms of disconnect({ timeout: 0 })', async () => {
    const { rig, tally } = await situation()
    await rig.settle()
    tally.add(rig.client.disconnect({ timeout: 0 }))
    await rig.advance(50)
    expect(tally.total).toBeGreaterThan(8)
    await expectOver(rig, tally)
  })

  it('at once with destroy()', async () => {
    const { rig, tally } = await situation()
    await rig.settle()
    rig.client.destroy()
    await rig.settle()
    expect([tally.pending, rig.open, rig.clock.pending]).toEqual([0, 0, 0])
  })

  it('within 250 ms of disconnect({ timeout: 200 }) and drain()', async () => {
    const { rig } = await situation()
    const tally = new Tally()
    tally.add(rig.client.disconnect({ timeout: 200 }), rig.client.drain({ timeout: 200 }))
    await rig.advance(250)
    await expectOver(rig, tally)
  })
})

it('behind a Proxy, as in Vue, and in a copy, state and identifier are those of the client', async () => {
  const { client } = await connected({ clientId: 'a' })
  // Wraps all objects that are read, as Vue does.
  const deep: ProxyHandler<object> = {
    get(target, key, receiver) {
      const value: unknown = Reflect.get(target, key, receiver)
      return typeof value === 'object' && value !== null ? new Proxy(value, deep) : value
    },
  }
  for (const seen of [
    new Proxy(client, {}),
    new Proxy(client, deep) as typeof client,
    Object.create(client) as typeof client,
    { ...client },
  ])
    expect([seen.state, seen.clientId]).toEqual(['connected', 'a'])
  client.destroy()
})
