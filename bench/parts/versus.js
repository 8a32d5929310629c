/**
 * Other clients for JavaScript, the same work against the same peer, in turns in one run. Figures to know.
 */
import { createServer } from 'node:http'
import { runProgram } from '../child.js'
import { relayTo } from '../peers/relay.js'
import { median } from '../statistics.js'
import { install, names as packages } from '../versus/install.js'

const jobs = { receive: 'receive QoS 0', send0: 'send QoS 0', send1: 'send QoS 1, 100 at a time' }
const transports = { TCP: ['MQTT.js', 'u8-mqtt', 'aws-crt'], WebSocket: ['MQTT.js', 'paho-mqtt'] }

/** Gives the URL of the peer over a transport, and what ends it. */
async function reach(transport, port) {
  if (transport === 'TCP') return { url: `mqtt://127.0.0.1:${port}`, end: () => undefined }
  const server = createServer()
  relayTo(port, server)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const end = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `ws://127.0.0.1:${server.address().port}/mqtt`, end }
}

// Each pair has a process of its own, and one that hangs is given up: it costs nobody else's row.
const versus = (transport, job, name) => {
  const title = `${jobs[job]} over ${transport}, against ${name}`
  return {
    part: 'versus',
    rows: { [title]: {} },
    async run({ peer, quick }) {
      const missing = packages.includes(name) ? install(name) : undefined
      if (missing !== undefined) return { [title]: { skipped: missing } }
      const { url, end } = await reach(transport, (await peer()).port)
      try {
        const settings = {
          url,
          job,
          names: ['mqwire', name],
          rounds: quick ? 3 : 7,
          seconds: quick ? 0.2 : 0.4,
          most: 400_000,
        }
        const { results, objections } = await runProgram('versus.js', settings, { timeout: 45_000 })
        if (objections[name] !== undefined)
          return { [title]: { skipped: `${name}: ${objections[name]}` } }
        const of = (client) => median(results[client].map(({ rate }) => rate))
        return {
          [title]: {
            ratio: of('mqwire') / of(name),
            mqwire: of('mqwire'),
            peer: of(name),
            peerName: name,
            figures: 'msgs/s',
          },
        }
      } catch (error) {
        if (!error.message.includes('SIGKILL')) throw error
        return { [title]: { skipped: `${name} does not get done` } }
      } finally {
        end()
      }
    },
  }
}

/** Measurements of this part, in order. */
export const versusOthers = Object.entries(transports).flatMap(([transport, peers]) =>
  Object.keys(jobs).flatMap((job) => peers.map((name) => versus(transport, job, name))),
)
