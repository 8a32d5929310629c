/** Contracts as AsyncAPI 3.0 documents: read by the official parser, and compared with what channels send and refuse. */
import { createRequire } from 'node:module'
import { type } from 'arktype'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { asyncapi } from '../../../src/asyncapi/index.js'
import { cbor } from '../../../src/typed/cbor.js'
import * as mq from '../../../src/typed/index.js'
import { msgpack } from '../../../src/typed/msgpack.js'
import { coded } from './rig.js'

const require = createRequire(import.meta.url)
const { Parser } = require('@asyncapi/parser')
const { default: Ajv } = createRequire(require.resolve('@asyncapi/parser'))('ajv')

/** A document as the official parser reads it, which finds nothing wrong. */
async function read(given: object) {
  const { document, diagnostics } = await new Parser().parse(JSON.stringify(given))
  expect(diagnostics.filter(({ severity }: { severity: number }) => severity === 0)).toEqual([])
  return document
}

const plant = mq.contract({
  temperature: mq.channel(
    'plant/{line}/{n:number}/temperature',
    mq.json(z.object({ value: z.number() })),
    { qos: 1, retain: true },
  ),
  log: mq.channel('log/{rest...}', mq.text()),
  control: { setpoint: mq.operation('plant/{line}/setpoint', mq.number(), mq.json()) },
})

const info = { title: 'Plant', version: '1.0.0' }
const options = {
  info,
  servers: { here: 'mqtts://broker.example:8883', there: { host: 'x.example', protocol: 'ws' } },
  role: { send: ['temperature'], receive: ['control.setpoint', plant.log] },
  toJsonSchema: (schema: z.ZodType) => z.toJSONSchema(schema),
}

describe('an AsyncAPI document', () => {
  it('has channels, messages, servers and operations', () => {
    const on = (name: string) => ({
      channel: { $ref: `#/channels/${name}` },
      messages: [{ $ref: `#/channels/${name}/messages/message` }],
    })
    const payload = {
      type: 'object',
      properties: { value: { type: 'number' } },
      required: ['value'],
    }
    const json = { contentType: 'application/json' }
    const correlationId = { location: '$message.header#/correlationData' }
    expect(asyncapi(plant, options)).toEqual({
      asyncapi: '3.0.0',
      info,
      defaultContentType: 'application/json',
      servers: {
        here: { host: 'broker.example:8883', protocol: 'mqtts' },
        there: { host: 'x.example', protocol: 'ws' },
      },
      channels: {
        temperature: {
          address: 'plant/{line}/{n}/temperature',
          parameters: { line: {}, n: {} },
          messages: {
            message: { name: 'temperature', ...json, payload: expect.objectContaining(payload) },
          },
        },
        log: {
          ...{ address: 'log/{rest}', parameters: { rest: {} } },
          messages: { message: { name: 'log', contentType: 'text/plain' } },
        },
        'control.setpoint': {
          address: 'plant/{line}/setpoint',
          parameters: { line: {} },
          messages: {
            message: expect.objectContaining({ name: 'control.setpoint', correlationId }),
          },
        },
        'control.setpoint.reply': {
          ...{ address: null, messages: { message: { name: 'control.setpoint.reply', ...json } } },
        },
      },
      operations: {
        'send.temperature': {
          ...{ action: 'send', ...on('temperature') },
          bindings: { mqtt: { qos: 1, retain: true, bindingVersion: '0.2.0' } },
        },
        'receive.control.setpoint': {
          ...{ action: 'receive', ...on('control.setpoint') },
          reply: {
            address: { location: '$message.header#/responseTopic' },
            ...on('control.setpoint.reply'),
          },
        },
        'receive.log': {
          action: 'receive',
          ...on('log'),
          bindings: { mqtt: { qos: 0, bindingVersion: '0.2.0' } },
        },
      },
    })
  })

  it('refuses what would make a wrong document, and names it', () => {
    const refused = (option: string) => coded('ERR_INVALID_OPTION', { option })
    const made = (given: object) => () => asyncapi(plant, { ...options, ...given })
    expect(made({ role: { send: ['setpoint'] } })).toThrow(refused('role.send'))
    for (const x of ['no url', 'localhost:1883', 'unix:///run/mosquitto', { host: 'x' }, null])
      expect(made({ servers: { x } })).toThrow(refused('servers.x'))
    expect(made({ details: { setpoint: {} } })).toThrow(refused('details.setpoint'))
    expect(() => asyncapi(plant.log as never, options)).toThrow(refused('contract'))
    expect(() => asyncapi(plant, undefined as never)).toThrow(refused('info'))
    const failing = (code: string) =>
      mq.operation('a', undefined, undefined, { errors: { [code]: undefined } })
    for (const twice of [
      { 'a.b': plant.log, a: { b: plant.log } },
      { a: plant.control.setpoint, 'a.reply': plant.log },
      { a: failing('B'), 'a.reply.B': plant.log },
      ...['message', '$ref', '__proto__'].map((code) => ({ a: failing(code) })),
      { $ref: plant.log },
      { ['__proto__']: plant.log },
    ])
      expect(() => asyncapi(mq.contract(twice as object), options)).toThrow(refused('contract'))
    const date = mq.contract({ at: mq.channel('at', mq.json(z.date())) })
    const message = expect.stringMatching(/'at'.*Date/)
    const unknown = coded('ERR_INVALID_OPTION', { option: 'toJsonSchema', message })
    expect(() => asyncapi(date, { info })).toThrow(unknown)
  })

  it('says what each end does: QoS and expiry of a publish, QoS of a subscription', () => {
    const own = {
      publish: { qos: 1, properties: { messageExpiryInterval: 60 } },
      subscribe: { qos: 2 },
      retain: true,
    } as const
    const contract = mq.contract({ a: mq.channel('a', mq.text(), own) })
    const { operations } = asyncapi(contract, { ...options, role: { send: ['a'], receive: ['a'] } })
    const sent = expect.objectContaining({ qos: 1, retain: true, messageExpiryInterval: 60 })
    expect(operations).toMatchObject({ 'send.a': { bindings: { mqtt: sent } } })
    expect(operations).toHaveProperty(['receive.a', 'bindings', 'mqtt'], {
      qos: 2,
      bindingVersion: '0.2.0',
    })
  })
})

describe('declared errors of an operation', () => {
  const errors = { NOT_FOUND: mq.json(z.object({ id: z.string() })), 'SO/SO': undefined }
  const find = mq.operation('find/{id}', mq.number(), mq.text(), { errors })
  const details = { 'find.reply.NOT_FOUND': { title: 'None', examples: [{ id: 'a' }] } }
  const document = asyncapi(mq.contract({ find }), { info, role: { send: ['find'] }, details })

  it('are messages of the answer, told apart by a header', () => {
    const { channels } = document as { channels: Record<string, { messages: object }> }
    const header = (code: string) => ({
      type: 'object',
      properties: { error: { const: code } },
      required: ['error'],
    })
    expect(channels['find.reply']?.messages).toEqual({
      message: { name: 'find.reply', contentType: 'text/plain' },
      NOT_FOUND: {
        name: 'find.reply.NOT_FOUND',
        contentType: 'application/json',
        payload: expect.objectContaining({ properties: { id: { type: 'string' } } }),
        title: 'None',
        examples: [{ payload: { id: 'a' } }],
        headers: header('NOT_FOUND'),
      },
      'SO/SO': { name: 'find.reply.SO/SO', contentType: 'text/plain', headers: header('SO/SO') },
    })
  })

  it('are found by the official parser', async () => {
    const reply = (await read(document)).operations().get('send.find').reply()
    const names = Array.from<{ name(): string }, string>(reply.messages().all(), (message) =>
      message.name(),
    )
    expect(names.join(' ')).toBe('find.reply find.reply.NOT_FOUND find.reply.SO/SO')
  })
})

const Tree = z.object({
  name: z.string().default('leaf'),
  get branches() {
    return z.array(Tree)
  },
})
const Place = z.object({ x: z.number() }).meta({ id: 'Place' })
const Way = z.object({ from: Place, to: Place })
const Defaults = z.object({ a: z.number().default(3), b: z.string() })
const Literal = z.object({ $ref: z.literal('#/x'), default: z.number() })
const draft2020 = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' })

/** By the name of a channel: its schema, payloads that it sends, payloads that it refuses. */
type Values = readonly unknown[]
const schemas: Readonly<Record<string, readonly [z.ZodType, sent: Values, refused: Values]>> = {
  defaults: [Defaults, [{ b: 'x' }, { a: 1, b: 'x', more: true }], [{ a: 1 }, { a: 'x', b: 'x' }]],
  tuple: [z.tuple([z.string(), z.number()]), [['x', 1]], [[1, 'x'], ['x'], ['x', 1, 2]]],
  rest: [z.tuple([z.string()]).rest(z.number()), [['x'], ['x', 1, 2]], [['x', 'y'], []]],
  'shared/~ 1': [Way, [{ from: { x: 1 }, to: { x: 2 } }], [{ from: { x: 'a' }, to: { x: 2 } }]],
  root: [Place, [{ x: 1 }], [{}]],
  tree: [Tree, [{ branches: [{ branches: [], name: 'a' }] }], [{ branches: [{ branches: [{}] }] }]],
  transformed: [z.string().transform((text) => text.length), ['abc'], [3]],
  literal: [Literal, [{ $ref: '#/x', default: 1 }], [{ $ref: '#/y', default: 1 }]],
}

describe.each([
  ['of the schema itself', undefined],
  ['of the library', z.toJSONSchema as never],
  ['of a function that writes draft 2020-12', draft2020],
] as const)('payloads in a document, by the JSON Schema %s', (_name, toJsonSchema) => {
  const channels = Object.entries(schemas).map(([name, [schema]]) => [
    name,
    mq.channel('a', mq.json(schema)),
  ])
  const contract = mq.contract(Object.fromEntries(channels))
  const details = { tuple: { title: 'Pair', description: 'Two.', examples: [['x', 1]] } }
  const role = { send: Object.keys(schemas) }
  const document = asyncapi(contract, { info, role, details, toJsonSchema })

  it('the official parser reads it, and finds titles, descriptions and examples', async () => {
    // The parser takes a property that is named `$ref` for a reference.
    const { literal: _, ...channels } = document['channels'] as Record<string, object>
    const { 'send.literal': __, ...operations } = document['operations'] as Record<string, object>
    const parsed = await read({ ...document, channels, operations })
    const pair = parsed.channels().get('tuple').messages().all()[0]
    const [example] = pair.examples().all()
    expect([pair.title(), pair.description(), example.payload()]).toEqual([
      'Pair',
      'Two.',
      ['x', 1],
    ])
  })

  it.each(Object.keys(schemas))('%s: passes as the channel sends it, or does not', async (name) => {
    const ajv = new Ajv({ strict: false, validateFormats: false })
    ajv.addSchema(document, 'document')
    const step = encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
    const check = ajv.compile({ $ref: `document#/channels/${step}/messages/message/payload` })
    const [schema, sent, refused] = schemas[name] ?? []
    for (const value of sent ?? []) {
      await mq.json(schema as z.ZodType).encode(value)
      expect([value, check(value)]).toEqual([value, true])
    }
    for (const value of refused ?? []) {
      expect(() => mq.json(schema as z.ZodType).encode(value)).toThrow('invalid payload')
      expect([value, check(value)]).toEqual([value, false])
    }
  })
})

describe('payloads of codecs that map values, or are no JSON', () => {
  const date = z.codec(z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/), z.date(), {
    decode: (given) => new Date(given),
    encode: (value) => value.toISOString(),
  })
  const stamped = z.object({ at: date })
  const entries = z.array(z.tuple([z.string(), z.number()])).transform((list) => new Map(list))
  const point = z.object({ x: z.number(), y: z.number().int().max(9) })
  const listed = (map: Map<string, number>) => [...map]

  it.each<[name: string, codec: mq.Codec<never, unknown>, sent: unknown, refused: Values]>([
    ['a date', mq.json(stamped, { encode: stamped.encode }), { at: new Date(5) }, [{ at: 5 }, {}]],
    ['a Map', mq.json(entries, { encode: listed }), new Map([['a', 1]]), [[['a']], {}]],
    ['arktype', mq.json(type({ 'n?': 'number>=1', s: "'x'|'y'" })), { s: 'x' }, [{ n: 0, s: 'x' }]],
    ['MessagePack', msgpack(point), { x: 1.5, y: 9 }, [{ x: 1 }, { x: 1, y: 10 }]],
    ['CBOR', cbor(point), { x: 1.5, y: 9 }, [{ x: 1 }, { x: 1, y: 10 }]],
  ])(
    '%s: what is sent passes the schema, what is refused does not',
    (_name, codec, sent, wrong) => {
      const document = asyncapi(mq.contract({ a: mq.channel('a', codec) }), { info })
      const ajv = new Ajv({ strict: false, validateFormats: false }).addSchema(document, 'document')
      const check = ajv.compile({ $ref: 'document#/channels/a/messages/message/payload' })
      const { encode, decode } =
        { 'application/msgpack': msgpack(), 'application/cbor': cbor() }[`${codec.contentType}`] ??
        mq.json()
      const bytesOf = (payload: unknown) => new Uint8Array(Buffer.from(payload as string))
      const payload = decode(bytesOf(codec.encode(sent as never)), undefined as never)
      expect([payload, check(payload)]).toEqual([payload, true])
      for (const each of wrong) {
        expect([each, check(each)]).toEqual([each, false])
        const read = () => codec.decode(bytesOf(encode(each)), undefined as never)
        expect(read, JSON.stringify(each)).toThrow('invalid payload')
      }
    },
  )
})

it('the official parser reads a contract of every kind, whole', async () => {
  const ends = { publish: { qos: 2, properties: { messageExpiryInterval: 5 } } } as const
  const inner = mq.contract({ one: mq.channel('one', mq.text()) })
  const contract = mq.contract({
    bytes: mq.channel('a', mq.bytes()),
    own: mq.channel('a', mq.codec({ encode: String, decode: String, contentType: 'a/b; c=1' })),
    'a/~ %ü.b': mq.channel('a/{b}/{n:number}/{rest...}', mq.json(), { ...ends, qos: 1 }),
    any: mq.channel('#', mq.text()),
    ...{ b: { c: inner }, ...inner },
    ask: mq.operation('#', mq.number(), mq.text()),
    start: mq.operation('a'),
    level: mq.operation('b', undefined, mq.text(), { serve: { share: 'w' } }),
    fails: mq.operation('c', mq.text(), undefined, {
      errors: { 'a/b ~': undefined, B: mq.text() },
    }),
  })
  const host = { host: 'x.example', protocol: 'mqtt', description: 'D' }
  const servers = { a: 'mqtts://x.example:8883', b: 'wss://x.example/mqtt', c: host }
  const details = { own: { title: 'A', description: '*B*', examples: ['x'] } }
  const channels = Object.keys(asyncapi(contract, { info })['channels'] as object)
  const parts = channels.filter((name) => !name.endsWith('.reply'))
  const role = { send: parts, receive: parts }
  const parsed = await read(asyncapi(contract, { info, role, servers, details }))
  expect(parsed.allChannels().all()).toHaveLength(channels.length)
  expect(parsed.allOperations().all()).toHaveLength(2 * parts.length)
})
