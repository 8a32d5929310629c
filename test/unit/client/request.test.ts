/** `request`: answers, deadlines, what is ignored, one subscription for all, reconnects, and an end for every call in every stage. */
import { describe, expect, it } from 'vitest'
import type { Message, Payload, RequestOptions } from '../../../src/client/api/index.js'
import { type RequestLimits, Requests } from '../../../src/client/requesting/request.js'
import { MqttError } from '../../../src/errors.js'
import { agreeable, connected, failure, type World } from './harness.js'
import { agreed, publish, quiet, subscribe, taken } from './incoming.js'
import { ClientDouble, viewOf, watched } from './request-double.js'
import { unhandledIn } from './unhandled.js'

/** A client double that is connected, with its requests. */
async function online(obliging = true, limits?: RequestLimits): Promise<{ client: ClientDouble; requests: Requests }> {
  const client = new ClientDouble(obliging)
  const requests = new Requests(client, limits)
  await client.connect()
  return { client, requests }
}

const textOf = (promise: Promise<Message>): Promise<string> => promise.then((message) => message.text())

/** Lets the publish of a request take place, and the request settle. */
async function asked(client: ClientDouble, requests: Requests, options?: RequestOptions): Promise<Promise<Message>[]> {
  const promise = quiet(requests.request('svc', 'ping', options))
  await client.clock.settle()
  return [promise]
}

describe('on the wire', () => {
  /** Answers what comes in as a responder behind a broker does. */
  async function answering(world: World): Promise<void> {
    const { topic, properties } = world.peer.last('publish')
    await world.send(publish(properties.responseTopic ?? '', `${topic}!`, undefined, { properties: { correlationData: properties.correlationData } }))
  }

  it('response topic and correlation data; the answer goes to the call that waits for it', async () => {
    const world = await agreed()
    const requests = new Requests(viewOf(world))
    const [one, two] = [quiet(requests.request('svc/1', 'a')), quiet(requests.request('svc/2', 'b'))]
    await world.settle()
    const [first, second] = world.peer.all('publish')
    expect(first).toMatchObject({ topic: 'svc/1', qos: 0, retain: false })
    expect(first?.properties.responseTopic).toMatch(/^mqwire\/[0-9a-f]{20}$/)
    expect(second?.properties.responseTopic).toBe(first?.properties.responseTopic)
    expect(first?.properties.correlationData).not.toEqual(second?.properties.correlationData)
    await answering(world)
    expect(await textOf(two)).toBe('svc/2!')
    expect((await world.outcome(one)).state).toBe('pending')
    await world.send(
      publish(first?.properties.responseTopic ?? '', 'last', undefined, { properties: { correlationData: first?.properties.correlationData } }),
    )
    expect(await textOf(one)).toBe('last')
    expect(world.clock.pending).toBe((await agreed()).clock.pending)
  })

  it('one response subscription at QoS 1 for all requests, made by the first and granted before anything is published', async () => {
    const world = await connected()
    const requests = new Requests(viewOf(world))
    for (const topic of ['a', 'b']) quiet(requests.request(topic, ''))
    await world.settle()
    expect(world.peer.all('publish')).toEqual([])
    const { packetId, subscriptions } = world.peer.last('subscribe')
    expect(subscriptions).toMatchObject([{ filter: expect.stringMatching(/^mqwire\//), qos: 1, retainHandling: 2 }])
    await world.send({ type: 'suback', packetId, reasonCodes: [1] })
    quiet(requests.request('c', ''))
    await world.settle()
    expect(world.peer.all('publish').map((packet) => packet.topic)).toEqual(['a', 'b', 'c'])
    expect(world.peer.all('subscribe')).toHaveLength(1)
  })

  it('user properties: order and duplicates kept, empty names and values legal; QoS as asked', async () => {
    const world = await agreed({ requestProblemInformation: false })
    const requests = new Requests(viewOf(world))
    const pairs: [string, string][] = [
      ['b', '1'],
      ['a', ''],
      ['', 'x'],
      ['b', '1'],
      ['', ''],
    ]
    const reply = quiet(requests.request('svc', 'x', { qos: 2, properties: { userProperties: pairs, contentType: 'text/plain' } }))
    await world.settle()
    const { qos, properties } = world.peer.last('publish')
    expect(qos).toBe(2)
    expect(properties).toMatchObject({ userProperties: pairs, contentType: 'text/plain' })
    const { responseTopic = '', correlationData } = properties
    await world.send(publish(responseTopic, 'y', undefined, { properties: { correlationData, userProperties: pairs } }))
    expect((await reply).properties.userProperties).toEqual(pairs)
  })

  it('an answer at QoS 1 is acknowledged, also one that nobody waits for', async () => {
    const world = await agreed()
    const requests = new Requests(viewOf(world))
    const reply = quiet(requests.request('svc', 'x'))
    await world.settle()
    const { responseTopic = '', correlationData } = world.peer.last('publish').properties
    await world.send(publish(responseTopic, 'y', 7, { properties: { correlationData } }), publish(responseTopic, 'z', 8))
    expect(await textOf(reply)).toBe('y')
    expect(world.peer.all('puback').map((packet) => packet.packetId)).toEqual([7, 8])
    expect(requests.ignored).toBe(1)
  })

  it('the response information of the server is the base', async () => {
    const world = await connected({ requestResponseInformation: true }, (packet) =>
      packet.type === 'connect'
        ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { responseInformation: 'replies/c1' } }
        : agreeable(packet),
    )
    quiet(new Requests(viewOf(world)).request('svc', 'x'))
    await world.settle()
    expect(world.peer.last('publish').properties.responseTopic).toMatch(/^replies\/c1\/[0-9a-f]{20}$/)
  })

  it('a subscription that is refused rejects what waits for it; the next request tries again', async () => {
    let code = 0x87
    const world = await agreed({}, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [code] } : agreeable(packet),
    )
    const requests = new Requests(viewOf(world))
    const refused = [failure(requests.request('a', '')), failure(requests.request('b', ''))]
    await world.settle()
    for (const error of refused) expect(await error).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87, outcome: 'not-sent' })
    expect(world.peer.all('publish')).toEqual([])
    code = 1
    quiet(requests.request('c', ''))
    await world.settle()
    expect(world.peer.all('publish').map((packet) => packet.topic)).toEqual(['c'])
    expect(world.peer.all('subscribe')).toHaveLength(2)
  })

  it('a request that is refused rejects with the reason', async () => {
    const world = await agreed({}, (packet) =>
      packet.type === 'publish' ? { type: 'puback', packetId: packet.packetId ?? 0, reasonCode: 0x87 } : agreeable(packet),
    )
    const error = failure(new Requests(viewOf(world)).request('svc', '', { qos: 1 }))
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x87, outcome: 'refused' })
  })

  it.each(['disconnect', 'destroy'] as const)('%s: every call ends, whatever it waits for', async (way) => {
    const world = await connected()
    const requests = new Requests(viewOf(world))
    const early = watched(requests.request('a', ''))
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    await world.send({ type: 'suback', packetId, reasonCodes: [1] })
    const late = watched(requests.request('b', '', { qos: 1 }))
    await world.settle()
    if (way === 'disconnect') quiet(world.client.disconnect({ timeout: 0 }))
    else world.client.destroy()
    await world.settle()
    for (const { settled } of [early, late]) expect(settled).toMatchObject([{ code: 'ERR_CLOSED', outcome: 'unknown' }])
    expect(await failure(requests.request('c', ''))).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
    expect(world.clock.pending).toBe(0)
  })
})

describe('on the wire, across reconnects', () => {
  /** A client that comes back after 100 ms, to a server without its session; response information by connection. */
  async function returning(...information: string[]): Promise<{ world: World; requests: Requests; again: () => Promise<void> }> {
    let connections = 0
    const world = await connected(
      { keepAlive: false, reconnect: { backoff: () => 100 }, requestResponseInformation: information.length > 0 },
      (packet) => {
        if (packet.type !== 'connect') return agreeable(packet)
        const responseInformation = information[connections++]
        return { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { responseInformation } }
      },
    )
    const again = async (): Promise<void> => {
      world.peer.cut()
      await world.clock.advance(200)
      expect(world.client.state).toBe('connected')
    }
    return { world, requests: new Requests(viewOf(world)), again }
  }

  const texts = (world: World): string[] => world.peer.all('publish').map(({ payload }) => Buffer.from(payload).toString())

  it('the session is lost while a call waits: the response filter is restored before anything else, the answer arrives', async () => {
    const { world, requests, again } = await returning()
    const reply = quiet(requests.request('svc', 'x'))
    await world.settle()
    const { responseTopic = '', correlationData } = world.peer.last('publish').properties
    await again()
    expect(world.peers).toHaveLength(2)
    expect(world.peer.last('subscribe').subscriptions).toMatchObject([{ filter: responseTopic, qos: 1 }])
    expect(texts(world)).toEqual([])
    await world.send(publish(responseTopic, 'after all', undefined, { properties: { correlationData } }))
    expect((await reply).text()).toBe('after all')
  })

  it('requests made while the link is lost wait for it, and follow the subscription', async () => {
    const { world, requests, again } = await returning()
    quiet(requests.request('svc', 'before'))
    await world.settle()
    world.client.on('disconnect', () => {
      for (const text of ['1', '2']) quiet(requests.request('svc', text))
    })
    await again()
    expect(texts(world)).toEqual(['1', '2'])
    expect(world.peer.received.map(({ type }) => type)).toEqual(['connect', 'subscribe', 'publish', 'publish'])
    expect(world.peer.last('publish').properties.responseTopic).toBe(world.peer.last('subscribe').subscriptions[0]?.filter)
  })

  it('a deadline while the link is lost: nothing is sent afterwards', async () => {
    const { world, requests, again } = await returning()
    let late: Promise<MqttError> | undefined
    world.client.on('disconnect', () => {
      late = failure(requests.request('svc', 'x', { timeout: 50 }))
    })
    await again()
    expect(await late).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'not-sent' })
    expect(texts(world)).toEqual([])
  })

  it('other response information: subscribed anew, the old filter unsubscribed', async () => {
    const { world, requests, again } = await returning('one', 'two')
    const reply = failure(requests.request('svc', 'x', { timeout: 150 }))
    await world.settle()
    const first = world.peer.last('publish').properties.responseTopic
    await again()
    expect(await reply).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'unknown' })
    quiet(requests.request('svc', 'y'))
    await world.settle()
    const second = world.peer.last('publish').properties.responseTopic
    expect([first, second]).toEqual([expect.stringMatching(/^one\//), expect.stringMatching(/^two\//)])
    expect(world.peer.last('subscribe').subscriptions).toMatchObject([{ filter: second }])
    expect(world.peer.last('unsubscribe').filters).toEqual([first])
  })
})

describe('what is ignored, and counted', () => {
  it('correlation data that is unknown, missing, empty, of another length, or answered before', async () => {
    const { client, requests } = await online()
    const [reply] = await asked(client, requests)
    const route = client.listened[0]
    const { correlationData } = client.request(0)
    const wrong = [undefined, new Uint8Array(0), new Uint8Array(12), correlationData.slice(1), Uint8Array.from([...correlationData, 0])]
    for (const each of wrong) await client.deliver(route, 'wrong', { correlationData: each })
    expect(requests.ignored).toBe(wrong.length)
    await client.answer(0, 'right')
    expect(await textOf(reply as Promise<Message>)).toBe('right')
    await client.answer(0, 'again')
    expect(requests.ignored).toBe(wrong.length + 1)
  })

  it('an answer that comes too late', async () => {
    const { client, requests } = await online()
    const [reply] = await asked(client, requests, { timeout: 10 })
    await client.clock.advance(10)
    expect(await failure(reply as Promise<Message>)).toMatchObject({ code: 'ERR_TIMEOUT' })
    await client.answer(0, 'late')
    expect(requests.ignored).toBe(1)
  })

  it('a payload of any kind is the application’s affair', async () => {
    const { client, requests } = await online()
    const [reply] = await asked(client, requests)
    await client.answer(0, '{bad')
    const message = await (reply as Promise<Message>)
    expect(() => message.json()).toThrow(SyntaxError)
    expect(requests.ignored).toBe(0)
  })

  it('no two requests of many have the same correlation data, and each gets its own answer in any order', async () => {
    const { client, requests } = await online()
    const replies = Array.from({ length: 500 }, (_, index) => textOf(requests.request('svc', String(index))))
    await client.clock.settle()
    const keys = client.published.map((_, index) => client.request(index).correlationData.join())
    expect(new Set(keys).size).toBe(500)
    for (let index = 499; index >= 0; index--) await client.answer(index, `re ${index}`)
    expect(await Promise.all(replies)).toEqual(Array.from({ length: 500 }, (_, index) => `re ${index}`))
  })
})

describe('correlation data', () => {
  it('differs also where chance does not', async () => {
    const client = new ClientDouble()
    client.random = () => 0
    const requests = new Requests(client)
    await client.connect()
    for (let index = 0; index < 300; index++) quiet(requests.request('svc', ''))
    await client.clock.settle()
    expect(new Set(client.published.map((_, index) => client.request(index).correlationData.join())).size).toBe(300)
  })

  it('cannot be told from that of another request', async () => {
    const { client, requests } = await online()
    for (let index = 0; index < 50; index++) quiet(requests.request('svc', ''))
    await client.clock.settle()
    const rest = client.published.map((_, index) => client.request(index).correlationData.subarray(4).join())
    expect(new Set(rest).size).toBe(50)
  })
})

describe('deadlines and signals', () => {
  it('30 seconds by default; the outcome is unknown when it was sent', async () => {
    const { client, requests } = await online()
    const reply = watched(requests.request('svc', ''))
    await client.clock.advance(29_999)
    expect(reply.settled).toEqual([])
    await client.clock.advance(1)
    expect(reply.settled).toMatchObject([{ code: 'ERR_TIMEOUT', outcome: 'unknown' }])
    expect(client.clock.pending).toBe(0)
  })

  it.each([
    ['the first connection', async () => undefined],
    ['the grant', async (client: ClientDouble) => client.connect()],
  ])('a deadline while it waits for %s: it was not sent, and is not sent later', async (_what, prepare) => {
    const client = new ClientDouble(false)
    const requests = new Requests(client)
    await prepare(client)
    const reply = failure(requests.request('svc', '', { timeout: 50 }))
    await client.clock.advance(50)
    expect(await reply).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'not-sent' })
    await client.connect()
    for (const { grant } of client.listened) grant.open()
    await client.clock.settle()
    expect(client.published).toEqual([])
  })

  it.each(['not-sent', 'unknown'] as const)('a deadline while the publish waits takes it back: %s', async (outcome) => {
    const { client, requests } = await online(false)
    const reply = failure(requests.request('svc', '', { timeout: 50, qos: 1 }))
    client.listened[0]?.grant.open()
    await client.clock.settle()
    const [published] = client.published
    expect(published?.options).toMatchObject({ qos: 1, offline: 'queue' })
    Object.assign(published ?? {}, { outcome })
    await client.clock.advance(50)
    expect(published?.options.signal?.aborted).toBe(true)
    expect(await reply).toMatchObject({ code: 'ERR_TIMEOUT', outcome })
  })

  it('an answer may come before the acknowledgement of the request', async () => {
    const { client, requests } = await online(false)
    const reply = textOf(requests.request('svc', '', { qos: 1 }))
    client.listened[0]?.grant.open()
    await client.clock.settle()
    await client.answer(0, 'quick')
    expect(await reply).toBe('quick')
    expect(client.published[0]?.options.signal?.aborted).toBe(false)
    client.published[0]?.gate.fail(new MqttError('ERR_TIMEOUT'))
    await client.clock.settle()
  })

  it('a signal: before, while it waits, when it is sent; the reason is the cause', async () => {
    const { client, requests } = await online()
    const reason = new Error('enough')
    expect(await failure(requests.request('svc', '', { signal: AbortSignal.abort(reason) }))).toMatchObject({
      code: 'ERR_ABORTED',
      name: 'AbortError',
      cause: reason,
      outcome: 'not-sent',
    })
    await client.lose()
    for (const outcome of ['not-sent', 'unknown']) {
      const abort = new AbortController()
      const reply = failure(requests.request('svc', '', { signal: abort.signal }))
      if (outcome === 'unknown') await client.connect()
      abort.abort(reason)
      expect(await reply).toMatchObject({ code: 'ERR_ABORTED', cause: reason, outcome })
    }
    expect(client.clock.pending).toBe(0)
  })
})

describe('offline, and across reconnects', () => {
  it('requests made before the first connection wait for it, in order', async () => {
    const client = new ClientDouble()
    const requests = new Requests(client)
    const replies = ['a', 'b', 'c'].map((topic) => watched(requests.request(topic, topic)))
    await client.clock.advance(1000)
    expect(client.listened).toEqual([])
    await client.connect('base/')
    expect(client.listened.map(({ filter }) => filter)).toEqual([expect.stringMatching(/^base\/[0-9a-f]{20}$/)])
    expect(client.published.map(({ topic }) => topic)).toEqual(['a', 'b', 'c'])
    expect(replies.map(({ settled }) => settled)).toEqual([[], [], []])
  })

  it('a call goes on across a lost link: the subscription is the registry’s to restore, the answer comes later', async () => {
    const { client, requests } = await online()
    const [reply] = await asked(client, requests)
    await client.lose()
    await client.connect()
    expect(client.listened).toHaveLength(1)
    await client.answer(0, 'after all')
    expect(await textOf(reply as Promise<Message>)).toBe('after all')
  })

  it('a subscription that is refused when it is restored rejects what waits on it', async () => {
    const { client, requests } = await online()
    const [reply] = await asked(client, requests)
    client.listened[0]?.end.fail(new MqttError('ERR_SUBSCRIBE_REFUSED', undefined, { reasonCode: 0x87 }))
    expect(await failure(reply as Promise<Message>)).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'unknown' })
    await asked(client, requests)
    expect(client.listened).toHaveLength(2)
    expect(client.published).toHaveLength(2)
  })

  it('a subscription that the application ended: the same', async () => {
    const { client, requests } = await online()
    const [reply] = await asked(client, requests)
    client.listened[0]?.end.open()
    expect(await failure(reply as Promise<Message>)).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    expect(client.listened).toHaveLength(1)
  })

  it('another response information: new requests use it, the old subscription goes with its last call', async () => {
    const { client, requests } = await online()
    const [reply] = await asked(client, requests)
    await client.lose()
    await client.connect('tenant/r')
    const [next] = await asked(client, requests)
    const [old, fresh] = client.listened
    expect(fresh?.filter).toBe(`tenant/r/${old?.filter.split('/')[1]}`)
    expect(client.request(1).responseTopic).toBe(fresh?.filter)
    expect(old?.unsubscribed).toBe(false)
    // An answer on the wrong topic is none.
    await client.deliver(fresh, 'elsewhere', { correlationData: client.request(0).correlationData })
    expect(requests.ignored).toBe(1)
    await client.answer(0, 'old')
    expect(await textOf(reply as Promise<Message>)).toBe('old')
    expect([old?.unsubscribed, fresh?.unsubscribed]).toEqual([true, false])
    await client.answer(1, 'new')
    expect(await textOf(next as Promise<Message>)).toBe('new')
  })

  it('an old subscription without calls goes at once; one that is not granted yet goes when it is', async () => {
    const { client, requests } = await online(false)
    quiet(requests.request('svc', ''))
    await client.lose()
    await client.connect('b')
    expect(client.listened.map(({ filter }) => filter.split('/')[0])).toEqual(['mqwire', 'b'])
    for (const { grant } of client.listened) grant.open()
    await client.clock.settle()
    expect(client.listened.map(({ unsubscribed }) => unsubscribed)).toEqual([true, false])
    expect(client.request(0).responseTopic).toBe(client.listened[1]?.filter)
  })

  it('an old subscription that was granted, and has no calls, goes at once', async () => {
    const { client, requests } = await online()
    const [reply] = await asked(client, requests)
    await client.answer(0, '')
    await reply
    await client.connect('b')
    expect(client.listened.map(({ unsubscribed }) => unsubscribed)).toEqual([false])
    await asked(client, requests)
    expect(client.listened.map(({ unsubscribed }) => unsubscribed)).toEqual([true, false])
  })

  it.each(['a/+', '#', '$share/g', 'a\u0000b', 'x'.repeat(65_530)])('response information that is no topic rejects: %j', async (information) => {
    const { client, requests } = await online()
    await client.connect(information)
    const error = await failure(requests.request('svc', ''))
    expect(error).toMatchObject({ code: 'ERR_INVALID_TOPIC', fault: 'remote', option: 'responseInformation', outcome: 'not-sent' })
    expect(client.listened).toEqual([])
    expect(client.clock.pending).toBe(0)
  })
})

describe('bounds', () => {
  it('so many at a time; more wait, and go when there is room, in order', async () => {
    const { client, requests } = await online(true, { requests: 2, bytes: 10_000 })
    const replies = ['1', '2', '3', '4'].map((text) => watched(requests.request(text, text, { timeout: text === '4' ? 1000 : 2000 })))
    await client.clock.settle()
    expect(client.published.map(({ topic }) => topic)).toEqual(['1', '2'])
    await client.answer(1, 'two')
    expect(client.published.map(({ topic }) => topic)).toEqual(['1', '2', '3'])
    await client.clock.advance(2000)
    expect(replies.map(({ settled }) => (settled[0] as MqttError).outcome ?? 'answered')).toEqual(['unknown', 'answered', 'unknown', 'not-sent'])
    expect(client.published).toHaveLength(3)
  })

  it('beyond as many that wait: ERR_QUEUE_FULL', async () => {
    const { client, requests } = await online(true, { requests: 2, bytes: 10_000 })
    for (const text of ['1', '2']) quiet(requests.request(text, text))
    await client.clock.settle()
    for (const text of ['3', '4']) quiet(requests.request(text, text))
    expect(await failure(requests.request('5', ''))).toMatchObject({ code: 'ERR_QUEUE_FULL', outcome: 'not-sent' })
    await client.answer(0, '')
    quiet(requests.request('5', ''))
    await client.clock.settle()
    expect(client.published.map(({ topic }) => topic)).toEqual(['1', '2', '3'])
  })

  it('bytes that wait are bounded; one request may always wait', async () => {
    const client = new ClientDouble()
    const requests = new Requests(client, { requests: 100, bytes: 10_000 })
    const big = watched(requests.request('big', new Uint8Array(20_000)))
    expect(await failure(requests.request('small', ''))).toMatchObject({ code: 'ERR_QUEUE_FULL' })
    await client.connect()
    expect(client.published.map(({ topic }) => topic)).toEqual(['big'])
    expect(big.settled).toEqual([])
    // What has left counts no more.
    await client.lose()
    for (const topic of ['1', '2']) quiet(requests.request(topic, new Uint8Array(4000)))
    expect(await failure(requests.request('3', new Uint8Array(4000)))).toMatchObject({ code: 'ERR_QUEUE_FULL' })
    await client.connect()
    expect(client.published.map(({ topic }) => topic)).toEqual(['big', '1', '2'])
  })

  it('by default they may take 16 MiB', async () => {
    const requests = new Requests(new ClientDouble())
    quiet(requests.request('a', new Uint8Array(16 * 1024 * 1024 - 1024)))
    const last = watched(requests.request('b', new Uint8Array(500)))
    expect(await failure(requests.request('c', new Uint8Array(500)))).toMatchObject({ code: 'ERR_QUEUE_FULL', outcome: 'not-sent' })
    expect(last.settled).toEqual([])
  })

  it('a request that gives up makes room for the next', async () => {
    const { client, requests } = await online(true, { requests: 1, bytes: 10_000 })
    const first = failure(requests.request('1', '', { timeout: 10 }))
    quiet(requests.request('2', ''))
    await client.clock.settle()
    expect(client.published.map(({ topic }) => topic)).toEqual(['1'])
    await client.clock.advance(10)
    expect(await first).toMatchObject({ code: 'ERR_TIMEOUT' })
    expect(client.published.map(({ topic }) => topic)).toEqual(['1', '2'])
  })
})

describe('the end, in any stage, once', () => {
  const stages: [string, (client: ClientDouble) => Promise<void>, string][] = [
    ['before the connection', async () => undefined, 'not-sent'],
    ['before the grant', async (client) => client.connect(), 'not-sent'],
    [
      'while the publish is queued',
      async (client) => {
        await client.connect()
        client.listened[0]?.grant.open()
        await client.clock.settle()
        Object.assign(client.published[0] ?? {}, { outcome: 'not-sent' })
      },
      'not-sent',
    ],
    [
      'while it waits for its answer',
      async (client) => {
        await client.connect()
        client.listened[0]?.grant.open()
        await client.clock.settle()
        client.published[0]?.gate.open()
        await client.clock.settle()
      },
      'unknown',
    ],
    [
      'while the link is lost',
      async (client) => {
        await client.connect()
        client.listened[0]?.grant.open()
        await client.clock.settle()
        client.published[0]?.gate.open()
        await client.lose()
      },
      'unknown',
    ],
  ]
  it.each(stages)('%s', async (_stage, prepare, outcome) => {
    for (const error of [undefined, new MqttError('ERR_SESSION_TAKEN_OVER', undefined, { fault: 'remote' })]) {
      const client = new ClientDouble(false)
      const requests = new Requests(client)
      const call = watched(requests.request('svc', ''))
      await prepare(client)
      expect(call.settled).toEqual([])
      await client.end(error)
      expect(call.settled).toMatchObject([{ code: error?.code ?? 'ERR_CLOSED', outcome }])
      expect(client.clock.pending).toBe(0)
      // Whatever comes now comes too late.
      for (const { grant } of client.listened) grant.fail(new MqttError('ERR_CLOSED'))
      await client.clock.advance(60_000)
      expect(call.settled).toHaveLength(1)
      expect(await failure(requests.request('svc', ''))).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
    }
  })

  it('while it is being published', async () => {
    const { client, requests } = await online()
    const publishing = client.publish.bind(client)
    // As a listener of `packet` can.
    client.publish = (...call) => {
      client.end()
      return publishing(...call)
    }
    const call = watched(requests.request('svc', ''))
    await client.clock.settle()
    expect(call.settled).toMatchObject([{ code: 'ERR_CLOSED', outcome: 'unknown' }])
    expect(client.published[0]?.options.signal?.aborted).toBe(true)
  })

  it('when disconnect() begins, not when it has ended: nothing more is handed out', async () => {
    const world = await agreed()
    const requests = new Requests(viewOf(world))
    const call = watched(requests.request('svc', ''))
    await world.settle()
    const slow = await subscribe(world, 'slow', { qos: 1, ack: 'manual' })
    await world.send(publish('slow', 'in hand', 1))
    taken(slow)
    quiet(world.client.disconnect({ timeout: 5000 }))
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    expect(call.settled).toMatchObject([{ code: 'ERR_CLOSED', outcome: 'unknown' }])
  })
})

describe('arguments', () => {
  it('MQTT 3.1.1 has no request and response: ERR_UNSUPPORTED_OPTION, at once or when it turns out', async () => {
    const { client, requests } = await online()
    client.version = 4
    expect(await failure(requests.request('svc', ''))).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'protocolVersion' })
    const late = new ClientDouble()
    late.version = undefined
    const error = failure(new Requests(late).request('svc', ''))
    late.version = 4
    await late.connect()
    expect(await error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', outcome: 'not-sent' })
    expect(late.listened).toEqual([])
  })

  it.each([
    ['timeout', { timeout: -1 }],
    ['timeout', { timeout: Number.POSITIVE_INFINITY }],
    ['timeout', { timeout: '1' }],
    ['qos', { qos: 3 }],
    ['signal', { signal: {} }],
    ['retain', { retain: true }],
    ['properties.responseTopic', { properties: { responseTopic: 'mine' } }],
    ['properties.correlationData', { properties: { correlationData: 'mine' } }],
    ['properties.topicAlias', { properties: { topicAlias: 1 } }],
    ['properties.userProperties', { properties: { userProperties: 'a' } }],
    ['options', null],
  ])('%s refused: %j', async (option, options) => {
    const { client, requests } = await online()
    const error = await failure(requests.request('svc', '', options as RequestOptions))
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    expect(error.message).toContain(option)
    expect(client.listened).toEqual([])
  })

  it.each(['', 'a/+', '#', 'a\u0000', 5, undefined])('topic %j refused', async (topic) => {
    const { requests } = await online()
    expect(await failure(requests.request(topic as string, ''))).toMatchObject({ code: 'ERR_INVALID_TOPIC' })
  })

  it.each([undefined, null, 5, {}])('payload %j refused', async (payload) => {
    const { requests } = await online()
    expect(await failure(requests.request('svc', payload as Payload))).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'payload' })
  })

  it('a failure that nobody awaits is no unhandled rejection', async () => {
    const { client, requests } = await online()
    requests.request('svc', '', { timeout: 1 })
    requests.request('', '')
    await client.clock.advance(10)
    await new Promise((resolve) => setImmediate(resolve))
  })

  it('client.request() that nobody awaits: the same, unless the program is at fault', async () => {
    const { client } = await agreed({ keepAlive: false })
    const unhandled = await unhandledIn(async () => {
      client.request('a/#', '')
      client.request('a', 5 as unknown as string)
      client.destroy()
      client.request('a', '')
      expect(await failure(client.request('a', ''))).toMatchObject({ code: 'ERR_CLOSED' })
    })
    expect(unhandled).toMatchObject([{ code: 'ERR_INVALID_OPTION', option: 'payload' }])
  })
})
