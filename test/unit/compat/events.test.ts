/** The order of events over a connection, its loss, the way back and the end; and what the client shows meanwhile. */
import { describe, expect, it } from 'vitest'
import { connectAsync, ErrorWithReasonCode, MqttClient } from '../../../src/compat/index.js'
import { eventually, within } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { freePort } from '../../support/servers.js'
import { atEnd, namesIn, refusing, soon, started, tcp, toldOf, up, wayTo } from './world.js'

const standing = ({ connected, reconnecting, disconnecting, disconnected }: MqttClient) => ({
  connected,
  reconnecting,
  disconnecting,
  disconnected,
})
const nothing = { connected: false, reconnecting: false, disconnecting: false, disconnected: false }

describe.each([4, 5] as const)('events, protocol version %d', (protocolVersion) => {
  const options = { ...soon, protocolVersion }

  it('connect, then end: close, end, callback', async () => {
    const { client, told } = started(await tcp(), options)
    expect(standing(client)).toEqual(nothing)
    await toldOf(told, 'connect')
    expect(standing(client)).toEqual({ ...nothing, connected: true })
    const packet = told[0]?.[1]
    const code = protocolVersion === 5 ? { reasonCode: 0 } : { returnCode: 0 }
    expect(packet).toMatchObject({ cmd: 'connack', sessionPresent: false, ...code })
    await new Promise<void>((resolve) => {
      expect(client.end(() => resolve(void told.push(['end', 'callback'])))).toBe(client)
      expect(standing(client)).toEqual({ ...nothing, connected: true, disconnecting: true })
    })
    expect(told.slice(1)).toEqual([['close'], ['end'], ['end', 'callback']])
    expect(standing(client)).toEqual({ ...nothing, disconnecting: true, disconnected: true })
  })

  it('a loss: offline, close, reconnect, connect; the same each time', async () => {
    const way = await wayTo(await tcp())
    const { client, told } = await up(way.url, options)
    for (let times = 2; times < 4; times++) {
      way.cut()
      await toldOf(told, 'close', times - 1)
      expect(standing(client)).toEqual({ ...nothing, reconnecting: true })
      await toldOf(told, 'connect', times)
      expect(standing(client)).toEqual({ ...nothing, connected: true })
    }
    const round = ['offline', 'close', 'reconnect', 'connect']
    expect(namesIn(told, 'error')).toEqual(['connect', ...round, ...round])
  })

  it('nobody listens: error, offline, close, then reconnect, error, close, until somebody does', async () => {
    const way = await wayTo(await tcp())
    await way.shut()
    const { told } = started(way.url, options)
    await toldOf(told, 'error', 3)
    await way.open()
    await toldOf(told, 'connect')
    const again = ['reconnect', 'error', 'close']
    expect(namesIn(told).slice(0, 9)).toEqual(['error', 'offline', 'close', ...again, ...again])
    expect(namesIn(told).slice(-2)).toEqual(['reconnect', 'connect'])
    expect(told[0]?.[1]).toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('reconnectPeriod 0: close, and nothing else until reconnect()', async () => {
    const way = await wayTo(await tcp())
    const { client, told } = await up(way.url, { protocolVersion, reconnectPeriod: 0 })
    way.cut()
    await toldOf(told, 'close')
    await pause(50)
    expect(namesIn(told, 'error')).toEqual(['connect', 'close'])
    expect(standing(client)).toEqual(nothing)
    client.reconnect()
    await toldOf(told, 'connect', 2)
    expect(namesIn(told, 'error')).toEqual(['connect', 'close', 'reconnect', 'connect'])
  })

  it('reconnect() while it is up: a new connection in place of the old one', async () => {
    const way = await wayTo(await tcp())
    const { client, told } = await up(way.url, options)
    expect(client.reconnect()).toBe(client)
    await toldOf(told, 'connect', 2)
    expect(way.count).toBe(2)
    expect(namesIn(told)).toEqual(expect.arrayContaining(['close', 'reconnect', 'connect']))
  })

  it('after the end: reconnect() begins again, with the filters; while it ends, it waits for that', async () => {
    const { client, told } = await up(await tcp(), options)
    await client.subscribeAsync('a/#')
    await client.endAsync()
    client.reconnect()
    await toldOf(told, 'connect', 2)
    expect(standing(client)).toEqual({ ...nothing, connected: true })
    const heard = (times: number) =>
      eventually(async () => {
        await client.publishAsync('a/1', 'x', { qos: 1 })
        return namesIn(told).filter((name) => name === 'message').length >= times
      }, 'a message')
    await heard(1)
    client.end()
    client.reconnect()
    await toldOf(told, 'connect', 3)
    const expected = [
      'connect',
      'close',
      'end',
      'reconnect',
      'connect',
      'close',
      'end',
      'reconnect',
      'connect',
    ]
    expect(namesIn(told, 'message')).toEqual(expected)
    await heard(namesIn(told).filter((name) => name === 'message').length + 1)
  })

  it('connect() while it ends: waits for the end, then dials, and tells no reconnect', async () => {
    const { client, told } = await up(await tcp(), options)
    await client.subscribeAsync('a')
    client.end()
    expect(client.connect()).toBe(client)
    expect(standing(client)).toEqual({ ...nothing, connected: true, disconnecting: true })
    await expect(client.publishAsync('a', 'x')).rejects.toThrow('client disconnecting')
    await toldOf(told, 'connect', 2)
    expect(standing(client)).toEqual({ ...nothing, connected: true })
    await within(client.publishAsync('a', 'x', { qos: 1 }), 'the acknowledgement')
    await toldOf(told, 'message')
    expect(namesIn(told, 'message')).toEqual(['connect', 'close', 'end', 'connect'])
    await client.endAsync()
    await pause(30)
    expect(standing(client)).toEqual({ ...nothing, disconnecting: true, disconnected: true })
  })

  it('end() before there is a connection, and while it waits for one', async () => {
    const url = `mqtt://127.0.0.1:${await freePort()}`
    const early = started(url, options)
    await within(early.client.endAsync(), 'the end')
    expect(namesIn(early.told).at(-1)).toBe('end')
    const late = started(url, { ...options, reconnectPeriod: 60_000 })
    await toldOf(late.told, 'close')
    await within(late.client.endAsync(), 'the end')
    expect(namesIn(late.told)).toEqual(['error', 'offline', 'close', 'end'])
  })

  it.each([0, 1, 2] as const)('publish and end() before a connection, QoS %d', async (qos) => {
    const url = await tcp()
    const receiver = await up(url, options)
    await receiver.client.subscribeAsync('a', { qos })
    const { client, told } = started(url, options)
    client.publish('a', 'x', { qos })
    await within(client.endAsync(), 'the end')
    expect(namesIn(told).at(-1)).toBe('end')
    await toldOf(receiver.told, 'message')
  })

  it('publish and end() where nobody listens: the end comes after connectTimeout, and the callback has an error', async () => {
    const { client } = started(`mqtt://127.0.0.1:${await freePort()}`, {
      ...options,
      connectTimeout: 100,
    })
    const sent = client.publishAsync('a', 'x', { qos: 1 })
    await within(client.endAsync(), 'the end')
    await expect(sent).rejects.toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('end(true): close, end; a second end() calls back at once and tells nothing', async () => {
    const { client, told } = await up(await tcp(), options)
    let called = 0
    client.end(true, () => {
      called += 1
    })
    client.end(() => {
      called += 10
    })
    expect(called).toBe(10)
    await toldOf(told, 'end')
    await eventually(() => called === 11)
    expect(namesIn(told)).toEqual(['connect', 'close', 'end'])
  })

  it('manualConnect: connect() dials, and tells no reconnect; again after the end', async () => {
    const { client, told } = started(await tcp(), { ...options, manualConnect: true })
    await pause(30)
    expect(told).toEqual([])
    expect(client.connect()).toBe(client)
    await toldOf(told, 'connect')
    await client.endAsync()
    expect(client.disconnecting).toBe(false)
    client.connect()
    await toldOf(told, 'connect', 2)
    expect(namesIn(told)).toEqual(['connect', 'close', 'end', 'connect'])
  })

  it('a refused CONNECT: error with the code, close, and no further attempt', async () => {
    const server = await refusing(protocolVersion === 5 ? 0x85 : 2)
    const { told } = started(server.url, options)
    await toldOf(told, 'close')
    await pause(60)
    expect(namesIn(told)).toEqual(['error', 'close'])
    const error = told[0]?.[1] as ErrorWithReasonCode
    expect(error).toBeInstanceOf(ErrorWithReasonCode)
    expect(error).toMatchObject({
      code: protocolVersion === 5 ? 0x85 : 2,
      cause: { code: 'ERR_CONNECT_REFUSED' },
    })
    expect(error.message).toMatch(/^Connection refused: /)
    expect(server.count()).toBe(1)
  })

  it('no CONNACK within connectTimeout: error, and again', async () => {
    const server = await refusing(undefined)
    const { told } = started(server.url, { ...options, connectTimeout: 50 })
    await toldOf(told, 'error', 2)
    expect(told[0]?.[1]).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT', message: 'connack timeout' })
  })
})

it.each(['destroy', 'end'] as const)(
  'client.stream: spans connections; %s() cuts one',
  async (how) => {
    const port = await freePort()
    const dead = started(`mqtt://127.0.0.1:${port}`, soon)
    const seen: unknown[] = []
    dead.client.stream
      .on('error', (error) => seen.push(error.code))
      .on('close', () => seen.push('close'))
    await eventually(() => seen.length >= 4, 'two attempts')
    expect(seen.slice(0, 2)).toEqual(['ECONNREFUSED', 'close'])
    const { client, told } = await up(await tcp(), {
      reconnectPeriod: 20,
    })
    let closes = 0
    client.stream.on('close', () => (closes += 1))
    client.stream[how]()
    await toldOf(told, 'connect', 2)
    expect(closes).toBe(1)
    expect(namesIn(told)).toEqual(['connect', 'offline', 'close', 'reconnect', 'connect'])
  },
)

it.each(['destroy', 'end'] as const)(
  'client.stream: %s() is a loss: reconnectPeriod counts',
  async (how) => {
    const { client, told } = await up(await tcp(), {
      reconnectPeriod: 400,
    })
    const since = performance.now()
    expect(client.stream[how]()).toBe(client.stream)
    expect([client.connected, client.reconnecting]).toEqual([false, true])
    await toldOf(told, 'connect', 2)
    expect(performance.now() - since).toBeGreaterThan(390)
    expect(namesIn(told)).not.toContain('error')
  },
)

it('client.stream: destroy() tells its error, and takes listeners away as streams do', async () => {
  const { client, told } = await up(await tcp(), soon)
  let heard = 0
  const hear = () => (heard += 1)
  client.stream
    .addListener('error', hear)
    .removeListener('error', hear)
    .on('close', hear)
    .removeAllListeners('close')
  const error = new Error('enough')
  client.stream.destroy(error)
  await toldOf(told, 'connect', 2)
  expect(told.find(([event]) => event === 'error')?.[1]).toMatchObject({ cause: error })
  expect(heard).toBe(0)
})

describe('the rest of the events', () => {
  it('disconnect: the packet of the server, before close', async () => {
    const server = await refusing(0, { behind: Uint8Array.of(0xe0, 2, 0x8b, 0) })
    const { told } = started(server.url, { ...soon, protocolVersion: 5 })
    await toldOf(told, 'close')
    expect(namesIn(told).slice(0, 4)).toEqual(['connect', 'disconnect', 'offline', 'close'])
    expect(told[1]?.[1]).toEqual({ cmd: 'disconnect', reasonCode: 0x8b })
  })

  it('packetsend and packetreceive, from the listener on, as MQTT.js has packets', async () => {
    const { client } = started(await tcp(), { protocolVersion: 5, clientId: 'me' })
    const [sent, received]: object[][] = [[], []]
    client.on('packetsend', (packet) => sent?.push(packet))
    client.on('packetreceive', (packet) => received?.push(packet))
    await client.subscribeAsync('a', { qos: 1 })
    await client.publishAsync('a', 'x', {
      qos: 1,
      properties: { userProperties: { k: ['1', '2'] }, payloadFormatIndicator: true },
    })
    await eventually(() => sent?.some((packet) => (packet as { cmd: string }).cmd === 'puback'))
    expect(sent?.[0]).toMatchObject({
      cmd: 'connect',
      clean: true,
      keepalive: 60,
      protocolId: 'MQTT',
      protocolVersion: 5,
      clientId: 'me',
    })
    expect(sent?.[1]).toMatchObject({
      cmd: 'subscribe',
      subscriptions: [{ topic: 'a', qos: 1, nl: false, rap: false, rh: 0 }],
    })
    expect(sent?.[2]).toMatchObject({
      cmd: 'publish',
      topic: 'a',
      qos: 1,
      properties: { userProperties: { k: ['1', '2'] }, payloadFormatIndicator: true },
    })
    expect(received?.[0]).toMatchObject({ cmd: 'connack', reasonCode: 0, sessionPresent: false })
    expect(received?.[1]).toMatchObject({ cmd: 'suback', granted: [1] })
    expect(received?.map((packet) => (packet as { cmd: string }).cmd)).toEqual(
      expect.arrayContaining(['puback', 'publish']),
    )
  })

  it('outgoingEmpty: when it ends, and what was in flight is acknowledged', async () => {
    const { client, told } = await up(await tcp())
    let acknowledged = false
    client.publish('a', 'x', { qos: 1 }, () => {
      acknowledged = true
    })
    await client.endAsync()
    expect(acknowledged).toBe(true)
    expect(namesIn(told)).toEqual(['connect', 'outgoingEmpty', 'close', 'end'])
  })

  /** What the process hears of, in place of those who listen. */
  const uncaught = (): string[] => {
    const heard: string[] = []
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
      const before = process.listeners(event as never) as ((...given: never[]) => void)[]
      const note = (error: Error) => void heard.push(`${event}: ${error.message}`)
      process.removeAllListeners(event).on(event, note as never)
      atEnd(() => {
        process.removeAllListeners(event)
        for (const listener of before) process.on(event, listener as never)
      })
    }
    return heard
  }

  it('what a listener throws is the process’s to hear, and harms nobody', async () => {
    const { client, told } = await up(await tcp())
    await client.subscribeAsync('a', { qos: 1 })
    const heard = uncaught()
    client.on('message', () => {
      throw new Error('mine')
    })
    await client.publishAsync('a', '1', { qos: 1 })
    await client.publishAsync('a', '2', { qos: 1 })
    await toldOf(told, 'message', 2)
    await eventually(() => heard.length === 2)
    expect(heard).toEqual(['uncaughtException: mine', 'uncaughtException: mine'])
    expect(client.connected).toBe(true)
  })

  it('what a callback throws is the process’s to hear, too', async () => {
    const { client, told } = await up(await tcp())
    const heard = uncaught()
    const throwing = (text: string) => () => {
      throw new Error(text)
    }
    client.publish('a', 'x', { qos: 1 }, throwing('publish'))
    client.subscribe('a', throwing('subscribe'))
    client.unsubscribe('a', throwing('unsubscribe'))
    client.publish('#', 'x', throwing('refused'))
    await eventually(() => heard.length === 4)
    client.end(throwing('end'))
    client.publish('a', 'x', throwing('late'))
    await toldOf(told, 'end')
    await eventually(() => heard.length === 6)
    const calls = ['publish', 'subscribe', 'unsubscribe', 'refused', 'end', 'late']
    expect(heard.sort()).toEqual(calls.map((text) => `uncaughtException: ${text}`).sort())
  })

  it('options, serverProperties and keepalive', async () => {
    const { client } = await up(await tcp(), { protocolVersion: 5, keepalive: 33, clientId: 'me' })
    expect(client.options).toMatchObject({ clientId: 'me', keepalive: 33, protocolVersion: 5 })
    expect(client.keepalive).toBe(33)
    expect(typeof client.serverProperties).toBe('object')
    await client.endAsync()
    expect(client.serverProperties).toBeUndefined()
    expect(MqttClient.defaultId()).toMatch(/^mqttjs_/)
  })
})

it('connectAsync: gives the client when it is up', async () => {
  const client = await connectAsync(await tcp(), { clientId: 'me' })
  atEnd(() => client.end(true))
  expect(client.connected).toBe(true)
  expect(client.eventNames()).toEqual([])
})

it('connectAsync: rejects with the first error', async () => {
  const failing = connectAsync(`mqtt://127.0.0.1:${await freePort()}`, soon)
  await expect(failing).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})

it('connectAsync: rejects with what is wrong with the options', async () => {
  await expect(connectAsync('mqtt://h', { incomingStore: {} } as never)).rejects.toMatchObject({
    option: 'incomingStore',
  })
})

it('connectAsync: without allowRetries, rejects when the connection is closed', async () => {
  const server = await refusing(undefined, { hangUp: true })
  await expect(connectAsync(server.url, soon, false)).rejects.toThrow()
})
