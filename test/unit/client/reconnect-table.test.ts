import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { MqttError } from '../../../src/errors.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, failure } from './harness.js'
import { type Behaviour, causes, Rig, refusing } from './rig.js'

/** What follows a refusal: the hosts that are dialled after it within two minutes, and the delay before the first of them. */
interface Consequence {
  readonly hosts: string
  readonly delay: number | undefined
  readonly code: MqttError['code'] | undefined
}

const passing = [0x80, 0x88, 0x89, 0x97, 0x9f]
const credentialCodes = [0x86, 0x87]
const fatal = [0x81, 0x82, 0x83, 0x84, 0x85, 0x8a, 0x8c, 0x90, 0x95, 0x99, 0x9a, 0x9b, 0x9c, 0x9d]
const disconnects = [
  0x00, 0x80, 0x81, 0x82, 0x83, 0x89, 0x8b, 0x8d, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x99, 0x9a, 0x9b, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2,
]

/** Loses an established connection; from then on host `a` does as it is told, `b` never answers the phone. */
async function afterLoss(a: Behaviour, options: ClientOptions = {}, hosts = ['a']): Promise<Consequence> {
  const rig = await new Rig(options, { hosts }).up()
  rig.behave = (host) => (host === 'a' ? a : new Error('unreachable'))
  await rig.cut()
  await rig.advance(10_000)
  return consequence(rig)
}

async function consequence(rig: Rig): Promise<Consequence> {
  const ended = rig.client.state === 'closed' ? await rig.client.closed : undefined
  const found = { hosts: rig.hosts.slice(1).join(''), delay: rig.delays.at(0), code: ended?.code }
  await rig.finish()
  expect(rig.clock.pending).toBe(0)
  return found
}

/** For titles. */
const hex = (codes: readonly number[]): [string, number][] => codes.map((code) => [code.toString(16), code])
const fresh: ClientOptions = { credentials: () => ({ username: 'u' }) }
// Within 10 s: attempts at 1, 3 and 7 s.
const retried = { hosts: 'aaa', delay: 1000, code: undefined }

describe('CONNACK after a lost connection, one endpoint', () => {
  for (const [name, options] of [
    ['without credentials()', {}],
    ['with credentials()', fresh],
  ] as const) {
    it.each(hex(passing))(`0x%s ${name}: retried with back-off`, async (_hex, code) => {
      expect(await afterLoss(refusing(code), options)).toEqual(retried)
    })

    it.each(hex(fatal))(`0x%s ${name}: the end, no retry`, async (_hex, code) => {
      expect(await afterLoss(refusing(code), options)).toEqual({ hosts: 'a', delay: 1000, code: 'ERR_CONNECT_REFUSED' })
    })
  }

  it.each(hex(credentialCodes))('0x%s without credentials(): the end', async (_hex, code) => {
    expect(await afterLoss(refusing(code))).toEqual({ hosts: 'a', delay: 1000, code: 'ERR_CONNECT_REFUSED' })
  })

  it.each(hex(credentialCodes))('0x%s with credentials(): once more with fresh ones, then the end', async (_hex, code) => {
    expect(await afterLoss(refusing(code), fresh)).toEqual({ hosts: 'aa', delay: 1000, code: 'ERR_CONNECT_REFUSED' })
  })
})

describe('CONNACK at the first connect, one endpoint', () => {
  const first = async (
    code: number,
    options: ClientOptions,
  ): Promise<{ dials: number; code: string | undefined; reasonCode: number | undefined }> => {
    const rig = new Rig({ firstConnect: 'wait', ...options }, { behave: () => refusing(code) })
    const error = failure(rig.client.connect())
    await rig.advance(10_000)
    const dials = rig.dials.length
    const ended = rig.client.state === 'closed' ? await rig.client.closed : undefined
    await rig.finish()
    await error
    return { dials, code: ended?.code, reasonCode: ended?.reasonCode }
  }

  it.each(hex(passing))('0x%s: wait goes on, reject ends', async (_hex, code) => {
    expect(await first(code, {})).toEqual({ dials: 4, code: undefined, reasonCode: undefined })
    expect(await first(code, { firstConnect: 'reject' })).toEqual({ dials: 1, code: 'ERR_CONNECT_REFUSED', reasonCode: code })
  })

  it.each(hex(fatal))('0x%s: one attempt', async (_hex, code) => {
    for (const firstConnect of ['wait', 'reject'] as const)
      expect(await first(code, { firstConnect })).toEqual({ dials: 1, code: 'ERR_CONNECT_REFUSED', reasonCode: code })
  })

  it.each(hex(credentialCodes))('0x%s: one attempt, two with credentials()', async (_hex, code) => {
    for (const firstConnect of ['wait', 'reject'] as const) {
      expect(await first(code, { firstConnect })).toEqual({ dials: 1, code: 'ERR_CONNECT_REFUSED', reasonCode: code })
      expect(await first(code, { firstConnect, ...fresh })).toEqual({ dials: 2, code: 'ERR_CONNECT_REFUSED', reasonCode: code })
    }
  })
})

describe('CONNACK of 3.1.1', () => {
  const dials = async (
    returnCode: number,
    options: ClientOptions,
  ): Promise<{ dials: number; code: string | undefined; reasonCode: number | undefined }> => {
    const rig = new Rig({ protocolVersion: 4, firstConnect: 'wait', ...options }, { version: 4 })
    rig.behave = () => refusing(returnCode)
    const error = failure(rig.client.connect())
    await rig.advance(10_000)
    const found = {
      dials: rig.dials.length,
      code: rig.seen('connecterror')[0]?.error.code,
      reasonCode: rig.seen('connecterror')[0]?.error.reasonCode,
    }
    await rig.finish()
    await error
    return found
  }

  it.each([
    [1, 0x84, 1, 1],
    [2, 0x85, 1, 1],
    [3, 0x88, 4, 4],
    [4, 0x86, 1, 2],
    [5, 0x87, 1, 2],
  ])('return code %s reads as %s: %s attempts, %s with credentials()', async (returnCode, reasonCode, plain, refreshed) => {
    expect(await dials(returnCode, {})).toEqual({ dials: plain, code: 'ERR_CONNECT_REFUSED', reasonCode })
    expect(await dials(returnCode, fresh)).toEqual({ dials: refreshed, code: 'ERR_CONNECT_REFUSED', reasonCode })
  })
})

describe('CONNACK with a list', () => {
  it.each(hex(fatal))('0x%s: never again there; the other goes on being tried', async (_hex, code) => {
    const { hosts, code: ended } = await afterLoss(refusing(code), {}, ['a', 'b'])
    expect(hosts).toMatch(/^ab+$/)
    expect(hosts.length).toBeGreaterThan(2)
    expect(ended).toBeUndefined()
  })

  it.each(hex(passing))('0x%s: they take turns', async (_hex, code) => {
    expect(await afterLoss(refusing(code), {}, ['a', 'b'])).toEqual({ hosts: 'aba', delay: 1000, code: undefined })
  })

  it.each(hex(credentialCodes))('0x%s with credentials(): twice there, then the other', async (_hex, code) => {
    const { hosts } = await afterLoss(refusing(code), fresh, ['a', 'b'])
    expect(hosts).toMatch(/^aab+$/)
  })

  it('when all refuse, the error has each of them', async () => {
    const rig = await new Rig({}, { hosts: ['a', 'b'] }).up()
    rig.behave = (host) => refusing(host === 'a' ? 0x8a : 0x85)
    await rig.cut()
    await rig.advance(10_000)
    const ended = await rig.client.closed
    expect(ended?.code).toBe('ERR_CONNECT_FAILED')
    expect(causes(ended).map((error) => error.reasonCode)).toEqual([0x8a, 0x85])
    expect(rig.hosts.join('')).toBe('aab')
  })
})

/** Connects to `a`, is told goodbye, and then meets servers that answer. */
async function afterGoodbye(code: number, options: ClientOptions = {}, hosts = ['a'], answer: Answer = agreeable): Promise<Consequence> {
  const rig = await new Rig(options, { hosts }).up()
  rig.behave = () => answer
  await rig.goodbye(code)
  expect(rig.seen('serverdisconnect')).toMatchObject([{ packet: { reasonCode: code }, error: { reasonCode: code, fault: 'remote' } }])
  expect(rig.seen('disconnect')).toHaveLength(1)
  const order = rig.order.filter((type) => type === 'serverdisconnect' || type === 'disconnect')
  expect(order).toEqual(['serverdisconnect', 'disconnect'])
  await rig.advance(10_000)
  return consequence(rig)
}

describe('DISCONNECT of the server', () => {
  it.each(hex(disconnects))('0x%s: retried with at least the minimum back-off', async (_hex, code) => {
    expect(await afterGoodbye(code)).toEqual({ hosts: 'a', delay: 1000, code: undefined })
  })

  it.each([
    ['8e', 0x8e, 'ERR_SESSION_TAKEN_OVER'],
    ['98', 0x98, 'ERR_SERVER_DISCONNECT'],
  ] as const)('0x%s: the end, with one endpoint or more', async (_hex, reasonCode, code) => {
    for (const hosts of [['a'], ['a', 'b']]) expect(await afterGoodbye(reasonCode, {}, hosts)).toEqual({ hosts: '', delay: undefined, code })
  })

  it.each(hex([0x8c, 0x9c, 0x9d]))('0x%s: not the same server again; a list moves on', async (_hex, code) => {
    expect(await afterGoodbye(code)).toEqual({ hosts: '', delay: undefined, code: 'ERR_SERVER_DISCONNECT' })
    const { hosts } = await afterGoodbye(code, {}, ['a', 'b'])
    expect(hosts).toBe('b')
  })

  it('0x87 without credentials(): the end; with a list the next', async () => {
    expect(await afterGoodbye(0x87)).toEqual({ hosts: '', delay: undefined, code: 'ERR_SERVER_DISCONNECT' })
    expect((await afterGoodbye(0x87, {}, ['a', 'b'])).hosts).toBe('b')
  })

  it('0x87 with credentials(): once more with fresh ones; when those are refused too, the end', async () => {
    expect((await afterGoodbye(0x87, fresh)).hosts).toBe('a')
    expect(await afterGoodbye(0x87, fresh, ['a'], refusing(0x87))).toMatchObject({ hosts: 'a', code: 'ERR_CONNECT_REFUSED' })
  })

  it.each(hex([0x8b, 0xa0]))('0x%s over and over: delays grow', async (_hex, code) => {
    const rig = await new Rig().up()
    for (let round = 0; round < 5; round++) {
      await rig.goodbye(code)
      await rig.advance(rig.delays.at(-1) ?? 0)
    }
    expect(rig.delays).toEqual([1000, 2000, 4000, 8000, 16_000])
    await rig.finish()
  })
})

describe('a connection that we had to end', () => {
  it.each([
    ['malformed bytes', '00 00', 'ERR_MALFORMED_PACKET', 4],
    ['a second CONNACK', '20 03 00 00 00', 'ERR_PROTOCOL_ERROR', 4],
    ['a packet for servers', 'c0 00', 'ERR_UNEXPECTED_PACKET', 4],
    // The fourth time it is read past.
    ['an unknown topic alias', '30 06 00 00 03 23 00 05', 'ERR_PROTOCOL_ERROR', 3],
  ])('%s: told, retried, and slower each time', async (_name, bytes, code, rounds) => {
    const rig = await new Rig().up()
    for (let round = 0; round < rounds; round++) {
      rig.peer.sendBytes(bytes)
      await rig.settle()
      expect(rig.client.state).toBe('reconnecting')
      await rig.advance(rig.delays.at(-1) ?? 0)
    }
    expect(rig.delays).toEqual([1000, 2000, 4000, 8000].slice(0, rounds))
    expect(rig.seen('serverdisconnect')).toEqual([])
    for (const { cause } of rig.seen('disconnect')) expect(['ERR_PROTOCOL_ERROR', code]).toContain(cause?.code)
    await rig.finish()
  })
})
