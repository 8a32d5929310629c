/** Any mix of consumers over one window: within their limits, every message accounted for once, and nothing stands still once all is read. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Message, Subscription } from '../../../src/client/api/index.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import type { World } from './harness.js'
import { agreed, obliging, publish, subscribe } from './incoming.js'

const consumer = fc.record({
  topic: fc.constantFrom('a', 'b', '#'),
  qos: fc.constantFrom(0 as const, 1 as const, 2 as const),
  ack: fc.constantFrom('auto' as const, 'manual' as const),
  overflow: fc.constantFrom('backpressure' as const, 'drop-newest' as const, 'drop-oldest' as const),
  buffer: fc.constantFrom(undefined, 1, 2, 5, 50),
})
type ConsumerOf = typeof consumer extends fc.Arbitrary<infer T> ? T : never
interface Reader extends ConsumerOf {
  readonly subscription: Subscription
  readonly dropped: string[]
  readonly seen: string[]
  readonly hand: Message[]
}

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('feed' as const), count: fc.integer({ min: 1, max: 30 }), qos: fc.integer({ min: 0, max: 2 }) }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('read' as const), who: fc.nat(3), count: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('ack' as const), who: fc.nat(3), which: fc.nat(10) }) },
)

type StepOf = typeof step extends fc.Arbitrary<infer T> ? T : never

/** A broker that sends as much as Receive Maximum allows, and the consumers of what it sends. */
class Window {
  readonly world: World
  readonly sent: { readonly topic: string; readonly text: string }[] = []
  readonly waiting: { readonly topic: string; readonly qos: 0 | 1 | 2 }[] = []
  readonly #receiveMaximum: number
  readonly #readers: readonly Reader[]
  /** A burst at QoS 0 may exceed a buffer. */
  readonly #keepsToBuffers: boolean
  #opened = 0
  #id = 0

  constructor(world: World, receiveMaximum: number, readers: readonly Reader[], keepsToBuffers: boolean) {
    this.world = world
    this.#receiveMaximum = receiveMaximum
    this.#readers = readers
    this.#keepsToBuffers = keepsToBuffers
  }

  /** What Receive Maximum leaves. */
  get free(): number {
    const { peer } = this.world
    return this.#receiveMaximum - this.#opened + peer.all('puback').length + peer.all('pubcomp').length
  }

  async step(one: StepOf): Promise<void> {
    const { sent, waiting } = this
    if (one.type === 'feed') {
      for (let at = 0; at < one.count; at++) waiting.push({ topic: (sent.length + at * one.count) % 3 === 0 ? 'b' : 'a', qos: one.qos as 0 | 1 | 2 })
    } else {
      const reader = this.#readers[one.who % this.#readers.length] as Reader
      if (one.type === 'read') for (let at = 0; at < one.count; at++) take(reader)
      else reader.hand.splice(one.which % Math.max(1, reader.hand.length), 1)[0]?.ack()
    }
    await this.world.settle()
    await this.#pump()
    expect(this.world.client.state).toBe('connected')
  }

  /** All read, in any order, and acknowledged, until nothing more comes. */
  async finish(): Promise<void> {
    for (let quiet = 0; quiet < 3; ) {
      let moved = false
      for (const reader of this.#readers) {
        moved = take(reader) || moved
        for (const message of reader.hand.splice(0).reverse()) moved = message.ack() || moved
      }
      await this.world.settle()
      const before = this.sent.length
      await this.#pump()
      quiet = moved || this.sent.length > before ? 0 : quiet + 1
    }
  }

  async #pump(): Promise<void> {
    for (let batch = this.#batch(); batch.length > 0; batch = this.#batch()) {
      await this.world.send(...batch)
      for (const { overflow, subscription, buffer = 1024, qos } of this.#readers)
        if (this.#keepsToBuffers && overflow !== 'backpressure' && qos > 0) expect(subscription.size).toBeLessThanOrEqual(buffer)
    }
  }

  #batch(): PacketInput[] {
    const batch: PacketInput[] = []
    for (let [next] = this.waiting; next !== undefined && (next.qos === 0 || this.free > 0); [next] = this.waiting) {
      const { topic, qos } = next
      this.waiting.shift()
      const text = String(this.sent.length)
      this.sent.push({ topic, text })
      if (qos > 0) this.#opened += 1
      batch.push(publish(topic, text, qos === 0 ? undefined : ++this.#id, { qos }))
    }
    return batch
  }
}

function take(reader: Reader): boolean {
  const message = reader.subscription.read()
  if (message === undefined) return false
  reader.seen.push(message.text())
  if (reader.ack === 'manual') reader.hand.push(message)
  return true
}

async function readersOf(world: World, configs: readonly ConsumerOf[]): Promise<Reader[]> {
  const readers: Reader[] = []
  for (const { topic, ...options } of configs) {
    const dropped: string[] = []
    const subscription = await subscribe(world, topic, { ...options, onDrop: (message) => dropped.push(message.text()) })
    readers.push({ topic, ...options, subscription, dropped, seen: [], hand: [] })
  }
  return readers
}

const ascending = (texts: readonly string[]): number[] => texts.map(Number).sort((first, second) => first - second)

/** Every message of its topic, read or dropped, once; and what was read, in order. */
function judge({ topic: filter, seen, dropped, subscription }: Reader, sent: Window['sent']): void {
  for (const topic of ['a', 'b'].filter((name) => name === filter || filter === '#')) {
    const texts = sent.filter((message) => message.topic === topic).map(({ text }) => text)
    const mine = new Set(texts)
    expect(ascending([...seen, ...dropped].filter((text) => mine.has(text))).map(String)).toEqual(texts)
  }
  expect(seen.map(Number)).toEqual(ascending(seen))
  expect([subscription.dropped, subscription.size]).toEqual([dropped.length, 0])
}

it('whatever the policies, the acknowledgements and Receive Maximum are', async () => {
  const consumers = fc.array(consumer, { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), consumers, fc.array(step, { maxLength: 25 }), async (receiveMaximum, configs, steps) => {
      const world = await agreed({ receiveMaximum, keepAlive: false, receiveMaximumExceeded: 'disconnect' }, obliging)
      const readers = await readersOf(world, configs)
      const owed = steps.every((one) => one.type !== 'feed' || one.qos > 0)
      const window = new Window(world, receiveMaximum, readers, owed)
      for (const one of steps) await window.step(one)
      // Nothing stands still.
      await window.finish()
      expect([window.waiting.length, window.free]).toEqual([0, receiveMaximum])
      for (const reader of readers) judge(reader, window.sent)
    }),
    { numRuns: 150 },
  )
}, 120_000)
