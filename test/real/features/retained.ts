/** Retained messages: who gets them when, and with which RETAIN flag (sections 3.3.1.3, 3.8.3.1). */
import { expect } from 'vitest'
import type { Client } from '../../../src/client/node.js'
import type { Feature } from '../target.js'
import { eventually, take, takeTexts, textsUntil, within } from '../waiting.js'

/** Has a message kept, and waits for the answer to something later: aedes acknowledges before it has kept it. */
async function retain(sender: Client, topic: string, payload: string): Promise<void> {
  await within(sender.publish(topic, payload, { qos: 1, retain: true }), 'the receipt')
  await within(sender.unsubscribe(`${topic}/nothing`), 'a round trip')
}

export const retained: readonly Feature[] = [
  {
    name: 'retained',
    title: 'a later subscriber gets the retained message; an empty one clears it',
    async run(world) {
      const topic = world.topic('state')
      const sender = await world.connect()
      await retain(sender, topic, 'old')
      await retain(sender, topic, 'new')
      const first = await (await world.connect()).subscribe(topic, { qos: 1 })
      const message = await take(first, 'the retained message')
      expect([message.text(), message.retain, message.qos]).toEqual(['new', true, 1])
      await retain(sender, topic, '')
      const second = await (await world.connect()).subscribe(topic, { qos: 1 })
      await sender.publish(topic, 'live', { qos: 1 })
      expect(await textsUntil(second, 'live')).toEqual([])
    },
  },
  {
    name: 'retained at QoS 2',
    title: 'a retained message comes at QoS 2, and its exchange is completed',
    async run(world) {
      const topic = world.topic('state')
      const sender = await world.connect()
      await within(sender.publish(topic, 'kept', { qos: 2, retain: true }), 'the receipt')
      const client = await world.connect()
      const subscription = await client.subscribe(topic, { qos: 2 })
      let completed = false
      client.on('packet', ({ direction, packet }) => {
        if (direction === 'out' && packet.type === 'pubcomp') completed = true
      })
      const message = await take(subscription, 'the retained message')
      expect([message.text(), message.qos, message.retain]).toEqual(['kept', 2, true])
      message.ack()
      await eventually(() => completed, 'PUBCOMP')
      await within(client.publish(topic, 'x', { qos: 1 }), 'a publish afterwards')
    },
  },
  {
    name: 'retain handling',
    title: 'Retain Handling 0 always, 1 only for a new subscription, 2 never',
    async run(world) {
      const topic = world.topic('state')
      const sender = await world.connect()
      await retain(sender, topic, 'kept')
      const client = await world.connect()
      const fresh = await client.subscribe(topic, { qos: 1, retainHandling: 1 })
      expect(await takeTexts(fresh, 1)).toEqual(['kept'])
      const again = await client.subscribe(topic, { qos: 1, retainHandling: 1 })
      const never = await client.subscribe(topic, { qos: 1, retainHandling: 2 })
      const always = await client.subscribe(topic, { qos: 1, retainHandling: 0 })
      expect(await takeTexts(always, 1)).toEqual(['kept'])
      const other = await (await world.connect()).subscribe(topic, { qos: 1, retainHandling: 2 })
      await sender.publish(topic, 'live', { qos: 1 })
      for (const subscription of [fresh, again, never, always, other])
        expect(await textsUntil(subscription, 'live')).toEqual([])
    },
  },
  {
    name: 'retain as published',
    title: 'live messages keep the RETAIN flag only under retainAsPublished',
    async run(world) {
      const topic = world.topic('state')
      const [sender, plain] = await world.pair(topic, { qos: 1 })
      const published = await (await world.connect()).subscribe(topic, {
        qos: 1,
        retainAsPublished: true,
      })
      await retain(sender, topic, 'kept')
      await sender.publish(topic, 'live', { qos: 1 })
      expect([(await take(plain)).retain, (await take(plain)).retain]).toEqual([false, false])
      // A broker may send what it keeps once more, when it looks for it after it has granted the subscription.
      for (let text = ''; text !== 'live'; ) {
        const message = await take(published)
        text = message.text()
        expect(message.retain, text).toBe(text === 'kept')
      }
    },
  },
]
