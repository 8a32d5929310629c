/** Reading: next, read, iterators, timeouts, aborts, one reader at a time, and how it all ends. */
import { describe, expect, it } from 'vitest'
import type { NextOptions } from '../../../src/client/api/index.js'
import { acks, agreed, publish, quick, quiet, read, series, subscribe, taken, takenTexts } from './incoming.js'

describe('next()', () => {
  it('gives what waits at once, and waits for what does not', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(publish('a', '1'))
    expect((await subscription.next())?.text()).toBe('1')
    const waiting = subscription.next()
    expect(await world.outcome(waiting)).toEqual({ state: 'pending' })
    await world.send(publish('a', '2'))
    expect((await waiting)?.text()).toBe('2')
    expect(subscription.size).toBe(0)
  })

  it('times out with ERR_TIMEOUT, and loses nothing', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const waiting = quiet(subscription.next({ timeout: 500 }))
    await world.clock.advance(499)
    expect(await world.outcome(waiting)).toEqual({ state: 'pending' })
    await world.clock.advance(1)
    expect(await world.outcome(waiting)).toMatchObject({ state: 'rejected', error: { code: 'ERR_TIMEOUT' } })
    await world.send(publish('a', 'x'))
    expect((await subscription.next({ timeout: 500 }))?.text()).toBe('x')
  })

  it('a message in time cancels the timer', async () => {
    const world = await agreed({ keepAlive: false })
    const subscription = await subscribe(world, 'a')
    const waiting = subscription.next({ timeout: 500 })
    await world.send(publish('a', 'x'))
    await waiting
    expect(world.clock.pending).toBe(0)
  })

  it('an abort ends the wait with its reason, and loses nothing', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const abort = new AbortController()
    const waiting = quiet(subscription.next({ signal: abort.signal }))
    await world.settle()
    abort.abort('enough')
    expect(await world.outcome(waiting)).toMatchObject({ state: 'rejected', error: { code: 'ERR_ABORTED', name: 'AbortError', cause: 'enough' } })
    await world.send(publish('a', 'x'))
    expect((await subscription.next())?.text()).toBe('x')
  })

  it('a signal that has aborted takes no message and ends no turn', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    taken(subscription)
    await expect(subscription.next({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    await world.settle()
    expect(acks(world)).toEqual([])
    expect(subscription.size).toBe(1)
  })

  it('an abort after the message came does nothing', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const abort = new AbortController()
    const waiting = subscription.next({ signal: abort.signal })
    await world.send(publish('a', 'x'))
    abort.abort()
    expect((await waiting)?.text()).toBe('x')
  })

  it.each([{ timeout: -1 }, { timeout: 'x' }, { timeout: Number.NaN }, { signal: {} }])('options that are none: %j', async (options) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    expect(await world.outcome(Promise.resolve().then(() => subscription.next(options as NextOptions)))).toMatchObject({
      state: 'rejected',
      error: { code: 'ERR_INVALID_OPTION' },
    })
  })

  it('read() never waits', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    expect(subscription.read()).toBeUndefined()
    await world.send(...quick('a', 2))
    expect(subscription.size).toBe(2)
    expect(takenTexts(subscription)).toEqual(['1', '2'])
  })
})

describe('one reader at a time', () => {
  it('under automatic acks overlapping next() is ERR_CONCURRENT_NEXT, and the first goes on', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const waiting = subscription.next()
    await expect(subscription.next()).rejects.toMatchObject({ code: 'ERR_CONCURRENT_NEXT' })
    expect(() => subscription.read()).toThrow(expect.objectContaining({ code: 'ERR_CONCURRENT_NEXT' }))
    await world.send(publish('a', 'x'))
    expect((await waiting)?.text()).toBe('x')
  })

  it('a second loop is ERR_CONCURRENT_NEXT, and the first goes on', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const first = read(subscription)
    await world.settle()
    const second = read(subscription)
    await world.settle()
    expect(second.end).toMatchObject({ state: 'failed', error: { code: 'ERR_CONCURRENT_NEXT' } })
    await world.send(publish('a', 'x'))
    expect(first).toMatchObject({ texts: ['x'], end: { state: 'running' } })
    expect(world.peer.all('unsubscribe')).toEqual([])
  })

  it('a second loop while the body of the first runs is refused too', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    let inner: Promise<unknown> | undefined
    ;(async () => {
      for await (const _ of subscription) {
        inner = quiet(
          (async () => {
            for await (const message of subscription) return message
            return undefined
          })(),
        )
        await inner.catch(() => undefined)
      }
    })()
    await world.send(...series('a', 2))
    await expect(inner).rejects.toMatchObject({ code: 'ERR_CONCURRENT_NEXT' })
  })

  it('under manual acks several loops share the messages', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { ack: 'manual' })
    const readings = [read(subscription), read(subscription)]
    await world.send(...quick('a', 4))
    expect(readings.flatMap((reading) => reading.texts).sort()).toEqual(['1', '2', '3', '4'])
  })

  it('next() after next() in turn is no overlap', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(...quick('a', 3))
    const texts: (string | undefined)[] = []
    for (let index = 0; index < 3; index++) texts.push((await subscription.next())?.text())
    expect(texts).toEqual(['1', '2', '3'])
  })
})

describe('the end', () => {
  it('a clean stop: next() gives undefined, loops are done', async () => {
    const world = await agreed()
    const waiting = (await subscribe(world, 'a')).next()
    const looping = read(await subscribe(world, 'b'))
    const batching = (await subscribe(world, 'c')).batches().next()
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(await waiting).toBeUndefined()
    expect(looping.end.state).toBe('done')
    expect(await batching).toEqual({ done: true, value: undefined })
  })

  it('a fatal error: next() and loops reject with it', async () => {
    const world = await agreed()
    const waiting = quiet((await subscribe(world, 'a')).next())
    const subscription = await subscribe(world, 'b')
    const looping = read(subscription)
    await world.send({ type: 'disconnect', reasonCode: 0x8e, properties: {} })
    expect(await world.outcome(waiting)).toMatchObject({ state: 'rejected', error: { code: 'ERR_SESSION_TAKEN_OVER' } })
    expect(looping.end).toMatchObject({ state: 'failed', error: { code: 'ERR_SESSION_TAKEN_OVER' } })
    await expect(subscription.next()).rejects.toMatchObject({ code: 'ERR_SESSION_TAKEN_OVER' })
  })

  it('what came before the error can still be read', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(...quick('a', 2))
    world.peer.cut()
    await world.settle()
    expect(takenTexts(subscription)).toEqual(['1', '2'])
    await expect(subscription.next()).rejects.toMatchObject({ code: 'ERR_CONNECTION_LOST' })
  })

  it('after unsubscribe() next() gives undefined, again and again', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const left = subscription.unsubscribe()
    await world.settle()
    await left
    expect(await subscription.next()).toBeUndefined()
    expect(await subscription.next()).toBeUndefined()
    expect(subscription.read()).toBeUndefined()
    expect(read(subscription).texts).toEqual([])
  })

  it('an iterator that was returned is done, and its pending next() too', async () => {
    const world = await agreed()
    const iterator = (await subscribe(world, 'a'))[Symbol.asyncIterator]()
    const waiting = iterator.next()
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined })
    expect(await waiting).toEqual({ done: true, value: undefined })
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })

  it('an iterator is iterable itself', async () => {
    const world = await agreed()
    const iterator = (await subscribe(world, 'a'))[Symbol.asyncIterator]()
    expect(iterator[Symbol.asyncIterator]()).toBe(iterator)
  })
})
