/** What was in flight when a connection was lost goes on with the next: the same packets, in their order, before anything new. */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import type { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { again, carried, comeBack, forgets, frames, keeps, lasting, lose, pause, publishFrames, send, steady, willing } from './across.js'
import { connected, failure } from './harness.js'
import { subscribe } from './incoming.js'
import { StubTransport } from './stub.js'

describe('QoS 1, session present', () => {
  it('goes out again with its identifier and DUP 1, before anything new [MQTT-4.4.0-1] [MQTT-3.3.1-1]', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'one')
    await world.settle()
    await lose(world)
    send(world, 1, 'new')
    const peer = await comeBack(world)
    expect(carried(peer)).toEqual(['publish t=one q1 #1 dup', 'publish t=new q1 #2'])
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
    await expect(one).resolves.toMatchObject({ packetId: 1, reasonCode: 0 })
  })

  it('is never sent again on a link that lives, however late the acknowledgement', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'one')
    await world.clock.advance(100 * 60_000)
    expect(carried(world.peer)).toEqual(['publish t=one q1 #1'])
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
    await expect(one).resolves.toMatchObject({ packetId: 1 })
  })

  it('an acknowledgement that comes before the replay could leave is ignored and counted', async () => {
    const world = await steady({ stats: true }, forgets({ receiveMaximum: 2 }))
    const [one, two] = send(world, 1, 'one', 'two')
    await world.settle()
    const peer = await again(world, keeps({ receiveMaximum: 1 }))
    expect(carried(peer)).toEqual(['publish t=one q1 #1 dup'])
    // Number 2 has not left on this connection.
    await world.send({ type: 'puback', packetId: 2, reasonCode: 0x97, properties: {} })
    expect(await world.outcome(two as Promise<unknown>)).toEqual({ state: 'pending' })
    expect(world.client.stats().unsolicitedAcks).toBe(1)
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
    expect(carried(peer)).toEqual(['publish t=one q1 #1 dup', 'publish t=two q1 #2 dup'])
    await world.send({ type: 'puback', packetId: 2, reasonCode: 0, properties: {} })
    await expect(Promise.all([one, two])).resolves.toHaveLength(2)
  })
})

describe('QoS 2, session present', () => {
  it('without PUBREC: PUBLISH with DUP; with it: PUBREL, and PUBLISH never again [MQTT-4.3.3-6]', async () => {
    const world = await steady()
    const promises = send(world, 2, 'one', 'two')
    await world.send({ type: 'pubrec', packetId: 2, reasonCode: 0, properties: {} })
    const peer = await again(world)
    expect(carried(peer)).toEqual(['pubrel #2', 'publish t=one q2 #1 dup'])
    await world.send({ type: 'pubcomp', packetId: 2, reasonCode: 0, properties: {} }, { type: 'pubrec', packetId: 1, reasonCode: 0, properties: {} })
    await world.send({ type: 'pubcomp', packetId: 1, reasonCode: 0, properties: {} })
    await expect(Promise.all(promises)).resolves.toMatchObject([{ packetId: 1 }, { packetId: 2 }])
  })

  it('PUBREL goes out on each connection until PUBCOMP, whose 0x92 ends it too; the publish resolves once', async () => {
    const world = await steady()
    const [one] = send(world, 2, 'one')
    let settled = 0
    one?.finally(() => {
      settled += 1
    })
    await world.send({ type: 'pubrec', packetId: 1, reasonCode: 0, properties: {} })
    for (let round = 0; round < 4; round++) expect(carried(await again(world))).toEqual(['pubrel #1'])
    await world.send({ type: 'pubcomp', packetId: 1, reasonCode: 0x92, properties: {} })
    await expect(one).resolves.toMatchObject({ packetId: 1, reasonCode: 0x92 })
    await world.send({ type: 'pubcomp', packetId: 1, reasonCode: 0, properties: {} })
    expect(carried(await again(world))).toEqual([])
    expect(settled).toBe(1)
  })

  it('a second PUBREC on the next connection: PUBREL again, PUBLISH never', async () => {
    const world = await steady()
    send(world, 2, 'one')
    await world.send({ type: 'pubrec', packetId: 1, reasonCode: 0, properties: {} })
    const peer = await again(world)
    await world.send({ type: 'pubrec', packetId: 1, reasonCode: 0, properties: {} })
    expect(carried(peer)).toEqual(['pubrel #1', 'pubrel #1'])
  })

  it('a PUBREC that was answered by a lost PUBREL and failed on the way still counts', async () => {
    const world = await steady()
    const [one] = send(world, 2, 'one')
    await world.settle()
    world.peer.send({ type: 'pubrec', packetId: 1, reasonCode: 0, properties: {} })
    world.peer.end()
    await world.settle()
    const peer = await comeBack(world)
    expect(carried(peer)).toEqual(['pubrel #1'])
    await world.send({ type: 'pubcomp', packetId: 1, reasonCode: 0, properties: {} })
    await expect(one).resolves.toBeDefined()
  })
})

describe('several in flight', () => {
  it('PUBREL in the order of PUBREC, PUBLISH in the order of the calls, then what is new [MQTT-4.6.0-1] [MQTT-4.6.0-4]', async () => {
    const world = await steady()
    for (const [index, qos] of ([1, 2, 2, 1, 2, 2] as const).entries()) send(world, qos, `m${index + 1}`)
    await world.send(
      { type: 'pubrec', packetId: 5, reasonCode: 0, properties: {} },
      { type: 'pubrec', packetId: 2, reasonCode: 0, properties: {} },
      { type: 'puback', packetId: 4, reasonCode: 0, properties: {} },
    )
    await lose(world)
    send(world, 1, 'new')
    const peer = await comeBack(world)
    expect(carried(peer)).toEqual([
      'pubrel #5',
      'pubrel #2',
      'publish t=m1 q1 #1 dup',
      'publish t=m3 q2 #3 dup',
      'publish t=m6 q2 #6 dup',
      expect.stringMatching(/^publish t=new q1 #\d+$/),
    ])
  })

  it('a PUBREC that comes twice changes nothing about the order of PUBREL [MQTT-4.6.0-4]', async () => {
    const world = await steady()
    send(world, 2, 'a', 'b')
    await world.settle()
    for (const packetId of [1, 2, 1]) await world.send({ type: 'pubrec', packetId, reasonCode: 0, properties: {} })
    expect(carried(await again(world))).toEqual(['pubrel #1', 'pubrel #2'])
  })

  it('the order stays over several connections, each cut in the middle of the replay', async () => {
    const world = await steady({ outbound: { poisonAfter: Number.POSITIVE_INFINITY } })
    send(world, 1, 'a', 'b', 'c', 'd')
    await world.settle()
    const order = ['publish t=a q1 #1 dup', 'publish t=b q1 #2 dup', 'publish t=c q1 #3 dup', 'publish t=d q1 #4 dup']
    expect(carried(await again(world, keeps({ receiveMaximum: 2 })))).toEqual(order.slice(0, 2))
    expect(carried(await again(world, keeps({ receiveMaximum: 3 })))).toEqual(order.slice(0, 3))
    await world.send({ type: 'puback', packetId: 2, reasonCode: 0, properties: {} })
    expect(carried(await again(world))).toEqual(order.filter((line) => !line.includes('=b ')))
  })

  it('is byte for byte what was sent before, but for DUP (properties, large payloads, retain) [MQTT-4.4.0-1]', async () => {
    const world = await steady({ outbound: { poisonAfter: Number.POSITIVE_INFINITY } })
    const large = new Uint8Array(40_000).map((_, index) => index)
    const properties = {
      payloadFormatIndicator: 1,
      messageExpiryInterval: 1000,
      contentType: 'text/plain',
      responseTopic: 'answers/here',
      correlationData: 'abc',
      userProperties: [
        ['b', '2'],
        ['a', '1'],
        ['b', '2'],
      ] as [string, string][],
    }
    for (const options of [
      { qos: 1, properties },
      { qos: 2, retain: true },
    ] as const) {
      world.client.publish('täst/ß', 'Grüße', options).catch(() => undefined)
      world.client.publish('large', large, options).catch(() => undefined)
    }
    // What the caller does with its own objects afterwards is its own affair, but for a payload that is in flight.
    properties.contentType = 'changed'
    properties.userProperties.length = 0
    await world.settle()
    const first = publishFrames(world.peer)
    expect(first.map(({ dup }) => dup)).toEqual([false, false, false, false])
    await world.clock.advance(5000)
    const peer = await again(world)
    const second = publishFrames(peer)
    expect(second.map(({ dup }) => dup)).toEqual([true, true, true, true])
    expect(second.map(({ rest }) => rest)).toEqual(first.map(({ rest }) => rest))
    const third = publishFrames(await again(world))
    expect(third).toEqual(second)
  })

  it('leaves before everything new, also before what a `connect` listener asks for', async () => {
    const world = await steady()
    send(world, 1, 'old')
    send(world, 2, 'older')
    await world.send({ type: 'pubrec', packetId: 2, reasonCode: 0, properties: {} })
    await lose(world)
    world.client.subscription('late', { qos: 1 })
    world.client.on('connect', () => {
      world.client.post('t', 'quick')
      send(world, 1, 'new')
    })
    const lines = carried(await comeBack(world))
    expect(lines.slice(0, 1)).toEqual(['pubrel #2'])
    expect(lines.indexOf('publish t=old q1 #1 dup')).toBeLessThan(lines.findIndex((line) => line.startsWith('publish t=new')))
    expect(lines.indexOf('publish t=old q1 #1 dup')).toBeLessThan(lines.findIndex((line) => line.startsWith('publish t=quick')))
    expect(lines).toHaveLength(5)
  })
})

describe('a listener that publishes while the connection is being taken into use', () => {
  it.each(['state', 'connect'] as const)('on `%s`: what it publishes at QoS 1 and 2 leaves after the replay [MQTT-4.4.0-1]', async (type) => {
    const world = await steady()
    send(world, 1, 'old')
    send(world, 2, 'older')
    await world.settle()
    world.client.on(type, () => {
      if (world.client.state === 'connected') send(world, 1, 'new')
    })
    expect(carried(await again(world))).toEqual(['publish t=old q1 #1 dup', 'publish t=older q2 #2 dup', 'publish t=new q1 #3'])
  })
})

describe('the window of the new connection', () => {
  it('is never exceeded: the rest of the replay waits in order, new messages behind it [MQTT-3.3.4-7]', async () => {
    const world = await steady()
    send(world, 1, 'a', 'b', 'c', 'd', 'e')
    await lose(world)
    send(world, 1, 'new')
    const peer = await comeBack(world, keeps({ receiveMaximum: 2 }))
    const expected = ['a #1', 'b #2', 'c #3', 'd #4', 'e #5'].map((line) => `publish t=${line.replace(' ', ' q1 ')} dup`)
    for (let acknowledged = 0; acknowledged < 5; acknowledged++) {
      expect(carried(peer).slice(0, 5)).toEqual(expected.slice(0, acknowledged + 2))
      await world.send({ type: 'puback', packetId: acknowledged + 1, reasonCode: 0, properties: {} })
    }
    expect(carried(peer).slice(5)).toEqual([expect.stringMatching(/^publish t=new q1 #\d+$/)])
  })

  it('exchanges that go on with PUBREL count: no PUBLISH until there is room, and no underflow', async () => {
    const world = await steady()
    send(world, 2, 'a', 'b', 'c')
    send(world, 1, 'd')
    await world.send(...[1, 2, 3].map((packetId) => ({ type: 'pubrec', packetId, reasonCode: 0, properties: {} }) as const))
    const peer = await again(world, keeps({ receiveMaximum: 2 }))
    expect(carried(peer)).toEqual(['pubrel #1', 'pubrel #2', 'pubrel #3'])
    await world.send({ type: 'pubcomp', packetId: 2, reasonCode: 0, properties: {} })
    expect(carried(peer)).toHaveLength(3)
    await world.send({ type: 'pubcomp', packetId: 1, reasonCode: 0, properties: {} })
    expect(carried(peer).slice(3)).toEqual(['publish t=d q1 #4 dup'])
  })

  it('a queue that was filled before the connection, a window of one, slow acknowledgements: everything arrives in order', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 1 }))
    const texts = Array.from({ length: 30 }, (_, index) => `m${index}`)
    const promises = texts.map((text, index) => world.client.publish('t', text, { qos: index % 2 === 0 ? 1 : 2 }))
    let inFlight = 0
    for (let turn = 0; turn < 45; turn++) {
      await world.clock.advance(60_000)
      const packet = world.peer.received.at(-1)
      if (packet?.type === 'publish' && packet.qos === 1)
        await world.send({ type: 'puback', packetId: packet.packetId ?? 0, reasonCode: 0, properties: {} })
      else if (packet?.type === 'publish') await world.send({ type: 'pubrec', packetId: packet.packetId ?? 0, reasonCode: 0, properties: {} })
      else if (packet?.type === 'pubrel') await world.send({ type: 'pubcomp', packetId: packet.packetId, reasonCode: 0, properties: {} })
      inFlight = Math.max(inFlight, world.client.stats().publishesInFlight)
    }
    await expect(Promise.all(promises)).resolves.toHaveLength(30)
    expect(inFlight).toBeLessThanOrEqual(1)
    expect(world.peer.all('publish').map((packet) => new TextDecoder().decode(packet.payload))).toEqual(texts)
  })

  it('is the window again when acknowledgements have come: all is replayed and new ones flow', async () => {
    const world = await steady()
    const promises = [...send(world, 1, 'a', 'b'), ...send(world, 2, 'c')]
    await world.settle()
    const peer = await again(world, willing(true, { receiveMaximum: 1 }))
    promises.push(...send(world, 2, 'd'), ...send(world, 1, 'e'))
    await world.settle()
    await expect(Promise.all(promises)).resolves.toHaveLength(5)
    expect(peer.all('publish').map((packet) => [new TextDecoder().decode(packet.payload), packet.dup])).toEqual([
      ['a', true],
      ['b', true],
      ['c', true],
      ['d', false],
      ['e', false],
    ])
  })
})

describe('a connection that ends in the middle of a packet', () => {
  it('the packet is sent again as a whole', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'a long enough message to be cut')
    // Cut before the peer reads a byte of it.
    world.peer.cut()
    await world.settle()
    const peer = await comeBack(world, willing(true))
    expect(frames(peer)).toHaveLength(2)
    await expect(one).resolves.toBeDefined()
  })

  it('a part of a packet is of no use on the next connection', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't')
    await world.sendBytes('30 08 00 01')
    const peer = await again(world)
    peer.send({ type: 'publish', topic: 't', payload: new TextEncoder().encode('whole'), qos: 0 })
    await world.settle()
    expect(subscription.read()?.text()).toBe('whole')
    expect(world.client.state).toBe('connected')
  })
})

describe('an abort of a publish that was sent', () => {
  it('detaches the caller, the exchange goes on with the next connection; its identifier stays taken', async () => {
    const world = await steady()
    const controller = new AbortController()
    const rejected = failure(world.client.publish('t', 'one', { qos: 2, signal: controller.signal }))
    await world.settle()
    controller.abort()
    const error: MqttError = await rejected
    expect([error.code, error.outcome]).toEqual(['ERR_ABORTED', 'unknown'])
    const peer = await again(world)
    expect(carried(peer)).toEqual(['publish t=one q2 #1 dup'])
    send(world, 1, 'new')
    await world.settle()
    expect(carried(peer)[1]).toBe('publish t=new q1 #2')
  })

  it('the same after its ack timeout', async () => {
    const world = await steady()
    const rejected = failure(world.client.publish('t', 'one', { qos: 1, ackTimeout: 1000 }))
    await world.clock.advance(1000)
    expect((await rejected).code).toBe('ERR_TIMEOUT')
    expect((await rejected).outcome).toBe('unknown')
    expect(carried(await again(world))).toEqual(['publish t=one q1 #1 dup'])
  })
})

it('the identifier of a QoS 1 message that is too large for the next connection is used again', async () => {
  const clock = new VirtualClock()
  const stubs: StubTransport[] = []
  const transport = (): StubTransport => stubs[stubs.push(new StubTransport()) - 1] as StubTransport
  const client = new BaseClient(virtualPlatform(clock), [{ url: 'stub://peer', transport }], lasting)
  const accept = async (sessionPresent: boolean, properties = {}): Promise<void> => {
    stubs.at(-1)?.deliver({ type: 'connack', sessionPresent, reasonCode: 0, properties })
    await clock.settle()
  }
  const connecting = client.connect()
  await clock.settle()
  await accept(false)
  await connecting
  const large = failure(client.publish('t', 'x'.repeat(100), { qos: 1 }))
  await clock.settle()
  stubs.at(-1)?.destroy()
  await clock.advance(pause)
  await accept(true, { maximumPacketSize: 50, receiveMaximum: 65_535 })
  expect(await large).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE' })
  const stub = stubs.at(-1) as StubTransport
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

it('what is replayed is what was published, also when the caller was told already and uses its bytes again', async () => {
  const world = await connected({ ...lasting, cleanStart: false, clientId: 'c' })
  const payload = new TextEncoder().encode('one')
  const abort = new AbortController()
  const publish = world.client.publish('t', payload, { qos: 1, signal: abort.signal })
  publish.catch(() => undefined)
  await world.settle()
  const timely = new TextEncoder().encode('two')
  const late = world.client.publish('t', timely, { qos: 2, ackTimeout: 5 })
  late.catch(() => undefined)
  await world.settle()
  // The caller has both back now.
  abort.abort()
  await world.clock.advance(6)
  expect(await world.outcome(late)).toMatchObject({ state: 'rejected', error: { code: 'ERR_TIMEOUT' } })
  payload.fill(0)
  timely.fill(0)
  await lose(world)
  await comeBack(world, keeps())
  expect(world.peer.all('publish').map(({ payload: sent }) => new TextDecoder().decode(sent))).toEqual(['one', 'two'])
})
