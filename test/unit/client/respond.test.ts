/** `respond`: what is answered, where, with what, and what happens when the handler or the answer fails; and whole exchanges through the broker in memory. */
import { afterEach, describe, expect, it, test } from 'vitest'
import type {
  Message,
  Reply,
  Responding,
  RespondOptions,
} from '../../../src/client/options/index.js'
import { respond } from '../../../src/client/request/respond.js'
import { MqttError } from '../../../src/errors.js'
import type { MemoryBrokerOptions } from '../../../src/testing/broker/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'
import type { QoS } from '../../../src/wire/packets.js'
import { again, keeps, lasting, steady, willing } from './across.js'
import { accepting, agreeable, connected, failure, times } from './harness.js'
import { acks, agreed, gate, obliging, publish, quiet } from './incoming.js'
import { ClientDouble } from './request-double.js'
import { unhandledIn } from './unhandled.js'

const utf8 = new TextEncoder()
const userProperties = ['b=', '=1', 'b='].map((pair) => pair.split('=') as [string, string])

function request(text: string, packetId?: number, responseTopic = 'mqwire/r', correlation = 'k') {
  const properties = { responseTopic, correlationData: utf8.encode(correlation) }
  return publish('svc', text, packetId, { properties })
}

/** A client with a responder for `svc`. */
async function responding(handler: Responding, options: RespondOptions = {}, answer?: Answer) {
  const world = await agreed({ keepAlive: false }, answer)
  let calls = 0
  const counted = ((message) => {
    calls += 1
    return handler(message)
  }) as Responding
  const starting = quiet(world.client.respond('svc', counted, options))
  await world.settle()
  return {
    world,
    responder: await starting,
    calls: () => calls,
    /** What was answered, as `topic qos correlation payload`. */
    answers: () =>
      world.peer.all('publish').map(({ topic, qos, properties, payload }) => {
        const key =
          properties.correlationData === undefined ? '-' : Buffer.from(properties.correlationData)
        return `${topic} ${qos} ${key} ${Buffer.from(payload)}`
      }),
    /** A request at this QoS, and a minute for what follows from it. */
    async ask(qos: 0 | 1 = 1) {
      await world.send(request('a', qos === 0 ? undefined : 1))
      await world.clock.advance(60_000)
    },
  }
}

const failing = (): never => {
  throw new Error('secret')
}

/** A broker that says yes, but this to PUBLISH. */
const refusing: Answer = (packet) =>
  packet.type === 'publish'
    ? { type: 'puback', packetId: packet.packetId ?? 0, reasonCode: 0x87 }
    : obliging(packet)

it('the payload goes to the response topic, with the correlation data of its request, if any', async () => {
  const { world, responder, answers } = await responding((message) => `${message.text()}!`)
  expect(responder.granted).toMatchObject([{ filter: 'svc', qos: 0 }])
  const bare = publish('svc', 'c', undefined, { properties: { responseTopic: 'r' } })
  await world.send(request('a', undefined, 'r/1', 'k1'), request('b', undefined, 'r/2', 'k2'), bare)
  expect(answers()).toEqual(['r/1 0 k1 a!', 'r/2 0 k2 b!', 'r 0 - c!'])
})

it.each<[string, Responding, string]>([
  ['a string', () => 'x', 'x'],
  ['bytes', () => utf8.encode('x'), 'x'],
  ['a buffer', () => utf8.encode('x').buffer, 'x'],
  ['a promise', async () => 'x', 'x'],
  ['an object', () => ({ payload: 'x' }), 'x'],
  ['the message’s own payload', (message) => message.payload, 'a'],
  ['an object without a payload', () => ({}), ''],
  ['nothing, which is an empty answer', () => undefined, ''],
  ['nothing at all, in time', async () => undefined, ''],
])('answers with %s', async (_kind, handler, expected) => {
  const { answers, ask } = await responding(handler)
  await ask(0)
  expect(answers()).toEqual([`mqwire/r 0 k ${expected}`])
})

it('an answer that is too large, and so is the word of that: the caller hears nothing, once', async () => {
  const small = willing(false, { maximumPacketSize: 30 })
  const { world, responder, answers } = await responding(() => 'x', {}, small)
  await world.send(request('a', undefined, 'r'.repeat(40)))
  expect([answers(), responder.failed]).toEqual([[], 2])
})

it('null answers nothing, and the request is acknowledged', async () => {
  const { world, answers, ask } = await responding(() => null, { qos: 1 })
  await ask()
  expect([answers(), acks(world)]).toEqual([[], ['puback 1']])
})

it('with QoS and properties of its own; by default at the QoS of the request', async () => {
  const properties = { userProperties, contentType: 't', responseTopic: 'back' }
  const replies: (Reply | string)[] = [{ payload: '1', qos: 2, properties }, '2', '3']
  const { world } = await responding(() => replies.shift() ?? '', { qos: 2 }, obliging)
  await world.send(request('a', 1), request('b', 2), request('c'))
  const [first, second, third] = world.peer.all('publish')
  expect([first?.qos, second?.qos, third?.qos]).toEqual([2, 1, 0])
  expect(first?.properties).toMatchObject({ ...properties, correlationData: utf8.encode('k') })
})

it('a request is acknowledged when its answer is, one after the other', async () => {
  const silent: Answer = (packet) => (packet.type === 'publish' ? undefined : obliging(packet))
  const { world, answers } = await responding((message) => message.text(), { qos: 1 }, silent)
  await world.send(request('a', 1), request('b', 2))
  expect([answers(), acks(world)]).toEqual([['mqwire/r 1 k a'], []])
  await world.send({
    type: 'puback',
    packetId: world.peer.last('publish').packetId ?? 0,
    reasonCode: 0,
  })
  expect([answers(), acks(world)]).toEqual([['mqwire/r 1 k a', 'mqwire/r 1 k b'], ['puback 1']])
})

it('a borrowed message that is released early is answered all the same, also when the handler fails', async () => {
  for (const [end, text] of [
    [() => 'x', 'x'],
    [failing, ''],
  ] as const) {
    const handler = (message: Message) => {
      message.ack()
      return end()
    }
    const { answers, ask } = await responding(handler, { lifetime: 'borrowed', qos: 1 })
    await ask()
    expect(answers()).toEqual([`mqwire/r 1 k ${text}`])
  }
})

describe('where answers may go', () => {
  const topics = [
    'tenant/1',
    'tenant/1/r',
    'tenant/10/r',
    'tenant',
    'other',
    '$SYS/x',
    '/a',
    'x/$SYS',
    '$share/g/a',
    '$',
  ]
  const own = ['tenant/1', 'tenant/1/r']
  const first: RespondOptions['allow'] = (topic, message) =>
    message.text() === 'a' && /^(tenant|\$)$/.test(topic)

  it.each<[RespondOptions['allow'], string[]]>([
    // By default anywhere but in topics that begin with $.
    [undefined, topics.filter((topic) => !topic.startsWith('$'))],
    ['tenant/1', own],
    ['tenant/1/', own],
    [
      ['tenant/1', 'other'],
      [...own, 'other'],
    ],
    ['$SYS', ['$SYS/x']],
    [[], []],
    // A function knows the message.
    [first, ['tenant', '$']],
    [(() => 'yes') as never, []],
  ])('allow: %j: prefixes of whole levels, or what a function says', async (allow, expected) => {
    const called: unknown[] = []
    const handler = ({ properties }: Message) => {
      called.push(properties.responseTopic)
      return 'x'
    }
    const { world, responder } = await responding(handler, allow === undefined ? {} : { allow })
    await world.send(...topics.map((topic) => request('a', undefined, topic)))
    expect(world.peer.all('publish').map(({ topic }) => topic)).toEqual(expected)
    // The handler is not even called for the others.
    expect([called, responder.ignored]).toEqual([expected, topics.length - expected.length])
  })

  it('without a response topic there is nothing to answer: counted, acknowledged, the handler not called', async () => {
    const { world, responder, calls, answers } = await responding(() => 'x', { qos: 1 })
    await world.send(publish('svc', 'a', 1), publish('svc', 'b'))
    expect([calls(), responder.ignored, acks(world), answers()]).toEqual([0, 2, ['puback 1'], []])
  })

  it('a wildcard never, whatever the function says', async () => {
    const client = new ClientDouble()
    let calls = 0
    const responder = await respond(client, 'svc', () => String(++calls), { allow: () => true })
    for (const responseTopic of ['a/+', '#', 'a/#'])
      await client.deliver(client.listened[0], 'x', { responseTopic })
    expect([calls, responder.ignored, client.published.length]).toEqual([0, 3, 0])
  })
})

it.each([0, 1] as const)('QoS %i: a handler that throws: the caller gets a code', async (qos) => {
  const { world, responder, answers, ask } = await responding(async () => failing(), {
    qos,
    onError: 'reject',
  })
  await ask(qos)
  expect(answers()).toEqual([`mqwire/r ${qos} k `])
  expect(world.peer.last('publish').properties.userProperties).toEqual([
    ['error', 'ERR_HANDLER_FAILED'],
  ])
  const error = { code: 'ERR_HANDLER_FAILED', cause: new Error('secret') }
  expect(world.seen('error')).toMatchObject([{ error }])
  expect(acks(world)).toEqual(['puback 1 0x80'].slice(0, qos))
  expect([responder.failed, responder.ignored]).toEqual([0, 0])
})

it('what the handler chooses to tell leaves with it, bounded; an error that came from elsewhere does not', async () => {
  const own = (text: string, more?: object) => new MqttError('ERR_REMOTE', text, more)
  const errors = [
    own('no such item', { reasonName: 'NOT_FOUND' }),
    own('no such item'),
    own('x'.repeat(100_000), { reasonName: 'y\0'.repeat(1000) }),
    own('of a service behind it', { fault: 'remote', reasonName: 'HIDDEN' }),
    new MqttError('ERR_TIMEOUT', 'of a service behind it'),
  ]
  const { world, answers } = await responding(() => {
    throw errors.shift()
  })
  for (let count = 0; count < 5; count++) await world.send(request('a'))
  const texts = ['no such item', 'no such item', 'x'.repeat(27), '', '']
  expect(answers().map((answer) => answer.slice(0, 40))).toEqual(
    texts.map((text) => `mqwire/r 0 k ${text}`),
  )
  const codes = world.peer
    .all('publish')
    .map(({ properties }) => properties.userProperties?.[0]?.[1] ?? '')
  const hidden = 'ERR_HANDLER_FAILED'
  expect(codes).toEqual(['NOT_FOUND', 'ERR_REMOTE', expect.stringMatching(/^y/), hidden, hidden])
  expect(Math.max(...[...answers(), ...codes].map((text) => text.length))).toBeLessThan(300)
})

it.each<[string, RespondOptions, number, string[], string[]]>([
  [
    'by default it is retried, which never answers; the last failure does, once',
    {},
    6,
    [''],
    ['puback 1 0x80'],
  ],
  ['stop', { onError: 'stop' }, 1, [], []],
  ['a function that stops', { onError: () => 'stop' }, 1, [], []],
  [
    'a function that rejects',
    { onError: () => Promise.resolve('reject') },
    1,
    [''],
    ['puback 1 0x80'],
  ],
  [
    'ten retries',
    { onError: (_e, _m, attempt) => (attempt > 10 ? 'reject' : 'retry') },
    11,
    [''],
    ['puback 1 0x80'],
  ],
  ['a function that throws', { onError: failing }, 1, [''], ['puback 1 0x80']],
])('onError decides first: %s', async (_what, options, expected, texts, acknowledged) => {
  const { world, responder, calls, answers, ask } = await responding(failing, {
    qos: 1,
    ...options,
  })
  quiet(responder.done)
  await ask()
  expect([calls(), answers()]).toEqual([expected, texts.map((text) => `mqwire/r 1 k ${text}`)])
  expect(acks(world)).toEqual(acknowledged)
})

it('nothing is answered once the client ends: the request stays with the session', async () => {
  const wait = gate()
  const handler = (): Promise<never> => wait.promise.then(failing)
  const { world, answers } = await responding(handler, { qos: 1, onError: 'reject' })
  await world.send(request('a', 1))
  const bye = world.client.disconnect()
  await world.settle()
  wait.open()
  await world.settle()
  await bye
  expect([answers(), acks(world)]).toEqual([[], []])
})

it('an answer that is refused is counted and shows as drop; the handler does not run again', async () => {
  const { world, responder, calls, ask } = await responding(() => 'x', { qos: 1 }, refusing)
  await ask()
  expect([calls(), responder.failed, acks(world)]).toEqual([1, 1, ['puback 1']])
  const error = { code: 'ERR_PUBLISH_REFUSED' }
  expect(world.seen('drop')).toMatchObject([{ direction: 'out', topic: 'mqwire/r', error }])
})

it.each([
  ...[5, true, { payload: 5 }, { text: 'x' }, { qos: 3 }, []],
  ...[{ properties: { correlationData: 'mine' } }, { properties: { contentType: 5 } }],
])('a result that is none counts as a failure of the handler: %j', async (result) => {
  const { world, responder, answers } = await responding(() => result as unknown as string)
  await world.send(request('a'), request('b'))
  expect(answers()).toEqual(['mqwire/r 0 k ', 'mqwire/r 0 k '])
  const error = { code: 'ERR_HANDLER_FAILED', cause: { code: 'ERR_INVALID_OPTION' } }
  expect(world.seen('error')).toMatchObject([{ error }, { error }])
  expect(responder.failed).toBe(0)
})

it('unsubscribe, detach and dispose end it; done settles', async () => {
  const ends = ['unsubscribe', 'detach', Symbol.asyncDispose] as const
  for (const [index, end] of ends.entries()) {
    const { world, responder } = await responding(() => 'x')
    await Promise.all([responder[end](), world.settle()])
    expect(world.peer.all('unsubscribe').map(({ filters }) => filters)).toEqual(
      index === 1 ? [] : [['svc']],
    )
    expect(await responder.done).toBeUndefined()
  }
})

it('requests are answered as they come, also with a wildcard; order asks for more', async () => {
  const client = new ClientDouble()
  await respond(client, 'svc/#', () => '', { concurrency: 5 })
  await respond(client, 'svc/#', () => '', { concurrency: 5, order: 'topic' })
  expect(client.listened.map(({ options }) => options.order)).toEqual(['none', 'topic'])
})

it('a filter that is refused rejects', async () => {
  const no: Answer = (packet) =>
    packet.type === 'subscribe'
      ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x87] }
      : obliging(packet)
  expect(await failure(responding(() => '', {}, no))).toMatchObject({
    code: 'ERR_SUBSCRIBE_REFUSED',
  })
})

it('on MQTT 3.1.1: ERR_UNSUPPORTED_OPTION', async () => {
  const client = new ClientDouble()
  client.version = 4
  const error = await failure(respond(client, 'svc', () => ''))
  expect(error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'protocolVersion' })
  expect(client.listened).toEqual([])
})

let world: VirtualWorld
const client = (clientId: string) =>
  world.connect('mqtt://b', {
    ...{ clientId, keepAlive: false, reconnect: { backoff: () => 100 } },
    requestResponseInformation: true,
  })

/** A world with a responder for `svc/+`; gives a requester. */
async function scene(handler: Responding, options?: RespondOptions, broker?: MemoryBrokerOptions) {
  world = new VirtualWorld({ broker })
  await (await client('responder')).respond('svc/+', handler, options)
  return client('requester')
}

describe('request and respond through a broker', () => {
  afterEach(async () => {
    expect(world.broker.violations).toEqual([])
    await world.close()
  })

  it.each([0, 1, 2] as QoS[])('a hundred at a time at QoS %i', async (qos) => {
    const requester = await scene((message) => `${message.topic} ${message.text()}`, { qos })
    const indexes = times(100, (index) => index)
    const replies = indexes.map((index) => requester.request(`svc/${index}`, `${index}`, { qos }))
    const texts = (await world.until(Promise.all(replies))).map((message) => message.text())
    expect(texts).toEqual(indexes.map((index) => `svc/${index} ${index}`))
  })

  it('response information keeps two tenants apart; a responder that allows one answers only there', async () => {
    const requester = await scene(
      (message) => message.properties.responseTopic,
      { allow: 'tenant/requester' },
      { responseInformation: (connect) => `tenant/${connect.clientId}` },
    )
    const reply = requester.request('svc/a', '')
    const refused = failure((await client('other')).request('svc/a', '', { timeout: 500 }))
    expect((await reply).text()).toMatch(/^tenant\/requester\/[0-9a-f]{20}$/)
    expect(await world.until(refused)).toMatchObject({ code: 'ERR_TIMEOUT' })
  })

  it('the broker forgets everything while a call waits: both subscriptions come back, the answer arrives', async () => {
    const held: (() => void)[] = []
    const handler = () => new Promise<string>((resolve) => held.push(() => resolve('after all')))
    const requester = await scene(handler, { qos: 1, concurrency: 2 })
    for (const forgetful of [true, false]) {
      const reply = quiet(requester.request('svc/a', '', { qos: 1 }))
      await world.until(() => held.length > 0)
      if (forgetful) world.broker.restart({ keepSessions: false })
      await world.pass(200)
      held.shift()?.()
      expect((await world.until(reply)).text()).toBe('after all')
    }
  })
})

test('a response subscription that the server never grants is not asked for once more with each connection', async () => {
  const world = await steady(
    { requestResponseInformation: true },
    accepting({ responseInformation: 'r0' }),
  )
  const ask = async (): Promise<void> => {
    quiet(world.client.request('svc', 'x', { timeout: 5 }))
    await new Promise((resolve) => setTimeout(resolve, 1))
    await world.settle()
  }
  for (let round = 1; round <= 20; round++) {
    await ask()
    await again(world, keeps({ responseInformation: `r${round}` }))
    await ask()
  }
  await again(world, keeps({ responseInformation: 'r20' }))
  expect(
    world.peer.all('subscribe').flatMap(({ subscriptions }) => subscriptions).length,
  ).toBeLessThan(5)
})

test('an async allow() that rejects brings no process down', async () => {
  const unhandled = await unhandledIn(async () => {
    const world = await connected({ ...lasting }, agreeable)
    const allow = (async () => Promise.reject(new Error('no'))) as never
    void world.client.respond('svc', () => 'x', { allow })
    await new Promise((resolve) => setTimeout(resolve, 50))
    await world.settle()
    await world.send(publish('svc', 'q', undefined, { properties: { responseTopic: 'r' } }))
  })
  expect(unhandled).toEqual([])
})
