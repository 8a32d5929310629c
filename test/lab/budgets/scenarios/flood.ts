/** Attacks by number: floods of messages and acknowledgements, and acknowledgements that never come (T06 to T08, T12, T13). */
import type { Subscription } from '../../../../src/client/options/index.js'
import { pause } from '../../../support/pausing.js'
import type { Bench } from '../bench.js'
import { packet, publish, repeated, uint16 } from '../bytes.js'
import { dataFrame } from '../frames.js'
import type { Link } from '../link.js'
import { Lateness } from '../meter.js'
import { KiB, MiB, memoryBudget, muchGarbage, type Scenario, type Way } from '../scenario.js'

const flow = 1_200_000
/** Milliseconds that a timer may be late, for 99 of 100 moments of the flood, and at all. */
const usual = 50
const longest = 300

/** Takes every message, or one in a while; gives how many. */
function reader(subscription: Subscription, wait = 0): { count: number } {
  const read = { count: 0 }
  const loop = async (): Promise<void> => {
    for await (const _message of subscription) {
      read.count += 1
      if (wait > 0) await pause(wait)
    }
  }
  loop().catch(() => undefined)
  return read
}

/** More than a million small messages as fast as they are taken; every WebSocket frame holds one. */
const fair = (way: Way, slow: boolean): Scenario => ({
  row: 'T06',
  variant: `${way === 'ws' ? 'WebSocket' : 'TCP'}, ${slow ? 'slow reader' : 'reader'}`,
  limit: 'the loop turns every 1,000 packets or 5 ms',
  fed: '1,200,000 PUBLISH of 12 bytes',
  budget: 8 * MiB,
  garbage: muchGarbage,
  way,
  async peer(link: Link): Promise<void> {
    await link.ready()
    const one = publish({ topic: 'f/1', payload: 'abcd' })
    const { bytes, count } = repeated(link.way === 'ws' ? dataFrame(one) : one, 64 * KiB)
    let messages = 0
    while (messages < flow && (await link.raw(bytes))) messages += count
    link.tell('fed', { messages })
    await link.go()
    link.tell('done')
  },
  async run(bench: Bench): Promise<void> {
    const [client, subscription] = await bench.subscribed({ keepAlive: 1 })
    const read = reader(subscription, slow ? 20 : 0)
    const lateness = new Lateness()
    const started = performance.now()
    bench.go()
    const messages = (await bench.told('fed', 1, 60_000))['messages'] as number
    // A publish of ours at QoS 0 leaves in between.
    await client.publish('a', 'b')
    await bench.until(() => client.stats().received >= messages, 'every message', 60_000)
    const { p99, worst, turns, what } = lateness.stop()
    const seconds = (performance.now() - started) / 1000
    bench.go()
    const pings = (await bench.told('done'))['pings'] as number[]
    const figures = `p99 ${p99.toFixed(0)} ms, worst ${worst.toFixed(0)} ms ${what}`
    const allowed = `at most ${usual} ms and ${longest} ms`
    bench.check(p99 <= usual && worst <= longest, `timers late: ${figures}; ${allowed}`)
    bench.check(turns >= 100, 'setImmediate runs in between', turns)
    bench.check(pings.length >= Math.floor(seconds - 1), 'PINGREQ every second', pings)
    bench.same(client.state, 'connected', 'the link is kept')
    await bench.until(() => slow || subscription.size === 0, 'the reader')
    const sum = read.count + subscription.dropped + subscription.size
    const adds = Math.abs(sum - messages) <= 1
    bench.check(adds, 'read, dropped and buffered messages add up', { sum, messages })
    if (!slow) return
    const drops = bench.all('drop').length
    bench.check(drops <= seconds + 2, 'at most one drop event a second', drops)
  },
})

/** Messages that nobody reads, to so many subscriptions. */
const unread = (
  row: Pick<Scenario, 'variant' | 'limit' | 'fed' | 'budget'>,
  payload: number,
  topics: number,
): Scenario => ({
  row: 'T08',
  ...row,
  garbage: muchGarbage,
  async peer(link: Link): Promise<void> {
    await link.ready(topics)
    const each = Array.from({ length: topics }, (_, at) =>
      publish({ topic: `t/${at}`, payload: Buffer.alloc(payload) }),
    )
    const bytes = Buffer.concat(each)
    const sent = await link.flood(repeated(bytes, 64 * KiB).bytes, 10 * memoryBudget)
    link.tell('fed', { messages: Math.round(sent / (bytes.length / topics)) })
    await link.go()
    link.tell('done')
  },
  async run(bench: Bench): Promise<void> {
    const client = bench.client(await bench.server(), { keepAlive: 1 })
    await client.connect()
    const subscriptions: Subscription[] = []
    for (let at = 0; at < topics; at++) subscriptions.push(await client.subscribe(`t/${at}`))
    await bench.meter.start()
    const started = performance.now()
    bench.go()
    const messages = (await bench.told('fed', 1, 60_000))['messages'] as number
    await bench.until(() => client.stats().received >= messages, 'every message', 60_000)
    await bench.meter.pause()
    const seconds = (performance.now() - started) / 1000
    const buffered = subscriptions.reduce((sum, { size }) => sum + size, 0)
    const { dropped } = client.stats()
    bench.same(buffered + dropped, messages, 'buffered and dropped messages add up')
    const drops = bench.all('drop').length
    bench.check(drops > 0 && drops <= seconds + 2, 'one drop event a second at most', drops)
    const granted = await client.subscribe('other')
    bench.same(granted.granted[0]?.reasonCode, 0, 'SUBACK is handled meanwhile')
    bench.go()
    await bench.told('done')
    bench.same(client.state, 'connected', 'the link is kept')
  },
})

/** Counts outcomes of publishes by their codes. */
class Outcomes {
  readonly counts = new Map<string, number>()
  note(publishing: Promise<unknown>): void {
    const count = (code: string): unknown => this.counts.set(code, this.of(code) + 1)
    publishing.then(
      () => count('none'),
      ({ code, outcome }: { code: string; outcome: string }) => count(`${code} ${outcome}`),
    )
  }
  of(code: string): number {
    return this.counts.get(code) ?? 0
  }
  get settled(): number {
    return [...this.counts.values()].reduce((sum, each) => sum + each, 0)
  }
}

export const floods: readonly Scenario[] = [
  fair('tcp', true),
  fair('ws', false),
  {
    row: 'T07',
    variant: 'identifiers',
    limit: 'identifiers only, once delivered',
    fed: '65,535 QoS 2 messages of 5 KiB (332 MiB), never released',
    budget: 2 * MiB,
    async peer(link) {
      link.releases = false
      await link.ready()
      const payload = Buffer.alloc(5 * KiB + 200)
      const received = async (count: number): Promise<void> => {
        while (!link.ended && (link.counts[5] as number) < count) await pause(1)
      }
      for (let id = 1; id <= 65_535; id++) {
        if (!(await link.send(publish({ qos: 2, id, payload })))) break
        if (id % 512 === 0) await received(id - 512)
      }
      await received(65_535)
      link.tell('done')
    },
    async run(bench) {
      const [client, subscription] = await bench.subscribed({ receiveMaximum: 65_535 }, { qos: 2 })
      const read = reader(subscription)
      bench.go()
      const { counts } = await bench.told('done', 1, 60_000)
      await pause(20)
      bench.same((counts as number[])[5], 65_535, 'PUBREC for every one')
      bench.same(read.count, 65_535, 'each is delivered once')
      bench.same(client.state, 'connected', 'the link is kept')
    },
  },
  {
    row: 'T07',
    variant: 'budget',
    limit: 'memoryBudget 32 MiB, then a Receive Maximum that keeps within it',
    fed: '320 QoS 1 messages of 1 MiB, nobody reads',
    budget: memoryBudget + MiB,
    garbage: muchGarbage,
    async peer(link) {
      const connect = await link.welcome()
      const receiveMaximum = connect.readUInt16BE(connect.indexOf(0x21, 12) + 1)
      link.tell('connected', { receiveMaximum })
      await link.packet(8)
      if (link.number === 1) await link.go()
      const payload = Buffer.alloc(MiB - 64)
      for (let id = 1; id <= 320; id++)
        if (!(await link.send(publish({ qos: 1, id, payload })))) break
      await link.finish()
    },
    async run(bench) {
      const reconnect = { backoff: () => 50 }
      const session = { clientId: 'c', cleanStart: false }
      const options = { receiveMaximum: 1000, ...session, reconnect }
      const [, subscription] = await bench.subscribed(options, { qos: 1 })
      bench.go()
      const first = await bench.told('over', 1)
      bench.same(first['disconnect'], 0x97, 'DISCONNECT 0x97 over the budget')
      await bench.meter.pause()
      const { receiveMaximum } = await bench.told('connected', 2)
      const what = 'the next CONNECT announces as many messages of this size as the budget holds'
      bench.same(receiveMaximum, 31, what)
      const { size } = subscription
      bench.check(size <= 32, 'at most 32 messages of 1 MiB are buffered', size)
    },
  },
  unread(
    {
      variant: 'large',
      limit: 'buffer 1,024 messages, bufferBytes 4 MiB',
      fed: '320 MiB of QoS 0 messages of 64 KiB, nobody reads',
      budget: 5 * MiB,
    },
    64 * KiB,
    1,
  ),
  unread(
    {
      variant: 'many',
      limit: 'memoryBudget 32 MiB over all subscriptions',
      fed: '320 MiB of QoS 0 messages of 16 KiB to 80 subscriptions, nobody reads',
      budget: memoryBudget + 2 * MiB,
    },
    16 * KiB,
    80,
  ),
  {
    row: 'T12',
    variant: 'window',
    limit: 'maxQueuedBytes 16 MiB, and as much that waits',
    fed: '20,480 publishes of 16 KiB at QoS 1, none acknowledged',
    budget: 36 * MiB,
    async peer(link) {
      await link.welcome()
      await link.finish()
    },
    async run(bench) {
      const client = await bench.connected({ keepAlive: 1, outbound: { ackTimeout: 2000 } })
      const payload = new Uint8Array(16 * KiB)
      const outcomes = new Outcomes()
      for (let count = 0; count < 20_480; count++)
        outcomes.note(client.publish('a', payload, { qos: 1 }))
      await bench.meter.pause()
      const full = outcomes.of('ERR_QUEUE_FULL not-sent')
      bench.check(full >= 18_000, 'what is too much is refused at once: ERR_QUEUE_FULL', full)
      await bench.until(() => outcomes.of('ERR_TIMEOUT unknown') > 0, 'ackTimeout', 10_000)
      bench.same(outcomes.of('none'), 0, 'none counts as acknowledged')
      bench.same(client.state, 'connected', 'the link is kept')
    },
  },
  {
    row: 'T12',
    variant: 'unread',
    limit: 'maxQueuedBytes 16 MiB, and as much that waits',
    fed: '20,480 publishes and posts of 16 KiB to a server that reads nothing',
    budget: 36 * MiB,
    async peer(link) {
      await link.welcome()
      link.socket.pause()
      await link.finish()
    },
    async run(bench) {
      const client = await bench.connected({ keepAlive: 1, pingTimeout: 1500 })
      const payload = new Uint8Array(16 * KiB)
      const outcomes = new Outcomes()
      let posted = 0
      for (let count = 0; count < 20_480; count++) {
        if (count % 2 === 0) outcomes.note(client.publish('a', payload))
        else if (client.post('a', payload)) posted += 1
        if (count % 100 === 99) await new Promise((resolve) => setImmediate(resolve))
      }
      await bench.meter.pause()
      const full = outcomes.of('ERR_QUEUE_FULL not-sent')
      bench.check(full > 5000, 'publish() is refused: ERR_QUEUE_FULL', [...outcomes.counts])
      bench.check(posted < 3000, 'post() says no', posted)
      const error = await bench.closed(client)
      bench.same(error?.code, 'ERR_KEEPALIVE_TIMEOUT', 'a server that stops reading loses the link')
      await bench.until(() => outcomes.settled === 10_240, 'every publish')
      bench.check(true, 'every publish settles')
    },
  },
  {
    row: 'T13',
    variant: 'flood',
    limit: 'acknowledgements for nothing are counted; output within memoryBudget',
    fed: '1,000,000 forged PUBACK and PUBCOMP, then 320 MiB of PUBREC without reading',
    budget: memoryBudget + 2 * MiB,
    garbage: muchGarbage,
    async peer(link) {
      await link.ready(0)
      const of = (first: number): Buffer =>
        Buffer.concat(Array.from({ length: 1000 }, (_, at) => packet(first, uint16(at + 1))))
      let sent = 0
      for (const first of [0x40, 0x70])
        for (let round = 0; round < 500; round++) if (await link.send(of(first))) sent += 1000
      link.tell('fed', { sent })
      await link.go()
      link.socket.pause()
      await link.flood(repeated(of(0x50), 64 * KiB).bytes, 10 * memoryBudget)
      await link.finish()
    },
    async run(bench) {
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
      const { code = '' } = (await bench.closed(client)) ?? {}
      const codes = ['ERR_CONNECTION_LOST', 'ERR_KEEPALIVE_TIMEOUT', 'ERR_PROTOCOL_ERROR']
      const what = 'a server that makes us answer and reads nothing loses the link'
      bench.check(codes.includes(code), what, code)
    },
  },
]
