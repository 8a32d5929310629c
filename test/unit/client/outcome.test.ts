/** Whatever happens, every publish settles, and what it says of the message's fate is true. */
import { describe, expect, it } from 'vitest'
import { accepting, connected } from './harness.js'
import { ack, fates, stubbed } from './stub.js'
import { unhandledInFile } from './unhandled.js'

const unhandled = unhandledInFile()
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('the connection is cut', () => {
  it('what was never handed over says not-sent, what is in flight says unknown', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 2 }))
    const calls = fates(
      ...([1, 2, 1, 2] as const).map((qos) => world.client.publish('t', 'x', { qos })),
    )
    await world.settle()
    await world.send(ack('pubrec', 2))
    world.peer.cut()
    await world.settle()
    const [unknown, notSent] = ['ERR_CONNECTION_LOST unknown', 'ERR_CONNECTION_LOST not-sent']
    expect([...calls, world.client.outbound.size]).toEqual([unknown, unknown, notSent, notSent, 0])
  })

  it.each([
    ['by reference', new Uint8Array(40_000), {}],
    ['flush: true', new Uint8Array(4), { flush: true }],
  ] as const)('QoS 0 that was not written (%s) says unknown', async (_, payload, options) => {
    const world = await stubbed()
    world.stub.holds = true
    const call = fates(world.client.publish('t', payload, options))
    await world.settle()
    world.stub.destroy(new Error('gone'))
    await world.settle()
    expect(call).toEqual(['ERR_CONNECTION_LOST unknown'])
    const error = { code: 'ERR_CONNECTION_LOST', fault: 'remote' }
    expect(world.drops).toMatchObject([{ direction: 'out', topic: 't', error }])
  })
})

describe('the client is closed', () => {
  it.each(['disconnect', 'destroy'] as const)('%s: publishes reject, also later', async (how) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const calls = fates(...([1, 2] as const).map((qos) => world.client.publish('t', 'x', { qos })))
    await world.settle()
    if (how === 'destroy') world.client.destroy()
    else world.client.disconnect({ timeout: 0 })
    await world.settle()
    expect(calls).toEqual(['ERR_CLOSED unknown', 'ERR_CLOSED not-sent'])
    const drops = world.seen('drop').length
    const late = fates(
      ...([0, 1, 2] as const).map((qos) => world.client.publish('t', 'x', { qos })),
    )
    await world.settle()
    expect(late).toEqual(Array(3).fill('ERR_CLOSED not-sent'))
    expect(world.seen('drop')).toHaveLength(drops)
  })

  it('disconnect({ timeout: 0 }) settles publishes that wait to be written within 50 ms', async () => {
    const world = await stubbed()
    Object.assign(world.stub, { holds: true, takes: false })
    const { client } = world
    const calls = fates(
      client.publish('t', 'x', { flush: true }),
      client.publish('t', new Uint8Array(40_000)),
      client.publish('t', 'x', { qos: 1 }),
      client.flush(),
    )
    await world.settle()
    const stopping = fates(client.disconnect({ timeout: 0 }))
    await world.clock.advance(50)
    expect([...stopping, ...calls.map((call) => call.slice(0, 4))]).toEqual([
      'done',
      ...Array(4).fill('ERR_'),
    ])
  })
})

it('failures that nothing awaits raise `drop`, once each, with topic and error, and never an unhandled rejection', async () => {
  const limits = {
    receiveMaximum: 1,
    maximumPacketSize: 64,
    maximumQoS: 1,
    retainAvailable: 0,
  } as const
  const world = await stubbed({ outbound: { maxQueuedMessages: 1, overflow: 'reject' } }, limits)
  const { client } = world
  client.publish('refused', 'x', { qos: 1 })
  client.publish('large', new Uint8Array(100), { qos: 1 })
  client.publish('large0', new Uint8Array(100))
  client.publish('qos', 'x', { qos: 2 })
  client.publish('retain', 'x', { retain: true })
  client.publish('cut', 'x', { qos: 1 })
  client.publish('full', 'x', { qos: 1 })
  await world.settle()
  world.stub.takes = false
  client.post('t', 'fill')
  await world.settle()
  void client.writable
  await world.deliver(ack('puback', 1, 0x87))
  world.stub.destroy(new Error('gone'))
  await world.settle()
  await turn()
  const told = world.drops.map(
    ({ direction, topic, count, error }) => `${direction} ${topic} ${count} ${error?.code}`,
  )
  expect(told.sort()).toEqual([
    'out cut 1 ERR_CONNECTION_LOST',
    'out full 1 ERR_QUEUE_FULL',
    'out large 1 ERR_PACKET_TOO_LARGE',
    'out large0 1 ERR_PACKET_TOO_LARGE',
    'out qos 1 ERR_QOS_UNSUPPORTED',
    'out refused 1 ERR_PUBLISH_REFUSED',
    'out retain 1 ERR_RETAIN_UNSUPPORTED',
  ])
  expect(unhandled).toEqual([])
})
