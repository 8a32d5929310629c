/**
 * Access tokens that run out: a new one is fetched before every attempt to connect, and in time before the one in use ends. The connection that is
 * open then is replaced, and the session kept; or, with AUTH_METHOD, it goes on and only the token is renewed (enhanced authentication).
 *
 *     node examples/small/token-rotation.js    reads rotation/# at MQTT_URL, or mqtt://127.0.0.1:1883; Ctrl-C stops
 *
 * TOKEN_URL, or http://127.0.0.1:8080/token, is where tokens are to be had, in the manner of OAuth 2.0 (client credentials): CLIENT_SECRET is sent,
 * `access_token` and `expires_in` come back. REFRESH_BEFORE, or 60, is how many seconds before its end a token is renewed. AUTH_METHOD is the
 * broker's name for a token in enhanced authentication; without it the token is the password.
 */
import { Client, exponential } from 'mqwire'

const { MQTT_URL, TOKEN_URL, CLIENT_SECRET, REFRESH_BEFORE, AUTH_METHOD } = process.env
let token = ''
let fetched = 0

async function credentials({ signal }) {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: 'token-rotation',
    client_secret: CLIENT_SECRET || 'secret',
  })
  const response = await fetch(TOKEN_URL || 'http://127.0.0.1:8080/token', {
    method: 'POST',
    body,
    signal,
  })
  if (!response.ok) throw new Error(`the token server answers ${response.status}`) // this attempt fails, and another follows
  const { access_token, expires_in } = await response.json()
  token = access_token
  fetched += 1
  console.log(`Token ${fetched} is good for ${expires_in} s`)
  const expiresAt = Date.now() + expires_in * 1000
  return AUTH_METHOD ? { expiresAt } : { username: 'token-rotation', password: token, expiresAt }
}

/** Enhanced authentication in one step: the token, and the broker's yes or no. */
const bearer = {
  method: AUTH_METHOD,
  start: () => token,
  continue() {
    throw new Error('the broker asks for more than a token')
  },
  success(_data, { reauthentication }) {
    if (reauthentication) console.log('The connection goes on with the new token')
  },
}

const client = new Client(MQTT_URL || 'mqtt://127.0.0.1:1883', {
  clientId: 'token-rotation',
  credentials,
  refreshBefore: Number(REFRESH_BEFORE || 60) * 1000,
  auth: AUTH_METHOD ? bearer : undefined,
  reconnect: { backoff: exponential({ min: 200, max: 10_000 }) },
})
client.on('connect', () => console.log(`Connected with token ${fetched}`))
client.on('connecterror', ({ error }) =>
  console.log(`Not connected: ${error.cause?.message ?? error.message}`),
)
client.on(
  'disconnect',
  ({ error, reason = error?.message }) => reason && console.log(`Connection over: ${reason}`),
)
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => client.disconnect())

await client.connect()
await client.listen('rotation/#', (message) => console.log(`${message.topic}: ${message.text()}`), {
  qos: 1,
})

const error = await client.closed
console.log(error === undefined ? 'Stopped.' : `Stopped: ${error.message}`)
process.exitCode = error === undefined ? 0 : 1
