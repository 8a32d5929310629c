/** What random programs over the public API found (`npm run lab -- world programs`), each as the few calls that show it: two calls that meet. */
import { expect, it } from 'vitest'
import type { Sink } from '../../../src/transport/transport.js'
import { agreeable, connected, World } from './harness.js'
import { publish } from './incoming.js'
import { rigged, story, within } from './rig.js'

const nothing = (): void => undefined

it('setBrokers() in the turn of connect(): no dial is told, and none made, to an endpoint that is not in the list', async () => {
  const rig = rigged()
  const told: string[] = []
  rig.client.on('dial', ({ endpoint }) => told.push(new URL(endpoint).hostname))
  const connecting = rig.client.connect()
  rig.client.setBrokers([rig.endpoint('b')])
  await within(rig, 5000, connecting)
  expect([told, story(rig).hosts]).toEqual([['b'], 'b'])
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
  await Promise.all([world.client.connect(), world.settle()])
  broken = true
  const published = world.client.publish('a', 'b', { flush: true })
  world.client.reconnect({ force: true })
  // It had broken before, and says so now.
  end(new Error('reset'))
  const error = { code: 'ERR_CONNECTION_LOST', outcome: 'unknown' }
  expect(await world.outcome(published)).toMatchObject({ state: 'rejected', error })
  expect(world.client.state).not.toBe('closed')
  world.client.destroy()
})

it('listen() with an `until` that has aborted, on a filter that is granted already: it is done', async () => {
  const world = await connected({}, agreeable)
  await Promise.all([world.client.listen('a', nothing), world.settle()])
  const ended = world.client.listen('a', nothing, { until: AbortSignal.abort(), retainHandling: 1 })
  await world.settle()
  const { done } = await ended
  expect(await world.outcome(done)).toEqual({ state: 'fulfilled', value: undefined })
})

it('unsubscribe() from one filter of a subscription that waits for its grant: it rejects, and is given nothing', async () => {
  const world = new World()
  world.answer = agreeable
  const seen: string[] = []
  const listening = world.client.listen(['a', 'b'], ({ topic }) => seen.push(topic))
  const left = world.client.unsubscribe('b')
  expect(await world.outcome(listening)).toMatchObject({
    state: 'rejected',
    error: { code: 'ERR_ABORTED' },
  })
  await left
  await Promise.all([world.client.connect(), world.settle()])
  await world.send(publish('a', 'x'))
  expect([seen, world.peer.all('subscribe')]).toEqual([[], []])
})
