/**
 * The broker in memory: hooks that allow, refuse, change and swallow.
 */
import { describe, expect, it, vi } from 'vitest'
import type { BrokerEvents } from '../../src/testing/index.js'
import { bytes, durable, text, world } from './raw-client.js'

describe('hooks', () => {
  it('authorizePublish refuses with a code; QoS 0 and 3.1.1 cannot be told', async () => {
    const { join, broker } = world({ authorizePublish: (client, { topic }) => (topic === 'open' ? true : client.clientId === 'a' ? 0x99 : false) })
    const a = await join('a')
    expect(await a.publish('closed', '', { qos: 1, packetId: 1 })).toMatchObject([{ type: 'puback', reasonCode: 0x99 }])
    expect(await a.publish('closed', '', { qos: 2, packetId: 2 })).toMatchObject([{ type: 'pubrec', reasonCode: 0x99 }])
    expect(broker.sessions.get('a')?.unreleased).toEqual([])
    expect(await a.publish('closed', '')).toEqual([])
    const b = await join('b', {}, 4)
    expect(await b.publish('closed', '', { qos: 1, packetId: 1 })).toMatchObject([{ type: 'puback', reasonCode: 0 }])
    expect(broker.accepted).toEqual([])
    await b.publish('open', '')
    expect(broker.accepted).toHaveLength(1)
  })

  it('intercept sees, changes and swallows, both ways', async () => {
    const seen: string[] = []
    const { join, broker } = world({
      intercept(direction, packet, client) {
        seen.push(`${direction} ${packet.type} ${client?.clientId}`)
        if (packet.type === 'publish' && direction === 'in') return { ...packet, topic: `seen/${packet.topic}` }
        return packet.type === 'pingresp' ? false : undefined
      },
    })
    const client = await join('a')
    expect(await client.send({ type: 'pingreq' })).toEqual([])
    await client.publish('t', 'x')
    expect(broker.accepted.map(({ topic }) => topic)).toEqual(['seen/t'])
    expect(seen).toEqual(['in connect undefined', 'out connack a', 'in pingreq a', 'out pingresp a', 'in publish a'])
  })
})

describe('what is published inside a hook', () => {
  it('waits its turn, and no longer', async () => {
    const { join, broker } = world({
      intercept(direction, packet) {
        if (direction === 'out' && packet.type === 'publish' && packet.topic === 't') broker.publish({ topic: 'echo', payload: text(packet.payload) })
        return undefined
      },
    })
    const client = await join('a', durable)
    await client.subscribe('#')
    await client.cut()
    for (const payload of ['1', '2']) broker.publish({ topic: 't', payload, qos: 1 })
    expect((await join('a', durable)).takeMessages().sort()).toEqual(['echo 1', 'echo 2', 't 1', 't 2'])
  })
})

describe('events and views', () => {
  it('tell everything once, in order', async () => {
    const { join, broker } = world()
    const seen: string[] = []
    const note = <K extends keyof BrokerEvents>(type: K, say: (event: BrokerEvents[K]) => string) =>
      broker.on(type, (event) => seen.push(`${type} ${say(event)}`))
    note('connect', ({ client, sessionPresent }) => `${client.clientId} ${sessionPresent}`)
    note('disconnect', ({ client, by, reasonCode }) => `${client.clientId} ${by} ${reasonCode}`)
    note('publish', ({ message }) => `${message.from} ${message.topic} ${text(message.payload)}`)
    note('subscribe', ({ client, subscriptions, reasonCodes }) => `${client.clientId} ${subscriptions[0]?.filter} ${reasonCodes}`)
    const stop = note('unsubscribe', ({ client, filters, reasonCodes }) => `${client.clientId} ${filters} ${reasonCodes}`)
    note('violation', ({ clientId, text: rule }) => `${clientId} ${rule}`)
    const a = await join('a', durable)
    await a.subscribe('t')
    await a.publish('t', 'x')
    await a.send({ type: 'unsubscribe', packetId: 4, filters: ['t', 'u'] })
    stop()
    await a.send({ type: 'unsubscribe', packetId: 4, filters: ['t'] })
    broker.publish({ topic: 'in', payload: 'y' })
    await a.send({ type: 'disconnect', reasonCode: 4 })
    await (await join('a', durable)).cut()
    await join('a', durable)
    broker.disconnect('a', 0x89)
    const b = await join('b')
    await b.send({ type: 'connect', clientId: 'b' })
    expect(seen).toEqual([
      'connect a false',
      'subscribe a t 2',
      'publish a t x',
      'unsubscribe a t,u 0,17',
      'publish undefined in y',
      'disconnect a client 4',
      'connect a true',
      'disconnect a network undefined',
      'connect a true',
      'disconnect a broker 137',
      'connect b false',
      'violation b a second CONNECT [MQTT-3.1.0-2]',
      'disconnect b broker 130',
    ])
  })

  it('clients know their bytes and settings', async () => {
    const { join, broker } = world()
    const client = await join('a', { username: 'u', keepAlive: 9 }, 4)
    await client.send({ type: 'pingreq' })
    const view = broker.clients.get('a')
    expect(view).toMatchObject({ clientId: 'a', username: 'u', protocolVersion: 4, keepAlive: 9, remote: undefined })
    expect([view?.bytesIn, view?.bytesOut]).toEqual([18 + 2, 4 + 2])
  })

  it('show no password', async () => {
    const { join, broker } = world()
    const seen: unknown[] = []
    broker.on('connect', (event) => seen.push(event))
    await join('a', { username: 'u', password: bytes('canary') })
    const { inspect } = await import('node:util')
    const shown = inspect([seen, broker.clients, broker.sessions], { depth: 20, showHidden: true, getters: true })
    expect(shown).toContain("'u'")
    expect(shown).not.toMatch(/canary|password|99, ?97, ?110/)
  })

  it('a listener that throws disturbs nobody, and is heard of', async () => {
    const errors: string[] = []
    const real = queueMicrotask
    vi.stubGlobal('queueMicrotask', (run: () => void) =>
      real(() => {
        try {
          run()
        } catch (error) {
          errors.push((error as Error).message)
        }
      }),
    )
    try {
      const { join, broker } = world()
      broker.on('publish', () => {
        throw new Error('listener')
      })
      const client = await join('a')
      expect(await client.publish('t', '', { qos: 1, packetId: 1 })).toMatchObject([{ type: 'puback', reasonCode: 0x10 }])
      expect(errors).toEqual(['listener'])
    } finally {
      vi.unstubAllGlobals()
    }
  })

  it('a listener may end everything', async () => {
    const { join, broker } = world()
    broker.on('publish', () => broker.restart({ keepSessions: false }))
    const a = await join('a')
    await a.subscribe('t')
    expect(await a.publish('t', 'x', { qos: 2, packetId: 1 })).toEqual([])
    expect(a.ended).toBeDefined()
    expect(broker.sessions.size).toBe(0)
  })

  it('a listener may end everything while a client comes in', async () => {
    for (const type of ['connect', 'disconnect'] as const) {
      const { dial, join, broker, clock } = world()
      await join('a')
      broker.on(type, () => broker.close())
      const late = dial()
      await late.send({ type: 'connect', clientId: 'a', cleanStart: false, properties: { sessionExpiryInterval: 9 } })
      expect(late.ended).toBeDefined()
      expect([broker.sessions.size, broker.clients.size]).toEqual([0, 0])
      await clock.advance(20_000)
      expect(clock.pending).toBe(0)
    }
  })

  it('publish and disconnect refuse what no packet could carry', () => {
    const { broker } = world()
    expect(() => broker.publish({ topic: 'a/+' })).toThrow(/topic/)
    expect(() => broker.publish({ topic: 't', properties: { responseTopic: '#' } })).toThrow(/responseTopic/)
    expect(() => broker.disconnect('a', 0x99 + 0x60)).toThrow(/reasonCode/)
    expect(broker.disconnect('nobody')).toBe(false)
  })

  it('disconnect carries a Server Reference', async () => {
    const { join, broker } = world()
    const client = await join('a')
    expect(broker.disconnect('a', 0x9c, { serverReference: 'other:1883' })).toBe(true)
    expect(await client.send()).toEqual([{ type: 'disconnect', reasonCode: 0x9c, properties: { serverReference: 'other:1883' } }])
    expect(client.ended).toEqual({ cause: undefined })
  })

  it('options are checked by name and range', () => {
    expect(() => world({ receiveMaximum: 0 })).toThrow(/receiveMaximum/)
    expect(() => world({ maximumQoS: 3 as never })).toThrow(/maximumQoS/)
    expect(() => world({ overflow: 'wait' as never })).toThrow(/overflow/)
    expect(() => world({ keepalive: 3 } as never)).toThrow(/keepalive/)
    expect(() => world({ queueQoS0: 1 as never })).toThrow(/queueQoS0/)
  })
})
