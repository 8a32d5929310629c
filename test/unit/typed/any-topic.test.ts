/** A channel of no template: one codec over filters and topics that are given at the call. */
import { describe, expect, it } from 'vitest'
import { asyncapi } from '../../../src/asyncapi/index.js'
import * as mq from '../../../src/typed/index.js'
import { brokerOf, clientOn, coded } from './rig.js'

const anywhere = mq.channel('#', mq.number(), { qos: 1 })
const wrong = coded('ERR_INVALID_TOPIC')

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
    const either = { code: expect.stringMatching(/ERR_INVALID_(TOPIC|OPTION)/) }
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
