/** `subscription.readable()`: messages as a web stream, for manual acknowledgements and those on receipt. */
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../src/client/api/index.js'
import { again, steady, willing } from './across.js'
import { acks, agreed, publish, quiet, series, subscribe } from './incoming.js'

/** Reads a stream to its end. */
function drain(stream: ReadableStream<Message>): { readonly texts: string[]; readonly messages: Message[]; readonly done: Promise<void> } {
  const texts: string[] = []
  const messages: Message[] = []
  const read = async (): Promise<void> => {
    for (const reader = stream.getReader(); ; ) {
      const { value, done } = await reader.read()
      if (done) return
      texts.push(value.text())
      messages.push(value)
    }
  }
  return { texts, messages, done: quiet(read()) }
}

describe('readable()', () => {
  it('gives the messages in order; under "manual" nothing is acknowledged but by `ack()`, and in the order of arrival', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    const { texts, messages } = drain(subscription.readable())
    await world.send(...series('t', 3))
    expect(texts).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual([])
    messages[1]?.ack()
    await world.settle()
    expect(acks(world)).toEqual([])
    messages[0]?.ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('under "on-receive" everything is acknowledged on entering the buffer', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'on-receive' })
    const stream = subscription.readable()
    await world.send(...series('t', 3))
    expect(acks(world)).toEqual(['puback 1', 'puback 2', 'puback 3'])
    const { texts } = drain(stream)
    await world.settle()
    expect(texts).toEqual(['1', '2', '3'])
  })

  it('needs one of them: automatic acknowledgements cannot be told from reading ahead', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { qos: 1 })
    expect(() => subscription.readable()).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'ack' }))
    // It can still be read otherwise.
    await world.send(publish('t', 'x', 1))
    expect(subscription.read()?.text()).toBe('x')
  })

  it('reads nothing before it is read from: messages stay in the bounded buffer', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    const stream = subscription.readable()
    await world.send(...series('t', 5))
    expect(subscription.size).toBe(5)
    const reader = stream.getReader()
    expect((await reader.read()).value?.text()).toBe('1')
    await world.settle()
    expect(subscription.size).toBe(4)
  })

  it('a slow reader meets the overflow policy of its subscription', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { ack: 'on-receive', buffer: 3, overflow: 'drop-oldest' })
    const stream = subscription.readable()
    for (let number = 1; number <= 6; number++) await world.send(publish('t', String(number)))
    expect([subscription.size, subscription.dropped]).toEqual([3, 3])
    const { texts } = drain(stream)
    await world.settle()
    expect(texts).toEqual(['4', '5', '6'])
  })

  it('cancelling leaves the subscription as `onExit` says: UNSUBSCRIBE', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    const stream = subscription.readable()
    await world.send(...series('t', 2))
    const cancelled = quiet(stream.cancel())
    await world.settle()
    await cancelled
    expect(world.peer.last('unsubscribe').filters).toEqual(['t'])
    // Never handed out: acknowledged as dropped.
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    expect(subscription.read()).toBeUndefined()
  })

  it('cancelling with `onExit: "detach"` leaves the broker’s subscription and the messages for the next one', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual', onExit: 'detach' })
    const stream = subscription.readable()
    await world.send(...series('t', 2))
    const cancelled = quiet(stream.cancel())
    await world.settle()
    await cancelled
    expect(world.peer.all('unsubscribe')).toEqual([])
    expect(acks(world)).toEqual([])
    const next = await subscribe(world, 't', { qos: 1, retainHandling: 2 })
    expect([next.read()?.text(), next.read()?.text()]).toEqual(['1', '2'])
  })

  it('cancelling while a read waits ends that read', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { ack: 'manual' })
    const stream = subscription.readable()
    const reader = stream.getReader()
    const read = quiet(reader.read())
    await world.settle()
    quiet(reader.cancel())
    expect(await world.outcome(read)).toMatchObject({ state: 'fulfilled', value: { done: true } })
    await world.settle()
    expect(world.peer.all('unsubscribe')).toHaveLength(1)
  })

  it('ends when the client says goodbye, when it is unsubscribed, and with the error when the client ends with one', async () => {
    const goodbye = await agreed()
    const one = drain((await subscribe(goodbye, 't', { ack: 'manual' })).readable())
    quiet(goodbye.client.disconnect({ timeout: 0 }))
    expect(await goodbye.outcome(one.done)).toMatchObject({ state: 'fulfilled' })

    const left = await agreed()
    const subscription = await subscribe(left, 't', { ack: 'manual' })
    const two = drain(subscription.readable())
    quiet(subscription.unsubscribe())
    expect(await left.outcome(two.done)).toMatchObject({ state: 'fulfilled' })

    const broken = await agreed()
    const three = drain((await subscribe(broken, 't', { ack: 'manual' })).readable())
    broken.peer.cut()
    await broken.settle()
    expect(await broken.outcome(three.done)).toMatchObject({ state: 'rejected', error: { code: 'ERR_CONNECTION_LOST' } })
  })

  it('goes on over a lost connection', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    const { texts, messages } = drain(subscription.readable())
    await world.send(publish('t', 'one', 1))
    await again(world, willing(true))
    await world.send(publish('t', 'one', 1, { dup: true }), publish('t', 'two', 2))
    expect(texts).toEqual(['one', 'two'])
    for (const message of messages) message.ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('a session that brings the filter back in vain ends it with the error', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't', { ack: 'manual' })
    const { done } = drain(subscription.readable())
    await again(world, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x87], properties: {} } : willing(false)(packet),
    )
    expect(await world.outcome(done)).toMatchObject({ state: 'rejected', error: { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 } })
  })

  it('can be piped through a transform', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 't', { ack: 'on-receive' })
    const upper = new TransformStream<Message, string>({
      transform(message, controller) {
        controller.enqueue(message.text().toUpperCase())
      },
    })
    const reader = subscription.readable().pipeThrough(upper).getReader()
    const read = quiet(reader.read())
    await world.send(publish('t', 'abc'))
    expect((await read).value).toBe('ABC')
    quiet(reader.cancel())
    await world.settle()
  })
})
