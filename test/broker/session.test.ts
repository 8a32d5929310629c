/**
 * The broker in memory: sessions, their expiry, and what is sent again.
 */
import { describe, expect, it } from 'vitest'
import { MemoryBroker } from '../../src/testing/index.js'
import { type ConnectSettings, durable, RawClient, world } from './raw-client.js'

describe('sessions', () => {
  it('ends with the connection at expiry 0, stays otherwise [MQTT-3.1.2-23] [MQTT-4.1.0-2] [MQTT-3.2.2-3]', async () => {
    const { join, dial, clock, broker } = world()
    await (await join('short')).cut()
    expect(await dial().connect({ clientId: 'short', cleanStart: false })).toMatchObject({ sessionPresent: false }) // [MQTT-3.1.2-6]
    const client = await join('long', { cleanStart: false, properties: { sessionExpiryInterval: 10 } })
    await client.subscribe('t')
    await client.cut()
    await clock.advance(9999)
    expect(broker.sessions.get('long')).toMatchObject({ connected: false, expiryInterval: 10, subscriptions: [{ filter: 't', qos: 2 }] })
    await clock.advance(1)
    expect(broker.sessions.has('long')).toBe(false)
  })

  it('resumes with subscriptions and what was queued; QoS 0 was not [MQTT-3.1.2-5] [MQTT-4.5.0-1]', async () => {
    const { join, dial, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    await client.cut()
    for (const qos of [0, 1, 2] as const) broker.publish({ topic: 't', payload: `q${qos}`, qos })
    expect(broker.sessions.get('a')).toMatchObject({ queued: 2, dropped: 0 })
    const again = dial()
    expect(await again.connect({ clientId: 'a', ...durable })).toMatchObject({ sessionPresent: true })
    expect(again.take()).toMatchObject([
      { qos: 1, dup: false, packetId: 1 },
      { qos: 2, dup: false, packetId: 2 },
    ])
  })

  it('queues QoS 0 where it was asked to', async () => {
    const { join, dial, broker } = world({ queueQoS0: true })
    const client = await join('a', durable)
    await client.subscribe('t')
    await client.cut()
    broker.publish({ topic: 't', payload: 'zero' })
    const again = dial()
    await again.connect({ clientId: 'a', ...durable })
    expect(again.takeMessages()).toEqual(['t zero'])
  })

  it('Clean Start forgets everything [MQTT-3.1.2-4] [MQTT-3.2.2-2]', async () => {
    const { join, dial, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    await client.cut()
    expect(await dial().connect({ clientId: 'a', cleanStart: true })).toMatchObject({ sessionPresent: false })
    expect(broker.sessions.get('a')?.subscriptions).toEqual([])
    expect(broker.publish({ topic: 't' })).toBe(false)
  })

  it('a resumption stops the expiry, and the new CONNECT decides the next', async () => {
    const { join, clock, broker } = world()
    await (await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 10 } })).cut()
    await clock.advance(9000)
    const client = await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 20 } })
    await clock.advance(60_000)
    expect(broker.sessions.has('a')).toBe(true)
    await client.cut()
    await clock.advance(19_999)
    expect(broker.sessions.has('a')).toBe(true)
    await clock.advance(1)
    expect(broker.sessions.has('a')).toBe(false)
  })

  it('4,294,967,295 is for ever, and long intervals are no short ones', async () => {
    const { clock: virtual } = world()
    // A platform's timer takes 2^31 - 1 ms at the most; more runs at once.
    const limited = { now: () => virtual.now(), setTimer: (run: () => void, delay: number) => virtual.setTimer(run, delay > 2 ** 31 - 1 ? 1 : delay) }
    const broker = new MemoryBroker({ clock: limited })
    const clock = virtual
    const join = async (clientId: string, settings: ConnectSettings): Promise<RawClient> => {
      const client = new RawClient(virtual, broker.connect(), 5)
      await client.connect({ clientId, ...settings })
      return client
    }
    await (await join('ever', { cleanStart: false, properties: { sessionExpiryInterval: 0xffff_ffff } })).cut()
    await (await join('long', { cleanStart: false, properties: { sessionExpiryInterval: 0xffff_fffe } })).cut()
    await clock.advance(2 ** 31 + 1)
    expect([...broker.sessions.keys()]).toEqual(['ever', 'long'])
    await clock.advance(0xffff_fffe * 1000)
    expect([...broker.sessions.keys()]).toEqual(['ever'])
  })

  it('DISCONNECT may change the expiry, but not make something of nothing (section 3.14.2.2.2)', async () => {
    const { join, broker } = world()
    const keeps = await join('keeps', durable)
    await keeps.send({ type: 'disconnect', properties: { sessionExpiryInterval: 0 } })
    expect(broker.sessions.has('keeps')).toBe(false)
    const cheats = await join('cheats')
    await cheats.send({ type: 'disconnect', properties: { sessionExpiryInterval: 5 } })
    expect(cheats.goodbye).toBe(0x82)
    expect(broker.sessions.has('cheats')).toBe(false)
  })

  it('3.1.1: clean sessions end, others stay; the flag is the whole of it', async () => {
    const { join, dial, broker } = world()
    await (await join('clean', { cleanStart: true }, 4)).cut()
    expect(broker.sessions.has('clean')).toBe(false)
    const client = await join('kept', { cleanStart: false }, 4)
    await client.subscribe('t')
    await client.cut()
    broker.publish({ topic: 't', payload: 'x', qos: 1, properties: { contentType: 'text/plain' } })
    const again = dial(4)
    expect(await again.connect({ clientId: 'kept', cleanStart: false })).toMatchObject({ sessionPresent: true })
    expect(again.take()).toMatchObject([{ type: 'publish', qos: 1, properties: {} }])
  })
})

describe('takeover [MQTT-3.1.4-3]', () => {
  it('the older connection gets 0x8E, the newer the session', async () => {
    const { join, dial, broker } = world()
    const older = await join('a', durable)
    await older.subscribe('t')
    const newer = dial()
    expect(await newer.connect({ clientId: 'a', ...durable })).toMatchObject({ sessionPresent: true })
    expect([older.goodbye, older.ended !== undefined]).toEqual([0x8e, true])
    broker.publish({ topic: 't', payload: 'x' })
    expect(await newer.messages()).toEqual(['t x'])
    expect(broker.clients.size).toBe(1)
  })

  it('3.1.1 is closed without a word', async () => {
    const { join } = world()
    const older = await join('a', {}, 4)
    await join('a', {}, 4)
    expect([older.received.length, older.ended !== undefined]).toEqual([1, true])
  })

  it('a session without expiry ends with the older connection', async () => {
    const { join, dial } = world()
    await join('a')
    expect(await dial().connect({ clientId: 'a', cleanStart: false })).toMatchObject({ sessionPresent: false })
  })
})

describe('restart and close', () => {
  it('keeps sessions and retained messages, or not', async () => {
    const { join, dial, broker } = world()
    for (const keepSessions of [true, false]) {
      const client = await join('a', durable)
      await client.subscribe('t', 1)
      broker.publish({ topic: 'r', payload: 'kept', retain: true })
      broker.restart({ keepSessions })
      await client.send()
      expect(client.ended?.cause).toBeDefined()
      expect([...broker.retained.keys()]).toEqual(keepSessions ? ['r'] : [])
      const again = dial()
      expect(await again.connect({ clientId: 'a', ...durable })).toMatchObject({ sessionPresent: keepSessions })
      await again.cut()
    }
  })

  it('close says 0x8B to everybody and takes nobody any more', async () => {
    const { join, dial, broker, clock } = world()
    const client = await join('a', { ...durable, will: { topic: 'w' } })
    broker.close()
    await client.send()
    expect([client.goodbye, client.ended !== undefined]).toEqual([0x8b, true])
    const late = dial()
    await clock.settle()
    expect(late.ended).toBeDefined()
    await expect(broker.dial()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect([broker.sessions.size, broker.accepted.length]).toEqual([0, 0])
    await clock.advance(60_000)
    expect(clock.pending).toBe(0)
  })
})
