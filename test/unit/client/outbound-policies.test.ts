/** A message that makes the server complain: how often it is sent, what is blamed, and what goes on; and the numbers of what waits. */
import { describe, expect, it } from 'vitest'
import {
  again,
  carried,
  comeBack,
  forgets,
  keeps,
  lose,
  send,
  short,
  steady,
  willing,
} from './across.js'
import { failure, type World } from './harness.js'
import { quiet } from './incoming.js'
import { ack } from './stub.js'

const complain = (reasonCode: number) =>
  ({ type: 'disconnect', reasonCode, properties: { reasonString: 'not that one' } }) as const

describe('a message that makes the server complain', () => {
  it.each([
    [0x93, 5, 1],
    [0x95, 5, 1],
    [0x95, 5, 2],
    // These name what is wrong with a packet, and it was the only one without an answer.
    [0x81, 1, 1],
    [0x82, 1, 1],
    [0x90, 1, 1],
    [0x99, 1, 1],
  ] as const)('0x%x: given up after %i connections at QoS %i', async (code, connections, qos) => {
    const world = await steady()
    const poison = failure(world.client.publish('t', 'poison', { qos }))
    await world.settle()
    for (let round = 1; round <= connections; round++) {
      expect(world.peer.all('publish'), `connection ${round}`).toHaveLength(1)
      await world.send(complain(code))
      await comeBack(world)
    }
    expect(await poison).toMatchObject({
      code: 'ERR_PUBLISH_REFUSED',
      reasonCode: code,
      outcome: 'unknown',
      reasonString: 'not that one',
    })
    expect([carried(world.peer), world.seen('drop').length]).toEqual([[], 1])
    const [fine] = send(world, 1, 'fine')
    await world.settle()
    expect(carried(world.peer)).toEqual([expect.stringMatching(/^publish t=fine q1 #\d+$/)])
    await again(world, willing(true))
    await expect(fine).resolves.toBeDefined()
  })

  it.each<[string, (world: World) => unknown, (world: World) => unknown]>([
    ['a publish at QoS 0 before it', (world) => world.client.post('other', 'x'), () => undefined],
    [
      'a subscription that has its answer',
      (world) => quiet(world.client.subscribe('f')),
      () => undefined,
    ],
    ['a publish at QoS 1 behind it', () => undefined, (world) => send(world, 1, 'fine')],
  ])('0x81 where %s may be meant: it goes once more, alone', async (_name, before, behind) => {
    const world = await steady({}, willing(false))
    before(world)
    await world.settle()
    world.answer = (packet) => {
      const { clock, peer } = world
      if (packet.type !== 'publish' || !short(packet).includes('t=poison'))
        return willing(true)(packet)
      clock.setTimer(() => peer.send(complain(0x81)), 1)
      return undefined
    }
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    behind(world)
    await world.clock.advance(1000)
    expect(await poison).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x81 })
    expect(world.peers).toHaveLength(3)
    expect(carried(world.peers[1] as World['peer'])).toEqual([
      'pingreq',
      expect.stringContaining('t=poison'),
    ])
    expect(await world.outcome(world.client.drain())).toMatchObject({ state: 'fulfilled' })
  })

  it('0x81 right behind a PUBLISH that is no match for it blames nothing for good: QoS 0 of another topic ends each connection', async () => {
    const world = await steady({}, willing(false))
    world.answer = (packet) => {
      if (packet.type === 'publish' && packet.qos === 0) return complain(0x81)
      // Too slow for what ends the connection.
      return packet.type === 'publish' ? undefined : willing(true)(packet)
    }
    const [fine] = send(world, 1, 'fine')
    for (let round = 0; round < 3; round++) {
      world.client.post('bad', 'x')
      await world.clock.advance(500)
    }
    expect(await world.outcome(fine as Promise<unknown>)).toEqual({ state: 'pending' })
  })

  it('is not blamed for reasons that are not its own: server busy, shutting down, cuts', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'one')
    await world.settle()
    for (let round = 0; round < 12; round++) {
      if (round % 2 === 0) await world.send(complain(round % 4 === 0 ? 0x89 : 0x8b))
      else await lose(world)
      await comeBack(world)
    }
    // After two cuts it waits for a sign of life.
    await world.send({ type: 'pingresp' })
    expect(world.peer.all('publish')).toHaveLength(1)
    expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
  })

  it('only what the complaining connection carried is blamed: what waits behind a small window is not', async () => {
    const world = await steady()
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    const [good] = send(world, 1, 'good')
    await world.settle()
    // Both were in flight; from now on only the first fits.
    await again(world, keeps({ receiveMaximum: 1 }))
    for (let round = 1; round <= 5; round++) {
      expect(world.peer.all('publish')).toHaveLength(1)
      await world.send(complain(0x95))
      await comeBack(world, keeps({ receiveMaximum: 1 }))
    }
    expect((await poison).reasonCode).toBe(0x95)
    // Now it is the other one's turn, and its first complaint.
    expect(carried(world.peer)).toEqual(['publish t=good q1 #2 dup'])
    await world.send(complain(0x95))
    await comeBack(world, willing(true))
    await expect(good).resolves.toBeDefined()
  })
})

it('numbers of what waits, and of what is in flight, are right after every event', async () => {
  const world = await steady(
    { stats: true, outbound: { poisonAfter: Number.POSITIVE_INFINITY } },
    forgets({ receiveMaximum: 2 }),
  )
  const expectNumbers = async (after: unknown, ...numbers: number[]): Promise<void> => {
    await after
    const { publishesQueued, publishesInFlight } = world.client.stats()
    expect([publishesQueued, publishesInFlight, world.client.outbound.size]).toEqual(numbers)
  }
  send(world, 1, 'a', 'b', 'c')
  await expectNumbers(send(world, 2, 'd')[1], 2, 2, 2)
  await expectNumbers(lose(world), 2, 2, 2)
  await expectNumbers(send(world, 1, 'e')[1], 3, 2, 3)
  await expectNumbers(comeBack(world, keeps({ receiveMaximum: 2 })), 3, 2, 3)
  await expectNumbers(world.send(ack('puback', 1)), 2, 2, 2)
  await expectNumbers(again(world, forgets({ receiveMaximum: 1 })), 3, 1, 3)
  await expectNumbers(world.client.destroy(), 0, 0, 0)
})
