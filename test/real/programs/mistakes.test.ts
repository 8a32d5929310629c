/**
 * What new users write wrong, as a process that prints its errors: the code, and words that name the way out. Messages that a unit test or the
 * transcripts of `test/package` have are not repeated here, but for one of each warning.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MemoryBroker } from '../../../src/testing/node.js'
import { requireDist, root, run } from '../../package/fixture.js'
import { freePort } from '../../support/servers.js'

const broker = new MemoryBroker({ maximumPacketSize: 1000 })
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  await requireDist()
  const { urls } = await broker.serve({ tcp: 0 })
  env = { ...process.env, MQTT: urls[0], NOBODY: `mqtt://127.0.0.1:${await freePort()}` }
})
afterAll(() => broker.close())

const connected = 'const client = await connect(MQTT)\n'
/** On a connected client, which is disconnected after it. */
const call = (code: string): string => `${connected}${code}\nawait ended()`
/** What data may cause: the program goes on. */
const goesOn = (code: string): string => call(`${code}\nawait pause(50)\nconsole.log('goes on')`)

const mistakes: readonly (readonly [program: string, ...says: string[]])[] = [
  [call(`client.publish('a', null)`), 'ERR_INVALID_OPTION', `not null: '' is an empty payload`],
  [call(`client.publish('a', [1, 2])`), 'JSON.stringify() it', 'Uint8Array.from()'],
  [call(`client.publish('a', new Blob(['x']))`), 'await blob.arrayBuffer()'],
  [call(`client.publish('a', 'x', { contentType: '' })`), 'did you mean properties.contentType?'],
  [
    call(`client.publish('a', 'x', { properties: { userProperties: { a: 'b' } } })`),
    'properties.userProperties',
    'Object.entries()',
  ],
  [call(`client.subscribe(['a', 7])`), 'filters[1] must be a topic filter'],
  [call('client.unsubscribe(7)'), 'ERR_INVALID_OPTION', 'filter must be a string'],
  [`${connected}await client.disconnect({ timeout: '5s' })`, 'timeout must be from 0 to'],
  [
    `await connect('mqtt://user:pa#ss@127.0.0.1')`,
    'ERR_INVALID_BROKER_URL',
    'encodeURIComponent()',
  ],
  [`await connect({ url: 'mqtts://a', tls: { insecure: true } })`, 'the reason, as a string'],
  [`await connect(MQTT, { credentials: {} })`, 'credentials must be a function'],
  [`await connect(MQTT, { logger: 'console' })`, 'ERR_INVALID_OPTION', 'logger must be'],
  ['await connect(NOBODY)', 'ERR_CONNECT_FAILED', 'nobody listens there', '[eval1]'],
  ['new Client(NOBODY).connect()', 'ERR_CONNECT_FAILED', 'nobody listens there', '[eval1]'],
  [goesOn(`client.publish('a/#', 'x')`), 'MQWIRE_PUBLISH_REFUSED', 'wildcard', 'goes on'],
  [
    goesOn(`client.publish('a', 'x'.repeat(2000))`),
    'ERR_PACKET_TOO_LARGE',
    'the server takes 1000',
    'goes on',
  ],
  [
    goesOn(`const mq = await import('mqwire/typed')
const validate = () => ({ issues: [{ message: 'celsius is missing' }] })
const schema = { '~standard': { version: 1, vendor: 'x', validate } }
mq.channel('a', mq.json(schema)).on(client).publish({})`),
    'celsius is missing',
    'goes on',
  ],
  [
    goesOn(`await client.listen('a', () => { throw new TypeError('no such column') })
await client.publish('a', 'x')`),
    'MQWIRE_HANDLER_FAILED',
    'no such column',
    '[eval1]',
    'goes on',
  ],
  [
    `const connect = () => { throw new TypeError('no such column') }
const client = new Client(MQTT, { on: { connect } })
await client.connect()
await client.disconnect()`,
    'MQWIRE_HANDLER_FAILED',
    `'connect'`,
    'no such column',
  ],
  [`new Client(MQTT).publish('a', 'x', { qos: 1 })`, 'MQWIRE_UNSENT', 'client.connect() first'],
  [
    `${connected}client.publish('a', 'x', { qos: 1 })\nprocess.exit()`,
    'MQWIRE_UNSENT',
    'await client.drain() first',
  ],
  [
    `const one = await connect(MQTT, { clientId: 'same' })
one.listen('a', () => {})
const two = await connect(MQTT, { clientId: 'same' })
await pause(50)
await two.disconnect()`,
    'MQWIRE_NOT_CONNECTED',
    'another client has this clientId',
  ],
]

const prelude = `import * as mqwire from 'mqwire'
const { Client } = mqwire
const { MQTT, NOBODY } = process.env
let last
const connect = async (...given) => last = await mqwire.connect(...given)
const pause = (delay) => new Promise((resolve) => setTimeout(resolve, delay))
const ended = () => pause(50).then(() => last.disconnect())
setTimeout(() => process.exit(99), 15_000).unref()
`

it.concurrent.each(mistakes)('%s', async (program, ...says) => {
  // A block, so that a program may have names of its own.
  const code = `${prelude}{\n${program}\n}`
  const args = ['--input-type=module', '--eval', code]
  const ended = await run(process.execPath, args, root, 30_000, env)
  // It ends by itself.
  expect(ended.code).not.toBe(99)
  for (const text of says) expect(ended.output).toContain(text)
})
