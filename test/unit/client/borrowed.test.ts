/**
 * Borrowed messages over a transport that reads in place, and whose windows are full of other bytes after each read: what may be read is right for as
 * long as it may be read, whoever keeps, detaches, acknowledges, drops or hands it on.
 */
import { describe, expect, it } from 'vitest'
import type { Handler, Handling, ListenOptions, Message, SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { Random } from '../../world/random.js'
import { acks, agreed, gate, publish, quick, quiet, series, subscribe, taken } from './incoming.js'
import { type WindowedWorld, windowed } from './windowed.js'

const released = expect.objectContaining({ code: 'ERR_MESSAGE_RELEASED' })
const utf8 = new TextDecoder()
const shown = (message: Message): string => utf8.decode(message.payload)

interface Listening extends WindowedWorld {
  readonly handling: Handling
}

/** A listener of borrowed messages on a connection that lends its windows. */
async function listening(handler: Handler, options: ListenOptions = {}): Promise<Listening> {
  const rig = await windowed()
  const promise = rig.world.client.listen('a', handler, { qos: 1, lifetime: 'borrowed', ...options })
  await rig.world.settle()
  const handling = await promise
  quiet(handling.done)
  await rig.busy()
  return { ...rig, handling }
}

/** A reader of borrowed messages on a connection that lends its windows. */
async function reading(options: SubscribeOptions = {}): Promise<WindowedWorld & { readonly subscription: Subscription }> {
  const rig = await windowed()
  const subscription = await subscribe(rig.world, 'a', { qos: 1, lifetime: 'borrowed', ...options })
  await rig.busy()
  return { ...rig, subscription }
}

/** Reads that go through every window of a connection. */
async function churn({ busy }: WindowedWorld): Promise<void> {
  for (let round = 0; round < 10; round++) await busy()
}

describe('a handler where the message was read', () => {
  it('is called before the read is over, and acknowledged when it returns', async () => {
    const order: string[] = []
    const rig = await listening((message) => void order.push(message.text()))
    quiet(rig.world.client.listen('end', () => void order.push('owned, later'), {}))
    await rig.world.settle()
    await rig.busy()
    await rig.send(publish('end', 'x'), ...series('a', 3))
    expect(order).toEqual(['1', '2', '3', 'owned, later'])
    expect(acks(rig.world)).toEqual(['puback 1', 'puback 2', 'puback 3'])
  })

  it('is shown the memory that the transport read into, without a copy', async () => {
    const buffers: ArrayBufferLike[] = []
    const rig = await listening((message) => void buffers.push(message.payload.buffer))
    const window = rig.links[0]?.latest?.buffer
    await rig.send(publish('a', 'hello', 1))
    expect(buffers).toEqual([window])
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
    for (const message of seen) for (const read of ['text', 'detach'] as const) expect(() => message[read]()).toThrow(released)
    expect(kept.map(shown)).toEqual(['1', '2', '3'])
    expect(kept.map((message) => message.payload.buffer.byteLength)).toEqual([1, 1, 1])
  })

  it('waits its turn behind one that is not done, and order stays', async () => {
    const door = gate()
    const order: string[] = []
    const rig = await listening(async (message) => {
      order.push(message.text())
      if (message.text() === '2') await door.promise
    })
    await rig.send(...series('a', 2))
    await rig.send(...series('a', 2, 3))
    await rig.send(...quick('a', 2, 5))
    expect(order).toEqual(['1', '2'])
    await churn(rig)
    door.open()
    await rig.world.settle()
    expect(order).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(acks(rig.world)).toEqual(['puback 1', 'puback 2', 'puback 3', 'puback 4'])
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
    expect(JSON.parse(JSON.stringify(message))).toMatchObject({ topic: 'a', qos: 1, payloadLength: 5 })
    door.open()
    await rig.world.settle()
    expect(() => message.payload).toThrow(released)
    expect(JSON.parse(JSON.stringify(message))).toEqual({ topic: 'a', released: true })
  })

  it('a packet that came in two reads has its place among the others', async () => {
    const order: string[] = []
    const rig = await listening((message) => void order.push(message.text()))
    // The window is full in the midst of a packet.
    await rig.send(...Array.from({ length: 40 }, (_, index) => publish('a', `${index} ${'x'.repeat(5000)}`)))
    expect(order.map((text) => Number(text.split(' ')[0]))).toEqual(Array.from({ length: 40 }, (_, index) => index))
    expect(order.every((text) => text.endsWith('x'.repeat(5000)))).toBe(true)
  })

  it('is retried with the same message, which is still there', async () => {
    const texts: string[] = []
    const rig = await listening((message) => {
      texts.push(message.text())
      if (texts.length < 3) throw new Error('not yet')
    })
    await rig.send(publish('a', 'hello', 1), publish('a', 'next', 2))
    await churn(rig)
    await rig.world.clock.advance(10_000)
    expect(texts).toEqual(['hello', 'hello', 'hello', 'next'])
    expect(acks(rig.world)).toEqual(['puback 1', 'puback 2'])
  })

  it('that throws at QoS 0 is told of, and the next message comes', async () => {
    const texts: string[] = []
    const rig = await listening((message) => {
      texts.push(message.text())
      throw new Error('no')
    })
    await rig.send(...quick('a', 2))
    expect(texts).toEqual(['1', '2'])
    expect(rig.world.seen('error').map(({ error }) => error.code)).toEqual(['ERR_HANDLER_FAILED', 'ERR_HANDLER_FAILED'])
  })

  it.each(['unsubscribe', 'dispose', 'disconnect', 'destroy', 'subscribe', 'publish', 'listener'] as const)('may %s', async (what) => {
    const texts: string[] = []
    let rig: Listening | undefined
    const act = async (): Promise<unknown> => {
      const { handling, world } = rig as Listening
      const { client } = world
      if (what === 'unsubscribe') return handling.unsubscribe()
      if (what === 'dispose') return handling[Symbol.asyncDispose]()
      if (what === 'disconnect') return client.disconnect({ timeout: 1000 })
      if (what === 'destroy') return client.destroy()
      if (what === 'subscribe') return client.subscribe('a', { qos: 1, ack: 'on-receive', overflow: 'drop-oldest' })
      if (what === 'publish') return client.publish('b', 'x'.repeat(50_000), { qos: 1 })
      return client.on('packet', () => undefined)
    }
    rig = await listening((message) => {
      const text = message.text()
      texts.push(text)
      if (text === '2') quiet(act())
      expect(what === 'dispose' || message.text() === text).toBe(true)
    })
    await rig.send(...series('a', 5))
    await rig.world.clock.advance(5000)
    const ends = ['dispose', 'disconnect', 'destroy'].includes(what)
    expect(texts).toEqual(ends ? ['1', '2'] : ['1', '2', '3', '4', '5'])
    if (what !== 'destroy' && what !== 'disconnect') expect(acks(rig.world)).toEqual([1, 2, 3, 4, 5].map((id) => `puback ${id}`))
    if (what === 'disconnect') expect(acks(rig.world)).toEqual(['puback 1', 'puback 2'])
  })

  it('the acknowledgement of what is in hand leaves before DISCONNECT', async () => {
    let rig: Listening | undefined
    rig = await listening((message) => {
      if (message.text() === '2') quiet((rig as Listening).world.client.disconnect({ timeout: 1000 }))
    })
    await rig.send(...series('a', 3))
    await rig.world.clock.advance(5000)
    const kinds = rig.world.peer.received.map(({ type }) => type)
    expect(kinds.slice(-3)).toEqual(['puback', 'puback', 'disconnect'])
  })
})

describe('detached from', () => {
  it('inside the handler: the next subscription gets the message, for good', async () => {
    let rig: Listening | undefined
    rig = await listening(() => (rig as Listening).handling.detach(), { onExit: 'detach' })
    await rig.send(publish('a', 'hello', 1))
    await churn(rig)
    const next = await subscribe(rig.world, 'a', { qos: 1 })
    const message = taken(next)
    expect([message.text(), message.payload.buffer.byteLength]).toEqual(['hello', 5])
    next.read()
    expect(message.text()).toBe('hello')
    await rig.world.settle()
    expect(acks(rig.world)).toEqual(['puback 1'])
  })

  it('while an asynchronous handler runs: what it looks at stays, though others borrow the windows', async () => {
    const door = gate()
    const views: Uint8Array[] = []
    const rig = await listening(
      (message) => {
        views.push(message.payload)
        return door.promise
      },
      { onExit: 'detach' },
    )
    await subscribe(rig.world, 'other', { lifetime: 'borrowed' })
    await rig.busy()
    await rig.send(publish('a', 'hello', 1), publish('b', 'x'.repeat(5000)))
    rig.handling.detach()
    await churn(rig)
    expect(views.map((view) => utf8.decode(view))).toEqual(['hello'])
    const next = await subscribe(rig.world, 'a', { qos: 1 })
    const message = taken(next)
    door.open()
    await rig.world.settle()
    expect(message.text()).toBe('hello')
  })

  it('after its payload was looked at: the next subscription sees the same', async () => {
    const rig = await reading({ onExit: 'detach' })
    await rig.send(publish('a', 'hello', 1, { properties: { contentType: 't' } }))
    const view = taken(rig.subscription).payload
    rig.subscription.detach()
    const second = await subscribe(rig.world, 'a', { qos: 1 })
    await churn(rig)
    expect(utf8.decode(view)).toBe('hello')
    const message = taken(second)
    expect([shown(message), message.text(), message.properties.contentType]).toEqual(['hello', 'hello', 't'])
    expect([message.payload.buffer.byteLength, message.payload === view]).toEqual([5, false])
  })

  it('by a verdict inside the read, again and again: what is held is counted right, and the budget stays', async () => {
    const rig = await windowed({ memoryBudget: 20_000 })
    const { world, send, busy } = rig
    for (let id = 1; id <= 100; id++) {
      const promise = world.client.listen(
        'a',
        () => {
          throw new Error('stop')
        },
        { qos: 1, lifetime: 'borrowed', onError: 'stop', onExit: 'detach' },
      )
      await world.settle()
      quiet((await promise).done)
      await busy()
      await send(publish('a', 'hello', id))
      const next = await subscribe(world, 'a', { qos: 1, onExit: 'detach' })
      expect(taken(next).text()).toBe('hello')
      next.read()
      next.detach()
    }
    await subscribe(world, 'a', { qos: 1 })
    await world.send(...Array.from({ length: 10 }, (_, index) => publish('a', 'x'.repeat(1000), 200 + index)))
    expect(world.seen('disconnect')).toEqual([])
    await world.send(...Array.from({ length: 10 }, (_, index) => publish('a', 'x'.repeat(1000), 300 + index)))
    expect(world.seen('disconnect').map(({ cause }) => cause?.message)).toEqual(['memory budget spent'])
  })
})

describe('a message that its handler refused, with large properties', () => {
  it('counts for the budget as any other does: others have room beside it', async () => {
    const rig = await windowed({ memoryBudget: 20_000 })
    const { world, send, busy } = rig
    const refuse = (): void => {
      throw new Error('stop')
    }
    const promise = world.client.listen('a', refuse, { qos: 1, lifetime: 'borrowed', onError: 'stop', onExit: 'detach' })
    await world.settle()
    quiet((await promise).done)
    await busy()
    await send(publish('a', 'hello', 1, { properties: { userProperties: [['k', 'v'.repeat(5000)]] } }))
    await send(publish('a', 'x'.repeat(3000), 2), publish('a', 'y'.repeat(3000), 3))
    expect(world.seen('disconnect')).toEqual([])
    const next = await subscribe(world, 'a', { qos: 1 })
    expect([taken(next), taken(next), taken(next)].map((message) => message.payloadLength)).toEqual([5, 3000, 3000])
  })
})

describe('acknowledged', () => {
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
    expect(acks(rig.world)).toEqual(['puback 1'])
    door.open()
    await rig.world.settle()
    expect(acks(rig.world)).toEqual(['puback 1', 'puback 2'])
  })

  it.each([
    ['where it was read', {}],
    ['in its turn', { concurrency: 2 }],
    ['with onError retry', { onError: 'retry' }],
    ['with a function that looks at it', { onError: (_error: unknown, message: Message) => (message.text() === '' ? 'reject' : 'retry') }],
  ] as const)('by a handler that throws then: told of, not retried, nobody harmed (%s)', async (_how, options) => {
    const texts: string[] = []
    const rig = await listening((message) => {
      texts.push(message.text())
      if (texts.length > 1) return
      message.ack()
      throw new Error('no')
    }, options)
    await rig.send(...series('a', 2))
    // Told at once.
    expect(rig.world.seen('error').length).toBe(1)
    await rig.world.clock.advance(60_000)
    expect(texts).toEqual(['1', '2'])
    expect(acks(rig.world)).toEqual(['puback 1', 'puback 2'])
    expect(rig.world.seen('error').map(({ error }) => error.message)).toEqual(['handler failed: a'])
  })

  it('twice by its handler: the message after it is not', async () => {
    const answers: boolean[] = []
    const door = gate()
    const rig = await listening((message) => {
      answers.push(message.ack(), message.ack())
      return answers.length === 2 ? undefined : door.promise
    })
    await rig.send(...series('a', 3))
    expect(answers).toEqual([true, false, true, false])
    expect(acks(rig.world)).toEqual(['puback 1', 'puback 2'])
    door.open()
    await rig.world.settle()
    expect(acks(rig.world)).toEqual(['puback 1', 'puback 2', 'puback 3'])
  })
})

describe('a handler that returns', () => {
  const thenable = (then: PropertyDescriptor) => () => Object.defineProperty({}, 'then', then) as Promise<void>
  const fails = (): never => {
    throw new Error('no')
  }
  const hostile = {
    'a getter that throws': thenable({ get: fails }),
    'a then that throws': thenable({ value: fails }),
    'a then that calls back twice': thenable({ value: (done: () => void) => [done(), done()] }),
    'a then that never calls back': () => new Promise<void>(() => undefined),
  }
  it.each(Object.entries(hostile))('%s, in both ways of being called', async (name, make) => {
    for (const options of [{}, { concurrency: 3 }]) {
      const texts: string[] = []
      let most = 0
      let running = 0
      const door = gate()
      const rig = await listening(
        (message) => {
          texts.push(message.text())
          if (texts.length === 1) return make()
          running += 1
          most = Math.max(most, running)
          return door.promise.then(() => {
            running -= 1
          })
        },
        { onError: 'reject', ...options },
      )
      await rig.send(...series('a', 8))
      await rig.world.settle()
      const concurrency = 'concurrency' in options ? 3 : 1
      const stuck = name.includes('never') ? 1 : 0
      expect([texts.length, most]).toEqual([Math.min(8, 1 + concurrency - stuck), concurrency - stuck])
      door.open()
      await rig.world.settle()
      expect(acks(rig.world).length).toBe(stuck === 1 ? 0 : 8)
    }
  })
})

describe('memory', () => {
  it('onDrop of one subscription does not get that of another', async () => {
    const world = await agreed()
    const options = { buffer: 1, overflow: 'drop-newest', ack: 'on-receive' } as const
    const first = await subscribe(world, 'a', { ...options, onDrop: (message) => void message.payload.fill(0) })
    const second = await subscribe(world, 'a')
    for (const text of ['1', '2', 'abc']) await world.send(publish('a', text))
    expect(first.dropped).toBe(1)
    expect([taken(second).text(), taken(second).text(), taken(second).text()]).toEqual(['1', '2', 'abc'])
  })

  it('a subscription that was refused at once makes nobody lend windows', async () => {
    const { world, links, busy } = await windowed()
    await subscribe(world, 'a')
    const options = { lifetime: 'borrowed', noLocal: true } as const
    expect(() => world.client.subscription('a', options)).toThrow(expect.objectContaining({ code: 'ERR_SUBSCRIPTION_CONFLICT' }))
    quiet(world.client.subscribe('b', { lifetime: 'borrowed', signal: AbortSignal.abort() }))
    for (let round = 0; round < 4; round++) await busy()
    expect(links[0]?.windows.length).toBe(1)
  })

  it('nor does one that has ended', async () => {
    for (const how of ['unsubscribe', 'detach', 'until'] as const) {
      const { world, links, busy } = await windowed()
      const until = new AbortController()
      const subscription = await subscribe(world, 'a', { lifetime: 'borrowed', until: until.signal })
      await busy()
      await busy()
      expect(links[0]?.windows.length).toBe(2)
      if (how === 'until') until.abort()
      else quiet(Promise.resolve(subscription[how]()))
      await world.settle()
      const shared = links[0]?.windows[0]
      await busy()
      for (let round = 0; round < 4; round++) {
        await busy()
        expect(links[0]?.latest).toBe(shared)
      }
    }
  })

  it('topics that come once do not take the budget', async () => {
    const world = await agreed({ memoryBudget: 200_000 })
    const subscription = await subscribe(world, '#', { qos: 1, ack: 'manual' })
    for (let from = 0; from < 5000; from += 500) {
      await world.send(...Array.from({ length: 500 }, (_, index) => publish(`topic/${from + index}/of/many`, '')))
      for (let message = subscription.read(); message !== undefined; message = subscription.read()) message.ack()
    }
    await world.send(...series('a', 50))
    expect(world.seen('disconnect')).toEqual([])
    expect(subscription.size).toBe(50)
  })
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
    if (utf8.decode(view) !== text || message.text() !== text || shown(message) !== text) this.wrong.push(text)
  }
}

const numberOf = (text: string): number => Number(text.split(' ')[0])

describe('every message is right', () => {
  it.each([1, 2, 3, 4])('in bursts of all sizes, handled at once, later, and read by hand (%i)', async (seed) => {
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
      const [topic, expected] = random.below(3) === 0 ? (['b', read] as const) : (['a', handled] as const)
      expected.push(number)
      const text = `${number} ${'é'.repeat(random.below(4) === 0 ? random.below(3000) : random.below(60))}`
      return publish(topic, text, random.below(4) === 0 ? number : undefined)
    }
    let number = 0
    for (let round = 0; round < 80; round++) {
      await rig.send(...Array.from({ length: random.between(1, 80) }, () => one(++number)))
      if (random.below(3) === 0) judges.open()
      for (let count = random.below(40); count > 0 && judges.readOne(reader); count--);
      if (random.below(2) === 0) await world.settle()
    }
    await world.settle()
    while (judges.handled.length < handled.length && judges.open()) await world.settle()
    while (judges.readOne(reader));
    expect(world.seen('disconnect')).toEqual([])
    expect([judges.wrong, judges.handled, judges.read]).toEqual([[], handled, read])
  })
})
