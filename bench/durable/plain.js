/**
 * A client without a store, now and as it was at another commit: both in this process, in turns, against a peer that is not the limit.
 *
 * Settings: `port` of the peer, `base` (the `dist` folder of the other), `mode` (`receive` or `publish`, and the QoS), and those of `alternate`.
 */
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { alternate, finish, settings, timed } from '../programs/rounds.js'
import { consumers, unlessClosed } from '../workloads/consumers.js'

const { port, base, mode } = settings
const [what, qos] = [mode.split(' ')[0], Number(mode.split(' ')[1])]
const now = fileURLToPath(new URL('../../dist', import.meta.url))
const payload = Buffer.alloc(256, 'x')
const window = 200

const work = {
  receive: (client, count) => unlessClosed(client, consumers.owned(client, { filters: ['plants/#', `N${count}/256/0`], qos, count }), 60_000, mode),
  async publish(client, count) {
    let index = 0
    const worker = async () => {
      while (index++ < count) await client.publish('plants/hall-01/level', payload, { qos })
    }
    await Promise.all(Array.from({ length: window }, worker))
  },
}

async function candidate(dist) {
  const { Client } = await import(pathToFileURL(path.join(dist, 'client', 'node.js')).href)
  return async (count) => {
    const client = new Client(`mqtt://127.0.0.1:${port}`, { receiveMaximum: 65_535, reconnect: false })
    await client.connect()
    const time = await timed(() => work[what](client, count))
    client.destroy()
    return time
  }
}

finish(await alternate({ base: await candidate(base), now: await candidate(now) }, settings))
