/**
 * One message to the broker and back, one at a time: publish at QoS 0, and wait for it on a subscription of the same client.
 * A bare socket does the same with prepared bytes. Settings: `port`, `size`, `only`, and those of `alternate`.
 */
import { pingPongBare } from './bare.js'
import { openMqttJs, openMqwire } from './clients.js'
import { alternate, finish, settings, timed } from './rounds.js'

const { port, size = 256, only } = settings
const payload = Buffer.alloc(size, 'x')
let topics = 0

const candidates = {
  async mqwire(count) {
    const client = await openMqwire(port)
    const topic = `there/and/back/${topics++}`
    const subscription = await client.subscribe(topic)
    const time = await timed(async () => {
      for (let index = 0; index < count; index++) {
        client.post(topic, payload)
        await subscription.next()
      }
    })
    client.destroy()
    return time
  },
  async 'MQTT.js'(count) {
    const client = await openMqttJs(port)
    client.stream.setNoDelay(true)
    const topic = `there/and/back/${topics++}`
    await client.subscribeAsync(topic)
    let arrived = () => undefined
    client.on('message', () => arrived())
    const time = await timed(async () => {
      for (let index = 0; index < count; index++) {
        const back = new Promise((resolve) => {
          arrived = resolve
        })
        client.publish(topic, payload)
        await back
      }
    })
    client.end(true)
    return time
  },
  'bare ping-pong': (count) => pingPongBare({ port, size, qos: 0 }, count, timed),
}
if (only !== undefined)
  for (const name of Object.keys(candidates)) if (name !== only) delete candidates[name]
finish({ results: await alternate(candidates, settings) })
