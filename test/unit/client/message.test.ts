/** What a message offers: bytes of its own, text, JSON without traps, owned and borrowed lifetimes. */
import { describe, expect, it } from 'vitest'
import type { Message, SubscribeOptions } from '../../../src/client/options/index.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import { coded } from './harness.js'
import { acks, agreed, publish, quick, quiet, series, subscribe, taken } from './incoming.js'

async function received(packet: PacketInput): Promise<Message> {
  const world = await agreed()
  const subscription = await subscribe(world, '#')
  await world.send(packet)
  return taken(subscription)
}

const json = async (text: string): Promise<unknown> => (await received(publish('a', text))).json()

it('correlation data is its own, properties are the same object each time, and names in them are no keys of anything', async () => {
  const userProperties = ['__proto__', 'constructor'].map((name): [string, string] => [name, 'p'])
  const correlationData = Uint8Array.of(1, 2, 3)
  const properties = { contentType: 'long text before it', correlationData, userProperties }
  const message = await received(publish('a', 'x', undefined, { properties }))
  expect(message.properties).toMatchObject(properties)
  expect(message.properties.correlationData?.buffer.byteLength).toBe(3)
  expect(message.properties).toBe(message.properties)
  expect(({} as Record<string, unknown>)['p']).toBeUndefined()
})

it.each(['größe 😀', '\ufeffx', ''])(
  'text(): is UTF-8, byte order mark included: "%s"',
  async (text) => {
    expect((await received(publish('a', text))).text()).toBe(text)
  },
)

it('text(): what is no UTF-8 becomes replacement characters, not an exception', async () => {
  const payload = Uint8Array.of(0x61, 0xff, 0x62)
  expect((await received(publish('a', '', undefined, { payload }))).text()).toBe('a\ufffdb')
})

describe('json()', () => {
  const plain = ['{"a":[1,null,"x"]}', 'null', '{"a":"__proto__","b":["__proto__"],"c":"\\u005f"}']
  it.each(plain)('parses %s', async (text) => expect(await json(text)).toEqual(JSON.parse(text)))

  it.each(['{', ''])('throws SyntaxError where there is none: "%s"', (text) =>
    expect(json(text)).rejects.toThrow(SyntaxError),
  )

  it.each([
    '{"__proto__":{"polluted":true},"a":1}',
    '{"\\u005f_proto__":{"polluted":true},"a":1}',
    '{"\\u005F\\u005Fproto\\u005f\\u005f":{"polluted":true},"a":1}',
    '{"__pr\\u006fto__":{"polluted":true},"a":1}',
  ])('leaves out the key __proto__, at any depth, in arrays too: %s', async (text) => {
    for (const value of [
      await json(text),
      ((await json(`{"a":[{"b":${text}}]}`)) as { a: { b: object }[] }).a[0]?.b,
    ] as object[]) {
      expect(Object.keys(value)).toEqual(['a'])
      expect(Object.getOwnPropertyDescriptor(value, '__proto__')).toBeUndefined()
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
      expect(Object.assign({}, value)).not.toHaveProperty('polluted')
    }
  })

  it.each(['', '"\\u0061",'])('deeper than the stack: only a SyntaxError (%s)', async (before) => {
    const parsed = json(`[${before}${'['.repeat(200_000)}${']'.repeat(200_000)}]`).catch(
      (error: unknown) => error,
    )
    expect([undefined, 'SyntaxError']).toContain(((await parsed) as { name?: string }).name)
  })
})

it('owned, the default, is valid for ever: after ack, after the next turn, after the end', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'x', 1, { properties: { contentType: 't' } }), publish('a', 'y', 2))
  const message = taken(subscription)
  message.ack()
  taken(subscription)
  world.client.destroy()
  await world.settle()
  expect([message.text(), message.properties.contentType]).toEqual(['x', 't'])
  expect(message.detach()).toBe(message)
})

describe('borrowed', () => {
  const released = coded('ERR_MESSAGE_RELEASED')
  const expectReleased = (...messages: (Message | undefined)[]): void => {
    for (const message of messages) expect(() => message?.text()).toThrow(released)
  }

  async function borrowing(options: SubscribeOptions = {}) {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, lifetime: 'borrowed', ...options })
    await world.send(...series('a', 4))
    return { world, subscription }
  }

  const fields = ['topic', 'payload', 'qos', 'retain', 'dup', 'redelivered', 'properties'] as const
  it.each(['auto', 'manual'] as const)('works in its turn, throws after it: %s', async (ack) => {
    const { subscription } = await borrowing({ ack })
    const message = taken(subscription)
    const readings = [
      ...fields.map((name) => () => message[name]),
      ...(['text', 'json', 'detach'] as const).map((name) => () => message[name]()),
    ]
    for (const reading of readings) expect(reading).not.toThrow()
    // The next turn ends this one; under manual acknowledgements only `ack()` does.
    expect(taken(subscription)).not.toBe(message)
    if (ack === 'manual') {
      for (const reading of readings) expect(reading).not.toThrow()
      expect(message.ack()).toBe(true)
    }
    for (const reading of readings) expect(reading).toThrow(released)
    expect(message.ack()).toBe(false)
  })

  it.each(['auto', 'manual'] as const)('detach() gives an owned message: ack %s', async (ack) => {
    const { world, subscription } = await borrowing({ ack })
    const message = taken(subscription)
    const kept = message.detach()
    expect(kept).not.toBe(message)
    if (ack === 'manual') expect(kept.ack()).toBe(true)
    else taken(subscription)
    await world.settle()
    expect([acks(world), message.ack(), kept.ack()]).toEqual([['puback 1'], false, false])
    expect([kept.text(), kept.topic, kept.detach()]).toEqual(['1', 'a', kept])
  })

  it('a loop: each until the body is done, or it is left', async () => {
    const { world, subscription } = await borrowing()
    const seen: Message[] = []
    const texts: string[] = []
    for await (const message of subscription) {
      expectReleased(...seen)
      await Promise.resolve()
      texts.push(message.text())
      if (seen.push(message) === 3) break
    }
    await world.settle()
    expect(texts).toEqual(['1', '2', '3'])
    expectReleased(...seen)
  })

  it('batches: each until the next batch is asked for', async () => {
    const { world, subscription } = await borrowing()
    const batches = subscription.batches(2)
    const first = (await batches.next()).value as Message[]
    expect(first.map((message) => message.text())).toEqual(['1', '2'])
    quiet(batches.next())
    await world.settle()
    expectReleased(...first)
  })

  it('onDrop may read what is dropped', async () => {
    const world = await agreed()
    const texts: string[] = []
    const onDrop = (message: Message) => texts.push(message.text())
    const options = { lifetime: 'borrowed', buffer: 1, overflow: 'drop-newest' } as const
    await subscribe(world, 'a', { ...options, onDrop })
    for (const message of quick('a', 4)) await world.send(message)
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
    expect(other.payload).toEqual(new TextEncoder().encode('1'))
  })
})
