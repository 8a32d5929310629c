/** Attacks by size: packets, parts, compression, properties (T01, T03, T04, T10). */
import { deflateRawSync } from 'node:zlib'
import type { Bench } from '../bench.js'
import { join, packet, pairs, properties, publish, repeated, text, varint } from '../bytes.js'
import { dataFrame } from '../frames.js'
import type { Link } from '../link.js'
import { KiB, MiB, memoryBudget, muchGarbage, type Scenario } from '../scenario.js'

/** What a connection costs in any case: code that is compiled late, tables, the stream. */
const smallest = 512 * KiB
const drops = MiB - 64

/** 268,435,455 bytes are announced, and as many of them sent as are taken. */
const announced = (way: 'tcp' | 'ws'): Scenario => ({
  row: 'T01',
  variant: `${way === 'ws' ? 'WebSocket' : 'TCP'}, 5.0`,
  limit: 'Maximum Packet Size 1 MiB',
  fed: 'a PUBLISH that announces 256 MB, and 320 MiB behind it',
  budget: smallest,
  garbage: way === 'ws' ? muchGarbage : undefined,
  way,
  async peer(link: Link): Promise<void> {
    await link.ready()
    await link.send(join(0x30, 0xff, 0xff, 0xff, 0x7f, text('a')))
    const at = performance.now()
    await link.flood(Buffer.alloc(64 * KiB), 10 * memoryBudget)
    await link.finish(() => ({ took: performance.now() - at }))
  },
  async run(bench: Bench): Promise<void> {
    const options = { maximumPacketSize: MiB, oversized: 'disconnect' } as const
    const [client] = await bench.subscribed(options)
    bench.go()
    const error = await bench.closed(client)
    bench.same(error?.code, 'ERR_PACKET_TOO_LARGE', 'the client ends with ERR_PACKET_TOO_LARGE')
    const { disconnect, took } = await bench.told('over')
    bench.same(disconnect, 0x95, 'DISCONNECT 0x95 at the header')
    const what = 'the stream is gone within 2 s, whatever the server sends on'
    bench.check((took as number) < 2000, what, took)
  },
})

export const size: readonly Scenario[] = [
  announced('tcp'),
  announced('ws'),
  {
    row: 'T01',
    variant: 'read past',
    limit: 'maximumPacketSize 16 MiB',
    fed: 'a PUBLISH of 256 MiB',
    budget: smallest,
    garbage: muchGarbage,
    async peer(link) {
      await link.ready()
      const largest = 268_435_455
      const head = join(0x30, varint(largest), text('a'), 0)
      const rest = largest - (head.length - 5)
      const piece = Buffer.alloc(64 * KiB)
      await link.send(head)
      await link.flood(piece, rest - (rest % piece.length))
      await link.send(piece.subarray(0, rest % piece.length))
      await link.send(publish({ payload: 'small' }))
    },
    async run(bench) {
      const [client, subscription] = await bench.subscribed()
      const dropped: unknown[] = []
      client.on('drop', ({ reason, size }) => dropped.push([reason, size]))
      bench.go()
      const message = await subscription.next({ timeout: 60_000 })
      bench.same(message?.text(), 'small', 'what follows arrives')
      bench.same(dropped, [['too-large', 268_435_460]], 'it is reported, with its size')
      bench.same(client.state, 'connected', 'the link is kept')
    },
  },
  {
    row: 'T01',
    variant: 'begun',
    limit: 'buffers grow with bytes received',
    fed: '320 packets of 1 MiB, each stopped after 10 bytes',
    budget: MiB,
    garbage: muchGarbage,
    async peer(link) {
      await link.ready()
      for (let round = 1; round <= 320; round++) {
        const whole = packet(0x30, text('a'), 0, Buffer.alloc(MiB - 16))
        link.inside(true)
        await link.send(whole.subarray(0, 10))
        if (round % 32 === 1) {
          link.tell('begun')
          await link.go()
        }
        await link.send(whole.subarray(10))
        link.inside(false)
      }
      link.tell('done')
    },
    async run(bench) {
      const client = await bench.connected()
      await client.listen('a', () => undefined)
      bench.go()
      const held: number[] = []
      for (let round = 0; round < 10; round++) {
        await bench.told('begun')
        await bench.until(() => client.stats().received === round * 32, 'the packets before')
        await new Promise((resolve) => setTimeout(resolve, 20))
        held.push(await bench.meter.pause())
        bench.go()
      }
      await bench.told('done')
      // The first half pays for what is made once, the engine's notes on hot functions among it.
      const most = Math.max(...held.slice(5)) - (held[4] as number)
      bench.check(most < 256 * KiB, 'ten bytes of a megabyte cost next to nothing', held)
      bench.same(client.state, 'connected', 'the link is kept')
    },
  },
  {
    row: 'T03',
    variant: 'WebSocket frames',
    limit: 'parts are coalesced',
    fed: 'a packet of 1 MiB in 1,048,512 frames of one byte',
    budget: 3 * MiB,
    garbage: muchGarbage,
    way: 'ws',
    async peer(link) {
      await link.ready()
      const whole = publish({ payload: Buffer.alloc(drops, 0x61) })
      link.inside(true)
      for (let at = 0; at < whole.length; at += 32 * KiB) {
        const part = [...whole.subarray(at, at + 32 * KiB)]
        await link.raw(Buffer.concat(part.map((byte) => dataFrame(Buffer.of(byte)))))
        if (at !== 16 * 32 * KiB) continue
        link.tell('half')
        await link.go()
      }
      link.inside(false)
      await link.packet(12)
      link.tell('done')
    },
    async run(bench) {
      const [client, subscription] = await bench.subscribed({ keepAlive: 1 })
      bench.go()
      await bench.told('half')
      await bench.meter.pause()
      bench.go()
      const message = await subscription.next({ timeout: 20_000 })
      bench.same(message?.payload.length, drops, 'the packet arrives whole')
      await bench.told('done')
      bench.same(client.state, 'connected', 'PINGREQ went on, the link is kept')
    },
  },
  {
    row: 'T03',
    variant: 'WebSocket fragments',
    limit: '65,536 fragments',
    fed: 'a message in 1,000,000 fragments of one byte',
    budget: 8 * MiB,
    way: 'ws',
    async peer(link) {
      await link.ready()
      await link.raw(dataFrame(Buffer.of(0x30), { final: false }))
      const { bytes } = repeated(dataFrame(Buffer.of(0xff), { opcode: 0, final: false }), 64 * KiB)
      for (let sent = 0; sent < 3_000_000 && (await link.raw(bytes)); sent += bytes.length);
      await link.finish()
    },
    async run(bench) {
      const [client] = await bench.subscribed()
      bench.go()
      const error = await bench.closed(client)
      bench.same(error?.code, 'ERR_CONNECTION_LOST', 'the client ends with ERR_CONNECTION_LOST')
      const { disconnect } = await bench.told('over')
      bench.same(disconnect, undefined, 'closed by the WebSocket layer, nothing of it is delivered')
    },
  },
  {
    row: 'T04',
    variant: 'Node',
    limit: 'permessage-deflate is not offered',
    fed: '320 MiB, deflated into one frame',
    budget: MiB,
    way: 'ws',
    async peer(link) {
      await link.ready()
      const zeros = Buffer.alloc(10 * memoryBudget)
      const small = deflateRawSync(join(0x30, varint(zeros.length), zeros))
      await link.raw(dataFrame(small, { compressed: true }))
      await link.finish(() => ({ size: small.length }))
    },
    async run(bench) {
      const [client] = await bench.subscribed()
      const { request } = await bench.told('handshake')
      bench.check(!/sec-websocket-extensions/i.test(String(request)), 'no extension is offered')
      bench.go()
      const error = await bench.closed(client)
      const { size } = await bench.told('over')
      bench.check((size as number) < MiB, 'the bomb is small on the wire', size)
      const what = 'a compressed frame ends the link, not inflated'
      bench.same(error?.code, 'ERR_CONNECTION_LOST', what)
    },
  },
  {
    row: 'T10',
    variant: 'heavy',
    limit: 'buffers count what properties cost',
    fed: '320 MiB of messages that are all properties, nobody reads',
    budget: 8 * MiB,
    garbage: muchGarbage,
    async peer(link) {
      await link.ready()
      const block = properties(pairs(120, 'n'.repeat(4000), 'v'.repeat(4000)))
      await link.flood(publish({ properties: block, payload: 'x' }), 10 * memoryBudget)
      link.tell('done')
    },
    async run(bench) {
      const [client, subscription] = await bench.subscribed()
      bench.go()
      await bench.told('done')
      await bench.until(() => client.stats().received >= 349, 'all messages')
      await bench.meter.pause()
      const { dropped } = subscription
      bench.check(dropped > 0, 'the oldest are dropped, and counted', dropped)
      bench.same(client.state, 'connected', 'the link is kept')
    },
  },
]
