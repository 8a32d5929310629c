/** `listen`: order, concurrency, acknowledgement when the handler is done, and the four answers to a handler that fails. */
import { describe, expect, it } from 'vitest'
import type { Handler, Handling, ListenOptions } from '../../../src/client/options/index.js'
import { failure, times, type World } from './harness.js'
import {
  acked,
  acks,
  agreed,
  answering,
  type Gate,
  gate,
  pubacks,
  publish,
  series,
  subscribe,
  subscribes,
  takenTexts,
} from './incoming.js'
import { settled, listen as withOptions } from './steps.js'

const listen = (world: World, handler: Handler, options?: ListenOptions, filter = 'a') =>
  withOptions(world, filter, handler, { qos: 1, ...options })

/** A handler that notes what it gets, and whose calls each wait for their own gate. */
function gated() {
  const texts: string[] = []
  const gates: Gate[] = []
  const handler: Handler = (message) => {
    texts.push(message.text())
    const mine = gate()
    gates.push(mine)
    return mine.promise
  }
  return { texts, gates, handler }
}

/** A handler that notes what it gets, and fails: always, or with these texts, or that often. */
function failing(when: { texts?: string[]; times?: number } = {}) {
  const calls: string[] = []
  const handler: Handler = (message) => {
    calls.push(message.text())
    const { times = Number.POSITIVE_INFINITY } = when
    if (when.texts?.includes(message.text()) ?? calls.length <= times) throw new Error('poison')
  }
  return { calls, handler }
}

/** What the next subscription on `a` gets. */
const next = async (world: World) => takenTexts(await subscribe(world, 'a', { qos: 1 }))

const fulfilled = { state: 'fulfilled' }
const invalid = { code: 'ERR_INVALID_OPTION' }

describe('handling', () => {
  it.each([1, 3])(
    'concurrency %i: starts and acks are in the order of arrival',
    async (concurrency) => {
      const world = await agreed()
      const { texts, gates, handler } = gated()
      await listen(world, handler, { concurrency })
      await world.send(...series('a', 5))
      expect(texts).toHaveLength(concurrency)
      for (let index = concurrency - 1; index > 0; index--) gates[index]?.open()
      await world.settle()
      expect([texts.length, acks(world)]).toEqual([concurrency === 1 ? 1 : 5, []])
      gates[0]?.open()
      expect(await acked(world)).toEqual(pubacks(1, concurrency))
      for (let index = 1; index < 5; index++) {
        gates[index]?.open()
        await world.settle()
      }
      expect(texts).toEqual(['1', '2', '3', '4', '5'])
      expect(acks(world)).toEqual(pubacks(1, 5))
    },
  )

  it.each<[string, Handler]>([
    ['nothing', () => undefined],
    ['something', () => 5],
    ['a thenable', () => Object.fromEntries([['then', (done: () => void) => done()]])],
  ])('a synchronous handler that gives %s', async (_what, handler) => {
    const world = await agreed()
    const handling = await listen(world, handler)
    await world.send(...series('a', 2))
    expect(acks(world)).toEqual(pubacks(1, 2))
    expect(handling.granted).toMatchObject([{ filter: 'a', qos: 1 }])
  })

  it("ack 'on-receive' acknowledges before the handler is done, and never refuses", async () => {
    const world = await agreed()
    const { gates, handler } = gated()
    await listen(world, handler, { ack: 'on-receive', onError: 'reject' })
    await world.send(...series('a', 2))
    expect(acks(world)).toEqual(pubacks(1, 2))
    gates[0]?.fail(new Error('late'))
    expect(await acked(world)).toEqual(pubacks(1, 2))
    expect(world.seen('error')).toHaveLength(1)
  })

  it('ack() inside the handler decides; a failure after it changes nothing', async () => {
    const world = await agreed()
    const handler: Handler = (message) => {
      message.ack(0x99)
      throw new Error('after')
    }
    await listen(world, handler, { onError: 'reject' })
    await world.send(publish('a', 'x', 1))
    expect(acks(world)).toEqual(['puback 1 0x99'])
  })

  it.each([
    [undefined, {}, { code: 'ERR_INVALID_HANDLER' }],
    [{}, {}, { code: 'ERR_INVALID_HANDLER' }],
    [() => undefined, { concurrency: 0 }, invalid],
    [() => undefined, { concurrency: 1.5 }, invalid],
    [() => undefined, { onError: 'panic' }, invalid],
    [() => undefined, { ack: 'manual' }, invalid],
    [() => undefined, { order: 'key' }, { ...invalid, option: 'order' }],
    [() => undefined, { order: {} }, { ...invalid, option: 'order' }],
  ])('a handler or options that are none: %o, %j', async (handler, options, refusal) => {
    const world = await agreed()
    const call = listen(world, handler as Handler, options as ListenOptions)
    expect(await failure(call)).toMatchObject(refusal)
    expect(subscribes(world)).toEqual([])
  })

  it('a refused filter rejects', async () => {
    const world = await agreed({}, answering('subscribe', [0x87]))
    const refused = { code: 'ERR_SUBSCRIBE_REFUSED' }
    expect(await failure(listen(world, () => undefined))).toMatchObject(refused)
  })
})

describe('onError', () => {
  it("'retry', the default at QoS 1: five times with growing delays, then 0x80 with an error event, then on", async () => {
    const world = await agreed({ keepAlive: false })
    const { calls, handler } = failing({ texts: ['1'] })
    const times: number[] = []
    await listen(world, (message) => {
      times.push(world.clock.now())
      return handler(message)
    })
    await world.send(...series('a', 2))
    expect(calls).toEqual(['1'])
    await world.clock.advance(120_000)
    expect(calls).toEqual(['1', '1', '1', '1', '1', '1', '2'])
    const delays = times.slice(1, 6).map((time, index) => time - (times[index] ?? 0))
    expect([...new Set(delays)].sort((a, b) => a - b)).toEqual(delays)
    expect(acks(world)).toEqual(['puback 1 0x80', 'puback 2'])
    const error = { code: 'ERR_HANDLER_FAILED', cause: { message: 'poison' } }
    expect(world.seen('error')).toMatchObject([{ error }])
  })

  it("'retry' that succeeds: one ack, no event, order kept", async () => {
    const world = await agreed({ keepAlive: false })
    const { calls, handler } = failing({ times: 2 })
    await listen(world, async (message) => handler(message))
    await world.send(...series('a', 2))
    await world.clock.advance(60_000)
    expect([calls, acks(world)]).toEqual([['1', '1', '1', '2'], pubacks(1, 2)])
    expect([world.seen('error'), world.clock.pending]).toEqual([[], 0])
  })

  it("'reject', the default at QoS 0: no second call, an error event, then on", async () => {
    const world = await agreed()
    const { calls, handler } = failing()
    await listen(world, handler, { qos: 0 })
    await world.send(publish('a', '1'), publish('a', '2'))
    await world.clock.advance(60_000)
    expect([calls, world.seen('error').length]).toEqual([['1', '2'], 2])
  })

  it("'stop' detaches: the message and those behind it wait for the next subscription; done rejects", async () => {
    const world = await agreed()
    const { calls, handler } = failing()
    const handling = await listen(world, handler, { onError: 'stop' })
    await world.send(...series('a', 3))
    expect([calls, acks(world), world.peer.all('unsubscribe')]).toEqual([['1'], [], []])
    const error = { code: 'ERR_HANDLER_FAILED', cause: { message: 'poison' } }
    expect(await failure(handling.done)).toMatchObject(error)
    expect(await next(world)).toEqual(['1', '2', '3'])
  })

  it('a function gets error, message and attempt, and decides each time', async () => {
    const world = await agreed({ keepAlive: false })
    const given: unknown[] = []
    const problem = new Error('again')
    const onError: ListenOptions['onError'] = async (error, message, attempt) => {
      given.push([error, message.text(), attempt])
      return attempt < 8 ? 'retry' : 'reject'
    }
    await listen(world, () => Promise.reject(problem), { onError })
    await world.send(publish('a', 'x', 1))
    await world.clock.advance(600_000)
    expect(given).toEqual(times(8, (index) => [problem, 'x', index + 1]))
    expect(acks(world)).toEqual(['puback 1 0x80'])
  })

  it.each<[string, () => unknown]>([
    ['throws', () => expect.fail('worse')],
    ['rejects', () => Promise.reject(new Error('worse'))],
    ['says nonsense', () => 'whatever'],
  ])('a function that %s counts as reject', async (_what, onError) => {
    const world = await agreed({ keepAlive: false })
    await listen(world, failing().handler, { onError: onError as () => 'retry' })
    await world.send(publish('a', 'x', 1))
    await world.clock.advance(60_000)
    expect([acks(world), world.seen('error').length]).toEqual([['puback 1 0x80'], 1])
  })
})

describe('ending', () => {
  it('unsubscribe(): running turns end, done fulfils', async () => {
    const world = await agreed()
    const { gates, handler } = gated()
    const handling = await listen(world, handler)
    await world.send(publish('a', 'x', 1))
    await settled(world, handling.unsubscribe())
    expect(await world.outcome(handling.done)).toEqual({ state: 'pending' })
    gates[0]?.open()
    expect(await world.outcome(handling.done)).toMatchObject(fulfilled)
    expect([acks(world), world.peer.all('unsubscribe').length]).toEqual([['puback 1'], 1])
  })

  it('unsubscribe() inside the handler', async () => {
    const world = await agreed()
    const texts: string[] = []
    const handling: Handling = await listen(world, async (message) => {
      texts.push(message.text())
      await handling.unsubscribe()
    })
    await world.send(...series('a', 2))
    expect([texts, acks(world)]).toEqual([['1', '2'], pubacks(1, 2)])
    expect(await world.outcome(handling.done)).toMatchObject(fulfilled)
  })

  it('detach() while a message waits for its retry: it is not handled here again, and done fulfils', async () => {
    const world = await agreed({ keepAlive: false })
    const { calls, handler } = failing()
    const handling = await listen(world, handler)
    await world.send(publish('a', 'x', 1))
    handling.detach()
    await world.clock.advance(60_000)
    expect([calls, await next(world)]).toEqual([['x'], ['x']])
    expect(await world.outcome(handling.done)).toMatchObject(fulfilled)
  })

  it('until and async dispose', async () => {
    const world = await agreed()
    const until = new AbortController()
    const first = await listen(world, () => undefined, { until: until.signal })
    until.abort()
    expect(await world.outcome(first.done)).toMatchObject(fulfilled)
    const second = await listen(world, () => undefined, {}, 'b')
    await second[Symbol.asyncDispose]()
    expect(await world.outcome(second.done)).toMatchObject(fulfilled)
    expect(world.peer.all('unsubscribe').map(({ filters }) => filters)).toEqual([['a'], ['b']])
  })

  it('a lost connection: done rejects with the cause', async () => {
    const world = await agreed()
    const handling = await listen(world, () => undefined)
    world.peer.cut()
    const error = { code: 'ERR_CONNECTION_LOST' }
    expect(await settled(world, failure(handling.done))).toMatchObject(error)
  })

  it.each(['retry', 'reject', 'stop'] as const)(
    '%s: what fails during disconnect() has no ack',
    async (onError) => {
      const world = await agreed()
      const { gates, handler } = gated()
      await listen(world, handler, { onError })
      await world.send(publish('a', 'x', 1))
      const done = world.client.disconnect()
      await world.settle()
      gates[0]?.fail(new Error('late'))
      await settled(world, done)
      expect([acks(world), world.peer.received.at(-1)?.type]).toEqual([[], 'disconnect'])
    },
  )

  it.each<[string, (world: World, handling: Handling) => unknown]>([
    ['client.unsubscribe()', (world) => world.client.unsubscribe('a')],
    ['handling.unsubscribe()', (_world, handling) => handling.unsubscribe()],
    ['handling.detach()', (_world, handling) => handling.detach()],
  ])('`done` settles after %s with the client, though a handler hangs', async (_name, leave) => {
    const world = await agreed()
    const handling = await listen(world, () => new Promise(() => undefined))
    await world.send(publish('a', 'x', 1))
    await settled(world, Promise.resolve(leave(world, handling)))
    expect(await world.outcome(handling.done)).toEqual({ state: 'pending' })
    world.client.destroy()
    expect((await world.outcome(handling.done)).state).not.toBe('pending')
  })

  it('`done` settles when a handler of borrowed messages ends its own subscription, and acknowledges what it was in', async () => {
    const world = await agreed()
    const handling: Handling = await listen(world, () => handling.detach(), {
      lifetime: 'borrowed',
    })
    await world.send(...series('a', 2))
    expect(await world.outcome(handling.done)).toEqual({ state: 'fulfilled', value: undefined })
  })
})
