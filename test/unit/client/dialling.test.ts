/** Which endpoint is next, when, and whether at all: the list of endpoints, and the policy that decides. */
import { describe, expect, it } from 'vitest'
import { constant, exponential } from '../../../src/client/options/backoff.js'
import type { ReconnectPolicy } from '../../../src/client/options/check-options.js'
import type { DecisionContext } from '../../../src/client/options/index.js'
import { BrokerList } from '../../../src/client/reconnect/brokers.js'
import {
  type RetryConfig,
  RetryPolicy,
  type Step,
} from '../../../src/client/reconnect/retry-policy.js'
import { MqttError } from '../../../src/errors.js'
import { Random } from '../../world/random.js'
import { coded, times } from './harness.js'

/** A list of endpoints, one letter each, over which so many steps went: `>` rotates, `!` refuses with 0x80 and the number of the step. */
function list(names: string, steps = ''): BrokerList<string> {
  const made = new BrokerList([...names])
  for (const [index, step] of [...steps].entries()) {
    if (step === '>') made.rotate()
    else made.refuse(new MqttError('ERR_CONNECT_REFUSED', undefined, { reasonCode: 0x80 + index }))
  }
  return made
}

/** Whose turn it is over so many rotations. */
function turns(brokers: BrokerList<string>, count: number): string {
  return times(count, () => {
    const { current } = brokers
    brokers.rotate()
    return current
  }).join('')
}

const follow = (brokers: BrokerList<string>, names: string): boolean[] =>
  [...names].map((name) => brokers.follow(name, name))

describe('rotation', () => {
  it('begins with the first, goes through in order, and begins again; of one endpoint it is always that', () => {
    expect([turns(list('abc'), 7), turns(list('a'), 3)]).toEqual(['abcabca', 'aaa'])
  })

  it('what worked sticks: nothing moves by itself', () => {
    const brokers = list('ab', '>')
    brokers.worked()
    brokers.settled()
    expect(brokers.current).toBe('b')
  })
})

describe('refusals', () => {
  it('an endpoint that refused is passed over', () => {
    const brokers = list('abc', '>!>')
    expect([turns(brokers, 4), brokers.refusals]).toEqual(['caca', undefined])
  })

  it('when all refused, every reason is there, in the order of the list, and rotating stays where it is', () => {
    const brokers = list('ab', '>!>!>')
    const codes = brokers.refusals?.map(([host, error]) => `${host} ${error.reasonCode}`)
    expect(codes).toEqual([`a ${0x83}`, `b ${0x81}`])
    expect(list('ab', '!>!>').current).toBe('b')
  })

  it('a new list has refused nothing, and begins with its first', () => {
    const brokers = list('ab', '>!')
    brokers.replace(['b', 'c'])
    expect([brokers.length, turns(brokers, 3)]).toEqual([2, 'bcb'])
  })
})

describe('references', () => {
  it('a detour is dialled until it fails; then the list goes on', () => {
    const brokers = list('ab')
    expect([brokers.follow('x', 'x:1'), brokers.current]).toEqual([true, 'x'])
    brokers.worked()
    expect(brokers.current).toBe('x')
    brokers.rotate()
    expect(['a', 'b']).toContain(brokers.current)
  })

  it('a detour that refuses does not count against the list', () => {
    const brokers = list('a')
    brokers.follow('x', 'x:1')
    brokers.refuse(new MqttError('ERR_CONNECT_REFUSED', undefined, { reasonCode: 0x8a }))
    expect(brokers.refusals).toBeUndefined()
    brokers.rotate()
    expect(brokers.current).toBe('a')
  })

  it('at most three hops, and none that leads back', () => {
    const brokers = list('a')
    expect([follow(brokers, 'xyzw'), brokers.current]).toEqual([[true, true, true, false], 'z'])
    expect(follow(list('a'), 'xyx')).toEqual([true, true, false])
  })

  it('hops count until a connection was stable, not until one came up', () => {
    const brokers = list('a')
    for (const name of 'xyz') {
      brokers.follow(name, name)
      brokers.worked()
    }
    expect(follow(brokers, 'w')).toEqual([false])
    brokers.settled()
    expect(follow(brokers, 'w')).toEqual([true])
  })

  it('a new list ends the detour and its chain', () => {
    const brokers = list('a')
    follow(brokers, 'xyz')
    brokers.replace(['b'])
    expect([brokers.current, ...follow(brokers, 'x')]).toEqual(['b', true])
  })
})

const lost = new MqttError('ERR_CONNECTION_LOST', undefined, { fault: 'remote' })
const failed = new MqttError('ERR_CONNECT_FAILED', undefined, { fault: 'remote' })
const no = (reasonCode: number): MqttError =>
  new MqttError('ERR_CONNECT_REFUSED', undefined, { reasonCode, outcome: 'refused' })
const goodbye = (reasonCode: number): MqttError =>
  new MqttError('ERR_SERVER_DISCONNECT', undefined, { reasonCode })

const doubling: ReconnectPolicy = {
  backoff: (attempt) => Math.min(30_000, 1000 * 2 ** (attempt - 1)),
  stableAfter: 30_000,
  maxAttempts: Number.POSITIVE_INFINITY,
  decide: undefined,
}

type Config = Partial<Omit<RetryConfig<string>, 'policy'>>

/** A policy that has begun: `fail` and `lose` give the delay of the next dial, or the error that it stops with. */
function begun(
  policy: Partial<ReconnectPolicy> | false = {},
  hosts: readonly string[] = ['a'],
  config: Config = {},
) {
  const brokers = new BrokerList(hosts)
  const defaults = {
    brokers,
    rejectFirst: false,
    refreshable: false,
    platform: { random: () => 0 },
    nameOf: (host: string) => `x://${host}`,
  }
  const whole = policy && { ...doubling, ...policy }
  const supervisor = new RetryPolicy({ ...defaults, ...config, policy: whole })
  const next = (step: Step) => (step.type === 'dial' ? step.delay : step.error)
  expect(supervisor.begin()).toEqual({ type: 'dial', delay: undefined })
  return {
    supervisor,
    brokers,
    connected: (now = 0) => supervisor.handleConnected(now),
    fail: (error = failed) => next(supervisor.handleFailed(error, undefined)),
    lose: (now = 10, error = lost, urgent = false, hint?: 'followed') =>
      next(supervisor.handleLost(error, now, urgent, hint)),
  }
}

/** How often there was another dial until it stopped. */
function dials(first: unknown, following: () => unknown): number {
  let count = 0
  for (let step = first; !(step instanceof MqttError); step = following()) count += 1
  return count
}

const errorsOf = (error: unknown): MqttError[] | undefined =>
  ((error as MqttError).cause as AggregateError | undefined)?.errors
const exhausted = { code: 'ERR_RETRIES_EXHAUSTED', cause: failed }
const series = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]

describe('the first round', () => {
  it('goes through the list at once, then waits', () => {
    const { fail, brokers } = begun({}, ['a', 'b', 'c'])
    const dialled = [brokers.current]
    for (const expected of [undefined, undefined, 1000]) {
      expect(fail()).toBe(expected)
      dialled.push(brokers.current)
    }
    expect(dialled).toEqual(['a', 'b', 'c', 'a'])
  })

  it('rejected: one error for each endpoint', () => {
    const { fail } = begun({}, ['a', 'b'], { rejectFirst: true })
    fail()
    const error = fail(no(0x8a))
    expect(error).toMatchObject({ code: 'ERR_CONNECT_FAILED' })
    expect(errorsOf(error)).toEqual([failed, no(0x8a)])
  })

  it('rejected: of one endpoint, and without a policy, the error itself', () => {
    expect(begun({}, ['a'], { rejectFirst: true }).fail()).toBe(failed)
    expect(begun(false).fail()).toBe(failed)
  })

  it('waiting does not help where all refused', () => {
    const { fail } = begun({}, ['a', 'b'])
    expect(fail(no(0x85))).toBeUndefined()
    expect(errorsOf(fail(no(0x8a)))?.map((item) => item.reasonCode)).toEqual([0x85, 0x8a])
  })

  it('one refresh counts for no endpoint of the round', () => {
    const { fail, brokers } = begun({}, ['a', 'b'], { rejectFirst: true, refreshable: true })
    for (const host of ['a', 'b']) {
      fail(no(0x86))
      expect(brokers.current).toBe(host)
    }
    expect(errorsOf(fail())).toHaveLength(2)
  })
})

describe('delays', () => {
  it('six failures in a row: the series', () => {
    const { connected, lose, fail } = begun()
    connected()
    expect([lose(), ...times(6, () => fail())]).toEqual(series)
  })

  it('a connection that dies young leaves the delay where it was: it goes on growing', () => {
    const { connected, lose } = begun()
    const delays = series.map((_, round) => {
      connected(round * 100_000)
      return lose(round * 100_000 + 29_999)
    })
    expect(delays).toEqual(series)
  })

  it('a connection that was stable starts the delays again', () => {
    const { supervisor, connected, lose, fail } = begun()
    connected()
    lose()
    for (let index = 0; index < 4; index++) fail()
    connected(100_000)
    expect(supervisor.attempt).toBe(6)
    expect(lose(130_000)).toBe(1000)
    expect(supervisor.attempt).toBe(1)
  })

  it.each([
    [true, undefined],
    [false, 'followed'],
  ] as const)('urgent (%s), or where a server sends us (%s): at once', (urgent, hint) => {
    const { connected, lose } = begun()
    connected()
    expect(lose(1, lost, urgent, hint)).toBe(0)
  })

  const odd = [Number.NaN, -1, undefined, null, {}, Number.POSITIVE_INFINITY]
  it.each(odd)('a backoff that gives %j never makes it hurry', (given) => {
    const delay = begun({ backoff: () => given as number }).fail()
    expect(delay).toBeGreaterThanOrEqual(1000)
    expect(delay).toBeLessThanOrEqual(2_147_483_647)
  })

  it('a backoff that throws never makes it hurry', () => {
    const backoff = (): never => {
      throw new Error('no idea')
    }
    expect(begun({ backoff }).fail()).toBe(30_000)
  })

  it('a backoff gets the number of the delay and the error', () => {
    const given: unknown[] = []
    const backoff = (attempt: number, error: MqttError | undefined) => given.push(attempt, error)
    const { connected, lose, fail } = begun({ backoff })
    connected()
    lose()
    fail()
    expect(given).toEqual([1, lost, 2, failed])
  })
})

describe('enough', () => {
  it.each([1, 2, 5])('maxAttempts %s: so many, then the last error is the cause', (maxAttempts) => {
    const { fail } = begun({ maxAttempts })
    for (let attempt = 1; attempt < maxAttempts; attempt++)
      expect(fail()).not.toBeInstanceOf(MqttError)
    expect(fail()).toMatchObject(exhausted)
  })

  it('maxAttempts counts since a connection was stable', () => {
    const { connected, lose, fail } = begun({ maxAttempts: 2 })
    for (let round = 0; round < 5; round++) {
      connected(round * 100_000)
      expect([lose(round * 100_000 + 50_000), fail()]).toEqual([1000, 2000])
    }
    expect(fail()).toMatchObject(exhausted)
  })

  it.each([1, 2, 5])('maxAttempts %s: so many dials after a short connection', (maxAttempts) => {
    const { connected, lose, fail } = begun({ maxAttempts })
    connected()
    expect(dials(lose(), fail)).toBe(maxAttempts)
  })

  it('connections that do not last are no way around maxAttempts', () => {
    const { connected, lose } = begun({ maxAttempts: 3 })
    let now = 0
    const flap = (): unknown => {
      connected(now)
      now += 1000
      return lose(now - 990)
    }
    expect(dials(flap(), flap)).toBe(3)
  })

  it('the failures before the first connection are no dials to come back', () => {
    const { connected, lose, fail } = begun({ maxAttempts: 3 })
    fail()
    fail()
    connected()
    expect(dials(lose(), fail)).toBe(3)
  })

  it('what we replace ourselves counts for nothing, however often', () => {
    const { connected, lose, fail } = begun({ maxAttempts: 1 })
    for (let round = 0; round < 10; round++) {
      connected(round * 1000)
      expect(lose(round * 1000 + 10, lost, true)).toBe(0)
    }
    connected(20_000)
    expect(lose(20_010)).toBe(1000)
    expect(fail()).toMatchObject(exhausted)
  })

  it.each(['ERR_INVALID_OPTION', 'ERR_UNSUPPORTED_OPTION', 'ERR_INVALID_BROKER_URL'] as const)(
    '%s: only fresh credentials help',
    (code) => {
      const wrong = new MqttError(code)
      expect(begun().fail(wrong)).toBe(wrong)
      expect(begun({}, ['a'], { refreshable: true }).fail(wrong)).toBe(1000)
    },
  )

  it.each([
    goodbye(0x98),
    new MqttError('ERR_SESSION_TAKEN_OVER', undefined, { reasonCode: 0x8e }),
  ])('taken over, or by administrative action: its own error, whatever the policy', (error) => {
    const { connected, lose } = begun()
    connected()
    expect(lose(1, error)).toBe(error)
  })
})

describe('decide', () => {
  it('is asked once for each failure, with what would be done', () => {
    const asked: (MqttError | DecisionContext)[] = []
    const decide = (...args: (typeof asked)[number][]): undefined => void asked.push(...args)
    const { connected, lose, fail } = begun({ decide }, ['a', 'b'])
    fail()
    fail(no(0x8a))
    connected()
    lose()
    expect(asked).toEqual([
      failed,
      { attempt: 1, endpoint: 'x://a', verdict: 'retry' },
      no(0x8a),
      { attempt: 2, endpoint: 'x://b', verdict: 'next' },
      lost,
      { attempt: 3, endpoint: 'x://a', verdict: 'retry' },
    ])
  })

  it.each(['none', 5, null, {}, Promise.resolve('stop')])('%s is no verdict', (given) => {
    const { fail } = begun({ decide: () => given as 'stop' })
    expect(fail()).toBe(1000)
    expect(fail(no(0x8a))).toMatchObject({ reasonCode: 0x8a })
  })

  it('one that throws leaves the table in force', () => {
    const decide = (): never => {
      throw new Error('undecided')
    }
    expect(begun({ decide }).fail()).toBe(1000)
  })

  it('stop: retries exhausted, with the cause; it may also go on where the table would stop', () => {
    expect(begun({ decide: () => 'stop' }).fail()).toMatchObject(exhausted)
    const { connected, lose } = begun({ decide: () => 'retry' })
    connected()
    expect(lose(1, goodbye(0x98))).toBe(1000)
  })
})

/** Repeatable numbers in [0, 1). */
function seeded(seed: number): () => number {
  const random = new Random(seed)
  return () => random.float()
}

const attempts = Array.from({ length: 12 }, (_, index) => index + 1)

describe('exponential', () => {
  it('without jitter: the series, exactly, from min up to max', () => {
    const series = (backoff: ReturnType<typeof exponential>): number[] =>
      attempts.map((attempt) => backoff(attempt, undefined))
    const seconds = attempts.map((attempt) => Math.min(30, 2 ** (attempt - 1)))
    expect(series(exponential({ jitter: 'none' }))).toEqual(seconds.map((each) => each * 1000))
    const own = series(exponential({ min: 50, max: 500, jitter: 'none' }))
    expect(own.slice(0, 6).join()).toBe('50,100,200,400,500,500')
    expect(exponential({ min: 700, max: 700 })(4, undefined, () => 0.9)).toBe(700)
  })

  it.each(['none', 'full'] as const)('stays at the cap for ever (jitter %s)', (jitter) => {
    for (const attempt of [100, 1024, 5000, 1e9, Number.MAX_SAFE_INTEGER]) {
      const delay = exponential({ jitter })(attempt, undefined)
      expect(delay).toBeGreaterThanOrEqual(1000)
      expect(delay).toBeLessThanOrEqual(30_000)
    }
  })

  it('with jitter: never below min, never above the window of its step', () => {
    const backoff = exponential()
    for (let seed = 1; seed <= 200; seed++) {
      const random = seeded(seed)
      for (const attempt of attempts) {
        const delay = backoff(attempt, undefined, random)
        expect(delay).toBeGreaterThanOrEqual(1000)
        expect(delay).toBeLessThanOrEqual(Math.min(30_000, 1000 * 2 ** attempt))
      }
    }
  })

  it('full jitter uses the whole window, evenly', () => {
    const backoff = exponential()
    const random = seeded(7)
    const delays = Array.from({ length: 5000 }, () => backoff(8, undefined, random))
    const buckets = Array.from(
      { length: 29 },
      (_, second) => delays.filter((delay) => Math.floor(delay / 1000) === second + 1).length,
    )
    expect(Math.min(...buckets)).toBeGreaterThan(100)
    expect(Math.max(...buckets)).toBeLessThan(250)
  })

  it.each([
    ['min', { min: -1 }],
    ['min', { min: Number.NaN }],
    ['min', { min: '1s' }],
    ['max', { max: Number.POSITIVE_INFINITY }],
    ['max', { min: 2000, max: 1000 }],
    ['max', { max: 500 }],
    ['jitter', { jitter: 'some' }],
    ['factor', { factor: 3 }],
  ])('%s: %j is refused with its name', (option, given) => {
    expect(() => exponential(given as object)).toThrow(coded('ERR_INVALID_OPTION', option))
  })
})

describe('constant', () => {
  it('gives the same delay whatever happened', () => {
    for (const attempt of attempts)
      expect(constant(250)(attempt, new MqttError('ERR_TLS'), () => 0.5)).toBe(250)
    expect(constant(0)(1, undefined)).toBe(0)
  })

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '5'])('refuses %s', (delay) => {
    expect(() => constant(delay as number)).toThrow(coded('ERR_INVALID_OPTION'))
  })
})
