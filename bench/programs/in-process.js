/**
 * Delivery without sockets, in turns. Settings: `mode`, `name` of a workload, `read`, `bare` (the name of a bare loop that reads the same payloads as well),
 * `clients` (so many receive each message), `only`, and those of `alternate`.
 */
import mqttjs from 'mqtt'
import { encode } from 'mqwire/wire'
import { deliverers } from '../workloads/delivering.js'
import { streamOf, workloads } from '../workloads/workload.js'
import { alternate, finish, settings, timed } from './rounds.js'

const { latin1Slice } = Buffer.prototype

/** The fastest way in Node to read the bytes of a payload: what it gives counts. */
const loops = {
  payload: (bytes) => bytes.slice().length,
  // For ASCII, this is the text.
  json: (bytes) => JSON.parse(latin1Slice.call(bytes)).size,
}

/** Reads `count` payloads of a workload in a loop, without a client. */
function loopOver({ name = 'plain', read }) {
  const { size } = workloads[name]
  const { frames } = streamOf(workloads[name], encode)
  const payloads = frames.map((frame) => frame.subarray(frame.length - size))
  const use = loops[read]
  return async (count) => {
    let work = 0
    const time = await timed(async () => {
      for (let left = count; left > 0; left -= payloads.length)
        for (let index = 0; index < payloads.length && index < left; index++)
          work += use(payloads[index])
    })
    if (work !== count * size) throw new Error(`${work} bytes were counted`)
    return time
  }
}

const candidates = deliverers(settings, { mqttjs, timed })
if (settings.bare !== undefined) candidates[settings.bare] = loopOver(settings)
const { only } = settings
if (only !== undefined)
  for (const name of Object.keys(candidates)) if (name !== only) delete candidates[name]
finish({ results: await alternate(candidates, settings) })
