/** Options given wrongly or in combination, and what they promise. */
import { expect, test } from 'vitest'
import { constant, exponential } from '../../../src/client/parsing/backoff.js'
import { connected, World } from './harness.js'
import { Rig, reconnect } from './rig.js'
import { bytes, toy } from './toy-auth.js'
import { unhandledIn } from './unhandled.js'

test('[MQTT-3.14.2-2] a session that credentials() opened with expiry 0 is not given one by disconnect()', async () => {
  const world = await connected({ credentials: () => ({ connect: { sessionExpiryInterval: 0 } }) })
  const ending = world.client.disconnect({ sessionExpiryInterval: 60, timeout: 100 }).catch((error: unknown) => error)
  await world.clock.advance(2000)
  await ending
  expect(world.peer.all('disconnect').map(({ properties }) => properties.sessionExpiryInterval)).not.toContain(60)
  world.client.destroy()
})

test('a session that credentials() let live on ends with a clean disconnect()', async () => {
  const world = await connected({ sessionExpiryInterval: 0, credentials: () => ({ connect: { sessionExpiryInterval: 300 } }) })
  const ending = world.client.disconnect({ timeout: 100 })
  await world.clock.advance(2000)
  await ending
  expect(world.peer.last('disconnect').properties.sessionExpiryInterval).toBe(0)
})

test('exponential({ min: 0 }) grows, or is refused', () => {
  let delays: number[]
  try {
    const backoff = exponential({ min: 0, max: 30_000, jitter: 'none' })
    delays = Array.from({ length: 20 }, (_, index) => backoff(index + 1, undefined))
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' })
    return
  }
  expect(delays.at(-1)).toBeGreaterThan(1000)
})

test('exponential gives a number whatever the attempt', () => {
  for (const options of [{ min: 0 }, { min: 1 }, { min: 0, max: 0 }])
    for (const attempt of [1, 1023, 1024, 1025, 5000, Number.MAX_SAFE_INTEGER])
      expect(exponential(options)(attempt, undefined)).toBeGreaterThanOrEqual(0)
  expect(constant(0)(1, undefined)).toBe(0)
})

test('a method of authentication that no CONNECT can carry is refused when the client is made', () => {
  for (const method of ['x'.repeat(70_000), '\ud800'])
    expect(() => new World({ auth: { ...toy().auth, method } }), JSON.stringify(method.slice(0, 5))).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
    )
})

test.each([['backoff'], ['decide']] as const)('%s() that gives a rejected promise (JavaScript) brings no process down', async (name) => {
  const rig = await new Rig({ reconnect: { ...reconnect, [name]: async () => Promise.reject(new Error('later')) } }).up()
  const unhandled = await unhandledIn(async () => {
    await rig.cut()
    await rig.advance(100)
  })
  rig.client.destroy()
  expect(unhandled).toEqual([])
})

test('an entry of serverReferences that can never match is refused', () => {
  for (const entry of ['', 'mqtt://b', 'b/path', 'b c']) {
    expect(() => new World({ serverReferences: [entry] }), entry).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: expect.stringContaining('serverReferences') }),
    )
  }
})

test('nothing secret in events: the connect event has no authentication data', async () => {
  const world = await connected({ auth: toy().auth }, (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { authenticationMethod: 'toy', authenticationData: bytes('secret') } }
      : undefined,
  )
  expect(world.seen('connect')[0]?.connack.properties.authenticationData).toBeUndefined()
})

test('reconnect() that nobody awaits, in a listener, is no unhandled rejection when the client ends', async () => {
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
  const { auth } = toy({ start: () => (starts++ === 0 ? 'hello' : new Promise<string>((resolve) => (slow = resolve))) })
  const properties = { authenticationMethod: 'toy' }
  const world = await connected({ auth, reconnect: false }, (packet) =>
    packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties } : undefined,
  )
  const renewing = world.client.reauthenticate()
  renewing.catch(() => undefined)
  await world.settle()
  await world.send({ type: 'auth', reasonCode: 0x18, properties })
  await world.send({ type: 'auth', reasonCode: 0, properties })
  // Nothing of ours has left: it cannot have succeeded, and the connection is good.
  expect(world.client.state).toBe('connected')
  expect(await world.outcome(renewing)).toMatchObject({ state: 'pending' })
  slow?.('again')
  await world.settle()
  expect(world.peer.all('auth').filter(({ reasonCode }) => reasonCode === 0x19)).toHaveLength(1)
})
