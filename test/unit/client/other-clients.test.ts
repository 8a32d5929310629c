/** What users of other clients met besides, each seen not to happen here. Some of it has its test where it belongs: look for `also seen` in titles. */
import { afterEach, describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { MemoryBroker } from '../../../src/testing/index.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { agreed, publish, takenTexts } from './incoming.js'
import { Rig, welcoming } from './rig.js'
import { ack } from './stub.js'

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

// Filters of one subscription share an identifier, and some servers have none: there a copy comes for each filter, as the README says.
it('also seen: retained messages delivered twice for overlapping filters: each consumer gets each retained message once', async () => {
  const clock = new VirtualClock()
  const broker = new MemoryBroker({ clock })
  const client = new BaseClient(
    virtualPlatform(clock),
    { url: 'mqtt://broker', transport: broker.dial },
    { clientId: 'c' },
  )
  open.push(
    () => client.destroy(),
    () => broker.close(),
  )
  await Promise.all([client.connect(), clock.advance(10)])
  for (const topic of ['a/b', 'a/c'])
    await Promise.all([
      client.publish(topic, `kept ${topic}`, { qos: 1, retain: true }),
      clock.advance(10),
    ])
  const [wide, narrow, third] = ['a/#', 'a/b', 'a/+'].map((filter) =>
    client.subscription(filter, { qos: 1 }),
  )
  await clock.advance(100)
  expect([narrow, wide, third].map((each) => each && takenTexts(each).sort())).toEqual([
    ['kept a/b'],
    ['kept a/b', 'kept a/c'],
    ['kept a/b', 'kept a/c'],
  ])
})

it('also seen: a second subscribe to the same filter that silently does nothing: it is granted, and gets messages', async () => {
  const world = await agreed()
  const subscriptions = [
    world.client.subscribe('a', { qos: 1 }),
    world.client.subscribe('a', { qos: 1 }),
  ]
  await world.settle()
  const both = await Promise.all(subscriptions)
  await world.send(publish('a', 'x', 1))
  for (const each of both) expect([each.granted[0]?.qos, each.read()?.text()]).toEqual([1, 'x'])
})

describe('also seen: log calls formatted although logging is off', () => {
  let times = 0
  /** What a listener and `onDrop` throw: counts how often it is made text. */
  const fail = (): never => {
    throw { toString: () => `text ${++times}` }
  }

  it.each([undefined, {}, { info: () => undefined }])(
    'logger %o: a thrown value is no text',
    async (logger) => {
      times = 0
      const world = await agreed({ logger })
      world.client.on('unclaimed', fail)
      world.client.subscription('a', { buffer: 1, overflow: 'drop-oldest', onDrop: fail })
      await world.settle()
      await world.send(publish('nobody', 'x'), publish('a', '1'), publish('a', '2'))
      await world.send(publish('a', '3'), publish('a', '4'))
      expect(times).toBe(0)
    },
  )

  it('a logger of errors gets them, as text', async () => {
    times = 0
    const lines: string[] = []
    const world = await agreed({ logger: { error: (line) => lines.push(line) } })
    world.client.on('unclaimed', fail)
    await world.send(publish('nobody', 'x'))
    expect([times, lines]).toMatchObject([
      1,
      [expect.stringContaining("a listener of 'unclaimed' threw: text 1")],
    ])
  })
})

it('also seen: stored messages replayed although the session is gone: nothing is sent with DUP, no PUBREL, and each is accounted for', async () => {
  const rig = new Rig({ clientId: 'c', cleanStart: false })
  // The first connection acknowledges nothing but one PUBLISH at QoS 2.
  rig.behave = (_host, dial) => (heard) => {
    if (dial > 1 || heard.type === 'connect') return welcoming({}, false)(heard)
    return heard.type === 'publish' && heard.topic === 'released'
      ? ack('pubrec', heard.packetId as number)
      : undefined
  }
  await rig.up()
  const outcomes = (
    [
      ['one', 1],
      ['two', 2],
      ['released', 2],
    ] as const
  ).map(([topic, qos]) =>
    rig.client.publish(topic, 'x', { qos }).then(
      () => 'sent anew',
      ({ code, outcome }) => `${code} ${outcome}`,
    ),
  )
  await rig.settle()
  await rig.cut()
  await rig.advance(2000)
  expect(await Promise.all(outcomes)).toEqual([
    'sent anew',
    'ERR_SESSION_LOST unknown',
    'ERR_SESSION_LOST unknown',
  ])
  expect(rig.peer.all('publish').map(({ topic, dup }) => [topic, dup])).toEqual([['one', false]])
  expect([rig.peer.all('pubrel'), rig.seen('sessionlost').length]).toEqual([[], 1])
  await rig.finish()
})
