/** Options given wrongly or in combination, and what they promise; and timers, pings and listeners over many connections. */
import { expect, test } from 'vitest'
import { constant, exponential } from '../../../src/client/options/backoff.js'
import { accepting, connected } from './harness.js'
import { quiet } from './incoming.js'
import { Rig, reconnect } from './rig.js'
import { toy } from './toy-auth.js'
import { unhandledIn } from './unhandled.js'

test.each([
  [
    '[MQTT-3.14.2-2] opened with expiry 0 is not given one by disconnect()',
    undefined,
    0,
    { sessionExpiryInterval: 60, timeout: 100 },
    [],
  ],
  ['let live on ends with a clean disconnect()', 0, 300, { timeout: 100 }, [0]],
] as const)('a session that credentials() %s', async (_title, ours, given, options, sent) => {
  const world = await connected({
    sessionExpiryInterval: ours,
    credentials: () => ({ connect: { sessionExpiryInterval: given } }),
  })
  await Promise.all([
    world.client.disconnect(options).catch(() => undefined),
    world.clock.advance(2000),
  ])
  expect(
    world.peer.all('disconnect').map(({ properties }) => properties.sessionExpiryInterval),
  ).toEqual(sent)
  world.client.destroy()
})

test('exponential gives a number whatever the attempt, and grows from { min: 0 } too', () => {
  for (const options of [{ min: 0 }, { min: 1 }, { min: 0, max: 0 }])
    for (const attempt of [1, 1023, 1024, 1025, 5000, Number.MAX_SAFE_INTEGER])
      expect(exponential(options)(attempt, undefined)).toBeGreaterThanOrEqual(0)
  expect(constant(0)(1, undefined)).toBe(0)
  expect(exponential({ min: 0, max: 30_000, jitter: 'none' })(20, undefined)).toBeGreaterThan(1000)
})

test.each(['backoff', 'decide'] as const)('a rejection of %s() is handled', async (name) => {
  const rig = await new Rig({
    reconnect: { ...reconnect, [name]: async () => Promise.reject(new Error('later')) },
  }).up()
  const unhandled = await unhandledIn(async () => {
    await rig.cut()
    await rig.advance(100)
  })
  rig.client.destroy()
  expect(unhandled).toEqual([])
})

test('reconnect() that nothing awaits, in a listener, is no unhandled rejection when the client ends', async () => {
  const rig = await new Rig().up()
  rig.client.on('disconnect', () => {
    rig.client.reconnect()
  })
  const unhandled = await unhandledIn(async () => {
    await rig.cut()
    rig.client.destroy()
  })
  expect(unhandled).toEqual([])
})

test('a re-authentication whose start() takes its time survives one that the server begins and ends meanwhile', async () => {
  let slow: ((data: string) => void) | undefined
  let starts = 0
  const { auth } = toy({
    start: () => (starts++ === 0 ? 'hello' : new Promise<string>((resolve) => (slow = resolve))),
  })
  const properties = { authenticationMethod: 'toy' }
  const world = await connected({ auth }, accepting(properties))
  const renewing = quiet(world.client.reauthenticate())
  await world.settle()
  for (const reasonCode of [0x18, 0]) await world.send({ type: 'auth', reasonCode, properties })
  // Nothing of ours has left: it cannot have succeeded, and the connection is good.
  expect(world.client.state).toBe('connected')
  expect(await world.outcome(renewing)).toMatchObject({ state: 'pending' })
  slow?.('again')
  await world.settle()
  expect(world.peer.all('auth').filter(({ reasonCode }) => reasonCode === 0x19)).toHaveLength(1)
})
