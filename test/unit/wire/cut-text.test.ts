/** Text that its field cuts off in the middle of a character. */
import { describe, expect, it } from 'vitest'
import { decode } from '../../../src/wire/decode.js'

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const text = 'string is not well-formed UTF-8'

describe('a UTF-8 sequence that the string cuts off, while what follows would complete it [MQTT-1.5.4-1]', () => {
  it.each([
    ['two bytes', '30 05 0001 c3 80 00'],
    ['three bytes', '30 06 0001 e2 82 ac 00'],
    ['three bytes, of which two', '30 06 0002 e282 ac 00'],
    ['four bytes', '30 06 0001 f0 9f 98 80'],
    ['four bytes, of which three', '30 07 0003 f09f98 80 00'],
  ])('is malformed: %s', (_name, bytes) => {
    expect(() => decode(hex(bytes), { from: 'server', protocolVersion: 4 })).toThrow(text)
  })
})
