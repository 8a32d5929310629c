/** A hostile broker against memory, time and identifiers: each test is the smallest that shows one attack. */
import { expect, it } from 'vitest'
import { sliceLength } from '../../../src/client/connection/stream-reader.js'
import type { ClientOptions, PublishOptions } from '../../../src/client/options/index.js'
import type { Sink, Transport } from '../../../src/transport/transport.js'
import { Decoder } from '../../../src/wire/decode.js'
import { connected, times } from './harness.js'
import { agreed, publish, subscribe } from './incoming.js'
import { Rig, welcoming } from './rig.js'
import { listen, over, settled } from './steps.js'

const mebibyte = 1024 * 1024

/** A peer in the hands of the test. `reads`: what is written leaves; else every write is taken, and none leaves. */
class Peer implements Transport {
  sink: Sink | undefined
  writes = 0
  destroyed = false
  readonly bytes: number[] = []
  readonly calls: string[] = []
  readonly #reads: boolean

  constructor(reads: boolean) {
    this.#reads = reads
  }

  open(sink: Sink): void {
    this.sink = sink
  }

  write(bytes: Uint8Array, written?: () => void): boolean {
    this.writes += 1
    for (const byte of bytes) this.bytes.push(byte)
    if (this.#reads) queueMicrotask(() => written?.())
    return this.#reads || this.writes < 2
  }

  close(): void {
    this.destroy()
  }

  pause(): void {
    this.calls.push('pause')
  }

  resume(): void {
    this.calls.push('resume')
  }

  destroy(): void {
    if (this.destroyed) return
    this.destroyed = true
    queueMicrotask(() => this.sink?.closed(undefined))
  }
}

async function facing(reads: boolean, options: ClientOptions = {}) {
  const peer = new Peer(reads)
  return {
    world: await over(peer, (connack) => peer.sink?.chunk(connack), { stats: true, ...options }),
    peer,
  }
}

it('the memory budget bounds small writes to a peer that reads nothing: each costs far more than its bytes', async () => {
  const { world, peer } = await facing(false, { memoryBudget: mebibyte })
  // PUBREL of an unknown identifier, each in a read of its own: five bytes of PUBCOMP.
  for (let read = 0; read < 20_000 && !peer.destroyed; read++) {
    peer.sink?.chunk(Uint8Array.of(0x62, 2, 0, 9))
    if (read % 500 === 0) await world.settle()
  }
  // 256 bytes for each are fewer than they take.
  expect(peer.writes).toBeLessThanOrEqual(4096)
  world.client.destroy()
})

it('reads that bring no whole packet count against a slice as well', async () => {
  const { world, peer } = await facing(true)
  // The beginning of a PUBLISH of 16,000 bytes, a byte at a time.
  peer.sink?.chunk(Uint8Array.of(0x30, 0x80, 0x7d))
  for (let read = 0; read < sliceLength + 100; read++) peer.sink?.chunk(Uint8Array.of(1))
  expect(peer.calls).toContain('pause')
  await world.settle()
  expect([peer.calls.at(-1), world.client.state]).toEqual(['resume', 'connected'])
  world.client.destroy()
})

it('[MQTT-3.14.4-1] nothing follows DISCONNECT, also when acknowledgements waited for a peer that reads nothing', async () => {
  const { world, peer } = await facing(false)
  for (let id = 1; id <= 100; id++) {
    peer.sink?.chunk(Uint8Array.of(0x32, 6, 0, 1, 0x61, 0, id, 0))
    await world.settle()
  }
  await settled(world, world.client.disconnect(), 10_000)
  const packets = [...new Decoder({ from: 'client' }).push(Uint8Array.from(peer.bytes))]
  const sent = ['connect', ...new Array<string>(100).fill('puback'), 'disconnect']
  expect(packets.map(({ type }) => type)).toEqual(sent)
})

it('small messages cannot hold much more memory than the budget says', async () => {
  const world = await agreed({ stats: true, memoryBudget: mebibyte })
  await subscribe(world, 'a', { buffer: 1_000_000_000, bufferBytes: 1_000_000_000 })
  await world.sendBytes(Buffer.alloc(20_000 * 6, Buffer.of(0x30, 4, 0, 1, 0x61, 0)))
  // What each takes in the heap of V8 is 370 bytes.
  expect(world.client.stats().unread).toBeLessThanOrEqual(mebibyte / 256)
  expect(world.client.state).toBe('connected')
})

it('one message that does not fit into the memory budget by itself does not end every connection', async () => {
  const rig = await new Rig({ memoryBudget: mebibyte, cleanStart: false, clientId: 'c' }).up()
  // Four readers, each with a copy of its own: 1.2 MB.
  for (let reader = 0; reader < 4; reader++)
    await settled(
      rig,
      rig.client.listen('a', () => undefined, { qos: 1 }),
    )
  for (let attempt = 0; attempt < 5; attempt++) {
    rig.peer.send(publish('a', 'x'.repeat(300_000), 1, { dup: attempt > 0 }))
    await rig.settle()
    if (rig.client.state === 'connected') break
    rig.behave = () => welcoming({}, true)
    await rig.advance(60_000)
  }
  // Delivered, or refused: in both cases the server is answered, and does not send it again.
  expect([rig.seen('disconnect'), rig.peer.all('puback').length]).toEqual([[], 1])
  await rig.finish()
})

it('outbound.maxQueuedBytes counts the properties of messages that wait and of those in flight', async () => {
  const world = await connected({ outbound: { maxQueuedBytes: mebibyte } })
  const options: PublishOptions = {
    qos: 1,
    properties: { userProperties: [['k', 'x'.repeat(60_000)]] },
  }
  let refused = 0
  for (let message = 0; message < 100; message++)
    world.client.publish('a', '', options).catch((error: { code?: string }) => {
      if (error.code === 'ERR_QUEUE_FULL') refused += 1
    })
  await world.settle()
  // Seventeen of them are a mebibyte, and as many again may wait.
  expect(refused).toBeGreaterThanOrEqual(60)
  world.client.destroy()
})

it('[MQTT-3.3.4-4] seventy overlapping subscriptions of ours may all be named in one message', async () => {
  const world = await agreed()
  let copies = 0
  for (let combination = 0; combination < 70; combination++) {
    const filter = times(7, (level) => ((combination >> level) & 1 ? '+' : 'x')).join('/')
    await listen(world, filter, () => void copies++)
  }
  const subscriptionIdentifiers = world.peer
    .all('subscribe')
    .flatMap(({ properties }) => properties.subscriptionIdentifiers ?? [])
  expect(new Set(subscriptionIdentifiers).size).toBe(70)
  await world.send(
    publish('x/x/x/x/x/x/x', 'x', undefined, { properties: { subscriptionIdentifiers } }),
  )
  expect([world.client.state, copies]).toEqual(['connected', 70])
  world.client.destroy()
})
