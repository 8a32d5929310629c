/**
 * Heap bytes that each received message costs, by lifetime and way to read. Wants `--expose-gc`. Settings: `port`, `modes`, `size`, `qos`, `properties`.
 */
import { median } from '../statistics.js'
import { consumers, mqttJsConsumer, unlessClosed } from '../workloads/consumers.js'
import { openMqttJs, openMqwire } from './clients.js'
import { allocated } from './heap.js'
import { finish, settings } from './rounds.js'

const { port, modes, size = 256, qos = 0, properties = 0, count = 200_000 } = settings
const wish = { filters: ['plants/#', `N${count}/${size}/${properties}`], qos, count, read: false }

async function measured(mode) {
  if (mode === 'MQTT.js') {
    const client = await openMqttJs(port)
    const garbage = await allocated(() => mqttJsConsumer(client, wish))
    client.end(true)
    return garbage
  }
  const client = await openMqwire(port)
  const garbage = await allocated(() =>
    unlessClosed(client, consumers[mode](client, wish), 60_000, mode),
  )
  client.destroy()
  return garbage
}

const bytes = {}
for (const mode of modes) {
  const each = []
  for (let round = -2; round < 5; round++) {
    const { heap } = await measured(mode)
    if (round >= 0) each.push(heap / count)
  }
  bytes[mode] = median(each)
}
finish({ bytes })
