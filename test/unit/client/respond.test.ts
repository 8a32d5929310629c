/** `respond`: what is answered, where, with what, and what happens when the handler or the answer fails. */
import { describe, expect, it } from 'vitest'
import type { Message, Reply, Responder, Responding, RespondOptions } from '../../../src/client/api/index.js'
import { Requests } from '../../../src/client/requesting/request.js'
import { respond } from '../../../src/client/requesting/respond.js'
import { MqttError } from '../../../src/errors.js'
import { accepting, agreeable, failure, type World } from './harness.js'
import { acks, agreed, gate, obliging, publish, quiet } from './incoming.js'
import { ClientDouble, viewOf } from './request-double.js'

const utf8 = new TextEncoder()

async function responding(world: World, handler: Responding, options?: RespondOptions, filter = 'svc'): Promise<Responder> {
  const promise = quiet(respond(viewOf(world), filter, handler, options))
  await world.settle()
  return promise
}

/** A request as the broker sends it. */
function request(text: string, packetId?: number, responseTopic: string | undefined = 'mqwire/r', correlation: string | undefined = 'k') {
  const correlationData = correlation === undefined ? undefined : utf8.encode(correlation)
  return publish('svc', text, packetId, { properties: { responseTopic, correlationData } })
}

/** What was answered, as `topic qos correlation payload`. */
function answers(world: World): string[] {
  return world.peer.all('publish').map(({ topic, qos, properties, payload }) => {
    const correlation = properties.correlationData === undefined ? '-' : Buffer.from(properties.correlationData).toString()
    return `${topic} ${qos} ${correlation} ${Buffer.from(payload).toString()}`
  })
}

describe('answers', () => {
  it('the payload goes to the response topic, with the correlation data of its request', async () => {
    const world = await agreed()
    const responder = await responding(world, (message) => `${message.text()}!`)
    expect(responder.granted).toMatchObject([{ filter: 'svc', qos: 0 }])
    await world.send(request('a', undefined, 'r/1', 'k1'), request('b', undefined, 'r/2', 'k2'))
    expect(answers(world)).toEqual(['r/1 0 k1 a!', 'r/2 0 k2 b!'])
  })

  const kinds: [string, Responding, string][] = [
    ['a string', () => 'x', 'x'],
    ['bytes', () => utf8.encode('x'), 'x'],
    ['a buffer', () => utf8.encode('x').buffer, 'x'],
    ['a promise', async () => 'x', 'x'],
    ['an object', () => ({ payload: 'x' }), 'x'],
    ['the message’s own payload', (message) => message.payload, 'ping'],
    ['an object without a payload', () => ({}), ''],
    ['nothing, which is an empty answer', () => undefined, ''],
    ['nothing at all, in time', async () => undefined, ''],
  ]
  it.each(kinds)('%s', async (_kind, handler, expected) => {
    const world = await agreed()
    await responding(world, handler)
    await world.send(request('ping'))
    expect(answers(world)).toEqual([`mqwire/r 0 k ${expected}`])
  })

  it('an answer that is too large, and so is the word of that: the caller hears nothing, once', async () => {
    const world = await agreed({}, (packet) => (packet.type === 'connect' ? accepting({ maximumPacketSize: 30 })(packet) : agreeable(packet)))
    const responder = await responding(world, () => 'x')
    await world.send(request('a', undefined, 'r'.repeat(40)))
    expect([answers(world), responder.failed]).toEqual([[], 2])
  })

  it('null answers nothing, and the request is acknowledged', async () => {
    const world = await agreed()
    await responding(world, () => null, { qos: 1 })
    await world.send(request('a', 1))
    expect(answers(world)).toEqual([])
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('with QoS and properties of its own; by default at the QoS of the request', async () => {
    const world = await agreed({}, obliging)
    const userProperties: [string, string][] = [
      ['b', ''],
      ['', '1'],
      ['b', ''],
    ]
    const replies: (Reply | string)[] = [{ payload: '1', qos: 2, properties: { userProperties, contentType: 't', responseTopic: 'back' } }, '2', '3']
    await responding(world, () => replies.shift() ?? '', { qos: 2 })
    await world.send(request('a', 1), request('b', 2), request('c'))
    expect(world.peer.all('publish').map(({ qos }) => qos)).toEqual([2, 1, 0])
    expect(world.peer.all('publish')[0]?.properties).toMatchObject({
      userProperties,
      contentType: 't',
      responseTopic: 'back',
      correlationData: utf8.encode('k'),
    })
  })

  it('a request without correlation data is answered without', async () => {
    const world = await agreed()
    await responding(world, () => 'x')
    await world.send(publish('svc', 'a', undefined, { properties: { responseTopic: 'r' } }))
    expect(answers(world)).toEqual(['r 0 - x'])
  })

  it('a request is acknowledged when its answer is, one after the other', async () => {
    const world = await agreed({}, (packet) => (packet.type === 'publish' ? undefined : obliging(packet)))
    await responding(world, (message) => message.text(), { qos: 1 })
    await world.send(request('a', 1), request('b', 2))
    expect(answers(world)).toEqual(['mqwire/r 1 k a'])
    expect(acks(world)).toEqual([])
    await world.send({ type: 'puback', packetId: world.peer.last('publish').packetId ?? 0, reasonCode: 0 })
    expect(acks(world)).toEqual(['puback 1'])
    expect(answers(world)).toEqual(['mqwire/r 1 k a', 'mqwire/r 1 k b'])
  })

  it('concurrency: several at a time, each answer to its own request', async () => {
    const world = await agreed()
    const gates = [gate(), gate()]
    const handler = async (message: Message): Promise<string> => {
      await gates[Number(message.text())]?.promise
      return message.text()
    }
    await responding(world, handler, { concurrency: 2 })
    await world.send(request('0', undefined, 'r/0', 'k0'), request('1', undefined, 'r/1', 'k1'))
    gates[1]?.open()
    await world.settle()
    gates[0]?.open()
    await world.settle()
    expect(answers(world)).toEqual(['r/1 0 k1 1', 'r/0 0 k0 0'])
  })

  it('a borrowed message that is released early is answered all the same', async () => {
    const world = await agreed()
    await responding(
      world,
      (message) => {
        message.ack()
        return 'x'
      },
      { lifetime: 'borrowed', qos: 1 },
    )
    await world.send(request('a', 1))
    expect(answers(world)).toEqual(['mqwire/r 1 k x'])
  })

  it('a request of this very client reaches its own responder, and the answer its caller', async () => {
    const world = await agreed()
    await responding(world, (message) => `re ${message.text()}`)
    const reply = quiet(new Requests(viewOf(world)).request('svc', 'me'))
    await world.settle()
    const { properties } = world.peer.last('publish')
    await world.send(publish('svc', 'me', undefined, { properties }))
    const back = world.peer.last('publish')
    await world.send(publish(back.topic, Buffer.from(back.payload).toString(), undefined, { properties: back.properties }))
    expect((await reply).text()).toBe('re me')
  })
})

describe('where answers may go', () => {
  /** Which of these response topics are answered. */
  async function answered(topics: readonly string[], options?: RespondOptions): Promise<string[]> {
    const world = await agreed()
    const calls: string[] = []
    const responder = await responding(
      world,
      (message) => {
        calls.push(message.properties.responseTopic ?? '')
        return 'x'
      },
      options,
    )
    await world.send(...topics.map((topic) => request('a', undefined, topic)))
    const sent = world.peer.all('publish').map(({ topic }) => topic)
    // The handler is not even called for the others.
    expect(calls).toEqual(sent)
    expect(responder.ignored).toBe(topics.length - sent.length)
    return sent
  }

  it('by default anywhere but in topics that begin with $', async () => {
    expect(await answered(['a', '$SYS/broker', '/a', 'x/$SYS', '$share/g/a', '$'])).toEqual(['a', '/a', 'x/$SYS'])
  })

  it.each([
    ['tenant/1', ['tenant/1', 'tenant/1/r']],
    ['tenant/1/', ['tenant/1', 'tenant/1/r']],
    [
      ['tenant/1', 'other'],
      ['tenant/1', 'tenant/1/r', 'other'],
    ],
    ['$SYS', ['$SYS/x']],
    [[], []],
  ])('prefixes of whole levels: %j', async (allow, expected) => {
    expect(await answered(['tenant/1', 'tenant/1/r', 'tenant/10/r', 'tenant', 'other', '$SYS/x'], { allow })).toEqual(expected)
  })

  it('a function decides, knowing the message', async () => {
    expect(await answered(['a', 'b', '$c'], { allow: (topic, message) => message.text() === 'a' && topic !== 'b' })).toEqual(['a', '$c'])
    expect(await answered(['a'], { allow: (() => 'yes') as never })).toEqual([])
  })

  it('without a response topic there is nothing to answer: counted, acknowledged, the handler not called', async () => {
    const world = await agreed()
    let calls = 0
    const responder = await responding(world, () => String(++calls), { qos: 1 })
    await world.send(publish('svc', 'a', 1), publish('svc', 'b'))
    expect([calls, responder.ignored]).toEqual([0, 2])
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.all('publish')).toEqual([])
  })

  it('a wildcard never, whatever the function says', async () => {
    const client = new ClientDouble()
    let calls = 0
    const responder = await respond(client, 'svc', () => String(++calls), { allow: () => true })
    for (const responseTopic of ['a/+', '#', 'a/#']) await client.deliver(client.listened[0], 'x', { responseTopic })
    expect([calls, responder.ignored, client.published.length]).toEqual([0, 3, 0])
  })
})

describe('failures', () => {
  /** The User Properties of what was answered. */
  const told = (world: World) => world.peer.all('publish').map(({ properties }) => properties.userProperties)

  it.each([0, 1] as const)('QoS %i: of a handler that throws its caller is told a code and nothing else; an error event', async (qos) => {
    const world = await agreed({ keepAlive: false })
    const problem = new Error('secret')
    const responder = await responding(
      world,
      async () => {
        throw problem
      },
      { qos, onError: 'reject' },
    )
    await world.send(request('a', qos === 0 ? undefined : 1))
    expect(answers(world)).toEqual([`mqwire/r ${qos} k `])
    expect(told(world)).toEqual([[['error', 'ERR_HANDLER_FAILED']]])
    expect(world.seen('error')).toMatchObject([{ error: { code: 'ERR_HANDLER_FAILED', cause: problem } }])
    expect(acks(world)).toEqual(qos === 0 ? [] : ['puback 1 0x80'])
    expect([responder.failed, responder.ignored]).toEqual([0, 0])
  })

  it('what the handler chooses to tell leaves with it, bounded; an error that came from elsewhere does not', async () => {
    const world = await agreed()
    const errors = [
      new MqttError('ERR_REMOTE', 'no such item', { reasonName: 'NOT_FOUND' }),
      new MqttError('ERR_REMOTE', 'no such item'),
      new MqttError('ERR_REMOTE', 'x'.repeat(100_000), { reasonName: 'y\0'.repeat(1000) }),
      new MqttError('ERR_REMOTE', 'of a service behind it', { fault: 'remote', reasonName: 'HIDDEN' }),
      new MqttError('ERR_TIMEOUT', 'of a service behind it'),
    ]
    await responding(world, () => {
      throw errors.shift()
    })
    for (let count = 0; count < 5; count++) await world.send(request('a'))
    expect(answers(world).map((answer) => answer.slice(0, 40))).toEqual([
      'mqwire/r 0 k no such item',
      'mqwire/r 0 k no such item',
      `mqwire/r 0 k ${'x'.repeat(27)}`,
      'mqwire/r 0 k ',
      'mqwire/r 0 k ',
    ])
    const codes = told(world).map((pairs) => pairs?.[0]?.[1] ?? '')
    expect(codes).toEqual(['NOT_FOUND', 'ERR_REMOTE', expect.stringMatching(/^y/), 'ERR_HANDLER_FAILED', 'ERR_HANDLER_FAILED'])
    expect([codes[2]?.length, answers(world)[2]?.length].every((length = 0) => length < 300)).toBe(true)
  })

  it('a retry never answers; the last failure does, once', async () => {
    const world = await agreed({ keepAlive: false })
    let calls = 0
    await responding(
      world,
      () => {
        calls += 1
        throw new Error('never')
      },
      { qos: 1 },
    )
    await world.send(request('a', 1))
    await world.clock.advance(60_000)
    expect([calls, answers(world), acks(world)]).toEqual([6, ['mqwire/r 1 k '], ['puback 1 0x80']])
  })

  const verdicts: [string, RespondOptions['onError'], number, string[]][] = [
    ["'stop'", 'stop', 1, []],
    ['a function that stops', () => 'stop', 1, []],
    ['a function that rejects', () => Promise.resolve('reject'), 1, ['mqwire/r 1 k ']],
    ['a function that retries ten times', (_error, _message, attempt) => (attempt > 10 ? 'reject' : 'retry'), 11, ['mqwire/r 1 k ']],
    [
      'a function that throws',
      () => {
        throw new Error('worse')
      },
      1,
      ['mqwire/r 1 k '],
    ],
  ]
  it.each(verdicts)('onError decides first: %s', async (_what, onError, expected, answered) => {
    const world = await agreed({ keepAlive: false })
    let calls = 0
    const responder = await responding(
      world,
      () => {
        calls += 1
        throw new Error('handler')
      },
      { qos: 1, onError },
    )
    quiet(responder.done)
    await world.send(request('a', 1))
    await world.clock.advance(60_000)
    expect([calls, answers(world)]).toEqual([expected, answered])
  })

  it('a wrong onError is refused', async () => {
    const client = new ClientDouble()
    expect(await failure(respond(client, 'svc', () => '', { onError: 'ignore' as unknown as 'stop' }))).toMatchObject({ option: 'onError' })
  })

  it('a request that the handler released, and then failed: its caller is told', async () => {
    const world = await agreed({ keepAlive: false })
    await responding(
      world,
      (message) => {
        message.ack()
        throw new Error('late')
      },
      { qos: 1, lifetime: 'borrowed' },
    )
    await world.send(request('a', 1))
    await world.clock.advance(60_000)
    expect(answers(world)).toEqual(['mqwire/r 1 k '])
  })

  it('nothing is answered once the client ends: the request stays with the session', async () => {
    const world = await agreed({ keepAlive: false })
    const wait = gate()
    await responding(
      world,
      async () => {
        await wait.promise
        throw new Error('late')
      },
      { qos: 1, onError: 'reject' },
    )
    await world.send(request('a', 1))
    const bye = world.client.disconnect()
    await world.settle()
    wait.open()
    await world.settle()
    await bye
    expect([answers(world), acks(world)]).toEqual([[], []])
  })

  it('an error that cannot be published is counted', async () => {
    const world = await agreed({ keepAlive: false }, (packet) =>
      packet.type === 'publish' ? { type: 'puback', packetId: packet.packetId as number, reasonCode: 0x87, properties: {} } : obliging(packet),
    )
    const responder = await responding(
      world,
      () => {
        throw new Error('handler')
      },
      { qos: 1, onError: 'reject' },
    )
    await world.send(request('a', 1))
    expect([responder.failed, acks(world)]).toEqual([1, ['puback 1 0x80']])
  })

  it('requests are answered as they come, also with a wildcard; order asks for more', async () => {
    const client = new ClientDouble()
    await respond(client, 'svc/#', () => '', { concurrency: 5 })
    await respond(client, 'svc/#', () => '', { concurrency: 5, order: 'topic' })
    expect(client.listened.map(({ options }) => options.order)).toEqual(['none', 'topic'])
  })

  it('onError is that of listen: retried at QoS 1, and answered when it works', async () => {
    const world = await agreed({ keepAlive: false })
    let calls = 0
    const handler = (): string => {
      if (++calls < 3) throw new Error('not yet')
      return 'at last'
    }
    await responding(world, handler, { qos: 1 })
    await world.send(request('a', 1))
    await world.clock.advance(10_000)
    expect(calls).toBe(3)
    expect(answers(world)).toEqual(['mqwire/r 1 k at last'])
    expect(acks(world)).toEqual(['puback 1'])
  })

  it.each([5, true, { payload: 5 }, { text: 'x' }, { qos: 3 }, { properties: { correlationData: 'mine' } }, { properties: { contentType: 5 } }, []])(
    'a result that is none counts as a failure of the handler: %j',
    async (result) => {
      const world = await agreed()
      const responder = await responding(world, () => result as unknown as string)
      await world.send(request('a'), request('b'))
      expect(answers(world)).toEqual(['mqwire/r 0 k ', 'mqwire/r 0 k '])
      expect(world.seen('error')).toHaveLength(2)
      expect(world.seen('error')[0]?.error).toMatchObject({ code: 'ERR_HANDLER_FAILED', cause: { code: 'ERR_INVALID_OPTION' } })
      expect(responder.failed).toBe(0)
    },
  )

  it('an answer that is refused is counted and shows as drop; the handler does not run again', async () => {
    const world = await agreed({ keepAlive: false }, (packet) =>
      packet.type === 'publish' ? { type: 'puback', packetId: packet.packetId ?? 0, reasonCode: 0x87 } : obliging(packet),
    )
    let calls = 0
    const responder = await responding(world, () => String(++calls), { qos: 1 })
    await world.send(request('a', 1))
    await world.clock.advance(60_000)
    expect([calls, responder.failed]).toEqual([1, 1])
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.seen('drop')).toMatchObject([{ direction: 'out', topic: 'mqwire/r', error: { code: 'ERR_PUBLISH_REFUSED' } }])
  })

  it('a filter that is refused rejects', async () => {
    const world = await agreed({}, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x87] } : obliging(packet),
    )
    const error = failure(respond(viewOf(world), 'svc', () => ''))
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED' })
  })

  it('an answer that is under way when disconnect() begins still leaves', async () => {
    const world = await agreed()
    const slow = gate()
    const responder = await responding(world, async () => {
      await slow.promise
      return 'done'
    })
    await world.send(request('a'), request('b'))
    const leaving = quiet(world.client.disconnect())
    await world.settle()
    slow.open()
    await world.settle()
    await world.clock.advance(5000)
    await leaving
    expect(answers(world)).toEqual(['mqwire/r 0 k done'])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
    expect(await responder.done).toBeUndefined()
  })
})

describe('handling and arguments', () => {
  it('unsubscribe ends it; done settles', async () => {
    const world = await agreed()
    const responder = await responding(world, () => 'x')
    quiet(responder.unsubscribe())
    await world.settle()
    expect(world.peer.all('unsubscribe')).toMatchObject([{ filters: ['svc'] }])
    expect(await responder.done).toBeUndefined()
    const second = await responding(world, () => 'x')
    second.detach()
    expect(await second.done).toBeUndefined()
    const third = await responding(world, () => 'x', {}, 'other')
    await third[Symbol.asyncDispose]()
    expect(await third.done).toBeUndefined()
  })

  it.each([undefined, 5, {}])('a handler that is none: %j', async (handler) => {
    const world = await agreed()
    expect(await failure(respond(viewOf(world), 'svc', handler as unknown as Responding))).toMatchObject({ code: 'ERR_INVALID_HANDLER' })
  })

  it.each([
    ['allow', { allow: 5 }],
    ['allow', { allow: '' }],
    ['allow', { allow: ['a', 5] }],
    ['allow', { allow: 'a/#' }],
    ['concurrency', { concurrency: 0 }],
    ['ack', { ack: 'manual' }],
    ['nonsense', { nonsense: 1 }],
    ['options', null],
  ])('%s refused: %j', async (option, options) => {
    const world = await agreed()
    const error = await failure(respond(viewOf(world), 'svc', () => '', options as unknown as RespondOptions))
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('on MQTT 3.1.1: ERR_UNSUPPORTED_OPTION', async () => {
    const client = new ClientDouble()
    client.version = 4
    expect(await failure(respond(client, 'svc', () => ''))).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'protocolVersion' })
    expect(client.listened).toEqual([])
  })
})
