import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/options/index.js'
import { agreeable, failure } from './harness.js'
import { agreed, publish, quiet } from './incoming.js'
import { down, lost, reconnect, rigged, story, up, welcoming, within } from './rig.js'

it('reconnect(), while up: nothing happens, ten times over', async () => {
  const rig = await up()
  const before = rig.events.length
  await Promise.all([...Array.from({ length: 10 }, () => rig.client.reconnect()), rig.settle()])
  await rig.advance(20_000)
  expect([rig.dials.length, rig.events.length, rig.peer.ended]).toEqual([1, before, undefined])
})

it('reconnect(), force: the old link is closed in order, a new one comes at once, the session is resumed', async () => {
  const rig = await up({ clientId: 'c' })
  const old = rig.peer
  rig.behave = () => welcoming({}, true)
  const forced = rig.client.reconnect({ force: true, reason: 'new network' })
  await rig.settle()
  old.end()
  await within(rig, 0, forced)
  expect(story(rig)).toMatchObject({ state: 'connected', times: [0, 0] })
  expect(old.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0 })
  expect(old.ended).toEqual({ cause: undefined })
  expect(rig.peer.last('connect')).toMatchObject({ cleanStart: false, clientId: 'c' })
  expect(rig.seen('disconnect')).toEqual([{ cause: undefined, reason: 'new network' }])
  expect([...rig.seen('serverdisconnect'), ...rig.seen('sessionlost')]).toEqual([])
  expect(rig.seen('reconnecting')).toHaveLength(1)
})

it.each([1, 2] as const)(
  'reconnect(), force: acks of QoS %i leave on the new link',
  async (qos) => {
    const rig = await up({ clientId: 'c', cleanStart: false })
    const subscription = await within(rig, 0, rig.client.subscribe('t', { qos, ack: 'manual' }))
    const old = rig.peer
    const messages = (dup: boolean) =>
      [1, 2, 3].map((id) => publish('t', `${id}`, id, { qos, dup }))
    old.send(...messages(false))
    await rig.settle()
    const [first, second] = [subscription.read(), subscription.read(), subscription.read()]
    rig.behave = () => welcoming({}, true)
    const forced = rig.client.reconnect({ force: true })
    await rig.settle()
    expect(old.received.at(-1)?.type).toBe('disconnect')
    expect([first?.ack(), second?.ack()]).toEqual([true, true])
    await within(rig, 1500, forced)
    expect(old.received.at(-1)?.type).toBe('disconnect')
    rig.peer.send(...messages(true))
    await rig.settle()
    const type = qos === 1 ? 'puback' : 'pubrec'
    const acks = [1, 2].map((packetId) => ({ type, packetId, reasonCode: 0 }))
    expect(rig.peer.received.slice(1)).toMatchObject(acks)
  },
)

it('reconnect(), force, also twice: one new connection; a server that does not end its side is not waited for', async () => {
  const rig = await up()
  const options = [{ force: true }, { force: true }, {}]
  await within(rig, 1500, Promise.all(options.map((each) => rig.client.reconnect(each))))
  expect(story(rig)).toMatchObject({ hosts: 'aa', open: 1, lost: [undefined] })
})

it('reconnect(), force right after a forced one came up replaces that too: no second stream is ever open', async () => {
  const rig = await up()
  const open: number[] = []
  rig.client.on('dial', () => open.push(rig.open))
  for (let round = 0; round < 5; round++)
    await within(rig, 1500, rig.client.reconnect({ force: true }))
  expect([rig.dials.length, Math.max(...open)]).toEqual([6, 0])
})

it('reconnect(), while it waits: tries now, and joins', async () => {
  const rig = await lost((_host, dial) => (dial < 6 ? down : agreeable), 15_100)
  expect(rig.dials).toHaveLength(5)
  const { client } = rig
  await within(rig, 0, Promise.all([client.reconnect(), client.reconnect(), client.connect()]))
  await rig.advance(40_000)
  expect(story(rig)).toMatchObject({ hosts: 'aaaaaa', state: 'connected' })
})

it('reconnect(), while an attempt is under way: joins that, however often', async () => {
  const rig = await lost(() => 'hang', 1500)
  for (let index = 0; index < 50; index++) failure(rig.client.reconnect())
  await rig.advance(1000)
  expect(rig.dials).toHaveLength(2)
})

it('reconnect(), rejects with what ended the client meanwhile', async () => {
  const rig = await lost(() => down, 0, { reconnect: { ...reconnect, maxAttempts: 3 } })
  const joined = await within(rig, 60_000, failure(rig.client.reconnect()))
  expect(joined.code).toBe('ERR_RETRIES_EXHAUSTED')
  expect((await failure(rig.client.reconnect())).code).toBe('ERR_CLOSED')
})

describe('reconnect() inside events', () => {
  it.each(['disconnect', 'state', 'connecterror', 'reconnecting'] as const)(
    'in %s: at once',
    async (type) => {
      const rig = await up({ connectTimeout: 5000 })
      await rig.advance(60_000)
      if (type === 'connecterror') rig.behave = (_host, dial) => (dial === 2 ? 'hang' : agreeable)
      const promises: Promise<unknown>[] = []
      rig.client.on(type, () => {
        if (promises.length > 0 || rig.client.state !== 'reconnecting') return
        promises.push(rig.client.reconnect())
      })
      await rig.cut()
      // The delay, and the attempt that fails.
      if (type === 'connecterror') await rig.advance(1000 + 5000)
      expect(rig.client.state).toBe('connected')
      expect(rig.dials.at(-1)?.at).toBe(rig.clock.now())
      expect(promises).toHaveLength(1)
      await Promise.all(promises)
      await rig.advance(40_000)
      expect(story(rig)).toMatchObject({ open: 1, hosts: type === 'connecterror' ? 'aaa' : 'aa' })
    },
  )

  it.each(['connecterror', 'reconnecting', 'disconnect'] as const)(
    'in every %s: no storm',
    async (type) => {
      const rig = await up()
      let calls = 0
      rig.client.on(type, () => {
        // What spins in one instant has to end for the test to end.
        if (++calls < 300) quiet(rig.client.reconnect())
      })
      if (type === 'disconnect') rig.client.on('connect', () => calls < 300 && rig.peer.cut())
      else rig.behave = () => down
      await rig.cut()
      await rig.advance(10_000)
      expect(rig.dials.length).toBeLessThanOrEqual(15)
    },
  )

  it('the delay that is announced after a hurried attempt is the one that passes', async () => {
    const rig = await up()
    rig.client.on('connecterror', () => void quiet(rig.client.reconnect()))
    rig.behave = () => down
    await rig.cut()
    await rig.advance(10_000)
    const waits = rig.events.filter(({ type }) => type === 'reconnecting').slice(0, -1)
    expect(waits.length).toBeGreaterThan(2)
    const ends = waits.map(({ at, event }) => at + (event as ClientEvents['reconnecting']).delay)
    expect(story(rig).times).toEqual(expect.arrayContaining(ends))
  })

  it('in serverdisconnect the connection is still there: nothing happens', async () => {
    const rig = await up()
    rig.client.on('serverdisconnect', () => void quiet(rig.client.reconnect()))
    await rig.goodbye(0x8b)
    await rig.advance(1000)
    expect(story(rig)).toMatchObject({ hosts: 'aa', delays: [1000] })
  })

  it('force in connect: a new connection, and no end of it unless the program asks for that', async () => {
    const rig = rigged()
    let count = 0
    rig.client.on('connect', () => {
      if (++count <= 3) quiet(rig.client.reconnect({ force: true }))
    })
    await within(rig, 10_000, rig.client.connect())
    expect([rig.dials.length, count, rig.seen('disconnect').length, rig.open]).toEqual([4, 4, 3, 1])
  })
})

it('a logger, a listener, backoff and decide that all throw: it goes on', async () => {
  const boom = (): never => {
    throw new Error('everything is broken')
  }
  const logger = { info: boom, warn: boom, error: boom }
  const rig = await up({ logger, reconnect: { backoff: boom, decide: boom } })
  rig.client.on('disconnect', boom)
  await rig.cut()
  await rig.advance(30_000)
  expect(rig.client.state).toBe('connected')
})

describe('also seen: log calls formatted although logging is off', () => {
  let times = 0
  /** What a listener and `onDrop` throw: counts how often it is made text. */
  const fail = (): never => {
    throw { toString: () => `text ${++times}` }
  }

  it.each([undefined, {}, { info: () => undefined }])('logger %o', async (logger) => {
    times = 0
    const world = await agreed({ logger })
    world.client.on('unclaimed', fail)
    world.client.subscription('a', { buffer: 1, overflow: 'drop-oldest', onDrop: fail })
    await world.settle()
    await world.send(publish('nobody', 'x'), publish('a', '1'), publish('a', '2'))
    await world.send(publish('a', '3'), publish('a', '4'))
    expect(times).toBe(0)
  })

  it('a logger of errors gets them, as text', async () => {
    times = 0
    const lines: string[] = []
    const world = await agreed({ logger: { error: (line) => lines.push(line) } })
    world.client.on('unclaimed', fail)
    await world.send(publish('nobody', 'x'))
    expect([times, lines]).toMatchObject([
      1,
      [expect.stringContaining("a listener of 'unclaimed' threw: text 1")],
    ])
  })
})
