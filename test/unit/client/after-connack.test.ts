/** Bytes of a hostile or hasty server: what follows CONNACK in one segment while the mechanism checks it, floods, and statistics. */
import { expect, test } from 'vitest'
import { lasting } from './across.js'
import { connected, World } from './harness.js'
import { publish } from './incoming.js'
import { bytes, toy } from './toy-auth.js'

const properties = { authenticationMethod: 'toy', authenticationData: bytes('a') }
const connack = { type: 'connack', sessionPresent: true, reasonCode: 0, properties } as const
const challenge = { type: 'auth', reasonCode: 0x18, properties } as const

/** A client that connects while `success()` takes its time, and what it got; `behind` comes in one segment with CONNACK. */
async function checking(delivery: 'chunk' | 'buffer', behind: Parameters<World['send']>) {
  const { auth } = toy({ success: () => new Promise<void>((resolve) => setTimeout(resolve, 5)) })
  const world = new World({ ...lasting, cleanStart: false, clientId: 'c', auth }, {
    delivery,
  } as never)
  const seen: string[] = []
  world.client.listen('t', (item) => void seen.push(item.text()), { qos: 1 }).catch(() => undefined)
  world.answer = (packet) => (packet.type === 'connect' ? [connack, ...behind] : undefined)
  const connecting = world.client.connect()
  await world.settle()
  const checked = async (): Promise<string[]> => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    await world.settle()
    await connecting
    return seen
  }
  return { world, checked }
}

test.each(['chunk', 'buffer'] as const)(
  'nothing is lost before success() (%s)',
  async (delivery) => {
    const { world, checked } = await checking(delivery, [
      publish('t', 'm1', 1),
      publish('t', 'm2', 2),
    ])
    await world.send(publish('t', 'm3', 3))
    expect(await checked()).toEqual(['m1', 'm2', 'm3'])
  },
)

test('a packet that is cut in the middle behind CONNACK', async () => {
  const { world, checked } = await checking('chunk', [])
  const whole = [0x32, 7, 0, 1, 0x74, 0, 1, 0, 0x61]
  await world.sendBytes(whole.slice(0, 4))
  await world.sendBytes(whole.slice(4), whole.slice(0, 3))
  expect([await checked(), world.client.state]).toEqual([['a'], 'connected'])
  world.client.destroy()
})

test('a PINGRESP without a PINGREQ is no round trip', async () => {
  const world = await connected({ stats: true, keepAlive: false })
  await world.clock.advance(5000)
  await world.send({ type: 'pingresp' })
  expect(world.client.stats().pingRoundTrip).toBeUndefined()
})

test('a challenge after CONNACK is not answered for CONNECT', async () => {
  let answer: ((data: string) => void) | undefined
  const { auth } = toy({
    continue: () => new Promise<string>((resolve) => (answer = resolve)),
    success: undefined,
  })
  const world = new World({ auth })
  world.answer = (packet) =>
    packet.type === 'connect' ? [challenge, { ...connack, sessionPresent: false }] : undefined
  await Promise.all([world.client.connect(), world.settle()])
  answer?.('late')
  await world.settle()
  expect(world.peer.all('auth')).toHaveLength(0)
})

test('two challenges at once are not answered side by side', async () => {
  let [running, most] = [0, 0]
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
  world.answer = (packet) =>
    packet.type === 'connect' ? [challenge, challenge, challenge] : undefined
  world.client.connect().catch(() => undefined)
  await world.settle()
  expect(most).toBeLessThan(2)
  world.client.destroy()
})
