/** Reading a channel while something else goes on: schemas that take their time or never end, waits that are given up, endings of every kind. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Client } from '../../../src/client/node.js'
import { deferred } from '../../../src/common/abort.js'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { pause, turn } from '../../support/pausing.js'
import { coded, outcomeOf, pair, schemaOf, upTo } from './rig.js'

/** A schema that takes its time; negative numbers are none of its. */
const slowly = (wait: (value: number) => Promise<void>) =>
  schemaOf<number>(async (value) => {
    await wait(value as number)
    return (value as number) < 0 ? { issues: [{ message: 'negative' }] } : { value }
  })

/** A channel whose values wait until `open` is called. */
function gate() {
  const { promise, resolve: open } = deferred<void>()
  const gated = { waiting: 0, open, channel: mq.channel('g', mq.json(slowly(wait)), { qos: 1 }) }
  function wait(): Promise<void> {
    gated.waiting += 1
    return promise
  }
  return gated
}

async function send(client: Client, ...values: unknown[]): Promise<void> {
  for (const value of values) await client.publish('g', JSON.stringify(value), { qos: 1 })
}

describe('a schema that takes its time', () => {
  it('next() waits no longer than it may, and loses nothing', async () => {
    const { client, other } = await pair()
    const { channel, open } = gate()
    await using subscription = await channel.on(client).subscribe()
    await send(other, 1, 2)
    expect(await outcomeOf(subscription.next({ timeout: 30 }))).toEqual(coded('ERR_TIMEOUT'))
    const abort = new AbortController()
    const waiting = outcomeOf(subscription.next({ signal: abort.signal }))
    abort.abort()
    expect(await waiting).toEqual(coded('ERR_ABORTED'))
    open()
    expect([
      (await subscription.next())?.value,
      (await subscription.next({ timeout: 2000 }))?.value,
    ]).toEqual([1, 2])
  })

  it.each(['next', 'for await', 'batches', 'readable', 'read'] as const)(
    'what a wait left behind is the first of %s',
    async (reading) => {
      const { client, other } = await pair({ receiveMaximum: 2 })
      const { channel, open } = gate()
      await using subscription = await channel
        .on(client)
        .subscribe({ ack: reading === 'readable' ? 'manual' : 'auto' })
      await send(other, 1)
      if (reading === 'read') {
        await eventually(() => subscription.size === 1)
        const unsupported = coded('ERR_UNSUPPORTED_OPTION', { option: 'schema' })
        for (let time = 0; time < 3; time++) expect(() => subscription.read()).toThrow(unsupported)
      } else await expect(subscription.next({ timeout: 10 })).rejects.toEqual(coded('ERR_TIMEOUT'))
      const sending = send(other, 2, 3, 4)
      open()
      const got: number[] = []
      if (reading === 'next' || reading === 'read')
        while (got.length < 4)
          got.push((await subscription.next({ timeout: 2000 }))?.value as number)
      else if (reading === 'for await') {
        for await (const { value } of subscription) if (got.push(value) === 4) break
      } else if (reading === 'batches') {
        for await (const batch of subscription.batches())
          if (got.push(...batch.map(({ value }) => value)) === 4) break
      } else
        for await (const { value, message } of subscription.readable() as unknown as AsyncIterable<
          mq.Received<object, number>
        >) {
          message.ack()
          if (got.push(value) === 4) break
        }
      await sending
      expect(got).toEqual([1, 2, 3, 4])
    },
  )

  it.each(['next', 'for await', 'batches'] as const)(
    '%s ends with the subscription, also while a schema never does',
    async (reading) => {
      for (const ending of ['unsubscribe', 'detach', Symbol.asyncDispose] as const) {
        const { client, other } = await pair()
        const held = gate()
        const subscription = await held.channel.on(client).subscribe()
        const read = async (): Promise<string> => {
          if (reading === 'next') return String(await subscription.next())
          if (reading === 'batches')
            for await (const batch of subscription.batches())
              throw new Error(`${batch.length} came`)
          else for await (const { value } of subscription) throw new Error(`${value} came`)
          return 'undefined'
        }
        const ended = read()
        await send(other, 1)
        await eventually(() => held.waiting === 1)
        await subscription[ending]()
        expect(await outcomeOf(ended), String(ending)).toBe('undefined')
      }
    },
  )

  it('messages that are lent are kept meanwhile', async () => {
    const { client, other } = await pair()
    for (const ack of ['auto', 'manual', 'on-receive'] as const) {
      const channel = mq.channel('g', mq.json(slowly(() => pause(3)))).on(client)
      await using subscription = await channel.subscribe({
        qos: 1,
        lifetime: 'borrowed',
        ack,
        onInvalid: 'deliver',
      })
      await send(other, 1, -2, 3)
      const seen: unknown[] = []
      for (let n = 0; n < 3; n++) {
        const received = await subscription.next({ timeout: 2000 })
        const { topic } = received?.message ?? {}
        seen.push(
          `${received?.value ?? received?.error?.code} ${topic} ${received?.message.text()}`,
        )
        if (ack === 'manual') received?.message.ack()
      }
      expect(seen, ack).toEqual(['1 g 1', 'ERR_INVALID_PAYLOAD g -2', '3 g 3'])
    }
  })

  it('listen: concurrency keeps the order of each topic', async () => {
    const { client, other } = await pair()
    const got: number[][] = [[], [], []]
    const channel = mq
      .channel('o/{id:number}', mq.json(slowly((value) => pause((value * 3) % 5))))
      .on(client)
    const options = { qos: 1, concurrency: 8 } as const
    await using _handling = await channel.listen(
      ({ params, value }) => void got[params.id]?.push(value),
      options,
    )
    for (let n = 0; n < 60; n++) await other.publish(`o/${n % 3}`, String(n), { qos: 1 })
    await eventually(() => got.flat().length === 60)
    expect(got).toEqual([0, 1, 2].map((id) => upTo(20).map((n) => 3 * n + id)))
  })
})

describe('leaving', () => {
  it.each(['for await', 'batches'] as const)(
    'return() of %s ends a wait that is under way',
    async (reading) => {
      const { client } = await pair()
      const subscription = await mq.channel('g', mq.number()).on(client).subscribe()
      const iterator: AsyncIterator<unknown> =
        reading === 'batches' ? subscription.batches() : subscription[Symbol.asyncIterator]()
      const waiting = iterator.next()
      await pause(5)
      for (const each of [iterator.return?.(), waiting])
        expect(await outcomeOf(each)).toEqual({ value: undefined, done: true })
    },
  )

  it('batches: what came before a payload that is thrown is handed out first', async () => {
    const { client, other } = await pair()
    const channel = mq.channel('g', mq.number(), { qos: 1 }).on(client)
    const subscription = await channel.subscribe({ onInvalid: 'throw' })
    await send(other, 1, 2, 'x', 4)
    await eventually(() => subscription.size === 4)
    const got: number[] = []
    const reading = (async () => {
      for await (const batch of subscription.batches()) got.push(...batch.map(({ value }) => value))
    })()
    await expect(reading).rejects.toEqual(coded('ERR_INVALID_PAYLOAD'))
    expect(got).toEqual([1, 2])
    expect(await outcomeOf(subscription.next())).toBeUndefined()
  })
})

describe('bad payloads without end', () => {
  it.each(['for await', 'next', 'batches'] as const)(
    '%s passes over them without remembering each',
    async (reading) => {
      let read = 0
      let worst = 0
      const message = {
        topic: 't',
        payload: new TextEncoder().encode('x'),
        payloadLength: 1,
        properties: {},
        text: () => 'x',
        ack: () => true,
      }
      const steps = 4000
      const source = {
        next: async () => {
          read += 1
          if (read % 1000 === 0) {
            await turn()
            worst = Math.max(worst, pending.size)
          }
          return read > steps
            ? { value: undefined, done: true }
            : { value: reading === 'batches' ? [message] : message, done: false }
        },
        return: async () => ({ value: undefined, done: true }),
        [Symbol.asyncIterator]: () => source,
      }
      const from = {
        ...source,
        next: async () => (reading === 'next' ? (await source.next()).value : source.next()),
        batches: () => source,
      }
      from[Symbol.asyncIterator] = () => source
      const subscriber = {
        subscribe: async () => from,
        subscription: () => from,
        listen: async () => from,
        on: () => () => undefined,
      }
      // Promises that were made and have not settled.
      const { createHook } = await import('node:async_hooks')
      const pending = new Set<number>()
      const hook = createHook({
        init: (id, type) => type === 'PROMISE' && pending.add(id),
        promiseResolve: (id) => pending.delete(id),
        destroy: (id) => pending.delete(id),
      })
      const subscription = await mq
        .channel('t', mq.number())
        .on(subscriber as unknown as mq.Subscriber)
        .subscribe()
      hook.enable()
      try {
        if (reading === 'next') await subscription.next()
        else if (reading === 'batches')
          for await (const _ of subscription.batches()) throw new Error('one came')
        else for await (const _ of subscription) throw new Error('one came')
      } finally {
        hook.disable()
      }
      expect([read, subscription.invalid]).toEqual([steps + 1, steps])
      expect(worst).toBeLessThan(200)
    },
  )
})

describe('a clock that is set back an hour', () => {
  // Timers go on.
  function setBack(): void {
    const now = Date.now()
    const spy = vi.spyOn(Date, 'now').mockImplementation(() => now - 3_600_000)
    onTestFinished(() => spy.mockRestore())
  }

  it('a stream of answers ends after its timeout', async () => {
    const { client, other } = await pair()
    const counting = mq.operation('count', mq.text(), mq.json<number>())
    await using _serving = await counting.on(other).serve(async function* () {
      yield 1
      await pause(400)
    })
    const stream = counting.on(client).stream('', { timeout: 150 })
    expect((await stream.next()).value).toBe(1)
    const next = stream.next()
    setBack()
    expect(await outcomeOf(next)).toEqual(coded('ERR_TIMEOUT'))
  })

  it('next() waits no longer, whatever comes that is no value', async () => {
    const { client, other } = await pair()
    const { channel, open } = gate()
    open()
    await using subscription = await channel.on(client).subscribe({ onInvalid: 'skip' })
    const next = subscription.next({ timeout: 100 })
    setBack()
    await send(other, -1)
    expect(await outcomeOf(next)).toEqual(coded('ERR_TIMEOUT'))
  })

  it('retained messages end after a silence among live ones', async () => {
    const { client, other } = await pair()
    const live = setInterval(() => void other.publish('g', 'live').catch(() => undefined), 5)
    onTestFinished(() => clearInterval(live))
    const reading = mq.retained(client, 'g', { quiet: 100 }).next()
    await pause(30)
    setBack()
    expect(await outcomeOf(reading)).toEqual({ done: true, value: undefined })
  })

  it('the latest value of a topic expires', async () => {
    const { client, other } = await pair()
    await using latest = mq.channel('g', mq.json()).on(client).latest({ expire: 60 })
    await latest.ready
    await send(other, 1)
    await eventually(() => latest.size === 1)
    setBack()
    await eventually(() => latest.size === 0, 'its end')
  })
})
