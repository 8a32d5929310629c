/** A handler that is one for many filters, as `mqwire/compat` has it: one copy of a message, however many filters match; and packets in the order of the calls. */
import { describe, expect, it } from 'vitest'
import { access } from '../../../src/client/access.js'
import { oneCopy } from '../../../src/client/options/hidden.js'
import type { Handler } from '../../../src/client/options/index.js'
import { agreeable, connected } from './harness.js'
import { acks, agreed, publish, quiet } from './incoming.js'
import { listen } from './steps.js'

/** What it was called with, and whether that is owed an acknowledgement. */
function marked(isOne = true): { readonly texts: string[]; readonly handler: Handler } {
  const texts: string[] = []
  const handler: Handler = (message) => void texts.push(message.text())
  return { texts, handler: Object.assign(handler, { [oneCopy]: isOne ? {} : undefined }) }
}

const lifetimes = ['owned', 'borrowed'] as const

describe.each(lifetimes)('one handler for overlapping filters, %s messages', (lifetime) => {
  it('is called once for a copy, and it is acknowledged once', async () => {
    const world = await connected({ protocolVersion: 4 }, agreeable)
    const { texts, handler } = marked()
    for (const filter of ['a/+', '#', 'a/b'])
      await listen(world, filter, handler, { qos: 1, lifetime })
    await world.send(publish('a/b', '1', 1), publish('a/b', '2', 2), publish('x', '3'))
    expect(texts).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('is called for each copy that names one filter, and once for one that names all', async () => {
    const world = await agreed()
    const { texts, handler } = marked()
    for (const filter of ['a/+', '#']) await listen(world, filter, handler, { qos: 1, lifetime })
    const [first = 0, second = 0] = world.peer
      .all('subscribe')
      .flatMap((packet) => packet.properties.subscriptionIdentifiers ?? [])
    const tagged = (text: string, ...subscriptionIdentifiers: number[]) =>
      publish('a/b', text, undefined, { properties: { subscriptionIdentifiers } })
    await world.send(tagged('1', first), tagged('2', second), tagged('3', first, second))
    expect(texts.sort()).toEqual(['1', '2', '3'])
  })

  it('the same filter twice, at QoS 0 and 1: the one that owes the acknowledgement gets it', async () => {
    const world = await agreed()
    const { texts, handler } = marked()
    await listen(world, 'a', handler, { qos: 1, lifetime })
    await listen(world, 'a', handler, { qos: 0, lifetime })
    await world.send(publish('a', '1', 1))
    expect(texts).toEqual(['1'])
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('others get their own', async () => {
    const world = await agreed()
    const [one, other, plain] = [marked(), marked(), marked(false)]
    for (const filter of ['a', '#']) {
      await listen(world, filter, one.handler, { qos: 1, lifetime })
      await listen(world, filter, plain.handler, { qos: 1, lifetime })
    }
    await listen(world, '#', other.handler, { qos: 1, lifetime })
    await world.send(publish('a', '1', 1))
    expect([one.texts, other.texts, plain.texts]).toEqual([['1'], ['1'], ['1', '1']])
    expect(acks(world)).toEqual(['puback 1'])
  })
})

it('flush() sends filters before what is published behind them in the same turn', async () => {
  const world = await agreed()
  quiet(world.client.listen('a', () => undefined))
  world.client[access]().flush?.()
  quiet(world.client.publish('a', 'x'))
  await world.settle()
  const types = world.peer.received
    .map(({ type }) => type)
    .filter((type) => type === 'subscribe' || type === 'publish')
  expect(types).toEqual(['subscribe', 'publish'])
})
