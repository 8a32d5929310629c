/**
 * The checks beyond I1 to I9, each seen to fail on a history made by hand, and to hold on the same one without what is wrong in it.
 */
import { describe, expect, test } from 'vitest'
import { MqttError, type MqttErrorCode } from '../../src/errors.js'
import type { Subscribed } from './history.js'
import { checkHeld } from './invariants-wide.js'
import type { Passed } from './monitor.js'
import * as packet from './packets.js'
import { payloadOf } from './payloads.js'
import type { Op } from './schedule.js'
import { error, Story } from './story.js'

/** Tells a history, with what is wrong in it or without. */
type Tell = (story: Story, wrong: boolean) => void

const lost = (outcome: 'unknown' = 'unknown'): { cause: unknown } => ({ cause: error(outcome) })

function connected(story: Story): void {
  story.event('state', { state: 'connecting', previous: 'idle' })
  story.event('dial')
  story.event('state', { state: 'connected', previous: 'connecting' })
  story.event('connect')
}

/** An end that the application asked for and that took so long. */
function end(story: Story, op: Extract<Op, { do: 'disconnect' | 'drain' }>, took: number): void {
  story.ops.push(op)
  const call = story.history.track(op.do, Promise.resolve())
  call.settled = 1
  call.ended = story.history.next()
  call.endedAt = took
}

function refusedCall(story: Story, what: string, code: MqttErrorCode): void {
  const call = story.history.track(what, Promise.resolve())
  call.settled = 1
  call.error = new MqttError(code, 'refused', { outcome: 'refused' })
}

const sent = (story: Story) => (story.passed.at(-1) as Passed).seen

function large(story: Story): void {
  story.setup = { habit: 'ignores-sizes' }
  story.arrive('f1')
  sent(story).size = 5000
}

const last = (story: Story): Subscribed => story.history.subscribed.at(-1) as Subscribed

const stories: Readonly<Record<string, readonly [rule: string, tell: Tell]>> = {
  'a byte that is another one with the broker': [
    'bytes',
    (story, wrong) => {
      story.publish(1, 1, { ok: true, accepted: 1 })
      const [copy] = story.accepted
      if (wrong && copy !== undefined) story.accepted[0] = { ...copy, bytes: copy.bytes.map((byte, at) => (at === 1 ? byte ^ 1 : byte)) }
    },
  ],
  'a message with the broker that nobody published': [
    'bytes',
    (story, wrong) => {
      story.publish(1, 1, { ok: true, accepted: 1 })
      if (wrong) story.accepted.push({ topic: 'out', payload: 'p7', qos: 0, bytes: payloadOf('p7') })
    },
  ],
  'disconnect() that does not wait for a turn': [
    'turn',
    (story, wrong) => {
      story.subscribe(1, 'in/#', { left: 100 })
      story.arrive('f1')
      story.deliver('f1', wrong ? { done: 0 } : {})
      end(story, { at: 5, do: 'disconnect', timeout: 5000 }, 10)
    },
  ],
  'disconnect() that does not wait for the second attempt of a handler, once it runs': [
    'turn',
    (story, wrong) => {
      story.subscribe(1, 'in/#', { left: 100, style: 'listen' })
      story.arrive('f1')
      story.deliver('f1', { done: 0, waits: wrong ? 0 : story.history.next() })
      end(story, { at: 5, do: 'disconnect', timeout: 5000 }, 10)
    },
  ],
  'a connection that ends in peace': [
    'peace',
    (story, wrong) => {
      connected(story)
      story.event('disconnect', wrong ? lost() : { cause: undefined })
    },
  ],
  'a link that is cut although the caller gave up no more than may be copied': [
    'peace',
    (story, wrong) => {
      story.setup = { maxQueuedBytes: 70_000 }
      connected(story)
      story.ops.push({ at: 1, do: 'abortable', n: 1, topic: 'out/a', qos: 1, after: 5, size: wrong ? 70_000 : 300_000 })
      story.event('disconnect', lost())
    },
  ],
  'a filter that is given up without a reason': [
    'blame',
    (story, wrong) => refusedCall(story, 'subscribe in/#', wrong ? 'ERR_SUBSCRIBE_REFUSED' : 'ERR_CONNECTION_LOST'),
  ],
  'a filter that is given up after its grant': [
    'blame',
    (story, wrong) => story.event('error', { error: new MqttError(wrong ? 'ERR_SUBSCRIBE_REFUSED' : 'ERR_PROTOCOL_ERROR', 'given up') }),
  ],
  'a filter at which the broker closes, which ends otherwise': [
    'blame',
    (story, wrong) => {
      story.setup = { habit: 'closes-at-filter' }
      refusedCall(story, 'subscribe closed/a', wrong ? 'ERR_CONNECTION_LOST' : 'ERR_SUBSCRIBE_REFUSED')
    },
  ],
  'more filters in one packet than a call has': [
    'blame',
    (story, wrong) => {
      story.setup = { habit: 'few-filters' }
      story.pass('up', packet.subscribe(1))
      for (let count = 1; count < (wrong ? 9 : 8); count++) sent(story).filters.push({ filter: `${count}`, options: 0 })
    },
  ],
  'a message that is told to be too large and never came': [
    'size',
    (story, wrong) => {
      large(story)
      story.event('drop', { reason: 'too-large', topic: 'in/a', qos: 1, size: wrong ? 6000 : 5000 })
    },
  ],
  'a message that is too large and handed out': [
    'size',
    (story, wrong) => {
      large(story)
      story.subscribe(1, 'in/#')
      if (!wrong) sent(story).size = 1000
      story.deliver('f1')
    },
  ],
  'a message that is too large, acknowledged, and not told': [
    'I1',
    (story, wrong) => {
      story.subscribe(1, 'in/#')
      large(story)
      story.acknowledge('f1')
      story.event('drop', { reason: wrong ? undefined : 'too-large', topic: 'in/a', qos: 1, size: 5000 })
    },
  ],
  'a message after destroy()': [
    'after',
    (story, wrong) => {
      story.subscribe(1, 'in/#')
      story.arrive('f1')
      story.history.destroyedIn = wrong ? 1 : 2
      story.history.destroyed = story.history.next()
      story.deliver('f1')
    },
  ],
  'post() that throws': [
    'after',
    (story, wrong) => {
      const call = story.history.track('post', Promise.resolve())
      call.settled = 1
      if (wrong) call.error = error('not-sent')
    },
  ],
  'a message that is called poisoned without a reason': [
    'blame',
    (story, wrong) => {
      story.setup = { habit: 'poisoned' }
      // The third is what that server closes at.
      story.publish(wrong ? 1 : 3, 1, { error: new MqttError('ERR_POISONED', 'poisoned', { outcome: 'unknown' }) })
    },
  ],
  'a share that a fleet loses with a member': [
    'fleet',
    (story, wrong) => {
      story.subscribe(1, '$share/g/in/#')
      story.arrive('f1')
      if (!wrong) story.deliver('f1')
      end(story, { at: 5, do: 'drain', timeout: 10_000 }, 10)
    },
  ],
  'renewed credentials that are told as a loss': [
    'peace',
    (story, wrong) => {
      story.setup = { tokens: true }
      connected(story)
      story.event('disconnect', wrong ? lost() : { cause: undefined })
    },
  ],
  'a dead link that is found too late': [
    'dead',
    (story, wrong) => {
      story.setup = { keepAlive: 5 }
      story.span = 1000
      story.faults.push({ kind: 'stall', at: 100, k: 100_000 })
      connected(story)
      story.now = wrong ? 30_000 : 6000
      story.event('disconnect', lost())
    },
  ],
  'a filter that was left and stays with the broker': [
    'held',
    (story, wrong) => {
      story.setup = { clientId: 'subject' }
      story.subscribe(1, 'in/#')
      story.arrive('f1')
      story.deliver('f1')
      last(story).dismissed = story.history.next()
      story.filters = wrong ? ['in/#'] : []
      end(story, { at: 5, do: 'disconnect', timeout: 5000 }, 10)
    },
  ],
}

describe.each(Object.entries(stories))('%s', (_name, [rule, tell]) => {
  test.each([true, false])('is a finding where it is so: %s', (wrong) => {
    const story = new Story()
    tell(story, wrong)
    expect(story.check()).toEqual(wrong ? [rule] : [])
  })
})

test('a link that would have died after the end of the faults is no dead link', () => {
  const story = new Story()
  story.setup = { keepAlive: 5 }
  story.span = 99
  story.faults.push({ kind: 'stall', at: 100, k: 100_000 })
  connected(story)
  story.now = 30_000
  story.event('disconnect', lost())
  expect(story.check()).toEqual([])
})

describe('what the broker holds in between', () => {
  const held = (filters: string[], change: (story: Story) => void = () => undefined, passable = true): string[] => {
    const story = new Story()
    connected(story)
    story.subscribe(1, 'in/#')
    change(story)
    story.filters = filters
    const { history } = story
    checkHeld({ ...story.run, now: () => 10_000, passable, application: { client: { clientId: 'subject', state: 'connected' } } })
    return history.findings.map(({ rule }) => rule)
  }

  test('is each filter that is subscribed to', () => {
    expect(held(['in/#'])).toEqual([])
    expect(held([])).toEqual(['held'])
  })

  test('is no filter that was left', () => {
    const leave = (story: Story): void => {
      last(story).live = false
      last(story).dismissed = story.history.next()
    }
    expect(held([], leave)).toEqual([])
    expect(held(['in/#'], leave)).toEqual(['held'])
    // Over a link that nothing passes, nobody can be told.
    expect(held(['in/#'], leave, false)).toEqual([])
  })
})
