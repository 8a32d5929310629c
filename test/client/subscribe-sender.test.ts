/** SUBSCRIBE and UNSUBSCRIBE on their way, without a client around them. */
import { expect, it } from 'vitest'
import { deferred } from '../../src/client/common/abort.js'
import type { SubscribingHost } from '../../src/client/subscribing/ports.js'
import { type Answers, SubscribeSender } from '../../src/client/subscribing/subscribe-sender.js'
import { spent } from './spent.js'

/** The processor time of one call that comes to so many packets. */
function work(count: number): number {
  let sent = 0
  const writer = { writeAcks: () => undefined, queueFlush: () => undefined, send: () => (sent += 1) }
  const sendWindow = { hasIdentifier: true, request: () => 1 }
  const session = { sendWindow, negotiated: { protocolVersion: 5, maximumPacketSize: 1000 } }
  const host = { links: { connection: { writer } }, session, options: { maxFiltersPerSubscribe: 1 }, platform: { random: () => 0 } }
  const sender = new SubscribeSender(host as unknown as SubscribingHost, {} as Answers)
  const filters = Array.from({ length: count }, (_, index) => `t/${index}`)
  sender.push({ type: 'unsubscribe', filters, call: { known: new Map(), results: new Map(), answer: deferred(), sent: false } })
  const before = spent()
  sender.flush()
  expect(sent).toBe(count)
  return spent() - before
}

it('a call that comes to many packets: four times as many cost no more than eight times the work', () => {
  work(1000)
  const few = work(50_000)
  // Sixteen times, while all that are left are moved for each.
  expect(work(200_000)).toBeLessThan(8 * few + 200)
}, 120_000)
