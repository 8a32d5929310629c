/** Overlapping filters that come and go while 1,000 topics are published to. */
import { type Program, sleep, type World } from './world.js'

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
