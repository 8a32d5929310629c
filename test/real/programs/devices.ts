/** Many devices publish, one consumer reads them all. */
import type { ConsumeOptions } from './device.js'
import type { Program, World } from './world.js'

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
