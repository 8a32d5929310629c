import { describe, expect, it } from 'vitest'
import type { DecisionContext } from '../../../src/client/api/index.js'
import { BrokerList } from '../../../src/client/dialling/brokers.js'
import { type Step, Supervisor, type SupervisorConfig } from '../../../src/client/dialling/supervisor.js'
import type { ReconnectPolicy } from '../../../src/client/parsing/options.js'
import { MqttError } from '../../../src/errors.js'

const lost = new MqttError('ERR_CONNECTION_LOST', undefined, { fault: 'remote', outcome: 'unknown' })
const failed = new MqttError('ERR_CONNECT_FAILED', undefined, { fault: 'remote' })
const no = (reasonCode: number): MqttError => new MqttError('ERR_CONNECT_REFUSED', undefined, { reasonCode, outcome: 'refused' })
const goodbye = (reasonCode: number): MqttError => new MqttError('ERR_SERVER_DISCONNECT', undefined, { reasonCode })

const doubling: ReconnectPolicy = {
  backoff: (attempt) => Math.min(30_000, 1000 * 2 ** (attempt - 1)),
  stableAfter: 30_000,
  maxAttempts: Number.POSITIVE_INFINITY,
  decide: undefined,
}

interface Made {
  readonly supervisor: Supervisor<string>
  readonly brokers: BrokerList<string>
}

function make(config: Partial<Omit<SupervisorConfig<string>, 'policy'>> & { policy?: Partial<ReconnectPolicy> | false } = {}, hosts = ['a']): Made {
  const brokers = config.brokers ?? new BrokerList(hosts)
  const policy = config.policy === false ? false : { ...doubling, ...config.policy }
  const defaults = { brokers, rejectFirst: false, refreshable: false, random: () => 0, nameOf: (host: string) => `x://${host}` }
  return { brokers, supervisor: new Supervisor({ ...defaults, ...config, policy }) }
}

const delayOf = (step: Step): number | undefined | string => (step.type === 'dial' ? step.delay : 'stop')
const errorOf = (step: Step): MqttError | undefined => (step.type === 'stop' ? step.error : undefined)

const errorsOf = (error: MqttError | undefined): MqttError[] | undefined => (error?.cause as AggregateError | undefined)?.errors

describe('the first round', () => {
  it('goes through the list at once, then waits', () => {
    const { supervisor, brokers } = make({}, ['a', 'b', 'c'])
    expect(supervisor.begin()).toEqual({ type: 'dial', delay: undefined })
    const dialled = [brokers.current]
    for (const expected of [undefined, undefined, 1000]) {
      expect(delayOf(supervisor.handleFailed(failed, undefined))).toBe(expected)
      dialled.push(brokers.current)
    }
    expect(dialled).toEqual(['a', 'b', 'c', 'a'])
  })

  it('rejected: one error for each endpoint', () => {
    const { supervisor } = make({ rejectFirst: true }, ['a', 'b'])
    supervisor.begin()
    supervisor.handleFailed(failed, undefined)
    const error = errorOf(supervisor.handleFailed(no(0x8a), undefined))
    expect(error?.code).toBe('ERR_CONNECT_FAILED')
    expect(errorsOf(error)).toEqual([failed, no(0x8a)])
  })

  it('rejected: of one endpoint the error itself', () => {
    const { supervisor } = make({ rejectFirst: true })
    supervisor.begin()
    expect(errorOf(supervisor.handleFailed(failed, undefined))).toBe(failed)
  })

  it('without a policy too', () => {
    const { supervisor } = make({ policy: false })
    supervisor.begin()
    expect(errorOf(supervisor.handleFailed(failed, undefined))).toBe(failed)
  })

  it('waiting does not help where all refused', () => {
    const { supervisor } = make({}, ['a', 'b'])
    supervisor.begin()
    expect(delayOf(supervisor.handleFailed(no(0x85), undefined))).toBeUndefined()
    const error = errorOf(supervisor.handleFailed(no(0x8a), undefined))
    expect(errorsOf(error)?.map((item) => item.reasonCode)).toEqual([0x85, 0x8a])
  })

  it('one refresh counts for no endpoint of the round', () => {
    const { supervisor, brokers } = make({ rejectFirst: true, refreshable: true }, ['a', 'b'])
    supervisor.begin()
    supervisor.handleFailed(no(0x86), undefined)
    expect(brokers.current).toBe('a')
    supervisor.handleFailed(no(0x86), undefined)
    expect(brokers.current).toBe('b')
    const error = errorOf(supervisor.handleFailed(failed, undefined))
    expect(errorsOf(error)).toHaveLength(2)
  })
})

describe('delays', () => {
  it('six failures in a row: the series', () => {
    const { supervisor } = make()
    supervisor.begin()
    supervisor.handleConnected(0)
    const delays = [delayOf(supervisor.handleLost(lost, 10, false, undefined))]
    for (let index = 0; index < 6; index++) delays.push(delayOf(supervisor.handleFailed(failed, undefined)))
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  })

  it('a connection that dies young leaves the delay where it was: it goes on growing', () => {
    const { supervisor } = make()
    supervisor.begin()
    const delays: unknown[] = []
    for (let now = 0; now < 7; now++) {
      supervisor.handleConnected(now * 100_000)
      delays.push(delayOf(supervisor.handleLost(lost, now * 100_000 + 29_999, false, undefined)))
    }
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  })

  it('a connection that was stable starts the delays anew', () => {
    const { supervisor } = make()
    supervisor.begin()
    supervisor.handleConnected(0)
    supervisor.handleLost(lost, 1, false, undefined)
    for (let index = 0; index < 4; index++) supervisor.handleFailed(failed, undefined)
    supervisor.handleConnected(100_000)
    expect(supervisor.attempt).toBe(6)
    expect(delayOf(supervisor.handleLost(lost, 130_000, false, undefined))).toBe(1000)
    expect(supervisor.attempt).toBe(1)
  })

  it('urgent, or where a server sends us: at once', () => {
    for (const [urgent, hint] of [
      [true, undefined],
      [false, 'followed'],
    ] as const) {
      const { supervisor } = make()
      supervisor.begin()
      supervisor.handleConnected(0)
      expect(delayOf(supervisor.handleLost(lost, 1, urgent, hint))).toBe(0)
    }
  })

  it.each([
    ['NaN', Number.NaN],
    ['negative', -1],
    ['undefined', undefined as unknown as number],
    ['null', null as unknown as number],
    ['an object', {} as unknown as number],
    ['Infinity', Number.POSITIVE_INFINITY],
  ])('a backoff that gives %s never makes it hurry', (_name, given) => {
    const { supervisor } = make({ policy: { backoff: () => given } })
    supervisor.begin()
    const delay = delayOf(supervisor.handleFailed(failed, undefined)) as number
    expect(delay).toBeGreaterThanOrEqual(1000)
    expect(delay).toBeLessThanOrEqual(2_147_483_647)
  })

  it('a backoff that throws never makes it hurry', () => {
    const backoff = (): never => {
      throw new Error('no idea')
    }
    const { supervisor } = make({ policy: { backoff } })
    supervisor.begin()
    expect(delayOf(supervisor.handleFailed(failed, undefined))).toBe(30_000)
  })

  it('a backoff is told the number of the delay and the error', () => {
    const told: unknown[] = []
    const backoff = (attempt: number, error: MqttError | undefined): number => {
      told.push([attempt, error])
      return 1
    }
    const { supervisor } = make({ policy: { backoff } })
    supervisor.begin()
    supervisor.handleConnected(0)
    supervisor.handleLost(lost, 1, false, undefined)
    supervisor.handleFailed(failed, undefined)
    expect(told).toEqual([
      [1, lost],
      [2, failed],
    ])
  })
})

describe('enough', () => {
  it.each([1, 2, 5])('maxAttempts %s: so many, then ERR_RETRIES_EXHAUSTED with the last error as cause', (maxAttempts) => {
    const { supervisor } = make({ policy: { maxAttempts } })
    supervisor.begin()
    let attempts = 1
    let step = supervisor.handleFailed(failed, undefined)
    for (; step.type === 'dial'; attempts++) step = supervisor.handleFailed(failed, undefined)
    expect(attempts).toBe(maxAttempts)
    expect(errorOf(step)).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED', cause: failed })
  })

  it('maxAttempts counts since a connection was stable', () => {
    const { supervisor } = make({ policy: { maxAttempts: 2 } })
    supervisor.begin()
    for (let round = 0; round < 5; round++) {
      supervisor.handleConnected(round * 100_000)
      expect(delayOf(supervisor.handleLost(lost, round * 100_000 + 50_000, false, undefined))).toBe(1000)
      expect(delayOf(supervisor.handleFailed(failed, undefined))).toBe(2000)
    }
    expect(errorOf(supervisor.handleFailed(failed, undefined))?.code).toBe('ERR_RETRIES_EXHAUSTED')
  })

  it.each([1, 2, 5])('after a connection that did not last, maxAttempts %s is so many dials to come back', (maxAttempts) => {
    const { supervisor } = make({ policy: { maxAttempts } })
    supervisor.begin()
    supervisor.handleConnected(0)
    let dials = 0
    for (let step = supervisor.handleLost(lost, 10, false, undefined); step.type === 'dial'; dials++)
      step = supervisor.handleFailed(failed, undefined)
    expect(dials).toBe(maxAttempts)
  })

  it('connections that do not last are no way around maxAttempts', () => {
    const { supervisor } = make({ policy: { maxAttempts: 3 } })
    supervisor.begin()
    let connections = 0
    for (let step: Step = { type: 'dial', delay: 0 }; step.type === 'dial'; connections++) {
      supervisor.handleConnected(connections * 1000)
      step = supervisor.handleLost(lost, connections * 1000 + 10, false, undefined)
    }
    expect(connections).toBe(1 + 3)
  })

  it('the failures before the first connection are no dials to come back', () => {
    const { supervisor } = make({ policy: { maxAttempts: 3 } })
    supervisor.begin()
    for (let index = 0; index < 2; index++) supervisor.handleFailed(failed, undefined)
    supervisor.handleConnected(0)
    let dials = 0
    for (let step = supervisor.handleLost(lost, 10, false, undefined); step.type === 'dial'; dials++)
      step = supervisor.handleFailed(failed, undefined)
    expect(dials).toBe(3)
  })

  it('what we replace ourselves counts for nothing, however often', () => {
    const { supervisor } = make({ policy: { maxAttempts: 1 } })
    supervisor.begin()
    for (let round = 0; round < 10; round++) {
      supervisor.handleConnected(round * 1000)
      expect(delayOf(supervisor.handleLost(lost, round * 1000 + 10, true, undefined))).toBe(0)
    }
    supervisor.handleConnected(20_000)
    expect(delayOf(supervisor.handleLost(lost, 20_010, false, undefined))).toBe(1000)
    expect(errorOf(supervisor.handleFailed(failed, undefined))?.code).toBe('ERR_RETRIES_EXHAUSTED')
  })

  it.each(['ERR_INVALID_OPTION', 'ERR_UNSUPPORTED_OPTION', 'ERR_INVALID_BROKER_URL'] as const)(
    '%s of an attempt is not tried again, but where credentials() may give something else',
    (code) => {
      const wrong = new MqttError(code)
      const { supervisor } = make()
      supervisor.begin()
      expect(errorOf(supervisor.handleFailed(wrong, undefined))).toBe(wrong)
      const refreshable = make({ refreshable: true }).supervisor
      refreshable.begin()
      expect(delayOf(refreshable.handleFailed(wrong, undefined))).toBe(1000)
    },
  )

  it('taken over, or by administrative action: its own error, whatever the policy', () => {
    for (const error of [goodbye(0x98), new MqttError('ERR_SESSION_TAKEN_OVER', undefined, { reasonCode: 0x8e })]) {
      const { supervisor } = make()
      supervisor.begin()
      supervisor.handleConnected(0)
      expect(errorOf(supervisor.handleLost(error, 1, false, undefined))).toBe(error)
    }
  })
})

describe('decide', () => {
  it('is asked once for each failure, with what would be done', () => {
    const asked: [MqttError, DecisionContext][] = []
    const decide = (error: MqttError, context: DecisionContext): undefined => {
      asked.push([error, context])
    }
    const { supervisor } = make({ policy: { decide } }, ['a', 'b'])
    supervisor.begin()
    supervisor.handleFailed(failed, undefined)
    supervisor.handleFailed(no(0x8a), undefined)
    supervisor.handleConnected(0)
    supervisor.handleLost(lost, 1, false, undefined)
    expect(asked).toEqual([
      [failed, { attempt: 1, endpoint: 'x://a', verdict: 'retry' }],
      [no(0x8a), { attempt: 2, endpoint: 'x://b', verdict: 'next' }],
      [lost, { attempt: 3, endpoint: 'x://a', verdict: 'retry' }],
    ])
  })

  it.each(['no such verdict', 5, null, {}, Promise.resolve('stop')])('what is no verdict (%s) leaves the table in force', (given) => {
    const { supervisor } = make({ policy: { decide: () => given as 'stop' } })
    supervisor.begin()
    expect(delayOf(supervisor.handleFailed(failed, undefined))).toBe(1000)
    expect(errorOf(supervisor.handleFailed(no(0x8a), undefined))?.reasonCode).toBe(0x8a)
  })

  it('one that throws leaves the table in force', () => {
    const decide = (): never => {
      throw new Error('undecided')
    }
    const { supervisor } = make({ policy: { decide } })
    supervisor.begin()
    expect(delayOf(supervisor.handleFailed(failed, undefined))).toBe(1000)
  })

  it('stop: retries exhausted, with the cause; it may also go on where the table would stop', () => {
    const stopping = make({ policy: { decide: () => 'stop' } }).supervisor
    stopping.begin()
    expect(errorOf(stopping.handleFailed(failed, undefined))).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED', cause: failed })
    const going = make({ policy: { decide: () => 'retry' } }).supervisor
    going.begin()
    going.handleConnected(0)
    expect(delayOf(going.handleLost(goodbye(0x98), 1, false, undefined))).toBe(1000)
  })
})
