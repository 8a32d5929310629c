/** After a sleep: the link is trusted only when it answers. */
import { describe, expect, it } from 'vitest'
import { connected, connecting, connectPacket, reconnect, takeActions } from './drive.js'

const ping = [{ type: 'send', packet: { type: 'pingreq' } }]
const dead = [{ type: 'close', reasonCode: undefined, error: { code: 'ERR_KEEPALIVE_TIMEOUT', outcome: 'unknown' } }]

describe('a wake-up that the platform tells of', () => {
  it('sends PINGREQ at once, and gives the link 1.5 s for any byte', () => {
    const session = connected()
    session.probe(5000)
    expect(takeActions(session)).toEqual(ping)
    expect([session.keepAlive.probing, session.deadline]).toEqual([true, 6500])
    session.handleTimeout(6499)
    expect(takeActions(session)).toEqual([])
    session.handleTimeout(6500)
    expect(takeActions(session)).toMatchObject(dead)
    // Whoever redials knows that there is nothing to wait for.
    expect(session.keepAlive.probing).toBe(true)
  })

  it('any byte will do, whatever packet it is of', () => {
    const session = connected()
    session.probe(5000)
    takeActions(session)
    session.keepAlive.received(6499)
    expect(session.keepAlive.probing).toBe(false)
    session.handleTimeout(6500)
    expect(takeActions(session)).toEqual([])
    // The PINGREQ is still to be answered within the ping timeout.
    expect(session.deadline).toBe(16_499)
    session.handlePacket({ type: 'pingresp' }, 7000)
    expect(session.deadline).toBe(35_000)
  })

  it('a second one is no second question, and gives no more time', () => {
    const session = connected()
    session.probe(5000)
    session.probe(6000)
    expect(takeActions(session)).toEqual(ping)
    expect(session.deadline).toBe(6500)
  })

  it('works with keep-alive off', () => {
    const session = connected({}, {}, { keepAlive: 0 })
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
    session.probe(5000)
    expect(takeActions(session)).toEqual(ping)
    session.handleTimeout(6500)
    expect(takeActions(session)).toMatchObject(dead)
  })

  it('means nothing without a connection', () => {
    const before = connecting()
    before.probe(0)
    expect(takeActions(before)).toEqual([])
    const after = connected()
    after.suspend()
    after.probe(0)
    expect(takeActions(after)).toEqual([])
  })

  it('is forgotten with its connection', () => {
    const session = connected()
    session.probe(5000)
    reconnect(session)
    expect([session.keepAlive.probing, session.deadline]).toEqual([false, 30_000])
  })

  it('a PINGREQ that was not taken by the transport does not outlive the connection [MQTT-3.1.0-1]', () => {
    const session = connected()
    session.probe(5000)
    session.suspend()
    session.connect(connectPacket())
    expect(takeActions(session).map((action) => (action.type === 'send' ? action.packet.type : action.type))).toEqual(['connect'])
  })
})

describe('a timer that comes late', () => {
  it('by more than the keep-alive: probed once, not given up and not flooded', () => {
    const session = connected()
    // An hour went by.
    session.handleTimeout(3_600_000)
    expect(takeActions(session)).toEqual(ping)
    expect(session.deadline).toBe(3_601_500)
    session.keepAlive.received(3_600_100)
    session.handlePacket({ type: 'pingresp' }, 3_600_100)
    expect(takeActions(session)).toEqual([])
    expect(session.deadline).toBe(3_630_000)
  })

  it('a link that died meanwhile is found out 1.5 s after the wake-up', () => {
    const session = connected()
    session.handleTimeout(8 * 3_600_000)
    takeActions(session)
    session.handleTimeout(8 * 3_600_000 + 1500)
    expect(takeActions(session)).toMatchObject(dead)
  })

  it('also when a PINGREQ was outstanding as the machine fell asleep: its deadline says nothing about the peer', () => {
    const session = connected()
    session.handleTimeout(30_000)
    takeActions(session)
    session.handleTimeout(3_600_000)
    expect(takeActions(session)).toEqual(ping)
    expect(session.state).toBe('connected')
  })

  it('by less than the keep-alive is none: the usual PINGREQ, and the usual patience', () => {
    const session = connected()
    session.handleTimeout(32_000)
    expect(takeActions(session)).toEqual(ping)
    expect([session.keepAlive.probing, session.deadline]).toEqual([false, 42_000])
  })

  it('a probe whose answer is overdue by hours is a wake-up again', () => {
    const session = connected()
    session.probe(1000)
    takeActions(session)
    session.handleTimeout(3_600_000)
    expect(takeActions(session)).toEqual(ping)
    expect([session.state, session.deadline]).toEqual(['connected', 3_601_500])
  })

  it('what stood still with us begins anew: a transport that takes nothing has its whole time again', () => {
    const session = connected()
    session.keepAlive.blocked(true, 10_000)
    session.handleTimeout(3_600_000)
    expect(takeActions(session)).toEqual(ping)
    session.keepAlive.received(3_600_100)
    session.handlePacket({ type: 'pingresp' }, 3_600_100)
    // One keep-alive and the ping timeout from the wake-up, not from when it blocked.
    session.handleTimeout(3_630_000)
    expect([session.state, session.deadline]).toEqual(['connected', 3_640_000])
    session.keepAlive.received(3_639_999)
    session.handleTimeout(3_639_999)
    expect(session.state).toBe('connected')
    session.handleTimeout(3_640_000)
    expect(takeActions(session).at(-1)).toMatchObject({ ...dead[0], error: { message: expect.stringContaining('stopped reading') } })
  })

  it('and so has a packet that came in part', () => {
    const session = connected()
    session.keepAlive.partial(9, false, 10_000)
    session.handleTimeout(3_600_000)
    expect(takeActions(session)).toEqual(ping)
    for (let now = 3_601_000; now < 3_660_000; now += 1000) {
      session.keepAlive.sentAt = now
      session.keepAlive.received(now)
      session.handlePacket({ type: 'pingresp' }, now)
      session.handleTimeout(now)
    }
    expect([session.state, session.deadline]).toEqual(['connected', 3_660_000])
    session.handleTimeout(3_660_000)
    expect(session.state).toBe('closed')
  })
})
