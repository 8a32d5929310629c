/** What a session says and does before it was ever connected. */
import { describe, expect, it } from 'vitest'
import { Session } from '../../../../src/client/session/session.js'
import { configuration, connectPacket, takeActions } from './drive.js'

describe('a session without a connection', () => {
  it('speaks 5.0 until a CONNECT says otherwise, and says what the last CONNECT did', () => {
    const session = new Session(configuration)
    expect(session.version).toBe(5)
    session.connect(connectPacket({ protocolVersion: 4, properties: {} }))
    expect(session.version).toBe(4)
    session.suspend()
    expect(session.version).toBe(4)
  })

  it('is opened for what its CONNECT will say, then for what it said; absent is 0 (section 3.1.2.11.2) [MQTT-3.14.2-2]', () => {
    expect(new Session(configuration).openedFor).toBe(0)
    const session = new Session({ ...configuration, sessionExpiryInterval: 300 })
    expect(session.openedFor).toBe(300)
    session.connect(connectPacket({ properties: { sessionExpiryInterval: 60 } }))
    expect(session.openedFor).toBe(60)
    session.suspend()
    session.connect(connectPacket({ properties: {} }))
    expect(session.openedFor).toBe(0)
  })

  it('stays idle when the transport is lost before CONNECT, and can still connect', () => {
    const session = new Session(configuration)
    session.suspend()
    expect([session.state, session.deadline, takeActions(session)]).toEqual(['idle', Number.POSITIVE_INFINITY, []])
    const packet = connectPacket()
    session.connect(packet)
    expect([session.state, takeActions(session)]).toEqual(['connecting', [{ type: 'send', packet }]])
    // One that was begun is over.
    session.suspend()
    expect(session.state).toBe('closed')
  })

  it('times nothing and probes nothing', () => {
    const session = new Session(configuration)
    session.handleTimeout(1e9)
    session.probe(1e9)
    session.disconnect(0, {})
    expect([session.state, takeActions(session)]).toEqual(['closed', []])
  })
})
