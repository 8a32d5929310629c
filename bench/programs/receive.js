/**
 * Messages received per second from a peer that streams: mqwire in one mode of delivery beside the `message` event of MQTT.js.
 *
 * Settings: `port`, `url` (that of a WebSocket, instead of the port), `mode` (`owned`, `borrowed`, `batches`, `listen`, `listen-owned`), `qos`, `size`, `properties` (user properties of each message),
 * `read` (what is done with a payload, see `consumers.js`), `receiveMaximum`, `scanner` (`false`: the one in TypeScript), `ca` (the file of a certificate:
 * over TLS), `bare` (a bare socket as well), `compat` (`mqwire/compat` runs the program for MQTT.js), `only`, and those of `alternate`.
 * Each application adds up topic and payload lengths: that is its work, and it is checked.
 */
import { startPeer } from '../peers/index.js'
import { consumers, mqttJsConsumer, unlessClosed } from '../workloads/consumers.js'
import { receiveBare } from './bare.js'
import { openCompat, openMqttJs, openMqwire, secured } from './clients.js'
import { alternate, finish, settings, timed } from './rounds.js'

const {
  url,
  mode = 'owned',
  qos = 0,
  size = 256,
  properties = 0,
  read = false,
  receiveMaximum = 65_535,
  scanner,
  ca,
  bare = false,
  compat = false,
  only,
} = settings
const secure = secured(ca)
// Alone, for a profile, it starts its own peer.
const port = settings.port ?? (url === undefined ? (await startPeer()).port : undefined)
const server = url ?? port
const topicLength = 20
const wishOf = (count) => ({
  filters: ['plants/#', `N${count}/${size}/${properties}`],
  qos,
  count,
  read,
})

function check(count, work) {
  const wanted = count * (topicLength + size)
  if (read === 'bytes' ? work < wanted : work !== wanted)
    throw new Error(`${mode}: ${work} of ${wanted} bytes were counted`)
}

async function byMessageEvent(open, count) {
  const client = await open(server, secure)
  let work = 0
  const time = await timed(async () => {
    work = await mqttJsConsumer(client, wishOf(count))
  })
  check(count, work)
  client.end(true)
  return time
}

const candidates = {
  async mqwire(count) {
    if (compat) return byMessageEvent(openCompat, count)
    const client = await openMqwire(server, {
      receiveMaximum,
      ...(scanner === undefined ? {} : { scanner }),
      ...(secure && { tls: secure }),
    })
    let work = 0
    let dropped = 0
    client.on('drop', () => dropped++)
    const time = await timed(async () => {
      work = await unlessClosed(
        client,
        consumers[mode](client, wishOf(count)),
        60_000,
        `${mode}, ${dropped} dropped`,
      )
    })
    check(count, work)
    client.destroy()
    return time
  },
  'MQTT.js': (count) => byMessageEvent(openMqttJs, count),
}
if (bare)
  candidates['bare socket'] = (count) =>
    receiveBare({ url, port, secure, size, properties }, count, timed)
if (only !== undefined)
  for (const name of Object.keys(candidates)) if (name !== only) delete candidates[name]
finish({ results: await alternate(candidates, settings) })
