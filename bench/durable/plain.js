/**
 * A client without a store, now and as it was at another commit: both in this process, in turns, against a peer that is not the limit.
 *
 * Settings: `port` of the peer, `base` (the `dist` folder of the other), `mode` (`receive` or `publish`, and the QoS), `count` of messages, `rounds`,
 * `first` (which is loaded first: the other is slower by some percent, also where both are the same). Gives microseconds of processor time a message, by
 * round; who goes first changes with each.
 */
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { finish, settings, timed } from '../programs/rounds.js'
import { consumers, unlessClosed } from '../workloads/consumers.js'

const { port, base, mode, count, rounds, first } = settings
const [what, qos] = [mode.split(' ')[0], Number(mode.split(' ')[1])]
const now = fileURLToPath(new URL('../../dist', import.meta.url))
const payload = Buffer.alloc(256, 'x')
const window = 200

const work = {
  receive: (client) =>
    unlessClosed(
      client,
      consumers.owned(client, { filters: ['plants/#', `N${count}/256/0`], qos, count }),
      60_000,
      mode,
    ),
  async publish(client) {
    let index = 0
    const worker = async () => {
      while (index++ < count) await client.publish('plants/hall-01/level', payload, { qos })
    }
    await Promise.all(Array.from({ length: window }, worker))
  },
}

async function candidate(dist) {
  const { Client } = await import(pathToFileURL(path.join(dist, 'client', 'node.js')).href)
  return async () => {
    const client = new Client(`mqtt://127.0.0.1:${port}`, {
      receiveMaximum: 65_535,
      reconnect: false,
    })
    await client.connect()
    globalThis.gc?.()
    const { user, system } = await timed(() => work[what](client))
    client.destroy()
    return ((user + system) / count) * 1e6
  }
}

const candidates = []
for (const name of first === 'now' ? ['now', 'base'] : ['base', 'now'])
  candidates.push([name, await candidate(name === 'now' ? now : base)])
const costs = { base: [], now: [] }
// The first rounds are for the compiler.
for (let round = -4; round < rounds; round++) {
  for (const [name, run] of round % 2 === 0 ? candidates : candidates.toReversed()) {
    const cost = await run()
    if (round >= 0) costs[name].push(cost)
  }
}
finish(costs)
