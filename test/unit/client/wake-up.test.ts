import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable } from './harness.js'
import { down, Rig, welcoming } from './rig.js'

const hour = 3_600_000

/** A machine that can be told that it woke up. */
function sleeper(options: ClientOptions = {}): { rig: Rig; wake: () => Promise<void>; listeners: () => number } {
  const callbacks = new Set<() => void>()
  const rig = new Rig(
    { clientId: 'c', cleanStart: false, ...options },
    {
      platform: {
        onWake(callback) {
          callbacks.add(callback)
          return () => {
            callbacks.delete(callback)
          }
        },
      },
    },
  )
  rig.behave = (_host, dial) => welcoming({}, dial > 1)
  const wake = async (): Promise<void> => {
    for (const callback of callbacks) callback()
    await rig.settle()
  }
  return { rig, wake, listeners: () => callbacks.size }
}

/** From now on the peer says nothing, and does not end either. */
const silence: Answer = () => undefined

describe('a wake-up while connected', () => {
  it('PINGREQ at once; an answer, and nothing else happens', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    await rig.advance(5000)
    await wake()
    expect(rig.peer.all('pingreq')).toHaveLength(1)
    await rig.advance(60_000)
    expect(rig.dials).toHaveLength(1)
    expect(rig.seen('disconnect')).toEqual([])
    await rig.finish()
  })

  it('any byte within 1.5 s is life', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    rig.peer.answer = silence
    await wake()
    await rig.advance(1400)
    rig.peer.sendBytes([0x30])
    await rig.settle()
    await rig.advance(5000)
    expect(rig.seen('disconnect')).toEqual([])
    await rig.finish()
  })

  it('nothing for 1.5 s: given up, and dialled again without back-off', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    rig.peer.answer = silence
    await rig.advance(5000)
    await wake()
    await rig.advance(1499)
    expect(rig.client.state).toBe('connected')
    await rig.advance(1)
    expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_KEEPALIVE_TIMEOUT' } }])
    expect(rig.dials.map(({ at }) => at)).toEqual([0, 6500])
    expect(rig.client.state).toBe('connected')
    expect(rig.seen('sessionlost')).toEqual([])
    expect(rig.peers[0]?.ended).toBeDefined()
    await rig.finish()
  })

  it('a reset that the probe provokes: without back-off too', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    rig.peer.answer = silence
    await rig.advance(5000)
    await wake()
    rig.peer.cut()
    await rig.settle()
    expect(rig.dials.map(({ at }) => at)).toEqual([0, 5000])
    await rig.finish()
  })

  it('the link ends right after it answered: without back-off too, and a second time with it', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    await rig.advance(5000)
    await wake()
    await rig.advance(100)
    await rig.cut()
    expect(rig.dials.map(({ at }) => at)).toEqual([0, 5100])
    await rig.cut()
    expect(rig.dials).toHaveLength(2)
    await rig.advance(1000)
    expect(rig.dials.map(({ at }) => at)).toEqual([0, 5100, 6100])
    await rig.finish()
  })

  it('the link ends long after it answered: with back-off', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    await wake()
    await rig.advance(1501)
    await rig.cut()
    expect(rig.dials).toHaveLength(1)
    await rig.advance(1000)
    expect(rig.dials).toHaveLength(2)
    await rig.finish()
  })

  it('many wake-ups in a row: one probe after the other, never a second connection', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    for (let index = 0; index < 50; index++) await wake()
    expect(rig.dials).toHaveLength(1)
    expect(rig.open).toBe(1)
    await rig.finish()
  })

  it('QoS 1 in flight over a stale link is completed on the next', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    rig.peer.answer = silence
    const publishing = rig.client.publish('t', 'x', { qos: 1 })
    await rig.settle()
    await wake()
    await rig.advance(1500)
    expect((await publishing).reasonCode).toBe(0)
    expect(rig.peers.map((peer) => peer.all('publish').map(({ dup }) => dup))).toEqual([[false], [true]])
    await rig.finish()
  })
})

describe('a wake-up while there is no connection', () => {
  it('dials now', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    rig.behave = (_host, dial) => (dial < 6 ? down : agreeable)
    await rig.cut()
    await rig.advance(1000 + 2000 + 4000 + 8000 + 5000)
    expect(rig.dials).toHaveLength(5)
    const from = rig.clock.now()
    await wake()
    expect(rig.dials.at(-1)?.at).toBe(from)
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('not more than once a second, however often', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    rig.behave = () => down
    await rig.cut()
    for (let index = 0; index < 200; index++) {
      await wake()
      await rig.advance(50)
    }
    // Ten seconds.
    expect(rig.dials.length).toBeLessThanOrEqual(12)
    await rig.finish()
  })

  it('during an attempt: that goes on', async () => {
    const { rig, wake } = sleeper()
    await rig.up()
    rig.behave = () => 'hang'
    await rig.cut()
    await rig.advance(1500)
    await wake()
    await rig.advance(2000)
    expect(rig.dials).toHaveLength(2)
    await rig.finish()
  })

  it('before connect() and after the end nobody listens', async () => {
    const { rig, wake, listeners } = sleeper()
    expect(listeners()).toBe(0)
    await wake()
    expect(rig.dials).toEqual([])
    await rig.up()
    expect(listeners()).toBe(1)
    await rig.finish()
    expect(listeners()).toBe(0)
    expect(rig.clock.pending).toBe(0)
  })

  it('who was refused at first listens no more either', async () => {
    const { rig, listeners } = sleeper()
    rig.behave = () => down
    await Promise.all([rig.client.connect().catch(() => undefined), rig.settle()])
    expect(listeners()).toBe(0)
  })
})

describe('sleep that nobody tells of', () => {
  it('the clock jumps an hour, the server is there: one ping, no reconnect', async () => {
    const rig = await new Rig().up()
    await rig.advance(10_000)
    const pings = rig.peer.all('pingreq').length
    rig.clock.jump(hour)
    await rig.advance(1600)
    expect(rig.peer.all('pingreq').length - pings).toBe(1)
    expect(rig.dials).toHaveLength(1)
    await rig.advance(10_000)
    expect(rig.seen('disconnect')).toEqual([])
    await rig.finish()
  })

  it('the clock jumps, the socket is stale: probed, given up in 1.5 s, one reconnect without back-off', async () => {
    const rig = await new Rig({ clientId: 'c', cleanStart: false }).up()
    rig.behave = () => welcoming({}, true)
    rig.peer.answer = silence
    await rig.advance(10_000)
    rig.clock.jump(8 * hour)
    const woke = rig.clock.now()
    await rig.advance(1500)
    expect(rig.peers[0]?.all('pingreq')).toHaveLength(1)
    expect(rig.dials).toHaveLength(2)
    expect((rig.dials[1]?.at ?? 0) - woke).toBeLessThanOrEqual(1500)
    await rig.advance(60_000)
    expect(rig.dials).toHaveLength(2)
    await rig.finish()
  })

  it('the session that ran out during the night is known to be lost', async () => {
    const rig = await new Rig({ clientId: 'c', cleanStart: false, sessionExpiryInterval: 60 }).up()
    rig.behave = () => down
    await rig.cut()
    rig.clock.jump(hour)
    await rig.settle()
    expect(rig.seen('sessionlost')).toMatchObject([{ cause: 'expired' }])
    await rig.finish()
  })

  it('in the middle of the back-off: one attempt, no storm', async () => {
    const rig = await new Rig().up()
    rig.behave = () => down
    await rig.cut()
    await rig.advance(3500)
    const before = rig.dials.length
    rig.clock.jump(8 * hour)
    await rig.settle()
    expect(rig.dials).toHaveLength(before + 1)
    await rig.finish()
  })

  it('the program blocked for 30 s and the server dropped us: one reconnect, session resumed', async () => {
    const rig = await new Rig({ clientId: 'c', cleanStart: false, keepAlive: 10 }).up()
    rig.behave = () => welcoming({}, true)
    const publishing = rig.client.publish('t', 'x', { qos: 1 })
    rig.peer.answer = silence
    rig.peer.cut()
    rig.clock.jump(30_000)
    await rig.advance(1000)
    expect(rig.client.state).toBe('connected')
    expect((await publishing).reasonCode).toBe(0)
    expect(rig.dials).toHaveLength(2)
    await rig.finish()
  })

  it('timers two seconds late: no false alarm', async () => {
    const rig = await new Rig({ keepAlive: 10, pingTimeout: 5000 }).up()
    for (let round = 0; round < 40; round++) {
      await rig.advance(3000)
      rig.clock.jump(2000)
      await rig.settle()
    }
    expect(rig.seen('disconnect')).toEqual([])
    expect(rig.dials).toHaveLength(1)
    await rig.finish()
  })

  it('blocked for longer than everything, with a server that kept us: it is asked before it is given up', async () => {
    const rig = await new Rig({ keepAlive: 10, pingTimeout: 5000 }).up()
    for (let round = 0; round < 10; round++) {
      await rig.advance(4000)
      rig.clock.jump(60_000)
      await rig.advance(1500)
    }
    expect(rig.seen('disconnect')).toEqual([])
    await rig.finish()
  })
})
