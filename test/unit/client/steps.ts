/** Steps that tests of a client take again and again: a call and what follows from it, work that takes time, a loop that reads. */
import type {
  ClientOptions,
  Filters,
  Handler,
  ListenOptions,
  Subscription,
} from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { VirtualClock } from '../../../src/testing/virtual-clock.js'
import type { Transport } from '../../../src/transport/transport.js'
import { agreeable, World } from './harness.js'
import { quiet } from './incoming.js'

interface Timed {
  readonly clock: VirtualClock
}

/** What a call comes to when everything has happened that happens by itself, within so many milliseconds. */
export async function settled<T>({ clock }: Timed, call: Promise<T>, milliseconds = 0): Promise<T> {
  quiet(call)
  await clock.advance(milliseconds)
  return call
}

/** Work that takes its time. */
export function sleep({ clock }: Timed, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(resolve, milliseconds))
}

/** A loop over messages with this body. */
export async function loop<T>(
  messages: AsyncIterable<T>,
  body: (message: T) => unknown = () => undefined,
): Promise<void> {
  for await (const message of messages) await body(message)
}

/** Listens, and waits for the grant. */
export function listen(world: World, filters: Filters, handler: Handler, options?: ListenOptions) {
  return settled(world, world.client.listen(filters, handler, options))
}

/** Unsubscribes, and waits for the answer. */
export const leave = (world: World, subscription?: Subscription) =>
  Promise.all([subscription?.unsubscribe(), world.settle()])

/** Says yes to everything but packets of this type, which the test answers, or nobody. */
export const deafTo =
  (type: string): Answer =>
  (packet) =>
    packet.type === type ? undefined : agreeable(packet)

/** Answers the latest UNSUBSCRIBE, of one filter. */
export async function unsuback(world: World, reasonCode = 0): Promise<void> {
  const { packetId } = world.peer.last('unsubscribe')
  await world.send({ type: 'unsuback', packetId, reasonCodes: [reasonCode] })
}

/** A client that is not connected yet, and how it connects. */
export function idle(answer: Answer = agreeable, options: ClientOptions = {}) {
  const world = new World(options)
  world.answer = answer
  return { world, connect: () => world.outcome(world.client.connect()) }
}

/** A connected client over a transport in the hands of the test; `feed` lets a CONNACK come in. */
export async function over(
  transport: Transport,
  feed: (connack: Uint8Array) => void,
  options: ClientOptions = {},
): Promise<World> {
  const world = new World(options, {}, 1, () => transport)
  const connecting = world.client.connect()
  await world.settle()
  feed(Uint8Array.of(0x20, 3, 0, 0, 0))
  await connecting
  return world
}
