/**
 * The finder in small: programs in each world without a finding, and the model, which has to notice a history that breaks a promise.
 *
 * Long runs are `npm run lab -- brokers finder`. The parts that are pure need no time of their own.
 */
import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { missingForMosquitto } from '../../real/brokers.js'
import { bundle, bundles } from './bundle.js'
import { generate } from './generate.js'
import type { CallRecord, History } from './history.js'
import { judge } from './model.js'
import { type Program, parsed, type Step, shown } from './program.js'
import { work } from './run.js'
import { shrink } from './shrink.js'
import type { Task } from './worker.js'
import { VirtualWorld, type WorldName } from './worlds.js'

const task: Task = { worlds: ['virtual'], first: 1, seeds: 1, part: 0, parts: 1, limit: 60 }

afterAll(() => rmSync(bundles, { recursive: true, force: true }))

describe('programs at random', () => {
  let file = ''
  beforeAll(async () => {
    file = await bundle()
  })

  async function explore(world: WorldName, first: number, seeds: number): Promise<void> {
    const { programs, told } = await work(file, { ...task, worlds: [world], first, seeds })
    expect(told.map(({ rule, detail, seed }) => `seed ${seed}, ${rule}: ${detail}`)).toEqual([])
    expect(programs).toBe(seeds)
  }

  it('600 in virtual time', () => explore('virtual', 1, 600), 60_000)
  it('60 over TCP, with the broker of mqwire/testing', () => explore('tcp', 1, 60), 60_000)

  const missing = missingForMosquitto()
  if (missing === undefined) it('20 over TCP, with mosquitto', () => explore('mosquitto', 1, 20), 60_000)
  else it(`mosquitto: ${missing} not found`, () => expect(process.env['CI']).toBeUndefined())
})

const plain: Program = {
  seed: 1,
  clients: [{ endpoints: ['good'], options: {}, backoff: 20, maxAttempts: 2, will: true }],
  signals: [1],
  link: { latency: 5, pieces: 'whole' },
  end: 'disconnect',
  steps: [
    { id: 0, client: 0, after: 0, wait: true, call: { call: 'connect' } },
    {
      id: 1,
      client: 0,
      after: 0,
      wait: true,
      call: { call: 'subscribe', filters: ['t/#'], options: { qos: 2 }, through: 'subscribe', reading: { how: 'loop' } },
    },
    { id: 2, client: 0, after: 0, wait: false, call: { call: 'publish', topic: 't/1', size: 20, form: 'bytes', qos: 2, options: {} } },
    { id: 3, client: 0, after: 0, wait: true, call: { call: 'publish', topic: 't/1', size: 5, form: 'offset', qos: 2, options: {} } },
    { id: 4, client: 0, after: 0, wait: true, call: { call: 'publish', topic: 't/1', size: 5, form: 'text', qos: 1, options: {}, signal: 0 } },
    { id: 5, client: 0, after: 0, wait: false, call: { call: 'setBrokers', endpoints: ['good', 'late'] } },
    { id: 6, client: 0, after: 0, wait: true, call: { call: 'wrong', what: 'publish at QoS 3' } },
  ],
}

/** A run of the plain program, with something in its history changed. */
async function changed(change: (history: History) => void): Promise<string[]> {
  const history = await new VirtualWorld().run(plain)
  change(history)
  return judge(history, { slack: 1 }).map(({ rule }) => rule)
}

function callOf(history: History, id: number): CallRecord {
  return history.calls.find((record) => record.id === id) as CallRecord
}

function rejects(record: CallRecord, error: unknown): void {
  Object.assign(record, { how: 'rejected', error })
}

/** What has to be noticed: the rule, and what breaks it. */
const breaches: readonly (readonly [rule: string, what: string, change: (history: History) => void])[] = [
  ['settles', 'a call that is pending in the end', (history) => Object.assign(callOf(history, 2), { how: 'pending' })],
  ['over', 'a call that settles long after the end', (history) => Object.assign(callOf(history, 2), { settledAt: 1e9 })],
  ['kinds', 'an error that is not ours', (history) => rejects(callOf(history, 3), new TypeError('no'))],
  ['kinds', 'an error that is not documented', (history) => rejects(callOf(history, 3), new MqttError('ERR_TLS'))],
  ['reason', 'an abort that nobody asked for', (history) => rejects(callOf(history, 3), new MqttError('ERR_ABORTED'))],
  ['reason', 'a client that is closed and is not', (history) => rejects(callOf(history, 3), new MqttError('ERR_CLOSED'))],
  ['not-sent', 'a message that was not sent and arrived', (history) => rejects(callOf(history, 3), new MqttError('ERR_NOT_CONNECTED'))],
  ['abort', 'an abort that comes late', (history) => Object.assign(callOf(history, 4), { settledAt: callOf(history, 4).settledAt + 500 })],
  ['lost', 'a message that never arrived', (history) => Object.assign(history, { taken: history.taken.slice(1) })],
  ['twice', 'a message at QoS 2 that arrived twice', (history) => Object.assign(history, { taken: [...history.taken, ...history.taken] })],
  ['order', 'messages of one topic the other way round', (history) => Object.assign(history, { taken: history.taken.toReversed() })],
  ['bytes', 'other bytes', (history) => Object.assign(history, { taken: history.taken.map((each) => ({ ...each, wrong: 'byte 3' })) })],
  ['bytes', 'a message of nobody', (history) => Object.assign(history, { taken: history.taken.map((each) => ({ ...each, name: 'x' })) })],
  ['missing', 'a subscription that got nothing', (history) => void history.deliveries.splice(0)],
  ['twice', 'a delivery at QoS 2 that comes again', (history) => void history.deliveries.push(...history.deliveries)],
  ['filter', 'a message for somebody else', (history) => void history.deliveries.splice(0, 1, { ...history.deliveries[0], topic: 'u/1' } as never)],
  ['over', 'a message after the end', (history) => void history.deliveries.push({ ...history.deliveries[0], seq: 1e9, at: 1e9 } as never)],
  ['events', 'states out of order', (history) => void history.events.reverse()],
  ['events', 'one event twice', (history) => void history.events.push(...history.events.filter(({ type }) => type === 'disconnect'))],
  ['brokers', 'a dial to a broker that is not in the list', (history) => dialled(history, 'other', 1)],
  ['attempts', 'more dials than maxAttempts', (history) => dialled(unmeddled(history), 'good', 3)],
  [
    'will',
    'a will after a goodbye',
    (history) => Object.assign(history, { taken: [...history.taken, { ...history.taken[0], topic: 'w/c0' } as never] }),
  ],
  ['options', 'a wrong call that is taken', (history) => Object.assign(callOf(history, 6), { how: 'fulfilled' })],
  ['goodbye', 'a disconnect() that rejects', (history) => rejects(callOf(history, 1000), new MqttError('ERR_TIMEOUT'))],
  ['closed', 'connect() twice', (history) => Object.assign(callOf(history, 0), { state: 'connected' })],
  ['leak', 'a timer that is left', (history) => Object.assign(history, { left: ['1 timers'] })],
]

// Without the call of setBrokers(), which may make dials of its own.
function unmeddled(history: History): History {
  const at = history.calls.findIndex(({ id }) => id === 5)
  history.calls.splice(at, 1)
  return history
}

function dialled(history: History, host: string, times: number): void {
  const end = history.events.findIndex(({ type }) => type === 'disconnect')
  const dial = { client: 0, at: 900, seq: 900, type: 'dial', event: { attempt: 1, endpoint: `mqtt://${host}` } }
  history.events.splice(end + 1, 0, ...Array.from({ length: times }, () => dial))
}

describe('the model', () => {
  it('has nothing against a program that went well', async () => {
    expect(await changed(() => undefined)).toEqual([])
  })

  it.each(breaches)('%s: %s', async (rule, _what, change) => {
    expect(await changed(change)).toContain(rule)
  })
})

describe('programs as data', () => {
  it('a seed is one program, and another seed another one', () => {
    expect(generate(7)).toEqual(generate(7))
    expect(shown(generate(7))).not.toBe(shown(generate(8)))
  })

  it('what is printed can be read again', () => {
    for (let seed = 1; seed <= 50; seed++) expect(parsed(shown(generate(seed)))).toEqual(JSON.parse(JSON.stringify(generate(seed))))
  })

  it('a run in virtual time is the same each time', async () => {
    const events = async (): Promise<string> => {
      const { calls, events: told } = await new VirtualWorld().run(generate(5))
      return JSON.stringify([calls.map(({ at, name, how, settledAt }) => [at, name, how, settledAt]), told.map(({ at, type }) => [at, type])])
    }
    expect(await events()).toBe(await events())
  })

  it('what fails is made smaller, down to the steps that it takes', async () => {
    const wanted = (steps: readonly Step[]): boolean => [2, 5].every((id) => steps.some((step) => step.id === id))
    const small = await shrink(generate(3), 'x', async ({ steps }) => (wanted(steps) ? [{ rule: 'x', detail: '' }] : []))
    expect(small.steps.map(({ id }) => id)).toEqual([2, 5])
    expect(small.clients).toHaveLength(1)
    expect(small.clients[0]?.options).toEqual({})
  })
})
