/**
 * Attacks by size: packets, parts, compression, properties (T01, T03, T04, T10); on tables, on text, and before the end of authentication (T09, T11,
 * T15, T26).
 */
import { deflateRawSync } from 'node:zlib'
import { pause } from '../../../support/pausing.js'
import type { Bench } from '../bench.js'
import {
  connack,
  join,
  packet,
  pairs,
  properties,
  publish,
  repeated,
  text,
  uint16,
  varint,
} from '../bytes.js'
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

const unknown = 100_000

const nasty = [
  '/'.repeat(65_535),
  'a/'.repeat(32_767),
  '\\'.repeat(65_535),
  `${'('.repeat(60_000)}a`,
  '%'.repeat(65_535),
  ' '.repeat(65_535),
  'a'.repeat(65_535),
]

export const tables: readonly Scenario[] = [
  {
    row: 'T09',
    variant: 'bytes',
    limit: 'aliases are counted in the memoryBudget',
    fed: '5,120 aliases of 64 KiB (320 MiB), where 65,535 are allowed',
    budget: memoryBudget + 2 * MiB,
    async peer(link) {
      await link.ready(0)
      for (let number = 1; number <= 5120; number++) {
        const topic = `${String(number).padStart(10, '0')}${'t'.repeat(65_525)}`
        const block = properties(0x23, uint16(number))
        if (!(await link.send(publish({ topic, properties: block })))) break
      }
      await link.finish()
    },
    async run(bench) {
      await bench.connected({ topicAliasMaximum: 65_535 })
      bench.go()
      const { disconnect } = await bench.told('over')
      const what = 'over the budget: DISCONNECT 0x94 or 0x97'
      bench.check([0x94, 0x97].includes(disconnect as number), what, disconnect)
    },
  },
  {
    row: 'T11',
    variant: 'unknown',
    limit: 'only identifiers that we used count',
    fed: '100,000 messages with 1,000,000 identifiers, all different',
    budget: MiB,
    async peer(link) {
      await link.ready(2)
      for (let number = 0; number < unknown; number += 100) {
        const some = Array.from({ length: 100 }, (_, at) => {
          const identifiers = Array.from({ length: 10 }, (_each, nth) =>
            join(0x0b, varint(1_000_000 + (number + at) * 10 + nth)),
          )
          return publish({ topic: 'f/1', properties: properties(...identifiers) })
        })
        await link.send(Buffer.concat(some))
      }
      link.tell('done')
    },
    async run(bench) {
      const client = bench.client(await bench.server())
      await client.connect()
      const read = [0, 0]
      for (const [index, filter] of ['f/+', 'f/#'].entries())
        await client.listen(filter, () => {
          read[index] = (read[index] as number) + 1
        })
      await bench.meter.start()
      bench.go()
      await bench.told('done')
      await bench.until(() => client.stats().received >= unknown, 'every message')
      await bench
        .until(() => read.every((count) => count === unknown), 'the readers')
        .catch(() => undefined)
      bench.same(read, [unknown, unknown], 'each copy is routed by its topic alone')
      bench.same(client.state, 'connected', 'the link is kept')
    },
  },
  {
    row: 'T15',
    variant: 'patterns',
    limit: 'no regular expression on peer data: linear time',
    fed: '90 packets with 290 strings of up to 65,535 bytes',
    budget: 6 * MiB,
    async peer(link) {
      await link.ready(3)
      for (let round = 0; round < 10; round++) {
        for (const string of nasty) {
          const one = text(string)
          const block = properties(0x03, one, 0x08, one, 0x26, one, one)
          await link.send(publish({ topic: string, properties: block, payload: string }))
        }
        const id = uint16(round + 100)
        await link.send(packet(0xb0, id, properties(0x1f, text('a'.repeat(65_535))), 0))
        await link.send(packet(0x40, id, 0, properties(0x1f, text(`${'a '.repeat(4000)}!`))))
      }
      link.tell('done')
    },
    async run(bench) {
      const client = await bench.connected()
      for (const filter of ['#', '+/+/+/+/#', `${'+/'.repeat(100)}#`])
        await client.listen(filter, (message) => void message.properties)
      const started = performance.now()
      bench.go()
      await bench.told('done')
      await bench.until(() => client.stats().received >= 10 * nasty.length, 'every message')
      const took = performance.now() - started
      bench.check(took < 5000, 'ninety packets of the longest text take less than 5 s', took)
      bench.same(client.state, 'connected', 'the link is kept')
    },
  },
  {
    row: 'T26',
    variant: 'impatient',
    limit: 'what waits for the end of authentication is in the memoryBudget',
    fed: '320 MiB behind a CONNACK that is still to be judged',
    budget: memoryBudget + MiB,
    async peer(link) {
      await link.packet(1)
      await link.send(connack(0, properties(0x15, text('toy'))))
      await link.flood(publish({ payload: Buffer.alloc(64 * KiB) }), 10 * memoryBudget)
      await link.finish()
    },
    async run(bench) {
      const url = await bench.server()
      await bench.meter.start()
      const said = { start: () => 'hello', continue: () => 'x', success: () => pause(2000) }
      const client = bench.client(url, { auth: { method: 'toy', ...said }, connectTimeout: 8000 })
      const connecting = client.connect()
      await pause(1000)
      await bench.meter.pause()
      bench.same(client.stats().received, 0, 'nothing behind CONNACK is handled before the verdict')
      await connecting
      await bench.until(() => client.stats().received > 1000, 'what waited')
      const what = 'the rest waits on the other side, and is read afterwards'
      bench.same(client.state, 'connected', what)
    },
  },
]
