/** What the broker in memory keeps of a client, for how long, and what it sends again (3.1.2.4, 3.1.2.11.2, 4.1, 4.4, 4.5); its end and restart; wills (3.1.2.5 to 3.1.3.2). */
import { describe, expect, it } from 'vitest'
import { MemoryBroker } from '../../src/testing/index.js'
import {
  bytes,
  durable,
  joined,
  packetOf,
  propertiesOf,
  RawClient,
  staying,
  textOf,
  world,
} from './raw-client.js'
import { scenes } from './scenes.js'

describe('sessions', () => {
  scenes({
    'a clean one has no subscriptions when it comes back':
      'a> C:a S:1:t:0 D; a< K:0 SA:1:0; a.; a> C:a P:t=x Q; a< K:0 R',
    'keeps subscriptions and what was queued; QoS 0 was not [MQTT-3.1.2-5] [MQTT-4.5.0-1] [MQTT-3.2.2-3]':
      'a> C:a~ S:1:t:2; a< K:0 SA:1:2; a!; > P:t=0 P1:t=1 P2:t=2 P1:t=3; a> C:a~ P:t=4; a< K:1 P1:1:t=1 P2:2:t=2 P1:3:t=3 P:t=4',
    'Clean Start 1 drops all there was: subscriptions, what waits, what is open both ways [MQTT-3.1.2-4] [MQTT-3.2.2-2]':
      'a> C:a~ S:1:t:2 P2:9:u=x; a< K:0 SA:1:2 PR:9:n; > P2:t=1 P2:t=2; a< P2:1:t=1 P2:2:t=2; a> PR:1; a< PL:1; a!; > P1:t=3; ' +
      'a> C:a; a< K:0; > P1:t=4; a> P2:9:u=x; a< PR:9:n; a> PL:9; a< PC:9; a!; a> C:a~ P:t=x Q; a< K:0 R',
    'Clean Start 0 begins a session that works where there is none [MQTT-3.1.2-6] [MQTT-3.2.2-3]':
      'a> C:a~ S:1:u:0; a< K:0 SA:1:0; > P:u=x; a< P:u=x',
    'two of them see nothing of each other [MQTT-3.1.3-2]':
      'a> C:a~ S:1:a:1; a< K:0 SA:1:1; b> C:A~ S:1:b:1; b< K:0 SA:1:1; a!; b!; > P1:a=1 P1:b=2; b> C:A~; b< K:1 P1:1:b=2; a> C:a~; a< K:1 P1:1:a=1; ' +
      'c> C:ab~; c< K:0',
    'a message is put into each whose subscription matches, connected or away [MQTT-4.5.0-1]':
      'h* t/#:1; a> C:a~ S:1:t/#:1; a< K:0 SA:1:1; o> C:o~ S:1:u:1; o< K:0 SA:1:1; a!; o!; s> P1:1:t/1=x; s< PA:1; h< P1:1:t/1=x; ' +
      'a> C:a~; a< K:1 P1:1:t/1=x; o> C:o~; o< K:1',
  })
  scenes(
    {
      'queues QoS 0 where it was asked to':
        'a> C:a~ S:1:t:2; a< K:0 SA:1:2; a!; > P:t=0; a> C:a~; a< K:1 P:t=0',
    },
    [5, 4],
    { queueQoS0: true },
  )
})

describe('what is sent again [MQTT-4.4.0-1]', () => {
  scenes({
    'PUBREL, then PUBLISH with DUP, by their identifiers, each in order, then what is new, on each connection [MQTT-4.4.0-1] [MQTT-3.3.1-1] [MQTT-4.3.2-3] [MQTT-4.3.3-3] [MQTT-4.3.3-5] [MQTT-4.3.3-6]':
      'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P2:t=1 P2:t=2 P2:t=3 P1:t=4; a< P2:1:t=1 P2:2:t=2 P2:3:t=3 P1:4:t=4; a> PR:1 PR:2; a< PL:1 PL:2; ' +
      '+3000000; a_; a!; > P1:t=5; a> C:a~; a< K:1 PL:1 PL:2 P2+:3:t=3 P1+:4:t=4 P1:5:t=5; +3000000; a_; a!; ' +
      'a> C:a~; a< K:1 PL:1 PL:2 P2+:3:t=3 P1+:4:t=4 P1+:5:t=5; a> PC:1 PC:2 PR:3; a< PL:3; a!; a> C:a; a< K:0',
    'nothing that was acknowledged [MQTT-4.3.3-4]':
      'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P1:t=1 P2:t=2; a< P1:1:t=1 P2:2:t=2; a> PA:1 PR:2; a< PL:2; a> PC:2; a!; a> C:a~ Q; a< K:1 R',
  })
  scenes(
    {
      'not what a PUBACK or PUBREC of 0x80 or more has settled: neither PUBLISH nor PUBREL [MQTT-4.4.0-2]':
        'a> C:a~ S:1:t:2; a< K:0 SA:1:2; > P1:t=1 P2:t=2; a< P1:1:t=1 P2:2:t=2; a> PA:1:87 PR:2:97; a_; a!; a> C:a~; a< K:1',
    },
    [5],
  )
})

describe('the time a session is kept', () => {
  const subscribed = 'S:1:t:1; a< K:0 SA:1:1'
  scenes(
    {
      ...Object.fromEntries(
        [1, 10, 4_000_000_000].map((seconds) => [
          `${seconds} s after the connection, not less, not more [MQTT-3.1.2-23] [MQTT-4.1.0-2]`,
          `a> C:a~${seconds} ${subscribed}; a!; +${seconds * 1000 - 1}; > P1:t=x; a> C:a~${seconds}; a< K:1 P1:1:t=x; a!; +${seconds * 1000}; a> C:a~ P1:1:t=y; a< K:0 PA:1:n`,
        ]),
      ),
      '0 is the end of it with the connection [MQTT-3.1.2-23] [MQTT-4.1.0-2]': `a> C:a~0 ${subscribed}; a!; a> C:a~; a< K:0`,
      'without the property as well': `a> C:a ${subscribed}; a!; a> C:a*; a< K:0`,
      '0xFFFFFFFF is never [MQTT-3.1.2-23] [MQTT-4.1.0-2]': `a> C:a~4294967295 ${subscribed}; a!; +3153600000000; a> C:a~; a< K:1`,
      'DISCONNECT may end it': `a> C:a~ ${subscribed}; a> D0; a.; a> C:a~; a< K:0`,
      'while the connection is open nothing of it goes, whatever the interval [MQTT-4.1.0-1]':
        'a> C:a~1 S:1:t:2; a< K:0 SA:1:2; > P2:t=x; a< P2:1:t=x; a> P2:9:u=x; a< PR:9:n; +100000000; a> PR:1 PL:9; a< PL:1 PC:9; a> PC:1; > P:t=y; a< P:t=y',
      'one that is resumed before its end has no end any more; the new CONNECT decides the next [MQTT-4.1.0-1] [MQTT-4.1.0-2]': `a> C:a~10 ${subscribed}; a!; +9000; a> C:a~20; a< K:1; +60000; a!; +19999; a> C:a~20; a< K:1; a!; +20000; a> C:a~; a< K:0`,
    },
    [5],
  )

  it('is in the view of it, and DISCONNECT may change it, but not make something of nothing (section 3.14.2.2.2) [MQTT-3.1.2-23]', async () => {
    const { client, broker, clock, join } = await joined({}, staying(10))
    await client.subscribe('t')
    await client.send({ type: 'disconnect', properties: { sessionExpiryInterval: 100 } })
    const subscriptions = [{ filter: 't', qos: 2 }]
    await clock.advance(99_999)
    expect(broker.sessions.get('a')).toMatchObject({
      connected: false,
      expiryInterval: 100,
      subscriptions,
    })
    await clock.advance(1)
    expect(broker.sessions.has('a')).toBe(false)
    const cheats = await join('cheats')
    await cheats.send({ type: 'disconnect', properties: { sessionExpiryInterval: 5 } })
    expect([cheats.goodbye, broker.sessions.has('cheats')]).toEqual([0x82, false])
  })

  it('long intervals are no short ones where a timer takes 2^31 - 1 ms at the most', async () => {
    const { clock } = world()
    const limited = {
      now: () => clock.now(),
      setTimer: (run: () => void, delay: number) =>
        clock.setTimer(run, delay > 2 ** 31 - 1 ? 1 : delay),
    }
    const broker = new MemoryBroker({ clock: limited })
    for (const [clientId, seconds] of [
      ['ever', 0xffff_ffff],
      ['long', 0xffff_fffe],
    ] as const) {
      const client = new RawClient(clock, broker.connect(), 5)
      await client.connect({ clientId, ...staying(seconds) })
      await client.cut()
    }
    await clock.advance(2 ** 31 + 1)
    expect([...broker.sessions.keys()]).toEqual(['ever', 'long'])
    await clock.advance(0xffff_fffe * 1000)
    expect([...broker.sessions.keys()]).toEqual(['ever'])
  })

  it('3.1.1: clean sessions end, others stay, and their messages have no properties', async () => {
    const { join, broker } = world()
    await (await join('clean', { cleanStart: true }, 4)).cut()
    const client = await join('kept', { cleanStart: false }, 4)
    await client.subscribe('t')
    await client.cut()
    expect([...broker.sessions.keys()]).toEqual(['kept'])
    broker.publish({ topic: 't', payload: 'x', qos: 1, properties: { contentType: 'text/plain' } })
    expect((await join('kept', { cleanStart: false }, 4)).take()).toMatchObject([
      { type: 'publish', qos: 1, properties: {} },
    ])
  })
})

it.each([true, false])(
  'a restart keeps sessions and retained messages: %s',
  async (keepSessions) => {
    const { client, dial, broker } = await joined({}, durable)
    broker.publish({ topic: 'r', payload: 'kept', retain: true })
    broker.restart({ keepSessions })
    await client.send()
    expect(client.ended?.cause).toBeDefined()
    expect([...broker.retained.keys()]).toEqual(keepSessions ? ['r'] : [])
    expect(await dial().connect({ clientId: 'a', ...durable })).toMatchObject({
      sessionPresent: keepSessions,
    })
  },
)

it('close says 0x8B to all clients and takes no more', async () => {
  const { client, dial, broker, clock } = await joined({}, { ...durable, will: { topic: 'w' } })
  broker.close()
  await client.send()
  expect([client.goodbye, client.gone]).toEqual([0x8b, true])
  const late = dial()
  await clock.settle()
  expect(late.gone).toBe(true)
  await expect(broker.dial()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  expect([broker.sessions.size, broker.accepted.length]).toEqual([0, 0])
  await clock.advance(60_000)
  expect(clock.pending).toBe(0)
})

describe('the will', () => {
  scenes({
    'comes when the stream is cut, once [MQTT-3.1.2-8]':
      'w* w:0; a> C:a!w=gone; a< K:0; w_; a!; w< P:w=gone; +100000; w_',
    'does not come after DISCONNECT [MQTT-3.14.4-3] [MQTT-3.1.2-10]':
      'w* w:0; a> C:a!w=gone D; a< K:0; a.; +100000; w_',
    'comes after a broken rule': 'w* w:0; a> C:a!w=gone; a< K:0; a> C:a; a.82; w< P:w=gone',
    'comes at a takeover': 'w* w:0; a> C:a!w=gone; a< K:0; c> C:a; c< K:0; a.8e; w< P:w=gone',
    'comes at its QoS': 'w* w:2; a> C:a!1w=gone; a< K:0; a!; w< P1:1:w=gone',
    'Will Retain 1 is kept for those who come later [MQTT-3.1.2-15]':
      'a> C:a!!w=gone; a< K:0; a!; b> S:1:w:0; b< SA:1:0 PX:w=gone',
    'Will Retain 0 leaves nothing behind, and what was retained alone [MQTT-3.1.2-14]':
      '> PX:w=old; a> C:a!w=gone; a< K:0; a!; a> C:a!v=gone; a< K:0; a!; b> S:1:#:0; b< SA:1:0 PX:w=old',
  })
  scenes(
    {
      'comes after DISCONNECT 0x04, and not again when the session is resumed [MQTT-3.1.2-8] [MQTT-3.1.2-10]':
        'w* w:0; a> C:a~!w=gone; a< K:0; a> D4; a.; w< P:w=gone; a> C:a~; a< K:1; a!; +4000000; w_',
      'waits for its delay and is sent once [MQTT-3.1.2-8] [MQTT-3.1.2-10]':
        'w* w:0; a> C:a~60!w=gone/2; a< K:0; a!; +1999; w_; +1; w< P:w=gone; +100000; w_',
      'or for the end of the session, if that is earlier [MQTT-3.1.2-8]':
        'w* w:0; a> C:a~2!w=gone/60; a< K:0; a!; +1999; w_; +1; w< P:w=gone; +100000; w_',
      'with a delay too does not come after DISCONNECT [MQTT-3.1.2-10]':
        'w* w:0; a> C:a~!w=gone/1 D; a< K:0; a.; +10000; w_',
      'a new session in its place is the end of the old one [MQTT-3.1.2-8]':
        'w* w:0; a> C:a~!w=gone/20; a< K:0; a!; a> C:a; a< K:0; w< P:w=gone',
      'is not sent when the session is resumed before the delay has passed [MQTT-3.1.3-9]':
        'w* w:0; a> C:a~!w=gone/2; a< K:0; a!; +1999; a> C:a~; a< K:1; +60000; w_',
      'of the older connection is not sent where a takeover interrupts its delay':
        'w* w:0; a> C:a~!w=one; a< K:0; b> C:a~!w=two/5; b< K:1; a.8e; w< P:w=one; c> C:a~; c< K:1; b.8e; +60000; w_',
    },
    [5],
  )
  scenes(
    {
      'is not taken when it is to be retained and there is no room':
        'w* #:0; > PX:kept=x; w< P:kept=x; a> C:a!!w=gone; a< K:0; a!; w_',
    },
    [5, 4],
    {
      maxRetained: 1,
    },
  )
  scenes(
    { 'is subject to authorizePublish when it is due': 'w* w:0; a> C:a!w=gone; a< K:0; a!; w_' },
    [5, 4],
    { authorizePublish: () => false },
  )

  it('is kept with the session, whole: topic, payload and properties come out when the network fails [MQTT-3.1.2-7] [MQTT-3.1.3-10]', async () => {
    const { dial, join, clock, broker } = world()
    const watcher = await join('watcher')
    await watcher.subscribe({ filter: 'w', qos: 0 })
    watcher.heard()
    const client = dial()
    // User Properties k1=a, k2=b, k1=c in order, a delay that is not passed on, then Content Type and Payload Format Indicator.
    const pairs = [
      ['k1', 'a'],
      ['k2', 'b'],
      ['k1', 'c'],
    ]
      .map((pair) => `26 ${pair.map(textOf).join(' ')}`)
      .join(' ')
    const properties = propertiesOf(pairs, '18 00 00 00 00', '03', textOf('t/p'), '01 01')
    await client.say(
      packetOf(
        '10',
        textOf('MQTT'),
        '05 06 00 00 00',
        textOf('a'),
        properties,
        textOf('w'),
        '00 03 00 ff 80',
      ),
    )
    expect(client.received).toMatchObject([{ reasonCode: 0 }])
    await client.cut()
    await clock.settle()
    const [will, ...more] = watcher.heard()
    expect([will?.slice(0, 17), will?.slice(-8), more]).toEqual([
      '30 27 00 01 77 20',
      '00 ff 80',
      [],
    ])
    expect(will).toContain(pairs)
    expect(watcher.publishes).toMatchObject([
      { properties: { contentType: 't/p', payloadFormatIndicator: 1 } },
    ])
    expect(broker.accepted).toMatchObject([
      { clientId: 'a', will: true, packetId: undefined, topic: 'w' },
    ])
  })

  const ends: [string, (client: RawClient, all: ReturnType<typeof world>) => unknown][] = [
    ['the client is silent', (_client, { clock }) => clock.advance(3000)],
    ['DISCONNECT 0x81', (client) => client.say('e0 02 81 00')],
    ['the stream ends without DISCONNECT', (client) => client.transport.close()],
    ['an administrator', (_client, { broker }) => broker.disconnect('a')],
  ]

  it.each(ends)('is published once: %s [MQTT-3.1.2-8]', async (_what, end) => {
    const all = world()
    await end(await all.join('a', { ...durable, keepAlive: 2, will: { topic: 'w' } }), all)
    await all.clock.settle()
    expect(all.broker.accepted).toHaveLength(1)
    await all.clock.advance(100_000)
    expect(all.broker.accepted).toHaveLength(1)
  })

  it('a restart that remembers publishes it; clients get it when they come back', async () => {
    const { join, broker, clock } = world()
    await join('a', { ...durable, will: { topic: 'w', payload: bytes('gone'), qos: 1 } })
    const watcher = await join('watcher', durable)
    await watcher.subscribe({ filter: 'w', qos: 1 })
    broker.restart({ keepSessions: true })
    await clock.settle()
    expect(watcher.takeMessages()).toEqual([])
    expect((await join('watcher', durable)).take()).toMatchObject([
      { type: 'publish', topic: 'w', dup: false },
    ])
  })

  it('a restart that forgets, forgets it', async () => {
    const { join, broker, clock } = world()
    await join('a', { ...durable, will: { topic: 'w', properties: { willDelayInterval: 5 } } })
    broker.restart({ keepSessions: false })
    await clock.advance(60_000)
    expect(broker.accepted).toEqual([])
  })
})
