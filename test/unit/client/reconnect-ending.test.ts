/**
 * What a client does with what is in hand when it is told to end while it has no connection, and with a server that counts one too few.
 */
import { describe, expect, it } from 'vitest'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { agreeable, connected } from './harness.js'

const job = (id: number): PacketInput => ({ type: 'publish', topic: 'jobs', qos: 1, packetId: id, payload: Uint8Array.of(id), properties: {} })
const options = { reconnect: { backoff: constant(60_000) } }

describe('disconnect() while reconnecting', () => {
  it('hands out nothing more, and waits for the running turn', async () => {
    const world = await connected(options, agreeable)
    const handled: number[] = []
    let finish = (): void => undefined
    const listening = world.client.listen(
      'jobs',
      async (message) => {
        handled.push(message.payload[0] as number)
        await new Promise<void>((resolve) => {
          finish = resolve
        })
      },
      { qos: 1 },
    )
    await world.settle()
    await listening
    await world.send(job(1), job(2), job(3))
    world.peer.cut()
    await world.settle()
    expect(world.client.state).toBe('reconnecting')
    const stopping = world.client.disconnect({ timeout: 5000 })
    await world.clock.advance(1000)
    expect([world.client.state, handled]).toEqual(['disconnecting', [1]])
    finish()
    await world.settle()
    await stopping
    await world.clock.advance(100_000)
    expect([world.client.state, handled, world.peers.length]).toEqual(['closed', [1], 1])
  })

  it('destroy() leaves what is buffered to the session', async () => {
    const world = await connected(options, agreeable)
    const handled: number[] = []
    const listening = world.client.listen('jobs', (message) => void handled.push(message.payload[0] as number), { qos: 1 })
    await world.settle()
    await listening
    world.peer.send(job(1), job(2))
    world.client.on('state', ({ state }) => state === 'reconnecting' && world.client.destroy())
    world.peer.cut()
    await world.settle()
    const before = handled.length
    await world.clock.advance(1000)
    expect([world.client.state, handled.length]).toEqual(['closed', before])
  })
})

describe('a server that exceeds Receive Maximum', () => {
  it("is told with 0x93 on each connection under 'disconnect'", async () => {
    const world = await connected({ receiveMaximum: 2, receiveMaximumExceeded: 'disconnect', reconnect: { backoff: constant(10) } }, agreeable)
    world.client.subscription('jobs', { qos: 1, ack: 'manual' })
    await world.send(job(1), job(2), job(3))
    expect(world.peer.last('disconnect').reasonCode).toBe(0x93)
    await world.clock.advance(2000)
    expect([world.client.state, world.peers.length]).toEqual(['connected', 2])
    await world.send(job(11), job(12))
    expect(world.peer.all('disconnect')).toEqual([])
    await world.send(job(13))
    expect(world.peer.last('disconnect').reasonCode).toBe(0x93)
  })
})
