/** How much goes through, beside MQTT.js: nothing may be lost; the figures are for the table. */
import type { Program, World } from '../world.js'

function through(count: number, qos: 0 | 1, atATime: number): Program['run'] {
  return async (world: World) => {
    const [sender, reader] = [await world.connect(), await world.connect()]
    await reader.consume(world.topic('flow'), { qos }, world.count())
    const messages = world.many(count)
    const began = performance.now()
    for (let index = 0; index < messages; index += atATime) {
      const batch = Math.min(atATime, messages - index)
      await Promise.all(
        Array.from({ length: batch }, (_, more) =>
          world.send(sender, world.topic('flow'), `f${index + more}`.padEnd(100, '.'), qos),
        ),
      )
      // A program that reads from somewhere gives way now and then.
      await new Promise((resolve) => setImmediate(resolve))
    }
    await world.allArrived()
    world.tally.measured[`messages/s at QoS ${qos}`] = Math.round(
      messages / ((world.tally.lastArrival - began) / 1000),
    )
  }
}

export const throughput: readonly Program[] = [
  {
    name: 'throughput, QoS 0',
    title: '20,000 messages of 100 bytes at QoS 0',
    setup: 'roomy',
    run: through(20_000, 0, 200),
  },
  {
    name: 'throughput, QoS 1',
    title: '10,000 messages of 100 bytes at QoS 1',
    setup: 'roomy',
    windowed: true,
    run: through(10_000, 1, 200),
  },
]
