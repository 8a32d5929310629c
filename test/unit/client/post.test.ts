/** `post`: QoS 0 at once or not at all, and what may be done with the bytes afterwards. */
import { describe, expect, it } from 'vitest'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { StubWorld, stubbed, watched } from './stub.js'

const refused = (code: string, more = {}) => expect.objectContaining({ code, ...more })

describe('post', () => {
  it('says true, and sends QoS 0 in the same turn', async () => {
    const world = await stubbed()
    expect(world.client.post('t', 'hi')).toBe(true)
    await Promise.resolve()
    expect([...(world.stub.writes[0] ?? [])]).toEqual([0x30, 6, 0, 1, 0x74, 0, 0x68, 0x69])
  })

  it.each([3, 32_767, 32_768, 100_000])('copies: %i bytes may change afterwards', async (size) => {
    for (const payload of [new Uint8Array(size), Buffer.alloc(size)]) {
      const world = await stubbed()
      payload.fill(1)
      expect(world.client.post('t', payload)).toBe(true)
      payload.fill(2)
      await world.settle()
      const [packet] = world.stub.packets as PublishPacket[]
      expect(
        Buffer.compare(packet?.payload ?? new Uint8Array(0), new Uint8Array(size).fill(1)),
      ).toBe(0)
    }
  })

  it('says false before, between and without connections, and never queues', async () => {
    const world = new StubWorld({ outbound: { offline: { qos0: 'queue' } } })
    expect(world.client.post('t', 'x')).toBe(false)
    const connecting = world.client.connect()
    expect(world.client.post('t', 'x')).toBe(false)
    await world.settle()
    expect(world.client.post('t', 'x')).toBe(false)
    world.stub.deliver({ type: 'connack' })
    await Promise.all([connecting, world.settle()])
    expect([world.stub.payloads, world.client.outbound.size]).toEqual([[], 0])
  })

  it('says false while the transport asks for patience, which is no loss to report, and true again afterwards', async () => {
    const world = await stubbed()
    world.stub.takes = false
    expect(world.client.post('t', 'a')).toBe(true)
    await world.settle()
    expect(world.client.post('t', 'b')).toBe(false)
    await world.settle()
    world.stub.release()
    expect(world.client.post('t', 'c')).toBe(true)
    await world.settle()
    expect([world.stub.payloads, world.drops]).toEqual([['a', 'c'], []])
  })

  it('does not overtake QoS 0 publishes that wait', async () => {
    const world = await stubbed()
    world.stub.takes = false
    world.client.post('t', 'a')
    await world.settle()
    const waiting = watched(world.client.publish('t', 'b'))
    await world.settle()
    expect(waiting.state).toBe('pending')
    world.stub.release()
    world.client.post('t', 'c')
    await world.settle()
    expect(world.stub.payloads).toEqual(['a', 'b', 'c'])
  })

  it('throws what can never be sent, connected or not, and after the end, where it is false otherwise', async () => {
    const online = await stubbed()
    const ended = await stubbed()
    ended.client.destroy()
    expect(ended.client.post('t', 'x')).toBe(false)
    for (const { client } of [online, new StubWorld(), ended]) {
      for (const topic of ['', 'a/#', 'a\u0000', 'a'.repeat(65_536), 5])
        expect(() => client.post(topic as string, 'x')).toThrow(refused('ERR_INVALID_TOPIC'))
      expect(() => client.post('t', 5 as never)).toThrow(
        refused('ERR_INVALID_OPTION', { option: 'payload' }),
      )
    }
    await online.settle()
    expect(online.stub.writes).toEqual([])
  })
})
