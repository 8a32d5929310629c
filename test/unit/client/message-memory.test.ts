/** What a message takes and what it keeps alive, owned and borrowed. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import type { Message } from '../../../src/client/options/index.js'
import { turn } from '../../support/pausing.js'
import { keeps } from './across.js'
import { coded, times } from './harness.js'
import { agreed, publish, quick, subscribe, taken } from './incoming.js'
import { windowed } from './windowed.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

// What was collected is given back by another thread, a little later.
async function buffers(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 6; round++) {
    collect()
    await turn()
    least = Math.min(least, process.memoryUsage().arrayBuffers)
  }
  return least
}

const transfer = ({ payload }: Message): void =>
  structuredClone(undefined, { transfer: [payload.buffer as ArrayBuffer] })
const released = coded('ERR_MESSAGE_RELEASED')
const large = { buffer: 100_000, bufferBytes: 1e9 }

it.each([0, 1, 100, 5000, 8192, 70_000])(
  'an owned payload: of %i bytes: the whole ArrayBuffer',
  async (size) => {
    const { world, send } = await windowed()
    const subscription = await subscribe(world, '#')
    const payload = Uint8Array.from({ length: size }, (_, index) => index & 0xff)
    await send(
      publish('before', 'x'),
      publish('a', '', undefined, { payload, properties: { contentType: 'c' } }),
      publish('behind', 'y'),
    )
    taken(subscription)
    const message = taken(subscription)
    expect([
      message.payloadLength,
      message.payload.byteOffset,
      message.payload.buffer.byteLength,
    ]).toEqual([size, 0, size])
    expect(message.payload).toEqual(payload)
    expect(message.payload).toBe(message.payload)
    expect(message.properties.contentType).toBe('c')
    const clone = structuredClone(message.payload)
    expect([clone.buffer.byteLength, clone]).toEqual([size, payload])
  },
)

it.each(['short', 'x'.repeat(5000), 'y'.repeat(70_000)])(
  'an owned payload: of a message that two get is two arrays: what one writes the other does not see',
  async (payload) => {
    const { world, send } = await windowed()
    const [one, other] = [await subscribe(world, 'a'), await subscribe(world, 'a')]
    const properties = { correlationData: Uint8Array.of(1, 2) }
    await send(publish('a', payload, undefined, { properties }))
    const [first, second] = [taken(one), taken(other)]
    first.payload.fill(0)
    first.properties.correlationData?.fill(0)
    transfer(first)
    expect(second.properties).toMatchObject(properties)
    expect([second.text(), second.payload.buffer.byteLength]).toEqual([payload, payload.length])
  },
)

it.each(['', 'x', 'x'.repeat(5000), 'y'.repeat(70_000)])(
  'an owned payload: its buffer was transferred: text() and json() say so',
  async (payload) => {
    const { world, send } = await windowed()
    const subscription = await subscribe(world, 'a')
    await send(publish('a', payload), publish('a', 'next'))
    const message = taken(subscription)
    transfer(message)
    if (payload === '') expect(message.text()).toBe('')
    else
      for (const read of [() => message.text(), () => message.json()])
        expect(read).toThrow(released)
    // Consoles print it all the same.
    expect(message).toMatchObject({ payloadLength: payload.length })
    expect(JSON.parse(JSON.stringify(message))).toMatchObject({
      payload: payload === '' ? '' : '(transferred)',
    })
    expect([message.topic, taken(subscription).text()]).toEqual(['a', 'next'])
  },
)

it('an owned payload: keeps no window alive, nor more than 8 KiB, though one in a thousand is kept', async () => {
  const world = await agreed()
  const kept: Message[] = []
  const subscription = await subscribe(world, 'a', large)
  const before = await buffers()
  for (let round = 0; round < 100; round++) {
    await world.send(...times(1000, (index) => publish('a', `${index}`.padEnd(60, '.'))))
    for (
      let message = subscription.read(), index = 0;
      message !== undefined;
      message = subscription.read(), index++
    )
      if (index === 500) kept.push(message)
  }
  expect(kept.length).toBe(100)
  expect((await buffers()) - before).toBeLessThan(100 * 8192 + 200_000)
  for (const message of kept) expect(message.payload.length).toBe(60)
  expect((await buffers()) - before).toBeLessThan(300_000)
})

it('small reads: a borrowed view shows no memory of others, nor takes it away from them', async () => {
  const [world, other] = [await agreed(), await agreed()]
  const elsewhere = await subscribe(other, 'a')
  const owned = await subscribe(world, 'a')
  const borrowed = await subscribe(world, 'a', { lifetime: 'borrowed' })
  await other.send(publish('a', 'secret'))
  await world.send(publish('a', 'mine'))
  const message = taken(borrowed)
  expect(new TextDecoder().decode(new Uint8Array(message.payload.buffer))).not.toContain('secret')
  message.payload.fill(0)
  transfer(message)
  expect([taken(owned).text(), taken(elsewhere).text()]).toEqual(['mine', 'secret'])
})

it('small reads: keep no client alive that has ended', async () => {
  const ended = await (async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(publish('a', 'x'))
    subscription.read()
    world.client.destroy()
    await world.settle()
    return new WeakRef(subscription)
  })()
  for (let round = 0; round < 2; round++) {
    await turn()
    collect()
  }
  expect(ended.deref()).toBeUndefined()
})

it('messages that wait: keep little more alive than themselves, when those that came with them are gone', async () => {
  const world = await agreed()
  const rare = await subscribe(world, 'rare', large)
  const often = await subscribe(world, 'often', large)
  const before = await buffers()
  for (let round = 0; round < 300; round++) {
    await world.send(
      ...times(80, (index) => publish(index === 40 ? 'rare' : 'often', 'x'.repeat(100))),
    )
    while (often.read() !== undefined);
  }
  expect(rare.size).toBe(300)
  expect((await buffers()) - before).toBeLessThan(300_000)
})

it('messages that wait: unread, of a session that was resumed, neither', async () => {
  const { send } = await windowed(
    { cleanStart: false, clientId: 'c', receiveMaximum: 65_535 },
    keeps(),
  )
  const before = await buffers()
  for (let id = 1; id <= 300; id++)
    await send(...quick('nobody', 40), publish('late', 'x'.repeat(100), id), ...quick('nobody', 40))
  expect((await buffers()) - before).toBeLessThan(300_000)
})
