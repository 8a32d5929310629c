/** The defects of clients that the checkers have to report, at most 25. */

import type { BaseClient } from '../../src/client/client.js'
import type { Message, NextOptions, Subscription } from '../../src/client/options/index.js'
import type { Platform } from '../../src/client/platform.js'
import type { Store } from '../../src/store/base/store.js'
import type { ClientPacket } from '../../src/wire/index.js'
import { type Checker, type Defect, instead, type Line, type Wrapper } from './defective.js'

function each(count: number): () => boolean {
  let calls = 0
  return () => ++calls % count === 0
}

type Now = () => boolean
const silent = (): void => undefined
const isAck = ({ type }: ClientPacket): boolean =>
  type === 'puback' || type === 'pubrec' || type === 'pubcomp'

/** A facade that hands out other messages, whichever way they are read. */
function handing(pass: <T>(message: T) => readonly T[]) {
  const reading = (subscription: Subscription): Subscription => {
    const waiting: Message[] = []
    const take = (message: Message | undefined): Message | undefined => {
      if (message !== undefined) waiting.push(...pass(message))
      return waiting.shift()
    }
    return instead(subscription, {
      async *[Symbol.asyncIterator]() {
        for await (const message of subscription) yield* pass(message)
      },
      async *batches(most: number) {
        for await (const batch of subscription.batches(most)) yield batch.flatMap(pass)
      },
      async next(options: NextOptions) {
        for (let given = waiting.shift(); ; ) {
          if (given !== undefined) return given
          const message = await subscription.next(options)
          if (message === undefined) return undefined
          given = take(message)
        }
      },
      read: () => waiting.shift() ?? take(subscription.read()),
    })
  }
  return <T extends object>(client: T): T => {
    const reader = client as unknown as BaseClient
    const listen: BaseClient['listen'] = (filter, handler, options) =>
      reader.listen(
        filter,
        async (message) => {
          for (const copy of pass(message)) await handler(copy)
        },
        options,
      )
    return instead(client, {
      listen,
      subscription: (...given: Parameters<BaseClient['subscription']>) =>
        reading(reader.subscription(...given)),
      subscribe: async (...given: Parameters<BaseClient['subscribe']>) =>
        reading(await reader.subscribe(...given)),
      async *stream(...given: unknown[]) {
        for await (const value of (
          client as unknown as { stream(...given: unknown[]): AsyncIterable<unknown> }
        ).stream(...given))
          yield* pass(value)
      },
    })
  }
}

function publishing(
  change: (publish: () => Promise<unknown>, now: Now) => Promise<unknown>,
): () => Wrapper {
  return () => {
    const now = each(3)
    const facade: Wrapper['facade'] = (client) => {
      const { publish, call } = client as {
        [name in 'publish' | 'call']?: (...given: unknown[]) => Promise<unknown>
      }
      const changed =
        (method = publish) =>
        (...given: unknown[]) =>
          change(() => method?.apply(client, given) as Promise<unknown>, now)
      return instead(client, { publish: changed(), call: changed(call) })
    }
    return { facade }
  }
}

function sending(make: () => NonNullable<Wrapper['sent']>): () => Wrapper {
  return () => ({ sent: make() })
}

/** A sender of some packets of each write in the opposite order. */
function reversing(which: (packet: ClientPacket) => boolean): () => Wrapper {
  return sending(() => (all) => {
    const chosen = all.filter(which).reverse()
    return all.map((packet) => (which(packet) ? (chosen.shift() as ClientPacket) : packet))
  })
}

type Change = (packet: ClientPacket, line: Line) => ClientPacket | readonly ClientPacket[]
/** A sender that looks at one packet at a time. It gets a counter: true each third time. */
function packets(make: (now: Now) => Change): () => Wrapper {
  return sending(() => {
    const change = make(each(3))
    return (all, line) => all.flatMap((packet) => change(packet, line))
  })
}

function messages(pass: <T>(message: T, now: Now) => readonly T[]): () => Wrapper {
  return () => {
    const now = each(3)
    return { facade: handing((message) => pass(message, now)) }
  }
}

function storing(change: (store: Store) => Store['batch']): () => Wrapper {
  return () => ({ store: (store) => instead(store, { batch: change(store) }) })
}

/** A wrapper that changes nothing: whatever a checker reports of it is the fault of the wrapping. */
export const nothing: Defect = {
  name: 'nothing',
  by: {},
  make: () => ({
    sent: (all) => all,
    read: (packet) => packet,
    facade: handing((message) => [message]),
    platform: (platform) => instead(platform, {}),
    store: (store) => instead(store, {}),
    decoded: (packet) => packet,
  }),
}

export const defects: readonly Defect[] = [
  {
    name: 'an acknowledgement is swallowed',
    by: { world: [3, 'live', 'I7'], durable: [1, 'rest', 'lost'], many: [1, 'rest', 'wire'] },
    make: packets(
      (now) => (packet) => ((isAck(packet) || packet.type === 'pubrel') && now() ? [] : packet),
    ),
  },
  {
    name: 'acknowledgements change places',
    by: { world: [13, 'I6'] },
    make: reversing(isAck),
  },
  {
    name: 'a message is acknowledged before it was delivered',
    by: { world: [10, 'I1'], durable: [1, 'early'], 'fuzz session': [10, 'session-acks'] },
    make: () => {
      const early = new Set<number>()
      return {
        read(packet, line) {
          if (packet.type === 'publish' && packet.qos === 1) {
            early.add(packet.packetId as number)
            line.send({
              type: 'puback',
              packetId: packet.packetId as number,
              reasonCode: 0,
              properties: {},
            })
          }
          return packet
        },
        sent: (all) =>
          all.filter((packet) => packet.type !== 'puback' || !early.delete(packet.packetId)),
      }
    },
  },
  {
    name: 'a PUBLISH leaves twice',
    by: { world: [2, 'I6'], durable: [1, 'wire'], many: [1, 'wire', 'twice'] },
    make: packets(
      (now) => (packet) => (packet.type === 'publish' && now() ? [packet, packet] : packet),
    ),
  },
  {
    name: 'two PUBLISHes change places',
    by: { world: [4, 'I3'], many: [3, 'order'] },
    make: reversing(({ type }) => type === 'publish'),
  },
  {
    name: 'a byte of a payload is another',
    by: { world: [5, 'bytes'], durable: [1, 'invented'], many: [1, 'invented'] },
    make: packets((now) => (packet) => {
      if (packet.type !== 'publish' || packet.payload.length < 2 || !now()) return packet
      const payload = packet.payload.slice()
      payload[payload.length - 1] = (payload.at(-1) as number) ^ 1
      return { ...packet, payload }
    }),
  },
  {
    name: 'a PUBLISH that is sent again has no DUP',
    by: { world: [27, 'I6'], durable: [3, 'wire'], many: [3, 'wire'] },
    make: packets(
      () => (packet) => (packet.type === 'publish' ? { ...packet, dup: false } : packet),
    ),
  },
  {
    name: 'a packet identifier that is in use is used again',
    by: { world: [4, 'I6'], durable: [2, 'wire'], many: [2, 'wire'] },
    make: packets((now) => {
      let last: number | undefined
      return (packet) => {
        if (packet.type !== 'publish' || packet.qos === 0) return packet
        const packetId = now() ? (last ?? packet.packetId) : packet.packetId
        last = packetId
        return { ...packet, packetId } as ClientPacket
      }
    }),
  },
  {
    name: 'the limits of the server are not read',
    by: { world: [5, 'I6'], durable: [1, 'broker'], many: [1, 'wire'] },
    make: () => ({
      read(packet) {
        if (packet.type !== 'connack') return packet
        const { receiveMaximum, maximumPacketSize, maximumQoS, retainAvailable, ...properties } =
          packet.properties
        return { ...packet, properties }
      },
    }),
  },
  {
    name: 'PINGREQ is kept back',
    by: { world: [51, 'I6', 'peace'] },
    make: packets(() => (packet) => (packet.type === 'pingreq' ? [] : packet)),
  },
  {
    name: 'no DISCONNECT at the end',
    by: { world: [1, 'I6'], many: [1, 'wire'], 'fuzz session': [11, 'session-goodbye'] },
    make: packets(() => (packet) => (packet.type === 'disconnect' ? [] : packet)),
  },
  {
    name: 'PINGREQ after DISCONNECT',
    by: { world: [1, 'I6'], many: [1, 'wire'], 'fuzz session': [11, 'session-goodbye', 'output'] },
    make: packets(
      () => (packet) => (packet.type === 'disconnect' ? [packet, { type: 'pingreq' }] : packet),
    ),
  },
  {
    name: 'Clean Start stays 1',
    by: { world: [22, 'I6'], durable: [2, 'lost'] },
    make: packets(
      () => (packet) => (packet.type === 'connect' ? { ...packet, cleanStart: true } : packet),
    ),
  },
  {
    name: 'another filter is subscribed to again',
    by: { world: [104, 'held', 'I7'] },
    make: packets(() => (packet, { number }) => {
      if (packet.type !== 'subscribe' || number === 1) return packet
      return {
        ...packet,
        subscriptions: packet.subscriptions.map((one) => ({
          ...one,
          filter: `elsewhere/${one.filter.replaceAll('$', '')}`,
        })),
      }
    }),
  },
  {
    name: 'a message is handed out twice',
    by: { world: [10, 'I2'], typed: [1, 'typed'] },
    make: messages((message, now) => (now() ? [message, message] : [message])),
  },
  {
    name: 'a message is never handed out',
    by: {
      world: [10, 'I1'],
      durable: [1, 'early', 'lost'],
      typed: [1, 'typed'],
      many: [1, 'unread', 'rest', 'keys'],
    },
    make: messages((message, now) => (now() ? [] : [message])),
  },
  {
    name: 'a promise never settles',
    by: {
      world: [1, 'I7'],
      programs: [1, 'live', 'I7'],
      durable: [1, 'pending'],
      many: [3, 'settle'],
      typed: [3, 'typed'],
    },
    make: publishing((publish, now) => {
      const promise = publish()
      if (!now()) return promise
      promise.catch(silent)
      return new Promise(() => undefined)
    }),
  },
  {
    name: 'a publish is said to be done before it is',
    by: { world: [42, 'I1'], programs: [1, 'receipt'], durable: [1, 'lost'], many: [2, 'agree'] },
    make: publishing((publish) => {
      publish().catch(silent)
      return Promise.resolve({ reasonCode: 0, reasonName: 'Success', properties: {}, members: {} })
    }),
  },
  {
    name: 'an event does not come',
    by: { world: [24, 'I9'], programs: [14, 'I9'] },
    make: () => ({
      facade: (client) => {
        const { on } = client as unknown as BaseClient
        const skips = each(2)
        const some: BaseClient['on'] = (type, listener, options) =>
          on.call(
            client,
            type,
            (event) =>
              ['disconnect', 'sessionlost'].includes(type) && skips()
                ? undefined
                : listener(event as never),
            options,
          )
        return instead(client, { on: some })
      },
    }),
  },
  {
    name: 'memory of the caller is read later',
    by: { world: [115, 'bytes'] },
    make: () => ({
      facade: (client) => {
        const publisher = client as unknown as BaseClient
        const post: BaseClient['post'] = (...given) => {
          queueMicrotask(() => publisher.post(...given))
          return true
        }
        return instead(client, { post })
      },
    }),
  },
  {
    name: 'a timer is left behind',
    by: { world: [27, 'leak'], durable: [7, 'leak'], many: [3, 'leak'] },
    make: () => {
      const leaks = each(5)
      const platform = (sound: Platform): Platform => {
        const setTimer: Platform['setTimer'] = (callback, delay) => {
          if (!leaks()) return sound.setTimer(callback, delay)
          let live = true
          sound.setTimer(() => live && callback(), delay)
          return () => {
            live = false
          }
        }
        return instead(sound, { setTimer })
      }
      return { platform }
    },
  },
  {
    name: 'the clock stands still',
    by: { world: [51, 'I6', 'I7', 'dead'] },
    make: () => ({
      platform: (platform) => instead(platform, { now: () => Math.min(platform.now(), 400) }),
    }),
  },
  {
    name: 'the store says yes before it is so',
    by: { durable: [1, 'early'] },
    make: storing((store) => (operations) => {
      store.batch(operations).catch(silent)
      return Promise.resolve()
    }),
  },
  {
    name: 'the store forgets a change',
    by: { durable: [1, 'early', 'left'] },
    make: storing(
      (store, forgets = each(5)) =>
        (all) =>
          store.batch(all.filter(() => !forgets())),
    ),
  },
  {
    name: 'a field of a packet is another',
    by: { 'fuzz wire': [24, 'wire-chunks'], wasm: [19, 'wasm'] },
    make: () => ({
      decoded: (packet) =>
        packet.type === 'publish' && packet.dup ? { ...packet, retain: !packet.retain } : packet,
    }),
  },
]

export function defectsFor(checker: Checker): readonly Defect[] {
  return defects.filter(({ by }) => by[checker] !== undefined)
}
