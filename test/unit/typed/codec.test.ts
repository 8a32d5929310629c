/** Codecs: what they refuse, what they leave as it is, what goes round, and what may be made of them. */
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Message } from '../../../src/client/options/index.js'
import { MqttError } from '../../../src/errors.js'
import * as mq from '../../../src/typed/index.js'
import { decoded, encoded } from '../../../src/typed/payload.js'
import { eventually } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { all, brokerOf, clientOn, coded, pair, schemaOf } from './rig.js'

const bad = 'ERR_INVALID_PAYLOAD'
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** What a codec makes of payloads that a peer sent: values, or what is wrong. */
async function received<T>(
  codec: mq.Codec<never, T>,
  payloads: readonly (string | Uint8Array)[],
): Promise<(T | string)[]> {
  const { client, other } = await pair()
  await using subscription = await mq
    .channel('c', codec)
    .on(client)
    .subscribe({ onInvalid: 'deliver', qos: 1 })
  const found: (T | string)[] = []
  for (const payload of payloads) {
    await other.publish('c', payload, { qos: 1 })
    const each = await subscription.next({ timeout: 3000 })
    found.push(each?.error === undefined ? (each?.value as T) : each.error.code)
  }
  expect(client.state).toBe('connected')
  return found
}

describe('number()', () => {
  it('takes decimals, and nothing that is a number by chance', async () => {
    const texts = ['21.5', '-3', ' 7\n', '1e3', '1e+21', '+4', '0', '-0.0', '1E-7']
    expect(await received(mq.number(), texts)).toEqual(texts.map(Number))
    const none = [
      '0x10',
      '0b1',
      '0o7',
      ' ',
      'Infinity',
      '-Infinity',
      'NaN',
      '1e400',
      '1_000',
      '1,5',
      '--1',
      'e',
      '٣',
      '1 2',
    ]
    expect(await received(mq.number(), none)).toEqual(none.map(() => bad))
  })

  it('sends finite numbers only', () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, '1', null, undefined, 1n])
      expect(() => mq.number().encode(value as never)).toThrow(coded(bad))
  })
})

describe('text()', () => {
  it('sends no half characters, and no values that are no text', () => {
    for (const value of ['\ud800', 'a\udc00b', '\udc00\ud800', 5, null, bytesOf('a')])
      expect(() => mq.text().encode(value as never)).toThrow(coded(bad))
    expect(mq.text().encode('a\ud83d\ude00 \ufffd\ufeff')).toBe('a\ud83d\ude00 \ufffd\ufeff')
  })

  it('keeps a byte order mark and U+FFFD, and refuses what is no UTF-8', async () => {
    const payloads = [
      '\ufeffa',
      'x\ufffdy',
      Uint8Array.of(0x61, 0xff),
      Uint8Array.of(0xed, 0xa0, 0x80),
      Uint8Array.of(0xc3),
    ]
    expect(await received(mq.text(), payloads)).toEqual(['\ufeffa', 'x\ufffdy', bad, bad, bad])
  })
})

describe('json()', () => {
  it('refuses what is no UTF-8 also inside of texts', async () => {
    const ill = Uint8Array.of(0x22, 0xff, 0x22)
    expect(await received(mq.json(), [ill, '"\ufffd"', '\ufeff1'])).toEqual([bad, '\ufffd', bad])
  })

  it('leaves keys out that would become prototypes, and bears any depth', async () => {
    const [plain, deep, open, closed] = await received(mq.json<object>(), [
      '{"__proto__":{"admin":true},"a":1}',
      '{"\\u005f_proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}',
      '['.repeat(1_000_000),
      `${'['.repeat(200_000)}${']'.repeat(200_000)}`,
    ])
    expect(Object.keys(plain as object)).toEqual(['a'])
    expect((plain as { admin?: boolean }).admin).toBeUndefined()
    expect(Object.keys(deep as object)).toEqual(['constructor'])
    expect(open).toBe(bad)
    expect(Array.isArray(closed) || closed === bad).toBe(true)
  })

  it('has no JSON for what has none', async () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    const channel = mq
      .channel('x', mq.json())
      .on({ publish: async () => undefined, writable: Promise.resolve(), ordered: true })
    for (const value of [undefined, () => 1, Symbol('x'), 1n, cycle])
      await expect(channel.publish(value)).rejects.toMatchObject({ code: bad })
  })
})

type N = { n: number }

/** What a subscriber reads of a value that is published with this schema; `meanwhile` runs after the call. */
async function sentWith(
  schema: mq.StandardSchema<N>,
  value: N,
  meanwhile = (): void => {},
): Promise<string | undefined> {
  const client = await clientOn(brokerOf())
  await using subscription = await client.subscribe('c')
  const sent = mq.channel('c', mq.json(schema)).on(client).publish(value)
  meanwhile()
  await sent
  return (await subscription.next())?.text()
}

describe('json(schema)', () => {
  it('sends what was checked, and no key besides that its receivers may read and it does not', async () => {
    const deep = '"deep":[{"__proto__":{"admin":true},"text":"\\"__proto__\\":"}]'
    const given = JSON.parse(`{"n":1,${deep},"__proto__":{"admin":true}}`)
    const text = await sentWith(schemaOf((value) => ({ value })), given) // biome-ignore format: short
    expect(text).toBe('{"n":1,"deep":[{"text":"\\"__proto__\\":"}]}')
  })

  it('sends what was given, though the schema writes to it, and the caller while it takes its time', async () => {
    const writing = schemaOf<N>((value) => ({
      value: Object.assign(value as object, { n: 9, more: true }),
    }))
    expect(await sentWith(writing, { n: 1 })).toBe('{"n":1}')
    const slow = schemaOf<N>((value) => pause(5).then(() => ({ value })))
    const mine = { n: 2 }
    expect(await sentWith(slow, mine, () => void Object.assign(mine, { n: 3 }))).toBe('{"n":2}')
  })

  it('a schema is called as what it is a method of', async () => {
    const strict = schemaOf<N>(function (this: { version: number }, value) {
      return this.version === 1 ? { value } : { issues: [{ message: 'lost' }] }
    } as (value: unknown) => unknown)
    expect(await received(mq.json(strict), ['{"n":1}'])).toEqual([{ n: 1 }])
  })

  const oddSteps = [null, undefined, Symbol('s'), { key: 1 }]
  it.each([
    ['throws', () => JSON.parse('{')],
    ['throws nothing', () => Promise.reject(undefined)],
    ['rejects', async () => JSON.parse('{')],
    ['gives nothing', () => undefined],
    ['gives null', async () => null],
    ['gives issues that are none', () => ({ issues: 'all of it' })],
    ['gives a path that is none', () => ({ issues: [{ message: 'x', path: 'a.b' }] })],
    ['gives steps that are none', async () => ({ issues: [{ message: 'x', path: oddSteps }] })],
    ['gives no issue', () => ({ issues: [] })],
    [
      'overflows the stack',
      function again(): unknown {
        return [again()]
      },
    ],
  ])('a schema that %s is a bad payload, both ways', async (_, validate) => {
    const schema = schemaOf<N>(validate)
    expect(await received(mq.json(schema), ['{"n":1}', '{"n":2}'])).toEqual([bad, bad])
    await expect(sentWith(schema, { n: 1 })).rejects.toEqual(coded(bad, { outcome: 'not-sent' }))
  })

  it('what is said of it can be printed, and is bounded', async () => {
    const client = await clientOn(brokerOf())
    const told: MqttError[] = []
    client.on('invalid', ({ error }) => void told.push(error))
    const echo = schemaOf((value) => ({
      issues: [{ message: `unknown ${String(value)}`, path: [String(value)] }],
    }))
    await using _subscription = await mq.channel('c', mq.json(echo)).on(client).subscribe()
    const reading = _subscription.next({ timeout: 300 }).catch(() => undefined)
    const payload = JSON.stringify(`\u001b[2J\n\u202e${'x'.repeat(5000)}`)
    for (const contentType of ['a/b\u0007', undefined])
      await client.publish('c', payload, { properties: { contentType } })
    await reading
    expect(told).toHaveLength(2)
    for (const { message } of told) {
      expect(message.length).toBeLessThan(400)
      expect(
        [...message].every((unit) => unit >= ' ' && unit !== '\u202e' && unit !== '\u0007'),
      ).toBe(true)
    }
  })
})

describe('codecs of one’s own', () => {
  it('may be made of others: a decode of its own is the one that is used', async () => {
    const doubled = mq.codec<number>({
      ...mq.number(),
      decode: (bytes) => Number(new TextDecoder().decode(bytes)) * 2,
    })
    expect(await received(doubled, ['4'])).toEqual([8])
    const other = mq.codec<number>({ ...mq.number(), encode: (value) => String(value + 1) })
    expect(await received(other, ['4', '0x4'])).toEqual([4, bad])
  })

  it('have both functions', () => {
    const { encode, decode } = mq.number()
    const refused = (option: string) => coded('ERR_INVALID_OPTION', { option })
    for (const given of [{ encode }, { encode, decode: 'x' }])
      expect(() => mq.codec(given as never)).toThrow(refused('decode'))
    for (const given of [{ decode }, undefined])
      expect(() => mq.codec(given as never)).toThrow(refused('encode'))
  })

  it('may be objects of a class', async () => {
    class Shifted implements mq.Codec<number> {
      readonly #by: number
      constructor(by: number) {
        this.#by = by
      }
      encode(value: number): string {
        return String(value + this.#by)
      }
      decode(bytes: Uint8Array): number {
        return Number(new TextDecoder().decode(bytes)) - this.#by
      }
    }
    const client = await clientOn(brokerOf())
    const channel = mq.channel('s', mq.codec(new Shifted(5))).on(client)
    await using subscription = await channel.subscribe()
    await channel.publish(1)
    const got = await subscription.next()
    expect([got?.value, got?.message.text()]).toEqual([1, '6'])
  })

  it.each([
    ['nothing', () => undefined],
    ['an object', () => ({ length: 3 })],
    ['a number, later', async () => 5],
    ['an error, later', () => Promise.reject(new Error('no'))],
    ['an error', () => JSON.parse('{')],
    ['a buffer', () => new ArrayBuffer(3)],
  ])('that encode %s are refused before a byte is sent', async (_, encode) => {
    const client = await clientOn(brokerOf())
    const channel = mq
      .channel('s', mq.codec<number>({ encode: encode as never, decode: () => 1 }))
      .on(client)
    await expect(channel.publish(1)).rejects.toEqual(coded(bad, { outcome: 'not-sent' }))
  })

  it('own their bytes, also of a subscriber whose messages are slices of a pool', async () => {
    const pool = Buffer.from('abcdef')
    const own = { payload: pool.subarray(1, 3), payloadLength: 2 }
    const message = { topic: 't', ...own, properties: {}, ack: () => true, detach: () => message }
    let handler: (message: unknown) => unknown = () => undefined
    const listen = async (_filters: unknown, handle: typeof handler) => {
      handler = handle
      return {
        done: Promise.resolve(),
        granted: [],
        unsubscribe: async () => undefined,
        detach: () => undefined,
      }
    }
    const kept: Uint8Array[] = []
    const channel = mq
      .channel('t', mq.bytes())
      .on({ listen, on: () => () => undefined } as unknown as mq.Subscriber)
    await channel.listen(({ value }) => void kept.push(value))
    handler(message)
    pool.fill(0)
    expect(new TextDecoder().decode(kept[0])).toBe('bc')
  })
})

/** How often the limit of stacks is set meanwhile, as each error does. */
function limitsSet(work: () => void): number {
  const usual = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit') as PropertyDescriptor
  let count = 0
  Object.defineProperty(Error, 'stackTraceLimit', {
    get: () => 10,
    set: () => void count++,
    configurable: true,
  })
  try {
    work()
  } finally {
    Object.defineProperty(Error, 'stackTraceLimit', usual)
  }
  return count
}

describe('a payload that is none', () => {
  const strict = schemaOf<number>((value) =>
    value === 1 ? { value } : { issues: [{ message: 'must be 1' }] },
  )
  // A peer may send many: no error is made that is never seen, with lines of a stack that say nothing.
  it.each<[who: string, codec: mq.Codec<never, unknown>, text: string, contentType?: string]>([
    ['a schema', mq.json(strict), '2'],
    ['json()', mq.json(), '{'],
    ['number()', mq.number(), 'x'],
    ['a content type', mq.json(), '1', 'text/plain'],
  ])('%s refuses it at the cost of one error', (_who, codec, text, contentType) => {
    const message = {
      payload: bytesOf(text),
      text: () => text,
      properties: { contentType },
    } as unknown as Message
    const refuse = (): void =>
      expect(() => decoded(codec, message)).toThrow(coded(bad, { fault: 'remote' }))
    expect(limitsSet(refuse)).toBe(limitsSet(() => new MqttError('ERR_INVALID_PAYLOAD')))
  })

  it('as the codec itself says: an ERR_INVALID_PAYLOAD is passed on, with the fault of the peer that sent the payload', () => {
    const issues = [{ message: 'unknown unit' }]
    const refuse = (): never => {
      throw new MqttError(bad, 'no such unit', { issues })
    }
    const refusing = mq.codec<string>({ encode: refuse, decode: refuse })
    const message = { payload: bytesOf('x'), properties: {} } as Message
    expect(() => encoded(refusing, 'x')).toThrow(coded(bad, { message: 'no such unit', issues }))
    expect(() => decoded(refusing, message)).toThrow(coded(bad, { fault: 'remote', issues }))
  })
})

// Memory that is written again and again: what was encoded before stays as it was, however long it waits to be sent.
const scratch = new Uint8Array(64)
const reusing = mq.codec<string>({
  encode: (value) => scratch.subarray(0, new TextEncoder().encodeInto(value, scratch).written),
  decode: (bytes) => new TextDecoder().decode(bytes),
})
const words = ['aaa', 'bbb', 'ccc', 'ddd']

describe('a codec that reuses its memory', () => {
  it('calls of one turn', async () => {
    const { caller, server } = await pair()
    const echo = mq.operation('echo/{id}', reusing, reusing)
    await echo.on(server).serve(({ value, params }) => `${params.id}:${value}`)
    const calls = words.map((word, id) => echo.on(caller).call({ id }, word, { timeout: 3000 }))
    expect(await Promise.all(calls)).toEqual(['0:aaa', '1:bbb', '2:ccc', '3:ddd'])
  })

  it('streams of one turn', async () => {
    const { caller, server } = await pair()
    const count = mq.operation('count/{id}', reusing, reusing)
    await count.on(server).serve(async function* ({ value }) {
      for (let n = 0; n < 3; n++) yield `${value}${n}`
    })
    const streams = words.map((word, id) =>
      all(count.on(caller).stream({ id }, word, { timeout: 3000 })),
    )
    expect(await Promise.all(streams)).toEqual(
      words.map((word) => [`${word}0`, `${word}1`, `${word}2`]),
    )
  })

  it('publishes, posts and writes of one turn', async () => {
    const { client: reading, other: sending } = await pair()
    const channel = mq.channel('word', reusing, { qos: 1 })
    const got: string[] = []
    await channel.on(reading).listen(({ value }) => void got.push(value))
    const bound = channel.on(sending)
    const writers = [bound.writableStream().getWriter(), bound.writableStream().getWriter()]
    await Promise.all([
      ...words.map((word) => bound.publish(word)),
      ...writers.map((writer, n) => writer.write(`w${n}`)),
      bound.post('post'),
    ])
    await eventually(() => got.length === 7)
    expect(got.sort()).toEqual([...words, 'post', 'w0', 'w1'])
  })

  it('wills, and views that are no Uint8Array', async () => {
    const floats = new Float32Array(2)
    const pair = mq.codec<number[]>({
      encode: (value) => {
        floats.set(value)
        return floats as never
      },
      decode: (bytes) => [...new Float32Array(bytes.buffer)],
    })
    const channel = mq.channel('pair', pair)
    const first = channel.will([1, 2]).payload as Uint8Array
    channel.will([3, 4])
    expect(pair.decode(new Uint8Array(first), undefined as never)).toEqual([1, 2])
  })

  it('bytes() sends the memory of the caller, and gives an array of its own', async () => {
    const { client: reading, other: sending } = await pair()
    const given = Uint8Array.of(1, 2, 3)
    expect(mq.bytes().encode(given)).toBe(given)
    await using subscription = await mq
      .channel('bytes', mq.bytes())
      .on(reading)
      .subscribe({ lifetime: 'borrowed' })
    await sending.publish('bytes', given)
    const first = (await subscription.next())?.value
    for (let n = 0; n < 50; n++) {
      await sending.publish('bytes', Uint8Array.of(9, 9, 9))
      await subscription.next()
    }
    expect(first).toEqual(given)
  })
})

const at = new Date('2026-01-02T03:04:05.000Z')
const atText = `"${at.toJSON()}"`
const encode = (date: Date): string => date.toISOString()
const iso = z.codec(z.iso.datetime(), z.date(), { decode: (text) => new Date(text), encode })
const stamped = z.object({ at: iso, n: z.number() })
const count = z.tuple([z.string(), z.string().transform(BigInt)])
const counts = z.array(count).transform((entries) => new Map(entries))

/** What comes of a value that was published, with the text on the way. */
async function sent<In, Out>(codec: mq.Codec<In, Out>, value: In) {
  const client = await clientOn(brokerOf())
  const channel = mq.channel('t', codec).on(client)
  await using subscription = await channel.subscribe()
  await channel.publish(value)
  const received = (await subscription.next({ timeout: 3000 })) as mq.Received<object, Out>
  return { value: received.value, text: received.message.text() }
}

describe('json(schema, { encode })', () => {
  const parsed = v.transform((text: string) => new Date(text))
  const stamp = v.pipe(v.string(), v.isoTimestamp(), parsed)
  const text = `{"at":${atText},"n":1}`
  const large = new Map([['a', 2n ** 70n]])
  const listed = (map: Map<string, bigint>) =>
    Array.from(map, ([name, count]): [string, string] => [name, String(count)])
  const later = async (value: z.output<typeof stamped>) => stamped.encode(value)
  it.each<[string, mq.Codec<never, unknown>, value: unknown, text: string]>([
    ['a codec of zod', mq.json(stamped, { encode: stamped.encode }), { at, n: 1 }, text],
    ['a transform of valibot', mq.json(stamp, { encode }), at, atText],
    ['a morph of arktype', mq.json(type('string.date.iso.parse'), { encode }), at, atText],
    ['a Map of bigints', mq.json(counts, { encode: listed }), large, `[["a","${2n ** 70n}"]]`],
    ['one that takes its time', mq.json(stamped, { encode: later }), { at, n: 1 }, text],
  ])('maps back by %s: what comes is what was published', async (_name, codec, value, text) => {
    expect(await sent(codec, value as never)).toEqual({ value, text })
  })

  it('what it maps to is checked, and so is what it is', async () => {
    const invalid = coded('ERR_INVALID_PAYLOAD', { outcome: 'not-sent' })
    await expect(sent(mq.json(iso, { encode: () => 'noon' }), at)).rejects.toEqual(invalid)
    await expect(sent(mq.json(iso, { encode }), new Date(Number.NaN))).rejects.toEqual(invalid)
    const unknown = coded('ERR_INVALID_OPTION', { option: 'encode' })
    expect(() => mq.json(iso, { encode: 'iso' as never })).toThrow(unknown)
  })
})

describe('json(schema), values that JSON has no word for', () => {
  it('checks what its receivers will read: a date that is read as text is refused where it is published', async () => {
    for (const [schema, value, what] of [
      [z.date(), at, /date/],
      [z.object({ at: z.date() }), { at }, /^invalid payload: at: /],
      [z.map(z.string(), z.number()), new Map([['a', 1]]), /map/],
      [z.set(z.string()), new Set(['a']), /set/],
      [z.any().refine(Number.isNaN), Number.NaN, /./],
    ] as const) {
      const message = expect.stringMatching(what)
      const refused = coded('ERR_INVALID_PAYLOAD', { outcome: 'not-sent', message })
      const codec = mq.json(schema as z.ZodType<unknown, unknown>)
      await expect(sent(codec, value)).rejects.toEqual(refused)
    }
  })

  it('a date that is read from text is one at both ends', async () => {
    expect(await sent(mq.json(z.coerce.date<Date>()), at)).toEqual({ value: at, text: atText })
  })

  it('what JSON leaves out may be left out', async () => {
    const optional = z.object({ a: z.number().optional(), b: z.string() })
    const left = { value: { b: 'x' }, text: '{"b":"x"}' }
    expect(await sent(mq.json(optional), { a: undefined, b: 'x' })).toEqual(left)
  })
})
