/** Ways to connect that fail: what each error prints. Ports are those of `servers.ts`. */
import { Client, connect } from 'mqwire'

const once = { reconnect: false, connectTimeout: 15_000 }

async function show(title, attempt) {
  try {
    await attempt()
    console.log(`-- ${title}: nothing`)
  } catch (error) {
    console.log(`-- ${title}:`, error)
  }
}

// What cannot be right.
await show("connect('localhost:1883')", () => connect('localhost:1883'))
await show("connect('127.0.0.1:1883')", () => connect('127.0.0.1:1883'))
await show("connect('broker.example')", () => connect('broker.example'))
await show("connect('http://127.0.0.1:1883')", () => connect('http://127.0.0.1:1883'))
await show("connect('mqtt://')", () => connect('mqtt://'))
await show('connect()', () => connect())
await show('connect([])', () => connect([]))
await show("connect({ host: '127.0.0.1', port: 1883 })", () =>
  connect({ host: '127.0.0.1', port: 1883 }),
)
await show('connect(url, 5)', () => connect('mqtt://127.0.0.1:1883', 5))
await show('reconnect: 1000', () => connect('mqtt://127.0.0.1:1883', { reconnect: 1000 }))
await show("reconnect: 'never'", () => connect('mqtt://127.0.0.1:1883', { reconnect: 'never' }))
await show('cleanStart: false', () => connect('mqtt://127.0.0.1:1883', { cleanStart: false }))
await show("keepAlive: '60'", () => connect('mqtt://127.0.0.1:1883', { keepAlive: '60' }))
await show('connectTimeout: -1', () => connect('mqtt://127.0.0.1:1883', { connectTimeout: -1 }))
await show('password: 1234', () =>
  connect('mqtt://127.0.0.1:1883', { username: 'dash', password: 1234 }),
)
await show('will without a topic', () =>
  connect('mqtt://127.0.0.1:1883', { will: { payload: 'gone' } }),
)
await show('will properties on 3.1.1', () =>
  connect('mqtt://127.0.0.1:1883', {
    protocolVersion: 4,
    will: { topic: 'a', payload: 'gone', properties: { contentType: 'text/plain' } },
  }),
)
await show('sessionExpiryInterval on 3.1.1', () =>
  connect('mqtt://127.0.0.1:1883', { protocolVersion: 4, sessionExpiryInterval: 60 }),
)
await show('protocolVersion: 3', () => connect('mqtt://127.0.0.1:1883', { protocolVersion: 3 }))
await show('headers without WebSocket, tls without TLS', async () => {
  await show('headers', () => connect({ url: 'mqtt://127.0.0.1:1883', headers: { a: 'b' } }))
  await show('tls', () => connect({ url: 'mqtt://127.0.0.1:1883', tls: { ca: 'x' } }))
})

// What does not answer as it should.
await show('wrong port', () => connect('mqtt://127.0.0.1:1999', once))
await show('wrong port, WebSocket', () => connect('ws://127.0.0.1:1999/mqtt', once))
await show('all of a list dead', () =>
  connect(['mqtt://127.0.0.1:1999', 'mqtt://127.0.0.1:1998', 'ws://127.0.0.1:8080/mqtt'], once),
)
await show('an HTTP server', () => connect('mqtt://127.0.0.1:8080', once))
await show('an HTTP server, WebSocket', () => connect('ws://127.0.0.1:8080/mqtt', once))
await show('a page that moved, WebSocket', () => connect('ws://127.0.0.1:8080/moved', once))
await show('wrong path', () => connect('ws://127.0.0.1:8083/other', once))
await show('no sub-protocol', () => connect('ws://127.0.0.1:8085/mqtt', once))
await show('a TLS server behind mqtt:', () => connect('mqtt://127.0.0.1:8883', once))
await show('a TLS server behind ws:', () => connect('ws://127.0.0.1:8883/mqtt', once))
await show('a plain server behind mqtts:', () => connect('mqtts://127.0.0.1:1883', once))
await show('a plain server behind wss:', () => connect('wss://127.0.0.1:8083/mqtt', once))
await show('a certificate that nobody signed', () => connect('mqtts://127.0.0.1:8883', once))
await show('a server that says nothing', () =>
  connect('mqtt://127.0.0.1:1887', { ...once, connectTimeout: 200 }),
)
await show('a server that hangs up', () => connect('mqtt://127.0.0.1:1888', once))
await show('credentials() that throws', () =>
  connect('mqtt://127.0.0.1:1883', {
    ...once,
    credentials: () => {
      throw new TypeError('no token')
    },
  }),
)
await show('a server that does not listen', async () => {
  const { listenWebSocket } = await import('mqwire/transport/websocket-node')
  const { createServer } = await import('node:http')
  await listenWebSocket({ server: createServer() }, () => {})
})
await show('after maxAttempts', async () => {
  const client = new Client('mqtt://127.0.0.1:1999', {
    firstConnect: 'wait',
    reconnect: { backoff: () => 1, maxAttempts: 2 },
  })
  await client.connect()
})

// What the server refuses.
for (const code of [
  0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99,
  0x9a, 0x9b, 0x9c, 0x9d, 0x9f,
]) {
  const clientId = `refused-${code}`
  await show(`CONNECT refused with 0x${code.toString(16).toUpperCase()}`, () =>
    connect('mqtt://127.0.0.1:1884', { ...once, clientId }),
  )
}
for (const code of [1, 2, 3, 4, 5]) {
  const options = {
    ...once,
    clientId: `refused-${[0, 0x84, 0x85, 0x88, 0x86, 0x87][code]}`,
    protocolVersion: 4,
  }
  await show(`CONNECT refused with 0x${code} on 3.1.1`, () =>
    connect('mqtt://127.0.0.1:1884', options),
  )
}
await show('all of a list refuse', () =>
  connect(['mqtt://127.0.0.1:1884', 'mqtt://127.0.0.1:1999'], {
    ...once,
    clientId: `refused-${0x86}`,
    username: 'dash',
    password: 'wrong',
  }),
)
