/** Outgoing exchanges on one connection (section 4.3), and the answers to SUBSCRIBE and UNSUBSCRIBE. */
import { describe, expect, it } from 'vitest'
import type { SubackPacket, UnsubackPacket } from '../../../../src/wire/packets.js'
import { connected, durablyConnected } from './drive.js'

const inputs = [
  ...['puback 1', 'pubrec 1', 'pubrec 1 0x10', 'pubrec 1 0x80', 'pubrec 1 0x97', 'pubcomp 1'],
  ...['suback 1 2', 'unsuback 1 2'],
]
const broken = 'fault, close 130'
const answered = 'ignored, pubrel 1 0x92'
const released = 'released, pubrel 1'
/** What all of these mean where the identifier is not in use, and where it is for something else. */
const unused = [
  'ignored',
  answered,
  answered,
  'ignored',
  'ignored',
  'ignored',
  'ignored',
  'ignored',
]
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
  it('QoS 1 ends with PUBACK, once [MQTT-4.3.2-3]', () => {
    connected().play('out q1 = 1; puback 1 = done; puback 1 = ignored; read inFlight = 0')
  })

  it('QoS 2: PUBREC, PUBREL, PUBCOMP; a second PUBREC asks for PUBREL again and settles nothing [MQTT-4.3.3-3] [MQTT-4.3.3-4] [MQTT-4.3.3-5] [MQTT-4.3.3-6]', () => {
    connected().play(`
      out q2 = 1; pubrec 1 = released, pubrel 1; pubrec 1 = released, pubrel 1
      pubrec 1 = released, pubrel 1; read inFlight = 1; pubcomp 1 = done; pubcomp 1 = ignored
      read inFlight = 0`)
  })

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
      expect([session.got('puback', id), session.got('pubcomp', id)]).toEqual([
        'ignored',
        'ignored',
      ])
    session.play('read unsolicited inFlight mayPublish = 131070 0 true; out q1 = 1')
  })
})

describe('SUBACK and UNSUBACK (sections 3.9, 3.11)', () => {
  const suback: SubackPacket = {
    type: 'suback',
    packetId: 1,
    properties: {},
    reasonCodes: [0, 0x87],
  }
  const unsuback: UnsubackPacket = {
    type: 'unsuback',
    packetId: 2,
    properties: {},
    reasonCodes: [0x11],
  }

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
