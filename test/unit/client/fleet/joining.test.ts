/** Joining a group of consumers: what is checked, what is sent, and how far it lags. */
import { describe, expect, it } from 'vitest'
import type {
  SharedSubscribeOptions,
  SharedSubscription,
} from '../../../../src/client/api/index.js'
import { listenShared, subscribeShared } from '../../../../src/client/fleet/subscribe-shared.js'
import type { Answer } from '../../../../src/testing/scripted-peer.js'
import { agreeable, connected, failure, type World } from '../harness.js'
import { agreed, publish, read, series } from '../incoming.js'
import { settled } from '../steps.js'

/** Refuses filters that begin like this, and says yes to everything else. */
const refusing =
  (start: string): Answer =>
  (packet) =>
    packet.type === 'subscribe'
      ? {
          type: 'suback',
          packetId: packet.packetId,
          reasonCodes: packet.subscriptions.map(({ filter, qos }) =>
            filter.startsWith(start) ? 0x87 : qos,
          ),
        }
      : agreeable(packet)

const join = (world: World, options: SharedSubscribeOptions): Promise<SharedSubscription> =>
  settled(world, subscribeShared(world.client, 'g', 'a', { qos: 1, ...options }))

const left = (world: World): string[] =>
  world.peer.all('unsubscribe').flatMap(({ filters }) => filters)

describe('joining', () => {
  it('subscribes to $share/group/filter, with the options of a subscription', async () => {
    const world = await agreed()
    const options = Object.freeze({ qos: 1, buffer: 3, quiet: 5, requireQos: true } as const)
    const jobs = await settled(world, subscribeShared(world.client, 'workers', 'jobs/+', options))
    expect(world.peer.last('subscribe').subscriptions).toMatchObject([
      { filter: '$share/workers/jobs/+', qos: 1 },
    ])
    expect(jobs.granted).toMatchObject([{ filter: '$share/workers/jobs/+', qos: 1 }])
    expect(await jobs.ready).toBe(jobs)
    await world.send(publish('jobs/1', 'x', 1))
    expect(read(jobs).end.state).toBe('running')
    await world.settle()
    expect(jobs.lag()).toEqual({ buffered: 0, inHand: 0, broker: undefined })
  })

  it.each<[string, unknown, unknown, unknown, string]>([
    ['a client of something else', 'g', 'a', {}, 'client'],
    ['client', '', 'a', {}, 'group'],
    ['client', 'g/h', 'a', {}, 'group'],
    ['client', 5, 'a', {}, 'group'],
    ['client', 'g', '', {}, 'filter'],
    ['client', 'g', '$share/h/a', {}, 'filter'],
    ['client', 'g', undefined, {}, 'filter'],
    ['client', 'g', 'a', 5, 'options'],
    ['client', 'g', 'a', { quiet: -1 }, 'quiet'],
    ['client', 'g', 'a', { quiet: 2 ** 31 }, 'quiet'],
    ['client', 'g', 'a', { lag: 'topic' }, 'lag'],
    ['client', 'g', 'a', { lag: { topic: 5 } }, 'lag.topic'],
    ['client', 'g', 'a', { lag: { topic: 't', read: 5 } }, 'lag.read'],
    ['client', 'g', 'a', { noLocal: true }, 'filter.noLocal'],
    ['client', 'g', 'a', { buffer: 0 }, 'buffer'],
  ])(
    'refuses what is wrong before anything is sent: %s %j %j %j',
    async (who, group, filter, options, option) => {
      const world = await agreed()
      const client = who === 'client' ? world.client : ({} as typeof world.client)
      const error = await failure(
        subscribeShared(
          client,
          group as string,
          filter as string,
          options as SharedSubscribeOptions,
        ),
      )
      expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
      await world.settle()
      expect(world.peer.all('subscribe')).toEqual([])
    },
  )

  it('MQTT-4.8.2-2 refuses wildcards in the ShareName, and a handler that is none', async () => {
    const world = await agreed()
    expect(await failure(subscribeShared(world.client, 'g+', 'a'))).toMatchObject({
      code: 'ERR_INVALID_TOPIC',
    })
    const error = await failure(listenShared(world.client, 'g', 'a', 5 as never))
    expect(error).toMatchObject({ code: 'ERR_INVALID_HANDLER', option: 'handler' })
    await world.settle()
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('rejects where the broker refuses, and stops asking for the lag', async () => {
    const world = await connected({}, refusing('$share/'))
    expect(await failure(join(world, { lag: { topic: 'lag' } }))).toMatchObject({
      code: 'ERR_SUBSCRIBE_REFUSED',
      reasonCode: 0x87,
    })
    expect(left(world)).toEqual(['lag'])
  })
})

describe('lag', () => {
  it('is what waits here, and what the broker says', async () => {
    const world = await agreed()
    const jobs = await join(world, { lag: { topic: '$SYS/lag' } })
    expect(jobs.lag()).toEqual({ buffered: 0, inHand: 0, broker: undefined })
    await world.send(publish('$SYS/lag', '17'), ...series('a', 3))
    jobs.read()
    expect(jobs.lag()).toEqual({ buffered: 2, inHand: 1, broker: 17 })
    await world.send(publish('$SYS/lag', 'much'), publish('$SYS/lag', ''))
    expect(jobs.lag().broker).toBe(17)
  })

  it('counts nothing as in hand that was acknowledged', async () => {
    const world = await agreed()
    const jobs = await join(world, { ack: 'manual' })
    await world.send(...series('a', 3))
    const messages = [jobs.read(), jobs.read()]
    expect(jobs.lag()).toMatchObject({ buffered: 1, inHand: 2 })
    for (const message of messages) message?.ack()
    expect(jobs.lag()).toMatchObject({ buffered: 1, inHand: 0 })
  })

  it('is read as the caller says, and not asked for any more by one that leaves', async () => {
    const world = await agreed()
    const read = (message: { json(): unknown }): number =>
      (message.json() as { waiting: number }).waiting
    const jobs = await settled(
      world,
      listenShared(world.client, 'g', 'a', () => undefined, { lag: { topic: 'lag', read } }),
    )
    await world.send(publish('lag', '{"waiting":3}'))
    expect(jobs.lag().broker).toBe(3)
    await settled(world, jobs.drain(), 1000)
    expect(left(world)).toContain('lag')
  })

  it('a source that is refused refuses the call, and the share is left without loss', async () => {
    const world = await connected({}, refusing('lag'))
    const refused = failure(
      subscribeShared(world.client, 'g', 'a', { qos: 1, lag: { topic: 'lag' } }),
    )
    await world.send(publish('a', 'x', 1))
    await world.clock.advance(1000)
    expect(await refused).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED' })
    expect(left(world)).toContain('$share/g/a')
    expect(world.peer.all('puback')).toEqual([])
  })
})
