/**
 * The rows of many clients in one process: stress at QoS 2, fan-in, fan-out, mesh; the same program with mqwire and with MQTT.js in turns.
 *
 * At QoS 2 a message that is missing or came twice fails the row; at QoS 0 losses are told.
 */
import { runProgram } from '../child.js'
import { median } from '../statistics.js'

const lacks = ({ has }) => (has.mosquitto ? undefined : 'mosquitto not found')

function told(runs) {
  const sum = (side, key) => runs[side].reduce((total, run) => total + run[key], 0)
  const words = (side) =>
    `${side}: ${sum(side, 'missing')} missing, ${sum(side, 'twice')} twice, ${sum(side, 'disordered')} out of order`
  const ends = Object.values(runs).flatMap((all) => all.flatMap((run) => run.ends))
  return `${words('mqwire')}; ${words('MQTT.js')}${ends.length > 0 ? `; connections that ended: ${ends.slice(0, 3).join(', ')}` : ''}`
}

const profile = (name, title, rate) => {
  const [speed, processor] = [`${title}: msgs/s received`, `${title}: CPU a message`]
  return {
    part: 'profiles',
    lacks,
    rows: { [speed]: rate, [processor]: { target: '≤ 1/3', atMost: 1 / 3 } },
    async run({ mosquitto, quick }) {
      const { port } = await mosquitto()
      const runs = { mqwire: [], 'MQTT.js': [] }
      for (let round = 0; round < (quick ? 1 : 3); round++) {
        for (const client of Object.keys(runs)) {
          const settings = { port, profile: name, client }
          const run = await runProgram('profiles/run.js', settings, { flags: ['--expose-gc'] })
          if (name === 'stress' && client === 'mqwire' && run.missing + run.twice + run.wrong > 0)
            throw new Error(`${title}: ${JSON.stringify(run)}`)
          runs[client].push(run)
        }
      }
      const of = (client, key) => median(runs[client].map((run) => run[key]))
      const row = (key, figures) => {
        const [mqwire, peer] = [of('mqwire', key), of('MQTT.js', key)]
        return { ratio: mqwire / peer, mqwire, peer, peerName: 'MQTT.js', figures }
      }
      const waits =
        runs.mqwire[0].p50 === undefined
          ? ''
          : `p50 of a publish ${of('mqwire', 'p50').toFixed(0)} ms against ${of('MQTT.js', 'p50').toFixed(0)} ms; `
      return {
        [speed]: { ...row('rate', 'msgs/s'), note: `${waits}${told(runs)}` },
        [processor]: row('processor', 'µs'),
      }
    },
  }
}

const least = (atLeast) => ({ target: `≥ ${atLeast}×`, atLeast })

/** Measurements of this part, in order. */
export const profiles = [
  profile('stress', 'QoS 2, 2,000 publishers, 100 subscribers', least(2.5)),
  profile('fan-in', 'fan-in 20 → 1', least(1.3)),
  profile('fan-out 20', 'fan-out 1 → 20', least(1.3)),
  profile('fan-out 1,000', 'fan-out 1 → 1,000', least(1.3)),
  profile('mesh', 'mesh 20 × 20', least(1.3)),
]
