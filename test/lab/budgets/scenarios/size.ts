/**
 * Attacks by size: packets, kinds of packets, parts, compression, properties (T01 to T04, T10).
 */
import { deflateRawSync } from 'node:zlib'
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
import { type Link, limitsOf, versionOf } from '../link.js'
import { KiB, MiB, memoryBudget, muchGarbage, type Scenario } from '../scenario.js'

/** What a connection costs in any case: code that is compiled late, tables, the stream. */
const smallest = 512 * KiB

// T01

/** 268,435,455 bytes are announced, and as many of them sent as are taken. */
async function announceAll(link: Link): Promise<void> {
  const connect = await link.welcome()
  link.tell('limits', {
    maximum: versionOf(connect) === 5 ? limitsOf(connect).get(0x27) : undefined,
  })
  await link.packet(8)
  await link.go()
  const header = join(0x30, 0xff, 0xff, 0xff, 0x7f, text('a'))
  await link.send(header)
  link.tell('announced')
  await link.go()
  const at = performance.now()
  await link.flood(Buffer.alloc(64 * KiB), 10 * memoryBudget)
  await link.over
  await link.finish({ took: performance.now() - at })
}

async function refusesSize(bench: Bench, version: 4 | 5): Promise<void> {
  const client = bench.client(await bench.server(), {
    protocolVersion: version,
    clientId: 'c',
    maximumPacketSize: MiB,
    oversized: 'disconnect',
  })
  await client.connect()
  const { maximum } = await bench.told('limits')
  if (version === 5) bench.same(maximum, MiB, 'CONNECT announces 1 MiB')
  client.subscription('#').ready.catch(() => undefined)
  await bench.meter.start()
  bench.go()
  await bench.told('announced')
  bench.go()
  const error = await bench.closed(client)
  bench.same(error?.code, 'ERR_PACKET_TOO_LARGE', 'the client ends with ERR_PACKET_TOO_LARGE')
  const { disconnect, took } = await bench.told('over')
  bench.same(
    disconnect,
    version === 5 ? 0x95 : undefined,
    version === 5 ? 'DISCONNECT 0x95 at the header' : 'closed without DISCONNECT',
  )
  bench.check(
    (took as number) < 2000,
    'the stream is gone within 2 s, whatever the server sends on',
    took,
  )
}

/** As much as a PUBLISH can hold, and a small one behind it. */
async function sendAll(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
  const largest = 268_435_455
  const head = join(0x30, varint(largest), text('a'), 0)
  const rest = largest - (head.length - 5)
  const piece = Buffer.alloc(64 * KiB)
  await link.send(head)
  await link.flood(piece, rest - (rest % piece.length))
  await link.send(piece.subarray(0, rest % piece.length))
  await link.send(publish({ payload: 'small' }))
}

async function readsPast(bench: Bench): Promise<void> {
  const [client, subscription] = await bench.subscribed()
  const dropped: unknown[] = []
  client.on('drop', ({ reason, size }) => dropped.push([reason, size]))
  bench.go()
  const message = await subscription.next({ timeout: 60_000 })
  bench.same(message?.text(), 'small', 'what follows arrives')
  bench.same(dropped, [['too-large', 268_435_460]], 'it is reported, with its size')
  bench.same(client.state, 'connected', 'the link is kept')
}

/** Legal packets of the largest size that begin and do not go on: what is held follows what came, not what was announced. */
async function beginMany(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
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
}

// T02

const kinds = [
  ['CONNACK', 0x20, 100_000],
  ['PUBACK', 0x40, 10_000],
  ['PUBREC', 0x50, 10_000],
  ['PUBREL', 0x62, 10_000],
  ['PUBCOMP', 0x70, 10_000],
  ['SUBACK', 0x90, 100_000],
  ['UNSUBACK', 0xb0, 100_000],
  ['PINGRESP', 0xd0, 10_000],
  ['DISCONNECT', 0xe0, 100_000],
  ['AUTH', 0xf0, 100_000],
] as const

/** One connection for each kind: a header that announces ten times the cap, and all but the last byte behind it. */
async function oversize(link: Link): Promise<void> {
  const [, first, cap] = kinds[(link.number - 1) % kinds.length] as (typeof kinds)[number]
  const bytes = packet(first, Buffer.alloc(10 * cap, 0x26))
  if (first !== 0x20) await link.welcome()
  else await link.packet(1)
  await link.send(bytes.subarray(0, 6))
  const early = await Promise.race([
    link.over.then(() => true),
    new Promise((resolve) => setTimeout(resolve, 250, false)),
  ])
  link.tell('header', { early })
  if (early === false) await link.send(bytes.subarray(6, bytes.length - 1))
  const ended = await Promise.race([
    link.over.then(() => true),
    new Promise((resolve) => setTimeout(resolve, 100, false)),
  ])
  link.cut()
  await link.finish({ ended })
}

async function refusesKinds(bench: Bench): Promise<void> {
  const url = await bench.server()
  const late: string[] = []
  const codes: unknown[] = []
  // The first round is for what is made once.
  for (const [index, [name]] of [...kinds, ...kinds].entries()) {
    if (index === kinds.length) await bench.meter.start()
    const client = bench.client(url, { connectTimeout: 2000 })
    await client.connect().catch(() => undefined)
    const { early } = await bench.told('header', index + 1)
    if (early !== true) late.push(name)
    await bench.meter.pause()
    const { disconnect } = await bench.told('over', index + 1)
    codes.push(disconnect ?? null)
    bench.release(client)
  }
  bench.same(late, [], 'each is refused at its header')
  bench.same(
    codes.slice(kinds.length),
    [null, ...new Array(kinds.length - 1).fill(0x95)],
    'DISCONNECT 0x95, but for CONNACK',
  )
}

// T03

const drops = MiB - 64

/** A PUBLISH of the largest size, a byte at a time. */
async function crumble(link: Link, cut: (bytes: Buffer) => Buffer): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
  const whole = publish({ payload: Buffer.alloc(drops, 0x61) })
  link.inside(true)
  const parts: Buffer[] = []
  for (let at = 0; at < whole.length; at += 4096) {
    parts.push(cut(whole.subarray(at, at + 4096)))
    if (parts.length < 8 && at + 4096 < whole.length) continue
    await link.raw(Buffer.concat(parts.splice(0)))
    if (at > whole.length / 2 && at < whole.length / 2 + 8 * 4096) {
      link.tell('half')
      await link.go()
    }
  }
  link.inside(false)
  await link.packet(12)
  link.tell('done')
}

const eachInAFrame = (bytes: Buffer): Buffer =>
  Buffer.concat([...bytes].map((byte) => dataFrame(Buffer.of(byte))))

async function takesCrumbs(bench: Bench): Promise<void> {
  const [, subscription] = await bench.subscribed({ keepAlive: 1 })
  bench.go()
  await bench.told('half')
  await bench.meter.pause()
  bench.go()
  const message = await subscription.next({ timeout: 20_000 })
  bench.same(message?.payload.length, drops, 'the packet arrives whole')
  await bench.told('done')
  bench.same(
    bench.all('disconnect').map(({ cause }) => cause?.message),
    [],
    'PINGREQ went on, the link is kept',
  )
}

/** One WebSocket message in a million fragments of one byte. */
async function fragment(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
  await link.raw(dataFrame(Buffer.of(0x30), { final: false }))
  const { bytes } = repeated(dataFrame(Buffer.of(0xff), { opcode: 0, final: false }), 64 * KiB)
  for (let sent = 0; sent < 3_000_000 && (await link.raw(bytes)); sent += bytes.length);
  await link.finish()
}

async function endsFragments(bench: Bench): Promise<void> {
  const [client] = await bench.subscribed()
  bench.go()
  const error = await bench.closed(client)
  bench.same(error?.code, 'ERR_CONNECTION_LOST', 'the client ends with ERR_CONNECTION_LOST')
  const { disconnect } = await bench.told('over')
  bench.same(disconnect, undefined, 'closed by the WebSocket layer, nothing of it is delivered')
}

/** A text frame of any size. */
async function sendText(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
  await link.raw(dataFrame(publish({ payload: 'x'.repeat(100) }), { opcode: 1 }))
  await link.finish()
}

async function refusesText(bench: Bench): Promise<void> {
  const [client, subscription] = await bench.subscribed()
  bench.go()
  const error = await bench.closed(client)
  bench.same(error?.code, 'ERR_CONNECTION_LOST', 'a text frame ends the link')
  bench.same(subscription.size, 0, 'nothing of it is delivered')
}

// T04

/** Ten times the budget, compressed, in one frame; nobody offered that. */
async function bomb(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
  const body = Buffer.concat([
    join(0x30, varint(10 * memoryBudget)),
    Buffer.alloc(10 * memoryBudget),
  ])
  const small = deflateRawSync(body)
  link.tell('bomb', { size: small.length })
  await link.raw(dataFrame(small, { compressed: true }))
  await link.finish()
}

async function defuses(bench: Bench): Promise<void> {
  const [client] = await bench.subscribed()
  const { request } = await bench.told('handshake')
  bench.check(!/sec-websocket-extensions/i.test(String(request)), 'no extension is offered')
  bench.go()
  const { size } = await bench.told('bomb')
  const error = await bench.closed(client)
  bench.check((size as number) < MiB, 'the bomb is small on the wire', size)
  bench.same(error?.code, 'ERR_CONNECTION_LOST', 'a compressed frame ends the link, not inflated')
}

// T10

const propertyKinds = [
  ['PUBLISH', publish({ properties: properties(pairs(1280)) })],
  ['PUBACK', packet(0x40, uint16(1), 0, properties(pairs(1280)))],
  ['PUBREC', packet(0x50, uint16(1), 0, properties(pairs(1280)))],
  ['PUBREL', packet(0x62, uint16(1), 0, properties(pairs(1280)))],
  ['PUBCOMP', packet(0x70, uint16(1), 0, properties(pairs(1280)))],
  ['SUBACK', packet(0x90, uint16(1), properties(pairs(1280)), 0)],
  ['UNSUBACK', packet(0xb0, uint16(1), properties(pairs(1280)), 0)],
  ['DISCONNECT', packet(0xe0, 0, properties(pairs(1280)))],
  ['identifiers', publish({ properties: properties(repeated(Buffer.of(0x0b, 1), 1280).bytes) })],
  ['all that fit', publish({ properties: properties(pairs(209_000)) })],
  [
    'identifiers that fit',
    publish({ properties: properties(repeated(Buffer.of(0x0b, 1), 1_000_000).bytes) }),
  ],
  ['CONNACK', connack(0, properties(pairs(1280)))],
] as const

async function propertyBomb(link: Link): Promise<void> {
  const [name, bytes] = propertyKinds[
    (link.number - 1) % propertyKinds.length
  ] as (typeof propertyKinds)[number]
  if (name !== 'CONNACK') await link.welcome()
  else await link.packet(1)
  const at = performance.now()
  await link.send(bytes)
  await link.over
  await link.finish({ took: performance.now() - at })
}

async function countsProperties(bench: Bench): Promise<void> {
  const url = await bench.server()
  const codes: unknown[] = []
  let longest = 0
  for (let number = 1; number <= 2 * propertyKinds.length; number++) {
    if (number === propertyKinds.length + 1) await bench.meter.start()
    const client = bench.client(url, { connectTimeout: 2000 })
    await client.connect().catch(() => undefined)
    const { disconnect, took } = await bench.told('over', number)
    longest = Math.max(longest, took as number)
    codes.push(disconnect ?? null)
    await bench.meter.pause()
    bench.release(client)
  }
  bench.same(
    codes.slice(propertyKinds.length, -1),
    new Array(propertyKinds.length - 1).fill(0x97),
    'DISCONNECT 0x97 in every kind of packet',
  )
  bench.check(codes.at(-1) === null || codes.at(-1) === 0x97, 'closed at a CONNACK', codes.at(-1))
  bench.check(longest < 1000, 'linear: no packet takes a second', longest)
}

/** Messages that are all properties, to a reader that does not read: what they cost is counted. */
async function heavyProperties(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
  const one = publish({
    properties: properties(pairs(120, 'n'.repeat(4000), 'v'.repeat(4000))),
    payload: 'x',
  })
  await link.flood(one, 10 * memoryBudget)
  link.tell('done')
}

async function countsWhatPropertiesCost(bench: Bench): Promise<void> {
  const [client, subscription] = await bench.subscribed()
  bench.go()
  await bench.told('done')
  await bench.until(() => client.stats().received >= 349, 'all messages')
  await bench.meter.pause()
  bench.check(subscription.dropped > 0, 'the oldest are dropped, and counted', subscription.dropped)
  bench.same(client.state, 'connected', 'the link is kept')
}

export const size: readonly Scenario[] = [
  {
    row: 'T01',
    variant: 'TCP, 5.0',
    limit: 'Maximum Packet Size 1 MiB',
    fed: 'a PUBLISH that announces 256 MB, and 320 MiB behind it',
    budget: smallest,
    peer: announceAll,
    run: (bench) => refusesSize(bench, 5),
  },
  {
    row: 'T01',
    variant: 'TCP, 3.1.1',
    limit: 'Maximum Packet Size 1 MiB',
    fed: 'a PUBLISH that announces 256 MB, and 320 MiB behind it',
    budget: smallest,
    peer: announceAll,
    run: (bench) => refusesSize(bench, 4),
  },
  {
    row: 'T01',
    variant: 'WebSocket, 5.0',
    limit: 'Maximum Packet Size 1 MiB',
    fed: 'a PUBLISH that announces 256 MB, and 320 MiB behind it',
    budget: smallest,
    garbage: muchGarbage,
    way: 'ws',
    peer: announceAll,
    run: (bench) => refusesSize(bench, 5),
  },
  {
    row: 'T01',
    variant: 'read past',
    limit: 'maximumPacketSize 16 MiB',
    fed: 'a PUBLISH of 256 MiB',
    budget: smallest,
    garbage: muchGarbage,
    peer: sendAll,
    run: readsPast,
  },
  {
    row: 'T01',
    variant: 'begun',
    limit: 'buffers grow with bytes received',
    fed: '320 packets of 1 MiB, each stopped after 10 bytes',
    budget: MiB,
    garbage: muchGarbage,
    peer: beginMany,
    run: async (bench) => {
      const client = bench.client(await bench.server())
      await client.connect()
      await client.listen('a', () => undefined)
      await bench.meter.start()
      bench.go()
      const held: number[] = []
      for (let round = 0; round < 10; round++) {
        await bench.told('begun')
        await bench.until(() => client.stats().received === round * 32, 'the packets before')
        await new Promise((resolve) => setTimeout(resolve, 20))
        held.push(await bench.meter.pause())
        bench.go()
      }
      await bench.until(() => client.stats().received === 320, 'the last packet')
      // The first half pays for what is made once, the engine's notes on hot functions among it.
      const most = Math.max(...held.slice(5)) - (held[4] as number)
      await bench.told('done')
      bench.check(most < 256 * KiB, 'ten bytes of a megabyte cost next to nothing', held)
      bench.same(client.state, 'connected', 'the link is kept')
    },
  },
  {
    row: 'T02',
    variant: 'every kind',
    limit: 'acknowledgements and PINGRESP 10,000 B, other control packets 100,000 B',
    fed: '10 kinds of packet of ten times their cap',
    budget: smallest,
    peer: oversize,
    run: refusesKinds,
  },
  {
    row: 'T03',
    variant: 'WebSocket frames',
    limit: 'parts are coalesced',
    fed: 'a packet of 1 MiB in 1,048,512 frames of one byte',
    budget: 3 * MiB,
    garbage: muchGarbage,
    way: 'ws',
    peer: (link) => crumble(link, eachInAFrame),
    run: takesCrumbs,
  },
  {
    row: 'T03',
    variant: 'WebSocket fragments',
    limit: '65,536 fragments',
    fed: 'a message in 1,000,000 fragments of one byte',
    budget: 8 * MiB,
    way: 'ws',
    peer: fragment,
    run: endsFragments,
  },
  {
    row: 'T03',
    variant: 'WebSocket text',
    limit: 'no text frames',
    fed: 'a text frame',
    budget: smallest,
    way: 'ws',
    peer: sendText,
    run: refusesText,
  },
  {
    row: 'T04',
    variant: 'Node',
    limit: 'permessage-deflate is not offered',
    fed: '320 MiB, deflated into one frame',
    budget: MiB,
    way: 'ws',
    peer: bomb,
    run: defuses,
  },
  {
    row: 'T10',
    variant: 'every kind',
    limit: '128 user properties, 64 identifiers',
    fed: '12 packets of ten times as many, or of all that fit',
    budget: MiB,
    peer: propertyBomb,
    run: countsProperties,
  },
  {
    row: 'T10',
    variant: 'heavy',
    limit: 'buffers count what properties cost',
    fed: '320 MiB of messages that are all properties, nobody reads',
    budget: 8 * MiB,
    garbage: muchGarbage,
    peer: heavyProperties,
    run: countsWhatPropertiesCost,
  },
]
