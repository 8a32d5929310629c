/**
 * The codec beside mqtt-packet, in nanoseconds per packet. Settings: `what` (`decode`, `encode`, `read`), `name`, `size` (a workload of its own), `properties`, `making`, `only`, `processor`
 * (processor time is counted, which a busy machine does not change), and those of `compare`.
 */
import mqttPacket from 'mqtt-packet'
import { timesOf } from '../compare.js'
import { median } from '../statistics.js'
import { decoders } from '../workloads/decoding.js'
import { encoders, readers } from '../workloads/encoding.js'
import { ours } from '../workloads/libraries.js'
import { workloads } from '../workloads/workload.js'
import { finish, processorClock, settings, turn } from './rounds.js'

const { what, name, size, properties = false, making = false, only } = settings
const libraries = { ...(await ours()), mqttPacket }
const candidates = {
  decode: () => decoders(libraries, workloads[name] ?? { size }, { properties, only }),
  encode: () => encoders(libraries, name, { making, only }),
  read: () => readers(libraries, name),
}[what]()
const clock = settings.processor ? processorClock : undefined
const times = timesOf(candidates, { ...settings, clock, turn })
finish({
  nanoseconds: Object.fromEntries(
    Object.entries(times).map(([name, each]) => [name, median(each)]),
  ),
  times,
  encoder: libraries.wire.Encoder !== undefined,
})
