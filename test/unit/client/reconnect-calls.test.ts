import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/api/index.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { eventNames } from './event-names.js'
import { agreeable, failure } from './harness.js'
import { down, Rig, reconnect, welcoming } from './rig.js'

describe('reconnect()', () => {
  it('while up: nothing happens, ten times over', async () => {
    const rig = await new Rig().up()
    const before = rig.events.length
    await Promise.all([...Array.from({ length: 10 }, () => rig.client.reconnect()), rig.settle()])
    await rig.advance(20_000)
    expect(rig.dials).toHaveLength(1)
    expect(rig.events).toHaveLength(before)
    expect(rig.peer.ended).toBeUndefined()
    await rig.finish()
  })

  it('force: the old link is closed in order, a new one comes at once, the session is resumed', async () => {
    const rig = await new Rig({ clientId: 'c' }).up()
    const old = rig.peer
    rig.behave = () => welcoming({}, true)
    const forced = rig.client.reconnect({ force: true, reason: 'new network' })
    await rig.settle()
    old.end()
    await rig.settle()
    await forced
    expect(rig.dials.map(({ at }) => at)).toEqual([0, 0])
    expect(old.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0 })
    expect(old.ended).toEqual({ cause: undefined })
    expect(rig.peer.last('connect')).toMatchObject({ cleanStart: false, clientId: 'c' })
    expect(rig.seen('disconnect')).toEqual([{ cause: undefined, reason: 'new network' }])
    expect(rig.seen('serverdisconnect')).toEqual([])
    expect(rig.seen('sessionlost')).toEqual([])
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('also seen: a reconnect() that forgets: what was in flight is completed on the new link, once', async () => {
    const rig = new Rig({ clientId: 'c', cleanStart: false })
    rig.behave = (_host, dial) => (packet) =>
      dial === 1 && packet.type === 'publish' ? undefined : dial === 1 ? agreeable(packet) : welcoming({}, true)(packet)
    await rig.up()
    const publishing = rig.client.publish('t', 'x', { qos: 1 })
    await rig.settle()
    const forced = rig.client.reconnect({ force: true })
    await rig.advance(2000)
    await forced
    expect((await publishing).reasonCode).toBe(0)
    expect(rig.peers[1]?.all('publish')).toMatchObject([{ topic: 't', dup: true }])
    await rig.finish()
  })

  it.each([1, 2] as const)(
    'force: what is acknowledged at QoS %i while the old link ends is not handled again, and acknowledged on the new one',
    async (qos) => {
      const rig = await new Rig({ clientId: 'c', cleanStart: false }).up()
      const subscribing = rig.client.subscribe('t', { qos, ack: 'manual' })
      await rig.settle()
      const subscription = await subscribing
      const old = rig.peer
      const message = (packetId: number, dup: boolean): PacketInput => ({
        type: 'publish',
        topic: 't',
        payload: new Uint8Array([packetId]),
        qos,
        packetId,
        dup,
      })
      old.send(message(1, false), message(2, false), message(3, false))
      await rig.settle()
      const [first, second] = await Promise.all([subscription.next(), subscription.next(), subscription.next()])
      rig.behave = () => welcoming({}, true)
      const forced = rig.client.reconnect({ force: true })
      await rig.settle()
      expect(old.received.at(-1)?.type).toBe('disconnect')
      expect([first?.ack(), second?.ack()]).toEqual([true, true])
      await rig.advance(1500)
      await forced
      expect(old.received.at(-1)?.type).toBe('disconnect')
      rig.peer.send(message(1, true), message(2, true), message(3, true))
      await rig.settle()
      expect(rig.peer.received.slice(1)).toMatchObject([1, 2].map((packetId) => ({ type: qos === 1 ? 'puback' : 'pubrec', packetId, reasonCode: 0 })))
      await rig.finish()
    },
  )

  it('force: a server that does not end its side is not waited for', async () => {
    const rig = await new Rig().up()
    const forced = rig.client.reconnect({ force: true })
    await rig.advance(1500)
    await forced
    expect(rig.dials).toHaveLength(2)
    expect(rig.open).toBe(1)
    await rig.finish()
  })

  it('force twice: one new connection', async () => {
    const rig = await new Rig().up()
    const forced = [rig.client.reconnect({ force: true }), rig.client.reconnect({ force: true }), rig.client.reconnect()]
    await rig.advance(3000)
    await Promise.all(forced)
    expect(rig.dials).toHaveLength(2)
    expect(rig.seen('disconnect')).toHaveLength(1)
    await rig.finish()
  })

  it('force right after a forced one came up replaces that too: no second stream is ever open', async () => {
    const rig = await new Rig().up()
    let most = 0
    rig.client.on('dial', () => {
      most = Math.max(most, rig.open)
    })
    for (let round = 0; round < 5; round++) {
      const forced = rig.client.reconnect({ force: true })
      await rig.advance(1500)
      await forced
    }
    expect(rig.dials).toHaveLength(6)
    expect(most).toBe(0)
    await rig.finish()
  })

  it('while it waits: tries now, and joins', async () => {
    const rig = await new Rig().up()
    rig.behave = (_host, dial) => (dial < 6 ? down : agreeable)
    await rig.cut()
    await rig.advance(1000 + 2000 + 4000 + 8000 + 100)
    expect(rig.dials).toHaveLength(5)
    const joined = [rig.client.reconnect(), rig.client.reconnect(), rig.client.connect()]
    await rig.settle()
    await Promise.all(joined)
    expect(rig.dials).toHaveLength(6)
    expect(rig.client.state).toBe('connected')
    await rig.advance(40_000)
    expect(rig.dials).toHaveLength(6)
    await rig.finish()
  })

  it('while an attempt is under way: joins that, however often', async () => {
    const rig = await new Rig().up()
    rig.behave = () => 'hang'
    await rig.cut()
    await rig.advance(1500)
    for (let index = 0; index < 50; index++) failure(rig.client.reconnect())
    await rig.advance(1000)
    expect(rig.dials).toHaveLength(2)
    await rig.finish()
  })

  it('rejects with what ended the client meanwhile', async () => {
    const rig = await new Rig({ reconnect: { ...reconnect, maxAttempts: 3 } }).up()
    rig.behave = () => down
    await rig.cut()
    const joined = failure(rig.client.reconnect())
    await rig.advance(60_000)
    expect((await joined).code).toBe('ERR_RETRIES_EXHAUSTED')
    expect((await failure(rig.client.reconnect())).code).toBe('ERR_CLOSED')
  })

  it.each([{ force: 1 }, { reason: 5 }, { now: true }, 5])('%j is refused', async (options) => {
    const rig = await new Rig().up()
    expect((await failure(rig.client.reconnect(options as { force: boolean }))).code).toBe('ERR_INVALID_OPTION')
    await rig.finish()
  })
})

describe('reconnect() inside events', () => {
  it.each(['disconnect', 'state', 'connecterror', 'reconnecting'] as const)('in %s: at once, one connection', async (type) => {
    const rig = await new Rig({ connectTimeout: 5000 }).up()
    await rig.advance(60_000)
    if (type === 'connecterror') rig.behave = (_host, dial) => (dial === 2 ? 'hang' : agreeable)
    const promises: Promise<unknown>[] = []
    let once = false
    rig.client.on(type, (event) => {
      if (once || (type === 'state' && (event as ClientEvents['state']).state !== 'reconnecting')) return
      once = true
      promises.push(rig.client.reconnect())
    })
    await rig.cut()
    // The delay, and the attempt that fails.
    if (type === 'connecterror') await rig.advance(1000 + 5000)
    expect(rig.client.state).toBe('connected')
    expect(rig.dials.at(-1)?.at).toBe(rig.clock.now())
    await Promise.all(promises)
    await rig.advance(40_000)
    expect(rig.open).toBe(1)
    expect(rig.dials).toHaveLength(type === 'connecterror' ? 3 : 2)
    await rig.finish()
  })

  it.each(['connecterror', 'reconnecting', 'disconnect'] as const)('in every %s: no storm, whatever the program asks for', async (type) => {
    const rig = await new Rig().up()
    let calls = 0
    rig.client.on(type, () => {
      // What spins in one instant has to end for the test to end.
      if (++calls < 300) rig.client.reconnect().catch(() => undefined)
    })
    if (type === 'disconnect') {
      rig.client.on('connect', () => {
        if (calls < 300) rig.peer.cut()
      })
    } else rig.behave = () => down
    await rig.cut()
    await rig.advance(10_000)
    expect(rig.dials.length).toBeLessThanOrEqual(15)
    await rig.finish()
  })

  it('the delay that is announced after a hurried attempt is the one that passes', async () => {
    const rig = await new Rig().up()
    rig.behave = () => down
    rig.client.on('connecterror', () => {
      rig.client.reconnect().catch(() => undefined)
    })
    await rig.cut()
    await rig.advance(10_000)
    const waits = rig.events.filter(({ type }) => type === 'reconnecting')
    expect(waits.length).toBeGreaterThan(3)
    for (const { at, event } of waits.slice(0, -1))
      expect(rig.dials.map((dial) => dial.at)).toContain(at + (event as ClientEvents['reconnecting']).delay)
    await rig.finish()
  })

  it('a program that calls it in every disconnect gets one connection at a time', async () => {
    const rig = await new Rig().up()
    rig.client.on('disconnect', () => {
      rig.client.reconnect().catch(() => undefined)
    })
    let most = 0
    rig.client.on('dial', () => {
      most = Math.max(most, rig.open)
    })
    for (let round = 0; round < 20; round++) {
      await rig.advance(40_000)
      if (rig.client.state === 'connected') await rig.cut()
    }
    expect(most).toBe(0)
    expect(rig.open).toBeLessThanOrEqual(1)
    await rig.finish()
  })

  it('in serverdisconnect the connection is still there: nothing happens', async () => {
    const rig = await new Rig().up()
    rig.client.on('serverdisconnect', () => {
      rig.client.reconnect().catch(() => undefined)
    })
    await rig.goodbye(0x8b)
    expect(rig.delays).toEqual([1000])
    await rig.advance(1000)
    expect(rig.dials).toHaveLength(2)
    await rig.finish()
  })

  it('force in connect: a new connection, and no end of it unless the program asks for that', async () => {
    const rig = new Rig()
    let count = 0
    rig.client.on('connect', () => {
      count += 1
      if (count <= 3) rig.client.reconnect({ force: true }).catch(() => undefined)
    })
    const connecting = rig.client.connect()
    await rig.advance(10_000)
    await connecting
    expect(rig.dials).toHaveLength(4)
    expect(rig.seen('connect')).toHaveLength(4)
    expect(rig.seen('disconnect')).toHaveLength(3)
    expect(rig.open).toBe(1)
    await rig.finish()
  })
})

describe('listeners that throw', () => {
  it.each(eventNames)('in %s: reported to the logger, and everything goes on', async (type) => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: (_host, dial) => (dial === 1 ? down : agreeable) })
    rig.client.on(type, () => {
      throw new Error('listener is broken')
    })
    const connecting = rig.client.connect()
    await rig.advance(1000)
    await connecting
    await rig.cut()
    await rig.advance(2000)
    expect(rig.client.state).toBe('connected')
    await rig.goodbye(0x8b)
    await rig.advance(4000)
    expect(rig.client.state).toBe('connected')
    expect(rig.dials).toHaveLength(4)
    const thrown = rig.log.filter((line) => line.includes(`'${type}' threw`))
    expect(thrown).toHaveLength(rig.seen(type).length)
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('a logger that throws, backoff, credentials and decide that throw: all at once', async () => {
    const boom = (): never => {
      throw new Error('everything is broken')
    }
    const rig = await new Rig({ logger: { info: boom, warn: boom, error: boom }, reconnect: { backoff: boom, decide: boom } }).up()
    rig.client.on('disconnect', boom)
    await rig.cut()
    await rig.advance(30_000)
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })
})
