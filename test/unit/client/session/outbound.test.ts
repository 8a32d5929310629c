/** Outgoing exchanges on one connection (section 4.3), answers to SUBSCRIBE and UNSUBSCRIBE, and packet identifiers (section 2.2.1). */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  IdTable,
  maximumPacketIdentifier,
} from '../../../../src/client/session/packet-identifiers.js'
import type { SubackPacket, UnsubackPacket } from '../../../../src/wire/packets.js'
import {
  connackPacket,
  connected,
  connectPacket,
  type Driven,
  durablyConnected,
  inherited,
} from './drive.js'

const inputs = [
  ...['puback 1', 'pubrec 1', 'pubrec 1 0x10', 'pubrec 1 0x80', 'pubrec 1 0x97', 'pubcomp 1'],
  ...['suback 1 2', 'unsuback 1 2'],
]
const broken = 'fault, close 130'
const answered = 'ignored, pubrel 1 0x92'
const released = 'released, pubrel 1'
/** What all of these mean where the identifier is not in use, and where it is for something else. */
const unused = ['ignored', answered, answered, ...Array<string>(5).fill('ignored')]
const wrong = Array<string>(inputs.length).fill(broken)

/** How identifier 1 comes into a state, and what each acknowledgement means then: D04 D07 D09 D12 D14 to D19. */
const states: [state: string, script: string, meant: string[]][] = [
  ['not in use', '', unused],
  ['PUBLISH QoS 1 sent', 'out q1 = 1', wrong.with(0, 'done')],
  [
    'PUBLISH QoS 2 sent',
    'out q2 = 1',
    [broken, released, released, 'done', 'done', broken, broken, broken],
  ],
  // An error PUBREC answers a copy that was sent again: the server has the message.
  [
    'PUBREL sent',
    'out q2 = 1; pubrec 1 = released, pubrel 1',
    [broken, released, released, 'ignored', 'ignored', 'done', broken, broken],
  ],
  [
    'PUBREL being stored (durable)',
    'out q2 = 1; pubrec 1 = released, put-release 1',
    [broken, 'released', 'released', 'ignored', 'ignored', broken, broken, broken],
  ],
  ['SUBSCRIBE sent', 'subscribe 2 = 1', wrong.with(6, 'done')],
  ['UNSUBSCRIBE sent', 'unsubscribe 2 = 1', wrong.with(7, 'done')],
  ['QoS 1 done', 'out q1 = 1; puback 1 = done', unused],
  ['QoS 2 done', 'out q2 = 1; pubrec 1 = released, pubrel 1; pubcomp 1 = done', unused],
]

const cases = states.flatMap(([state, script, meant]) =>
  inputs.map((input, at) => [state, input, meant[at] ?? '', script] as const),
)

describe('every acknowledgement in every state of its identifier', () => {
  it.each(cases)('%s, %s: %s', (state, input, meant, script) => {
    const session = state.endsWith('(durable)') ? durablyConnected() : connected()
    const { sendWindow } = session.play(script)
    const before = sendWindow.inFlight
    session.play(`${input} = ${meant}`)
    expect(sendWindow.inFlight).toBe(meant === 'done' ? 0 : before)
    expect(sendWindow.unsolicited).toBe(meant.startsWith('ignored') ? 1 : 0)
    expect(session.state).toBe(meant.startsWith('fault') ? 'closed' : 'connected')
  })

  it('one with id 0 is never one of ours', () => {
    connected().play('out q1 q2 = 1 2; puback 0 = ignored; pubcomp 0 = ignored; read inFlight = 2')
  })
})

describe('outgoing exchanges', () => {
  it('ten at once complete in any order; PUBREL leaves in the order of PUBREC [MQTT-4.6.0-4]', () => {
    const session = connected().play('out q2 q2 q2 q2 q2 q2 q2 q2 q2 q2 = 1 2 3 4 5 6 7 8 9 10')
    const order = [7, 2, 9, 1, 10, 4, 3, 8, 6, 5]
    for (const id of order) session.got('pubrec', id)
    expect(session.takeAcks()).toEqual(order.map((id) => ['pubrel', id, 0]))
    for (const id of order.reverse()) session.play(`pubcomp ${id} = done`)
    session.play('read inFlight = 0')
  })

  it('acknowledgements of nobody’s are counted and leave nothing behind', () => {
    const session = connected()
    for (let id = 1; id <= 65_535; id++)
      expect(`${session.got('puback', id)} ${session.got('pubcomp', id)}`).toBe('ignored ignored')
    session.play('read unsolicited inFlight mayPublish = 131070 0 true; out q1 = 1')
  })
})

describe('SUBACK and UNSUBACK (sections 3.9, 3.11)', () => {
  const properties = {}
  const suback: SubackPacket = { type: 'suback', packetId: 1, properties, reasonCodes: [0, 0x87] }
  const left: UnsubackPacket['reasonCodes'] = [0x11]
  const unsuback = { type: 'unsuback', packetId: 2, properties, reasonCodes: left } as const

  it('are handed on once, and free the identifier; those to nobody’s request are ignored and counted', () => {
    const session = connected().play('subscribe 2 = 1; unsubscribe 1 = 2')
    for (const packet of [unsuback, suback, unsuback, suback]) session.handlePacket(packet, 0)
    expect(session.takeActions()).toEqual(
      [unsuback, suback].map((packet) => ({ type: 'answered', packet })),
    )
    session.play('read unsolicited = 2')
  })

  it.each([
    ['fewer or more codes than filters', 'subscribe', suback, [[], [0], [0, 0, 0]]],
    ['fewer or more codes than filters', 'unsubscribe', unsuback, [[], [0], [0, 0, 0]]],
    ['the other answer', 'subscribe', unsuback, [[0, 0]]],
  ] as const)('with %s for %s: close(0x82), nothing handed on', (_what, kind, packet, codes) => {
    for (const reasonCodes of codes) {
      const session = connected().play(`${kind} 2 = 1`)
      session.handlePacket({ ...packet, packetId: 1, reasonCodes: [...reasonCodes] }, 0)
      session.expectClose(0x82)
    }
  })

  it('on 3.1.1 an UNSUBACK has no codes to count, a SUBACK has', () => {
    const session = connected({}, {}, { protocolVersion: 4 }).play(`
      unsubscribe 3 = 1; subscribe 3 = 2`)
    session.handlePacket({ ...unsuback, packetId: 1, reasonCodes: [] }, 0)
    expect(session.takeActions()).toMatchObject([{ type: 'answered', packet: { packetId: 1 } }])
    session.handlePacket({ ...suback, packetId: 2 }, 0)
    session.expectClose(0x82)
  })
})

/** Publishes while the session lets us, at most `wanted` times: the identifiers that left. */
function send(session: Driven, qos: number, wanted = 9): number[] {
  const ids: number[] = []
  while (ids.length < wanted && session.sendWindow.mayPublish) ids.push(session.publish(qos))
  return ids
}

/** The connection ends, and the same session goes on over the next. */
function goOn(session: Driven, receiveMaximum: number): void {
  session.fail(0x80, 'test')
  session.connect(connectPacket({ cleanStart: false }))
  session.handlePacket(connackPacket({ receiveMaximum }, { sessionPresent: true }), 0)
  expect(session.takeActions().at(-1)?.type).toBe('connected')
}

describe('the send quota', () => {
  it('of 3: never more than 3 at QoS 1, refilled one for one [MQTT-3.3.4-7] [MQTT-4.9.0-1]', () => {
    const session = connected({}, { receiveMaximum: 3 })
    expect(send(session, 1)).toEqual([1, 2, 3])
    session.play('puback 2 = done')
    expect(send(session, 1)).toEqual([4])
    session.play('puback 4 = done; puback 1 = done')
    expect([send(session, 1), session.sendWindow.inFlight]).toEqual([[5, 6], 3])
  })

  it('has a place again after PUBCOMP or a failing PUBREC, not after PUBREC', () => {
    connected({}, { receiveMaximum: 2 }).play(`
      out q2 q2 = 1 2; pubrec 1 = released, pubrel 1; pubrec 2 0x10 = released, pubrel 2
      read mayPublish = false; pubcomp 2 = done; read mayPublish = true; out q2 = 3
      read mayPublish = false; pubrec 3 0x97 = done; read mayPublish = true; out q2 = 4
      read mayPublish = false; pubcomp 1 = done; read inFlight mayPublish = 1 true`)
  })

  it('starts from the new CONNACK on each connection, less what is still in flight, without underflow', () => {
    const session = connected({ ownsSession: true }, { receiveMaximum: 2 })
    expect(send(session, 1)).toEqual([1, 2])
    goOn(session, 5)
    expect([send(session, 1), session.sendWindow.inFlight]).toEqual([[3, 4, 5], 5])
    goOn(session, 2)
    for (const id of [1, 2, 3]) session.play(`read mayPublish = false; puback ${id} = done`)
    session.play('read mayPublish = false; puback 4 = done')
    expect(send(session, 1)).toEqual([6])
  })

  it('is never lifted above its start by acknowledgements of nothing [MQTT-4.9.0-2]', () => {
    const session = connected({}, { receiveMaximum: 2 })
    for (let id = 1; id < 20; id++)
      session.play(`
      puback ${id} = ignored; pubrec ${id} 0x80 = ignored; pubcomp ${id} = ignored`)
    expect(send(session, 1)).toEqual([1, 2])
    session.play('puback 1 = done; puback 1 = ignored')
    expect(send(session, 1)).toEqual([3])
  })

  it.each([
    [{ maximumInflight: 2 }, { receiveMaximum: 4 }, 2],
    [{ maximumInflight: 4 }, { receiveMaximum: 2 }, 2],
    [{ maximumInflight: 3 }, {}, 3],
    [{}, {}, 65_535],
  ])('is the smaller of ours and Receive Maximum: %o, %o', (ours, theirs, expected) => {
    const session = connected(ours, theirs)
    expect(send(session, 1, 70_000)).toHaveLength(expected)
    // There is none before CONNACK.
    session.play('reset; read mayPublish = false')
  })

  it('used up holds back nothing but PUBLISH [MQTT-3.3.4-8] [MQTT-4.9.0-3]', () => {
    const session = connected({}, { receiveMaximum: 1 }).play(`
      out q2 = 1; read mayPublish hasIdentifier = false true; subscribe 1 = 2; unsubscribe 1 = 3
      in 7 q1 = 0; settle 0 = true, puback 7; in 8 q2 = 1; settle 1 = true, pubrec 8
      pubrel 8 = pubcomp 8; pubrec 1 = released, pubrel 1`)
    session.handleTimeout(30_000)
    session.handlePacket({ type: 'suback', packetId: 2, properties: {}, reasonCodes: [0] }, 0)
    expect(session.takeActions()).toMatchObject([
      { type: 'send', packet: { type: 'pingreq' } },
      { type: 'answered', packet: { packetId: 2 } },
    ])
  })
})

const times = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const everyId = times(maximumPacketIdentifier).map((index) => index + 1)

describe('the table', () => {
  /** What a table says when asked for everything. */
  function entries(table: IdTable): [number, number][] {
    return [0, ...everyId].flatMap((id): [number, number][] =>
      table.get(id) === 0 ? [] : [[id, table.get(id)]],
    )
  }

  it('behaves like a map, whatever is written in whatever order, across pages', () => {
    const id = fc.oneof(
      fc.integer({ min: 1, max: 65_535 }),
      fc.constantFrom(1, 254, 255, 256, 257, 511, 512, 65_279, 65_280, 65_535),
    )
    const change = fc.oneof(
      { weight: 20, arbitrary: fc.tuple(id, fc.integer({ min: 0, max: 6 })) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    )
    fc.assert(
      fc.property(fc.array(change, { maxLength: 120 }), (changes) => {
        const table = new IdTable()
        const model = new Map<number, number>()
        for (const one of changes) {
          if (one === undefined) {
            table.clear()
            model.clear()
          } else {
            table.set(one[0], one[1])
            model.set(one[0], one[1])
            if (one[1] === 0) model.delete(one[0])
          }
          expect(table.size).toBe(model.size)
        }
        expect(entries(table)).toEqual([...model].sort((a, b) => a[0] - b[0]))
      }),
    )
  })
})

/** Publishes at QoS 1 and has each acknowledged at once. */
function walk(session: Driven, count: number): number[] {
  return times(count).map(() => {
    const id = session.publish(1)
    if (session.got('puback', id) !== 'done') throw new Error(`PUBACK ${id} was not expected`)
    return id
  })
}

describe('identifiers of a session', () => {
  it('run from 1 to 65,535 and wrap to 1, never 0 [MQTT-2.2.1-3]', () => {
    expect(walk(connected(), 65_538)).toEqual([...everyId, 1, 2, 3])
  })

  it('are shared by PUBLISH, SUBSCRIBE and UNSUBSCRIBE; those in use are skipped after the wrap [MQTT-2.2.1-3]', () => {
    const session = connected().play(`
      out q1 q2 = 1 2; subscribe 1 = 3; unsubscribe 1 = 4; out q1 = 5`)
    walk(session, 65_530)
    session.play('puback 5 = done; out q1 q1 = 5 6')
  })

  it('with acknowledgements withheld exactly 65,535 leave, none twice, the rest waits [MQTT-4.9.0-2]', () => {
    const session = connected()
    const ids: number[] = []
    while (ids.length < 70_000 && session.sendWindow.mayPublish) ids.push(session.publish(1))
    expect(ids).toEqual(everyId)
    session.play(`
      read inFlight hasIdentifier = 65535 false; puback 40000 = done
      read mayPublish hasIdentifier = true true; out q2 = 40000
      read mayPublish hasIdentifier = false false`)
  })

  it('all used by subscriptions: a publish waits although there is quota, and goes on after one answer', () => {
    const session = connected()
    expect(everyId.map(() => session.sendWindow.request('subscribe', 1))).toEqual(everyId)
    session.play(`
      read inFlight mayPublish hasIdentifier = 0 false false; suback 12 1 = done
      read mayPublish = true; out q1 = 12`)
  })

  it('stay in use until their last acknowledgement, whatever the caller gave up [MQTT-4.3.2-1] [MQTT-4.3.3-1]', () => {
    const session = connected().play('out q1 q2 = 1 2; pubrec 2 = released, pubrel 2')
    walk(session, 65_533)
    expect(walk(session, 2)).toEqual([3, 4])
    session.play('pubcomp 2 = done')
    walk(session, 65_535 - 4 - 1)
    expect(walk(session, 2)).toEqual([65_535, 2])
  })

  it('a withdrawn packet gives back its identifier and its quota, and its acknowledgement is nobody’s', () => {
    const session = connected({}, { receiveMaximum: 1 }).play(`
      out q1 = 1; read inFlight mayPublish = 1 false; withdraw 1
      read inFlight mayPublish = 0 true; puback 1 = ignored; out q2 = 2
      read inFlight mayPublish = 1 false; withdraw 2; read inFlight mayPublish = 0 true
      puback 2 = ignored; subscribe 2 = 3; withdraw 3; suback 3 2 = ignored; unsubscribe 2 = 4
      withdraw 4; unsuback 4 2 = ignored; read inFlight = 0`)
    for (const _id of everyId) session.sendWindow.request('subscribe', 1)
    session.play('read hasIdentifier = false')
  })
})

/** An identifier that was cleared by PUBREL is not in use: what is said about it is said about nothing. */
describe('identifier 1 of a session whose past this process does not know', () => {
  // One message at a time, so that one identifier is cleared at a time.
  const clearing = 'prepare 2 = false, pubrel 1'
  const cleared = `${clearing}; pubcomp 1 = cleared`
  const used = 'prepare 2 = true; out q2 = 1; pubrec 1 = released, pubrel 1; pubcomp 1 = done'
  const answered = 'ignored, pubrel 1 0x92'
  const broken = 'fault, close 130'
  const inputs = 'puback 1;pubrec 1;pubrec 1 0x80;pubcomp 1;suback 1 1;unsuback 1 1'.split(';')
  const notInUse = ['ignored', answered, 'ignored', 'ignored', 'ignored', 'ignored']
  const states: [state: string, script: string, meant: string[]][] = [
    ['being cleared', clearing, [broken, answered, 'ignored', 'cleared', broken, broken]],
    ['cleared', cleared, notInUse],
    ['used once, and free again', `${cleared}; ${used}`, notInUse],
  ]
  const cases = states.flatMap(([state, script, meant]) =>
    inputs.map((input, at) => [state, input, meant[at] ?? '', script] as const),
  )

  it.each(cases)('%s, %s: %s', (_state, input, meant, script) => {
    const session = inherited(1).play(script).play(`${input} = ${meant}`)
    expect(session.sendWindow.unsolicited).toBe(meant.startsWith('ignored') ? 1 : 0)
    expect(session.state).toBe(meant === broken ? 'closed' : 'connected')
  })

  it('a PUBREC that came twice is answered twice, and the second PUBCOMP ends nothing', () => {
    inherited(1).play(`
      ${cleared}; out q2 = 1; pubrec 1 = released, pubrel 1; pubrec 1 = released, pubrel 1
      pubcomp 1 = done; pubcomp 1 = ignored`)
  })

  it('is still cleared by the PUBCOMP that follows an unexpected PUBREC, and then used', () => {
    inherited(1).play(`
      ${clearing}; pubrec 1 = ${answered}; prepare 2 = false; pubcomp 1 = cleared; prepare 2 = true
      out q2 = 1`)
  })
})
