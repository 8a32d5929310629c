/** How a subscription is called off: `signal` before its grant, `until` at any time. */
import { describe, expect, it } from 'vitest'
import { agreeable, connected, World } from './harness.js'
import { agreed, publish, quiet, read, subscribe } from './incoming.js'

describe('signal and until', () => {
  it('an aborted signal: nothing is sent, outcome not-sent', async () => {
    const world = await agreed()
    const outcome = await world.outcome(world.client.subscribe('a', { signal: AbortSignal.abort('why') }))
    expect(outcome).toMatchObject({ state: 'rejected', error: { code: 'ERR_ABORTED', name: 'AbortError', cause: 'why', outcome: 'not-sent' } })
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
  })

  it('abort while offline: nothing is sent later, and the reader ends', async () => {
    const world = new World()
    world.answer = agreeable
    const abort = new AbortController()
    const subscription = world.client.subscription('a', { signal: abort.signal })
    const reading = read(subscription)
    abort.abort(new Error('enough'))
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_ABORTED', outcome: 'not-sent', cause: { message: 'enough' } })
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
    expect(reading.end.state).not.toBe('running')
  })

  it('of hundreds of calls that wait for the connection, those that nobody aborted are sent, in order', async () => {
    const world = new World()
    world.answer = agreeable
    const filters = Array.from({ length: 300 }, (_, index) => `a/${index}`)
    const calls = filters.map((filter, index) => {
      const abort = new AbortController()
      const { ready } = world.client.subscription(filter, { signal: abort.signal })
      ready.catch(() => undefined)
      if (index % 3 > 0) abort.abort()
      return ready
    })
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    const wanted = filters.filter((_, index) => index % 3 === 0)
    expect(world.peer.all('subscribe').flatMap(({ subscriptions }) => subscriptions.map(({ filter }) => filter))).toEqual(wanted)
    const states = await Promise.allSettled(calls)
    expect(states.filter(({ status }) => status === 'fulfilled')).toHaveLength(wanted.length)
  })

  it('abort before the grant: outcome unknown, UNSUBSCRIBE follows, a late SUBACK changes nothing', async () => {
    const world = await connected()
    const abort = new AbortController()
    const call = quiet(world.client.subscribe('a', { signal: abort.signal }))
    await world.settle()
    abort.abort()
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_ABORTED', outcome: 'unknown' } })
    expect(world.peer.last('unsubscribe').filters).toEqual(['a'])
    await world.send({ type: 'suback', packetId: world.peer.last('subscribe').packetId, reasonCodes: [0] })
    await world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes: [0] })
    expect(world.client.state).toBe('connected')
  })

  it('abort before the grant leaves those alone who share the filter', async () => {
    const world = await connected()
    const abort = new AbortController()
    const first = world.client.subscribe('a', { signal: abort.signal })
    first.catch(() => undefined)
    const second = world.client.subscribe('a')
    await world.settle()
    abort.abort()
    await world.send({ type: 'suback', packetId: world.peer.last('subscribe').packetId, reasonCodes: [0] })
    const reading = read(await second)
    await world.send(publish('a', 'x'))
    expect(reading.texts).toEqual(['x'])
    expect(world.peer.all('unsubscribe')).toEqual([])
  })

  it('abort after the grant does nothing', async () => {
    const world = await agreed()
    const abort = new AbortController()
    const reading = read(await subscribe(world, 'a', { signal: abort.signal }))
    abort.abort()
    await world.send(publish('a', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it('until ends the subscription as onExit says: unsubscribe', async () => {
    const world = await agreed()
    const until = new AbortController()
    const reading = read(await subscribe(world, 'a', { until: until.signal }))
    until.abort()
    await world.settle()
    expect(reading.end.state).toBe('done')
    expect(world.peer.last('unsubscribe').filters).toEqual(['a'])
  })

  it('until ends the subscription as onExit says: detach', async () => {
    const world = await agreed()
    const until = new AbortController()
    const reading = read(await subscribe(world, 'a', { until: until.signal, onExit: 'detach' }))
    until.abort()
    await world.settle()
    expect(reading.end.state).toBe('done')
    expect(world.peer.all('unsubscribe')).toEqual([])
  })

  it('until that has aborted: the subscription is over before it began', async () => {
    const world = await agreed()
    const subscription = world.client.subscription('a', { until: AbortSignal.abort() })
    const reading = read(subscription)
    await world.settle()
    expect(reading.end.state).toBe('done')
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    expect(world.peer.all('subscribe')).toEqual([])
  })
})
