import { describe, expect, it } from 'vitest'
import type { Action } from '../../../../src/client/session/actions.js'
import { KeepAlive } from '../../../../src/client/session/keep-alive.js'
import { connackPacket, connected, connecting, type Driven } from './drive.js'

/** What can be told to a keep-alive at a time. */
const calls: Record<string, (keepAlive: KeepAlive, now: number, bytes: number) => unknown> = {
  at: (keepAlive, now) => keepAlive.handleTimeout(now),
  deadline: (keepAlive) => keepAlive.deadline / 1000,
  probing: (keepAlive) => keepAlive.probing,
  asked: (keepAlive) => keepAlive.asked,
  woken: (keepAlive, now) => keepAlive.woken(now),
  sent: (keepAlive, now) => void Object.assign(keepAlive, { sentAt: now }),
  received: (keepAlive, now) => keepAlive.received(now),
  unread: (keepAlive, now) => keepAlive.handleUnread(now),
  pong: (keepAlive) => keepAlive.pong(),
  ask: (keepAlive, now) => keepAlive.ask(now),
  probe: (keepAlive, now) => keepAlive.probe(now),
  blocked: (keepAlive, now) => keepAlive.blocked(true, now),
  free: (keepAlive, now) => keepAlive.blocked(false, now),
  took: (keepAlive, now) => keepAlive.took(now),
  /** So many bytes of a packet that goes on; or of the next one, as another has come to its end. */
  part: (keepAlive, now, bytes) => keepAlive.partial(bytes, false, now),
  next: (keepAlive, now, bytes) => keepAlive.partial(bytes, true, now),
}

/** Keep-alive of 30 s and a ping timeout of 10 s, connected at time 0. */
const started = (seconds = 30, pingTimeout = 10_000) => new KeepAlive(pingTimeout, seconds, 0)

/** Plays `calls time = what it says`, between semicolons, times in seconds. `5-60/5 sent+received` does so from 5 to 60, each 5 s, and nothing is due. */
function play(script: string, keepAlive = started()): void {
  const say = (names: string, now: number, bytes: number): unknown =>
    names
      .split('+')
      .map((name) => calls[name]?.(keepAlive, now, bytes))
      .at(-1)
  for (const line of script.split(/[;\n]/).map((text) => text.trim())) {
    const [call = '', expected = 'undefined'] = line.split(' = ')
    const [first = '', second = '', bytes] = call.split(' ')
    const [, from, to, step] = (/^(\d+)-(\d+)(?:\/([\d.]+))?$/.exec(first) ?? []).map(Number)
    if (from === undefined || to === undefined) {
      if (first !== '')
        expect(`${call} = ${say(first, Math.round(Number(second) * 1000), Number(bytes))}`).toBe(
          `${call} = ${expected}`,
        )
    } else
      for (let now = from * 1000; now <= to * 1000; now += (step || 1) * 1000) {
        say(second, now, 0)
        expect(`${keepAlive.handleTimeout(now)} at ${now}`).toBe(`idle at ${now}`)
      }
  }
}

describe('PINGREQ', () => {
  it('is due one keep-alive after CONNACK on an idle link, and again after each answer [MQTT-3.1.2-20]', () => {
    play(`
      deadline = 30; at 29.999 = idle; at 30 = ping; received+pong 30.005; deadline = 60
      at 59.999 = idle; at 60 = ping; received+pong 60.005; deadline = 90; at 89.999 = idle
      at 90 = ping`)
  })

  it('is put off by traffic in both directions, not by what only the server sends', () => {
    play('sent 20; received 21; deadline = 50; at 49.999 = idle; at 50 = ping')
    play('1-29 received; deadline = 30; at 30 = ping')
  })

  it('is sent on time while only we send, so that a dead link shows', () => {
    play('1-29 sent; at 30 = ping; 31-39 sent; at 40 = dead')
  })

  it('is never sent with keep-alive 0, and nothing else times out either', () => {
    play('blocked 0.01; deadline = Infinity; at 1000000000 = idle', started(0))
  })

  it.each([
    [60, { serverKeepAlive: 2 }, 2000],
    [0, { serverKeepAlive: 2 }, 2000],
    [60, {}, 60_000],
    [60, { serverKeepAlive: 0 }, Number.POSITIVE_INFINITY],
    [65_535, {}, 65_535_000],
  ])('%i, CONNACK %o: %i ms [MQTT-3.1.2-21] [MQTT-3.2.2-21]', (keepAlive, properties, due) => {
    expect(connected({}, properties, { keepAlive }).deadline).toBe(due)
  })

  it('is asked for once by a timer that comes late, and the next counts from there', () => {
    play('at 200 = ping; at 200 = idle; received+pong 200.01; deadline = 230')
  })

  it('a late PINGRESP restores the schedule without doubling it', () => {
    const script =
      'at 5 = ping; at 10 = ping; received+pong 14; received+pong 14; deadline = 15; at 15 = ping; at 15 = idle'
    play(script, started(5, 60_000))
  })

  it('of two that are under way the first answer says nothing of what was written between them', () => {
    // A server that answers both at once is not given up.
    play(`
      at 30 = ping; ask 30.001; received+pong 30.002; asked = true; deadline = 60.001
      received+pong 30.003; asked = false`)
  })
})

describe('a dead link', () => {
  it('is given up one ping timeout after PINGREQ without a sign of life', () => {
    play('at 30 = ping; deadline = 40; at 39.999 = idle; at 40 = dead')
  })

  it('a ping timeout above the keep-alive counts from the first PINGREQ that was not answered', () => {
    play('at 5 = ping; at 10 = ping; at 15 = ping; deadline = 17; at 17 = dead', started(5, 12_000))
  })

  it('a transport that takes no bytes is given up after keep-alive and ping timeout, although the peer sends', () => {
    play('blocked 10; 11-49 received+pong+sent; blocked 49; deadline = 50; at 50 = blocked')
  })

  it('a transport that takes bytes again in time is kept', () => {
    play(`
      blocked 10; free 20; free 20; deadline = 30; blocked 25; received+pong 60; sent 60
      deadline = 65`)
  })

  it('a transport that takes bytes now and then, though never all of them, is kept', () => {
    play(`
      blocked 10; 15-295/5 took+received+pong+sent; 300-330/5 received+pong+sent; at 335 = blocked`)
  })

  it('what had to wait for the transport lies before PINGREQ: its answer gets a keep-alive more', () => {
    play('blocked 20; free 29; at 30 = ping; sent 35; at 65 = ping; deadline = 69; at 69 = dead')
  })

  it('what a free buffer swallows proves nothing', () => {
    const swallowed = (at: number) => `blocked ${at}; took ${at}.05; free ${at}.099; took ${at}.5`
    play(
      `${Array.from({ length: 29 }, (_, at) => swallowed(at + 1)).join(';')}; at 30 = ping; deadline = 40`,
    )
  })

  it('after a wake-up a transport that is blocked has a ping timeout to take bytes, one that is not 1.5 s to bring some', () => {
    play('blocked 10; probe 12; deadline = 22; took 14; probing = false')
    play('probe 12; deadline = 13.5')
  })

  it('is woken from a wake-up until the server answered and a moment has passed, and not by the wake-up of a connection before', () => {
    const session = connected()
    const script =
      'woken 0 = false; probe 1; woken 1 = true; woken 9 = true; received 1.1; woken 2.5 = true; woken 2.501 = false; probe 3'
    play(script, session.keepAlive)
    session.reconnect()
    play('woken 3.1 = false', session.keepAlive)
  })

  it('counts nothing of the connection before', () => {
    const session = connected()
    play('at 30 = ping; blocked 30', session.keepAlive)
    session.reconnect(true, { serverKeepAlive: 20 }, {}, 100_000)
    play('deadline = 120; at 119.999 = idle; at 120 = ping', session.keepAlive)
  })
})

/** With keep-alive off nothing else is timed. */
describe('a packet that comes in part', () => {
  it('has 60 s, or twice the keep-alive where that is longer, from its first byte', () => {
    play('part 5 1; part 30 2; deadline = 65; at 64.999 = idle; at 65 = slow', started(0))
    // A timer that is late changes nothing.
    play('part 5 1; at 66 = slow', started(0))
    play('part 0 1; 1-199 sent+received; at 200 = slow', started(100))
  })

  it('is not timed once it is complete, nor is anything where no packet was begun, nor after a wake-up', () => {
    play('next 0.001 0; unread 5; deadline = Infinity', started(0))
    play('part 1 9; next 50 0; deadline = Infinity; at 1000000 = idle', started(0))
    play('at 1000 = ping; pong; 1001-1299 sent+received', started(60))
  })

  it('each has its own time: the end of one is the beginning of the next', () => {
    play('part 0 9; next 50 3; deadline = 110; at 60 = idle; at 110 = slow', started(0))
  })

  it('may take longer while 1 KiB a second comes, and not when that stops', () => {
    const [first, second] = [1 + 60 * 1024, 1 + 120 * 1024 - 1]
    play(
      `
      part 0 0; part 0 1; part 59 ${first}; at 60 = idle; deadline = 120; part 119 ${second}
      at 120 = slow`,
      started(0),
    )
  })

  it('PINGREQ goes on meanwhile', () => {
    play(`
      part 0 1; at 30 = ping; received 35; received 44; received 53; part 59 100000; received 59
      at 60 = ping; at 60 = idle`)
  })

  it('is forgotten with its connection; ends a session as a keep-alive timeout, without DISCONNECT', () => {
    const session = connected({}, {}, { keepAlive: 0 })
    session.keepAlive.partial(9, false, 0)
    session.reconnect(false, {}, { keepAlive: 0 })
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
    session.keepAlive.partial(9, false, 0)
    expect(timedOut(session, 60_000)).toMatchObject(dead)
  })
})

const ping = [{ type: 'send', packet: { type: 'pingreq' } }]
const error = { code: 'ERR_KEEPALIVE_TIMEOUT', outcome: 'unknown' }
const dead = [{ type: 'close', reasonCode: undefined, error }]
const stopped = { ...error, message: 'the server stopped reading' }
const stoppedReading = [{ type: 'close', reasonCode: undefined, error: stopped }]

/** What a session asks for at this time. */
function timedOut(session: Driven, now: number): Action[] {
  session.handleTimeout(now)
  return session.takeActions()
}

/** PINGRESP comes in: when something is due next. */
function answered(session: Driven, now: number): number {
  session.keepAlive.received(now)
  session.handlePacket({ type: 'pingresp' }, now)
  return session.deadline
}

describe('keep-alive of a session', () => {
  it('asks for PINGREQ at the time it named, and for nothing before', () => {
    const session = connected()
    expect(session.deadline).toBe(30_000)
    expect([timedOut(session, 29_999), timedOut(session, 30_000)]).toEqual([[], ping])
    expect([answered(session, 30_020), session.state]).toEqual([60_000, 'connected'])
  })

  it('ends the connection as a keep-alive timeout, without DISCONNECT', () => {
    const session = connected()
    expect([timedOut(session, 30_000), timedOut(session, 40_000)]).toMatchObject([ping, dead])
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY)
    expect([session.state, timedOut(session, 80_000)]).toEqual(['closed', []])
  })

  it('ends the connection when the server stops reading, and says so', () => {
    const session = connected()
    session.keepAlive.blocked(true, 0)
    play('sent+received 39', session.keepAlive)
    expect(timedOut(session, 40_000)).toMatchObject(stoppedReading)
  })

  it('never times out before CONNACK', () => {
    const session = connecting()
    expect([session.deadline, timedOut(session, 1e9)]).toEqual([Number.POSITIVE_INFINITY, []])
    session.handlePacket(connackPacket(), 5000)
    expect(session.deadline).toBe(35_000)
  })
})

describe('a wake-up that the platform reports', () => {
  it.each([30, 0])('sends PINGREQ, and has 1.5 s for any byte: keep-alive %i', (keepAlive) => {
    const session = connected({}, {}, { keepAlive })
    session.probe(5000)
    expect([session.takeActions(), session.deadline]).toEqual([ping, 6500])
    expect(session.keepAlive.probing).toBe(true)
    expect([timedOut(session, 6499), timedOut(session, 6500)]).toMatchObject([[], dead])
    // What redials knows that there is nothing to wait for.
    expect(session.keepAlive.probing).toBe(true)
  })

  it('any byte will do, whatever packet it is of; a second wake-up is no second question, and gives no more time', () => {
    const session = connected()
    session.probe(5000)
    session.probe(6000)
    expect([session.takeActions(), session.deadline]).toEqual([ping, 6500])
    session.keepAlive.received(6499)
    // The PINGREQ is still to be answered within the ping timeout.
    expect(session.keepAlive.probing).toBe(false)
    expect([timedOut(session, 6500), session.deadline]).toEqual([[], 16_499])
    session.handlePacket({ type: 'pingresp' }, 7000)
    expect(session.deadline).toBe(35_000)
  })

  it('means nothing without a connection', () => {
    for (const session of [connecting(), connected().play('suspend')]) {
      session.probe(0)
      expect(session.takeActions()).toEqual([])
    }
  })

  it('is forgotten with its connection, as is a PINGREQ that the transport did not take [MQTT-3.1.0-1]', () => {
    const session = connected()
    session.probe(5000)
    session.reconnect()
    expect([session.keepAlive.probing, session.deadline]).toEqual([false, 30_000])
  })
})

describe('a timer that comes late', () => {
  const hour = 3_600_000

  it('by more than the keep-alive: probed once, not given up and not flooded', () => {
    const session = connected()
    expect([timedOut(session, hour), session.deadline]).toEqual([ping, hour + 1500])
    expect([answered(session, hour + 100), session.takeActions()]).toEqual([hour + 30_000, []])
  })

  it('a link that died meanwhile is found out 1.5 s after the wake-up', () => {
    const session = connected()
    expect(timedOut(session, 8 * hour)).toEqual(ping)
    expect(timedOut(session, 8 * hour + 1500)).toMatchObject(dead)
  })

  it.each([false, true])('also with a PINGREQ on its way into the sleep (probe %s)', (probe) => {
    const session = connected()
    if (probe) session.probe(1000)
    else session.handleTimeout(30_000)
    session.takeActions()
    expect(timedOut(session, hour)).toEqual(ping)
    expect([session.state, session.deadline]).toEqual(['connected', hour + 1500])
  })

  it('by less than the keep-alive is none: the usual PINGREQ, and the usual patience', () => {
    const session = connected()
    expect([timedOut(session, 32_000), session.deadline]).toEqual([ping, 42_000])
    expect(session.keepAlive.probing).toBe(false)
  })

  it('what stood still with us begins again: a transport that takes nothing has its whole time', () => {
    const session = connected()
    session.keepAlive.blocked(true, 10_000)
    expect(timedOut(session, hour)).toEqual(ping)
    answered(session, hour + 100)
    // One keep-alive and the ping timeout from the wake-up, not from when it blocked.
    timedOut(session, hour + 30_000)
    expect([session.state, session.deadline]).toEqual(['connected', hour + 40_000])
    session.keepAlive.received(hour + 39_999)
    timedOut(session, hour + 39_999)
    expect(session.state).toBe('connected')
    expect(timedOut(session, hour + 40_000)).toMatchObject(stoppedReading)
  })

  it('and so has a packet that came in part', () => {
    const session = connected()
    session.keepAlive.partial(9, false, 10_000)
    expect(timedOut(session, hour)).toEqual(ping)
    for (let now = hour + 1000; now < hour + 60_000; now += 1000) {
      play(`sent ${now / 1000}`, session.keepAlive)
      answered(session, now)
      timedOut(session, now)
    }
    expect([session.state, session.deadline]).toEqual(['connected', hour + 60_000])
    timedOut(session, hour + 60_000)
    expect(session.state).toBe('closed')
  })
})
