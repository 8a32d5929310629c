/** What a message offers: bytes of its own, text, JSON without traps, owned and borrowed lifetimes. */
import { describe, expect, it } from 'vitest'
import type { Message, SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { connected, type World } from './harness.js'
import { acks, agreed, obliging, publish, quick, quiet, series, subscribe, taken } from './incoming.js'

const utf8 = new TextEncoder()

async function received(packet: PacketInput, options?: SubscribeOptions): Promise<Message> {
  const world = await agreed()
  const subscription = await subscribe(world, '#', options)
  await world.send(packet)
  return taken(subscription)
}

const json = async (text: string): Promise<unknown> => (await received(publish('a', text))).json()

describe('payload', () => {
  it.each([0, 1, 100, 8192, 100_000])('%i bytes lie in an ArrayBuffer of exactly their size', async (size) => {
    const bytes = Uint8Array.from({ length: size }, (_, index) => index & 255)
    const message = await received(publish('a', '', undefined, { payload: bytes }))
    expect(message.payload).toEqual(bytes)
    expect(message.payload.byteOffset).toBe(0)
    expect(message.payload.buffer.byteLength).toBe(size)
  })

  it('keeping one message does not pin what came with it', async () => {
    const world = await connected({}, obliging, { backward: { delivery: 'buffer' } })
    const subscription = await subscribe(world, 'a')
    await world.send(...quick('a', 3))
    const buffers = [taken(subscription), taken(subscription), taken(subscription)].map((message) => message.payload.buffer)
    expect(new Set(buffers).size).toBe(3)
    expect(buffers.map((buffer) => buffer.byteLength)).toEqual([1, 1, 1])
  })

  it('correlation data is its own as well', async () => {
    const message = await received(
      publish('a', 'x', undefined, { properties: { contentType: 'long text before it', correlationData: Uint8Array.of(1, 2, 3) } }),
    )
    expect(message.properties.correlationData).toEqual(Uint8Array.of(1, 2, 3))
    expect(message.properties.correlationData?.buffer.byteLength).toBe(3)
  })

  it('properties are the same object each time', async () => {
    const message = await received(publish('a', 'x', undefined, { properties: { contentType: 't' } }))
    expect(message.properties).toBe(message.properties)
  })

  it('names in user properties are no keys of anything', async () => {
    const message = await received(
      publish('a', 'x', undefined, {
        properties: {
          userProperties: [
            ['__proto__', 'p'],
            ['constructor', 'c'],
          ],
        },
      }),
    )
    expect(message.properties.userProperties).toEqual([
      ['__proto__', 'p'],
      ['constructor', 'c'],
    ])
    expect(({} as Record<string, unknown>)['p']).toBeUndefined()
  })
})

describe('text()', () => {
  it('UTF-8, a byte order mark included', async () => {
    expect((await received(publish('a', 'größe 😀'))).text()).toBe('größe 😀')
    expect((await received(publish('a', '\ufeffx'))).text()).toBe('\ufeffx')
    expect((await received(publish('a', ''))).text()).toBe('')
  })

  it('what is no UTF-8 becomes replacement characters, not an exception', async () => {
    const message = await received(publish('a', '', undefined, { payload: Uint8Array.of(0x61, 0xff, 0x62) }))
    expect(message.text()).toBe('a\ufffdb')
  })
})

describe('json()', () => {
  it('parses, and throws SyntaxError where there is none', async () => {
    expect(await json('{"a":[1,null,"x"]}')).toEqual({ a: [1, null, 'x'] })
    expect(await json('"\\u0041"')).toBe('A')
    expect(await json('null')).toBeNull()
    await expect(json('{')).rejects.toThrow(SyntaxError)
    await expect(json('')).rejects.toThrow(SyntaxError)
  })

  it.each([
    '{"__proto__":{"polluted":true},"a":1}',
    '{"\\u005f_proto__":{"polluted":true},"a":1}',
    '{"\\u005F\\u005Fproto\\u005f\\u005f":{"polluted":true},"a":1}',
    '{"__pr\\u006fto__":{"polluted":true},"a":1}',
  ])('leaves out the key __proto__, however it is written: %s', async (text) => {
    const value = (await json(text)) as Record<string, unknown>
    expect(Object.keys(value)).toEqual(['a'])
    expect(Object.getOwnPropertyDescriptor(value, '__proto__')).toBeUndefined()
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    const copy = Object.assign({}, value) as Record<string, unknown>
    expect(copy['polluted']).toBeUndefined()
  })

  it('at any depth, and in arrays', async () => {
    const value = (await json('{"a":[{"b":{"__proto__":{"x":1},"c":2}}]}')) as { a: { b: Record<string, unknown> }[] }
    const inner = value.a[0]?.b
    expect(Object.keys(inner ?? {})).toEqual(['c'])
    expect(inner?.['x']).toBeUndefined()
  })

  it.each(['', '"\\u0061",'])('what is nested deeper than the stack is no JSON: a SyntaxError, nothing else (after %s)', async (before) => {
    const text = `[${before}${'['.repeat(200_000)}${']'.repeat(200_000)}]`
    const parsed = json(text).catch((error: unknown) => error)
    expect([undefined, 'SyntaxError']).toContain(((await parsed) as { name?: string }).name)
  })

  it('the text __proto__ as a value stays', async () => {
    expect(await json('{"a":"__proto__","b":["__proto__"],"c":"\\u005f"}')).toEqual({ a: '__proto__', b: ['__proto__'], c: '_' })
  })
})

describe('owned, the default', () => {
  it('valid for ever: after ack, after the next turn, after the end', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(publish('a', 'x', 1, { properties: { contentType: 't' } }), publish('a', 'y', 2))
    const message = taken(subscription)
    message.ack()
    taken(subscription)
    world.client.destroy()
    await world.settle()
    expect([message.text(), message.topic, message.qos, message.properties.contentType]).toEqual(['x', 'a', 1, 't'])
    expect(message.detach()).toBe(message)
  })
})

describe('borrowed', () => {
  const reads: readonly (readonly [string, (message: Message) => unknown])[] = [
    ['topic', (message) => message.topic],
    ['payload', (message) => message.payload],
    ['qos', (message) => message.qos],
    ['retain', (message) => message.retain],
    ['dup', (message) => message.dup],
    ['redelivered', (message) => message.redelivered],
    ['properties', (message) => message.properties],
    ['text()', (message) => message.text()],
    ['json()', (message) => message.json()],
    ['detach()', (message) => message.detach()],
  ]
  const released = expect.objectContaining({ code: 'ERR_MESSAGE_RELEASED' })

  async function borrowing(options: SubscribeOptions = {}): Promise<{ world: World; subscription: Subscription }> {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, lifetime: 'borrowed', ...options })
    await world.send(...series('a', 4))
    return { world, subscription }
  }

  it.each(reads)('%s works during the turn and throws after the next one began', async (_what, reading) => {
    const { subscription } = await borrowing()
    const message = taken(subscription)
    expect(() => reading(message)).not.toThrow()
    taken(subscription)
    expect(() => reading(message)).toThrow(released)
  })

  it.each(reads)('%s throws after ack()', async (_what, reading) => {
    const { subscription } = await borrowing({ ack: 'manual' })
    const message = taken(subscription)
    expect(() => reading(message)).not.toThrow()
    expect(message.ack()).toBe(true)
    expect(() => reading(message)).toThrow(released)
  })

  it('ack() after the release does not throw: it is stale', async () => {
    const { world, subscription } = await borrowing()
    const message = taken(subscription)
    taken(subscription)
    await world.settle()
    expect(message.ack()).toBe(false)
  })

  it('under manual acks the next message does not release the one before', async () => {
    const { subscription } = await borrowing({ ack: 'manual' })
    const message = taken(subscription)
    taken(subscription)
    expect(message.text()).toBe('1')
  })

  it('two messages are two objects', async () => {
    const { subscription } = await borrowing({ ack: 'manual' })
    expect(taken(subscription)).not.toBe(taken(subscription))
  })

  it('detach() gives an owned message, which may still acknowledge', async () => {
    const { world, subscription } = await borrowing({ ack: 'manual' })
    const message = taken(subscription)
    const kept = message.detach()
    expect(kept).not.toBe(message)
    expect(kept.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(message.ack()).toBe(false)
    expect([kept.text(), kept.topic, kept.detach()]).toEqual(['1', 'a', kept])
  })

  it('a detached message stays readable after the turn, which acknowledges it once', async () => {
    const { world, subscription } = await borrowing()
    const kept = taken(subscription).detach()
    taken(subscription)
    await world.settle()
    expect(kept.text()).toBe('1')
    expect(kept.ack()).toBe(false)
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('QoS 0 the same, and ack() is true', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { lifetime: 'borrowed' })
    await world.send(...quick('a', 2))
    const message = taken(subscription)
    taken(subscription)
    expect(() => message.text()).toThrow(released)
    expect(message.ack()).toBe(true)
  })

  it('a loop: each until the body is done', async () => {
    const { world, subscription } = await borrowing()
    const seen: Message[] = []
    const texts: string[] = []
    ;(async () => {
      for await (const message of subscription) {
        await Promise.resolve()
        texts.push(message.text())
        seen.push(message)
      }
    })()
    await world.settle()
    expect(texts).toEqual(['1', '2', '3', '4'])
    for (const message of seen) expect(() => message.text()).toThrow(released)
  })

  it('batches: each until the next batch is asked for', async () => {
    const { world, subscription } = await borrowing()
    const batches = subscription.batches(2)
    const first = (await batches.next()).value as Message[]
    expect(first.map((message) => message.text())).toEqual(['1', '2'])
    quiet(batches.next())
    await world.settle()
    for (const message of first) expect(() => message.text()).toThrow(released)
  })

  it('listen: each until the handler is done, asynchronous ones and retries included', async () => {
    const world = await agreed({ keepAlive: false })
    const seen: Message[] = []
    const texts: string[] = []
    const handling = world.client.listen(
      'a',
      async (message) => {
        await Promise.resolve()
        texts.push(message.text())
        seen.push(message)
        if (texts.length === 1) throw new Error('once more')
      },
      { qos: 1, lifetime: 'borrowed' },
    )
    await world.settle()
    await handling
    await world.send(...series('a', 2))
    await world.clock.advance(60_000)
    expect(texts).toEqual(['1', '1', '2'])
    for (const message of seen) expect(() => message.text()).toThrow(released)
  })

  it('leaving the loop releases what was in hand', async () => {
    const { world, subscription } = await borrowing()
    let kept: Message | undefined
    for await (const message of subscription) {
      kept = message
      break
    }
    await world.settle()
    expect(() => kept?.text()).toThrow(released)
  })

  it('onDrop may read what is dropped', async () => {
    const world = await agreed()
    const texts: string[] = []
    await subscribe(world, 'a', { lifetime: 'borrowed', buffer: 1, overflow: 'drop-newest', onDrop: (message) => texts.push(message.text()) })
    for (let index = 1; index <= 4; index++) await world.send(publish('a', String(index)))
    expect(texts.length).toBeGreaterThanOrEqual(2)
    expect(texts.at(-1)).toBe('4')
  })

  it('one subscription borrows, another owns: each as it asked', async () => {
    const world = await agreed()
    const borrowed = await subscribe(world, 'a', { qos: 1, lifetime: 'borrowed' })
    const owned = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    const [one, other] = [taken(borrowed), taken(owned)]
    taken(borrowed)
    taken(owned)
    expect(() => one.payload).toThrow(released)
    expect(other.payload).toEqual(utf8.encode('1'))
  })
})
