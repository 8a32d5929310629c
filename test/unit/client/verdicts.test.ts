import { describe, expect, it } from 'vitest'
import type { Verdict } from '../../../src/client/api/index.js'
import { verdictOf } from '../../../src/client/dialling/verdicts.js'
import { MqttError, type MqttErrorCode } from '../../../src/errors.js'

const of = (code: MqttErrorCode, reasonCode?: number): Verdict => verdictOf(new MqttError(code, undefined, { reasonCode, fault: 'remote' }))

/** Every CONNACK code of table 3-1 with what follows. */
const connack: readonly (readonly [number, Verdict])[] = [
  [0x80, 'retry'],
  [0x81, 'next'],
  [0x82, 'next'],
  [0x83, 'next'],
  [0x84, 'next'],
  [0x85, 'next'],
  [0x86, 'refresh'],
  [0x87, 'refresh'],
  [0x88, 'retry'],
  [0x89, 'retry'],
  [0x8a, 'next'],
  [0x8c, 'next'],
  [0x90, 'next'],
  [0x95, 'next'],
  [0x97, 'retry'],
  [0x99, 'next'],
  [0x9a, 'next'],
  [0x9b, 'next'],
  [0x9c, 'next'],
  [0x9d, 'next'],
  [0x9f, 'retry'],
]

/** Every DISCONNECT code that a server may send (section 3.14.2.1). */
const disconnect: readonly (readonly [number, Verdict])[] = [
  [0x00, 'retry'],
  [0x80, 'retry'],
  [0x81, 'retry'],
  [0x82, 'retry'],
  [0x83, 'retry'],
  [0x87, 'refresh'],
  [0x89, 'retry'],
  [0x8b, 'retry'],
  [0x8c, 'next'],
  [0x8d, 'retry'],
  [0x8e, 'stop'],
  [0x8f, 'retry'],
  [0x90, 'retry'],
  [0x93, 'retry'],
  [0x94, 'retry'],
  [0x95, 'retry'],
  [0x96, 'retry'],
  [0x97, 'retry'],
  [0x98, 'stop'],
  [0x99, 'retry'],
  [0x9a, 'retry'],
  [0x9b, 'retry'],
  [0x9c, 'next'],
  [0x9d, 'next'],
  [0x9e, 'retry'],
  [0x9f, 'retry'],
  [0xa0, 'retry'],
  [0xa1, 'retry'],
  [0xa2, 'retry'],
]

describe('the decision table', () => {
  it.each(connack.map(([code, verdict]) => [code.toString(16), code, verdict] as const))('CONNACK 0x%s', (_hex, reasonCode, verdict) => {
    expect(of('ERR_CONNECT_REFUSED', reasonCode)).toBe(verdict)
  })

  it.each(disconnect.map(([code, verdict]) => [code.toString(16), code, verdict] as const))('DISCONNECT 0x%s', (_hex, reasonCode, verdict) => {
    expect(of('ERR_SERVER_DISCONNECT', reasonCode)).toBe(verdict)
  })

  it('a session that was taken over stops', () => {
    expect(of('ERR_SESSION_TAKEN_OVER', 0x8e)).toBe('stop')
  })

  it.each([
    'ERR_CONNECT_FAILED',
    'ERR_CONNECT_TIMEOUT',
    'ERR_CONNECTION_LOST',
    'ERR_KEEPALIVE_TIMEOUT',
    'ERR_MALFORMED_PACKET',
    'ERR_PROTOCOL_ERROR',
    'ERR_UNEXPECTED_PACKET',
    'ERR_PACKET_TOO_LARGE',
    'ERR_TLS',
  ] as const)('%s is worth another try', (code) => {
    expect(of(code)).toBe('retry')
  })

  it('a reason code that we gave ourselves is no refusal of the server', () => {
    expect(of('ERR_PROTOCOL_ERROR', 0x82)).toBe('retry')
    expect(of('ERR_PACKET_TOO_LARGE', 0x95)).toBe('retry')
    expect(of('ERR_CONNECTION_LOST', 0x97)).toBe('retry')
  })

  it.each(['ERR_CLOSED', 'ERR_ABORTED'] as const)('%s stops', (code) => {
    expect(of(code)).toBe('stop')
  })
})
