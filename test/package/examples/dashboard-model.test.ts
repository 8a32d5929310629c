/** What the dashboard remembers: bounded whatever comes, and right about what it keeps. All of it pure, under a clock that the tests move. */
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { dashboard, message } from './dashboard.js'

const { numbersIn, limits: numberLimits } = await dashboard('model/numbers.js')
const { SeriesStore, labels, limits: seriesLimits } = await dashboard('model/series.js')
const { History, costOf, limits: historyLimits } = await dashboard('model/history.js')
const { Topics, limits: topicLimits } = await dashboard('model/topics.js')
const { TableView, columns, pageSize } = await dashboard('model/table.js')
const { Rates } = await dashboard('model/rates.js')
const { Recorder, interval } = await dashboard('model/recorder.js')

const start = 1_800_000_000_000

describe('numbers in payloads', () => {
  it.each([
    ['21.5', [['value', 21.5]]],
    ['{"celsius":21.5,"unit":"C","ok":true,"none":null}', [['celsius', 21.5]]],
    ['{"a":{"b":[1,{"c":2}]}}', [['a.b.0', 1], ['a.b.1.c', 2]]], // biome-ignore format: a pair a field
    ['{"deep":{"b":{"c":{"d":{"e":1}}}}}', []],
    ['{"huge":1e300,"endless":1e999,"small":1e-300}', [['small', 0]]],
    ['0.1234567890123456789', [['value', 0.123456789012]]],
    ['hello', []],
    ['{"cut":1', []],
    ['', []],
    [`{"${'n'.repeat(65)}":1}`, []],
  ])('%s', (text, found) => expect(numbersIn(message('t', text))).toEqual(found))

  it('are few and can be drawn, whatever the payload is', () => {
    const long = [`[${'1,'.repeat(5000)}1]`, '['.repeat(8000) + ']'.repeat(8000)]
    const payloads = fc.oneof(fc.json(), fc.uint8Array(), fc.constantFrom(...long))
    fc.assert(
      fc.property(payloads, (payload) => {
        const found = numbersIn(message('t', payload))
        return (
          found.length <= numberLimits.fields &&
          found.every(([, value]: [string, number]) => Math.abs(value) <= 1e12)
        )
      }),
    )
  })
})

describe('series', () => {
  let store = new SeriesStore()
  beforeEach(() => {
    store = new SeriesStore()
  })
  const values = (name: string, topic: string): unknown =>
    store.fields.get(name)?.series.get(topic)?.values

  it('take the newest value of each tick, nothing where nothing came, and end where the connection ends', () => {
    store.set('a', 'v', 1)
    store.set('a', 'v', 2)
    store.commit(start)
    store.commit(start + 250)
    store.set('b', 'v', 5)
    store.interrupt()
    store.commit(start + 500)
    expect(values('v', 'a')).toEqual([2, undefined, undefined, null])
    expect(values('v', 'b')).toEqual([undefined, undefined, 5, null])
    expect(store.times).toEqual(
      [start, start + 250, start + 500, start + 501].map((time) => time / 1000),
    )
  })

  it('stay within fields, lines and points, and say that there were more lines', () => {
    for (let field = 0; field < 20; field++)
      for (let topic = 0; topic < 50; topic++) store.set(`t${topic}`, `f${field}`, topic)
    expect([...store.fields.keys()]).toHaveLength(seriesLimits.fields)
    for (const { series, more } of store.fields.values())
      expect([series.size, more]).toEqual([seriesLimits.series, true])
    for (let tick = 0; tick < 2000; tick++) {
      store.set('t0', 'f0', tick)
      store.commit(start + tick * 100)
    }
    expect(store.times).toHaveLength(seriesLimits.points)
    expect(store.times.at(-1)).toBe((start + 199_900) / 1000)
    for (const { series } of store.fields.values())
      for (const { values } of series.values()) expect(values).toHaveLength(seriesLimits.points)
  })

  it('are not made for topics that are no names any more', () => {
    const sets = (length: number): unknown[] => [
      store.set('x'.repeat(length), 'v', 1),
      store.names(),
    ]
    expect([sets(seriesLimits.topic + 1), sets(seriesLimits.topic)]).toEqual([[false, []], [true, ['v']]]) // biome-ignore format: short
  })

  it('make room when they were silent for the whole window, and the fields with them', () => {
    store.set('old', 'gone', 1)
    store.set('old', 'stays', 1)
    store.commit(start)
    store.set('new', 'stays', 1)
    store.commit(start + seriesLimits.window + 1)
    expect(store.names()).toEqual(['stays'])
    expect([...store.fields.get('stays').series.keys()]).toEqual(['new'])
  })

  it('put last what only ever rises, as counters and clocks do, once that has shown', () => {
    for (let tick = 0; tick < 40; tick++) {
      store.set('t', 'number', tick)
      store.set('t', 'celsius', 20 + Math.min(tick, 35))
      store.commit(start + tick)
      if (tick === 20) expect(store.names()).toEqual(['number', 'celsius'])
    }
    expect(store.names()).toEqual(['celsius', 'number'])
  })

  it('go on in time when the clock is set back', () => {
    for (const now of [start, start - 5000, start - 5000, start + 10]) store.commit(now)
    const times = [...store.times]
    expect(times).toEqual(times.toSorted((one, other) => one - other))
    expect(new Set(times).size).toBe(4)
  })

  it('are named by what tells them apart', () => {
    expect(labels(['plant/1/heat', 'plant/2/heat'])).toEqual({
      pattern: 'plant/…/heat',
      names: ['1', '2'],
    })
    expect(labels(['plant/heat', 'plant/heat/2'])).toEqual({
      pattern: 'plant/…',
      names: ['heat', 'heat/2'],
    })
    expect(labels(['a', 'b'])).toEqual({ pattern: '…', names: ['a', 'b'] })
    expect(labels(['plant/1/heat'])).toEqual({ pattern: 'plant/1/heat', names: ['1/heat'] })
    expect(labels([])).toEqual({ pattern: '', names: [] })
  })

  it('have names that differ, whatever the topics are', () => {
    const topics = fc.uniqueArray(
      fc
        .array(fc.constantFrom('', 'a', 'b'), { minLength: 1, maxLength: 5 })
        .map((levels) => levels.join('/')),
    )
    fc.assert(fc.property(topics, (given) => new Set(labels(given).names).size === given.length))
  })
})

describe('the history', () => {
  let history = new History()
  beforeEach(() => {
    history = new History()
  })

  it('has the last messages of a topic, newest first', () => {
    for (let count = 0; count < 600; count++)
      history.add(message('t', String(count)), start + count)
    const texts = [...history.of('t')].map(({ message: { payload } }) =>
      Number(new TextDecoder().decode(payload)),
    )
    expect(texts).toEqual(Array.from({ length: historyLimits.perTopic }, (_, index) => 599 - index))
    expect(history.of('t')[0]?.at).toBe(start + 599)
    history.clear()
    expect([history.of('t'), history.size, history.bytes]).toEqual([[], 0, 0])
  })

  it('keeps as many bytes of a topic as it may, and the newest message whatever its size', () => {
    const part = new Uint8Array(100_000)
    for (let count = 0; count < 30; count++) history.add(message('t', part), start + count)
    history.add(message('other', part), start)
    expect([history.of('t').length, history.of('t')[0]?.at, history.of('other').length]).toEqual([
      10,
      start + 29,
      1,
    ])
    history.add(message('t', new Uint8Array(2 * historyLimits.topicBytes)), start + 30)
    expect(history.of('t')).toHaveLength(1)
    history.add(message('t', 'small'), start + 31)
    expect(history.of('t')).toMatchObject([{ at: start + 31 }])
  })

  it('keeps its budget, and gives up the oldest first', () => {
    const large = new Uint8Array(1_000_000)
    for (let count = 0; count < 40; count++) history.add(message(`large/${count}`, large), start)
    expect(history.bytes).toBeLessThanOrEqual(historyLimits.bytes)
    expect([history.of('large/0'), history.of('large/39').length]).toEqual([[], 1])
    for (let count = 0; count < 20_000; count++) history.add(message(`small/${count}`), start)
    expect(history.size).toBe(historyLimits.messages)
    expect(history.of('large/39')).toEqual([])
    // What a topic gave up itself is not given up again.
    for (let count = 0; count < 20_000; count++) history.add(message('busy'), start)
    expect(history.of('busy')).toHaveLength(historyLimits.perTopic)
    expect(history.of('small/19999')).toHaveLength(1)
    expect(history.size).toBeLessThanOrEqual(historyLimits.messages)
  })

  it('counts the properties of a message', () => {
    const userProperties = Array.from({ length: 128 }, () => ['name', 'v'.repeat(8000)] as const)
    expect(costOf(message('t', '', { properties: { userProperties } }))).toBeGreaterThan(
      2 * 128 * 8000,
    )
  })

  it('agrees with a list that is counted anew each time', () => {
    const bytesOf = (given: readonly { cost: number }[]): number =>
      given.reduce((sum, { cost }) => sum + cost, 0)
    const steps = fc.array(
      fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(0, 100_000, 3_000_000)),
      { maxLength: 60 },
    )
    fc.assert(
      fc.property(steps, (given) => {
        const kept = new History()
        const list: { topic: string; cost: number }[] = []
        for (const [topic, length] of given) {
          const one = message(topic, new Uint8Array(length))
          kept.add(one, start)
          list.push({ topic, cost: costOf(one) })
          const own = () => list.filter((each) => each.topic === topic)
          while (
            own().length > historyLimits.perTopic ||
            (own().length > 1 && bytesOf(own()) > historyLimits.topicBytes)
          )
            list.splice(list.indexOf(own()[0] as (typeof list)[0]), 1)
          while (bytesOf(list) > historyLimits.bytes) list.shift()
        }
        expect(kept.bytes).toBe(bytesOf(list))
        for (const topic of ['a', 'b', 'c'])
          expect(kept.of(topic)).toHaveLength(list.filter((each) => each.topic === topic).length)
      }),
      { numRuns: 30 },
    )
  })
})

describe('topics', () => {
  let topics = new Topics()
  beforeEach(() => {
    topics = new Topics()
  })
  const fill = (): void => {
    for (let count = 0; count < topicLimits.topics; count++)
      topics.add(message(`t/${count}`), start)
  }

  it('count each message, and look at the last one of each tick only', () => {
    for (let count = 0; count < 10; count++)
      topics.add(message('t', `{"n":${count}}`, { qos: 1, retain: true }), start + count)
    const looked: unknown[] = []
    topics.digest((each: ReturnType<typeof message>) => looked.push(each.json()))
    expect(looked).toEqual([{ n: 9 }])
    expect(topics.entries.get('t')).toMatchObject({
      count: 10,
      at: start + 9,
      qos: 1,
      retain: true,
      value: '{"n":9}',
    })
    topics.digest(() => expect.unreachable())
  })

  it('are so many and no more: further messages are counted', () => {
    fill()
    expect(['one/more', 't/7'].map((topic) => topics.add(message(topic), start + 1000))).toEqual([
      false,
      true,
    ])
    expect([topics.entries.size, topics.unlisted]).toEqual([topicLimits.topics, 1])
  })

  it('are so many characters and no more', () => {
    for (let count = 0; count < 100; count++)
      topics.add(message(`${'x'.repeat(65_000)}${count}`), start)
    const kept = [...topics.entries.keys()].join('').length
    expect(kept).toBeLessThanOrEqual(topicLimits.characters)
    expect(topics.unlisted).toBe(100 - topics.entries.size)
    topics.clear()
    expect(topics.add(message('x'), start)).toBe(true)
  })

  it('give way when they were silent for long, but for the one that is looked at', () => {
    fill()
    const later = start + topicLimits.silence
    topics.add(message('t/7'), later - 1)
    expect(topics.add(message('new'), later, 't/0')).toBe(true)
    expect([...topics.entries.keys()]).toEqual(['t/0', 't/7', 'new'])
    expect(topics.gone).toBe(topicLimits.topics - 2)
  })

  it('have a rate that falls to nothing', () => {
    topics.rate(start)
    for (let count = 0; count < 100; count++) topics.add(message('t'), start)
    topics.rate(start + 1000)
    expect(topics.entries.get('t')?.rate).toBe(50)
    for (let second = 2; second < 20; second++) topics.rate(start + second * 1000)
    expect(topics.entries.get('t')?.rate).toBe(0)
  })
})

describe('the table', () => {
  let topics = new Topics()
  let view = new TableView()
  beforeEach(() => {
    topics = new Topics()
    view = new TableView()
    for (let count = 0; count < 120; count++)
      for (let times = 0; times <= count % 3; times++)
        topics.add(
          message(`t/${count}`, `value ${count % 7}`, { qos: count % 3, retain: count % 2 === 0 }),
          start + ((count * 7) % 120),
        )
    topics.digest(() => undefined)
  })
  const shown = (): string[] => {
    view.arrange(topics)
    return [...view.rows].map(({ topic }) => topic)
  }

  it('is sorted by topic, numbers as numbers, a page at a time', () => {
    expect(shown().slice(0, 3)).toEqual(['t/0', 't/1', 't/2'])
    expect([view.size, view.pages, view.rows.length]).toEqual([120, 3, pageSize])
    view.page = 2
    expect(shown()).toHaveLength(20)
    view.page = 99
    expect([shown()[0], view.page]).toEqual(['t/100', 2])
  })

  it.each([...columns])('is sorted by %s, and the other way round', (column) => {
    if (column !== 'topic') view.sortBy(column)
    const pages = (): string[] =>
      [0, 1, 2].flatMap((page) => Object.assign(view, { page }) && shown())
    const up = pages()
    view.sortBy(column)
    const down = pages()
    expect(new Set(up)).toEqual(new Set(down))
    const of = (topic = ''): unknown => {
      const entry = topics.entries.get(topic)
      return column === 'age' ? -entry.at : entry[column]
    }
    const [first, last] = [of(up[0]), of(up.at(-1))]
    expect([of(down.at(-1)), of(down[0])]).toEqual([first, last])
    if (column !== 'rate') expect(first).not.toBe(last)
  })

  it('is filtered by topic and by value, in any case', () => {
    view.search('T/11')
    expect(shown()).toEqual([
      't/11',
      ...Array.from({ length: 10 }, (_, index) => `t/${110 + index}`),
    ])
    view.search('VALUE 6')
    shown()
    expect(view.size).toBe(17)
    view.search('nothing')
    expect([shown(), view.pages]).toEqual([[], 1])
  })

  it('stays as it is while it is held, but for rows that are gone', () => {
    view.sortBy('count')
    const before = shown()
    for (let count = 0; count < 10; count++) topics.add(message(before[0] ?? ''), start)
    view.arrange(topics, true)
    expect([...view.rows].map(({ topic }) => topic)).toEqual(before)
    view.arrange(topics)
    expect(view.rows[0]?.topic).not.toBe(before[0])
  })
})

describe('rates', () => {
  it('are those of the last second', () => {
    const rates = new Rates()
    for (let tick = 0; tick <= 8; tick++) {
      rates.tick(start + tick * 250)
      rates.add(tick < 4 ? 10 : 25, 100)
    }
    expect(rates.perSecond).toEqual({ messages: 100, bytes: 400 })
    expect(rates.messages).toBe(165)
  })

  it('do not mind a clock that is set back, or one that stands still', () => {
    const rates = new Rates()
    for (const now of [start, start, start - 60_000, start - 59_000]) {
      rates.add(10, 0)
      rates.tick(now)
    }
    expect(rates.perSecond.messages).toBe(10)
    expect(rates.times).toEqual(rates.times.toSorted((one: number, other: number) => one - other))
  })
})

describe('the recorder', () => {
  let recorder = new Recorder()
  beforeEach(() => {
    recorder = new Recorder()
    recorder.tick(start)
  })

  it('has of a message its row, its history and its point', () => {
    recorder.received([message('t', '{"v":1}'), message('t', '{"v":2}')], start + 1)
    recorder.tick(start + interval)
    expect(recorder.topics.entries.get('t')).toMatchObject({ count: 2, value: '{"v":2}' })
    expect(recorder.history.of('t')).toHaveLength(2)
    expect(recorder.series.fields.get('v')?.series.get('t')?.last).toBe(2)
  })

  it('counts during a pause and keeps nothing, and goes on with a gap', () => {
    recorder.received([message('t', '1')], start + 1)
    recorder.tick(start + 250)
    recorder.pause()
    recorder.received([message('t', '2'), message('u', '3')], start + 300)
    recorder.tick(start + 500)
    expect([
      recorder.missed,
      recorder.rates.messages,
      recorder.topics.entries.size,
      recorder.history.size,
    ]).toEqual([2, 3, 1, 1])
    recorder.resume()
    recorder.tick(start + 750)
    expect(recorder.missed).toBeUndefined()
    expect(recorder.series.fields.get('value')?.series.get('t')?.values).toEqual([
      undefined,
      1,
      undefined,
      null,
    ])
  })

  it('ticks by itself where timers are held back', () => {
    for (let second = 1; second <= 60; second++)
      recorder.received([message('t', String(second))], start + second * 1000)
    expect(recorder.series.times).toHaveLength(61)
  })

  it('holds little of large messages between two ticks', () => {
    const large = new Uint8Array(1_000_000)
    for (let count = 0; count < 100; count++)
      recorder.received([message(`t/${count}`, large)], start + 1)
    expect(recorder.topics.waiting).toBeLessThanOrEqual(topicLimits.waiting)
    expect(recorder.history.bytes).toBeLessThanOrEqual(historyLimits.bytes)
  })

  it('looks for numbers in so many new topics at a tick, and comes to all of them', () => {
    const names = Array.from({ length: 1000 }, (_, index) => `t/${index}`)
    let looks = 0
    const counted = (topic: string) => message(topic, '["text"]', { json: () => [`${looks++}`] })
    for (let tick = 1; tick <= 4; tick++) {
      recorder.received(names.map(counted), start + tick * 100)
      recorder.tick(start + tick * 100)
    }
    expect(looks).toBe(800)
  })

  it('forgets when it is told to', () => {
    recorder.received([message('t', '1')], start + 1)
    recorder.tick(start + 250)
    recorder.clear()
    expect([recorder.topics.entries.size, recorder.history.size, recorder.series.names()]).toEqual([
      0,
      0,
      [],
    ])
    expect(recorder.rates.messages).toBe(1)
  })
})

describe('a chart of a number that was chosen', () => {
  it('has what is kept of the topic, and what comes', () => {
    const recorder = new Recorder()
    for (let tick = 0; tick < 4; tick += 1) {
      recorder.received([message('t', JSON.stringify({ heat: tick }))], start + 1000 * tick)
      recorder.tick(start + 1000 * tick + 250)
    }
    // As if another field had taken its place.
    recorder.series.fields.clear()
    expect(recorder.chart('t', 'heat', [])).toBe(true)
    const series = recorder.series.fields.get('heat')?.series.get('t')
    expect([...series.values].filter((value) => typeof value === 'number')).toEqual([0, 1, 2, 3])
    recorder.received([message('t', '{"heat":9}')], start + 5000)
    recorder.tick(start + 5250)
    expect([...series.values].findLast((value) => value !== undefined)).toBe(9)
  })

  it('gets its place where all places are taken, but not those of the charts that are seen', () => {
    const recorder = new Recorder()
    for (let field = 0; field < seriesLimits.fields; field += 1)
      recorder.series.set('t', `f${field}`, field)
    for (let topic = 0; topic < seriesLimits.series; topic += 1)
      recorder.series.set(`t/${topic}`, 'f0', topic)
    recorder.series.commit(start)
    const last = `f${seriesLimits.fields - 1}`
    expect(recorder.chart('mine', 'new', [last])).toBe(true)
    expect([...recorder.series.fields.keys()]).toEqual(expect.arrayContaining(['new', last]))
    expect(recorder.series.fields.size).toBe(seriesLimits.fields)
    expect(recorder.chart('mine', 'f0', [])).toBe(true)
    expect(recorder.series.fields.get('f0')?.series.has('mine')).toBe(true)
    expect(recorder.series.fields.get('f0')?.series.size).toBe(seriesLimits.series)
    expect(recorder.chart('t'.repeat(seriesLimits.topic + 1), 'f0', [])).toBe(false)
  })
})
