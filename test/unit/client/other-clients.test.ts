/** What users of other clients met besides, each seen not to happen here. Some of it has its test where it belongs: look for `also seen` in titles. */
import { afterEach, describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { MemoryBroker } from '../../../src/testing/index.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { accepting, agreeable, connected } from './harness.js'
import { agreed, publish } from './incoming.js'
import { Rig, welcoming } from './rig.js'

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** A broker with everything, and a client of it. */
async function connectedTogether(): Promise<{ readonly client: BaseClient; readonly clock: VirtualClock }> {
  const clock = new VirtualClock()
  const broker = new MemoryBroker({ clock })
  const client = new BaseClient(virtualPlatform(clock), { url: 'mqtt://broker', transport: broker.dial }, { clientId: 'c' })
  open.push(() => {
    client.destroy()
    broker.close()
  })
  await Promise.all([client.connect(), clock.advance(10)])
  return { client, clock }
}

describe('also seen: retained messages delivered twice for overlapping filters', () => {
  // Filters of one subscription share an identifier, and some servers have none: there a copy comes for each filter, as the README says.
  it('each consumer gets each retained message once', async () => {
    const { client, clock } = await connectedTogether()
    for (const topic of ['a/b', 'a/c']) await Promise.all([client.publish(topic, `kept ${topic}`, { qos: 1, retain: true }), clock.advance(10)])
    const [wide, narrow] = [client.subscription('a/#', { qos: 1 }), client.subscription('a/b', { qos: 1 })]
    const third = client.subscription('a/+', { qos: 1 })
    await clock.advance(100)
    const texts = (subscription: typeof wide): string[] => Array.from({ length: subscription.size }, () => subscription.read()?.text() ?? '').sort()
    expect(texts(narrow)).toEqual(['kept a/b'])
    expect(texts(wide)).toEqual(['kept a/b', 'kept a/c'])
    expect(texts(third)).toEqual(['kept a/b', 'kept a/c'])
  })
})

it('also seen: a second subscribe to the same filter that silently does nothing: it is granted, and gets messages', async () => {
  const world = await agreed()
  const subscriptions = [world.client.subscribe('a', { qos: 1 }), world.client.subscribe('a', { qos: 1 })]
  await world.settle()
  const [first, second] = await Promise.all(subscriptions)
  await world.send(publish('a', 'x', 1))
  expect([first, second].map((each) => [each?.granted[0]?.qos, each?.read()?.text()])).toEqual([
    [1, 'x'],
    [1, 'x'],
  ])
})

it.each(['disconnect', 'dispose'] as const)(
  'also seen: DISCONNECT not sent on exit: after %s it is the last packet, and the will stays',
  async (how) => {
    const rig = await new Rig({ will: { topic: 'will', payload: 'gone' } }).up()
    rig.client.post('t', 'before')
    const ending = how === 'disconnect' ? rig.client.disconnect({ timeout: 0 }) : rig.client[Symbol.asyncDispose]()
    await rig.advance(2000)
    await ending
    expect(rig.peer.received.map(({ type }) => type)).toEqual(['connect', 'publish', 'disconnect'])
    expect(rig.peer.last('disconnect').reasonCode).toBe(0)
  },
)

describe('also seen: log calls formatted although logging is off', () => {
  /** What a listener and `onDrop` throw: counts how often it is made text. */
  function counted(): { readonly thrown: object; readonly times: () => number } {
    let times = 0
    return { thrown: { toString: () => `text ${++times}` }, times: () => times }
  }

  it.each([undefined, {}, { info: () => undefined }])('logger %o: what is thrown into an error line is not made text', async (logger) => {
    const { thrown, times } = counted()
    const world = await agreed({ logger })
    const fail = (): never => {
      throw thrown
    }
    world.client.on('unclaimed', fail)
    world.client.subscription('a', { buffer: 1, overflow: 'drop-oldest', onDrop: fail })
    await world.settle()
    await world.send(publish('nobody', 'x'), publish('a', '1'), publish('a', '2'))
    await world.send(publish('a', '3'), publish('a', '4'))
    expect(times()).toBe(0)
  })

  it('a logger of errors gets them, as text', async () => {
    const { thrown, times } = counted()
    const lines: string[] = []
    const world = await agreed({ logger: { error: (line) => lines.push(line) } })
    world.client.on('unclaimed', () => {
      throw thrown
    })
    await world.send(publish('nobody', 'x'))
    expect(times()).toBe(1)
    expect(lines).toMatchObject([expect.stringContaining("a listener of 'unclaimed' threw: text 1")])
  })
})

describe("also seen: options trimmed against the client's own packet limit instead of the server's", () => {
  const long = 'x'.repeat(300)

  it('what we can take says nothing about what we may send', async () => {
    const world = await connected({ maximumPacketSize: 64, userProperties: [['name', long]] }, agreeable)
    expect(world.peer.last('connect').properties.userProperties).toEqual([['name', long]])
    world.client.publish('t', long, { properties: { userProperties: [['name', long]] } })
    const done = world.client.disconnect({ reasonString: long, userProperties: [['name', long]] })
    await world.settle()
    await done
    expect(world.peer.last('publish').payload).toHaveLength(300)
    expect(world.peer.last('disconnect').properties).toMatchObject({ reasonString: long, userProperties: [['name', long]] })
  })

  it('what the server takes does', async () => {
    const world = await connected({}, accepting({ maximumPacketSize: 64 }))
    const done = world.client.disconnect({ reasonString: long })
    await world.settle()
    await done
    expect(world.peer.last('disconnect').properties.reasonString).toBeUndefined()
  })
})

it('also seen: stored messages replayed although the session is gone: nothing is sent with DUP, no PUBREL, and each is accounted for', async () => {
  const rig = new Rig({ clientId: 'c', cleanStart: false })
  // The first connection acknowledges nothing but one PUBLISH at QoS 2.
  rig.behave = (_host, dial) => (heard) => {
    if (dial > 1 || heard.type === 'connect') return welcoming({}, false)(heard)
    if (heard.type === 'publish' && heard.topic === 'released')
      return { type: 'pubrec', packetId: heard.packetId as number, reasonCode: 0, properties: {} }
    return undefined
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
  expect(await Promise.all(outcomes)).toEqual(['sent anew', 'ERR_SESSION_LOST unknown', 'ERR_SESSION_LOST unknown'])
  expect(rig.peer.all('publish').map(({ topic, dup }) => [topic, dup])).toEqual([['one', false]])
  expect(rig.peer.all('pubrel')).toEqual([])
  expect(rig.seen('sessionlost')).toHaveLength(1)
  await rig.finish()
})
