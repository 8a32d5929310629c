/**
 * Questions and answers: one client adds numbers for whoever asks, another one asks. A question that nobody answers ends with ERR_TIMEOUT.
 *
 *     node examples/small/request-response.js    at MQTT_URL, or mqtt://127.0.0.1:1883
 */
import { connect } from 'mqwire'

const url = process.env.MQTT_URL || 'mqtt://127.0.0.1:1883'
const [calculator, client] = await Promise.all([connect(url), connect(url)])

// What the handler returns is the answer.
await calculator.respond('calculator/sum', (request) =>
  String(request.json().reduce((sum, number) => sum + number, 0)),
)

async function ask(topic, ...numbers) {
  try {
    const answer = await client.request(topic, JSON.stringify(numbers), { timeout: 500 })
    console.log(`${topic} of ${numbers.join(', ')}: ${answer.text()}`)
  } catch (error) {
    console.log(`${topic} of ${numbers.join(', ')}: ${error.code}`)
  }
}

await ask('calculator/sum', 1, 2, 3)
await Promise.all([ask('calculator/sum', 20, 22), ask('calculator/sum', 0.5, 0.25)]) // each gets its own answer
await ask('calculator/product', 2, 3)

await client.disconnect()
await calculator.disconnect()
