/** One message for many: fan-out, retained state under change, wills. */
import { type Program, sleep, type World } from './world.js'

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
