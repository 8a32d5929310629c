import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, failure } from './harness.js'
import { type Behaviour, causes, lost, Rig, refusing, story, up } from './rig.js'

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
// Which code is of which kind: verdicts.test.ts.
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

describe('CONNACK', () => {
  it.each([
    [1, 0x84, 1, 1],
    [2, 0x85, 1, 1],
    [3, 0x88, 4, 4],
    [4, 0x86, 1, 2],
    [5, 0x87, 1, 2],
  ])(
    'of 3.1.1: %s is %s: %s attempts, %s with credentials()',
    async (code, reasonCode, ...dials) => {
      for (const [index, options] of [{}, fresh].entries()) {
        const got = await first(refusing(code), { protocolVersion: 4, ...options }, 4)
        expect(got).toMatchObject({ dials: dials[index], code: refused, reasonCode })
      }
    },
  )

  it('when all of a list refuse, the error has each of them', async () => {
    const behave = (host: string) => refusing(host === 'a' ? 0x8a : 0x85)
    const rig = await lost(behave, 10_000, {}, { hosts: ['a', 'b'] })
    const ended = await rig.client.closed
    expect(ended?.code).toBe('ERR_CONNECT_FAILED')
    expect(causes(ended).map((error) => error.reasonCode)).toEqual([0x8a, 0x85])
    expect(rig.hosts.join('')).toBe('aab')
  })
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
