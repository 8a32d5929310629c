/** Large payloads, with a sum over their bytes. */
import { createHash, randomFillSync } from 'node:crypto'
import type { Program, World } from '../world.js'

function sumOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function large(megabytes: readonly number[], qos: 1 | 2): Program['run'] {
  return async (world: World) => {
    const largest = Math.max(...megabytes)
    const [sender, receiver] = [await world.connect(), await world.connect({ maximumPacketSize: (largest + 1) * 1_000_000 })]
    await receiver.consume(world.topic('file'), { qos }, ({ payload }) => world.tally.arrived(sumOf(payload)))
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

export const payloads: readonly Program[] = [
  { name: '5 MB', title: 'three payloads of 5 MB at QoS 2', setup: 'roomy', run: large([5, 5, 5], 2) },
  { name: '50 MB', title: 'a payload of 50 MB at QoS 1', setup: 'roomy', run: large([50], 1) },
]
