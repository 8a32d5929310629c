/** Programs that were written against the types of MQTT.js compile after a change of their import, with the oldest and the newest compiler. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  compilers,
  link,
  node,
  project,
  removeProjects,
  requireDist,
  writeFiles,
} from '../package/fixture.js'

beforeAll(requireDist)
afterAll(removeProjects)

/** A program that imports the default, and one that imports names. */
const byDefault = `
import mqtt from 'FROM'
const options: mqtt.IClientOptions = {
  clientId: 'me', clean: false, keepalive: 30, username: 'u', password: Buffer.from('p'), protocolVersion: 5, reconnectPeriod: 1000,
  connectTimeout: 5000, rejectUnauthorized: false, ca: [Buffer.from('x')], resubscribe: true, queueQoSZero: true, manualConnect: false,
  will: { topic: 'gone', payload: Buffer.from('x'), qos: 1, retain: false, properties: { willDelayInterval: 1 } },
  properties: { sessionExpiryInterval: 10, receiveMaximum: 5, userProperties: { a: ['1', '2'], b: '3' } },
  servers: [{ host: 'a', port: 1883, protocol: 'mqtt' }], wsOptions: { headers: { a: 'b' } }, transformWsUrl: (url) => url,
}
const client: mqtt.MqttClient = mqtt.connect('mqtt://h', options)
const other: InstanceType<typeof mqtt.Client> | undefined = undefined
client.on('connect', (packet) => console.log(packet.sessionPresent, packet.properties?.assignedClientIdentifier))
client.on('message', (topic, payload, packet) => {
  console.log(topic.length, payload.toString('utf8'), payload.readUInt8(0), packet.qos, packet.properties?.userProperties?.['a'])
})
client.once('error', (error) => console.log(error.message))
client.on('disconnect', (packet) => console.log(packet.reasonCode)).on('close', () => undefined).on('end', () => undefined)
client.on('reconnect', () => undefined).on('offline', () => undefined).on('packetsend', (packet) => console.log(packet.cmd))
client.subscribe('a', (error, granted) => console.log(error?.message, granted?.[0]?.qos))
client.subscribe(['a', 'b'], { qos: 1 }, (error, granted, packet) => console.log(error, granted?.map(({ topic }) => topic), packet?.granted))
client.subscribe({ a: { qos: 1 }, b: { qos: 2, nl: true, rap: true, rh: 1 } })
client.publish('a', 'x')
client.publish('a', Buffer.from('x'), { qos: 1, retain: true, properties: { contentType: 'text' } }, (error, packet) => console.log(error, packet?.messageId))
client.publish('a', 'x', (error) => console.log(error))
client.unsubscribe(['a'], (error) => console.log(error))
client.end(false, {}, () => console.log(client.connected, client.reconnecting, client.disconnecting, client.options.clientId, other))
client.end(true)
client.end(() => undefined)
client.reconnect()
client.removeAllListeners('message')
`

const byName = `
import { connect, connectAsync, MqttClient, type IClientOptions, type IClientPublishOptions, type IPublishPacket, type ISubscriptionGrant, type OnMessageCallback, type IClientSubscribeOptions } from 'FROM'
import * as all from 'FROM'
class Sensor {
  private client: MqttClient | undefined
  private readonly listener: OnMessageCallback = (topic: string, payload: Buffer, packet: IPublishPacket) => {
    console.log(topic, payload.length, packet.retain, JSON.parse(payload.toString()))
  }
  async open(url: string, options: IClientOptions): Promise<ISubscriptionGrant[]> {
    this.client = await connectAsync(url, options)
    this.client.on('message', this.listener)
    const how: IClientSubscribeOptions = { qos: 1 }
    return this.client.subscribeAsync(['a/#'], how)
  }
  async send(text: string, options: IClientPublishOptions = { qos: 1 }): Promise<void> {
    const packet = await this.client?.publishAsync('a', text, options)
    console.log(packet?.cmd)
  }
  async close(): Promise<void> {
    this.client?.off('message', this.listener)
    await this.client?.unsubscribeAsync('a/#')
    await this.client?.endAsync()
  }
}
const made: MqttClient = connect({ host: 'h', port: 1883, protocol: 'mqtt' })
made.handleMessage = (packet, callback) => { console.log(packet.topic); callback() }
console.log(new Sensor(), made, all.connect('mqtt://h') instanceof all.MqttClient)
`

const programs = (from: string) => ({
  'default.ts': byDefault.replaceAll('FROM', from),
  'names.ts': byName.replaceAll('FROM', from),
})

const refused = `
import mqtt from 'mqwire/compat'
mqtt.connect('mqtt://h', { incomingStore: {} })
mqtt.connect('mqtt://h', { socksProxy: 'x' })
mqtt.connect('mqtt://h').publish('a', 'x', { ttl: 5 })
mqtt.connect('mqtt://h').removeOutgoingMessage(1)
`

const inBrowser = `
import mqtt from 'mqwire/compat'
mqtt.connect('wss://h').on('message', (topic, payload) => console.log(topic, payload.byteLength, payload.subarray(1) satisfies Uint8Array))
`

const settings = {
  target: 'es2022',
  strict: true,
  skipLibCheck: true,
  noEmit: true,
  module: 'nodenext',
  moduleResolution: 'nodenext',
  esModuleInterop: true,
}

async function compile(
  files: Readonly<Record<string, string>>,
  compiler: string,
  inNode = true,
): Promise<string> {
  const folder = await project(files)
  for (const name of inNode
    ? ['@types/node', 'undici-types', '@types/ws', 'mqtt', 'mqtt-packet', 'readable-stream', 'ws']
    : [])
    await link(folder, name).catch(() => undefined)
  const lib = ['es2022', 'dom', ...(compiler === compilers[0]?.[1] ? [] : ['esnext.disposable'])]
  const compilerOptions = { ...settings, lib, types: inNode ? ['node'] : [] }
  await writeFiles(folder, {
    'tsconfig.json': JSON.stringify({ compilerOptions, include: ['*.ts'] }),
  })
  return (await node([compiler, '-p', folder], folder)).output
}

describe.each(compilers)('with TypeScript %s', (version, compiler) => {
  if (version === '7')
    it('the programs compile against MQTT.js', async () => {
      expect(await compile(programs('mqtt'), compiler)).toBe('')
    })

  it('the programs compile with their import changed, and with nothing else', async () => {
    expect(await compile(programs('mqwire/compat'), compiler)).toBe('')
  })

  it('without the types of Node, payloads are Uint8Array', async () => {
    expect(await compile({ 'page.ts': inBrowser }, compiler, false)).toBe('')
  })

  it('what is not carried over does not compile', async () => {
    const said = await compile({ 'refused.ts': refused }, compiler)
    for (const name of ['incomingStore', 'socksProxy', 'ttl', 'removeOutgoingMessage'])
      expect(said).toContain(`'${name}'`)
    expect(said.match(/^refused\.ts/gm)).toHaveLength(4)
  })
})
