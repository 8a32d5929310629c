/**
 * Timers, pings and listeners over many connections.
 */
import { expect, test } from 'vitest'
import { down, Rig } from './rig.js'

test('a hundred wake-ups at once are one question to the server', async () => {
  const wake: (() => void)[] = []
  const rig = await new Rig(
    {},
    {
      platform: {
        onWake(callback) {
          wake.push(callback)
          return () => undefined
        },
      },
    },
  ).up()
  for (let count = 0; count < 100; count++) for (const callback of wake) callback()
  await rig.settle()
  expect(rig.peer.all('pingreq').length).toBeLessThan(3)
  await rig.finish()
})

test('200 connections, failed attempts between them: nothing is left behind at the end', async () => {
  let dials = 0
  const rig = await new Rig({
    reconnect: { backoff: () => 10, stableAfter: 5 },
    cleanStart: false,
    clientId: 'c',
    credentials: () => ({ username: 'u' }),
  }).up()
  rig.client.publish('t', 'x', { qos: 2, signal: new AbortController().signal }).catch(() => undefined)
  rig.behave = () =>
    ++dials % 3 === 0
      ? down
      : (packet) => (packet.type === 'connect' ? { type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} } : undefined)
  for (let round = 0; round < 300; round++) {
    await rig.advance(11)
    if (rig.client.state === 'connected') await rig.cut()
  }
  expect(rig.clock.pending).toBeLessThan(8)
  rig.client.destroy()
  await rig.settle()
  expect(rig.clock.pending).toBe(0)
  expect(rig.open).toBe(0)
}, 60_000)

test('reconnect({ force: true }) is announced like every other attempt', async () => {
  const rig = await new Rig().up()
  void rig.client.reconnect({ force: true }).catch(() => undefined)
  await rig.settle()
  rig.peers[0]?.end()
  await rig.advance(2000)
  expect(rig.client.state).toBe('connected')
  expect(rig.dials).toHaveLength(2)
  expect(rig.seen('reconnecting')).toHaveLength(1)
  await rig.finish()
})
