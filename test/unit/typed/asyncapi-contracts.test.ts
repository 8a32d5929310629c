/** Contracts of every kind as AsyncAPI documents: the official parser reads each, and a payload passes its schema exactly where the codec takes it. */
import { createRequire } from 'node:module'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { AsyncApiOptions } from '../../../src/asyncapi/index.js'
import type { Codec } from '../../../src/typed/index.js'
import { requireDist } from '../../package/fixture.js'

// The package as users get it.
await requireDist()
const entry = <T>(name: string): Promise<T> =>
  import(/* @vite-ignore */ new URL(`../../../dist/${name}.js`, import.meta.url).href)
const { asyncapi } = await entry<typeof import('../../../src/asyncapi/index.js')>('asyncapi/index')
const mq = await entry<typeof import('../../../src/typed/index.js')>('typed/index')
const { cbor } = await entry<typeof import('../../../src/typed/cbor.js')>('typed/cbor')
const { msgpack } = await entry<typeof import('../../../src/typed/msgpack.js')>('typed/msgpack')

const require = createRequire(import.meta.url)
const parser = new (require('@asyncapi/parser').Parser)()
const { default: Ajv } = createRequire(require.resolve('@asyncapi/parser'))('ajv')

/** A message of the document with payloads: values that are sent, and payloads that are refused. */
interface Payloads {
  /** Channel, and the name of the message there. */
  readonly at: readonly [channel: string, message: string]
  readonly codec: Codec<never, unknown>
  readonly sent: readonly unknown[]
  readonly refused: readonly unknown[]
}

interface Row {
  readonly contract: object
  readonly options?: Partial<AsyncApiOptions>
  readonly payloads?: readonly Payloads[]
}

const { contract, channel, operation, text, number, json } = mq

/** A contract of one part, `a`. */
const of = (a: object, options: Partial<AsyncApiOptions> = {}): Row => ({
  contract: contract({ a }),
  options,
})

/** A contract of one channel, `a`, whose payloads are these. */
function payloads(
  codec: Codec<never, unknown>,
  sent: readonly unknown[],
  refused: readonly unknown[],
  options = {},
): Row {
  return {
    ...of(channel('a', codec), options),
    payloads: [{ at: ['a', 'message'], codec, sent, refused }],
  }
}

/** Values, each as JSON. */
const values = (...texts: string[]): unknown[] => texts.map((each) => JSON.parse(each))

const Node = z.object({
  name: z.string(),
  get next() {
    return Node.optional()
  },
})
const date = z.codec(z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/), z.date(), {
  decode: (given) => new Date(given),
  encode: (value) => value.toISOString(),
})
const stamped = z.object({ at: date })
const point = z.object({ x: z.number(), y: z.number().int().max(9) })
const kinds = [
  z.object({ kind: z.literal('a'), n: z.number() }),
  z.object({ kind: z.literal('b') }),
] as const
const words = z.object({ a: z.enum(['x', 'y']).nullable(), b: z.array(z.boolean()).min(1).max(2) })
const entries = z.array(z.tuple([z.string(), z.number()])).transform((list) => new Map(list))
const missing = json(z.object({ id: z.string() }))
const spread = contract({ one: channel('one', text()) })
const ends = {
  publish: { qos: 2, properties: { messageExpiryInterval: 5 } },
  subscribe: { qos: 0 },
} as const
const details = { title: 'A', description: '*B*', examples: ['x'], parameters: { id: 'C' } }
const host = { host: 'x.example', protocol: 'mqtt', description: 'D' }
const servers = { a: 'mqtts://x.example:8883', b: 'wss://x.example/mqtt', c: host }
const valibot = {
  type: 'object',
  properties: { n: { type: 'number', minimum: 1 } },
  required: ['n'],
}
const packed = [values('{"x":1.5,"y":9}'), values('{"x":1}', '{"x":1,"y":10}')] as const

const rows: Readonly<Record<string, Row>> = {
  'an empty one': { contract: contract({}) },
  text: of(channel('a', text())),
  numbers: of(channel('a', number())),
  bytes: of(channel('a', mq.bytes())),
  'JSON of any kind': of(channel('a', json())),
  'a codec of one’s own': of(
    channel('a', mq.codec({ encode: String, decode: String, contentType: 'a/b; c=1' })),
  ),
  parameters: of(channel('a/{b}/{n:number}/{rest...}', text())),
  'any topic': of(channel('#', text())),
  'options of each end': of(channel('a', text(), { qos: 1, retain: true, ...ends })),
  'names that are pointers': { contract: contract({ 'a/~ %ü.b': channel('a', text()) }) },
  'groups in groups': of({ b: { c: { d: channel('d', text()) } } }),
  'a contract in a contract, and one spread': { contract: contract({ ...spread, again: spread }) },
  descriptions: of(channel('a/{id}', text()), { details: { a: details } }),
  'servers of every scheme': { contract: spread, options: { servers } },
  'an operation': of(operation('a/{id}', number(), text())),
  'an operation of any topic': of(operation('#', number(), text())),
  'operations without input, output, or both': {
    contract: contract({
      a: operation('a'),
      b: operation('b', undefined, text()),
      c: operation('c', text()),
    }),
  },
  'an operation that several serve': of(
    operation('a', text(), text(), { qos: 1, serve: { share: 'w' } }),
  ),
  'errors of an operation': {
    ...of(operation('a', missing, missing, { errors: { MISSING: missing, 'a/b ~': undefined } })),
    payloads: ['a message', 'a.reply message', 'a.reply MISSING'].map((at) => ({
      at: at.split(' ') as [string, string],
      codec: missing,
      ...{ sent: values('{"id":"x"}'), refused: values('{"id":1}', '{}') },
    })),
  },
  objects: payloads(
    json(point),
    [{ x: 1.5, y: 9 }],
    values('{"x":1}', '{"x":1,"y":1.5}', '{"x":1,"y":10}', '[]', 'null'),
  ),
  'objects that hold no more': payloads(
    json(z.strictObject({ a: z.string().optional() })),
    values('{}', '{"a":"x"}'),
    values('{"b":1}', '{"a":1}'),
  ),
  defaults: payloads(
    json(z.object({ a: z.number().default(1), b: z.string() })),
    [{ b: 'x' }],
    values('{"a":1}', '{"a":"x","b":"x"}'),
  ),
  'one of several': payloads(
    json(z.discriminatedUnion('kind', [...kinds])),
    values('{"kind":"a","n":1}', '{"kind":"b"}'),
    values('{"kind":"a"}', '{"kind":"c"}'),
  ),
  'words, nothing, and lists': payloads(
    json(words),
    values('{"a":null,"b":[true]}', '{"a":"x","b":[true,false]}'),
    values('{"a":"z","b":[true]}', '{"a":null,"b":[]}', '{"a":null,"b":[true,true,true]}'),
  ),
  tuples: payloads(
    json(z.tuple([z.string(), z.number()]).rest(z.boolean())),
    values('["a",1]', '["a",1,true]'),
    values('["a"]', '[1,"a"]', '["a",1,1]'),
  ),
  'keys of any name': payloads(
    json(z.record(z.string(), z.number())),
    values('{}', '{"a":1}'),
    values('{"a":"x"}', '[]'),
  ),
  'a schema that holds itself': payloads(
    json(Node),
    values('{"name":"a","next":{"name":"b"}}'),
    values('{"name":"a","next":{"name":1}}', '{"name":"a","next":{"name":"b","next":{}}}'),
  ),
  'text of a pattern': payloads(json(z.string().regex(/^a+$/).max(3)), ['aa'], ['b', 'aaaa', 1]),
  'a transform': payloads(json(z.string().transform((given) => given.length)), ['abc'], [3]),
  'a date that is mapped back': payloads(
    json(stamped, { encode: stamped.encode }),
    [{ at: new Date(5) }],
    values('{"at":"noon"}', '{"at":5}', '{}'),
  ),
  'a Map that is mapped back': payloads(
    json(entries, { encode: (map: Map<string, number>) => [...map] }),
    [new Map([['a', 1]]), new Map()],
    values('[["a"]]', '[[1,"a"]]', '{}'),
  ),
  'schemas of arktype': payloads(
    json(type({ 'n?': 'number>=1', s: "'x'|'y'" })),
    values('{"s":"x"}', '{"n":1,"s":"y"}'),
    values('{"n":0,"s":"x"}', '{"s":"z"}'),
  ),
  'schemas of valibot': payloads(
    json(v.object({ n: v.pipe(v.number(), v.minValue(1)) })),
    [{ n: 1 }],
    values('{"n":0}', '{}'),
    {
      toJsonSchema: () => valibot,
    },
  ),
  MessagePack: payloads(msgpack(point), ...packed),
  CBOR: payloads(cbor(point), ...packed),
}

/** How values of a codec are written where nothing is checked, and what comes of them. */
function unchecked({ contentType }: Codec<never, unknown>): {
  write(value: unknown): Uint8Array
  read(payload: unknown): unknown
} {
  const { encode, decode } =
    contentType === 'application/msgpack'
      ? msgpack()
      : contentType === 'application/cbor'
        ? cbor()
        : mq.json()
  const bytesOf = (payload: unknown): Uint8Array =>
    typeof payload === 'string'
      ? new TextEncoder().encode(payload)
      : new Uint8Array(payload as Uint8Array)
  return {
    write: (value) => bytesOf(encode(value)),
    read: (payload) => decode(bytesOf(payload), undefined as never),
  }
}

it('there are thirty and more', () => {
  expect(Object.keys(rows).length).toBeGreaterThanOrEqual(30)
})

describe.each(Object.entries(rows))(
  'a contract of %s',
  (_name, { contract, options, payloads = [] }) => {
    const plain = asyncapi(contract, { info: { title: 'A', version: '1' }, ...options })
    const parts = Object.keys(plain['channels'] as object).filter(
      (name) => !name.endsWith('.reply'),
    )
    const document = asyncapi(contract, {
      info: { title: 'A', version: '1' },
      role: { send: parts, receive: parts },
      ...options,
    })

    it('is read by the official parser, whole', async () => {
      const { document: parsed, diagnostics } = await parser.parse(JSON.stringify(document))
      expect(diagnostics.filter(({ severity }: { severity: number }) => severity === 0)).toEqual([])
      expect(parsed.allChannels().all()).toHaveLength(
        Object.keys(plain['channels'] as object).length,
      )
      expect(parsed.allOperations().all()).toHaveLength(2 * parts.length)
    })

    it.runIf(payloads.length > 0)(
      'what it sends passes the schema, what it refuses does not',
      () => {
        const ajv = new Ajv({ strict: false, validateFormats: false })
        ajv.addSchema(document, 'document')
        for (const { at, codec, sent, refused } of payloads) {
          const check = ajv.compile({
            $ref: `document#/channels/${at[0]}/messages/${at[1]}/payload`,
          })
          const { write, read } = unchecked(codec)
          for (const value of sent) {
            const payload = read(codec.encode(value as never))
            expect([payload, check(payload)]).toEqual([payload, true])
            expect(codec.decode(write(payload), undefined as never)).toBeDefined()
          }
          for (const payload of refused) {
            expect([payload, check(payload)]).toEqual([payload, false])
            expect(() => codec.encode(payload as never), JSON.stringify(payload)).toThrow()
            expect(
              () => codec.decode(write(payload), undefined as never),
              JSON.stringify(payload),
            ).toThrow('invalid payload')
          }
        }
      },
    )
  },
)
