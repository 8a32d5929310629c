/**
 * Proofs of the server role, sections 3.1.2.5 to 3.1.3.2: the will is kept, published once and as it was given, or thrown away.
 */
import { describe, expect, it } from 'vitest'
import { bytes, type ConnectSettings, durable, type RawClient, world } from '../raw-client.js'
import { heard, packetOf, propertiesOf, publishesOf, say, textOf } from './wire.js'

const pairs = [
  ['k1', 'a'],
  ['k2', 'b'],
  ['k1', 'c'],
] as const

function settings(delay = 0, expiry = 60): ConnectSettings {
  return {
    cleanStart: false,
    keepAlive: 2,
    properties: { sessionExpiryInterval: expiry },
    will: { topic: 'w', payload: bytes('gone'), qos: 1, properties: { willDelayInterval: delay } },
  }
}

async function watched() {
  const all = world()
  const watcher = await all.join('watcher')
  await watcher.subscribe({ filter: 'w', qos: 0 })
  heard(watcher)
  const wills = async (): Promise<string[]> => {
    await all.clock.settle()
    return heard(watcher)
  }
  return { ...all, watcher, wills }
}

/** The will as a subscriber at QoS 0 gets it. */
const said = '30 08 00 01 77 00 67 6f 6e 65'

describe('the will', () => {
  it('is kept with the session, whole: topic, payload and properties come out when the network fails [MQTT-3.1.2-7] [MQTT-3.1.3-10]', async () => {
    const { dial, watcher, clock } = await watched()
    const client = dial()
    // User Properties of the will: k1=a, k2=b, k1=c, then Content Type and Payload Format Indicator.
    const pairsHex = pairs.map(([name, value]) => `26 ${textOf(name)} ${textOf(value)}`).join(' ')
    const properties = propertiesOf(pairsHex, '03', textOf('t/p'), '01 01')
    await say(client, packetOf('10', textOf('MQTT'), '05 06 00 00 00', textOf('a'), properties, textOf('w'), '00 03 00 ff 80'))
    expect(client.received).toMatchObject([{ reasonCode: 0 }])
    await client.cut()
    await clock.settle()
    const [will, ...more] = heard(watcher)
    expect([will?.slice(0, 17), will?.slice(-8), more]).toEqual(['30 27 00 01 77 20', '00 ff 80', []])
    expect(will).toContain(pairsHex)
    expect(await publishesOf(watcher)).toMatchObject([{ properties: { userProperties: pairs, contentType: 't/p', payloadFormatIndicator: 1 } }])
  })

  const ends: [string, (client: RawClient, all: ReturnType<typeof world>) => Promise<unknown>][] = [
    ['the network fails', (client) => client.cut()],
    ['the client is silent', (_client, { clock }) => clock.advance(3000)],
    ['the client breaks a rule', (client) => say(client, 'c1 00')],
    ['DISCONNECT 0x04', (client) => say(client, 'e0 01 04')],
    ['DISCONNECT 0x81', (client) => say(client, 'e0 02 81 00')],
    ['a DISCONNECT with wrong flags', (client) => say(client, 'e1 00')],
    ['the stream ends without DISCONNECT', async (client) => client.transport.close()],
    ['an administrator', async (_client, { broker }) => broker.disconnect('a')],
    ['a takeover', (_client, { join }) => join('a', durable)],
  ]

  it.each(ends)('is published once: %s [MQTT-3.1.2-8]', async (_what, end) => {
    const all = await watched()
    const client = await all.join('a', settings())
    expect(await all.wills()).toEqual([])
    await end(client, all)
    expect(await all.wills()).toEqual([said])
    await all.clock.advance(100_000)
    expect(await all.wills()).toEqual([])
  })

  it.each(['e0 00', 'e0 01 00', 'e0 02 00 00'])('is thrown away by %s, for good [MQTT-3.14.4-3] [MQTT-3.1.2-10] [MQTT-3.1.2-8]', async (goodbye) => {
    const { join, wills, clock, broker } = await watched()
    for (const delay of [0, 1]) {
      await say(await join('a', settings(delay, 2)), goodbye)
      await clock.advance(10_000)
      expect([await wills(), broker.accepted.length, broker.sessions.has('a')]).toEqual([[], 0, false])
    }
  })

  it('waits for its delay, or the end of the session, and is sent once [MQTT-3.1.2-8] [MQTT-3.1.2-10]', async () => {
    const { join, wills, clock } = await watched()
    for (const [delay, expiry] of [
      [2, 60],
      [60, 2],
    ] as const) {
      await (await join('a', settings(delay, expiry))).cut()
      await clock.advance(1999)
      expect(await wills()).toEqual([])
      await clock.advance(1)
      expect(await wills()).toEqual([said])
      // Once: not again at the end of what is left of the two.
      await clock.advance(100_000)
      expect(await wills()).toEqual([])
    }
  })

  it('a new session in its place is the end of the old one [MQTT-3.1.2-8]', async () => {
    const { join, wills } = await watched()
    await (await join('a', settings(20))).cut()
    await join('a', { cleanStart: true })
    expect(await wills()).toEqual([said])
  })

  it('is not sent when the session is picked up before the delay has passed [MQTT-3.1.3-9]', async () => {
    const { join, wills, clock } = await watched()
    await (await join('a', settings(2))).cut()
    await clock.advance(1999)
    await join('a', durable)
    await clock.advance(60_000)
    expect(await wills()).toEqual([])
  })

  it('is dropped once published: a resumed session without a will says nothing [MQTT-3.1.2-10]', async () => {
    const { join, wills, clock } = await watched()
    await (await join('a', settings(1))).cut()
    await clock.advance(1000)
    expect(await wills()).toEqual([said])
    await (await join('a', durable)).cut()
    await clock.advance(4_000_000)
    expect(await wills()).toEqual([])
  })

  it('Will Retain 0 leaves nothing behind, and what was retained alone [MQTT-3.1.2-14]', async () => {
    const { join, broker } = world()
    broker.publish({ topic: 'w', payload: 'older', retain: true })
    await (await join('a', settings())).cut()
    const late = await join('late')
    await late.subscribe('w')
    expect(late.received.slice(2)).toMatchObject([{ retain: true, payload: bytes('older') }])
  })

  it('Will Retain 1 is kept for who comes later [MQTT-3.1.2-15]', async () => {
    const { join } = world()
    await (await join('a', { will: { topic: 'w', payload: bytes('gone'), retain: true } })).cut()
    const late = await join('late')
    heard(late)
    expect(await say(late, packetOf('82', '00 01 00', textOf('w'), '02'))).toEqual(['90 04 00 01 00 02', `31${said.slice(2)}`])
  })
})
