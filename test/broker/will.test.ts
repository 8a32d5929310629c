/**
 * The broker in memory: wills, their delay, and when they stay unsaid.
 */
import { describe, expect, it } from 'vitest'
import { type ConnectSettings, durable, world } from './raw-client.js'

const will = (delay?: number, expiry = 100): ConnectSettings => ({
  cleanStart: false,
  properties: { sessionExpiryInterval: expiry },
  will: {
    topic: 'will',
    payload: Uint8Array.of(0x78),
    qos: 1,
    properties: {
      ...(delay === undefined ? {} : { willDelayInterval: delay }),
      contentType: 'c',
      userProperties: [
        ['b', '1'],
        ['a', '2'],
      ],
    },
  },
})

async function watched(options = {}) {
  const all = world(options)
  const watcher = await all.join('watcher')
  await watcher.subscribe({ filter: 'will', qos: 0 })
  return { ...all, wills: () => watcher.messages(), watcher }
}

describe('Will Message', () => {
  it('is published when the connection is lost, with its properties in order [MQTT-3.1.2-8] [MQTT-3.1.3-10]', async () => {
    const { join, wills, watcher, broker } = await watched()
    const client = await join('a', will())
    await client.cut()
    expect(await wills()).toEqual(['will x'])
    expect(watcher.received.at(-1)).toMatchObject({
      properties: {
        contentType: 'c',
        userProperties: [
          ['b', '1'],
          ['a', '2'],
        ],
      },
    })
    expect(watcher.received.at(-1)).not.toHaveProperty('properties.willDelayInterval')
    expect(broker.accepted).toMatchObject([{ clientId: 'a', will: true, packetId: undefined, topic: 'will' }])
  })

  it('is thrown away by DISCONNECT 0x00, not by 0x04 [MQTT-3.14.4-3] [MQTT-3.1.2-10]', async () => {
    const { join, wills } = await watched()
    await (await join('a', will())).send({ type: 'disconnect' })
    expect(await wills()).toEqual([])
    await (await join('a', will())).send({ type: 'disconnect', reasonCode: 4 })
    expect(await wills()).toEqual(['will x'])
  })

  it('is published after keep alive, protocol errors and administrative ends', async () => {
    const { join, wills, clock, broker } = await watched()
    await join('a', { ...will(), keepAlive: 1 })
    await clock.advance(1500)
    expect(await wills()).toHaveLength(1)
    await (await join('a', will())).send({ type: 'connect', clientId: 'a' })
    expect(await wills()).toHaveLength(1)
    await join('a', will())
    broker.disconnect('a')
    expect(await wills()).toHaveLength(1)
  })

  it('waits for its delay, or the end of the session if that is earlier [MQTT-3.1.2-8]', async () => {
    const { join, wills, clock } = await watched()
    await (await join('delay', will(10, 100))).cut()
    await clock.advance(9999)
    expect(await wills()).toEqual([])
    await clock.advance(1)
    expect(await wills()).toHaveLength(1)
    await (await join('expiry', will(100, 10))).cut()
    await clock.advance(9999)
    expect(await wills()).toEqual([])
    await clock.advance(1)
    expect(await wills()).toHaveLength(1)
    await clock.advance(100_000)
    expect(await wills()).toEqual([])
  })

  it('is not sent when the session is resumed in time [MQTT-3.1.3-9], and sent when it is cleared', async () => {
    const { join, wills, clock } = await watched()
    await (await join('a', will(10))).cut()
    await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 100 } })
    await clock.advance(60_000)
    expect(await wills()).toEqual([])
    await (await join('b', will(10))).cut()
    await join('b', { cleanStart: true })
    expect(await wills()).toEqual(['will x'])
  })

  it('a takeover publishes the will of the older connection, unless its delay is interrupted', async () => {
    const { join, wills, clock } = await watched()
    await join('a', will())
    await join('a', will(5))
    expect(await wills()).toHaveLength(1)
    await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 100 } })
    await clock.advance(60_000)
    expect(await wills()).toEqual([])
  })

  it('may be retained, or not [MQTT-3.1.2-14] [MQTT-3.1.2-15]; 3.1.1 has one too', async () => {
    const { join, wills, broker } = await watched()
    await (await join('a', { will: { topic: 'will', payload: Uint8Array.of(0x79), retain: true } }, 4)).cut()
    expect(await wills()).toEqual(['will y'])
    expect([...broker.retained.keys()]).toEqual(['will'])
    await (await join('b', { will: { topic: 'other', payload: Uint8Array.of(1) } })).cut()
    expect([...broker.retained.keys()]).toEqual(['will'])
  })

  it('is not taken when it is to be retained and there is no room', async () => {
    const { join, broker } = world({ maxRetained: 1 })
    broker.publish({ topic: 'kept', payload: 'x', retain: true })
    await (await join('a', { will: { topic: 'will', payload: Uint8Array.of(1), retain: true } })).cut()
    expect([[...broker.retained.keys()], broker.accepted.length]).toEqual([['kept'], 0])
  })

  it('is subject to authorizePublish when it is due', async () => {
    const { join, wills, broker } = await watched({ authorizePublish: () => false })
    await (await join('a', will())).cut()
    expect([await wills(), broker.accepted.length]).toEqual([[], 0])
  })

  it('a restart that remembers publishes it; nobody hears of it before coming back', async () => {
    const { join, broker, clock } = world()
    await join('a', will())
    const watcher = await join('watcher', durable)
    await watcher.subscribe({ filter: 'will', qos: 1 })
    broker.restart({ keepSessions: true })
    await clock.settle()
    expect(watcher.takeMessages()).toEqual([])
    expect((await join('watcher', durable)).take()).toMatchObject([{ type: 'publish', topic: 'will', dup: false }])
  })

  it('a restart that forgets, forgets it', async () => {
    const { join, broker, clock } = await watched()
    await join('a', will(5))
    broker.restart({ keepSessions: false })
    await clock.advance(60_000)
    expect(broker.accepted).toEqual([])
  })
})
