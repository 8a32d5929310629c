/** Spans of publishes, of turns and of requests: one tree from the publisher to whoever answers. */

import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../src/client/client.js'
import type { Hooks, Message, PublishOptions } from '../../../src/client/options/index.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'
import { traceContext, tracedRequest, tracing, withContext } from '../../../src/tracing/index.js'

// Contexts go along with promises.
beforeAll(
  () => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()),
)
afterAll(() => {
  context.disable()
  propagation.disable()
})

class Recorder {
  readonly tracer: Tracer
  readonly #exporter = new InMemorySpanExporter()

  constructor() {
    this.tracer = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(this.#exporter)],
    }).getTracer('test')
  }

  /** In the order in which they ended. */
  get all(): readonly ReadableSpan[] {
    return this.#exporter.getFinishedSpans()
  }

  get names(): string[] {
    return this.all.map(({ name }) => name)
  }

  one(name: string): ReadableSpan {
    const found = this.all.filter((span) => span.name === name)
    if (found.length !== 1)
      throw new Error(`${found.length} spans are named ${name}: ${this.names}`)
    return found[0] as ReadableSpan
  }

  get paths(): string[] {
    return this.all.map((span) => this.#pathOf(span)).sort()
  }

  reset(): void {
    this.#exporter.reset()
  }

  #pathOf(span: ReadableSpan): string {
    const parent = this.all.find(
      (each) => each.spanContext().spanId === span.parentSpanContext?.spanId,
    )
    if (parent === undefined && span.parentSpanContext !== undefined) return `? > ${span.name}`
    return parent === undefined ? span.name : `${this.#pathOf(parent)} > ${span.name}`
  }
}

function tracesOf(spans: readonly ReadableSpan[]): Set<string> {
  return new Set(spans.map((span) => span.spanContext().traceId))
}

const parentOf = (n: number): string => `00-${'a'.repeat(32)}-${String(n).repeat(16)}-01`

let world: VirtualWorld
let a: BaseClient
let b: BaseClient
let recorder: Recorder
beforeEach(async () => {
  world = new VirtualWorld()
  a = await world.connect('mqtt://b', { clientId: 'a' })
  b = await world.connect('mqtt://b', { clientId: 'b' })
  recorder = new Recorder()
})
afterEach(() => world.close())

function traceBoth(options: Parameters<typeof tracing>[1] = {}): void {
  for (const client of [a, b])
    tracing(client, { tracer: recorder.tracer, spanNames: 'topic', ...options })
}

function spanning<T>(name: string, run: () => Promise<T>): Promise<T> {
  return recorder.tracer.startActiveSpan(name, async (span) => {
    try {
      return await run()
    } finally {
      span.end()
    }
  })
}

describe('the tree', () => {
  it('is one, from publish through listen and request to respond and back', async () => {
    traceBoth()
    await b.respond('svc', async (message) => spanning('work', async () => message.payload))
    let answer = ''
    await a.listen('in', async (message) => {
      answer = (await tracedRequest(a, 'svc', message.payload)).text()
    })
    await spanning('root', () => a.publish('in', 'hello', { qos: 1 }))
    await world.until(() => recorder.all.length >= 9)
    expect(answer).toBe('hello')
    const back = recorder.names.find((name) => name.startsWith('publish mqwire/')) as string
    const asked = 'root > publish in > process in > request svc'
    const served = `${asked} > publish svc > process svc`
    const paths = [
      'root',
      'root > publish in',
      'root > publish in > process in',
      asked,
      `${asked} > publish svc`,
      served,
    ]
    const answered = `${served} > ${back}`
    paths.push(`${served} > work`, answered, `${answered} > ${back.replace('publish', 'process')}`)
    expect(recorder.paths).toEqual(paths.sort())
    expect(tracesOf(recorder.all).size).toBe(1)
    expect(recorder.one('process svc').parentSpanContext?.isRemote).toBe(true)
    const kinds = ['publish in', 'process in', 'request svc'].map((name) => recorder.one(name).kind)
    expect(kinds).toEqual([SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CLIENT])
  })

  it('keeps requests apart that wait for the response subscription together', async () => {
    traceBoth()
    await b.respond('svc/+', (message) => message.payload)
    await Promise.all(
      ['1', '2', '3'].map((n) => spanning(`root ${n}`, () => tracedRequest(a, `svc/${n}`, n))),
    )
    for (const n of ['1', '2', '3'])
      expect(recorder.paths).toContain(
        `root ${n} > request svc/${n} > publish svc/${n} > process svc/${n}`,
      )
    expect(tracesOf(recorder.all).size).toBe(3)
  })

  it('has the answer of a handler that failed, and the failure of the request', async () => {
    traceBoth()
    await b.respond('svc', () => {
      throw new MqttError('ERR_REMOTE', 'the secret', { reasonName: 'sold-out' })
    })
    await expect(spanning('root', () => tracedRequest(a, 'svc', 'q'))).rejects.toMatchObject({
      code: 'ERR_REMOTE',
    })
    await world.pass(1)
    expect(tracesOf(recorder.all).size).toBe(1)
    expect(
      recorder.paths.find((path) => path.includes('> process svc > publish mqwire/')),
    ).toBeDefined()
    for (const name of ['request svc', 'process svc']) {
      const { status, attributes, events } = recorder.one(name)
      expect([status.code, attributes['error.type'], events.length]).toEqual([
        SpanStatusCode.ERROR,
        'ERR_REMOTE',
        1,
      ])
    }
    expect(
      JSON.stringify(
        recorder.all.map(({ attributes, events, status }) => [attributes, events, status]),
      ),
    ).not.toContain('secret')
  })

  it.each([0, 1, 2] as const)('holds at QoS %i', async (qos) => {
    traceBoth()
    await b.listen('t', () => undefined, { qos })
    await spanning('root', () => a.publish('t', 'x', { qos }))
    await world.until(() => recorder.all.length >= 3)
    expect(recorder.paths).toEqual(['root', 'root > publish t', 'root > publish t > process t'])
    expect(recorder.one('process t').attributes).toEqual({
      'messaging.system': 'mqtt',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 't',
      'messaging.client.id': 'b',
      'messaging.message.body.size': 1,
      'mqtt.qos': qos,
      'mqtt.reason_code': 0,
    })
  })

  it('begins anew with a message that brings no context, whatever was active when the client connected', async () => {
    await spanning('startup', async () => {
      const late = await world.connect('mqtt://b')
      tracing(late, { tracer: recorder.tracer })
      await late.listen('t', () => undefined)
    })
    await a.publish('t', 'x')
    await world.until(() => recorder.names.includes('process'))
    expect(recorder.paths).toEqual(['process', 'startup'])
  })

  it('goes on from batches and iterators by withContext', async () => {
    traceBoth()
    const one = await b.subscribe('t', { qos: 1 })
    const many = await b.subscribe('m', { qos: 1 })
    await spanning('root', async () => {
      await a.publish('t', 'x', { qos: 1 })
      for (const text of ['1', '2']) await a.publish('m', text, { qos: 1 })
    })
    const message = (await one.next()) as Message
    expect(trace.getSpan(context.active())).toBeUndefined()
    await withContext(message, () => spanning('one', async () => undefined))
    const batches = many.batches()
    const batch = ((await batches.next()) as { value: Message[] }).value
    expect(batch).toHaveLength(2)
    for (const each of batch)
      await withContext(each, () => spanning(`many ${each.text()}`, async () => undefined))
    await batches.return?.()
    await one.unsubscribe()
    await world.pass(1)
    expect(recorder.paths.filter((path) => path.endsWith('one') || path.includes('many'))).toEqual([
      'root > publish m > process m > many 1',
      'root > publish m > process m > many 2',
      'root > publish t > process t > one',
    ])
    expect(withContext({} as Message, () => trace.getSpan(context.active()))).toBeUndefined()
  })
})

describe('spans of publishes', () => {
  it('end with the receipt, or with the error', async () => {
    traceBoth()
    await a.publish('t', Uint8Array.of(1, 2), { qos: 1, retain: true })
    expect(recorder.one('publish t').attributes).toMatchObject({
      'messaging.operation.type': 'send',
      'messaging.message.body.size': 2,
      'mqtt.qos': 1,
      'mqtt.retain': true,
    })
    expect(recorder.one('publish t').status.code).toBe(SpanStatusCode.UNSET)
    await expect(a.publish('#', 'x')).rejects.toMatchObject({ code: 'ERR_INVALID_TOPIC' })
    const { status, attributes, events } = recorder.one('publish #')
    expect([status.code, attributes['error.type']]).toEqual([
      SpanStatusCode.ERROR,
      'ERR_INVALID_TOPIC',
    ])
    expect(events[0]?.attributes).toEqual({ 'exception.type': 'ERR_INVALID_TOPIC' })
  })

  it.each([
    [7, 'x', undefined],
    ['t', undefined, undefined],
    ['t', 'x', 7],
    ['t', 'x', null],
    ['t', 'x', { properties: 7 }],
    ['t', 'x', { properties: { userProperties: 'none' } }],
    ['t', 'x', { properties: { userProperties: [7] } }],
    ['t', 'x', { qos: 'no' }],
  ])('%j %j %j is refused as without', async (topic, payload, options) => {
    const plain = await world.connect('mqtt://b')
    traceBoth()
    const codeOf = (client: BaseClient) =>
      client
        .publish(topic as never, payload as never, options as never)
        .catch(({ code }: MqttError) => code)
    expect(await codeOf(a)).toBe(await codeOf(plain))
    expect(recorder.all).toHaveLength(1)
  })

  it('one that a hook inside of it throws at ends', async () => {
    traceBoth()
    const publish = (): never => {
      throw new TypeError('no')
    }
    a.use({ publish })
    await expect(a.publish('t', 'x')).rejects.toThrow('no')
    expect(recorder.one('publish t').attributes['error.type']).toBe('TypeError')
  })

  it("write to copies, and in place of what another hop wrote; the caller's stay first", async () => {
    traceBoth()
    const subscription = await b.subscribe('t')
    const pairs = { k: '1', traceparent: parentOf(1), tracestate: 'old=1', K: '2' }
    const options: PublishOptions = {
      qos: 0,
      properties: { contentType: 'a/b', userProperties: Object.entries(pairs) },
    }
    const before = structuredClone(options)
    await a.publish('t', 'x', options)
    expect(options).toEqual(before)
    const { spanId, traceId } = recorder.one('publish t').spanContext()
    const written = { k: '1', K: '2', traceparent: `00-${traceId}-${spanId}-01` }
    const properties = { contentType: 'a/b', userProperties: Object.entries(written) }
    expect((await subscription.next())?.properties).toMatchObject(properties)
  })

  it('go by the given propagator, else by the global one, else by traceContext', async () => {
    const fixed = (name: string) => ({
      fields: () => [name],
      inject: (
        _: unknown,
        carrier: unknown,
        setter: { set(carrier: unknown, name: string, value: string): void },
      ) => {
        setter.set(carrier, name, 'v')
        setter.set(carrier, 'huge', 'x'.repeat(70_000))
      },
      extract: () => ROOT_CONTEXT,
    })
    const subscription = await b.subscribe('t')
    const written = async (propagator?: ReturnType<typeof fixed>): Promise<string[]> => {
      const stop = tracing(a, { tracer: recorder.tracer, ...(propagator && { propagator }) })
      await a.publish('t', 'x')
      stop()
      return ((await subscription.next())?.properties.userProperties ?? []).map(([name]) => name)
    }
    propagation.setGlobalPropagator(fixed('global'))
    expect([await written(), await written(fixed('own'))]).toEqual([['global'], ['own']])
    propagation.disable()
    expect(await written()).toEqual(['traceparent'])
  })
})

describe('spans of turns', () => {
  it('have all attempts in one, each failure an event; the last attempt decides', async () => {
    traceBoth()
    const contexts: unknown[] = []
    const handler = async (): Promise<void> => {
      if (contexts.push(trace.getSpan(context.active())) < 3) throw new RangeError('payload: hello')
    }
    await b.listen('t', handler, { qos: 1 })
    await a.publish('t', 'hello', { qos: 1 })
    await world.until(() => recorder.names.includes('process t'))
    const { status, events, attributes } = recorder.one('process t')
    expect([status.code, new Set(contexts).size, attributes['error.type']]).toEqual([
      SpanStatusCode.UNSET,
      1,
      undefined,
    ])
    expect(events.map((event) => event.attributes)).toEqual(
      Array(2).fill({ 'exception.type': 'RangeError' }),
    )
  })

  it.each([
    [() => Promise.reject(new RangeError('hello')), 'RangeError'],
    [
      // biome-ignore lint/suspicious/noThenProperty: what is like a promise
      () => ({ then: (_: unknown, no: (error: unknown) => void) => no(new TypeError('hello')) }),
      'TypeError',
    ],
    [
      () => {
        throw 'hello'
      },
      'string',
    ],
  ])('fail with the handler %#', async (handler, kind) => {
    traceBoth()
    await b.listen('t', handler as never, { qos: 1, onError: 'reject' })
    await a.publish('t', 'hello', { qos: 1 })
    await world.until(() => recorder.names.includes('process t'))
    const { status, attributes, events } = recorder.one('process t')
    expect(status.code).toBe(SpanStatusCode.ERROR)
    expect(attributes).toMatchObject({ 'error.type': kind, 'mqtt.reason_code': 0x80 })
    expect(JSON.stringify([attributes, events.map((event) => event.attributes)])).not.toContain(
      'hello',
    )
  })

  it('have messages of errors where that is asked for', async () => {
    traceBoth({ errorMessages: true })
    await b.listen('t', () => Promise.reject(new RangeError('hello')), { onError: 'reject' })
    await a.publish('t', 'x')
    await world.until(() => recorder.names.includes('process t'))
    expect(recorder.one('process t').events[0]?.attributes).toMatchObject({
      'exception.type': 'RangeError',
      'exception.message': 'hello',
    })
  })

  it('fail with a refusal by reason code, and see nothing behind their end', async () => {
    traceBoth()
    const refuse = async (message: Message): Promise<void> => {
      message.ack(0x83)
      await world.sleep(10)
      throw new Error('late')
    }
    await b.listen('t', refuse, { qos: 1, onError: 'reject' })
    await a.publish('t', 'x', { qos: 1 })
    await world.pass(100)
    const { status, attributes, events } = recorder.one('process t')
    expect(attributes).toMatchObject({ 'error.type': '131', 'mqtt.reason_code': 131 })
    expect([status.code, events]).toEqual([SpanStatusCode.ERROR, []])
  })

  it('fail where the handler stops the subscription', async () => {
    traceBoth()
    const { done } = await b.listen('t', () => Promise.reject(new RangeError('x')), {
      qos: 1,
      onError: 'stop',
    })
    await a.publish('t', 'x', { qos: 1 })
    await expect(done).rejects.toMatchObject({ code: 'ERR_HANDLER_FAILED' })
    // The message is left to the session.
    await world.pass(1)
    expect(recorder.names).toEqual(['publish t'])
    await b.disconnect()
    await world.pass(1)
    expect(recorder.one('process t').attributes['error.type']).toBe('RangeError')
  })

  it('end with the client where nothing else ends them', async () => {
    traceBoth()
    const subscription = await b.subscribe('t', { qos: 1, ack: 'manual' })
    await a.publish('t', 'x', { qos: 1 })
    await subscription.next()
    await world.pass(1)
    expect(recorder.names).toEqual(['publish t'])
    b.destroy()
    await world.pass(1)
    expect(recorder.names).toEqual(['publish t', 'process t'])
  })

  it('that are open are bounded', () => {
    let deliver: Hooks['deliver']
    const never = new Promise<never>(() => undefined)
    const use = (hooks: Hooks) => {
      deliver = hooks.deliver
      return Object.assign(() => undefined, { [Symbol.dispose]: () => undefined })
    }
    tracing(
      { clientId: 'c', closed: never, negotiated: undefined, use, request: () => never },
      { tracer: recorder.tracer },
    )
    for (let index = 0; index < 10_003; index++)
      deliver?.(
        { topic: 't', qos: 0, retain: false, payloadLength: 0, properties: {} } as Message,
        never,
      )
    expect(recorder.all).toHaveLength(3)
  })

  it('are of borrowed messages too, whose object comes again', async () => {
    traceBoth()
    await b.listen('t', () => undefined, { lifetime: 'borrowed' })
    for (const n of ['1', '2', '3']) await spanning(n, () => a.publish('t', n, { qos: 1 }))
    await world.pass(1)
    expect(recorder.paths.filter((path) => path.includes('process'))).toEqual(
      ['1', '2', '3'].map((n) => `${n} > publish t > process t`),
    )
  })
})

describe('a propagator that throws', () => {
  const broken = (name: 'inject' | 'extract' | 'fields') => ({
    ...traceContext,
    [name]: () => {
      throw new URIError('URI malformed')
    },
  })

  it.each(['inject', 'extract', 'fields'] as const)('in %s fails nothing', async (name) => {
    traceBoth({ propagator: broken(name) })
    const got: string[] = []
    await b.listen('t', (message) => void got.push(message.text()), { qos: 1 })
    await b.respond('svc', (message) => message.payload)
    await a.publish('t', 'x', { qos: 1, properties: { userProperties: [['k', 'v']] } })
    expect((await tracedRequest(a, 'svc', 'q')).text()).toBe('q')
    await world.pass(1)
    expect(got).toEqual(['x'])
    expect(recorder.names).toEqual(
      expect.arrayContaining([
        'publish t',
        'process t',
        'request svc',
        'publish svc',
        'process svc',
      ]),
    )
    expect(recorder.all.every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true)
  })

  it('sends User Properties as they were given, and nothing that it had written before', async () => {
    const half: typeof traceContext = {
      ...traceContext,
      inject: (_context, carrier, setter) => {
        setter.set(carrier, 'half', '1')
        throw new URIError('URI malformed')
      },
    }
    tracing(a, { tracer: recorder.tracer, propagator: half })
    const subscription = await b.subscribe('t')
    await a.publish('t', 'x', { properties: { userProperties: [['k', 'v']] } })
    expect((await subscription.next())?.properties.userProperties).toEqual([['k', 'v']])
  })
})

describe('names', () => {
  it('are of few values by default, with a template where one is given', async () => {
    const destination = (topic: string): string | undefined => {
      if (topic === 'bad') throw new Error('no')
      return topic.startsWith('plant/') ? 'plant/{line}' : undefined
    }
    tracing(a, { tracer: recorder.tracer, destination })
    for (const topic of ['plant/3', 'other', 'bad']) await a.publish(topic, 'x')
    expect(recorder.names).toEqual(['publish plant/{line}', 'publish', 'publish'])
    expect(recorder.all[0]?.attributes).toMatchObject({
      'messaging.destination.name': 'plant/3',
      'messaging.destination.template': 'plant/{line}',
    })
    expect(recorder.all[1]?.attributes).not.toHaveProperty('messaging.destination.template')
  })

  it('are bounded', async () => {
    traceBoth()
    await a.publish('t'.repeat(60_000), 'x')
    expect(recorder.names[0]?.length).toBeLessThan(1100)
    expect(recorder.all[0]?.attributes['messaging.destination.name']).toBe('t'.repeat(1024))
  })
})

describe('clients', () => {
  it('that are not traced are as before, and those that are no more', async () => {
    const subscription = await b.subscribe('t', { qos: 1 })
    const stop = tracing(a, { tracer: recorder.tracer })
    await b.publish('t', 'x')
    expect((await subscription.next())?.properties).toEqual({
      subscriptionIdentifiers: expect.anything(),
    })
    stop()
    stop[Symbol.dispose]()
    await a.publish('t', 'x')
    expect((await subscription.next())?.properties.userProperties).toBeUndefined()
    await b.respond('svc', (message) => message.payload)
    expect((await tracedRequest(a, 'svc', 'q')).text()).toBe('q')
    expect(recorder.all).toEqual([])
  })

  it('whose turns are under way when it is taken away end them', async () => {
    const stop = tracing(b, { tracer: recorder.tracer })
    let seen = 0
    await b.listen('t', async () => {
      seen += 1
      await world.sleep(100)
    })
    await a.publish('t', 'x')
    await world.until(() => seen === 1)
    stop()
    await world.pass(1000)
    expect(recorder.names).toEqual(['process'])
  })

  it.each([4, 'auto'] as const)('of 3.1.1 get nothing (version %j)', async (protocolVersion) => {
    await using old = new VirtualWorld({ broker: { protocolVersions: [4] } as never })
    const client = new old.Client('mqtt://b', { protocolVersion })
    tracing(client, { tracer: recorder.tracer })
    const queued = client.publish('t', 'x', { qos: 1 })
    await client.connect()
    const subscription = await client.subscribe('t')
    await queued
    await client.publish('t', 'y')
    expect((await subscription.next())?.text()).toBe('y')
    expect(recorder.names.filter((name) => name === 'publish')).toHaveLength(2)
    await expect(tracedRequest(client, 't', 'q')).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED_OPTION',
    })
    expect(recorder.one('request').attributes['error.type']).toBe('ERR_UNSUPPORTED_OPTION')
  })

  it('of MQTT 5.0 have it in what is queued before the first connection', async () => {
    const late = new world.Client('mqtt://b')
    tracing(late, { tracer: recorder.tracer, spanNames: 'topic' })
    const subscription = await a.subscribe('t', { qos: 1 })
    const queued = late.publish('t', 'x', { qos: 1 })
    await late.connect()
    await queued
    expect((await subscription.next())?.properties.userProperties?.[0]?.[0]).toBe('traceparent')
  })

  it('work without a provider: the context of who is upstream passes on', async () => {
    tracing(b)
    tracing(a)
    const seen: unknown[] = []
    await b.listen('t', (message) => b.publish('u', message.payload) as never)
    const subscription = await a.subscribe('u')
    tracing(a)
    await a.publish('t', 'x')
    seen.push((await subscription.next())?.properties.userProperties)
    const plain = await world.connect('mqtt://b')
    await plain.publish('t', 'x', {
      properties: { userProperties: [['traceparent', parentOf(1)]] },
    })
    seen.push((await subscription.next())?.properties.userProperties)
    expect(seen).toEqual([undefined, [['traceparent', parentOf(1)]]])
  })
})

describe('options', () => {
  it.each([
    [7, ''],
    [{ tracer: {} }, 'tracer'],
    [{ propagator: { inject: 1 } }, 'propagator'],
    [{ destination: 'x' }, 'destination'],
    [{ spanNames: 'all' }, 'spanNames'],
    [{ errorMessages: 1 }, 'errorMessages'],
    [{ tracers: 1 }, 'tracers'],
  ])('%j is refused', (options, option) => {
    const refused = expect.objectContaining({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringContaining(option),
    })
    expect(() => tracing(a, options as never)).toThrow(refused)
  })

  it('are those of traceContext', () => {
    expect(traceContext.fields()).toEqual(['traceparent', 'tracestate'])
  })
})
