/** `subscription.readable()`: messages as a web stream, for manual acknowledgements and those on receipt. */
import { expect, it } from 'vitest'
import type { Message, SubscribeOptions } from '../../../src/client/api/index.js'
import { again, steady, willing } from './across.js'
import { connected, type World } from './harness.js'
import {
  acks,
  pubacks,
  publish,
  quiet,
  type Reading,
  read,
  series,
  subscribe,
  takenTexts,
} from './incoming.js'

/** Reads a stream to its end; not all browsers can iterate over one. */
async function* messagesOf(stream: ReadableStream<Message>): AsyncGenerator<Message> {
  for (const reader = stream.getReader(); ; ) {
    const { value, done } = await reader.read()
    if (done) return
    yield value
  }
}

const ended = async (world: World, reading: Reading, error?: object): Promise<void> => {
  await world.settle()
  expect(reading.end).toMatchObject(
    error === undefined ? { state: 'done' } : { state: 'failed', error },
  )
}

/** A subscription to `t` and its stream. */
async function streaming(
  options: SubscribeOptions = {},
  made: Promise<World> = connected({}, willing(false)),
) {
  const world = await made
  const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual', ...options })
  return { world, subscription, stream: subscription.readable() }
}

it('gives the messages in order; under "manual" nothing is acknowledged but by `ack()`, and in the order of arrival', async () => {
  const { world, stream } = await streaming()
  const { texts, messages } = read(messagesOf(stream))
  await world.send(...series('t', 3))
  expect([texts, acks(world)]).toEqual([['1', '2', '3'], []])
  messages[1]?.ack()
  await world.settle()
  expect(acks(world)).toEqual([])
  messages[0]?.ack()
  await world.settle()
  expect(acks(world)).toEqual(pubacks(1, 2))
})

it('under "on-receive" everything is acknowledged on entering the buffer', async () => {
  const { world, stream } = await streaming({ ack: 'on-receive' })
  await world.send(...series('t', 3))
  expect(acks(world)).toEqual(pubacks(1, 3))
  const { texts } = read(messagesOf(stream))
  await world.settle()
  expect(texts).toEqual(['1', '2', '3'])
})

it('needs one of them: automatic acknowledgements cannot be distinguished from reading ahead', async () => {
  const world = await connected({}, willing(false))
  const subscription = await subscribe(world, 't', { qos: 1 })
  const refused = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'ack' })
  expect(() => subscription.readable()).toThrow(refused)
  // It can still be read otherwise.
  await world.send(publish('t', 'x', 1))
  expect(takenTexts(subscription)).toEqual(['x'])
})

it('reads nothing before it is read from: messages stay in the bounded buffer', async () => {
  const { world, subscription, stream } = await streaming()
  await world.send(...series('t', 5))
  expect(subscription.size).toBe(5)
  expect((await stream.getReader().read()).value?.text()).toBe('1')
  await world.settle()
  expect(subscription.size).toBe(4)
})

it('a slow reader meets the overflow policy of its subscription', async () => {
  const { world, subscription, stream } = await streaming({
    qos: 0,
    ack: 'on-receive',
    buffer: 3,
    overflow: 'drop-oldest',
  })
  for (let number = 1; number <= 6; number++) await world.send(publish('t', String(number)))
  expect([subscription.size, subscription.dropped]).toEqual([3, 3])
  const { texts } = read(messagesOf(stream))
  await world.settle()
  expect(texts).toEqual(['4', '5', '6'])
})

it('cancelling leaves the subscription as `onExit` says: UNSUBSCRIBE', async () => {
  const { world, subscription, stream } = await streaming()
  await world.send(...series('t', 2))
  await Promise.all([stream.cancel(), world.settle()])
  expect(world.peer.last('unsubscribe').filters).toEqual(['t'])
  // Never handed out: acknowledged as dropped.
  expect(acks(world)).toEqual(pubacks(1, 2))
  expect(subscription.read()).toBeUndefined()
})

it('cancelling with `onExit: "detach"` leaves the broker’s subscription and the messages for the next one', async () => {
  const { world, stream } = await streaming({ onExit: 'detach' })
  await world.send(...series('t', 2))
  await Promise.all([stream.cancel(), world.settle()])
  expect([world.peer.all('unsubscribe'), acks(world)]).toEqual([[], []])
  expect(takenTexts(await subscribe(world, 't', { qos: 1, retainHandling: 2 }))).toEqual(['1', '2'])
})

it('cancelling while a read waits ends that read', async () => {
  const { world, stream } = await streaming()
  const reader = stream.getReader()
  const waiting = quiet(reader.read())
  await world.settle()
  quiet(reader.cancel())
  expect(await world.outcome(waiting)).toMatchObject({ state: 'fulfilled', value: { done: true } })
  expect(world.peer.all('unsubscribe')).toHaveLength(1)
})

it('ends when the client says goodbye, when it is unsubscribed, and with the error when the client ends with one', async () => {
  const goodbye = await streaming()
  const one = read(messagesOf(goodbye.stream))
  quiet(goodbye.world.client.disconnect({ timeout: 0 }))
  await ended(goodbye.world, one)

  const left = await streaming()
  const two = read(messagesOf(left.stream))
  quiet(left.subscription.unsubscribe())
  await ended(left.world, two)

  const broken = await streaming()
  const three = read(messagesOf(broken.stream))
  broken.world.peer.cut()
  await ended(broken.world, three, { code: 'ERR_CONNECTION_LOST' })
})

it('goes on over a lost connection', async () => {
  const { world, stream } = await streaming({}, steady({}, willing(false)))
  const { texts, messages } = read(messagesOf(stream))
  await world.send(publish('t', 'one', 1))
  await again(world, willing(true))
  await world.send(publish('t', 'one', 1, { dup: true }), publish('t', 'two', 2))
  expect(texts).toEqual(['one', 'two'])
  for (const message of messages) message.ack()
  await world.settle()
  expect(acks(world)).toEqual(pubacks(1, 2))
})

it('a session that brings the filter back in vain ends it with the error', async () => {
  const { world, stream } = await streaming({}, steady({}, willing(false)))
  const reading = read(messagesOf(stream))
  await again(world, (packet) =>
    packet.type === 'subscribe'
      ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x87] }
      : willing(false)(packet),
  )
  await ended(world, reading, { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 })
})

it('can be piped through a transform', async () => {
  const { world, stream } = await streaming({ ack: 'on-receive' })
  const upper = new TransformStream<Message, string>({
    transform: (message, controller) => controller.enqueue(message.text().toUpperCase()),
  })
  const reader = stream.pipeThrough(upper).getReader()
  const piped = quiet(reader.read())
  await world.send(publish('t', 'abc'))
  expect((await piped).value).toBe('ABC')
  quiet(reader.cancel())
  await world.settle()
})
