/** Pools and groups: each call in each state settles or rejects with a code, within a bound, however often. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { groupOf } from '../../../src/group/broker-group.js'
import { poolOf } from '../../../src/pool/publisher-pool.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'

let world: VirtualWorld
beforeEach(() => {
  world = new VirtualWorld()
})
afterEach(() => world.close())

type Calls = Readonly<Record<string, () => unknown>>
interface Subject {
  connect(): Promise<void>
  disconnect(): Promise<void>
  drain(): Promise<void>
  publish(topic: string, payload: string, options: { qos: 0 | 1 | 2 }): Promise<unknown>
  members(): readonly { readonly client: object }[]
}

const destroy = ({ client }: { readonly client: object }): void =>
  (client as { destroy(): void }).destroy()
const clients = (at: never, given: never) => new world.Client(at, given)

const subjects = {
  pool(): [Subject, Calls] {
    const pool = poolOf(clients as never, 'mqtt://b', { size: 2 })
    return [
      pool as Subject,
      { 'resize up': () => pool.resize(3), 'resize down': () => pool.resize(1) },
    ]
  },
  group(): [Subject, Calls] {
    const group = groupOf(clients as never, { members: { one: 'mqtt://b', two: 'mqtt://b' } })
    return [
      group as Subject,
      {
        add: () => group.add('three', 'mqtt://b'),
        remove: () => group.remove('one'),
        subscribe: () => group.subscribe('a/#'),
        'subscribe and unsubscribe': async () => {
          await (await group.subscribe('a/#', { qos: 1 })).unsubscribe()
        },
        listen: () => group.listen('a/#', () => undefined),
      },
    ]
  },
} as const

async function connect(subject: Subject): Promise<void> {
  await subject.connect()
  await world.pass(10)
}

/** The link is cut; gives what mends it. */
async function cut(subject: Subject): Promise<() => void> {
  await connect(subject)
  const mend = world.cut()
  await world.pass(10)
  return mend
}

const publishBefore = (subject: Subject): void =>
  void subject.publish('a/b', 'before', { qos: 1 }).catch(() => undefined)

/** Each leads there, and gives what leads out again where that is not up to the program. */
const states: Readonly<Record<string, (subject: Subject) => Promise<unknown>>> = {
  idle: async () => undefined,
  connecting: async (subject) => void subject.connect().catch(() => undefined),
  connected: (subject) => subject.connect(),
  reconnecting: cut,
  'with one member that has ended': async (subject) => {
    await connect(subject)
    destroy(subject.members()[0] as never)
  },
  'with members that have all ended': async (subject) => {
    await connect(subject)
    for (const member of subject.members()) destroy(member)
    await world.pass(10)
  },
  draining: async (subject) => {
    const mend = await cut(subject)
    publishBefore(subject)
    subject.drain().catch(() => undefined)
    return mend
  },
  disconnecting: async (subject) => {
    await connect(subject)
    publishBefore(subject)
    subject.disconnect().catch(() => undefined)
  },
  closed: async (subject) => {
    await subject.connect()
    await subject.disconnect()
  },
}

// A group goes on with another member.
const isAdded = (call: string, state: string): boolean =>
  call === 'add' && state === 'with members that have all ended'

describe.each(Object.keys(subjects) as (keyof typeof subjects)[])(
  'each call of a %s ends',
  (name) => {
    it.each(Object.keys(states))('%s', async (state) => {
      const table: Record<string, string> = {}
      const waiting: string[] = []
      const count = Object.keys(subjects[name]()[1]).length
      for (let number = 0; number < 8 + count; number++) {
        const [subject, more] = subjects[name]()
        const calls: Calls = {
          connect: () => subject.connect(),
          'publish at QoS 0': () => subject.publish('a/b', 'x', { qos: 0 }),
          'publish at QoS 1': () => subject.publish('a/b', 'x', { qos: 1 }),
          'publish at QoS 2': () => subject.publish('a/b', 'x', { qos: 2 }),
          post: () =>
            (subject as unknown as { post(topic: string, payload: string): boolean }).post(
              'a/b',
              'x',
            ),
          writable: () => (subject as unknown as { writable: Promise<void> }).writable,
          drain: () => subject.drain(),
          disconnect: () => subject.disconnect(),
          ...more,
        }
        const call = Object.keys(calls)[number] as string
        const mend = (await states[state]?.(subject)) as (() => void) | undefined
        table[call] = 'never'
        const end = (error: unknown): void => {
          const { code, name: kind } = Object(error) as { code?: string; name?: string }
          table[call] = code ?? `${kind} without a code`
        }
        try {
          Promise.resolve(calls[call]?.()).then((value) => {
            table[call] = typeof value === 'boolean' ? String(value) : 'done'
          }, end)
        } catch (error) {
          end(error)
        }
        await world.pass(1000)
        mend?.()
        await world.pass(120_000)
        if (table[call] === 'never') waiting.push(call)
        subject.disconnect().catch(() => undefined)
        await world.pass(10_000)
      }
      expect(
        Object.entries(table).filter(([, end]) => end === 'never' || end.includes('without')),
      ).toEqual([])
      // The program has connected nothing: these wait for that.
      const may =
        name === 'group' && state === 'idle'
          ? ['subscribe', 'subscribe and unsubscribe', 'listen']
          : []
      expect(waiting).toEqual(may)
      const over = [
        'with members that have all ended',
        'draining',
        'disconnecting',
        'closed',
      ].includes(state)
      for (const call of ['connect', 'writable', 'resize up', 'add', 'subscribe'].filter(
        (each) => each in table,
      ))
        if (over)
          expect([call, table[call]]).toEqual([call, isAdded(call, state) ? 'done' : 'ERR_CLOSED'])
    })
  },
)
