/** Acknowledgements: the three modes, order on the wire, reason codes, stale ones, and what `disconnect()` does with open turns. */
import { describe, expect, it } from 'vitest'
import { takeAck } from '../../../src/client/connection/packet-reader.js'
import type { ConnectionHost } from '../../../src/client/connection/ports.js'
import type { Message, SubscribeOptions } from '../../../src/client/options/index.js'
import { UNKNOWN } from '../../../src/client/session/send-window.js'
import { decodeServerPacket } from '../../../src/wire/decode-server.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import { WireError } from '../../../src/wire/error.js'
import { keeps, lose } from './across.js'
import { coded, connected, failure } from './harness.js'
import {
  acked,
  acks,
  agreed,
  answer,
  gate,
  pubacks,
  publish,
  quiet,
  read,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'

/** A subscription to `a` at QoS 2, and messages that came for it. */
async function received(options: SubscribeOptions, ...packets: PacketInput[]) {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 2, ...options })
  await world.send(...packets)
  return { world, subscription }
}

const qos2 = (text: string, id: number) => publish('a', text, id, { qos: 2 })
const both = [publish('a', '1', 1), qos2('2', 2)]

describe("'auto'", () => {
  it('asking for the next message acknowledges this one, and nothing else does', async () => {
    const { world, subscription } = await received({}, ...series('a', 3))
    expect(taken(subscription).text()).toBe('1')
    await world.clock.advance(60_000)
    expect(acks(world)).toEqual([])
    expect((await subscription.next())?.text()).toBe('2')
    expect(await acked(world)).toEqual(['puback 1'])
    expect(taken(subscription).text()).toBe('3')
    expect(await acked(world)).toEqual(['puback 1', 'puback 2'])
    expect(subscription.read()).toBeUndefined()
    expect(await acked(world)).toEqual(pubacks(1, 3))
  })

  it('the for-await loop: acknowledged when the body is done, not before', async () => {
    const { world, subscription } = await received({}, ...series('a', 2))
    const gates = [gate(), gate()]
    let index = 0
    ;(async () => {
      for await (const _ of subscription) await gates[index++]?.promise
    })()
    expect(await acked(world)).toEqual([])
    gates[0]?.open()
    expect(await acked(world)).toEqual(['puback 1'])
    gates[1]?.open()
    expect(await acked(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('a batch is acknowledged when the next batch is asked for', async () => {
    const { world, subscription } = await received({}, ...series('a', 5))
    const batches = subscription.batches(2)
    const texts = async () =>
      ((await batches.next()).value as Message[]).map((message) => message.text())
    expect([await texts(), await acked(world)]).toEqual([['1', '2'], []])
    expect([await texts(), await acked(world)]).toEqual([['3', '4'], pubacks(1, 2)])
    expect(await texts()).toEqual(['5'])
    quiet(batches.next())
    expect(await acked(world)).toEqual(pubacks(1, 5))
  })

  it('batches() without a number gives all that are there, and waits for the first', async () => {
    const { world, subscription } = await received({})
    const batches = subscription.batches()
    const texts = async () =>
      ((await batches.next()).value as Message[]).map((message) => message.text())
    const first = texts()
    await world.send(publish('a', 'x'))
    expect(await first).toEqual(['x'])
    await world.send(publish('a', 'y'), publish('a', 'z'))
    expect(await texts()).toEqual(['y', 'z'])
    expect(() => subscription.batches(0)).toThrow(coded('ERR_INVALID_OPTION'))
  })

  it('ack() before the turn ends is legal: the turn does not acknowledge again', async () => {
    const { world, subscription } = await received({}, ...series('a', 2))
    expect(taken(subscription).ack(0x83)).toBe(true)
    expect(await acked(world)).toEqual(['puback 1 0x83'])
    taken(subscription)
    expect(await acked(world)).toEqual(['puback 1 0x83'])
  })
})

describe("'manual'", () => {
  it('nothing but ack() acknowledges', async () => {
    const { world, subscription } = await received({ ack: 'manual' }, ...series('a', 3))
    const reading = read(subscription)
    expect(await acked(world)).toEqual([])
    expect(reading.texts).toEqual(['1', '2', '3'])
    for (const message of reading.messages) expect(message.ack()).toBe(true)
    expect(await acked(world)).toEqual(pubacks(1, 3))
  })

  it('a second ack is stale, and so is one after the end of the connection and of the session', async () => {
    const { world, subscription } = await received({ ack: 'manual' }, ...series('a', 2))
    const [message, late] = [taken(subscription), taken(subscription)]
    expect([message.ack(), message.ack(), message.ack(0x80)]).toEqual([true, false, false])
    expect(await acked(world)).toEqual(['puback 1'])
    await lose(world)
    expect([late.ack(), late.text()]).toEqual([false, '2'])
  })

  it('ack() on QoS 0 is true, every time, and sends nothing', async () => {
    const { world, subscription } = await received({ ack: 'manual' }, publish('a', 'x'))
    const message = taken(subscription)
    expect([message.ack(), message.ack(), await acked(world)]).toEqual([true, true, []])
  })
})

describe("'on-receive'", () => {
  it('acknowledges on entering the buffer, before anybody reads', async () => {
    const { world, subscription } = await received({ ack: 'on-receive' }, ...both)
    expect(await acked(world)).toEqual(['puback 1', 'pubrec 2'])
    expect(takenTexts(subscription)).toEqual(['1', '2'])
  })

  it('before SUBACK nothing is acknowledged: after a refusal it is left to the next subscription', async () => {
    const world = await connected({ clientId: 'c', cleanStart: false }, keeps())
    const call = failure(world.client.subscribe('a', { qos: 2, ack: 'on-receive' }))
    await world.settle()
    await world.send(...both)
    expect(acks(world)).toEqual([])
    await answer(world, 'subscribe', 0x80)
    await call
    const next = world.client.subscription('a', { qos: 2, ack: 'on-receive' })
    await world.settle()
    await answer(world, 'subscribe', 2)
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2'])
    expect(takenTexts(next)).toEqual(['1', '2'])
  })

  it('its default overflow is drop-oldest', async () => {
    const { world, subscription } = await received({ ack: 'on-receive', buffer: 2 })
    for (const packet of series('a', 6)) await world.send(packet)
    expect(acks(world)).toEqual(pubacks(1, 6))
    expect(takenTexts(subscription).at(-1)).toBe('6')
    expect(subscription.dropped).toBeGreaterThanOrEqual(3)
  })
})

it.each([
  ['manual', true],
  ['on-receive', false],
] as const)('overlapping next() is fine under %s', async (ack, isOpen) => {
  const { world, subscription } = await received({ ack })
  const waiting = [subscription.next(), subscription.next()]
  await world.send(...series('a', 2))
  const messages = await Promise.all(waiting)
  expect(messages.map((message) => [message?.text(), message?.ack()])).toEqual([
    ['1', isOpen],
    ['2', isOpen],
  ])
  expect(await acked(world)).toEqual(['puback 1', 'puback 2'])
})

describe('reason codes', () => {
  it.each([0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])(
    '[MQTT-3.4.2-1] [MQTT-3.5.2-1] %i is sent at QoS 1 and 2',
    async (reasonCode) => {
      const { world, subscription } = await received({ ack: 'manual' }, ...both)
      for (const message of [taken(subscription), taken(subscription)]) message.ack(reasonCode)
      const hex = `0x${reasonCode.toString(16)}`
      expect(await acked(world)).toEqual([`puback 1 ${hex}`, `pubrec 2 ${hex}`])
    },
  )

  it('[MQTT-3.4.2-1] those that no client may send are refused, without effect', async () => {
    const { world, subscription } = await received({ ack: 'manual' }, publish('a', 'x', 1))
    const message = taken(subscription)
    const refused = expect.objectContaining({ code: 'ERR_INVALID_OPTION' })
    const codes = '1 16 127 129 142 146 255 256 -1 1.5'.split(' ').map(Number)
    for (const code of [...codes, '128' as unknown as number])
      expect(() => message.ack(code)).toThrow(refused)
    expect(await acked(world)).toEqual([])
    expect(message.ack()).toBe(true)
    expect(await acked(world)).toEqual(['puback 1'])
  })
})

describe('disconnect() and open turns', () => {
  it('under manual acks it waits for open ones, and acknowledges in order what is settled meanwhile', async () => {
    const { world, subscription } = await received({ ack: 'manual' }, ...series('a', 3))
    const [first, second] = [taken(subscription), taken(subscription)]
    const done = quiet(world.client.disconnect())
    await world.settle()
    second.ack()
    await world.settle()
    expect(world.peer.all('disconnect')).toEqual([])
    first.ack()
    await world.settle()
    await world.outcome(done)
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    expect([world.client.state, world.peer.received.at(-1)?.type]).toEqual(['closed', 'disconnect'])
  })

  it.each(['auto', 'on-receive'] as const)(
    'what arrives once disconnect() began is not acknowledged: %s',
    async (ack) => {
      const world = await agreed({ clientId: 'c', cleanStart: false })
      const busy = await subscribe(world, 'busy', { qos: 1, ack: 'manual' })
      const other = await subscribe(world, 'other', { qos: 1, ack })
      await world.send(publish('busy', 'x', 1))
      const message = taken(busy)
      const done = quiet(world.client.disconnect())
      await world.settle()
      await world.send(publish('other', 'late', 2))
      message.ack()
      await world.settle()
      await done
      expect([takenTexts(other), acks(world)]).toEqual([[], ['puback 1']])
    },
  )
})

const names: Readonly<Record<number, string>> = { 4: 'puback', 5: 'pubrec', 7: 'pubcomp' }

/** A session that notes what it hears. */
function noting(): { readonly heard: unknown[]; readonly host: ConnectionHost } {
  const heard: unknown[] = []
  const handleAck = (type: number, id: number, reasonCode: number): number => {
    heard.push([names[type], id, reasonCode])
    return UNKNOWN
  }
  const handlePubrel = (id: number): void => void heard.push(['pubrel', id])
  const windows = { sendWindow: { handleAck }, receiveWindow: { handlePubrel } }
  const session = { state: 'connected', ...windows, expectConnected: () => true }
  return { heard, host: { session } as unknown as ConnectionHost }
}

function decoded(bytes: Uint8Array, version: 4 | 5): unknown[] | undefined {
  try {
    const packet = decodeServerPacket(bytes, 0, 2, bytes.length, version)
    if (packet.type === 'pubrel') return [packet.type, packet.packetId]
    return 'packetId' in packet && 'reasonCode' in packet
      ? [packet.type, packet.packetId, packet.reasonCode]
      : []
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

const hex = ' 01 0000 0001 0102 ffff 00010000 000100011f 0001100000'.split(' ')
const bodies = hex.map((body) => [...Buffer.from(body, 'hex')])
for (let code = 0; code < 256; code++) bodies.push([0, 9, code], [0, 0, code])

describe('an acknowledgement', () => {
  const kinds = [4, 5, 6, 7].flatMap((type) => [[type, 4] as const, [type, 5] as const])

  it.each(kinds)('of type %i in version %i is taken only where it decodes', (type, version) => {
    let taken = 0
    for (const body of bodies) {
      const bytes = Uint8Array.from([(type << 4) | (type === 6 ? 2 : 0), body.length, ...body])
      const { heard, host } = noting()
      if (!takeAck(host, type, bytes, 2, bytes.length, version)) {
        expect(heard).toEqual([])
        continue
      }
      taken += 1
      expect(heard).toEqual([decoded(bytes, version)])
    }
    expect(taken).toBeGreaterThanOrEqual(version === 4 ? 3 : 5)
  })

  it('before CONNACK ends the connection, and means nothing', () => {
    const { heard, host } = noting()
    const closed = {
      ...host,
      session: { ...host.session, state: 'connecting', expectConnected: () => false },
    } as unknown as ConnectionHost
    expect(takeAck(closed, 4, Uint8Array.of(0x40, 2, 0, 1), 2, 4, 5)).toBe(true)
    expect(heard).toEqual([])
  })
})
