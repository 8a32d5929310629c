/** Many devices for one consumer, one message for many, large payloads, and filters that come and go while 1,000 topics are published to. */
import { createHash, randomFillSync } from 'node:crypto'
import { type ConsumeOptions, type Program, sleep, type World } from './world.js'

interface Fleet {
  readonly devices: number
  readonly messages: number
  readonly qos: 1 | 2
  /** Milliseconds of work for each message. */
  readonly work: number
  readonly consume?: Omit<ConsumeOptions, 'qos'>
  readonly receiveMaximum?: number
}

function fleet({
  devices,
  messages,
  qos,
  work,
  consume = {},
  receiveMaximum,
}: Fleet): Program['run'] {
  return async (world: World) => {
    const consumer = await world.connect(receiveMaximum === undefined ? {} : { receiveMaximum })
    await consumer.consume(
      world.topic('devices/+/values'),
      { qos, ...consume },
      world.count('', work),
    )
    const senders = await world.connectAll(devices)
    const count = world.many(messages)
    await Promise.all(
      senders.map(async (sender, device) => {
        for (let index = 0; index < count; index += 1)
          await world.send(
            sender,
            world.topic(`devices/${device}/values`),
            `d${device}-${index}`,
            qos,
          )
      }),
    )
    await world.allArrived()
  }
}

export const devices: readonly Program[] = [
  {
    name: '50 devices',
    title: '50 devices publish 200 messages each at QoS 1, one `listen` reads them',
    setup: 'plain',
    windowed: true,
    run: fleet({ devices: 50, messages: 200, qos: 1, work: 0 }),
  },
  {
    name: '50 devices in a loop',
    title: 'the same at QoS 2 with 40 messages each, read by `for await`',
    setup: 'plain',
    windowed: true,
    run: fleet({ devices: 50, messages: 40, qos: 2, work: 0, consume: { style: 'loop' } }),
  },
  {
    name: '50 devices, acknowledged by hand',
    title: 'the same at QoS 1 with 100 messages each and manual acknowledgements',
    setup: 'plain',
    windowed: true,
    run: fleet({ devices: 50, messages: 100, qos: 1, work: 0, consume: { style: 'manual' } }),
  },
  {
    name: 'busy listen',
    title: '40 devices publish 150 messages each at QoS 1 into one `listen` with 1 ms of work',
    setup: 'plain',
    windowed: true,
    run: fleet({ devices: 40, messages: 150, qos: 1, work: 1 }),
  },
  {
    name: 'narrow QoS 2',
    title: '600 messages at QoS 2 into a receiver with `receiveMaximum: 10`',
    setup: 'plain',
    run: fleet({ devices: 10, messages: 60, qos: 2, work: 1, receiveMaximum: 10 }),
  },
]

async function fanOut(world: World): Promise<void> {
  const count = world.many(50)
  const subscribers = await world.connectAll(200)
  const names = subscribers.map((_, index) => `s${index}`)
  await Promise.all(
    subscribers.map((subscriber, index) =>
      subscriber.consume(world.topic('news'), { qos: 1 }, world.count(names[index])),
    ),
  )
  const sender = await world.connect()
  for (let index = 0; index < count; index += 1)
    await world.send(sender, world.topic('news'), `n${index}`, 1, names)
  await world.allArrived()
}

function latest(
  seen: Map<string, string>,
): (message: { readonly topic: string; text(): string }) => void {
  return (message) => void seen.set(message.topic, message.text())
}

async function retained(world: World): Promise<void> {
  const count = world.many(1000)
  const topics = Array.from({ length: count }, (_, index) =>
    world.topic(`state/${index % 10}/${index}`),
  )
  const [sender, early, late] = [
    await world.connect(),
    await world.connect(),
    await world.connect(),
  ]
  const change = (version: number) =>
    Promise.all(
      topics.map((topic) => sender.publish(topic, `v${version}`, { qos: 1, retain: true })),
    )
  await change(1)
  const [seenEarly, seenLate] = [new Map<string, string>(), new Map<string, string>()]
  const changes = change(2)
  await early.consume(world.topic('state/#'), { qos: 1 }, latest(seenEarly))
  await changes
  await Promise.all([change(3), late.consume(world.topic('state/#'), { qos: 1 }, latest(seenLate))])
  world.tally.sent += 3 * count
  const done = (seen: Map<string, string>): boolean =>
    topics.every((topic) => seen.get(topic) === 'v3')
  for (const [name, seen] of Object.entries({ early: seenEarly, late: seenLate })) {
    if (!(await world.until(() => done(seen), 20_000))) {
      const values = topics.map((topic) => seen.get(topic) ?? 'nothing')
      const told = ['v1', 'v2', 'nothing'].map(
        (value) => `${values.filter((each) => each === value).length} ${value}`,
      )
      world.tally.fail(`${name}: not the latest of each topic: ${told.join(', ')}`)
    }
  }
  for (const topic of topics) {
    world.tally.expect(topic)
    if (seenLate.get(topic) === 'v3') world.tally.arrived(topic)
  }
}

async function wills(world: World): Promise<void> {
  const count = world.many(20)
  const watcher = await world.connect()
  await watcher.consume(world.topic('status/+'), { qos: 1 }, world.count())
  const withWill = (name: string) =>
    world.connectAll(count, (index) => ({
      will: { topic: world.topic(`status/${name}${index}`), payload: `${name}${index}`, qos: 1 },
    }))
  const [cut, clean] = [await withWill('cut'), await withWill('clean')]
  for (let index = 0; index < count; index += 1) world.tally.expect(`cut${index}`)
  await Promise.all(clean.map((device) => device.disconnect()))
  for (const device of cut) device.kill()
  await world.allArrived()
  await sleep(200)
}

export const spreading: readonly Program[] = [
  {
    name: 'fan-out',
    title: '50 messages at QoS 1 to each of 200 subscribers',
    windowed: true,
    run: fanOut,
  },
  {
    name: 'retained state',
    title:
      '1,000 retained topics, changed while one dashboard and then another subscribes: each ends with the latest of each topic',
    setup: 'plain',
    windowed: true,
    run: retained,
  },
  {
    name: 'wills',
    title: 'of 20 devices that vanish the will is published, of 20 that say goodbye it is not',
    run: wills,
  },
]

function sumOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function large(megabytes: readonly number[], qos: 1 | 2): Program['run'] {
  return async (world: World) => {
    const largest = Math.max(...megabytes)
    const [sender, receiver] = [
      await world.connect(),
      await world.connect({ maximumPacketSize: (largest + 1) * 1_000_000 }),
    ]
    await receiver.consume(world.topic('file'), { qos }, ({ payload }) =>
      world.tally.arrived(sumOf(payload)),
    )
    for (const size of megabytes) {
      const payload = randomFillSync(new Uint8Array(size * 1_000_000))
      world.tally.expect(sumOf(payload))
      await sender.publish(world.topic('file'), payload, { qos })
      world.tally.sent += 1
    }
    // Some brokers take long over a large message.
    await world.allArrived(60_000)
  }
}

/** More than the memory budget, in large pieces, for a reader that takes its time, with default options. */
function photographs(kept: 'retained' | 'queued', version: 4 | 5): Program['run'] {
  return async (world: World) => {
    const options = { clientId: world.id('wall'), durable: kept === 'queued', version }
    const names = Array.from(
      { length: world.many(100) },
      (_, index) => `p${String(index).padStart(3, '0')}`,
    )
    const nameOf = (payload: Uint8Array): string => new TextDecoder().decode(payload.subarray(0, 4))
    if (kept === 'queued') {
      const first = await world.connect(options)
      await first.consume(world.topic('photo/+'), { qos: 1 }, () =>
        world.tally.fail('a message before any was published'),
      )
      await first.disconnect()
    }
    const sender = await world.connect()
    const payload = new Uint8Array(5_000_000)
    for (const name of names) {
      payload.set(new TextEncoder().encode(name))
      world.tally.expect(name)
      await sender.publish(world.topic(`photo/${name}`), payload, {
        qos: 1,
        retain: kept === 'retained',
      })
      world.tally.sent += 1
    }
    const before = world.tally.connections
    const wall = await world.connect(options)
    // One that the budget ends is allowed, and one that a broker ends.
    world.tally.allowEnds('ERR_CONNECTION_LOST')
    await wall.consume(world.topic('photo/+'), { qos: 1 }, async ({ payload }) => {
      await sleep(30)
      world.tally.arrived(nameOf(payload))
    })
    await world.allArrived(60_000)
    world.tally.measured['connections of the reader'] = world.tally.connections - before
    if (world.tally.connections - before > 3)
      world.tally.fail('more than two connections were lost')
    await wall.disconnect()
    if (kept === 'retained')
      for (const name of names)
        await sender.publish(world.topic(`photo/${name}`), '', { qos: 1, retain: true })
  }
}

export const payloads: readonly Program[] = [
  ...(['retained', 'queued'] as const).flatMap((kept) =>
    ([5, 4] as const).map((version) => ({
      name: `100 × 5 MB, ${kept}, ${version === 5 ? '5.0' : '3.1.1'}`,
      title: `a hundred ${kept} messages of 5 MB for a reader that takes 30 ms for each`,
      setup: 'plain' as const,
      patience: 180,
      run: photographs(kept, version),
    })),
  ),
  {
    name: '5 MB',
    title: 'three payloads of 5 MB at QoS 2',
    setup: 'plain',
    run: large([5, 5, 5], 2),
  },
  { name: '50 MB', title: 'a payload of 50 MB at QoS 1', setup: 'plain', run: large([50], 1) },
]

async function overlapping(world: World): Promise<void> {
  const count = world.many(1000)
  const [sender, reader] = [await world.connect(), await world.connect()]
  const filters = ['t/#', 't/+/even', 't/+/+']
  for (const filter of filters)
    await reader.consume(world.topic(filter), { qos: 1 }, world.count(filter))
  let over = false
  const churning = (async () => {
    for (let turn = 0; !over; turn += 1) {
      const leave = await reader.consume(
        [world.topic(`t/${turn % 100}/#`), world.topic(`t/+/odd`)],
        { qos: 1 },
        () => undefined,
      )
      await sleep(2)
      await leave()
    }
  })()
  for (let index = 0; index < count; index += 20) {
    const batch = Array.from({ length: Math.min(20, count - index) }, (_, more) => index + more)
    await Promise.all(
      batch.map((each) => {
        const parity = each % 2 === 0 ? 'even' : 'odd'
        const receivers = filters.filter((filter) => filter !== 't/+/even' || parity === 'even')
        return world.send(sender, world.topic(`t/${each}/${parity}`), `c${each}`, 1, receivers)
      }),
    )
  }
  over = true
  await churning
  await world.allArrived()
}

export const churn: readonly Program[] = [
  {
    name: 'overlapping filters',
    title:
      '1,000 topics at QoS 1 under three overlapping filters while others come and go: each subscription gets each message once',
    setup: 'plain',
    windowed: true,
    run: overlapping,
  },
]
