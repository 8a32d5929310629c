import { describe, expect, it } from 'vitest'
import type { ReconnectOptions, Verdict } from '../../../src/client/api/index.js'
import { agreeable, failure } from './harness.js'
import { down, type Rig, reconnect, refusing } from './rig.js'
import { lost, rigged, story, up } from './rigged.js'

const decided = (decide: NonNullable<ReconnectOptions['decide']>) => ({
  reconnect: { ...reconnect, decide },
})

describe('decide replaces the table', () => {
  it('retry X times: asked X+1 times, then retries exhausted, and pending work rejects', async () => {
    const asked: [string, number, Verdict][] = []
    const rig = await up(
      decided((error, { attempt, verdict }) => {
        asked.push([error.code, attempt, verdict])
        return asked.length <= 4 ? 'retry' : 'stop'
      }),
    )
    rig.behave = () => refusing(0x8a)
    await rig.cut()
    const calls = [rig.client.publish('a', 'b', { qos: 1 }), rig.client.subscribe('a')].map(failure)
    await rig.advance(100_000)
    const refused = [2, 3, 4, 5].map((attempt) => ['ERR_CONNECT_REFUSED', attempt, 'next'])
    expect(asked).toEqual([['ERR_CONNECTION_LOST', 1, 'retry'], ...refused])
    expect(rig.dials).toHaveLength(5)
    const cause = { code: 'ERR_CONNECT_REFUSED', reasonCode: 0x8a }
    for (const error of await Promise.all([...calls, rig.client.closed]))
      expect(error).toMatchObject({ code: 'ERR_RETRIES_EXHAUSTED', cause })
    expect(rig.clock.pending).toBe(0)
  })

  it('refresh: once more at the same endpoint, with credentials asked for again', async () => {
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

  it('is asked about a lost connection also after the list was replaced some time ago', async () => {
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
})

describe('two clients with one client id', () => {
  /** An hour in which the server ends the connection of one for that of the other. */
  async function pingPong(options: object): Promise<{ connects: number; states: string[] }> {
    const rigs = [0, 1].map(() => rigged({ clientId: 'same', ...options }))
    let connects = 0
    for (const [index, rig] of rigs.entries()) {
      rig.behave = () => (packet) => {
        const rival = rigs[1 - index] as Rig
        if (packet.type === 'connect') connects += 1
        if (packet.type === 'connect' && rival.client.state === 'connected') {
          rival.peer.send({ type: 'disconnect', reasonCode: 0x8e, properties: {} })
          rival.peer.end()
        }
        return agreeable(packet)
      }
    }
    const connecting = rigs.map((rig) => rig.client.connect().catch(() => undefined))
    for (let second = 0; second < 3600; second++) for (const rig of rigs) await rig.advance(1000)
    await Promise.all(connecting)
    return { connects, states: rigs.map((rig) => rig.client.state).sort() }
  }

  it('the loser stops: two connects in an hour', async () => {
    expect(await pingPong({})).toEqual({ connects: 2, states: ['closed', 'connected'] })
  })
})
