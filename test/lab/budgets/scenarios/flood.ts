/**
 * Attacks by number: floods of messages and acknowledgements, and acknowledgements that never come (T06 to T08, T12, T13).
 */
import type { Subscription } from '../../../../src/client/api/index.js'
import type { BaseClient } from '../../../../src/client/client.js'
import { pause } from '../../../support/pausing.js'
import type { Bench } from '../bench.js'
import { packet, publish, repeated, uint16 } from '../bytes.js'
import { dataFrame } from '../frames.js'
import { Watch } from '../lateness.js'
import type { Link } from '../link.js'
import { KiB, MiB, memoryBudget, muchGarbage, type Scenario, type Way } from '../scenario.js'

const flow = 1_200_000
/** Milliseconds that a timer may be late, for 99 of 100 moments of the flood, and at all. */
const usual = 50
const longest = 300
/** A process that has the processor for less of the time shares it with others: only its own time says something about it then. */
const leastShare = 0.75

// T06

/** More than a million small messages as fast as they are taken; every WebSocket frame holds one. */
async function flood(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
  const one = publish({ topic: 'f/1', payload: 'abcd' })
  const framed = link.way === 'ws' ? dataFrame(one) : one
  const { bytes, count } = repeated(framed, 64 * KiB)
  const started = performance.now()
  let sent = 0
  while (sent < flow && (await link.raw(bytes))) sent += count
  link.tell('fed', { messages: sent, took: performance.now() - started, started })
  await link.go()
  link.tell('done')
}

/** Takes every message, or one in a while. */
async function read(
  subscription: Subscription,
  slow: boolean,
  count: { read: number },
): Promise<void> {
  for await (const _message of subscription) {
    count.read += 1
    if (slow) await pause(20)
  }
}

async function staysFair(bench: Bench, slow: boolean): Promise<void> {
  const [client, subscription] = await bench.subscribed({ keepAlive: 1 })
  const count = { read: 0 }
  read(subscription, slow, count).catch(() => undefined)
  const watch = new Watch()
  const started = performance.now()
  watch.start()
  bench.go()
  const { messages } = await bench.told('fed', 1, 60_000)
  // A publish of ours at QoS 0 leaves in between.
  await client.publish('a', 'b')
  await bench.until(() => client.stats().received >= (messages as number), 'every message', 60_000)
  const { clock, processor, share, turns } = watch.stop()
  const seconds = (performance.now() - started) / 1000
  bench.go()
  const { counts, pings } = await bench.told('done')
  bench.check((messages as number) >= 1_000_000, 'a million messages and more', messages)
  const [what, { p99, worst }] =
    share < leastShare ? ["of the process's own time", processor] : ['by the clock', clock]
  const figures = `p99 ${p99.toFixed(0)} ms, worst ${worst.toFixed(0)} ms ${what}`
  bench.check(
    p99 <= usual && worst <= longest,
    `timers late: ${figures}; at most ${usual} ms and ${longest} ms`,
  )
  bench.check(
    turns >= 100,
    'setImmediate runs in between',
    `${turns} turns in ${seconds.toFixed(1)} s`,
  )
  bench.check(
    (counts as number[])[12] === (pings as number[]).length &&
      (pings as number[]).length >= Math.floor(seconds - 1),
    'PINGREQ every second',
    pings,
  )
  bench.same(client.state, 'connected', 'the link is kept')
  await bench.until(() => slow || subscription.size === 0, 'the reader')
  const sum = count.read + subscription.dropped + subscription.size
  bench.check(
    Math.abs(sum - (messages as number)) <= 1,
    'read, dropped and buffered messages add up',
    { sum, messages },
  )
  if (slow)
    bench.check(
      subscription.dropped > 900_000,
      'what the slow reader cannot take is dropped, and counted',
      subscription.dropped,
    )
  if (slow)
    bench.check(
      bench.all('drop').length <= seconds + 2,
      'at most one drop event a second',
      bench.all('drop').length,
    )
}

const fair = (way: Way, slow: boolean): Scenario => ({
  row: 'T06',
  variant: `${way === 'ws' ? 'WebSocket' : 'TCP'}, ${slow ? 'slow reader' : 'reader'}`,
  limit: 'the loop turns every 1,000 packets or 5 ms',
  fed: '1,200,000 PUBLISH of 12 bytes',
  budget: 8 * MiB,
  garbage: muchGarbage,
  way,
  peer: flood,
  run: (bench) => staysFair(bench, slow),
})

// T07

const many = 2560

/** QoS 2 messages of 16 KiB, one identifier after the other; PUBREL never comes. */
async function neverRelease(link: Link): Promise<void> {
  link.releases = false
  await link.welcome()
  await link.packet(8)
  await link.go()
  const payload = Buffer.alloc(16 * KiB)
  for (let id = 1; id <= many; id++) if (!(await link.send(publish({ qos: 2, id, payload })))) break
  await link.finish()
}

async function closesWindow(bench: Bench): Promise<void> {
  const [client, subscription] = await bench.subscribed(
    { receiveMaximum: 256, receiveMaximumExceeded: 'disconnect' },
    { qos: 2 },
  )
  const count = { read: 0 }
  read(subscription, false, count).catch(() => undefined)
  bench.go()
  const error = await bench.closed(client)
  bench.same(
    [error?.code, error?.reasonCode],
    ['ERR_PROTOCOL_ERROR', 0x93],
    'Receive Maximum is exceeded: ERR_PROTOCOL_ERROR',
  )
  await bench.until(() => subscription.size === 0, 'the reader')
  const { disconnect } = await bench.told('over')
  bench.same(disconnect, 0x93, 'DISCONNECT 0x93')
  bench.check(count.read <= 257, 'at most 256 of them were delivered', count.read)
}

/** 65,535 messages of 5 KiB, delivered and never released: only their identifiers stay. */
async function fillIdentifiers(link: Link): Promise<void> {
  link.releases = false
  await link.welcome()
  await link.packet(8)
  await link.go()
  const payload = Buffer.alloc(5 * KiB + 200)
  for (let id = 1; id <= 65_535; id++) {
    if (!(await link.send(publish({ qos: 2, id, payload })))) break
    if (id % 512 === 0)
      while (!link.ended && (link.counts[5] as number) < id - 512)
        await new Promise((resolve) => setTimeout(resolve, 1))
  }
  while (!link.ended && (link.counts[5] as number) < 65_535)
    await new Promise((resolve) => setTimeout(resolve, 5))
  link.tell('done')
}

async function keepsIdentifiers(bench: Bench): Promise<void> {
  const [client, subscription] = await bench.subscribed({ receiveMaximum: 65_535 }, { qos: 2 })
  const count = { read: 0 }
  read(subscription, false, count).catch(() => undefined)
  bench.go()
  const { counts } = await bench.told('done', 1, 60_000)
  await pause(20)
  bench.same((counts as number[])[5], 65_535, 'PUBREC for every one')
  bench.same(count.read, 65_535, 'each is delivered once')
  bench.same(client.state, 'connected', 'the link is kept')
}

/** QoS 1 to a reader that does not read, with a window that allows ten times the budget. */
async function overfill(link: Link): Promise<void> {
  const connect = await link.welcome()
  const at = connect.indexOf(0x21, 12)
  link.tell('connected', { receiveMaximum: connect.readUInt16BE(at + 1) })
  await link.packet(8)
  if (link.number === 1) await link.go()
  const payload = Buffer.alloc(MiB - 64)
  for (let id = 1; id <= 320; id++) if (!(await link.send(publish({ qos: 1, id, payload })))) break
  await link.finish()
}

async function halves(bench: Bench): Promise<void> {
  const url = await bench.server()
  const backoff = (): number => 50
  const client = bench.client(url, {
    receiveMaximum: 1000,
    clientId: 'c',
    cleanStart: false,
    reconnect: { backoff },
  })
  await client.connect()
  const subscription = await client.subscribe('#', { qos: 1 })
  await bench.meter.start()
  bench.go()
  const first = await bench.told('over', 1)
  bench.same(first['disconnect'], 0x97, 'DISCONNECT 0x97 over the budget')
  await bench.meter.pause()
  const { receiveMaximum } = await bench.told('connected', 2)
  bench.same(
    receiveMaximum,
    31,
    'the next CONNECT announces as many messages of this size as the budget holds',
  )
  bench.check(
    subscription.size <= 32,
    'at most 32 messages of 1 MiB are buffered',
    subscription.size,
  )
  const lost = bench.all('disconnect').map(({ cause }) => cause?.reasonCode)
  bench.same(lost[0], 0x97, 'the loss is told with its reason')
}

/** A session that is there, with messages that nobody here subscribed to: they are held, within the budget. */
async function resume(link: Link): Promise<void> {
  await link.welcome([0], true)
  await link.go()
  const payload = Buffer.alloc(MiB - 64)
  for (let id = 1; id <= 30; id++) await link.send(publish({ qos: 1, id, payload }))
  link.tell('nearly')
  await link.go()
  for (let id = 31; id <= 320; id++) if (!(await link.send(publish({ qos: 1, id, payload })))) break
  await link.finish()
}

async function holdsWithinBudget(bench: Bench): Promise<void> {
  const client = await bench.connected({ receiveMaximum: 1000, clientId: 'c', cleanStart: false })
  bench.go()
  await bench.told('nearly')
  await bench.until(() => client.stats().received === 30, 'the first ones')
  await bench.meter.pause()
  bench.go()
  const error = await bench.closed(client)
  const { disconnect } = await bench.told('over')
  bench.same([disconnect, error?.reasonCode], [0x97, 0x97], 'DISCONNECT 0x97 over the budget')
  bench.same(client.stats().unclaimed, 0, 'none was acknowledged unclaimed')
}

// T08

async function pour(link: Link, payload: number, topics: number, total: number): Promise<void> {
  await link.welcome()
  for (let count = 0; count < topics; count++) await link.packet(8)
  await link.go()
  const bytes = Buffer.concat(
    Array.from({ length: topics }, (_, at) =>
      publish({ topic: `t/${at}`, payload: Buffer.alloc(payload) }),
    ),
  )
  const several = repeated(bytes, 64 * KiB).bytes
  const messages = (await link.flood(several, total)) / (bytes.length / topics)
  link.tell('fed', { messages: Math.round(messages) })
  await link.go()
  link.tell('done')
}

/** Nobody reads. */
async function dropsOldest(bench: Bench, topics: number): Promise<void> {
  const client = bench.client(await bench.server(), { keepAlive: 1 })
  await client.connect()
  const subscriptions: Subscription[] = []
  for (let at = 0; at < topics; at++) subscriptions.push(await client.subscribe(`t/${at}`))
  await bench.meter.start()
  const started = performance.now()
  bench.go()
  const { messages } = await bench.told('fed', 1, 60_000)
  await bench.until(() => client.stats().received >= (messages as number), 'every message', 60_000)
  await bench.meter.pause()
  const seconds = (performance.now() - started) / 1000
  const buffered = subscriptions.reduce((sum, each) => sum + each.size, 0)
  const { dropped } = client.stats()
  bench.same(buffered + dropped, messages, 'buffered and dropped messages add up')
  bench.check(
    bench.all('drop').length > 0 && bench.all('drop').length <= seconds + 2,
    'one drop event a second at most',
    bench.all('drop').length,
  )
  await answersStill(bench, client)
}

async function answersStill(bench: Bench, client: BaseClient): Promise<void> {
  const granted = await client.subscribe('other')
  bench.same(granted.granted[0]?.reasonCode, 0, 'SUBACK is handled meanwhile')
  bench.go()
  await bench.told('done')
  bench.same(client.state, 'connected', 'the link is kept')
}

// T12

/** Says nothing to any PUBLISH. */
async function neverAcknowledge(link: Link): Promise<void> {
  await link.welcome()
  await link.go()
  link.tell('counted')
  await link.finish()
}

async function boundsWindow(bench: Bench): Promise<void> {
  const client = await bench.connected({ keepAlive: 1, outbound: { ackTimeout: 2000 } })
  const payload = new Uint8Array(16 * KiB)
  const outcomes = new Map<string, number>()
  const note = (error: { code: string; outcome: string }): void => {
    const kind = `${error.code} ${error.outcome}`
    outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1)
  }
  // 320 MiB, ten times what may wait and what may wait for that.
  for (let count = 0; count < 20_480; count++)
    client.publish('a', payload, { qos: 1 }).then(() => note({ code: 'none', outcome: '' }), note)
  await bench.meter.pause()
  const full = outcomes.get('ERR_QUEUE_FULL not-sent') ?? 0
  bench.check(full >= 18_000, 'what is too much is refused at once: ERR_QUEUE_FULL, not-sent', [
    ...outcomes,
  ])
  await bench.until(() => (outcomes.get('ERR_TIMEOUT unknown') ?? 0) > 0, 'ackTimeout', 10_000)
  bench.check(true, 'ackTimeout: ERR_TIMEOUT, outcome unknown')
  bench.same(outcomes.get('none'), undefined, 'none counts as acknowledged')
  bench.same(client.state, 'connected', 'the link is kept')
}

/** Reads nothing after CONNECT. */
async function neverRead(link: Link): Promise<void> {
  await link.welcome()
  link.socket.pause()
  await link.finish()
}

async function boundsOutput(bench: Bench): Promise<void> {
  const client = await bench.connected({ keepAlive: 1, pingTimeout: 1500 })
  const payload = new Uint8Array(16 * KiB)
  const outcomes = new Map<string, number>()
  const note = ({ code }: { code: string }): void =>
    void outcomes.set(code, (outcomes.get(code) ?? 0) + 1)
  let posted = 0
  for (let count = 0; count < 20_480; count++) {
    if (count % 2 === 0) client.publish('a', payload).then(() => note({ code: 'none' }), note)
    else if (client.post('a', payload)) posted += 1
    if (count % 100 === 99) await new Promise((resolve) => setImmediate(resolve))
  }
  await bench.meter.pause()
  bench.check(
    (outcomes.get('ERR_QUEUE_FULL') ?? 0) > 5000,
    'publish() is refused: ERR_QUEUE_FULL',
    [...outcomes],
  )
  bench.check(posted < 3000, 'post() says no', posted)
  const error = await bench.closed(client)
  bench.same(
    error?.code,
    'ERR_KEEPALIVE_TIMEOUT',
    'a server that stops reading loses the link: ERR_KEEPALIVE_TIMEOUT',
  )
  const settled = (): number => [...outcomes.values()].reduce((sum, each) => sum + each, 0)
  await bench.until(() => settled() === 10_240, 'every publish')
  bench.check(true, 'every publish settles')
}

async function tellsStalled(bench: Bench): Promise<void> {
  const client = await bench.connected({ keepAlive: 1 })
  const payload = new Uint8Array(KiB)
  for (let count = 0; count < 2560; count++)
    client.publish('a', payload, { qos: 1 }).catch(() => undefined)
  await bench
    .until(() => bench.all('stalled').length > 0, 'a stalled event', 13_000)
    .catch(() => undefined)
  bench.check(
    bench.all('stalled').length > 0,
    'stalled is told when acknowledgements make no progress',
  )
  bench.go()
  const { pings } = await bench.told('counted')
  bench.check((pings as number[]).length >= 3, 'PINGREQ goes on', pings)
}

// T13

/** Acknowledgements for publishes that do not exist, while nothing that the client says is read. */
async function forge(link: Link): Promise<void> {
  await link.welcome()
  await link.go()
  const of = (first: number): Buffer =>
    Buffer.concat(Array.from({ length: 1000 }, (_, at) => packet(first, uint16(at + 1))))
  let sent = 0
  for (const first of [0x40, 0x70])
    for (let round = 0; round < 500; round++) if (await link.send(of(first))) sent += 1000
  link.tell('fed', { sent })
  await link.go()
  link.socket.pause()
  const pubrecs = repeated(of(0x50), 64 * KiB).bytes
  await link.flood(pubrecs, 10 * memoryBudget)
  await link.finish()
}

async function ignoresForged(bench: Bench): Promise<void> {
  const client = await bench.connected({ keepAlive: 2, pingTimeout: 2000 })
  bench.go()
  const { sent } = await bench.told('fed')
  const counted = (): number => client.stats().unsolicitedAcks
  await bench.until(
    () => counted() >= (sent as number) || client.state !== 'connected',
    'the forged acknowledgements',
  )
  bench.check(counted() >= 1000, 'they are counted', counted())
  await bench.meter.pause()
  bench.go()
  const error = await bench.closed(client)
  bench.check(
    ['ERR_CONNECTION_LOST', 'ERR_KEEPALIVE_TIMEOUT', 'ERR_PROTOCOL_ERROR'].includes(
      error?.code ?? '',
    ),
    'a server that makes us answer and reads nothing loses the link',
    error?.code,
  )
}

/** The wrong kind, for a publish that did leave; and one for a publish that has not. */
async function mistake(link: Link): Promise<void> {
  await link.welcome()
  const given = (await link.packet(3)) as Buffer
  const at = 4 + given.readUInt16BE(2)
  const id = [given[at] as number, given[at + 1] as number]
  await link.send(packet(link.number === 1 ? 0x50 : 0x90, id, link.number === 1 ? '' : [0, 0]))
  await link.finish()
}

async function checksKind(bench: Bench): Promise<void> {
  const url = await bench.server()
  const codes: unknown[] = []
  for (const number of [1, 2]) {
    const client = bench.client(url)
    await client.connect()
    if (number === 1) await bench.meter.start()
    const { code } = await bench.failure(client.publish('a', 'b', { qos: 1 }))
    const { disconnect } = await bench.told('over', number)
    codes.push(code, disconnect)
    bench.release(client)
  }
  bench.same(
    [codes[1], codes[3]],
    [0x82, 0x82],
    'PUBREC and SUBACK for a QoS 1 publish: DISCONNECT 0x82',
  )
  bench.check(
    codes[0] !== 'none' && codes[2] !== 'none',
    'the publish does not count as acknowledged',
    codes,
  )
}

export const floods: readonly Scenario[] = [
  fair('tcp', false),
  fair('tcp', true),
  fair('ws', false),
  fair('ws', true),
  {
    row: 'T07',
    variant: 'window',
    limit: 'Receive Maximum 256',
    fed: '2,560 QoS 2 messages of 16 KiB, never released',
    budget: 8 * MiB,
    peer: neverRelease,
    run: closesWindow,
  },
  {
    row: 'T07',
    variant: 'identifiers',
    limit: 'identifiers only, once delivered',
    fed: '65,535 QoS 2 messages of 5 KiB (332 MiB), never released',
    budget: 2 * MiB,
    peer: fillIdentifiers,
    run: keepsIdentifiers,
  },
  {
    row: 'T07',
    variant: 'budget',
    limit: 'memoryBudget 32 MiB, then a Receive Maximum that keeps within it',
    fed: '320 QoS 1 messages of 1 MiB, nobody reads',
    budget: memoryBudget + MiB,
    garbage: muchGarbage,
    peer: overfill,
    run: halves,
  },
  {
    row: 'T07',
    variant: 'unclaimed',
    limit: 'memoryBudget 32 MiB, for what waits for a subscription too',
    fed: '320 QoS 1 messages of 1 MiB in a resumed session, nobody subscribed',
    budget: memoryBudget + MiB,
    garbage: muchGarbage,
    peer: resume,
    run: holdsWithinBudget,
  },
  {
    row: 'T08',
    variant: 'large',
    limit: 'buffer 1,024 messages, bufferBytes 4 MiB',
    fed: '320 MiB of QoS 0 messages of 64 KiB, nobody reads',
    budget: 5 * MiB,
    garbage: muchGarbage,
    peer: (link) => pour(link, 64 * KiB, 1, 10 * memoryBudget),
    run: (bench) => dropsOldest(bench, 1),
  },
  {
    row: 'T08',
    variant: 'small',
    limit: 'buffer 1,024 messages, bufferBytes 4 MiB',
    fed: '1,000,000 QoS 0 messages of 1 byte, nobody reads',
    budget: 2 * MiB,
    garbage: muchGarbage,
    peer: (link) => pour(link, 1, 1, 9_000_000),
    run: (bench) => dropsOldest(bench, 1),
  },
  {
    row: 'T08',
    variant: 'many',
    limit: 'memoryBudget 32 MiB over all subscriptions',
    fed: '320 MiB of QoS 0 messages of 16 KiB to 80 subscriptions, nobody reads',
    budget: memoryBudget + 2 * MiB,
    garbage: muchGarbage,
    peer: (link) => pour(link, 16 * KiB, 80, 10 * memoryBudget),
    run: (bench) => dropsOldest(bench, 80),
  },
  {
    row: 'T12',
    variant: 'window',
    limit: 'maxQueuedBytes 16 MiB, and as much that waits',
    fed: '20,480 publishes of 16 KiB at QoS 1, none acknowledged',
    budget: 36 * MiB,
    peer: neverAcknowledge,
    run: boundsWindow,
  },
  {
    row: 'T12',
    variant: 'unread',
    limit: 'maxQueuedBytes 16 MiB, and as much that waits',
    fed: '20,480 publishes and posts of 16 KiB to a server that reads nothing',
    budget: 36 * MiB,
    peer: neverRead,
    run: boundsOutput,
  },
  {
    row: 'T12',
    variant: 'stalled',
    idle: true,
    limit: 'stalled event',
    fed: '2,560 publishes at QoS 1, none acknowledged',
    budget: 8 * MiB,
    peer: neverAcknowledge,
    run: tellsStalled,
  },
  {
    row: 'T13',
    variant: 'flood',
    limit: 'acknowledgements for nothing are counted; output within memoryBudget',
    fed: '1,000,000 forged PUBACK and PUBCOMP, then 320 MiB of PUBREC without reading',
    budget: memoryBudget + 2 * MiB,
    garbage: muchGarbage,
    peer: forge,
    run: ignoresForged,
  },
  {
    row: 'T13',
    variant: 'kind',
    limit: 'the kind of an acknowledgement is checked',
    fed: 'PUBREC and SUBACK for a QoS 1 publish',
    budget: 512 * KiB,
    peer: mistake,
    run: checksKind,
  },
]
