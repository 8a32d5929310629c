/** A lost connection, the first connection, attempts that come to nothing, what each refusal and goodbye leads to, and what stays the same on every connection. */
import { describe, expect, it } from 'vitest'
import { exponential } from '../../../src/client/options/backoff.js'
import type { ClientOptions, ReconnectOptions, Verdict } from '../../../src/client/options/index.js'
import { verdictOf } from '../../../src/client/reconnect/retry-policy.js'
import { MqttError, type MqttErrorCode } from '../../../src/errors.js'
import type { Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { accepting, agreeable, failure } from './harness.js'
import {
  type Behaviour,
  causes,
  connects,
  down,
  lost,
  Rig,
  reconnect,
  refusing,
  rigged,
  story,
  up,
  welcoming,
  within,
} from './rig.js'

const silent = (): undefined => undefined
const doubling = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
const waiting = { firstConnect: 'wait' } as const

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

it('of clients that lose the server at once each has delays of its own', async () => {
  const delays = await Promise.all(
    [1, 77, 4711].map(async (seed) => {
      const options = { reconnect: { backoff: exponential() } }
      return (await lost(() => down, 120_000, options, { seed })).delays
    }),
  )
  expect(new Set(delays.map(String)).size).toBe(3)
})

it('the first connection: wait: goes on until it works; connect() joins and fulfils then', async () => {
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

it('the first connection: wait: a signal of the one who began it gives up, between two attempts too', async () => {
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

describe('an attempt that comes to nothing', () => {
  const attempts: [string, Behaviour, string, number][] = [
    ['no CONNACK', silent, 'ERR_CONNECT_TIMEOUT', 10_000],
    ['a dial that never opens', 'hang', 'ERR_CONNECT_TIMEOUT', 10_000],
    ['a refused port, a wrong host, DNS', down, 'ERR_CONNECT_FAILED', 0],
  ]
  it.each(attempts)('%s: typed, the next by policy', async (_name, behaviour, code, after) => {
    const rig = await lost(() => behaviour, 1000 + after)
    const error = { code, fault: 'remote' }
    expect(rig.seen('connecterror')).toMatchObject([{ attempt: 2, endpoint: 'x://a', error }])
    expect(story(rig)).toMatchObject({ open: 0, delays: [1000, 2000] })
    rig.behave = () => accepting()
    await rig.advance(2000)
    expect(rig.client.state).toBe('connected')
  })

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

const assigning = (name: string, present = false) =>
  welcoming({ assignedClientIdentifier: name }, present)

it('an assigned identifier is used for all later reconnects [MQTT-3.2.2-16] [MQTT-3.1.3-2]', async () => {
  const rig = await up({}, { behave: () => assigning('auto-1') })
  rig.behave = (_host, dial) => (dial === 3 ? down : welcoming({}, true))
  for (let round = 0; round < 3; round++) {
    expect(rig.client.clientId).toBe('auto-1')
    await rig.cut()
    await rig.advance(10_000)
  }
  expect(connects(rig, 'clientId')).toEqual(['', 'auto-1', 'auto-1', 'auto-1'])
  expect(rig.client.clientId).toBe('auto-1')
})

it('the same options on every connection, without the will or the login being forgotten', async () => {
  const will = { topic: 'w', payload: 'gone', qos: 1 } as const
  const userProperties: [string, string][] = [['a', 'b']]
  const options = { username: 'u', password: 'p', will, userProperties, keepAlive: 17 }
  const rig = await lost(() => agreeable, 1000, options)
  const [first, second] = rig.peers.map((peer) => peer.last('connect'))
  expect({ ...second, cleanStart: true }).toEqual(first)
})

it.each([
  ['QoS', 0x9b],
  ['retain', 0x9a],
])('%s of the will is not offered: 0x%s', async (_name, reasonCode) => {
  const will = { topic: 'w', qos: 2, retain: true } as const
  const rig = rigged(
    { ...waiting, will },
    { hosts: ['a', 'b'], behave: () => refusing(reasonCode) },
  )
  const error = await within(rig, 0, failure(rig.client.connect()))
  expect(error.cause).toMatchObject({ errors: [{ reasonCode }, { reasonCode }] })
  expect(connects(rig, 'will')).toMatchObject([will, will])
})

describe('a server that knows 3.1.1 only', () => {
  const silent = () => () => undefined
  const auto = { protocolVersion: 'auto' } as const
  const refusals = ['20 02 00 01', '20 03 00 84 00']
  const refused = { code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 }

  it.each(refusals)('by default %s is the end: 0x84, one attempt', async (bytes) => {
    const rig = rigged(waiting, { behave: silent })
    const error = failure(rig.client.connect())
    await rig.settle()
    rig.peer.sendBytes(bytes)
    expect(await within(rig, 60_000, error)).toMatchObject(refused)
    expect(rig.dials).toHaveLength(1)
  })

  it.each(refusals)('auto and %s: at once 3.1.1, with fresh credentials', async (bytes) => {
    let asked = 0
    const credentials = () => ({ username: `u${++asked}` })
    const rig = rigged({ ...auto, credentials }, { behave: silent, version: 4 })
    const connecting = rig.client.connect()
    await rig.settle()
    rig.behave = () => agreeable
    rig.peer.sendBytes(bytes)
    await within(rig, 0, connecting)
    expect(story(rig)).toMatchObject({ hosts: 'aa', delays: [] })
    const second = { protocolVersion: 4, properties: {}, cleanStart: true, username: 'u2' }
    expect(rig.peer.last('connect')).toMatchObject(second)
    expect(rig.peer.last('connect').clientId).toMatch(/^[0-9A-Za-z]{1,23}$/)
    expect(rig.client.negotiated?.protocolVersion).toBe(4)
    await rig.again()
    expect(connects(rig, 'protocolVersion')).toEqual([5, 4, 4])
    // One event says so.
    expect(rig.seen('connecterror')).toMatchObject([{ attempt: 1, error: { reasonCode: 0x84 } }])
  })
})

const decided = (decide: NonNullable<ReconnectOptions['decide']>) => ({
  reconnect: { ...reconnect, decide },
})

it('decide replaces the table: refresh: once more at the same endpoint, with credentials asked for again', async () => {
  const attempts: number[] = []
  const options = {
    ...decided((error) => (error.code === 'ERR_CONNECT_FAILED' ? 'refresh' : undefined)),
    credentials: ({ attempt }: { attempt: number }) => {
      attempts.push(attempt)
      return {}
    },
  }
  const behave = (_host: string, dial: number) => (dial < 4 ? down : agreeable)
  const rig = await lost(behave, 10_000, options, { hosts: ['a', 'b'] })
  expect([rig.hosts.join(''), attempts]).toEqual(['aaab', [1, 2, 3, 4]])
})

it('decide replaces the table: is asked about a lost connection also after the list was replaced some time ago', async () => {
  const asked: string[] = []
  const rig = await up(
    decided((error) => {
      asked.push(error.code)
      return 'stop'
    }),
  )
  rig.client.setBrokers([rig.endpoint('b')])
  await rig.advance(60_000)
  await rig.cut()
  await rig.advance(60_000)
  expect(asked).toEqual(['ERR_CONNECTION_LOST'])
  expect(story(rig)).toMatchObject({ hosts: 'a', state: 'closed' })
})

const refused = 'ERR_CONNECT_REFUSED'
const fresh: ClientOptions = { credentials: () => ({ username: 'u' }) }

/** The hosts that are dialled after a loss, the first delay, and the error that ended it. */
async function consequence(rig: Rig): Promise<object> {
  await rig.advance(10_000)
  const ended = rig.client.state === 'closed' ? await rig.client.closed : undefined
  return { hosts: rig.hosts.slice(1).join(''), delay: rig.delays.at(0), code: ended?.code }
}

/** From the loss on `a` does this, and `b` is never there. */
const afterLoss = async (a: Behaviour, options: ClientOptions, ...hosts: string[]) =>
  consequence(await lost((host) => (host === 'a' ? a : new Error('no')), 0, options, { hosts }))

/** Attempts of a first connection, and the errors of the first and of the last. */
async function first(answer: Answer, options: ClientOptions, version: 4 | 5 = 5): Promise<object> {
  const rig = new Rig({ firstConnect: 'wait', ...options }, { behave: () => answer, version })
  const error = failure(rig.client.connect())
  await rig.advance(10_000)
  const ended = rig.client.state === 'closed' ? await rig.client.closed : undefined
  const { code, reasonCode } = rig.seen('connecterror')[0]?.error ?? {}
  await rig.finish()
  await error
  return { dials: rig.dials.length, code, reasonCode, ended: ended?.reasonCode }
}

// Within 10 s: attempts at 1, 3 and 7 s after a loss, one more with the first connection.
// Which code is of which kind: below, from the table of verdicts.
it.each([
  ['88: retried with back-off, and a list takes turns', 0x88, 'aaa', 'aaa', /^aba$/],
  ['8a: the end; of a list it is left out', 0x8a, 'a', 'a', /^abb+$/],
  ['87: the end; once more with fresh credentials', 0x87, 'a', 'aa', /^aab+$/],
] as const)(
  'CONNACK 0x%s, after a loss and at first',
  async (_what, code, plain, refreshed, list) => {
    for (const [options, hosts] of [
      [{}, plain],
      [fresh, refreshed],
    ] as const) {
      const goesOn = hosts === 'aaa'
      const end = { hosts, delay: 1000, code: goesOn ? undefined : refused }
      expect(await afterLoss(refusing(code), options, 'a')).toEqual(end)
      for (const firstConnect of ['wait', 'reject'] as const) {
        const waits = goesOn && firstConnect === 'wait'
        const dials = waits ? 4 : goesOn ? 1 : hosts.length
        const ended = waits ? undefined : code
        const got = await first(refusing(code), { ...options, firstConnect })
        expect(got).toEqual({ dials, code: refused, reasonCode: code, ended })
      }
    }
    const options = plain === refreshed ? {} : fresh
    const hosts = expect.stringMatching(list)
    expect(await afterLoss(refusing(code), options, 'a', 'b')).toEqual({ hosts, delay: 1000 })
  },
)

it.each([
  [1, 0x84, 1, 1],
  [2, 0x85, 1, 1],
  [3, 0x88, 4, 4],
  [4, 0x86, 1, 2],
  [5, 0x87, 1, 2],
])(
  'CONNACK: of 3.1.1: %s is %s: %s attempts, %s with credentials()',
  async (code, reasonCode, ...dials) => {
    for (const [index, options] of [{}, fresh].entries()) {
      const got = await first(refusing(code), { protocolVersion: 4, ...options }, 4)
      expect(got).toMatchObject({ dials: dials[index], code: refused, reasonCode })
    }
  },
)

it('CONNACK: when all of a list refuse, the error has each of them', async () => {
  const behave = (host: string) => refusing(host === 'a' ? 0x8a : 0x85)
  const rig = await lost(behave, 10_000, {}, { hosts: ['a', 'b'] })
  const ended = await rig.client.closed
  expect(ended?.code).toBe('ERR_CONNECT_FAILED')
  expect(causes(ended).map((error) => error.reasonCode)).toEqual([0x8a, 0x85])
  expect(rig.hosts.join('')).toBe('aab')
})

/** Connects to `a`, which says goodbye, and then meets servers that answer. */
async function afterGoodbye(code: number, options = {}, hosts = ['a'], answer = agreeable) {
  const rig = await up(options, { hosts })
  rig.behave = () => answer
  await rig.goodbye(code)
  const error = { reasonCode: code, fault: 'remote' }
  expect(rig.seen('serverdisconnect')).toMatchObject([{ packet: { reasonCode: code }, error }])
  const ends = rig.order.filter((type) => type.endsWith('disconnect'))
  expect(ends).toEqual(['serverdisconnect', 'disconnect'])
  return consequence(rig)
}

describe('DISCONNECT of the server', () => {
  const both = [['a'], ['a', 'b']]
  const stopped = { hosts: '', delay: undefined }
  const left = { ...stopped, code: 'ERR_SERVER_DISCONNECT' }

  it('0x8b: retried with at least the minimum back-off', async () => {
    expect(await afterGoodbye(0x8b)).toEqual({ hosts: 'a', delay: 1000, code: undefined })
  })

  it.each([
    [0x8e, 'ERR_SESSION_TAKEN_OVER'],
    [0x98, 'ERR_SERVER_DISCONNECT'],
  ])('%i: the end, with one endpoint or more', async (reasonCode, code) => {
    for (const hosts of both)
      expect(await afterGoodbye(reasonCode, {}, hosts)).toEqual({ ...stopped, code })
  })

  it.each([0x9c, 0x87])('%i: not that server again; a list moves on', async (code) => {
    expect(await afterGoodbye(code)).toEqual(left)
    expect(await afterGoodbye(code, {}, ['a', 'b'])).toMatchObject({ hosts: 'b' })
  })

  it('0x87 with credentials(): once more with fresh ones; when those are refused too, the end', async () => {
    expect(await afterGoodbye(0x87, fresh)).toMatchObject({ hosts: 'a' })
    const end = await afterGoodbye(0x87, fresh, ['a'], refusing(0x87))
    expect(end).toMatchObject({ hosts: 'a', code: refused })
  })
})

it.each([
  ['DISCONNECT 0x8b', 'e0 02 8b 00', 'ERR_SERVER_DISCONNECT', 4],
  ['malformed bytes', '00 00', 'ERR_MALFORMED_PACKET', 4],
  // The fourth time it is read past.
  ['an unknown topic alias', '30 06 00 00 03 23 00 05', 'ERR_PROTOCOL_ERROR', 3],
])('the same end over and over: delays grow: %s', async (what, bytes, code, rounds) => {
  const rig = await up()
  for (let round = 0; round < rounds; round++) {
    rig.peer.sendBytes(bytes)
    await rig.settle()
    expect(rig.client.state).toBe('reconnecting')
    await rig.advance(rig.delays.at(-1) ?? 0)
  }
  expect(story(rig).delays).toEqual([1000, 2000, 4000, 8000].slice(0, rounds))
  expect(rig.seen('serverdisconnect')).toHaveLength(what.startsWith('DISC') ? rounds : 0)
  for (const each of story(rig).lost) expect(['ERR_PROTOCOL_ERROR', code]).toContain(each)
})

const of = (code: MqttErrorCode, reasonCode?: number): Verdict =>
  verdictOf(new MqttError(code, undefined, { reasonCode, fault: 'remote' }))

/** Codes without a reason code. */
const untold = (verdict: Verdict, codes: string) =>
  codes.split(' ').map((code) => [`ERR_${code}` as MqttErrorCode, verdict, [undefined]] as const)

/** Every CONNACK code of table 3-1 with what follows, and every DISCONNECT code that a server may send (section 3.14.2.1). */
const table: readonly (readonly [MqttErrorCode, Verdict, readonly (number | undefined)[]])[] = [
  ['ERR_CONNECT_REFUSED', 'retry', [0x80, 0x88, 0x89, 0x97, 0x9f]],
  [
    'ERR_CONNECT_REFUSED',
    'next',
    [0x81, 0x82, 0x83, 0x84, 0x85, 0x8a, 0x8c, 0x90, 0x95, 0x99, 0x9a, 0x9b, 0x9c, 0x9d],
  ],
  ['ERR_CONNECT_REFUSED', 'refresh', [0x86, 0x87]],
  [
    'ERR_SERVER_DISCONNECT',
    'retry',
    [0x00, 0x80, 0x81, 0x82, 0x83, 0x89, 0x8b, 0x8d, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96],
  ],
  ['ERR_SERVER_DISCONNECT', 'retry', [0x97, 0x99, 0x9a, 0x9b, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2]],
  ['ERR_SERVER_DISCONNECT', 'next', [0x8c, 0x9c, 0x9d]],
  ['ERR_SERVER_DISCONNECT', 'refresh', [0x87]],
  ['ERR_SERVER_DISCONNECT', 'stop', [0x8e, 0x98]],
  ['ERR_SESSION_TAKEN_OVER', 'stop', [0x8e]],
  // A reason code that we gave ourselves is no refusal of the server.
  ['ERR_PROTOCOL_ERROR', 'retry', [0x82]],
  ['ERR_PACKET_TOO_LARGE', 'retry', [0x95]],
  ['ERR_CONNECTION_LOST', 'retry', [0x97]],
  ...untold('retry', 'CONNECT_FAILED CONNECT_TIMEOUT CONNECTION_LOST KEEPALIVE_TIMEOUT TLS'),
  ...untold('retry', 'MALFORMED_PACKET PROTOCOL_ERROR UNEXPECTED_PACKET PACKET_TOO_LARGE'),
  ...untold('stop', 'CLOSED ABORTED'),
]

it.each(table)('%s, %s: %j', (code, verdict, reasons) => {
  for (const reason of reasons) expect(of(code, reason), `${reason}`).toBe(verdict)
})
