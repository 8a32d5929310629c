/** A server that has not proved itself yet: what follows its CONNACK while the mechanism checks it, and what it may not do to the session. */
import { expect, test } from 'vitest'
import { carried, comeBack, lasting, lose, send, steady } from './across.js'
import { accepting, agreeable, World } from './harness.js'
import { gate, publish, quiet } from './incoming.js'
import { settled } from './steps.js'
import { ack } from './stub.js'
import { bytes, text, toy } from './toy-auth.js'

const properties = { authenticationMethod: 'toy', authenticationData: bytes('a') }
const connack = { type: 'connack', sessionPresent: true, reasonCode: 0, properties } as const
const challenge = { type: 'auth', reasonCode: 0x18, properties } as const

/** A client that connects while `success()` takes its time, and what it got; `behind` comes in one segment with CONNACK. */
async function checking(delivery: 'chunk' | 'buffer', behind: Parameters<World['send']>) {
  const verdict = gate()
  const { auth } = toy({ success: () => verdict.promise })
  const options = { ...lasting, cleanStart: false, clientId: 'c', auth }
  const world = new World(options, { delivery } as never)
  const seen: string[] = []
  quiet(world.client.listen('t', (item) => void seen.push(item.text()), { qos: 1 }))
  world.answer = (packet) => (packet.type === 'connect' ? [connack, ...behind] : undefined)
  const connecting = world.client.connect()
  await world.settle()
  const checked = async (): Promise<string[]> => {
    verdict.open()
    await settled(world, connecting)
    await world.settle()
    return seen
  }
  return { world, checked }
}

test.each(['chunk', 'buffer'] as const)('nothing is lost (%s)', async (delivery) => {
  const { world, checked } = await checking(delivery, [
    publish('t', 'm1', 1),
    publish('t', 'm2', 2),
  ])
  await world.send(publish('t', 'm3', 3))
  expect(await checked()).toEqual(['m1', 'm2', 'm3'])
})

test('a packet that is cut in the middle behind CONNACK', async () => {
  const { world, checked } = await checking('chunk', [])
  const whole = [0x32, 7, 0, 1, 0x74, 0, 1, 0, 0x61]
  await world.sendBytes(whole.slice(0, 4))
  await world.sendBytes(whole.slice(4), whole.slice(0, 3))
  expect([await checked(), world.client.state]).toEqual([['a'], 'connected'])
  world.client.destroy()
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
  await world.up()
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

/** Accepts with this proof; answers nothing else. */
const accepts = (sessionPresent: boolean, proves = 'proof') =>
  accepting({ authenticationMethod: 'toy', authenticationData: bytes(proves) }, sessionPresent)

/** A client that knows its server by the proof, or waits for ever where it is to hang. */
function verifying(hangs = () => false) {
  const success = (data: Uint8Array | undefined): void | Promise<void> => {
    if (hangs()) return new Promise(() => undefined)
    if (text(data) !== 'proof') throw new Error('not the server')
  }
  return steady({ cleanStart: false, clientId: 'c', auth: toy({ success }).auth }, accepts(false))
}

test('a server that did not prove itself does not touch the session: what was in flight is replayed, and settles', async () => {
  const world = await verifying()
  const [one] = send(world, 1, 'one')
  await world.settle()
  await lose(world)
  await comeBack(world, accepts(false, 'forged'))
  const peer = await comeBack(world, accepts(true))
  expect(carried(peer)).toEqual(['publish t=one q1 #1 dup'])
  await world.send(ack('puback', 1))
  await expect(one).resolves.toBeDefined()
})

test('nor what was received: a QoS 2 message is delivered once though an impostor said that the session was gone', async () => {
  const world = await verifying()
  world.answer = agreeable
  const seen: string[] = []
  quiet(world.client.listen('#', (message) => void seen.push(message.text()), { qos: 2 }))
  await world.settle()
  await world.send(publish('t', 'once', 9, { qos: 2 }))
  expect(seen).toEqual(['once'])
  await lose(world)
  await comeBack(world, accepts(false, 'forged'))
  await comeBack(world, accepts(true))
  await world.send(publish('t', 'once', 9, { qos: 2, dup: true }))
  expect(seen).toEqual(['once'])
})

test('a connection that breaks while the mechanism checks the last words: the loss of the session is not forgotten', async () => {
  let hang = false
  const world = await verifying(() => hang)
  const [one] = send(world, 1, 'one')
  await world.settle()
  await lose(world)
  hang = true
  await comeBack(world, accepts(false))
  hang = false
  await lose(world)
  const [sent, ...rest] = (await comeBack(world, accepts(true))).all('publish')
  expect(rest).toEqual([])
  await world.send(ack('puback', sent?.packetId as number))
  await expect(one).resolves.toBeDefined()
})
