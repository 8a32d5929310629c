/**
 * Copies with RETAIN 1 for several readers of one filter: some servers send them before SUBACK, some behind it, some both. Nobody misses any, and
 * where the server keeps one habit nobody gets them twice.
 */
import { describe, expect, it } from 'vitest'
import { connected, type World } from './harness.js'
import { publish, quiet } from './incoming.js'

const kept = (text: string) => publish('a', text, undefined, { retain: true })
const suback = (world: World, index: number) => {
  const packetId = world.peer.all('subscribe')[index]?.packetId ?? 0
  return { type: 'suback', packetId, reasonCodes: [1], properties: {} } as const
}

/** What each reader has got. Readers subscribe when told, and the test answers. */
async function readers(): Promise<{ world: World; seen: Record<string, string[]>; join: (name: string) => Promise<void> }> {
  const world = await connected({ keepAlive: false })
  const seen: Record<string, string[]> = {}
  const join = async (name: string): Promise<void> => {
    const texts: string[] = []
    seen[name] = texts
    quiet(world.client.listen('a', (message) => void texts.push(message.text()), { qos: 1 }))
    await world.settle()
  }
  return { world, seen, join }
}

describe('a server that sends them behind SUBACK, as mosquitto does', () => {
  it('who subscribes next gets none of the first reader’s, once the habit is known', async () => {
    const { world, seen, join } = await readers()
    await join('first')
    await world.send(suback(world, 0), kept('1'))
    await join('second')
    await world.send(suback(world, 1))
    await join('third')
    await world.send(kept('2'), suback(world, 2), kept('3'))
    expect(seen).toEqual({ first: ['1'], second: ['2'], third: ['3'] })
  })

  it('a SUBSCRIBE that leaves before they came takes them from nobody', async () => {
    const { world, seen, join } = await readers()
    await join('first')
    await world.send(suback(world, 0))
    await join('second')
    await world.send(kept('1'), suback(world, 1), kept('2'))
    expect(seen['first']).toContain('1')
    expect(seen['second']).toContain('2')
    expect(seen['first']).not.toContain('2')
  })
})

describe('a server that sends them before SUBACK', () => {
  it('each of several that wait gets its own', async () => {
    const { world, seen, join } = await readers()
    for (const name of ['first', 'second', 'third']) await join(name)
    await world.send(kept('1'), suback(world, 0), kept('2'), suback(world, 1), kept('3'), suback(world, 2))
    expect(seen).toEqual({ first: ['1'], second: ['2'], third: ['3'] })
  })
})

describe('a filter that has messages as they were published', () => {
  it('says nothing of where the server puts retained ones: any of its messages may have RETAIN 1', async () => {
    const { world, seen, join } = await readers()
    quiet(world.client.subscribe('b', { qos: 1, retainAsPublished: true }))
    await world.settle()
    await world.send(suback(world, 0), publish('b', 'x', undefined, { retain: true }))
    for (const name of ['first', 'second']) await join(name)
    await world.send(kept('1'), suback(world, 1), kept('2'), suback(world, 2))
    expect(seen).toEqual({ first: ['1'], second: ['2'] })
  })
})

describe('a server that does both, as one does whose window is full', () => {
  it('nobody misses any', async () => {
    const { world, seen, join } = await readers()
    await join('first')
    await world.send(kept('1'), suback(world, 0), kept('2'))
    await join('second')
    await world.send(kept('3'), suback(world, 1), kept('4'))
    expect(seen['first']).toEqual(expect.arrayContaining(['1', '2', '3']))
    expect(seen['second']).toEqual(expect.arrayContaining(['3', '4']))
  })

  it('a SUBSCRIBE that asks for none changes nothing', async () => {
    const { world, seen, join } = await readers()
    await join('first')
    await world.send(suback(world, 0), kept('1'))
    quiet(world.client.subscribe('a', { qos: 2, retainHandling: 2 }))
    await world.settle()
    await world.send(kept('2'), { ...suback(world, 1), reasonCodes: [2] }, kept('3'))
    expect(seen['first']).toEqual(['1', '2', '3'])
  })
})
