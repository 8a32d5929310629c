/**
 * Programs that others wrote over MQTT.js, as they are, over `mqwire/compat` on mosquitto, which is restarted while they run: the MQTT transports of
 * NestJS and Moleculer, the MQTT nodes of Node-RED, and async-mqtt. Each requires `mqtt`, and gets a package of that name that is `mqwire/compat`.
 */
import { spawn } from 'node:child_process'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Broker, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { project, removeProjects, requireDist, writeFiles } from '../fixture.js'
import { withFramework } from './fetched.js'

/** A package `mqtt` for all, those too that bring one of their own. */
const alias = `
const Module = require('node:module')
const resolve = Module._resolveFilename
Module._resolveFilename = function (request, ...rest) {
  return resolve.call(this, request === 'mqtt' ? process.env.MQWIRE_AS_MQTT : request, ...rest)
}
`

const common = `
// What a program does: before the broker is restarted, and after it.
const { createInterface } = require('node:readline')
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
exports.run = async (program) => {
  try {
    const { exchange, stop } = await program(process.argv[2])
    const before = await exchange('before')
    console.log('restart')
    await lines.next()
    const after = await exchange('after')
    await stop()
    console.log(JSON.stringify({ before, after, mqtt: require.resolve('mqtt') === process.env.MQWIRE_AS_MQTT }))
    setTimeout(() => process.exit(0), 100)
  } catch (error) {
    console.log(JSON.stringify({ error: \`\${error?.stack || error}\` }))
    process.exit(1)
  }
}
exports.until = async (condition, what) => {
  for (let tries = 0; tries < 400; tries += 1) {
    if (condition()) return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(\`never: \${what}\`)
}
`

const asyncMqtt = `
const { run, until } = require('./common.cjs')
run(async (url) => {
  const mqtt = require('async-mqtt')
  const client = await mqtt.connectAsync(url, { reconnectPeriod: 100 })
  const seen = []
  client.on('message', (topic, payload, packet) => seen.push(\`\${topic} \${payload} \${packet.qos}\`))
  await client.subscribe('async/#', { qos: 2 })
  return {
    async exchange(when) {
      seen.length = 0
      for (const qos of [0, 1, 2]) await client.publish(\`async/\${when}\`, \`\${qos}\`, { qos })
      await until(() => seen.length >= 3, seen)
      return [...seen]
    },
    stop: () => client.end(),
  }
})
`

const moleculer = `
const { run, until } = require('./common.cjs')
run(async (url) => {
  const { ServiceBroker } = require('moleculer')
  const seen = []
  const node = (nodeID) => new ServiceBroker({ nodeID, logger: false, transporter: { type: 'MQTT', options: { host: new URL(url).hostname, port: Number(new URL(url).port), qos: 1, reconnectPeriod: 100 } }, requestTimeout: 1000, retryPolicy: { enabled: true, retries: 5 } })
  const [far, near] = [node('far'), node('near')]
  far.createService({ name: 'math', actions: { add: ({ params }) => params.a + params.b }, events: { 'thing.said': ({ params }) => void seen.push(params.what) } })
  await Promise.all([far.start(), near.start()])
  await near.waitForServices('math', 5000)
  return {
    async exchange(when) {
      seen.length = 0
      // A node has a connection of its own: what the other one asks too early is lost.
      const sum = await near.call('math.add', { a: 2, b: 3 })
      near.emit('thing.said', { what: when })
      await until(() => seen.length >= 1, 'the event')
      return [sum, ...seen]
    },
    stop: () => Promise.all([near.stop(), far.stop()]),
  }
})
`

const nestjs = `
require('reflect-metadata')
const { run, until } = require('./common.cjs')
run(async (url) => {
  const { Module, Controller } = require('@nestjs/common')
  const { NestFactory } = require('@nestjs/core')
  const { Transport, MessagePattern, EventPattern, ClientProxyFactory, Payload } = require('@nestjs/microservices')
  const { firstValueFrom, retry, timeout } = require('rxjs')
  const seen = []
  class Sums {
    add(numbers) { return numbers.reduce((sum, each) => sum + each, 0) }
    said(what) { seen.push(what) }
  }
  const describe = (name, decorator) => { Payload()(Sums.prototype, name, 0); decorator(Sums.prototype, name, Object.getOwnPropertyDescriptor(Sums.prototype, name)) }
  describe('add', MessagePattern('nest/add')); describe('said', EventPattern('nest/said/+'))
  Controller()(Sums)
  class App {}
  Module({ controllers: [Sums] })(App)
  const options = { url, reconnectPeriod: 100, subscribeOptions: { qos: 2 } }
  const app = await NestFactory.createMicroservice(App, { transport: Transport.MQTT, options, logger: false })
  await app.listen()
  const client = ClientProxyFactory.create({ transport: Transport.MQTT, options })
  await client.connect()
  return {
    async exchange(when) {
      seen.length = 0
      await until(() => client.unwrap().connected && app.unwrap().connected, 'two connections')
      // Each has its own: the request may overtake the other's SUBSCRIBE.
      const sum = await firstValueFrom(client.send('nest/add', [1, 2, 3]).pipe(timeout(1000), retry(5)))
      for (const qos of [0, 1, 2]) {
        const { MqttRecordBuilder } = require('@nestjs/microservices')
        await firstValueFrom(client.emit(\`nest/said/\${qos}\`, new MqttRecordBuilder(\`\${when} \${qos}\`).setQoS(qos).build()), { defaultValue: 0 })
      }
      await until(() => seen.length >= 3, \`events: \${seen}\`)
      return [sum, ...seen]
    },
    async stop() { await client.close(); await app.close() },
  }
})
`

const nodeRed = `
const { run, until } = require('./common.cjs')
run(async (url) => {
  const helper = require('node-red-node-test-helper')
  helper.init(require.resolve('node-red'))
  const nodes = require('@node-red/nodes/core/network/10-mqtt.js')
  await new Promise((resolve) => helper.startServer(resolve))
  const flow = [
    { id: 'broker', type: 'mqtt-broker', name: 'b', broker: '127.0.0.1', port: new URL(url).port, clientid: '', autoConnect: true, usetls: false, protocolVersion: '4', keepalive: '60', cleansession: true },
    { id: 'in', type: 'mqtt in', topic: 'red/#', qos: '2', datatype: 'utf8', broker: 'broker', wires: [['hear']] },
    { id: 'out', type: 'mqtt out', topic: '', qos: '', retain: '', broker: 'broker', wires: [] },
    { id: 'hear', type: 'helper' },
  ]
  helper.settings({ mqttReconnectTime: 100 })
  await new Promise((resolve) => helper.load(nodes, flow, resolve))
  const seen = []
  helper.getNode('hear').on('input', (message) => seen.push(\`\${message.topic} \${message.payload} \${message.qos}\`))
  const broker = helper.getNode('broker')
  await until(() => broker.connected, 'a connection')
  return {
    async exchange(when) {
      await until(() => broker.connected, 'a connection')
      seen.length = 0
      for (const qos of [0, 1, 2]) helper.getNode('out').receive({ topic: \`red/\${when}\`, payload: \`\${qos}\`, qos })
      await until(() => seen.length >= 3, \`messages: \${seen}\`)
      return [...seen]
    },
    async stop() { await helper.unload(); await new Promise((resolve) => helper.stopServer(resolve)) },
  }
})
`

const programs: Readonly<
  Record<string, readonly [text: string, arrives: (when: string) => readonly unknown[]]>
> = {
  'async-mqtt': [asyncMqtt, (when) => [0, 1, 2].map((qos) => `async/${when} ${qos} ${qos}`)],
  moleculer: [moleculer, (when) => [5, when]],
  nestjs: [nestjs, (when) => [6, ...[0, 1, 2].map((qos) => `${when} ${qos}`)]],
  'node-red': [nodeRed, (when) => [0, 1, 2].map((qos) => `red/${when} ${qos} ${qos}`)],
}

/** Runs a program to its end; the broker is restarted when it asks for that. */
function runOn(broker: Broker, folder: string, packages: string, name: string): Promise<string> {
  const as = path.join(folder, 'node_modules', 'mqtt', 'index.js')
  const parameters = [
    '--disable-warning=ExperimentalWarning',
    '--require',
    './alias.cjs',
    `${name}.cjs`,
    broker.urls.TCP ?? '',
  ]
  const env = { ...process.env, NODE_PATH: path.join(packages, 'node_modules'), MQWIRE_AS_MQTT: as }
  const child = spawn(process.execPath, parameters, { cwd: folder, env, timeout: 40_000 })
  onTestFinished(() => void child.kill())
  return new Promise((resolve, reject) => {
    let said = ''
    let restarted = false
    const hear = (text: Buffer): void => {
      said += text
      if (restarted || !said.includes('restart\n')) return
      restarted = true
      broker
        .shutDown()
        .then(() => broker.live())
        .then(() => child.stdin.write('go\n'), reject)
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', reject)
    child.on('close', () => resolve(said.trim()))
  })
}

withFramework('programs', (packages) => {
  withMosquitto(['TCP'], () => {
    describe('over mqwire/compat', () => {
      let folder = ''
      beforeAll(async () => {
        await requireDist()
        const texts = Object.entries(programs).map(([name, [text]]) => [`${name}.cjs`, text])
        const mqtt = {
          'node_modules/mqtt/package.json':
            '{ "name": "mqtt", "version": "5.0.0", "main": "index.js" }',
          'node_modules/mqtt/index.js': "module.exports = require('mqwire/compat')",
        }
        folder = await project({
          'alias.cjs': alias,
          'common.cjs': common,
          ...Object.fromEntries(texts),
        })
        await writeFiles(folder, mqtt)
      })
      afterAll(removeProjects)

      it.each(Object.entries(programs))(
        '%s runs as it is, before and after a restart of mosquitto, without a warning',
        async (name, [, arrives]) => {
          const broker = await startMosquitto()
          onTestFinished(() => broker.stop())
          const [restart, last] = (await runOn(broker, folder, packages, name)).split('\n')
          expect([restart, JSON.parse(last ?? '')]).toEqual([
            'restart',
            { before: arrives('before'), after: arrives('after'), mqtt: true },
          ])
        },
      )
    })
  })
})
