/** Wills of the broker in memory: kept, published once and as they were given, or thrown away (3.1.2.5 to 3.1.3.2). */
import { describe, expect, it } from 'vitest'
import {
  bytes,
  durable,
  packetOf,
  propertiesOf,
  type RawClient,
  textOf,
  world,
} from './raw-client.js'
import { scenes } from './scenes.js'

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
