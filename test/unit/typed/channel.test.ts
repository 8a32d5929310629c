/** Channels on clients: what is published, what is received, and what becomes of payloads that are none. */
import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/options/index.js'
import type { MqttError } from '../../../src/errors.js'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { type clientOn, pair as clients, coded, schemaOf, upTo } from './rig.js'

const temperature = mq.channel('plant/{line}/{device}/temperature', mq.json<{ value: number }>(), {
  qos: 1,
})

const bad = 'ERR_INVALID_PAYLOAD'

/** A schema as libraries make them: numbers in `value`, doubled on receipt. */
const doubling = schemaOf<{ value: number }, { twice: number }>((given) => {
  const value = (given as { value?: unknown } | null)?.value
  if (typeof value === 'number') return { value: { twice: value * 2 } }
  return { issues: [{ message: 'no number', path: ['value'] }] }
})

let delay = 0
const late = schemaOf<{ value: number }, { twice: number }>(async (given) => {
  delay = (delay + 2) % 5
  await pause(delay)
  return doubling['~standard'].validate(given)
})

type Client = Awaited<ReturnType<typeof clientOn>>

/** Two clients, with what the first one reports and logs. */
async function pair(options = {}) {
  const warnings: string[] = []
  const { client, other } = await clients({
    logger: { warn: (line: string) => void warnings.push(line) },
    ...options,
  })
  const told: ClientEvents['invalid'][] = []
  client.on('invalid', (event) => void told.push(event))
  return { client, other, told, warnings }
}

/** Payloads that a client publishes from now on. */
function publishedBy(client: Client): string[] {
  const texts: string[] = []
  client.on('packet', ({ direction, packet }) => {
    if (direction === 'out' && packet.type === 'publish')
      texts.push(new TextDecoder().decode(packet.payload))
  })
  return texts
}

describe('a channel', () => {
  it('publishes and receives values with their parameters', async () => {
    const { client } = await pair()
    const bound = temperature.on(client)
    await using subscription = await bound.subscribe({ line: 3 })
    expect(subscription.granted.map(({ filter, qos }) => [filter, qos])).toEqual([
      ['plant/3/+/temperature', 1],
    ])
    await bound.publish({ line: '3', device: 'a1' }, { value: 21.5 })
    await bound.publish({ line: '4', device: 'a1' }, { value: 1 })
    await bound.publish({ line: '3', device: 'a2' }, { value: 22 })
    const message = { qos: 1, properties: { contentType: 'application/json' } }
    const first = { params: { line: '3', device: 'a1' }, value: { value: 21.5 }, message }
    expect(await subscription.next()).toMatchObject(first)
    expect((await subscription.next())?.params.device).toBe('a2')
    expect(subscription.invalid).toBe(0)
  })

  it('without parameters has no argument for them', async () => {
    const { client } = await pair()
    const status = mq.channel('status', mq.text(), { retain: true, qos: 1 }).on(client)
    await status.publish('up')
    await using subscription = await status.subscribe({ qos: 0 })
    expect((await subscription.next())?.value).toBe('up')
    expect(status.post('posted')).toBe(true)
    expect((await subscription.next())?.value).toBe('posted')
    await status.clear()
    const values: unknown[] = []
    await using _handling = await status.listen(({ value }) => void values.push(value), { qos: 0 })
    await status.publish('again')
    await eventually(() => values.length === 1)
    expect(values).toEqual(['again'])
  })

  it('several sets of parameters are one SUBSCRIBE', async () => {
    const { client } = await pair()
    const packets: number[] = []
    client.on(
      'packet',
      ({ packet }) => packet.type === 'subscribe' && packets.push(packet.subscriptions.length),
    )
    await using subscription = await temperature
      .on(client)
      .subscribe([{ line: 1 }, { line: 2, device: 'x' }])
    expect(packets).toEqual([2])
    expect(subscription.granted.map(({ filter }) => filter)).toEqual([
      'plant/1/+/temperature',
      'plant/2/x/temperature',
    ])
  })

  it('what is said of one direction goes over what is said of both', async () => {
    const { client } = await pair()
    const bound = mq
      .channel('a', mq.text(), {
        qos: 0,
        retain: false,
        publish: { qos: 2, retain: true },
        subscribe: { qos: 1 },
      })
      .on(client)
    expect(bound.will('x')).toMatchObject({ qos: 2, retain: true })
    await using subscription = await bound.subscribe()
    expect(subscription.granted.map(({ qos }) => qos)).toEqual([1])
  })

  it('gives a will', () => {
    const properties = { contentType: 'application/json', payloadFormatIndicator: 1 }
    const will = {
      topic: 'plant/1/a/temperature',
      payload: '{"value":0}',
      qos: 1,
      retain: true,
      properties,
    }
    expect(temperature.will({ line: 1, device: 'a' }, { value: 0 }, { retain: true })).toEqual(will)
  })

  it('checks values before a byte is sent, and sends them as given', async () => {
    const { client } = await pair()
    const checked = mq.channel('c/{n}', mq.json(doubling)).on(client)
    const published = publishedBy(client)
    const issues = [{ message: 'no number', path: ['value'] }]
    const invalid = coded(bad, {
      outcome: 'not-sent',
      message: 'invalid payload: value: no number',
      issues,
    })
    await expect(checked.publish({ n: 1 }, { value: 'x' as never })).rejects.toEqual(invalid)
    expect(() => checked.post({ n: 1 }, {} as never)).toThrow(coded(bad))
    await using subscription = await checked.subscribe()
    await checked.publish({ n: 1 }, { value: 4 })
    expect((await subscription.next())?.value).toEqual({ twice: 8 })
    expect(published).toEqual(['{"value":4}'])
  })

  it('asynchronous schemas keep the order; what cannot wait says so', async () => {
    const { client } = await pair()
    const slow = mq.channel('s', mq.json(late), { qos: 1 }).on(client)
    const unsupported = coded('ERR_UNSUPPORTED_OPTION')
    expect(() => slow.post({ value: 1 })).toThrow(unsupported)
    expect(() => slow.will({ value: 1 })).toThrow(unsupported)
    await using subscription = await slow.subscribe()
    for (let n = 0; n < 30; n++) await slow.publish({ value: n })
    await eventually(() => subscription.size === 30)
    expect(() => subscription.read()).toThrow(unsupported)
    const got = [(await subscription.next())?.value.twice]
    for await (const { value } of subscription) if (got.push(value.twice) === 30) break
    expect(got).toEqual(upTo(30).map((n) => n * 2))
    await expect(slow.publish({ value: '1' as never })).rejects.toEqual(coded(bad))
  })

  it('publishes of an asynchronous schema leave in the order of the calls', async () => {
    const { client } = await pair()
    const sent = publishedBy(client)
    const slow = mq.channel('s', mq.json(late), { qos: 1 }).on(client)
    const values = upTo(40).map((n) => (n === 7 ? ('x' as never) : n))
    const calls = values.map((value) =>
      slow.publish({ value }).catch((error: MqttError) => error.code),
    )
    expect((await Promise.all(calls))[7]).toBe(bad)
    expect(sent).toEqual(values.filter((_, n) => n !== 7).map((n) => `{"value":${n}}`))
  })

  it('content types are compared without parameters and case; JSON takes +json; none is fine', async () => {
    const { client, other } = await pair()
    await using subscription = await mq
      .channel('t', mq.json<number>())
      .on(client)
      .subscribe({ onInvalid: 'deliver' })
    const json = [
      undefined,
      'application/json',
      'Application/JSON; charset=utf-8',
      'application/senml+json',
    ]
    for (const contentType of [...json, 'text/plain', 'application/jsonx']) {
      await other.publish('t', '1', { properties: { contentType } })
      const received = await subscription.next()
      expect(received?.error === undefined, contentType).toBe(json.includes(contentType))
    }
  })
})

const wrong = ['{', 'nothing', '{"value":"x"}', '\u0000']
const cells = (['skip', 'reject', 'throw', 'deliver'] as const).flatMap((policy) =>
  ([0, 1, 2] as const).flatMap((qos) =>
    (['auto', 'manual', 'on-receive'] as const).flatMap((ack) =>
      (['for await', 'next', 'batches', 'listen'] as const).flatMap((reading) =>
        ([5, 4] as const).map((version) => ({ policy, qos, ack, reading, version })),
      ),
    ),
  ),
)
type Cell = (typeof cells)[number]

/** Seven good payloads, the bad ones behind the first of them. */
const payloads = ['{"value":0}', ...wrong, ...[1, 2, 3, 4, 5, 6].map((n) => `{"value":${n}}`)]

const boundTo = (client: Client, qos: Cell['qos']) =>
  mq.channel('v', mq.json(doubling), { qos }).on(client)

/** Reads in the way of the cell until seven values came; gives what is to be waited for, and what counts and ends it. */
async function reader(
  { reading, policy: onInvalid, ack }: Cell,
  bound: ReturnType<typeof boundTo>,
) {
  const values: number[] = []
  const errors: MqttError[] = []
  const take = (received: mq.Received<object, { twice: number }> | mq.Invalid<object>): boolean => {
    if (received.error === undefined) values.push(received.value.twice / 2)
    else errors.push(received.error)
    if (ack === 'manual') received.message.ack()
    return values.length < 7
  }
  if (reading === 'listen') {
    const handling = await bound.listen((received) => void take(received), {
      onInvalid,
      ack: ack === 'manual' ? 'auto' : ack,
    })
    const done =
      onInvalid === 'throw'
        ? () => handling.done
        : () => eventually(() => values.length === 7, 'seven values')
    return { values, errors, source: handling, done }
  }
  const subscription = await bound.subscribe({ onInvalid, ack })
  const ways = {
    next: async () => {
      while (take((await subscription.next({ timeout: 4000 })) as never));
    },
    batches: async () => {
      for await (const batch of subscription.batches())
        if (!batch.map((each) => take(each as never)).every(Boolean)) break
    },
    'for await': async () => {
      for await (const each of subscription) if (!take(each as never)) break
    },
  }
  return { values, errors, source: subscription, done: ways[reading] }
}

/** Reason codes of the acknowledgements that leave. */
function acknowledgements(client: Client): number[] {
  const codes: number[] = []
  client.on('packet', ({ direction, packet }) => {
    if (direction === 'out' && (packet.type === 'puback' || packet.type === 'pubrec'))
      codes.push(packet.reasonCode)
  })
  return codes
}

/** How the acknowledgements of all payloads are to come out. */
async function expectAcknowledged(
  codes: readonly number[],
  { policy, qos, ack, reading, version }: Cell,
): Promise<void> {
  if (qos === 0) return
  // The last one of a bare `next()` is acknowledged with the one after it.
  const open = reading === 'next' && ack === 'auto' ? 1 : 0
  await eventually(() => codes.length === payloads.length - open, 'every acknowledgement')
  const hasRefused = policy === 'reject' && ack !== 'on-receive' && version === 5
  expect(codes.filter((code) => code !== 0)).toEqual(hasRefused ? wrong.map(() => 0x99) : [])
}

describe('bad payloads', () => {
  it.each(cells.filter(({ ack, reading }) => reading !== 'listen' || ack !== 'manual'))(
    '$policy, QoS $qos, ack $ack, $reading, MQTT version $version',
    async (cell) => {
      const { policy, qos, ack, version } = cell
      const { client, other, told, warnings } = await pair({
        receiveMaximum: version === 5 ? 3 : undefined,
        protocolVersion: version,
      })
      const codes = acknowledgements(client)
      const bound = boundTo(client, qos)
      const { values, errors, source, done } = await reader(cell, bound)
      for (const payload of payloads) other.publish('v', payload, { qos }).catch(() => undefined)
      if (policy === 'throw') {
        await expect(done()).rejects.toEqual(coded(bad))
        expect(values).toEqual([0])
        expect(told.length).toBe(1)
        // What a refused message is acknowledged with: 3.1.1 has no reason codes.
        const refused = version === 5 ? 0x99 : 0
        if (qos > 0 && ack !== 'on-receive')
          await eventually(() => codes.length >= 2 && codes.includes(refused), 'an acknowledgement')
      } else {
        await done()
        expect(values).toEqual([0, 1, 2, 3, 4, 5, 6])
        expect([source.invalid, errors.length]).toEqual([4, policy === 'deliver' ? 4 : 0])
        const reported = told.map(({ topic, error, start }) => [
          topic,
          error.code,
          new TextDecoder().decode(start),
        ])
        expect(reported).toEqual(wrong.map((text) => ['v', bad, text]))
        await expectAcknowledged(codes, cell)
      }
      expect(warnings.filter((line) => line.includes('invalid payload'))).toHaveLength(1)
      expect(client.state).toBe('connected')
      await source.unsubscribe()
      // The window is free: as many again go through.
      if (policy !== 'throw') {
        await using again = await bound.subscribe()
        for (let n = 0; n < 10; n++)
          other.publish('v', `{"value":${n}}`, { qos }).catch(() => undefined)
        for (let n = 0; n < 10; n++)
          expect((await again.next({ timeout: 4000 }))?.value.twice).toBe(n * 2)
      }
    },
  )

  it('a function decides for each, and one that fails has no opinion', async () => {
    const { client, other } = await pair()
    const channel = mq.channel('{kind}/v', mq.number()).on(client)
    await using subscription = await channel.subscribe(
      {},
      {
        onInvalid: ({ params }) => (params?.kind === 'a' ? 'deliver' : JSON.parse('no')),
      },
    )
    for (const kind of ['a', 'b']) await other.publish(`${kind}/v`, 'x')
    await other.publish('b/v', '2')
    expect((await subscription.next())?.error).toEqual(coded(bad))
    expect((await subscription.next())?.value).toBe(2)
    expect(subscription.invalid).toBe(2)
  })

  it('a level that does not parse is invalid; an empty retained payload is not', async () => {
    const { client, other, told } = await pair()
    await other.publish('n/7', '7', { retain: true, qos: 1 })
    await using subscription = await mq
      .channel('n/{n:number}', mq.json<number>())
      .on(client)
      .subscribe({}, { onInvalid: 'deliver', qos: 1 })
    expect((await subscription.next())?.params).toEqual({ n: 7 })
    await other.publish('n/x', '1')
    expect((await subscription.next())?.params).toBeUndefined()
    await other.publish('n/7', '', { retain: true, qos: 1 })
    await other.publish('n/8', '8')
    expect((await subscription.next())?.value).toBe(8)
    expect(told).toHaveLength(1)
  })

  it('one that fails in its handler is counted and reported once, however often it is tried', async () => {
    const { client, other, told } = await pair()
    let attempts = 0
    const channel = mq.channel('v', mq.number()).on(client)
    const failing = () => {
      attempts += 1
      if (attempts < 3) throw new Error('again')
    }
    const handling = await channel.listen(failing, { qos: 1, onInvalid: 'deliver' })
    await other.publish('v', 'x', { qos: 1 })
    await eventually(() => attempts === 3)
    await other.publish('v', 'y', { qos: 1 })
    await eventually(() => attempts === 4)
    expect([handling.invalid, told.length]).toEqual([2, 2])
    const refused = channel.listen(failing, { onInvalid: 'throw', onError: 'ignore' as never })
    await expect(refused).rejects.toEqual(coded('ERR_INVALID_OPTION', { option: 'onError' }))
  })

  it('a policy that answers later has no opinion, and ends nothing', async () => {
    const { client, other } = await pair()
    const onInvalid = (async () => Promise.reject(new Error('later'))) as never
    await using subscription = await mq
      .channel('v', mq.number())
      .on(client)
      .subscribe({ qos: 1, onInvalid })
    for (const payload of ['x', '1']) await other.publish('v', payload, { qos: 1 })
    expect((await subscription.next({ timeout: 2000 }))?.value).toBe(1)
    await pause(5)
  })

  it('two bindings of one channel are one: one line of the log, one order', async () => {
    const { client, other, warnings } = await pair()
    const channel = mq.channel('v', mq.json(late), { qos: 1 })
    expect(channel.on(client)).toBe(channel.on(client))
    expect(channel.on(client)).not.toBe(channel.on(other))
    await using one = await channel.on(client).subscribe()
    await using two = await channel.on(client).subscribe()
    await other.publish('v', 'x', { qos: 1 })
    const calls = upTo(20).map((value) => channel.on(client).publish({ value }))
    await Promise.all([...calls, channel.on(client).clear()])
    for (const n of upTo(20))
      for (const each of [one, two]) expect((await each.next())?.value.twice).toBe(n * 2)
    expect([one.invalid, two.invalid, warnings.length]).toEqual([1, 1, 1])
  })

  it('what is given as undefined is left out: the defaults of the channel go', async () => {
    const { client } = await pair()
    const channel = mq
      .channel('v', mq.number(), {
        qos: 1,
        retain: true,
        publish: { properties: { messageExpiryInterval: 9 } },
      })
      .on(client)
    const sent: unknown[] = []
    client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === 'publish')
        sent.push([packet.qos, packet.retain, packet.properties?.messageExpiryInterval])
      if (direction === 'out' && packet.type === 'subscribe')
        sent.push(packet.subscriptions[0]?.qos)
    })
    await channel.publish(1, { qos: undefined, retain: undefined, properties: undefined })
    await using _subscription = await channel.subscribe({ qos: undefined, onInvalid: undefined })
    expect(sent).toEqual([[1, true, 9], 1])
  })

  it('a publish that waits for a schema that never answers is given up with its signal, and those behind it go on', async () => {
    const { client } = await pair()
    let first = true
    const hanging = schemaOf<number>((value) => {
      if (!first) return { value }
      first = false
      return new Promise(() => undefined)
    })
    const channel = mq.channel('v', mq.json(hanging), { qos: 1 }).on(client)
    await using subscription = await client.subscribe('v')
    const abort = new AbortController()
    const one = channel.publish(1, { signal: abort.signal })
    const two = channel.publish(2)
    abort.abort()
    await expect(one).rejects.toEqual(coded('ERR_ABORTED', { outcome: 'not-sent' }))
    await two
    expect((await subscription.next())?.text()).toBe('2')
  })

  it('handlers and listeners that call back do no harm', async () => {
    const { client, other, told } = await pair()
    const channel = mq.channel('v/{id}', mq.number(), { qos: 1 }).on(client)
    const got: number[] = []
    const handling = await channel.listen(async ({ params, value }) => {
      got.push(value)
      if (value < 5) await channel.publish({ id: params.id }, value + 1)
      else await handling.unsubscribe()
    })
    client.on('invalid', () => void channel.publish({ id: 'a' }, 1))
    await other.publish('v/a', 'x', { qos: 1 })
    await eventually(() => got.length === 5)
    expect(got).toEqual([1, 2, 3, 4, 5])
    expect(told).toHaveLength(1)
    await using subscription = await channel.subscribe([{ id: 'b' }, { id: 'b' }, {}])
    await channel.publish({ id: 'b' }, 7)
    expect((await subscription.next())?.value).toBe(7)
    await pause(10)
    expect(subscription.size).toBe(0)
  })

  it.each([{ onInvalid: 'ignore' }, { onInvalid: 1 }])('%j is refused', async (options) => {
    const { client } = await pair()
    const subscribing = temperature.on(client).subscribe({}, options as never)
    await expect(subscribing).rejects.toEqual(coded('ERR_INVALID_OPTION', { option: 'onInvalid' }))
  })
})
