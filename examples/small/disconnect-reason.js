/**
 * Goodbyes with a reason. Ours, at SIGINT: maintenance, in the words of MQTT 5.0, with the will published. The server's: whatever it says.
 *
 *     node examples/small/disconnect-reason.js    at MQTT_URL, or mqtt://127.0.0.1:1883; Ctrl-C says goodbye
 *     mosquitto_sub -t goodbye/status             shows the will
 */
import { connect, printable } from 'mqwire'

const url = process.env.MQTT_URL || 'mqtt://127.0.0.1:1883'

const client = await connect(url, { will: { topic: 'goodbye/status', payload: 'gone', qos: 1 } })

// Comes before the 'disconnect' event. Some reasons end the client, others make it try again or elsewhere.
client.on('serverdisconnect', ({ error }) => {
  const why = error.reasonString === undefined ? '' : `: ${printable(error.reasonString)}` // text of a stranger
  console.log(
    `The server says goodbye, 0x${error.reasonCode.toString(16)} ${error.reasonName}${why}`,
  )
})

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    client.disconnect({
      reasonCode: 0x04,
      reasonString: 'maintenance',
      userProperties: [['back', 'in an hour']],
    }) // 0x04: publish the will
  })
}

console.log(`Connected as ${client.clientId}. Ctrl-C says goodbye.`)
const error = await client.closed
console.log(error === undefined ? 'Said goodbye.' : `Ended: ${error.code}`)
process.exitCode = error === undefined ? 0 : 1
