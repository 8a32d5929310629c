/** Options of `asyncapi` that are none: each refusal is typed, and names the option and the rule. */
import { expect, it } from 'vitest'
import { asyncapi } from '../../../src/asyncapi/index.js'
import { MqttError } from '../../../src/errors.js'
import * as mq from '../../../src/typed/index.js'

const cyclic: Record<string, unknown> = {}
cyclic['self'] = cyclic
const odd: Readonly<Record<string, unknown>> = {
  null: null,
  'a number': 3,
  text: 'x',
  'a list': [],
  'an object': {},
  'a cycle': cyclic,
  'a bigint': 1n,
}
const schema = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } } as const
const contract = { a: mq.channel('a/{b}', mq.json(schema as never)) }
const info = { title: 't', version: '1' }

const places: Readonly<Record<string, (given: unknown) => unknown>> = {
  contract: (given) => asyncapi(given as never, { info }),
  'contract.part': (given) => asyncapi({ ...contract, part: given } as never, { info }),
  options: (given) => asyncapi(contract, given as never),
  info: (given) => asyncapi(contract, { info: given } as never),
  'info.description': (given) => asyncapi(contract, { info: { ...info, description: given } } as never),
  servers: (given) => asyncapi(contract, { info, servers: given } as never),
  'servers.x': (given) => asyncapi(contract, { info, servers: { x: given } } as never),
  'servers.x more': (given) => asyncapi(contract, { info, servers: { x: { host: 'h', protocol: 'mqtt', more: given } } } as never),
  role: (given) => asyncapi(contract, { info, role: given } as never),
  'role.send': (given) => asyncapi(contract, { info, role: { send: given } } as never),
  'role.send[0]': (given) => asyncapi(contract, { info, role: { send: [given] } } as never),
  'role.receive': (given) => asyncapi(contract, { info, role: { receive: given } } as never),
  details: (given) => asyncapi(contract, { info, details: given } as never),
  'details.a': (given) => asyncapi(contract, { info, details: { a: given } } as never),
  'details.a.title': (given) => asyncapi(contract, { info, details: { a: { title: given } } } as never),
  'details.a.examples': (given) => asyncapi(contract, { info, details: { a: { examples: given } } } as never),
  'details.a.examples[0]': (given) => asyncapi(contract, { info, details: { a: { examples: [given] } } } as never),
  'details.a.parameters': (given) => asyncapi(contract, { info, details: { a: { parameters: given } } } as never),
  toJsonSchema: (given) => asyncapi(contract, { info, toJsonSchema: given } as never),
  'what toJsonSchema gives': (given) => asyncapi(contract, { info, toJsonSchema: () => given } as never),
}

/** Undefined where it made a document, which is then text. */
function refusal(call: () => unknown): unknown {
  try {
    JSON.stringify(call())
    return undefined
  } catch (error) {
    return error
  }
}

it.each(Object.keys(places))('%s: makes a document, or says what is wrong', (place) => {
  for (const [name, given] of Object.entries(odd)) {
    const error = refusal(() => places[place]?.(given))
    if (error === undefined) continue
    expect(error, `${name}: ${error}`).toBeInstanceOf(MqttError)
    expect(error, name).toMatchObject({ code: 'ERR_INVALID_OPTION', option: expect.any(String), message: expect.stringMatching(/must|has|gives/) })
  }
})

it.each([
  ['servers', places['servers']?.bind(undefined, null), 'servers must be an object of servers by name'],
  ['servers', places['servers']?.bind(undefined, []), 'servers must be an object of servers by name'],
  ['role', places['role']?.bind(undefined, []), 'role must be an object with send and receive'],
  ['role.send', places['role.send']?.bind(undefined, 3), 'role.send must be a list of parts of the contract, or of their names'],
  ['role.send', places['role.send']?.bind(undefined, 'a'), 'role.send must be a list of parts of the contract, or of their names'],
  ['contract', places['contract']?.bind(undefined, cyclic), 'contract must not hold itself, as it does in self'],
  ['contract', places['contract.part']?.bind(undefined, 3), 'contract must hold channels, operations and contracts; part is not one of them'],
  ['details.a.title', places['details.a.title']?.bind(undefined, 3), 'details.a.title must be text'],
  ['details.a.examples', places['details.a.examples']?.bind(undefined, 3), 'details.a.examples must be a list of payloads'],
  [
    'details.a.parameters',
    places['details.a.parameters']?.bind(undefined, 3),
    'details.a.parameters must be an object of texts by the name of a parameter',
  ],
  ['info.description', places['info.description']?.bind(undefined, 3), 'info.description must be text'],
] as const)('names %s and its rule', (option, call, message) => {
  expect(refusal(call as () => unknown)).toMatchObject({ code: 'ERR_INVALID_OPTION', option, message: expect.stringContaining(message) })
})

it.each(['#q', '#/definitions/q', '#/properties/a/~2'])('refuses a schema whose $ref leads nowhere: %s', (to) => {
  const toJsonSchema = () => ({ type: 'object', properties: { a: { $ref: to } } })
  expect(refusal(() => asyncapi(contract, { info, toJsonSchema }))).toMatchObject({
    code: 'ERR_INVALID_OPTION',
    option: 'toJsonSchema',
    message: expect.stringContaining(`$ref "${to}" must be '#' or a JSON Pointer to a part of the schema`),
  })
})

it.each(['#', '#/definitions/a~1b', '#/definitions/c%20d', 'https://x.example/s.json'])('keeps a $ref that leads somewhere: %s', (to) => {
  const toJsonSchema = () => ({ properties: { a: { $ref: to } }, definitions: { 'a/b': { type: 'null' }, 'c d': { type: 'null' } } })
  expect(refusal(() => asyncapi(contract, { info, toJsonSchema }))).toBeUndefined()
})

it('takes one contract in two places', () => {
  expect(refusal(() => asyncapi({ x: contract, y: contract }, { info }))).toBeUndefined()
})
