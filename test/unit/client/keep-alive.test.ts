/** Keep-alive of a client, over what `session/keep-alive.test.ts` shows of the session alone; in a hidden tab, and in a page that comes back. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/browser.js'
import type { ClientEvents, ClientOptions } from '../../../src/client/options/index.js'
import type { CancelTimer, Platform } from '../../../src/client/platform.js'
import { type Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { willing } from './across.js'
import { accepting, agreeable, connected, failure, type World } from './harness.js'
import { agreed, publish } from './incoming.js'
import { Rig } from './rig.js'
import { StalledTransport } from './stalled-transport.js'
import { over, settled } from './steps.js'

const pings = (world: World): number => world.peer.all('pingreq').length

/** What happens in each of so many seconds. */
async function everySecond(world: World, seconds: number, act: () => unknown): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await world.clock.advance(1000)
    await act()
  }
}

it.each([
  [60, 5, 10],
  [60, 1, 50],
  [10, 0, 0],
  [0, undefined, 0],
  [false, undefined, 0],
] as const)(
  '%s s, the server %s s: %i in 50 s [MQTT-3.1.2-21]',
  async (keepAlive, serverKeepAlive, count) => {
    const world = await connected({ keepAlive }, willing(false, { serverKeepAlive }))
    expect(world.peer.last('connect').keepAlive).toBe(Number(keepAlive))
    await world.clock.advance(50_000)
    expect(pings(world)).toBe(count)
    if (count > 0) return
    await world.clock.advance(10 * 3_600_000)
    expect([pings(world), world.client.state, world.clock.pending]).toEqual([0, 'connected', 0])
  },
)

it.each(['nothing else', 'calls that send nothing'])(
  'what comes in, and %s [MQTT-3.1.2-20]',
  async (what) => {
    const world = await agreed({ keepAlive: 10 })
    await everySecond(world, 35, async () => {
      await world.send(publish('a', 'x'))
      if (what !== 'nothing else') await settled(world, world.client.flush())
    })
    expect(pings(world)).toBe(3)
  },
)

it('no PINGRESP: closed as keep-alive timeout after pingTimeout, everything pending settles', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 4000 })
  const publishing = failure(world.client.publish('a', 'b', { qos: 1 }))
  await world.clock.advance(13_999)
  expect([pings(world), world.client.state]).toEqual([1, 'connected'])
  await world.clock.advance(1)
  expect(world.client.state).toBe('closed')
  const cause = await world.client.closed
  expect(cause).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT', fault: 'remote' })
  expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
  expect(await publishing).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT', outcome: 'unknown' })
  expect(world.peer.ended).toBeDefined()
  expect(world.clock.pending).toBe(0)
})

it('a packet that takes longer than the keep-alive: PINGREQs go out meanwhile, its bytes are life', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 5000 })
  const subscription = world.client.subscription('a')
  await world.sendBytes([0x30, 44, 0, 1, 0x61, 0])
  await everySecond(world, 40, () => world.sendBytes([0x78]))
  expect(pings(world)).toBeGreaterThanOrEqual(3)
  expect([world.client.state, subscription.read()?.text()]).toEqual(['connected', 'x'.repeat(40)])
})

it('a peer that stops reading: given up after keep-alive and pingTimeout, even if it still sends', async () => {
  const transport = new StalledTransport(200)
  const options = { keepAlive: 10, pingTimeout: 5000 }
  const world = await over(transport, () => transport.feed('20 03 00 00 00'), options)
  const publishing = failure(world.client.publish('a', new Uint8Array(1000), { qos: 1 }))
  await world.settle()
  const waiting = failure(world.client.publish('a', 'b'))
  await everySecond(world, 16, () => transport.destroyed ?? transport.feed('30 04 00 01 61 00'))
  await world.settle()
  expect(transport.destroyed).toBeDefined()
  expect(await world.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT' })
  expect((await publishing).outcome).toBe('unknown')
  expect((await waiting).outcome).toBe('not-sent')
  expect(world.clock.pending).toBe(0)
})

it('a pingTimeout over half the keep-alive that is in force: half of it counts, logged once where it was asked for', async () => {
  const lines: string[] = []
  const logger = { warn: (line: string) => void lines.push(line) }
  const asked = await connected({ keepAlive: 10, pingTimeout: 60_000, logger })
  expect(asked.client.negotiated?.pingTimeout).toBe(5000)
  expect(lines.splice(0)).toEqual([expect.stringContaining('5000 ms') as string])
  await asked.clock.advance(15_000)
  expect(await asked.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT' })
  for (const pingTimeout of [undefined, 5000]) {
    const world = await connected({ keepAlive: 10, pingTimeout, logger }, accepting())
    expect([world.client.negotiated?.pingTimeout, lines]).toEqual([5000, []])
  }
})

it('a PINGRESP without a PINGREQ is no round trip', async () => {
  const world = await connected({ stats: true, keepAlive: false })
  await world.clock.advance(5000)
  await world.send({ type: 'pingresp' })
  expect(world.client.stats().pingRoundTrip).toBeUndefined()
})

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

/** A page, as far as its events go. */
function page() {
  const listeners = new Map<string, Set<(event: object) => void>>()
  const target = (name: string) => ({
    addEventListener: (type: string, listener: () => void) => {
      const key = `${name} ${type}`
      listeners.set(key, (listeners.get(key) ?? new Set()).add(listener))
    },
    removeEventListener: (type: string, listener: () => void) =>
      void listeners.get(`${name} ${type}`)?.delete(listener),
  })
  const document = { ...target('document'), visibilityState: 'visible' }
  const fire = (name: string, more: object = {}): void => {
    for (const listener of listeners.get(name) ?? [])
      listener({ type: name.split(' ')[1], ...more })
  }
  const count = () => [...listeners.values()].reduce((sum, { size }) => sum + size, 0)
  return { document, window: target('window'), fire, count }
}

describe('the client for browsers finds out that a page is back: on a network, on the screen, or from a freeze', () => {
  let shown: ReturnType<typeof page>

  beforeEach(() => {
    shown = page()
    vi.stubGlobal('document', shown.document)
    for (const [name, value] of Object.entries(shown.window)) vi.stubGlobal(name, value)
  })
  afterEach(() => vi.unstubAllGlobals())

  async function inPage(): Promise<{ client: Client; peer: ScriptedPeer }> {
    const [near, far] = memoryPair()
    const peer = new ScriptedPeer(far, 5, agreeable)
    const client = new Client({ url: 'mqtt://memory', transport: () => near }, { reconnect: false })
    await client.connect()
    return { client, peer }
  }

  it.each([
    ['window online', {}],
    ['window pageshow', { persisted: true }],
    ['document visibilitychange', {}],
    ['document resume', {}],
  ])('%s: the server is asked at once whether it is there', async (name, more) => {
    const { client, peer } = await inPage()
    shown.fire(name, more)
    await vi.waitFor(() => expect(peer.all('pingreq')).toHaveLength(1))
    client.destroy()
  })

  it('a page that is shown for the first time, or is hidden, asks nothing; nor does one whose client is over listen', async () => {
    const { client, peer } = await inPage()
    shown.fire('window pageshow', { persisted: false })
    shown.document.visibilityState = 'hidden'
    shown.fire('document visibilitychange')
    await client.publish('t', 'x', { qos: 1 })
    expect(peer.received.map(({ type }) => type)).toEqual(['connect', 'publish'])
    client.destroy()
    await client.closed
    expect(shown.count()).toBe(0)
  })
})
