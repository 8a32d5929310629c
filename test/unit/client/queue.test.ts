/** What waits to be sent: kept or rejected as said, bounded, sent in order once there is a connection, and nothing left unsettled. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, OutboundOptions } from '../../../src/client/options/index.js'
import type { Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { again, carried, comeBack, forgets, lasting, lose, steady, willing } from './across.js'
import { times, World } from './harness.js'
import { refusing } from './rig.js'
import { ack, fates, stubbed, texts } from './stub.js'

const levels = [0, 1, 2] as const
const offline = (policy: 'queue' | 'reject'): ClientOptions => ({
  outbound: { offline: { qos0: policy, qos1: policy, qos2: policy } },
})
const done = (count: number): string[] => Array(count).fill('done')

/** Publishes these at QoS 1, in payloads of this size. */
const put = (world: Pick<World, 'client'>, names: string, size = 1): string[] =>
  fates(...[...names].map((name) => world.client.publish('t', name.padEnd(size, '.'), { qos: 1 })))

/** A client that has lost its connection. */
async function lost(options: ClientOptions = {}): Promise<World> {
  const world = await steady(options, willing(false))
  await lose(world)
  return world
}

/** The next connection, with the session. */
const back = (world: World, properties = {}): Promise<ScriptedPeer> =>
  comeBack(world, willing(true, properties))

interface Away {
  readonly world: World
  online(answer?: Answer): Promise<ScriptedPeer>
}

const places: Record<string, (options?: ClientOptions) => Promise<Away>> = {
  async first(options) {
    const world = new World({ ...lasting, ...options })
    const online = async (answer: Answer = willing(false)) => {
      await world.up(answer)
      return world.peer
    }
    return { world, online }
  },
  async next(options) {
    const world = await lost(options)
    return { world, online: (answer = willing(true)) => comeBack(world, answer) }
  },
}

describe.each(['first', 'next'])('before the %s connection', (place) => {
  const away = places[place] as (typeof places)[string]
  const policies = [undefined, 'queue', 'reject'] as const

  it.each(
    levels.flatMap((qos) =>
      policies.flatMap((policy) => policies.map((own) => [qos, policy, own] as const)),
    ),
  )('QoS %d, policy of the client %s, of the publish %s', async (qos, policy, own) => {
    const kept = (own ?? policy ?? (qos === 0 ? 'reject' : 'queue')) === 'queue'
    const { world, online } = await away(policy && offline(policy))
    const calls = fates(world.client.publish('t', 'x', { qos, offline: own }))
    await world.settle()
    expect(calls).toEqual([kept ? 'pending' : 'ERR_NOT_CONNECTED not-sent'])
    // `post` takes nothing, whatever the policy.
    expect([world.client.outbound.size, world.client.post('t', 'y')]).toEqual([kept ? 1 : 0, false])
    const peer = await online()
    expect(peer.all('publish').map((packet) => `${packet.qos} ${packet.dup}`)).toEqual(
      kept ? [`${qos} false`] : [],
    )
    expect(calls).toEqual([kept ? 'done' : 'ERR_NOT_CONNECTED not-sent'])
  })

  it('call order is kept within QoS 1 and 2, and within QoS 0; listeners of the connection come behind', async () => {
    const { world, online } = await away(offline('queue'))
    const all = times(60, (index) =>
      world.client.publish('t', `${index}`, { qos: (index % 3) as 0 | 1 | 2 }),
    )
    const late = (name: string) => (event: object) => {
      if ('state' in event && event.state !== 'connected') return
      for (const qos of [1, 0] as const) all.push(world.client.publish('t', name, { qos }))
    }
    world.client.on('state', late('state'))
    world.client.on('connect', late('event'))
    const peer = await online(willing(place === 'next', { receiveMaximum: 3 }))
    await expect(Promise.all(all)).resolves.toHaveLength(64)
    const order = [...Array(60).keys(), 'state', 'event'].map(String)
    const zero = order.filter((name) => !(Number(name) % 3 > 0))
    const publishes = peer.all('publish')
    const sent = (wanted: boolean) =>
      texts(peer).filter((_, index) => (publishes[index]?.qos === 0) === wanted)
    expect(sent(true)).toEqual(zero)
    expect(sent(false)).toEqual(order.filter((name) => !(Number(name) % 3 === 0)))
  })

  // Four fit in 4,900 bytes with any bookkeeping below 200 bytes a message; what is in flight counts as well.
  it.each([
    ['reject', 'ERR_QUEUE_FULL', 'abcd'],
    ['drop-newest', 'ERR_DROPPED', 'abcd'],
    ['drop-oldest', 'ERR_DROPPED', 'ghij'],
    // The default: as many again wait.
    [undefined, 'ERR_QUEUE_FULL', 'abcdefgh'],
  ] as const)("a full queue under '%s': %s for all but %s", async (overflow, code, least) => {
    for (const limit of [{ maxQueuedMessages: 4 }, { maxQueuedBytes: 4900 }]) {
      const { world, online } = await away({ outbound: { ...limit, overflow } })
      const calls = put(world, 'abcdefghij', 1000)
      await world.settle()
      const more = 'maxQueuedBytes' in limit && overflow === undefined && calls[8] === 'pending'
      const kept = more ? `${least}i` : least
      const expected = (end: string) =>
        [...'abcdefghij'].map((name) => (kept.includes(name) ? end : `${code} not-sent`))
      expect(calls).toEqual(expected('pending'))
      const drop = { direction: 'out', topic: 't', count: 1, error: { code, fault: 'local' } }
      expect(world.seen('drop')).toMatchObject(Array(10 - kept.length).fill(drop))
      expect(world.client.outbound.size).toBe(kept.length)
      expect(texts(await online()).map((text) => text.charAt(0))).toEqual([...kept])
      expect(calls).toEqual(expected('done'))
    }
  })

  it('one publish may name another overflow policy', async () => {
    const { world, online } = await away({ outbound: { maxQueuedMessages: 2, overflow: 'reject' } })
    put(world, 'ab')
    const overflows = ['drop-oldest', 'drop-newest', 'wait', undefined] as const
    const calls = fates(
      ...overflows.map((overflow, index) =>
        world.client.publish('t', 'cdef'.charAt(index), { qos: 1, overflow }),
      ),
    )
    expect(texts(await online())).toEqual(['b', 'c', 'e'])
    expect(calls).toEqual(['done', 'ERR_DROPPED not-sent', 'done', 'ERR_QUEUE_FULL not-sent'])
  })
})

it('a first connection that fails for good rejects all that waits with its error, as not sent', async () => {
  const world = new World(lasting)
  const calls = fates(...([1, 2] as const).map((qos) => world.client.publish('t', 'x', { qos })))
  world.answer = refusing(0x87)
  await Promise.all([
    expect(world.client.connect()).rejects.toMatchObject({ reasonCode: 0x87 }),
    world.settle(),
  ])
  expect([...calls, world.client.outbound.size]).toEqual([
    'ERR_CONNECT_REFUSED not-sent',
    'ERR_CONNECT_REFUSED not-sent',
    0,
  ])
})

it('queued when the link drops: QoS 1 and 2 that wait for quota stay, or go where the policy is to reject: not-sent', async () => {
  const world = await steady({}, forgets({ receiveMaximum: 1 }))
  const calls = fates(
    world.client.publish('t', 'in flight', { qos: 1 }),
    world.client.publish('t', 'stays', { qos: 2 }),
    world.client.publish('t', 'goes', { qos: 1, offline: 'reject' }),
  )
  await lose(world)
  expect(calls).toEqual(['pending', 'pending', 'ERR_NOT_CONNECTED not-sent'])
  expect(texts(await back(world))).toEqual(['in flight', 'stays'])
  expect(calls.slice(0, 2)).toEqual(done(2))
})

it.each(['reject', 'queue'] as const)(
  'queued when the link drops: QoS 0 that was not taken yet: %s',
  async (policy) => {
    const world = new World(
      { ...lasting, ...offline(policy) },
      { forward: { highWaterMark: 64, latency: 5 } },
    )
    world.answer = willing(false)
    await Promise.all([world.client.connect(), world.clock.advance(10)])
    const blocking = fates(world.client.publish('t', 'x'.repeat(200)))
    await world.settle()
    const waiting = fates(world.client.publish('t', 'waits'))
    await lose(world)
    const kept = policy === 'queue'
    expect([...blocking, ...waiting]).toEqual([
      'done',
      kept ? 'pending' : 'ERR_NOT_CONNECTED not-sent',
    ])
    world.answer = willing(true)
    await world.clock.advance(30)
    expect(texts(world.peer)).toEqual(kept ? ['waits'] : [])
    expect(waiting).toEqual([kept ? 'done' : 'ERR_NOT_CONNECTED not-sent'])
  },
)

it('queued when the link drops: `clear()` rejects what was never sent and leaves what was', async () => {
  const world = await steady({}, forgets({ receiveMaximum: 1 }))
  const calls = put(world, 'abc')
  await world.settle()
  expect(world.client.outbound.size).toBe(2)
  await lose(world)
  world.client.outbound.clear()
  await world.settle()
  expect(calls).toEqual(['pending', 'ERR_DROPPED not-sent', 'ERR_DROPPED not-sent'])
  expect([world.client.outbound.size, ...carried(await back(world))]).toEqual([
    0,
    'publish t=a q1 #1 dup',
  ])
  expect(calls[0]).toBe('done')
})

it('a queued QoS 0 message that breaks the limits of the next server does not hold up the others', async () => {
  const world = await lost(offline('queue'))
  const calls = fates(
    world.client.publish('t', 'bad', { retain: true }),
    world.client.publish('t', 'good'),
  )
  await back(world, { retainAvailable: 0 })
  expect(calls).toEqual(['ERR_RETAIN_UNSUPPORTED not-sent', 'done'])
})

describe('maxQueuedBytes', () => {
  /** The smallest limit at which one publish is taken before the first connection. */
  let one = 1000
  for (let size = 0; size === 0; one += 1 - size) {
    const world = new World({ outbound: { maxQueuedBytes: one, overflow: 'reject' } })
    put(world, 'a', 1000)
    size = world.client.outbound.size
  }

  it.each([
    { userProperties: [['k', 'v'.repeat(2000)]] as [string, string][] },
    { correlationData: new Uint8Array(2000) },
    { responseTopic: 'r'.repeat(2000) },
    { contentType: 'c'.repeat(2000) },
  ])('counts properties: %o', async (properties) => {
    const world = new World({ outbound: { maxQueuedBytes: 2000, overflow: 'reject' } })
    const calls = fates(
      world.client.publish('t', 'x', { qos: 1 }),
      world.client.publish('t', 'x', { qos: 1, properties }),
    )
    await world.settle()
    expect(calls).toEqual(['pending', 'ERR_QUEUE_FULL not-sent'])
  })

  it.each<[OutboundOptions, number, string, string]>([
    // As many are under way as it holds.
    [{ maxQueuedBytes: 3 * one, overflow: 'reject' }, 65_535, 'abc', 'abc'],
    [{ maxQueuedBytes: 3 * one - 1, overflow: 'reject' }, 65_535, 'ab', 'ab'],
    // Counts what is under way: the oldest that waits goes where that makes exactly room.
    [{ maxQueuedBytes: 2 * one, overflow: 'drop-oldest' }, 1, 'a', 'ad'],
  ])('%j, window %i: %s leave, %s stay', async (outbound, receiveMaximum, left, kept) => {
    const world = await stubbed({ outbound }, { receiveMaximum })
    const calls = put(world, 'abcd', 1000)
    await world.settle()
    expect(world.stub.payloads.map((text) => text.charAt(0)).join('')).toBe(left)
    expect([...'abcd'].filter((_, index) => calls[index] === 'pending').join('')).toBe(kept)
  })

  it('is given back when a publish ends, however it ends', async () => {
    const limits = { receiveMaximum: 1, maximumPacketSize: 2000 }
    const world = await stubbed({ outbound: { maxQueuedBytes: 3000, overflow: 'reject' } }, limits)
    for (let round = 1; round <= 20; round++) {
      const abort = new AbortController()
      const refused = round % 2 === 0
      const calls = fates(
        world.client.publish('t', 'a'.repeat(1000), { qos: 2 }),
        world.client.publish('t', 'b'.repeat(1000), { qos: 1, signal: abort.signal }),
        world.client.publish('t', 'c'.repeat(2500), { qos: 1 }),
      )
      await world.settle()
      abort.abort()
      await world.deliver(ack('pubrec', round, refused ? 0x80 : 0))
      if (!refused) await world.deliver(ack('pubcomp', round))
      const [first, ...rest] = calls
      expect(first).toBe(refused ? 'ERR_PUBLISH_REFUSED refused' : 'done')
      expect(rest).toEqual(['ERR_ABORTED not-sent', 'ERR_PACKET_TOO_LARGE not-sent'])
    }
  })

  it("under 'drop-oldest' never drops what was sent, nor anything for what could never fit", async () => {
    const world = await steady(
      { outbound: { maxQueuedBytes: 5000, overflow: 'drop-oldest' } },
      forgets(),
    )
    const calls = put(world, 'x', 3000)
    await world.settle()
    await lose(world)
    const waiting = put(world, 'yz', 1000)
    const huge = put(world, 'w', 4000)
    await world.settle()
    expect([...waiting, ...huge]).toEqual([
      'ERR_DROPPED not-sent',
      'pending',
      'ERR_DROPPED not-sent',
    ])
    expect(world.client.outbound.size).toBe(1)
    await back(world)
    expect([calls[0], waiting[1]]).toEqual(done(2))
  })

  it('counts once what is taken back after a lost session', async () => {
    const world = await steady(
      { outbound: { maxQueuedBytes: 10_000, overflow: 'reject' } },
      forgets(),
    )
    const calls = put(world, 'xy', 4000)
    await world.settle()
    await again(world, willing(false))
    expect(calls).toEqual(done(2))
    // All of it is free again.
    await lose(world)
    const [next, more] = [put(world, 'x', 9000), put(world, 'y', 2000)]
    await world.settle()
    expect([...next, ...more]).toEqual(['pending', 'ERR_QUEUE_FULL not-sent'])
  })

  it("under 'wait' one that is larger waits like any other, and small ones may wait behind one that is sent", async () => {
    const world = await steady({ outbound: { maxQueuedBytes: 5000 } }, forgets())
    const [sent, small] = [put(world, 'x', 15_000), put(world, 'y')]
    await world.settle()
    expect([...sent, ...small]).toEqual(['pending', 'pending'])
    for (const packetId of [1, 2]) await world.send(ack('puback', packetId))
    expect([...sent, ...small]).toEqual(done(2))
    await lose(world)
    const [large, behind] = [put(world, 'x', 50_000), put(world, 'y')]
    await back(world)
    expect([...large, ...behind]).toEqual(['done', 'ERR_QUEUE_FULL not-sent'])
  })
})

it('the same limits hold while the transport or the quota makes them wait', async () => {
  const world = await stubbed(
    { outbound: { maxQueuedMessages: 2, overflow: 'reject' } },
    { receiveMaximum: 1 },
  )
  const calls = put(world, 'abcde')
  await world.settle()
  const full = 'ERR_QUEUE_FULL not-sent'
  expect(calls).toEqual(['pending', 'pending', 'pending', full, full])
  world.stub.takes = false
  world.client.post('fill', '')
  await world.settle()
  const zero = fates(world.client.publish('t', 'zero'))
  await world.settle()
  expect(zero).toEqual([full])
})

describe('writable', () => {
  it.each<[string, (world: World) => unknown]>([
    ['cleared', (world) => world.client.outbound.clear()],
    ['connected again', back],
  ])('waits until a publish would find room: %s', async (_how, makeRoom) => {
    const world = await lost({
      outbound: { maxQueuedMessages: 1, overflow: 'reject', offline: { qos0: 'queue' } },
    })
    put(world, 'a')
    const writable = fates(world.client.writable)
    await world.settle()
    expect(writable).toEqual(['pending'])
    await makeRoom(world)
    await world.settle()
    expect(writable).toEqual(['done'])
  })

  it("a loop of writable and publish never runs into the limit, under 'reject' too", async () => {
    const world = await stubbed(
      { outbound: { maxQueuedMessages: 3, overflow: 'reject' } },
      { receiveMaximum: 2 },
    )
    const calls: string[][] = []
    const loop = async (): Promise<void> => {
      for (const name of 'abcdefghijklmnopqrst') {
        await world.client.writable
        calls.push(put(world, name))
      }
    }
    const end = fates(loop())
    await world.settle()
    for (let id = 1; id <= 20; id++) await world.deliver(ack('puback', id))
    expect([end, ...calls].flat()).toEqual(done(21))
    expect(world.stub.payloads).toEqual([...'abcdefghijklmnopqrst'])
  })

  it('waits for a connection offline, after `post` took nothing, also where QoS 0 is queued', async () => {
    const world = await lost(offline('queue'))
    await world.client.writable
    expect(world.client.post('t', 'x')).toBe(false)
    const writable = fates(world.client.writable)
    await world.settle()
    expect(writable).toEqual(['pending'])
    // What is queued is queued at once all the same.
    const queued = fates(world.client.publish('t', 'y'))
    await back(world)
    expect([...writable, ...queued, world.client.post('t', 'x')]).toEqual(['done', 'done', true])
  })

  it('a refusal of `post` counts until there is room again, also where nothing waited for it', async () => {
    const world = await lost(offline('queue'))
    expect(world.client.post('t', 'x')).toBe(false)
    await back(world)
    await lose(world)
    expect(await world.outcome(world.client.writable)).toMatchObject({ state: 'fulfilled' })
  })
})
