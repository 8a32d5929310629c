/**
 * Bytes of a hostile or hasty server: what follows CONNACK in one segment while the mechanism checks it, floods, and statistics.
 */
import { expect, test } from 'vitest'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { lasting } from './across.js'
import { agreeable, connected, World } from './harness.js'
import { Rig } from './rig.js'
import { bytes, toy } from './toy-auth.js'

const connack = { type: 'connack', sessionPresent: true, reasonCode: 0, properties: { authenticationMethod: 'toy' } } as const
const message = (id: number, qos: 0 | 1 = 1): PacketInput =>
  ({
    type: 'publish',
    topic: 't',
    payload: bytes(`m${id}`),
    qos,
    retain: false,
    dup: false,
    packetId: qos === 0 ? undefined : id,
    properties: {},
  }) as PacketInput

for (const delivery of ['chunk', 'buffer'] as const)
  test(`what comes in one segment with CONNACK is not lost while success() takes its time (${delivery})`, async () => {
    const { auth } = toy({ success: () => new Promise<void>((resolve) => setTimeout(resolve, 5)) })
    const world = new World({ ...lasting, cleanStart: false, clientId: 'c', auth }, { delivery } as never)
    const seen: string[] = []
    world.client.listen('t', (item) => void seen.push(item.text()), { qos: 1 }).catch(() => undefined)
    world.answer = (packet) => (packet.type === 'connect' ? [connack, message(1), message(2)] : agreeable(packet))
    const connecting = world.client.connect()
    await world.settle()
    await world.send(message(3))
    await new Promise((resolve) => setTimeout(resolve, 20))
    await world.settle()
    await connecting
    expect(seen).toEqual(['m1', 'm2', 'm3'])
  })

test('a PINGRESP that nobody asked for is no round trip', async () => {
  const world = await connected({ stats: true, keepAlive: false })
  await world.clock.advance(5000)
  await world.send({ type: 'pingresp' })
  expect(world.client.stats().pingRoundTrip).toBeUndefined()
})

test('a challenge after CONNACK is not answered for CONNECT', async () => {
  let answer: ((data: string) => void) | undefined
  const { auth } = toy({ continue: () => new Promise<string>((resolve) => (answer = resolve)) })
  const world = new World({ auth: { method: auth.method, start: auth.start, continue: auth.continue } })
  const challenge = { type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'toy', authenticationData: bytes('a') } } as const
  world.answer = (packet) => (packet.type === 'connect' ? [challenge, { ...connack, sessionPresent: false }] : undefined)
  await Promise.all([world.client.connect(), world.settle()])
  answer?.('late')
  await world.settle()
  expect(world.peer.all('auth')).toHaveLength(0)
})

test('two challenges at once are not answered side by side', async () => {
  let running = 0
  let most = 0
  const { auth } = toy({
    async continue() {
      running += 1
      most = Math.max(most, running)
      await Promise.resolve()
      running -= 1
      return 'x'
    },
  })
  const world = new World({ auth })
  const challenge = { type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'toy', authenticationData: bytes('a') } } as const
  world.answer = (packet) => (packet.type === 'connect' ? [challenge, challenge, challenge] : undefined)
  world.client.connect().catch(() => undefined)
  await world.settle()
  expect(most).toBeLessThan(2)
  world.client.destroy()
})

test('a packet that is cut in the middle behind CONNACK', async () => {
  const { auth } = toy({ success: () => new Promise<void>((resolve) => setTimeout(resolve, 5)) })
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
