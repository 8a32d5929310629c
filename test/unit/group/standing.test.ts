/** Groups of which a member is down, does not answer, or has ended for good: nothing waits for it, and the program can see it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GroupMessage } from '../../../src/group/types.js'
import { channel } from '../../../src/typed/channel.js'
import { json } from '../../../src/typed/codec.js'
import { endOf, GroupRig } from './rig.js'

let rig: GroupRig
beforeEach(async () => {
  rig = new GroupRig()
  await rig.start('a', 'b')
})
afterEach(() => rig.stop())

const takenOver = (name: string) => rig.brokers[name]?.disconnect(`g-${name}`, 0x8e)

describe('a member that has ended for good', () => {
  it('is reported as an event and in the log, and left out', async () => {
    const lines: string[] = []
    const group = await rig.up(['a', 'b'], {
      shared: { clientId: 'g', logger: { warn: (line) => lines.push(line) } },
    })
    const errors: unknown[] = []
    group.on('error', ({ member, error }) => errors.push([member, error.code]))
    takenOver('b')
    await rig.world.pass(1)
    expect(errors).toEqual([['b', 'ERR_SESSION_TAKEN_OVER']])
    expect(lines).toEqual([expect.stringContaining('member b of the group has ended')])
    expect(group.member('b')).toMatchObject({
      state: 'closed',
      healthy: false,
      error: { code: 'ERR_SESSION_TAKEN_OVER' },
    })
    const subscription = await group.subscribe('t')
    await group.listen('u', () => undefined)
    await group.writable
    expect((await group.publish('t', 'x', { qos: 1 })).members).toMatchObject({
      a: { status: 'fulfilled' },
      b: { status: 'rejected' },
    })
    await subscription.unsubscribe()
    await group.disconnect()
  })

  it('was the last one: calls say so, and nothing hangs', async () => {
    const group = await rig.up(['a', 'b'])
    const handling = await group.listen('t', () => undefined)
    const subscription = await group.subscribe('t')
    for (const name of ['a', 'b']) rig.hushed.add(name)
    const [writable, publish] = [group.writable, endOf(group.publish('t', 'x', { qos: 1 }))]
    await writable
    await rig.world.pass(1)
    rig.hushed.clear()
    for (const name of ['a', 'b']) takenOver(name)
    await rig.world.pass(1)
    expect(await publish).toBe('ERR_SESSION_TAKEN_OVER')
    const closed = [group.writable, group.subscribe('t'), group.listen('t', () => undefined)]
    expect(await Promise.all(closed.map(endOf))).toEqual(Array(3).fill('ERR_CLOSED'))
    expect(await endOf(group.publish('t', 'x', { qos: 1 }))).toBe('ERR_NOT_CONNECTED')
    const ends = [group.connect(), handling.done, subscription.next()]
    expect(await Promise.all(ends.map((end) => endOf(end)))).toEqual(
      Array(3).fill('ERR_SESSION_TAKEN_OVER'),
    )
    for (const call of [
      subscription.unsubscribe(),
      handling.unsubscribe(),
      group.drain(),
      group.disconnect(),
    ])
      expect(await endOf(call)).toBe('fulfilled')
  })

  it('its error reaches each listener, though one throws, and is printed where there is none', async () => {
    const lines: string[] = []
    const log = (line: string): void => void lines.push(line)
    const group = await rig.up(['a', 'b'], {
      shared: { clientId: 'g', logger: { warn: log, error: log } },
    })
    const heard: string[] = []
    group.on('error', () => {
      throw new Error('mine')
    })
    group.on('error', ({ member }) => heard.push(member), { once: true })
    for (const name of ['b', 'a']) {
      takenOver(name)
      await rig.world.pass(1)
    }
    expect(heard).toEqual(['b'])
    expect(lines.filter((line) => line.includes("listener of 'error' threw"))).toHaveLength(2)
  })

  it('ends the wait for writable', async () => {
    const group = await rig.up(['a', 'b'])
    await rig.lose('a', 'b')
    const waiting = endOf(group.writable)
    for (const { client } of group.members()) await client.disconnect()
    expect(await rig.world.until(waiting)).toBe('ERR_CLOSED')
  })
})

describe('a member that is down', () => {
  it('holds up neither unsubscribe() nor a grant that is under way when it is lost', async () => {
    const group = await rig.up(['a', 'b'])
    const subscription = await group.subscribe('t')
    const handling = await group.listen('u', () => undefined)
    rig.hushed.add('b')
    const late = endOf(group.subscribe('late'))
    const leaving = endOf(handling.unsubscribe())
    await rig.world.pass(1)
    rig.cut('b')
    expect(
      await rig.world.until(Promise.all([late, leaving, endOf(subscription.unsubscribe())]), 1000),
    ).toEqual(Array(3).fill('fulfilled'))
  })

  it('all are: unsubscribe() waits for the first that comes, as that of a client does', async () => {
    const group = await rig.up(['a', 'b'])
    const subscription = await group.subscribe('t')
    const mend = rig.cut('a')
    await rig.lose('b')
    const left = endOf(subscription.unsubscribe())
    mend()
    expect(await rig.world.until(left)).toBe('fulfilled')
  })

  it.each(['ttl', 'signal'] as const)('gave up a late broadcast by %s: healthy', async (how) => {
    const group = await rig.up(['a', 'b'], {
      stalledAfter: 30,
      shared: { clientId: 'g', outbound: { maxInflight: 1 } },
    })
    rig.hushed.add('b')
    const abort = new AbortController()
    const receipt = group.publish('t', 'x', {
      qos: 1,
      ...(how === 'ttl' ? { ackTimeout: 100 } : { signal: abort.signal }),
    })
    await rig.world.pass(30)
    await receipt
    expect(group.member('b')?.healthy).toBe(false)
    rig.hushed.clear()
    await rig.world.pass(100)
    abort.abort()
    await rig.world.pass(1)
    expect(group.member('b')?.healthy).toBe(true)
  })

  it('gave up one of two publishes: it does not answer still', async () => {
    const group = await rig.up(['a', 'b'], { stalledAfter: 30 })
    rig.hushed.add('b')
    const abort = new AbortController()
    for (const options of [{ signal: abort.signal }, {}])
      void group.publish('t', 'x', { qos: 1, ...options })
    await rig.world.pass(30)
    abort.abort()
    await rig.world.pass(1)
    expect(group.member('b')).toMatchObject({ inFlight: 1, healthy: false, state: 'connected' })
  })

  it('took what has no answer: it does not answer still', async () => {
    const group = await rig.up(['a', 'b'], { stalledAfter: 30 })
    rig.hushed.add('b')
    void group.publish('t', 'x', { qos: 1 })
    await rig.world.pass(30)
    await group.publish('t', 'x', { qos: 0 })
    expect(group.member('b')).toMatchObject({ inFlight: 1, healthy: false })
  })

  it('two that do not answer are disconnected at the same time', async () => {
    const group = await rig.up(['a', 'b'])
    for (const name of ['a', 'b']) rig.hushed.add(name)
    const sent = endOf(group.publish('t', 'x', { qos: 1 }))
    const since = rig.world.now()
    await rig.world.until(group.disconnect({ timeout: 500 }))
    expect([await sent, rig.world.now() - since]).toEqual(['ERR_CLOSED', 500])
  })
})

describe('a duplicate', () => {
  const deduplicate = { key: (message: GroupMessage) => message.text(), window: 60_000 }
  const feed = async (...names: string[]): Promise<void> => {
    for (const name of names) rig.brokers[name]?.publish({ topic: 't', payload: 'x', qos: 1 })
    await rig.world.pass(1)
  }

  it.each(['fails', 'hangs'])(
    'of a message whose handler runs waits for that: where it %s, and its member is removed, the duplicate is handled',
    async (how) => {
      const group = await rig.up(['a', 'b'])
      const seen: string[] = []
      const ends: ((error?: Error) => void)[] = []
      const handle = ({ member }: GroupMessage): Promise<void> => {
        seen.push(member)
        return new Promise((resolve, reject) =>
          ends.push((error) => (error === undefined ? resolve() : reject(error))),
        )
      }
      const handling = await group.listen('t', handle, { qos: 1, deduplicate })
      await feed('a', 'b')
      expect([seen, handling.duplicates]).toEqual([['a'], 0])
      const removed = group.remove('a', { timeout: 50 })
      if (how === 'fails') ends[0]?.(new Error('no'))
      await rig.world.until(removed)
      await rig.world.pass(1)
      expect(seen).toEqual(['a', 'b'])
      ends[1]?.()
      await rig.world.pass(1)
      await feed('b')
      expect([seen, handling.duplicates]).toEqual([['a', 'b'], 1])
    },
  )

  it('without a key is none; one whose handler throws at once is handled by another member', async () => {
    const group = await rig.up(['a', 'b'])
    const seen: string[] = []
    const given = { ...deduplicate, key: ({ retain }: GroupMessage) => (retain ? 1 : undefined) }
    const plain = await group.listen('t', ({ member }) => void seen.push(member), {
      qos: 1,
      deduplicate: given,
    })
    await feed('a', 'b')
    expect([seen, plain.duplicates]).toEqual([['a', 'b'], 0])
    await plain.unsubscribe()
    seen.length = 0
    const fail = ({ member }: GroupMessage) => {
      if (seen.push(member) === 1) throw new Error('no')
      return Promise.resolve()
    }
    const failing = await group.listen('t', fail, { qos: 1, deduplicate, onError: 'reject' })
    await feed('a')
    await feed('b')
    await feed('a')
    expect([seen, failing.duplicates]).toEqual([['a', 'b'], 1])
  })

  it('that comes when the window is over, while the first is handled still, is handled; others wait for that', async () => {
    const group = await rig.up(['a', 'b'])
    const ends: (() => void)[] = []
    const handling = await group.listen('t', () => new Promise<void>((end) => ends.push(end)), {
      qos: 1,
      concurrency: 3,
      order: 'none',
      deduplicate: { ...deduplicate, window: 100 },
    })
    await feed('a', 'b')
    await rig.world.pass(100)
    expect(ends).toHaveLength(1)
    await feed('a')
    expect([ends.length, handling.duplicates]).toEqual([2, 0])
    ends[1]?.()
    await rig.world.pass(1)
    expect([ends.length, handling.duplicates, group.stats().duplicates]).toEqual([2, 1, 1])
  })

  it('in the batch of its message is acknowledged with that', async () => {
    const group = await rig.up(['a', 'b'], { shared: { clientId: 'g' } })
    const subscription = await group.subscribe('t', { qos: 1, deduplicate })
    await feed('a', 'b')
    const batches = subscription.batches()
    expect((await batches.next()).value).toHaveLength(1)
    await rig.world.pass(1)
    const pending = () =>
      ['a', 'b'].map((name) => rig.brokers[name]?.sessions.get(`g-${name}`)?.inflight)
    expect(pending()).toEqual([1, 1])
    void batches.next()
    await rig.world.pass(1)
    expect(pending()).toEqual([0, 0])
  })
})

describe('what a group refuses', () => {
  it('raises drop where a client raises it, once', async () => {
    const group = rig.group({ names: ['a', 'b'] })
    const drops: unknown[] = []
    group.on('drop', ({ topic, error }) => drops.push(`${topic} ${error?.code?.slice(4)}`))
    const typed = channel('typed', json<unknown>())
    const round: bigint = 1n
    const calls = [
      group.publish('t', 'x', { qos: 1 }),
      group.publish('t', 'x', { routing: 'hash' }),
      group.publish('t', {} as never),
      typed.on(group).publish(round),
    ]
    await Promise.all(calls.map(endOf))
    await rig.world.pass(1)
    expect(drops.sort().join(' ')).toBe(
      't INVALID_OPTION t NOT_CONNECTED t NO_HEALTHY_PUBLISHERS typed INVALID_PAYLOAD',
    )
  })

  it('a payload that cannot be decoded is reported by the member that it came to', async () => {
    const group = await rig.up(['a', 'b'])
    const reported: unknown[] = []
    group.on('invalid', ({ member, topic }) => reported.push([member, topic]))
    await channel('typed', json<unknown>())
      .on(group)
      .listen(() => undefined)
    rig.brokers['b']?.publish({ topic: 'typed', payload: '{' })
    await rig.world.pass(1)
    expect(reported).toEqual([['b', 'typed']])
  })

  it('a callback is a fault of the program', async () => {
    const group = rig.group({ names: ['a', 'b'] })
    const publish = group.publish as (...given: unknown[]) => Promise<unknown>
    await expect(publish.call(group, 't', 'x', undefined, () => undefined)).rejects.toThrow(
      /await the promise/,
    )
  })
})
