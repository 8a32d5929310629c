/** What a message takes and what it keeps alive, owned and borrowed. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../src/client/api/index.js'
import { acks, agreed, publish, quick, series, subscribe, taken } from './incoming.js'
import { windowed } from './windowed.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

// What was collected is given back by another thread, a little later.
async function buffers(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 6; round++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
    least = Math.min(least, process.memoryUsage().arrayBuffers)
  }
  return least
}

describe('the payload of an owned message', () => {
  it.each([0, 1, 100, 5000, 70_000])('of %i bytes is an array in an ArrayBuffer of exactly its size', async (size) => {
    const { world, send } = await windowed()
    const subscription = await subscribe(world, '#')
    const payload = Uint8Array.from({ length: size }, (_, index) => index & 0xff)
    await send(publish('before', 'x'), publish('a', '', undefined, { payload, properties: { contentType: 'c' } }), publish('behind', 'y'))
    taken(subscription)
    const message = taken(subscription)
    expect(message.payloadLength).toBe(size)
    expect([message.payload.byteOffset, message.payload.buffer.byteLength]).toEqual([0, size])
    expect(message.payload).toEqual(payload)
    expect(message.payload).toBe(message.payload)
    expect(message.properties.contentType).toBe('c')
    const clone = structuredClone(message.payload)
    expect([clone.buffer.byteLength, clone]).toEqual([size, payload])
  })

  it('of a message that two get is two arrays: what one writes the other does not see', async () => {
    for (const payload of ['short', 'x'.repeat(5000), 'y'.repeat(70_000)]) {
      const { world, send } = await windowed()
      const [one, other] = [await subscribe(world, 'a'), await subscribe(world, 'a')]
      await send(publish('a', payload))
      const [first, second] = [taken(one), taken(other)]
      first.payload.fill(0)
      structuredClone(undefined, { transfer: [first.payload.buffer as ArrayBuffer] })
      expect(second.text()).toBe(payload)
      expect(second.payload.buffer.byteLength).toBe(payload.length)
    }
  })

  it.each(['', 'x', 'x'.repeat(5000), 'y'.repeat(70_000)])('its buffer was transferred: text() and json() say so', async (payload) => {
    const { world, send } = await windowed()
    const subscription = await subscribe(world, 'a')
    await send(publish('a', payload), publish('a', 'next'))
    const message = taken(subscription)
    structuredClone(undefined, { transfer: [message.payload.buffer as ArrayBuffer] })
    if (payload === '') expect(message.text()).toBe('')
    else
      for (const read of [() => message.text(), () => message.json()]) expect(read).toThrow(expect.objectContaining({ code: 'ERR_MESSAGE_RELEASED' }))
    expect([message.topic, taken(subscription).text()]).toEqual(['a', 'next'])
  })

  it('its text is there before and after the payload was taken out', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(publish('a', '{"a":1}', undefined, { properties: { contentType: 'c' } }), publish('a', 'b'))
    const message = taken(subscription)
    expect([message.text(), message.json(), message.payload.length, message.text(), message.properties.contentType]).toEqual([
      '{"a":1}',
      { a: 1 },
      7,
      '{"a":1}',
      'c',
    ])
  })

  it('keeps no window alive, nor more than 8 KiB, though one in a thousand is kept', async () => {
    const world = await agreed()
    const kept: Message[] = []
    const subscription = await subscribe(world, 'a', { buffer: 100_000, bufferBytes: 1e9 })
    const before = await buffers()
    for (let round = 0; round < 100; round++) {
      await world.send(...Array.from({ length: 1000 }, (_, index) => publish('a', `${index}`.padEnd(60, '.'))))
      for (let message = subscription.read(), index = 0; message !== undefined; message = subscription.read(), index++) {
        if (index === 500) kept.push(message)
      }
    }
    expect(kept.length).toBe(100)
    expect((await buffers()) - before).toBeLessThan(100 * 8192 + 200_000)
    for (const message of kept) expect(message.payload.length).toBe(60)
    expect((await buffers()) - before).toBeLessThan(300_000)
  })
})

describe('small reads', () => {
  it('a borrowed view shows no memory of others, nor takes it away from them', async () => {
    const world = await agreed()
    const other = await agreed()
    const elsewhere = await subscribe(other, 'a')
    const owned = await subscribe(world, 'a')
    const borrowed = await subscribe(world, 'a', { lifetime: 'borrowed' })
    await other.send(publish('a', 'secret'))
    await world.send(publish('a', 'mine'))
    const view = taken(borrowed).payload
    expect(new TextDecoder().decode(new Uint8Array(view.buffer))).not.toContain('secret')
    view.fill(0)
    structuredClone(undefined, { transfer: [view.buffer as ArrayBuffer] })
    expect([taken(owned).text(), taken(elsewhere).text()]).toEqual(['mine', 'secret'])
  })

  it('keep no client alive that has ended', async () => {
    const ended = await (async () => {
      const world = await agreed()
      const subscription = await subscribe(world, 'a')
      await world.send(publish('a', 'x'))
      subscription.read()
      world.client.destroy()
      await world.settle()
      return new WeakRef(subscription)
    })()
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    expect(ended.deref()).toBeUndefined()
  })
})

describe('messages that wait', () => {
  it('keep little more alive than themselves, when those that came with them are gone', async () => {
    const world = await agreed()
    const rare = await subscribe(world, 'rare', { buffer: 100_000, bufferBytes: 1e9 })
    const often = await subscribe(world, 'often', { buffer: 100_000, bufferBytes: 1e9 })
    const before = await buffers()
    for (let round = 0; round < 300; round++) {
      await world.send(...Array.from({ length: 80 }, (_, index) => publish(index === 40 ? 'rare' : 'often', 'x'.repeat(100))))
      while (often.read() !== undefined);
    }
    expect(rare.size).toBe(300)
    expect((await buffers()) - before).toBeLessThan(300_000)
  })

  it('that nobody reads, of a session that was resumed, neither', async () => {
    const { send } = await windowed({ cleanStart: false, clientId: 'c', receiveMaximum: 65_535 }, (packet) =>
      packet.type === 'connect' ? { type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} } : undefined,
    )
    const before = await buffers()
    for (let id = 1; id <= 300; id++) await send(...quick('nobody', 40), publish('late', 'x'.repeat(100), id), ...quick('nobody', 40))
    expect((await buffers()) - before).toBeLessThan(300_000)
  })

  it('borrowed, in windows that come to an end, move out and are right', async () => {
    const { world, busy, send, links } = await windowed()
    const reader = await subscribe(world, 'a', { lifetime: 'borrowed', buffer: 100_000, bufferBytes: 1e9 })
    await busy()
    const expected: string[] = []
    for (let round = 0; round < 40; round++) {
      const texts = Array.from({ length: 90 }, (_, index) => `${round}:${index} ${'x'.repeat(60)}`)
      expected.push(...texts)
      await send(...texts.map((text) => publish('a', text)))
    }
    expect(links[0]?.windows.length).toBeLessThanOrEqual(5)
    const texts: string[] = []
    for (let message = reader.read(); message !== undefined; message = reader.read()) texts.push(message.text())
    expect(texts).toEqual(expected)
  })

  it.each(['auto', 'manual'] as const)('borrowed, %s acknowledgements: in hand they stay right though every window is used', async (ack) => {
    const { world, busy, send } = await windowed()
    const subscription = await subscribe(world, 'a', { lifetime: 'borrowed', qos: 1, ack })
    await busy()
    await send(...series('a', 30), publish('b', 'x'.repeat(5000)))
    const batches = subscription.batches()
    const batch = (await batches.next()).value as Message[]
    const views = batch.map((message) => message.payload)
    for (let round = 0; round < 12; round++) await busy()
    expect(batch.map((message) => message.text())).toEqual(Array.from({ length: 30 }, (_, index) => String(index + 1)))
    expect(views.map((view) => new TextDecoder().decode(view))).toEqual(batch.map((message) => message.text()))
    if (ack === 'manual') for (const message of batch) message.ack()
    else batches.next().catch(() => undefined)
    await world.settle()
    expect(acks(world).length).toBe(30)
    for (const message of batch) expect(() => message.payload).toThrow(expect.objectContaining({ code: 'ERR_MESSAGE_RELEASED' }))
  })
})
