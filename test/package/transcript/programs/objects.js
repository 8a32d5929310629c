/** What `console.log` shows of the things that a program gets into its hands. */
import { Client, connect, MqttError } from 'mqwire'
import { decode, encode } from 'mqwire/wire'

const show = (title, value) => console.log(`-- ${title}:`, value)

const client = await connect('mqtt://127.0.0.1:1883', {
  clientId: 'printed',
  username: 'dash',
  password: 'tweety-5up3r',
})
show('a client', client)

const subscription = await client.subscribe(['objects/+', 'others/#'], { qos: 1 })
show('a subscription', subscription)

const properties = { contentType: 'application/json', userProperties: [['unit', 'celsius']] }
show('a receipt', await client.publish('objects/a', '{"celsius":21.5}', { qos: 1, properties }))
show('a message', await subscription.next({ timeout: 10_000 }))
await client.publish('objects/b', 'x'.repeat(200))
show('a message with a long payload', await subscription.next({ timeout: 10_000 }))
await client.publish('objects/c', Uint8Array.of(0, 1, 2, 0xff))
show('a message of bytes', await subscription.next({ timeout: 10_000 }))

for (const number of [1, 2, 3]) client.post('objects/d', `number ${number}`)
await client.publish('objects/d', 'number 4', { qos: 1 })
const batches = subscription.batches(10)
const { value: batch } = await batches.next()
show('a batch', batch)
await batches.return()

const shown = Promise.withResolvers?.() ?? {}
const seen = new Promise((resolve) => Object.assign(shown, { resolve }))
const handling = await client.listen(
  'objects/e',
  (message) => {
    show('a borrowed message', message)
    show('one that was kept', message.detach())
    shown.resolve(message)
  },
  { lifetime: 'borrowed' },
)
show('a handling', handling)
await client.publish('objects/e', 'lent')
show('a borrowed message, released', await seen)

show('what was negotiated', client.negotiated)
show(
  'a packet',
  decode(
    encode({
      type: 'publish',
      topic: 'a/b',
      payload: new TextEncoder().encode('hi'),
      qos: 1,
      packetId: 7,
    }),
    { from: 'client' },
  ),
)

const refused = await client.publish('denied/a', 'x', { qos: 1 }).catch((error) => error)
show('an error', refused)
show('the error as JSON', JSON.stringify(refused))
show(
  'an error with a cause',
  new MqttError('ERR_CONNECT_FAILED', 'no token', { cause: new TypeError('fetch failed') }),
)
const dead = await connect(['mqtt://127.0.0.1:1999', 'mqtt://127.0.0.1:1998'], {
  reconnect: false,
}).catch((error) => error)
show('an error of a list', dead)
// In a function: where the only line of a program in a stack has no name, Bun shows all lines, whatever the stack says.
function encoded() {
  try {
    return encode({ type: 'publish', topic: '', payload: new Uint8Array() })
  } catch (error) {
    return error
  }
}
show('an error of the codec', encoded())
show(
  'a client that was never connected',
  new Client('mqtt://dash:tweety-5up3r@127.0.0.1:1883', { clientId: 'idle' }),
)

await client.disconnect()
show('a client that was closed', client)
