/** The parts of the durable world. `../seeds.test.ts` plays it. */
import { expect, test } from 'vitest'
import type { PublishRecord } from '../../../src/client/durable/records.js'
import { decodePublish, encodePublish, putting } from '../../../src/client/durable/records.js'
import * as packet from '../packets.js'
import { LowIdentifiers } from './broker.js'
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
  ['no entry on the disk', 1, true, undefined, ['early']],
  ['the record of another entry', 1, true, 'e2', ['early']],
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

test('a broker with low identifiers gives each message the lowest one that is free, and knows it again', () => {
  const publish = (packetId: number) =>
    ({
      type: 'publish',
      topic: 't',
      payload: new Uint8Array(0),
      qos: 2,
      dup: false,
      retain: false,
      packetId,
      properties: {},
    }) as const
  const answer = (type: 'pubrec' | 'pubcomp', packetId: number) =>
    ({ type, packetId, reasonCode: 0, properties: {} }) as const
  const identifiers = new LowIdentifiers()
  expect([7, 8].map((id) => identifiers.intercept('out', publish(id)))).toMatchObject([
    { packetId: 1 },
    { packetId: 2 },
  ])
  expect(identifiers.intercept('in', answer('pubrec', 1))).toMatchObject({ packetId: 7 })
  expect(identifiers.intercept('in', answer('pubcomp', 1))).toMatchObject({ packetId: 7 })
  expect(identifiers.intercept('out', publish(9))).toMatchObject({ packetId: 1 })
  expect(identifiers.intercept('out', publish(8))).toMatchObject({ packetId: 2 })
  expect(identifiers.intercept('in', answer('pubcomp', 3))).toBeUndefined()
})
