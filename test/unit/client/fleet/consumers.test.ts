/** A member of a group of consumers: it joins, it lags, and it leaves without losing anything that it was given. */
import { describe, expect, it } from 'vitest'
import type {
  Message,
  SharedListenOptions,
  SharedSubscribeOptions,
  SharedSubscription,
} from '../../../../src/client/options/index.js'
import { listenShared, subscribeShared } from '../../../../src/client/subscribe/subscribe-shared.js'
import type { Answer } from '../../../../src/testing/scripted-peer.js'
import { comeBack, lose, steady, willing } from '../across.js'
import { agreeable, connected, failure, type World } from '../harness.js'
import { acks, agreed, gate, pubacks, publish, read, series, taken } from '../incoming.js'
import { deafTo, settled, sleep, unsuback } from '../steps.js'

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

const left = (world: World) => world.peer.all('unsubscribe').flatMap(({ filters }) => filters)

describe('joining', () => {
  it('subscribes to $share/group/filter, with the options of a subscription', async () => {
    const world = await agreed()
    const options = Object.freeze({ qos: 1, buffer: 3, quiet: 5, requireQos: true } as const)
    const jobs = await settled(world, subscribeShared(world.client, 'workers', 'jobs/+', options))
    const asked = [{ filter: '$share/workers/jobs/+', qos: 1 }]
    expect(world.peer.last('subscribe').subscriptions).toMatchObject(asked)
    expect(jobs.granted).toMatchObject(asked)
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
    ['client', 'g', '', {}, 'filter'],
    ['client', 'g', '$share/h/a', {}, 'filter'],
    ['client', 'g', 'a', 5, 'options'],
    ['client', 'g', 'a', { quiet: -1 }, 'quiet'],
    ['client', 'g', 'a', { lag: { topic: 5 } }, 'lag.topic'],
    ['client', 'g', 'a', { lag: { topic: 't', read: 5 } }, 'lag.read'],
    ['client', 'g', 'a', { noLocal: true }, 'filter.noLocal'],
    ['client', 'g', 'a', { buffer: 0 }, 'buffer'],
  ])('%s %j %j %j is refused', async (who, group, filter, options, option) => {
    const world = await agreed()
    const client = who === 'client' ? world.client : ({} as typeof world.client)
    const error = await failure(
      subscribeShared(client, group as string, filter as string, options as object),
    )
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    await world.settle()
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('MQTT-4.8.2-2 refuses wildcards in the ShareName, and a handler that is none', async () => {
    const world = await agreed()
    const wild = await failure(subscribeShared(world.client, 'g+', 'a'))
    expect(wild.code).toBe('ERR_INVALID_TOPIC')
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
    const read = (message: { json(): unknown }) => (message.json() as { waiting: number }).waiting
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

const filter = '$share/g/a'

/** Says yes to everything but the first UNSUBSCRIBE, which the test answers. */
function holding(): Answer {
  let held = false
  return (packet) => {
    if (packet.type !== 'unsubscribe' || held) return agreeable(packet)
    held = true
    return undefined
  }
}

const join = (world: World, options: SharedSubscribeOptions = {}): Promise<SharedSubscription> =>
  settled(world, subscribeShared(world.client, 'g', 'a', { qos: 1, ...options }))

async function joined(options: SharedSubscribeOptions = {}, answer: Answer = holding()) {
  const world = await connected({}, answer)
  return { world, jobs: await join(world, options) }
}

async function working(
  handler: (message: Message) => unknown,
  options: SharedListenOptions = {},
  answer: Answer = agreeable,
) {
  const world = await connected({}, answer)
  const jobs = listenShared(world.client, 'g', 'a', handler, { qos: 1, ...options })
  return { world, jobs: await settled(world, jobs) }
}

/** Leaves, and answers UNSUBSCRIBE. */
async function leave({ world, jobs }: Awaited<ReturnType<typeof joined>>): Promise<void> {
  const left = jobs.unsubscribe()
  await world.settle()
  await unsuback(world)
  await left
}

const unsubscribes = (world: World): number => world.peer.all('unsubscribe').length
const state = async (world: World, promise: Promise<unknown>): Promise<string> =>
  (await world.outcome(promise)).state

describe('unsubscribe()', () => {
  it('settles at UNSUBACK; what was buffered is handed out, and then the loop ends', async () => {
    const { world, jobs } = await joined()
    await world.send(...series('a', 3))
    const left = jobs.unsubscribe()
    await world.settle()
    expect(world.peer.last('unsubscribe').filters).toEqual([filter])
    expect(await state(world, left)).toBe('pending')
    await unsuback(world)
    expect(await state(world, left)).toBe('fulfilled')
    const reading = read(jobs)
    await world.settle()
    expect([reading.texts, reading.end.state]).toEqual([['1', '2', '3'], 'running'])
    await world.clock.advance(400)
    expect(reading.end.state).toBe('done')
    expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('hands out what the broker sends behind UNSUBACK, as long as something comes', async () => {
    const one = await joined({ quiet: 100 })
    const { world } = one
    const reading = read(one.jobs)
    await leave(one)
    for (let id = 1; id <= 20; id++) {
      await world.clock.advance(90)
      await world.send(publish('a', String(id), id))
    }
    expect([reading.texts.length, reading.end.state]).toEqual([20, 'running'])
    await world.clock.advance(250)
    expect(reading.end.state).toBe('done')
    expect(acks(world)).toEqual(pubacks(1, 20))
    expect(world.seen('unclaimed')).toEqual([])
  })

  it('asks the broker for a round trip before it takes the silence for the end, and for nothing that it could take away', async () => {
    const { world, jobs } = await joined({ quiet: 10 }, deafTo('pingreq'))
    const reading = read(jobs)
    await settled(world, jobs.unsubscribe(), 1000)
    expect([world.peer.all('pingreq').length, reading.end.state]).toEqual([1, 'running'])
    await world.send(publish('a', 'late', 1), { type: 'pingresp' })
    await world.clock.advance(40)
    expect([world.peer.all('pingreq').length, reading.end.state]).toEqual([2, 'running'])
    await world.send({ type: 'pingresp' })
    await world.clock.advance(40)
    expect([reading.texts, reading.end.state, unsubscribes(world)]).toEqual([['late'], 'done', 1])
  })

  it('refused: it is a member still, and may try again', async () => {
    const one = await joined({}, deafTo('unsubscribe'))
    const { world, jobs } = one
    const reading = read(jobs)
    const refused = failure(jobs.unsubscribe())
    await world.settle()
    await unsuback(world, 0x87)
    expect(await refused).toMatchObject({ code: 'ERR_UNSUBSCRIBE_REFUSED', reasonCode: 0x87 })
    await world.send(publish('a', 'x', 1))
    await world.clock.advance(1000)
    expect([reading.texts, reading.end.state]).toEqual([['x'], 'running'])
    await leave(one)
    expect(unsubscribes(world)).toBeGreaterThanOrEqual(2)
  })

  it.each(['reads', 'stopped reading'])(
    'where another reader on this client has the same share, it ends here only: one that %s',
    async (what) => {
      const { world, jobs } = await joined()
      if (what === 'stopped reading') jobs.detach()
      const other = await world.client.subscribe(filter, { qos: 1 })
      const reading = what === 'reads' ? read(jobs) : undefined
      await settled(world, jobs.unsubscribe())
      await jobs.drain()
      expect([unsubscribes(world), reading?.end.state ?? 'done']).toEqual([0, 'done'])
      await world.send(publish('a', 'x', 1))
      expect(taken(other).text()).toBe('x')
    },
  )

  it('a share that is joined again meanwhile is another one', async () => {
    const { world, jobs } = await joined({}, agreeable)
    await world.send(publish('a', 'old', 1))
    await settled(world, jobs.unsubscribe())
    const again = await join(world)
    const reading = read(jobs)
    await world.send(publish('a', 'new', 2))
    await world.clock.advance(1000)
    expect([reading.texts, reading.end.state, unsubscribes(world)]).toEqual([['old'], 'done', 1])
    await world.send(publish('a', 'more', 3))
    expect([taken(again).text(), taken(again).text()]).toEqual(['new', 'more'])
  })

  it('a reader that stops meanwhile leaves the rest unacknowledged', async () => {
    const one = await joined()
    const { world, jobs } = one
    await world.send(...series('a', 3))
    await leave(one)
    for await (const message of jobs) if (message.text() === '2') break
    await world.send(publish('a', 'late', 4))
    await world.clock.advance(60_000)
    await jobs.drain()
    expect(acks(world)).toEqual(pubacks(1, 1))
    expect([world.seen('unclaimed'), world.seen('drop')]).toEqual([[], []])
    await settled(world, world.client.disconnect(), 10_000)
    expect(acks(world)).toEqual(pubacks(1, 1))
  })
})

describe('drain()', () => {
  it('fulfils when the last handler is done, and `done` with it', async () => {
    const turn = gate()
    const seen: string[] = []
    const handler = async (message: Message): Promise<void> => {
      await turn.promise
      seen.push(message.text())
    }
    const { world, jobs } = await working(handler, {}, holding())
    await world.send(...series('a', 3))
    const { pending } = world.clock
    const drained = jobs.drain()
    await world.settle()
    await unsuback(world)
    await world.clock.advance(5000)
    expect(await state(world, drained)).toBe('pending')
    expect(await state(world, jobs.done)).toBe('pending')
    turn.open()
    await world.clock.advance(400)
    expect(await state(world, drained)).toBe('fulfilled')
    expect(await state(world, jobs.done)).toBe('fulfilled')
    expect(seen).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual(pubacks(1, 3))
    expect(world.clock.pending).toBe(pending)
  })

  it('its time is over: ERR_TIMEOUT says what is left, nothing is acknowledged, and the leaving goes on', async () => {
    const turn = gate()
    const { world, jobs } = await working(() => turn.promise)
    await world.send(...series('a', 3))
    const late = await settled(world, failure(jobs.drain({ timeout: 1000 })), 1000)
    const message = expect.stringContaining('1 messages in hand and 2 in the buffer') as string
    expect(late).toMatchObject({ code: 'ERR_TIMEOUT', message })
    expect([acks(world), jobs.lag()]).toEqual([[], { buffered: 2, inHand: 1, broker: undefined }])
    const again = jobs.drain()
    turn.open()
    await settled(world, again, 400)
    expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('is given up by a signal', async () => {
    const { world, jobs } = await working(() => new Promise(() => undefined))
    await world.send(publish('a', 'x', 1))
    const controller = new AbortController()
    const given = failure(jobs.drain({ signal: controller.signal }))
    await world.settle()
    controller.abort()
    expect(await given).toMatchObject({ code: 'ERR_ABORTED' })
  })

  it.each([true, false])('a connection that is lost, session kept: %s', async (kept) => {
    const world = await steady({}, willing(false))
    const jobs = await join(world)
    await world.send(...series('a', 2))
    await settled(world, jobs.unsubscribe())
    await lose(world)
    await comeBack(world, willing(kept))
    expect(world.peer.all('subscribe')).toEqual([])
    // The broker sends again what was not acknowledged, and what it had besides.
    if (kept) await world.send(...[1, 2, 3].map((id) => publish('a', `${id}`, id, { dup: id < 3 })))
    const reading = read(jobs)
    await settled(world, jobs.drain(), kept ? 1000 : 50)
    expect(reading.texts).toEqual(kept ? ['1', '2', '3'] : ['1', '2'])
    expect(reading.end.state).toBe('done')
    expect(acks(world)).toEqual(kept ? pubacks(1, 3) : [])
  })
})

describe('the end of the client', () => {
  it('while it leaves: what is in hand ends, the rest stays unacknowledged, drain() rejects', async () => {
    const { world, jobs } = await working(() => new Promise(() => undefined))
    await world.send(...series('a', 2))
    const drained = failure(jobs.drain())
    await world.settle()
    await settled(world, world.client.disconnect({ timeout: 100 }), 1000)
    expect(await drained).toMatchObject({ code: 'ERR_CLOSED' })
    expect(acks(world)).toEqual([])
  })

  it.each(['disconnect first', 'drain first'])(
    'disconnect() and drain() in one turn: %s',
    async (first) => {
      const seen: string[] = []
      const handler = async (message: Message): Promise<void> => {
        await sleep(world, 10)
        seen.push(message.text())
      }
      const { world, jobs } = await working(handler, {}, holding())
      await world.send(...series('a', 2))
      const calls = [() => world.client.disconnect(), () => jobs.drain().catch(() => undefined)]
      const both = (first === 'drain first' ? calls.reverse() : calls).map((call) => call())
      await world.settle()
      await unsuback(world)
      await world.send(publish('a', '3', 3))
      await settled(world, Promise.all(both), 5000)
      expect(seen).toEqual(['1', '2', '3'])
      expect([acks(world), world.clock.pending]).toEqual([pubacks(1, 3), 0])
    },
  )

  it('one that joins and stops reading again and again leaves nothing behind on its client', async () => {
    const { world, jobs } = await joined({}, agreeable)
    const { client, clock } = world
    const { pending } = clock
    let listening = 0
    const { on } = client
    client.on = ((...given: Parameters<typeof on>) => {
      const stop = on.apply(client, given)
      listening += 1
      return Object.assign(() => {
        listening -= 1
        stop()
      }, stop)
    }) as typeof on
    let share = jobs
    for (let round = 0; round < 3; round++) {
      share.detach()
      await settled(world, share.unsubscribe(), 1000)
      share = await join(world)
    }
    expect([listening, client.toJSON()]).toMatchObject([0, { subscriptions: 1 }])
    expect(clock.pending).toBe(pending)
  })

  it('a block that ends without a connection does not wait for one', async () => {
    const world = await steady({}, willing(false))
    const jobs = await join(world)
    await lose(world)
    expect(await state(world, Promise.resolve(jobs[Symbol.asyncDispose]()))).toBe('fulfilled')
    await comeBack(world, willing(true))
    expect(unsubscribes(world)).toBe(1)
  })

  it.each(['subscribe', 'listen'])('a block that ends leaves too: %s', async (way) => {
    const seen: string[] = []
    const { world, jobs } =
      way === 'listen'
        ? await working((message) => seen.push(message.text()))
        : await joined({}, agreeable)
    await world.send(...series('a', 2))
    await settled(world, Promise.resolve(jobs[Symbol.asyncDispose]()), 1000)
    expect(unsubscribes(world)).toBeGreaterThanOrEqual(1)
    expect([acks(world), seen]).toEqual(way === 'listen' ? [pubacks(1, 2), ['1', '2']] : [[], []])
  })
})
