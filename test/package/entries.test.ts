/** Each public entry of the packed package does its main work. What the build or the packing breaks shows here. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { selfSigned } from '../support/certificates.js'
import {
  entries,
  link,
  linkPeers,
  node,
  project,
  removeProjects,
  requireDist,
  root,
} from './fixture.js'

/** `broker` is a `MemoryBroker`, `here` an endpoint that reaches it. */
const withBroker = `
import { MemoryBroker } from 'mqwire/testing'
const broker = new MemoryBroker()
const here = { url: 'mqtt://here', transport: broker.dial }
`

/** Sends a message over \`client\` to itself, and prints it. */
const echo = `
const echoes = await client.subscribe('echo', { qos: 1 })
await client.publish('echo', 'hello', { qos: 1 })
const message = await echoes.next()
console.log(message.text())
message.ack()
await client.disconnect()
`

const overListener = (listen: string, dial: string, tls = '{}'): string => `${withBroker}
import { connect } from 'mqwire'
const listener = await ${listen}
const transport = ({ url }, options) => ${dial}({ url: new URL(url), tls: ${tls}, socket: {}, headers: {}, protocols: ['mqtt'] }, options)
const client = await connect({ url: listener.url, transport })
${echo}await listener.close()
`

/** A channel of a binary format; `wrong` are bytes that are none of it. */
const packedBy = (format: string, wrong: string): readonly [code: string, output: string] => [
  `${withBroker}
import { connect } from 'mqwire'
import * as mq from 'mqwire/typed'
import { ${format} } from 'mqwire/typed/${format}'
const client = await connect(here)
const frames = mq.channel('frame', ${format}(), { qos: 1 }).on(client)
const subscription = await frames.subscribe({ onInvalid: 'deliver' })
await frames.publish({ at: new Date(5), bytes: Uint8Array.of(1, 2), big: 2n ** 60n })
const { value, message } = await subscription.next()
console.log(value.at.getTime(), value.bytes.length, value.big, message.properties.contentType)
await client.publish('frame', Uint8Array.from(Buffer.from('${wrong}', 'hex')))
console.log((await subscription.next()).error.code)
await subscription.unsubscribe()
await client.disconnect()
console.log(await Promise.resolve().then(() => new Function('return 1')()).catch(({ name }) => name))`,
  `5 2 1152921504606846976n application/${format}\nERR_INVALID_PAYLOAD\nEvalError`,
]

/** By entry: the program, and what it prints. */
const programs: Readonly<Record<string, readonly [code: string, output: string]>> = {
  mqwire: [
    `${withBroker}
import { connect } from 'mqwire'
const served = await broker.serve({ tcp: 0 })
const client = await connect(served.urls[0])
${echo}await broker.close()`,
    'hello',
  ],
  'mqwire/wire': [
    `import { Decoder, encode } from 'mqwire/wire'
const decoder = new Decoder({ from: 'client' })
for (const packet of decoder.push(encode({ type: 'publish', topic: 'a/b', payload: new TextEncoder().encode('c'), properties: { messageExpiryInterval: 5 } })))
  console.log(packet.type, packet.topic, new TextDecoder().decode(packet.payload), packet.properties.messageExpiryInterval)`,
    'publish a/b c 5',
  ],
  'mqwire/auth': [
    `import { connect } from 'mqwire'
import { scramSha256 } from 'mqwire/auth'
import { MemoryBroker, scramServer } from 'mqwire/testing'
const broker = new MemoryBroker({ auth: { 'SCRAM-SHA-256': scramServer((name) => (name === 'ann' ? 'pencil' : undefined)) } })
const here = { url: 'mqtt://here', transport: broker.dial }
const client = await connect(here, { auth: scramSha256({ username: 'ann', password: 'pencil' }) })
console.log(client.state)
await client.disconnect()
console.log(await connect(here, { auth: scramSha256({ username: 'ann', password: 'pen' }) }).catch(({ code }) => code))`,
    'connected\nERR_CONNECT_REFUSED',
  ],
  'mqwire/aws': [
    `import { sigv4 } from 'mqwire/aws'
const sign = sigv4({ region: 'eu-west-1', credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' }, now: () => 0 })
const { url } = await sign({ endpoint: 'wss://x.iot.eu-west-1.amazonaws.com/mqtt', signal: AbortSignal.timeout(5000) })
console.log(url.searchParams.get('X-Amz-Credential'), url.searchParams.get('X-Amz-Signature').length)`,
    'AKIDEXAMPLE/19700101/eu-west-1/iotdevicegateway/aws4_request 64',
  ],
  'mqwire/typed': [
    `${withBroker}
import { connect } from 'mqwire'
import * as mq from 'mqwire/typed'
const client = await connect(here)
const temperatures = mq.channel('plant/{line:number}/temperature', mq.json(), { qos: 1 }).on(client)
const readings = await temperatures.subscribe({})
await temperatures.publish({ line: 3 }, { celsius: 21 })
const { value, params, message } = await readings.next()
console.log(value.celsius, params.line)
message.ack()
const open = mq.operation('valve/{id}/open', mq.number(), mq.text(), { errors: { HOT: mq.json() } })
await open.on(client).serve(({ params: { id } }) => {
  throw open.error('HOT', { celsius: Number(id) })
})
const hot = await open.on(client).call({ id: 80 }, 5).catch((error) => error)
console.log(open.isError(hot, 'HOT'), hot.data.celsius)
const latest = temperatures.latest({}, { limit: 2 })
const full = new Promise((resolve) => latest.subscribe(() => latest.evicted > 0 && resolve()))
for (const line of [1, 2, 3]) await temperatures.publish({ line }, { celsius: line })
await full
console.log([...latest.keys()].join())
const count = mq.operation('count', undefined, mq.number()).on(client)
await count.serve(async function* () { yield 1; yield 2 })
for await (const n of count.stream({ window: 2 })) console.log(n)
await client.disconnect()`,
    '21 3\ntrue 80\nplant/2/temperature,plant/3/temperature\n1\n2',
  ],
  'mqwire/typed/msgpack': packedBy('msgpack', 'dd01c9c380'),
  'mqwire/typed/cbor': packedBy('cbor', '9a01c9c380'),
  'mqwire/asyncapi': [
    `import { Parser } from '@asyncapi/parser'
import { asyncapi } from 'mqwire/asyncapi'
import * as mq from 'mqwire/typed'
const plant = mq.contract({
  temperature: mq.channel('plant/{line}/{n:number}/temperature', mq.json(), { qos: 1, retain: true }),
  log: mq.channel('log/{rest...}', mq.text()),
  control: { setpoint: mq.operation('plant/{line}/setpoint', mq.number(), mq.json()) },
})
const written = asyncapi(plant, {
  info: { title: 'Plant', version: '1.0.0' },
  servers: { here: 'mqtts://broker.example:8883' },
  role: { send: ['temperature'], receive: ['control.setpoint', plant.log] },
})
const { document, diagnostics } = await new Parser().parse(JSON.stringify(written))
for (const { severity, message, path } of diagnostics) if (severity < 2) console.log(severity, message, path.join('/'))
console.log(document?.operations().all().map((operation) => operation.id()).join(' '))
console.log(document?.operations().get('receive.control.setpoint')?.reply()?.channel()?.id())
delete written.channels.log.messages.message
written.channels.log.nonsense = 1
console.log((await new Parser().parse(JSON.stringify(written))).document)`,
    'send.temperature receive.control.setpoint receive.log\ncontrol.setpoint.reply\nundefined',
  ],
  'mqwire/queue': [
    `${withBroker}
import { Client } from 'mqwire'
import { openQueue } from 'mqwire/queue'
import { memoryStore } from 'mqwire/store'
const client = new Client(here)
const queue = await openQueue(client, { store: memoryStore() })
const { delivered } = await queue.publish('jobs/1', 'paint')
console.log(queue.size)
await client.connect()
await delivered
console.log(broker.accepted.map(({ topic }) => topic).join())
await queue.close()
await client.disconnect()`,
    '1\njobs/1',
  ],
  'mqwire/group': [
    `${withBroker}
import { createGroup } from 'mqwire/group'
const group = createGroup({ members: { one: here, two: { url: 'mqtt://there', transport: new MemoryBroker().dial } } })
await group.connect()
const alarms = await group.subscribe('alarms', { qos: 1 })
const { members } = await group.publish('alarms', 'fire', { qos: 1 })
console.log(Object.entries(members).map(([name, { status }]) => name + ' ' + status).join())
for await (const message of alarms) {
  console.log(typeof message.member, message.text())
  break
}
await group.disconnect()`,
    'one fulfilled,two fulfilled\nstring fire',
  ],
  'mqwire/pool': [
    `${withBroker}
import { createPool } from 'mqwire/pool'
const pool = createPool(here, { size: 2, clientId: 'ingest' })
await pool.connect()
await Promise.all([1, 2, 3].map((n) => pool.publish('meters/' + n, 'on', { qos: 1 })))
console.log(broker.clients.size, broker.accepted.length)
await pool.disconnect()`,
    '2 3',
  ],
  'mqwire/tracing': [
    `${withBroker}
import { context, propagation, trace } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { connect } from 'mqwire'
import { tracing } from 'mqwire/tracing'
const exporter = new InMemorySpanExporter()
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
const client = await connect(here)
tracing(client)
${echo}console.log(exporter.getFinishedSpans().length > 0, broker.accepted[0].properties.userProperties.map(([name]) => name).join())`,
    'hello\ntrue traceparent',
  ],
  'mqwire/store': [
    `import { memoryStore } from 'mqwire/store'
const store = memoryStore()
await store.batch([{ type: 'put', key: 'jobs/1', value: new Uint8Array(5) }, { type: 'put', key: 'other', value: new Uint8Array(1) }])
for await (const [key, value] of store.entries({ gt: 'jobs/', lt: 'jobs0' })) console.log(key, value.length)
await store.close()`,
    'jobs/1 5',
  ],
  'mqwire/store/level': [
    `import { levelStore } from 'mqwire/store/level'
const folder = 'level-' + process.pid
const store = await levelStore(folder)
await store.batch([{ type: 'put', key: 'jobs/1', value: new Uint8Array(5) }])
await store.close()
const again = await levelStore(folder)
console.log((await again.get('jobs/1')).length)
await again.close()`,
    '5',
  ],
  'mqwire/store/file': [
    `import { fileStore } from 'mqwire/store/file'
const folder = 'file-' + process.pid
const store = await fileStore(folder)
await store.batch([{ type: 'put', key: 'jobs/1', value: new Uint8Array(5) }])
await store.close()
const again = await fileStore(folder)
console.log((await again.get('jobs/1')).length)
await again.close()`,
    '5',
  ],
  'mqwire/react': [
    `import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { MqttProvider, useCall, useConnectionState, useLatestValues, useMessages, usePublish, useStream, useSubscription } from 'mqwire/react'
import { channel, operation, text } from 'mqwire/typed'
const [level, count] = [channel('level/{id}', text()), operation('count/{id}', undefined, text())]
const Line = () => {
  const { data, isPending } = useCall(count, { id: 1 })
  const states = [useMessages(level), useLatestValues(level, { enabled: false }), useStream(count), useStream(count, { id: 2 })].map((each) => each.isPending)
  usePublish(level)
  return createElement('p', null, [useConnectionState(), useSubscription('a').messages.length, data, isPending, ...states].join(' '))
}
console.log(renderToString(createElement(MqttProvider, { url: 'mqtt://here' }, createElement(Line))))`,
    '<p>idle 0  true true false false true</p>',
  ],
  'mqwire/compat': [
    `${withBroker}
import mqtt from 'mqwire/compat'
const served = await broker.serve({ tcp: 0 })
const client = await mqtt.connectAsync(served.urls[0])
const came = new Promise((resolve) => client.on('message', (topic, payload) => resolve(topic + ' ' + payload)))
await client.subscribeAsync('a/b')
await client.publishAsync('a/b', 'hello')
console.log(await came)
await client.endAsync()
await broker.close()`,
    'a/b hello',
  ],
  'mqwire/transport/tcp': [
    `import { dialTcp, listenTcp } from 'mqwire/transport/tcp'\n${overListener('listenTcp({}, broker.accept)', 'dialTcp')}`,
    'hello',
  ],
  'mqwire/transport/tls': [
    `import { readFileSync } from 'node:fs'
import { listenTcp } from 'mqwire/transport/tcp'
import { dialTls } from 'mqwire/transport/tls'
const { ca, ...tls } = JSON.parse(readFileSync('tls.json', 'utf8'))
${overListener('listenTcp({ tls }, broker.accept)', 'dialTls', '{ ca }')}`,
    'hello',
  ],
  'mqwire/transport/websocket': [
    `import { dialWebSocket } from 'mqwire/transport/websocket'
import { listenWebSocket } from 'mqwire/transport/websocket-node'
globalThis.WebSocket ??= (await import('ws')).WebSocket
${overListener('listenWebSocket({}, broker.accept)', 'dialWebSocket')}`,
    'hello',
  ],
  'mqwire/transport/websocket-node': [
    `import { dialWebSocketNode, listenWebSocket } from 'mqwire/transport/websocket-node'
${overListener('listenWebSocket({}, broker.accept)', 'dialWebSocketNode')}`,
    'hello',
  ],
  'mqwire/transport/unix': [
    `import { tmpdir } from 'node:os'
import { dialUnix, listenUnix } from 'mqwire/transport/unix'
const name = process.platform === 'win32' ? '//./pipe/mqwire-' : tmpdir() + '/mqwire-'
${overListener('listenUnix({ path: name + process.pid }, broker.accept)', 'dialUnix')}`,
    'hello',
  ],
  'mqwire/transport/memory': [
    `${withBroker}
import { connect } from 'mqwire'
import { createMemoryHub } from 'mqwire/transport/memory'
const hub = createMemoryHub({ split: 1 })
hub.listen('broker', broker.accept)
const client = await connect({ url: 'mqtt://here', transport: () => hub.dial('broker') })
${echo}`,
    'hello',
  ],
  'mqwire/transport/message-port': [
    `${withBroker}
import { connect } from 'mqwire'
import { messagePortTransport } from 'mqwire/transport/message-port'
const { port1, port2 } = new MessageChannel()
broker.accept(messagePortTransport(port2))
const client = await connect({ url: 'mqtt://here', transport: async () => messagePortTransport(port1) })
${echo}`,
    'hello',
  ],
  'mqwire/transport/duplex': [
    `${withBroker}
import { connect as dial } from 'node:net'
import { connect } from 'mqwire'
import { duplexTransport } from 'mqwire/transport/duplex'
const served = await broker.serve({ tcp: 0 })
const client = await connect({ url: 'mqtt://here', transport: duplexTransport(() => dial(served.tcp.port, '127.0.0.1')) })
${echo}await broker.close()`,
    'hello',
  ],
  'mqwire/wasm': [
    `${withBroker}
import { connect } from 'mqwire'
import { loadScanner } from 'mqwire/wasm'
const scanner = await loadScanner()
console.log(typeof scanner.frames)
const client = await connect(here, { scanner })
${echo}`,
    'function\nhello',
  ],
  'mqwire/testing': [
    `import { VirtualWorld } from 'mqwire/testing'
const world = new VirtualWorld()
const client = await world.connect('mqtt://here', { clientId: 'pump' })
const mend = world.cut('pump')
await world.pass(3_600_000)
console.log(client.state)
mend()
await world.pass(3_600_000)
console.log(client.state, world.broker.violations.length)
await world.close()`,
    'reconnecting\nconnected 0',
  ],
}

let folder = ''

beforeAll(async () => {
  await requireDist()
  const { cert, key } = selfSigned('here')
  const files = Object.fromEntries(
    Object.entries(programs).map(([entry, [code]]) => [fileOf(entry), code]),
  )
  folder = await project({
    ...files,
    'tls.json': JSON.stringify({ ca: cert, cert, key }),
    'stack.mjs': stack,
  })
  await linkPeers(folder)
  for (const name of ['react-dom', '@opentelemetry/sdk-trace-base', '@asyncapi/parser'])
    await link(folder, name)
})
afterAll(removeProjects)

const fileOf = (entry: string): string => `${entry.replaceAll('/', '-')}.mjs`

describe('each entry of the packed package', () => {
  it('has a program', () => {
    expect(Object.keys(programs).sort()).toEqual([...entries].sort())
  })

  it.each(Object.entries(programs))('%s does its main work', async (entry, [, output]) => {
    const noCode = entry.startsWith('mqwire/typed/')
      ? ['--disallow-code-generation-from-strings']
      : []
    const flags = [
      '--unhandled-rejections=strict',
      '--disable-warning=ExperimentalWarning',
      ...noCode,
    ]
    expect(await node([...flags, fileOf(entry)], folder, 50_000)).toEqual({ code: 0, output })
  })
})

const stack = `
import { connect, MqttError } from 'mqwire'
MqttError.wholeStacks = true
await connect('mqtt://here', { nonsense: 1 }).catch(({ stack }) => console.log(stack))
`

describe('a stack trace of the packed package', () => {
  const steps = async (...flags: string[]): Promise<string[]> => {
    const { output } = await node([...flags, 'stack.mjs'], folder, 50_000)
    return [...output.matchAll(/ at (.+) \(.*\/mqwire\/(\S+):\d+:\d+\)/g)].map(
      ([, name, file]) => `${name} ${file}`,
    )
  }
  const names = (room: string, extension: string): string[] => [
    `parseOptions ${room}/client/options/check-options.${extension}`,
    `new BaseClient ${room}/client/client.${extension}`,
    `new Client ${room}/client/node.${extension}`,
  ]

  it('has the names of the sources', async () => {
    expect(await steps()).toEqual(expect.arrayContaining(names('dist', 'js')))
  })

  it('has the lines of the sources with --enable-source-maps', async () => {
    expect(await steps('--enable-source-maps')).toEqual(expect.arrayContaining(names('src', 'ts')))
    const { output } = await node(['--enable-source-maps', 'stack.mjs'], folder, 50_000)
    const [, file = '', line] = /\/mqwire\/(src\/client\/node\.ts):(\d+)/.exec(output) ?? []
    expect(readFileSync(path.join(root, file), 'utf8').split('\n')[Number(line) - 1]).toContain(
      'class Client',
    )
  })
})
