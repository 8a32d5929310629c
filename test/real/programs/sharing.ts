/** Work that is shared: request and response over `$share`, and a fleet of consumers that changes. */
import type { Device } from './device.js'
import { type Program, sleep, type World, within } from './world.js'

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
