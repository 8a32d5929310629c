/** Attacks on tables, on text, and before the end of authentication (T09, T11, T15, T26). */
import { pause } from '../../../support/pausing.js'
import { connack, join, packet, properties, publish, text, uint16, varint } from '../bytes.js'
import { KiB, MiB, memoryBudget, type Scenario } from '../scenario.js'

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
