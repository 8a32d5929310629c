/**
 * SCRAM-SHA-256 against an implementation that is not ours: mochi-mqtt with github.com/xdg-go/scram, built here where there is a Go toolchain.
 *
 * mochi itself knows no mechanism: it hands AUTH packets to hooks, and the hook of `mochi/scram.go` gives them to that library. Where Go is
 * missing, or its modules cannot be had, the tests are left out, with the reason printed.
 */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { scramSha256 } from '../../../src/auth/index.js'
import { Client, type ClientOptions, type MqttError } from '../../../src/client/node.js'
import type { Broker } from '../../real/brokers.js'
import { failure, take, within } from '../../real/waiting.js'
import { identities } from '../../support/certificates.js'
import { buildGo } from './building.js'
import { startMochi } from './mochi.js'

const { folder, missing } = await buildGo('mochi')
if (missing !== undefined) console.warn(`The SCRAM tests on mochi are left out: ${missing}`)

const users = {
  user: 'pencil',
  'a,b=c': 'with, and =',
  'I\u00adX': 'p\u00e4ss \u2168\u00a0\u20ac',
  'e\u0301': '\u5bc6\u7801',
}

/** Spellings of the same, which SASLprep makes one. */
const spelledOtherwise = { IX: 'p\u00e4ss IX \u20ac', '\u00e9': '\u5bc6\u7801' }

const brokers: Broker[] = []
const clients: Client[] = []

/** Gives what makes a client of a broker that was started with these flags. */
async function mochi(
  flags: Readonly<Record<string, string>> = {},
): Promise<(options: ClientOptions) => Client> {
  const given = { users: JSON.stringify(users), ...flags }
  const broker = await startMochi(folder ?? '', 'scram', identities().server, given)
  brokers.push(broker)
  return (options) => {
    const client = new Client(broker.urls.TCP ?? '', { reconnect: false, ...options })
    clients.push(client)
    return client
  }
}

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  for (const broker of brokers.splice(0)) await broker.stop()
})

beforeEach(({ skip }) => skip(missing !== undefined, missing))

async function loggedIn(username: string, password: string, flags = {}): Promise<Client> {
  const client = (await mochi(flags))({ auth: scramSha256({ username, password }) })
  await within(client.connect(), 'connecting')
  return client
}

/** What connecting rejects with. */
const refusal = async (auth: ClientOptions['auth'], flags = {}): Promise<MqttError> =>
  failure((await mochi(flags))({ auth }).connect(), 'connecting')

it.each([...Object.entries(users), ...Object.entries(spelledOtherwise)])(
  '%j logs in, and works',
  async (username, password) => {
    const client = await loggedIn(username, password)
    const subscription = await within(client.subscribe('a', { qos: 1 }), 'subscribing')
    await within(client.publish('a', 'hello', { qos: 1 }), 'publishing')
    const message = await take(subscription)
    expect(message.text()).toBe('hello')
    message.ack()
    await within(client.disconnect(), 'disconnecting')
  },
)

it('more rounds than usual', async () => {
  await loggedIn('user', 'pencil', { iterations: '100000' })
})

it.each([
  ['user', 'pencils'],
  ['nobody', 'pencil'],
])('%s with %s is refused with 0x87', async (username, password) => {
  const error = await refusal(scramSha256({ username, password }))
  expect(error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x87 })
})

it('another method is refused with 0x8C', async () => {
  const error = await refusal({ method: 'NONE', start: () => 'x', continue: () => 'x' })
  expect(error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x8c })
})

it.each([
  ['a server that asks for too few rounds', { iterations: '4095' }],
  ['a server that does not know the password', { lie: 'true' }],
])('%s: ERR_AUTH_FAILED', async (_what, flags) => {
  const error = await refusal(scramSha256({ username: 'user', password: 'pencil' }), flags)
  expect(error).toMatchObject({ code: 'ERR_AUTH_FAILED', fault: 'remote' })
})

it('authenticates again on the open connection, as often as wanted', async () => {
  const client = await loggedIn('user', 'pencil')
  for (let count = 0; count < 3; count += 1)
    await within(client.reauthenticate(), 'the re-authentication')
  await within(client.publish('a', 'still here', { qos: 1 }), 'publishing')
  expect(client.state).toBe('connected')
})
