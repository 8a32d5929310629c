/** Connections that are lost, taken over, or refused. */
import { type Program, sleep, type World, within } from './world.js'

async function restarted(world: World): Promise<void> {
  const [consumer, sender] = [
    await world.connect({ clientId: world.id('consumer'), durable: true }),
    await world.connect({ clientId: world.id('sender'), durable: true }),
  ]
  await consumer.consume(world.topic('load'), { qos: 1 }, world.count())
  const count = world.many(3000)
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      next += 1
      await world.send(sender, world.topic('load'), `l${next}`, 1)
      await sleep(5)
    }
  }
  const sending = Promise.all(Array.from({ length: 10 }, worker))
  for (const share of [0.25, 0.6]) {
    await world.until(() => world.tally.sent > count * share, 30_000)
    await world.order('shut down')
    await sleep(200)
    await world.order('live')
  }
  await within(sending, 'every publish', 60_000)
  await world.allArrived()
  world.tally.allowedTwice = count
}

async function takenOver(world: World): Promise<void> {
  const clientId = world.id('same')
  const first = await world.connect({ clientId })
  await first.consume(world.topic('old'), { qos: 1 }, () => undefined)
  const second = await world.connect({ clientId })
  await second.consume(world.topic('new'), { qos: 1 }, world.count())
  const sender = await world.connect()
  for (let index = 0; index < 30; index += 1) {
    await world.send(sender, world.topic('new'), `t${index}`, 1)
    await sleep(100)
  }
  await world.allArrived(6000)
  if (world.tally.connections > 3)
    world.tally.fail(
      `the two took the session from each other: ${world.tally.connections - 1} connections`,
    )
  if (first.end !== 'ERR_SESSION_TAKEN_OVER')
    world.tally.fail(`the first was not told: ${first.end}`)
}

export const links: readonly Program[] = [
  {
    name: 'broker restarted',
    title:
      '3,000 messages at QoS 1 through two restarts of the broker: every publish settles, what it accepted arrives',
    setup: 'durable',
    run: restarted,
  },
  {
    name: 'takeover',
    title: 'a second client takes the session: it keeps it, and the first is told',
    run: takenOver,
  },
]
