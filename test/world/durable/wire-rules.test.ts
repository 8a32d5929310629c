/** A rule of the durable world on the wire, by hand. `../world.test.ts` plays the world. */
import { expect, test } from 'vitest'
import type { PublishRecord } from '../../../src/client/durable/records.js'
import { decodePublish, encodePublish, putting } from '../../../src/client/durable/records.js'
import * as packet from '../packets.js'
import type { DiskView } from './disk-view.js'
import { History } from './history.js'
import { WireRules } from './wire-rules.js'

function recordOf(qos: 1 | 2): PublishRecord {
  const body = encodePublish({
    stage: 'sent',
    onSessionLost: undefined,
    taken: 0,
    link: { key: 'q/q/e/1' },
    packet: { topic: 't', qos, retain: false, packetId: 7, properties: undefined },
    payload: 2,
    strikes: 0,
  })
  const put = putting('c/device/o/1', body)
  return decodePublish(put.type === 'put' ? put.value : new Uint8Array(0)) as PublishRecord
}

// Allowed is an entry at QoS 1 whose record the store refused.
test.each([
  ['a refused record, and the entry on the disk', 1, true, 'e1', []],
  ['a record that nobody refused', 1, false, 'e1', ['early']],
  ['QoS 2', 2, true, 'e1', ['early']],
] as const)(
  'a PUBLISH whose record is not on the disk: %s',
  (_name, qos, isRefused, entry, rules) => {
    const history = new History(() => 0)
    const wire = new WireRules({
      history,
      version: 5,
      inbound: true,
      strict: true,
      view: { publishes: [], entryOf: () => entry } as unknown as DiskView,
      refused: (id) => (isRefused && id === 7 ? recordOf(qos) : undefined),
      alive: () => () => true,
      handlePacket: () => undefined,
    })
    wire.connect().sent(packet.publish({ id: 7, qos, payload: 'e1', topic: 't' }))
    expect(history.findings.map(({ rule }) => rule)).toEqual(rules)
  },
)
