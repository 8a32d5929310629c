/** What the peer's reason codes and sizes become in words. */
import { describe, expect, it } from 'vitest'
import { broken, nameOf, refusal, tooLarge } from '../../../../src/client/session/refusal.js'

describe('a refusal', () => {
  it('names the reason, and what to look at where that is known', () => {
    expect(refusal('ERR_CONNECT_REFUSED', 0x86).message).toBe('connect refused: Bad User Name or Password (username, password?)')
    expect(refusal('ERR_CONNECT_REFUSED', 0x84).message).toContain('(protocolVersion auto?)')
    expect(refusal('ERR_CONNECT_REFUSED', 0x89).message).toBe('connect refused: Server busy')
    expect(refusal('ERR_PUBLISH_REFUSED', 0x87).message).toBe('publish refused: Not authorized')
  })

  it('of a session that was taken over says by whom', () => {
    expect(refusal('ERR_SESSION_TAKEN_OVER', 0x8e).message).toBe('session taken over: another client has this clientId')
  })

  it('of a code that the standard does not have is unknown', () => expect(nameOf(0x42)).toBe('unknown'))
})

describe('what broke', () => {
  it('may have arrived', () => expect(broken('ERR_CONNECTION_LOST')).toMatchObject({ outcome: 'unknown', fault: 'remote' }))

  it('was too large: by how much, and whose limit it is', () => {
    expect(tooLarge(300, 256)).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE', message: 'packet too large: 300 bytes, the server takes 256' })
  })
})
