/**
 * The broker in memory: enhanced authentication, at CONNECT and again.
 */
import { describe, expect, it } from 'vitest'
import type { BrokerAuthContext, BrokerAuthMethod } from '../../src/testing/index.js'
import { bytes, text, world } from './raw-client.js'

/** Two rounds: the data of the second must be the first one's, backwards. */
function backwards(seen: BrokerAuthContext[] = []): BrokerAuthMethod {
  return {
    start(data, context) {
      seen.push(context)
      context.state['wanted'] = [...text(data ?? new Uint8Array(0))].reverse().join('')
      return { reasonCode: 0x18, data: bytes('now backwards') }
    },
    continue(data, context) {
      if (data === undefined || text(data) !== context.state['wanted']) throw new Error('wrong')
      return { data: bytes('well done') }
    },
  }
}

const auth = { authenticationMethod: 'backwards' }

describe('enhanced authentication', () => {
  it('goes by AUTH 0x18 to CONNACK with the method [MQTT-4.12.0-2] [MQTT-4.12.0-5] [MQTT-3.2.0-1]', async () => {
    const seen: BrokerAuthContext[] = []
    const { dial } = world({ auth: { backwards: backwards(seen) } })
    const client = dial()
    const properties = { ...auth, authenticationData: bytes('abc') }
    expect(await client.send({ type: 'connect', clientId: 'a', username: 'u', properties })).toEqual([
      { type: 'auth', reasonCode: 0x18, properties: { ...auth, authenticationData: bytes('now backwards') } },
    ])
    expect(await client.send({ type: 'auth', reasonCode: 0x18, properties: { ...auth, authenticationData: bytes('cba') } })).toMatchObject([
      { type: 'connack', reasonCode: 0, properties: { ...auth, authenticationData: bytes('well done') } },
    ])
    expect(seen).toMatchObject([{ clientId: 'a', username: 'u', reauthentication: false }])
  })

  it('refuses what fails, with the code of the error where it has one [MQTT-4.12.0-4], and unknown methods by 0x8C [MQTT-4.12.0-1]', async () => {
    const { dial, broker } = world({
      auth: {
        backwards: backwards(),
        banned: {
          start: () => Promise.reject(Object.assign(new Error('no'), { reasonCode: 0x8a })),
          continue: () => ({}),
        },
      },
    })
    const wrong = dial()
    await wrong.send({ type: 'connect', clientId: 'a', properties: { ...auth, authenticationData: bytes('abc') } })
    expect(await wrong.send({ type: 'auth', reasonCode: 0x18, properties: { ...auth, authenticationData: bytes('x') } })).toMatchObject([
      { type: 'connack', reasonCode: 0x87 },
    ])
    expect(wrong.ended).toBeDefined()
    expect(await dial().connect({ properties: { authenticationMethod: 'banned' } })).toMatchObject({ reasonCode: 0x8a })
    expect(await dial().connect({ properties: { authenticationMethod: 'constructor' } })).toMatchObject({ reasonCode: 0x8c })
    expect([broker.clients.size, broker.sessions.size]).toEqual([0, 0])
  })

  it('lets nothing but AUTH and DISCONNECT pass before CONNACK [MQTT-3.1.2-30]', async () => {
    const { dial, broker } = world({ auth: { backwards: backwards() } })
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a', properties: auth })
    await client.publish('t', 'x')
    expect(client.ended).toBeDefined()
    const text = 'more than AUTH and DISCONNECT before CONNACK [MQTT-3.1.2-30]'
    expect(broker.violations).toMatchObject([{ packet: 'publish', reasonCode: 0x82, text }])
    expect(broker.accepted).toEqual([])
    const polite = dial()
    await polite.send({ type: 'connect', clientId: 'a', properties: auth }, { type: 'disconnect' })
    expect([polite.ended !== undefined, broker.violations.length]).toEqual([true, 1])
  })

  it('again on the client’s wish, with the same method only [MQTT-4.12.1-1] [MQTT-4.12.1-2]', async () => {
    const seen: BrokerAuthContext[] = []
    const { dial, broker } = world({ auth: { backwards: backwards(seen) } })
    const joined = async () => {
      const client = dial()
      await client.send({ type: 'connect', clientId: 'a', properties: { ...auth, authenticationData: bytes('ab') } })
      await client.send({ type: 'auth', reasonCode: 0x18, properties: { ...auth, authenticationData: bytes('ba') } })
      return client
    }
    const client = await joined()
    await client.send({ type: 'auth', reasonCode: 0x19, properties: { ...auth, authenticationData: bytes('xy') } })
    // Work goes on meanwhile.
    expect(await client.publish('t', 'x', { qos: 1, packetId: 1 })).toMatchObject([{ type: 'puback' }])
    expect(await client.send({ type: 'auth', reasonCode: 0x18, properties: { ...auth, authenticationData: bytes('yx') } })).toMatchObject([
      { type: 'auth', reasonCode: 0, properties: auth },
    ])
    expect(seen.map(({ reauthentication }) => reauthentication)).toEqual([false, true])
    await client.send({ type: 'auth', reasonCode: 0x19, properties: { ...auth, authenticationData: bytes('xy') } })
    await client.send({ type: 'auth', reasonCode: 0x18, properties: { ...auth, authenticationData: bytes('no') } })
    expect(client.goodbye).toBe(0x87)
    expect(broker.violations).toEqual([])
    const other = await joined()
    await other.send({ type: 'auth', reasonCode: 0x19, properties: { authenticationMethod: 'other' } })
    expect(other.goodbye).toBe(0x82)
  })

  it('AUTH while the broker still thinks is a protocol error', async () => {
    const { dial, broker } = world({ auth: { backwards: { start: () => new Promise(() => undefined), continue: () => ({}) } } })
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a', properties: auth })
    await client.send({ type: 'auth', reasonCode: 0x18, properties: auth })
    expect(client.ended).toBeDefined()
    expect(broker.violations).toMatchObject([{ packet: 'auth', reasonCode: 0x82 }])
  })

  it('AUTH that nobody waits for is a protocol error [MQTT-4.12.0-7]', async () => {
    const { join, broker } = world({ auth: { backwards: backwards() } })
    const client = await join('a')
    await client.send({ type: 'auth', reasonCode: 0x19, properties: auth })
    expect(client.goodbye).toBe(0x82)
    expect(broker.violations).toHaveLength(1)
  })
})
