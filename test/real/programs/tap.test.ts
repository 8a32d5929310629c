/** What the tap counts, from bytes alone; and how figures and expectations judge what was counted. */
import { describe, expect, it } from 'vitest'
import { expectations, verdictOf } from './expectations.js'
import { conclude, Tally } from './figures.js'
import { programs } from './programs.js'
import type { Result } from './run.js'
import { nothingSeen, type Seen, tapping } from './tap.js'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
/** CONNECT of MQTT 5.0 that announces a Receive Maximum of 2. */
const connect = hex('10 10 0004 4d515454 05 02 001e 03 21 0002 0000')
const publish = (id: string, flags = '2'): Buffer => hex(`3${flags} 08 0001 61 ${id} 00 4142`)
const puback = (id: string): Buffer => hex(`40 02 ${id}`)

function watch(...parts: readonly (readonly ['up' | 'down', Buffer])[]): Seen {
  const seen = nothingSeen()
  const tap = tapping(seen)()
  for (const [direction, bytes] of parts) tap.bytes(direction, bytes)
  tap.end('down')
  return seen
}

describe('the tap', () => {
  it('counts what is open towards a client against what the client announced', () => {
    const seen = watch(
      ['up', connect],
      ['down', publish('0001')],
      ['down', publish('0002')],
      ['up', puback('0001')],
      ['down', publish('0003')],
    )
    expect(seen).toMatchObject({
      announced: 2,
      mostOpen: 2,
      exceeded: 0,
      down: 3,
      downSettled: 1,
      leftOpen: 2,
      endedByBroker: 1,
    })
    const more = watch(
      ['up', connect],
      ['down', publish('0001')],
      ['down', publish('0002')],
      ['down', publish('0003')],
    )
    expect(more).toMatchObject({ mostOpen: 3, exceeded: 1 })
  })

  it('counts the same when packets come byte by byte, or many at once', () => {
    const stream = Buffer.concat([publish('0001'), publish('0002'), hex('d000'), publish('0003')])
    const bytes = [...stream].map((byte) => ['down', Buffer.of(byte)] as const)
    expect(watch(...bytes)).toEqual(watch(['down', stream]))
    expect(watch(['down', stream]).down).toBe(3)
  })

  it('reads WebSocket frames, masked and not', () => {
    const handshake = Buffer.from('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n')
    const request = Buffer.from('GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\n\r\n')
    const key = hex('01020304')
    const masked = Buffer.from(connect.map((byte, index) => byte ^ (key[index % 4] ?? 0)))
    const down = Buffer.concat([handshake, hex('820a'), publish('0001')])
    const seen = watch(
      ['up', Buffer.concat([request, Buffer.of(0x82, 0x80 | connect.length), key, masked])],
      ['down', down],
    )
    expect(seen).toMatchObject({ announced: 2, down: 1 })
  })

  it('sees a message in a large frame as soon as it begins, and what is behind it', () => {
    const handshake = Buffer.from('HTTP/1.1 101 Switching Protocols\r\n\r\n')
    const large = Buffer.concat([
      hex('32 86 80 01'),
      hex('0001 61 0009 00'),
      Buffer.alloc(16_384, 0x32),
    ])
    const frame = Buffer.concat([
      hex('827f 0000 0000 0000'),
      Buffer.of(large.length >> 8, large.length & 0xff),
      large,
    ])
    expect(watch(['down', handshake], ['down', frame.subarray(0, 6000)])).toMatchObject({
      down: 1,
      leftToBroker: 1,
    })
    const behind = Buffer.concat([frame, hex('820a'), publish('0001')])
    const pieces = Array.from({ length: Math.ceil(behind.length / 1000) }, (_, at) =>
      behind.subarray(at * 1000, at * 1000 + 1000),
    )
    expect(
      watch(['down', handshake], ...pieces.map((piece) => ['down', piece] as const)),
    ).toMatchObject({ down: 2, leftToBroker: 0 })
  })

  it('names what a broker does against the letter, or surprises with', () => {
    const alias = hex('32 09 0000 0001 03 23 0005 41')
    const used = 'uses an alias that it did not set on this connection'
    expect(watch(['up', connect], ['down', alias]).odd).toEqual({ [used]: 1 })
    expect(
      watch(['up', connect], ['down', hex('32 0a 0001 61 0007 03 23 0005 41')], ['down', alias])
        .odd,
    ).toEqual({})
    expect(watch(['down', publish('0000')]).odd).toEqual({ 'uses packet identifier 0': 1 })
    expect(watch(['down', publish('0001')], ['down', publish('0001')]).odd).toEqual({
      'uses an identifier that is in use': 1,
    })
    expect(watch(['down', publish('0001')], ['down', publish('0002', '3')]).odd).toEqual({
      'sends a retained message behind a live one of its topic': 1,
    })
  })
})

describe('a verdict', () => {
  it('rests on expectations of programs that there are', () => {
    const names = programs.map(({ name }) => name)
    expect(
      expectations.flatMap((each) => each.programs.filter((name) => !names.includes(name))),
    ).toEqual([])
  })

  const result = (
    failures: readonly string[],
    seen: Partial<Seen>,
    of: Partial<Result> = {},
  ): Result => ({
    program: 'durable service',
    broker: 'mochi',
    transport: 'TCP',
    window: undefined,
    figures: { ...conclude(new Tally(), 0), due: 10, delivered: 8, failures },
    seen: { ...nothingSeen(), ...seen },
    ...of,
  })

  it('is the broker only when the wire shows it, and only for what it explains', () => {
    const of = { program: 'retained state', broker: 'HiveMQ CE' } as const
    const [fault, odd] = [
      '3 is not the latest',
      { 'sends a retained message behind a live one of its topic': 1 },
    ]
    expect(verdictOf(result([], {}, of)).word).toBe('passes')
    expect(verdictOf(result([fault], { odd }, of)).word).toBe('broker')
    expect(verdictOf(result([fault], {}, of)).word).toBe('fails')
    expect(verdictOf(result([fault, 'a wrong byte'], { odd }, of)).word).toBe('fails')
    expect(verdictOf(result([fault], { odd }, { ...of, broker: 'mosquitto' })).word).toBe('fails')
  })
})
