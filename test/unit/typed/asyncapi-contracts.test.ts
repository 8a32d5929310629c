/**
 * Contracts of every kind as AsyncAPI documents: the official parser reads each, and a payload passes its schema exactly where the codec takes it.
 */
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
const entry = <T>(name: string): Promise<T> => import(/* @vite-ignore */ new URL(`../../../dist/${name}.js`, import.meta.url).href)
const { asyncapi } = await entry<typeof import('../../../src/asyncapi/index.js')>('asyncapi/index')
const mq = await entry<typeof import('../../../src/typed/index.js')>('typed/index')
const { cbor } = await entry<typeof import('../../../src/typed/cbor.js')>('typed/cbor')
const { msgpack } = await entry<typeof import('../../../src/typed/msgpack.js')>('typed/msgpack')

const require = createRequire(import.meta.url)
const parser = new (require('@asyncapi/parser').Parser)()
const { default: Ajv } = createRequire(require.resolve('@asyncapi/parser'))('ajv')

/** A message of the document with payloads: values that are sent, and payloads that are refused. */
interface Payloads {
  /** Channel, and the name of the message there. Default: `a`, `message`. */
  readonly at?: readonly [channel: string, message: string]
  readonly codec: Codec<never, unknown>
  readonly sent: readonly unknown[]
  readonly refused: readonly unknown[]
}

interface Row {
  readonly contract: object
  readonly options?: Partial<AsyncApiOptions>
  readonly payloads?: readonly Payloads[]
}

/** A contract of one channel, `a`, whose payloads are these. */
function payloads(codec: Codec<never, unknown>, sent: readonly unknown[], refused: readonly unknown[], options?: Partial<AsyncApiOptions>): Row {
  return { contract: mq.contract({ a: mq.channel('a', codec) }), payloads: [{ codec, sent, refused }], ...(options === undefined ? {} : { options }) }
}

const Node = z.object({
  name: z.string(),
  get next() {
    return Node.optional()
  },
})
const date = z.codec(z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/), z.date(), {
  decode: (text) => new Date(text),
  encode: (value) => value.toISOString(),
})
const stamped = z.object({ at: date })
const point = z.object({ x: z.number(), y: z.number().int().max(9) })
const missing = mq.json(z.object({ id: z.string() }))
const spread = mq.contract({ one: mq.channel('one', mq.text()) })
const valibot = { toJsonSchema: () => ({ type: 'object', properties: { n: { type: 'number', minimum: 1 } }, required: ['n'] }) }

const rows: Readonly<Record<string, Row>> = {
  'an empty one': { contract: mq.contract({}) },
  text: { contract: mq.contract({ a: mq.channel('a', mq.text()) }) },
  numbers: { contract: mq.contract({ a: mq.channel('a', mq.number()) }) },
  bytes: { contract: mq.contract({ a: mq.channel('a', mq.bytes()) }) },
  'JSON of any kind': { contract: mq.contract({ a: mq.channel('a', mq.json()) }) },
  'a codec of one’s own': { contract: mq.contract({ a: mq.channel('a', mq.codec({ encode: String, decode: String, contentType: 'a/b; c=1' })) }) },
  parameters: { contract: mq.contract({ a: mq.channel('a/{b}/{n:number}/{rest...}', mq.text()) }) },
  'any topic': { contract: mq.contract({ a: mq.channel('#', mq.text()) }) },
  'options of each end': {
    contract: mq.contract({
      a: mq.channel('a', mq.text(), { qos: 1, retain: true, publish: { qos: 2, properties: { messageExpiryInterval: 5 } }, subscribe: { qos: 0 } }),
    }),
  },
  'names that are pointers': { contract: mq.contract({ 'a/~ %ü.b': mq.channel('a', mq.text()) }) },
  'groups in groups': { contract: mq.contract({ a: { b: { c: { d: mq.channel('d', mq.text()) } } } }) },
  'a contract in a contract, and one spread': { contract: mq.contract({ ...spread, again: spread }) },
  descriptions: {
    contract: mq.contract({ a: mq.channel('a/{id}', mq.text()) }),
    options: { details: { a: { title: 'A', description: '*B*', examples: ['x'], parameters: { id: 'C' } } } },
  },
  'servers of every scheme': {
    contract: spread,
    options: { servers: { a: 'mqtts://x.example:8883', b: 'wss://x.example/mqtt', c: { host: 'x.example', protocol: 'mqtt', description: 'D' } } },
  },
  'an operation': { contract: mq.contract({ a: mq.operation('a/{id}', mq.number(), mq.text()) }) },
  'an operation of any topic': { contract: mq.contract({ a: mq.operation('#', mq.number(), mq.text()) }) },
  'operations without input, output, or both': {
    contract: mq.contract({ a: mq.operation('a'), b: mq.operation('b', undefined, mq.text()), c: mq.operation('c', mq.text()) }),
  },
  'an operation that several serve': { contract: mq.contract({ a: mq.operation('a', mq.text(), mq.text(), { qos: 1, serve: { share: 'w' } }) }) },
  'errors of an operation': {
    contract: mq.contract({ a: mq.operation('a', missing, missing, { errors: { MISSING: missing, 'a/b ~': undefined } }) }),
    payloads: [['a', 'message'] as const, ['a.reply', 'message'] as const, ['a.reply', 'MISSING'] as const].map((at) => ({
      at,
      codec: missing,
      sent: [{ id: 'x' }],
      refused: [{ id: 1 }, {}],
    })),
  },
  objects: payloads(mq.json(point), [{ x: 1.5, y: 9 }], [{ x: 1 }, { x: 1, y: 1.5 }, { x: 1, y: 10 }, [], null]),
  'objects that hold no more': payloads(mq.json(z.strictObject({ a: z.string().optional() })), [{}, { a: 'x' }], [{ b: 1 }, { a: 1 }]),
  defaults: payloads(mq.json(z.object({ a: z.number().default(1), b: z.string() })), [{ b: 'x' }], [{ a: 1 }, { a: 'x', b: 'x' }]),
  'one of several': payloads(
    mq.json(z.discriminatedUnion('kind', [z.object({ kind: z.literal('a'), n: z.number() }), z.object({ kind: z.literal('b') })])),
    [{ kind: 'a', n: 1 }, { kind: 'b' }],
    [{ kind: 'a' }, { kind: 'c' }],
  ),
  'words, nothing, and lists': payloads(
    mq.json(z.object({ a: z.enum(['x', 'y']).nullable(), b: z.array(z.boolean()).min(1).max(2) })),
    [
      { a: null, b: [true] },
      { a: 'x', b: [true, false] },
    ],
    [
      { a: 'z', b: [true] },
      { a: null, b: [] },
      { a: null, b: [true, true, true] },
    ],
  ),
  tuples: payloads(
    mq.json(z.tuple([z.string(), z.number()]).rest(z.boolean())),
    [
      ['a', 1],
      ['a', 1, true],
    ],
    [['a'], [1, 'a'], ['a', 1, 1]],
  ),
  'keys of any name': payloads(mq.json(z.record(z.string(), z.number())), [{}, { a: 1 }], [{ a: 'x' }, []]),
  'a schema that holds itself': payloads(
    mq.json(Node),
    [{ name: 'a', next: { name: 'b' } }],
    [
      { name: 'a', next: { name: 1 } },
      { name: 'a', next: { name: 'b', next: {} } },
    ],
  ),
  'text of a pattern': payloads(mq.json(z.string().regex(/^a+$/).max(3)), ['aa'], ['b', 'aaaa', 1]),
  'a transform': payloads(mq.json(z.string().transform((text) => text.length)), ['abc'], [3]),
  'a date that is mapped back': payloads(mq.json(stamped, { encode: stamped.encode }), [{ at: new Date(5) }], [{ at: 'noon' }, { at: 5 }, {}]),
  'a Map that is mapped back': payloads(
    mq.json(
      z.array(z.tuple([z.string(), z.number()])).transform((list) => new Map(list)),
      { encode: (map: Map<string, number>) => [...map] },
    ),
    [new Map([['a', 1]]), new Map()],
    [[['a']], [[1, 'a']], {}],
  ),
  'schemas of arktype': payloads(mq.json(type({ 'n?': 'number>=1', s: "'x'|'y'" })), [{ s: 'x' }, { n: 1, s: 'y' }], [{ n: 0, s: 'x' }, { s: 'z' }]),
  'schemas of valibot': payloads(mq.json(v.object({ n: v.pipe(v.number(), v.minValue(1)) })), [{ n: 1 }], [{ n: 0 }, {}], valibot),
  MessagePack: payloads(msgpack(point), [{ x: 1.5, y: 9 }], [{ x: 1 }, { x: 1, y: 10 }]),
  CBOR: payloads(cbor(point), [{ x: 1.5, y: 9 }], [{ x: 1 }, { x: 1, y: 10 }]),
}

/** How values of a codec are written where nothing is checked, and what comes of them. */
function unchecked({ contentType }: Codec<never, unknown>): { write(value: unknown): Uint8Array; read(payload: unknown): unknown } {
  const { encode, decode } = contentType === 'application/msgpack' ? msgpack() : contentType === 'application/cbor' ? cbor() : mq.json()
  const bytesOf = (payload: unknown): Uint8Array =>
    typeof payload === 'string' ? new TextEncoder().encode(payload) : new Uint8Array(payload as Uint8Array)
  return { write: (value) => bytesOf(encode(value)), read: (payload) => decode(bytesOf(payload), undefined as never) }
}

it('there are thirty and more', () => {
  expect(Object.keys(rows).length).toBeGreaterThanOrEqual(30)
})

describe.each(Object.entries(rows))('a contract of %s', (_name, { contract, options, payloads = [] }) => {
  const plain = asyncapi(contract, { info: { title: 'A', version: '1' }, ...options })
  const parts = Object.keys(plain['channels'] as object).filter((name) => !name.endsWith('.reply'))
  const document = asyncapi(contract, { info: { title: 'A', version: '1' }, role: { send: parts, receive: parts }, ...options })

  it('is read by the official parser, whole', async () => {
    const { document: parsed, diagnostics } = await parser.parse(JSON.stringify(document))
    expect(diagnostics.filter(({ severity }: { severity: number }) => severity === 0)).toEqual([])
    expect(parsed.allChannels().all()).toHaveLength(Object.keys(plain['channels'] as object).length)
    expect(parsed.allOperations().all()).toHaveLength(2 * parts.length)
  })

  it.runIf(payloads.length > 0)('what it sends passes the schema, what it refuses does not', () => {
    const ajv = new Ajv({ strict: false, validateFormats: false })
    ajv.addSchema(document, 'document')
    for (const { at: [channel, message] = ['a', 'message'], codec, sent, refused } of payloads) {
      const check = ajv.compile({ $ref: `document#/channels/${channel}/messages/${message}/payload` })
      const { write, read } = unchecked(codec)
      for (const value of sent) {
        const payload = read(codec.encode(value as never))
        expect([payload, check(payload)]).toEqual([payload, true])
        expect(codec.decode(write(payload), undefined as never)).toBeDefined()
      }
      for (const payload of refused) {
        expect([payload, check(payload)]).toEqual([payload, false])
        expect(() => codec.encode(payload as never), JSON.stringify(payload)).toThrow()
        expect(() => codec.decode(write(payload), undefined as never), JSON.stringify(payload)).toThrow('invalid payload')
      }
    }
  })
})
