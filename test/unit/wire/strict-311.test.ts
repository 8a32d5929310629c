/** What the encoder says to 3.1.1 packets of any shape: it looks at fields that are missing, or no list. */
import { describe, expect, it } from 'vitest'
import type { PacketInput } from '../../../src/wire/index.js'
import { encode } from '../../../src/wire/index.js'

const hex = (packet: PacketInput): string => Buffer.from(encode(packet, { protocolVersion: 4 })).toString('hex')

function refused(packet: unknown): unknown {
  try {
    encode(packet as PacketInput, { protocolVersion: 4 })
  } catch (error) {
    return error
  }
  return undefined
}

describe('3.1.1, encoded', () => {
  it('takes a reason code that is undefined for none', () => {
    expect(hex({ type: 'puback', packetId: 1, reasonCode: undefined })).toBe('40020001')
    expect(hex({ type: 'pubrel', packetId: 1, reasonCode: 0 })).toBe('62020001')
    expect(hex({ type: 'disconnect', reasonCode: undefined })).toBe('e000')
    expect(refused({ type: 'puback', packetId: 1, reasonCode: null })).toMatchObject({ fault: 'local', option: 'reasonCode' })
    expect(refused({ type: 'disconnect', reasonCode: 0x80 })).toMatchObject({ fault: 'local', option: 'reasonCode' })
  })

  it.each([
    ['no list', 'a', 'subscriptions'],
    ['nothing', undefined, 'subscriptions'],
    ['null', null, 'subscriptions'],
    ['an object', { 0: { filter: 'a' }, length: 1 }, 'subscriptions'],
    ['an empty list', [], 'subscriptions'],
    ['a list of null', [null], 'subscriptions[0]'],
    ['a list of undefined', [undefined], 'subscriptions[0]'],
    ['a list with a text behind a filter', [{ filter: 'a' }, 'b'], 'subscriptions[1]'],
  ])('refuses subscriptions that are %s, by name', (_name, subscriptions, option) => {
    expect(refused({ type: 'subscribe', packetId: 1, subscriptions })).toMatchObject({ fault: 'local', option })
  })

  it('takes options that say nothing beyond the QoS', () => {
    const options = { noLocal: false, retainAsPublished: undefined, retainHandling: 0 }
    expect(hex({ type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'a', qos: 2, ...options }] })).toBe('8206000100016102')
  })
})
