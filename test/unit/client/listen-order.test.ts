/** `listen` with several handlers at a time: what keeps its order, what a retried message holds up, and what is waited for at the end. */
import { describe, expect, it } from 'vitest'
import type {
  Filters,
  Handler,
  Handling,
  ListenOptions,
} from '../../../src/client/options/index.js'
import { times, type World } from './harness.js'
import { acks, agreed, type Gate, gate, pubacks, publish } from './incoming.js'
import { settled, listen as withOptions } from './steps.js'

interface Work {
  readonly world: World
  readonly handling: Handling
  /** `topic=text` of each call. */
  readonly begun: string[]
  /** What these calls wait for has come, one after the other. */
  open(...names: string[]): Promise<void>
}

/** Listens with a handler that notes its calls, and whose calls each wait; `fails` says which throw. At QoS 1, two at a time. */
async function working(
  options: ListenOptions,
  filters: Filters = 'x/#',
  fails = (_name: string): boolean => false,
  world?: World,
): Promise<Work> {
  world ??= await agreed({ keepAlive: false })
  const begun: string[] = []
  const gates = new Map<string, Gate>()
  const handler: Handler = (message) => {
    const name = `${message.topic}=${message.text()}`
    begun.push(name)
    if (fails(name)) throw new Error('not now')
    const mine = gate()
    gates.set(name, mine)
    return mine.promise
  }
  const open = async (...names: string[]): Promise<void> => {
    for (const name of names) {
      gates.get(name)?.open()
      await world.settle()
    }
  }
  return {
    world,
    handling: await withOptions(world, filters, handler, { qos: 1, concurrency: 2, ...options }),
    begun,
    open,
  }
}

/** Listens with this handler. */
async function handled(handler: Handler, options: ListenOptions, filters: Filters = 'x/#') {
  const world = await agreed({ keepAlive: false, receiveMaximum: 65_535 })
  await withOptions(world, filters, handler, options)
  return world
}

/** Topics `x/a`, `x/b`, …, one letter a message, at QoS 1; the text counts up. */
const letters = (topics: string, from = 1) =>
  [...topics].map((letter, at) => publish(`x/${letter}`, String(from + at), from + at))
const many = (count: number) => times(count, (at) => publish('a', String(at)))

describe('what is handled at the same time', () => {
  const byTopic = ['x/a=1', 'x/b=4', 'x/c=6']
  const inOrder = ['x/a=1', 'x/a=2', 'x/a=3']
  it.each<[string, Filters, ListenOptions, string[]]>([
    ['with a wildcard: one of a topic', 'x/#', {}, byTopic],
    ['with several filters, one of them a wildcard', ['y', 'x/+'], {}, byTopic],
    ['without a wildcard: as none', 'x/a', {}, inOrder],
    ["'none': in the order of arrival", 'x/#', { order: 'none' }, inOrder],
    ['a shared filter: as none', '$share/g/x/#', {}, inOrder],
    ["a shared filter with 'topic'", '$share/g/x/#', { order: 'topic' }, byTopic],
    [
      'a function: one of a key',
      'x/#',
      { order: (message) => Number(message.text()) % 2 },
      ['x/a=1', 'x/a=2'],
    ],
    ['a function that gives a key for each', 'x/#', { order: (message) => message }, inOrder],
  ])('%s', async (_what, filters, options, expected) => {
    const { world, begun } = await working({ concurrency: 3, ...options }, filters)
    await world.send(...letters('aaabbc'))
    expect(begun).toEqual(expected)
  })

  it('each topic goes on by itself; acknowledgements leave in the order of arrival', async () => {
    const { world, begun, open } = await working({})
    await world.send(...letters('aababc'))
    await open('x/b=3', 'x/c=6', 'x/b=5')
    expect(begun).toEqual(['x/a=1', 'x/b=3', 'x/c=6', 'x/b=5'])
    expect(acks(world)).toEqual([])
    await open('x/a=1', 'x/a=2', 'x/a=4')
    expect(begun.slice(4)).toEqual(['x/a=2', 'x/a=4'])
    expect(acks(world)).toEqual(pubacks(1, 6))
  })

  it('order that throws is logged, and the order of the topic is kept', async () => {
    const errors: string[] = []
    const logger = { error: (text: string) => void errors.push(text) }
    const order = (): never => expect.fail('no key')
    const { world, begun } = await working(
      { concurrency: 3, order },
      'x/#',
      undefined,
      await agreed({ keepAlive: false, logger }),
    )
    await world.send(...letters('aab'))
    expect(begun).toEqual(['x/a=1', 'x/b=3'])
    expect(errors[0]).toMatch(/order threw: .*: no key/)
    expect(world.client.state).toBe('connected')
  })
})

describe('a message that is retried', () => {
  it('holds up its topic alone, and takes no place of another', async () => {
    const seen: string[] = []
    let broken = true
    const handler: Handler = (message) => {
      seen.push(`${message.topic}=${message.text()}`)
      if (broken && message.topic !== 'x/b') throw new Error('not now')
    }
    const world = await handled(handler, { qos: 1, concurrency: 2 })
    await world.send(...letters('aacb'), ...letters('bbabc', 5))
    expect(seen).toEqual(['x/a=1', 'x/c=3', 'x/b=4', 'x/b=5', 'x/b=6', 'x/b=8'])
    broken = false
    await world.clock.advance(200)
    expect(seen.slice(6)).toEqual(['x/a=1', 'x/a=2', 'x/a=7', 'x/c=3', 'x/c=9'])
    expect(acks(world)).toEqual(pubacks(1, 9))
  })

  it('waits for a place when its time has come', async () => {
    let failures = 2
    const fails = (name: string): boolean => name === 'x/a=1' && failures-- > 0
    const { world, begun, open } = await working({}, 'x/#', fails)
    await world.send(...letters('abcd'))
    await world.clock.advance(1000)
    expect(begun).toEqual(['x/a=1', 'x/b=2', 'x/c=3'])
    await open('x/b=2')
    // It failed once more, so that its place was free again.
    expect(begun.slice(3)).toEqual(['x/a=1', 'x/d=4'])
    await open('x/c=3')
    await world.clock.advance(1000)
    expect(begun.at(-1)).toBe('x/a=1')
    await open('x/a=1', 'x/d=4')
    expect(acks(world)).toEqual(pubacks(1, 4))
  })

  it.each<[ListenOptions, string[]]>([
    [{}, ['x/a=1']],
    [{ order: 'topic' }, ['x/a=1', 'x/b=2']],
  ])('holds up all others, one handler at a time: %j', async (options, expected) => {
    const fails = (name: string): boolean => name === 'x/a=1'
    const { world, begun } = await working({ concurrency: 1, ...options }, 'x/#', fails)
    await world.send(...letters('ab'))
    expect(begun).toEqual(expected)
  })

  it('many that wait are bounded: the buffer fills behind them', async () => {
    const options: ListenOptions = { qos: 0, buffer: 10, onError: 'retry' }
    const { world, begun } = await working(options, 'x/#', () => true)
    for (let round = 0; round < 50; round++) await world.send(publish(`x/${round}`, 'x'))
    expect(begun).toHaveLength(12)
  })
})

it.each(['drop-oldest', 'drop-newest'] as const)(
  '%s: messages of a topic that stands still go',
  async (overflow) => {
    const seen: string[] = []
    const stuck = gate()
    const handler: Handler = (message) => {
      seen.push(`${message.topic}=${message.text()}`)
      return message.topic === 'x/a' ? stuck.promise : undefined
    }
    const world = await handled(handler, { concurrency: 2, buffer: 5, overflow })
    for (let round = 1; round <= 100; round++) await world.send(publish('x/a', String(round)))
    seen.length = 0
    for (let round = 1; round <= 20; round++) await world.send(publish('x/b', String(round)))
    const others = seen.filter((name) => name.startsWith('x/b'))
    if (overflow === 'drop-oldest') expect(others).toEqual(times(20, (at) => `x/b=${at + 1}`))
    await settled(world, stuck.open())
    const rest = seen.filter((name) => name.startsWith('x/a')).map((name) => Number(name.slice(4)))
    expect(rest).toEqual([...rest].sort((first, second) => first - second))
    // One more than fit comes in before the policy acts.
    expect(rest.length).toBeLessThanOrEqual(6)
    expect(rest.at(-1)).toBe(overflow === 'drop-oldest' ? 100 : rest.length + 1)
  },
)

describe('the end', () => {
  it('detach gives back what waits, in the order of arrival, and what is handled then is not acknowledged', async () => {
    const { world, begun, open, handling } = await working({})
    await world.send(...letters('aabcab'))
    expect(begun).toEqual(['x/a=1', 'x/b=3'])
    handling.detach()
    await open('x/a=1')
    const next = await working({ concurrency: 4 }, 'x/#', undefined, world)
    expect([begun.length, next.begun]).toEqual([2, ['x/a=1', 'x/b=3', 'x/c=4']])
    await next.open('x/a=1', 'x/b=3', 'x/c=4', 'x/a=2', 'x/b=6', 'x/a=5')
    expect(acks(world)).toEqual(pubacks(1, 6))
  })

  it('disconnect() waits for those that are handled, and gives up those that wait for their next attempt', async () => {
    const { world, begun, open } = await working({}, 'x/#', (name) => name.startsWith('x/a'))
    await world.send(...letters('babab'))
    const bye = world.client.disconnect()
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    await open('x/b=1')
    await bye
    // Nothing else is begun, not even what waited behind one that was given up.
    expect(begun).toEqual(['x/b=1', 'x/a=2'])
    expect(acks(world)).toEqual(['puback 1'])
  })

  it.each<[string, ListenOptions]>([
    ['one at a time', { concurrency: 1 }],
    ['in the order of arrival', { order: 'none' }],
  ])(
    'disconnect() while a message waits for its next attempt, %s: the next one is not begun',
    async (_name, options) => {
      const { world, begun } = await working(options, 'x/#', () => true)
      await world.send(...letters('abcd'))
      const before = [...begun]
      await settled(world, world.client.disconnect())
      expect(begun).toEqual(before)
      expect(acks(world)).toEqual([])
    },
  )
})

it('disconnect() waits for more than 64 handlers at a time, at QoS 0', async () => {
  const gates: Gate[] = []
  let done = 0
  const handler: Handler = async () => {
    const mine = gate()
    gates.push(mine)
    await mine.promise
    done += 1
  }
  const world = await handled(handler, { concurrency: 200 }, 'a')
  await world.send(...many(150))
  const bye = world.client.disconnect()
  for (const each of gates) {
    expect(world.client.state).toBe('disconnecting')
    await settled(world, each.open())
  }
  await settled(world, bye)
  expect([gates.length, done, world.client.state]).toEqual([150, 150, 'closed'])
})
