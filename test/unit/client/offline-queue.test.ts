/** Publishes while there is no connection: kept or rejected as said, sent in order when there is one, and nothing left unsettled. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, PublishOptions } from '../../../src/client/api/index.js'
import { again, carried, comeBack, forgets, keeps, lasting, lose, send, steady, willing } from './across.js'
import { failure, World } from './harness.js'
import { quiet } from './incoming.js'

const offline = (policy: 'queue' | 'reject'): ClientOptions => ({ outbound: { offline: { qos0: policy, qos1: policy, qos2: policy } } })

describe('submitted offline', () => {
  it.each([
    [0, undefined, 'reject'],
    [1, undefined, 'queue'],
    [2, undefined, 'queue'],
    [0, 'queue', 'queue'],
    [1, 'reject', 'reject'],
    [2, 'reject', 'reject'],
  ] as const)('QoS %d, client policy %s: %s', async (qos, policy, expected) => {
    const world = await steady(policy === undefined ? {} : offline(policy))
    await lose(world)
    const promise = quiet(world.client.publish('t', 'x', { qos }))
    if (expected === 'reject') {
      expect(await failure(promise)).toMatchObject({ code: 'ERR_NOT_CONNECTED', outcome: 'not-sent' })
      expect(carried(await comeBack(world, willing(true)))).toEqual([])
      return
    }
    expect(await world.outcome(promise)).toEqual({ state: 'pending' })
    expect(world.client.outbound.size).toBe(1)
    const peer = await comeBack(world, willing(true))
    expect(peer.all('publish').map((packet) => [packet.qos, packet.dup])).toEqual([[qos, false]])
    await expect(promise).resolves.toMatchObject({ reasonCode: 0 })
  })

  it.each([0, 1, 2] as const)('one publish at QoS %d may say otherwise', async (qos) => {
    const strict = await steady(offline('reject'))
    const lenient = await steady(offline('queue'))
    await lose(strict)
    await lose(lenient)
    const kept = quiet(strict.client.publish('t', 'x', { qos, offline: 'queue' }))
    expect(await failure(lenient.client.publish('t', 'x', { qos, offline: 'reject' }))).toMatchObject({
      code: 'ERR_NOT_CONNECTED',
      outcome: 'not-sent',
    })
    await comeBack(strict, willing(true))
    await expect(kept).resolves.toBeDefined()
    expect([strict.client.outbound.size, lenient.client.outbound.size]).toEqual([0, 0])
  })

  it('`post` takes nothing, whatever the policy', async () => {
    const world = await steady(offline('queue'))
    await lose(world)
    expect(world.client.post('t', 'x')).toBe(false)
    expect(carried(await comeBack(world))).toEqual([])
  })

  it('before the first connect: sent after it, in order', async () => {
    const world = new World({ ...lasting, ...offline('queue') })
    const promises = ([1, 2, 0, 1] as const).map((qos, index) => quiet(world.client.publish('t', `m${index}`, { qos })))
    world.answer = willing(false)
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    await expect(Promise.all(promises)).resolves.toHaveLength(4)
    const lines = world.peer.all('publish').map((packet) => [new TextDecoder().decode(packet.payload), packet.qos])
    expect(lines.filter(([, qos]) => qos !== 0)).toEqual([
      ['m0', 1],
      ['m1', 2],
      ['m3', 1],
    ])
    expect(lines).toHaveLength(4)
  })

  it('a first connect that fails for good rejects them all with not-sent', async () => {
    const world = new World({ ...lasting })
    const errors = ([1, 2] as const).map((qos) => failure(world.client.publish('t', 'x', { qos })))
    world.answer = (packet) => (packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0x87, properties: {} } : undefined)
    const connecting = failure(world.client.connect())
    await world.settle()
    expect((await connecting).reasonCode).toBe(0x87)
    for (const error of errors) expect(await error).toMatchObject({ outcome: 'not-sent' })
    expect(world.client.outbound.size).toBe(0)
  })
})

describe('queued when the link drops', () => {
  it('QoS 1 and 2 that wait for quota stay, or go where the policy is to reject: not-sent', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 1 }))
    send(world, 1, 'in flight')
    const stays = quiet(world.client.publish('t', 'stays', { qos: 2 }))
    const goes = failure(world.client.publish('t', 'goes', { qos: 1, offline: 'reject' }))
    await world.settle()
    await lose(world)
    expect(await goes).toMatchObject({ code: 'ERR_NOT_CONNECTED', outcome: 'not-sent' })
    const peer = await comeBack(world, willing(true))
    expect(peer.all('publish').map((packet) => new TextDecoder().decode(packet.payload))).toEqual(['in flight', 'stays'])
    await expect(stays).resolves.toBeDefined()
  })

  it('QoS 0 that the transport did not take yet: rejected with not-sent, or kept and sent once', async () => {
    for (const policy of ['reject', 'queue'] as const) {
      const world = new World({ ...lasting, outbound: { offline: { qos0: policy } } }, { forward: { highWaterMark: 64, latency: 5 } })
      world.answer = willing(false)
      const connecting = world.client.connect()
      await world.clock.advance(10)
      await connecting
      const blocking = quiet(world.client.publish('t', 'x'.repeat(200)))
      await world.settle()
      const waiting = quiet(world.client.publish('t', 'waits'))
      await lose(world)
      await blocking
      if (policy === 'reject') expect(await failure(waiting)).toMatchObject({ code: 'ERR_NOT_CONNECTED', outcome: 'not-sent' })
      world.answer = willing(true)
      await world.clock.advance(30)
      expect(world.peer.all('publish').map((packet) => new TextDecoder().decode(packet.payload))).toEqual(policy === 'queue' ? ['waits'] : [])
      if (policy === 'queue') await expect(waiting).resolves.toBeDefined()
    }
  })

  it('those that await their acknowledgement are no matter of the policy: they were sent', async () => {
    const world = await steady(offline('reject'))
    const promises = [...send(world, 1, 'one'), ...send(world, 2, 'two')]
    await world.settle()
    const peer = await again(world, willing(true))
    expect(peer.all('publish').map((packet) => packet.dup)).toEqual([true, true])
    await expect(Promise.all(promises)).resolves.toHaveLength(2)
  })
})

describe('offline to online', () => {
  it('call order is kept within QoS 1 and 2, and within QoS 0', async () => {
    const world = await steady(offline('queue'))
    await lose(world)
    const calls = Array.from({ length: 60 }, (_, index) => ({ text: `m${index}`, qos: (index % 3) as 0 | 1 | 2 }))
    const promises = calls.map(({ text, qos }) => quiet(world.client.publish('t', text, { qos })))
    const peer = await comeBack(world, willing(true, { receiveMaximum: 3 }))
    await expect(Promise.all(promises)).resolves.toHaveLength(60)
    const texts = (wanted: (qos: number) => boolean) =>
      peer.all('publish').flatMap((packet) => (wanted(packet.qos) ? [new TextDecoder().decode(packet.payload)] : []))
    expect(texts((qos) => qos > 0)).toEqual(calls.filter(({ qos }) => qos > 0).map(({ text }) => text))
    expect(texts((qos) => qos === 0)).toEqual(calls.filter(({ qos }) => qos === 0).map(({ text }) => text))
  })

  it('an aborted one is taken out, the others keep their order', async () => {
    const world = await steady()
    await lose(world)
    const controller = new AbortController()
    send(world, 1, 'a')
    const error = failure(world.client.publish('t', 'b', { qos: 1, signal: controller.signal }))
    send(world, 1, 'c')
    controller.abort()
    expect(await error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'not-sent', name: 'AbortError' })
    expect(carried(await comeBack(world))).toEqual(['publish t=a q1 #1', 'publish t=c q1 #2'])
  })

  it('`clear()` rejects what was never sent and leaves what was', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 1 }))
    const [sent] = send(world, 1, 'sent')
    await world.settle()
    await lose(world)
    const errors = ['a', 'b'].map((text) => failure(world.client.publish('t', text, { qos: 1 })))
    world.client.outbound.clear()
    for (const error of errors) expect(await error).toMatchObject({ code: 'ERR_DROPPED', outcome: 'not-sent' })
    expect(carried(await comeBack(world, willing(true)))).toEqual(['publish t=sent q1 #1 dup'])
    await expect(sent).resolves.toBeDefined()
  })
})

describe('limits of the next server', () => {
  it.each([
    ['Maximum QoS', { maximumQoS: 1 }, { qos: 2 }, 'ERR_QOS_UNSUPPORTED'],
    ['Retain Available', { retainAvailable: 0 }, { qos: 1, retain: true }, 'ERR_RETAIN_UNSUPPORTED'],
    ['Maximum Packet Size', { maximumPacketSize: 100 }, { qos: 1, properties: { contentType: 'x'.repeat(100) } }, 'ERR_PACKET_TOO_LARGE'],
  ] as [string, object, PublishOptions, string][])(
    '%s: a queued one that breaks it is rejected alone, at send time',
    async (_name, limits, options, code) => {
      const world = await steady()
      await lose(world)
      const before = quiet(world.client.publish('t', 'before', { qos: 1 }))
      const bad = failure(world.client.publish('t', 'bad', options))
      const after = quiet(world.client.publish('t', 'after', { qos: 1 }))
      const peer = await comeBack(world, willing(true, limits))
      expect(await bad).toMatchObject({ code, outcome: 'not-sent' })
      await expect(Promise.all([before, after])).resolves.toHaveLength(2)
      expect(peer.all('publish').map((packet) => new TextDecoder().decode(packet.payload))).toEqual(['before', 'after'])
      expect(world.client.state).toBe('connected')
    },
  )

  it.each([
    ['Maximum QoS', { maximumQoS: 1 }, { qos: 2 }, 'ERR_QOS_UNSUPPORTED'],
    ['Retain Available', { retainAvailable: 0 }, { qos: 1, retain: true }, 'ERR_RETAIN_UNSUPPORTED'],
    ['Maximum Packet Size', { maximumPacketSize: 100 }, { qos: 1, properties: { contentType: 'x'.repeat(100) } }, 'ERR_PACKET_TOO_LARGE'],
  ] as [string, object, PublishOptions, string][])(
    '%s: one that was in flight is taken out and rejected alone, outcome unknown',
    async (_name, limits, options, code) => {
      const world = await steady()
      const before = quiet(world.client.publish('t', 'before', { qos: 1 }))
      const bad = failure(world.client.publish('t', 'bad', options))
      const after = quiet(world.client.publish('t', 'after', { qos: 1 }))
      await world.settle()
      const peer = await again(world, willing(true, limits))
      expect(await bad).toMatchObject({ code, outcome: 'unknown' })
      await expect(Promise.all([before, after])).resolves.toHaveLength(2)
      expect(peer.all('publish').map((packet) => [new TextDecoder().decode(packet.payload), packet.dup])).toEqual([
        ['before', true],
        ['after', true],
      ])
      // A server that takes it again gets no more of it.
      expect(carried(await again(world, keeps()))).toEqual([])
    },
  )

  it('a queued QoS 0 message that breaks them does not hold up the others', async () => {
    const world = await steady(offline('queue'))
    await lose(world)
    const bad = failure(world.client.publish('t', 'bad', { retain: true }))
    const good = quiet(world.client.publish('t', 'good'))
    await comeBack(world, willing(true, { retainAvailable: 0 }))
    expect(await bad).toMatchObject({ code: 'ERR_RETAIN_UNSUPPORTED', outcome: 'not-sent' })
    await expect(good).resolves.toBeDefined()
  })
})

describe('a call that can never be sent', () => {
  it('fails at once, offline too', async () => {
    const world = await steady()
    await lose(world)
    expect(await failure(world.client.publish('a/#', 'x', { qos: 1 }))).toMatchObject({ code: 'ERR_INVALID_TOPIC', outcome: 'not-sent' })
    expect(await failure(world.client.publish('t', 'x', { qos: 1, properties: { contentType: 'x'.repeat(70_000) } }))).toMatchObject({
      outcome: 'not-sent',
    })
    expect(world.client.outbound.size).toBe(0)
  })
})
