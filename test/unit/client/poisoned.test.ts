/** A message at which the server ends the connection each time, and what must never be taken for one. */
import { expect, it } from 'vitest'
import { isStored } from '../../../src/client/options/hidden.js'
import type { ClientOptions, PublishOptions } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { Random } from '../../world/random.js'
import { keeps, lasting, pause } from './across.js'
import { agreeable, connected, failure, type World } from './harness.js'
import { quiet } from './incoming.js'
import { settled, sleep } from './steps.js'

const text = (packet: ClientPacket): string =>
  packet.type === 'publish' ? new TextDecoder().decode(packet.payload) : ''

interface Server {
  /** Whether later connections have the session. Default true. */
  readonly present?: boolean
  readonly options?: ClientOptions
  /** After so many milliseconds the link is cut, which answers nothing from now on. */
  readonly kills?: (packet: ClientPacket) => number | undefined
  readonly answers?: Answer
}

/** What says 'poison' kills; 'poison once' the first time. */
function poisonKills(): (packet: ClientPacket) => number | undefined {
  let tries = 0
  return (packet) => {
    if (!text(packet).startsWith('poison') || (text(packet) === 'poison once' && ++tries > 1))
      return undefined
    // After a millisecond: what it has answered arrives.
    return text(packet) === 'poison at once' ? 0 : 1
  }
}

/** A server that closes without a word at what `kills` names, and answers everything else. */
async function deadly({
  present = true,
  options,
  kills = poisonKills(),
  answers = agreeable,
}: Server = {}): Promise<World> {
  let first = true
  let dead = false
  const world: World = await connected({ ...lasting, ...options }, (packet) => {
    if (packet.type === 'connect') dead = false
    if (dead) return undefined
    const delay = kills(packet)
    if (delay !== undefined) {
      const { peer } = world
      dead = packet.type !== 'connect'
      if (delay === 0 && dead) peer.cut()
      else world.clock.setTimer(() => peer.cut(), delay)
    }
    if (packet.type !== 'connect') return dead ? undefined : answers(packet)
    const sessionPresent = present && !first
    first = false
    return { type: 'connack', sessionPresent, reasonCode: 0 }
  })
  // Something but CONNACK is heard before the message.
  await world.send({ type: 'pingresp' })
  return world
}

const poisonIn = (world: World, payload = 'poison', qos: 1 | 2 = 1) =>
  failure(world.client.publish('t', payload, { qos }))
const fine = (world: World, count: number, qos: 1 | 2 = 1) =>
  Promise.all(Array.from({ length: count }, () => world.client.publish('t', 'fine', { qos })))
const carriers = (world: World): number =>
  world.peers.filter((peer) => peer.received.some((packet) => text(packet).startsWith('poison')))
    .length
const trials = (world: World) =>
  world.peers.slice(2, 5).map((peer) => peer.received.map((packet) => text(packet) || packet.type))
const poisoned = {
  code: 'ERR_POISONED',
  outcome: 'unknown',
  fault: 'remote',
  cause: { code: 'ERR_CONNECTION_LOST' },
}

it.each<[title: string, connections: number, payload: string, qos: 1 | 2, server: Server]>([
  ['at QoS 1', 5, 'poison', 1, {}],
  ['at QoS 2', 5, 'poison', 2, {}],
  ['in a session that the server loses each time', 5, 'poison', 1, { present: false }],
  ['with poisonAfter: 3', 3, 'poison', 1, { options: { outbound: { poisonAfter: 3 } } }],
  ['with poisonAfter: 7', 7, 'poison', 1, { options: { outbound: { poisonAfter: 7 } } }],
  ['where nothing of what the server answered arrives', 8, 'poison at once', 1, {}],
])(
  '%s: rejects with ERR_POISONED after %i connections, and what waits behind it goes on',
  async (_title, connections, payload, qos, server) => {
    const world = await deadly(server)
    const poison = poisonIn(world, payload, qos)
    const behind = fine(world, 3)
    await world.clock.advance(5000)
    expect(await poison).toMatchObject(poisoned)
    await expect(behind).resolves.toHaveLength(3)
    expect([carriers(world), world.client.state]).toEqual([connections, 'connected'])
    expect(world.seen('drop')).toMatchObject([
      { direction: 'out', topic: 't', error: { code: 'ERR_POISONED' } },
    ])
  },
)

it('from the third connection on it is sent alone, after a PINGREQ was answered; meanwhile nothing new overtakes it [MQTT-4.6.0-1]', async () => {
  const world = await deadly()
  world.client.on('packet', ({ direction, packet }) => {
    if (direction === 'out' && packet.type === 'pingreq')
      quiet(world.client.publish('t', 'new', { qos: 1 }))
  })
  poisonIn(world)
  quiet(fine(world, 4))
  await world.clock.advance(5000)
  expect(trials(world)).toEqual(Array(3).fill(['connect', 'pingreq', 'poison']))
  expect(world.peers[5]?.all('publish').map(text)).toEqual([
    ...Array(4).fill('fine'),
    ...Array(3).fill('new'),
  ])
})

it('two of them in a row: each is given up, and nothing else', async () => {
  const world = await deadly()
  const before = fine(world, 1)
  const poisons = [poisonIn(world, 'poison 1'), poisonIn(world, 'poison 2')]
  const after = fine(world, 1, 2)
  await world.clock.advance(20_000)
  for (const poison of poisons) expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
  await expect(Promise.all([before, after])).resolves.toHaveLength(2)
})

it('those at QoS 2 in front of it, which begin again with each session that is lost, come to their end one after the other', async () => {
  const world = await deadly({
    present: false,
    options: { outbound: { onSessionLost: 'republish' } },
  })
  const before = fine(world, 3, 2)
  const poison = poisonIn(world, 'poison at once', 2)
  await world.clock.advance(30_000)
  expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
  await expect(before).resolves.toHaveLength(3)
  // Three connections each, and eight for the last: not three more for each answer that a lost session takes back.
  expect(carriers(world)).toBeLessThan(20)
})

it.each([1, 2])('a link that breaks at random: none is given up, %i', async (seed) => {
  const random = new Random(seed)
  const kills = (packet: ClientPacket) =>
    packet.type === 'publish' && random.chance(0.3) ? 1 : undefined
  const world = await deadly({ kills })
  const outcomes = Promise.allSettled(
    Array.from({ length: 1000 }, (_, index) => world.client.publish('t', `${index}`, { qos: 1 })),
  )
  await world.clock.advance(3_600_000)
  expect((await outcomes).filter(({ status }) => status === 'rejected')).toEqual([])
})

it.each([
  ['asks for one more', 0, 6],
  ['asks for none once a connection lasted', 120_000, 5],
])('one before that was answered in the end %s', async (_name, lasts, connections) => {
  const world = await deadly()
  await settled(world, world.client.publish('t', 'poison once', { qos: 1 }), 1000 + lasts)
  world.peer.cut()
  await world.clock.advance(1000)
  await world.send({ type: 'pingresp' })
  const before = carriers(world)
  const poison = poisonIn(world)
  await world.clock.advance(60_000)
  expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
  expect(carriers(world) - before).toBe(connections)
})

it('one before that waited while its connection ended, and was answered on the next, asks for none', async () => {
  let tries = 0
  const world = await deadly({
    kills: (packet) =>
      text(packet) === 'poison' || (text(packet) === 'fine' && ++tries <= 3) ? 1 : undefined,
  })
  const before = fine(world, 1)
  for (let left = 1000; world.peers.length < 4 && left > 0; left--) await world.clock.advance(1)
  world.peer.cut()
  await settled(world, before, 1000)
  expect(world.peers[3]?.all('publish')).toEqual([])
  const poison = poisonIn(world)
  await world.clock.advance(60_000)
  expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
  expect(carriers(world)).toBe(5)
})

it('where nothing but CONNACK comes before it, three more connections end at it before it is tried alone', async () => {
  const world = await deadly()
  world.peer.cut()
  await world.clock.advance(1000)
  const poison = poisonIn(world)
  await world.clock.advance(60_000)
  expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
  expect(carriers(world)).toBe(8)
})

it('where the server answers no PINGREQ either, it is sent again and again, and the log says so once', async () => {
  const log: string[] = []
  const world = await deadly({
    options: { logger: { warn: (line) => log.push(line) } },
    answers: () => undefined,
  })
  const poison = quiet(world.client.publish('t', 'poison', { qos: 1 }))
  await world.clock.advance(60_000)
  expect(await world.outcome(poison)).toEqual({ state: 'pending' })
  // Each connection waits a quarter of a second for the answer.
  expect(world.peers.length).toBeGreaterThan(200)
  expect(log.filter((line) => line.includes('"t"'))).toEqual([
    expect.stringMatching(/PINGREQ.*outbound\.ackTimeout/),
  ])
})

it('with a PINGREQ of keep-alive right behind it, as their times are the same: the end counts', async () => {
  const world = await deadly({ options: { outbound: { poisonAfter: 20 }, keepAlive: 1 } })
  const poison = poisonIn(world)
  await world.clock.advance(600_000)
  expect(await world.outcome(poison)).toMatchObject({ value: { code: 'ERR_POISONED' } })
  const last = world.peers.at(-2)?.received.slice(-2)
  expect(last?.map(({ type }) => type)).toEqual(['publish', 'pingreq'])
})

it('poisonAfter: Infinity sends it for ever [MQTT-4.4.0-1]', async () => {
  const world = await deadly({ options: { outbound: { poisonAfter: Number.POSITIVE_INFINITY } } })
  const poison = quiet(world.client.publish('t', 'poison', { qos: 1 }))
  await world.clock.advance(5000)
  expect(await world.outcome(poison)).toEqual({ state: 'pending' })
  expect(carriers(world)).toBeGreaterThan(20)
})

it('nothing follows it for five seconds at most: `post` takes nothing meanwhile, QoS 0 goes on then', async () => {
  const world = await deadly()
  poisonIn(world)
  await world.clock.advance(2 * pause)
  // The server goes on and answers nothing now.
  world.answer = (packet) => (packet.type === 'pingreq' ? { type: 'pingresp' } : keeps()(packet))
  await world.clock.advance(1000)
  expect([world.peer.all('publish').length, world.client.post('t', 'a')]).toEqual([1, false])
  const late = world.client.publish('t', 'b')
  await world.clock.advance(5000)
  await late
  expect(world.client.post('t', 'c')).toBe(true)
})

it('a loop over writable does not run empty while nothing may follow the message', async () => {
  const world = await deadly()
  poisonIn(world)
  let [turns, left] = [0, 200]
  const loop = async (): Promise<void> => {
    for (; left > 0; turns++) {
      if (world.client.post('t', 'data')) left -= 1
      else await world.client.writable
      // As a program does that posts what it measures.
      await sleep(world, left % 10 === 0 ? 1 : 0)
    }
  }
  quiet(loop())
  await world.clock.advance(5000)
  expect(left).toBe(0)
  expect(turns).toBeLessThan(400)
})

it.each([
  [true, 200],
  [true, 0],
  [false, 200],
])('a server that dies after each CONNACK: PINGREQ %s, %i ms', async (pings, life) => {
  let healthy = true
  const kills = (packet: ClientPacket) => (packet.type === 'connect' && !healthy ? life : undefined)
  const world = await deadly({
    kills,
    answers: (packet) =>
      healthy || (pings && packet.type === 'pingreq') ? agreeable(packet) : undefined,
  })
  healthy = false
  world.peer.cut()
  const calls = ([1, 2, 1] as const).map((qos, index) =>
    world.client.publish('t', `${index}`, { qos }),
  )
  while (world.peers.length < 52) await world.clock.advance(10)
  expect(world.seen('drop')).toEqual([])
  healthy = true
  await world.clock.advance(70_000)
  await expect(Promise.all(calls)).resolves.toHaveLength(3)
})

it('a suspect message waits for twice the life of the connection before, which carried nothing', async () => {
  const world = await connected(lasting, agreeable)
  await world.clock.advance(3000)
  world.peer.cut()
  await world.clock.advance(40_000)
  const sent = world.client.publish('t', 'x', {
    qos: 1,
    [isStored]: { strikes: 3, suspect: () => undefined },
  } as PublishOptions)
  const hasLeft = (): boolean => world.peer.received.some(({ type }) => type === 'publish')
  await world.clock.advance(5900)
  expect(hasLeft()).toBe(false)
  await world.clock.advance(200)
  expect(hasLeft()).toBe(true)
  await sent
})
