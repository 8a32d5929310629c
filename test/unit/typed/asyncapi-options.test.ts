/** Options of `asyncapi` that are none: each refusal is typed, and names the option and the rule. */
import { expect, it } from 'vitest'
import { asyncapi } from '../../../src/asyncapi/index.js'
import { MqttError } from '../../../src/errors.js'
import * as mq from '../../../src/typed/index.js'

const cyclic: Record<string, unknown> = {}
cyclic['self'] = cyclic
const odd = { null: null, number: 3, text: 'x', list: [], object: {}, cycle: cyclic, bigint: 1n }
const schema = {
  '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) },
} as const
const contract = { a: mq.channel('a/{b}', mq.json(schema as never)) }
const info = { title: 't', version: '1' }

/** Options with this value at a place, as in `role.send[0]`. */
function optionsWith(place: string, given: unknown): never {
  const steps = place.split(/[.[]/)
  const value = steps.reduceRight(
    (inner, step) => (step === '0]' ? [inner] : { [step]: inner }),
    given,
  )
  return {
    info,
    ...(place.startsWith('info.')
      ? { info: { ...info, ...(value as { info: object }).info } }
      : (value as object)),
  } as never
}

const places: Readonly<Record<string, (given: unknown) => unknown>> = {
  contract: (given) => asyncapi(given as never, { info }),
  'contract.part': (given) => asyncapi({ ...contract, part: given } as never, { info }),
  options: (given) => asyncapi(contract, given as never),
  'servers.x more': (given) =>
    asyncapi(contract, optionsWith('servers.x', { host: 'h', protocol: 'mqtt', more: given })),
  'what toJsonSchema gives': (given) =>
    asyncapi(contract, { info, toJsonSchema: () => given } as never),
}
const options = [
  ...[
    'info',
    'info.description',
    'servers',
    'servers.x',
    'role',
    'role.send',
    'role.send[0]',
    'role.receive',
    'toJsonSchema',
  ],
  ...[
    'details',
    'details.a',
    'details.a.title',
    'details.a.examples',
    'details.a.examples[0]',
    'details.a.parameters',
  ],
]
const make = (place: string, given: unknown): unknown =>
  places[place]?.(given) ?? asyncapi(contract, optionsWith(place, given))

/** Undefined where it made a document, which is then text. */
function refusal(call: () => unknown): unknown {
  try {
    JSON.stringify(call())
    return undefined
  } catch (error) {
    return error
  }
}

it.each([...Object.keys(places), ...options])(
  '%s: makes a document, or says what is wrong',
  (place) => {
    for (const [name, given] of Object.entries(odd)) {
      const error = refusal(() => make(place, given))
      if (error === undefined) continue
      expect(error, `${name}: ${error}`).toBeInstanceOf(MqttError)
      const message = expect.stringMatching(/must|has|gives/)
      expect(error, name).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: expect.any(String),
        message,
      })
    }
  },
)

it.each<[place: string, given: unknown, message: string]>([
  ['servers', null, 'servers must be an object of servers by name'],
  ['servers', [], 'servers must be an object of servers by name'],
  ['role', [], 'role must be an object with send and receive'],
  ['role.send', 3, 'role.send must be a list of parts of the contract, or of their names'],
  ['role.send', 'a', 'role.send must be a list of parts of the contract, or of their names'],
  ['contract', cyclic, 'contract must not hold itself, as it does in self'],
  [
    'contract.part',
    3,
    'contract must hold channels, operations and contracts; part is not one of them',
  ],
  ['details.a.title', 3, 'details.a.title must be text'],
  ['details.a.examples', 3, 'details.a.examples must be a list of payloads'],
  [
    'details.a.parameters',
    3,
    'details.a.parameters must be an object of texts by the name of a parameter',
  ],
  ['info.description', 3, 'info.description must be text'],
])('names %s and its rule', (place, given, text) => {
  const [option, message] = [place.replace('.part', ''), expect.stringContaining(text)]
  expect(refusal(() => make(place, given))).toMatchObject({
    code: 'ERR_INVALID_OPTION',
    option,
    message,
  })
})

it.each(['#q', '#/definitions/q', '#/properties/a/~2'])(
  'refuses a schema whose $ref leads nowhere: %s',
  (to) => {
    const toJsonSchema = () => ({ type: 'object', properties: { a: { $ref: to } } })
    const message = expect.stringContaining(
      `$ref "${to}" must be '#' or a JSON Pointer to a part of the schema`,
    )
    const refused = { code: 'ERR_INVALID_OPTION', option: 'toJsonSchema', message }
    expect(refusal(() => asyncapi(contract, { info, toJsonSchema }))).toMatchObject(refused)
  },
)

it.each(['#', '#/definitions/a~1b', '#/definitions/c%20d', 'https://x.example/s.json'])(
  'keeps a $ref that leads somewhere: %s',
  (to) => {
    const toJsonSchema = () => ({
      properties: { a: { $ref: to } },
      definitions: { 'a/b': { type: 'null' }, 'c d': { type: 'null' } },
    })
    expect(refusal(() => asyncapi(contract, { info, toJsonSchema }))).toBeUndefined()
  },
)

it('takes one contract in two places', () => {
  expect(refusal(() => asyncapi({ x: contract, y: contract }, { info }))).toBeUndefined()
})
