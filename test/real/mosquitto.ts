/** What mosquitto does otherwise, by version and transport, and every feature on it. `mosquitto.test.ts` runs them over TCP, `mosquitto-transports.test.ts` over the others. */
import { expect } from 'vitest'
import { Client } from '../../src/client/node.js'
import { account, mosquittoBefore, mosquittoSupports, type TransportName } from './brokers.js'
import { large, pattern } from './features/publishing.js'
import { noAliasesFromBroker, noEnhancedAuthentication } from './lacks.js'
import { type Lack, type Lacks, runOn } from './target.js'
import { sequence, take, textsUntil, within } from './waiting.js'

const takeover: Lack = {
  reason: 'mosquitto sends no DISCONNECT to the client that is taken over before version 2.1',
  async shows(world) {
    const loser = await world.connect({ clientId: world.id('same') })
    const next = (await loser.subscribe(world.topic('a'))).next().catch((error: unknown) => error)
    await world.connect({ clientId: world.id('same') })
    const end = await within(loser.closed, 'closed')
    expect(end).toMatchObject({ code: 'ERR_CONNECTION_LOST', fault: 'remote' })
    expect(await within(next, 'the pending call')).toBe(end)
  },
}

const window = (qos: 1 | 2): Lack => ({
  reason:
    'mosquitto exceeds Receive Maximum by one before version 2.0.13, and the client may then end the connection',
  async shows(world) {
    const topic = world.topic('slow')
    const options = { receiveMaximum: 5, receiveMaximumExceeded: 'disconnect' } as const
    const [sender, client] = [await world.connect(), await world.connect(options)]
    const stalled = await client.subscribe(topic, { qos })
    await within(
      Promise.all(sequence(50).map((text) => sender.publish(topic, text, { qos }))),
      'the receipts',
    )
    const reading = (async () => {
      for (;;) (await take(stalled)).ack()
    })()
    reading.catch(() => undefined)
    expect(await within(client.closed, 'closed')).toMatchObject({
      reasonCode: 0x93,
      fault: 'remote',
    })
  },
})

const copies: Lack = {
  reason:
    'mosquitto sends a copy for each matching filter; filters of one packet share their identifier, so these copies cannot be told apart',
  async shows(world) {
    const [sender, subscription] = await world.pair(
      [world.topic('+/a'), world.topic('x/+'), world.topic('#')],
      { qos: 1 },
    )
    for (const text of sequence(5)) await sender.publish(world.topic('x/a'), text, { qos: 1 })
    await sender.publish(world.topic('last'), 'last', { qos: 1 })
    const texts = await textsUntil(subscription, 'last')
    expect(texts).toEqual(sequence(5).flatMap((text) => [text, text, text]))
  },
}

const bulk: Lack = {
  reason:
    'the WebSocket listener of mosquitto sends 4 KB ten times in a second; 1 MB to it, and 60 KB from it, do arrive',
  async shows(world) {
    const topic = world.topic('large')
    const client = await world.connect(large)
    const [own, tcp] = [
      await client.subscribe(topic, { qos: 2 }),
      new Client(world.broker.urls.TCP ?? '', large),
    ]
    await tcp.connect()
    try {
      const other = await tcp.subscribe(`${topic}/up`, { qos: 2 })
      for (const qos of [0, 1, 2] as const) {
        await within(client.publish(`${topic}/up`, pattern(), { qos }), `1 MB at QoS ${qos}`)
        expect(Buffer.compare((await take(other)).payload, pattern())).toBe(0)
      }
      await client.publish(topic, pattern(60_000), { qos: 1 })
      expect(Buffer.compare((await take(own)).payload, pattern(60_000))).toBe(0)
    } finally {
      tcp.destroy()
    }
  },
}

const grants: Lack = {
  reason: 'the access list of mosquitto grants every subscription, and holds the messages back',
  async shows(world) {
    const client = await world.connect(account)
    const subscription = await within(
      client.subscribe([world.topic('denied/#'), world.topic('allowed')], { qos: 1 }),
      'subscribing',
    )
    expect(subscription.granted.map(({ reasonCode }) => reasonCode)).toEqual([1, 1])
    await client.publish(world.topic('denied/a'), 'x')
    await within(client.publish(world.topic('allowed'), 'last', { qos: 1 }), 'the receipt')
    expect(await textsUntil(subscription, 'last')).toEqual([])
  },
}

const lacksOf = (transport: TransportName): Lacks => ({
  'overlap within one subscription': copies,
  'enhanced authentication': noEnhancedAuthentication(
    'mosquitto leaves enhanced authentication to plugins; without one it says so with 0x8C',
  ),
  'refused subscription': grants,
  ...(mosquittoBefore(2, 1, 0) && {
    takeover,
    'topic aliases from the broker': noAliasesFromBroker(
      'mosquitto sends no topic aliases before version 2.1',
    ),
  }),
  ...(mosquittoBefore(2, 0, 13) && {
    'inbound window': window(1),
    'inbound window at QoS 2': window(2),
  }),
  ...(transport.endsWith('WebSocket') && { 'large payloads': bulk }),
})

/** Defines the tests over these transports. CI has a mosquitto. */
export const onMosquitto = (...transports: readonly TransportName[]): Promise<void> =>
  runOn('mosquitto', lacksOf, {
    over: transports.filter(mosquittoSupports),
    required: process.env['CI'] !== undefined,
  })
