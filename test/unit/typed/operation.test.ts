/** Operations and streams of answers, through a broker in memory, also while links are cut. */
import { describe, expect, it } from 'vitest'
import type { Client } from '../../../src/client/node.js'
import { MqttError } from '../../../src/errors.js'
import type { MemoryBroker } from '../../../src/testing/broker/index.js'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { unhandledIn } from '../client/unhandled.js'
import { brokerOf, clientOn } from './rig.js'

const setpoint = mq.operation('plant/{line}/setpoint', mq.json<{ value: number }>(), mq.json<{ was: number }>())
const counting = mq.operation('count/{to:number}', mq.text(), mq.json<number>())

async function pair(): Promise<{ broker: MemoryBroker; caller: Client; server: Client }> {
  const broker = brokerOf()
  return { broker, caller: await clientOn(broker), server: await clientOn(broker) }
}

describe('an operation', () => {
  it('calls and serves', async () => {
    const { caller, server } = await pair()
    await using serving = await setpoint.on(server).serve(({ params, value }) => ({ was: value.value + Number(params.line) }))
    expect(await setpoint.on(caller).call({ line: 3 }, { value: 4 })).toEqual({ was: 7 })
    expect(serving.ignored).toBe(0)
  })

  it('serves some parameters only, alone or as one of several', async () => {
    const { caller, server } = await pair()
    await using one = await setpoint.on(server).serve({ line: 1 }, () => ({ was: 1 }))
    await using shared = await setpoint.on(server).serve({ line: 2 }, async () => ({ was: 2 }), { share: 'workers' })
    expect(one.granted.map(({ filter }) => filter)).toEqual(['plant/1/setpoint'])
    expect(shared.granted.map(({ filter }) => filter)).toEqual(['$share/workers/plant/2/setpoint'])
    const bound = setpoint.on(caller)
    expect(await Promise.all([bound.call({ line: 1 }, { value: 0 }), bound.call({ line: 2 }, { value: 0 })])).toEqual([{ was: 1 }, { was: 2 }])
  })

  it('a request that is none is answered with an error, once, and the handler is not called', async () => {
    const { caller, server } = await pair()
    let calls = 0
    await using _serving = await setpoint.on(server).serve(() => ({ was: ++calls }), { qos: 1 })
    const wrong = mq.operation('plant/{line}/setpoint', mq.text(), mq.json<{ was: number }>()).on(caller)
    await expect(wrong.call({ line: 1 }, '{')).rejects.toMatchObject({ code: 'ERR_REMOTE', reasonName: 'ERR_INVALID_PAYLOAD' })
    await expect(wrong.call({ line: 1 }, '')).rejects.toMatchObject({ code: 'ERR_REMOTE', reasonName: 'ERR_INVALID_PAYLOAD' })
    expect(calls).toBe(0)
  })

  it('an answer that is none is the error of its caller; a handler that fails is told as the responder chose', async () => {
    const { caller, server } = await pair()
    await using _serving = await setpoint.on(server).serve(({ params }) => {
      if (params.line === 'told') throw new MqttError('ERR_REMOTE', 'too hot', { reasonName: 'HOT' })
      if (params.line === 'quiet') throw new Error('a secret')
      return undefined as never
    })
    const bound = setpoint.on(caller)
    await expect(bound.call({ line: 'told' }, { value: 1 })).rejects.toMatchObject({ code: 'ERR_REMOTE', reasonName: 'HOT', message: 'too hot' })
    const quiet = await bound.call({ line: 'quiet' }, { value: 1 }).catch((error: unknown) => error)
    expect(quiet).toMatchObject({ code: 'ERR_REMOTE', reasonName: 'ERR_HANDLER_FAILED' })
    expect(String(quiet)).not.toContain('secret')
    await expect(bound.call({ line: 'none' }, { value: 1 })).rejects.toMatchObject({ code: 'ERR_REMOTE' })
    await using _other = await mq
      .operation('plant/x/setpoint', mq.json(), mq.text())
      .on(server)
      .serve(() => 'no json')
    const strange = mq.operation('plant/x/setpoint', mq.json(), mq.json()).on(caller)
    await expect(strange.call({}, { timeout: 2000 })).rejects.toMatchObject({ code: expect.stringMatching(/ERR_INVALID_PAYLOAD|ERR_REMOTE/) })
    await expect(bound.call({ line: 'a/b' }, { value: 1 })).rejects.toMatchObject({ code: 'ERR_INVALID_TOPIC' })
  })
})

describe('an operation without input or output', () => {
  it('takes no value, and gives none', async () => {
    const { broker, caller, server } = await pair()
    const requests: number[] = []
    await (await clientOn(broker)).listen('pump/#', ({ payloadLength }) => void requests.push(payloadLength))
    const start = mq.operation('pump/{id}/start')
    const level = mq.operation('pump/level', undefined, mq.number())
    const set = mq.operation('pump/set', mq.number())
    const all = mq.contract({ start, level, set })
    expect([start.takes, level.takes, set.takes, setpoint.takes]).toEqual([1, 0, 1, 2])
    const seen: unknown[] = []
    const serving = all.on(server)
    await using _start = await serving.start.serve(({ params, value }) => void seen.push([params.id, value]))
    await using _level = await serving.level.serve(async function* () {
      yield 1
      yield 2
    })
    await using _set = await serving.set.serve(({ value }) => void seen.push(value))
    const asking = all.on(caller)
    expect(await asking.start.call({ id: 7 })).toBe(undefined)
    expect(await asking.start.call({ id: 8 }, { timeout: 5000 })).toBe(undefined)
    expect(await asking.level.call({ timeout: 5000 })).toBe(1)
    expect(await asking.set.call(5)).toBe(undefined)
    const values: number[] = []
    for await (const value of asking.level.stream({ window: 1 })) values.push(value)
    expect(values).toEqual([1, 2])
    expect(seen).toEqual([['7', undefined], ['8', undefined], 5])
    expect(requests).toEqual([0, 0, 0, 1, 0])
    // What an old caller sends is not looked at.
    expect(await mq.operation('pump/{id}/start', mq.json(), mq.text()).on(caller).call({ id: 9 }, { old: true })).toBe('')
    expect(seen.at(-1)).toEqual(['9', undefined])
  })

  it('refuses what is no argument of it', async () => {
    const { caller } = await pair()
    const start = mq.operation('pump/{id}/start').on(caller)
    await expect((start as { call(...call: unknown[]): Promise<void> }).call({ id: 1 }, undefined, { timeout: 1 })).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
    })
    await expect(start.call({ id: 1 }, 'value' as never)).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION' })
    await expect(start.stream({ id: 1 }, 'value' as never).next()).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION' })
    expect(() => mq.operation('a', null as never)).toThrow('codec must have encode and decode')
  })
})

describe('defaults of an operation', () => {
  it('go for requests and for serve; a call says otherwise', async () => {
    const { caller, server } = await pair()
    const save = mq.operation('save', mq.text(), mq.number(), { qos: 1, timeout: 60, serve: { share: 'workers', onError: 'reject' } })
    const qualities: number[] = []
    let hangs = false
    const serving = await save.on(server).serve(
      ({ message, value }) => {
        qualities.push(message.qos)
        if (value === 'fails') throw new Error('it does')
        return hangs ? new Promise<number>(() => undefined) : qualities.length
      },
      { concurrency: 10 },
    )
    expect(serving.granted).toMatchObject([{ filter: '$share/workers/save', qos: 1 }])
    expect(await save.on(caller).call('x')).toBe(1)
    expect(await save.on(caller).call('x', { qos: 0 })).toBe(2)
    expect(await failure(save.on(caller).call('fails'))).toMatchObject({ code: 'ERR_REMOTE' })
    expect(qualities).toEqual([1, 0, 1])
    hangs = true
    expect(await failure(save.on(caller).call('x'))).toMatchObject({ code: 'ERR_TIMEOUT', message: expect.stringContaining('60 ms') })
    expect(await failure(save.on(caller).call('x', { timeout: 80 }))).toMatchObject({ message: expect.stringContaining('80 ms') })
    expect(await failure(save.on(caller).stream('x').next())).toMatchObject({ code: 'ERR_TIMEOUT', message: expect.stringContaining('60 ms') })
    const other = await save.on(server).serve(() => 0, { share: 'others', qos: 0 })
    expect(other.granted).toMatchObject([{ filter: '$share/others/save', qos: 0 }])
    await serving.unsubscribe()
    await other.unsubscribe()
  })

  it('serve goes over the quality of both', async () => {
    const { server } = await pair()
    const save = mq.operation('save', mq.text(), mq.number(), { qos: 1, serve: { qos: 2 } })
    await using serving = await save.on(server).serve(() => 1)
    expect(serving.granted).toMatchObject([{ qos: 2 }])
  })

  it('are checked when the operation is made', () => {
    for (const [defaults, what] of [
      [{ timeout: 0 }, 'timeout must be an integer from 1'],
      [5, 'options must be an object'],
      [{ serve: 'no' }, 'options must be an object'],
    ] as const)
      expect(() => mq.operation('a', undefined, undefined, defaults as never)).toThrow(what)
  })
})

/** What a promise rejects with. */
const failure = (promise: Promise<unknown> | undefined): Promise<unknown> =>
  Promise.race([promise?.then(() => 'fulfilled'), new Promise((resolve) => setTimeout(resolve, 3000, 'it waits'))]).catch((error: unknown) => error)

describe('what a caller is told of its request', () => {
  it('an answer that is none: the request was handled, so that its outcome is unknown', async () => {
    const { caller, server } = await pair()
    await using _serving = await mq
      .operation('a', mq.text(), mq.text())
      .on(server)
      .serve(() => 'no json')
    const late = mq.codec<string>({ encode: String, decode: (async () => Promise.reject(new Error('none'))) as never })
    for (const answer of [mq.json(), late]) {
      const wrong = mq.operation('a', mq.text(), answer as mq.Codec<unknown>).on(caller)
      const told = { code: 'ERR_INVALID_PAYLOAD', fault: 'remote', outcome: 'unknown', issues: [expect.anything()] }
      expect(await failure(wrong.call('x'))).toMatchObject(told)
      expect(await failure(wrong.stream('x').next())).toMatchObject(told)
    }
  })

  it.each(['call', 'stream'] as const)('an answer too large for the broker, of a %s: its code, behind what came before', async (how) => {
    const broker = brokerOf({ maximumPacketSize: 1000 } as never)
    const [caller, server] = [await clientOn(broker), await clientOn(broker)]
    const reported: unknown[] = []
    const large = mq.operation('large', mq.text(), mq.text())
    await using serving = await large.on(server).serve(how === 'call' ? () => 'x'.repeat(2000) : parts)
    async function* parts(): AsyncGenerator<string> {
      yield 'small'
      try {
        yield 'x'.repeat(2000)
        yield 'more'
      } finally {
        reported.push('ended')
      }
    }
    const told = { code: 'ERR_REMOTE', reasonName: 'ERR_PACKET_TOO_LARGE', outcome: 'unknown' }
    if (how === 'call') {
      expect(await failure(large.on(caller).call(''))).toMatchObject(told)
      expect(serving.failed).toBe(1)
      return
    }
    const stream = large.on(caller).stream('')
    expect((await stream.next()).value).toBe('small')
    expect(await failure(stream.next())).toMatchObject(told)
    await eventually(() => reported.length === 1, 'the end of the generator')
  })

  it('answers that are missing, and what was never asked', async () => {
    const { broker, caller } = await pair()
    const plain = await clientOn(broker)
    await using _serving = await plain.listen('count/+', async ({ properties: { responseTopic = '', correlationData } }) => {
      for (const seq of ['0', '2']) await plain.publish(responseTopic, '1', { properties: { correlationData, userProperties: [['seq', seq]] } })
    })
    const stream = counting.on(caller).stream({ to: 1 }, '')
    await stream.next()
    expect(await failure(stream.next())).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
    const idle = await clientOn(brokerOf())
    await idle.reconnect({ force: true }).catch(() => undefined)
    const aborted = counting.on(idle).stream({ to: 1 }, '', { signal: AbortSignal.abort() })
    expect(await failure(aborted.next())).toMatchObject({ code: 'ERR_ABORTED', outcome: 'not-sent' })
  })

  it.each(['drain', 'disconnect', 'disconnect at once', 'unsubscribe'])('a server that ends by %s, in each state of its streams', async (how) => {
    const { caller, server } = await pair()
    let begin: () => void = () => undefined
    const serving = await counting.on(server).serve(
      async function* ({ params }) {
        if (params.to === 0) await new Promise<void>(() => undefined)
        for (let n = 0; ; n++) {
          yield n
          if (n === params.to) await new Promise<void>(() => undefined)
        }
      },
      { concurrency: 4 },
    )
    const slow = mq.operation('slow', mq.text(), mq.json<number>())
    await slow.on(server).serve((async () => {
      await new Promise<void>((resolve) => {
        begin = resolve
      })
      return (async function* () {
        yield 1
      })()
    }) as never)
    const bound = counting.on(caller)
    // One that waits for credit, one whose generator is silent, one before its first answer, and one whose handler has given no generator yet.
    const streams = [bound.stream({ to: 999 }, '', { window: 2 }), bound.stream({ to: 1 }, ''), bound.stream({ to: 0 }, '')]
    for (const stream of streams.slice(0, 2)) await stream.next()
    const waiting = streams.slice(1).map(async (stream) => {
      for await (const _ of stream);
    })
    const late = how === 'unsubscribe' ? undefined : slow.on(caller).stream('').next()
    await new Promise((resolve) => setTimeout(resolve, 50))
    const ending =
      how === 'unsubscribe' ? serving.unsubscribe() : how === 'drain' ? server.drain() : server.disconnect(how.endsWith('once') ? { timeout: 0 } : {})
    const told = { code: 'ERR_REMOTE', reasonName: 'ERR_CLOSED', outcome: 'unknown' }
    for (const each of waiting) expect(await failure(each)).toMatchObject(told)
    begin()
    // Nothing leaves any more where the end waits for nothing.
    if (late !== undefined && !how.endsWith('once')) expect(await failure(late)).toMatchObject(told)
    const rest = (async () => {
      for await (const _ of streams[0] ?? []);
    })()
    expect(await failure(rest)).toMatchObject(told)
    await ending
  })
})

describe('a stream of answers', () => {
  async function* count({ params }: { params: { to: number } }): AsyncGenerator<number> {
    for (let n = 0; n < params.to; n++) yield n
  }

  it('comes in order, with credit, and ends', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(count)
    const got: number[] = []
    for await (const n of counting.on(caller).stream({ to: 200 }, '', { window: 5 })) got.push(n)
    expect(got).toEqual(Array.from({ length: 200 }, (_, n) => n))
  })

  it('never has more under way than the window', async () => {
    const { caller, server } = await pair()
    let made = 0
    await using _serving = await counting.on(server).serve(async function* () {
      for (;;) yield made++
    })
    const stream = counting.on(caller).stream({ to: 0 }, '', { window: 4 })
    expect((await stream.next()).value).toBe(0)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(made).toBeLessThanOrEqual(7)
    await stream.return?.()
  })

  it('credit and requests that come twice change nothing; credit of one stream is for no other', async () => {
    const { broker, server } = await pair()
    const plain = await clientOn(broker)
    let begun = 0
    await using _serving = await counting.on(server).serve(async function* () {
      begun += 1
      for (let n = 0; ; n++) yield n
    })
    const answers = await plain.subscribe('answers/+', { qos: 1 })
    const counts = new Map<string, number>()
    const controls = new Map<string, string>()
    const reading = (async () => {
      for await (const { topic, properties } of answers) {
        counts.set(topic, (counts.get(topic) ?? 0) + 1)
        controls.set(topic, properties.responseTopic ?? controls.get(topic) ?? '')
      }
    })()
    // Two callers that count their requests alike.
    const correlationData = new Uint8Array([1])
    const ask = (responseTopic: string): Promise<unknown> =>
      plain.publish('count/9', '', { qos: 1, properties: { responseTopic, correlationData, userProperties: [['stream', '2']] } })
    await Promise.all([ask('answers/1'), ask('answers/2')])
    await ask('answers/1')
    await eventually(() => counts.get('answers/1') === 2 && counts.get('answers/2') === 2)
    const say = (word: string, value: string): Promise<unknown> =>
      plain.publish(controls.get('answers/1') as string, '', { qos: 1, properties: { correlationData, userProperties: [[word, value]] } })
    for (const credit of ['5', '5', '3', '-1', 'x', '']) await say('credit', credit)
    await eventually(() => counts.get('answers/1') === 5)
    await say('cancel', '')
    await say('credit', '9')
    await plain.publish('answers/3', '', { qos: 1 })
    await eventually(() => counts.get('answers/3') === 1)
    expect([...counts.values(), begun]).toEqual([5, 2, 1, 2])
    await answers.unsubscribe()
    await reading
  })

  it('ends the generator when the caller leaves, or aborts', async () => {
    const { caller, server } = await pair()
    let ended = 0
    await using _serving = await counting.on(server).serve(async function* () {
      try {
        for (let n = 0; ; n++) {
          yield n
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
      } finally {
        ended += 1
      }
    })
    for await (const n of counting.on(caller).stream({ to: 0 }, '')) if (n === 20) break
    await eventually(() => ended === 1, 'the end of the generator')
    const abort = new AbortController()
    const reading = (async () => {
      for await (const n of counting.on(caller).stream({ to: 0 }, '', { signal: abort.signal })) if (n === 10) abort.abort()
    })()
    await expect(reading).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    await eventually(() => ended === 2, 'the end of the generator')
  })

  it('a generator that fails is an error behind what it gave', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(async function* () {
      yield 1
      throw new MqttError('ERR_REMOTE', 'out of paper', { reasonName: 'PAPER' })
    })
    const got: number[] = []
    const reading = (async () => {
      for await (const n of counting.on(caller).stream({ to: 0 }, '')) got.push(n)
    })()
    await expect(reading).rejects.toMatchObject({ code: 'ERR_REMOTE', reasonName: 'PAPER', message: 'out of paper' })
    expect(got).toEqual([1])
  })

  it('waits for each answer so long', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(async function* () {
      yield 1
      await new Promise((resolve) => setTimeout(resolve, 400))
      yield 2
    })
    const stream = counting.on(caller).stream({ to: 0 }, '', { timeout: 100 })
    expect((await stream.next()).value).toBe(1)
    await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_TIMEOUT' })
  })

  it('a call of a generator gets its first value; a stream of one answer is that', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(count)
    expect(await counting.on(caller).call({ to: 3 }, '')).toBe(0)
    await using _single = await mq
      .operation('single', mq.text(), mq.json<number>())
      .on(server)
      .serve(() => 5)
    const got: number[] = []
    for await (const n of mq.operation('single', mq.text(), mq.json<number>()).on(caller).stream('', { timeout: 2000 })) got.push(n)
    expect(got).toEqual([5])
  })

  it.each(['caller', 'server'] as const)('survives connections of the %s that are cut, without a gap or a double', async (who) => {
    const { broker, caller, server } = await pair()
    await using _serving = await counting.on(server).serve(count)
    const got: number[] = []
    const victim = who === 'caller' ? caller : server
    for await (const n of counting.on(caller).stream({ to: 300 }, '', { window: 8, timeout: 10_000 })) {
      got.push(n)
      if (n % 60 === 30) broker.disconnect?.(victim.clientId)
      if (n % 60 === 30) await victim.reconnect({ force: true }).catch(() => undefined)
    }
    expect(got).toEqual(Array.from({ length: 300 }, (_, n) => n))
  })

  it('settles without a connection, within its time', async () => {
    const { broker, caller } = await pair()
    await broker.close()
    await eventually(() => caller.state !== 'connected')
    const began = Date.now()
    await expect(counting.on(caller).stream({ to: 1 }, '', { timeout: 150 }).next()).rejects.toMatchObject({ code: 'ERR_TIMEOUT' })
    expect(Date.now() - began).toBeLessThan(2000)
  })

  it('settles when the server dies in the middle, and when the caller is closed', async () => {
    const { caller, server } = await pair()
    await counting.on(server).serve(async function* () {
      for (let n = 0; ; n++) {
        yield n
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    })
    const dying = (async () => {
      for await (const n of counting.on(caller).stream({ to: 0 }, '', { timeout: 300 })) if (n === 5) server.destroy()
    })()
    await expect(dying).rejects.toMatchObject({ code: 'ERR_TIMEOUT' })
    const next = await counting
      .on(caller)
      .stream({ to: 0 }, '', { timeout: 200 })
      .next()
      .catch((error: unknown) => error)
    expect(next).toMatchObject({ code: 'ERR_TIMEOUT' })
    const open = counting
      .on(caller)
      .stream({ to: 0 }, '')
      .next()
      .catch((error: unknown) => error)
    setTimeout(() => caller.destroy(), 20)
    expect(MqttError.is(await open)).toBe(true)
  })

  it('streams one after the other, and side by side, on one binding', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(count)
    const bound = counting.on(caller)
    const all = async (to: number): Promise<number[]> => {
      const got: number[] = []
      for await (const n of bound.stream({ to }, '', { timeout: 3000, window: 2 })) got.push(n)
      return got
    }
    for (let time = 0; time < 20; time++) expect(await all(4)).toEqual([0, 1, 2, 3])
    const lengths = await Promise.all([3, 30, 0, 7].map(all))
    expect(lengths.map(({ length }) => length)).toEqual([3, 30, 0, 7])
  })

  it('leaving ends the generator in every state, and waits for nobody', async () => {
    const { caller, server } = await pair()
    let begun = 0
    let ended = 0
    let go: () => void = () => undefined
    await using _serving = await counting.on(server).serve(async function* ({ params }) {
      begun += 1
      try {
        if (params.to === -1) await new Promise<void>((resolve) => (go = resolve))
        for (let n = 0; ; n++) {
          yield n
          if (n === params.to) await new Promise<void>((resolve) => (go = resolve))
        }
      } finally {
        ended += 1
      }
    })
    const done = { value: undefined, done: true }
    const soon = (promise: Promise<unknown> | undefined): Promise<unknown> =>
      Promise.race([promise, new Promise((resolve) => setTimeout(() => resolve('it waits'), 1000))])
    const bound = counting.on(caller)
    // Before it began: nothing is asked.
    expect(await soon(bound.stream({ to: 5 }, '').return?.())).toEqual(done)
    // Before the first answer: it is cancelled when that comes.
    const early = bound.stream({ to: -1 }, '')
    const first = early.next()
    await eventually(() => begun === 1, 'the request')
    expect(await soon(early.return?.())).toEqual(done)
    expect(await soon(first)).toEqual(done)
    go()
    await eventually(() => ended === 1, 'the end of the first')
    // While it waits for an answer.
    const middle = bound.stream({ to: 2 }, '')
    for (let n = 0; n < 3; n++) expect((await middle.next()).value).toBe(n)
    const waiting = middle.next()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(await soon(middle.return?.())).toEqual(done)
    expect(await soon(waiting)).toEqual(done)
    go()
    await eventually(() => ended === 2, 'the end of the second')
    // With a signal, while the connection is not there.
    const abort = new AbortController()
    const offline = await clientOn(brokerOf(), { reconnect: { backoff: () => 60_000 } })
    offline.destroy()
    await expect(soon(counting.on(offline).stream({ to: 1 }, '', { signal: abort.signal }).next())).rejects.toMatchObject({ code: 'ERR_CLOSED' })
    expect(begun).toBe(2)
  })

  it('an abort settles at once, also without a connection', async () => {
    const { broker, caller } = await pair()
    await broker.close()
    await eventually(() => caller.state !== 'connected')
    const abort = new AbortController()
    const began = Date.now()
    const next = counting.on(caller).stream({ to: 1 }, '', { signal: abort.signal }).next()
    setTimeout(() => abort.abort(new Error('enough')), 30)
    await expect(next).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    expect(Date.now() - began).toBeLessThan(3000)
  })

  it('generators that never give another value take no place when their callers have left', async () => {
    const { broker, caller, server } = await pair()
    const handling = await counting.on(server).serve(async function* () {
      yield 1
      await new Promise(() => undefined)
    })
    const bound = counting.on(caller)
    for (let time = 0; time < 3; time++) {
      const streams = Array.from({ length: 400 }, () => bound.stream({ to: 1 }, '', { window: 4 }))
      expect(await Promise.all(streams.map(async (stream) => (await stream.next()).value))).toEqual(streams.map(() => 1))
      await Promise.all(streams.map((stream) => stream.return?.()))
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(broker).toBeDefined()
    await handling.unsubscribe()
  })

  it('a caller is told when the server ends its stream: as nobody serves any more, or as no credit came', async () => {
    const { caller, server } = await pair()
    let ended = 0
    async function* forever(): AsyncGenerator<number> {
      try {
        for (let n = 0; ; n++) yield n
      } finally {
        ended += 1
      }
    }
    const serving = await counting.on(server).serve(forever, { streamTimeout: 100 })
    const read = async (pause: number, each: (n: number) => void): Promise<void> => {
      for await (const n of counting.on(caller).stream({ to: 0 }, '', { window: 4, timeout: 20_000 })) {
        each(n)
        await new Promise((resolve) => setTimeout(resolve, pause))
      }
    }
    const began = Date.now()
    await expect(read(150, () => undefined)).rejects.toMatchObject({ code: 'ERR_REMOTE', reasonName: 'ERR_TIMEOUT' })
    await expect(read(0, (n) => void (n === 20 && serving.unsubscribe()))).rejects.toMatchObject({ code: 'ERR_REMOTE', reasonName: 'ERR_CLOSED' })
    expect(Date.now() - began).toBeLessThan(10_000)
    await eventually(() => ended === 2)
  })

  it('two next() at a time give two answers', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(count)
    const stream = counting.on(caller).stream({ to: 3 }, '')
    const four = await Promise.all([stream.next(), stream.next(), stream.next(), stream.next()])
    expect(four.map(({ value }) => value)).toEqual([0, 1, 2, undefined])
  })

  it('numbers that are none of the convention are passed over', async () => {
    const { broker, caller } = await pair()
    const odd = await clientOn(broker)
    await using _serving = await odd.respond('count/+', async ({ properties }) => {
      const { responseTopic = '', correlationData } = properties
      const say = (payload: string, ...userProperties: [string, string][]): Promise<unknown> =>
        odd.publish(responseTopic, payload, { qos: 1, properties: { correlationData, userProperties } })
      for (const seq of ['x', '', '0x0', '00', '-0', '1e0', '-1', 'NaN', 'Infinity', '9007199254740993', '0.5']) await say('99', ['seq', seq])
      await say('1', ['seq', '0'])
      for (const seq of ['0', '0x1', '01', ' 1']) await say('99', ['seq', seq])
      await say('2', ['seq', '1'])
      await say('', ['seq', '2'], ['end', ''])
      return null
    })
    const got: number[] = []
    for await (const n of counting.on(caller).stream({ to: 1 }, '', { timeout: 3000 })) got.push(n)
    expect(got).toEqual([1, 2])
  })

  it('what came before a gap is given, then the error; after an abort nothing is', async () => {
    const { caller, server } = await pair()
    await using _responder = await server.listen('count/+', async ({ topic, properties: { responseTopic = '', correlationData } }) => {
      for (const seq of ['0', '1', topic === 'count/9' ? '3' : '2']) {
        const userProperties: [string, string][] = [['seq', seq]]
        await server.publish(responseTopic, seq, { qos: 1, properties: { correlationData, responseTopic: 'control', userProperties } })
      }
    })
    const read = async (to: number, options: { readonly signal?: AbortSignal }, between: () => void): Promise<readonly unknown[]> => {
      const got: unknown[] = []
      const stream = counting.on(caller).stream({ to }, '', options)
      try {
        for await (const n of stream) {
          got.push(n)
          await new Promise((resolve) => setTimeout(resolve, 50))
          between()
        }
      } catch (error) {
        got.push((error as MqttError).code)
      }
      return got
    }
    expect(await read(9, {}, () => undefined)).toEqual([0, 1, 'ERR_SESSION_LOST'])
    const abort = new AbortController()
    expect(await read(8, { signal: abort.signal }, () => abort.abort())).toEqual([0, 'ERR_ABORTED'])
  })

  it('credit without bound leaves room for others in the queue', async () => {
    const { broker, server } = await pair()
    const greedy = await clientOn(broker, { receiveMaximum: 20 })
    let made = 0
    await using _serving = await counting.on(server).serve(async function* () {
      for (;;) yield made++
    })
    const answers = await greedy.subscribe('greedy', { qos: 1, ack: 'manual', buffer: 10 })
    const ask = { responseTopic: 'greedy', correlationData: new Uint8Array([1]), userProperties: [['stream', '9'] as [string, string]] }
    await greedy.publish('count/1', '', { qos: 1, properties: ask })
    const control = (await answers.next())?.properties.responseTopic ?? ''
    await greedy.publish(control, '', { qos: 1, properties: { userProperties: [['credit', '9007199254740991']] } })
    let worst = 0
    for (let n = 0; n < 60; n++) {
      await new Promise((resolve) => setTimeout(resolve, 2))
      worst = Math.max(worst, server.outbound.size)
    }
    expect(made).toBeGreaterThan(100)
    expect(worst).toBeLessThan(600)
    await greedy.publish(control, '', { qos: 1, properties: { userProperties: [['cancel', '']] } })
    await answers.detach()
  })

  it('a call of a generator that gives nothing is an error at once, and the handler runs once', async () => {
    const { caller, server } = await pair()
    let runs = 0
    await using _serving = await counting.on(server).serve(
      // biome-ignore lint/correctness/useYield: that is what is tried
      async function* () {
        runs += 1
      },
      { qos: 1 },
    )
    await expect(counting.on(caller).call({ to: 1 }, '', { qos: 1, timeout: 3000 })).rejects.toMatchObject({ code: 'ERR_REMOTE' })
    expect(runs).toBe(1)
  })

  it('a generator of somebody else’s making may lack an end', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve((() => {
      let n = 0
      const values = { next: async () => ({ value: n++, done: n > 3 }), [Symbol.asyncIterator]: () => values }
      return values
    }) as never)
    const got: number[] = []
    for await (const n of counting.on(caller).stream({ to: 1 }, '', { timeout: 3000 })) got.push(n)
    expect(got).toEqual([0, 1, 2])
    expect(await counting.on(caller).call({ to: 1 }, '')).toBe(0)
  })

  it('a bad payload of a caller that nobody awaits ends nothing', async () => {
    const { caller } = await pair()
    const unhandled = await unhandledIn(() => {
      setpoint.on(caller).call({ line: 'a/b' }, { value: 1 })
      mq.channel('x', mq.number()).on(caller).publish(Number.NaN)
      mq.channel('x/{id}', mq.number()).on(caller).clear({ id: '' })
    })
    expect(unhandled).toEqual([])
  })
})
