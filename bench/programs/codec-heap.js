/**
 * Heap bytes that each packet costs, read or written. Wants `--expose-gc`. Settings: `what` (`decode`, `encode`), `name`, `properties`,
 * `only`.
 *
 * What was allocated is what the heap grew by, and what was collected meanwhile; the code is warm, so that compiling it is not counted.
 */
import mqttPacket from 'mqtt-packet'
import { median } from '../statistics.js'
import { decoders } from '../workloads/decoding.js'
import { encoders } from '../workloads/encoding.js'
import { ours } from '../workloads/libraries.js'
import { workloads } from '../workloads/workload.js'
import { allocated } from './heap.js'
import { finish, settings } from './rounds.js'

const { what, name, properties = false, only } = settings
const libraries = { ...(await ours()), mqttPacket }
const candidates =
  what === 'decode'
    ? decoders(libraries, workloads[name], { properties, only })
    : encoders(libraries, name, { only })
const bytes = {}
for (const [candidate, run] of Object.entries(candidates)) {
  const count = 100_000
  for (let warm = 0; warm < 8; warm++) run(count)
  const each = []
  for (let round = 0; round < 5; round++) {
    let done = count
    const { heap } = await allocated(() => {
      done = run(count) ?? count
    })
    each.push(heap / done)
  }
  bytes[candidate] = median(each)
}
finish({ bytes })
