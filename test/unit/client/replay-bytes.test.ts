/**
 * The link is killed at each byte of a run, and again during the replay: nothing is lost, QoS 2 is not doubled. Also where the server forgets
 * everything with the connection: each message is accounted for, and its fate is what the caller was told.
 *
 * A push tries every fourth byte, from another one on each time; with `MQWIRE_LONG` all are tried.
 */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { MqttError } from '../../../src/errors.js'
import { quietly } from '../../rules/corpus/run/quietly.js'
import { type Cut, cutting } from './cutting.js'
import { SmallBroker } from './small-broker.js'

const stride = process.env['MQWIRE_LONG'] === undefined ? 4 : 1
const first = Math.floor(Math.random() * stride)

/** The bytes up to this one at which a link is cut. */
function* places(last: number): Iterable<number> {
  for (let at = first; at <= last; at += stride) yield at
}

const numbers = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => String(index))
const levelOf = (text: string): 1 | 2 => (Number(text) % 2 === 0 ? 1 : 2)

/** What the broker came to have, and the callers were told. */
interface Run {
  readonly broker: SmallBroker
  readonly texts: readonly string[]
  readonly bytes: number
  readonly fulfilled: readonly string[]
  readonly rejected: ReadonlyMap<string, MqttError>
  /** Messages that each `sessionlost` event rejected. */
  readonly losses: readonly number[]
}

interface RunOptions {
  readonly receiveMaximum?: number
  readonly forgetful?: boolean
  /** Publishes before the first connection, and after it. */
  readonly counts?: readonly [before: number, after: number]
  readonly client?: ClientOptions
}

/** Publishes, QoS 1 and 2 in turn, over connections that are cut. */
const run = (cuts: readonly Cut[], options: RunOptions = {}): Promise<Run> =>
  quietly(() => played(cuts, options))

async function played(cuts: readonly Cut[], options: RunOptions): Promise<Run> {
  const { receiveMaximum = 34, forgetful = false, counts = [100, 0], client } = options
  const broker = new SmallBroker({ receiveMaximum })
  const world = cutting(broker, cuts, { firstConnect: 'wait', ...client })
  const fulfilled: string[] = []
  const rejected = new Map<string, MqttError>()
  const losses: number[] = []
  if (forgetful) world.client.on('disconnect', () => broker.forget())
  world.client.on('sessionlost', (event) => losses.push(event.rejected.length))
  const texts = numbers(counts[0] + counts[1])
  const publish = (text: string): void =>
    void world.client.publish('t', text, { qos: levelOf(text) }).then(
      () => fulfilled.push(text),
      (error: MqttError) => rejected.set(text, error),
    )
  texts.slice(0, counts[0]).forEach(publish)
  world.client.connect().catch(() => undefined)
  await world.settle()
  texts.slice(counts[0]).forEach(publish)
  await world.clock.advance(1000)
  const bytes = world.peers[0]?.bytes.length ?? 0
  world.client.destroy()
  await world.settle()
  return { broker, texts, bytes, fulfilled, rejected, losses }
}

/** Nothing is lost, QoS 2 is there once, and first occurrences come in the order of the calls. */
function check({ broker, texts, fulfilled }: Run, where: string): void {
  expect(broker.broken, where).toEqual([])
  expect(fulfilled.length, where).toBe(texts.length)
  expect([...new Set(broker.accepted.map(({ text }) => text))], where).toEqual(texts)
  const doubled = broker.accepted.filter(({ qos }) => qos === 2)
  expect(doubled.length, `${where}: QoS 2 once each`).toBe(texts.length / 2)
}

describe('100 publishes at QoS 1 and 2', { timeout: 120_000 }, () => {
  it('a cut at each byte towards the server', async () => {
    const undisturbed = await run([])
    check(undisturbed, 'undisturbed')
    expect(undisturbed.bytes).toBeGreaterThan(1000)
    for (const at of places(undisturbed.bytes)) check(await run([{ forward: at }]), `byte ${at}`)
  })

  it('a cut at each byte towards the client', async () => {
    for (const at of places(612)) check(await run([{ backward: at }]), `byte ${at}`)
  })

  it('a cut in mid-run, then one at each byte of the replay, in both directions', async () => {
    for (const at of places(260)) {
      check(await run([{ forward: 500 }, { forward: at }]), `replay, byte ${at}`)
      check(
        await run([{ backward: 203 }, { backward: at }]),
        `replay, byte ${at} towards the client`,
      )
    }
  })

  it('a link that never lives for more than a few packets', async () => {
    for (const room of [90, 97, 111]) {
      const cuts = Array.from({ length: 9 }, (_, index) =>
        index % 2 === 0 ? { forward: room + index } : { backward: room },
      )
      check(await run(cuts, { receiveMaximum: 4 }), `${room} bytes at a time`)
    }
  })

  it('all at once, a large window: every PUBLISH is in flight when it is cut', async () => {
    for (let at = 0; at <= 1100; at += 13)
      check(
        await run([{ forward: at }, { forward: at + 7 }], { receiveMaximum: 65_535 }),
        `byte ${at}`,
      )
  })

  it('100 queued before the first connection and 100 after, a drop every 20 messages: all 200, in order', async () => {
    // About 20 messages of 12 bytes, and what has to be repeated of them.
    const cuts = Array.from({ length: 30 }, (_, index) => ({ forward: 300 + index }))
    const result = await run(cuts, { counts: [100, 100], receiveMaximum: 65_535 })
    check(result, 'drops')
    expect(result.broker.connections).toBeGreaterThan(5)
  })
})

describe('the server forgets the session', { timeout: 120_000 }, () => {
  const forgetting = { forgetful: true, receiveMaximum: 20, counts: [60, 0] } as const
  const times = ({ broker }: Run, text: string): number =>
    broker.accepted.filter((one) => one.text === text).length

  it.each([
    ['forward', 700],
    ['backward', 380],
  ] as const)(
    'a cut anywhere, %s: every call settles once, with the truth',
    async (direction, last) => {
      for (let at = 0; at <= last; at += 5) {
        const result = await run([{ [direction]: at }], forgetting)
        const { broker, texts, fulfilled, rejected, losses } = result
        const where = `byte ${at}`
        expect(fulfilled.length + rejected.size, where).toBe(texts.length)
        for (const text of texts) {
          const copies = times(result, text)
          // QoS 1 is published once more: nothing is lost. QoS 2 that was sent may have arrived, and is not sent again.
          if (levelOf(text) === 1 || fulfilled.includes(text))
            expect(copies, `${where}: ${text}`).toBeGreaterThanOrEqual(1)
          if (levelOf(text) === 2) expect(copies, `${where}: ${text}`).toBeLessThanOrEqual(1)
        }
        for (const [text, { code, outcome }] of rejected)
          expect([levelOf(text), code, outcome], `${where}: ${text}`).toEqual([
            2,
            'ERR_SESSION_LOST',
            'unknown',
          ])
        expect(losses.length, where).toBeLessThanOrEqual(1)
        expect(losses[0] ?? 0, where).toBe(rejected.size)
        expect(broker.broken, where).toEqual([])
      }
    },
  )

  it('with `onSessionLost: "republish"` everything arrives, at the risk that the design names', async () => {
    const client: ClientOptions = { outbound: { onSessionLost: 'republish' } }
    for (let at = 0; at <= 700; at += 11) {
      const result = await run([{ forward: at }], { ...forgetting, client })
      expect(result.fulfilled.length, `byte ${at}`).toBe(result.texts.length)
      for (const text of result.texts)
        expect(times(result, text), `byte ${at}: ${text}`).toBeGreaterThanOrEqual(1)
      expect(result.losses.every((rejected) => rejected === 0)).toBe(true)
    }
  })
})
