/** Operations and streams of answers, through a broker in memory, also while links are cut. */
import { describe, expect, it } from 'vitest'
import type { Client } from '../../src/client/node.js'
import { MqttError } from '../../src/errors.js'
import type { MemoryBroker } from '../../src/testing/broker/index.js'
import * as mq from '../../src/typed/index.js'
import { brokerOf, clientOn, until } from './rig.js'

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
    await until(() => counts.get('answers/1') === 2 && counts.get('answers/2') === 2)
    const say = (word: string, value: string): Promise<unknown> =>
      plain.publish(controls.get('answers/1') as string, '', { qos: 1, properties: { correlationData, userProperties: [[word, value]] } })
    for (const credit of ['5', '5', '3', '-1', 'x', '']) await say('credit', credit)
    await until(() => counts.get('answers/1') === 5)
    await say('cancel', '')
    await say('credit', '9')
    await plain.publish('answers/3', '', { qos: 1 })
    await until(() => counts.get('answers/3') === 1)
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
    await until(() => ended === 1, 'the end of the generator')
    const abort = new AbortController()
    const reading = (async () => {
      for await (const n of counting.on(caller).stream({ to: 0 }, '', { signal: abort.signal })) if (n === 10) abort.abort()
    })()
    await expect(reading).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    await until(() => ended === 2, 'the end of the generator')
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
    await until(() => caller.state !== 'connected')
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
})
