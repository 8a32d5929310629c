/** What reads in a group while its members go and come; and order by a key of the application's, where several messages are handled at a time: in a group of brokers, in a group of consumers, and under a rate. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Message } from '../../../src/client/options/index.js'
import { listenShared } from '../../../src/client/subscribe/subscribe-shared.js'
import type { Group, GroupMember, GroupMessage } from '../../../src/group/types.js'
import { endOf, GroupRig } from './rig.js'

let rig: GroupRig
let group: Group
beforeEach(async () => {
  rig = new GroupRig()
  group = await rig.up(['a', 'b'])
})
afterEach(() => rig.stop())

const link = (name: string) => ({ url: 'memory://b', transport: rig.link(name) })

/** Takes 200 ms for each message; gives the members of those that it is done with. */
async function slowReader(way: string, qos: 0 | 1): Promise<{ readonly ended: string[] }> {
  const ended: string[] = []
  const turn = async ({ member }: { readonly member: string }): Promise<void> => {
    await rig.world.sleep(200)
    ended.push(member)
  }
  if (way === 'listen') await group.listen('t', turn, { qos })
  else {
    const subscription = await group.subscribe('t', { qos })
    void (async () => {
      for await (const message of subscription) await turn(message)
    })()
  }
  return { ended }
}

const ways = ['listen', 'for await'].flatMap((way) =>
  ([0, 1] as const).flatMap((qos) =>
    (['remove', 'drain', 'disconnect'] as const).map((end) => [way, qos, end] as const),
  ),
)

it.each(ways)('%s at QoS %i: %s() waits for the turn, and acknowledges', async (way, qos, end) => {
  const { ended } = await slowReader(way, qos)
  const reasonCodes: unknown[] = []
  const deliver = (_: unknown, settled: Promise<{ reasonCode?: number }>): void =>
    void settled.then(({ reasonCode }) => reasonCodes.push(reasonCode))
  const { client } = group.member('a') as GroupMember
  ;(client as unknown as { use(hooks: object): void }).use({ deliver })
  rig.brokers['a']?.publish({ topic: 't', payload: 'x', qos })
  await rig.world.pass(50)
  await rig.world.until(end === 'remove' ? group.remove('a') : group[end]())
  expect([ended, reasonCodes]).toEqual([['a'], [0]])
})

describe('a member that was removed', () => {
  it('leaves no trace in what listens on', async () => {
    const handling = await group.listen('t', () => undefined)
    const subscription = await group.subscribe('t')
    for (let count = 0; count < 3; count++) {
      await group.remove('b')
      await group.add('b', link('b'))
    }
    await rig.world.pass(1)
    for (const { granted } of [handling, subscription])
      expect(granted.map(({ member }) => member)).toEqual(['a', 'b'])
  })

  it('of those that were asked the last one: one that came meanwhile may grant it', async () => {
    const late = rig.group({ names: ['a'], shared: { clientId: 'h' } })
    rig.cut('a')
    const first = late.connect().catch(() => undefined)
    const texts: string[] = []
    const note = (message: GroupMessage): unknown =>
      texts.push(`${message.member} ${message.text()}`)
    const calls = [late.subscribe('t', { qos: 1 }), late.listen('t', note, { qos: 1 })] as const
    await rig.world.pass(1)
    await late.add('b', link('b'))
    const removed = late.remove('a', { timeout: 100 })
    await rig.world.until(Promise.all([first, removed, ...calls]))
    rig.brokers['b']?.publish({ topic: 't', payload: 'x', qos: 1 })
    await rig.world.pass(1)
    expect([texts, (await calls[0]).read()?.text()]).toEqual([['b x'], 'x'])
  })

  it("does not fail require: 'all', and another one is not blamed for it", async () => {
    const hung = rig.group({ names: ['a', 'b'], shared: { clientId: 'h' } })
    const mend = rig.cut('a')
    await rig.world.until(hung.connect())
    const all = [
      hung.subscribe('t', { require: 'all' }),
      hung.listen('t', () => undefined, { require: 'all' }),
    ]
    await rig.world.until(hung.remove('a'))
    expect(
      (await Promise.all(all)).map(({ granted }) => granted.map(({ member }) => member)),
    ).toEqual([['b'], ['b']])
    mend()
    await rig.world.until(hung.disconnect())
  })

  it('was the last: what is left then ends at once', async () => {
    const left = await group.listen('t', () => undefined)
    const detached = await group.listen('t', () => undefined)
    const subscription = await group.subscribe('t')
    const waiting = subscription.next()
    for (const name of ['a', 'b']) await group.remove(name)
    await left.unsubscribe()
    detached.detach()
    await subscription.unsubscribe()
    subscription.detach()
    expect(await Promise.all([left.done, detached.done, waiting])).toEqual(Array(3).fill(undefined))
  })

  it('was the last: a subscription that is left ends, for who waits and for who asks later', async () => {
    const subscription = await group.subscribe('t')
    const loop = (async () => {
      for await (const _ of subscription);
    })()
    const unread = await group.subscribe('t')
    for (const name of ['a', 'b']) await group.remove(name)
    await subscription.unsubscribe()
    await rig.world.until(loop)
    await unread.unsubscribe()
    expect(await rig.world.until(unread.next())).toBeUndefined()
  })

  it('may have been the last: what reads on all waits for the next one', async () => {
    const seen: string[] = []
    const note = ({ member }: { readonly member: string }): void => void seen.push(member)
    const handling = await group.listen('t', note, { qos: 1 })
    const subscription = await group.subscribe('t', { qos: 1 })
    const loop = (async () => {
      for await (const message of subscription) note(message)
    })()
    const idle = await group.subscribe('t', { qos: 1 })
    const chosen = await group.subscribe('t', { members: ['a', 'b'] })
    const over = chosen.next()
    await group.remove('a')
    await group.remove('b')
    expect(await over).toBeUndefined()
    expect(idle.granted).toEqual([])
    await group.add('c', { url: 'memory://b', transport: rig.link('a') })
    await rig.world.pass(1)
    rig.brokers['a']?.publish({ topic: 't', payload: 'x', qos: 1 })
    await rig.world.pass(1)
    const message = idle.read()
    expect([seen, message?.member, message?.ack()]).toEqual([['c', 'c'], 'c', true])
    await group.remove('c')
    const last = Promise.all([handling.done, loop, idle.next()])
    await group.disconnect()
    await last
    expect(await endOf(handling.done)).toBe('fulfilled')
  })
})

interface Reading {
  readonly device: string
  readonly number: number
}

const readings: readonly Reading[] = Array.from({ length: 60 }, (_, index) => ({
  device: `d${index % 5}`,
  number: index,
}))
const deviceOf = (message: Message): string => (message.json() as Reading).device

/** A handler that takes longer for some devices, and notes when it begins and ends. */
function worker(): {
  handle(message: Message): Promise<void>
  readonly story: [string, number, string][]
  most: number
} {
  let running = 0
  const made = {
    story: [] as [string, number, string][],
    most: 0,
    async handle(message: Message): Promise<void> {
      const { device, number } = message.json() as Reading
      const of = (message as { member?: string }).member ?? ''
      running += 1
      made.most = Math.max(made.most, running)
      made.story.push([`${of} ${device}`, number, 'begins'])
      await rig.world.sleep(device === 'd0' ? 50 : 3)
      made.story.push([`${of} ${device}`, number, 'ends'])
      running -= 1
    },
  }
  return made
}

/** Of each key one is handled after the other, in the order in which they were published. */
function expectOrder(story: readonly [string, number, string][], keys: number): void {
  const byKey = new Map<string, [string, number, string][]>()
  for (const line of story) byKey.set(line[0], [...(byKey.get(line[0]) ?? []), line])
  expect(byKey.size).toBe(keys)
  for (const lines of byKey.values()) {
    const numbers = readings
      .filter(({ device }) => lines[0]?.[0].endsWith(device))
      .map(({ number }) => number)
    expect(lines.map(([, number, what]) => `${number} ${what}`)).toEqual(
      numbers.flatMap((number) => [`${number} begins`, `${number} ends`]),
    )
  }
}

it('order by a key, of a group of brokers: for each member and key', async () => {
  const work = worker()
  await group.listen('t/#', work.handle, { qos: 1, concurrency: 8, order: deviceOf })
  for (const name of ['a', 'b'])
    for (const [index, reading] of readings.entries())
      rig.brokers[name]?.publish({
        topic: `t/${index % 3}`,
        payload: JSON.stringify(reading),
        qos: 1,
      })
  await rig.world.pass(5000)
  expectOrder(work.story, 10)
  expect(work.most).toBeGreaterThan(4)
})

it('order by a key, of a group of consumers, also while it drains', async () => {
  const client = await rig.world.connect({ url: 'memory://a', transport: rig.link('a') })
  const work = worker()
  const jobs = await listenShared(client, 'g', 't/#', work.handle, {
    qos: 1,
    concurrency: 8,
    order: deviceOf,
  })
  for (const [index, reading] of readings.entries())
    rig.brokers['a']?.publish({ topic: `t/${index % 3}`, payload: JSON.stringify(reading), qos: 1 })
  await rig.world.pass(1)
  await rig.world.until(jobs.drain())
  expectOrder(work.story, 5)
  expect(work.most).toBeGreaterThan(2)
})

it('what a group publishes by hash under a rate keeps the order of each topic, and its pace', async () => {
  const shared = { outbound: { rate: { messages: 20, per: 1000 } } }
  const brokers = await rig.up(['a', 'b'], { routing: 'hash', shared })
  const since = rig.world.now()
  const sent = readings.map(({ device, number }) =>
    brokers.publish(device, String(number), { qos: 1 }),
  )
  await rig.world.until(Promise.all(sent))
  for (const device of new Set(readings.map((reading) => reading.device))) {
    const [of] = ['a', 'b']
      .map((name) => (rig.arrived[name] ?? []).filter((line) => line.startsWith(`${device} `)))
      .filter((lines) => lines.length > 0)
    expect(of).toEqual(
      readings
        .filter((reading) => reading.device === device)
        .map(({ number }) => `${device} ${number}`),
    )
  }
  const most = Math.max(...['a', 'b'].map((name) => (rig.arrived[name] ?? []).length))
  expect(rig.world.now() - since).toBeGreaterThan(((most - 2) / 20) * 1000)
})
