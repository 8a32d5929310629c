/** MessagePack and CBOR: what goes round, what is refused before it is sent, and bytes of peers that mean harm. */
import { decode as fromCbor, encode as toCbor } from 'cbor-x'
import fc from 'fast-check'
import { pack } from 'msgpackr'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { cbor } from '../../../src/typed/cbor.js'
import * as mq from '../../../src/typed/index.js'
import { msgpack } from '../../../src/typed/msgpack.js'
import { brokerOf, clientOn, coded } from './rig.js'

const codecs = { msgpack: msgpack(), cbor: cbor() }
type Name = keyof typeof codecs
const names = ['msgpack', 'cbor'] as const

const bytesOf = (hex: string): Uint8Array =>
  Uint8Array.from(hex.replaceAll(' ', '').match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
const encoded = (name: Name, value: unknown): Uint8Array =>
  new Uint8Array(codecs[name].encode(value) as Uint8Array)
const decoded = (name: Name, bytes: Uint8Array): unknown =>
  codecs[name].decode(bytes, undefined as never)
/** Libraries of Node give a Buffer of bytes. */
const plain = (value: unknown): unknown =>
  value instanceof Uint8Array ? Uint8Array.from(value) : value

describe.each(names)('%s()', (name) => {
  it('gives back what JSON has, and dates, bytes, large numbers', () => {
    const deep = Array.from({ length: 100 }).reduce<unknown>((inner) => [inner], 1)
    const numbers = [0, -1, 1.5, 2 ** 40, Number.NaN, 5n, -(2n ** 63n), 2n ** 64n - 1n]
    const others = [
      null,
      true,
      '',
      'ü\u{1f600}',
      [],
      [1, ['a']],
      {},
      { a: { b: [1] } },
      deep,
      new Date(1234),
    ]
    for (const value of [...numbers, ...others])
      expect(decoded(name, encoded(name, value))).toEqual(value)
    expect(plain(decoded(name, encoded(name, Uint8Array.of(0, 255))))).toEqual(
      Uint8Array.of(0, 255),
    )
    expect(decoded(name, encoded(name, { a: undefined, b: [1] }))).toEqual({ b: [1] })
  })

  it('gives back any value of JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const isOwn = !JSON.stringify(value).includes('__proto__')
        if (isOwn)
          expect(decoded(name, encoded(name, value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
      { numRuns: 200, seed: 1 },
    )
  })

  it('refuses what would come as something else, before a byte is sent', async () => {
    const client = await clientOn(brokerOf())
    const channel = mq.channel('p', codecs[name]).on(client)
    const cycle: unknown[] = []
    cycle.push(cycle)
    class Iterated {
      a = 1;
      *[Symbol.iterator]() {
        yield 2
      }
    }
    class Written {
      a = 1
      toJSON() {
        return new Set([2])
      }
    }
    const marked = `\ufeff${'a'.repeat(100)}`
    for (const value of [
      ...[
        new Map(),
        new Set(),
        new Error('x'),
        /x/,
        new Float32Array(1),
        new ArrayBuffer(1),
        Promise.resolve(1),
      ],
      ...[
        () => 1,
        { f: () => 1 },
        Symbol('a'),
        new Date(Number.NaN),
        cycle,
        { deep: [new Map()] },
        2n ** 2000n,
      ],
      ...[JSON.parse('{"__proto__":1}'), new Iterated(), new Written()],
      ...['\ud800', { '\ud800': 1 }, marked, { [marked]: 1 }],
    ])
      await expect(channel.publish(value)).rejects.toEqual(
        coded('ERR_INVALID_PAYLOAD', { outcome: 'not-sent' }),
      )
  })

  it('sends nothing that is deeper than its receivers take', () => {
    for (const around of [(inner: unknown) => [inner], (inner: unknown) => ({ inner })]) {
      const nested = (depth: number, innermost: unknown) =>
        encoded(name, Array.from({ length: depth }).reduce(around, innermost))
      for (const innermost of [1, new Date(5)])
        expect(decoded(name, nested(500, innermost))).toBeDefined()
      for (const innermost of [[], {}, [1]])
        expect(() => nested(500, innermost)).toThrow('more than 500 values deep')
    }
  })

  it('with a schema that writes to bytes in their place, sends what was given', async () => {
    const schema = z.instanceof(Uint8Array).transform((bytes) => bytes.slice().reverse())
    const reversed = mq.channel('r', { msgpack, cbor }[name](schema)).on(await clientOn(brokerOf()))
    await using subscription = await reversed.subscribe()
    await reversed.publish(Uint8Array.of(1, 2, 3))
    expect(plain((await subscription.next())?.value)).toEqual(Uint8Array.of(3, 2, 1))
  })

  it('with a schema, checks what its receivers will read, and maps back', async () => {
    const client = await clientOn(brokerOf())
    const make = { msgpack, cbor }[name]
    const listed = z.array(z.tuple([z.string(), z.number()])).transform((list) => new Map(list))
    const codec = make(z.object({ at: z.date(), counts: listed }), {
      encode: ({ at, counts }) => ({ at, counts: [...counts] }),
    })
    const channel = mq.channel('s', codec).on(client)
    await using subscription = await channel.subscribe()
    const value = { at: new Date(5), counts: new Map([['a', 1]]) }
    await channel.publish(value)
    const received = await subscription.next()
    expect([received?.value, received?.message.properties.contentType]).toEqual([
      value,
      `application/${name}`,
    ])
    const invalid = coded('ERR_INVALID_PAYLOAD', { message: expect.stringContaining('at: ') })
    await expect(channel.publish({ ...value, at: 'noon' as never })).rejects.toEqual(invalid)
    const numbers = mq.channel('s', make(z.number())).on(client)
    await expect(numbers.publish('1' as never)).rejects.toEqual(coded('ERR_INVALID_PAYLOAD'))
  })

  it('a byte order mark that a peer has sent is kept, or its text is refused', () => {
    for (const length of [3, 31, 60, 61, 62, 100, 300]) {
      const text = new TextEncoder().encode(`\ufeff${'a'.repeat(length)}`)
      const size = text.length < 256 ? [text.length] : [text.length >> 8, text.length & 255]
      const bytes = Uint8Array.of((name === 'cbor' ? 0x77 : 0xd8) + size.length, ...size, ...text)
      const read = (): unknown => decoded(name, bytes)
      if (text.length > 64) expect(read).toThrow('byte order mark')
      else expect(read()).toBe(`\ufeff${'a'.repeat(length)}`)
    }
  })

  it('bytes of any kind are a value or an error', () => {
    const own = encoded(name, {
      a: [1, 'text', new Date(5), Uint8Array.of(1, 2, 3)],
      b: { c: null, d: 5n },
    })
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 60 }),
        fc.nat(own.length),
        fc.nat(own.length),
        (some, from, to) => {
          for (const bytes of [
            some,
            own.slice(0, from),
            Uint8Array.of(...own.slice(0, from), ...some, ...own.slice(to)),
          ])
            try {
              decoded(name, bytes)
            } catch (error) {
              expect(error).toBeInstanceOf(Error)
            }
        },
      ),
      { numRuns: 3000, seed: 2 },
    )
  })
})

const nested = (open: string, times: number, close = ''): string => open.repeat(times) + close

type Row = readonly [what: string, hex: string]
const both: readonly Row[] = [
  ['two values', '01 02'],
  ['none', ''],
]
const hostile: Readonly<Record<Name, readonly Row[]>> = {
  msgpack: [
    ...both,
    ['a list that says it has 30 million', 'dd 01c9c380'],
    ['a map that says it has 4 billion', 'df ffffffff'],
    ['lists of lists that each take what is left', nested('dd 000000ff', 60, '00'.repeat(300))],
    ['a text longer than it is', 'db 7fffffff 61'],
    ['100,000 lists in lists', nested('91', 100_000, '00')],
    ['a record, of which the library makes code', 'd4 72 40 91 a1 61 40 01'],
    ['a class of the library', 'c7 03 65 00 00 00'],
    ['a time of a length that none has', 'c7 05 ff 00 00 00 00 00'],
    ['a time that no date can hold', 'c7 0c ff 00000000 7fffffffffffffff'],
    [
      'a time that no date can hold, with bits that the library leaves out',
      'c7 0c ff 00000000 0004000000000001',
    ],
    ['the byte that is not used', 'c1'],
    ['text that is no UTF-8', 'a1 ff'],
    ['a key without a value', '81 a1 61'],
  ],
  cbor: [
    ...both,
    ['a list that says it has 30 million', '9a 01c9c380'],
    ['a map that says it has more than there are numbers', 'bb ffffffffffffffff'],
    ['lists of lists that each take what is left', nested('99 00ff', 60, '00'.repeat(300))],
    ['a text longer than it is', '7a 7fffffff 61'],
    ['100,000 lists in lists', nested('81', 100_000, '00')],
    ['lists without an end', nested('9f', 100_000)],
    ['a number of 64 kB, to make which takes seconds', `c2 5a 00010000 ${'ff'.repeat(65_536)}`],
    ['a record of the library', 'd9 dfff 83 19 e000 81 61 61 01'],
    ['shared parts of the library', 'd8 1d 00'],
    ['a class of the library', 'd8 1b 81 61 61'],
    ['values packed elsewhere', 'e0'],
    ['a time that is a list', 'c1 80'],
    ['a time in other words', 'c0 64 6e6f6f6e'],
    ['a time that is no number', 'c1 fb 7ff8000000000000'],
    ['a time that is no number, in a half', 'c1 f9 7e00'],
    ['a time that no date can hold', 'c1 fa 7f000000'],
    ['a number that is a list', 'c2 80'],
    ['an end of nothing', 'ff'],
    ['an end in a list that says how many it has', '82 01 ff'],
    ['a key without a value', 'bf 61 61 ff'],
    ['text that is no UTF-8', '61 ff'],
    ['a length that is none', '1c'],
  ],
}

describe.each(names)('%s() of bytes that mean harm', (name) => {
  it.each(hostile[name])('%s: a bad payload before the library sees it', async (_, hex) => {
    const client = await clientOn(brokerOf())
    await using subscription = await mq
      .channel('h', codecs[name])
      .on(client)
      .subscribe({ onInvalid: 'deliver' })
    // An empty message would be one that was taken away.
    if (hex === '') return void expect(() => decoded(name, bytesOf(hex))).toThrow()
    await client.publish('h', bytesOf(hex), { qos: 1 })
    const error = (await subscription.next({ timeout: 5000 }))?.error
    expect(error).toEqual(coded('ERR_INVALID_PAYLOAD', { fault: 'remote' }))
    // The library has not seen them.
    expect(error?.message).toMatch(/: (says that it holds more|has |is more than|.*not valid)/)
  })
})

it('msgpack() reads what the library writes by default, as far as others can', () => {
  expect(decoded('msgpack', new Uint8Array(pack([{ a: 1 }, 'x', new Date(5)].slice(1))))).toEqual([
    'x',
    new Date(5),
  ])
})

it('cbor() reads lists and maps that a mark ends, times as text, and halves', () => {
  const cases: [string, unknown][] = [
    ['9f 01 9f 02 ff ff', [1, [2]]],
    ['bf 61 61 01 61 62 80 ff', { a: 1, b: [] }],
    ['c0 74 323031332d30332d32315432303a30343a30305a', new Date('2013-03-21T20:04:00Z')],
    ['c1 1a 514b67b0', new Date('2013-03-21T20:04:00Z')],
    ['f9 3e00', 1.5],
    ['c3 49 010000000000000000', -18446744073709551617n],
  ]
  for (const [hex, value] of cases) expect(decoded('cbor', bytesOf(hex))).toEqual(value)
  expect(fromCbor(encoded('cbor', { a: [1n] }))).toEqual({ a: [1n] })
  expect(decoded('cbor', new Uint8Array(toCbor([1, 'a'])))).toEqual([1, 'a'])
})
