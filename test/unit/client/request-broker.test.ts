/**
 * Requester and responder through the in-memory broker: whole exchanges, also while the broker goes and comes, and what a server or a handler may
 * do to them.
 */
import { afterEach, describe, expect, it, test } from 'vitest'
import type { Responding, RespondOptions } from '../../../src/client/options/index.js'
import type { MemoryBrokerOptions } from '../../../src/testing/broker/index.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'
import type { QoS } from '../../../src/wire/packets.js'
import { again, keeps, lasting, steady } from './across.js'
import { accepting, agreeable, connected, failure } from './harness.js'
import { publish, quiet } from './incoming.js'
import { unhandledIn } from './unhandled.js'

let world: VirtualWorld
const client = (clientId: string) =>
  world.connect('mqtt://b', {
    ...{ clientId, keepAlive: false, reconnect: { backoff: () => 100 } },
    requestResponseInformation: true,
  })

/** A world with a responder for `svc/+`; gives a requester. */
async function scene(handler: Responding, options?: RespondOptions, broker?: MemoryBrokerOptions) {
  world = new VirtualWorld({ broker })
  await (await client('responder')).respond('svc/+', handler, options)
  return client('requester')
}

describe('request and respond through a broker', () => {
  afterEach(async () => {
    expect(world.broker.violations).toEqual([])
    await world.close()
  })

  it.each([0, 1, 2] as QoS[])('a hundred at a time at QoS %i', async (qos) => {
    const requester = await scene((message) => `${message.topic} ${message.text()}`, { qos })
    const indexes = Array.from({ length: 100 }, (_, index) => index)
    const replies = indexes.map((index) => requester.request(`svc/${index}`, `${index}`, { qos }))
    const texts = (await world.until(Promise.all(replies))).map((message) => message.text())
    expect(texts).toEqual(indexes.map((index) => `svc/${index} ${index}`))
  })

  it('response information keeps two tenants apart; a responder that allows one answers only there', async () => {
    const requester = await scene(
      (message) => message.properties.responseTopic,
      { allow: 'tenant/requester' },
      { responseInformation: (connect) => `tenant/${connect.clientId}` },
    )
    const reply = requester.request('svc/a', '')
    const refused = failure((await client('other')).request('svc/a', '', { timeout: 500 }))
    expect((await reply).text()).toMatch(/^tenant\/requester\/[0-9a-f]{20}$/)
    expect(await world.until(refused)).toMatchObject({ code: 'ERR_TIMEOUT' })
  })

  it('the broker forgets everything while a call waits: both subscriptions come back, the answer arrives', async () => {
    const held: (() => void)[] = []
    const handler = () => new Promise<string>((resolve) => held.push(() => resolve('after all')))
    const requester = await scene(handler, { qos: 1, concurrency: 2 })
    for (const forgetful of [true, false]) {
      const reply = quiet(requester.request('svc/a', '', { qos: 1 }))
      await world.until(() => held.length > 0)
      if (forgetful) world.broker.restart({ keepSessions: false })
      await world.pass(200)
      held.shift()?.()
      expect((await world.until(reply)).text()).toBe('after all')
    }
  })
})

test('a response subscription that the server never grants is not asked for once more with each connection', async () => {
  const world = await steady(
    { requestResponseInformation: true },
    accepting({ responseInformation: 'r0' }),
  )
  const ask = async (): Promise<void> => {
    quiet(world.client.request('svc', 'x', { timeout: 5 }))
    await new Promise((resolve) => setTimeout(resolve, 1))
    await world.settle()
  }
  for (let round = 1; round <= 20; round++) {
    await ask()
    await again(world, keeps({ responseInformation: `r${round}` }))
    await ask()
  }
  await again(world, keeps({ responseInformation: 'r20' }))
  expect(
    world.peer.all('subscribe').flatMap(({ subscriptions }) => subscriptions).length,
  ).toBeLessThan(5)
})

test('an async allow() that rejects brings no process down', async () => {
  const unhandled = await unhandledIn(async () => {
    const world = await connected({ ...lasting }, agreeable)
    const allow = (async () => Promise.reject(new Error('no'))) as never
    void world.client.respond('svc', () => 'x', { allow })
    await new Promise((resolve) => setTimeout(resolve, 50))
    await world.settle()
    await world.send(publish('svc', 'q', undefined, { properties: { responseTopic: 'r' } }))
  })
  expect(unhandled).toEqual([])
})
