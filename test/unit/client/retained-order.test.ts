/**
 * Copies with RETAIN 1 for several readers of one filter: some servers send them before SUBACK, some behind it, some both. Nobody misses any, and
 * where the server keeps one habit nobody gets them twice.
 */
import { describe, expect, it } from 'vitest'
import { connected } from './harness.js'
import { publish, quiet } from './incoming.js'

const kept = (text: string) => publish('a', text, undefined, { retain: true })

/** Readers that subscribe when told; the test answers. */
async function readers() {
  const world = await connected({ keepAlive: false })
  /** What each has got, in their order. */
  const seen: string[][] = []
  return {
    world,
    seen,
    async join(options = {}) {
      const texts: string[] = []
      seen.push(texts)
      const handler = (message: { text(): string }) => void texts.push(message.text())
      quiet(world.client.listen('a', handler, { qos: 1, ...options }))
      await world.settle()
    },
    /** The answer to the SUBSCRIBE of this number. */
    suback(index: number, qos = 1) {
      const packetId = world.peer.all('subscribe')[index]?.packetId ?? 0
      return { type: 'suback', packetId, reasonCodes: [qos], properties: {} } as const
    },
  }
}

describe('a server that sends them behind SUBACK, as mosquitto does', () => {
  it('the next subscriber gets none of the first reader’s, once the habit is known', async () => {
    const { world, seen, join, suback } = await readers()
    await join()
    await world.send(suback(0), kept('1'))
    await join()
    await world.send(suback(1))
    await join()
    await world.send(kept('2'), suback(2), kept('3'))
    expect(seen).toEqual([['1'], ['2'], ['3']])
  })

  it('a SUBSCRIBE that leaves before they came takes them from nobody', async () => {
    const { world, seen, join, suback } = await readers()
    await join()
    await world.send(suback(0))
    await join()
    await world.send(kept('1'), suback(1), kept('2'))
    expect([seen[0]?.includes('1'), seen[0]?.includes('2'), seen[1]?.includes('2')]).toEqual([
      true,
      false,
      true,
    ])
  })
})

it('a server that sends them before SUBACK: each of several that wait gets its own', async () => {
  const { world, seen, join, suback } = await readers()
  for (let count = 0; count < 3; count++) await join()
  await world.send(kept('1'), suback(0), kept('2'), suback(1), kept('3'), suback(2))
  expect(seen).toEqual([['1'], ['2'], ['3']])
})

it('a filter that has messages as they were published says nothing of the habit: any of them may have RETAIN 1', async () => {
  const { world, seen, join, suback } = await readers()
  quiet(world.client.subscribe('b', { qos: 1, retainAsPublished: true }))
  await world.settle()
  await world.send(suback(0), publish('b', 'x', undefined, { retain: true }))
  for (let count = 0; count < 2; count++) await join()
  await world.send(kept('1'), suback(1), kept('2'), suback(2))
  expect(seen).toEqual([['1'], ['2']])
})

describe('a server that does both, as one does whose window is full', () => {
  it('nobody misses any', async () => {
    const { world, seen, join, suback } = await readers()
    await join()
    await world.send(kept('1'), suback(0), kept('2'))
    await join()
    await world.send(kept('3'), suback(1), kept('4'))
    expect(seen[0]).toEqual(expect.arrayContaining(['1', '2', '3']))
    expect(seen[1]).toEqual(expect.arrayContaining(['3', '4']))
  })

  it('a SUBSCRIBE that asks for none changes nothing', async () => {
    const { world, seen, join, suback } = await readers()
    await join()
    await world.send(suback(0), kept('1'))
    await join({ qos: 2, retainHandling: 2 })
    await world.send(kept('2'), suback(1, 2), kept('3'))
    expect(seen[0]).toEqual(['1', '2', '3'])
  })
})
