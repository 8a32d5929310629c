/** Latest values under load and while connections end: what many topics cost, what pictures keep, how each ending is reported. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type * as mq from '../../../src/typed/index.js'
import { TopicRows } from '../../../src/typed/rows.js'
import { eventually } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { all, brokerOf, clientOn, coded, level, outcomeOf, subscriber, upTo } from './rig.js'

describe('rows', () => {
  class Open extends TopicRows<number> {
    override put(topic: string, value: number): void {
      super.put(topic, value)
    }
    override take(topic: string): boolean {
      return super.take(topic)
    }
    override picture() {
      return super.picture()
    }
    override oldest(): string {
      return super.oldest()
    }
  }

  it('are a Map, and their pictures are as it was', () => {
    const step = fc.tuple(
      fc.constantFrom('put', 'put', 'take', 'picture', 'evict'),
      fc.integer({ min: 0, max: 900 }),
      fc.integer(),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 3000, size: 'max' }), (steps) => {
        const rows = new Open()
        const map = new Map<string, number>()
        const pictures: [ReadonlyMap<string, number>, Map<string, number>][] = []
        for (const [what, key, value] of steps) {
          const topic = `t${key}`
          if (what === 'put') {
            rows.put(topic, value)
            map.set(topic, value)
          } else if (what === 'take') expect(rows.take(topic)).toBe(map.delete(topic))
          else if (what === 'evict' && map.size > 0) {
            expect(rows.oldest()).toBe(map.keys().next().value)
            map.delete(rows.oldest())
            rows.take(rows.oldest())
          } else if (what === 'picture' && pictures.length < 6) {
            expect(rows.picture()).toBe(rows.picture())
            pictures.push([rows.picture(), new Map(map)])
          }
        }
        pictures.push([rows, map], [rows.picture(), map])
        for (const [picture, then] of pictures) {
          expect(picture.size).toBe(then.size)
          const keys = upTo(901).map((key) => `t${key}`)
          const seenIn = (map: ReadonlyMap<string, number>) =>
            keys.map((key) => [map.get(key), map.has(key)])
          expect(seenIn(picture)).toEqual(seenIn(then))
          expect([[...picture], [...picture.keys()], [...picture.values()]]).toEqual([
            [...then],
            [...then.keys()],
            [...then.values()],
          ])
          const seen: unknown[] = []
          picture.forEach((value, topic, self) => void seen.push([topic, value, self === picture]))
          expect(seen).toEqual([...then].map(([topic, value]) => [topic, value, true]))
        }
      }),
      { numRuns: 60 },
    )
  })
})

describe('endings', () => {
  it('unsubscribe() waits for no connection', async () => {
    const broker = brokerOf()
    const client = await clientOn(broker)
    await broker.close()
    await eventually(() => client.state !== 'connected')
    const latest = level.on(client).latest()
    const change = latest.changes().next()
    expect(await outcomeOf(latest.unsubscribe())).toBeUndefined()
    expect((await change).done).toBe(true)
    await expect(latest.ready).rejects.toEqual(coded('ERR_ABORTED'))
  })

  it.each(['destroy', 'disconnect'] as const)('%s() of the client ends changes', async (how) => {
    const client = await clientOn(brokerOf())
    const latest = await level.on(client).latest().ready
    const change = latest.changes().next()
    change.catch(() => undefined)
    await client[how]()
    expect(await outcomeOf(change.catch(() => ({ done: true })))).toMatchObject({ done: true })
  })

  it('a SUBSCRIBE that is refused is an error, also of those who read changes', async () => {
    const from = subscriber()
    from.refuse(1)
    const latest = level.on(from.client).latest()
    const change = latest.changes().next()
    await expect(latest.ready).rejects.toThrow('refused')
    await expect(change).rejects.toThrow('refused')
    expect((await latest.changes().next()).done).toBe(true)
  })

  it('one that is refused after a reconnect is tried with the next connection', async () => {
    const from = subscriber()
    const latest = await level.on(from.client).latest().ready
    from.refuse(1)
    from.connect()
    await eventually(() => from.listens === 2)
    await pause(5)
    from.connect()
    await eventually(() => from.listens === 3)
    await from.give('a', 1)
    expect(latest.get('tank/a/level')?.value).toBe(1)
    const change = latest.changes().next()
    from.end(new Error('gone for good'))
    await expect(change).rejects.toThrow('gone for good')
  })

  it('what is stale already is not reported again', async () => {
    const from = subscriber()
    const latest = await level.on(from.client).latest().ready
    from.give('a', 1)
    from.connect()
    const snapshot = latest.getSnapshot()
    expect(snapshot.get('tank/a/level')?.stale).toBe(true)
    from.connect()
    expect(latest.getSnapshot()).toBe(snapshot)
  })
})

describe('readers and listeners', () => {
  const pending = async (
    changes: AsyncIterator<mq.LatestChange<object, number>>,
    latest: { unsubscribe(): Promise<void> },
  ) => {
    await latest.unsubscribe()
    const told = await all({ [Symbol.asyncIterator]: () => changes })
    return told.map(({ topic, entry }): [string, number | undefined] => [topic, entry?.value])
  }

  it('a reader that is behind keeps a bounded number of topics, however many come and go', async () => {
    const from = subscriber()
    const latest = await level.on(from.client).latest({}, { limit: 10 }).ready
    const changes = latest.changes()
    for (let id = 0; id < 20_000; id++) from.give(id, id)
    const told = await pending(changes, latest)
    expect(told.length).toBeLessThan(1100)
    expect(told.flatMap(([, value]) => value ?? [])).toEqual(upTo(10).map((n) => 19_990 + n))
  })

  it('a reader hears of the end of each topic that it heard of, and of those that were there before it', async () => {
    const from = subscriber()
    const latest = await level.on(from.client).latest({}, { limit: 50 }).ready
    for (let id = 0; id < 25; id++) from.give(`before${id}`, id)
    const changes = latest.changes()
    for (let id = 0; id < 25; id++) from.give(`told${id}`, id)
    for (let id = 0; id < 25; id++) await changes.next()
    for (let id = 0; id < 20_000; id++) from.give(id, id)
    const ended = new Set(
      (await pending(changes, latest))
        .filter(([, value]) => value === undefined)
        .map(([topic]) => topic),
    )
    for (let id = 0; id < 25; id++)
      for (const name of ['before', 'told']) expect(ended).toContain(`tank/${name}${id}/level`)
  })

  it('several next() at a time get a change each, and each hears of the end', async () => {
    const from = subscriber()
    const latest = await level.on(from.client).latest().ready
    const changes = latest.changes()
    const four = [changes.next(), changes.next(), changes.next(), changes.next()]
    for (const id of ['a', 'b']) from.give(id, 1)
    await pause(5)
    await latest.unsubscribe()
    expect((await Promise.all(four)).map(({ value }) => value?.topic)).toEqual([
      'tank/a/level',
      'tank/b/level',
      undefined,
      undefined,
    ])
  })

  it('one that throws is a line of the log; those that come, go and call back do no harm', async () => {
    const lines: string[] = []
    const client = await clientOn(brokerOf(), {
      logger: { error: (line: string) => void lines.push(line) },
    })
    const latest = await level.on(client).latest().ready
    const told: string[] = []
    const stops: (() => void)[] = []
    latest.subscribe(() => {
      told.push('first')
      stops[0]?.()
      stops.push(latest.subscribe(() => void told.push('late')))
      throw new Error('mine')
    })
    stops.push(latest.subscribe(() => void told.push('second')))
    latest.subscribe(() => {
      told.push('third')
      latest.getSnapshot()
      if (told.filter((name) => name === 'third').length === 2) latest.unsubscribe()
    })
    await level.on(client).publish({ id: 1 }, 1)
    await eventually(() => told.includes('third'))
    expect(told).toEqual(['first', 'third'])
    expect(
      lines.filter(
        (line) => line.includes('a listener of latest values threw') && line.includes('mine'),
      ),
    ).toHaveLength(1)
    await level.on(client).publish({ id: 1 }, 2)
    await eventually(() => told.filter((name) => name === 'third').length === 2)
    expect(client.state).toBe('connected')
  })
})
