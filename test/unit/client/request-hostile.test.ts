/**
 * Requests and responders: what a server, a requester or a handler may do to them.
 */
import { expect, test } from 'vitest'
import { again, keeps, lasting, steady } from './across.js'
import { accepting, agreeable, connected } from './harness.js'
import { bytes } from './toy-auth.js'
import { unhandledIn } from './unhandled.js'

test('a response subscription that the server never grants is not asked for once more with each connection', async () => {
  const world = await steady({ requestResponseInformation: true }, accepting({ responseInformation: 'r0' }))
  for (let round = 1; round <= 20; round++) {
    world.client.request('svc', 'x', { timeout: 5 }).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 1))
    await world.settle()
    await again(world, keeps({ responseInformation: `r${round}` }))
    world.client.request('svc', 'x', { timeout: 5 }).catch(() => undefined)
    await world.settle()
  }
  await again(world, keeps({ responseInformation: 'r20' }))
  expect(world.peer.all('subscribe').flatMap(({ subscriptions }) => subscriptions).length).toBeLessThan(5)
})

test('an async allow() that rejects brings no process down', async () => {
  const unhandled = await unhandledIn(async () => {
    const world = await connected({ ...lasting }, agreeable)
    void world.client.respond('svc', () => 'x', { allow: (async () => Promise.reject(new Error('no'))) as never })
    await new Promise((resolve) => setTimeout(resolve, 50))
    await world.settle()
    await world.send({ type: 'publish', topic: 'svc', payload: bytes('q'), properties: { responseTopic: 'r' } })
  })
  expect(unhandled).toEqual([])
})

test('20,000 requests that the end of the client ends leave nothing behind', async () => {
  const world = await connected({ ...lasting }, (packet) => agreeable(packet))
  const calls: Promise<unknown>[] = []
  for (let index = 0; index < 20_000; index++)
    calls.push(world.client.request('svc', 'x', { timeout: 100 }).catch((error: { code: string }) => error.code))
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    await world.settle()
  }
  const sent = world.peer.all('publish').length
  const before = world.clock.pending
  expect(before).toBeGreaterThanOrEqual(sent)
  world.client.destroy()
  expect(new Set(await Promise.all(calls))).toEqual(new Set(['ERR_CLOSED']))
  await world.settle()
  expect(world.clock.pending).toBe(0)
}, 60_000)
