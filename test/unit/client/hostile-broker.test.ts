/** A hostile broker against memory, time and identifiers: each test is the smallest that shows one attack. */
import { expect, it } from 'vitest'
import type { ClientOptions, PublishOptions } from '../../../src/client/api/index.js'
import { sliceLength } from '../../../src/client/connection/stream-reader.js'
import type { Sink, Transport } from '../../../src/transport/transport.js'
import { Decoder } from '../../../src/wire/decode.js'
import { accepting, agreeable, World } from './harness.js'
import { Rig, welcoming } from './rig.js'
import { asking, bytes, toy } from './toy-auth.js'

/** A peer that reads nothing: every write is taken, none leaves. */
class Unread implements Transport {
  sink: Sink | undefined
  /** Writes that have not left, and their bytes. */
  writes = 0
  destroyed = false
  readonly bytes: number[] = []

  open(sink: Sink): void {
    this.sink = sink
  }

  write(bytes: Uint8Array): boolean {
    this.writes += 1
    this.bytes.push(...bytes)
    return this.writes < 2
  }

  close(): void {
    this.destroy()
  }

  destroy(): void {
    if (this.destroyed) return
    this.destroyed = true
    queueMicrotask(() => this.sink?.closed(undefined))
  }
}

async function unread(options: ClientOptions): Promise<{ world: World; transport: Unread }> {
  const transport = new Unread()
  const world = new World({ stats: true, ...options }, {}, 1, () => transport)
  const connecting = world.client.connect()
  await world.settle()
  transport.sink?.chunk(Uint8Array.of(0x20, 3, 0, 0, 0))
  await connecting
  return { world, transport }
}

it('the memory budget bounds small writes to a peer that reads nothing: each costs far more than its bytes', async () => {
  const { world, transport } = await unread({ memoryBudget: 1024 * 1024 })
  // PUBREL of an unknown identifier, each in a read of its own: five bytes of PUBCOMP.
  const pubrel = Uint8Array.of(0x62, 2, 0, 9)
  for (let read = 0; read < 20_000 && !transport.destroyed; read++) {
    transport.sink?.chunk(pubrel)
    if (read % 500 === 0) await world.settle()
  }
  // 256 bytes for each are fewer than they take.
  expect(transport.writes).toBeLessThanOrEqual(4096)
  world.client.destroy()
}, 60_000)

it('[MQTT-4.12.0-3] AUTH out of turn ends the connection: what the mechanism has not answered does not pile up', async () => {
  let asked = 0
  const { auth } = toy({
    continue: () => {
      asked += 1
      return new Promise<never>(() => undefined)
    },
  })
  const rig = await new Rig({ auth, clientId: 'c', cleanStart: false, reconnect: false }, { behave: () => asking() }).up()
  rig.peer.answer = () => undefined
  const properties = { authenticationMethod: 'toy', authenticationData: bytes('x'.repeat(1000)) }
  for (let round = 0; round < 40; round++) {
    rig.peer.send({ type: 'auth', reasonCode: 0x18, properties }, { type: 'auth', reasonCode: 0, properties })
    await rig.settle()
  }
  expect(asked).toBeLessThanOrEqual(1)
  expect(rig.peers[0]?.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x82 })
  await rig.finish()
}, 60_000)

it('reads that bring no whole packet count against a slice as well', async () => {
  const calls: string[] = []
  let sink: Sink | undefined
  const transport: Transport = {
    open: (given) => {
      sink = given
    },
    write: (_bytes, written) => {
      queueMicrotask(() => written?.())
      return true
    },
    close: () => queueMicrotask(() => sink?.closed(undefined)),
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
    destroy: () => queueMicrotask(() => sink?.closed(undefined)),
  }
  const world = new World({}, {}, 1, () => transport)
  const connecting = world.client.connect()
  await world.settle()
  sink?.chunk(Uint8Array.of(0x20, 3, 0, 0, 0))
  await connecting
  // The beginning of a PUBLISH of 16,000 bytes, a byte at a time.
  sink?.chunk(Uint8Array.of(0x30, 0x80, 0x7d))
  for (let read = 0; read < sliceLength + 100; read++) sink?.chunk(Uint8Array.of(1))
  expect(calls).toContain('pause')
  await world.settle()
  expect(calls.at(-1)).toBe('resume')
  expect(world.client.state).toBe('connected')
  world.client.destroy()
}, 60_000)

it('[MQTT-3.14.4-1] nothing follows DISCONNECT, also when acknowledgements waited for a peer that reads nothing', async () => {
  const { world, transport } = await unread({})
  for (let id = 1; id <= 100; id++) {
    transport.sink?.chunk(Uint8Array.of(0x32, 6, 0, 1, 0x61, 0, id, 0))
    await world.settle()
  }
  const ending = world.client.disconnect()
  await world.clock.advance(10_000)
  await ending
  const packets = [...new Decoder({ from: 'client' }).push(Uint8Array.from(transport.bytes))]
  expect(packets.map(({ type }) => type)).toEqual(['connect', ...new Array<string>(100).fill('puback'), 'disconnect'])
}, 60_000)

it('small messages cannot hold much more memory than the budget says', async () => {
  const world = new World({ stats: true, memoryBudget: 1024 * 1024 })
  world.answer = agreeable
  const connecting = world.client.connect()
  await world.settle()
  await connecting
  const subscribing = world.client.subscribe('a', { buffer: 1_000_000_000, bufferBytes: 1_000_000_000 })
  await world.settle()
  await subscribing
  const tiny = [0x30, 4, 0, 1, 0x61, 0]
  await world.sendBytes(Array.from({ length: 20_000 * tiny.length }, (_, at) => tiny[at % tiny.length] as number))
  // What each takes in the heap of V8 is 370 bytes.
  expect(world.client.stats().unread).toBeLessThanOrEqual((1024 * 1024) / 256)
  expect(world.client.state).toBe('connected')
}, 60_000)

it('one message that does not fit into the memory budget by itself does not end every connection', async () => {
  const rig = await new Rig({ memoryBudget: 1024 * 1024, cleanStart: false, clientId: 'c' }).up()
  // Four readers, each with a copy of its own: 1.2 MB.
  const got: number[] = []
  for (let reader = 0; reader < 4; reader++) await Promise.all([rig.client.listen('a', () => void got.push(reader), { qos: 1 }), rig.settle()])
  const message = { type: 'publish', topic: 'a', payload: new Uint8Array(300_000), qos: 1, packetId: 1, properties: {} } as const
  for (let attempt = 0; attempt < 5; attempt++) {
    rig.peer.send({ ...message, dup: attempt > 0 })
    await rig.settle()
    if (rig.client.state === 'connected') break
    rig.behave = () => welcoming({}, true)
    await rig.advance(60_000)
  }
  // Delivered, or refused: in both cases the server is told, and does not send it again.
  expect(rig.seen('disconnect')).toEqual([])
  expect(rig.peer.received.filter(({ type }) => type === 'puback')).toHaveLength(1)
  await rig.finish()
}, 60_000)

it('outbound.maxQueuedBytes counts the properties of messages that wait and of those in flight', async () => {
  const world = new World({ outbound: { maxQueuedBytes: 1024 * 1024 } })
  world.answer = accepting()
  const connecting = world.client.connect()
  await world.settle()
  await connecting
  const options: PublishOptions = { qos: 1, properties: { userProperties: [['k', 'x'.repeat(60_000)]] } }
  let refused = 0
  for (let message = 0; message < 100; message++) {
    world.client.publish('a', '', options).catch((error: { code?: string }) => {
      if (error.code === 'ERR_QUEUE_FULL') refused += 1
    })
  }
  await world.settle()
  // Seventeen of them are a mebibyte, and as many again may wait.
  expect(refused).toBeGreaterThanOrEqual(60)
  world.client.destroy()
}, 60_000)

it.each([42, null, { length: 1n }])(
  'a content type of %o is refused, typed, and the next publish goes on',
  async (contentType) => {
    const world = new World()
    world.answer = agreeable
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    const wrong = { qos: 1, properties: { contentType } } as unknown as PublishOptions
    expect(await world.outcome(world.client.publish('a', 'b', wrong))).toMatchObject({ error: { code: 'ERR_INVALID_OPTION' } })
    expect(await world.outcome(world.client.publish('a', 'b', { qos: 1 }))).toMatchObject({ state: 'fulfilled' })
    world.client.destroy()
  },
  60_000,
)

it('nor one that does not fit beside what else the connection holds', async () => {
  const rig = await new Rig({ memoryBudget: 1024 * 1024, topicAliasMaximum: 10, cleanStart: false, clientId: 'c' }).up()
  await Promise.all([rig.client.listen('a', () => undefined, { qos: 1 }), rig.settle()])
  // Topics of aliases take 120,000 bytes.
  rig.peer.send({ type: 'publish', topic: 'x'.repeat(60_000), payload: new Uint8Array(0), qos: 0, properties: { topicAlias: 1 } })
  await rig.settle()
  rig.peer.send({ type: 'publish', topic: 'a', payload: new Uint8Array(1_000_000), qos: 1, packetId: 1, properties: {} })
  await rig.settle()
  expect(rig.seen('disconnect')).toEqual([])
  expect(rig.peer.received.filter(({ type }) => type === 'puback')).toHaveLength(1)
  await rig.finish()
}, 60_000)

it('[MQTT-3.3.4-4] seventy overlapping subscriptions of ours may all be named in one message', async () => {
  const world = new World()
  world.answer = agreeable
  const connecting = world.client.connect()
  await world.settle()
  await connecting
  let copies = 0
  for (let combination = 0; combination < 70; combination++) {
    const filter = Array.from({ length: 7 }, (_, level) => ((combination >> level) & 1 ? '+' : 'x')).join('/')
    await Promise.all([world.client.listen(filter, () => void copies++), world.settle()])
  }
  const subscriptionIdentifiers = world.peer.received.flatMap((packet) =>
    packet.type === 'subscribe' ? (packet.properties.subscriptionIdentifiers ?? []) : [],
  )
  expect(new Set(subscriptionIdentifiers).size).toBe(70)
  await world.send({ type: 'publish', topic: 'x/x/x/x/x/x/x', payload: new Uint8Array(1), qos: 0, properties: { subscriptionIdentifiers } })
  expect(world.client.state).toBe('connected')
  expect(copies).toBe(70)
  world.client.destroy()
}, 60_000)
