/** Reading: next, read, iterators, web streams, timeouts, aborts, one reader at a time, and how it all ends. */
import { describe, expect, it } from 'vitest'
import type {
  Message,
  NextOptions,
  SubscribeOptions,
  Subscription,
} from '../../../src/client/options/index.js'
import { lose } from './across.js'
import { failure, type World } from './harness.js'
import {
  acked,
  acks,
  agreed,
  pubacks,
  publish,
  quick,
  quiet,
  read,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'
import { loop, settled } from './steps.js'

async function reader(options = {}): Promise<{ world: World; subscription: Subscription }> {
  const world = await agreed({ keepAlive: false })
  return { world, subscription: await subscribe(world, 'a', options) }
}

const concurrent = { code: 'ERR_CONCURRENT_NEXT' }

describe('next()', () => {
  it('gives what waits at once, and waits for what does not', async () => {
    const { world, subscription } = await reader()
    await world.send(publish('a', '1'))
    expect((await subscription.next())?.text()).toBe('1')
    const waiting = subscription.next()
    expect(await world.outcome(waiting)).toEqual({ state: 'pending' })
    await world.send(publish('a', '2'))
    expect([(await waiting)?.text(), subscription.size]).toEqual(['2', 0])
  })

  it('times out with ERR_TIMEOUT, and loses nothing; a message in time cancels the timer', async () => {
    const { world, subscription } = await reader()
    const waiting = quiet(subscription.next({ timeout: 500 }))
    await world.clock.advance(499)
    expect(await world.outcome(waiting)).toEqual({ state: 'pending' })
    await world.clock.advance(1)
    expect(await failure(waiting)).toMatchObject({ code: 'ERR_TIMEOUT' })
    await world.send(publish('a', 'x'))
    expect((await subscription.next({ timeout: 500 }))?.text()).toBe('x')
    const another = subscription.next({ timeout: 500 })
    await world.send(publish('a', 'y'))
    expect([(await another)?.text(), world.clock.pending]).toEqual(['y', 0])
  })

  it('an abort ends the wait with its reason, and loses nothing', async () => {
    const { world, subscription } = await reader()
    const abort = new AbortController()
    const waiting = failure(subscription.next({ signal: abort.signal }))
    await world.settle()
    abort.abort('enough')
    const aborted = { code: 'ERR_ABORTED', name: 'AbortError', cause: 'enough' }
    expect(await waiting).toMatchObject(aborted)
    await world.send(publish('a', 'x'))
    expect((await subscription.next())?.text()).toBe('x')
  })

  it('a signal that has aborted takes no message and ends no turn', async () => {
    const { world, subscription } = await reader({ qos: 1 })
    await world.send(...series('a', 2))
    taken(subscription)
    const error = await failure(subscription.next({ signal: AbortSignal.abort() }))
    expect(error.code).toBe('ERR_ABORTED')
    expect([await acked(world), subscription.size]).toEqual([[], 1])
  })

  it.each([{ timeout: -1 }, { timeout: 'x' }, { timeout: Number.NaN }, { signal: {} }])(
    'wrong options: %j',
    async (options) => {
      const { subscription } = await reader()
      const call = Promise.resolve().then(() => subscription.next(options as NextOptions))
      expect(await failure(call)).toMatchObject({ code: 'ERR_INVALID_OPTION' })
    },
  )
})

describe('one reader at a time', () => {
  it('under automatic acks overlapping next() is ERR_CONCURRENT_NEXT, and the first goes on', async () => {
    const { world, subscription } = await reader()
    const waiting = subscription.next()
    expect(() => subscription.read()).toThrow(expect.objectContaining(concurrent))
    expect(await world.outcome(subscription.next())).toMatchObject({ error: concurrent })
    await world.send(publish('a', 'x'))
    expect((await waiting)?.text()).toBe('x')
  })

  it('a second loop is ERR_CONCURRENT_NEXT, and the first goes on', async () => {
    const { world, subscription } = await reader()
    const first = read(subscription)
    await world.settle()
    const second = read(subscription)
    await world.settle()
    expect(second.end).toMatchObject({ state: 'failed', error: concurrent })
    await world.send(publish('a', 'x'))
    expect(first).toMatchObject({ texts: ['x'], end: { state: 'running' } })
    expect(world.peer.all('unsubscribe')).toEqual([])
  })

  it('a second loop while the body of the first runs is refused too', async () => {
    const { world, subscription } = await reader({ qos: 1 })
    const inner: Promise<unknown>[] = []
    quiet(
      loop(subscription, () => {
        inner.push(failure(loop(subscription)))
        return inner[0]
      }),
    )
    await world.send(...series('a', 2))
    expect(await inner[0]).toMatchObject(concurrent)
  })

  it('under manual acks several loops share the messages', async () => {
    const { world, subscription } = await reader({ ack: 'manual' })
    const readings = [read(subscription), read(subscription)]
    await world.send(...quick('a', 4))
    expect(readings.flatMap(({ texts }) => texts).sort()).toEqual(['1', '2', '3', '4'])
  })
})

describe('the end', () => {
  it('a clean stop: next() gives undefined, loops are done', async () => {
    const { world, subscription } = await reader()
    const waiting = subscription.next()
    const looping = read(await subscribe(world, 'b'))
    const batching = (await subscribe(world, 'c')).batches().next()
    await settled(world, world.client.disconnect())
    expect(await waiting).toBeUndefined()
    expect(looping.end.state).toBe('done')
    expect(await batching).toEqual({ done: true, value: undefined })
  })

  it('a fatal error: next() and loops reject with it', async () => {
    const { world, subscription } = await reader()
    const waiting = failure(subscription.next())
    const looping = read(await subscribe(world, 'b'))
    await world.send({ type: 'disconnect', reasonCode: 0x8e })
    const error = { code: 'ERR_SESSION_TAKEN_OVER' }
    expect([await waiting, await failure(subscription.next())]).toMatchObject([error, error])
    expect(looping.end).toMatchObject({ state: 'failed', error })
  })

  it('what came before the error can still be read', async () => {
    const { world, subscription } = await reader()
    await world.send(...quick('a', 2))
    await lose(world)
    expect(takenTexts(subscription)).toEqual(['1', '2'])
    expect(await failure(subscription.next())).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
  })

  it('an iterator is iterable itself; once returned it is done, and its pending next() too', async () => {
    const { subscription } = await reader()
    const iterator = subscription[Symbol.asyncIterator]()
    expect(iterator[Symbol.asyncIterator]()).toBe(iterator)
    const waiting = iterator.next()
    for (const result of [iterator.return?.(), waiting, iterator.next()])
      expect(await result).toEqual({ done: true, value: undefined })
  })
})

/** Reads a stream to its end; not all browsers can iterate over one. */
async function* messagesOf(stream: ReadableStream<Message>): AsyncGenerator<Message> {
  for (const reader = stream.getReader(); ; ) {
    const { value, done } = await reader.read()
    if (done) return
    yield value
  }
}

/** A subscription to `t` and its stream. */
async function streaming(options: SubscribeOptions = {}) {
  const world = await agreed()
  const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual', ...options })
  return { world, subscription, stream: subscription.readable() }
}

describe('readable(), a web stream', () => {
  it('gives the messages in order; under "manual" nothing is acknowledged but by `ack()`, and in the order of arrival', async () => {
    const { world, stream } = await streaming()
    const { texts, messages } = read(messagesOf(stream))
    await world.send(...series('t', 3))
    expect([texts, acks(world)]).toEqual([['1', '2', '3'], []])
    messages[1]?.ack()
    expect(await acked(world)).toEqual([])
    messages[0]?.ack()
    expect(await acked(world)).toEqual(pubacks(1, 2))
  })

  it('needs one of them: automatic acknowledgements cannot be distinguished from reading ahead', async () => {
    const world = await agreed()
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

  it('cancelling leaves the subscription as `onExit` says: UNSUBSCRIBE', async () => {
    const { world, subscription, stream } = await streaming()
    await world.send(...series('t', 2))
    await Promise.all([stream.cancel(), world.settle()])
    expect(world.peer.last('unsubscribe').filters).toEqual(['t'])
    // Never handed out: acknowledged as dropped.
    expect(acks(world)).toEqual(pubacks(1, 2))
    expect(subscription.read()).toBeUndefined()
  })

  it('cancelling while a read waits ends that read', async () => {
    const { world, stream } = await streaming({ ack: 'on-receive' })
    const reader = stream.getReader()
    const waiting = quiet(reader.read())
    await world.settle()
    quiet(reader.cancel())
    expect(await settled(world, waiting)).toMatchObject({ done: true })
    expect(world.peer.all('unsubscribe')).toHaveLength(1)
  })

  it('ends when the client says goodbye, when it is unsubscribed, and with the error of a client that fails', async () => {
    const error = { code: 'ERR_CONNECTION_LOST' }
    for (const [end, expected] of [
      [({ world }) => world.client.disconnect({ timeout: 0 }), { state: 'done' }],
      [({ subscription }) => subscription.unsubscribe(), { state: 'done' }],
      [({ world }) => world.peer.cut(), { state: 'failed', error }],
    ] as [(made: Awaited<ReturnType<typeof streaming>>) => unknown, object][]) {
      const made = await streaming()
      const reading = read(messagesOf(made.stream))
      void end(made)
      await made.world.settle()
      expect(reading.end).toMatchObject(expected)
    }
  })
})
