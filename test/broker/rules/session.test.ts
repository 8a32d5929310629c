/**
 * Proofs of the server role, sections 3.1.2.4, 3.1.2.11.2, 4.1, 4.4 and 4.5: what the broker in memory keeps of a client, for how long, and what it
 * sends again.
 */
import { describe, expect, it } from 'vitest'
import { durable, type RawClient, type World, world } from '../raw-client.js'
import { heard, packetOf, say, textOf } from './wire.js'

/** A connection of `a` that resumes its session. */
async function resumed(all: World, seconds = 3600): Promise<[RawClient, boolean, string[]]> {
  const client = all.dial()
  const connack = await client.connect({ clientId: 'a', cleanStart: false, properties: { sessionExpiryInterval: seconds } })
  return [client, connack.type === 'connack' && connack.sessionPresent, heard(client).slice(1)]
}

/** A session of `a` that is subscribed to `t` at QoS 2. */
async function subscribed(seconds: number): Promise<[RawClient, World]> {
  const all = world()
  const [client] = await resumed(all, seconds)
  await client.subscribe('t')
  heard(client)
  return [client, all]
}

describe('Clean Start', () => {
  it('1 drops all there was: subscriptions, what waits, what is open both ways [MQTT-3.1.2-4]', async () => {
    const [client, all] = await subscribed(3600)
    all.broker.publish({ topic: 't', qos: 2 })
    all.broker.publish({ topic: 't', qos: 2 })
    await client.send()
    await say(client, '50 02 00 01', packetOf('34', textOf('u'), '00 09 00'))
    await client.cut()
    all.broker.publish({ topic: 't', qos: 1 })
    expect(all.broker.sessions.get('a')).toMatchObject({ queued: 1, inflight: 2, unreleased: [9] })
    const fresh = all.dial()
    expect(await fresh.connect({ clientId: 'a', cleanStart: true, properties: { sessionExpiryInterval: 3600 } })).toMatchObject({
      sessionPresent: false,
    })
    expect(heard(fresh)).toHaveLength(1)
    all.broker.publish({ topic: 't', qos: 1 })
    // The identifier 9 is a new message's now, and its PUBREL one that nobody knows.
    expect(await say(fresh, '62 02 00 09', packetOf('34', textOf('u'), '00 09 00'))).toEqual(['70 03 00 09 92', '50 03 00 09 10'])
    expect(all.broker.sessions.get('a')).toMatchObject({ queued: 0, inflight: 0, subscriptions: [] })
  })

  it('0 goes on from what is stored, or with a new session that works [MQTT-3.1.2-5] [MQTT-3.1.2-6] [MQTT-3.2.2-3]', async () => {
    const [client, all] = await subscribed(300)
    await client.cut()
    all.broker.publish({ topic: 't', payload: 'x', qos: 1 })
    const [again, present, came] = await resumed(all)
    expect([present, came]).toEqual([true, ['32 07 00 01 74 00 01 00 78']])
    await again.send({ type: 'disconnect', properties: { sessionExpiryInterval: 0 } })
    const [fresh, stillPresent, nothing] = await resumed(all)
    expect([stillPresent, nothing]).toEqual([false, []])
    expect(await say(fresh, packetOf('82', '00 01 00', textOf('u'), '00'))).toEqual(['90 04 00 01 00 00'])
    expect(all.broker.publish({ topic: 'u' })).toBe(true)
  })
})

describe('the client identifier', () => {
  it('is the key: two stored sessions see nothing of each other [MQTT-3.1.3-2]', async () => {
    const { join, broker } = world()
    for (const clientId of ['a', 'A']) {
      const client = await join(clientId, durable)
      await client.subscribe({ filter: `of/${clientId}`, qos: 1 })
      await client.cut()
    }
    for (const topic of ['of/a', 'of/A']) broker.publish({ topic, payload: topic, qos: 1 })
    expect((await join('A', durable)).takeMessages()).toEqual(['of/A of/A'])
    expect((await join('a', durable)).takeMessages()).toEqual(['of/a of/a'])
    expect((await join('á', durable)).takeMessages()).toEqual([])
  })
})

describe('the time a session is kept', () => {
  it.each([1, 10, 4_000_000_000])('an interval of %i s after the connection, not less, not more [MQTT-3.1.2-23] [MQTT-4.1.0-2]', async (seconds) => {
    const [client, all] = await subscribed(seconds)
    await client.cut()
    await all.clock.advance(seconds * 1000 - 1)
    all.broker.publish({ topic: 't', payload: 'x', qos: 1 })
    const [again, present, came] = await resumed(all, seconds)
    expect([present, came]).toEqual([true, ['32 07 00 01 74 00 01 00 78']])
    await again.cut()
    await all.clock.advance(seconds * 1000)
    expect(all.broker.sessions.size).toBe(0)
    const [, later, nothing] = await resumed(all, seconds)
    expect([later, nothing, all.broker.publish({ topic: 't' })]).toEqual([false, [], false])
  })

  it('0 is the end of it with the connection, 0xFFFFFFFF is never [MQTT-3.1.2-23] [MQTT-4.1.0-2]', async () => {
    for (const [seconds, present] of [
      [0, false],
      [0xffff_ffff, true],
    ] as const) {
      const [client, all] = await subscribed(seconds)
      await client.cut()
      if (present) await all.clock.advance(100 * 365 * 86_400_000)
      expect((await resumed(all))[1]).toBe(present)
    }
  })

  it('DISCONNECT may change it [MQTT-3.1.2-23] [MQTT-4.1.0-2]', async () => {
    const [client, all] = await subscribed(10)
    await client.send({ type: 'disconnect', properties: { sessionExpiryInterval: 100 } })
    await all.clock.advance(99_999)
    expect(all.broker.sessions.has('a')).toBe(true)
    await all.clock.advance(1)
    expect(all.broker.sessions.has('a')).toBe(false)
  })

  it('while the connection is open nothing of it goes, whatever the interval [MQTT-4.1.0-1]', async () => {
    for (const seconds of [0, 1]) {
      const [client, all] = await subscribed(seconds)
      all.broker.publish({ topic: 't', qos: 2 })
      await client.send()
      heard(client)
      expect(await say(client, packetOf('34', textOf('u'), '00 09 00'))).toEqual(['50 03 00 09 10'])
      await all.clock.advance(100_000_000)
      expect(await say(client, '50 02 00 01', '62 02 00 09')).toEqual(['62 02 00 01', '70 02 00 09'])
      expect(await say(client, '70 02 00 01')).toEqual([])
      all.broker.publish({ topic: 't', payload: 'x' })
      expect(await client.messages()).toEqual(['t x'])
      expect(all.broker.violations).toEqual([])
    }
  })

  it('a session that is resumed before its end has no end any more [MQTT-4.1.0-1] [MQTT-4.1.0-2]', async () => {
    const [client, all] = await subscribed(10)
    await client.cut()
    await all.clock.advance(9000)
    await resumed(all, 10)
    await all.clock.advance(60_000)
    expect(all.broker.sessions.has('a')).toBe(true)
  })
})

describe('what is sent again', () => {
  it('PUBLISH and PUBREL that were not answered, with their identifiers, once on the next connection and never before [MQTT-4.4.0-1] [MQTT-3.3.1-1] [MQTT-4.3.2-3] [MQTT-4.3.3-3] [MQTT-4.3.3-5] [MQTT-4.3.3-6]', async () => {
    const [client, all] = await subscribed(3600)
    for (const qos of [1, 2, 2] as const) all.broker.publish({ topic: 't', payload: `${qos}`, qos })
    await client.send()
    expect(heard(client)).toEqual(['32 07 00 01 74 00 01 00 31', '34 07 00 01 74 00 02 00 32', '34 07 00 01 74 00 03 00 32'])
    expect(await say(client, '50 02 00 03')).toEqual(['62 02 00 03'])
    await all.clock.advance(3_000_000)
    expect(heard(client)).toEqual([])
    for (let round = 0; round < 2; round++) {
      await client.cut()
      const [again, present, came] = await resumed(all)
      expect([present, came]).toEqual([true, ['62 02 00 03', '3a 07 00 01 74 00 01 00 31', '3c 07 00 01 74 00 02 00 32']])
      await all.clock.advance(3_000_000)
      expect(heard(again)).toEqual([])
      await again.cut()
    }
    const fresh = await all.join('a', { cleanStart: true })
    expect(heard(fresh)).toHaveLength(1)
  })

  it.each([
    ['PUBACK', 1, '40'],
    ['PUBREC', 2, '50'],
  ] as const)('not what a %s of 0x80 or more has settled: neither PUBLISH nor PUBREL [MQTT-4.4.0-2]', async (_what, qos, first) => {
    for (const code of ['80', '83', '87', '90', '91', '97', '99']) {
      const [client, all] = await subscribed(3600)
      all.broker.publish({ topic: 't', qos })
      await client.send()
      heard(client)
      expect(await say(client, `${first} 03 00 01 ${code}`)).toEqual([])
      expect(all.broker.sessions.get('a')).toMatchObject({ queued: 0, inflight: 0 })
      await client.cut()
      expect((await resumed(all)).slice(1)).toEqual([true, []])
    }
  })
})

describe('a message that was taken over', () => {
  it('is put into the session of everybody whose subscription matches, connected or away [MQTT-4.5.0-1]', async () => {
    const { join, broker } = world()
    const sender = await join('sender')
    const here = await join('here')
    const away = await join('away', durable)
    const other = await join('other', durable)
    for (const each of [here, away]) await each.subscribe({ filter: 't/#', qos: 1 })
    await other.subscribe({ filter: 'u/#', qos: 1 })
    await away.cut()
    await other.cut()
    heard(here)
    expect((await say(sender, packetOf('32', textOf('t/1'), '00 01 00 78'))).at(-1)).toBe('40 02 00 01')
    expect(heard(here)).toEqual(['32 09 00 03 74 2f 31 00 01 00 78'])
    expect(heard(await join('away', durable)).slice(1)).toEqual(['32 09 00 03 74 2f 31 00 01 00 78'])
    expect(heard(await join('other', durable))).toHaveLength(1)
    expect(broker.accepted).toHaveLength(1)
  })
})
