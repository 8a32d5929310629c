/** Operations and streams of answers, through a broker in memory, also while links are cut. */
import { describe, expect, it } from 'vitest'
import { deferred } from '../../../src/common/abort.js'
import { MqttError } from '../../../src/errors.js'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { unhandledIn } from '../client/unhandled.js'
import { all, brokerOf, clientOn, coded, outcomeOf, pair, upTo } from './rig.js'

const setpoint = mq.operation(
  'plant/{line}/setpoint',
  mq.json<{ value: number }>(),
  mq.json<{ was: number }>(),
)
const counting = mq.operation('count/{to:number}', mq.text(), mq.json<number>())
const endless = new Promise<void>(() => undefined)
const remote = (reasonName: string, fields = {}) => coded('ERR_REMOTE', { reasonName, ...fields })

/** Numbers without end, with a pause behind each; `over` is called when the generator ends. */
async function* forever(
  over: () => void = () => undefined,
  milliseconds?: number,
): AsyncGenerator<number> {
  try {
    for (let n = 0; ; n++) {
      yield n
      if (milliseconds !== undefined) await pause(milliseconds)
    }
  } finally {
    over()
  }
}

async function* count({ params }: { params: { to: number } }): AsyncGenerator<number> {
  for (let n = 0; n < params.to; n++) yield n
}

describe('an operation', () => {
  it('calls and serves', async () => {
    const { caller, server } = await pair()
    await using serving = await setpoint
      .on(server)
      .serve(({ params, value }) => ({ was: value.value + Number(params.line) }))
    expect(await setpoint.on(caller).call({ line: 3 }, { value: 4 })).toEqual({ was: 7 })
    expect(serving.ignored).toBe(0)
  })

  it('serves some parameters only, alone or as one of several', async () => {
    const { caller, server } = await pair()
    await using one = await setpoint.on(server).serve({ line: 1 }, () => ({ was: 1 }))
    await using shared = await setpoint
      .on(server)
      .serve({ line: 2 }, async () => ({ was: 2 }), { share: 'workers' })
    const filters = [one, shared].map(({ granted }) => granted.map(({ filter }) => filter).join())
    expect(filters).toEqual(['plant/1/setpoint', '$share/workers/plant/2/setpoint'])
    const calls = [1, 2].map((line) => setpoint.on(caller).call({ line }, { value: 0 }))
    expect(await Promise.all(calls)).toEqual([{ was: 1 }, { was: 2 }])
  })

  it('a request that is none is answered with an error, once, and the handler is not called', async () => {
    const { caller, server } = await pair()
    let calls = 0
    await using _serving = await setpoint.on(server).serve(() => ({ was: ++calls }), { qos: 1 })
    const wrong = mq
      .operation('plant/{line}/setpoint', mq.text(), mq.json<{ was: number }>())
      .on(caller)
    for (const text of ['{', ''])
      expect(await outcomeOf(wrong.call({ line: 1 }, text))).toEqual(remote('ERR_INVALID_PAYLOAD'))
    expect(calls).toBe(0)
  })

  it('an answer that is none is the error of its caller; a handler that fails is reported as the responder chose', async () => {
    const { caller, server } = await pair()
    await using _serving = await setpoint.on(server).serve(({ params }) => {
      if (params.line === 'told')
        throw new MqttError('ERR_REMOTE', 'too hot', { reasonName: 'HOT' })
      if (params.line === 'quiet') throw new Error('a secret')
      return undefined as never
    })
    const call = (line: string) => outcomeOf(setpoint.on(caller).call({ line }, { value: 1 }))
    expect(await call('told')).toEqual(remote('HOT', { message: 'too hot' }))
    const quiet = await call('quiet')
    expect(quiet).toEqual(remote('ERR_HANDLER_FAILED'))
    expect(String(quiet)).not.toContain('secret')
    expect(await call('none')).toEqual(coded('ERR_REMOTE'))
    expect(await call('a/b')).toEqual(coded('ERR_INVALID_TOPIC'))
  })
})

describe('an operation without input or output', () => {
  it('takes no value, and gives none', async () => {
    const { broker, caller, server } = await pair()
    const requests: number[] = []
    await (await clientOn(broker)).listen(
      'pump/#',
      ({ payloadLength }) => void requests.push(payloadLength),
    )
    const [start, level] = [
      mq.operation('pump/{id}/start'),
      mq.operation('pump/level', undefined, mq.number()),
    ]
    const contract = mq.contract({ start, level, set: mq.operation('pump/set', mq.number()) })
    expect([start.takes, level.takes, contract.set.takes, setpoint.takes]).toEqual([1, 0, 1, 2])
    const seen: unknown[] = []
    const serving = contract.on(server)
    await using _start = await serving.start.serve(
      ({ params, value }) => void seen.push([params.id, value]),
    )
    await using _level = await serving.level.serve(async function* () {
      yield* [1, 2]
    })
    await using _set = await serving.set.serve(({ value }) => void seen.push(value))
    const asking = contract.on(caller)
    expect(await asking.start.call({ id: 7 })).toBe(undefined)
    expect(await asking.start.call({ id: 8 }, { timeout: 5000 })).toBe(undefined)
    expect(await asking.level.call({ timeout: 5000 })).toBe(1)
    expect(await asking.set.call(5)).toBe(undefined)
    expect(await all(asking.level.stream({ window: 1 }))).toEqual([1, 2])
    expect(seen).toEqual([['7', undefined], ['8', undefined], 5])
    expect(requests).toEqual([0, 0, 0, 1, 0])
    // What an old caller sends is not looked at.
    const old = mq.operation('pump/{id}/start', mq.json(), mq.text()).on(caller)
    expect(await old.call({ id: 9 }, { old: true })).toBe('')
    expect(seen.at(-1)).toEqual(['9', undefined])
  })

  it('refuses what is no argument of it', async () => {
    const { caller } = await pair()
    const start = mq.operation('pump/{id}/start').on(caller)
    const { call } = start as { call(...given: unknown[]): Promise<void> }
    for (const wrong of [
      call.call(start, { id: 1 }, undefined, { timeout: 1 }),
      start.call({ id: 1 }, 'value' as never),
      start.stream({ id: 1 }, 'value' as never).next(),
    ])
      await expect(wrong).rejects.toEqual(coded('ERR_INVALID_OPTION'))
    expect(() => mq.operation('a', null as never)).toThrow('codec must have encode and decode')
  })
})

describe('defaults of an operation', () => {
  it('go for requests and for serve; a call says otherwise', async () => {
    const { caller, server } = await pair()
    const serve = { share: 'workers', onError: 'reject' } as const
    const save = mq.operation('save', mq.text(), mq.number(), { qos: 1, timeout: 60, serve })
    const qualities: number[] = []
    let hangs = false
    await using serving = await save.on(server).serve(
      ({ message, value }) => {
        qualities.push(message.qos)
        if (value === 'fails') throw new Error('it does')
        return hangs ? (endless as Promise<never>) : qualities.length
      },
      { concurrency: 10 },
    )
    expect(serving.granted).toMatchObject([{ filter: '$share/workers/save', qos: 1 }])
    const bound = save.on(caller)
    expect([await bound.call('x'), await bound.call('x', { qos: 0 })]).toEqual([1, 2])
    expect(await outcomeOf(bound.call('fails'))).toEqual(coded('ERR_REMOTE'))
    expect(qualities).toEqual([1, 0, 1])
    hangs = true
    const late = (time: string) => coded('ERR_TIMEOUT', { message: expect.stringContaining(time) })
    expect(await outcomeOf(bound.call('x'))).toEqual(late('60 ms'))
    expect(await outcomeOf(bound.call('x', { timeout: 80 }))).toEqual(late('80 ms'))
    expect(await outcomeOf(bound.stream('x').next())).toEqual(late('60 ms'))
    await using other = await save.on(server).serve(() => 0, { share: 'others', qos: 0 })
    expect(other.granted).toMatchObject([{ filter: '$share/others/save', qos: 0 }])
  })

  it('serve goes over the quality of both; they are checked when the operation is made', async () => {
    const { server } = await pair()
    const save = mq.operation('save', mq.text(), mq.number(), { qos: 1, serve: { qos: 2 } })
    await using serving = await save.on(server).serve(() => 1)
    expect(serving.granted).toMatchObject([{ qos: 2 }])
    const made = (defaults: unknown) => () =>
      mq.operation('a', undefined, undefined, defaults as never)
    expect(made({ timeout: 0 })).toThrow('timeout must be an integer from 1')
    for (const wrong of [5, { serve: 'no' }])
      expect(made(wrong)).toThrow('options must be an object')
  })
})

describe('what a caller hears of its request', () => {
  it('an answer that is none: the request was handled, so that its outcome is unknown', async () => {
    const { caller, server } = await pair()
    const texts = mq.operation('a', mq.text(), mq.text())
    await using _serving = await texts.on(server).serve(() => 'no json')
    const late = mq.codec<string>({
      encode: String,
      decode: (async () => Promise.reject(new Error('none'))) as never,
    })
    for (const answer of [mq.json(), late]) {
      const wrong = mq.operation('a', mq.text(), answer as mq.Codec<unknown>).on(caller)
      const invalid = coded('ERR_INVALID_PAYLOAD', {
        fault: 'remote',
        outcome: 'unknown',
        issues: [expect.anything()],
      })
      expect(await outcomeOf(wrong.call('x'))).toEqual(invalid)
      expect(await outcomeOf(wrong.stream('x').next())).toEqual(invalid)
    }
  })

  it('what was never asked', async () => {
    const idle = await clientOn(brokerOf())
    await idle.reconnect({ force: true }).catch(() => undefined)
    const aborted = counting.on(idle).stream({ to: 1 }, '', { signal: AbortSignal.abort() })
    expect(await outcomeOf(aborted.next())).toEqual(coded('ERR_ABORTED', { outcome: 'not-sent' }))
  })

  it.each(['drain', 'disconnect', 'disconnect at once', 'unsubscribe'])(
    'a server that ends by %s, in each state of its streams',
    async (how) => {
      const { caller, server } = await pair()
      const begin = deferred<void>()
      const handle = async function* ({ params }: { params: { to: number } }) {
        if (params.to === 0) await endless
        for (let n = 0; ; n++) {
          yield n
          if (n === params.to) await endless
        }
      }
      const serving = await counting.on(server).serve(handle, { concurrency: 4 })
      const slow = mq.operation('slow', mq.text(), mq.json<number>())
      await slow.on(server).serve((async () => {
        await begin.promise
        return forever()
      }) as never)
      const bound = counting.on(caller)
      // One that waits for credit, one whose generator is silent, one before its first answer, and one whose handler has given no generator yet.
      const streams = [
        bound.stream({ to: 999 }, '', { window: 2 }),
        bound.stream({ to: 1 }, ''),
        bound.stream({ to: 0 }, ''),
      ]
      for (const stream of streams.slice(0, 2)) await stream.next()
      const waiting = streams.slice(1).map((stream) => all(stream))
      const late =
        how === 'unsubscribe' ? undefined : all(slow.on(caller).stream('', { window: 4 }))
      await pause(50)
      const endings = { unsubscribe: () => serving.unsubscribe(), drain: () => server.drain() }
      const options = how.endsWith('once') ? { timeout: 0 } : {}
      const ending = endings[how as 'drain']?.() ?? server.disconnect(options)
      const closed = remote('ERR_CLOSED', { outcome: 'unknown' })
      for (const each of waiting) expect(await outcomeOf(each)).toEqual(closed)
      begin.resolve()
      // Nothing leaves any more where the end waits for nothing.
      if (late !== undefined && !how.endsWith('once')) expect(await outcomeOf(late)).toEqual(closed)
      late?.catch(() => undefined)
      expect(await outcomeOf(all(streams[0] as AsyncGenerator<number>))).toEqual(closed)
      await ending
    },
  )
})

describe('a stream of answers', () => {
  it('never has more under way than the window', async () => {
    const { caller, server } = await pair()
    let made = 0
    await using _serving = await counting.on(server).serve(async function* () {
      for (;;) yield made++
    })
    const stream = counting.on(caller).stream({ to: 0 }, '', { window: 4 })
    expect((await stream.next()).value).toBe(0)
    await pause(100)
    expect(made).toBeLessThanOrEqual(7)
    await stream.return?.()
  })

  it('credit and requests that come twice change nothing; credit of one stream is for no other', async () => {
    const { broker, server } = await pair()
    const plain = await clientOn(broker)
    let begun = 0
    await using _serving = await counting.on(server).serve(async function* () {
      begun += 1
      yield* forever()
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
    const say = (
      topic: string,
      word: string,
      value: string,
      responseTopic?: string,
    ): Promise<unknown> =>
      plain.publish(topic, '', {
        qos: 1,
        properties: { responseTopic, correlationData, userProperties: [[word, value]] },
      })
    const ask = (responseTopic: string) => say('count/9', 'stream', '2', responseTopic)
    await Promise.all([ask('answers/1'), ask('answers/2')])
    await ask('answers/1')
    await eventually(() => counts.get('answers/1') === 2 && counts.get('answers/2') === 2)
    const control = controls.get('answers/1') as string
    for (const credit of ['5', '5', '3', '-1', 'x', '']) await say(control, 'credit', credit)
    await eventually(() => counts.get('answers/1') === 5)
    await say(control, 'cancel', '')
    await say(control, 'credit', '9')
    await plain.publish('answers/3', '', { qos: 1 })
    await eventually(() => counts.get('answers/3') === 1)
    expect([...counts.values(), begun]).toEqual([5, 2, 1, 2])
    await answers.unsubscribe()
    await reading
  })

  it('a call of a generator gets its first value; a stream of one answer is that', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(count)
    expect(await counting.on(caller).call({ to: 3 }, '')).toBe(0)
    const single = mq.operation('single', mq.text(), mq.json<number>())
    await using _single = await single.on(server).serve(() => 5)
    expect(await all(single.on(caller).stream('', { timeout: 2000 }))).toEqual([5])
  })

  it('settles without a connection: within its time, and at once when it is aborted', async () => {
    const { broker, caller } = await pair()
    await broker.close()
    await eventually(() => caller.state !== 'connected')
    const abort = new AbortController()
    const began = Date.now()
    await expect(
      counting.on(caller).stream({ to: 1 }, '', { timeout: 150 }).next(),
    ).rejects.toEqual(coded('ERR_TIMEOUT'))
    const next = counting.on(caller).stream({ to: 1 }, '', { signal: abort.signal }).next()
    setTimeout(() => abort.abort(new Error('enough')), 30)
    await expect(next).rejects.toEqual(coded('ERR_ABORTED'))
    expect(Date.now() - began).toBeLessThan(3000)
  })

  it('leaving ends the generator in every state, and waits for nothing', async () => {
    const { caller, server } = await pair()
    let begun = 0
    let ended = 0
    let go: () => void = () => undefined
    const gate = () => new Promise<void>((resolve) => (go = resolve))
    await using _serving = await counting.on(server).serve(async function* ({ params }) {
      begun += 1
      try {
        if (params.to === -1) await gate()
        for (let n = 0; ; n++) {
          yield n
          if (n === params.to) await gate()
        }
      } finally {
        ended += 1
      }
    })
    const done = { value: undefined, done: true }
    const bound = counting.on(caller)
    // Before it began: nothing is asked.
    expect(await outcomeOf(bound.stream({ to: 5 }, '').return?.())).toEqual(done)
    // Before the first answer: it is cancelled when that comes.
    const early = bound.stream({ to: -1 }, '')
    const first = early.next()
    await eventually(() => begun === 1, 'the request')
    expect([await outcomeOf(early.return?.()), await outcomeOf(first)]).toEqual([done, done])
    go()
    await eventually(() => ended === 1, 'the end of the first')
    // While it waits for an answer.
    const middle = bound.stream({ to: 2 }, '')
    for (let n = 0; n < 3; n++) expect((await middle.next()).value).toBe(n)
    const waiting = middle.next()
    await pause(20)
    expect([await outcomeOf(middle.return?.()), await outcomeOf(waiting)]).toEqual([done, done])
    go()
    await eventually(() => ended === 2, 'the end of the second')
    // With a signal, while the connection is not there.
    const offline = await clientOn(brokerOf(), { reconnect: { backoff: () => 60_000 } })
    offline.destroy()
    const { signal } = new AbortController()
    expect(await outcomeOf(counting.on(offline).stream({ to: 1 }, '', { signal }).next())).toEqual(
      coded('ERR_CLOSED'),
    )
    expect(begun).toBe(2)
  })

  it('leaving one stream of a client does not disturb another one', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(() => forever())
    const [left, kept] = [1, 2].map((to) =>
      counting.on(caller).stream({ to }, '', { window: 2, timeout: 2000 }),
    ) as [AsyncGenerator<number>, AsyncGenerator<number>]
    await Promise.all([left.next(), kept.next()])
    await left.return(undefined)
    for (let n = 1; n < 20; n++) expect((await kept.next()).value).toBe(n)
    await kept.return(undefined)
  })

  it('generators that never give another value take no place when their callers have left', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve(async function* () {
      yield 1
      await endless
    })
    for (let time = 0; time < 3; time++) {
      const streams = upTo(400).map(() => counting.on(caller).stream({ to: 1 }, '', { window: 4 }))
      expect(await Promise.all(streams.map(async (stream) => (await stream.next()).value))).toEqual(
        streams.map(() => 1),
      )
      await Promise.all(streams.map((stream) => stream.return?.()))
      await pause(100)
    }
  })

  it('a caller hears when the server ends its stream: as it serves no more, or as no credit came', async () => {
    const { caller, server } = await pair()
    let ended = 0
    const serving = await counting
      .on(server)
      .serve(() => forever(() => void ended++), { streamTimeout: 100 })
    const read = async (each: (n: number) => unknown): Promise<void> => {
      for await (const n of counting
        .on(caller)
        .stream({ to: 0 }, '', { window: 4, timeout: 20_000 }))
        await each(n)
    }
    const began = Date.now()
    await expect(read(() => pause(150))).rejects.toEqual(remote('ERR_TIMEOUT'))
    const unsubscribing = (n: number) =>
      pause(0).then(() => void (n === 20 && serving.unsubscribe()))
    await expect(read(unsubscribing)).rejects.toEqual(remote('ERR_CLOSED'))
    expect(Date.now() - began).toBeLessThan(10_000)
    await eventually(() => ended === 2)
  })

  it('numbers that are none of the convention are passed over', async () => {
    const { caller, server } = await pair()
    await using _serving = await server.respond('count/+', async ({ properties }) => {
      const { responseTopic = '', correlationData } = properties
      const say = (payload: string, ...userProperties: [string, string][]): Promise<unknown> =>
        server.publish(responseTopic, payload, {
          qos: 1,
          properties: { correlationData, userProperties },
        })
      const none = [
        'x',
        '',
        '0x0',
        '00',
        '-0',
        '1e0',
        '-1',
        'NaN',
        'Infinity',
        '9007199254740993',
        '0.5',
      ]
      for (const seq of none) await say('99', ['seq', seq])
      await say('1', ['seq', '0'])
      for (const seq of ['0', '0x1', '01', ' 1']) await say('99', ['seq', seq])
      await say('2', ['seq', '1'])
      await say('', ['seq', '2'], ['end', ''])
      return null
    })
    expect(await all(counting.on(caller).stream({ to: 1 }, '', { timeout: 3000 }))).toEqual([1, 2])
  })

  it.each([
    ['what came before a gap is given, then the error', false, [0, 1, 'ERR_SESSION_LOST unknown']],
    ['after an abort nothing is given', true, [0, 'ERR_ABORTED unknown']],
  ])('%s', async (_what, aborts, wanted) => {
    const { caller, server } = await pair()
    await using _responder = await server.listen(
      'count/+',
      async ({ properties: { responseTopic = '', correlationData } }) => {
        for (const seq of ['0', '1', aborts ? '2' : '3']) {
          const properties = {
            correlationData,
            responseTopic: 'control',
            userProperties: [['seq', seq]] as [string, string][],
          }
          await server.publish(responseTopic, seq, { qos: 1, properties })
        }
      },
    )
    const abort = new AbortController()
    const got: unknown[] = []
    try {
      for await (const n of counting.on(caller).stream({ to: 1 }, '', { signal: abort.signal })) {
        got.push(n)
        await pause(50)
        if (aborts) abort.abort()
      }
    } catch (error) {
      const { code, outcome } = error as MqttError
      got.push(`${code} ${outcome}`)
    }
    expect(got).toEqual(wanted)
  })

  it('credit without bound leaves room for others in the queue', async () => {
    const { broker, server } = await pair()
    const greedy = await clientOn(broker, { receiveMaximum: 20 })
    let made = 0
    await using _serving = await counting.on(server).serve(async function* () {
      for (;;) yield made++
    })
    const answers = await greedy.subscribe('greedy', { qos: 1, ack: 'manual', buffer: 10 })
    const say = (topic: string, word: string, value: string, more = {}): Promise<unknown> =>
      greedy.publish(topic, '', {
        qos: 1,
        properties: { ...more, userProperties: [[word, value]] },
      })
    await say('count/1', 'stream', '9', {
      responseTopic: 'greedy',
      correlationData: new Uint8Array([1]),
    })
    const control = (await answers.next())?.properties.responseTopic ?? ''
    await say(control, 'credit', '9007199254740991')
    let worst = 0
    for (let n = 0; n < 60; n++) {
      await pause(2)
      worst = Math.max(worst, server.outbound.size)
    }
    expect(made).toBeGreaterThan(100)
    expect(worst).toBeLessThan(600)
    await say(control, 'cancel', '')
    await answers.detach()
  })

  it('a call of a generator that gives nothing is an error at once, and the handler runs once', async () => {
    const { caller, server } = await pair()
    let runs = 0
    // biome-ignore lint/correctness/useYield: that is what is tried
    const nothing = async function* (): AsyncGenerator<number> {
      runs += 1
    }
    await using _serving = await counting.on(server).serve(nothing, { qos: 1 })
    const call = counting.on(caller).call({ to: 1 }, '', { qos: 1, timeout: 3000 })
    await expect(call).rejects.toEqual(coded('ERR_REMOTE'))
    expect(runs).toBe(1)
  })

  it('a generator of another library may lack an end', async () => {
    const { caller, server } = await pair()
    await using _serving = await counting.on(server).serve((() => {
      let n = 0
      const values = {
        next: async () => ({ value: n++, done: n > 3 }),
        [Symbol.asyncIterator]: () => values,
      }
      return values
    }) as never)
    expect(await all(counting.on(caller).stream({ to: 1 }, '', { timeout: 3000 }))).toEqual([
      0, 1, 2,
    ])
    expect(await counting.on(caller).call({ to: 1 }, '')).toBe(0)
  })

  it('a bad payload of a caller that is not awaited ends nothing', async () => {
    const { caller } = await pair()
    const unhandled = await unhandledIn(() => {
      setpoint.on(caller).call({ line: 'a/b' }, { value: 1 })
      mq.channel('x', mq.number()).on(caller).publish(Number.NaN)
      mq.channel('x/{id}', mq.number()).on(caller).clear({ id: '' })
    })
    expect(unhandled).toEqual([])
  })
})
