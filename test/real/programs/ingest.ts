/** Durable consumers: what was published while they were away, or killed, is there when they come back. */
import type { Device, DeviceOptions } from './device.js'
import { type Program, sleep, type World } from './world.js'

async function backlog(
  world: World,
  filter: string,
  count: number,
  options: DeviceOptions,
): Promise<void> {
  const first = await world.connect(options)
  await first.consume(filter, { qos: 1 }, () =>
    world.tally.fail('a message before anybody published'),
  )
  await first.disconnect()
  const sender = await world.connect(
    options.version === undefined ? {} : { version: options.version },
  )
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      world.send(sender, filter.replace('+', String(index % 50)), `m${index}`, 1),
    ),
  )
}

function readmeService(version?: 4): Program['run'] {
  return async (world) => {
    const options = {
      clientId: world.id('orders'),
      durable: true,
      ...(version !== undefined && { version }),
    }
    await backlog(world, world.topic('orders/+/created'), world.many(1000), options)
    const service = await world.connect(options)
    await service.consume(
      world.topic('orders/+/created'),
      { qos: 1, concurrency: 4 },
      world.count('', 1),
    )
    await world.allArrived()
  }
}

/** More than the client may hold at a time: what it announces and what it can hold have to fit each other. */
async function largeBacklog(world: World): Promise<void> {
  const options = { clientId: world.id('large'), durable: true }
  const first = await world.connect(options)
  await first.consume(world.topic('large'), { qos: 1 }, () =>
    world.tally.fail('a message before anybody published'),
  )
  await first.disconnect()
  const sender = await world.connect()
  const count = world.many(2000)
  for (let index = 0; index < count; index += 50) {
    const batch = Array.from(
      { length: Math.min(50, count - index) },
      (_, more) => `g${index + more}`,
    )
    await Promise.all(
      batch.map((name) =>
        world.send(sender, world.topic('large'), name.padEnd(30_000, '.'), 1, [''], name),
      ),
    )
  }
  const service = await world.connect(options)
  await service.consume(world.topic('large'), { qos: 1 }, async (message) => {
    await sleep(1)
    world.tally.arrived(message.text().slice(0, message.text().indexOf('.')))
  })
  await world.allArrived(40_000)
}

async function killedAndRestarted(world: World): Promise<void> {
  const count = world.many(2000)
  const options = { clientId: world.id('ingest'), durable: true }
  const filter = world.topic('ingest/+')
  await backlog(world, filter, count, options)
  let killed: Device | undefined
  let handled = 0
  const first = await world.connect(options)
  const consuming = first.consume(filter, { qos: 1 }, (message) => {
    world.tally.arrived(message.text())
    handled += 1
    if (handled === Math.round(count / 3)) {
      killed = first
      first.kill()
    }
  })
  // It may be killed before it was told that it has the subscription.
  await consuming.catch((error: unknown) => killed ?? world.tally.fail(String(error)))
  await world.until(() => killed !== undefined, 30_000)
  // What was handled and not acknowledged comes again: no more than the window.
  world.tally.allowedTwice = world.assignment.window ?? 65_535
  const second = await world.connect(options)
  await second.consume(filter, { qos: 1 }, world.count('', 1))
  await world.allArrived()
}

export const ingest: readonly Program[] = [
  {
    name: 'durable ingest',
    title:
      'a backlog of 2,000 at QoS 1; the consumer is killed in the middle of it and started again',
    setup: 'plain',
    windowed: true,
    run: killedAndRestarted,
  },
  {
    name: 'durable service',
    title: "the README's service with a backlog of 1,000 at QoS 1",
    setup: 'plain',
    windowed: true,
    run: readmeService(),
  },
  {
    name: 'large backlog',
    title: 'a backlog of 2,000 messages of 30 kB at QoS 1, which is twice the memory budget',
    setup: 'plain',
    windowed: true,
    run: largeBacklog,
  },
  {
    name: 'durable service, 3.1.1',
    title: 'the same on 3.1.1',
    setup: 'plain',
    run: readmeService(4),
  },
]
