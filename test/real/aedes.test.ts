/** Every feature on aedes. */
import { expect } from 'vitest'
import { mixed } from './features/publishing.js'
import {
  exceedsReceiveMaximum,
  forgetful,
  ignoresPacketLimit,
  noAliasesFromBroker,
  noAliasesToBroker,
  noEnhancedAuthentication,
  noWordOfSubscribers,
  unlimited,
} from './lacks.js'
import { type Lacks, runOn } from './target.js'
import { failure, take, within } from './waiting.js'

const window =
  'aedes sends without regard to the Receive Maximum of its clients, who may then end the connection'
const limitless = 'aedes cannot be told to take no more than QoS 1, or nothing retained'

const lacks: Lacks = {
  'shared subscription': {
    reason: 'aedes announces that it has no shared subscriptions',
    absent: true,
    async shows(world) {
      const client = await world.connect()
      expect(client.negotiated?.sharedSubscriptionAvailable).toBe(false)
      const error = await failure(
        client.subscribe(`$share/group/${world.topic('jobs')}`),
        'subscribing',
      )
      expect(error).toMatchObject({ code: 'ERR_SHARED_SUBS_UNSUPPORTED', outcome: 'not-sent' })
      await within(client.publish(world.topic('a'), 'x', { qos: 1 }), 'a publish afterwards')
    },
  },
  'subscription identifiers': {
    reason: 'aedes sends one copy with the identifier of only one of the overlapping filters',
    async shows(world) {
      const [sender, wide, receiver] = await world.pair(world.topic('#'), { qos: 1 })
      const narrow = await receiver.subscribe(world.topic('x/+'), { qos: 1 })
      const fence = await receiver.subscribe(world.topic('y/fence'), { qos: 1 })
      await sender.publish(world.topic('x/a'), 'x', { qos: 1 })
      const first = await within(Promise.race([wide.next(), narrow.next()]), 'the one copy')
      expect(first?.properties.subscriptionIdentifiers).toHaveLength(1)
      await sender.publish(world.topic('y/fence'), 'x', { qos: 1 })
      await within(Promise.race([fence.next(), wide.next()]), 'the fence')
      expect(wide.size + narrow.size).toBeLessThan(2)
    },
  },
  'user properties': {
    reason: 'aedes groups user properties by name',
    async shows(world) {
      const [sender, subscription] = await world.pair(world.topic('a'))
      await sender.publish(world.topic('a'), 'x', {
        properties: { userProperties: mixed.slice(0, 3) },
      })
      const [b1, a2, b3] = mixed
      expect((await take(subscription)).properties.userProperties).toEqual([b1, b3, a2])
    },
  },
  'granted qos on a wildcard': {
    reason: 'aedes lowers QoS 2 to 1 only for filters without wildcards',
    async shows(world) {
      const [sender, subscription] = await world.pair(world.topic('#'), { qos: 1 })
      await sender.publish(world.topic('a'), 'x', { qos: 2 })
      expect((await take(subscription)).qos).toBe(2)
    },
  },
  'retained at QoS 2': {
    reason:
      'aedes does not remember a retained message that it sent at QoS 2, and ends the connection at PUBREC',
    async shows(world) {
      const topic = world.topic('state')
      await (await world.connect()).publish(topic, 'kept', { qos: 2, retain: true })
      const client = await world.connect()
      const message = await take(await client.subscribe(topic, { qos: 2 }))
      message.ack()
      expect(await within(client.closed, 'closed')).toMatchObject({
        code: 'ERR_CONNECTION_LOST',
        fault: 'remote',
      })
    },
  },
  'inbound window': exceedsReceiveMaximum(window, 1),
  'inbound window at QoS 2': exceedsReceiveMaximum(window, 2),
  'enhanced authentication': noEnhancedAuthentication(
    'aedes has no enhanced authentication, and says so with 0x8C',
  ),
  'topic aliases to the broker': noAliasesToBroker('aedes takes no topic aliases, and says so'),
  'topic aliases from the broker': noAliasesFromBroker('aedes sends no topic aliases'),
  'largest packet of the client': ignoresPacketLimit(
    'aedes sends without regard to the Maximum Packet Size of its clients',
  ),
  'maximum QoS': unlimited(limitless),
  'no retained messages': unlimited(limitless),
  'will above the limits': unlimited(limitless),
  'no matching subscribers': noWordOfSubscribers('aedes does not tell that nobody has subscribed'),
  'sessions through a restart': forgetful('aedes of itself keeps everything in memory'),
  redelivered: {
    reason: 'aedes does not set DUP on what it sends again',
    async shows(world) {
      const topic = world.topic('work')
      const options = { clientId: world.id('worker'), cleanStart: false }
      const first = await world.connect(options)
      const taken = await first.subscribe(topic, { qos: 1 })
      await (await world.connect()).publish(topic, 'x', { qos: 1 })
      await take(taken)
      first.destroy()
      const second = world.client(options)
      const again = second.subscription(topic, { qos: 1 })
      await second.connect()
      expect((await take(again)).dup).toBe(false)
    },
  },
}

await runOn('aedes', () => lacks)
