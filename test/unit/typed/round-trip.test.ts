/** Values that JSON has no word for: what is published is what is received, or is refused before a byte is sent. */
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import * as mq from '../../../src/typed/index.js'
import { brokerOf, clientOn, coded } from './rig.js'

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

describe('json(schema)', () => {
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
