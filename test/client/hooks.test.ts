/**
 * What the application may do inside its own hooks: end the client, and throw what cannot be shown.
 */
import { expect, test } from 'vitest'
import { agreeable } from './harness.js'
import { down, Rig } from './rig.js'

const endings = ['destroy', 'disconnect'] as const

for (const how of endings) {
  test(`fault 55 A40 decide() that calls ${how}() for a lost connection: the client is over, and stays so`, async () => {
    const rig: Rig = await new Rig({
      reconnect: {
        decide: () => {
          void rig.client[how]()
          return undefined
        },
      },
    }).up()
    await rig.cut()
    await rig.advance(60_000)
    expect(rig.client.state).toBe('closed')
    expect(rig.dials).toHaveLength(1)
    expect(rig.open).toBe(0)
    expect(rig.order).not.toContain('state reconnecting')
  })

  test(`fault 55 A40 a backoff that calls ${how}() for a lost connection: the client is over, and stays so`, async () => {
    const rig: Rig = await new Rig({
      reconnect: {
        backoff: () => {
          void rig.client[how]()
          return 1000
        },
      },
    }).up()
    await rig.cut()
    await rig.advance(60_000)
    expect(rig.client.state).toBe('closed')
    expect(rig.dials).toHaveLength(1)
    expect(rig.order).not.toContain('state reconnecting')
  })
}

test('closed is terminal: drain() that waits for a connection does not bring a destroyed client back', async () => {
  const rig = await new Rig().up()
  const listening = rig.client.listen('#', () => new Promise<void>(() => undefined), { qos: 1 })
  await rig.settle()
  const handling = await listening
  rig.peer.send({ type: 'publish', topic: 't', payload: new Uint8Array(1), qos: 1, retain: false, dup: false, packetId: 1, properties: {} })
  await rig.settle()
  handling.detach()
  rig.behave = () => down
  await rig.cut()
  rig.client.publish('t', 'x', { qos: 1 }).catch(() => undefined)
  expect(rig.client.state).toBe('reconnecting')
  void rig.client.drain()
  rig.client.destroy()
  const states = new Set<string>()
  for (let turn = 0; turn < 50; turn++) {
    states.add(rig.client.state)
    await Promise.resolve()
  }
  expect([...states]).toEqual(['closed'])
})

test('a listener that throws what cannot be turned into text harms nobody', async () => {
  const rig = new Rig()
  rig.client.on('state', () => {
    throw Object.create(null)
  })
  await rig.up()
  expect(rig.client.state).toBe('connected')
  await rig.finish()
})

test('T23 reconnect({ force: true }) in every connect: no storm', async () => {
  const rig: Rig = new Rig({ cleanStart: false, clientId: 'c' })
  let calls = 0
  rig.client.on('connect', () => {
    if (calls++ < 5000) void rig.client.reconnect({ force: true }).catch(() => undefined)
  })
  rig.behave = () => (packet) =>
    packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} } : agreeable(packet)
  void rig.client.connect()
  for (let second = 0; second < 10; second++) {
    for (let step = 0; step < 20; step++) {
      await rig.advance(50)
      // A server that ends its side as soon as it is told goodbye.
      for (const peer of rig.peers) if (peer.ended === undefined && peer.all('disconnect').length > 0) peer.end()
    }
  }
  expect(rig.dials.length).toBeLessThan(30)
})

test('G26 setBrokers() while the old server is up: its goodbye (0x9C) is not held against the new one', async () => {
  const rig = await new Rig({}, { hosts: ['a'] }).up()
  rig.client.setBrokers([rig.endpoint('b')])
  await rig.goodbye(0x9c)
  await rig.advance(60_000)
  expect(rig.hosts).toEqual(['a', 'b'])
  expect(rig.client.state).toBe('connected')
  await rig.finish()
})

test('setBrokers() while an attempt at the old one is under way: its refusal is not held against the new one', async () => {
  const rig = await new Rig({}, { hosts: ['a'] }).up()
  rig.behave = (host) =>
    host === 'b'
      ? agreeable
      : (packet) => {
          if (packet.type !== 'connect') return undefined
          rig.client.setBrokers([rig.endpoint('b')])
          return { type: 'connack', sessionPresent: false, reasonCode: 0x8a, properties: {} }
        }
  await rig.cut()
  await rig.advance(60_000)
  expect(rig.hosts).toEqual(['a', 'a', 'b'])
  expect(rig.client.state).toBe('connected')
  await rig.finish()
})

test('setBrokers() while up: credentials are renewed for the server that is connected', async () => {
  const asked: string[] = []
  const rig: Rig = new Rig(
    {
      auth: { method: 'toy', start: () => 'x', continue: () => 'y' },
      refreshBefore: 1000,
      credentials: ({ endpoint }) => {
        asked.push(new URL(endpoint).host)
        return { username: 'u', expiresAt: rig.clock.now() + 10_000 }
      },
    },
    {
      behave: () => (packet) => {
        if (packet.type === 'connect') return { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { authenticationMethod: 'toy' } }
        return packet.type === 'auth' ? { type: 'auth', reasonCode: 0, properties: { authenticationMethod: 'toy' } } : agreeable(packet)
      },
    },
  )
  await rig.up()
  rig.client.setBrokers([rig.endpoint('b')])
  await rig.advance(9_500)
  expect(asked).toEqual(['a', 'a'])
  await rig.finish()
})

test('fault 55 a listener of packet that destroys the client while PUBREL is replayed leaves no timer behind', async () => {
  const rig = await new Rig(
    { cleanStart: false, clientId: 'c', keepAlive: false },
    {
      behave: (_host, dial) => (packet) => {
        if (packet.type === 'connect') return { type: 'connack', sessionPresent: dial > 1, reasonCode: 0, properties: {} }
        return packet.type === 'publish' ? { type: 'pubrec', packetId: packet.packetId as number, reasonCode: 0, properties: {} } : undefined
      },
    },
  ).up()
  rig.client.publish('t', 'x', { qos: 2 }).catch(() => undefined)
  await rig.settle()
  let released = 0
  rig.client.on('packet', ({ packet }) => {
    if (packet.type === 'pubrel' && ++released > 0) rig.client.destroy()
  })
  await rig.cut()
  await rig.advance(1000)
  expect(released).toBe(1)
  expect(rig.client.state).toBe('closed')
  expect(rig.clock.pending).toBe(0)
})
