import fc from 'fast-check'
import { expect, it } from 'vitest'
import { KeepAlive } from '../../../../src/client/session/keep-alive.js'

const interval = 30_000

/** What happens on a link, each after a pause in milliseconds. A `dribble` is bytes of a packet that is not whole. */
const events = fc.array(fc.tuple(fc.nat(25_000), fc.constantFrom('sent', 'dribble', 'pong', 'nothing')), { maxLength: 60 })

/** A connection on a perfect timer: what was seen, from which the promises are checked. */
class Link {
  now = 0
  lastSent = 0
  lastReceived = 0
  /** The PINGREQ without an answer, if any. */
  asked: number | undefined
  died: number | undefined
  readonly keepAlive: KeepAlive
  readonly #pingTimeout: number

  constructor(pingTimeout: number) {
    this.#pingTimeout = pingTimeout
    this.keepAlive = new KeepAlive(pingTimeout, interval / 1000, 0)
  }

  pass(until: number): void {
    while (this.died === undefined && this.keepAlive.deadline <= until) {
      expect(this.keepAlive.deadline).toBeGreaterThanOrEqual(this.now)
      this.now = this.keepAlive.deadline
      const verdict = this.keepAlive.handleTimeout(this.now)
      if (verdict === 'dead') this.#die()
      else {
        expect(verdict).toBe('ping')
        this.send()
        this.asked ??= this.now
        expect(this.keepAlive.deadline).toBeGreaterThan(this.now)
      }
    }
    this.now = until
  }

  send(): void {
    expect(this.now - this.lastSent, 'the server heard from us in time').toBeLessThanOrEqual(interval)
    this.lastSent = this.now
  }

  receive(): void {
    this.lastReceived = this.now
    this.keepAlive.received(this.now)
  }

  #die(): void {
    this.died = this.now
    expect(this.asked, 'nobody is given up unasked').toBeDefined()
    expect(this.now - (this.asked ?? 0), 'there was time to answer').toBeGreaterThanOrEqual(this.#pingTimeout)
    expect(this.now - this.lastReceived, 'there was silence').toBeGreaterThanOrEqual(this.#pingTimeout)
  }
}

it.each([10_000, 45_000])('on any traffic with a ping timeout of %i: heard in time, dead only after silence, and never later', (pingTimeout) => {
  fc.assert(
    fc.property(events, (history) => {
      const link = new Link(pingTimeout)
      for (const [pause, event] of history) {
        link.pass(link.now + pause)
        if (link.died !== undefined) return
        expect(link.now - link.lastReceived, 'silence was noticed').toBeLessThanOrEqual(interval + pingTimeout)
        if (event === 'sent') {
          link.send()
          link.keepAlive.sentAt = link.now
        } else if (event === 'dribble') link.receive()
        else if (event === 'pong') {
          link.receive()
          link.keepAlive.pong()
          link.asked = undefined
        }
      }
      link.pass(link.now + interval + pingTimeout)
      expect(link.died, 'silence is noticed').toBeDefined()
    }),
    { numRuns: 500 },
  )
})
