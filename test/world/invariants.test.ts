/**
 * Each invariant of the history checker, seen to hold and seen to fail on a history made by hand.
 */
import { describe, expect, test } from 'vitest'
import { MqttError } from '../../src/errors.js'
import { canary } from './canary.js'
import { missing } from './invariants.js'
import { matches } from './invariants-tools.js'
import * as packet from './packets.js'
import { payloadOf } from './payloads.js'
import { error, Story } from './story.js'

describe('the invariants hold for', () => {
  const good: readonly (readonly [string, (story: Story) => void])[] = [
    ['nothing at all', () => undefined],
    [
      'publishes that went as they should',
      (story) => {
        story.publish(1, 1, { ok: true, accepted: 2 })
        story.publish(2, 2, { ok: true, accepted: 1 })
        story.publish(3, 1, { error: error('not-sent') })
        story.publish(4, 2, { error: error('unknown'), accepted: 1 })
        story.publish(5, 0, { ok: true })
      },
    ],
    [
      'a message that came, was delivered, done with, and acknowledged',
      (story) => {
        story.subscribe(1, 'in/#')
        story.arrive('f1')
        story.deliver('f1')
        story.acknowledge('f1')
      },
    ],
    [
      'a second copy at QoS 1 that says so',
      (story) => {
        story.subscribe(1, 'in/#')
        story.arrive('f1')
        story.deliver('f1')
        story.deliver('f1', { redelivered: true })
      },
    ],
    [
      'a connection that came and went',
      (story) => {
        story.event('state', { state: 'connecting', previous: 'idle' })
        story.event('connect')
        story.event('disconnect')
        story.event('state', { state: 'closed', previous: 'connecting' })
      },
    ],
    [
      'a lost session that was told',
      (story) => {
        story.pass('down', packet.connack(), 1)
        story.pass('down', packet.connack(), 2)
        story.event('sessionlost')
      },
    ],
  ]
  test.each(good)('%s', (_name, tell) => {
    const story = new Story()
    tell(story)
    expect(story.check()).toEqual([])
  })
})

describe('the invariants are seen to fail on', () => {
  const bad: readonly (readonly [rule: string, name: string, tell: (story: Story) => void])[] = [
    ['I1', 'a publish that was acknowledged and is lost', (story) => story.publish(1, 1, { ok: true })],
    ['I1', 'a publish that was said not to be sent and was', (story) => story.publish(1, 1, { error: error('not-sent'), accepted: 1 })],
    ['I1', 'a publish that was said to be refused and was taken', (story) => story.publish(1, 1, { error: error('refused'), accepted: 1 })],
    ['I1', 'a failed publish without an outcome', (story) => story.publish(1, 1, { error: new Error('time is over') })],
    [
      'I1',
      'an acknowledgement without a delivery',
      (story) => {
        story.subscribe(1, 'in/#')
        story.arrive('f1')
        story.acknowledge('f1')
      },
    ],
    [
      'I1',
      'an acknowledgement before the delivery',
      (story) => {
        story.subscribe(1, 'in/#')
        story.arrive('f1')
        story.acknowledge('f1')
        story.deliver('f1')
      },
    ],
    [
      'I1',
      'an acknowledgement before the end of the turn',
      (story) => {
        story.subscribe(1, 'in/#')
        story.arrive('f1')
        story.deliver('f1', { done: 0 })
        story.acknowledge('f1')
      },
    ],
    ['I2', 'QoS 2 twice with the broker', (story) => story.publish(1, 2, { ok: true, accepted: 2 })],
    [
      'I2',
      'QoS 2 delivered twice',
      (story) => {
        story.subscribe(1, 'in/#')
        story.arrive('f1', 2)
        story.deliver('f1', { qos: 2 })
        story.deliver('f1', { qos: 2, redelivered: true })
      },
    ],
    [
      'I2',
      'QoS 1 delivered again as if it were new',
      (story) => {
        story.subscribe(1, 'in/#')
        story.arrive('f1')
        story.deliver('f1')
        story.deliver('f1')
      },
    ],
    [
      'I3',
      'publishes that overtake each other',
      (story) => {
        story.publish(1, 1, { ok: true })
        story.publish(2, 1, { ok: true, accepted: 1 })
        story.accepted.push({ topic: 'out', payload: 'p1', qos: 1, bytes: payloadOf('p1') })
      },
    ],
    [
      'I3',
      'deliveries in another order than that of arrival',
      (story) => {
        story.subscribe(1, 'in/#')
        story.arrive('f1')
        story.arrive('f2')
        story.deliver('f2')
        story.deliver('f1')
      },
    ],
    [
      'I4',
      'a message that never came',
      (story) => {
        story.subscribe(1, 'in/#')
        story.deliver('f1')
      },
    ],
    [
      'I4',
      'a message with another topic',
      (story) => {
        story.subscribe(1, 'in/#')
        story.ops.push({ at: 0, do: 'feed', n: 1, topic: 'in/b', qos: 1 })
        story.arrive('f1')
        story.deliver('f1')
      },
    ],
    [
      'I4',
      'a message for somebody else',
      (story) => {
        story.subscribe(1, 'in/b')
        story.arrive('f1')
        story.deliver('f1')
      },
    ],
    [
      'I5',
      'a call that settled twice',
      (story) => {
        story.publish(1, 0, { ok: true })
        for (const call of story.history.calls) call.settled = 2
      },
    ],
    ['I5', 'an error that is not typed', (story) => story.publish(1, 0, { error: new TypeError('oops') })],
    ['I6', 'what the monitor saw', (story) => story.violations.push({ rule: 'dup', detail: 'no DUP' })],
    ['I6', 'what the broker saw', (story) => story.complaints.push('publish: too many')],
    [
      'I9',
      'two connect events in a row',
      (story) => {
        story.event('connect')
        story.event('connect')
        story.event('disconnect')
      },
    ],
    ['I9', 'a disconnect event without a connect', (story) => story.event('disconnect')],
    ['I9', 'a connect event without a disconnect', (story) => story.event('connect')],
    [
      'I9',
      'states that do not follow each other',
      (story) => {
        story.event('state', { state: 'connecting', previous: 'idle' })
        story.event('state', { state: 'closed', previous: 'connected' })
      },
    ],
    [
      'I9',
      'a state after the end',
      (story) => {
        story.event('state', { state: 'closed', previous: 'idle' })
        story.event('state', { state: 'connecting', previous: 'closed' })
      },
    ],
    [
      'I9',
      'a lost session that nobody was told of',
      (story) => {
        story.pass('down', packet.connack(), 1)
        story.pass('down', packet.connack(), 2)
      },
    ],
    ['canary', 'a secret in the message of an error', (story) => story.publish(1, 0, { error: error('unknown', `wrong password ${canary}`) })],
    [
      'I9',
      'a second dial while the first is under way',
      (story) => {
        story.event('dial')
        story.event('dial')
      },
    ],
    [
      'I9',
      'a dial that nobody announced',
      (story) => {
        story.event('dial')
        story.event('connect')
        story.event('disconnect')
        story.now = 1000
        story.event('dial')
      },
    ],
    [
      'I4',
      'an answer to somebody else',
      (story) => {
        story.ops.push({ at: 0, do: 'request', n: 1, topic: 'service', timeout: 1 })
        const call = {
          what: 'request',
          process: 1,
          at: 0,
          begun: 1,
          settled: 1,
          ended: 2,
          endedAt: 0,
          error: undefined,
          value: { text: () => 'answer to r2' },
        }
        story.history.calls.push(call)
      },
    ],
    [
      'will',
      'a will after a goodbye',
      (story) => {
        story.setup = { will: true }
        story.pass('up', packet.connect())
        story.pass('up', packet.disconnect)
        story.wills = 1
      },
    ],
    [
      'will',
      'no will after the client was destroyed',
      (story) => {
        story.setup = { will: true }
        story.ops.push({ at: 0, do: 'destroy' })
        story.pass('up', packet.connect())
        story.pass('down', packet.connack())
      },
    ],
    [
      'canary',
      'a secret in what an error holds, as bytes',
      (story) => {
        story.seed = 8
        const cause = { password: new TextEncoder().encode(canary) }
        story.publish(1, 0, { error: new MqttError('ERR_CONNECTION_LOST', 'lost', { outcome: 'unknown', cause }) })
      },
    ],
  ]
  test.each(bad)('%s: %s', (rule, _name, tell) => {
    const story = new Story()
    tell(story)
    expect(story.check()).toContain(rule)
  })

  test('will: a stall that outlasts the patience of the server publishes it, a shorter one must not', () => {
    for (const keepAlive of [2, 30]) {
      const story = new Story()
      story.setup = { will: true, keepAlive }
      story.pass('up', packet.connect())
      story.pass('down', packet.connack())
      story.ops.push({ at: 2236, do: 'disconnect', timeout: 5000 })
      story.faults.push({ kind: 'stall', at: 1114, k: 3000 })
      story.wills = 1
      expect(story.check(), `keepAlive ${keepAlive}`).toEqual(keepAlive === 2 ? [] : ['will'])
    }
  })

  test('I1: what others published while the subscription lived, and nobody got', () => {
    const story = new Story()
    story.subscribe(1, 'in/#', { grantedAt: 10 })
    story.ops.push({ at: 5, do: 'feed', n: 1, topic: 'in/a', qos: 1 }, { at: 20, do: 'feed', n: 2, topic: 'in/a', qos: 1 })
    story.ops.push({ at: 30, do: 'feed', n: 3, topic: 'in/a', qos: 0 }, { at: 40, do: 'feed', n: 4, topic: 'other', qos: 1 })
    expect(missing(story.run)).toEqual(['f2'])
    story.deliver('f2')
    expect(missing(story.run)).toEqual([])
  })

  test('I1: an acknowledgement without a delivery is a finding, unless a session began that the client did not hear of', () => {
    for (const begun of [0, 1]) {
      const story = new Story()
      story.subscribe(1, 'in/#')
      story.arrive('f1', 2)
      story.acknowledge('f1')
      story.begun = begun
      expect(story.check()).toEqual(begun === 0 ? ['I1'] : [])
    }
  })

  test('I1: what comes for a filter that the server no longer takes is for nobody from when the client has said so', () => {
    for (const told of [true, false]) {
      const story = new Story()
      const refusal = error('refused', 'no shared subscriptions any more')
      story.subscribe(1, '$share/g/in/#', { ended: { error: refusal } })
      story.arrive('f1')
      if (told) story.event('error', { error: refusal })
      story.acknowledge('f1')
      if (!told) story.event('error', { error: refusal })
      expect(story.check()).toEqual(told ? [] : ['I1'])
    }
  })

  test('I1: the same where the subscription keeps its other filters', () => {
    for (const filter of ['in/#', 'in/a']) {
      const story = new Story()
      story.subscribe(1, 'in/#')
      story.arrive('f1')
      story.event('error', { error: error('refused', `wildcard subs unsupported: ${filter}`) })
      story.acknowledge('f1')
      expect(story.check()).toEqual(filter === 'in/#' ? [] : ['I1'])
    }
  })

  test('I1: a session that began anew without the client hearing of it excuses what it lost', () => {
    const story = new Story()
    story.publish(1, 2, { ok: true, accepted: 2 })
    story.begun = 1
    expect(story.check()).toEqual([])
  })
})

test.each([
  ['a/b', 'a/b', true],
  ['a/+', 'a/b', true],
  ['a/+', 'a/b/c', false],
  ['a/#', 'a', true],
  ['a/#', 'a/b/c', true],
  ['#', 'a', true],
  ['$share/g/a/+', 'a/b', true],
  ['a', 'a/b', false],
  ['a/b', 'a', false],
])('the filter %s and the topic %s: %s', (filter, topic, expected) => {
  expect(matches(filter, topic)).toBe(expected)
})
