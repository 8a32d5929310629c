/** Connections and brokers that come and go: what the client promised is kept through cuts, restarts and kills. */
import { expect } from 'vitest'
import { type Client, type ClientOptions, constant } from '../../../src/client/node.js'
import { exchanges, Lifecycle } from '../lifecycle.js'
import { ShapedLink } from '../link.js'
import type { Feature, World } from '../target.js'
import { eventually, sequence, take, takeTexts, textsUntil, within } from '../waiting.js'

const again: ClientOptions = { reconnect: { backoff: constant(20) }, connectTimeout: 2000 }
/** Messages that are sent through cuts, and how many of those there are at least. */
export const payloadCount = 600
export const fewestResets = 3
/** Milliseconds in which a broker is back. */
const lifetime = 60_000

async function arrivals(client: Client, topic: string, qos: 1 | 2): Promise<string[]> {
  const texts: string[] = []
  await within(
    client.listen(topic, (message) => void texts.push(message.text()), { qos }),
    'subscribing',
  )
  return texts
}

/** Sends messages from one durable client to another, both of whom are cut again and again, until `enough` has arrived. */
export async function throughCuts(
  world: World,
  qos: 1 | 2,
  enough: (texts: readonly string[], sent: number) => boolean,
) {
  const port = Number(new URL(world.broker.urls.TCP ?? '').port)
  const proxy = await ShapedLink.start({ port, resets: { seed: 7 * qos, meanBytes: 800 } })
  try {
    const durable = {
      ...again,
      cleanStart: false,
      firstConnect: 'wait',
      receiveMaximum: 65_535,
    } as const
    const client = (name: string): Client =>
      world.client({ ...durable, clientId: world.id(name) }, { url: proxy.url })
    const [sender, receiver] = [client('sender'), client('receiver')]
    const lives = [new Lifecycle(sender), new Lifecycle(receiver)]
    await within(Promise.all([receiver.connect(), sender.connect()]), 'connecting')
    const begun = exchanges(receiver, world.topic('a'))
    const got = await arrivals(receiver, world.topic('a'), qos)
    // aedes remembers a session by its subscriptions.
    await within(sender.subscribe(world.topic('none'), { qos: 1 }), 'subscribing')
    const payloads: string[] = []
    const failures: unknown[] = []
    // A run in which the proxy happens to cut little takes some more.
    while (payloads.length < payloadCount || proxy.resets <= fewestResets) {
      const batch = sequence(payloadCount).map((text) => `${payloads.length} ${text}`.padEnd(200))
      payloads.push(...batch)
      const outcomes = Promise.allSettled(
        batch.map((text) => sender.publish(world.topic('a'), text, { qos })),
      )
      for (const outcome of await within(outcomes, 'the receipts', lifetime))
        if (outcome.status === 'rejected') failures.push(outcome.reason)
    }
    proxy.calmed = true
    await within(sender.publish(world.topic('a'), 'last', { qos }), 'the last receipt')
    // Not all brokers send it last: what waits for a client that was cut may come after it.
    await eventually(() => enough(got, payloads.length), 'every message', lifetime)
    return {
      got,
      payloads,
      failures,
      begun,
      resets: proxy.resets,
      contradictions: lives.flatMap((life) => life.contradictions),
    }
  } finally {
    await proxy.stop()
  }
}

function connected(client: Client): Promise<true> {
  return eventually(() => client.state === 'connected', 'the connection coming back', lifetime)
}

/** Clients on both sides of a broker that has just begun its next life: they are connected, subscribed, and go on. */
async function goesOn(world: World, sender: Client, receiver: Client): Promise<void> {
  await Promise.all([connected(sender), connected(receiver)])
  const topic = world.topic('goes on')
  const subscription = await within(
    receiver.subscribe(topic, { qos: 2 }),
    'subscribing again',
    lifetime,
  )
  for (const qos of [0, 1, 2] as const) {
    await within(sender.publish(topic, `at ${qos}`, { qos }), 'a publish afterwards')
    expect((await take(subscription)).text()).toBe(`at ${qos}`)
  }
}

export const recovery: readonly Feature[] = [
  ...([1, 2] as const).map(
    (qos): Feature => ({
      name: `cuts at QoS ${qos}`,
      title: `600 messages at QoS ${qos} through a proxy that cuts both clients again and again: none is lost${qos === 2 ? ', and what the broker sends once comes once' : ''}`,
      reach: 'TCP',
      timeout: 3 * lifetime,
      async run(world) {
        const { got, payloads, failures, begun, resets, contradictions } = await throughCuts(
          world,
          qos,
          (texts, sent) => new Set(texts).size > sent,
        )
        expect(failures).toEqual([])
        expect([...new Set(got)].sort()).toEqual([...payloads, 'last'].sort())
        if (qos === 2)
          await eventually(
            () => got.length === begun(),
            `${begun()} deliveries, one for each exchange; there are ${got.length}`,
          )
        expect(resets).toBeGreaterThan(fewestResets)
        expect(contradictions.join('; ')).toBe('')
      },
    }),
  ),
  {
    name: 'restart of the broker',
    title:
      'a broker that shuts down and comes back: clients reconnect and subscribe again; what was published meanwhile arrives',
    ownBroker: true,
    reach: 'TCP',
    timeout: 90_000,
    async run(world) {
      const topic = world.topic('a')
      const [sender, receiver] = [world.client(again), world.client(again)]
      await within(Promise.all([sender.connect(), receiver.connect()]), 'connecting')
      const subscription = await receiver.subscribe(topic, { qos: 1 })
      await within(world.broker.shutDown(), 'shutting down', lifetime)
      await eventually(
        () => sender.state === 'reconnecting' && receiver.state === 'reconnecting',
        'both to notice',
      )
      await within(world.broker.live(), 'coming back', lifetime)
      await connected(receiver)
      await within(receiver.subscribe(world.topic('b')), 'subscribing', lifetime)
      const sent = sequence(50).map((text) => sender.publish(topic, text, { qos: 1 }))
      await within(Promise.all(sent), 'the receipts', lifetime)
      expect(await takeTexts(subscription, 50)).toEqual(sequence(50))
      await goesOn(world, sender, receiver)
    },
  },
  {
    name: 'unclean kill of the broker',
    title:
      'a broker that is killed amid 300 publishes and comes back: each gets a receipt or a typed error that tells; the clients go on',
    ownBroker: true,
    reach: 'TCP',
    timeout: 90_000,
    async run(world) {
      const [sender, receiver] = [world.client(again), world.client(again)]
      const lives = [new Lifecycle(sender), new Lifecycle(receiver)]
      await within(Promise.all([sender.connect(), receiver.connect()]), 'connecting')
      await receiver.listen(world.topic('a'), () => undefined, { qos: 2 })
      const sent = sequence(300).map((text, index) =>
        sender.publish(world.topic('a'), text, { qos: index % 2 === 0 ? 1 : 2 }),
      )
      const settled = Promise.allSettled(sent)
      await within(Promise.any(sent), 'the first receipt')
      await world.broker.kill()
      await within(world.broker.live(), 'coming back', lifetime)
      for (const outcome of await within(settled, 'every publish', lifetime)) {
        // QoS 2 that may have arrived cannot be sent anew once the broker has forgotten it.
        if (outcome.status === 'rejected')
          expect(outcome.reason).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
      }
      const first = await Promise.allSettled(sent.filter((_, index) => index % 2 === 0))
      expect(first.filter(({ status }) => status === 'rejected')).toEqual([])
      await goesOn(world, sender, receiver)
      expect(lives.flatMap((life) => life.contradictions).join('; ')).toBe('')
    },
  },
  {
    name: 'sessions through a restart',
    title: 'a durable session and its queued messages survive a restart of the broker',
    ownBroker: true,
    setup: 'durable',
    reach: 'TCP',
    timeout: 90_000,
    async run(world) {
      const topic = world.topic('durable')
      const options: ClientOptions = { clientId: world.id('durable'), cleanStart: false }
      const first = await world.connect(options)
      await first.subscribe(topic, { qos: 2 })
      await within(first.disconnect(), 'disconnecting')
      const sender = await world.connect()
      for (const [index, text] of sequence(30).entries())
        await within(sender.publish(topic, text, { qos: index % 2 === 0 ? 1 : 2 }), 'the receipt')
      await within(
        sender.publish(world.topic('kept'), 'kept', { qos: 1, retain: true }),
        'the receipt',
      )
      await within(sender.disconnect(), 'disconnecting')
      await within(world.broker.shutDown(), 'shutting down', lifetime)
      await within(world.broker.live(), 'coming back', lifetime)
      const second = world.client(options)
      const subscription = second.subscription(topic, { qos: 2 })
      await within(second.connect(), 'connecting again')
      expect(second.negotiated?.sessionPresent).toBe(true)
      expect(await takeTexts(subscription, 30)).toEqual(sequence(30))
      await within(second.publish(topic, 'last', { qos: 2 }), 'the receipt')
      expect(await textsUntil(subscription, 'last')).toEqual([])
      expect((await take(await second.subscribe(world.topic('kept')))).text()).toBe('kept')
    },
  },
]
