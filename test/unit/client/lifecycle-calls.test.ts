import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/api/index.js'
import { agreeable } from './harness.js'
import { down, Rig, reconnect, refusing, welcoming } from './rig.js'

/** Where a program may call from. */
const places = [
  'state connecting',
  'state connected',
  'state reconnecting',
  'state disconnecting',
  'state closed',
  'dial',
  'connect',
  'connecterror',
  'reconnecting',
  'disconnect',
  'serverdisconnect',
  'sessionlost',
  'credentials',
  'decide',
  'backoff',
  'transport',
  'handler',
] as const

/** What it may call; each gives every promise that came of it. */
const calls: Readonly<Record<string, (rig: Rig) => Promise<unknown>[]>> = {
  'publish QoS 0': ({ client }) => [client.publish('t', 'x')],
  'publish QoS 1': ({ client }) => [client.publish('t', 'x', { qos: 1 })],
  'publish QoS 2': ({ client }) => [client.publish('t', 'x', { qos: 2 })],
  post: ({ client }) => [attempted(() => client.post('t', 'x'))],
  subscribe: ({ client }) => [client.subscribe('s')],
  unsubscribe: ({ client }) => [client.unsubscribe('s')],
  listen: ({ client }) => [client.listen('l', () => undefined)],
  request: ({ client }) => [client.request('svc', 'x', { timeout: 100 })],
  flush: ({ client }) => [client.flush(), client.writable],
  reauthenticate: ({ client }) => [client.reauthenticate()],
  stats: ({ client }) => [attempted(() => client.stats())],
  connect: ({ client }) => [client.connect()],
  reconnect: ({ client }) => [client.reconnect()],
  'reconnect force': ({ client }) => [client.reconnect({ force: true })],
  setBrokers: (rig) => [attempted(() => rig.client.setBrokers([rig.endpoint('b'), rig.endpoint('c')]))],
  disconnect: ({ client }) => [client.disconnect({ timeout: 1000 })],
  'disconnect at once': ({ client }) => [client.disconnect({ timeout: 0 })],
  drain: ({ client }) => [client.drain({ timeout: 1000 })],
  destroy: ({ client }) => [attempted(() => client.destroy())],
}

function attempted(call: () => unknown): Promise<unknown> {
  return new Promise((resolve) => {
    resolve(call())
  })
}

/** A life in which every event comes: refused once, up, cut, down once, up, told goodbye, up without its session, ended. */
async function life(place: string, call: (rig: Rig) => Promise<unknown>[], once: boolean): Promise<{ rig: Rig; pending: number; called: number }> {
  let called = 0
  let pending = 0
  const settled = (): void => {
    pending -= 1
  }
  const here = (at: string): void => {
    if (at !== place || (once && called > 0) || called >= 25) return
    called += 1
    for (const promise of call(rig)) {
      pending += 1
      promise.then(settled, settled)
    }
  }
  const rig: Rig = new Rig({
    clientId: 'c',
    cleanStart: false,
    firstConnect: 'wait',
    credentials: () => {
      here('credentials')
      return {}
    },
    reconnect: {
      backoff: (attempt) => {
        here('backoff')
        return reconnect.backoff(attempt)
      },
      decide: () => {
        here('decide')
        return undefined
      },
    },
  })
  rig.behave = (_host, dial) => {
    here('transport')
    if (dial === 1) return refusing(0x88)
    return dial === 3 ? down : welcoming({}, dial === 4)
  }
  for (const type of ['state', 'dial', 'connect', 'connecterror', 'reconnecting', 'disconnect', 'serverdisconnect', 'sessionlost'] as const)
    rig.client.on(type, (event) => here(type === 'state' ? `state ${(event as ClientEvents['state']).state}` : type))
  const listening = rig.client.listen('in', () => here('handler'), { qos: 1 }).catch(() => undefined)
  rig.client.connect().catch(() => undefined)
  await rig.advance(1500)
  const peer = (): Rig['peer'] | undefined => rig.peers.at(-1)
  peer()?.send({ type: 'publish', topic: 'in', payload: new Uint8Array(1), qos: 1, retain: false, dup: false, packetId: 9, properties: {} })
  await rig.settle()
  peer()?.cut()
  await rig.advance(10_000)
  peer()?.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} })
  peer()?.end()
  await rig.advance(60_000)
  const ending = rig.client.disconnect({ timeout: 200 })
  await rig.advance(2000)
  await ending
  await listening
  return { rig, pending, called }
}

function checkEnd({ rig, pending }: { rig: Rig; pending: number }): void {
  expect(pending).toBe(0)
  expect(rig.client.state).toBe('closed')
  expect(rig.open).toBe(0)
  expect(rig.clock.pending).toBe(0)
  expect(rig.seen('connect')).toHaveLength(rig.seen('disconnect').length)
  expect(rig.seen('state').filter(({ state }) => state === 'closed')).toHaveLength(1)
}

describe('calls from every callback', () => {
  it('the life that they are made in has every one of them', async () => {
    for (const place of places) {
      const { called, rig } = await life(place, () => [], true)
      expect([place, called]).toEqual([place, 1])
      checkEnd({ rig, pending: 0 })
    }
  })

  for (const place of places) {
    it.each(Object.keys(calls))(`${place}: %s, the first time: no deadlock, everything settles`, async (name) => {
      const result = await life(place, calls[name] ?? (() => []), true)
      expect(result.called).toBe(1)
      checkEnd(result)
    })
  }

  it.each(places)('%s: each call, every time', async (place) => {
    for (const call of Object.values(calls)) checkEnd(await life(place, call, false))
  })
})

describe('what a call from a callback comes to', () => {
  it('publish in disconnect waits for the next connection', async () => {
    const rig = await new Rig({ clientId: 'c', cleanStart: false }).up()
    const receipts: Promise<unknown>[] = []
    rig.client.on('disconnect', () => receipts.push(rig.client.publish('t', 'later', { qos: 1 })), { once: true })
    await rig.cut()
    await rig.advance(1000)
    expect(await Promise.all(receipts)).toMatchObject([{ reasonCode: 0 }])
    expect(rig.peers.map((peer) => peer.all('publish').length)).toEqual([0, 1])
    await rig.finish()
  })

  it('subscribe in connect, every time: one SUBSCRIBE for each', async () => {
    const rig = new Rig({ clientId: 'c', cleanStart: false })
    rig.client.on('connect', () => {
      rig.client.subscription(`s/${rig.dials.length}`)
    })
    await rig.up()
    rig.behave = () => welcoming({}, true)
    await rig.cut()
    await rig.advance(1000)
    expect(rig.peers.map((peer) => peer.all('subscribe').flatMap((packet) => packet.subscriptions.map(({ filter }) => filter)))).toEqual([
      ['s/1'],
      ['s/2'],
    ])
    await rig.finish()
  })

  it('destroy in dial: nothing is sent, no stream stays', async () => {
    const rig = new Rig()
    rig.client.on('dial', () => rig.client.destroy())
    const connecting = rig.client.connect().catch((error: unknown) => error)
    await rig.settle()
    expect(await connecting).toMatchObject({ code: 'ERR_CLOSED' })
    expect(rig.peers.flatMap((peer) => peer.bytes)).toEqual([])
    expect(rig.open).toBe(0)
    expect(rig.clock.pending).toBe(0)
  })

  it('disconnect in reconnecting: the wait is over, one end', async () => {
    const rig = await new Rig().up()
    rig.client.on('reconnecting', () => {
      rig.client.disconnect().catch(() => undefined)
    })
    await rig.cut()
    expect(rig.client.state).toBe('closed')
    expect(rig.clock.pending).toBe(0)
    expect(await rig.client.closed).toBeUndefined()
    await rig.advance(100_000)
    expect(rig.dials).toHaveLength(1)
  })

  it('disconnect in serverdisconnect: an end by our choice, and no reconnect', async () => {
    const rig = await new Rig().up()
    rig.client.on('serverdisconnect', () => {
      rig.client.disconnect().catch(() => undefined)
    })
    await rig.goodbye(0x8b)
    await rig.advance(100_000)
    expect(rig.dials).toHaveLength(1)
    expect(rig.client.state).toBe('closed')
    expect(rig.seen('disconnect')).toHaveLength(1)
    expect(rig.clock.pending).toBe(0)
  })

  it('a custom transport that calls back into the client while it opens', async () => {
    const rig = new Rig()
    rig.behave = () => {
      rig.client.connect().catch(() => undefined)
      rig.client.reconnect({ force: true }).catch(() => undefined)
      return agreeable
    }
    await rig.up()
    await rig.advance(5000)
    expect(rig.dials).toHaveLength(1)
    await rig.finish()
  })
})
