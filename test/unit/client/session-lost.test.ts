/** The session is lost, or expires while there is no connection: every message in flight is accounted for, also while listeners act. */
import { describe, expect, it } from 'vitest'
import { constant } from '../../../src/client/options/backoff.js'
import type { ClientEvents, ClientOptions } from '../../../src/client/options/index.js'
import type { Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import {
  again,
  carried,
  comeBack,
  forgets,
  lasting,
  lose,
  pause,
  send,
  steady,
  willing,
} from './across.js'
import { connected, failure, type World } from './harness.js'
import { publish, quiet, subscribe, taken, takenTexts } from './incoming.js'
import { ack } from './stub.js'

const lostUnknown = { code: 'ERR_SESSION_LOST', outcome: 'unknown' }
const republish = { onSessionLost: 'republish' } as const
/** What a connection carried, without packet identifiers. */
const lines = (peer: ScriptedPeer) => carried(peer).map((line) => line.replace(/ #\d+/, ''))
const identifiers = (world: World) => world.peer.all('publish').map(({ packetId }) => packetId ?? 0)

it('QoS 1 in flight: is published as new: DUP 0, in order, before what was never sent; it settles with that', async () => {
  const world = await steady()
  const promises = send(world, 1, 'a', 'b')
  await world.settle()
  await lose(world)
  promises.push(...send(world, 1, 'new'))
  const peer = await comeBack(world, forgets())
  expect(lines(peer)).toEqual(['publish t=a q1', 'publish t=b q1', 'publish t=new q1'])
  const ids = identifiers(world)
  expect(new Set(ids).size).toBe(3)
  await world.send(...ids.map((id) => ack('puback', id)))
  await expect(Promise.all(promises)).resolves.toMatchObject(ids.map((packetId) => ({ packetId })))
  expect(world.seen('drop')).toEqual([])
})

it('QoS 1 in flight: is rejected with ERR_SESSION_LOST, outcome unknown, where that is asked for', async () => {
  const world = await steady({ outbound: { onSessionLost: 'reject' } })
  const error = failure(world.client.publish('t', 'a', { qos: 1 }))
  quiet(world.client.publish('t', 'b', { qos: 1, ...republish }))
  await world.settle()
  const peer = await again(world, forgets())
  expect(await error).toMatchObject(lostUnknown)
  expect(lines(peer)).toEqual(['publish t=b q1'])
})

it('QoS 2 in flight: rejects with ERR_SESSION_LOST, outcome unknown, whether PUBREC had come or not; its PUBREL is not sent', async () => {
  const world = await steady()
  const errors = ['one', 'two'].map((text) => failure(world.client.publish('t', text, { qos: 2 })))
  await world.send(ack('pubrec', 2))
  const peer = await again(world, forgets())
  expect(await Promise.all(errors)).toMatchObject([lostUnknown, lostUnknown])
  expect(carried(peer)).toEqual([])
})

it.each<[string, ClientOptions, Partial<typeof republish>]>([
  ['for the client', { outbound: republish }, {}],
  ['for this one', {}, republish],
  ['for this one, over the client', { outbound: { onSessionLost: 'reject' } }, republish],
])(
  'QoS 2 in flight: is published again where that is asked %s, in the order of the calls',
  async (_name, options, own) => {
    const world = await steady(options)
    const calls = ['a', 'b', 'c', 'd'].map((text) =>
      quiet(world.client.publish('t', text, { qos: text === 'c' ? 1 : 2, ...own })),
    )
    await world.send(ack('pubrec', 4), ack('pubrec', 2))
    const peer = await again(world, willing(false))
    const published = ['publish t=a q2', 'publish t=b q2', 'publish t=c q1', 'publish t=d q2']
    expect(lines(peer).filter((line) => line.startsWith('publish'))).toEqual(published)
    await expect(Promise.all(calls)).resolves.toHaveLength(4)
  },
)

it('`sessionlost`: accounts for every message in flight, one by one, and for none that was queued or settled', async () => {
  const world = await steady()
  const [acknowledged] = send(world, 1, 'acknowledged')
  await world.send(ack('puback', 1))
  await acknowledged
  send(world, 1, 'a')
  send(world, 2, 'b', 'c')
  await world.send(ack('pubrec', 4))
  await lose(world)
  send(world, 1, 'queued')
  send(world, 2, 'queued')
  await comeBack(world, forgets())
  const [event, ...rest] = world.seen('sessionlost')
  expect(rest).toEqual([])
  expect(event).toMatchObject({
    cause: 'absent',
    stale: 0,
    republished: [{ topic: 't', qos: 1, packetId: 2 }],
  })
  const rejected = [...(event?.rejected ?? [])].sort((one, other) => one.packetId - other.packetId)
  expect(rejected).toMatchObject(
    [3, 4].map((packetId) => ({ topic: 't', qos: 2, packetId, error: lostUnknown })),
  )
  expect(Object.isFrozen(event)).toBe(true)
})

it('`sessionlost`: comes once for each loss, with the connection that shows it, also when nothing was in flight; so does a warning', async () => {
  const warnings: string[] = []
  const logger = { warn: (line: string) => void warnings.push(line) }
  const world = await steady({ clientId: 'c', cleanStart: false, logger }, forgets())
  await again(world, forgets())
  expect(world.seen('sessionlost')).toEqual([
    { cause: 'absent', republished: [], rejected: [], stale: 0 },
  ])
  // It does not come with the first connection, nor where the session was kept.
  await again(world)
  await again(world, forgets())
  const order = world.events
    .map(({ type }) => type)
    .filter((type) => /^(connect|sessionlost)$/.test(type))
  expect(order).toEqual(['connect', 'connect', 'sessionlost', 'connect', 'connect', 'sessionlost'])
  expect(warnings.filter((line) => /session lost.*absent/.test(line))).toHaveLength(2)
})

it('`sessionlost`: a message republished after one loss is accounted for again at the next, and arrives once', async () => {
  const world = await steady()
  const [one] = send(world, 1, 'one')
  await world.settle()
  await again(world, forgets())
  await again(world, forgets())
  expect(world.seen('sessionlost').map(({ republished }) => republished.length)).toEqual([1, 1])
  const peer = await again(world, willing(false))
  expect(peer.all('publish')).toHaveLength(1)
  await expect(one).resolves.toMatchObject({ reasonCode: 0 })
})

it('`sessionlost`: a message whose caller has been answered already is neither republished nor counted as rejected twice', async () => {
  const world = await steady()
  const late = failure(world.client.publish('t', 'late', { qos: 1, ackTimeout: 5 }))
  await world.clock.advance(5)
  expect((await late).code).toBe('ERR_TIMEOUT')
  expect(carried(await again(world, forgets()))).toEqual([])
  expect(world.seen('sessionlost')).toMatchObject([{ republished: [], rejected: [] }])
  expect(world.seen('drop')).toHaveLength(1)
})

it('incoming messages of a lost session: are stale: `ack()` gives false and sends nothing; their number is told', async () => {
  const world = await steady({}, willing(false))
  const subscription = await subscribe(world, 't', { qos: 2, ack: 'manual' })
  await world.send(
    publish('t', 'one', 1),
    publish('t', 'two', 2, { qos: 2 }),
    publish('t', 'three', 3),
  )
  const messages = [taken(subscription), taken(subscription), taken(subscription)]
  await lose(world)
  expect(messages[0]?.ack()).toBe(true)
  const peer = await comeBack(world, willing(false))
  expect(world.seen('sessionlost')).toMatchObject([{ stale: 3 }])
  expect(messages.map((message) => message.ack())).toEqual([false, false, false])
  await world.settle()
  expect(lines(peer)).toEqual(['subscribe t'])
})

it('incoming messages of a lost session: what was buffered and not read can still be read', async () => {
  const world = await steady({}, willing(false))
  const subscription = await subscribe(world, 't', { qos: 1 })
  await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
  const peer = await again(world, willing(false))
  expect(takenTexts(subscription)).toEqual(['one', 'two'])
  await world.settle()
  expect(lines(peer)).toEqual(['subscribe t'])
})

describe('what was sent before', () => {
  /** Two in flight; the next connection has room for one: the other waits to be republished. */
  async function waiting(options?: ClientOptions, second = {}) {
    const world = await steady(options, forgets({ receiveMaximum: 2 }))
    const calls = [{}, second].map((more) =>
      quiet(world.client.publish('t', 'x', { qos: 1, ...more })),
    )
    await world.settle()
    await again(world, forgets({ receiveMaximum: 1 }))
    return { world, calls }
  }

  it('is out of reach of `ttl`, message expiry and `clear()` also after it was taken back', async () => {
    const expiring = { properties: { messageExpiryInterval: 1 } }
    const { world, calls } = await waiting({ outbound: { ttl: 100 } }, expiring)
    await world.clock.advance(5000)
    world.client.outbound.clear()
    expect(await world.outcome(calls[1] as Promise<unknown>)).toEqual({ state: 'pending' })
    for (const index of [0, 1]) await world.send(ack('puback', identifiers(world)[index] ?? 0))
    expect(lines(world.peer)).toEqual(['publish t=x q1', 'publish t=x q1'])
    await expect(Promise.all(calls)).resolves.toHaveLength(2)
  })

  it('an abort of one that waits to be republished rejects with outcome unknown: it was sent once', async () => {
    const controller = new AbortController()
    const { world, calls } = await waiting({}, { signal: controller.signal })
    controller.abort()
    expect(await failure(calls[1] as Promise<unknown>)).toMatchObject({
      code: 'ERR_ABORTED',
      outcome: 'unknown',
    })
    await world.send(ack('puback', identifiers(world)[0] ?? 0))
    expect(lines(world.peer)).toHaveLength(1)
  })

  it('at the end of the client it rejects with outcome unknown, what was never sent with not-sent', async () => {
    const { world, calls } = await waiting()
    calls.push(world.client.publish('t', 'three', { qos: 1 }))
    const errors = calls.map(failure)
    world.client.destroy()
    const outcomes = (await Promise.all(errors)).map(({ code, outcome }) => `${code} ${outcome}`)
    expect(outcomes).toEqual(['ERR_CLOSED unknown', 'ERR_CLOSED unknown', 'ERR_CLOSED not-sent'])
  })
})

/** Two QoS 2 messages and one at QoS 1 in flight; the server forgets, and `act` runs in the first event of this type. */
async function losing(type: keyof ClientEvents, act: (world: World) => unknown) {
  const world = await steady()
  const errors = ['a', 'b'].map((text) => failure(world.client.publish('t', text, { qos: 2 })))
  send(world, 1, 'c')
  await world.settle()
  world.client.on(type, () => void act(world), { once: true })
  await lose(world)
  world.answer = forgets()
  await world.clock.advance(pause)
  return { world, errors }
}

it.each([
  ['drop', 'destroy'],
  ['sessionlost', 'disconnect'],
  ['state', 'destroy'],
  ['connect', 'disconnect'],
] as const)(
  'a listener that ends the client: on `%s`, by %s(): it stays closed',
  async (type, how) => {
    const { world, errors } = await losing(type, ({ client }) =>
      how === 'destroy' ? client.destroy() : quiet(client.disconnect({ timeout: 0 })),
    )
    await world.clock.advance(60_000)
    expect([world.client.state, world.seen('state').at(-1)?.state]).toEqual(['closed', 'closed'])
    for (const error of errors) expect(await error).toMatchObject({ outcome: 'unknown' })
    expect([world.client.outbound.size, world.clock.pending]).toEqual([0, 0])
    expect(world.seen('connect').length).toBe(world.seen('disconnect').length)
  },
)

it('a listener that ends the client: on `error` of a filter that is refused while it is brought back', async () => {
  const world = await steady({}, willing(false))
  for (const filter of ['a', 'b']) await subscribe(world, filter)
  world.client.on('error', () => world.client.destroy(), { once: true })
  await again(world, (packet) =>
    packet.type === 'subscribe'
      ? {
          type: 'suback',
          packetId: packet.packetId,
          reasonCodes: packet.subscriptions.map(() => 0x87),
        }
      : willing(false)(packet),
  )
  await world.clock.advance(60_000)
  expect([world.client.state, world.clock.pending]).toEqual(['closed', 0])
})

it.each(['drop', 'sessionlost'] as const)(
  'a listener that goes on: publishing and subscribing on `%s`',
  async (type) => {
    const { world } = await losing(type, ({ client }) => {
      quiet(client.publish('t', 'new', { qos: 1 }))
      quiet(client.subscribe('s'))
    })
    expect(lines(world.peer).sort()).toEqual(['publish t=c q1', 'publish t=new q1', 'subscribe s'])
  },
)

it('a listener that goes on: publishing the rejected messages again, on `drop`: one connection carries each once, no loop', async () => {
  const world = await steady()
  quiet(world.client.publish('t', 'a', { qos: 2 }))
  await world.settle()
  let count = 0
  world.client.on('drop', () => {
    count += 1
    quiet(world.client.publish('t', 'a', { qos: 2 }))
  })
  for (let round = 1; round <= 3; round++) {
    expect(lines(await again(world, forgets()))).toEqual(['publish t=a q2'])
    expect(count).toBe(round)
  }
})

const hour = 3_600_000
const days = 24 * hour

/** A client that comes back after an hour. */
const patient = (
  sessionExpiryInterval: number,
  more?: ClientOptions,
  answer?: Answer,
): Promise<World> =>
  connected(
    { keepAlive: false, reconnect: { backoff: constant(hour) }, sessionExpiryInterval, ...more },
    answer,
  )

describe('the session expires while there is no connection', () => {
  it('is counted from the loss of the connection: `sessionlost` tells it, QoS 2 rejects, QoS 1 waits to be republished', async () => {
    const world = await patient(100)
    const [one] = send(world, 1, 'one')
    const two = failure(world.client.publish('t', 'two', { qos: 2 }))
    await world.settle()
    await lose(world)
    await world.clock.advance(99_999)
    expect(world.seen('sessionlost')).toEqual([])
    await world.clock.advance(1)
    const event = {
      cause: 'expired',
      republished: [{ packetId: 1 }],
      rejected: [{ packetId: 2 }],
      stale: 0,
    }
    expect(world.seen('sessionlost')).toMatchObject([event])
    expect(await two).toMatchObject(lostUnknown)
    expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
    expect(world.client.state).toBe('reconnecting')
    world.answer = willing(false)
    await world.clock.advance(hour)
    expect(carried(world.peer)).toEqual([expect.stringMatching(/^publish t=one q1 #\d+$/)])
    await expect(one).resolves.toMatchObject({ reasonCode: 0 })
    // It is told once, not again with Session Present 0.
    expect(world.seen('sessionlost')).toHaveLength(1)
  })

  it('the server’s value counts where it gave one', async () => {
    const world = await patient(1000, {}, forgets({ sessionExpiryInterval: 5 }))
    await lose(world)
    await world.clock.advance(5000)
    expect(world.seen('sessionlost')).toMatchObject([{ cause: 'expired' }])
  })

  it('a connection in time stops the count; the next loss begins it again', async () => {
    const world = await steady({ sessionExpiryInterval: 1 })
    for (let round = 0; round < 5; round++) {
      await again(world)
      await world.clock.advance(900)
    }
    await world.clock.advance(100_000)
    expect(world.seen('sessionlost')).toEqual([])
  })

  it('4,294,967,295 is for ever: neither 50 days of attempts that fail end it, nor a clock that is then set as many seconds on', async () => {
    const world = await patient(4_294_967_295)
    await lose(world)
    world.answer = () => undefined
    await world.clock.advance(50 * days)
    expect(world.seen('sessionlost')).toEqual([])
    world.clock.jump(4_294_967_295_000)
    await world.settle()
    expect(world.seen('sessionlost')).toEqual([])
  })

  it('intervals beyond what a timer can wait for are honoured', async () => {
    const world = await patient(30 * 24 * 3600, { reconnect: { backoff: constant(2_147_483_647) } })
    world.answer = () => undefined
    await lose(world)
    await world.clock.advance(30 * days - 1)
    expect(world.seen('sessionlost')).toEqual([])
    await world.clock.advance(1)
    expect(world.seen('sessionlost')).toMatchObject([{ cause: 'expired' }])
  })

  it('on the next connection the session is ended by Clean Start 1, should the server have kept it, and subscriptions are made again', async () => {
    const world = await patient(10, {}, willing(false))
    await subscribe(world, ['a', 'b'], { qos: 1 })
    await lose(world)
    await world.clock.advance(hour)
    expect(world.peers.map((peer) => peer.last('connect').cleanStart)).toEqual([true, true])
    expect(carried(world.peer)).toEqual([expect.stringMatching(/^subscribe a,b #\d+$/)])
    expect(world.client.state).toBe('connected')
  })

  it('is checked on the wall clock: a machine that slept past it finds the session expired', async () => {
    const world = await connected({
      ...lasting,
      reconnect: { backoff: constant(1000) },
      sessionExpiryInterval: 60,
    })
    const two = failure(world.client.publish('t', 'two', { qos: 2 }))
    await world.settle()
    await lose(world)
    world.clock.jump(8 * hour)
    world.answer = forgets()
    await world.clock.advance(1000)
    expect(await two).toMatchObject(lostUnknown)
    expect(world.seen('sessionlost')).toHaveLength(1)
  })
})
