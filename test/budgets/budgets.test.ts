/**
 * Every row of "Attacks by a hostile broker", fed ten times its budget, in a process of its own: what it holds at its peak, and what it does.
 *
 * The attacks run two at a time while the tests wait for those of their row. `npm run budgets` prints what they measured.
 */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gaps, type Named, Runner } from './runner.js'
import { nameOf, type Result } from './scenario.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const table = path.join(root, 'test', 'budgets', 'BUDGETS.md')

const rows = [
  'T01 announces 256 MB: refused at the header, nothing is allocated for it',
  'T02 control packets of ten times their cap: refused at the header',
  'T03 a million parts of one byte: bounded overhead; text frames are refused',
  'T04 a deflate bomb: compression is not offered, and ends the link',
  'T05 drips and silence: deadlines hold, PINGREQ goes on',
  'T06 a flood of small PUBLISHes: timers, setImmediate and PINGREQ run on time, over TCP and WebSocket',
  'T07 QoS 2 that is never released, QoS 1 over the budget: 0x93, identifiers only, 0x97 and half the window',
  'T08 a flood of QoS 0 that nobody reads: the oldest are dropped, counted, told once a second',
  'T09 topic aliases: ten, counted in bytes, 0x94',
  'T10 property bombs: 0x97 in every kind of packet, and what properties cost is counted',
  'T11 a million unknown Subscription Identifiers: routed by topic, counted, nothing is kept',
  'T12 acknowledgements that never come: bounded queues, ackTimeout, stalled',
  'T13 forged acknowledgements: counted; wrong kinds end the link; answers that nobody reads are bounded',
  'T14 names of Object members: pairs, no prototype is touched',
  'T15 text against regular expressions: linear time',
  'T16 control characters: escaped and cut in every log line and error',
  'T17 secrets: in CONNECT and nowhere else',
  'T18 plain bytes to a TLS client: ERR_TLS, no MQTT byte, no fallback',
  'T20 ws: from an https: page: refused early, wss is suggested',
  'T21 Server References: not followed; with a list, three hops',
  'T22 a redirect of the WebSocket handshake: not followed',
  'T23 links that die young: delays of the backoff; taken over: stops',
  'T24 response topics elsewhere: not answered, counted',
  'T25 messages that break their handler: 5 retries, refused, told, the link is kept',
  'T26 160 rounds of AUTH, other methods: 16, and 0x82',
  'T27 Session Present without a session: 0x82',
  'T28 a keep-alive of 1 s: kept, and logged',
]

describe('budgets', () => {
  const results = new Map<string, Result>()
  let names: Named[] = []
  let runner: Runner
  let all: Promise<unknown>
  let heard: (() => void)[] = []

  beforeAll(() => {
    runner = new Runner(root)
    names = runner.list()
    all = runner.runAll(names, (result) => {
      results.set(nameOf(result), result)
      for (const wake of heard.splice(0)) wake()
    })
    all
      .catch(() => undefined)
      .finally(() => {
        for (const wake of heard.splice(0)) wake()
      })
  })

  afterAll(async () => {
    await all.catch(() => undefined)
    runner.close()
  })

  async function resultOf(named: Named): Promise<Result> {
    const name = nameOf(named)
    let ended = false
    all
      .catch(() => undefined)
      .finally(() => {
        ended = true
      })
    while (!results.has(name) && !ended) {
      await new Promise<void>((resolve) => {
        heard = [...heard, resolve]
      })
    }
    const result = results.get(name)
    if (result !== undefined) return result
    await all
    throw new Error(`${name} was not run`)
  }

  it.each(rows)(
    '%s',
    async (title) => {
      const mine = names.filter(({ row }) => row === title.slice(0, 3))
      expect(mine).not.toEqual([])
      const found = await Promise.all(mine.map(resultOf))
      expect(found.flatMap(({ variant, wrong }) => wrong.map((line) => `${variant}: ${line}`))).toEqual([])
    },
    300_000,
  )

  it('every row has an attack or a stated gap, and every attack a row', () => {
    const wanted = Array.from({ length: 29 }, (_, at) => `T${String(at + 1).padStart(2, '0')}`).filter((row) => row !== 'T19')
    const attacked = [...new Set(names.map(({ row }) => row))]
    expect([...attacked, ...Object.keys(gaps)].sort()).toEqual(wanted)
    expect(rows.map((title) => title.slice(0, 3))).toEqual(attacked)
  })

  it('the table holds these attacks, each within its budget, and the machine', () => {
    expect(existsSync(table)).toBe(true)
    const lines = readFileSync(table, 'utf8').split('\n')
    const cells = lines.filter((line) => /^\| T\d\d /.test(line)).map((line) => line.split(' | '))
    const listed = cells.map(([row, variant]) => `${row?.slice(2)} ${variant}`)
    expect(listed).toEqual([...names.map(nameOf).sort((first, second) => first.localeCompare(second)), ...Object.keys(gaps).map((row) => `${row} –`)])
    expect(new Set(cells.map((each) => each[8]))).toEqual(new Set(['within', 'gap']))
    expect(lines.filter((line) => line.startsWith('Machine: '))).toHaveLength(1)
  })
})
