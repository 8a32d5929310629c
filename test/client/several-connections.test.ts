/** What a connection leaves to the next: a mechanism that never answers, a joiner, bytes that the caller uses again, a packet that was cut. */
import { expect, test } from 'vitest'
import { again, comeBack, forgets, keeps, lasting, lose, steady } from './across.js'
import { agreeable, connected } from './harness.js'
import { Rig, reconnect } from './rig.js'
import { asking, toy } from './toy-auth.js'

const suback = (packetId: number, ...reasonCodes: number[]) => ({ type: 'suback', packetId, reasonCodes, properties: {} }) as const

test('T26 pain 6 a mechanism that never answers one challenge answers those of later connections', async () => {
  let calls = 0
  const { auth } = toy({ continue: () => (++calls === 1 ? new Promise<string>(() => undefined) : 'x') })
  const rig = new Rig({ auth, firstConnect: 'wait', connectTimeout: 1000, reconnect }, { behave: () => asking('one') })
  rig.client.connect().catch(() => undefined)
  await rig.advance(30_000)
  expect(rig.client.state).toBe('connected')
  await rig.finish()
})

test('C24 a joiner whose SUBSCRIBE another server cannot take does not leave the older reader waiting', async () => {
  const world = await steady()
  const first = world.client.subscribe('in/#', { qos: 1 })
  await world.settle()
  await world.send(suback(world.peer.last('subscribe').packetId, 1))
  const reader = (await first).next().catch((error: unknown) => error)
  await again(world, forgets())
  const second = world.client.subscribe('in/#', { qos: 1, retainHandling: 2 })
  second.catch(() => undefined)
  await world.settle()
  await again(world, forgets({ wildcardSubscriptionAvailable: 0 }))
  await world.clock.advance(1000)
  expect(await world.outcome(second)).toMatchObject({ state: 'rejected' })
  expect(await world.outcome(reader as Promise<unknown>)).toMatchObject({ state: 'fulfilled', value: { code: 'ERR_WILDCARD_SUBS_UNSUPPORTED' } })
})

test('D31 I1 what is replayed is what was published, also when the caller was told already and uses its bytes again', async () => {
  const world = await connected({ ...lasting, cleanStart: false, clientId: 'c' })
  const payload = new TextEncoder().encode('one')
  const abort = new AbortController()
  const publish = world.client.publish('t', payload, { qos: 1, signal: abort.signal })
  publish.catch(() => undefined)
  await world.settle()
  const timely = new TextEncoder().encode('two')
  const late = world.client.publish('t', timely, { qos: 2, ackTimeout: 5 })
  late.catch(() => undefined)
  await world.settle()
  // The caller has both back now.
  abort.abort()
  await world.clock.advance(6)
  expect(await world.outcome(late)).toMatchObject({ state: 'rejected', error: { code: 'ERR_TIMEOUT' } })
  payload.fill(0)
  timely.fill(0)
  await lose(world)
  await comeBack(world, keeps())
  expect(world.peer.all('publish').map(({ payload: sent }) => new TextDecoder().decode(sent))).toEqual(['one', 'two'])
})

test('M20 a packet that is cut in the middle behind CONNACK', async () => {
  const { auth } = toy({ success: () => new Promise<void>((resolve) => setTimeout(resolve, 5)) })
  const world = await connected({ ...lasting }, agreeable)
  world.client.destroy()
  const rig = new Rig(
    { auth, cleanStart: false, clientId: 'c' },
    {
      behave: () => (packet) =>
        packet.type === 'connect' ? { type: 'connack', sessionPresent: true, reasonCode: 0, properties: { authenticationMethod: 'toy' } } : undefined,
    },
  )
  const seen: string[] = []
  rig.client.listen('t', (message) => void seen.push(message.text()), { qos: 1 }).catch(() => undefined)
  void rig.client.connect().catch(() => undefined)
  await rig.settle()
  const whole = [0x32, 7, 0, 1, 0x74, 0, 1, 0, 0x61]
  rig.peer.sendBytes(whole.slice(0, 4))
  await rig.settle()
  rig.peer.sendBytes(whole.slice(4), whole.slice(0, 3))
  await rig.settle()
  await new Promise((resolve) => setTimeout(resolve, 20))
  await rig.settle()
  expect(rig.client.state).toBe('connected')
  expect(seen).toEqual(['a'])
  rig.client.destroy()
})
