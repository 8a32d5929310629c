import { describe, expect, it } from 'vitest'
import type { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { accepting, failure } from './harness.js'
import { type Behaviour, down, reconnect } from './rig.js'
import { lost, rigged, story, up, within } from './rigged.js'

const silent = (): undefined => undefined
const doubling = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
const waiting = { firstConnect: 'wait' } as const

describe('a lost connection', () => {
  it.each(['cut', 'end'] as const)('%s: one disconnect with cause, then reconnect', async (how) => {
    const rig = await up()
    rig.peer[how]()
    await rig.advance(999)
    const cause = { code: 'ERR_CONNECTION_LOST', fault: 'remote' }
    expect(rig.seen('disconnect')).toMatchObject([{ cause }])
    expect(story(rig)).toMatchObject({ state: 'reconnecting', times: [0] })
    await rig.advance(1)
    expect(story(rig)).toMatchObject({ state: 'connected', times: [0, 1000], lost: [cause.code] })
    expect(rig.seen('connect')).toHaveLength(2)
  })

  it('a connection shorter than stableAfter: delays go on growing; a longer one: back to the minimum', async () => {
    const rig = await up({ reconnect: { ...reconnect, stableAfter: 5000 } })
    for (const delay of [1000, 2000, 4000]) {
      await rig.advance(4999)
      await rig.cut()
      expect(rig.delays.at(-1)).toBe(delay)
      await rig.advance(delay)
      expect(rig.client.state).toBe('connected')
    }
    await rig.advance(5000)
    await rig.cut()
    expect(rig.seen('reconnecting').at(-1)).toMatchObject({ delay: 1000, attempt: 1 })
  })

  it('reconnect off: one attempt, everything pending settles', async () => {
    const rig = await up({ reconnect: false }, { behave: () => accepting() })
    const { client } = rig
    const calls = ([1, 2] as const).map((qos) => failure(client.publish('a', 'b', { qos })))
    calls.push(failure(client.subscribe('a')), failure(client.unsubscribe('b')))
    await rig.settle()
    await rig.cut()
    for (const error of [...calls, client.closed])
      expect((await error)?.code).toBe('ERR_CONNECTION_LOST')
    await rig.advance(1_000_000)
    expect(story(rig)).toMatchObject({ state: 'closed', hosts: 'a' })
    expect(rig.clock.pending).toBe(0)
  })
})

describe('the first connection', () => {
  it('wait: goes on until it works; connect() joins and fulfils then', async () => {
    const rig = rigged(waiting, { behave: () => down })
    const connecting = [rig.client.connect()]
    await rig.advance(7500)
    connecting.push(rig.client.connect())
    expect(story(rig)).toMatchObject({ state: 'connecting', times: [0, 1000, 3000, 7000] })
    rig.behave = () => accepting()
    await rig.advance(7500)
    await Promise.all(connecting)
    expect(rig.seen('state').map(({ state }) => state)).toEqual(['connecting', 'connected'])
  })

  it('wait: a signal of the one who began it gives up, between two attempts too', async () => {
    const rig = rigged(waiting, { behave: () => down })
    const controller = new AbortController()
    const connecting = failure(rig.client.connect({ signal: controller.signal }))
    const joined = failure(rig.client.connect())
    await rig.advance(1500)
    controller.abort()
    expect((await connecting).name).toBe('AbortError')
    await joined
    await rig.settle()
    expect([rig.client.state, rig.clock.pending]).toEqual(['closed', 0])
  })

  it('reconnect() on an idle client connects', async () => {
    const rig = rigged()
    await within(rig, 0, rig.client.reconnect())
    expect([rig.client.state, rig.dials.length]).toEqual(['connected', 1])
  })
})

describe('an attempt that comes to nothing', () => {
  const attempts: [string, Behaviour, string, number][] = [
    ['no CONNACK', silent, 'ERR_CONNECT_TIMEOUT', 10_000],
    ['a dial that never opens', 'hang', 'ERR_CONNECT_TIMEOUT', 10_000],
    ['a refused port, a wrong host, DNS', down, 'ERR_CONNECT_FAILED', 0],
  ]
  it.each(attempts)(
    '%s: an error at the deadline, nothing left behind, and the next attempt by policy',
    async (_name, behaviour, code, after) => {
      const rig = await lost(() => behaviour, 1000 + after)
      const error = { code, fault: 'remote' }
      expect(rig.seen('connecterror')).toMatchObject([{ attempt: 2, endpoint: 'x://a', error }])
      expect(story(rig)).toMatchObject({ open: 0, delays: [1000, 2000] })
      rig.behave = () => accepting()
      await rig.advance(2000)
      expect(rig.client.state).toBe('connected')
    },
  )

  const http = new TextEncoder().encode('HTTP/1.1 302 Found\r\nLocation: http://portal/\r\n\r\n')
  const wrong = /^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|UNEXPECTED_PACKET|PACKET_TOO_LARGE)$/
  it.each<[string, (peer: ScriptedPeer) => unknown, RegExp]>([
    ['the end of the stream', (peer) => peer.end(), /^ERR_CONNECT_FAILED$/],
    ['a reset', (peer) => peer.cut(), /^ERR_CONNECT_FAILED$/],
    ['HTTP, of a proxy', (peer) => peer.sendBytes(http), wrong],
  ])('%s instead of CONNACK: a typed error, and back-off', async (_what, act, code) => {
    const rig = await lost(() => silent, 1000)
    rig.clock.setTimer(() => act(rig.peer), 5)
    await rig.advance(100)
    expect(story(rig)).toMatchObject({ state: 'reconnecting', delays: [1000, 2000] })
    expect(story(rig).failed).toEqual([expect.stringMatching(code)])
  })

  it('a certificate that is not accepted is tried again, slowly: one error for each attempt', async () => {
    const certificate = new Error('CERT_HAS_EXPIRED')
    const platform = { isTlsError: (error: unknown) => error === certificate }
    const rig = await lost(() => certificate, 70_000, {}, { platform })
    const { failed, lost: ends, delays, hosts } = story(rig)
    expect(failed).toEqual(Array.from(hosts.slice(1), () => 'ERR_TLS'))
    expect([ends.length, delays.slice(0, 5)]).toEqual([1, doubling.slice(0, 5)])
  })
})

describe('the options', () => {
  it.each([
    ['reconnect.backoff', { reconnect: { backoff: 5 } }],
    ['reconnect.stableAfter', { reconnect: { stableAfter: -1 } }],
    ['reconnect.maxAttempts', { reconnect: { maxAttempts: 0 } }],
    ['reconnect.maxAttempts', { reconnect: { maxAttempts: 1.5 } }],
    ['reconnect.decide', { reconnect: { decide: 'retry' } }],
    ['reconnect.period', { reconnect: { period: 1000 } }],
    ['reconnect', { reconnect: 5000 }],
    ['firstConnect', { firstConnect: 'later' }],
    ['refreshBefore', { refreshBefore: -1 }],
    ['connectTimeout', { connectTimeout: Number.POSITIVE_INFINITY }],
  ])('%s: %j is refused with its name', (option, options) => {
    const error = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option })
    expect(() => rigged(options as object)).toThrow(error)
  })

  it('are read once: what is written to them later means nothing', async () => {
    const options = { reconnect: { backoff: (): number => 1000, maxAttempts: 5 } }
    const rig = await up(options)
    Object.assign(options.reconnect, { maxAttempts: 1, backoff: () => 7 })
    await rig.cut()
    expect(rig.delays).toEqual([1000])
  })
})

it('retries exhausted: reported on closed, on what was pending, and by the disconnect that already came', async () => {
  const rig = await up({ reconnect: { ...reconnect, maxAttempts: 3 } })
  rig.behave = () => down
  const subscription = await within(rig, 0, rig.client.subscribe('a'))
  const next = failure(subscription.next())
  await rig.cut()
  const publishing = failure(rig.client.publish('a', 'x', { qos: 1 }))
  const connecting = failure(rig.client.connect())
  await rig.advance(100_000)
  expect(rig.dials).toHaveLength(1 + 3)
  for (const error of await Promise.all([publishing, connecting, next, rig.client.closed]))
    expect(error).toMatchObject({
      code: 'ERR_RETRIES_EXHAUSTED',
      cause: { code: 'ERR_CONNECT_FAILED' },
    })
  expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_CONNECTION_LOST' } }])
  expect(rig.clock.pending).toBe(0)
})
