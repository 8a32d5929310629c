/** `listen` with several handlers at a time: what keeps its order, what a retried message holds up, and what is waited for at the end. */
import { describe, expect, it } from 'vitest'
import type { Filters, Handler, Handling, ListenOptions } from '../../../src/client/api/index.js'
import { Random } from '../../world/random.js'
import type { World } from './harness.js'
import { acks, agreed, type Gate, gate, pubacks, publish, quiet } from './incoming.js'

async function listen(world: World, filters: Filters, handler: Handler, options: ListenOptions): Promise<Handling> {
  const promise = quiet(world.client.listen(filters, handler, options))
  await world.settle()
  return promise
}

/** A handler that notes `topic=text`, and whose calls each wait for a gate of that name. */
function gated() {
  const begun: string[] = []
  const gates = new Map<string, Gate>()
  const handler: Handler = (message) => {
    const name = `${message.topic}=${message.text()}`
    begun.push(name)
    const mine = gate()
    gates.set(name, mine)
    return mine.promise
  }
  return { begun, handler, open: (name: string) => gates.get(name)?.open() }
}

/** Topics `x/a`, `x/b`, …, one letter a message, at QoS 1; the text counts up. */
const letters = (topics: string, from = 1) => [...topics].map((letter, at) => publish(`x/${letter}`, String(from + at), from + at))

describe('what is handled at the same time', () => {
  const topics: [string, Filters, ListenOptions, string[]][] = [
    ['with a wildcard: one of a topic', 'x/#', {}, ['x/a=1', 'x/b=4', 'x/c=6']],
    ['with several filters, one of them a wildcard', ['y', 'x/+'], {}, ['x/a=1', 'x/b=4', 'x/c=6']],
    ["'none': in the order of arrival", 'x/#', { order: 'none' }, ['x/a=1', 'x/a=2', 'x/a=3']],
    ['a shared filter: as none', '$share/g/x/#', {}, ['x/a=1', 'x/a=2', 'x/a=3']],
    ["a shared filter with 'topic'", '$share/g/x/#', { order: 'topic' }, ['x/a=1', 'x/b=4', 'x/c=6']],
    ['a function: one of a key', 'x/#', { order: (message) => Number(message.text()) % 2 }, ['x/a=1', 'x/a=2']],
    ['a function that gives a key for each', 'x/#', { order: (message) => message }, ['x/a=1', 'x/a=2', 'x/a=3']],
  ]
  it.each(topics)('%s', async (_what, filters, options, expected) => {
    const world = await agreed({ keepAlive: false })
    const { begun, handler } = gated()
    await listen(world, filters, handler, { qos: 1, concurrency: 3, ...options })
    await world.send(...letters('aaabbc'))
    expect(begun).toEqual(expected)
  })

  it('without a wildcard: as none', async () => {
    const world = await agreed({ keepAlive: false })
    const { begun, handler } = gated()
    await listen(world, 'x/a', handler, { qos: 1, concurrency: 2 })
    await world.send(...letters('aaa'))
    expect(begun).toEqual(['x/a=1', 'x/a=2'])
  })

  it('each topic goes on by itself; acknowledgements leave in the order of arrival', async () => {
    const world = await agreed({ keepAlive: false })
    const { begun, handler, open } = gated()
    await listen(world, 'x/#', handler, { qos: 1, concurrency: 2 })
    await world.send(...letters('aababc'))
    for (const name of ['x/b=3', 'x/c=6', 'x/b=5']) {
      open(name)
      await world.settle()
    }
    expect(begun).toEqual(['x/a=1', 'x/b=3', 'x/c=6', 'x/b=5'])
    expect(acks(world)).toEqual([])
    for (const name of ['x/a=1', 'x/a=2', 'x/a=4']) {
      open(name)
      await world.settle()
    }
    expect(begun.slice(4)).toEqual(['x/a=2', 'x/a=4'])
    expect(acks(world)).toEqual(pubacks(1, 6))
  })

  it('order that throws is told, and the order of the topic is kept', async () => {
    const errors: string[] = []
    const world = await agreed({ keepAlive: false, logger: { error: (text) => void errors.push(text) } })
    const { begun, handler } = gated()
    const order = (): unknown => {
      throw new Error('no key')
    }
    await listen(world, 'x/#', handler, { qos: 1, concurrency: 3, order })
    await world.send(...letters('aab'))
    expect(begun).toEqual(['x/a=1', 'x/b=3'])
    expect(errors[0]).toContain('order threw: Error: no key')
    expect(world.client.state).toBe('connected')
  })

  it.each([5, 'key', null, {}])('order %j is refused', async (order) => {
    const world = await agreed()
    const promise = world.client.listen('x/#', () => undefined, { order: order as unknown as 'topic' })
    await expect(promise).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'order' })
  })

  it('10,000 messages of 100 topics, handled at random: in order by topic, never more at a time than allowed', async () => {
    const world = await agreed({ keepAlive: false, receiveMaximum: 65_535 })
    const last = new Map<string, number>()
    const running = new Set<string>()
    let most = 0
    let wrong = 0
    const random = new Random(7)
    const handler: Handler = async (message) => {
      const number = Number(message.text())
      if (running.has(message.topic) || number <= (last.get(message.topic) ?? 0)) wrong += 1
      running.add(message.topic)
      last.set(message.topic, number)
      most = Math.max(most, running.size)
      for (let hops = random.below(17); hops > 0; hops--) await undefined
      running.delete(message.topic)
    }
    await listen(world, 'x/#', handler, { qos: 1, concurrency: 9 })
    for (let round = 0; round < 10; round++) {
      await world.send(
        ...Array.from({ length: 1000 }, (_, at) => publish(`x/${random.below(100)}`, String(round * 1000 + at + 1), round * 1000 + at + 1)),
      )
    }
    expect([wrong, most, acks(world).length]).toEqual([0, 9, 10_000])
  })
})

describe('a message that is retried', () => {
  it('holds up its topic alone, and takes no place of another', async () => {
    const world = await agreed({ keepAlive: false })
    const seen: string[] = []
    let broken = true
    const handler: Handler = (message) => {
      seen.push(`${message.topic}=${message.text()}`)
      if (broken && message.topic !== 'x/b') throw new Error('not now')
    }
    await listen(world, 'x/#', handler, { qos: 1, concurrency: 2 })
    await world.send(...letters('aacb'), ...letters('bbabc', 5))
    expect(seen).toEqual(['x/a=1', 'x/c=3', 'x/b=4', 'x/b=5', 'x/b=6', 'x/b=8'])
    broken = false
    await world.clock.advance(200)
    expect(seen.slice(6)).toEqual(['x/a=1', 'x/a=2', 'x/a=7', 'x/c=3', 'x/c=9'])
    expect(acks(world)).toEqual(pubacks(1, 9))
  })

  it('waits for a place when its time has come', async () => {
    const world = await agreed({ keepAlive: false })
    const { begun, handler, open } = gated()
    let failures = 2
    const failing: Handler = (message) => {
      if (message.topic === 'x/a' && failures-- > 0) throw new Error('not now')
      return handler(message)
    }
    await listen(world, 'x/#', failing, { qos: 1, concurrency: 2 })
    await world.send(...letters('abcd'))
    expect(begun).toEqual(['x/b=2', 'x/c=3'])
    await world.clock.advance(1000)
    expect(begun).toEqual(['x/b=2', 'x/c=3'])
    open('x/b=2')
    await world.settle()
    // It failed once more, so that its place was free again.
    expect(begun).toEqual(['x/b=2', 'x/c=3', 'x/d=4'])
    open('x/c=3')
    await world.clock.advance(1000)
    expect(begun.at(-1)).toBe('x/a=1')
    for (const name of ['x/a=1', 'x/d=4']) open(name)
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 4))
  })

  it('with one handler at a time everything waits, unless an order is asked for', async () => {
    for (const [options, expected] of [
      [{}, ['x/a=1']],
      [{ order: 'topic' }, ['x/a=1', 'x/b=2']],
    ] as [ListenOptions, string[]][]) {
      const world = await agreed({ keepAlive: false })
      const seen: string[] = []
      const handler: Handler = (message) => {
        seen.push(`${message.topic}=${message.text()}`)
        if (message.topic === 'x/a') throw new Error('not now')
      }
      await listen(world, 'x/#', handler, { qos: 1, ...options })
      await world.send(...letters('ab'))
      expect(seen).toEqual(expected)
    }
  })

  it('is refused after five retries, and its topic goes on', async () => {
    const world = await agreed({ keepAlive: false })
    const seen: string[] = []
    const handler: Handler = (message) => {
      seen.push(message.text())
      if (message.text() === '1') throw new Error('never')
    }
    await listen(world, 'x/#', handler, { qos: 1, concurrency: 4 })
    await world.send(...letters('aa'))
    await world.clock.advance(60_000)
    expect(seen).toEqual(['1', '1', '1', '1', '1', '1', '2'])
    expect(acks(world)).toEqual(['puback 1 0x80', 'puback 2'])
  })

  it('many that wait are bounded: the buffer fills behind them', async () => {
    const world = await agreed({ keepAlive: false })
    let calls = 0
    const handler: Handler = () => {
      calls += 1
      throw new Error('down')
    }
    await listen(world, 'x/#', handler, { concurrency: 2, buffer: 10, onError: 'retry' })
    for (let round = 0; round < 50; round++) await world.send(publish(`x/${round}`, 'x'))
    expect(calls).toBe(12)
  })
})

describe('bounds', () => {
  it.each(['drop-oldest', 'drop-newest'] as const)('%s, with one topic that stands still: its messages go, others come through', async (overflow) => {
    const world = await agreed({ keepAlive: false })
    const seen: string[] = []
    const stuck = gate()
    const handler: Handler = (message) => {
      seen.push(`${message.topic}=${message.text()}`)
      return message.topic === 'x/a' ? stuck.promise : undefined
    }
    await listen(world, 'x/#', handler, { concurrency: 2, buffer: 5, overflow })
    for (let round = 1; round <= 100; round++) await world.send(publish('x/a', String(round)))
    seen.length = 0
    for (let round = 1; round <= 20; round++) await world.send(publish('x/b', String(round)))
    const others = seen.filter((name) => name.startsWith('x/b'))
    if (overflow === 'drop-oldest') expect(others).toEqual(Array.from({ length: 20 }, (_, at) => `x/b=${at + 1}`))
    stuck.open()
    await world.settle()
    const rest = seen.filter((name) => name.startsWith('x/a')).map((name) => Number(name.slice(4)))
    expect(rest).toEqual([...rest].sort((first, second) => first - second))
    // One more than fit comes in before the policy acts.
    expect(rest.length).toBeLessThanOrEqual(6)
    expect(rest.at(-1)).toBe(overflow === 'drop-oldest' ? 100 : rest.length + 1)
  })
})

describe('the end', () => {
  it('detach gives back what waits, in the order of arrival, and what is handled then is not acknowledged', async () => {
    const world = await agreed({ keepAlive: false })
    const { begun, handler, open } = gated()
    const handling = await listen(world, 'x/#', handler, { qos: 1, concurrency: 2 })
    await world.send(...letters('aabcab'))
    expect(begun).toEqual(['x/a=1', 'x/b=3'])
    handling.detach()
    open('x/a=1')
    await world.settle()
    const next = gated()
    await listen(world, 'x/#', next.handler, { qos: 1, concurrency: 4 })
    expect([begun.length, next.begun]).toEqual([2, ['x/a=1', 'x/b=3', 'x/c=4']])
    for (const name of ['x/a=1', 'x/b=3', 'x/c=4', 'x/a=2', 'x/b=6', 'x/a=5']) {
      next.open(name)
      await world.settle()
    }
    expect(acks(world)).toEqual(pubacks(1, 6))
  })

  it('disconnect() waits for those that are handled, and gives up those that wait for their next attempt', async () => {
    const world = await agreed({ keepAlive: false })
    const { begun, handler, open } = gated()
    const failing: Handler = (message) => {
      if (message.topic === 'x/a') throw new Error('not now')
      return handler(message)
    }
    await listen(world, 'x/#', failing, { qos: 1, concurrency: 2 })
    await world.send(...letters('babab'))
    const bye = world.client.disconnect()
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    open('x/b=1')
    await world.settle()
    await bye
    expect([begun, acks(world)]).toEqual([['x/b=1'], ['puback 1']])
  })

  it.each<[string, ListenOptions, string[]]>([
    ['one at a time', {}, ['x/a=1']],
    ['two at a time', { concurrency: 2, order: 'none' }, ['x/a=1', 'x/a=2']],
    ['two at a time, one of a topic', { concurrency: 2 }, ['x/a=1', 'x/b=3', 'x/c=5']],
  ])('disconnect() while messages wait for their next attempt, %s: none of those behind them is begun', async (_how, options, expected) => {
    const world = await agreed({ keepAlive: false })
    const begun: string[] = []
    const failing: Handler = (message) => {
      begun.push(`${message.topic}=${message.text()}`)
      throw new Error('not now')
    }
    await listen(world, 'x/#', failing, { qos: 1, ...options })
    await world.send(...letters('aabbc'))
    expect(begun).toEqual(expected)
    const bye = world.client.disconnect()
    await world.settle()
    await bye
    expect([begun, acks(world)]).toEqual([expected, []])
  })

  it('stop leaves everything to the next', async () => {
    const world = await agreed({ keepAlive: false })
    const { handler, open } = gated()
    const failing: Handler = (message) => {
      if (message.text() === '3') throw new Error('enough')
      return handler(message)
    }
    const handling = await listen(world, 'x/#', failing, { qos: 1, concurrency: 3, onError: 'stop' })
    await world.send(...letters('aabbc'))
    await world.settle()
    const next = gated()
    await listen(world, 'x/#', next.handler, { qos: 1, concurrency: 3 })
    expect(next.begun).toEqual(['x/a=1', 'x/b=3', 'x/c=5'])
    open('x/a=1')
    open('x/c=5')
    await expect(handling.done).rejects.toMatchObject({ code: 'ERR_HANDLER_FAILED' })
  })
})

describe('more than 64 handlers at a time, at QoS 0', () => {
  it('disconnect() waits for all of them', async () => {
    const world = await agreed({ keepAlive: false })
    const gates: Gate[] = []
    let done = 0
    const handler: Handler = async () => {
      const mine = gate()
      gates.push(mine)
      await mine.promise
      done += 1
    }
    await listen(world, 'a', handler, { concurrency: 200 })
    await world.send(...Array.from({ length: 150 }, (_, at) => publish('a', String(at))))
    const bye = world.client.disconnect()
    for (const each of gates) {
      expect(world.client.state).toBe('disconnecting')
      each.open()
      await world.settle()
    }
    await bye
    expect([gates.length, done, world.client.state]).toEqual([150, 150, 'closed'])
  })

  it('a retry comes back to all of them', async () => {
    const world = await agreed({ keepAlive: false })
    const seen = new Map<string, number>()
    const handler: Handler = async (message) => {
      const times = (seen.get(message.text()) ?? 0) + 1
      seen.set(message.text(), times)
      if (times === 1) throw new Error('once')
    }
    await listen(world, 'a', handler, { concurrency: 100, onError: 'retry' })
    await world.send(...Array.from({ length: 100 }, (_, at) => publish('a', String(at))))
    await world.clock.advance(1000)
    expect([...seen.values()].filter((times) => times === 2)).toHaveLength(100)
  })
})
