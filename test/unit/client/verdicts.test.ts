import { expect, it } from 'vitest'
import type { Verdict } from '../../../src/client/options/index.js'
import { verdictOf } from '../../../src/client/reconnect/retry-policy.js'
import { MqttError, type MqttErrorCode } from '../../../src/errors.js'

const of = (code: MqttErrorCode, reasonCode?: number): Verdict =>
  verdictOf(new MqttError(code, undefined, { reasonCode, fault: 'remote' }))

/** Codes without a reason code. */
const untold = (verdict: Verdict, codes: string) =>
  codes.split(' ').map((code) => [`ERR_${code}` as MqttErrorCode, verdict, [undefined]] as const)

/** Every CONNACK code of table 3-1 with what follows, and every DISCONNECT code that a server may send (section 3.14.2.1). */
const table: readonly (readonly [MqttErrorCode, Verdict, readonly (number | undefined)[]])[] = [
  ['ERR_CONNECT_REFUSED', 'retry', [0x80, 0x88, 0x89, 0x97, 0x9f]],
  [
    'ERR_CONNECT_REFUSED',
    'next',
    [0x81, 0x82, 0x83, 0x84, 0x85, 0x8a, 0x8c, 0x90, 0x95, 0x99, 0x9a, 0x9b, 0x9c, 0x9d],
  ],
  ['ERR_CONNECT_REFUSED', 'refresh', [0x86, 0x87]],
  [
    'ERR_SERVER_DISCONNECT',
    'retry',
    [0x00, 0x80, 0x81, 0x82, 0x83, 0x89, 0x8b, 0x8d, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96],
  ],
  ['ERR_SERVER_DISCONNECT', 'retry', [0x97, 0x99, 0x9a, 0x9b, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2]],
  ['ERR_SERVER_DISCONNECT', 'next', [0x8c, 0x9c, 0x9d]],
  ['ERR_SERVER_DISCONNECT', 'refresh', [0x87]],
  ['ERR_SERVER_DISCONNECT', 'stop', [0x8e, 0x98]],
  ['ERR_SESSION_TAKEN_OVER', 'stop', [0x8e]],
  // A reason code that we gave ourselves is no refusal of the server.
  ['ERR_PROTOCOL_ERROR', 'retry', [0x82]],
  ['ERR_PACKET_TOO_LARGE', 'retry', [0x95]],
  ['ERR_CONNECTION_LOST', 'retry', [0x97]],
  ...untold('retry', 'CONNECT_FAILED CONNECT_TIMEOUT CONNECTION_LOST KEEPALIVE_TIMEOUT TLS'),
  ...untold('retry', 'MALFORMED_PACKET PROTOCOL_ERROR UNEXPECTED_PACKET PACKET_TOO_LARGE'),
  ...untold('stop', 'CLOSED ABORTED'),
]

it.each(table)('%s, %s: %j', (code, verdict, reasons) => {
  for (const reason of reasons) expect(of(code, reason), `${reason}`).toBe(verdict)
})
