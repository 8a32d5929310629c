/** When a client has a packet identifier back, by the rules of `tables.json`; what a server does by them is shown in `test/broker`. */
import { describe, expect, it } from 'vitest'
import { PUBACK, PUBCOMP, PUBREC } from '../../src/wire/constants.js'
import { connected } from '../unit/client/session/drive.js'

type Outbound = ReturnType<typeof connected>['sendWindow']
type Take = (outbound: Outbound) => number
type Answer = (outbound: Outbound, id: number) => unknown

const publish =
  (qos: 1 | 2): Take =>
  (outbound) =>
    outbound.publish(qos)
const ack =
  (type: number, code = 0): Answer =>
  (outbound, id) =>
    outbound.handleAck(type as typeof PUBACK, id, code)

describe('[rule packetIdentifierFreedBy]', () => {
  it.each<[string, Take, Answer[]]>([
    ['PUBLISH at QoS 1: PUBACK', publish(1), [ack(PUBACK)]],
    ['PUBLISH at QoS 2: PUBREC with an error', publish(2), [ack(PUBREC, 0x80)]],
    ['PUBLISH at QoS 2: PUBREC, PUBCOMP', publish(2), [ack(PUBREC), ack(PUBCOMP)]],
    [
      'SUBSCRIBE: SUBACK',
      (outbound) => outbound.request('subscribe', 1),
      [(outbound, id) => outbound.handleAnswer('subscribe', id, 1)],
    ],
    [
      'UNSUBSCRIBE: UNSUBACK',
      (outbound) => outbound.request('unsubscribe', 1),
      [(outbound, id) => outbound.handleAnswer('unsubscribe', id, 1)],
    ],
  ])('%s frees it, and nothing before does', (_what, take, answers) => {
    const { sendWindow } = connected()
    const id = take(sendWindow)
    for (let other = 1; other < 65_535; other++) sendWindow.request('subscribe', 1)
    for (const answer of answers) {
      expect(sendWindow.hasIdentifier).toBe(false)
      answer(sendWindow, id)
    }
    expect(sendWindow.hasIdentifier).toBe(true)
    expect(sendWindow.request('subscribe', 1)).toBe(id)
    expect(sendWindow.hasIdentifier).toBe(false)
  })
})
