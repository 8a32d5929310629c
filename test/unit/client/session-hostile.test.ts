/**
 * Sessions under attack: what a server that was never verified, or that answers one thing for ever, does to what is in flight.
 */
import { expect, test } from 'vitest'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { comeBack, lasting, lose, short } from './across.js'
import { agreeable, connected } from './harness.js'
import { bytes, text, toy } from './toy-auth.js'

const proof = 'proof'

/** Accepts with this proof; answers nothing else. */
function accepts(sessionPresent: boolean, proves: string): Answer {
  return (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent, reasonCode: 0, properties: { authenticationMethod: 'toy', authenticationData: bytes(proves) } }
      : undefined
}

const verifying = () =>
  toy({
    success(data) {
      if (text(data) !== proof) throw new Error('not the server')
    },
  }).auth

test('a server that did not prove itself does not touch the session: what was in flight is replayed, and settles', async () => {
  const world = await connected({ ...lasting, cleanStart: false, clientId: 'c', auth: verifying() }, accepts(false, proof))
  const publish = world.client.publish('t', 'one', { qos: 1 })
  await world.settle()
  await lose(world)
  await comeBack(world, accepts(false, 'forged'))
  const peer = await comeBack(world, accepts(true, proof))
  expect(peer.all('publish').map(short)).toEqual(['publish t=one q1 #1 dup'])
  await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
  expect(await world.outcome(publish)).toMatchObject({ state: 'fulfilled' })
})

test('nor what was received: a QoS 2 message is delivered once though an impostor said that the session was gone', async () => {
  const world = await connected({ ...lasting, cleanStart: false, clientId: 'c', auth: verifying() }, (packet) =>
    packet.type === 'connect' ? accepts(false, proof)(packet) : agreeable(packet),
  )
  const seen: string[] = []
  world.client.listen('#', (message) => void seen.push(message.text()), { qos: 2 }).catch(() => undefined)
  await world.settle()
  const message = { type: 'publish', topic: 't', payload: bytes('once'), qos: 2, retain: false, packetId: 9, properties: {} } as const
  await world.send({ ...message, dup: false })
  expect(seen).toEqual(['once'])
  await lose(world)
  await comeBack(world, accepts(false, 'forged'))
  await comeBack(world, accepts(true, proof))
  await world.send({ ...message, dup: true })
  expect(seen).toEqual(['once'])
})

test('a connection that breaks while the mechanism checks the last words: the loss of the session is not forgotten', async () => {
  let hang = false
  const auth = toy({ success: () => (hang ? new Promise<void>(() => undefined) : undefined) }).auth
  const world = await connected({ ...lasting, cleanStart: false, clientId: 'c', auth }, accepts(false, proof))
  const publish = world.client.publish('t', 'one', { qos: 1 })
  await world.settle()
  await lose(world)
  hang = true
  await comeBack(world, accepts(false, proof))
  hang = false
  await lose(world)
  await comeBack(world, accepts(true, proof))
  const sent = world.peer.all('publish')
  expect(sent).toHaveLength(1)
  await world.send({ type: 'puback', packetId: sent[0]?.packetId as number, reasonCode: 0, properties: {} })
  expect(await world.outcome(publish)).toMatchObject({ state: 'fulfilled' })
})

test('A server that finds every identifier in use does not make us publish for ever, nor uses up the identifiers', async () => {
  let answers = 0
  const world = await connected({ ...lasting, cleanStart: false, clientId: 'c' }, (packet) => {
    if (packet.type === 'connect') return { type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} }
    if (packet.type !== 'publish' || answers >= 3000) return undefined
    answers += 1
    return { type: 'puback', packetId: packet.packetId as number, reasonCode: 0x91, properties: {} }
  })
  const publish = world.client.publish('t', 'one', { qos: 1 })
  const outcome = await world.outcome(publish)
  expect(answers).toBeLessThan(1000)
  expect(outcome).toMatchObject({ state: 'rejected', error: { code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x91 } })
})

test('ackTimeout is not started anew by every 0x91', async () => {
  const world = await connected({ ...lasting, cleanStart: false, clientId: 'c' }, (packet) =>
    packet.type === 'connect' ? { type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} } : undefined,
  )
  const publish = world.client.publish('t', 'one', { qos: 1, ackTimeout: 1000 })
  publish.catch(() => undefined)
  for (let round = 0; round < 4; round++) {
    await world.clock.advance(400)
    await world.send({ type: 'puback', packetId: world.peer.last('publish').packetId as number, reasonCode: 0x91, properties: {} })
  }
  expect(await world.outcome(publish)).toMatchObject({ state: 'rejected', error: { code: 'ERR_TIMEOUT' } })
})
