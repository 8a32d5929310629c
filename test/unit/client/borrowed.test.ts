/** Borrowed messages over a transport whose windows are full of other bytes after each read: right for as long as they may be read. */
import { describe, expect, it } from 'vitest'
import type {
  Handler,
  Handling,
  ListenOptions,
  Message,
  Subscription,
} from '../../../src/client/options/index.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import { Random } from '../../world/random.js'
import { coded, times } from './harness.js'
import {
  acks,
  agreed,
  gate,
  pubacks,
  publish,
  quick,
  quiet,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'
import { settled } from './steps.js'
import { type WindowedWorld, windowed } from './windowed.js'

const released = expect.objectContaining({ code: 'ERR_MESSAGE_RELEASED' })
const utf8 = new TextDecoder()
const shown = (message: Message): string => utf8.decode(message.payload)

interface Listening extends WindowedWorld {
  readonly handling: Handling
  /** Texts that were handled, in order. */
  readonly texts: string[]
}

/** A listener of borrowed messages on a connection that lends its windows. */
async function listening(
  handler: (message: Message, rig: Listening) => unknown,
  options: ListenOptions = {},
): Promise<Listening> {
  const windows = await windowed()
  const texts: string[] = []
  const handle: Handler = (message) => {
    texts.push(message.text())
    return handler(message, rig) as Promise<void> | void
  }
  const all: ListenOptions = { qos: 1, lifetime: 'borrowed', ...options }
  const promise = windows.world.client.listen('a', handle, all)
  await windows.world.settle()
  const rig: Listening = { ...windows, handling: await promise, texts }
  quiet(rig.handling.done)
  await rig.busy()
  return rig
}

/** Acknowledgements of messages 1 to `count`, and no others. */
const expectAcked = ({ world }: WindowedWorld, count: number): void =>
  expect(acks(world)).toEqual(pubacks(1, count))

/** Reads that go through every window of a connection. */
async function churn({ busy }: WindowedWorld): Promise<void> {
  for (let round = 0; round < 10; round++) await busy()
}

const stopping = { qos: 1, lifetime: 'borrowed', onError: 'stop', onExit: 'detach' } as const
const fails = (): never => {
  throw new Error('no')
}

describe('a handler where the message was read', () => {
  it('is called before the read is over, and acknowledged when it returns', async () => {
    const rig = await listening(() => undefined)
    quiet(rig.world.client.listen('end', () => void rig.texts.push('owned, later'), {}))
    await rig.world.settle()
    await rig.busy()
    await rig.send(publish('end', 'x'), ...series('a', 3))
    expect(rig.texts).toEqual(['1', '2', '3', 'owned, later'])
    expectAcked(rig, 3)
  })

  it('is shown the memory that the transport read into, without a copy', async () => {
    const buffers: ArrayBufferLike[] = []
    const rig = await listening((message) => void buffers.push(message.payload.buffer))
    const window = rig.connections[0]?.latest?.buffer
    await rig.send(publish('a', 'hello', 1))
    expect(buffers).toHaveLength(1)
    expect(buffers[0]).toBe(window)
  })

  it('what it kept cannot be read afterwards, nor its detached copy be lost', async () => {
    const seen: Message[] = []
    const kept: Message[] = []
    const rig = await listening((message) => {
      seen.push(message)
      kept.push(message.detach())
    })
    await rig.send(...series('a', 3))
    await churn(rig)
    for (const message of seen)
      for (const read of ['text', 'detach'] as const)
        expect(() => message[read]()).toThrow(released)
    expect(kept.map(shown)).toEqual(['1', '2', '3'])
    expect(kept.map((message) => message.payload.buffer.byteLength)).toEqual([1, 1, 1])
  })

  it('waits its turn behind one that is not done, and order stays', async () => {
    const door = gate()
    const rig = await listening((message) => (message.text() === '2' ? door.promise : undefined))
    await rig.send(...series('a', 2))
    await rig.send(...series('a', 2, 3))
    await rig.send(...quick('a', 2, 5))
    expect(rig.texts).toEqual(['1', '2'])
    await churn(rig)
    await settled(rig.world, door.open())
    expect(rig.texts).toEqual(['1', '2', '3', '4', '5', '6'])
    expectAcked(rig, 4)
  })

  it('a view stays what it is while an asynchronous handler runs, though reads go on', async () => {
    const door = gate()
    const views: (readonly [Uint8Array, Message])[] = []
    const rig = await listening((message) => {
      views.push([message.payload, message])
      return door.promise
    })
    await rig.send(publish('a', 'hello', 1))
    await churn(rig)
    const [[view, message]] = views as [readonly [Uint8Array, Message]]
    expect([utf8.decode(view), message.text(), shown(message)]).toEqual(['hello', 'hello', 'hello'])
    const shape = { topic: 'a', qos: 1, payloadLength: 5 }
    expect(JSON.parse(JSON.stringify(message))).toMatchObject(shape)
    await settled(rig.world, door.open())
    expect(() => message.payload).toThrow(released)
    expect(JSON.parse(JSON.stringify(message))).toEqual({ topic: 'a', released: true })
  })

  it('is retried with the same message, which is still there', async () => {
    const rig = await listening((_message, { texts }) => {
      if (texts.length < 3) throw new Error('not yet')
    })
    await rig.send(publish('a', 'hello', 1), publish('a', 'next', 2))
    await churn(rig)
    await rig.world.clock.advance(10_000)
    expect(rig.texts).toEqual(['hello', 'hello', 'hello', 'next'])
    expectAcked(rig, 2)
  })

  const acts: Readonly<Record<string, (rig: Listening) => unknown>> = {
    unsubscribe: ({ handling }) => handling.unsubscribe(),
    dispose: ({ handling }) => handling[Symbol.asyncDispose](),
    disconnect: ({ world }) => world.client.disconnect({ timeout: 1000 }),
    destroy: ({ world }) => world.client.destroy(),
    subscribe: ({ world }) =>
      world.client.subscribe('a', { qos: 1, ack: 'on-receive', overflow: 'drop-oldest' }),
    publish: ({ world }) => world.client.publish('b', 'x'.repeat(50_000), { qos: 1 }),
    listener: ({ world }) => world.client.on('packet', () => undefined),
  }
  it.each(Object.keys(acts))('may %s', async (what) => {
    const rig = await listening((message, given) => {
      const text = message.text()
      if (text === '2') quiet(Promise.resolve(acts[what]?.(given)))
      expect(what === 'dispose' || message.text() === text).toBe(true)
    })
    await rig.send(...series('a', 5))
    await rig.world.clock.advance(5000)
    const ends = ['dispose', 'disconnect', 'destroy'].includes(what)
    expect(rig.texts).toEqual(ends ? ['1', '2'] : ['1', '2', '3', '4', '5'])
    if (what !== 'destroy') expectAcked(rig, what === 'disconnect' ? 2 : 5)
    const kinds = rig.world.peer.received.map(({ type }) => type)
    if (what === 'disconnect') expect(kinds.slice(-3)).toEqual(['puback', 'puback', 'disconnect'])
  })
})

describe('detached from', () => {
  it('inside the handler: the next subscription gets the message, for good', async () => {
    const rig = await listening((_message, { handling }) => handling.detach(), { onExit: 'detach' })
    await rig.send(publish('a', 'hello', 1))
    await churn(rig)
    const next = await subscribe(rig.world, 'a', { qos: 1 })
    const message = taken(next)
    expect([message.text(), message.payload.buffer.byteLength]).toEqual(['hello', 5])
    next.read()
    expect(message.text()).toBe('hello')
    await rig.world.settle()
    expectAcked(rig, 1)
  })

  it('while an asynchronous handler runs: what it looks at stays, though others borrow the windows', async () => {
    const door = gate()
    const views: Uint8Array[] = []
    const handler = (message: Message): Promise<void> => {
      views.push(message.payload)
      return door.promise
    }
    const rig = await listening(handler, { onExit: 'detach' })
    await subscribe(rig.world, 'other', { lifetime: 'borrowed' })
    await rig.busy()
    await rig.send(publish('a', 'hello', 1), publish('b', 'x'.repeat(5000)))
    rig.handling.detach()
    await churn(rig)
    expect(views.map((view) => utf8.decode(view))).toEqual(['hello'])
    const message = taken(await subscribe(rig.world, 'a', { qos: 1 }))
    await settled(rig.world, door.open())
    expect(message.text()).toBe('hello')
  })

  it('after its payload was looked at: the next subscription sees the same', async () => {
    const rig = await windowed()
    const options = { qos: 1, lifetime: 'borrowed', onExit: 'detach' } as const
    const subscription = await subscribe(rig.world, 'a', options)
    await rig.busy()
    await rig.send(publish('a', 'hello', 1, { properties: { contentType: 't' } }))
    const view = taken(subscription).payload
    subscription.detach()
    const second = await subscribe(rig.world, 'a', { qos: 1 })
    await churn(rig)
    expect(utf8.decode(view)).toBe('hello')
    const message = taken(second)
    expect(shown(message)).toBe('hello')
    expect(message.text()).toBe('hello')
    expect(message.properties.contentType).toBe('t')
    expect([message.payload.buffer.byteLength, message.payload === view]).toEqual([5, false])
  })
})

describe('refused by its handler inside the read', () => {
  /** A handler of a small client that refuses every message. */
  async function refuse({ world, busy }: WindowedWorld): Promise<void> {
    const promise = world.client.listen('a', fails, stopping)
    await world.settle()
    quiet((await promise).done)
    await busy()
  }

  it('again and again: what is held is counted right, and the budget stays', async () => {
    const rig = await windowed({ memoryBudget: 20_000 })
    const { world, send } = rig
    for (let id = 1; id <= 100; id++) {
      await refuse(rig)
      await send(publish('a', 'hello', id))
      const next = await subscribe(world, 'a', { qos: 1, onExit: 'detach' })
      expect(taken(next).text()).toBe('hello')
      next.read()
      next.detach()
    }
    await subscribe(world, 'a', { qos: 1 })
    for (const causes of [[], ['memory budget spent']]) {
      const from = 200 + 100 * causes.length
      await world.send(...times(10, (at) => publish('a', 'x'.repeat(1000), from + at)))
      expect(world.seen('disconnect').map(({ cause }) => cause?.message)).toEqual(causes)
    }
  })
})

describe('acknowledged', () => {
  const looking = (_error: unknown, message: Message) =>
    message.text() === '' ? 'reject' : 'retry'

  it('by a detached copy: only the message that it is a copy of', async () => {
    const door = gate()
    const kept: Message[] = []
    const rig = await listening((message) => {
      kept.push(message.detach())
      return kept.length === 2 ? door.promise : undefined
    })
    await rig.send(...series('a', 2))
    expect(kept[0]?.ack(0x80)).toBe(false)
    await rig.world.settle()
    expectAcked(rig, 1)
    await settled(rig.world, door.open())
    expectAcked(rig, 2)
  })

  it.each([
    ['where it was read', {}],
    ['in its turn', { concurrency: 2 }],
    ['with onError retry', { onError: 'retry' }],
    ['with a function that looks at it', { onError: looking }],
  ] as const)(
    'by a handler that throws then: reported, not retried (%s)',
    async (_how, options) => {
      const rig = await listening((message, { texts }) => {
        if (texts.length > 1) return
        message.ack()
        fails()
      }, options)
      await rig.send(...series('a', 2))
      // At once.
      expect(rig.world.seen('error').length).toBe(1)
      await rig.world.clock.advance(60_000)
      expect(rig.texts).toEqual(['1', '2'])
      expectAcked(rig, 2)
      expect(rig.world.seen('error').map(({ error }) => error.message)).toEqual([
        'handler failed: a',
      ])
    },
  )
})

describe('a handler that returns', () => {
  const thenable = (then: PropertyDescriptor) => () =>
    Object.defineProperty({}, 'then', then) as Promise<void>
  it.each([
    ['a getter that throws', thenable({ get: fails }), 0],
    ['a then that throws', thenable({ value: fails }), 0],
    [
      'a then that calls back twice',
      thenable({ value: (done: () => void) => [done(), done()] }),
      0,
    ],
    ['a then that never calls back', () => new Promise<void>(() => undefined), 1],
  ])('%s, in both ways of being called', async (_name, make, stuck) => {
    for (const concurrency of [1, 3]) {
      let [most, running] = [0, 0]
      const door = gate()
      const handler = (_message: Message, { texts }: Listening): Promise<void> => {
        if (texts.length === 1) return make()
        running += 1
        most = Math.max(most, running)
        return door.promise.then(() => void running--)
      }
      const more = concurrency === 1 ? {} : { concurrency }
      const rig = await listening(handler, { onError: 'reject', ...more })
      await rig.send(...series('a', 8))
      await rig.world.settle()
      expect(rig.texts.length).toEqual(Math.min(8, 1 + concurrency - stuck))
      expect(most).toEqual(concurrency - stuck)
      await settled(rig.world, door.open())
      expect(acks(rig.world).length).toBe(stuck === 1 ? 0 : 8)
    }
  })
})

describe('memory', () => {
  it('onDrop of one subscription does not get that of another', async () => {
    const world = await agreed()
    const options = { buffer: 1, overflow: 'drop-newest', ack: 'on-receive' } as const
    const onDrop = (message: Message): unknown => message.payload.fill(0)
    const first = await subscribe(world, 'a', { ...options, onDrop })
    const second = await subscribe(world, 'a')
    for (const text of ['1', '2', 'abc']) await world.send(publish('a', text))
    expect([first.dropped, takenTexts(second)]).toEqual([1, ['1', '2', 'abc']])
  })

  it('of messages that wait keeps little else alive, from the next read on', async () => {
    const world = await agreed()
    const [rare] = [
      await subscribe(world, 'a', { lifetime: 'borrowed' }),
      await subscribe(world, 'b'),
    ]
    for (let round = 0; round < 4; round++)
      await world.send(publish('a', 'x'.repeat(100)), ...quick('b', 40))
    const sizes = times(3, () => taken(rare).payload.buffer.byteLength)
    for (const size of sizes) expect(size).toBeLessThan(200)
  })

  it('a subscription that was refused at once makes the connection lend no windows', async () => {
    const rig = await windowed()
    const { world } = rig
    await subscribe(world, 'a')
    const options = { lifetime: 'borrowed', noLocal: true } as const
    expect(() => world.client.subscription('a', options)).toThrow(
      coded('ERR_SUBSCRIPTION_CONFLICT'),
    )
    quiet(world.client.subscribe('b', { lifetime: 'borrowed', signal: AbortSignal.abort() }))
    await churn(rig)
    expect(rig.connections[0]?.windows.length).toBe(1)
  })

  it.each(['unsubscribe', 'detach', 'until'] as const)(
    'nor does one that has ended: %s',
    async (how) => {
      const { world, connections, busy } = await windowed()
      const until = new AbortController()
      const options = { lifetime: 'borrowed', until: until.signal } as const
      const subscription = await subscribe(world, 'a', options)
      await busy()
      await busy()
      expect(connections[0]?.windows.length).toBe(2)
      if (how === 'until') until.abort()
      else quiet(Promise.resolve(subscription[how]()))
      await world.settle()
      const shared = connections[0]?.windows[0]
      await busy()
      for (let round = 0; round < 4; round++) {
        await busy()
        expect(connections[0]?.latest).toBe(shared)
      }
    },
  )
})

/** Consumers of borrowed messages that look at what they were handed twice: when it came, and when they are done with it. */
class Judges {
  readonly wrong: string[] = []
  readonly handled: number[] = []
  readonly read: number[] = []
  readonly #doors: (() => void)[] = []
  #inHand: [Message, Uint8Array, string] | undefined

  /** Handles at once, each eleventh one later. */
  readonly handle = (message: Message): Promise<void> | undefined => {
    const text = message.text()
    this.handled.push(numberOf(text))
    const view = message.payload
    if (numberOf(text) % 11 !== 0) return undefined
    const door = gate()
    this.#doors.push(() => {
      this.#judge(message, view, text)
      door.open()
    })
    return door.promise
  }

  /** Lets those go on that are handled later; false when there are none. */
  open(): boolean {
    const doors = this.#doors.splice(0)
    for (const open of doors) open()
    return doors.length > 0
  }

  /** Reads one by hand; false when none waits. */
  readOne(reader: Subscription): boolean {
    if (this.#inHand !== undefined) this.#judge(...this.#inHand)
    const message = reader.read()
    this.#inHand = message === undefined ? undefined : [message, message.payload, message.text()]
    if (this.#inHand !== undefined) this.read.push(numberOf(this.#inHand[2]))
    return message !== undefined
  }

  #judge(message: Message, view: Uint8Array, text: string): void {
    if (utf8.decode(view) !== text || message.text() !== text || shown(message) !== text)
      this.wrong.push(text)
  }
}

const numberOf = (text: string): number => Number(text.split(' ')[0])

it.each([1, 2, 3, 4])(
  'every message is right in bursts, handled at once, later, and read by hand (%i)',
  async (seed) => {
    const rig = await windowed({ receiveMaximum: 65_535 })
    const { world } = rig
    const options = { lifetime: 'borrowed', qos: 1, buffer: 1_000_000, bufferBytes: 1e9 } as const
    const random = new Random(seed)
    const judges = new Judges()
    quiet(world.client.listen('a', judges.handle, options))
    const reader = await subscribe(world, 'b', options)
    const handled: number[] = []
    const read: number[] = []
    const one = (number: number): PacketInput => {
      const [topic, expected] =
        random.below(3) === 0 ? (['b', read] as const) : (['a', handled] as const)
      expected.push(number)
      const text = `${number} ${'é'.repeat(random.below(4) === 0 ? random.below(3000) : random.below(60))}`
      return publish(topic, text, random.below(4) === 0 ? number : undefined)
    }
    let number = 0
    for (let round = 0; round < 80; round++) {
      await rig.send(...times(random.between(1, 80), () => one(++number)))
      if (random.below(3) === 0) judges.open()
      for (let count = random.below(40); count > 0 && judges.readOne(reader); count--);
      if (random.below(2) === 0) await world.settle()
    }
    await world.settle()
    while (judges.handled.length < handled.length && judges.open()) await world.settle()
    while (judges.readOne(reader));
    expect(world.seen('disconnect')).toEqual([])
    expect([judges.wrong, judges.handled, judges.read]).toEqual([[], handled, read])
  },
)
