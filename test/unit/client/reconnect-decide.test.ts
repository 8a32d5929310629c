import { describe, expect, it } from 'vitest'
import type { DecisionContext, Verdict } from '../../../src/client/api/index.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { MqttError } from '../../../src/errors.js'
import { agreeable, failure } from './harness.js'
import { down, Rig, reconnect, refusing } from './rig.js'

const decided = (decide: (error: MqttError, context: DecisionContext) => Verdict | undefined) => ({ reconnect: { ...reconnect, decide } })

describe('decide replaces the table', () => {
  it('retry X times: asked X+1 times, then retries exhausted, and pending work rejects', async () => {
    const asked: [string, number, Verdict][] = []
    const rig = await new Rig(
      decided((error, { attempt, verdict }) => {
        asked.push([error.code, attempt, verdict])
        return asked.length <= 4 ? 'retry' : 'stop'
      }),
    ).up()
    rig.behave = () => refusing(0x8a)
    await rig.cut()
    const publishing = failure(rig.client.publish('a', 'b', { qos: 1 }))
    const subscribing = failure(rig.client.subscribe('a'))
    await rig.advance(100_000)
    expect(asked).toEqual([
      ['ERR_CONNECTION_LOST', 1, 'retry'],
      ['ERR_CONNECT_REFUSED', 2, 'next'],
      ['ERR_CONNECT_REFUSED', 3, 'next'],
      ['ERR_CONNECT_REFUSED', 4, 'next'],
      ['ERR_CONNECT_REFUSED', 5, 'next'],
    ])
    expect(rig.dials).toHaveLength(5)
    for (const error of await Promise.all([publishing, subscribing, rig.client.closed]))
      expect(error).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED', cause: { code: 'ERR_CONNECT_REFUSED', reasonCode: 0x8a } })
    expect(rig.clock.pending).toBe(0)
  })

  it('stop at the first attempt rejects connect()', async () => {
    const rig = new Rig({ ...decided(() => 'stop'), firstConnect: 'wait' }, { behave: () => down })
    const error = failure(rig.client.connect())
    await rig.settle()
    expect(await error).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED', cause: { code: 'ERR_CONNECT_FAILED', cause: down } })
  })

  it('undefined leaves it at the table; the context names the endpoint without its query', async () => {
    const contexts: DecisionContext[] = []
    const rig = await new Rig(
      decided((_error, context) => {
        contexts.push(context)
        return undefined
      }),
    ).up()
    await rig.goodbye(0x98)
    expect(contexts).toEqual([{ attempt: 1, endpoint: 'x://a', verdict: 'stop' }])
    expect(await rig.client.closed).toMatchObject({ code: 'ERR_SERVER_DISCONNECT', reasonCode: 0x98 })
  })

  it('next: the endpoint is passed over from then on', async () => {
    const rig = await new Rig(
      decided(() => 'next'),
      { hosts: ['a', 'b', 'c'] },
    ).up()
    rig.behave = () => down
    await rig.cut()
    await rig.advance(100_000)
    expect(rig.hosts.join('')).toBe('abc')
    expect(rig.client.state).toBe('closed')
  })

  it('refresh: once more at the same endpoint, with credentials asked anew', async () => {
    const attempts: number[] = []
    const rig = await new Rig(
      {
        ...decided((error) => (error.code === 'ERR_CONNECT_FAILED' ? 'refresh' : undefined)),
        credentials: ({ attempt }) => {
          attempts.push(attempt)
          return {}
        },
      },
      { hosts: ['a', 'b'] },
    ).up()
    rig.behave = (_host, dial) => (dial < 4 ? down : agreeable)
    await rig.cut()
    await rig.advance(10_000)
    expect(rig.hosts.join('')).toBe('aaab')
    expect(attempts).toEqual([1, 2, 3, 4])
    await rig.finish()
  })

  it('one that throws: the table, and the reconnect goes on', async () => {
    const rig = await new Rig(
      decided(() => {
        throw new Error('undecided')
      }),
    ).up()
    await rig.cut()
    await rig.advance(1000)
    expect(rig.client.state).toBe('connected')
    await rig.goodbye(0x98)
    expect(rig.client.state).toBe('closed')
  })

  it('a retry is never faster than the backoff, whatever was refused', async () => {
    const rig = await new Rig(decided(() => 'retry')).up()
    rig.behave = () => refusing(0x87)
    await rig.cut()
    await rig.advance(130_000)
    expect(rig.delays.slice(0, 7)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
    await rig.finish()
  })

  it('is asked about a lost connection also after the list was replaced some time ago', async () => {
    const asked: string[] = []
    const rig = await new Rig(
      decided((error) => {
        asked.push(error.code)
        return 'stop'
      }),
    ).up()
    rig.client.setBrokers([rig.endpoint('b')])
    await rig.advance(60_000)
    await rig.cut()
    await rig.advance(60_000)
    expect(asked).toEqual(['ERR_CONNECTION_LOST'])
    expect(rig.dials).toHaveLength(1)
    expect(rig.client.state).toBe('closed')
  })
})

describe('two clients with one client id', () => {
  /** Two rigs on one clock are not needed: each is told of the other's success. */
  async function pingPong(options: object): Promise<{ connects: number; states: string[] }> {
    const rigs = [new Rig({ clientId: 'same', ...options }), new Rig({ clientId: 'same', ...options })] as const
    let connects = 0
    const other = (index: number): Rig => rigs[index === 0 ? 1 : 0]
    for (const [index, rig] of rigs.entries()) {
      rig.behave = () => (packet) => {
        if (packet.type !== 'connect') return agreeable(packet)
        connects += 1
        const rival = other(index)
        if (rival.client.state === 'connected') {
          rival.peer.send({ type: 'disconnect', reasonCode: 0x8e, properties: {} })
          rival.peer.end()
        }
        return agreeable(packet)
      }
    }
    const connecting = rigs.map((rig) => rig.client.connect().catch(() => undefined))
    for (let second = 0; second < 3600; second++) for (const rig of rigs) await rig.advance(1000)
    await Promise.all(connecting)
    const states = rigs.map((rig) => rig.client.state)
    for (const rig of rigs) await rig.finish()
    return { connects, states }
  }

  it('the loser stops: two connects in an hour', async () => {
    const { connects, states } = await pingPong({})
    expect(connects).toBe(2)
    expect(states.sort()).toEqual(['closed', 'connected'])
  })

  it('who opts in with a limit is bound by it', async () => {
    const decide = (error: MqttError): Verdict | undefined => (error.code === 'ERR_SESSION_TAKEN_OVER' ? 'retry' : undefined)
    const { connects, states } = await pingPong({ reconnect: { backoff: constant(60_000), stableAfter: 600_000, maxAttempts: 3, decide } })
    expect(connects).toBeGreaterThan(2)
    // The first connection of each, and so many to come back.
    expect(connects).toBeLessThanOrEqual(2 * (1 + 3))
    expect(states).toContain('closed')
  })

  it('two clients from one frozen options object: it is not written to, and each has an id of its own', async () => {
    const options = Object.freeze({ reconnect: Object.freeze({ ...reconnect }), protocolVersion: 4 as const })
    const rigs = [new Rig(options, { version: 4, seed: 3 }), new Rig(options, { version: 4, seed: 77 })]
    for (const rig of rigs) await rig.up()
    const ids = rigs.map((rig) => rig.peer.last('connect').clientId)
    expect(new Set(ids).size).toBe(2)
    for (const id of ids) expect(id).toMatch(/^[0-9A-Za-z]{1,23}$/)
    for (const rig of rigs) {
      // The same one on every connection.
      await rig.cut()
      await rig.advance(1000)
      expect(rig.peer.last('connect').clientId).toBe(rig.client.clientId)
      expect(rig.client.clientId).toBe(rig.peers[0]?.last('connect').clientId)
      await rig.finish()
    }
  })
})
