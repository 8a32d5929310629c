import { describe, expect, it } from 'vitest'
import { KeepAlive } from '../../../../src/client/session/keep-alive.js'
import { connected, reconnect, takeActions } from './drive.js'

/** Keep-alive off, so that nothing but the incomplete packet is timed. */
function started(seconds = 0): KeepAlive {
  return new KeepAlive(10_000, seconds, 0)
}

describe('a packet that comes in part', () => {
  it('has 60 s, or twice the keep-alive where that is longer, from its first byte', () => {
    const keepAlive = started()
    keepAlive.partial(1, false, 5000)
    keepAlive.partial(2, false, 30_000)
    expect(keepAlive.deadline).toBe(65_000)
    expect([keepAlive.handleTimeout(64_999), keepAlive.handleTimeout(65_000)]).toEqual(['idle', 'slow'])
    // A timer that is late changes nothing.
    const late = started()
    late.partial(1, false, 5000)
    expect(late.handleTimeout(66_000)).toBe('slow')
    const patient = started(100)
    patient.partial(1, false, 0)
    for (let now = 1000; now < 200_000; now += 1000) {
      patient.sentAt = now
      patient.received(now)
      expect(patient.handleTimeout(now)).toBe('idle')
    }
    expect(patient.handleTimeout(200_000)).toBe('slow')
  })

  it('is not timed once it is complete, nor is anything where no packet was begun', () => {
    const keepAlive = started()
    keepAlive.partial(0, true, 1)
    expect(keepAlive.deadline).toBe(Number.POSITIVE_INFINITY)
    keepAlive.partial(9, false, 1000)
    keepAlive.partial(0, true, 50_000)
    expect(keepAlive.deadline).toBe(Number.POSITIVE_INFINITY)
    expect(keepAlive.handleTimeout(1e9)).toBe('idle')
  })

  it('nor after a wake-up', () => {
    const keepAlive = started(60)
    expect(keepAlive.handleTimeout(1_000_000)).toBe('ping')
    keepAlive.pong()
    for (let now = 1_001_000; now < 1_300_000; now += 1000) {
      keepAlive.sentAt = now
      keepAlive.received(now)
      expect(keepAlive.handleTimeout(now)).toBe('idle')
    }
  })

  it('each has its own time: the end of one is the beginning of the next', () => {
    const keepAlive = started()
    keepAlive.partial(9, false, 0)
    keepAlive.partial(3, true, 50_000)
    expect(keepAlive.deadline).toBe(110_000)
    expect([keepAlive.handleTimeout(60_000), keepAlive.handleTimeout(110_000)]).toEqual(['idle', 'slow'])
  })

  it('may take longer while 1 KiB a second comes, and not when that stops', () => {
    const keepAlive = started()
    keepAlive.partial(0, false, 0)
    keepAlive.partial(1, false, 0)
    keepAlive.partial(1 + 60 * 1024, false, 59_000)
    expect(keepAlive.handleTimeout(60_000)).toBe('idle')
    expect(keepAlive.deadline).toBe(120_000)
    keepAlive.partial(1 + 120 * 1024 - 1, false, 119_000)
    expect(keepAlive.handleTimeout(120_000)).toBe('slow')
  })

  it('PINGREQ goes on meanwhile', () => {
    const keepAlive = started(30)
    keepAlive.partial(1, false, 0)
    expect(keepAlive.handleTimeout(30_000)).toBe('ping')
    for (const now of [35_000, 44_000, 53_000]) keepAlive.received(now)
    keepAlive.partial(100_000, false, 59_000)
    keepAlive.received(59_000)
    expect(keepAlive.handleTimeout(60_000)).toBe('ping')
    expect(keepAlive.handleTimeout(60_000)).toBe('idle')
  })

  it('is forgotten with its connection', () => {
    const session = connected({}, {}, { keepAlive: 0 })
    session.keepAlive.partial(9, false, 0)
    reconnect(session, false, {}, { keepAlive: 0 })
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
  })

  it('ends a session as a keep-alive timeout, without DISCONNECT', () => {
    const session = connected({}, {}, { keepAlive: 0 })
    session.keepAlive.partial(9, false, 0)
    expect(session.deadline).toBe(60_000)
    session.handleTimeout(60_000)
    expect(takeActions(session)).toMatchObject([{ type: 'close', reasonCode: undefined, error: { code: 'ERR_KEEPALIVE_TIMEOUT' } }])
  })
})
