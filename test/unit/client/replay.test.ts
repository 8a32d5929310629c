/** What was in flight when a connection was lost goes on with the next: the same packets, in their order, before anything new. */
import { describe, expect, it } from 'vitest'
import { again, carried, comeBack, keeps, lose, publishFrames, send, steady } from './across.js'
import { failure } from './harness.js'
import { quiet } from './incoming.js'
import { ack } from './stub.js'

const never = { outbound: { poisonAfter: Number.POSITIVE_INFINITY } }

/** Repeated PUBLISH packets at QoS 1, with identifiers from 1. */
const repeats = (...texts: string[]) =>
  texts.map((text, index) => `publish t=${text} q1 #${index + 1} dup`)

describe('several in flight', () => {
  it('PUBREL in the order of PUBREC, PUBLISH in the order of the calls, then what is new [MQTT-4.6.0-1] [MQTT-4.6.0-4]', async () => {
    const world = await steady()
    for (const [index, qos] of ([1, 2, 2, 1, 2, 2] as const).entries())
      send(world, qos, `m${index + 1}`)
    // One comes twice, which changes nothing about the order.
    await world.send(ack('pubrec', 5), ack('pubrec', 2), ack('puback', 4), ack('pubrec', 5))
    await lose(world)
    send(world, 1, 'new')
    const peer = await comeBack(world)
    expect(carried(peer)).toEqual([
      ...['pubrel #5', 'pubrel #2'],
      ...['publish t=m1 q1 #1 dup', 'publish t=m3 q2 #3 dup', 'publish t=m6 q2 #6 dup'],
      expect.stringMatching(/^publish t=new q1 #\d+$/),
    ])
  })

  it('the order stays over several connections, each cut in the middle of the replay', async () => {
    const world = await steady(never)
    send(world, 1, 'a', 'b', 'c', 'd')
    await world.settle()
    const order = repeats('a', 'b', 'c', 'd')
    for (const count of [2, 3])
      expect(carried(await again(world, keeps({ receiveMaximum: count })))).toEqual(
        order.slice(0, count),
      )
    await world.send(ack('puback', 2))
    expect(carried(await again(world))).toEqual(order.filter((line) => !line.includes('=b ')))
  })

  it('is byte for byte what was sent before, but for DUP (properties, large payloads, retain) [MQTT-3.3.1-1] [MQTT-4.4.0-1]', async () => {
    const world = await steady(never)
    const large = new Uint8Array(40_000).map((_, index) => index)
    const userProperties = ['b=2', 'a=1', 'b=2'].map((pair) => pair.split('=') as [string, string])
    const common = {
      payloadFormatIndicator: 1,
      messageExpiryInterval: 1000,
      responseTopic: 'answers/here',
    }
    const properties = {
      ...common,
      contentType: 'text/plain',
      correlationData: 'abc',
      userProperties,
    }
    for (const options of [
      { qos: 1, properties },
      { qos: 2, retain: true },
    ] as const) {
      quiet(world.client.publish('täst/ß', 'Grüße', options))
      quiet(world.client.publish('large', large, options))
    }
    // What the caller does with its own objects afterwards is its own affair, but for a payload that is in flight.
    properties.contentType = 'changed'
    userProperties.length = 0
    await world.settle()
    const first = publishFrames(world.peer)
    expect(first.map(({ dup }) => dup)).toEqual([false, false, false, false])
    await world.clock.advance(5000)
    for (let round = 0; round < 2; round++)
      expect(publishFrames(await again(world))).toEqual(
        first.map(({ rest }) => ({ dup: true, rest })),
      )
  })

  it('leaves before everything new, also before what a `connect` listener asks for', async () => {
    const world = await steady()
    send(world, 1, 'old')
    send(world, 2, 'older')
    await world.send(ack('pubrec', 2))
    await lose(world)
    world.client.subscription('late', { qos: 1 })
    world.client.on('connect', () => {
      world.client.post('t', 'quick')
      send(world, 1, 'new')
    })
    const lines = carried(await comeBack(world))
    const placeOf = (text: string): number => lines.findIndex((line) => line.startsWith(text))
    expect([lines[0], lines.length]).toEqual(['pubrel #2', 5])
    for (const text of ['publish t=new', 'publish t=quick'])
      expect(placeOf('publish t=old q1 #1 dup')).toBeLessThan(placeOf(text))
  })
})

it('a publish that was sent and given up goes out as it was, also when the caller uses its bytes again', async () => {
  const world = await steady()
  const payloads = ['one', 'two'].map((text) => new TextEncoder().encode(text)) as [
    Uint8Array,
    Uint8Array,
  ]
  const abort = new AbortController()
  quiet(world.client.publish('t', payloads[0], { qos: 1, signal: abort.signal }))
  const late = failure(world.client.publish('t', payloads[1], { qos: 2, ackTimeout: 5 }))
  await world.settle()
  abort.abort()
  await world.clock.advance(6)
  expect(await late).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'unknown' })
  for (const payload of payloads) payload.fill(0)
  const peer = await again(world)
  send(world, 1, 'new')
  await world.settle()
  const sent = [...repeats('one'), 'publish t=two q2 #2 dup', 'publish t=new q1 #3']
  expect(carried(peer)).toEqual(sent)
})

it('out of order: each call gets its own result, before and after the drop', async () => {
  const world = await steady()
  const calls = send(world, 1, 'a', 'b', 'c', 'd')
  const refused = failure(calls[2] as Promise<unknown>)
  await world.send(ack('puback', 4, 0x10))
  await again(world)
  await world.send(ack('puback', 3, 0x87), ack('puback', 1))
  await world.send(ack('puback', 2, 0x10))
  for (const [index, reasonCode] of [0, 0x10, undefined, 0x10].entries())
    if (reasonCode !== undefined)
      await expect(calls[index]).resolves.toMatchObject({ packetId: index + 1, reasonCode })
  expect(await refused).toMatchObject({ reasonCode: 0x87, outcome: 'refused' })
})

describe('wrong', () => {
  const connack = { type: 'connack', sessionPresent: true, reasonCode: 0 } as const
  it.each([
    ['PUBACK for QoS 2', 2, ack('puback', 1)],
    ['a second CONNACK', 1, connack],
  ] as const)(
    '%s after the replay: close(0x82); the message is still ours, and goes out again',
    async (_name, qos, packet) => {
      const world = await steady()
      const [one] = send(world, qos, 'one')
      await world.settle()
      const peer = await again(world)
      await world.send(packet)
      expect(peer.last('disconnect').reasonCode).toBe(0x82)
      await world.clock.advance(10)
      expect(carried(world.peer)).toEqual([`publish t=one q${qos} #1 dup`])
      expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
    },
  )
})

it('the time of `ackTimeout` runs on over a drop: it is about the acknowledgement, not about the link', async () => {
  const world = await steady({ outbound: { ackTimeout: 5000 } })
  const one = failure(world.client.publish('t', 'one', { qos: 1 }))
  await world.clock.advance(3000)
  await again(world)
  await world.clock.advance(1990)
  expect(await one).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'unknown' })
})
