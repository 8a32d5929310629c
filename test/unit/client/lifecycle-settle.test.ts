import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { Random } from '../../world/random.js'
import { agreeable } from './harness.js'
import { type Behaviour, down, Rig, reconnect, refusing, welcoming } from './rig.js'

/** Keeps count of promises. */
class Tally {
  pending = 0
  total = 0

  add(...promises: Promise<unknown>[]): void {
    for (const promise of promises) {
      this.pending += 1
      this.total += 1
      const settled = (): void => {
        this.pending -= 1
      }
      promise.then(settled, settled)
    }
  }
}

/** Takes us in and answers nothing else. */
const mute: Answer = (packet) => (packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} } : undefined)

/** States in which a client may be told to end. */
const situations: Readonly<Record<string, (rig: Rig) => Promise<void>>> = {
  idle: async () => undefined,
  'waiting for credentials': async (rig) => {
    rig.client.connect().catch(() => undefined)
    await rig.settle()
  },
  dialling: async (rig) => {
    rig.behave = () => 'hang'
    rig.client.connect().catch(() => undefined)
    await rig.settle()
  },
  'waiting for CONNACK': async (rig) => {
    rig.behave = () => () => undefined
    rig.client.connect().catch(() => undefined)
    await rig.settle()
  },
  'waiting to dial for the first time again': async (rig) => {
    rig.behave = () => down
    rig.client.connect().catch(() => undefined)
    await rig.advance(500)
  },
  connected: async (rig) => {
    await rig.up()
  },
  'connected to one that answers nothing': async (rig) => {
    rig.behave = () => mute
    await rig.up()
  },
  'waiting to reconnect': async (rig) => {
    await rig.up()
    await rig.cut()
  },
  'dialling again': async (rig) => {
    await rig.up()
    rig.behave = () => 'hang'
    await rig.cut()
    await rig.advance(1200)
  },
  'waiting for CONNACK again': async (rig) => {
    await rig.up()
    rig.behave = () => () => undefined
    await rig.cut()
    await rig.advance(1200)
  },
  'being replaced': async (rig) => {
    await rig.up()
    rig.client.reconnect({ force: true }).catch(() => undefined)
  },
  disconnecting: async (rig) => {
    rig.behave = () => mute
    await rig.up()
    rig.client.publish('t', 'x', { qos: 1 }).catch(() => undefined)
    rig.client.drain({ timeout: 60_000 }).catch(() => undefined)
    await rig.settle()
  },
  closed: async (rig) => {
    rig.client.destroy()
  },
}

function everything({ client }: Rig, tally: Tally): void {
  const attempt = (call: () => Promise<unknown>): void => {
    try {
      tally.add(call())
    } catch {
      // Refused at once.
    }
  }
  for (const qos of [0, 1, 2] as const) attempt(() => client.publish('t', 'x', { qos }))
  attempt(() => client.publish('t', 'x', { qos: 0, flush: true }))
  attempt(() => client.subscribe('a'))
  attempt(() => client.subscribe(['b', 'c/#'], { qos: 1 }))
  attempt(() => client.unsubscribe('d'))
  attempt(() => client.listen('e', () => undefined, { qos: 1 }).then((handling) => handling.done))
  attempt(() => client.connect())
  attempt(() => client.reconnect())
  attempt(() => client.flush())
  attempt(() => client.writable)
  attempt(() => client.closed)
  attempt(() => client.reauthenticate())
  attempt(() => {
    const subscription = client.subscription('f', { ack: 'manual' })
    tally.add(subscription.ready, subscription.next(), subscription[Symbol.asyncIterator]().next())
    return subscription.unsubscribe()
  })
  attempt(() => client.request('svc', 'x'))
}

const never: ClientOptions = { credentials: () => new Promise(() => undefined) }

describe('every promise settles within 50 ms of disconnect({ timeout: 0 })', () => {
  it.each(Object.keys(situations))('%s', async (name) => {
    const rig = new Rig({ firstConnect: 'wait', ...(name === 'waiting for credentials' ? never : {}) })
    await situations[name]?.(rig)
    const tally = new Tally()
    everything(rig, tally)
    await rig.settle()
    tally.add(rig.client.disconnect({ timeout: 0 }))
    await rig.advance(50)
    expect(tally.total).toBeGreaterThan(8)
    expect(tally.pending).toBe(0)
    expect(rig.client.state).toBe('closed')
    await rig.advance(2000)
    expect(rig.open).toBe(0)
    expect(rig.clock.pending).toBe(0)
  })

  it.each(Object.keys(situations))('destroy(): %s', async (name) => {
    const rig = new Rig({ firstConnect: 'wait', ...(name === 'waiting for credentials' ? never : {}) })
    await situations[name]?.(rig)
    const tally = new Tally()
    everything(rig, tally)
    await rig.settle()
    rig.client.destroy()
    await rig.settle()
    expect(tally.pending).toBe(0)
    expect(rig.open).toBe(0)
    expect(rig.clock.pending).toBe(0)
  })

  it.each(Object.keys(situations))('disconnect({ timeout: 200 }) resolves within 250 ms: %s', async (name) => {
    const rig = new Rig({ firstConnect: 'wait', ...(name === 'waiting for credentials' ? never : {}) })
    await situations[name]?.(rig)
    everything(rig, new Tally())
    const tally = new Tally()
    tally.add(rig.client.disconnect({ timeout: 200 }), rig.client.drain({ timeout: 200 }))
    await rig.advance(250)
    expect(tally.pending).toBe(0)
    expect(rig.client.state).toBe('closed')
    await rig.advance(2000)
    expect(rig.clock.pending).toBe(0)
  })

  it('in the middle of it all, twice and destroyed: idempotent', async () => {
    for (const name of Object.keys(situations)) {
      const rig = new Rig({ firstConnect: 'wait' })
      await situations[name]?.(rig)
      const tally = new Tally()
      tally.add(rig.client.disconnect({ timeout: 0 }), rig.client.disconnect(), rig.client.drain())
      rig.client.destroy()
      await rig.settle()
      expect(tally.pending).toBe(0)
      expect(rig.seen('state').filter(({ state }) => state === 'closed')).toHaveLength(1)
      expect(rig.clock.pending).toBe(0)
    }
  })
})

describe('at each byte of the handshake', () => {
  it('disconnect() while CONNACK comes byte by byte', async () => {
    const bytes = [0x20, 0x03, 0x00, 0x00, 0x00]
    for (let count = 0; count <= bytes.length; count++) {
      const rig = new Rig({}, { behave: () => () => undefined })
      rig.client.connect().catch(() => undefined)
      await rig.settle()
      for (const byte of bytes.slice(0, count)) rig.peer.sendBytes([byte])
      await rig.settle()
      const tally = new Tally()
      tally.add(rig.client.disconnect({ timeout: 200 }))
      await rig.advance(250)
      expect(tally.pending).toBe(0)
      await rig.advance(1000)
      expect(rig.open).toBe(0)
      expect(rig.clock.pending).toBe(0)
    }
  })
})

describe('random orders', () => {
  const operations: ((rig: Rig, tally: Tally, random: Random) => void)[] = [
    ({ client }, tally, random) => tally.add(client.publish('t', 'x', { qos: random.pick([0, 1, 2] as const) })),
    ({ client }, tally, random) => tally.add(client.subscribe(`s/${random.below(3)}`, { qos: 1 })),
    ({ client }, tally, random) => tally.add(client.unsubscribe(`s/${random.below(3)}`)),
    ({ client }, tally) => tally.add(client.connect()),
    ({ client }, tally, random) => tally.add(client.reconnect({ force: random.chance(0.5) })),
    ({ client }, tally) => tally.add(client.flush()),
    ({ client }, tally) => tally.add(client.writable),
    ({ client }, tally, random) => {
      const controller = new AbortController()
      tally.add(client.publish('t', 'x', { qos: 1, signal: controller.signal }))
      if (random.chance(0.7)) controller.abort()
    },
    ({ client }, tally) => tally.add(client.request('svc', 'x', { timeout: 100 })),
    (rig) => rig.client.setBrokers([rig.endpoint('a'), rig.endpoint('b')]),
    (rig) => rig.peers.at(-1)?.cut(),
    (rig) => rig.peers.at(-1)?.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} }),
    ({ client }, tally) => tally.add(client.drain({ timeout: 50 })),
    ({ client }) => client.destroy(),
  ]

  it('10,000 random operations in random orders: none is left pending', async () => {
    const random = new Random(12_345)
    const behaviours: Behaviour[] = [agreeable, agreeable, welcoming({}, true), mute, down, 'hang', refusing(0x88), refusing(0x8a), () => undefined]
    let done = 0
    for (let round = 0; done < 10_000; round++) {
      const rig = new Rig(
        { firstConnect: round % 2 === 0 ? 'wait' : 'reject', clientId: 'c', cleanStart: false, reconnect: { ...reconnect, backoff: () => 20 } },
        { behave: () => random.pick(behaviours) },
      )
      const tally = new Tally()
      tally.add(rig.client.closed)
      for (let step = 0; step < 40; step++) {
        done += 1
        // The last two end the client: late, or nothing else would be seen.
        const index = random.below(step < 34 ? operations.length - 2 : operations.length)
        try {
          operations[index]?.(rig, tally, random)
        } catch {
          // Closed by now.
        }
        if (random.chance(0.5)) await rig.advance(random.below(30))
      }
      tally.add(rig.client.disconnect({ timeout: 0 }))
      await rig.advance(50)
      expect([round, tally.pending]).toEqual([round, 0])
      await rig.advance(2000)
      expect([round, rig.open, rig.clock.pending]).toEqual([round, 0, 0])
      expect(rig.seen('connect').length).toBe(rig.seen('disconnect').length)
    }
  }, 60_000)
})
