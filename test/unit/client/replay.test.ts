/** What was in flight when a connection was lost goes on with the next: the same packets, in their order, before anything new. */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import {
  again,
  carried,
  comeBack,
  frames,
  keeps,
  lasting,
  lose,
  pause,
  publishFrames,
  send,
  steady,
  willing,
} from './across.js'
import { failure } from './harness.js'
import { publish, quiet, subscribe } from './incoming.js'
import { ack, StubTransport } from './stub.js'

const never = { outbound: { poisonAfter: Number.POSITIVE_INFINITY } }

/** Repeated PUBLISH packets at QoS 1, with identifiers from 1. */
const repeats = (...texts: string[]) =>
  texts.map((text, index) => `publish t=${text} q1 #${index + 1} dup`)

describe('QoS 1, session present', () => {
  it('goes out again with its identifier and DUP 1, before anything new [MQTT-4.4.0-1] [MQTT-3.3.1-1]', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'one')
    await world.settle()
    await lose(world)
    send(world, 1, 'new')
    expect(carried(await comeBack(world))).toEqual([...repeats('one'), 'publish t=new q1 #2'])
    await world.send(ack('puback', 1))
    await expect(one).resolves.toMatchObject({ packetId: 1, reasonCode: 0 })
  })
})

describe('QoS 2, session present', () => {
  it('without PUBREC: PUBLISH with DUP; with it: PUBREL, and PUBLISH never again [MQTT-4.3.3-6]', async () => {
    const world = await steady()
    const promises = send(world, 2, 'one', 'two')
    await world.send(ack('pubrec', 2))
    const peer = await again(world)
    expect(carried(peer)).toEqual(['pubrel #2', 'publish t=one q2 #1 dup'])
    await world.send(ack('pubcomp', 2), ack('pubrec', 1))
    await world.send(ack('pubcomp', 1))
    await expect(Promise.all(promises)).resolves.toMatchObject([{ packetId: 1 }, { packetId: 2 }])
  })

  it('PUBREL goes out on each connection until PUBCOMP, whose 0x92 ends it too; the publish resolves once', async () => {
    const world = await steady()
    const [one] = send(world, 2, 'one')
    let settled = 0
    one?.finally(() => {
      settled += 1
    })
    await world.send(ack('pubrec', 1))
    for (let round = 0; round < 4; round++)
      expect(carried(await again(world))).toEqual(['pubrel #1'])
    await world.send(ack('pubcomp', 1, 0x92))
    await expect(one).resolves.toMatchObject({ packetId: 1, reasonCode: 0x92 })
    await world.send(ack('pubcomp', 1))
    expect(carried(await again(world))).toEqual([])
    expect(settled).toBe(1)
  })

  it('a PUBREC that was answered by a lost PUBREL and failed on the way still counts', async () => {
    const world = await steady()
    const [one] = send(world, 2, 'one')
    await world.settle()
    world.peer.send(ack('pubrec', 1))
    world.peer.end()
    await world.settle()
    expect(carried(await comeBack(world))).toEqual(['pubrel #1'])
    await world.send(ack('pubcomp', 1))
    await expect(one).resolves.toBeDefined()
  })
})

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

  it('is byte for byte what was sent before, but for DUP (properties, large payloads, retain) [MQTT-4.4.0-1]', async () => {
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

  it.each(['state', 'connect'] as const)(
    'on `%s`: what a listener publishes at QoS 1 leaves after the replay [MQTT-4.4.0-1]',
    async (type) => {
      const world = await steady()
      send(world, 1, 'old')
      send(world, 2, 'older')
      await world.settle()
      world.client.on(type, () => {
        if (world.client.state === 'connected') send(world, 1, 'new')
      })
      const lines = [...repeats('old'), 'publish t=older q2 #2 dup', 'publish t=new q1 #3']
      expect(carried(await again(world))).toEqual(lines)
    },
  )
})

describe('the window of the new connection', () => {
  it('is never exceeded: the rest of the replay waits in order, new messages behind it [MQTT-3.3.4-7]', async () => {
    const world = await steady()
    send(world, 1, 'a', 'b', 'c', 'd', 'e')
    await lose(world)
    send(world, 1, 'new')
    const peer = await comeBack(world, keeps({ receiveMaximum: 2 }))
    const expected = repeats('a', 'b', 'c', 'd', 'e')
    for (let acknowledged = 0; acknowledged < 5; acknowledged++) {
      expect(carried(peer).slice(0, 5)).toEqual(expected.slice(0, acknowledged + 2))
      await world.send(ack('puback', acknowledged + 1))
    }
    expect(carried(peer).slice(5)).toEqual([expect.stringMatching(/^publish t=new q1 #\d+$/)])
  })
})

describe('a connection that ends in the middle of a packet', () => {
  it('the packet is sent again as a whole', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'a long enough message to be cut')
    // Cut before the peer reads a byte of it.
    await lose(world)
    expect(frames(await comeBack(world, willing(true)))).toHaveLength(2)
    await expect(one).resolves.toBeDefined()
  })

  it('a part of a packet is of no use on the next connection', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't')
    await world.sendBytes('30 08 00 01')
    await again(world)
    await world.send(publish('t', 'whole'))
    expect(subscription.read()?.text()).toBe('whole')
    expect(world.client.state).toBe('connected')
  })
})

describe('a publish that was sent, and is given up', () => {
  it('by an abort: the exchange goes on with the next connection; its identifier stays taken', async () => {
    const world = await steady()
    const controller = new AbortController()
    const error = failure(world.client.publish('t', 'one', { qos: 2, signal: controller.signal }))
    await world.settle()
    controller.abort()
    expect(await error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    const peer = await again(world)
    send(world, 1, 'new')
    await world.settle()
    expect(carried(peer)).toEqual(['publish t=one q2 #1 dup', 'publish t=new q1 #2'])
  })

  it('is what was published, also when the caller has its bytes back and uses them again', async () => {
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
    expect(carried(await again(world))).toEqual([...repeats('one'), 'publish t=two q2 #2 dup'])
  })
})

it('the identifier of a QoS 1 message that is too large for the next connection is used again', async () => {
  const clock = new VirtualClock()
  let stub = new StubTransport()
  const transport = (): StubTransport => {
    stub = new StubTransport()
    return stub
  }
  const client = new BaseClient(
    virtualPlatform(clock),
    [{ url: 'stub://peer', transport }],
    lasting,
  )
  const accept = async (sessionPresent: boolean, properties = {}): Promise<void> => {
    stub.deliver({ type: 'connack', sessionPresent, reasonCode: 0, properties })
    await clock.settle()
  }
  const connecting = client.connect()
  await clock.settle()
  await accept(false)
  await connecting
  const large = failure(client.publish('t', 'x'.repeat(100), { qos: 1 }))
  await clock.settle()
  stub.destroy()
  await clock.advance(pause)
  await accept(true, { maximumPacketSize: 50, receiveMaximum: 65_535 })
  expect(await large).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE' })
  // All the others, once.
  for (let id = 2; id <= 65_535; ) {
    const acks: number[] = []
    for (const last = Math.min(65_535, id + 4999); id <= last; id++) {
      void client.publish('t', '', { qos: 1 })
      acks.push(0x40, 2, id >> 8, id & 255)
    }
    await clock.settle()
    stub.sink?.chunk(Uint8Array.from(acks))
    await clock.settle()
  }
  stub.writes.length = 0
  void client.publish('t', 'again', { qos: 1 })
  await clock.settle()
  expect(stub.packets).toMatchObject([{ type: 'publish', packetId: 1 }])
})
