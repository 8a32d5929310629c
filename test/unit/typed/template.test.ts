/** Templates of topics, and the channel of none: one codec over filters and topics that are given at the call. */

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { asyncapi } from '../../../src/asyncapi/index.js'
import * as mq from '../../../src/typed/index.js'
import { type Checked, TopicTemplate, topic } from '../../../src/typed/template.js'
import { matches } from '../../../src/wire/topics.js'
import { brokerOf, clientOn, coded } from './rig.js'

const thermometer = topic('plant/{line}/{device}/temperature')
const wrong = coded('ERR_INVALID_TOPIC')
const wrongOf = (option: string) => coded('ERR_INVALID_TOPIC', { option })
const either = { code: expect.stringMatching(/ERR_INVALID_(TOPIC|OPTION)/) }

describe('a topic template', () => {
  it('a parameter that is given without a value never stands for any', async () => {
    const tenants = mq.topic('tenants/{tenant}/{rest...}')
    expect([tenants.filter(), tenants.filter({})]).toEqual(['tenants/+/#', 'tenants/+/#'])
    for (const params of [{ tenant: undefined }, { tenant: null }, { rest: undefined }])
      expect(() => tenants.filter(params as never), JSON.stringify(params)).toThrow(wrong)
    const bound = mq.channel(tenants, mq.text()).on(await clientOn(brokerOf()))
    for (const params of [
      { tenant: undefined },
      [{ tenant: 'a' }, { tenant: undefined }],
      [undefined],
    ]) {
      for (const call of [
        bound.subscribe(params as never),
        bound.listen(params as never, () => undefined),
      ])
        await expect(call).rejects.toMatchObject(either)
    }
    expect(() => bound.latest({ tenant: undefined } as never)).toThrow(wrong)
  })

  it('builds names', () => {
    expect(thermometer.name({ line: '3', device: 'a1' })).toBe('plant/3/a1/temperature')
    expect(thermometer.name({ line: 3, device: -0.5 })).toBe('plant/3/-0.5/temperature')
    expect(topic('status').name()).toBe('status')
    expect(topic('log/{rest...}').name({ rest: 'a/b' })).toBe('log/a/b')
    expect(topic('log/{rest...}').name({ rest: '' })).toBe('log')
  })

  it('builds filters, shared ones too', () => {
    expect(thermometer.filter({ line: '3' })).toBe('plant/3/+/temperature')
    expect(thermometer.filter()).toBe('plant/+/+/temperature')
    expect(thermometer.filter({}, { share: 'workers' })).toBe(
      '$share/workers/plant/+/+/temperature',
    )
    expect(topic('a/{n:number}/{rest...}').filter({ n: 2 })).toBe('a/2/#')
    expect(topic('a').filter()).toBe('a')
    for (const share of ['', 'a/b', '+', '#'])
      expect(() => thermometer.filter({}, { share }), share).toThrow("'share'")
  })

  it('matches names, and gives their parameters', () => {
    expect(thermometer.match('plant/3/a1/temperature')).toEqual({ line: '3', device: 'a1' })
    const longer = ['plant/3/a1/temperature/x', 'plant/3/a1/temperature/']
    const others = [
      'plant/3/a1',
      'plant/3/a1/temp',
      'plan/3/a1/temperature',
      'plant//a1/temperature',
      '',
      '/',
    ]
    for (const other of [...longer, ...others])
      expect(thermometer.match(other), other).toBeUndefined()
    const rest = topic('log/{rest...}')
    expect(rest.match('log/a/b')).toEqual({ rest: 'a/b' })
    expect(rest.match('log')).toEqual({ rest: '' })
    for (const other of ['log/', 'log//a', 'log/a/', 'log/a//b', 'logs'])
      expect(rest.match(other), other).toBeUndefined()
  })

  it('a number is a canonical decimal, so that the name of a match is the name', () => {
    const counted = topic('n/{n:number}')
    for (const n of [0, 12, -3, 1.5, -0.25]) {
      expect(counted.match(`n/${n}`)).toEqual({ n })
      expect(counted.name({ n })).toBe(`n/${n}`)
    }
    const none = [
      '',
      '01',
      '+1',
      '1.0',
      '1.',
      '.5',
      '-0',
      '1e3',
      '0x10',
      'Infinity',
      'NaN',
      ' 1',
      '1 ',
      '9007199254740993',
      '1e21',
    ]
    for (const text of none) expect(counted.match(`n/${text}`), text).toBeUndefined()
    for (const n of [Number.NaN, Number.POSITIVE_INFINITY, 1e21, 1e-7, '3' as never])
      expect(() => counted.name({ n }), String(n)).toThrow("'n'")
  })

  it('refuses what cannot be a level, and names the parameter', () => {
    const texts = ['a/b', '+', '#', 'x#', '\0', '', '\ud800']
    for (const device of [...texts, Number.NaN, true, null, undefined, {}, [], Symbol('x')])
      expect(() => thermometer.name({ line: '3', device: device as never })).toThrow(
        wrongOf('device'),
      )
    for (const rest of ['/', 'a/', '/a', 'a//b', 'a/+', '#'])
      expect(() => topic('a/{rest...}').name({ rest }), rest).toThrow("'rest'")
    expect(() => topic('{rest...}').name({ rest: '' })).toThrow('empty')
    expect(() => thermometer.name({ line: '3', device: 'a', devcie: 'b' } as never)).toThrow(
      'devcie',
    )
    expect(() => thermometer.filter({ lnie: '3' } as never)).toThrow('lnie')
  })

  it.each([
    ...[
      '',
      '/a',
      'a/',
      'a//b',
      'a/dev-{id}',
      'a/{id}x',
      'a/+/b',
      'a/#',
      'a/{}',
      'a/{r...}/b',
      'a/{n:date}',
    ],
    ...['a/{x}/{x}', 'a/{__proto__}', 'a/{x y}', 'a\0', 7, undefined],
  ])('%j is no template', (text) => {
    expect(() => new TopicTemplate(text as Checked<string>)).toThrow(wrong)
  })

  it('what it names it matches, and what it matches it names; its filter takes them all', () => {
    const level = fc.string({
      minLength: 1,
      maxLength: 6,
      unit: fc.constantFrom('a', 'b', '1', ' ', 'é', '-', '.', '$', '😀'),
    })
    const template = topic('x/{a}/y/{n:number}/{rest...}')
    fc.assert(
      fc.property(
        level,
        fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !String(n).includes('e')),
        fc.array(level, { maxLength: 3 }),
        (a, n, rest) => {
          const params = { a, n: n === 0 ? 0 : n, rest: rest.join('/') }
          const name = template.name(params)
          expect(template.match(name)).toEqual(params)
          expect(matches(template.filter(), name)).toBe(true)
        },
      ),
    )
    const noise = fc.string({
      maxLength: 20,
      unit: fc.constantFrom('x', 'y', '/', '1', '.', '-', '0', 'e'),
    })
    fc.assert(
      fc.property(noise, (name) => {
        const found = template.match(name)
        if (found !== undefined) expect(template.name(found)).toBe(name)
      }),
      { numRuns: 2000 },
    )
  })

  it('what is no object in the place of parameters, as programs without types give it, is refused; undefined is an argument left out', async () => {
    const template = topic('a/{id}')
    const client = await clientOn(brokerOf())
    const [values, asked] = [
      mq.channel(template, mq.text()).on(client),
      mq.operation(template).on(client),
    ]
    expect(template.filter(undefined)).toBe('a/+')
    const refused = expect.objectContaining({ ...either, option: 'params' })
    for (const nothing of [null, 3, '', 'a', true, () => undefined]) {
      const given = nothing as never
      for (const call of [
        () => template.filter(given),
        () => values.latest(given),
        () => values.subscription(given),
      ])
        expect(call, String(nothing)).toThrow(refused)
      await expect(values.subscribe(given), String(nothing)).rejects.toEqual(refused)
    }
    await expect(values.listen(null as never, () => undefined)).rejects.toEqual(refused)
    await expect(asked.serve(null as never, () => undefined)).rejects.toEqual(refused)
    expect(() => topic('a').filter(null as never)).toThrow(refused)
    expect(() => mq.topic('#').filter(null as never)).toThrow(refused)
    for (const list of [[], [{ id: 'a' }]])
      expect(() => template.filter(list as never)).toThrow(refused)
    for (const nothing of [null, undefined, 3])
      expect(() => template.name(nothing as never)).toThrow(wrongOf('id'))
    await (await values.subscribe(undefined)).unsubscribe()
    await (await asked.serve(undefined, () => undefined)).unsubscribe()
    values.latest(undefined).unsubscribe()
  })

  it('parameters may be getters of a class, and are no names that every object has', () => {
    class Tenant {
      readonly #tenant: string | undefined
      constructor(tenant?: string) {
        this.#tenant = tenant
      }
      get tenant() {
        return this.#tenant
      }
    }
    const template = topic('{tenant}/{device}')
    expect(template.filter(new Tenant('a') as never)).toBe('a/+')
    expect(template.filter(Object.create({ tenant: 'a' }))).toBe('a/+')
    expect(() => template.filter(new Tenant() as never)).toThrow(wrongOf('tenant'))
    expect(topic('{tenant}').name(new Tenant('a') as never)).toBe('a')
    const inherited = topic('{constructor}/{toString}')
    expect([inherited.filter(), inherited.filter(new Tenant('a') as never)]).toEqual(['+/+', '+/+'])
    expect(inherited.name({ constructor: 'a', toString: 'b' } as never)).toBe('a/b')
    expect(() => inherited.name({} as never)).toThrow(wrongOf('constructor'))
  })
})

const anywhere = mq.channel('#', mq.number(), { qos: 1 })

describe("channel('#', codec)", () => {
  it('subscribes to any list of filters, and publishes to a topic given at the call', async () => {
    const client = await clientOn(brokerOf())
    const numbers = anywhere.on(client)
    await using subscription = await numbers.subscribe(['a/+', 'b/#'], { qos: 1 })
    expect(subscription.granted.map(({ filter, qos }) => `${filter} ${qos}`)).toEqual([
      'a/+ 1',
      'b/# 1',
    ])
    for (const topic of ['a/1', 'b', 'b//x/', 'c']) await numbers.publish(topic, topic.length)
    await client.publish('a/bad', 'x')
    expect(numbers.post('a/posted', 9)).toBe(true)
    const seen: unknown[] = []
    for await (const { params, value, message } of subscription) {
      seen.push(`${message.topic} ${value} ${JSON.stringify(params)}`)
      if (value === 9) break
    }
    expect(seen).toEqual(['a/1 3 {}', 'b 1 {}', 'b//x/ 5 {}', 'a/posted 9 {}'])
    expect(subscription.invalid).toBe(1)
  })

  it('has all that a channel has', async () => {
    const client = await clientOn(brokerOf())
    const numbers = anywhere.on(client)
    const seen: unknown[] = []
    await using handling = await numbers.listen(
      'x/+',
      ({ value, message }) => void seen.push([message.topic, value]),
      { share: 'workers' },
    )
    expect(handling.granted.map(({ filter }) => filter)).toEqual(['$share/workers/x/+'])
    const writer = numbers.writableStream('x/1').getWriter()
    await writer.write(1)
    await writer.close()
    await numbers.publish('kept/a', 2, { retain: true })
    const latest = await numbers.latest('kept/+').ready
    await numbers.publish('kept/b', 3, { retain: true })
    const kept = () =>
      [...latest.getSnapshot().entries()].map(([topic, { value }]) => `${topic} ${value}`)
    await expect.poll(kept).toEqual(['kept/a 2', 'kept/b 3'])
    await numbers.clear('kept/a')
    await expect.poll(() => latest.size).toBe(1)
    await latest.unsubscribe()
    expect(seen).toEqual([['x/1', 1]])
    expect(anywhere.will('gone', 4)).toMatchObject({ topic: 'gone', payload: '4', qos: 1 })
    await using all = await numbers.subscribe()
    expect(all.granted.map(({ filter }) => filter)).toEqual(['#'])
    expect(anywhere.topic.match('a//b')).toEqual({})
  })

  it('operations are asked and served in the same way', async () => {
    const client = await clientOn(brokerOf())
    const double = mq.operation('#', mq.number(), mq.number()).on(client)
    await using _serving = await double.serve(
      'twice/+',
      ({ value, message }) => value * 2 + message.topic.length,
    )
    expect(await double.call('twice/me', 4)).toBe(16)
  })

  it('refuses what is no topic and no filter', async () => {
    const client = await clientOn(brokerOf())
    const numbers = anywhere.on(client)
    for (const topic of ['a/+', '', undefined, { id: 1 }, 5])
      await expect(numbers.publish(topic as never, 1)).rejects.toEqual(wrong)
    for (const filter of ['a/#/b', '', 5, { id: 1 }, [undefined]])
      await expect(numbers.subscribe(filter as never)).rejects.toMatchObject(either)
    for (const topic of ['a/+', '#', '', 'a\0', '\ud800', undefined, { id: 1 }] as never[]) {
      for (const make of [
        () => anywhere.topic.name(topic),
        () => anywhere.will(topic, 1),
        () => numbers.writableStream(topic),
      ])
        expect(make, String(topic)).toThrow(wrong)
    }
    expect(() => mq.channel('a/#' as never, mq.number())).toThrow(wrong)
  })

  it('has no address in an AsyncAPI document', () => {
    const { channels } = asyncapi(mq.contract({ anywhere }), { info: { title: 'a', version: '1' } })
    const messages = { message: { name: 'anywhere', contentType: 'text/plain' } }
    expect(channels).toEqual({ anywhere: { address: null, messages } })
  })
})
