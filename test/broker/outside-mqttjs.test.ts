/** The in-memory broker seen by MQTT.js, over TCP and WebSocket, on 5.0 and 3.1.1. */
import mqtt, {
  type IClientOptions,
  type IConnackPacket,
  type IPublishPacket,
  type MqttClient,
} from 'mqtt'
import { afterEach, describe, expect, it } from 'vitest'
import type { MemoryBrokerOptions } from '../../src/testing/index.js'
import { within } from '../real/waiting.js'
import { listen, next, type OutsideBroker } from './outside.js'

const cases = [
  ['TCP', 5],
  ['WebSocket', 5],
  ['TCP', 4],
  ['WebSocket', 4],
] as const

/** The arguments of the next event of a kind. */
function happens<T extends unknown[]>(
  client: MqttClient,
  event: 'connect' | 'disconnect' | 'close' | 'error' | 'message',
): Promise<T> {
  return new Promise((resolve) => {
    client.once(event, (...values: unknown[]) => resolve(values as T))
  })
}

interface Inbox {
  readonly messages: { topic: string; text: string; packet: IPublishPacket }[]
  /** As many messages as that, as `topic text`. */
  take(count: number): Promise<string[]>
}

describe.each(cases)('MQTT.js over %s, protocol level %i', (transport, protocolVersion) => {
  const clients: MqttClient[] = []
  let server: OutsideBroker | undefined

  afterEach(async () => {
    for (const client of clients.splice(0)) client.end(true)
    await server?.stop()
    server = undefined
  })

  async function start(options?: MemoryBrokerOptions): Promise<OutsideBroker> {
    server = await listen(options)
    return server
  }

  function dial(options: IClientOptions): MqttClient {
    const client = mqtt.connect(server?.urls[transport] ?? '', {
      protocolVersion,
      reconnectPeriod: 0,
      ...options,
    })
    client.on('error', () => undefined)
    clients.push(client)
    return client
  }

  async function join(
    options: IClientOptions = {},
  ): Promise<MqttClient & { connack: IConnackPacket }> {
    const client = dial(options)
    const [connack] = await within(happens<[IConnackPacket]>(client, 'connect'), 'CONNACK')
    return Object.assign(client, { connack })
  }

  function inbox(client: MqttClient): Inbox {
    const messages: Inbox['messages'] = []
    let heard = (): void => undefined
    client.on('message', (topic, payload, packet) => {
      messages.push({ topic, text: payload.toString(), packet })
      heard()
    })
    return {
      messages,
      async take(count) {
        const enough = new Promise<void>((resolve) => {
          heard = () => {
            if (messages.length >= count) resolve()
          }
          heard()
        })
        await within(enough, `${count} messages, there were ${messages.length}`)
        return messages.splice(0, count).map(({ topic, text }) => `${topic} ${text}`)
      },
    }
  }

  /** Session that stays, on either version. */
  const durable: IClientOptions = {
    clean: false,
    ...(protocolVersion === 5 ? { properties: { sessionExpiryInterval: 60 } } : {}),
  }

  it.each([0, 1, 2] as const)('publishes and receives at QoS %i, in order', async (qos) => {
    const { broker } = await start()
    const [sender, receiver] = [await join(), await join()]
    const { take } = inbox(receiver)
    const [granted] = await receiver.subscribeAsync('events/+', { qos })
    expect(granted?.qos).toBe(qos)
    const sent = Array.from({ length: 50 }, (_, index) => `events/x ${index}`)
    await within(
      Promise.all(sent.map((text) => sender.publishAsync('events/x', text.slice(9), { qos }))),
      'the acknowledgements',
    )
    expect(await take(50)).toEqual(sent)
    expect(broker.accepted).toHaveLength(50)
    expect(broker.violations).toEqual([])
  })

  it('carries 500 KB', async () => {
    await start()
    const client = await join()
    const { take } = inbox(client)
    await client.subscribeAsync('large', { qos: 2 })
    const text = 'x'.repeat(500_000)
    await within(client.publishAsync('large', text, { qos: 2 }), 'the acknowledgement')
    expect(await take(1)).toEqual([`large ${text}`])
  })

  it('keeps, gives and clears retained messages', async () => {
    const { broker } = await start()
    const [sender, receiver] = [await join(), await join()]
    await sender.publishAsync('r/1', 'kept', { qos: 1, retain: true })
    const box = inbox(receiver)
    await receiver.subscribeAsync('r/#', { qos: 1 })
    await box.take(1).then((got) => expect(got).toEqual(['r/1 kept']))
    await sender.publishAsync('r/1', '', { qos: 1, retain: true })
    expect(await box.take(1)).toEqual(['r/1 '])
    expect(broker.retained.size).toBe(0)
  })

  it('publishes the will of a client that is lost, not of one that says goodbye', async () => {
    const { broker } = await start()
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 1 as const, retain: false }
    const watcher = await join()
    const box = inbox(watcher)
    await watcher.subscribeAsync('will')
    const polite = await join({ clientId: 'polite', will })
    const left = next(broker, 'disconnect')
    await polite.endAsync()
    expect(await within(left, 'the goodbye')).toMatchObject({ by: 'client', reasonCode: 0 })
    const lost = await join({ clientId: 'lost', will })
    lost.stream.destroy()
    expect(await box.take(1)).toEqual(['will gone'])
    expect(broker.accepted.map(({ clientId, will: isWill }) => [clientId, isWill])).toEqual([
      ['lost', true],
    ])
  })

  it('resumes a session with what it missed', async () => {
    const { broker } = await start()
    const first = await join({ clientId: 'resumed', ...durable })
    expect(first.connack.sessionPresent).toBe(false)
    await first.subscribeAsync('jobs/#', { qos: 2 })
    const lost = next(broker, 'disconnect')
    first.stream.destroy()
    await within(lost, 'the loss')
    for (const qos of [1, 2] as const)
      broker.publish({ topic: 'jobs/a', payload: `qos ${qos}`, qos })
    const again = dial({ clientId: 'resumed', ...durable })
    const { take } = inbox(again)
    const [connack] = await within(happens(again, 'connect'), 'CONNACK')
    expect(connack).toMatchObject({ sessionPresent: true })
    expect(await take(2)).toEqual(['jobs/a qos 1', 'jobs/a qos 2'])
  })

  it('survives a broker restart with its session: QoS 1 and 2 arrive, QoS 2 once', async () => {
    const { broker } = await start()
    const client = await join({ clientId: 'steady', ...durable, reconnectPeriod: 20 })
    const box = inbox(client)
    await client.subscribeAsync('steady', { qos: 2 })
    broker.faults.add({ packet: 'pubrec', direction: 'out', nth: 2, action: 'restart-keep' })
    await within(
      Promise.all(['1', '2', '3'].map((text) => client.publishAsync('steady', text, { qos: 2 }))),
      'the acknowledgements',
    )
    expect((await box.take(3)).sort()).toEqual(['steady 1', 'steady 2', 'steady 3'])
    expect(broker.accepted).toHaveLength(3)
    expect(broker.faults.fired).toHaveLength(1)
    // MQTT.js repeats without the flag.
    expect(
      broker.violations.every(({ text }) => text === 'a repeat without DUP [MQTT-3.3.1-1]'),
    ).toBe(true)
  })

  it('is taken over', async () => {
    const { broker } = await start()
    const older = await join({ clientId: 'same' })
    const told =
      protocolVersion === 5
        ? happens(older, 'disconnect')
        : Promise.resolve([{ reasonCode: undefined }])
    const closed = happens(older, 'close')
    await join({ clientId: 'same' })
    await within(closed, 'the end')
    expect((await within(told, 'DISCONNECT'))[0]).toMatchObject({
      reasonCode: protocolVersion === 5 ? 0x8e : undefined,
    })
    expect(broker.clients.size).toBe(1)
  })

  it('shares subscriptions', async () => {
    const { broker } = await start()
    const members = [await join(), await join()]
    const boxes = members.map(inbox)
    for (const member of members) await member.subscribeAsync('$share/g/work', { qos: 1 })
    for (let i = 0; i < 10; i++) broker.publish({ topic: 'work', payload: String(i), qos: 1 })
    expect(await Promise.all(boxes.map((box) => box.take(5)))).toEqual([
      [0, 2, 4, 6, 8].map((i) => `work ${i}`),
      [1, 3, 5, 7, 9].map((i) => `work ${i}`),
    ])
  })

  it('is refused by user name and password', async () => {
    await start({
      authenticate: ({ username, password }) =>
        username === 'u' && new TextDecoder().decode(password) === 'p',
    })
    await join({ username: 'u', password: 'p' })
    const [error] = (await within(
      happens(dial({ username: 'u', password: 'no' }), 'error'),
      'the refusal',
    )) as [{ code: number }]
    expect(error.code).toBe(protocolVersion === 5 ? 0x87 : 5)
  })

  it('unsubscribes', async () => {
    const { broker } = await start()
    const client = await join()
    await client.subscribeAsync(['a', 'b'])
    await within(client.unsubscribeAsync('a'), 'UNSUBACK')
    expect(broker.publish({ topic: 'a' })).toBe(false)
    expect(broker.publish({ topic: 'b' })).toBe(true)
  })

  it('is sent away when it is silent', async () => {
    const { broker } = await start()
    const client = await join({ keepalive: 1, clientId: 'silent' })
    const gone = next(broker, 'disconnect', ({ client: { clientId } }) => clientId === 'silent')
    // From here on it neither pings nor misses an answer.
    client.keepaliveManager?.destroy()
    expect(await within(gone, 'the end')).toMatchObject({ by: 'broker', reasonCode: 0x8d })
  })

  if (protocolVersion !== 5 || transport !== 'TCP') return

  it('learns the limits, and its identifier', async () => {
    const limits = {
      receiveMaximum: 7,
      maximumQoS: 1,
      topicAliasMaximum: 4,
      serverKeepAlive: 33,
      responseInformation: 'replies',
    } as const
    await start(limits)
    const client = await join({ clientId: '', properties: { requestResponseInformation: true } })
    expect(client.connack.properties).toMatchObject({
      ...limits,
      assignedClientIdentifier: 'auto-1',
    })
  })

  it('carries properties both ways, with identifiers and countdown', async () => {
    await start()
    const client = await join()
    await client.subscribeAsync('t', { qos: 1, properties: { subscriptionIdentifier: 12 } })
    const came = happens(client, 'message')
    const properties = {
      payloadFormatIndicator: true,
      messageExpiryInterval: 600,
      contentType: 'text/plain',
      responseTopic: 'back',
      correlationData: Buffer.from([1, 2]),
      userProperties: { a: ['1', '2'], b: '3' },
    }
    await client.publishAsync('t', 'x', { qos: 1, properties })
    const [, , packet] = (await within(came, 'the message')) as [string, Buffer, IPublishPacket]
    expect(packet.properties).toMatchObject({ ...properties, subscriptionIdentifier: 12 })
  })

  it('goes through enhanced authentication, and is refused by it', async () => {
    const check = (data: Uint8Array | undefined) => {
      if (new TextDecoder().decode(data) !== 'secret') throw new Error('no')
      return { data: new TextEncoder().encode('fine') }
    }
    await start({ auth: { plain: { start: check, continue: () => ({}) } } })
    const properties = (secret: string) => ({
      properties: { authenticationMethod: 'plain', authenticationData: Buffer.from(secret) },
    })
    expect(String((await join(properties('secret'))).connack.properties?.authenticationData)).toBe(
      'fine',
    )
    expect(
      (await within(happens(dial(properties('wrong')), 'error'), 'the refusal'))[0],
    ).toMatchObject({ code: 0x87 })
  })

  it('forgets a session whose time is over', async () => {
    const { broker } = await start()
    const settings: IClientOptions = {
      clientId: 'brief',
      clean: false,
      properties: { sessionExpiryInterval: 1 },
    }
    await (await join(settings)).endAsync(true)
    await expect.poll(() => broker.sessions.has('brief'), { timeout: 5000 }).toBe(false)
    expect((await join(settings)).connack.sessionPresent).toBe(false)
  })
})
