/**
 * Asks service/square for the squares of the numbers below COUNT, four at a time, and asks again where no answer came.
 *
 * MQTT_URL says where. It ends when it has all of them.
 */
import { connect, constant } from 'mqwire'
import { print } from './print.js'

const count = Number(process.env.COUNT)
const client = await connect(process.env.MQTT_URL, { reconnect: { backoff: constant(20) } })
let next = 0
let repeats = 0

async function ask(number) {
  for (;;) {
    try {
      const answer = await client.request('service/square', String(number), {
        qos: 1,
        timeout: 500,
      })
      return Number(answer.text())
    } catch (error) {
      // It may have been answered, and the answer lost with the broker: squares do not mind being asked for twice.
      if (error.code !== 'ERR_TIMEOUT' && error.code !== 'ERR_SESSION_LOST') throw error
      repeats += 1
    }
  }
}

async function work() {
  while (next < count) {
    const number = next++
    print({ number, square: await ask(number) })
  }
}

await Promise.all([work(), work(), work(), work()])
await client.disconnect()
print({ state: 'closed', repeats })
