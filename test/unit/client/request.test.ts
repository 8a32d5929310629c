/** `request`: answers, deadlines, what is ignored, one subscription for all, reconnects, and an end for every call in every stage. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, RequestOptions } from '../../../src/client/options/index.js'
import { type RequestLimits, Requests } from '../../../src/client/request/request.js'
import { MqttError } from '../../../src/errors.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { Properties, PublishPacket } from '../../../src/wire/packets.js'
import { accepting, agreeable, connected, failure, times } from './harness.js'
import { agreed, publish, quiet, subscribe, taken } from './incoming.js'
import { ClientDouble, watched } from './request-double.js'
import { ack } from './stub.js'
import { unhandledIn } from './unhandled.js'

const closed = (outcome: string) => ({ code: 'ERR_CLOSED', outcome })
const timedOut = (outcome: string) => ({ code: 'ERR_TIMEOUT', outcome })

function offline(obliging = true, limits?: RequestLimits) {
  const client = new ClientDouble(obliging)
  const requests = new Requests(client, limits)
  return {
    client,
    requests,
    /** Calls, with what they come to; they have what they need of the client when this fulfils. */
    async ask(options?: RequestOptions, ...topics: string[]) {
      const all = topics.length > 0 ? topics : ['svc']
      const calls = all.map((topic) => requests.request(topic, String(topic), options))
      const seen = calls.map((call) => watched(call).settled)
      const reply = Promise.race(calls).then((message) => message.text())
      quiet(reply)
      await client.clock.settle()
      return { seen, reply }
    },
    topics: () => client.published.map(({ topic }) => topic),
    keys: (from = 0) =>
      client.published.map((_, index) =>
        client.request(index).correlationData.subarray(from).join(),
      ),
    /** Of each response subscription. */
    left: () => client.listened.map(({ unsubscribed }) => unsubscribed),
    async grant() {
      for (const { grant } of client.listened) grant.open()
      await client.clock.settle()
    },
  }
}

async function online(obliging = true, limits?: RequestLimits) {
  const scene = offline(obliging, limits)
  await scene.client.connect()
  return scene
}

async function wired(options?: ClientOptions, answer?: Answer) {
  const world = await agreed(options, answer)
  const ask = (topic: string, more?: RequestOptions) =>
    quiet(world.client.request(topic, topic, more))
  const topics = () => world.peer.all('publish').map(({ topic }) => topic)
  return { world, ask, topics }
}

/** The answer to a request that the broker got. */
function answerTo(
  { properties }: PublishPacket,
  text: string,
  packetId?: number,
  more: Properties = {},
) {
  const { responseTopic = '', correlationData } = properties
  return publish(responseTopic, text, packetId, { properties: { correlationData, ...more } })
}

/** Says yes, but 0x87 to the first SUBSCRIBE or PUBLISH. */
function refusing(type: 'subscribe' | 'publish'): Answer {
  let first = true
  return (packet) => {
    if (packet.type !== type || !first) return agreeable(packet)
    first = false
    const packetId = packet.packetId as number
    if (type === 'publish') return ack('puback', packetId, 0x87)
    return { type: 'suback', packetId, reasonCodes: [0x87] }
  }
}

it('response topic and correlation data; the answer goes to the call that waits for it', async () => {
  const { world, ask } = await wired()
  const [one, two] = [ask('svc/1'), ask('svc/2')]
  await world.settle()
  const [first, second] = world.peer.all('publish') as [PublishPacket, PublishPacket]
  expect(first).toMatchObject({ topic: 'svc/1', qos: 0, retain: false })
  expect(first.properties.responseTopic).toMatch(/^mqwire\/[0-9a-f]{20}$/)
  expect(second.properties.responseTopic).toBe(first.properties.responseTopic)
  expect(first.properties.correlationData).not.toEqual(second.properties.correlationData)
  await world.send(answerTo(second, 'for two'))
  expect((await two).text()).toBe('for two')
  expect((await world.outcome(one)).state).toBe('pending')
  await world.send(answerTo(first, 'for one'))
  expect((await one).text()).toBe('for one')
  expect(world.clock.pending).toBe((await agreed()).clock.pending)
})

it('one response subscription at QoS 1, made by the first and granted before anything is published', async () => {
  const { world, ask, topics } = await wired({}, accepting())
  for (const topic of ['a', 'b']) ask(topic)
  await world.settle()
  expect(topics()).toEqual([])
  const { packetId, subscriptions } = world.peer.last('subscribe')
  const filter = expect.stringMatching(/^mqwire\//)
  expect(subscriptions).toMatchObject([{ filter, qos: 1, retainHandling: 2 }])
  await world.send({ type: 'suback', packetId, reasonCodes: [1] })
  ask('c')
  await world.settle()
  expect(topics()).toEqual(['a', 'b', 'c'])
  expect(world.peer.all('subscribe')).toHaveLength(1)
})

it('a subscription that is refused rejects what waits for it; the next request tries again', async () => {
  const { world, ask, topics } = await wired({}, refusing('subscribe'))
  const refused = [failure(ask('a')), failure(ask('b'))]
  await world.settle()
  const error = { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87, outcome: 'not-sent' }
  expect(await Promise.all(refused)).toMatchObject([error, error])
  ask('c')
  await world.settle()
  expect([topics(), world.peer.all('subscribe').length]).toEqual([['c'], 2])
})

it('a request that is refused rejects with the reason', async () => {
  const { world, ask } = await wired({}, refusing('publish'))
  const error = failure(ask('svc', { qos: 1 }))
  await world.settle()
  expect(await error).toMatchObject({
    code: 'ERR_PUBLISH_REFUSED',
    reasonCode: 0x87,
    outcome: 'refused',
  })
})

it('when disconnect() begins, not when it has ended: nothing more is handed out', async () => {
  const { world, ask } = await wired()
  const call = watched(ask('svc'))
  await world.settle()
  const slow = await subscribe(world, 'slow', { qos: 1, ack: 'manual' })
  await world.send(publish('slow', 'in hand', 1))
  taken(slow)
  quiet(world.client.disconnect({ timeout: 5000 }))
  await world.settle()
  expect(world.client.state).toBe('disconnecting')
  expect(call.settled).toMatchObject([closed('unknown')])
})

it('requests made while the link is lost wait for it, and follow the subscription; after a deadline nothing is sent', async () => {
  const { world, ask, topics } = await wired({
    keepAlive: false,
    reconnect: { backoff: () => 100 },
  })
  ask('before')
  await world.settle()
  let late: Promise<MqttError> | undefined
  world.client.on('disconnect', () => {
    late = failure(ask('late', { timeout: 50 }))
    for (const topic of ['1', '2']) ask(topic)
  })
  world.peer.cut()
  await world.clock.advance(200)
  expect(await late).toMatchObject(timedOut('not-sent'))
  expect([world.peers.length, topics()]).toEqual([2, ['1', '2']])
  const types = world.peer.received.map(({ type }) => type)
  expect(types).toEqual(['connect', 'subscribe', 'publish', 'publish'])
  const { filter } = world.peer.last('subscribe').subscriptions[0] ?? {}
  expect(world.peer.last('publish').properties.responseTopic).toBe(filter)
})

it('correlation data: that is unknown, missing, empty, of another length, or answered before is ignored, and counted', async () => {
  const { client, requests, ask } = await online()
  const { reply } = await ask()
  const key = client.request(0).correlationData
  const wrong = [
    undefined,
    new Uint8Array(0),
    new Uint8Array(12),
    key.slice(1),
    Uint8Array.from([...key, 0]),
  ]
  for (const correlationData of wrong)
    await client.deliver(client.listened[0], 'wrong', { correlationData })
  expect(requests.ignored).toBe(wrong.length)
  await client.answer(0, 'right')
  expect(await reply).toBe('right')
  await client.answer(0, 'again')
  expect(requests.ignored).toBe(wrong.length + 1)
})

it('correlation data: no two requests of many have the same, and each gets its own answer in any order', async () => {
  const { client, requests, keys } = await online()
  const indexes = times(500, (index) => index)
  const replies = indexes.map((index) => requests.request('svc', String(index)))
  await client.clock.settle()
  expect(new Set(keys()).size).toBe(500)
  // Nor can one be guessed from that of another request.
  expect(new Set(keys(4)).size).toBe(500)
  for (const index of indexes.reverse()) await client.answer(index, `re ${index}`)
  const texts = (await Promise.all(replies)).map((message) => message.text())
  expect(texts).toEqual(replies.map((_, index) => `re ${index}`))
})

it('30 seconds by default; the outcome is unknown when it was sent; an answer that comes too late is ignored', async () => {
  const { client, requests, ask } = await online()
  const { seen } = await ask()
  await client.clock.advance(29_999)
  expect(seen).toEqual([[]])
  await client.clock.advance(1)
  expect(seen).toMatchObject([[timedOut('unknown')]])
  await client.answer(0, 'late')
  expect([requests.ignored, client.clock.pending]).toEqual([1, 0])
})

it.each(['the first connection', 'the grant'])('a deadline before %s: never sent', async (what) => {
  const { client, ask, grant } = offline(false)
  if (what === 'the grant') await client.connect()
  const { seen } = await ask({ timeout: 50 })
  await client.clock.advance(50)
  expect(seen).toMatchObject([[timedOut('not-sent')]])
  await client.connect()
  await grant()
  expect(client.published).toEqual([])
})

it.each(['not-sent', 'unknown'] as const)(
  'a deadline of a waiting publish: %s',
  async (outcome) => {
    const { client, ask, grant } = await online(false)
    const { seen } = await ask({ timeout: 50, qos: 1 })
    await grant()
    const [published] = client.published
    expect(published?.options).toMatchObject({ qos: 1, offline: 'queue' })
    Object.assign(published ?? {}, { outcome })
    await client.clock.advance(50)
    expect(published?.options.signal?.aborted).toBe(true)
    expect(seen).toMatchObject([[timedOut(outcome)]])
  },
)

it('an answer may come before the acknowledgement of the request', async () => {
  const { client, ask, grant } = await online(false)
  const { reply } = await ask({ qos: 1 })
  await grant()
  await client.answer(0, 'quick')
  expect(await reply).toBe('quick')
  expect(client.published[0]?.options.signal?.aborted).toBe(false)
  client.published[0]?.gate.fail(new MqttError('ERR_TIMEOUT'))
  await client.clock.settle()
})

it('a signal: before, while it waits, when it is sent; the reason is the cause', async () => {
  const { client, ask } = await online()
  const cause = new Error('enough')
  const { seen } = await ask({ signal: AbortSignal.abort(cause) })
  const error = { code: 'ERR_ABORTED', name: 'AbortError', cause }
  expect(seen).toMatchObject([[{ ...error, outcome: 'not-sent' }]])
  await client.lose()
  for (const outcome of ['not-sent', 'unknown']) {
    const abort = new AbortController()
    const late = await ask({ signal: abort.signal })
    if (outcome === 'unknown') await client.connect()
    abort.abort(cause)
    await client.clock.settle()
    expect(late.seen).toMatchObject([[{ ...error, outcome }]])
  }
  expect(client.clock.pending).toBe(0)
})

it('requests made before the first connection wait for it, in order', async () => {
  const { client, ask, topics } = offline()
  const { seen } = await ask({}, 'a', 'b', 'c')
  await client.clock.advance(1000)
  expect(client.listened).toEqual([])
  await client.connect('base/')
  const filter = expect.stringMatching(/^base\/[0-9a-f]{20}$/)
  expect(client.listened).toMatchObject([{ filter }])
  expect([topics(), seen]).toEqual([
    ['a', 'b', 'c'],
    [[], [], []],
  ])
})

it.each([
  ['is refused when it is restored', 'ERR_SUBSCRIBE_REFUSED'],
  ['the application ended', 'ERR_ABORTED'],
] as const)(
  'a subscription that %s: what waits on it rejects; the next request makes another',
  async (_what, code) => {
    const { client, ask } = await online()
    const { seen } = await ask()
    const { end } = client.listened[0] ?? {}
    if (code === 'ERR_ABORTED') end?.open()
    else end?.fail(new MqttError(code, undefined, { reasonCode: 0x87 }))
    await client.clock.settle()
    expect(seen).toMatchObject([[{ code, outcome: 'unknown' }]])
    expect(client.listened).toHaveLength(1)
    await ask()
    expect([client.listened.length, client.published.length]).toEqual([2, 2])
  },
)

it('another response information: new requests use it, the old subscription goes with its last call', async () => {
  const { client, requests, ask, left } = await online()
  const { reply } = await ask()
  await client.lose()
  await client.connect('tenant/r')
  const next = await ask()
  const [old, fresh] = client.listened
  expect(fresh?.filter).toBe(`tenant/r/${old?.filter.split('/')[1]}`)
  expect(client.request(1).responseTopic).toBe(fresh?.filter)
  expect(left()).toEqual([false, false])
  // An answer on the wrong topic is none.
  await client.deliver(fresh, 'elsewhere', { correlationData: client.request(0).correlationData })
  expect(requests.ignored).toBe(1)
  await client.answer(0, 'old')
  expect([await reply, left()]).toEqual(['old', [true, false]])
  await client.answer(1, 'new')
  expect(await next.reply).toBe('new')
})

it('an old subscription that is not granted yet goes when it is', async () => {
  const { client, ask, grant, left } = await online(false)
  await ask()
  await client.lose()
  await client.connect('b')
  expect(client.listened.map(({ filter }) => filter.split('/')[0])).toEqual(['mqwire', 'b'])
  await grant()
  expect(left()).toEqual([true, false])
  expect(client.request(0).responseTopic).toBe(client.listened[1]?.filter)
})

it('an old subscription that was granted, and has no calls, goes with the next request', async () => {
  const { client, ask, left } = await online()
  const { reply } = await ask()
  await client.answer(0, '')
  await reply
  await client.connect('b')
  expect(left()).toEqual([false])
  await ask()
  expect(left()).toEqual([true, false])
})

it.each(['a/+', '#', '$share/g', 'a\u0000b', 'x'.repeat(65_530)])(
  'response information that is no topic rejects: %j',
  async (text) => {
    const { client, ask } = await online()
    await client.connect(text)
    const { seen } = await ask()
    const error = { code: 'ERR_INVALID_TOPIC', fault: 'remote', outcome: 'not-sent' }
    expect(seen).toMatchObject([[{ ...error, option: 'responseInformation' }]])
    expect([client.listened, client.clock.pending]).toEqual([[], 0])
  },
)

describe('bounds', () => {
  const full = { code: 'ERR_QUEUE_FULL', outcome: 'not-sent' }

  it('so many at a time; more wait, and go when there is room, in order', async () => {
    const { client, ask, topics } = await online(true, { requests: 2, bytes: 10_000 })
    const long = await ask({ timeout: 2000 }, '1', '2', '3')
    const short = await ask({ timeout: 1000 }, '4')
    expect(topics()).toEqual(['1', '2'])
    await client.answer(1, 'two')
    expect(topics()).toEqual(['1', '2', '3'])
    await client.clock.advance(2000)
    const outcomes = [...long.seen, ...short.seen].map(([end]) => (end as MqttError).outcome)
    expect(outcomes).toEqual(['unknown', undefined, 'unknown', 'not-sent'])
    expect(topics()).toEqual(['1', '2', '3'])
  })

  it('beyond as many that wait: ERR_QUEUE_FULL', async () => {
    const { client, ask, topics } = await online(true, { requests: 2, bytes: 10_000 })
    await ask({}, '1', '2')
    await ask({}, '3', '4')
    expect((await ask({}, '5')).seen).toMatchObject([[full]])
    await client.answer(0, '')
    expect((await ask({}, '5')).seen).toEqual([[]])
    expect(topics()).toEqual(['1', '2', '3'])
  })

  it('bytes that wait are bounded; one request may always wait', async () => {
    const { client, requests, topics } = offline(true, { requests: 100, bytes: 10_000 })
    const big = watched(requests.request('big', new Uint8Array(20_000)))
    expect(await failure(requests.request('small', ''))).toMatchObject(full)
    await client.connect()
    expect([topics(), big.settled]).toEqual([['big'], []])
    // What has left counts no more.
    await client.lose()
    for (const topic of ['1', '2']) quiet(requests.request(topic, new Uint8Array(4000)))
    expect(await failure(requests.request('3', new Uint8Array(4000)))).toMatchObject(full)
    await client.connect()
    expect(topics()).toEqual(['big', '1', '2'])
  })

  it('by default they may take 16 MiB', async () => {
    const { requests } = offline()
    quiet(requests.request('a', new Uint8Array(16 * 1024 * 1024 - 1024)))
    const last = watched(requests.request('b', new Uint8Array(500)))
    expect(await failure(requests.request('c', new Uint8Array(500)))).toMatchObject(full)
    expect(last.settled).toEqual([])
  })

  it('a request that gives up makes room for the next', async () => {
    const { client, ask, topics } = await online(true, { requests: 1, bytes: 10_000 })
    const { seen } = await ask({ timeout: 10 }, '1')
    await ask({}, '2')
    expect(topics()).toEqual(['1'])
    await client.clock.advance(10)
    expect(seen).toMatchObject([[timedOut('unknown')]])
    expect(topics()).toEqual(['1', '2'])
  })
})

it.each([
  ['before the connection', 0, 'not-sent'],
  ['before the grant', 1, 'not-sent'],
  ['while the publish is queued', 2, 'not-sent'],
  ['while it waits for its answer', 3, 'unknown'],
  ['while the link is lost', 4, 'unknown'],
])('the end, in any stage, once: %s', async (_stage, stage, outcome) => {
  const lost = new MqttError('ERR_SESSION_TAKEN_OVER', undefined, { fault: 'remote' })
  for (const error of [undefined, lost]) {
    const { client, ask, grant } = offline(false)
    const { seen } = await ask()
    if (stage >= 1) await client.connect()
    if (stage >= 2) await grant()
    if (stage === 2) Object.assign(client.published[0] ?? {}, { outcome })
    if (stage >= 3) client.published[0]?.gate.open()
    if (stage >= 4) await client.lose()
    await client.clock.settle()
    expect(seen).toEqual([[]])
    await client.end(error)
    expect(seen).toMatchObject([[{ code: error?.code ?? 'ERR_CLOSED', outcome }]])
    expect(client.clock.pending).toBe(0)
    // What comes now comes too late.
    for (const each of client.listened) each.grant.fail(new MqttError('ERR_CLOSED'))
    await client.clock.advance(60_000)
    expect(seen).toMatchObject([{ length: 1 }])
    expect((await ask()).seen).toMatchObject([[closed('not-sent')]])
  }
})

it('the end, in any stage, once: while it is being published, as a listener of `packet` can', async () => {
  const { client, ask } = await online()
  const publishing = client.publish.bind(client)
  client.publish = (...call) => {
    client.end()
    return publishing(...call)
  }
  expect((await ask()).seen).toMatchObject([[closed('unknown')]])
  expect(client.published[0]?.options.signal?.aborted).toBe(true)
})

describe('arguments', () => {
  const unsupported = { code: 'ERR_UNSUPPORTED_OPTION', option: 'protocolVersion' }

  it('MQTT 3.1.1 has no request and response: refused at once, or when it turns out', async () => {
    const { client, ask } = await online()
    client.version = 4
    expect((await ask()).seen).toMatchObject([[unsupported]])
    const late = offline()
    late.client.version = undefined
    const { seen } = await late.ask()
    late.client.version = 4
    await late.client.connect()
    expect(seen).toMatchObject([[{ ...unsupported, outcome: 'not-sent' }]])
    expect(late.client.listened).toEqual([])
  })

  it('client.request() that nobody awaits: no unhandled rejection, unless the program is at fault', async () => {
    const { client, clock } = await connected({ keepAlive: false }, agreeable)
    const unhandled = await unhandledIn(async () => {
      client.request('a/#', '')
      client.request('a', '', { timeout: 1 })
      await clock.advance(10)
      client.request('a', 5 as unknown as string)
      client.destroy()
      client.request('a', '')
      expect(await failure(client.request('a', ''))).toMatchObject({ code: 'ERR_CLOSED' })
    })
    expect(unhandled).toMatchObject([{ code: 'ERR_INVALID_OPTION', option: 'payload' }])
  })
})
