/** Pools and groups: each call in each state settles or rejects with a code, within a bound, however often. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { groupOf } from '../../../src/group/broker-group.js'
import type { Group } from '../../../src/group/types.js'
import { poolOf } from '../../../src/pool/publisher-pool.js'
import type { Pool } from '../../../src/pool/types.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'

let world: VirtualWorld
beforeEach(() => {
  world = new VirtualWorld()
})
afterEach(() => world.close())

type Subject = Pool | Group
type Calls = Readonly<Record<string, () => unknown>>

const clients = (at: never, given: never) => new world.Client(at, given)

const subjects = {
  pool(): [Subject, Calls] {
    const pool = poolOf(clients as never, 'mqtt://b', { size: 2 })
    return [pool, { 'resize up': () => pool.resize(3), 'resize down': () => pool.resize(1) }]
  },
  group(): [Subject, Calls] {
    const group = groupOf(clients as never, { members: { one: 'mqtt://b', two: 'mqtt://b' } })
    const more = {
      add: () => group.add('three', 'mqtt://b'),
      remove: () => group.remove('one'),
      subscribe: () => group.subscribe('a/#'),
      'subscribe and unsubscribe': async () =>
        (await group.subscribe('a/#', { qos: 1 })).unsubscribe(),
      listen: () => group.listen('a/#', () => undefined),
    }
    return [group, more]
  },
} as const

const callsOf = (subject: Subject): Calls => ({
  connect: () => subject.connect(),
  'publish at QoS 0': () => subject.publish('a/b', 'x', { qos: 0 }),
  'publish at QoS 1': () => subject.publish('a/b', 'x', { qos: 1 }),
  'publish at QoS 2': () => subject.publish('a/b', 'x', { qos: 2 }),
  post: () => subject.post('a/b', 'x'),
  writable: () => subject.writable,
  drain: () => subject.drain(),
  disconnect: () => subject.disconnect(),
})

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

async function destroy(subject: Subject, count: number): Promise<void> {
  await connect(subject)
  for (const { client } of subject.members().slice(0, count))
    (client as unknown as { destroy(): void }).destroy()
}

const publishBefore = (subject: Subject): void =>
  void Promise.resolve(subject.publish('a/b', 'before', { qos: 1 })).catch(() => undefined)

/** Each leads there, and gives what leads out again where that is not up to the program. */
const states: Readonly<Record<string, (subject: Subject) => Promise<unknown>>> = {
  idle: async () => undefined,
  connecting: async (subject) => void subject.connect().catch(() => undefined),
  connected: (subject) => subject.connect(),
  reconnecting: cut,
  'with one member that has ended': (subject) => destroy(subject, 1),
  'with members that have all ended': async (subject) => {
    await destroy(subject, 2)
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
const over = ['with members that have all ended', 'draining', 'disconnecting', 'closed']

/** What a call in a state comes to: a code, 'never', or how it ended without a code. */
async function endOf(name: keyof typeof subjects, state: string, call: string): Promise<string> {
  const [subject, more] = subjects[name]()
  const mend = (await states[state]?.(subject)) as (() => void) | undefined
  let found = 'never'
  ;(async () => ({ ...callsOf(subject), ...more })[call]?.())().then(
    (value) => {
      found = typeof value === 'boolean' ? String(value) : 'done'
    },
    ({ code, name: kind }: { code?: string; name?: string }) => {
      found = code ?? `${kind} without a code`
    },
  )
  await world.pass(1000)
  mend?.()
  await world.pass(120_000)
  const atLast = found
  subject.disconnect().catch(() => undefined)
  await world.pass(10_000)
  expect(found).not.toMatch(/never|without/)
  return atLast
}

describe.each(Object.keys(subjects) as (keyof typeof subjects)[])(
  'each call of a %s ends',
  (name) => {
    it.each(Object.keys(states))('%s', async (state) => {
      const [subject, more] = subjects[name]()
      const calls = Object.keys({ ...callsOf(subject), ...more })
      const table = new Map<string, string>()
      for (const call of calls) table.set(call, await endOf(name, state, call))
      // The program has connected nothing: these wait for that.
      const isIdleGroup = name === 'group' && state === 'idle'
      expect(calls.filter((call) => table.get(call) === 'never')).toEqual(
        isIdleGroup ? ['subscribe', 'subscribe and unsubscribe', 'listen'] : [],
      )
      if (!over.includes(state)) return
      for (const call of ['connect', 'writable', 'resize up', 'add', 'subscribe'])
        if (table.has(call)) {
          // A group goes on with another member.
          const isAdded = call === 'add' && state === 'with members that have all ended'
          expect([call, table.get(call)]).toEqual([call, isAdded ? 'done' : 'ERR_CLOSED'])
        }
    })
  },
)
