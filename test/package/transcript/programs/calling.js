/** Calls that fail: what each error prints. Port 1883 is a server that has everything, 1885 one that has little. */
import { Client, connect } from 'mqwire'
import { decode, encode } from 'mqwire/wire'

async function show(title, attempt) {
  try {
    await attempt()
    console.log(`-- ${title}: nothing`)
  } catch (error) {
    console.log(`-- ${title}:`, error)
  }
}

const client = await connect('mqtt://127.0.0.1:1883', { clientId: 'calling' })
const narrow = await connect('mqtt://127.0.0.1:1885', { clientId: 'narrow', reconnect: false })

// Arguments.
await show("client.on('message')", () => client.on('message', () => {}))
await show("client.on('connect')", () => client.on('connect'))
await show("publish('a/#')", () => client.publish('a/#', 'x'))
await show("publish('a')", () => client.publish('a'))
await show('publish an object', () => client.publish('a', { celsius: 21 }))
await show('publish, { qoS: 1 }', () => client.publish('a', 'x', { qoS: 1 }))
await show('publish, a callback', () => client.publish('a', 'x', () => {}))
await show('publish a topic of 70,000 characters', () => client.publish('a'.repeat(70_000), 'x'))
await show('publish, a property that is wrong', () =>
  client.publish('a', 'x', { properties: { messageExpiryInterval: -1 } }),
)
await show('subscribe()', () => client.subscribe())
await show("subscribe('a#')", () => client.subscribe('a#'))
await show("subscribe({ topic: 'a' })", () => client.subscribe({ topic: 'a' }))
await show("subscribe('$share/a')", () => client.subscribe('$share/a'))
await show("listen('a')", () => client.listen('a'))
await show('connect() again', () => client.connect())
await show('reauthenticate()', () => client.reauthenticate())

// What another subscription has.
await client.subscribe('shared/filter')
await show('noLocal that differs', () => client.subscribe('shared/filter', { noLocal: true }))
await show('subscriptionIdentifier that differs', () =>
  client.subscribe('shared/filter', { properties: { subscriptionIdentifier: 7 } }),
)

// What the server does not have, or forbids.
await show('too large for the server', () => narrow.publish('a', 'x'.repeat(300)))
await show('retain', () => narrow.publish('a', 'x', { retain: true }))
await show('QoS 1', () => narrow.publish('a', 'x', { qos: 1 }))
await show('a shared subscription', () => narrow.subscribe('$share/group/a'))
await show('a filter that is forbidden', () => client.subscribe('denied/a'))
await show('some filters that are forbidden', async () => {
  const { granted } = await client.subscribe(['denied/b', 'a/b'])
  for (const grant of granted) console.log(grant)
})
await show('a topic that is forbidden', () => client.publish('denied/a', 'x', { qos: 1 }))
await show('QoS that was lowered', async () => {
  const lowered = await connect('mqtt://127.0.0.1:1883', { clientId: 'lowered' })
  await lowered.subscribe('a', { qos: 1, requireQos: true }).finally(() => lowered.disconnect())
})

// What ends otherwise.
const subscription = await client.subscribe('quiet')
await show('next() that has waited', () => subscription.next({ timeout: 1 }))
await show('two readers', async () => {
  const first = subscription.next({ timeout: 50 }).catch(() => {})
  await subscription.next().finally(() => first)
})
await show('a stream that acknowledges', () => subscription.readable())
await show('a request without an answer', () => client.request('nobody', 'x', { timeout: 50 }))
await show('an abort', () => client.publish('a', 'x', { signal: AbortSignal.abort() }))
await show('a request that fails there', async () => {
  const responder = await client.respond(
    'fails',
    () => {
      throw new TypeError('a secret of the responder')
    },
    { onError: 'reject' },
  )
  await client.request('fails', 'x', { timeout: 10_000 }).finally(() => responder.unsubscribe())
})
await show('a message that was released', async () => {
  const borrowed = await client.subscribe('borrowed', { lifetime: 'borrowed' })
  await client.publish('borrowed', 'x')
  const message = await borrowed.next({ timeout: 10_000 })
  message.ack()
  console.log(message)
  message.text()
})
await show('a payload that is no JSON', async () => {
  const texts = await client.subscribe('text')
  await client.publish('text', '{ celsius: 21 }')
  const message = await texts.next({ timeout: 10_000 })
  message.json()
})

// The end of the connection.
await show('taken over', async () => {
  const first = new Client('mqtt://127.0.0.1:1883', { clientId: 'twice' })
  await first.connect()
  const ended = first.closed
  const second = await connect('mqtt://127.0.0.1:1883', { clientId: 'twice' })
  const error = await ended
  await second.disconnect()
  throw error
})
await show('the server says goodbye', async () => {
  const leaving = await connect('mqtt://127.0.0.1:1883', { clientId: 'leaving', reconnect: false })
  const ended = leaving.closed
  await leaving.subscribe('goodbye')
  await leaving.publish('goodbye', 'x')
  throw await ended
})
await show('the server is gone', async () => {
  const gone = await connect('mqtt://127.0.0.1:1883', { clientId: 'gone', reconnect: false })
  await gone.publish('cut/gone', 'x', { qos: 1 })
})
await show('publish on a client that was never connected', () =>
  new Client('mqtt://127.0.0.1:1883').publish('a', 'x'),
)
await narrow.disconnect()
await client.disconnect()
await show('publish after disconnect()', () => client.publish('a', 'x'))
await show('subscribe after disconnect()', () => client.subscribe('a'))
await show('connect after disconnect()', () => client.connect())

// The codec.
await show("encode({ type: 'publish', topic: 'a/#' })", () =>
  encode({ type: 'publish', topic: 'a/#', payload: new Uint8Array() }),
)
await show('encode, subscriptionIdentifier', () =>
  encode({
    type: 'publish',
    topic: 'a',
    payload: new Uint8Array(),
    properties: { subscriptionIdentifier: 7 },
  }),
)
await show('encode, QoS 1 without packetId', () =>
  encode({ type: 'publish', topic: 'a', payload: new Uint8Array(), qos: 1 }),
)
await show("encode({ type: 'publsh' })", () => encode({ type: 'publsh' }))
await show('encode()', () => encode())
await show('decode, half a packet', () =>
  decode(Uint8Array.of(0x30, 5, 0, 1, 97), { from: 'client' }),
)
await show('decode, no packet', () => decode(Uint8Array.of(0x00, 0x00), { from: 'server' }))
await show('decode, a packet of the other side', () =>
  decode(Uint8Array.of(0xc0, 0x00), { from: 'server' }),
)
await show('decode without from', () => decode(Uint8Array.of(0xc0, 0x00)))
