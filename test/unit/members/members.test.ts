/** What pools and groups share: the time of a member, how long a publish waits, errors of several, hashes, and the order of a topic while its member changes. */

import { expect, it } from 'vitest'
import { aborted, type Deferred, deferred, onAbort, silent } from '../../../src/common/abort.js'
import { MqttError, type MqttErrorCode, type Outcome } from '../../../src/errors.js'
import { Asked } from '../../../src/members/asked.js'
import { asMqttError, membersError } from '../../../src/members/failure.js'
import { type Time, timeOf } from '../../../src/members/member.js'
import { fnv1a, weight } from '../../../src/members/router.js'
import { type Call, TopicOwners } from '../../../src/members/topic-owners.js'
import { Gate, type Patience, WaitingRoom } from '../../../src/members/waiting.js'
import { poolOf } from '../../../src/pool/publisher-pool.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'

it('the time of a member is that of its client, or of the clients of its pool; else that of the runtime', async () => {
  const world = new VirtualWorld()
  await world.pass(12_345)
  const client = new world.Client('mqtt://b')
  const pool = poolOf((at, given) => new world.Client(at, given), 'mqtt://b', { size: 2 })
  expect([client, pool].map((member) => timeOf(member).now())).toEqual([12_345, 12_345])
  for (const other of [undefined, {}])
    expect(Math.abs(timeOf(other).now() - performance.now())).toBeLessThan(1000)
  await world.close()
})

it('the wait of a publish ends as long after the call as its ttl says, whenever the wait begins', () => {
  let now = 1_000_000
  const delays: number[] = []
  const setTimer = (_: () => void, delay: number): (() => void) => {
    delays.push(delay)
    return () => undefined
  }
  const time = { now: () => now, setTimer } as unknown as Time
  const asked = new Asked(
    't',
    'x',
    { ttl: 100 },
    { time, refuse: (_, error) => silent(Promise.reject(error)) },
  )
  for (const later of [0, 30, 200]) {
    now = 1_000_000 + later
    asked.watch(() => undefined)()
  }
  expect(delays).toEqual([100, 70, 0])
})

const failure = (code: MqttErrorCode, outcome: Outcome = 'not-sent', reasonCode?: number) =>
  new MqttError(code, undefined, { outcome, ...(reasonCode === undefined ? {} : { reasonCode }) })
const gone = failure('ERR_NOT_CONNECTED')
const refused = failure('ERR_PUBLISH_REFUSED', 'refused', 0x97)
const otherwise = failure('ERR_PUBLISH_REFUSED', 'refused', 0x87)
const late = failure('ERR_TIMEOUT', 'unknown')

it.each([
  ['one', [refused], 'ERR_PUBLISH_REFUSED', 'refused', 0x97],
  ['one, the other was not there', [gone, refused], 'ERR_PUBLISH_REFUSED', 'refused', 0x97],
  ['for different reasons', [refused, otherwise], 'ERR_PUBLISH_REFUSED', 'refused', undefined],
  ['with different codes', [refused, late], 'ERR_CLOSED', 'unknown', undefined],
  ['none was there', [gone, gone], 'ERR_NOT_CONNECTED', 'not-sent', undefined],
] as const)('what several rejected with: %s', (_, errors, code, outcome, reasonCode) => {
  const all = membersError(
    'ERR_CLOSED',
    'what',
    new Map(errors.map((error, index) => [`m${index}`, error])),
  )
  const fault = errors.some((error) => error.fault === 'remote') ? 'remote' : 'local'
  expect(all).toMatchObject({ name: 'AggregateError', errors, code, outcome, reasonCode, fault })
  expect(all.message).toBe(
    ['what:', ...errors.map(({ message }, index) => `m${index}: ${message}`)].join('\n'),
  )
  expect(MqttError.is(all)).toBe(true)
})

it('what is no error of this package becomes one', () => {
  expect(asMqttError(refused)).toBe(refused)
  const cause = new Error('x')
  expect(asMqttError(cause)).toMatchObject({ code: 'ERR_NOT_CONNECTED', cause })
})

it.each([
  ['', 0x811c9dc5],
  ['a', 0xe40c292c],
  ['b', 0xe70c2de5],
  ['foobar', 0xbf9cf968],
])('fnv1a of %j is that of the published table', (text, hash) => expect(fnv1a(text)).toBe(hash))

// Programs of different versions must agree on the member of a topic.
it.each([
  ['a', 't', 1688881513],
  ['eu', '', 1060333821],
])('the weight of member %j for topic %j never changes', (name, topic, value) =>
  expect(weight(fnv1a(name), fnv1a(topic))).toBe(value),
)

const preferred = (names: readonly string[], topic: string): string =>
  names.reduce((best, name) =>
    weight(fnv1a(name), fnv1a(topic)) > weight(fnv1a(best), fnv1a(topic)) ? name : best,
  )
const topics = Array.from(
  { length: 20_000 },
  (_, index) => `site/${index % 37}/device-${index}/telemetry`,
)

it.each([
  [['a', 'b', 'c']],
  [['pub-1', 'pub-2', 'pub-3', 'pub-4']],
  [['eu', 'us', 'asia', 'x1', 'x2']],
])('spreads topics over %j evenly, within 5 %%', (names) => {
  const counts = new Map(names.map((name) => [name, 0]))
  for (const topic of topics)
    counts.set(preferred(names, topic), (counts.get(preferred(names, topic)) ?? 0) + 1)
  const fair = topics.length / names.length
  for (const count of counts.values()) expect(Math.abs(count - fair) / fair).toBeLessThan(0.05)
})

it('moves the topics of a member that is lost, and no other', () => {
  const names = ['a', 'b', 'c', 'd']
  const left = ['a', 'b', 'd']
  for (const topic of topics)
    if (preferred(names, topic) !== 'c')
      expect(preferred(left, topic)).toBe(preferred(names, topic))
})

class Rig {
  readonly sent: {
    readonly member: string | undefined
    readonly text: string
    readonly end: Deferred<string>
  }[] = []
  up = ['a', 'b']
  readonly gone = new Set<string>()
  moves = false
  #number = 0
  readonly owners = new TopicOwners<string>(
    {
      choose: () => this.up[0],
      takes: (member) => !this.gone.has(member),
      leaves: (member) => this.moves && !this.up.includes(member),
    },
    new WaitingRoom(),
  )

  run(text: string, signal?: AbortSignal): Promise<string> {
    this.#number += 1
    const call: Call<string, string> = {
      number: this.#number,
      send: (member) => {
        const end = deferred<string>()
        this.sent.push({ member, text, end })
        return end.promise
      },
      again: (error, member) => this.gone.has(member) && error === 'unsent',
      patience: { size: 1, watch: (end) => onAbort(signal, () => end(aborted(signal))) },
    }
    return this.owners.run('t', call)
  }

  get story(): string[] {
    return this.sent.map(({ member, text }) => `${member}:${text}`)
  }
}

/** One call is under way at `a`, which takes nothing more. */
function leaving(): Rig {
  const rig = new Rig()
  void rig.run('1')
  rig.up = ['b']
  rig.gone.add('a')
  return rig
}

const turns = async (): Promise<void> => {
  for (let step = 0; step < 10; step++) await undefined
}

it('goes on with the member that has something in flight, though another one is chosen now', async () => {
  const rig = new Rig()
  void rig.run('1')
  rig.up = ['b', 'a']
  void rig.run('2')
  expect(rig.story).toEqual(['a:1', 'a:2'])
  for (const { end } of rig.sent) end.resolve('')
  await turns()
  expect(rig.owners.size).toBe(0)
  void rig.run('3')
  expect(rig.story.at(-1)).toBe('b:3')
})

it('waits for what a member that takes nothing more has in flight', async () => {
  const rig = leaving()
  void rig.run('2')
  void rig.run('3')
  await turns()
  expect(rig.story).toEqual(['a:1'])
  rig.sent[0]?.end.resolve('')
  await turns()
  expect(rig.story).toEqual(['a:1', 'b:2', 'b:3'])
})

it('gives what was certainly not sent to another one, in the order of the calls, before later calls', async () => {
  const rig = new Rig()
  const ends = [rig.run('1'), rig.run('2'), rig.run('3')]
  rig.up = ['b']
  rig.gone.add('a')
  ends.push(rig.run('4'))
  const [one, two, three] = rig.sent
  one?.end.reject('unknown')
  three?.end.reject('unsent')
  two?.end.reject('unsent')
  ends.push(rig.run('5'))
  await expect(ends[0]).rejects.toBe('unknown')
  await turns()
  expect(rig.story).toEqual(['a:1', 'a:2', 'a:3', 'b:2', 'b:3', 'b:4', 'b:5'])
  for (const { end } of rig.sent) end.resolve('done')
  expect(await Promise.all(ends.slice(1))).toEqual(['done', 'done', 'done', 'done'])
  expect(rig.owners.size).toBe(0)
})

it.each([
  ['gives up the order where that was asked for', ['b'], 'b:2'],
  ['keeps a topic where it is while no other member is up', [], 'a:2'],
])('%s', (_what, up, second) => {
  const rig = new Rig()
  rig.moves = true
  void rig.run('1')
  rig.up = up
  void rig.run('2')
  expect(rig.story).toEqual(['a:1', second])
})

it('an abort ends the wait of its call alone', async () => {
  const rig = leaving()
  const abort = new AbortController()
  const two = rig.run('2', abort.signal)
  void rig.run('3')
  abort.abort()
  await expect(two).rejects.toMatchObject({ code: 'ERR_ABORTED' })
  rig.sent[0]?.end.resolve('')
  await turns()
  expect(rig.story).toEqual(['a:1', 'b:3'])
})

it('lets no more than 10,000 calls wait', async () => {
  const rig = leaving()
  for (let count = 0; count < 10_000; count++) void rig.run(String(count))
  await expect(rig.run('x')).rejects.toMatchObject({ code: 'ERR_QUEUE_FULL' })
  rig.sent[0]?.end.resolve('')
  await turns()
  expect(rig.sent).toHaveLength(10_001)
})

it('a call that throws rejects, and those behind it go on', async () => {
  const owners = new TopicOwners<string>(
    { choose: () => 'a', takes: () => true, leaves: () => false },
    new WaitingRoom(),
  )
  const fail = (): Promise<string> => {
    throw new TypeError('no promise')
  }
  const call = (number: number, send: () => Promise<string>): Call<string, string> => ({
    number,
    send,
    again: () => false,
    patience: { size: 1, watch: () => () => undefined },
  })
  const first = owners.run('t', call(1, fail))
  const second = call(2, () => Promise.resolve('sent'))
  expect(await owners.run('t', second)).toBe('sent')
  await expect(first).rejects.toThrow('no promise')
  expect(owners.size).toBe(0)
})

it('a publish that is aborted while those before it are released is not made, and counted out once', async () => {
  const room = new WaitingRoom()
  const gate = new Gate(room)
  const abort = new AbortController()
  const patience = ({ signal }: AbortController): Patience => ({
    size: 1,
    watch: (end) => onAbort(signal, () => end(aborted(signal))),
  })
  const made: string[] = []
  const first = gate.run(async () => {
    made.push('first')
    abort.abort()
  }, patience(new AbortController()))
  const second = gate.run(async () => made.push('second'), patience(abort))
  gate.open()
  await expect(second).rejects.toMatchObject({ code: 'ERR_ABORTED' })
  await first
  expect([made, room.size]).toEqual([['first'], 0])
})
