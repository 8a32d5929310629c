/** Packet identifiers (section 2.2.1): their table, which one is next, and those of a session whose past this process does not know. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  IdTable,
  maximumPacketIdentifier,
} from '../../../../src/client/session/packet-identifiers.js'
import { connected, type Driven, inherited } from './drive.js'

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
