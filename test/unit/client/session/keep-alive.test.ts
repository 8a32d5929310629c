import { describe, expect, it } from 'vitest'
import { KeepAlive } from '../../../../src/client/session/keep-alive.js'
import { connackPacket, connected, connecting, reconnect, takeActions } from './drive.js'

/** Keep-alive of 30 s and a ping timeout of 10 s, connected at time 0. */
function started(seconds = 30, pingTimeout = 10_000): KeepAlive {
  return new KeepAlive(pingTimeout, seconds, 0)
}

/** A PINGRESP comes in. */
function answer(keepAlive: KeepAlive, now: number): void {
  keepAlive.received(now)
  keepAlive.pong()
}

describe('PINGREQ (section 3.1.2.10)', () => {
  it('is due one keep-alive after CONNACK on an idle link, and again after each answer [MQTT-3.1.2-20]', () => {
    const keepAlive = started()
    for (const due of [30_000, 60_000, 90_000]) {
      expect(keepAlive.deadline).toBe(due)
      expect(keepAlive.handleTimeout(due - 1)).toBe('idle')
      expect(keepAlive.handleTimeout(due)).toBe('ping')
      answer(keepAlive, due + 5)
    }
  })

  it('is put off by traffic in both directions', () => {
    const keepAlive = started()
    keepAlive.sentAt = 20_000
    keepAlive.received(21_000)
    expect(keepAlive.deadline).toBe(50_000)
    expect(keepAlive.handleTimeout(49_999)).toBe('idle')
    expect(keepAlive.handleTimeout(50_000)).toBe('ping')
  })

  it('is sent on time while only the server sends', () => {
    const keepAlive = started()
    for (let now = 1000; now < 30_000; now += 1000) keepAlive.received(now)
    expect(keepAlive.deadline).toBe(30_000)
    expect(keepAlive.handleTimeout(30_000)).toBe('ping')
  })

  it('is sent on time while only we send, so that a dead link shows', () => {
    const keepAlive = started()
    for (let now = 1000; now < 30_000; now += 1000) keepAlive.sentAt = now
    expect(keepAlive.handleTimeout(30_000)).toBe('ping')
    for (let now = 31_000; now < 40_000; now += 1000) {
      keepAlive.sentAt = now
      expect(keepAlive.handleTimeout(now)).toBe('idle')
    }
    expect(keepAlive.handleTimeout(40_000)).toBe('dead')
  })

  it('is never sent with keep-alive 0, and nothing else times out either', () => {
    const keepAlive = started(0)
    keepAlive.blocked(true, 10)
    expect(keepAlive.deadline).toBe(Number.POSITIVE_INFINITY)
    expect(keepAlive.handleTimeout(1e12)).toBe('idle')
  })

  it.each([
    [60, { serverKeepAlive: 2 }, 2000],
    [0, { serverKeepAlive: 2 }, 2000],
    [60, {}, 60_000],
    [60, { serverKeepAlive: 0 }, Number.POSITIVE_INFINITY],
    [65_535, {}, 65_535_000],
  ])('our keep-alive %i, CONNACK %o: due after %i ms [MQTT-3.1.2-21] [MQTT-3.2.2-21]', (keepAlive, properties, due) => {
    expect(connected({}, properties, { keepAlive }).deadline).toBe(due)
  })

  it('a timer that comes late asks for one PINGREQ, and the next counts from there', () => {
    const keepAlive = started()
    expect(keepAlive.handleTimeout(200_000)).toBe('ping')
    expect(keepAlive.handleTimeout(200_000)).toBe('idle')
    answer(keepAlive, 200_010)
    expect(keepAlive.deadline).toBe(230_000)
  })

  it('timers that are always late ask once: what is silent after that is dead', () => {
    const keepAlive = started()
    expect(keepAlive.handleTimeout(120_000)).toBe('ping')
    expect(keepAlive.handleTimeout(180_000)).toBe('dead')
  })

  it('timers that are always late ask again where something came meanwhile', () => {
    const keepAlive = started()
    expect(keepAlive.handleTimeout(120_000)).toBe('ping')
    answer(keepAlive, 120_010)
    expect(keepAlive.handleTimeout(180_020)).toBe('ping')
  })

  it('a late PINGRESP restores the schedule without doubling it', () => {
    const keepAlive = started(5, 60_000)
    expect(keepAlive.handleTimeout(5000)).toBe('ping')
    expect(keepAlive.handleTimeout(10_000)).toBe('ping')
    answer(keepAlive, 14_000)
    answer(keepAlive, 14_000)
    expect(keepAlive.deadline).toBe(15_000)
    expect(keepAlive.handleTimeout(15_000)).toBe('ping')
    expect(keepAlive.handleTimeout(15_000)).toBe('idle')
  })

  it('of two that are under way the first answer says nothing of what was written between them', () => {
    const keepAlive = started()
    expect(keepAlive.handleTimeout(30_000)).toBe('ping')
    keepAlive.ask(30_001)
    answer(keepAlive, 30_002)
    expect(keepAlive.asked).toBe(true)
    // A server that answers both at once is not given up.
    expect(keepAlive.deadline).toBe(60_001)
    answer(keepAlive, 30_003)
    expect(keepAlive.asked).toBe(false)
  })

  it('an unasked PINGRESP changes nothing', () => {
    const keepAlive = started()
    keepAlive.pong()
    keepAlive.ask(0)
    expect(keepAlive.asked).toBe(true)
    keepAlive.pong()
    expect(keepAlive.deadline).toBe(30_000)
    expect(keepAlive.handleTimeout(30_000)).toBe('ping')
  })
})

describe('a dead link', () => {
  it('is given up one ping timeout after PINGREQ without a sign of life', () => {
    const keepAlive = started()
    expect(keepAlive.handleTimeout(30_000)).toBe('ping')
    expect(keepAlive.deadline).toBe(40_000)
    expect(keepAlive.handleTimeout(39_999)).toBe('idle')
    expect(keepAlive.handleTimeout(40_000)).toBe('dead')
  })

  it('a ping timeout above the keep-alive counts from the first PINGREQ that was not answered', () => {
    const keepAlive = started(5, 12_000)
    expect([5000, 10_000, 15_000].map((now) => keepAlive.handleTimeout(now))).toEqual(['ping', 'ping', 'ping'])
    expect(keepAlive.deadline).toBe(17_000)
    expect(keepAlive.handleTimeout(17_000)).toBe('dead')
  })

  it('bytes of a long packet count as life, and PINGREQ goes on in the middle of it', () => {
    const keepAlive = started(5, 3000)
    const verdicts = new Map<string, number[]>()
    for (let now = 1000; now <= 60_000; now += 1000) {
      keepAlive.received(now)
      const verdict = keepAlive.handleTimeout(now)
      verdicts.set(verdict, [...(verdicts.get(verdict) ?? []), now])
    }
    expect(verdicts.get('ping')).toEqual([5000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000, 40_000, 45_000, 50_000, 55_000, 60_000])
    expect(verdicts.get('dead')).toBeUndefined()
    expect(keepAlive.deadline).toBe(63_000)
    expect(keepAlive.handleTimeout(63_000)).toBe('dead')
  })

  it('a flood both ways that outlasts the keep-alive needs no PINGREQ and keeps the link', () => {
    const keepAlive = started()
    for (let now = 0; now <= 300_000; now += 100) {
      keepAlive.sentAt = now
      keepAlive.received(now)
      expect(keepAlive.handleTimeout(now)).toBe('idle')
    }
  })

  it('a transport that takes no bytes is given up after keep-alive and ping timeout, although the peer sends', () => {
    const keepAlive = started()
    keepAlive.blocked(true, 10_000)
    for (let now = 11_000; now < 50_000; now += 1000) {
      keepAlive.received(now)
      keepAlive.pong()
      keepAlive.sentAt = now
      expect(keepAlive.handleTimeout(now)).toBe('idle')
    }
    keepAlive.blocked(true, 49_000)
    expect(keepAlive.deadline).toBe(50_000)
    expect(keepAlive.handleTimeout(50_000)).toBe('blocked')
  })

  it('a transport that takes bytes again in time is kept', () => {
    const keepAlive = started()
    keepAlive.blocked(true, 10_000)
    keepAlive.blocked(false, 20_000)
    keepAlive.blocked(false, 20_000)
    expect(keepAlive.deadline).toBe(30_000)
    keepAlive.blocked(true, 25_000)
    answer(keepAlive, 60_000)
    keepAlive.sentAt = 60_000
    expect(keepAlive.deadline).toBe(65_000)
  })

  it('a transport that takes bytes now and then, though never all of them, is kept', () => {
    const keepAlive = started()
    keepAlive.blocked(true, 10_000)
    for (let now = 15_000; now < 335_000; now += 5000) {
      if (now < 300_000) keepAlive.took(now)
      answer(keepAlive, now)
      keepAlive.sentAt = now
      expect(keepAlive.handleTimeout(now)).toBe('idle')
    }
    expect(keepAlive.handleTimeout(335_000)).toBe('blocked')
  })

  it('what had to wait for the transport lies before PINGREQ: its answer gets a keep-alive more', () => {
    const keepAlive = started()
    keepAlive.blocked(true, 20_000)
    keepAlive.blocked(false, 29_000)
    expect(keepAlive.handleTimeout(30_000)).toBe('ping')
    keepAlive.sentAt = 35_000
    expect(keepAlive.handleTimeout(65_000)).toBe('ping')
    expect(keepAlive.deadline).toBe(29_000 + 30_000 + 10_000)
    expect(keepAlive.handleTimeout(69_000)).toBe('dead')
  })

  it('what a free buffer swallows proves nothing', () => {
    const keepAlive = started()
    for (let now = 1000; now < 30_000; now += 1000) {
      keepAlive.blocked(true, now)
      keepAlive.took(now + 50)
      keepAlive.blocked(false, now + 99)
      keepAlive.took(now + 500)
    }
    expect(keepAlive.handleTimeout(30_000)).toBe('ping')
    expect(keepAlive.deadline).toBe(40_000)
  })

  it('after a wake-up a transport that is blocked has a ping timeout to take bytes, one that is not 1.5 s to bring some', () => {
    const blocked = started()
    blocked.blocked(true, 10_000)
    blocked.probe(12_000)
    expect(blocked.deadline).toBe(22_000)
    blocked.took(14_000)
    expect(blocked.probing).toBe(false)
    const free = started()
    free.probe(12_000)
    expect(free.deadline).toBe(13_500)
  })

  it('is woken from a wake-up until the server answered and a moment has passed, and not by the wake-up of a connection before', () => {
    const session = connected()
    const { keepAlive } = session
    expect(keepAlive.woken(0)).toBe(false)
    keepAlive.probe(1000)
    expect([keepAlive.woken(1000), keepAlive.woken(9000)]).toEqual([true, true])
    keepAlive.received(1100)
    expect([keepAlive.woken(2500), keepAlive.woken(2501)]).toEqual([true, false])
    keepAlive.probe(3000)
    reconnect(session)
    expect(session.keepAlive.woken(3100)).toBe(false)
  })

  it('counts nothing of the connection before', () => {
    const session = connected()
    session.keepAlive.handleTimeout(30_000)
    session.keepAlive.blocked(true, 30_000)
    reconnect(session, true, { serverKeepAlive: 20 }, {}, 100_000)
    const { keepAlive } = session
    expect(keepAlive.deadline).toBe(120_000)
    expect(keepAlive.handleTimeout(119_999)).toBe('idle')
    expect(keepAlive.handleTimeout(120_000)).toBe('ping')
  })
})

describe('keep-alive of a session', () => {
  it('asks for PINGREQ at the time it named, and for nothing before', () => {
    const session = connected()
    expect(session.deadline).toBe(30_000)
    session.handleTimeout(29_999)
    expect(takeActions(session)).toEqual([])
    session.handleTimeout(30_000)
    expect(takeActions(session)).toEqual([{ type: 'send', packet: { type: 'pingreq' } }])
    session.keepAlive.received(30_020)
    session.handlePacket({ type: 'pingresp' }, 30_020)
    expect(session.deadline).toBe(60_000)
    expect(session.state).toBe('connected')
  })

  it('ends the connection as a keep-alive timeout, without DISCONNECT', () => {
    const session = connected()
    session.handleTimeout(30_000)
    takeActions(session)
    session.handleTimeout(40_000)
    expect(takeActions(session)).toMatchObject([
      { type: 'close', reasonCode: undefined, error: { code: 'ERR_KEEPALIVE_TIMEOUT', outcome: 'unknown' } },
    ])
    expect(session.state).toBe('closed')
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
    session.handleTimeout(80_000)
    expect(takeActions(session)).toEqual([])
  })

  it('ends the connection when the server stops reading, and says so', () => {
    const session = connected()
    session.keepAlive.blocked(true, 0)
    session.keepAlive.sentAt = 39_000
    session.keepAlive.received(39_000)
    session.handleTimeout(40_000)
    expect(takeActions(session)).toMatchObject([
      { type: 'close', reasonCode: undefined, error: { code: 'ERR_KEEPALIVE_TIMEOUT', message: 'the server stopped reading' } },
    ])
  })

  it('never times out before CONNACK', () => {
    const session = connecting()
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
    session.handleTimeout(1e9)
    expect(takeActions(session)).toEqual([])
    session.handlePacket(connackPacket(), 5000)
    expect(session.deadline).toBe(35_000)
  })
})
