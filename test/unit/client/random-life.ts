/**
 * A client on which everything is called, in an order that a seed decides, against a server that answers now and then.
 *
 * Time is the world's. What is pending at the end of a life is for the test to judge.
 */
import type { Subscription } from '../../../src/client/api/index.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import type { QoS } from '../../../src/wire/packets.js'
import { Random } from '../../world/random.js'
import { agreeable, World } from './harness.js'
import { publish } from './incoming.js'
import { Ledger } from './ledger.js'

type Operation = readonly [name: string, act: () => unknown]

const qualities = [0, 1, 2] as const

/** One life, of one connection or, `lasting`, of several. */
export class RandomLife {
  readonly world: World
  readonly ledger = new Ledger()
  readonly #lasting: boolean
  readonly #random: Random
  readonly #subscriptions: Subscription[] = []
  readonly #aborts: AbortController[] = []
  #packetId = 0

  constructor(seed: number, lasting = false) {
    const random = new Random(seed)
    this.#random = random
    this.#lasting = lasting
    const options = {
      keepAlive: 5,
      pingTimeout: 1000,
      reconnect: lasting ? ({ backoff: constant(20), maxAttempts: random.between(1, 5) } as const) : (false as const),
      outbound: { maxQueuedMessages: random.between(3, 7), overflow: random.pick(['wait', 'reject', 'drop-newest', 'drop-oldest'] as const) },
    }
    const memory = { split: random.between(1, 20), latency: random.below(3) * 5 }
    this.world = new World(options, memory, random.between(1, 2), (_index, open) => {
      if (random.chance(0.1)) throw new Error('down')
      return open()
    })
    this.world.answer = this.#answer
  }

  /** Lives it, and ends the client. */
  async live(): Promise<this> {
    const random = this.#random
    const { client, clock } = this.world
    const usual = [...this.#publishing(), ...this.#subscribing(), ...this.#reading(), ...this.#rest()]
    const rare = this.#ends()
    for (let step = random.between(5, 29); step > 0; step--) {
      this.ledger.add(...random.pick(random.below(14) === 0 ? rare : usual))
      if (random.chance(0.5)) await clock.advance(random.pick([0, 0, 5, 20, 200, 3000]))
    }
    this.ledger.add('closed', () => client.closed)
    this.ledger.add('last disconnect', () => client.disconnect({ timeout: 0 }))
    await clock.advance(50)
    return this
  }

  /** Now and then, in its own way. */
  readonly #answer: Answer = (packet) => {
    const silent = packet.type === 'connect' ? this.#random.below(8) === 0 : this.#random.below(3) === 0
    return silent ? undefined : agreeable(packet)
  }

  #publishing(): Operation[] {
    const random = this.#random
    const { client } = this.world
    const qos = (): QoS => random.pick(qualities)
    return [
      ['publish', () => client.publish(this.#topic(), 'x'.repeat(random.below(50)), { qos: qos(), ...this.#signal() })],
      ['publish', () => client.publish(this.#topic(), 'x', { qos: qos(), flush: true, ackTimeout: 10 + random.below(100) })],
      ['publish large', () => client.publish(this.#topic(), new Uint8Array(33_000), { qos: qos() })],
      ['post', () => client.post(this.#topic(), 'x')],
      ['flush', () => client.flush()],
      ['writable', () => client.writable],
      ['clear', () => client.outbound.clear()],
    ]
  }

  #subscribing(): Operation[] {
    const random = this.#random
    const { client } = this.world
    const kept = (made: Subscription): unknown => this.#subscriptions.push(made)
    const handler = (): unknown => (random.below(3) === 0 ? Promise.reject(new Error('mine')) : undefined)
    const options = () =>
      ({ qos: 1, ack: random.pick(['auto', 'manual', 'on-receive'] as const), onExit: random.pick(['detach', 'unsubscribe'] as const) }) as const
    return [
      ['subscribe', () => client.subscribe(this.#filter(), { qos: random.pick(qualities), ...this.#signal() }).then(kept)],
      ['subscription', () => kept(client.subscription([this.#filter(), this.#filter()], options()))],
      ['listen', () => client.listen(this.#filter(), handler, { qos: 1, concurrency: random.between(1, 3) })],
      ['unsubscribe', () => client.unsubscribe([this.#filter()], this.#signal())],
    ]
  }

  #reading(): Operation[] {
    const on = (name: string, act: (subscription: Subscription) => unknown): Operation => [
      name,
      () => (this.#subscriptions.length === 0 ? undefined : act(this.#random.pick(this.#subscriptions))),
    ]
    return [
      on('ready', (subscription) => subscription.ready),
      on('next', (subscription) => subscription.next(this.#signal())),
      on('next timeout', (subscription) => subscription.next({ timeout: this.#random.below(50) })),
      on('iterate', consume),
      on('leave', (subscription) => subscription[Symbol.asyncIterator]().return?.()),
      on('unsubscribe own', (subscription) => subscription.unsubscribe()),
      on('detach', (subscription) => subscription.detach()),
    ]
  }

  #rest(): Operation[] {
    const random = this.#random
    const { client } = this.world
    const message = () => publish(this.#topic(), 'm', random.chance(0.5) ? undefined : ++this.#packetId)
    return [
      ['connect', () => client.connect(this.#signal())],
      ['connect', () => client.connect(this.#signal())],
      this.#peer('message', (peer) => peer.send(message())),
      ['abort', () => (this.#aborts.length === 0 ? undefined : random.pick(this.#aborts).abort())],
      ['time', () => undefined],
    ]
  }

  #ends(): Operation[] {
    const random = this.#random
    const { client } = this.world
    const draining: Operation = ['drain', () => client.drain({ timeout: random.below(4) * 50, ...this.#signal() })]
    return [
      this.#peer('cut', (peer) => peer.cut()),
      this.#peer('end', (peer) => peer.end()),
      this.#peer('bad bytes', (peer) => peer.sendBytes('00 00')),
      this.#peer('goodbye', (peer) => peer.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} })),
      ['disconnect', () => client.disconnect({ timeout: random.below(3) * 50, ...this.#signal() })],
      ['destroy', () => client.destroy()],
      ...(this.#lasting ? [draining] : []),
    ]
  }

  /** What the server does on the latest connection, where that is open. */
  #peer(name: string, act: (peer: ScriptedPeer) => void): Operation {
    return [
      name,
      () => {
        const last = this.world.peers.at(-1)
        if (last !== undefined && last.ended === undefined) act(last)
      },
    ]
  }

  #signal(): { signal?: AbortSignal } {
    if (this.#random.below(4) > 0) return {}
    const controller = new AbortController()
    this.#aborts.push(controller)
    return { signal: controller.signal }
  }

  #topic(): string {
    return this.#random.pick(['a', 'b', 'c/d', 'e'])
  }

  #filter(): string {
    return this.#random.pick(['a', 'b', '#', 'c/+', '$share/g/a'])
  }
}

/** Reads to the end. */
export async function consume(subscription: Subscription): Promise<void> {
  for await (const message of subscription) message.text()
}
