/** Reason codes of the peer as errors: names, the codes of 3.1.1, and nothing of the peer's text in a message. */
import { describe, expect, it } from 'vitest'
import {
  broken,
  nameOf,
  refusal,
  tooLarge,
  version5Code,
} from '../../../../src/client/session/refusal.js'

const CONNACK = 2
const PUBACK = 4
const SUBACK = 9
const DISCONNECT = 14

it.each([
  [0x00, PUBACK, 'Success'],
  [0x00, SUBACK, 'Granted QoS 0'],
  [0x00, DISCONNECT, 'Normal disconnection'],
  [0x00, undefined, 'Success'],
  [0x87, CONNACK, 'Not authorized'],
  [0x8e, undefined, 'Session taken over'],
  // A broker's own codes, and those of another packet.
  [0x8e, PUBACK, 'unknown'],
  [0x03, undefined, 'unknown'],
  [0x42, undefined, 'unknown'],
  [0xff, CONNACK, 'unknown'],
])('%i of packet type %s is named "%s" (section 2.4)', (code, packetType, name) => {
  expect(nameOf(code, packetType)).toBe(name)
})

it.each([
  [0, 0, 'Success'],
  [1, 0x84, 'Unsupported Protocol Version'],
  [2, 0x85, 'Client Identifier not valid'],
  [3, 0x88, 'Server unavailable'],
  [4, 0x86, 'Bad User Name or Password'],
  [5, 0x87, 'Not authorized'],
  // Reserved: refused, for a reason that is not known.
  [6, 0x80, 'Unspecified error'],
  [255, 0x80, 'Unspecified error'],
])('return code %i of a 3.1.1 CONNACK is %i on 5.0: %s', (returnCode, code, name) => {
  expect(version5Code(returnCode)).toBe(code)
  expect(nameOf(code, CONNACK)).toBe(name)
})

it.each([
  ['ERR_CONNECT_REFUSED', 0x86, 'connect refused: Bad User Name or Password (username, password?)'],
  [
    'ERR_CONNECT_REFUSED',
    0x84,
    'connect refused: Unsupported Protocol Version (protocolVersion auto?)',
  ],
  ['ERR_CONNECT_REFUSED', 0x89, 'connect refused: Server busy'],
  ['ERR_PUBLISH_REFUSED', 0x87, 'publish refused: Not authorized'],
  ['ERR_SESSION_TAKEN_OVER', 0x8e, 'session taken over: another client has this clientId'],
] as const)('%s 0x%x names the reason, and what to look at', (code, reasonCode, message) => {
  expect(refusal(code, reasonCode).message).toBe(message)
})

describe('a refusal', () => {
  it('is the peer’s fault, carries the code with its name, and what the peer said apart from the message', () => {
    const error = refusal('ERR_PUBLISH_REFUSED', 0x97, 'evil \u001b[2J', PUBACK)
    expect(error).toMatchObject({
      ...{ code: 'ERR_PUBLISH_REFUSED', fault: 'remote', outcome: 'refused' },
      ...{ reasonCode: 0x97, reasonName: 'Quota exceeded', reasonString: 'evil \u001b[2J' },
    })
    expect(error.message).not.toContain('evil')
    expect(refusal('ERR_SUBSCRIBE_REFUSED', 0x80, undefined, SUBACK, 'unknown').outcome).toBe(
      'unknown',
    )
  })

  it('differs from a connection that broke: what was sent may have arrived', () => {
    const cause = new Error('reset')
    const error = broken('ERR_CONNECTION_LOST', 'closed', cause)
    expect(error).toMatchObject({
      code: 'ERR_CONNECTION_LOST',
      fault: 'remote',
      outcome: 'unknown',
      reasonCode: undefined,
      cause,
    })
    expect(error.message).toContain('closed')
  })

  it('of a packet that was too large says by how much, and whose limit it is', () => {
    expect(tooLarge(300, 256)).toMatchObject({
      code: 'ERR_PACKET_TOO_LARGE',
      message: 'packet too large: 300 bytes, the server takes 256',
    })
  })
})
