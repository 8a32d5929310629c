/** Any mix of consumers over one window: within their limits, every message accounted for once, and nothing stands still once all is read. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Message, Subscription } from '../../../src/client/api/index.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { agreed, obliging, publish, subscribe } from './incoming.js'

const consumer = fc.record({
  topic: fc.constantFrom('a', 'b', '#'),
  qos: fc.constantFrom(0 as const, 1 as const, 2 as const),
  ack: fc.constantFrom('auto' as const, 'manual' as const),
  overflow: fc.constantFrom(
    'backpressure' as const,
    'drop-newest' as const,
    'drop-oldest' as const,
  ),
  buffer: fc.constantFrom(undefined, 1, 2, 5, 50),
})
type ConsumerOf = typeof consumer extends fc.Arbitrary<infer T> ? T : never
interface Reader extends ConsumerOf {
  readonly subscription: Subscription
  readonly dropped: string[]
  readonly seen: string[]
  readonly hand: Message[]
}

const step = fc.record({
  type: fc.constantFrom('feed', 'feed', 'feed', 'read', 'read', 'read', 'ack', 'ack'),
  count: fc.integer({ min: 1, max: 30 }),
  qos: fc.constantFrom(0 as const, 1 as const, 2 as const),
  who: fc.nat(3),
  which: fc.nat(10),
})

function take(reader: Reader): boolean {
  const message = reader.subscription.read()
  if (message === undefined) return false
  reader.seen.push(message.text())
  if (reader.ack === 'manual') reader.hand.push(message)
  return true
}

const ascending = (texts: readonly string[]): number[] =>
  texts.map(Number).sort((first, second) => first - second)

it('whatever the policies, the acknowledgements and Receive Maximum are', async () => {
  const consumers = fc.array(consumer, { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }),
      consumers,
      fc.array(step, { maxLength: 25 }),
      async (receiveMaximum, configs, steps) => {
        const world = await agreed(
          { receiveMaximum, keepAlive: false, receiveMaximumExceeded: 'disconnect' },
          obliging,
        )
        const readers: Reader[] = []
        for (const config of configs) {
          const { topic, ...options } = config
          const dropped: string[] = []
          const subscription = await subscribe(world, topic, {
            ...options,
            onDrop: (message) => dropped.push(message.text()),
          })
          readers.push({ ...config, subscription, dropped, seen: [], hand: [] })
        }
        /** A burst at QoS 0 may exceed a buffer. */
        const keepsToBuffers = steps.every((one) => one.type !== 'feed' || one.qos > 0)
        const sent: string[] = []
        const waiting: { readonly topic: string; readonly qos: 0 | 1 | 2 }[] = []
        let opened = 0
        /** What Receive Maximum leaves. */
        const free = (): number =>
          receiveMaximum -
          opened +
          world.peer.all('puback').length +
          world.peer.all('pubcomp').length
        const batch = (): PacketInput[] => {
          const packets: PacketInput[] = []
          for (
            let [next] = waiting;
            next !== undefined && (next.qos === 0 || free() > 0);
            [next] = waiting
          ) {
            const { topic, qos } = next
            waiting.shift()
            if (qos > 0) opened += 1
            packets.push(
              publish(topic, String(sent.length), qos === 0 ? undefined : opened, { qos }),
            )
            sent.push(topic)
          }
          return packets
        }
        /** The broker sends as much as Receive Maximum allows. */
        const pump = async (): Promise<void> => {
          await world.settle()
          for (let packets = batch(); packets.length > 0; packets = batch()) {
            await world.send(...packets)
            for (const { overflow, subscription, buffer = 1024, qos } of readers)
              if (keepsToBuffers && overflow !== 'backpressure' && qos > 0)
                expect(subscription.size).toBeLessThanOrEqual(buffer)
          }
          expect(world.client.state).toBe('connected')
        }
        for (const { type, count, qos, who, which } of steps) {
          const reader = readers[who % readers.length] as Reader
          if (type === 'ack')
            reader.hand.splice(which % Math.max(1, reader.hand.length), 1)[0]?.ack()
          else if (type === 'read') for (let at = 0; at <= count % 5; at++) take(reader)
          else
            for (let at = 0; at < count; at++)
              waiting.push({ topic: (sent.length + at * count) % 3 === 0 ? 'b' : 'a', qos })
          await pump()
        }
        // Nothing stands still: all is read and acknowledged, in any order, until nothing more comes.
        for (let quiet = 0; quiet < 3; ) {
          let moved = false
          for (const reader of readers) {
            moved = take(reader) || moved
            for (const message of reader.hand.splice(0).reverse()) moved = message.ack() || moved
          }
          const before = sent.length
          await pump()
          quiet = moved || sent.length > before ? 0 : quiet + 1
        }
        expect([waiting.length, free()]).toEqual([0, receiveMaximum])
        // Every message of its topic, read or dropped, once; and what was read, in order.
        for (const { topic: filter, seen, dropped, subscription } of readers) {
          const texts = sent.flatMap((topic, number) =>
            topic === filter || filter === '#' ? [String(number)] : [],
          )
          expect(ascending([...seen, ...dropped]).map(String)).toEqual(texts)
          expect(seen.map(Number)).toEqual(ascending(seen))
          expect([subscription.dropped, subscription.size]).toEqual([dropped.length, 0])
        }
      },
    ),
    { numRuns: 150 },
  )
}, 120_000)
