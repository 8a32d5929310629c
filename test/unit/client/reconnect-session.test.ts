import { describe, expect, it } from 'vitest'
import { agreeable, failure } from './harness.js'
import { down, Rig, refusing, welcoming } from './rig.js'

describe('who we are, on every connection', () => {
  it('an assigned identifier is used for all later reconnects [MQTT-3.2.2-16]', async () => {
    const rig = new Rig()
    rig.behave = (_host, dial) => (dial === 1 ? welcoming({ assignedClientIdentifier: 'auto-1' }) : dial === 3 ? down : welcoming({}, true))
    await rig.up()
    expect(rig.client.clientId).toBe('auto-1')
    for (let round = 0; round < 3; round++) {
      await rig.cut()
      await rig.advance(10_000)
    }
    expect(rig.peers.map((peer) => peer.last('connect').clientId)).toEqual(['', 'auto-1', 'auto-1', 'auto-1'])
    expect(rig.client.clientId).toBe('auto-1')
    await rig.finish()
  })

  it('an attempt that came to nothing assigned nothing', async () => {
    const rig = new Rig({ firstConnect: 'wait' })
    rig.behave = (_host, dial) => (dial === 1 ? refusing(0x88) : welcoming({ assignedClientIdentifier: 'auto-2' }))
    const connecting = rig.client.connect()
    await rig.advance(1000)
    await connecting
    expect(rig.peers.map((peer) => peer.last('connect').clientId)).toEqual(['', ''])
    expect(rig.client.clientId).toBe('auto-2')
    await rig.finish()
  })

  it('a server that assigns another one to the one that it assigned is wrong', async () => {
    const rig = new Rig({}, { behave: (_host, dial) => welcoming({ assignedClientIdentifier: `auto-${dial}` }, dial > 1) })
    await rig.up()
    await rig.cut()
    await rig.advance(1000)
    expect(rig.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_PROTOCOL_ERROR', reasonCode: 0x82 } }])
    expect(rig.client.clientId).toBe('auto-1')
    await rig.finish()
  })

  it('Clean Start as configured until the first CONNACK, then 0', async () => {
    const rig = new Rig({ firstConnect: 'wait' })
    rig.behave = (_host, dial) => (dial < 3 ? refusing(0x88) : welcoming({}, dial > 3))
    const connecting = rig.client.connect()
    await rig.advance(3000)
    await connecting
    await rig.cut()
    await rig.advance(4000)
    expect(rig.peers.map((peer) => peer.last('connect').cleanStart)).toEqual([true, true, true, false])
    expect(rig.seen('connect').map(({ sessionPresent }) => sessionPresent)).toEqual([false, true])
    await rig.finish()
  })

  it.each([true, false])('3.1.1 says Clean Session %s on every connection', async (cleanStart) => {
    const rig = await new Rig({ protocolVersion: 4, clientId: 'c', cleanStart }, { version: 4 }).up()
    rig.behave = () => welcoming({}, !cleanStart)
    for (let round = 0; round < 2; round++) {
      await rig.cut()
      await rig.advance(10_000)
    }
    expect(rig.peers.map((peer) => peer.last('connect').cleanStart)).toEqual([cleanStart, cleanStart, cleanStart])
    expect(rig.seen('sessionlost').map(({ cause }) => cause)).toEqual(cleanStart ? ['expired', 'expired'] : [])
    await rig.finish()
  })

  it('Session Present 1 to Clean Start 1: DISCONNECT 0x82, and the attempt has failed [MQTT-3.2.2-4]', async () => {
    const rig = new Rig({}, { behave: () => welcoming({}, true) })
    const error = failure(rig.client.connect())
    await rig.advance(2000)
    expect(await error).toMatchObject({ code: 'ERR_PROTOCOL_ERROR', reasonCode: 0x82 })
    expect(rig.peer.received.map(({ type }) => type)).toEqual(['connect', 'disconnect'])
    expect(rig.peer.last('disconnect').reasonCode).toBe(0x82)
    expect(rig.seen('connect')).toEqual([])
  })

  it('waiting, such a server is asked again with back-off, not in a loop', async () => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: () => welcoming({}, true) })
    failure(rig.client.connect())
    await rig.advance(14_999)
    expect(rig.delays).toEqual([1000, 2000, 4000, 8000])
    await rig.finish()
  })

  it('the same options on every connection, without the will or the login being forgotten', async () => {
    const rig = await new Rig({
      username: 'u',
      password: 'p',
      will: { topic: 'w', payload: 'gone', qos: 1 },
      userProperties: [['a', 'b']],
      keepAlive: 17,
    }).up()
    await rig.cut()
    await rig.advance(1000)
    const [first, second] = rig.peers.map((peer) => peer.last('connect'))
    expect({ ...second, cleanStart: true }).toEqual(first)
    await rig.finish()
  })
})

describe('what the server does not offer for the will', () => {
  it.each([
    ['QoS', 0x9b],
    ['retain', 0x9a],
  ])('%s, 0x%s: typed, and the will stays as it is: nothing is lowered behind our back', async (_name, code) => {
    const rig = new Rig({ firstConnect: 'wait', will: { topic: 'w', qos: 2, retain: true } }, { hosts: ['a', 'b'], behave: () => refusing(code) })
    const error = failure(rig.client.connect())
    await rig.settle()
    expect((await error).cause).toMatchObject({ errors: [{ reasonCode: code }, { reasonCode: code }] })
    for (const peer of rig.peers) expect(peer.last('connect').will).toMatchObject({ qos: 2, retain: true })
    expect(rig.dials).toHaveLength(2)
  })
})

describe('a server that knows 3.1.1 only', () => {
  it.each(['20 02 00 01', '20 03 00 84 00'])('by default %s is the end: 0x84, one attempt', async (bytes) => {
    const rig = new Rig({ firstConnect: 'wait' }, { behave: () => () => undefined })
    const error = failure(rig.client.connect())
    await rig.settle()
    rig.peer.sendBytes(bytes)
    await rig.advance(60_000)
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 })
    expect(rig.dials).toHaveLength(1)
  })

  it.each(['20 02 00 01', '20 03 00 84 00'])(
    'auto and %s: the next attempt, at once, is 3.1.1, and it stays so; one event says so',
    async (bytes) => {
      const rig = new Rig({ protocolVersion: 'auto' }, { behave: () => () => undefined, version: 4 })
      const connecting = rig.client.connect()
      await rig.settle()
      expect(rig.peer.last('connect').protocolVersion).toBe(5)
      rig.behave = () => agreeable
      rig.peer.sendBytes(bytes)
      await rig.settle()
      await connecting
      expect(rig.hosts).toEqual(['a', 'a'])
      expect(rig.seen('connecterror')).toMatchObject([{ attempt: 1, error: { reasonCode: 0x84 } }])
      expect(rig.delays).toEqual([])
      expect(rig.peer.last('connect')).toMatchObject({ protocolVersion: 4, properties: {}, cleanStart: true })
      expect(rig.peer.last('connect').clientId).toMatch(/^[0-9A-Za-z]{1,23}$/)
      expect(rig.client.negotiated?.protocolVersion).toBe(4)
      await rig.cut()
      await rig.advance(1000)
      expect(rig.peers.map((peer) => peer.last('connect').protocolVersion)).toEqual([5, 4, 4])
      expect(rig.seen('connecterror')).toHaveLength(1)
      await rig.finish()
    },
  )

  it('auto with a server of 5.0 stays with 5.0; other refusals downgrade nothing', async () => {
    const rig = new Rig({ protocolVersion: 'auto', firstConnect: 'wait' })
    rig.behave = (_host, dial) => (dial === 1 ? refusing(0x88) : agreeable)
    const connecting = rig.client.connect()
    await rig.advance(1000)
    await connecting
    expect(rig.peers.map((peer) => peer.last('connect').protocolVersion)).toEqual([5, 5])
    await rig.finish()
  })

  it('auto and a server that refuses 3.1.1 too: the end', async () => {
    const rig = new Rig({ protocolVersion: 'auto', firstConnect: 'wait' }, { behave: () => () => undefined, version: 4 })
    const error = failure(rig.client.connect())
    await rig.settle()
    for (let round = 0; round < 4 && rig.client.state !== 'closed'; round++) {
      rig.peer.sendBytes('20 02 00 01')
      await rig.advance(1000)
    }
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 })
    expect(rig.dials).toHaveLength(2)
  })

  it('credentials are asked anew for the second version', async () => {
    let asked = 0
    const rig = new Rig(
      {
        protocolVersion: 'auto',
        credentials: () => {
          asked += 1
          return { username: `u${asked}` }
        },
      },
      { behave: () => () => undefined, version: 4 },
    )
    const connecting = rig.client.connect()
    await rig.settle()
    rig.behave = () => agreeable
    rig.peer.sendBytes('20 02 00 01')
    await rig.settle()
    await connecting
    expect(rig.peers.map((peer) => peer.last('connect').username)).toEqual(['u1', 'u2'])
    await rig.finish()
  })
})
