/**
 * What comes in costs no more than four to six times as much where there is four times as much of it: pieces, copies, forgeries, connections.
 *
 * Work is counted, not timed: see `counted-work.ts`. The calls, and what they lead to, are in `cost.test.ts`.
 */
import { expect } from 'vitest'
import { again, willing } from './across.js'
import { costsEvenly, open, type Row, settled, upTo, wide } from './cost-worlds.js'
import { connected } from './harness.js'
import { bytesOf, publish, quiet, series } from './incoming.js'

/** Bytes of a piece. */
const piece = 20

const rows: Readonly<Record<string, Row>> = {
  async 'a message that comes in pieces'(count) {
    const world = await open()
    const subscription = await settled(world, world.client.subscribe('t', { qos: 1 }))
    const bytes = bytesOf([publish('t', 'x'.repeat(count * piece), 1)])
    return async () => {
      for (let at = 0; at < bytes.length; at += piece)
        await world.sendBytes(bytes.subarray(at, at + piece))
      expect(subscription.size).toBe(1)
    }
  },
  async 'a topic of as many levels, where filters have few'(count) {
    const world = await open()
    await settled(world, world.client.subscribe(['a/+', '+/+/#']))
    const bytes = bytesOf([publish(`b${'/'.repeat(count)}`, 'x')])
    return () => world.sendBytes(bytes)
  },
  async 'messages at QoS 2 that come again'(count) {
    const world = await open()
    await settled(world, world.client.subscribe('t', { qos: 2, ack: 'manual' }))
    const once = series('t', count).map((packet) => ({ ...packet, qos: 2 }) as typeof packet)
    await world.sendBytes(bytesOf(once))
    return () =>
      world.sendBytes(bytesOf(once.map((packet) => ({ ...packet, dup: true }) as typeof packet)))
  },
  async 'acknowledgements that belong to nothing'(count) {
    const world = await open()
    return async () => {
      for (const index of upTo(count))
        world.peer.send({ type: 'puback', packetId: index + 1, reasonCode: 0, properties: {} })
      await world.settle()
      expect(world.client.state).toBe('connected')
    }
  },
  async 'connections, one after the other'(count) {
    const world = await connected(
      { ...wide, reconnect: { backoff: () => 10 }, cleanStart: false, clientId: 'me' },
      willing(true),
    )
    quiet(world.client.closed)
    return async () => {
      for (const _ of upTo(count)) await again(world, willing(true))
    }
  },
}

costsEvenly('what comes in, four times as much', rows)
