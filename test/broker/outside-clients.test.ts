/** The broker in memory on sockets, seen by clients of others: MQTT.js over TCP and WebSocket, mosquitto's over TCP, on 5.0 and 3.1.1. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join as joined } from 'node:path'
import mqtt, { type IClientOptions, type IPublishPacket, type MqttClient } from 'mqtt'
import { afterEach, describe, expect, it } from 'vitest'
import type { BrokerEvents, MemoryBroker, MemoryBrokerOptions } from '../../src/testing/index.js'
import { MemoryBroker as ServedBroker } from '../../src/testing/node.js'
import { within } from '../real/waiting.js'

let broker: ServedBroker
let urls: Readonly<Record<'TCP' | 'WebSocket', string>>
const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(options: MemoryBrokerOptions = {}): Promise<void> {
  broker = new ServedBroker(options)
  const { tcp, ws } = await broker.serve({ tcp: 0, ws: 0 })
  urls = { TCP: tcp?.url ?? '', WebSocket: ws?.url ?? '' }
  const made = broker
  ends.push(() => made.close())
}

function next<K extends keyof BrokerEvents>(type: K): Promise<BrokerEvents[K]> {
  const event = new Promise<BrokerEvents[K]>((resolve) => {
    const stop = (broker as MemoryBroker).on(type, (event) => {
      stop()
      resolve(event)
    })
  })
  return within(event, type)
}

const numbers = Array.from({ length: 20 }, (_none, index) => String(index))

describe.each([
  ['TCP', 5],
  ['WebSocket', 5],
  ['TCP', 4],
  ['WebSocket', 4],
] as const)('MQTT.js over %s, protocol level %i', (transport, protocolVersion) => {
  function dial(options: IClientOptions): MqttClient {
    const all = { protocolVersion, reconnectPeriod: 0, ...options }
    const client = mqtt.connect(urls[transport], all)
    client.on('error', () => undefined)
    ends.push(() => client.end(true))
    return client
  }

  function happens<T extends unknown[]>(client: MqttClient, event: string): Promise<T> {
    const came = new Promise<T>((resolve) => {
      client.once(event as 'close', (...values: unknown[]) => resolve(values as T))
    })
    return within(came, event)
  }

  async function join(options: IClientOptions = {}) {
    const client = dial(options)
    const messages: [text: string, packet: IPublishPacket][] = []
    client.on('message', (topic, payload, packet) => messages.push([`${topic} ${payload}`, packet]))
    const [connack] = await happens<[{ sessionPresent: boolean; properties?: object }]>(
      client,
      'connect',
    )
    const got = (...texts: string[]) =>
      expect.poll(() => messages.map(([text]) => text)).toEqual(texts)
    return Object.assign(client, { connack, messages, got })
  }

  it('publishes and receives at each QoS in order, keeps a message, and unsubscribes', async () => {
    await start()
    const [sender, receiver] = [await join(), await join()]
    await sender.publishAsync('events/kept', 'x', { qos: 1, retain: true })
    await receiver.subscribeAsync('events/+', { qos: 2 })
    for (const qos of [0, 1, 2] as const)
      await Promise.all(numbers.map((text) => sender.publishAsync(`events/${qos}`, text, { qos })))
    const texts = [0, 1, 2].flatMap((qos) => numbers.map((text) => `events/${qos} ${text}`))
    await receiver.got('events/kept x', ...texts)
    await receiver.unsubscribeAsync('events/+')
    expect([broker.publish({ topic: 'events/a' }), broker.violations]).toEqual([false, []])
  })

  it('is back in its session after a restart: QoS 1 and 2 arrive, QoS 2 once', async () => {
    await start()
    const properties = protocolVersion === 5 ? { properties: { sessionExpiryInterval: 60 } } : {}
    const client = await join({ clientId: 'a', clean: false, ...properties, reconnectPeriod: 20 })
    await client.subscribeAsync('t', { qos: 2 })
    broker.faults.add({ packet: 'pubrec', direction: 'out', nth: 2, action: 'restart-keep' })
    await Promise.all(numbers.map((text) => client.publishAsync('t', text, { qos: 2 })))
    await expect
      .poll(() => client.messages.map(([text]) => text).sort())
      .toEqual(numbers.map((text) => `t ${text}`).sort())
    expect(broker.accepted).toHaveLength(numbers.length)
    // MQTT.js repeats without the flag.
    const texts = new Set(broker.violations.map(({ text }) => text))
    expect([...texts].filter((text) => !text.includes('MQTT-3.3.1-1'))).toEqual([])
  })

  it('has a will, which a goodbye takes back; is taken over, and refused', async () => {
    await start({ authenticate: ({ username }) => username !== 'no' })
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 1 as const, retain: false }
    const watcher = await join()
    await watcher.subscribeAsync('will')
    await (await join({ clientId: 'polite', will })).endAsync()
    const older = await join({ clientId: 'same', will })
    const closed = happens(older, 'close')
    await join({ clientId: 'same' })
    await closed
    await watcher.got('will gone')
    const [error] = await happens<[{ code: number }]>(dial({ username: 'no' }), 'error')
    expect(error.code).toBe(protocolVersion === 5 ? 0x87 : 5)
  })

  if (protocolVersion !== 5 || transport !== 'TCP') return

  it('learns the limits, carries properties both ways, and goes through an exchange', async () => {
    const limits = { receiveMaximum: 7, topicAliasMaximum: 4, serverKeepAlive: 33 }
    const start0 = (data: Uint8Array | undefined) => ({ data: data ?? new Uint8Array(0) })
    await start({ ...limits, auth: { plain: { start: start0, continue: () => ({}) } } })
    const exchange = { authenticationMethod: 'plain', authenticationData: Buffer.from('secret') }
    const client = await join({ clientId: '', properties: exchange })
    const assigned = { assignedClientIdentifier: 'auto-1' }
    expect(client.connack.properties).toMatchObject({ ...limits, ...exchange, ...assigned })
    await client.subscribeAsync('t', { qos: 1, properties: { subscriptionIdentifier: 12 } })
    const properties = {
      payloadFormatIndicator: true,
      messageExpiryInterval: 600,
      contentType: 'text/plain',
      responseTopic: 'back',
      correlationData: Buffer.from([1, 2]),
      userProperties: { a: ['1', '2'], b: '3' },
    }
    await client.publishAsync('t', 'x', { qos: 1, properties })
    await client.got('t x')
    const own = { ...properties, subscriptionIdentifier: 12 }
    expect(client.messages[0]?.[1].properties).toMatchObject(own)
  })
})

const folders = (process.env['PATH'] ?? '').split(delimiter)
const isThere = ['mosquitto_pub', 'mosquitto_sub'].every((program) =>
  folders.some((folder) => existsSync(joined(folder, program))),
)

it.runIf(process.env['CI'])('mosquitto’s clients are there', () => expect(isThere).toBe(true))

describe.runIf(isThere).each(['mqttv5', 'mqttv311'])(
  'mosquitto_pub and mosquitto_sub, %s',
  (version) => {
    type Ended = { readonly code: number | null; readonly out: string }

    function run(program: 'mosquitto_pub' | 'mosquitto_sub', rest: string, input?: string) {
      const { port } = new URL(urls.TCP)
      const settings = ['-h', '127.0.0.1', '-p', port, '-V', version, ...rest.split(' ')]
      const child: ChildProcess = spawn(program, settings, { stdio: 'pipe' })
      ends.push(() => child.kill('SIGKILL'))
      let out = ''
      for (const stream of [child.stdout, child.stderr])
        stream?.setEncoding('utf8').on('data', (text: string) => {
          out += text
        })
      child.stdin?.end(input)
      const ended = new Promise<Ended>((resolve) =>
        child.once('close', (code) => resolve({ code, out })),
      )
      return { child, ended: within(ended, `${program} ${rest}`) }
    }

    const publish = (rest: string, input?: string) => run('mosquitto_pub', rest, input).ended

    /** A subscriber, given when its subscription was granted. */
    async function subscribe(rest: string) {
      const granted = next('subscribe')
      const started = run('mosquitto_sub', `-F %t|%q|%r|%p ${rest}`)
      await granted
      return started
    }

    it('publish and receive at each QoS in order, and keep a message', async () => {
      await start()
      await publish('-t events/kept -m x -r -q 1')
      const subscriber = await subscribe('-C 61 -t events/# -q 2')
      const input = `${numbers.join('\n')}\n`
      for (const qos of [0, 1, 2])
        expect(await publish(`-t events/a -q ${qos} -l`, input)).toEqual({ code: 0, out: '' })
      const lines = [0, 1, 2].flatMap((qos) => numbers.map((text) => `events/a|${qos}|0|${text}\n`))
      expect((await subscriber.ended).out).toBe(`events/kept|1|1|x\n${lines.join('')}`)
      expect(broker.violations).toEqual([])
    })

    it('resume a session, share, have a will, and are refused', async () => {
      await start({ authenticate: ({ username }) => username !== 'no' })
      const kept = '-C 1 -i kept -c -t jobs -q 2'
      const left = next('disconnect')
      const first = await subscribe(kept)
      broker.publish({ topic: 'jobs', payload: 'one', qos: 2 })
      expect((await first.ended).out).toBe('jobs|2|0|one\n')
      await left
      await publish('-t jobs -q 2 -m two')
      expect((await run('mosquitto_sub', `-F %p ${kept}`).ended).out).toBe('two\n')
      const members = [await subscribe('-C 1 -t $share/g/w'), await subscribe('-C 1 -t $share/g/w')]
      for (const payload of ['1', '2']) broker.publish({ topic: 'w', payload })
      const shared = await Promise.all(members.map(async ({ ended }) => (await ended).out))
      expect(shared).toEqual(['w|0|0|1\n', 'w|0|0|2\n'])
      const watcher = await subscribe('-C 1 -t will')
      const dies = await subscribe('-t never --will-topic will --will-payload gone')
      dies.child.kill('SIGKILL')
      expect((await watcher.ended).out).toBe('will|0|0|gone\n')
      const { code, out } = await publish('-t t -m x -u no')
      expect([code === 0, out]).toEqual([false, expect.stringMatching(/authori[sz]ed/i)])
    })

    if (version !== 'mqttv5') return

    it('carry the properties of a message, and keep to the limits', async () => {
      await start({ maximumQoS: 1, maximumPacketSize: 500 })
      const granted = next('subscribe')
      const wanted = '-C 1 -t t -F %P|%C|%R|%D|%E|%S -D subscribe subscription-identifier 17'
      const subscriber = run('mosquitto_sub', wanted)
      await granted
      const properties = [
        'user-property b 1',
        'user-property a 2',
        'content-type text/plain',
        'response-topic back',
        'correlation-data xyz',
        'message-expiry-interval 600',
      ]
      await publish(`-t t -m x ${properties.map((each) => `-D publish ${each}`).join(' ')}`)
      expect((await subscriber.ended).out).toBe('b:1 a:2|text/plain|back|xyz|600|17\n')
      expect((await publish('-t t -q 2 -m x')).out).toMatch(/QoS not supported/)
      await publish(`-t t -q 1 -m ${'x'.repeat(600)}`)
      expect([broker.accepted.length, broker.violations]).toEqual([1, []])
    })
  },
)
