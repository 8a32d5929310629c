import { describe, expect, it } from 'vitest'
import type { ClientEvents, ClientState } from '../../../src/client/api/index.js'
import { agreeable, failure } from './harness.js'
import { down, Rig, refusing, welcoming } from './rig.js'
import { settled } from './steps.js'

/** Every transition that there is; nothing leads out of `closed`. */
const transitions: Readonly<Record<ClientState, readonly ClientState[]>> = {
  idle: ['connecting', 'closed'],
  connecting: ['connected', 'closed'],
  connected: ['reconnecting', 'disconnecting', 'closed'],
  reconnecting: ['connected', 'closed'],
  disconnecting: ['closed'],
  closed: [],
}

/** Fails when a transition is not in the table, or events do not pair, or something comes after the end. */
function check(rig: Rig): void {
  let state: ClientState = 'idle'
  let up = 0
  for (const { type, event } of rig.events) {
    if (state === 'closed') expect(['disconnect']).toContain(type)
    if (type === 'state') {
      const { state: next, previous } = event as { state: ClientState; previous: ClientState }
      expect(previous).toBe(state)
      expect(transitions[state]).toContain(next)
      state = next
    }
    if (type === 'connect') up += 1
    if (type === 'disconnect') up -= 1
    expect([0, 1]).toContain(up)
  }
  expect(rig.client.state).toBe(state)
  if (state === 'closed') expect(up).toBe(0)
}

type Act = (rig: Rig) => Promise<unknown>

const acts: Readonly<Record<string, Act>> = {
  connect: (rig) => rig.up(),
  'connect that is refused': async (rig) => {
    rig.behave = () => refusing(0x8a)
    await Promise.all([failure(rig.client.connect()), rig.settle()])
  },
  cut: (rig) => rig.cut(),
  'come back': (rig) => rig.advance(1000),
  'stay away': async (rig) => {
    rig.behave = () => down
    await rig.advance(40_000)
  },
  'server shuts down': (rig) => rig.goodbye(0x8b),
  'taken over': (rig) => rig.goodbye(0x8e),
  force: async (rig) => Promise.all([rig.client.reconnect({ force: true }), rig.advance(1500)]),
  disconnect: async (rig) => Promise.all([rig.client.disconnect(), rig.advance(2000)]),
  drain: async (rig) => Promise.all([rig.client.drain({ timeout: 500 }), rig.advance(2000)]),
  destroy: async (rig) => rig.client.destroy(),
}

describe('the table of transitions', () => {
  it.each([
    ['connect, disconnect', ['connecting', 'connected', 'disconnecting', 'closed']],
    ['connect, destroy', ['connecting', 'connected', 'closed']],
    ['connect that is refused', ['connecting', 'closed']],
    ['disconnect', ['closed']],
    ['destroy', ['closed']],
    ['drain', ['closed']],
    [
      'connect, cut, come back, disconnect',
      ['connecting', 'connected', 'reconnecting', 'connected', 'disconnecting', 'closed'],
    ],
    ['connect, cut, destroy', ['connecting', 'connected', 'reconnecting', 'closed']],
    ['connect, cut, disconnect', ['connecting', 'connected', 'reconnecting', 'closed']],
    ['connect, cut, stay away, disconnect', ['connecting', 'connected', 'reconnecting', 'closed']],
    ['connect, cut, stay away, drain', ['connecting', 'connected', 'reconnecting', 'closed']],
    [
      'connect, server shuts down, come back, destroy',
      ['connecting', 'connected', 'reconnecting', 'connected', 'closed'],
    ],
    ['connect, taken over', ['connecting', 'connected', 'closed']],
    [
      'connect, force, disconnect',
      ['connecting', 'connected', 'reconnecting', 'connected', 'disconnecting', 'closed'],
    ],
    ['connect, drain', ['connecting', 'connected', 'disconnecting', 'closed']],
    [
      'connect, disconnect, disconnect, destroy',
      ['connecting', 'connected', 'disconnecting', 'closed'],
    ],
  ] as [string, ClientState[]][])('%s: each transition exactly once', async (names, states) => {
    const rig = new Rig()
    for (const name of names.split(', ')) await acts[name]?.(rig)
    expect(rig.seen('state').map(({ state }) => state)).toEqual(states)
    check(rig)
    rig.client.destroy()
    await rig.advance(2000)
    expect(rig.clock.pending).toBe(0)
    expect(rig.open).toBe(0)
  })
})

describe('the order of events', () => {
  it('a whole life', async () => {
    const rig = await new Rig({ clientId: 'c', cleanStart: false }).up()
    rig.behave = (_host, dial) => (dial === 2 ? down : welcoming({}, dial === 3))
    await rig.cut()
    await rig.advance(3000)
    await rig.goodbye(0x8b)
    await rig.advance(4000)
    await rig.finish()
    const lives = [
      'state connecting, dial, state connected, connect, state reconnecting, disconnect, reconnecting, dial, connecterror, reconnecting',
      'dial, state connected, connect, serverdisconnect, state reconnecting, disconnect, reconnecting',
      'dial, state connected, connect, sessionlost, state disconnecting, state closed, disconnect',
    ]
    expect(rig.order).toEqual(lives.join(', ').split(', '))
  })

  it('reconnecting comes before the delay, dial right before dialling, both with the same attempt and endpoint', async () => {
    const rig = await new Rig({}, { hosts: ['a', 'b'] }).up()
    rig.behave = () => down
    await rig.cut()
    await rig.advance(20_000)
    const of = (type: string) =>
      rig.events.filter((entry) => entry.type === type) as {
        at: number
        event: ClientEvents['reconnecting']
      }[]
    const [waits, dials] = [of('reconnecting'), of('dial').slice(1)]
    expect(dials.length).toBeGreaterThan(3)
    for (const [index, dial] of dials.entries()) {
      const { at, event } = waits[index] as (typeof waits)[number]
      expect(dial).toMatchObject({
        at: at + event.delay,
        event: { attempt: event.attempt, endpoint: event.endpoint },
      })
      expect(rig.dials[index + 1]).toMatchObject({
        at: dial.at,
        host: dial.event.endpoint.slice('x://'.length),
      })
    }
    await rig.finish()
  })

  it('dial comes after credentials() and right before the transport is opened', async () => {
    const order: string[] = []
    const credentials = async (): Promise<object> => {
      order.push('credentials')
      await Promise.resolve()
      order.push('given')
      return {}
    }
    const rig = new Rig({ credentials })
    rig.client.on('dial', () => order.push('dial'))
    rig.behave = () => {
      order.push('opened')
      return agreeable
    }
    await rig.up()
    expect(order).toEqual(['credentials', 'given', 'dial', 'opened'])
    await rig.finish()
  })

  it('after the end nothing comes: not from timers, not from the peer, not from calls', async () => {
    for (const end of ['disconnect', 'destroy', 'taken over'] as const) {
      const rig = await new Rig().up()
      await acts[end]?.(rig)
      const count = rig.events.length
      for (const peer of rig.peers) {
        peer.sendBytes('20 03 00 00 00')
        peer.cut()
      }
      rig.client.destroy()
      await rig.client.disconnect()
      await failure(rig.client.connect())
      await failure(rig.client.reconnect())
      await rig.advance(1_000_000)
      expect(rig.events).toHaveLength(count)
    }
  })
})

describe('again and again', () => {
  it('a thousand reconnects: the same timers and streams as after the first', async () => {
    const rig = await new Rig({
      reconnect: { backoff: () => 10 },
      clientId: 'c',
      cleanStart: false,
    }).up()
    rig.behave = () => welcoming({}, true)
    const subscription = await settled(rig, rig.client.subscribe('a', { qos: 1 }))
    const { pending } = rig.clock
    for (let round = 0; round < 1000; round++) {
      rig.peer.cut()
      await rig.advance(10)
    }
    expect(rig.client.state).toBe('connected')
    expect(rig.dials.length).toBe(1001)
    expect(rig.open).toBe(1)
    expect(subscription.size).toBe(0)
    expect(rig.clock.pending).toBe(pending)
    check(rig)
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })
})
