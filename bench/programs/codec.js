/**
 * The codec beside mqtt-packet, in nanoseconds per packet. Settings: `what` (`decode`, `encode`, `read`), `name`, `size` (a workload of its own), `properties`, `making`, `only`, `processor`
 * (processor time is counted, which a busy machine does not change), and those of `compare`.
 */
import mqttPacket from 'mqtt-packet'
import { compare } from '../compare.js'
import { decoders } from '../workloads/decoding.js'
import { encoders, readers } from '../workloads/encoding.js'
import { ours } from '../workloads/libraries.js'
import { workloads } from '../workloads/workload.js'
import { finish, processorClock, settings } from './rounds.js'

const { what, name, size, properties = false, making = false, only } = settings
const libraries = { ...(await ours()), mqttPacket }
const candidates = {
  decode: () => decoders(libraries, workloads[name] ?? { size }, { properties, only }),
  encode: () => encoders(libraries, name, { making, only }),
  read: () => readers(libraries, name),
}[what]()
finish({
  nanoseconds: compare(
    candidates,
    settings.processor ? { ...settings, clock: processorClock } : settings,
  ),
  encoder: libraries.wire.Encoder !== undefined,
})
