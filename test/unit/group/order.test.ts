/** Order by a key of the application's, where several messages are handled at a time: in a group of brokers, in a group of consumers, and under a rate. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Message } from '../../../src/client/options/index.js'
import { listenShared } from '../../../src/client/subscribe/subscribe-shared.js'
import { GroupRig } from './rig.js'

let rig: GroupRig
beforeEach(() => {
  rig = new GroupRig()
})
afterEach(() => rig.stop())

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

it('of a group of brokers: for each member and key', async () => {
  const brokers = await rig.up(['a', 'b'])
  const work = worker()
  await brokers.listen('t/#', work.handle, { qos: 1, concurrency: 8, order: deviceOf })
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

it('of a group of consumers, also while it drains', async () => {
  await rig.start('a')
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
  await rig.start('a', 'b')
  const brokers = rig.group({
    names: ['a', 'b'],
    routing: 'hash',
    shared: { outbound: { rate: { messages: 20, per: 1000 } } },
  })
  await brokers.connect({ require: 'all' })
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
