/** The fault table of the broker in memory breaks exactly the packet that it names. */
import { expect, it } from 'vitest'
import type { Fault, FaultAction } from '../../src/testing/index.js'
import type { Packet } from '../../src/wire/index.js'
import { bytes, durable, joined, world } from './raw-client.js'
import { play, scenes } from './scenes.js'

const out = (
  action: FaultAction,
  packet: Fault['packet'] = 'puback',
  nth: Fault['nth'] = 1,
): Fault => ({ packet, direction: 'out', nth, action })
const into = (
  action: FaultAction,
  packet: Fault['packet'] = 'publish',
  nth: Fault['nth'] = 1,
): Fault => ({ packet, direction: 'in', nth, action })

const faulty = (name: string, faults: Fault[], scene: string, options = {}): void =>
  scenes({ [name]: scene }, [5], { ...options, faults })

faulty(
  'drop: it never happened',
  [out('drop'), into('drop', 'publish', 3)],
  'b* t:0; a> P1:1:t=1 P1:2:t=2 P1:3:t=3; a< PA:2; b< P:t=1 P:t=2',
)
faulty(
  'delay: others overtake it',
  [{ ...out('delay'), delay: 250 }],
  'a> P1:1:t=x P1:2:t=x; a< PA:2:n; +249; a_; +1; a< PA:1:n',
)
faulty(
  'reorder: after the next of its direction, or a second later',
  [out('reorder'), into('reorder', 'publish', 3)],
  'a> P1:1:t=x P1:2:t=x; a< PA:2:n PA:1:n; a> P1:3:t=x; +999; a_; +1; a< PA:3:n',
)
faulty(
  'reorder: what was held is lost with the connection',
  [into('reorder')],
  'b* t:0; a> P1:1:t=x D; a.; b_',
)
it('reorder: a packet that was overtaken leaves no timer', async () => {
  const { client, clock } = await joined({ faults: [out('reorder')] })
  const { pending } = clock
  const publish = (packetId: number) =>
    ({ type: 'publish', topic: 't', qos: 1, packetId, payload: bytes('x') }) as const
  expect(await client.send(publish(1))).toEqual([])
  expect(clock.pending).toBe(pending + 1)
  expect(await client.send(publish(2))).toMatchObject([{ packetId: 2 }, { packetId: 1 }])
  expect(clock.pending).toBe(pending)
})
faulty(
  'out close-after: it arrives, then the end',
  [out('close-after')],
  'a> P1:1:t=x; a< PA:1:n; a.',
)
faulty(
  'restart-lose: all clients are cut, everything is forgotten',
  [out('restart-lose')],
  'b> C:b~; b< K:0; a> C:a~ PX:r=x; a< K:0; a> P1:1:t=x; b.; a.; a> C:a~ S:1:r:0; a< K:0 SA:1:0',
)
const code = { reasonCode: 0x97 }
faulty(
  'a reason code, in: refused without effect',
  [
    into(code),
    into(code, 'publish', 2),
    into(code, 'subscribe'),
    into({ reasonCode: 0x83 }, 'unsubscribe'),
    into({ reasonCode: 0x89 }, 'connect', 2),
  ],
  'a> P1:1:t=x; a< PA:1:97; a> P2:2:t=x; a< PR:2:97; a> S:1:t:0; a< SA:1:97; a> U:1:t,u; a< UA:1:83,83; b> C:b; b< K:89; b.; ' +
    'a> P1:1:t=x P1:2:t=x; a< PA:1:n PA:2:n',
)
faulty(
  'a reason code, out: said, whatever is true',
  [
    out({ reasonCode: 0x80 }),
    out({ reasonCode: 0x83 }, 'pubrec'),
    out({ reasonCode: 0x88 }, 'connack', 3),
    out({ reasonCode: 0x8d }, 'disconnect'),
  ],
  'w* t:0; a> P1:1:t=x; w< P:t=x; a< PA:1:80; a> P2:2:t=y; w< P:t=y; a< PR:2:83; a> P1:2:t=z; w< P:t=z; a< PA:2; c> C:c~; c< K:88; c.; a> C:a; a.8d',
)
faulty(
  'every: each message once, and its retry passes',
  [out('close-before', 'puback', 'every')],
  'a> C:a~; a< K:0; a> P1:1:t=x; a.; a> C:a~ P1+:1:t=x; a< K:1 PA:1:n; a> P1:2:t=y; a.; a> C:a~ P1+:2:t=y; a< K:1 PA:2:n; a> P1:1:t=z; a.; ' +
    'a> C:a~ P1+:1:t=z; a< K:1 PA:1:n',
)
faulty(
  'every: what loses nothing hits each time',
  [out('twice', 'puback', 'every')],
  'a> P1:1:t=x P1:1:t=x; a< PA:1:n PA:1:n PA:1:n PA:1:n',
)
faulty(
  'a restart in the middle of a queue loses nothing that was not sent',
  [out('restart-keep', 'publish', 2)],
  // All of it was on its way when the stream was cut.
  'a> C:a~ S:1:t:2; a< K:0 SA:1:2; a!; > P:t=1 P:t=2 P:t=3 P1:t=4 P1:t=5; a> C:a~; a.; a> C:a~; a< K:1 P:t=3 P1:1:t=4 P1:2:t=5',
  { queueQoS0: true },
)
faulty(
  'a message whose PUBLISH was lost on the way out is sent again',
  [out('close-before', 'publish')],
  'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P2:t=x; a.; a> C:a~; a< K:1 P2+:1:t=x',
)
faulty(
  'aliases survive lost packets: what was dropped defined none',
  [out('drop', 'publish')],
  'a> C:a$5 S:1:t:0; a< K:0 SA:1:0; > P:t=1 P:t=2 P:t=3; a< PT1:t=2 PT1:=3',
)
it.each([
  ['in', 'close-before', []],
  ['in', 'close-after', [1]],
  ['out', 'close-before', [1]],
  ['in', 'restart-keep', []],
  ['out', 'restart-keep', [1]],
] as const)(
  '%s %s: the answer is lost, the message by the side of it; the retry passes',
  async (direction, action, accepted) => {
    const faults = [direction === 'in' ? into(action) : out(action)]
    const scene = 'a> C:a~; a< K:0; a> P1:1:t=x; a.; a> C:a~ P1+:1:t=x; a< K:1 PA:1:n'
    const { broker } = await play(scene, 5, { faults })
    expect(broker.accepted.map(({ dup }) => dup)).toEqual([...accepted.map(() => false), true])
    expect(broker.faults.fired).toMatchObject([{ clientId: 'a', fault: { direction, action } }])
  },
)

it('twice: done again, without blame', async () => {
  const faults = [
    into('twice', 'connect'),
    out('twice'),
    into('twice', 'publish', 2),
    into('twice', 'subscribe'),
    out('twice', 'publish'),
  ]
  const scene =
    'a> P1:1:t=x; a< PA:1:n PA:1:n; a> P2:2:t=x; a< PR:2:n PR:2:n; a> S:3:t:2; a< SA:3:2 SA:3:2; > P1:t=y; a< P1:1:t=y P1:1:t=y; a> PA:1 PA:1; a_'
  const { broker } = await play(scene, 5, { faults })
  expect([broker.accepted.length, broker.violations]).toEqual([2, []])
})

it('delay of CONNACK holds up what follows it, also where there are no faults any more [MQTT-3.2.0-1]', async () => {
  const { client: first, dial, broker, clock } = await joined({}, durable)
  await first.subscribe('t')
  await first.cut()
  broker.publish({ topic: 't', qos: 1 })
  broker.faults.add({ ...out('delay', 'connack'), delay: 100 })
  const client = dial()
  expect(
    await client.send({ type: 'connect', clientId: 'a', ...durable }, { type: 'pingreq' }),
  ).toEqual([])
  broker.faults.clear()
  broker.publish({ topic: 't', qos: 1 })
  await clock.advance(99)
  expect(client.take()).toEqual([])
  await clock.advance(1)
  expect(client.take().map(({ type }) => type)).toEqual([
    'connack',
    'publish',
    'pingresp',
    'publish',
  ])
})

it('delay of CONNECT: of what was sent behind it, nothing is taken that came after a goodbye', async () => {
  const taken: string[] = []
  await play('a> C:a Q D P:t=x; +99; a_; +1; a< K:0 R; a.', 5, {
    faults: [{ ...into('delay', 'connect'), delay: 100 }],
    intercept: (direction, { type }) => {
      if (direction === 'in') taken.push(type)
      return undefined
    },
  })
  expect(taken).toEqual(['connect', 'pingreq', 'disconnect'])
})

it.each([
  ['publish', 0x97, 'P1:1:t=x'],
  ['subscribe', 0x97, 'S:1:t:0'],
  ['unsubscribe', 0x83, 'U:1:t'],
  ['pubrel', 0x92, 'PL:1'],
] as const)(
  'a reason code, in: %s before CONNECT is not answered',
  async (packet, reasonCode, word) => {
    await play(`a> raw ${word}; a_; a> C:a; a< K:0`, 5, {
      faults: [into({ reasonCode }, packet)],
    })
  },
)

it('a reason code on 3.1.1 is what 3.1.1 has of it', async () => {
  const faults = [
    ...[
      into(code),
      into(code, 'subscribe'),
      out(code, 'suback', 2),
      into({ reasonCode: 0x83 }, 'unsubscribe'),
    ],
    ...[into({ reasonCode: 0x86 }, 'connect', 2), out({ reasonCode: 0x89 }, 'connack', 3)],
    ...[out({ reasonCode: 0x83 }, 'pubrec'), into({ reasonCode: 0x92 }, 'pubrel')],
  ]
  const scene =
    'a> P1:1:t=x; a< PA:1; a> S:1:t:0 S:1:t:0; a< SA:1:80 SA:1:80; a> U:1:t; a< UA:1:; a> P2:2:u=x PL:2; a< PR:2 PC:2; ' +
    'b> C:b; b< K:4; b.; b> C:b; b< K:3; b.'
  await play(scene, 4, { faults })
})

it('a reason code that the packet never has is refused, or passes it by', async () => {
  for (const fault of [out(code, 'pubrel'), into({ reasonCode: 0x92 }), into(code, 'pingreq')]) {
    expect(() => world({ faults: [fault] })).toThrow(/no such reason code/)
  }
  const { client, broker } = await joined()
  broker.faults.add(into(code, '*', 'every'))
  expect(await client.send({ type: 'pingreq' })).toEqual([{ type: 'pingresp' }])
})

faulty(
  'replace: by another packet, or by bytes',
  [
    out({ replace: (packet: Packet) => ({ ...packet, packetId: 99 }) as never }),
    out({ replace: () => Uint8Array.of(0x40, 2, 0, 77) }, 'puback', 2),
  ],
  'a> P1:1:t=x P1:2:t=x; a< PA:99:n PA:77',
)

it('counts over all clients from when it was added, or one client only; may be taken back', async () => {
  const { client: a, join, broker } = await joined()
  const b = await join('b', durable)
  b.heard()
  const publish = '32 06 00 01 74 00 01 00'
  await a.say(publish)
  broker.faults.add(out('drop', 'puback', 2))
  broker.faults.add({ ...out('drop', '*', 'every'), clientId: 'b' })
  broker.faults.add(out('drop', 'puback', 'every'))()
  expect([await a.say(publish), await b.say(publish)]).toEqual([['40 03 00 01 10'], []])
  expect([await a.say(publish), await b.say('c0 00')]).toEqual([['40 03 00 01 10'], []])
  broker.faults.clear()
  expect(await b.say(publish)).toEqual(['40 03 00 01 10'])
})
