/** Option parsing: what is accepted, what is refused and how it is named. The caller's object stays as it is. */
import { describe, expect, it } from 'vitest'
import * as schema from '../../../src/common/schema.js'
import { MqttError } from '../../../src/errors.js'

const {
  bytes,
  callable,
  duration,
  integer,
  limit,
  oneOf,
  optional,
  string,
  userProperties,
  viewBytes,
  withDefault,
} = schema

/** The error of a parser that refuses. */
function refusal(parser: schema.Parser<unknown>, value: unknown, name = 'a.b'): MqttError {
  try {
    parser(value, name)
  } catch (error) {
    if (MqttError.is(error)) return error
    throw error
  }
  throw new Error('the value was accepted')
}

const { NaN: none, POSITIVE_INFINITY: infinite, NEGATIVE_INFINITY: least } = Number

describe('single values', () => {
  it.each<[string, schema.Parser<unknown>, unknown[], unknown[]]>([
    ['integer', integer(-1, 5), [-1, 0, 5], [-2, 6, 0.5, none, infinite, '1', null, undefined, 1n]],
    ['duration', duration, [0, 0.5, 2_147_483_647], [-1, 2_147_483_648, none, infinite, '5', null]],
    ['limit', limit, [1, 1e9, infinite], [0, -1, 1.5, least, none, '1']],
    ['boolean', schema.boolean, [true, false], [0, 1, 'true', null, undefined]],
    ['string', string, ['', 'a'], [5, null, undefined, new String('a')]],
    ['callable', callable, [() => undefined], [{}, 'f', undefined]],
    ['oneOf', oneOf('a', 2, false), ['a', 2, false], ['b', '2', 0, undefined]],
    ['optional', optional(string), ['a', undefined], [null, 5]],
    ['withDefault', withDefault(string, 'x'), ['a'], [null, 5]],
    ['bytes', (value, name) => bytes(value, name) && value, ['a'], [5, null, [1], {}]],
  ])('%s', (_, parser, good, bad) => {
    for (const value of good) expect(parser(value, 'a.b')).toBe(value)
    const error = { code: 'ERR_INVALID_OPTION', option: 'a.b', fault: 'local', outcome: 'not-sent' }
    const message = expect.stringMatching(/^a\.b must be /)
    for (const value of bad) expect(refusal(parser, value)).toMatchObject({ ...error, message })
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
  it.each([
    ['a view', Uint8Array.of(9, 1, 2, 9).subarray(1, 3), [1, 2]],
    ['a view of other numbers', Uint16Array.of(0x0201), [1, 2]],
    ['a DataView', new DataView(Uint8Array.of(1, 2, 3).buffer, 1), [2, 3]],
    ['a buffer', Uint8Array.of(4, 5).buffer, [4, 5]],
    ['a Buffer, which is a view of the pool', Buffer.from([1, 2, 3]), [1, 2, 3]],
    ['text', 'é', [0xc3, 0xa9]],
  ])('copies %s', (_what, given, expected) => {
    const parsed = bytes(given, 'p')
    viewBytes(given)?.fill(0)
    expect([...parsed]).toEqual(expected)
    if (typeof given !== 'string') expect(parsed.buffer.byteLength).toBe(expected.length)
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
    const pairs = () => ['b=', '=x', 'b='].map((pair) => pair.split('=') as [string, string])
    const given = pairs()
    const parsed = userProperties(given, 'p')
    for (const pair of given) pair[0] = 'changed'
    expect(parsed).toEqual(pairs())
  })

  it('anything else names its place', () => {
    expect(refusal(userProperties, { a: 'b' })).toMatchObject({ option: 'a.b' })
    for (const pair of [['a'], ['a', 'b', 'c'], ['a', 5], [null, 'b'], 'ab', undefined])
      expect(refusal(userProperties, [['x', 'y'], pair])).toMatchObject({ option: 'a.b[1]' })
  })
})

describe('objects', () => {
  const two = withDefault(integer(0, 9), 2)
  const parse = schema.object<{ one: string; two: number | undefined }>({ one: string, two })

  it('every field is there and the result is frozen; the given object is untouched', () => {
    const given = { one: 'a' }
    const parsed = parse(given, '')
    expect([parsed, given]).toEqual([{ one: 'a', two: 2 }, { one: 'a' }])
    expect(Object.isFrozen(parsed)).toBe(true)
    // What is undefined counts as left out, also where there is no such field.
    expect(parse({ one: 'a', three: undefined, two: undefined }, '')).toEqual(parsed)
  })

  it.each([
    [{ one: 'a', three: 3 }, '', 'three'],
    [{ one: 'a', three: 3 }, 'outer', 'outer.three'],
    [JSON.parse('{"one":"a","__proto__":{"two":5}}'), '', '__proto__'],
    [{ one: 'a', constructor: 1 }, '', 'constructor'],
    [{ one: 5 }, 'outer', 'outer.one'],
    [{ one: 5 }, '', 'one'],
    ...[null, 5, 'text', [], true].flatMap((value) => [
      [value, '', 'options'] as const,
      [value, 'outer', 'outer'] as const,
    ]),
  ] as [unknown, string, string][])('%j as "%s": refused as %s', (value, name, option) => {
    expect(refusal(parse, value, name)).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
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
