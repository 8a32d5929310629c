/** `listen`: order, concurrency, acknowledgement when the handler is done, and the four answers to a handler that fails. */
import { describe, expect, it } from 'vitest'
import type { Handler, Handling, ListenOptions } from '../../../src/client/api/index.js'
import { MqttError } from '../../../src/errors.js'
import type { World } from './harness.js'
import { acks, agreed, type Gate, gate, obliging, pubacks, publish, quiet, series, subscribe, takenTexts } from './incoming.js'

async function listen(world: World, handler: Handler, options: ListenOptions = { qos: 1 }, filter = 'a'): Promise<Handling> {
  const promise = quiet(world.client.listen(filter, handler, options))
  await world.settle()
  return promise
}

/** A handler whose calls each wait for their own gate. */
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

const failing = (): Handler => () => Promise.reject(new Error('handler'))

describe('handling', () => {
  it('one after the other, in order, acknowledged when done', async () => {
    const world = await agreed()
    const { texts, gates, handler } = gated()
    await listen(world, handler)
    await world.send(...series('a', 3))
    expect(texts).toEqual(['1'])
    expect(acks(world)).toEqual([])
    gates[0]?.open()
    await world.settle()
    expect(texts).toEqual(['1', '2'])
    expect(acks(world)).toEqual(['puback 1'])
    gates[1]?.open()
    await world.settle()
    gates[2]?.open()
    await world.settle()
    expect(texts).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('concurrency: that many at a time, started in order; acks in the order of arrival whatever ends first', async () => {
    const world = await agreed()
    const { texts, gates, handler } = gated()
    await listen(world, handler, { qos: 1, concurrency: 3 })
    await world.send(...series('a', 5))
    expect(texts).toEqual(['1', '2', '3'])
    gates[1]?.open()
    gates[2]?.open()
    await world.settle()
    expect(texts).toEqual(['1', '2', '3', '4', '5'])
    expect(acks(world)).toEqual([])
    gates[0]?.open()
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('a synchronous handler, one that gives something, one that gives a thenable', async () => {
    const thenable = Object.fromEntries([['then', (done: () => void) => done()]])
    for (const handler of [() => undefined, () => 5, () => thenable] as Handler[]) {
      const world = await agreed()
      await listen(world, handler)
      await world.send(...series('a', 2))
      expect(acks(world)).toEqual(pubacks(1, 2))
    }
  })

  it('the handler runs after the read that brought its message', async () => {
    const world = await agreed()
    const sizes: number[] = []
    const handling = await listen(world, () => {
      sizes.push(world.peer.all('puback').length)
    })
    await world.send(...series('a', 3))
    expect(sizes).toHaveLength(3)
    expect(handling.granted).toMatchObject([{ filter: 'a', qos: 1 }])
  })

  it("ack 'on-receive' acknowledges before the handler is done, and never refuses", async () => {
    const world = await agreed()
    const { gates, handler } = gated()
    await listen(world, handler, { qos: 1, ack: 'on-receive', onError: 'reject' })
    await world.send(...series('a', 2))
    expect(acks(world)).toEqual(pubacks(1, 2))
    gates[0]?.fail(new Error('late'))
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 2))
    expect(world.seen('error')).toHaveLength(1)
  })

  it('ack() inside the handler decides; a failure after it changes nothing', async () => {
    const world = await agreed()
    await listen(
      world,
      (message) => {
        message.ack(0x99)
        throw new Error('after')
      },
      { qos: 1, onError: 'reject' },
    )
    await world.send(publish('a', 'x', 1))
    expect(acks(world)).toEqual(['puback 1 0x99'])
  })

  it.each([undefined, 5, {}])('a handler that is none is ERR_INVALID_HANDLER: %j', async (handler) => {
    const world = await agreed()
    const call = quiet(world.client.listen('a', handler as unknown as Handler))
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_INVALID_HANDLER' } })
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it.each([{ concurrency: 0 }, { concurrency: 1.5 }, { onError: 'panic' }, { ack: 'manual' }])('options that are none: %j', async (options) => {
    const world = await agreed()
    const call = quiet(world.client.listen('a', () => undefined, options as ListenOptions))
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_INVALID_OPTION' } })
  })

  it('a refused filter rejects', async () => {
    const world = await agreed({}, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x87] } : obliging(packet),
    )
    const call = quiet(world.client.listen('a', () => undefined))
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_SUBSCRIBE_REFUSED' } })
  })
})

describe('onError', () => {
  it("'retry', the default at QoS 1: five times with growing delays, then 0x80 with an error event, then on", async () => {
    const world = await agreed({ keepAlive: false })
    const calls: { text: string; at: number }[] = []
    await listen(world, (message) => {
      calls.push({ text: message.text(), at: world.clock.now() })
      if (message.text() === '1') throw new Error('poison')
    })
    await world.send(...series('a', 2))
    expect(calls.map((call) => call.text)).toEqual(['1'])
    await world.clock.advance(120_000)
    expect(calls.map((call) => call.text)).toEqual(['1', '1', '1', '1', '1', '1', '2'])
    const delays = calls.slice(1, 6).map((call, index) => call.at - (calls[index]?.at ?? 0))
    for (let index = 1; index < delays.length; index++) expect(delays[index]).toBeGreaterThan(delays[index - 1] ?? 0)
    expect(acks(world)).toEqual(['puback 1 0x80', 'puback 2'])
    expect(world.seen('error')).toHaveLength(1)
    expect(world.seen('error')[0]?.error).toMatchObject({ code: 'ERR_HANDLER_FAILED', cause: { message: 'poison' } })
  })

  it("'retry' that succeeds: one ack, no event, order kept", async () => {
    const world = await agreed({ keepAlive: false })
    const texts: string[] = []
    await listen(world, async (message) => {
      texts.push(message.text())
      if (texts.length <= 2) throw new Error('not yet')
    })
    await world.send(...series('a', 2))
    await world.clock.advance(60_000)
    expect(texts).toEqual(['1', '1', '1', '2'])
    expect(acks(world)).toEqual(pubacks(1, 2))
    expect(world.seen('error')).toEqual([])
    expect(world.clock.pending).toBe(0)
  })

  it("'reject', the default at QoS 0: no second call, an error event, then on", async () => {
    const world = await agreed()
    const texts: string[] = []
    await listen(
      world,
      (message) => {
        texts.push(message.text())
        throw new Error('no')
      },
      {},
    )
    await world.send(publish('a', '1'), publish('a', '2'))
    await world.clock.advance(60_000)
    expect(texts).toEqual(['1', '2'])
    expect(world.seen('error')).toHaveLength(2)
  })

  it("'reject': 0x80 at QoS 1 and 2", async () => {
    const world = await agreed({}, obliging)
    await listen(world, failing(), { qos: 2, onError: 'reject' })
    await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }))
    expect(acks(world)).toEqual(['puback 1 0x80', 'pubrec 2 0x80'])
    expect(world.seen('error')).toHaveLength(2)
  })

  it("'stop' detaches: the message and those behind it wait for the next subscription; done rejects", async () => {
    const world = await agreed()
    let calls = 0
    const handling = await listen(
      world,
      () => {
        calls += 1
        throw new Error('stop here')
      },
      { qos: 1, onError: 'stop' },
    )
    await world.send(...series('a', 3))
    expect(calls).toBe(1)
    expect(acks(world)).toEqual([])
    expect(world.peer.all('unsubscribe')).toEqual([])
    expect(await world.outcome(handling.done)).toMatchObject({
      state: 'rejected',
      error: { code: 'ERR_HANDLER_FAILED', cause: { message: 'stop here' } },
    })
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['1', '2', '3'])
  })

  it('a function is told error, message and attempt, and decides each time', async () => {
    const world = await agreed({ keepAlive: false })
    const told: unknown[] = []
    const problem = new Error('again')
    await listen(world, () => Promise.reject(problem), {
      qos: 1,
      onError: async (error, message, attempt) => {
        told.push([error, message.text(), attempt])
        return attempt < 8 ? 'retry' : 'reject'
      },
    })
    await world.send(publish('a', 'x', 1))
    await world.clock.advance(600_000)
    expect(told).toEqual(Array.from({ length: 8 }, (_, index) => [problem, 'x', index + 1]))
    expect(acks(world)).toEqual(['puback 1 0x80'])
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('worse')
      },
    ],
    ['rejects', () => Promise.reject(new Error('worse'))],
    ['says nonsense', () => 'whatever' as 'retry'],
  ])('a function that %s counts as reject', async (_what, onError) => {
    const world = await agreed({ keepAlive: false })
    await listen(world, failing(), { qos: 1, onError: onError as () => 'retry' })
    await world.send(publish('a', 'x', 1))
    await world.clock.advance(60_000)
    expect(acks(world)).toEqual(['puback 1 0x80'])
    expect(world.seen('error')).toHaveLength(1)
  })

  it('while one message waits for its retry, others are handled up to the concurrency', async () => {
    const world = await agreed({ keepAlive: false })
    const texts: string[] = []
    await listen(
      world,
      (message) => {
        texts.push(message.text())
        if (message.text() === '1') throw new Error('always')
      },
      { qos: 1, concurrency: 2 },
    )
    await world.send(...series('a', 4))
    expect(texts).toEqual(['1', '2', '3', '4'])
    expect(acks(world)).toEqual([])
    await world.clock.advance(120_000)
    expect(acks(world)).toEqual(['puback 1 0x80', 'puback 2', 'puback 3', 'puback 4'])
  })

  it('a throwing error listener harms nobody', async () => {
    const world = await agreed()
    world.client.on('error', () => {
      throw new Error('listener')
    })
    await listen(world, failing(), { qos: 1, onError: 'reject' })
    await world.send(...series('a', 2))
    expect(acks(world)).toEqual(['puback 1 0x80', 'puback 2 0x80'])
  })
})

describe('ending', () => {
  it('unsubscribe(): running turns end, done fulfils', async () => {
    const world = await agreed()
    const { gates, handler } = gated()
    const handling = await listen(world, handler)
    await world.send(publish('a', 'x', 1))
    const left = handling.unsubscribe()
    await world.settle()
    await left
    expect(await world.outcome(handling.done)).toEqual({ state: 'pending' })
    gates[0]?.open()
    expect(await world.outcome(handling.done)).toMatchObject({ state: 'fulfilled' })
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.all('unsubscribe')).toHaveLength(1)
  })

  it('unsubscribe() inside the handler', async () => {
    const world = await agreed()
    const texts: string[] = []
    let handling: Handling | undefined
    handling = await listen(world, async (message) => {
      texts.push(message.text())
      await handling?.unsubscribe()
    })
    await world.send(...series('a', 2))
    expect(texts).toEqual(['1', '2'])
    expect(await world.outcome(handling.done)).toMatchObject({ state: 'fulfilled' })
    expect(acks(world)).toEqual(pubacks(1, 2))
  })

  it('detach(): a running turn does not acknowledge any more, the next subscription gets its message', async () => {
    const world = await agreed()
    const { gates, handler } = gated()
    const handling = await listen(world, handler)
    await world.send(...series('a', 2))
    handling.detach()
    gates[0]?.open()
    expect(await world.outcome(handling.done)).toMatchObject({ state: 'fulfilled' })
    expect(acks(world)).toEqual([])
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['1', '2'])
  })

  it('detach() while a message waits for its retry: it is not handled here again', async () => {
    const world = await agreed({ keepAlive: false })
    let calls = 0
    const handling = await listen(world, () => {
      calls += 1
      throw new Error('no')
    })
    await world.send(publish('a', 'x', 1))
    handling.detach()
    await world.clock.advance(60_000)
    expect(calls).toBe(1)
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['x'])
  })

  it('until and async dispose', async () => {
    const world = await agreed()
    const until = new AbortController()
    const first = await listen(world, () => undefined, { qos: 1, until: until.signal })
    until.abort()
    expect(await world.outcome(first.done)).toMatchObject({ state: 'fulfilled' })
    const second = await listen(world, () => undefined, { qos: 1 }, 'b')
    await second[Symbol.asyncDispose]()
    expect(await world.outcome(second.done)).toMatchObject({ state: 'fulfilled' })
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a'], ['b']])
  })

  it('a lost connection: done rejects with the cause', async () => {
    const world = await agreed()
    const handling = await listen(world, () => undefined)
    world.peer.cut()
    expect(await world.outcome(handling.done)).toMatchObject({ state: 'rejected', error: { code: 'ERR_CONNECTION_LOST' } })
  })

  it('disconnect() lets the running handler finish, acknowledges it, and starts no other; it may publish meanwhile', async () => {
    const world = await agreed()
    const body = gate()
    const texts: string[] = []
    let receipt: unknown
    const handling = await listen(world, async (message) => {
      texts.push(message.text())
      await body.promise
      receipt = await world.client.publish('b', 'last', { qos: 1 })
    })
    await world.send(...series('a', 2))
    const done = quiet(world.client.disconnect())
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    body.open()
    await world.settle()
    expect(await world.outcome(done)).toMatchObject({ state: 'fulfilled' })
    expect(await world.outcome(handling.done)).toMatchObject({ state: 'fulfilled' })
    expect(receipt).toMatchObject({ reasonCode: 0 })
    expect(texts).toEqual(['1'])
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })

  it('disconnect() lets a running handler of a QoS 0 message finish too', async () => {
    const world = await agreed()
    const { gates, handler } = gated()
    await listen(world, handler, {})
    await world.send(publish('a', 'x'))
    const done = quiet(world.client.disconnect())
    await world.settle()
    expect(world.peer.all('disconnect')).toEqual([])
    gates[0]?.open()
    expect(await world.outcome(done)).toMatchObject({ state: 'fulfilled' })
    expect(world.peer.all('disconnect')).toHaveLength(1)
  })

  it.each(['retry', 'reject', 'stop'] as const)(
    'a handler that fails after disconnect() began leaves its message unacknowledged: %s',
    async (onError) => {
      const world = await agreed()
      const { gates, handler } = gated()
      await listen(world, handler, { qos: 1, onError })
      await world.send(publish('a', 'x', 1))
      const done = quiet(world.client.disconnect())
      await world.settle()
      gates[0]?.fail(new Error('late'))
      await world.settle()
      expect(await world.outcome(done)).toMatchObject({ state: 'fulfilled' })
      expect(acks(world)).toEqual([])
      expect(world.peer.received.at(-1)?.type).toBe('disconnect')
    },
  )

  it('disconnect() during the wait for a retry: no further call, unacknowledged, bounded by the timeout', async () => {
    const world = await agreed()
    let calls = 0
    await listen(world, () => {
      calls += 1
      throw new Error('no')
    })
    await world.send(publish('a', 'x', 1))
    const done = quiet(world.client.disconnect({ timeout: 5000 }))
    await world.clock.advance(5000)
    expect(await world.outcome(done)).toMatchObject({ state: 'fulfilled' })
    expect(calls).toBe(1)
    expect(acks(world)).toEqual([])
    expect(world.clock.pending).toBe(0)
  })

  it('disconnect({ timeout: 0 }) inside the handler', async () => {
    const world = await agreed()
    let error: unknown
    await listen(world, async () => {
      await world.client.disconnect({ timeout: 0 }).catch((reason: unknown) => {
        error = reason
      })
    })
    await world.send(publish('a', 'x', 1))
    expect(error).toBeUndefined()
    expect(world.client.state).toBe('closed')
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })

  it('publish, subscribe and unsubscribe of another filter inside the handler', async () => {
    const world = await agreed({}, obliging)
    await subscribe(world, 'old')
    const log: string[] = []
    await listen(world, async (message) => {
      await world.client.publish('b', message.text(), { qos: 2 })
      const subscription = await world.client.subscribe(`new/${message.text()}`)
      await world.client.unsubscribe('old')
      log.push(`${message.text()} ${subscription.granted.length}`)
    })
    await world.send(...series('a', 2))
    expect(log).toEqual(['1 1', '2 1'])
    expect(acks(world).filter((ack) => ack.startsWith('puback'))).toEqual(pubacks(1, 2))
  })

  it('nothing that a handler throws escapes', async () => {
    const world = await agreed()
    for (const thrown of [undefined, null, 'text', new MqttError('ERR_TIMEOUT', 'x')]) {
      const handling = await listen(
        world,
        () => {
          throw thrown
        },
        { qos: 1, onError: 'reject' },
      )
      await world.send(publish('a', 'x', 1))
      const left = handling.unsubscribe()
      await world.settle()
      await left
    }
    expect(acks(world)).toEqual(new Array(4).fill('puback 1 0x80'))
  })
})
