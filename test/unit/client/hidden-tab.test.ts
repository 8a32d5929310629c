/** Keep-alive in a hidden tab, whose timers run at whole minutes only, against a server that waits 1.5 times the keep-alive [MQTT-3.1.2-22]. */
import { describe, expect, it } from 'vitest'
import type { ClientEvents, ClientOptions } from '../../../src/client/options/index.js'
import type { CancelTimer, Platform } from '../../../src/client/platform.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { accepting, agreeable } from './harness.js'
import { publish } from './incoming.js'
import { Rig } from './rig.js'

const minute = 60_000
const halfAnHour = 30 * minute

/** A browser that holds back the timers of a page while it is hidden. */
class Tab {
  hidden = false
  readonly rig: Rig
  /** When each packet of the client came, over all connections. */
  readonly packets: { readonly at: number; readonly type: ClientPacket['type'] }[] = []
  /** Connections that the server ended because it heard nothing. */
  kicks = 0
  readonly #impatient: boolean

  /** `serverKeepAlive`: what CONNACK says. `impatient`: the server ends what is silent. */
  constructor(options: ClientOptions = {}, serverKeepAlive?: number, impatient = true) {
    this.#impatient = impatient
    const platform: Partial<Platform> = {
      setTimer: (callback, delay) => this.#setTimer(callback, delay),
      // Messages of ports are not held back.
      nextTurn: (callback) => void this.rig.clock.setTimer(callback, 0),
      hidden: () => this.hidden,
    }
    this.rig = new Rig(
      { clientId: 'tab', cleanStart: false, keepAlive: 30, ...options },
      { platform },
    )
    this.rig.behave = (_host, dial) => this.#serve(dial, serverKeepAlive)
  }

  /** Lets time pass, with a message of the server every so often. */
  async traffic(duration: number, every: number): Promise<void> {
    for (let passed = 0; passed < duration; passed += every) {
      await this.rig.advance(every)
      if (this.rig.peer.ended === undefined) this.rig.peer.send(publish('t', 'x'))
      await this.rig.settle()
    }
  }

  get losses(): number {
    return this.rig.seen('disconnect').length
  }

  /** The longest silence of the client so far, in milliseconds. */
  get longestSilence(): number {
    const times = [...this.packets.map(({ at }) => at), this.rig.clock.now()]
    return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? 0)))
  }

  pings(): number {
    return this.packets.filter(({ type }) => type === 'pingreq').length
  }

  #setTimer(callback: () => void, delay: number): CancelTimer {
    const { clock } = this.rig
    let cancel: CancelTimer = () => undefined
    const fire = (): void => {
      const wait = this.hidden ? (minute - (clock.now() % minute)) % minute : 0
      if (wait === 0) callback()
      else cancel = clock.setTimer(fire, wait)
    }
    cancel = clock.setTimer(fire, delay)
    return () => cancel()
  }

  #serve(dial: number, serverKeepAlive: number | undefined): Answer {
    let patience = Number.POSITIVE_INFINITY
    let cancel: CancelTimer = () => undefined
    const kick = (): void => {
      const peer = this.rig.peers[dial - 1]
      if (peer === undefined || peer.ended !== undefined) return
      this.kicks += 1
      peer.send({ type: 'disconnect', reasonCode: 0x8d })
      peer.end()
    }
    return (packet) => {
      this.packets.push({ at: this.rig.clock.now(), type: packet.type })
      if (packet.type === 'connect') patience = (serverKeepAlive ?? packet.keepAlive) * 1500
      cancel()
      if (packet.type !== 'disconnect' && this.#impatient)
        cancel = this.rig.clock.setTimer(kick, patience)
      if (packet.type !== 'connect') return agreeable(packet)
      return accepting({ serverKeepAlive }, dial > 1)(packet)
    }
  }
}

type Test = (tab: Tab) => Promise<unknown>

/** A tab that hides when it is connected, and the end of its client after the test. */
async function hiding(tab: Tab, test: Test): Promise<void> {
  await tab.rig.up()
  tab.hidden = true
  await test(tab)
  await tab.rig.finish()
}

/** A tab that connects while it is hidden. */
async function hidden(tab: Tab, test: Test): Promise<void> {
  tab.hidden = true
  await hiding(tab, test)
}

describe('a hidden tab, timers once a minute, keep-alive of 30 s', () => {
  it.each([1000, 5000, 14_000])('messages every %i ms: it stays [MQTT-3.1.2-20]', (every) =>
    hiding(new Tab(), async (tab) => {
      await tab.traffic(halfAnHour, every)
      expect([tab.kicks, tab.losses, tab.rig.dials.length]).toEqual([0, 0, 1])
      expect(tab.longestSilence).toBeLessThanOrEqual(30_000 + every)
      // No more of them than a page that is seen would send.
      expect(tab.pings()).toBeLessThanOrEqual(halfAnHour / 30_000)
    }),
  )

  it.each([0, 29_999, 59_999])(
    'nothing comes in, hidden %i ms after a whole minute: one reconnect',
    async (offset) => {
      const tab = new Tab()
      await tab.rig.advance(offset)
      await hiding(tab, async () => {
        await tab.rig.advance(halfAnHour)
        expect(tab.kicks).toBeLessThanOrEqual(1)
        expect([tab.rig.client.state, tab.losses]).toEqual(['connected', tab.rig.dials.length - 1])
        const asked = tab.rig.peers.map((peer) => peer.last('connect').keepAlive)
        expect(asked).toEqual([30, 180].slice(0, offset === 0 ? 2 : asked.length))
      })
    },
  )

  it('opened in the background: the server is asked to wait from the start, and nothing is lost or late', () =>
    hidden(new Tab(), async (tab) => {
      await tab.rig.advance(halfAnHour)
      expect(tab.rig.peer.last('connect').keepAlive).toBe(180)
      expect([tab.losses, late(tab)]).toEqual([0, []])
      expect(tab.longestSilence).toBeLessThanOrEqual(180_000 + minute)
    }))

  it.each([
    [300, 300],
    [false, 0],
  ] as const)('keepAlive: %s is left as it is', (keepAlive, asked) =>
    hidden(new Tab({ keepAlive }), async (tab) =>
      expect(tab.rig.peer.last('connect').keepAlive).toBe(asked),
    ),
  )

  it('PINGREQ leaves with the first message after it was due, once', () =>
    hiding(new Tab(), async (tab) => {
      for (const [duration, pings] of [
        [29_000, 0],
        [1000, 1],
        [29_000, 1],
      ] as const) {
        await tab.traffic(duration, 1000)
        expect(tab.pings()).toBe(pings)
      }
    }))
})

/** Events of late timers: when, how late, and beside which keep-alive. */
function late({ rig }: Tab): readonly (readonly number[])[] {
  return rig.events.flatMap(({ at, type, event }) =>
    type === 'late' ? [[at, ...Object.values(event as ClientEvents['late'])]] : [],
  )
}

describe('late timers are reported', () => {
  it('more than half of the keep-alive: one event for each such timer, with its lateness and the keep-alive', () =>
    hiding(new Tab(), async (tab) => {
      await tab.traffic(5 * minute, 1000)
      // Due after 30 s, and run after 60, when a message sends PINGREQ again: the next timer is for its answer, due after 10 s.
      const two = [minute, 30_000, 30, 2 * minute, 50_000, 30]
      expect(late(tab).slice(0, 2).flat()).toEqual(two)
      expect(late(tab).length).toBeLessThanOrEqual(5)
      expect(tab.losses).toBe(0)
    }))

  it('the server gives up before the timer runs: right before the connection ends', () =>
    hiding(new Tab(), async (tab) => {
      await tab.rig.advance(minute)
      expect([tab.kicks, late(tab)]).toEqual([1, [[45_000, 15_000, 30]]])
      expect(tab.rig.order.slice(tab.rig.order.indexOf('late')).slice(0, 3)).toEqual([
        'late',
        'state reconnecting',
        'disconnect',
      ])
    }))

  it.each([
    [14_999, 0],
    [15_000, 1],
    [10_000_000, 1],
  ])('a timer that is %i ms late, keep-alive 30 s: %i events', async (lateness, events) => {
    const rig = await new Rig({ keepAlive: 30 }).up()
    await rig.advance(29_999)
    rig.clock.jump(lateness + 1)
    await rig.settle()
    expect(rig.seen('late')).toEqual(events === 0 ? [] : [{ lateness, keepAlive: 30 }])
    await rig.finish()
  })

  it('a page that is seen, and a keep-alive that is off: no event', async () => {
    const seen = new Tab()
    await seen.rig.up()
    await seen.traffic(halfAnHour, 20_000)
    await seen.rig.finish()
    const off = new Tab({ keepAlive: false })
    await hiding(off, async () => {
      // The first byte of a packet, which has a deadline of its own.
      off.rig.peer.sendBytes([0x30])
      await off.rig.advance(10 * minute)
    })
    expect([late(seen), late(off)]).toEqual([[], []])
  })

  it.each<readonly [string, (tab: Tab) => Promise<void>]>([
    ['the timer runs', (tab) => tab.traffic(minute, minute)],
    ['the server says goodbye', (tab) => tab.rig.advance(minute)],
    ['the stream ends', (tab) => tab.rig.advance(46_000).then(() => tab.rig.cut())],
  ])('a listener ends or replaces the connection, as %s', async (how, after) => {
    for (const act of [
      (tab: Tab) => tab.rig.client.destroy(),
      (tab: Tab) => void tab.rig.client.reconnect({ force: true }),
    ]) {
      const tab = new Tab({}, undefined, how === 'the server says goodbye')
      tab.rig.client.on('late', () => act(tab), { once: true })
      await hiding(tab, async () => {
        await after(tab)
        expect(late(tab).length).toBe(1)
        expect(tab.rig.seen('disconnect').length).toBe(1)
        expect(tab.rig.peers[0]?.all('pingreq')).toEqual([])
      })
      expect(tab.rig.clock.pending).toBe(0)
    }
  })
})
