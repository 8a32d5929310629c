/** Will messages: when they are published, and with what (sections 3.1.2.5, 3.1.3.2, 3.14.4). */
import { expect } from 'vitest'
import type { Feature } from '../target.js'
import { take, textsUntil, within } from '../waiting.js'

export const wills: readonly Feature[] = [
  {
    name: 'will',
    reach: 'everywhere',
    title: 'destroy() has the will published, with its properties',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const userProperties: [string, string][] = [
        ['k', '1'],
        ['k', '2'],
      ]
      const properties = {
        contentType: 'text/plain',
        responseTopic: 'r',
        correlationData: 'id',
        payloadFormatIndicator: 1,
        userProperties,
      }
      const client = await world.connect({ will: { topic, payload: 'gone', qos: 1, properties } })
      client.destroy()
      expect(await within(client.closed, 'the end')).toBe(undefined)
      const message = await take(subscription, 'the will')
      expect([message.text(), message.qos]).toEqual(['gone', 1])
      expect(message.properties).toMatchObject({
        contentType: 'text/plain',
        responseTopic: 'r',
        payloadFormatIndicator: 1,
        userProperties,
      })
      expect(Buffer.from(message.properties.correlationData ?? []).toString()).toBe('id')
    },
  },
  {
    name: 'no will on disconnect',
    title: 'disconnect() drops the will, reason code 0x04 has it published',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const quiet = await world.connect({ will: { topic, payload: 'of the quiet one', qos: 1 } })
      const loud = await world.connect({ will: { topic, payload: 'of the loud one', qos: 1 } })
      await within(quiet.disconnect(), 'disconnecting')
      await within(loud.disconnect({ reasonCode: 0x04 }), 'disconnecting with the will')
      expect(await textsUntil(subscription, 'of the loud one')).toEqual([])
    },
  },
  {
    name: 'retained will',
    title: 'a retained will is there for those who come later',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const client = await world.connect({ will: { topic, payload: 'gone', qos: 1, retain: true } })
      client.destroy()
      expect((await take(subscription, 'the will')).retain).toBe(false)
      const late = await (await world.connect()).subscribe(topic, { qos: 1 })
      const message = await take(late, 'the retained will')
      expect([message.text(), message.retain]).toEqual(['gone', true])
    },
  },
  {
    name: 'will delay',
    title: 'the will waits for its delay, and is not published when the session is resumed before',
    async run(world) {
      const topic = world.topic('will')
      const [, subscription] = await world.pair(topic, { qos: 1 })
      const will = (payload: string, willDelayInterval: number) => ({
        topic,
        payload,
        qos: 1 as const,
        properties: { willDelayInterval },
      })
      const back = { clientId: world.id('back'), cleanStart: false }
      const returning = await world.connect({ ...back, will: will('of the one who came back', 1) })
      await returning.subscribe(world.topic('a'), { qos: 1 })
      const leaving = await world.connect({
        clientId: world.id('gone'),
        will: will('of the one who left', 2),
      })
      returning.destroy()
      const left = performance.now()
      leaving.destroy()
      const returned = await world.connect(back)
      expect(returned.negotiated?.sessionPresent).toBe(true)
      expect(await textsUntil(subscription, 'of the one who left')).toEqual([])
      expect(performance.now() - left).toBeGreaterThan(900)
    },
  },
]
