/**
 * The counters of a client for Prometheus: reads TOPIC, and serves `client.stats()` as text at /metrics.
 *
 *     node examples/small/prometheus.js      reads TOPIC, or #, at MQTT_URL, or mqtt://127.0.0.1:1883; listens on PORT, or 9464; Ctrl-C stops
 *     curl http://127.0.0.1:9464/metrics
 */
import { createServer } from 'node:http'
import { connect } from 'mqwire'

const { MQTT_URL, TOPIC, PORT } = process.env

const client = await connect(MQTT_URL || 'mqtt://127.0.0.1:1883', { stats: true })
await client.listen(TOPIC || '#', () => {}) // something to count

/** What goes up and down; the others count, and only go up. */
const gauges = ['publishesInFlight', 'publishesQueued', 'unread']

/** The lines of one metric: its type, then a line for each value. */
function metric(name, type, samples) {
  const full = `mqwire_${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}${type === 'counter' ? '_total' : ''}`
  return [
    `# TYPE ${full} ${type}`,
    ...samples.map(([labels, value]) => `${full}${labels} ${value}`),
  ]
}

function metrics() {
  const { failures, pingRoundTrip, ...numbers } = client.stats()
  const lines = [
    metric('connected', 'gauge', [['', Number(client.state === 'connected')]]),
    ...Object.entries(numbers).map(([name, value]) =>
      metric(name, gauges.includes(name) ? 'gauge' : 'counter', [['', value]]),
    ),
    metric(
      'failures',
      'counter',
      Object.entries(failures).map(([code, count]) => [`{code="${code}"}`, count]),
    ),
    metric(
      'pingRoundTripSeconds',
      'gauge',
      pingRoundTrip === undefined ? [] : [['', pingRoundTrip / 1000]],
    ),
  ]
  return `${lines.flat().join('\n')}\n`
}

const server = createServer((request, response) => {
  if (request.url !== '/metrics') response.writeHead(404).end('Try /metrics\n')
  else
    response
      .writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
      .end(metrics())
})
server.listen(Number(PORT || 9464), '127.0.0.1', () =>
  console.log(`Serving http://127.0.0.1:${server.address().port}/metrics. Ctrl-C stops.`),
)

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => client.disconnect())

const error = await client.closed
server.close()
server.closeAllConnections()
console.log(error === undefined ? 'Stopped.' : `Stopped: ${error.message}`)
process.exitCode = error === undefined ? 0 : 1
