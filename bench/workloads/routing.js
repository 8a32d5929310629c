/**
 * Finding the subscriptions of a message, through the public API: a client over memory, with few or many filters, that is delivered one stream.
 *
 * What a filter more costs is the difference between clients that differ in nothing else. Runs in browsers as well.
 */
import { Client } from 'mqwire'
import { encode } from 'mqwire/wire'
import { Source } from './source.js'
import { streamOf, workloads } from './workload.js'

const matching = 'plants/#'

/** Filters by the name of a scene; the first takes every message of the stream, the others (but for `wildcards`) none. */
export const scenes = {
  'one filter': () => [matching],
  '100 filters': () => [matching, ...other(99)],
  '1,000 filters': () => [matching, ...other(999)],
  '10,000 filters': () => [matching, ...other(9999)],
  '10,000 filters with wildcards that match': () => [
    matching,
    'plants/+/level',
    '+/+/level',
    '#',
    ...other(9996),
  ],
  '1,000 deep filters': () => [
    matching,
    ...Array.from({ length: 999 }, (_, index) => `plants/${'a/'.repeat(20)}${index}/+`),
  ],
}

function other(count) {
  return Array.from({ length: count }, (_, index) => {
    const place = `site-${index % 50}/hall-${index % 97}`
    return index % 3 === 0
      ? `${place}/+/m${index}`
      : index % 3 === 1
        ? `${place}/machine/m${index}`
        : `${place}/m${index}/#`
  })
}

/** A connected client with these filters, listening; `run(count)` delivers at least `count` messages and gives how many. */
export async function router(filters, { churn = false, workload = workloads.small } = {}) {
  const source = new Source()
  const options = {
    clientId: 'router',
    keepAlive: false,
    reconnect: false,
    maximumPacketSize: 1 << 20,
  }
  const client = new Client({ url: 'mqtt://memory', transport: () => source }, options)
  await client.connect()
  const { chunks, count: perPass } = streamOf({ ...workload, bytes: 1 << 18 }, encode)
  let left = 0
  let done = () => undefined
  const handler = () => {
    if (--left === 0) done()
  }
  await client.listen(filters, handler, { lifetime: 'borrowed' })
  const pass = (passes) =>
    new Promise((resolve) => {
      left = passes * perPass
      done = resolve
      source.stream(chunks, passes)
    })
  return {
    async run(count) {
      const passes = Math.ceil(count / perPass)
      if (!churn) await pass(passes)
      else {
        for (let index = 0; index < passes; index++) {
          const subscription = await client.subscribe(`plants/hall-${index % 100}/churn`)
          await pass(1)
          await subscription.unsubscribe()
        }
      }
      return passes * perPass
    },
    close: () => client.destroy(),
  }
}
