/** Groups of brokers, on the virtual clock. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { groupOf } from '../../../src/group/broker-group.js'
import { poolOf } from '../../../src/pool/publisher-pool.js'
import { openQueue } from '../../../src/queue/index.js'
import { memoryStore } from '../../../src/store/memory.js'
import { MemoryBroker } from '../../../src/testing/broker/broker.js'
import { endOf, GroupRig } from './rig.js'

let rig: GroupRig
beforeEach(() => {
  rig = new GroupRig()
})
afterEach(() => rig.stop())

const statusOf = (receipt: { readonly members: object }): Record<string, string> =>
  Object.fromEntries(Object.entries(receipt.members).map(([name, { status }]) => [name, status]))

describe('connecting', () => {
  it('connects each member under a client identifier of its own', async () => {
    await rig.start('eu', 'us')
    const group = rig.group({ names: ['eu', 'us'] })
    expect([group.state, group.member('eu')?.state]).toEqual(['idle', 'idle'])
    await group.connect()
    expect(group.members()).toMatchObject(
      ['eu', 'us'].map((name) => ({ name, state: 'connected', healthy: true })),
    )
    expect(
      group.members().map(({ client }) => (client as unknown as { clientId: string }).clientId),
    ).toEqual(['g-eu', 'g-us'])
    expect(group.member('asia')).toBeUndefined()
    await group.connect()
    await group.disconnect()
    expect(group.state).toBe('closed')
    for (const call of [
      group.connect(),
      group.publish('a', 'x'),
      group.writable,
      group.add('x', 'mqtt://b'),
      group.remove('eu'),
    ])
      expect(await endOf(call)).toBe('ERR_CLOSED')
    expect(group.post('a', 'x')).toBe(false)
    expect(() => group.subscription('a')).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }))
  })

  it('a member has options of its own, which win over shared ones, and may have several endpoints', async () => {
    await rig.start('eu', 'us')
    const down = { url: 'memory://b', transport: () => Promise.reject(new Error('down')) }
    const group = groupOf((at, given) => new rig.world.Client(at, given), {
      shared: { clientId: 'g' },
      members: {
        eu: { url: 'memory://b', transport: rig.link('eu'), options: { clientId: 'own' } },
        us: [down, { url: 'memory://b', transport: rig.link('us') }],
      },
    })
    await rig.world.until(group.connect())
    await rig.world.until(() => group.stats().up === 2)
    const ids = Object.values(rig.brokers).map(({ clients }) => [...clients.keys()].sort())
    expect(ids).toEqual([
      ['own', 'reader'],
      ['g-us', 'reader'],
    ])
  })

  it('one that fails is no obstacle, unless all are asked for; it goes on trying', async () => {
    await rig.start('eu', 'us')
    const group = rig.group({ names: ['eu', 'us'] })
    const mends = ['us', 'eu'].map((name) => rig.cut(name))
    const none = group.connect()
    await rig.world.until(none.catch(() => undefined))
    await expect(none).rejects.toMatchObject({
      errors: [{ code: 'ERR_CONNECT_FAILED' }, { code: 'ERR_CONNECT_FAILED' }],
    })
    mends[1]?.()
    await rig.world.until(group.connect())
    expect(group.member('us')?.error).toMatchObject({ code: 'ERR_CONNECT_FAILED' })
    const all = group.connect({ require: 'all' })
    await rig.world.until(all.catch(() => undefined))
    const members = { us: { code: 'ERR_CONNECT_FAILED' } }
    await expect(all).rejects.toMatchObject({
      name: 'AggregateError',
      message: expect.stringContaining('us: '),
      members,
    })
    mends[0]?.()
    await rig.world.until(group.connect({ require: 'all' }).catch(() => undefined))
    await rig.world.until(() => group.stats().up === 2)
  })

  it('connects when somebody waits to publish, as a queue over it does, also where no broker is there yet', async () => {
    await rig.start('eu', 'us')
    const group = rig.group({ names: ['eu', 'us'] })
    const mends = ['eu', 'us'].map((name) => rig.cut(name))
    const store = memoryStore()
    const queue = await openQueue(group, { store })
    const { delivered } = await queue.publish('a', 'x')
    await rig.world.pass(60_000)
    expect(rig.arrived).toEqual({ eu: [], us: [] })
    for (const mend of mends) mend()
    await rig.world.until(delivered)
    await rig.world.until(() => group.stats().up === 2)
    await rig.world.until(queue.publish('a', 'y').then((queued) => queued.delivered))
    expect([rig.arrived['eu'], rig.arrived['us']].flat().sort()).toEqual(
      expect.arrayContaining(['a x', 'a y', 'a y']),
    )
    await queue.close()
    const other = rig.group({ names: ['eu'] })
    await rig.world.until(other.writable)
    expect(other.state).toBe('connected')
  })

  it('a client that ends before its first attempt says why', async () => {
    await rig.start('a', 'b')
    const store = memoryStore()
    const group = rig.group({ names: ['a', 'b'], shared: { store } })
    await rig.world.until(group.connect())
    const locked = { code: 'ERR_STORE_LOCKED' }
    expect(group.members()).toMatchObject([
      { state: 'connected', error: undefined },
      { state: 'closed', error: locked },
    ])
    const reason = { code: 'ERR_NOT_CONNECTED', cause: locked }
    expect((await group.publish('t', 'x', { qos: 1 })).members['b']).toMatchObject({ reason })
    await expect(group.connect({ require: 'all' })).rejects.toMatchObject({
      members: { b: locked },
    })
  })

  it.each(['parallel', 'sequential'] as const)('%s: an abort ends the wait', async (mode) => {
    await rig.start('a', 'b')
    const group = rig.group({ names: ['a', 'b'] })
    expect(await endOf(group.connect({ signal: AbortSignal.abort() }))).toBe('ERR_ABORTED')
    expect(group.state).toBe('idle')
    const abort = new AbortController()
    const dialled: string[] = []
    group.on('dial', ({ member }) => dialled.push(member))
    const mend = rig.cut('a')
    const connecting = endOf(group.connect({ mode, signal: abort.signal }))
    abort.abort()
    expect(await connecting).toBe('ERR_ABORTED')
    mend()
    await rig.world.pass(120_000)
    expect(new Set(dialled)).toEqual(new Set(mode === 'parallel' ? ['a', 'b'] : ['a']))
    expect(group.stats()).toMatchObject({ up: mode === 'parallel' ? 2 : 1 })
  })

  it('says that it was ended where that came first', async () => {
    await rig.start('a')
    const group = rig.group({ names: ['a'] })
    const connecting = endOf(group.connect())
    const writable = endOf(group.writable)
    await rig.world.until(group.disconnect())
    expect([await connecting, await writable]).toEqual(['ERR_CLOSED', 'ERR_CLOSED'])
  })

  it('one after the other, where that is asked for', async () => {
    await rig.start('a', 'b', 'c')
    const group = rig.group({ names: ['a', 'b', 'c'] })
    const story: string[] = []
    group.on('dial', ({ member }) => story.push(`dial ${member}`))
    group.on('connect', ({ member }) => story.push(`up ${member}`))
    await group.connect({ mode: 'sequential' })
    expect(story).toEqual(['dial a', 'up a', 'dial b', 'up b', 'dial c', 'up c'])
  })
})

describe('broadcast', () => {
  it('reaches every member, and reports how it ended at each', async () => {
    const group = await rig.up(['eu', 'us'])
    const receipt = await group.publish('t', 'x', { qos: 1 })
    expect(receipt.members).toMatchObject({
      eu: { status: 'fulfilled', value: { reasonCode: 0 } },
      us: { status: 'fulfilled' },
    })
    expect(rig.arrived).toEqual({ eu: ['t x'], us: ['t x'] })
    expect(statusOf(await group.publish('t', 'y', { qos: 2, members: ['us'] }))).toEqual({
      us: 'fulfilled',
    })
    expect(rig.arrived).toEqual({ eu: ['t x'], us: ['t x', 't y'] })
    for (const members of [[], 'us', ['u s']])
      expect(await endOf(group.publish('t', 'y', { members } as never))).toBe('ERR_INVALID_OPTION')
    expect(group.post('t', 'z')).toBe(true)
    await rig.world.pass(1)
    expect(rig.arrived).toEqual({ eu: ['t x', 't z'], us: ['t x', 't y', 't z'] })
  })

  it('fulfils if one takes it, and reports the others as not connected', async () => {
    const group = await rig.up(['eu', 'us'])
    await rig.lose('us')
    expect((await group.publish('t', 'x', { qos: 1 })).members).toMatchObject({
      us: { status: 'rejected', reason: { code: 'ERR_NOT_CONNECTED' } },
    })
    await rig.lose('eu')
    const none = group.publish('t', 'x', { qos: 1 })
    const reason = { code: 'ERR_NOT_CONNECTED' }
    await expect(none).rejects.toMatchObject({
      name: 'AggregateError',
      members: { eu: reason, us: reason },
    })
  })

  it.each([
    ['small', 'large'],
    ['large', 'small'],
  ])('post(): %s, %s: one that cannot take it is no obstacle for the other', async (...names) => {
    await rig.start('large')
    rig.brokers['small'] = new MemoryBroker({ clock: rig.world.clock, maximumPacketSize: 200 })
    const group = rig.group({ names })
    await group.connect()
    expect(group.post('t', 'x'.repeat(500))).toBe(true)
    await rig.world.pass(1)
    expect(rig.arrived['large']).toHaveLength(1)
    await group.remove('large')
    expect(() => group.post('t', 'x'.repeat(500))).toThrow(
      expect.objectContaining({ code: 'ERR_PACKET_TOO_LARGE' }),
    )
  })

  it("queues for those that are not connected under offline: 'queue', from memory of its own", async () => {
    const group = await rig.up(['eu', 'us'], { offline: 'queue' })
    const mend = await rig.lose('us')
    const bytes = new TextEncoder().encode('mine')
    const receipt = await group.publish('t', bytes, { qos: 1 })
    bytes.fill(0x21)
    expect(statusOf(receipt)).toEqual({ eu: 'fulfilled', us: 'pending' })
    const zero = await group.publish('t', 'zero')
    mend()
    const { us } = receipt.members
    const { us: later } = zero.members
    if (us?.status !== 'pending' || later?.status !== 'pending') throw new Error('they are queued')
    await rig.world.until(us.delivered)
    await rig.world.until(later.delivered)
    await rig.world.pass(1)
    expect(rig.arrived['us']?.sort()).toEqual(['t mine', 't zero'])
  })

  it('what a client refuses at once is refused, connected or not', async () => {
    await rig.start('eu', 'us')
    const group = rig.group({ names: ['eu', 'us'], offline: 'queue' })
    const error = await group.publish('#', 'x', { qos: 1 }).catch((reason: unknown) => reason)
    const wrong = { code: 'ERR_INVALID_TOPIC', outcome: 'not-sent' }
    expect(error).toMatchObject({
      ...wrong,
      name: 'AggregateError',
      members: { us: { code: wrong.code } },
    })
    expect(MqttError.is(error)).toBe(true)
    await group.connect()
    const calls = [
      group.publish('#', 'x', { qos: 1 }),
      group.publish('a', 'x', { qos: 7 as never }),
      group.publish('a', {} as never),
      group.publish('a', 'x', { members: ['asia'] }),
    ]
    expect((await Promise.all(calls.map(endOf))).map((end) => end.slice(12))).toEqual([
      'TOPIC',
      'OPTION',
      'OPTION',
      'OPTION',
    ])
  })

  it('a member that is lost meanwhile does not hold it up, and gets it later', async () => {
    const group = await rig.up(['eu', 'us'])
    rig.hushed.add('us')
    const publishing = group.publish('t', 'x', { qos: 1 })
    await rig.world.pass(1)
    const mend = rig.cut('us')
    const receipt = await publishing
    expect(statusOf(receipt)).toEqual({ eu: 'fulfilled', us: 'pending' })
    rig.hushed.clear()
    mend()
    const { us } = receipt.members
    if (us?.status === 'pending') await rig.world.until(us.delivered)
    expect(rig.arrived['us']).toContain('t x')
  })

  it('a black hole costs the first broadcast its time, and later ones nothing', async () => {
    const group = await rig.up(['eu', 'us', 'asia'], { stalledAfter: 30 })
    rig.hushed.add('asia')
    const first = group.publish('t', 'x', { qos: 1 })
    await rig.world.pass(30)
    expect(statusOf(await first)).toEqual({ eu: 'fulfilled', us: 'fulfilled', asia: 'pending' })
    expect(group.members().map(({ healthy }) => healthy)).toEqual([true, true, false])
    // No time passes at all.
    for (let count = 0; count < 50; count++)
      expect(statusOf(await group.publish('t', String(count), { qos: 1 }))['asia']).toBe('pending')
    expect(group.member('asia')?.inFlight).toBe(51)
    rig.hushed.clear()
    rig.cut('asia')()
    await rig.world.until(() => group.member('asia')?.inFlight === 0)
    expect(group.member('asia')?.healthy).toBe(true)
    expect(new Set(rig.arrived['asia']).size).toBe(51)
    expect(statusOf(await group.publish('t', 'end', { qos: 1 }))).toEqual({
      eu: 'fulfilled',
      us: 'fulfilled',
      asia: 'fulfilled',
    })
  })

  it('leaves no timer when it has settled', async () => {
    const group = await rig.up(['eu', 'us'])
    const { pending } = rig.world.clock
    const sent = group.publish('t', 'x', { qos: 1 })
    expect(rig.world.clock.pending).toBeGreaterThan(pending)
    await sent
    expect(rig.world.clock.pending).toBe(pending)
  })

  it('one that is under way when a member is found not to answer stops waiting for it then', async () => {
    const group = await rig.up(['eu', 'us'], { stalledAfter: 1000 })
    rig.hushed.add('us')
    const ends: string[] = []
    const publish = (text: string): void =>
      void group
        .publish('t', text, { qos: 1 })
        .then((receipt) => ends.push(`${text} ${statusOf(receipt)['us']}`))
    publish('first')
    await rig.world.pass(900)
    publish('second')
    await rig.world.pass(1)
    expect(ends).toEqual([])
    await rig.world.pass(100)
    expect(ends).toEqual(['first pending', 'second pending'])
  })
})

describe('one member for each publish', () => {
  it('round-robin over those that are up', async () => {
    const group = await rig.up(['a', 'b', 'c'], { routing: 'round-robin' })
    for (let count = 0; count < 6; count++) await group.publish('t', String(count), { qos: 1 })
    expect(rig.arrived).toEqual({ a: ['t 0', 't 3'], b: ['t 1', 't 4'], c: ['t 2', 't 5'] })
    await rig.lose('b')
    for (let count = 6; count < 10; count++) await group.publish('t', String(count), { qos: 1 })
    expect([rig.arrived['a']?.length, rig.arrived['c']?.length]).toEqual([4, 4])
    await rig.lose('a', 'c')
    await expect(group.publish('t', 'x')).rejects.toMatchObject({
      code: 'ERR_NO_HEALTHY_PUBLISHERS',
      message: expect.stringContaining('b: '),
    })
    expect(await endOf(group.publish('t', 'x', { members: ['a'] }))).toBe('ERR_INVALID_OPTION')
  })

  it.each(['round-robin', 'hash'] as const)('%s: post() gives it to one', async (routing) => {
    const group = await rig.up(['a', 'b'], { routing })
    expect([group.post('t', '1'), group.post('t', '2')]).toEqual([true, true])
    await rig.world.pass(1)
    const counts = Object.values(rig.arrived).map((texts) => texts.length)
    expect(counts.sort()).toEqual(routing === 'hash' ? [0, 2] : [1, 1])
    await rig.lose('a', 'b')
    expect(group.post('t', '3')).toBe(false)
  })

  it('round-robin: passes over one that does not answer, as long as another one does', async () => {
    const group = await rig.up(['a', 'b'], { stalledAfter: 30 })
    rig.hushed.add('a')
    void group.publish('t', '0', { qos: 1 })
    await rig.world.pass(30)
    expect(group.stats()).toMatchObject({ up: 2, healthy: 1 })
    const to = async () =>
      Object.keys((await group.publish('t', 'x', { routing: 'round-robin' })).members)
    expect([await to(), await to()]).toEqual([['b'], ['b']])
  })

  it.each(['wait', 'move'] as const)('by hash, topics of a lost member %s', async (onLost) => {
    await rig.start('a', 'b', 'c')
    const group = rig.group({ names: ['a', 'b', 'c'], routing: 'hash', onLost })
    expect(group.ordered).toBe(onLost === 'wait')
    await group.connect()
    const topics = Array.from({ length: 30 }, (_, index) => `t/${index}`)
    const owner = new Map<string, string>()
    for (const topic of topics)
      owner.set(
        topic,
        Object.keys((await group.publish(topic, '1', { qos: 1 })).members)[0] as string,
      )
    expect(new Set(owner.values()).size).toBe(3)
    rig.hushed.add('b')
    const held = topics.filter((topic) => owner.get(topic) === 'b')
    const stuck = group.publish(held[0] as string, '2', { qos: 1 })
    await rig.world.pass(1)
    const mend = await rig.lose('b')
    const next = group.publish(held[0] as string, '3', { qos: 1 })
    const elsewhere = await group.publish(held[1] as string, '2', { qos: 1 })
    expect(Object.keys(elsewhere.members)).not.toEqual(['b'])
    for (const topic of topics)
      if (owner.get(topic) !== 'b')
        expect(Object.keys((await group.publish(topic, '2', { qos: 1 })).members)).toEqual([
          owner.get(topic),
        ])
    if (onLost === 'move') expect(Object.keys((await next).members)).not.toEqual(['b'])
    else expect(rig.arrived['b']).not.toContain(`${held[0]} 3`)
    rig.hushed.clear()
    mend()
    await rig.world.until(Promise.all([stuck, next]))
    if (onLost === 'wait')
      expect(rig.arrived['b']?.filter((text) => text.startsWith(`${held[0]} `))).toEqual([
        `${held[0]} 1`,
        `${held[0]} 2`,
        `${held[0]} 3`,
      ])
  })
})

it.each(['round-robin', 'hash'] as const)('%s: what is no topic is refused', async (routing) => {
  const group = await rig.up(['a', 'b'], { routing })
  expect(await endOf(group.publish(undefined as never, 'x'))).toBe('ERR_INVALID_TOPIC')
  expect(() => group.post(undefined as never, 'x')).toThrow(
    expect.objectContaining({ code: 'ERR_INVALID_TOPIC' }),
  )
})

describe('members that come and go', () => {
  it('a new one connects, and has the subscriptions on all', async () => {
    await rig.start('us')
    const group = await rig.up(['eu'])
    const seen: string[] = []
    const all = await group.subscribe('t/#')
    const chosen = await group.subscribe('u/#', { members: ['eu'] })
    await group.listen('l/#', ({ member, topic }) => void seen.push(`${member} ${topic}`))
    await group.add('us', { url: 'memory://b', transport: rig.link('us') })
    await rig.world.pass(1)
    expect(all.granted.map(({ member }) => member)).toEqual(['eu', 'us'])
    expect(chosen.granted.map(({ member }) => member)).toEqual(['eu'])
    rig.brokers['us']?.publish({ topic: 't/1', payload: 'x' })
    rig.brokers['us']?.publish({ topic: 'l/1', payload: 'x' })
    await rig.world.pass(1)
    expect(all.read()).toMatchObject({ member: 'us', topic: 't/1' })
    expect(seen).toEqual(['us l/1'])
    expect(await endOf(group.add('us', 'mqtt://b'))).toBe('ERR_INVALID_OPTION')
    expect(await endOf(group.add('', 'mqtt://b'))).toBe('ERR_INVALID_OPTION')
  })

  it('use(): hooks are called for each, those that come later too, until they are taken away', async () => {
    await rig.start('us')
    const group = await rig.up(['eu'])
    const stop = group.use({
      publish: ({ topic, ...call }, next) => next({ topic: `hooked/${topic}`, ...call }),
    })
    await group.publish('a', '1', { qos: 1 })
    await group.add('us', { url: 'memory://b', transport: rig.link('us') })
    await group.publish('a', '2', { qos: 1 })
    stop()
    await group.publish('a', '3', { qos: 1 })
    await rig.world.pass(1)
    expect(rig.arrived).toEqual({
      eu: ['hooked/a 1', 'hooked/a 2', 'a 3'],
      us: ['hooked/a 2', 'a 3'],
    })
  })

  it('one that cannot be had is not added, and its name is free', async () => {
    await rig.start('us')
    const group = await rig.up(['eu'])
    const [first, second] = [await group.subscribe('t'), await group.subscribe('u', { qos: 1 })]
    await group.listen('l', () => undefined)
    const us = { url: 'memory://b', transport: rig.link('us') }
    const [over, conflicting] = [new rig.world.Client(us), new rig.world.Client(us)]
    await over.disconnect()
    await conflicting.connect()
    await conflicting.subscribe('u', { qos: 1, noLocal: true })
    expect(await endOf(group.add('us', over))).toBe('ERR_CLOSED')
    expect(await endOf(group.add('us', conflicting))).toBe('ERR_SUBSCRIPTION_CONFLICT')
    await rig.world.pass(1)
    expect([group.members().length, first.granted.length, second.granted.length]).toEqual([1, 1, 1])
    expect(conflicting.toJSON()).toMatchObject({ subscriptions: 1 })
    await group.add('us', us)
    await rig.world.pass(1)
    expect([group.members().length, first.granted.length, second.granted.length]).toEqual([2, 2, 2])
  })

  it('without any, writable waits for the next one; events of one that has gone are not emitted', async () => {
    const group = await rig.up(['a'])
    const states: string[] = []
    group.on('state', ({ member, state }) => states.push(`${member} ${state}`))
    const { client } = group.member('a') as { client: { on(type: 'drop', call: () => void): void } }
    await group.remove('a')
    expect(states).toEqual(['a disconnecting', 'a closed'])
    const heard = vi.fn()
    group.on('drop', heard)
    ;(client as unknown as { publish(topic: string, payload: string): Promise<void> })
      .publish('t', 'x')
      .catch(() => undefined)
    let ready = false
    const writable = group.writable.then(() => {
      ready = true
    })
    await rig.world.pass(1000)
    expect([ready, heard.mock.calls.length]).toEqual([false, 0])
    await group.add('a', { url: 'memory://b', transport: rig.link('a') })
    await rig.world.until(writable)
  })

  it('wrong options end nothing; what one server does not take its member ends without', async () => {
    const group = await rig.up(['a', 'b'], { shared: { clientId: 'g', protocolVersion: 4 } })
    for (const call of [
      group.disconnect({ timeout: 'x' as never }),
      group.drain({ timeout: -1 }),
      group.remove('b', { timeout: 'x' as never }),
    ])
      expect(await endOf(call)).toBe('ERR_INVALID_OPTION')
    expect(statusOf(await group.publish('t', 'x', { qos: 1 }))).toEqual({
      a: 'fulfilled',
      b: 'fulfilled',
    })
    expect(await endOf(group.disconnect({ reasonString: 'bye' }))).toBe('ERR_UNSUPPORTED_OPTION')
    expect([group.state, ...group.members().map(({ state }) => state)]).toEqual([
      'closed',
      'closed',
      'closed',
    ])
  })

  it('disconnect({ timeout }) waits no longer for a member that leaves', async () => {
    const group = await rig.up(['a', 'b'])
    rig.hushed.add('b')
    const sent = endOf(group.publish('t', 'x', { qos: 1, members: ['b'] }))
    const removed = endOf(group.remove('b', { timeout: 600_000 }))
    await rig.world.pass(1)
    const since = rig.world.clock.now()
    await rig.world.until(group.disconnect({ timeout: 100 }))
    expect([await removed, await sent, rig.world.clock.now() - since < 1000]).toEqual([
      'fulfilled',
      'ERR_CLOSED',
      true,
    ])
  })

  it.each(['goes on', 'drains'])(
    'one that is removed from a group that %s ends when what it has in flight is acknowledged; its topics go on elsewhere, behind that',
    async (how) => {
      const group = await rig.up(['a', 'b'], { routing: 'hash' })
      rig.hushed.add('b')
      const topics = Array.from({ length: 20 }, (_, index) => `t/${index}`)
      const publishAll = (text: string) =>
        topics.map((topic) => endOf(group.publish(topic, text, { qos: 1 })))
      const first = publishAll('1')
      await rig.world.pass(1)
      const removed = group.remove('b', { timeout: 600_000 })
      const second = publishAll('2')
      const over = how === 'drains' ? group.drain({ timeout: 500_000 }) : removed
      if (how === 'drains') {
        const calls = [
          group.publish('a', 'late'),
          group.writable,
          group.add('c', 'mqtt://b'),
          group.connect(),
        ]
        expect(await Promise.all(calls.map(endOf))).toEqual(calls.map(() => 'ERR_CLOSED'))
        expect(group.post('a', 'late')).toBe(false)
      }
      await rig.world.pass(100)
      expect(rig.arrived['a']?.length).toBeLessThan(40)
      rig.hushed.clear()
      rig.cut('b')()
      const since = rig.world.now()
      await rig.world.until(Promise.all([over, removed]))
      expect(rig.world.now() - since).toBeLessThan(400_000)
      expect(new Set(await rig.world.until(Promise.all([...first, ...second])))).toEqual(
        new Set(['fulfilled']),
      )
      expect(new Set(Object.values(rig.arrived).flat()).size).toBe(40)
      for (const topic of topics) expect(rig.arrived['a']).toContain(`${topic} 2`)
      if (how === 'drains') return expect(group.state).toBe('closed')
      expect(group.members().map(({ name }) => name)).toEqual(['a'])
      expect(await endOf(group.remove('b'))).toBe('ERR_INVALID_OPTION')
    },
  )

  it('may be a client or a pool that is there already', async () => {
    await rig.start('eu', 'us')
    const transport = (name: string) => ({ url: 'memory://b', transport: rig.link(name) })
    const pool = poolOf((at, given) => new rig.world.Client(at, given), transport('eu'), {
      size: 2,
    })
    const client = new rig.world.Client(transport('us'), { clientId: 'own' })
    await client.connect()
    const group = groupOf(() => client, { members: { eu: pool, us: client } })
    await group.connect()
    expect(statusOf(await group.publish('t', 'x', { qos: 1 }))).toEqual({
      eu: 'fulfilled',
      us: 'fulfilled',
    })
    expect(rig.arrived).toEqual({ eu: ['t x'], us: ['t x'] })
    const subscription = await group.subscribe('#')
    expect(subscription.granted.map(({ member }) => member)).toEqual(['us'])
    expect(() => group.subscription('#', { members: ['eu'] })).toThrow(/'eu' only publishes/)
    expect(group.stats()).toMatchObject({ size: 2, up: 2, members: { eu: { size: 2 } } })
    await group.disconnect()
    expect([client.state, pool.state]).toEqual(['closed', 'closed'])
  })
})

const one = { a: 'mqtt://b' }

it.each([
  [undefined, 'options'],
  [{}, 'members'],
  [{ members: {} }, 'members'],
  [{ members: { 'a b': 'mqtt://b' } }, 'members'],
  [{ members: one, routing: 'any' }, 'routing'],
  [{ members: one, offline: 'drop' }, 'offline'],
  [{ members: one, onLost: 'x' }, 'onLost'],
  [{ members: one, stalledAfter: 0 }, 'stalledAfter'],
  [{ members: one, share: {} }, 'share'],
  [{ members: one, shared: { clientId: 5 } }, 'shared.clientId'],
  [{ members: { a: { url: ['mqtt://b'], tls: {} } } }, 'members.a.tls'],
  [{ members: { a: { url: 'mqtt://b', options: 1 } } }, 'members.a.options'],
])('refuses %j, and names the option', (options, option) => {
  const refused = expect.objectContaining({
    code: 'ERR_INVALID_OPTION',
    message: expect.stringContaining(option),
  })
  expect(() => groupOf((at, given) => new rig.world.Client(at, given), options as never)).toThrow(
    refused,
  )
})
