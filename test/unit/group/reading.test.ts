/** What a group reads: fairly from all members, acknowledged as with one client, without duplicates where that is asked for. */
import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Duplicates } from '../../../src/group/duplicates.js'
import { Merge } from '../../../src/group/subscription.js'
import type {
  Group,
  GroupMember,
  GroupMessage,
  GroupSubscription,
} from '../../../src/group/types.js'
import { Readiness } from '../../../src/members/members.js'
import { endOf, GroupRig } from './rig.js'

let rig: GroupRig
let group: Group
beforeEach(async () => {
  rig = new GroupRig()
  group = await rig.up(['a', 'b'])
})
afterEach(() => rig.stop())

const send = (name: string, ...texts: readonly string[]): void => {
  for (const payload of texts) rig.brokers[name]?.publish({ topic: 't', payload, qos: 1 })
}
/** The same, and they have arrived. */
async function arrive(texts: Readonly<Record<string, readonly string[]>>): Promise<void> {
  for (const [name, own] of Object.entries(texts)) send(name, ...own)
  await rig.world.pass(1)
}
/** Notes the end of each message of a member. */
function watch(name: string, settled: string[]): void {
  const { client } = group.member(name) as GroupMember
  const use = {
    deliver: (_: GroupMessage, end: Promise<unknown>) => void end.then(() => settled.push(name)),
  }
  ;(client as unknown as { use(hooks: object): void }).use(use)
}

/** Everything that waits. */
function takenFrom(subscription: GroupSubscription): string[] {
  const texts: string[] = []
  for (let message = subscription.read(); message !== undefined; message = subscription.read())
    texts.push(message.text())
  return texts
}

const textOf = (message: GroupMessage | undefined): string =>
  message === undefined ? 'end' : `${message.member} ${message.text()}`

describe('a subscription', () => {
  it('gives one of each member in turn, as long as each has some', async () => {
    const subscription = await group.subscribe('t', { qos: 1 })
    await arrive({ a: ['1', '2', '3', '4', '5', '6'], b: ['1', '2'] })
    const order: string[] = []
    for (let count = 0; count < 8; count++) order.push(textOf(await subscription.next()))
    expect(order).toEqual(['a 1', 'b 1', 'a 2', 'b 2', 'a 3', 'a 4', 'a 5', 'a 6'])
    expect(subscription.granted).toMatchObject(
      ['a', 'b'].map((member) => ({ member, filter: 't', qos: 1 })),
    )
  })

  it('acknowledges a message when the next one of any member is asked for, and none that no reader was given', async () => {
    const settled: string[] = []
    const subscription = await group.subscribe('t', { qos: 1 })
    for (const name of ['a', 'b']) watch(name, settled)
    const first = subscription.next()
    await arrive({ a: ['1'], b: ['1'] })
    expect(textOf(await first)).toBe('a 1')
    await rig.world.pass(1)
    // That of b was taken while somebody waited, and is not acknowledged.
    expect(settled).toEqual([])
    expect(textOf(await subscription.next())).toBe('b 1')
    await rig.world.pass(1)
    expect(settled).toEqual(['a'])
    const last = subscription.next({ timeout: 5 })
    await rig.world.pass(1)
    expect(settled).toEqual(['a', 'b'])
    await rig.world.pass(5)
    expect(await endOf(last)).toBe('ERR_TIMEOUT')
  })

  it('what was taken and not handed out when the loop is left comes again', async () => {
    const durable = await rig.up(['a', 'b'], {
      shared: { clientId: 'd', cleanStart: false, sessionExpiryInterval: 600 },
    })
    const subscription = await durable.subscribe('t', { qos: 1 })
    const first = subscription.next()
    await arrive({ a: ['1'], b: ['1'] })
    expect(textOf(await first)).toBe('a 1')
    subscription.detach()
    expect(await subscription.next()).toBeUndefined()
    const again = await durable.subscribe('t', { qos: 1 })
    const texts = [textOf(await again.next()), textOf(await again.next())]
    expect(texts.sort()).toEqual(['a 1', 'b 1'])
    await rig.world.until(durable.disconnect())
  })

  it('leaves out what came by another member within the window', async () => {
    const subscription = await group.subscribe('t', {
      qos: 1,
      deduplicate: { key: (message) => message.text(), window: 60_000, limit: 3 },
    })
    await arrive({ a: ['1', '2'], b: ['1', '2', '3'] })
    expect(takenFrom(subscription).sort()).toEqual(['1', '2', '3'])
    expect([subscription.duplicates, group.stats().duplicates]).toEqual([2, 2])
    // The oldest key makes room.
    await arrive({ a: ['4'], b: ['1'] })
    expect(takenFrom(subscription).sort()).toEqual(['1', '4'])
  })

  it('the window and the timeout of next() are time of the clients', async () => {
    const subscription = await group.subscribe('t', {
      qos: 1,
      deduplicate: { key: (message) => message.text(), window: 1000 },
    })
    send('a', '1')
    await rig.world.pass(999)
    await arrive({ b: ['1'] })
    expect([subscription.read()?.text(), subscription.read(), subscription.duplicates]).toEqual([
      '1',
      undefined,
      1,
    ])
    await rig.world.pass(1000)
    await arrive({ b: ['1'] })
    expect([subscription.read()?.text(), subscription.duplicates]).toEqual(['1', 1])
    const late = endOf(subscription.next({ timeout: 3_600_000 }))
    await rig.world.pass(3_600_000)
    expect(await late).toBe('ERR_TIMEOUT')
  })

  it('goes on when a member ends, and ends with all of them', async () => {
    const subscription = await group.subscribe('t', { qos: 1 })
    const read: string[] = []
    const loop = (async () => {
      for await (const message of subscription) read.push(textOf(message))
    })()
    await arrive({ a: ['1'], b: ['1'] })
    await group.remove('a')
    await arrive({ b: ['2'] })
    expect(read).toEqual(['a 1', 'b 1', 'b 2'])
    await group.disconnect()
    await loop
  })

  it('says once what ended all of them, where that was an error', async () => {
    const subscription = await group.subscribe('t')
    const next = subscription.next()
    for (const name of ['a', 'b']) rig.brokers[name]?.disconnect(`g-${name}`, 0x8e)
    await rig.world.pass(1)
    const over = { code: 'ERR_SESSION_TAKEN_OVER' }
    await expect(next).rejects.toMatchObject({
      name: 'AggregateError',
      members: { a: over, b: over },
    })
    expect(await subscription.next()).toBeUndefined()
  })

  it('waits for the members that are connected; the others follow', async () => {
    const late = rig.group({ names: ['a', 'b'], shared: { clientId: 'l' } })
    const mend = rig.cut('b')
    await rig.world.until(late.connect())
    const subscription = await late.subscribe('t', { qos: 1 })
    expect(subscription.granted.map(({ member }) => member)).toEqual(['a'])
    mend()
    await rig.world.until(() => subscription.granted.length === 2)
    await arrive({ b: ['1'] })
    expect(textOf(subscription.read())).toBe('b 1')
    const all = late.subscribe('u', { require: 'all' })
    expect((await all).granted).toHaveLength(2)
  })

  it('is refused where no member grants it, or one where all have to', async () => {
    const refusing = await rig.up(['a', 'b'], { shared: { clientId: 'r' } })
    const refused = { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 }
    await expect(refusing.subscribe('never')).rejects.toMatchObject({
      members: { a: refused, b: refused },
    })
    await expect(refusing.subscribe('not-b', { require: 'all' })).rejects.toMatchObject({
      members: { b: refused },
    })
    const granted = await refusing.subscribe('not-b')
    expect(granted.granted).toMatchObject([
      { member: 'a', error: undefined },
      { member: 'b', error: refused },
    ])
    expect(await endOf(refusing.subscribe('t/#/x'))).toBe('ERR_INVALID_TOPIC')
    expect(await endOf(refusing.subscribe('t', { members: ['c'] }))).toBe('ERR_INVALID_OPTION')
    expect(await endOf(refusing.subscribe('t', { require: 'most' as never }))).toBe(
      'ERR_INVALID_OPTION',
    )
    expect(
      await endOf(refusing.subscribe('t', { deduplicate: { key: 1 as never, window: 1 } })),
    ).toBe('ERR_INVALID_OPTION')
    expect(await endOf(refusing.subscribe('t', { qos: 5 as never }))).toBe('ERR_INVALID_OPTION')
  })

  it('one at a time: an overlapping next() is refused; batches and streams read the same', async () => {
    const subscription = await group.subscribe('t', { qos: 1 })
    const waiting = subscription.next()
    expect(await endOf(subscription.next())).toBe('ERR_CONCURRENT_NEXT')
    expect(() => subscription.readable()).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
    )
    send('a', '1', '2')
    send('b', '1')
    await waiting
    await rig.world.pass(1)
    const batches = subscription.batches(10)
    expect((await batches.next()).value.map(textOf)).toEqual(['b 1', 'a 2'])
    await batches.return?.()
    const manual = await group.subscribe('m', { qos: 1, ack: 'manual' })
    rig.brokers['b']?.publish({ topic: 'm', payload: 'x', qos: 1 })
    const reader = manual.readable().getReader()
    const { value } = await reader.read()
    expect([value?.member, value?.ack()]).toEqual(['b', true])
    await reader.cancel()
  })

  it('a batch is acknowledged when the next one is asked for, and can be read until then', async () => {
    const settled: string[] = []
    for (const name of ['a', 'b']) watch(name, settled)
    const batches = (await group.subscribe('t', { qos: 1, lifetime: 'borrowed' })).batches(3)
    await arrive({ a: ['1', '2', '3'], b: ['1'] })
    const { value } = await batches.next()
    await rig.world.pass(1)
    expect([value.map(textOf), settled]).toEqual([['a 1', 'b 1', 'a 2'], []])
    expect((await batches.next()).value.map(textOf)).toEqual(['a 3'])
    await rig.world.pass(1)
    expect(settled.sort()).toEqual(['a', 'a', 'b'])
    await batches.return?.()
  })

  it.each(['manual', 'on-receive'] as const)('%s: several may read, each its own', async (ack) => {
    const subscription = await group.subscribe('t', { qos: 1, ack })
    const got: string[] = []
    const worker = async (name: string): Promise<void> => {
      for await (const message of subscription) {
        await rig.world.sleep(20)
        got.push(`${name} ${textOf(message)}`)
        message.ack()
      }
    }
    const workers = ['A', 'B'].map(worker)
    await rig.world.pass(1)
    send('a', '1', '2')
    send('b', '1', '2')
    await rig.world.pass(100)
    expect([got.map((text) => text.slice(2)).sort(), new Set(got.map(([name]) => name))]).toEqual([
      ['a 1', 'a 2', 'b 1', 'b 2'],
      new Set(['A', 'B']),
    ])
    await rig.world.until(group.disconnect())
    await Promise.all(workers)
  })

  it.each(['auto', 'manual'] as const)(
    '%s: a key function that throws is what next() rejects with, and the next message comes; manual acknowledges neither',
    async (ack) => {
      const settled: string[] = []
      watch('a', settled)
      const deduplicate = {
        key: (message: GroupMessage) => (message.json() as { id: number }).id,
        window: 1000,
      }
      const subscription = await group.subscribe('t', { qos: 1, ack, deduplicate })
      await arrive({ a: ['no json', '2'] })
      await expect(subscription.next()).rejects.toThrow(SyntaxError)
      expect(textOf(await subscription.next())).toBe('a 2')
      expect(subscription.read()).toBeUndefined()
      await rig.world.pass(1)
      expect(settled).toEqual(ack === 'manual' ? [] : ['a', 'a'])
    },
  )

  it('a loop that is left ends it on every member; a second one meanwhile is refused', async () => {
    const subscription = await group.subscribe('t', { qos: 1 })
    expect(() => subscription.batches(0)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
    )
    await arrive({ a: ['1', '2'], b: ['1'] })
    expect([subscription.size, subscription.dropped]).toEqual([3, 0])
    for await (const batch of subscription.batches(1)) {
      expect(batch.map(textOf)).toEqual(['a 1'])
      expect(() => subscription[Symbol.asyncIterator]()).toThrow(
        expect.objectContaining({ code: 'ERR_CONCURRENT_NEXT' }),
      )
      break
    }
    await rig.world.pass(1)
    expect(await subscription.next()).toBeUndefined()
    for (const { client } of group.members())
      expect((client as unknown as { toJSON(): object }).toJSON()).toMatchObject({
        subscriptions: 0,
      })
  })

  it('counts what each member drops, and what was taken for a reader that got another message', async () => {
    const subscription = await group.subscribe('t', { qos: 0, buffer: 1, overflow: 'drop-newest' })
    const first = subscription.next()
    for (const name of ['a', 'b'])
      for (const payload of ['1', '2', '3', '4'])
        rig.brokers[name]?.publish({ topic: 't', payload })
    await rig.world.pass(1)
    const got = [textOf(await first)]
    const { size, dropped } = subscription
    for (let message = subscription.read(); message !== undefined; message = subscription.read())
      got.push(textOf(message))
    expect([got.length, got.length + dropped, subscription.size]).toEqual([size + 1, 8, 0])
    expect(dropped).toBeGreaterThan(1)
  })

  it('next() leaves no listener when it has got a message', async () => {
    const subscription = await group.subscribe('t', { qos: 1 })
    const { pending } = rig.world.clock
    const { signal } = new AbortController()
    const forget = vi.spyOn(signal, 'removeEventListener')
    const next = subscription.next({ timeout: 1000, signal })
    expect(rig.world.clock.pending).toBe(pending + 1)
    await arrive({ a: ['1'] })
    expect(textOf(await next)).toBe('a 1')
    expect(forget).toHaveBeenCalledOnce()
    await arrive({ b: ['1'] })
    expect(await endOf(subscription.next({ signal: AbortSignal.abort() }))).toBe('ERR_ABORTED')
    expect(await endOf(subscription.next({ timeout: -1 }))).toBe('ERR_INVALID_OPTION')
    expect(textOf(subscription.read())).toBe('b 1')
  })

  it.each(['detach', 'unsubscribe', Symbol.asyncDispose] as const)(
    '%s ends it on every member, and the wait of its reader',
    async (how) => {
      const subscription = await group.subscribe('t', { qos: 1 })
      const waiting = subscription.next()
      await subscription[how]()
      expect(await waiting).toBeUndefined()
      send('a', '1')
      await rig.world.pass(1)
      expect([await subscription.next(), subscription.size]).toEqual([undefined, 0])
      await group.add('c', { url: 'memory://b', transport: rig.link('a') })
      expect(subscription.granted.map(({ member }) => member)).not.toContain('c')
    },
  )
})

describe('listen', () => {
  it('runs the handler for each member, in its order, with its name', async () => {
    const seen: string[] = []
    const handling = await group.listen('t', (message) => void seen.push(textOf(message)), {
      qos: 1,
    })
    await arrive({ a: ['1', '2'], b: ['1', '2'] })
    expect(seen.filter((text) => text.startsWith('a'))).toEqual(['a 1', 'a 2'])
    expect(seen.filter((text) => text.startsWith('b'))).toEqual(['b 1', 'b 2'])
    expect(handling.granted).toHaveLength(2)
    await handling.unsubscribe()
    await handling.done
    await arrive({ a: ['3'] })
    expect(seen).toHaveLength(4)
  })

  it('a duplicate is left out; one whose handler failed is tried again, and does not count as one', async () => {
    const seen: string[] = []
    const handle = (message: GroupMessage): void => {
      if (seen.push(textOf(message)) === 1) throw new Error('again')
    }
    const deduplicate = { key: (message: GroupMessage) => message.text(), window: 60_000 }
    const handling = await group.listen('t', handle, { qos: 1, deduplicate })
    send('a', '1')
    await rig.world.pass(5000)
    await arrive({ b: ['1'] })
    expect(seen).toEqual(['a 1', 'a 1'])
    expect(handling.duplicates).toBe(1)
  })

  it.each(['detach', 'unsubscribe', Symbol.asyncDispose] as const)(
    '%s ends it on every member, the one that waits for its connection too',
    async (how) => {
      const late = rig.group({ names: ['a', 'b'], shared: { clientId: 'l' } })
      const mend = rig.cut('b')
      await rig.world.until(late.connect())
      const seen: string[] = []
      const handling = await late.listen('t', (message) => void seen.push(textOf(message)))
      await handling[how]()
      mend()
      await rig.world.until(() => late.stats().up === 2)
      await rig.world.until(handling.done)
      for (const name of ['a', 'b']) rig.brokers[name]?.publish({ topic: 't', payload: 'x' })
      await rig.world.pass(1)
      expect(seen).toEqual([])
    },
  )

  it.each([
    ['before the call', true],
    ['while it waits for a grant', false],
  ])('a signal that aborts %s ends the wait', async (_, early) => {
    const late = rig.group({ names: ['a'], shared: { clientId: 'l' } })
    const abort = new AbortController()
    if (early) abort.abort()
    const calls = [
      late.listen('t', () => undefined, { signal: abort.signal }),
      late.subscribe('t', { signal: abort.signal }),
    ].map(endOf)
    abort.abort()
    expect(await Promise.all(calls)).toEqual(['ERR_ABORTED', 'ERR_ABORTED'])
  })

  it('that has ended leaves no listener on its signal', async () => {
    const { signal } = new AbortController()
    const handling = await group.listen('t', () => undefined, { signal })
    expect(getEventListeners(signal, 'abort')).not.toEqual([])
    await handling.unsubscribe()
    await handling.done
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('refuses what is no handler', async () => {
    expect(await endOf(group.listen('t', 7 as never))).toBe('ERR_INVALID_HANDLER')
  })
})

function merging(): Merge {
  const time = () => rig.world.clock
  const common = { total: { duplicates: 0 }, time, readiness: new Readiness() }
  return new Merge(true, false, new Duplicates(undefined, common), common)
}

it('a subscription without internals is acknowledged all the same', () => {
  const merge = merging()
  const acked: number[] = []
  const waiting = [1, 2, 3].map((number) => ({ number, ack: () => acked.push(number) > 0 }))
  merge.add(
    { name: 'a', up: true, client: {} } as never,
    {
      ready: Promise.resolve(),
      read: () => waiting.shift(),
    } as never,
  )
  expect([merge.read(), merge.more(), acked.length]).toMatchObject([
    { number: 1, member: 'a' },
    { number: 2 },
    0,
  ])
  expect([merge.read(), acked]).toMatchObject([{ number: 3 }, [1, 2]])
  merge.iterating = true
  expect([merge.read(), acked]).toEqual([undefined, [1, 2, 3]])
})

it('nothing overtakes a message that a client was asked for, though no reader waits for it any more', async () => {
  const merge = merging()
  const later = [{ ack: () => true }]
  merge.add(
    { name: 'a', up: true, client: {} } as never,
    {
      ready: Promise.resolve(),
      next: () => new Promise(() => undefined),
      read: () => later.shift(),
    } as never,
  )
  const asking = new AbortController()
  const outcome = endOf(merge.wait({ signal: asking.signal }))
  asking.abort()
  expect(await outcome).toBe('ERR_ABORTED')
  expect(merge.read()).toBeUndefined()
})
