/** Option parsing: what is accepted, what is refused and how it is named. The caller's object stays as it is. */
import { describe, expect, it } from 'vitest'
import {
  boolean,
  bytes,
  callable,
  duration,
  integer,
  limit,
  object,
  oneOf,
  optional,
  type Parser,
  string,
  userProperties,
  viewBytes,
  withDefault,
} from '../../../src/client/common/schema.js'
import { MqttError } from '../../../src/errors.js'

/** The error of a parser that refuses. */
function refusal(parser: Parser<unknown>, value: unknown): MqttError {
  try {
    parser(value, 'a.b')
  } catch (error) {
    if (MqttError.is(error)) return error
    throw error
  }
  throw new Error('the value was accepted')
}

describe('single values', () => {
  it.each<[string, Parser<unknown>, unknown[], unknown[]]>([
    ['integer', integer(-1, 5), [-1, 0, 5], [-2, 6, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '1', null, undefined, 1n]],
    ['duration', duration, [0, 0.5, 2_147_483_647], [-1, 2_147_483_648, Number.NaN, Number.POSITIVE_INFINITY, '5', null]],
    ['limit', limit, [1, 1e9, Number.POSITIVE_INFINITY], [0, -1, 1.5, Number.NEGATIVE_INFINITY, Number.NaN, '1']],
    ['boolean', boolean, [true, false], [0, 1, 'true', null, undefined]],
    ['string', string, ['', 'a'], [5, null, undefined, new String('a')]],
    ['callable', callable, [() => undefined], [{}, 'f', undefined]],
    ['oneOf', oneOf('a', 2, false), ['a', 2, false], ['b', '2', 0, undefined]],
    ['optional', optional(string), ['a', undefined], [null, 5]],
    ['withDefault', withDefault(string, 'x'), ['a'], [null, 5]],
  ])('%s', (_, parser, good, bad) => {
    for (const value of good) expect(parser(value, 'a.b')).toBe(value)
    for (const value of bad) {
      const error = refusal(parser, value)
      expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'a.b', fault: 'local', outcome: 'not-sent' })
      expect(error.message).toMatch(/^a\.b must be /)
    }
  })

  it('withDefault fills in what is undefined, and nothing else', () => {
    expect(withDefault(integer(0, 9), 5)(undefined, 'a')).toBe(5)
    expect(withDefault(integer(0, 9), 5)(0, 'a')).toBe(0)
  })

  it('oneOf lists what may be', () => {
    expect(refusal(oneOf('a', 'b', 3), 'c').message).toBe('a.b must be "a", "b" or 3, not "c"')
  })
})

describe('bytes', () => {
  it('copies views and buffers, and encodes text', () => {
    const source = Uint8Array.of(9, 1, 2, 9)
    const parsed = bytes(source.subarray(1, 3), 'p')
    source.fill(0)
    expect([...parsed]).toEqual([1, 2])
    expect(parsed.buffer.byteLength).toBe(2)
    expect([...bytes('é', 'p')]).toEqual([0xc3, 0xa9])
    expect([...bytes(new DataView(Uint8Array.of(1, 2, 3).buffer, 1), 'p')]).toEqual([2, 3])
    expect([...bytes(Uint8Array.of(4, 5).buffer, 'p')]).toEqual([4, 5])
    expect([...bytes(Uint16Array.of(0x0201), 'p')]).toEqual([1, 2])
    for (const value of [5, null, [1], {}]) expect(refusal(bytes, value)).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'a.b' })
  })

  it('a Buffer is copied as well, not kept as a view of the pool', () => {
    const buffer = Buffer.from([1, 2, 3])
    const parsed = bytes(buffer, 'p')
    buffer.fill(0)
    expect([...parsed]).toEqual([1, 2, 3])
  })

  it('viewBytes stays in place', () => {
    const source = Uint8Array.of(9, 1, 2, 9)
    const view = viewBytes(new DataView(source.buffer, 1, 2))
    source[1] = 7
    expect([...(view ?? [])]).toEqual([7, 2])
    expect(viewBytes(source)).toBe(source)
    expect(viewBytes('text')).toBeUndefined()
  })
})

describe('user properties', () => {
  it('order, duplicates and empty text are kept; the pairs are copies', () => {
    const given: [string, string][] = [
      ['b', ''],
      ['', 'x'],
      ['b', ''],
    ]
    const parsed = userProperties(given, 'p')
    expect(parsed).toEqual(given)
    ;(given[0] as [string, string])[0] = 'changed'
    expect(parsed[0]).toEqual(['b', ''])
  })

  it('anything else names its place', () => {
    expect(refusal(userProperties, { a: 'b' })).toMatchObject({ option: 'a.b' })
    for (const pair of [['a'], ['a', 'b', 'c'], ['a', 5], [null, 'b'], 'ab', undefined])
      expect(refusal(userProperties, [['x', 'y'], pair])).toMatchObject({ option: 'a.b[1]' })
  })
})

describe('objects', () => {
  const parse = object<{ one: string; two: number | undefined }>({ one: string, two: withDefault(integer(0, 9), 2) })

  it('every field is there and the result is frozen; the given object is untouched', () => {
    const given = { one: 'a' }
    const parsed = parse(given, '')
    expect(parsed).toEqual({ one: 'a', two: 2 })
    expect(Object.isFrozen(parsed)).toBe(true)
    expect(given).toEqual({ one: 'a' })
  })

  it('unknown fields are refused by name; undefined ones count as left out', () => {
    expect(() => parse({ one: 'a', three: 3 }, '')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'three' }))
    expect(() => parse({ one: 'a', three: 3 }, 'outer')).toThrow(expect.objectContaining({ option: 'outer.three' }))
    expect(parse({ one: 'a', three: undefined, two: undefined }, '')).toEqual({ one: 'a', two: 2 })
    expect(() => parse(JSON.parse('{"one":"a","__proto__":{"two":5}}'), '')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }))
    expect(() => parse({ one: 'a', constructor: 1 }, '')).toThrow(expect.objectContaining({ option: 'constructor' }))
  })

  it('a field that is wrong is named with its path', () => {
    expect(() => parse({ one: 5 }, 'outer')).toThrow(expect.objectContaining({ option: 'outer.one' }))
    expect(() => parse({ one: 5 }, '')).toThrow(expect.objectContaining({ option: 'one' }))
  })

  it.each([null, 5, 'text', [], true])('%j is no object', (value) => {
    expect(() => parse(value, '')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'options' }))
    expect(() => parse(value, 'outer')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'outer' }))
  })

  it('each field is read once', () => {
    let reads = 0
    const given = {
      get one(): string {
        reads += 1
        return reads === 1 ? 'a' : (5 as never)
      },
    }
    expect(parse(given, '')).toEqual({ one: 'a', two: 2 })
  })
})
