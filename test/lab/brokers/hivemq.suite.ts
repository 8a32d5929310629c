/** Every feature on HiveMQ Community Edition, where it can be built. Not part of `npm test`: `npm run lab -- brokers write`. */
import { expect } from 'vitest'
import type { QoS } from '../../../src/client/node.js'
import { account } from '../../real/brokers.js'
import { noAliasesFromBroker } from '../../real/lacks.js'
import { type Lack, type Lacks, runOn } from '../../real/target.js'
import { failure, take, takeTexts, within } from '../../real/waiting.js'
import { buildMaven } from './building.js'
import { hivemqListeners } from './hivemq.js'

const batches: Lack = {
  reason:
    'HiveMQ sends the next messages of a client, QoS 0 among them, once all of those before are acknowledged, however large the window',
  async shows(world) {
    const [sender, client] = [await world.connect(), await world.connect()]
    const [held, other] = [
      await client.subscribe(world.topic('held'), { qos: 1 }),
      await client.subscribe(world.topic('other'), { qos: 1 }),
    ]
    await within(sender.publish(world.topic('held'), 'x', { qos: 1 }), 'the receipt')
    const message = await take(held)
    await within(sender.publish(world.topic('other'), 'x', { qos: 1 }), 'the receipt')
    await within(sender.publish(world.topic('other'), 'y'), 'the publish')
    expect((await failure(other.next({ timeout: 1000 }), 'another message')).code).toBe(
      'ERR_TIMEOUT',
    )
    message.ack()
    expect((await takeTexts(other, 2)).sort()).toEqual(['x', 'y'])
  },
}

const lacks: Lacks = {
  'over Unix socket': {
    reason: 'HiveMQ CE listens on TCP and WebSocket only, each with TLS or without',
    absent: true,
    async shows() {
      const { folder = '' } = (await buildMaven('hivemq')) as { readonly folder?: string }
      expect(hivemqListeners(folder).sort()).toEqual([
        'tcp-listener',
        'tls-tcp-listener',
        'tls-websocket-listener',
        'websocket-listener',
      ])
    },
  },
  redelivery: batches,
  'inbound window': batches,
  'inbound window at QoS 2': batches,
  unsubscribe: {
    reason: 'HiveMQ CE answers 0x00 to an UNSUBSCRIBE from what nobody had subscribed to',
    async shows(world) {
      const client = await world.connect()
      const [result] = await within(client.unsubscribe(world.topic('never')), 'unsubscribing')
      expect(result).toMatchObject({ reasonCode: 0, error: undefined })
    },
  },
  'maximum QoS': {
    reason:
      'HiveMQ CE grants QoS 2 to a subscription although its Maximum QoS is 1; no message comes above 1',
    async shows(world) {
      const client = await world.connect()
      expect(client.negotiated?.maximumQoS).toBe(1)
      const refused = await failure(client.publish(world.topic('a'), 'x', { qos: 2 }), 'QoS 2')
      expect(refused).toMatchObject({ code: 'ERR_QOS_UNSUPPORTED', outcome: 'not-sent' })
      const subscription = await client.subscribe(world.topic('a'), { qos: 2 })
      expect(subscription.granted[0]?.qos).toBe(2)
      await within(client.publish(world.topic('a'), 'x', { qos: 1 }), 'the receipt')
      expect((await take(subscription)).qos).toBe(1)
    },
  },
  'topic aliases from the broker': noAliasesFromBroker('HiveMQ CE sends no topic aliases'),
  'refused publish at QoS 0': disconnects(0),
  'refused publish at QoS 1': disconnects(1),
  'refused publish at QoS 2': disconnects(2),
}

function disconnects(qos: QoS): Lack {
  return {
    reason: 'HiveMQ CE ends the connection of who publishes what is not allowed, with 0x87',
    async shows(world) {
      const client = await world.connect(account)
      client.publish(world.topic('denied/a'), 'x', { qos }).catch(() => undefined)
      expect(await within(client.closed, 'closed')).toMatchObject({
        code: 'ERR_SERVER_DISCONNECT',
        reasonCode: 0x87,
        fault: 'remote',
      })
    },
  }
}

await runOn('HiveMQ CE', () => lacks, { required: true })
