/** Large payloads, with a sum over their bytes. */
import { createHash, randomFillSync } from 'node:crypto'
import { type Program, sleep, type World } from './world.js'

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
