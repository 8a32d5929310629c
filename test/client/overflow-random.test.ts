/** Any mix of consumers over one window: within their limits, every message accounted for once, and nothing stands still once all is read. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Message, Subscription } from '../../src/client/api/index.js'
import { agreed, obliging, publish, subscribe } from './incoming.js'

const consumer = fc.record({
  topic: fc.constantFrom('a', 'b', '#'),
  qos: fc.constantFrom(0 as const, 1 as const, 2 as const),
  ack: fc.constantFrom('auto' as const, 'manual' as const),
  overflow: fc.constantFrom('backpressure' as const, 'drop-newest' as const, 'drop-oldest' as const),
  buffer: fc.constantFrom(undefined, 1, 2, 5, 50),
})
interface Reader extends ConsumerOf {
  readonly subscription: Subscription
  readonly dropped: string[]
  readonly seen: string[]
  readonly hand: Message[]
}
type ConsumerOf = typeof consumer extends fc.Arbitrary<infer T> ? T : never

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('feed' as const), count: fc.integer({ min: 1, max: 30 }), qos: fc.integer({ min: 0, max: 2 }) }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('read' as const), who: fc.nat(3), count: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('ack' as const), who: fc.nat(3), which: fc.nat(10) }) },
)

it('whatever the policies, the acknowledgements and Receive Maximum are', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }),
      fc.array(consumer, { minLength: 1, maxLength: 4 }),
      fc.array(step, { maxLength: 25 }),
      async (receiveMaximum, configs, steps) => {
        const world = await agreed({ receiveMaximum, keepAlive: false, receiveMaximumExceeded: 'disconnect' }, obliging)
        const readers: Reader[] = []
        for (const { topic, ...options } of configs) {
          const dropped: string[] = []
          const subscription = await subscribe(world, topic, { ...options, onDrop: (message) => dropped.push(message.text()) })
          readers.push({ topic, ...options, subscription, dropped, seen: [] as string[], hand: [] as Message[] })
        }
        const asked = Object.fromEntries(['a', 'b'].map((topic) => [topic, readers.filter((one) => one.topic === topic || one.topic === '#')]))
        const sent: { readonly topic: string; readonly text: string }[] = []
        const waiting: { readonly topic: string; readonly qos: number }[] = []
        // A burst at QoS 0 may exceed a buffer.
        const owed = steps.every((one) => one.type !== 'feed' || one.qos > 0)
        let opened = 0
        let id = 0
        const free = (): number => receiveMaximum - opened + world.peer.all('puback').length + world.peer.all('pubcomp').length
        const pump = async (): Promise<void> => {
          for (;;) {
            const batch = []
            while (waiting[0] !== undefined && (waiting[0].qos === 0 || free() > 0)) {
              const { topic, qos } = waiting.shift() as { topic: string; qos: number }
              const text = String(sent.length)
              sent.push({ topic, text })
              if (qos > 0) opened += 1
              batch.push(publish(topic, text, qos === 0 ? undefined : ++id, { qos: qos as 0 | 1 | 2 }))
            }
            if (batch.length === 0) return
            await world.send(...batch)
            for (const { overflow, subscription, buffer = 1024, qos } of readers)
              if (owed && overflow !== 'backpressure' && qos > 0) expect(subscription.size).toBeLessThanOrEqual(buffer)
          }
        }
        const take = (reader: Reader): boolean => {
          const message = reader.subscription.read()
          if (message === undefined) return false
          reader.seen.push(message.text())
          if (reader.ack === 'manual') reader.hand.push(message)
          return true
        }
        for (const one of steps) {
          if (one.type === 'feed') {
            for (let at = 0; at < one.count; at++) waiting.push({ topic: (sent.length + at * one.count) % 3 === 0 ? 'b' : 'a', qos: one.qos })
          } else {
            const reader = readers[one.who % readers.length] as Reader
            if (one.type === 'read') for (let at = 0; at < one.count; at++) take(reader)
            else reader.hand.splice(one.which % Math.max(1, reader.hand.length), 1)[0]?.ack()
          }
          await world.settle()
          await pump()
          expect(world.client.state).toBe('connected')
        }
        // All read, in any order, and acknowledged: nothing stands still.
        for (let quiet = 0; quiet < 3; ) {
          let moved = false
          for (const reader of readers) {
            moved = take(reader) || moved
            for (const message of reader.hand.splice(0).reverse()) moved = message.ack() || moved
          }
          await world.settle()
          const before = sent.length
          await pump()
          quiet = moved || sent.length > before ? 0 : quiet + 1
        }
        expect([waiting.length, free()]).toEqual([0, receiveMaximum])
        for (const [topic, group] of Object.entries(asked)) {
          const texts = sent.filter((message) => message.topic === topic).map(({ text }) => text)
          for (const reader of group) {
            const mine = new Set(texts)
            const got = [...reader.seen, ...reader.dropped].filter((text) => mine.has(text)).map(Number)
            expect(got.sort((first, second) => first - second).map(String)).toEqual(texts)
          }
        }
        for (const { seen, dropped, subscription } of readers) {
          expect(seen.map(Number)).toEqual([...seen].map(Number).sort((first, second) => first - second))
          expect([subscription.dropped, subscription.size]).toEqual([dropped.length, 0])
        }
      },
    ),
    { numRuns: 150 },
  )
}, 120_000)
