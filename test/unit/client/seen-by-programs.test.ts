/**
 * What random programs over the public API found (`npm run lab -- brokers finder`), each as the few calls that show it.
 *
 * Everything runs in virtual time. A test here has no other place of its own: it is about two calls that meet.
 */
import { describe, expect, it } from 'vitest'
import type { Sink } from '../../../src/transport/transport.js'
import { agreeable, connected, World } from './harness.js'
import { Rig } from './rig.js'

const nothing = (): void => undefined

describe('calls that meet', () => {
  it('setBrokers() in the turn of connect(): no dial is told, and none made, to an endpoint that is not in the list', async () => {
    const rig = new Rig({}, { hosts: ['a'], seed: 1, behave: () => agreeable })
    const told: string[] = []
    rig.client.on('dial', ({ endpoint }) => told.push(new URL(endpoint).hostname))
    const connecting = rig.client.connect()
    rig.client.setBrokers([rig.endpoint('b')])
    await rig.advance(5000)
    await connecting
    expect(told).toEqual(['b'])
    expect(rig.dials.map(({ host }) => host)).toEqual(['b'])
    await rig.finish()
  })

  it('reconnect({ force }) before a publish with `flush` was written: the connection was lost, and the client is not closed', async () => {
    let broken = false
    let end: Sink['closed'] = nothing
    const world = new World({ reconnect: true }, {}, 1, (_index, open) => {
      const transport = open()
      const { write, open: begin } = transport
      transport.open = (sink) => {
        end = (cause) => sink.closed(cause)
        begin.call(transport, sink)
      }
      transport.write = (bytes, written) => !broken && write.call(transport, bytes, written)
      return transport
    })
    world.answer = agreeable
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    broken = true
    const published = world.client.publish('a', 'b', { flush: true })
    world.client.reconnect({ force: true })
    // It had broken before, and says so now.
    end(new Error('reset'))
    expect(await world.outcome(published)).toMatchObject({ state: 'rejected', error: { code: 'ERR_CONNECTION_LOST', outcome: 'unknown' } })
    expect(world.client.state).not.toBe('closed')
    world.client.destroy()
  })

  it('listen() with an `until` that has aborted, on a filter that is granted already: it is done', async () => {
    const world = await connected({}, agreeable)
    const first = world.client.listen('a', nothing)
    await world.settle()
    await first
    const ended = world.client.listen('a', nothing, { until: AbortSignal.abort(), retainHandling: 1 })
    await world.settle()
    const { done } = await ended
    expect(await world.outcome(done)).toEqual({ state: 'fulfilled', value: undefined })
    world.client.destroy()
  })

  it('unsubscribe() from one filter of a subscription that waits for its grant: it rejects, and is given nothing', async () => {
    const world = new World()
    world.answer = agreeable
    const seen: string[] = []
    const listening = world.client.listen(['a', 'b'], ({ topic }) => seen.push(topic))
    const left = world.client.unsubscribe('b')
    expect(await world.outcome(listening)).toMatchObject({ state: 'rejected', error: { code: 'ERR_ABORTED' } })
    await left
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    await world.send({ type: 'publish', topic: 'a', payload: new Uint8Array(1), qos: 0 })
    expect(seen).toEqual([])
    expect(world.peer.received.filter(({ type }) => type === 'subscribe')).toEqual([])
    world.client.destroy()
  })
})
