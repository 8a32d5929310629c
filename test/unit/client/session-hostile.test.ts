/**
 * Sessions under attack: what a server that was never verified, or that answers one thing for ever, does to what is in flight.
 */
import { expect, test } from 'vitest'
import { carried, comeBack, keeps, lose, send, steady } from './across.js'
import { accepting, agreeable } from './harness.js'
import { publish, quiet } from './incoming.js'
import { ack } from './stub.js'
import { bytes, text, toy } from './toy-auth.js'

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

test('a server that finds every identifier in use does not make us publish for ever, nor uses up the identifiers', async () => {
  let answers = 0
  const world = await steady({ cleanStart: false, clientId: 'c' }, (packet) => {
    if (packet.type !== 'publish' || answers >= 3000) return keeps()(packet)
    answers += 1
    return ack('puback', packet.packetId as number, 0x91)
  })
  const [one] = send(world, 1, 'one')
  const error = { code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x91 }
  expect(await world.outcome(one as Promise<unknown>)).toMatchObject({ state: 'rejected', error })
  expect(answers).toBeLessThan(1000)
})

test('ackTimeout is not begun again by every 0x91', async () => {
  const world = await steady({ cleanStart: false, clientId: 'c' }, keeps())
  const publishing = quiet(world.client.publish('t', 'one', { qos: 1, ackTimeout: 1000 }))
  for (let round = 0; round < 4; round++) {
    await world.clock.advance(400)
    await world.send(ack('puback', world.peer.last('publish').packetId as number, 0x91))
  }
  expect(await world.outcome(publishing)).toMatchObject({
    state: 'rejected',
    error: { code: 'ERR_TIMEOUT' },
  })
})
