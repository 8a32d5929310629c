/**
 * Programs that are wrong, as new users write them, and what must be said of each: the code, and words that name the way out.
 *
 * MQTT and WS are a broker's URLs, GUARDED one of a broker that takes nobody, NOBODY a port where nobody listens.
 */

/** One program. */
export interface Mistake {
  readonly program: string
  /** What it prints, wherever. */
  readonly says: readonly string[]
}

const connected = 'const client = await connect(MQTT)\n'
const ends = '\nawait pause(50)\nawait client.disconnect()'

const mistake = (program: string, ...says: string[]): Mistake => ({ program, says })
/** On a connected client, which is disconnected after it. */
const call = (program: string, ...says: string[]): Mistake =>
  mistake(connected + program + ends, ...says)

export const mistakes: readonly Mistake[] = [
  // Publishing: the program is wrong, so that it ends.
  call(
    `client.publish('a', 'x', (error) => console.log(error))`,
    'ERR_INVALID_OPTION',
    'await the promise',
  ),
  call(`client.publish('a', 'x', { qos: 1 }, () => {})`, 'ERR_INVALID_OPTION', 'await the promise'),
  call(`client.publish(7, 'x')`, 'ERR_INVALID_TOPIC', 'topic must be a string, not number'),
  call(
    `client.publish(undefined, 'x')`,
    'ERR_INVALID_TOPIC',
    'topic must be a string, not undefined',
  ),
  call(`client.publish('a', 21.5)`, 'ERR_INVALID_OPTION', 'payload', 'String()'),
  call(
    `client.publish('a', null)`,
    'ERR_INVALID_OPTION',
    'payload',
    `not null: '' is an empty payload`,
  ),
  call(
    `client.publish('a')`,
    'ERR_INVALID_OPTION',
    'payload',
    `not undefined: '' is an empty payload`,
  ),
  call(`client.publish('a', { celsius: 21 })`, 'ERR_INVALID_OPTION', 'JSON.stringify() it'),
  call(
    `client.publish('a', [1, 2, 3])`,
    'ERR_INVALID_OPTION',
    'JSON.stringify() it',
    'Uint8Array.from()',
  ),
  call(`client.publish('a', new Blob(['x']))`, 'ERR_INVALID_OPTION', 'await blob.arrayBuffer()'),
  call(`client.publish('a', Promise.resolve('x'))`, 'ERR_INVALID_OPTION', 'payload', 'await it'),
  call(
    `client.publish('a', 'x', { qos: '1' })`,
    'ERR_INVALID_OPTION',
    'qos must be 0, 1 or 2, not "1"',
  ),
  call(
    `client.publish('a', 'x', { qos: 3 })`,
    'ERR_INVALID_OPTION',
    'qos must be 0, 1 or 2, not 3',
  ),
  call(
    `client.publish('a', 'x', 1)`,
    'ERR_INVALID_OPTION',
    'options must be an object',
    '{ qos: 1 }',
  ),
  call(
    `client.publish('a', 'x', { retained: true })`,
    'ERR_INVALID_OPTION',
    'did you mean retain?',
  ),
  call(
    `client.publish('a', 'x', { retain: 'yes' })`,
    'ERR_INVALID_OPTION',
    'retain must be true or false',
  ),
  call(
    `client.publish('a', 'x', { contentType: 'text/plain' })`,
    'ERR_INVALID_OPTION',
    'did you mean properties.contentType?',
  ),
  call(
    `client.publish('a', 'x', { properties: { userProperties: { a: 'b' } } })`,
    'ERR_INVALID_OPTION',
    'properties.userProperties',
    'Object.entries()',
  ),
  call(
    `client.publish('a', 'x', { properties: { userProperty: [] } })`,
    'ERR_INVALID_OPTION',
    'userProperties',
  ),
  call(`client.post('a', 'x', { qos: 1 })`, 'ERR_INVALID_OPTION', 'publish()'),
  // Publishing: what data may cause. The program goes on.
  call(
    `client.publish('a/#', 'x')\nawait pause(20)\nconsole.log('goes on')`,
    'MQWIRE_PUBLISH_REFUSED',
    'ERR_INVALID_TOPIC',
    'wildcard',
    'goes on',
  ),
  call(
    `client.publish('', 'x')\nawait pause(20)\nconsole.log('goes on')`,
    'MQWIRE_PUBLISH_REFUSED',
    'ERR_INVALID_TOPIC',
    'must not be empty',
    'goes on',
  ),
  call(
    `client.publish('a', 'x'.repeat(2000))\nawait pause(20)\nconsole.log('goes on')`,
    'MQWIRE_PUBLISH_REFUSED',
    'ERR_PACKET_TOO_LARGE',
    'the server takes 1000',
    'goes on',
  ),
  mistake(
    `const client = new Client(MQTT)\nclient.publish('a', 'x')\nawait pause(20)`,
    'MQWIRE_PUBLISH_REFUSED',
    'ERR_NOT_CONNECTED',
    'await client.connect() first',
  ),
  mistake(
    `const client = new Client(MQTT)\nclient.publish('a', 'x', { qos: 1 })`,
    'MQWIRE_UNSENT',
    'await client.connect() first',
  ),
  mistake(
    `const client = new Client(MQTT)\nawait client.publish('a', 'x', { qos: 1 })`,
    'MQWIRE_UNSENT',
    'await client.connect() first',
  ),
  mistake(
    `${connected}await client.disconnect()\nclient.publish('a', 'x', { qos: 1 })\nawait pause(20)`,
    'MQWIRE_PUBLISH_REFUSED',
    'ERR_CLOSED',
    'new Client',
  ),
  mistake(
    `${connected}client.publish('a', 'x', { qos: 1 })\nprocess.exit()`,
    'MQWIRE_UNSENT',
    'await client.drain() first',
  ),
  mistake(
    `const client = await connect(MQTT, { outbound: { maxQueuedMessages: 1, maxInflight: 1 } })
for (let count = 0; count < 20; count++) client.publish('a', 'x', { qos: 1 })${ends}`,
    'MQWIRE_PUBLISH_REFUSED',
    'ERR_QUEUE_FULL',
    'outbound.maxQueuedMessages',
    'await client.writable',
  ),
  // Connecting.
  mistake(`await connect()`, 'ERR_MISSING_BROKER', 'mqtt://host'),
  mistake(`await connect('localhost:1883')`, 'ERR_INVALID_BROKER_URL', 'no scheme', 'mqtt://host'),
  mistake(`await connect('broker.example')`, 'ERR_INVALID_BROKER_URL', 'no scheme', 'mqtt://host'),
  mistake(
    `await connect('http://127.0.0.1')`,
    'ERR_INVALID_BROKER_URL',
    'no transport for http:',
    'mqtt:',
  ),
  mistake(`await connect('mqtt://127.0.0.1:99999')`, 'ERR_INVALID_BROKER_URL', 'port', '65535'),
  mistake(
    `await connect('mqtt://user:pa#ss@127.0.0.1:1883')`,
    'ERR_INVALID_BROKER_URL',
    'encodeURIComponent()',
  ),
  mistake(`await connect(MQTT, (error, client) => {})`, 'ERR_INVALID_OPTION', 'await the promise'),
  mistake(`await connect(MQTT, {}, () => {})`, 'ERR_INVALID_OPTION', 'await the promise'),
  mistake(`await connect(MQTT, 'me')`, 'ERR_INVALID_OPTION', 'options must be an object'),
  mistake(`await connect({ host: '127.0.0.1', port: 1883 })`, 'ERR_INVALID_OPTION', 'the URL'),
  mistake(
    `await connect(MQTT, { rejectUnauthorized: false })`,
    'ERR_INVALID_OPTION',
    'tls.insecure',
  ),
  mistake(
    `await connect({ url: 'mqtts://127.0.0.1', tls: { rejectUnauthorized: false } })`,
    'ERR_INVALID_OPTION',
    'tls.insecure',
  ),
  mistake(
    `await connect({ url: 'mqtts://127.0.0.1', tls: { insecure: true } })`,
    'ERR_INVALID_OPTION',
    'the reason, as a string',
  ),
  mistake(
    `await connect(MQTT, { keepalive: 60 })`,
    'ERR_INVALID_OPTION',
    'did you mean keepAlive?',
  ),
  mistake(
    `await connect(MQTT, { reconnectPeriod: 1000 })`,
    'ERR_INVALID_OPTION',
    'reconnect.backoff',
  ),
  mistake(
    `await connect(MQTT, { clean: false })`,
    'ERR_INVALID_OPTION',
    'did you mean cleanStart?',
  ),
  mistake(`await connect(MQTT, { cleanStart: false })`, 'ERR_INVALID_OPTION', 'clientId'),
  mistake(
    `await connect(MQTT, { clientId: 7 })`,
    'ERR_INVALID_OPTION',
    'clientId must be a string',
  ),
  mistake(
    `await connect(MQTT, { protocolVersion: '5' })`,
    'ERR_INVALID_OPTION',
    'protocolVersion must be 5, 4 or "auto"',
  ),
  mistake(
    `await connect(MQTT, { credentials: { username: 'me' } })`,
    'ERR_INVALID_OPTION',
    'credentials must be a function',
    'username and password',
  ),
  mistake(`await connect(MQTT, { logger: 'console' })`, 'ERR_INVALID_OPTION', 'logger must be'),
  mistake(
    `await connect(MQTT, { will: { topic: 'gone', message: 'x' } })`,
    'ERR_INVALID_OPTION',
    'will.message',
    'payload',
  ),
  mistake(
    `await connect(MQTT, { on: { message: () => {} } })`,
    'ERR_INVALID_OPTION',
    'subscribe() or listen()',
  ),
  mistake(`await connect({ url: MQTT, headers: { a: 'b' } })`, 'ERR_UNSUPPORTED_OPTION', 'headers'),
  mistake(
    `await connect(\`ws://127.0.0.1:\${TCP_PORT}\`)`,
    'ERR_CONNECT_FAILED',
    'mqtt://127.0.0.1:',
  ),
  mistake(
    `await connect(\`mqtt://127.0.0.1:\${WS_PORT}\`)`,
    'MqttError',
    'ws://127.0.0.1:',
    'WebSocket',
  ),
  mistake(`await connect(\`mqtts://127.0.0.1:\${TCP_PORT}\`)`, 'ERR_', 'mqtt:'),
  mistake(`await connect(WS.replace('/mqtt', '/other'))`, 'ERR_CONNECT_FAILED', 'path?'),
  mistake(
    `await connect(NOBODY)`,
    'ERR_CONNECT_FAILED',
    'ECONNREFUSED',
    'nobody listens there',
    '[eval1]',
  ),
  mistake(
    `await connect(GUARDED, { username: 'me', password: 'wrong' })`,
    'ERR_CONNECT_REFUSED',
    'username, password',
  ),
  mistake(
    `const client = new Client(NOBODY)\nclient.connect()`,
    'ERR_CONNECT_FAILED',
    'nobody listens there',
    '[eval1]',
  ),
  mistake(
    `const one = await connect(MQTT, { clientId: 'same' })\none.listen('a', () => {})\nawait pause(50)
const two = await connect(MQTT, { clientId: 'same' })\nawait pause(50)\nawait two.disconnect()`,
    'MQWIRE_NOT_CONNECTED',
    'another client has this clientId',
  ),
  mistake(
    `const one = await connect(MQTT, { clientId: 'same too' })\nawait connect(MQTT, { clientId: 'same too' })\nawait pause(50)\nawait one.subscribe('a')`,
    'ERR_CLOSED',
    'another client has this clientId',
  ),
  call(`await client.connect()`, 'ERR_ALREADY_CONNECTED', 'reconnect() makes a new connection'),
  // Receiving.
  mistake(
    `const client = new Client(MQTT)\nawait client.subscribe('a')`,
    'MQWIRE_NOT_CONNECTED',
    'await client.connect()',
  ),
  mistake(
    `const client = new Client(MQTT)\nclient.listen('a', () => {})`,
    'MQWIRE_NOT_CONNECTED',
    'await client.connect()',
  ),
  mistake(
    `const client = new Client(MQTT)\nawait client.writable`,
    'MQWIRE_NOT_CONNECTED',
    'await client.connect()',
  ),
  mistake(
    `const client = new Client(MQTT)\nawait client.request('a', 'x', { timeout: 100 })`,
    'ERR_TIMEOUT',
    'connect()',
  ),
  call(
    `client.subscribe('a', (message) => console.log(message))`,
    'ERR_INVALID_OPTION',
    'listen(filters, handler)',
  ),
  call(
    `client.subscribe('a', { qos: 1 }, (message) => console.log(message))`,
    'ERR_INVALID_OPTION',
    'listen(filters, handler)',
  ),
  call(
    `client.listen('a', { qos: 1 }, (message) => console.log(message))`,
    'ERR_INVALID_HANDLER',
    'handler must be a function',
    'listen(filters, handler, options)',
  ),
  call(
    `client.listen('a')`,
    'ERR_INVALID_HANDLER',
    'handler must be a function',
    'listen(filters, handler, options)',
  ),
  call(
    `client.subscribe('a/#/b')`,
    'ERR_INVALID_TOPIC',
    'a/#/b',
    'wildcards alone in their levels, and # at its end',
  ),
  call(`client.subscribe({ topic: 'a' })`, 'ERR_INVALID_OPTION', 'filter'),
  call(`client.subscribe({ 'a': { qos: 1 } })`, 'ERR_INVALID_OPTION', 'filter'),
  call(`client.subscribe(['a', 7])`, 'ERR_INVALID_OPTION', 'filters[1] must be a topic filter'),
  call(`client.subscribe()`, 'ERR_INVALID_OPTION', 'a topic filter'),
  call(`client.on('message', () => {})`, 'ERR_INVALID_OPTION', 'subscribe() or listen()'),
  call(`client.on('close', () => {})`, 'ERR_INVALID_OPTION', 'disconnect, state'),
  call(`client.on('connect')`, 'ERR_INVALID_HANDLER', 'listener must be a function'),
  call(`client.unsubscribe('a', () => {})`, 'ERR_INVALID_OPTION', 'await the promise'),
  call(`client.unsubscribe(7)`, 'ERR_INVALID_OPTION', 'filter must be a string'),
  call(
    `await client.listen('a', () => { throw new TypeError('no such column') })\nawait client.publish('a', 'x')\nawait pause(50)\nconsole.log('goes on')`,
    'MQWIRE_HANDLER_FAILED',
    'no such column',
    '[eval1]',
    'goes on',
  ),
  call(
    `await client.respond('a', () => { throw new TypeError('no such column') })\nawait client.request('a', 'x').catch(() => {})\nconsole.log('goes on')`,
    'MQWIRE_HANDLER_FAILED',
    'no such column',
    'goes on',
  ),
  mistake(
    `const client = await connect(MQTT, { on: { connect: () => { throw new TypeError('no such column') } } })${ends}`,
    'MQWIRE_HANDLER_FAILED',
    `'connect'`,
    'no such column',
  ),
  call(
    `const messages = await client.subscribe('a')\nmessages.next().catch(() => {})\nmessages.next().catch((error) => console.log(error))`,
    'ERR_CONCURRENT_NEXT',
    'one reader',
    'subscribe again',
  ),
  call(
    `const messages = await client.subscribe('a')\nmessages.next(100)`,
    'ERR_INVALID_OPTION',
    'options must be an object',
  ),
  call(`client.request('a', 'x', () => {})`, 'ERR_INVALID_OPTION', 'await the promise'),
  call(`client.reconnect('now')`, 'ERR_INVALID_OPTION', 'options must be an object'),
  // Ending.
  mistake(
    `${connected}await client.disconnect(() => {})`,
    'ERR_INVALID_OPTION',
    'await the promise',
  ),
  mistake(`${connected}await client.disconnect(true)`, 'ERR_INVALID_OPTION', 'destroy()'),
  mistake(
    `${connected}await client.disconnect({ timeout: '5s' })`,
    'ERR_INVALID_OPTION',
    'timeout must be from 0 to',
  ),
  // Typed topics, queues, pools and groups.
  call(
    `const mq = await import('mqwire/typed')
mq.channel('a', mq.json({ '~standard': { version: 1, vendor: 'x', validate: () => ({ issues: [{ message: 'celsius is missing' }] }) } })).on(client).publish({})
await pause(20)\nconsole.log('goes on')`,
    'MQWIRE_PUBLISH_REFUSED',
    'celsius is missing',
    'goes on',
  ),
  call(
    `const mq = await import('mqwire/typed')\nmq.channel('a/{id}', mq.number()).on(client).publish({ id: 'x/y' }, 7)\nawait pause(20)\nconsole.log('goes on')`,
    'MQWIRE_PUBLISH_REFUSED',
    'ERR_INVALID_TOPIC',
    'goes on',
  ),
  call(
    `const mq = await import('mqwire/typed')\nmq.channel('a', mq.number()).on(client).publish(7, () => {})`,
    'ERR_INVALID_OPTION',
    'await the promise',
  ),
  mistake(
    `const { createPool } = await import('mqwire/pool')\nconst pool = createPool(MQTT, { size: 1 })\nawait pool.connect()\npool.publish('a', 'x', () => {})
await pause(50)\nawait pool.disconnect()`,
    'ERR_INVALID_OPTION',
    'await the promise',
  ),
  mistake(
    `const { createGroup } = await import('mqwire/group')\nconst group = createGroup({ members: { one: MQTT } })\nawait group.connect()
group.publish(7, 'x')\nawait pause(50)\nawait group.disconnect()`,
    'topic must be a string, not number',
  ),
]
