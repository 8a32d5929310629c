/** What the broker in memory is given is checked, and the error says what would be right; where it may run; and the client that it is made for. */

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { Client, constant } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/index.js'
import { listenTcp } from '../../src/transport/tcp.js'
import { listenUnix } from '../../src/transport/unix.js'
import { listenWebSocket } from '../../src/transport/websocket-node.js'
import { blank, readSources } from '../rules/code/source.js'
import { bytes, joined, text, world } from './raw-client.js'

const invalid = (message: RegExp) =>
  expect.objectContaining({ code: 'ERR_INVALID_OPTION', message: expect.stringMatching(message) })

const fault = { packet: 'publish', direction: 'in', nth: 1, action: 'drop' }

it.each<[unknown, RegExp]>([
  [null, /options must be an object/],
  [[], /options must be an object/],
  [{ keepalive: 3 }, /'keepalive' is unknown/],
  [{ autenticate: () => true }, /'autenticate' is unknown; did you mean 'authenticate'/],
  [{ maxQueuedMessage: 3 }, /did you mean 'maxQueuedMessages'/],
  [{ authenticate: 'x' }, /authenticate must be a function, not a string/],
  [{ authorizePublish: true }, /authorizePublish must be a function, not true/],
  [{ authorizeSubscribe: {} }, /authorizeSubscribe must be a function, not an object/],
  [{ authorizeDelivery: 1 }, /authorizeDelivery must be a function, not 1/],
  [{ intercept: null }, /intercept must be a function, not null/],
  [{ random: 4 }, /random must be a function/],
  [{ protocolVersions: [3] }, /protocolVersions must be 5 or 4, not 3/],
  [{ protocolVersions: [] }, /protocolVersions must be an array/],
  [{ protocolVersions: 5 }, /protocolVersions must be an array/],
  [{ responseInformation: 5 }, /responseInformation must be a string or a function, not 5/],
  [{ clock: {} }, /clock must be an object with the methods now and setTimer/],
  [{ auth: [] }, /auth must be an object/],
  [{ auth: { m: {} } }, /auth\.m must be an object with the methods start and continue/],
  [{ auth: { m: { start: () => ({}) } } }, /auth\.m must be/],
  [{ connectTimeout: -1 }, /connectTimeout must be an integer from 0 to/],
  [{ hookTimeout: '5' }, /hookTimeout must be an integer from 0 to \d+, not a string/],
  [{ maxRetained: Number.NaN }, /maxRetained must be an integer from 0 to \d+, not NaN/],
  [{ receiveMaximum: 0 }, /receiveMaximum must be an integer from 1/],
  [{ maxInflight: 65_536 }, /maxInflight must be an integer from 1 to 65535, not 65536/],
  [{ maximumQoS: true }, /maximumQoS must be an integer from 0 to 2/],
  [{ serverKeepAlive: 1.5 }, /serverKeepAlive must be an integer from 0 to 65535/],
  [{ queueQoS0: 'yes' }, /queueQoS0 must be a boolean, not a string/],
  [{ overflow: 'drop' }, /overflow must be 'drop-newest' or 'drop-oldest', not 'drop'/],
  [{ faults: {} }, /faults must be an array/],
  [{ faults: [null] }, /fault must be an object/],
  [{ faults: [{ ...fault, action: 'lose' }] }, /fault\.action: 'lose' is unknown/],
  [{ faults: [{ ...fault, action: 'dorp' }] }, /did you mean 'drop'/],
  [{ faults: [{ ...fault, action: 'reply' }] }, /'reply' is unknown; it may be drop, delay, /],
  [{ faults: [{ ...fault, action: {} }] }, /fault\.action\.reasonCode must be an integer/],
  [
    { faults: [{ ...fault, action: { reasonCode: 300 } }] },
    /fault\.action\.reasonCode must be an integer from 0 to 255/,
  ],
  [{ faults: [{ ...fault, action: { replace: 5 } }] }, /fault\.action\.replace must be a function/],
  [
    { faults: [{ ...fault, packet: 'pubish' }] },
    /fault\.packet: 'pubish' is unknown; did you mean 'publish'/,
  ],
  [{ faults: [{ ...fault, direction: 'up' }] }, /fault\.direction must be 'in' or 'out', not 'up'/],
  [{ faults: [{ ...fault, nth: 0 }] }, /fault\.nth.* must be an integer from 1/],
  [{ faults: [{ ...fault, nth: 'all' }] }, /fault\.nth/],
  [{ faults: [{ ...fault, delay: -5 }] }, /fault\.delay must be an integer/],
  [{ faults: [{ ...fault, clientId: 5 }] }, /fault\.clientId must be a string/],
  [{ faults: [{ ...fault, count: 5 }] }, /'count' is unknown/],
])('%j', (options, message) => {
  expect(() => new MemoryBroker(options as never)).toThrow(invalid(message))
})

it('a fault that is added later is checked as well', () => {
  expect(() => world().broker.faults.add({ ...fault, action: 'explode' } as never)).toThrow(
    invalid(/'explode' is unknown/),
  )
})

it('one that is undefined is not there', () => {
  expect(() => new MemoryBroker({ authenticate: undefined, maxLog: undefined })).not.toThrow()
})

describe('calls', () => {
  const { broker } = world()

  it.each<[keyof MemoryBroker, unknown[], RegExp]>([
    ['on', ['foo', () => undefined], /event: 'foo' is unknown; it may be connect, disconnect/],
    ['on', ['conect', () => undefined], /did you mean 'connect'/],
    ['on', ['publish', undefined], /listener must be a function/],
    ['publish', [], /publish must be an object/],
    ['publish', [{ topic: 't', payload: 5 }], /payload must be a string or a Uint8Array, not 5/],
    ['publish', [{ topic: 't', payload: null }], /payload must be/],
    ['publish', [{ topic: 't', payload: [1] }], /payload must be/],
    ['publish', [{ topic: 't', retain: 1 }], /retain must be a boolean/],
    ['publish', [{ topci: 't' }], /did you mean 'topic'/],
    ['restart', [], /restart must be an object/],
    ['restart', [{ keepSession: true }], /did you mean 'keepSessions'/],
    ['restart', [{ keepSessions: 1 }], /keepSessions must be a boolean/],
    ['connect', [{ latence: 5 }], /did you mean 'latency'/],
  ])('%s of %j', (name, given, message) => {
    const call = broker[name] as (...given: unknown[]) => unknown
    expect(() => call.apply(broker, given)).toThrow(invalid(message))
    expect([broker.retained.size, broker.clients.size]).toEqual([0, 0])
  })

  it('publish with a QoS or a topic that cannot be', () => {
    const publish = (given: object) => () => broker.publish({ topic: 't', ...given })
    expect(publish({ qos: 3 })).toThrow(/qos/)
    for (const topic of [undefined, 'a/+']) expect(publish({ topic })).toThrow(/topic/)
    expect(publish({ properties: { responseTopic: '#' } })).toThrow(/responseTopic/)
  })

  it.each<[(options: never, accept: () => void) => Promise<unknown>, unknown, RegExp]>([
    [listenTcp, { prot: 1 }, /listenTcp: 'prot' is unknown; did you mean 'port'/],
    [listenTcp, 1883, /listenTcp must be an object/],
    [listenWebSocket, { paht: '/' }, /did you mean 'path'/],
    [listenUnix, { paht: '/x' }, /did you mean 'path'/],
  ])('%o of %j', async (listen, given, message) => {
    await expect(listen(given as never, () => undefined)).rejects.toEqual(invalid(message))
  })
})

it('what publish was given: may be written over afterwards, properties included', async () => {
  const { client, broker } = await joined()
  const [payload, correlationData] = [bytes('before'), bytes('mine')]
  const userProperties: [string, string][] = [['a', 'b']]
  const properties = { correlationData, userProperties, contentType: 'text' }
  broker.publish({ topic: 't', payload, retain: true, properties })
  for (const each of [payload, correlationData]) each.fill(0)
  userProperties.push(['more', 'more'])
  properties.contentType = 'changed'
  await client.subscribe('t')
  const [message] = client.publishes
  if (message === undefined) throw new Error('nothing came')
  const { correlationData: kept, ...rest } = message.properties
  expect([text(message.payload), text(kept ?? new Uint8Array(0))]).toEqual(['before', 'mine'])
  expect(rest).toEqual({ userProperties: [['a', 'b']], contentType: 'text' })
})

const folder = new URL('../../src/testing/broker/', import.meta.url)
const sources = [...readSources()].filter(([file]) => file.startsWith('testing/broker/'))

it('the broker: can be bundled for a browser, and keeps no process alive while it waits', async () => {
  const program = `
    import { encode } from '../../wire/encode.ts'
    import { MemoryBroker } from './broker.ts'
    const broker = new MemoryBroker()
    const will = { topic: 'w', properties: { willDelayInterval: 500 } }
    const connect = (clientId) => {
      const transport = broker.connect()
      transport.open({ chunk() {}, drain() {}, closed() {}, buffer: () => new Uint8Array(9), read() {} })
      transport.write(encode({ type: 'connect', clientId, keepAlive: 600, properties: { sessionExpiryInterval: 600 }, will }))
      return transport
    }
    const say = () => console.log([...broker.sessions.values()].map(({ clientId, connected }) => clientId + ' ' + connected).join())
    broker.on('connect', ({ client }) => client.clientId === 'leaves' && leaves.destroy())
    broker.on('disconnect', say)
    broker.connect()
    connect('stays')
    const leaves = connect('leaves')
  `
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: fileURLToPath(folder), loader: 'ts' },
    bundle: true,
    platform: 'browser',
    format: 'esm',
    write: false,
  })
  const code = outputFiles[0]?.text ?? ''
  expect(
    execFileSync(process.execPath, ['--input-type=module', '-'], {
      input: code,
      encoding: 'utf8',
      timeout: 10_000,
    }),
  ).toBe('stays true,leaves false\n')
})

it('the broker: uses no name that browsers do not have, and no time or chance but its clock', () => {
  for (const [name, code] of sources) {
    const words = blank(code).match(
      /\b(?:Buffer|process|setImmediate|require|global|Date|Math\.random|setTimeout|setInterval|performance)\b/g,
    )
    expect([name, words ?? []]).toEqual([
      name,
      name === 'testing/broker/common/clock.ts' ? ['performance', 'setTimeout'] : [],
    ])
  }
})

it('dial heeds its signal', async () => {
  const broker = new MemoryBroker()
  await expect(broker.dial({}, { signal: AbortSignal.abort(new Error('late')) })).rejects.toThrow(
    'late',
  )
})

it('a service is tested against a broker that restarts', async () => {
  const broker = new MemoryBroker()
  const client = new Client(
    { url: 'mqtt://test', transport: broker.dial },
    { clientId: 'service', cleanStart: false, reconnect: { backoff: constant(10) } },
  )
  await client.connect()
  const jobs = await client.subscribe('jobs/#', { qos: 1 })
  // The second job is taken over, its acknowledgement is lost with the connection.
  broker.faults.add({ packet: 'puback', direction: 'out', nth: 2, action: 'restart-keep' })
  for (const job of ['paint', 'polish']) await client.publish('jobs/1', job, { qos: 1 })
  const texts: string[] = []
  while (texts.length < 3) {
    const message = await jobs.next({ timeout: 5000 })
    texts.push(message?.text() ?? '')
    message?.ack()
  }
  expect(texts).toEqual(['paint', 'polish', 'polish'])
  expect(broker.accepted.map(({ dup }) => dup)).toEqual([false, false, true])
  expect(broker.violations).toEqual([])
  await client.disconnect()
  expect(broker.sessions.get('service')).toMatchObject({ connected: false, queued: 0, inflight: 0 })
  broker.close()
})

it('a client that reads nothing holds up no other', async () => {
  const broker = new MemoryBroker()
  const connected = async (clientId: string): Promise<Client> => {
    const client = new Client(
      { url: 'mqtt://test', transport: broker.dial },
      { clientId, receiveMaximum: 4 },
    )
    await client.connect()
    return client
  }
  const [stalled, other] = [await connected('stalled'), await connected('other')]
  const unread = await stalled.subscribe('a', { qos: 1 })
  const read = await other.subscribe('a', { qos: 1 })
  const onReceive = await other.subscribe('b', { qos: 1, ack: 'on-receive' })
  const sender = await connected('sender')
  for (let number = 0; number < 50; number++)
    for (const topic of ['a', 'b']) await sender.publish(topic, String(number), { qos: 1 })
  for (let number = 0; number < 50; number++)
    expect((await read.next({ timeout: 5000 }))?.text()).toBe(String(number))
  for (let number = 0; number < 50; number++)
    expect((await onReceive.next({ timeout: 5000 }))?.text()).toBe(String(number))
  expect(unread.size).toBe(4)
  for (const client of [stalled, other, sender]) await client.disconnect({ timeout: 0 })
  broker.close()
})
