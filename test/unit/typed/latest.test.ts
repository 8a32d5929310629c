/** Latest values, retained messages of now, and web streams. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { all, brokerOf, clientOn, coded, level, pair, schemaOf, upTo } from './rig.js'

describe('latest values', () => {
  it('come from retained and live messages, and go with an empty retained one', async () => {
    const { client } = await pair()
    const tanks = level.on(client)
    await tanks.publish({ id: 'a' }, 1, { retain: true })
    await tanks.publish({ id: 'b' }, 2, { retain: true })
    await using latest = await tanks.latest().ready
    await eventually(() => latest.size === 2, 'two values')
    expect(latest.get('tank/a/level')).toMatchObject({
      params: { id: 'a' },
      value: 1,
      stale: false,
    })
    await tanks.publish({ id: 'a' }, 3)
    await eventually(() => latest.get('tank/a/level')?.value === 3)
    await tanks.clear({ id: 'b' })
    await eventually(() => !latest.has('tank/b/level'))
    expect([...latest.keys()]).toEqual(['tank/a/level'])
    expect(latest.invalid).toBe(0)
    await client.publish('tank/a/level', 'x', { qos: 1 })
    await eventually(() => latest.invalid === 1)
    expect(latest.get('tank/a/level')?.value).toBe(3)
  })

  it('report changes: to each reader, of each topic once', async () => {
    const tanks = level.on(await clientOn(brokerOf()))
    await using latest = await tanks.latest({ id: 'a' }).ready
    const changes = latest.changes()
    await tanks.publish({ id: 'a' }, 1)
    await tanks.publish({ id: 'b' }, 2)
    expect(await changes.next()).toMatchObject({
      value: { topic: 'tank/a/level', entry: { value: 1 } },
      done: false,
    })
    const waiting = changes.next()
    await tanks.publish({ id: 'a' }, 4)
    expect((await waiting).value.entry.value).toBe(4)
    const last = changes.next()
    await latest.unsubscribe()
    expect(await last).toEqual({ value: undefined, done: true })
    expect((await latest.changes().next()).done).toBe(true)
  })

  it('are pending until the server has granted the subscription or refused it, and listeners hear of both', async () => {
    const client = await clientOn(
      brokerOf({ authorizeSubscribe: (_client, { filter }) => filter.startsWith('tank') || 0x87 }),
    )
    const other = mq.channel('other/{id}', mq.text())
    for (const channel of [level, other] as const) {
      const latest = channel.on(client).latest()
      const before = latest.getSnapshot()
      const told: [isPending: boolean, error: unknown][] = []
      latest.subscribe(() => {
        const { isPending, error } = latest.getSnapshot()
        told.push([isPending, error])
      })
      expect([latest.isPending, before.isPending, latest.error]).toEqual([true, true, undefined])
      await latest.ready.catch(() => undefined)
      expect([latest.isPending, latest.getSnapshot().isPending]).toEqual([false, false])
      await eventually(() => told.length > 0, 'the listener')
      const error = channel === level ? undefined : coded('ERR_SUBSCRIBE_REFUSED')
      expect(told).toEqual([[false, error]])
      expect([latest.error, before.error]).toEqual([error, undefined])
      await latest.unsubscribe()
    }
  })

  it('snapshots stay the same until something changes; listeners hear of many changes once', async () => {
    const tanks = level.on(await clientOn(brokerOf()))
    await using latest = await tanks.latest().ready
    const { subscribe, getSnapshot } = latest
    const empty = getSnapshot()
    expect(getSnapshot()).toBe(empty)
    const seen: number[] = []
    const stop = subscribe(() => void seen.push(getSnapshot().size))
    await Promise.all(upTo(50).map((id) => tanks.publish({ id }, id)))
    await eventually(() => seen.at(-1) === 50)
    expect(seen.length).toBeLessThan(25)
    const full = getSnapshot()
    expect([full.size, empty.size, getSnapshot() === full]).toEqual([50, 0, true])
    stop()
    await tanks.publish({ id: 0 }, 7)
    await eventually(() => latest.get('tank/0/level')?.value === 7)
    expect(full.get('tank/0/level')?.value).toBe(0)
    expect(seen.at(-1)).toBe(50)
  })

  it('are bounded, and expire', async () => {
    const tanks = level.on(await clientOn(brokerOf()))
    await using bounded = await tanks.latest({}, { limit: 3 }).ready
    await using brief = await tanks.latest({}, { expire: 60 }).ready
    for (let id = 0; id < 6; id++) await tanks.publish({ id }, id)
    await eventually(() => bounded.has('tank/5/level'))
    expect([...bounded.keys()]).toEqual(['tank/3/level', 'tank/4/level', 'tank/5/level'])
    await eventually(() => brief.size === 0)
    for (const options of [{ limit: 0 }, { limit: 1.5 }, { expire: 0 }, { expire: Number.NaN }])
      expect(() => tanks.latest({}, options), JSON.stringify(options)).toThrow(
        coded('ERR_INVALID_OPTION'),
      )
  })

  it('expire each by its own age', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_000_000 })
    onTestFinished(() => void vi.useRealTimers())
    const tanks = level.on(await clientOn(brokerOf()))
    await using latest = await tanks.latest({}, { expire: 60 }).ready
    await tanks.publish({ id: 'old' }, 1)
    await eventually(() => latest.size === 1)
    vi.advanceTimersByTime(60)
    await tanks.publish({ id: 'young' }, 2)
    await eventually(() => latest.has('tank/young/level') && !latest.has('tank/old/level'))
    expect([...latest.keys()]).toEqual(['tank/young/level'])
  })

  it('what a new connection has not confirmed is stale', async () => {
    const { broker, client, other } = await pair()
    await level.on(other).publish({ id: 'kept' }, 1, { retain: true })
    await using latest = await level.on(client).latest().ready
    await level.on(other).publish({ id: 'live' }, 2)
    await eventually(() => latest.size === 2)
    // What is acknowledged does not come again.
    await client.publish('other', '', { qos: 1 })
    const during: (boolean | undefined)[] = []
    client.on(
      'state',
      ({ state }) => state === 'reconnecting' && during.push(latest.get('tank/live/level')?.stale),
    )
    client.on('disconnect', () => during.push(latest.get('tank/kept/level')?.stale))
    broker.disconnect(client.clientId, 0x8b)
    await eventually(() => during.length === 2, 'the outage')
    expect(during.at(-1)).toBe(true)
    await eventually(
      () =>
        latest.get('tank/live/level')?.stale === true &&
        latest.get('tank/kept/level')?.stale === false,
    )
    await level.on(other).publish({ id: 'live' }, 3)
    await eventually(() => latest.get('tank/live/level')?.stale === false)
  })
})

it('latest values count the topics that made room, and log the first', async () => {
  const lines: string[] = []
  const client = await clientOn(brokerOf(), {
    logger: { error: (line: string) => void lines.push(line) },
  })
  await using latest = await level.on(client).latest({}, { limit: 2 }).ready
  for (let id = 0; id < 5; id++) await level.on(client).publish({ id }, id)
  await eventually(() => latest.evicted === 3, 'three that went')
  expect(lines).toEqual([
    expect.stringContaining("'tank/{id}/level' has more topics than its limit of 2"),
  ])
})

it('latest values show an end that comes after the grant, too', async () => {
  const broker = brokerOf()
  const latest = level.on(await clientOn(broker, { clientId: 'taken' })).latest()
  await latest.ready
  broker.disconnect('taken', 0x8e)
  await eventually(() => latest.error !== undefined, 'the error')
  expect(latest.error).toMatchObject({ code: 'ERR_SESSION_TAKEN_OVER' })
})

/** A schema of numbers that answers later: odd ones much later. */
const late = schemaOf<number>(async (value) => {
  await pause(Number(value) % 2 === 1 ? 15 : 1)
  return typeof value === 'number' ? { value } : { issues: [{ message: 'no number' }] }
})

it('latest values keep the order of messages whose schema takes its time, those that delete too', async () => {
  const { client, other } = await pair()
  await using latest = await mq.channel('l/{id}', mq.json(late), { qos: 1 }).on(client).latest()
    .ready
  const sent = [
    ...Array.from({ length: 6 }, (_, n) => ['l/x', String(n)]),
    ['l/y', '1'],
    ['l/y', ''],
    ['l/z', '1'],
  ] as const
  for (const [topic, payload] of sent)
    other.publish(topic as string, payload as string, { qos: 1 }).catch(() => undefined)
  await eventually(() => latest.has('l/z'))
  expect([...latest].map(([topic, { value }]) => `${topic} ${value}`)).toEqual(['l/x 5', 'l/z 1'])
})

describe('retained messages', () => {
  it('of now are given, and then it ends', async () => {
    const client = await clientOn(brokerOf())
    for (let n = 0; n < 30; n++) await client.publish(`r/${n}`, String(n), { retain: true, qos: 1 })
    const live = setInterval(() => void client.publish('r/live', 'x').catch(() => undefined), 5)
    const got = await all(mq.retained(client, 'r/#', { quiet: 100 }))
    clearInterval(live)
    expect(got.map((message) => Number(message.text())).sort((a, b) => a - b)).toEqual(upTo(30))
    expect(await all(mq.retained(client, 'none', { quiet: 20 }))).toEqual([])
    const wrong = mq.retained(client, 'r/#', { quiet: 0 }).next()
    await expect(wrong).rejects.toEqual(coded('ERR_INVALID_OPTION', { option: 'quiet' }))
  })

  it('a refused filter among others is an error, after the messages of the others', async () => {
    const client = await clientOn(
      brokerOf({ authorizeSubscribe: (_client, { filter }) => filter.startsWith('r') || 0x87 }),
    )
    await client.publish('r/1', 'x', { retain: true, qos: 1 })
    const messages = mq.retained(client, ['r/#', 'secret/#'], { quiet: 50 })
    expect((await messages.next()).value?.topic).toBe('r/1')
    await expect(messages.next()).rejects.toMatchObject({
      code: 'ERR_SUBSCRIBE_REFUSED',
      reasonCode: 0x87,
      message: expect.stringContaining('secret/#'),
    })
  })
})

describe('a contract', () => {
  const plant = mq.contract({
    level,
    status: mq.channel('status', mq.text()),
    deep: { setpoint: mq.operation('set/{id}', mq.number(), mq.number()) },
  })

  it('binds all of it, nested and merged', async () => {
    const client = await clientOn(brokerOf())
    const merged = mq.contract({ ...plant, more: plant })
    const bound = merged.on(client)
    await using _serving = await bound.more.deep.setpoint.serve(({ value }) => value + 1)
    expect(await bound.deep.setpoint.call({ id: 1 }, 41)).toBe(42)
    await using subscription = await bound.level.subscribe()
    await bound.more.level.publish({ id: 'x' }, 5)
    expect((await subscription.next())?.value).toBe(5)
    expect(Object.keys(plant)).toEqual(['level', 'status', 'deep'])
  })

  it('has no part of the name on, and none that is nothing', () => {
    for (const parts of [{ on: level }, { a: undefined }, { a: { b: 7 } }])
      expect(() => mq.contract(parts as never)).toThrow(coded('ERR_INVALID_OPTION'))
  })
})
