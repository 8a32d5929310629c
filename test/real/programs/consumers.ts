/** Durable consumers, which come back or are killed; work that is shared, by request and response over `$share` and by a fleet that changes. */
import {
  type Device,
  type DeviceOptions,
  type Program,
  sleep,
  type World,
  within,
} from './world.js'

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

async function ask(
  world: World,
  requester: Device,
  topic: string,
  name: string,
  qos: 0 | 1,
): Promise<void> {
  world.tally.expect(name)
  try {
    const answer = await within(
      requester.request(topic, name, qos),
      `the answer to ${name}`,
      25_000,
    )
    if (answer !== `re ${name}`) world.tally.fail(`a wrong answer to ${name}: ${answer}`)
    world.tally.arrived(name)
    world.tally.sent += 1
  } catch (error) {
    world.tally.fail(`request: ${String(error).replace(name, 'one')}`)
  }
}

const asked = 300

async function askAll(
  world: World,
  requester: Device,
  topic: string,
  count: number,
  qos: 0 | 1,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      next += 1
      await ask(world, requester, topic, `q${next}`, qos)
    }
  }
  await Promise.all(Array.from({ length: asked }, worker))
}

async function oneResponderLeaves(world: World): Promise<void> {
  const responders = await world.connectAll(4)
  const answer = async (text: string): Promise<string> => {
    await sleep(2)
    return `re ${text}`
  }
  for (const responder of responders)
    await responder.respond(
      `$share/workers/${world.topic('work')}`,
      { qos: 1, concurrency: 4 },
      answer,
    )
  const requester = await world.connect()
  const asking = askAll(world, requester, world.topic('work'), world.many(2000), 0)
  await world.until(() => world.tally.delivered > world.many(2000) / 4, 30_000)
  await responders[0]?.disconnect()
  await asking
}

async function slowHandler(world: World): Promise<void> {
  const [responder, requester] = [await world.connect(), await world.connect()]
  let first = true
  await responder.respond(world.topic('slow'), { qos: 1, concurrency: 20 }, async (text) => {
    const work = first ? 3000 : 1
    first = false
    await sleep(work)
    return `re ${text}`
  })
  const asking = askAll(world, requester, world.topic('slow'), world.many(3000), 1)
  await sleep(500)
  const began = performance.now()
  const leave = await within(
    responder.consume(world.topic('other'), { qos: 1 }, () => undefined),
    'a subscribe behind a slow handler',
    10_000,
  )
  world.tally.measured['ms for the subscribe'] = Math.round(performance.now() - began)
  await asking
  await leave()
}

async function fleetOfConsumers(world: World): Promise<void> {
  const filter = `$share/fleet/${world.topic('jobs')}`
  // The session of the one that is killed waits for it; the others end with their connections.
  const join = async (name: string): Promise<Device> => {
    const device = await world.connect(
      name === 'a' ? { clientId: world.id(name), durable: true } : {},
    )
    await device.consume(filter, { qos: 1, concurrency: 4 }, world.count('', 1))
    return device
  }
  const fleet = [await join('a'), await join('b'), await join('c'), await join('d')]
  const sender = await world.connect()
  const count = world.many(3000)
  const sending = (async () => {
    for (let index = 0; index < count; index += 10) {
      await Promise.all(
        Array.from({ length: Math.min(10, count - index) }, (_, more) =>
          world.send(sender, world.topic('jobs'), `j${index + more}`, 1),
        ),
      )
    }
  })()
  const done = (share: number) => world.until(() => world.tally.delivered > count * share, 30_000)
  await done(0.2)
  fleet[0]?.kill()
  await done(0.3)
  await fleet[1]?.disconnect()
  await done(0.4)
  await join('e')
  await done(0.5)
  // The one that was killed is started again by whoever looks after it.
  await join('a')
  await sending
  await world.allArrived()
  world.tally.allowedTwice = world.assignment.window ?? 65_535
}

async function sharedOn311(world: World): Promise<void> {
  const consumers = await world.connectAll(2, () => ({ version: 4 as const }))
  for (const consumer of consumers)
    await consumer.consume(`$share/two/${world.topic('jobs')}`, { qos: 1 }, world.count())
  const sender = await world.connect({ version: 4 })
  await Promise.all(
    Array.from({ length: world.many(200) }, (_, index) =>
      world.send(sender, world.topic('jobs'), `j${index}`, 1),
    ),
  )
  await world.allArrived()
}

export const sharing: readonly Program[] = [
  {
    name: 'responder leaves',
    title:
      '2,000 requests at QoS 0 to four responders on `$share`, one of which leaves: all are answered',
    windowed: true,
    setup: 'plain',
    run: oneResponderLeaves,
  },
  {
    name: 'slow handler',
    // With a window of 1 mosquitto takes 40 ms for each message.
    patience: 240,
    title:
      '3,000 requests at QoS 1 to `respond` with concurrency 20, one of which takes 3 s; a subscribe meanwhile',
    windowed: true,
    setup: 'plain',
    run: slowHandler,
  },
  {
    name: 'fleet of consumers',
    title:
      '3,000 jobs at QoS 1 over `$share` to four consumers: a durable one is killed and started again, one leaves, one joins',
    setup: 'plain',
    windowed: true,
    run: fleetOfConsumers,
  },
  {
    name: '$share, 3.1.1',
    title: '200 jobs over `$share` to two consumers on 3.1.1',
    run: sharedOn311,
  },
]
