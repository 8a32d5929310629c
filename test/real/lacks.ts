/** Lacks that several brokers have: each shows what there is instead, and fails when the broker is mended. */
import { expect } from 'vitest'
import type { Lack } from './target.js'
import { failure, sequence, take, within } from './waiting.js'

/** A broker need not offer enhanced authentication, and must then say so [MQTT-4.12.0-1]. */
export function noEnhancedAuthentication(reason: string): Lack {
  return {
    reason,
    absent: true,
    async shows(world) {
      const error = await failure(
        world.connect({ auth: { method: 'SCRAM-SHA-256', start: () => 'x', continue: () => 'x' } }),
        'connecting',
      )
      expect(error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x8c })
      await world.connect()
    },
  }
}

/** Aliases that the client may use are announced in CONNACK. */
export function noAliasesToBroker(reason: string): Lack {
  return {
    reason,
    absent: true,
    async shows(world) {
      expect((await world.connect()).negotiated?.topicAliasMaximum).toBe(0)
    },
  }
}

/** A broker may leave the aliases alone that a client offers it. */
export function noAliasesFromBroker(reason: string): Lack {
  return {
    reason,
    absent: true,
    async shows(world) {
      const [sender, receiver] = [
        await world.connect(),
        await world.connect({ topicAliasMaximum: 5 }),
      ]
      const subscription = await receiver.subscribe(world.topic('a'), { qos: 1 })
      const aliases: unknown[] = []
      receiver.on('packet', ({ direction, packet }) => {
        if (direction === 'in' && packet.type === 'publish')
          aliases.push(packet.properties.topicAlias)
      })
      for (const text of sequence(5)) {
        await within(sender.publish(world.topic('a'), text, { qos: 1 }), 'the receipt')
        expect((await take(subscription)).topic).toBe(world.topic('a'))
      }
      expect(aliases).toEqual(Array.from({ length: 5 }, () => undefined))
    },
  }
}

/** 0x10 is optional (section 3.4.2.1). */
export function noWordOfSubscribers(reason: string): Lack {
  return {
    reason,
    absent: true,
    async shows(world) {
      const client = await world.connect()
      for (const qos of [1, 2] as const) {
        expect(
          (await within(client.publish(world.topic('nobody'), 'x', { qos }), 'the receipt'))
            .reasonCode,
        ).toBe(0)
      }
    },
  }
}

/** The client may end the connection when its Receive Maximum is exceeded [MQTT-3.3.4-9]. */
export function exceedsReceiveMaximum(reason: string, qos: 1 | 2): Lack {
  return {
    reason,
    async shows(world) {
      const [sender, client] = [
        await world.connect(),
        await world.connect({ receiveMaximum: 2, receiveMaximumExceeded: 'disconnect' }),
      ]
      await client.subscribe(world.topic('a'), { qos })
      for (const text of sequence(6))
        await within(sender.publish(world.topic('a'), text, { qos }), 'the receipt')
      expect(await within(client.closed, 'closed')).toMatchObject({
        reasonCode: 0x93,
        fault: 'remote',
      })
    },
  }
}

/** What is larger than the client said that it takes is read past, and reported. */
export function ignoresPacketLimit(reason: string): Lack {
  return {
    reason,
    async shows(world) {
      const [sender, client] = [
        await world.connect(),
        await world.connect({ maximumPacketSize: 500 }),
      ]
      const subscription = await client.subscribe(world.topic('a'), { qos: 1 })
      const dropped: unknown[] = []
      client.on('drop', (event) => dropped.push(event))
      for (const text of ['x'.repeat(1000), 'small'])
        await within(sender.publish(world.topic('a'), text, { qos: 1 }), 'the receipt')
      expect((await take(subscription)).text()).toBe('small')
      expect(dropped).toMatchObject([
        { direction: 'in', topic: world.topic('a'), qos: 1, reason: 'too-large' },
      ])
    },
  }
}

export function unlimited(reason: string): Lack {
  return {
    reason,
    absent: true,
    async shows(world) {
      const client = await world.connect({
        will: { topic: world.topic('will'), qos: 2, retain: true },
      })
      expect(client.negotiated).toMatchObject({ maximumQoS: 2, retainAvailable: true })
    },
  }
}

export function forgetful(reason: string): Lack {
  return {
    reason,
    absent: true,
    async shows(world) {
      const options = { clientId: world.id('durable'), cleanStart: false }
      const first = await world.connect(options)
      await first.subscribe(world.topic('a'), { qos: 1 })
      await within(first.disconnect(), 'disconnecting')
      await within(world.broker.shutDown(), 'shutting down', 60_000)
      await within(world.broker.live(), 'coming back', 60_000)
      expect((await world.connect(options)).negotiated?.sessionPresent).toBe(false)
    },
  }
}
