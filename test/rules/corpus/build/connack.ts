/** CONNACK (section 3.2): every reason code, Session Present, the method, the assigned identifier, and everything that can be wrong with one. */
import { type Bytes, block, frame, string } from '../bytes.js'
import { type Book, method, type Step, shown, step } from '../case.js'
import { anyReasonCode, reasonCodes } from '../facts.js'
import {
  authenticated,
  connack,
  dataProperty,
  methodProperty,
  pairProperty,
  reasonProperty,
} from '../packets.js'
import { addFraming, type Layout } from './framing.js'
import { addProperties, padding, type Shape } from './properties.js'

const most = 100_000
const type = 'connack'
const properties = block(reasonProperty('ok'))
const layout: Layout = {
  type,
  first: 0x20,
  fields: { 'Connect Acknowledge Flags': [0], 'Connect Reason Code': [0], properties: properties },
}
const shape: Shape = {
  type,
  wrap: (encoded) => frame(0x20, [0, 0], encoded),
  mean: ({ pairs, method: name, assigned, limit }) => ({
    kind: type,
    code: 0,
    ...(pairs !== undefined && { pairs }),
    ...(name !== undefined && { method: name }),
    ...(assigned !== undefined && { assigned }),
    ...(limit !== undefined && { limit }),
  }),
}

export function addConnack(book: Book): void {
  addFraming(book, layout, most, (size) => frame(0x20, [0, 0], block(padding(size - 9))))
  addProperties(book, shape)
  addCodes(book)
  addPresent(book)
  addMethods(book)
}

function addCodes(book: Book): void {
  const { add, bad } = book.of(type)
  const good = reasonCodes.connack ?? []
  for (const code of anyReasonCode) {
    if (!good.includes(code)) {
      bad('reason code of no or another packet', shown(code), frame(0x20, [0, code], block()))
      continue
    }
    add(`reason code ${shown(code)}`, connack(code))
    if (code === 0) continue
    add(
      `reason code ${shown(code)} with a reason and a user property`,
      connack(code, false, reasonProperty('no'), pairProperty()),
    )
    bad('Session Present in a refusal', shown(code), frame(0x20, [1, code], block()))
  }
  for (const code of [0x9c, 0x9d]) {
    add(
      `reason code ${shown(code)} with a server reference`,
      connack(code, false, [0x1c, ...string('other.example:1883 more.example')]),
    )
  }
  add(
    'refusal in the form of 3.1.1, unacceptable protocol version',
    step([0x20, 2, 0, 1], { kind: type, code: 0x84 }),
  )
  for (const code of [2, 3, 4, 5]) {
    bad('reason code of no or another packet', `the form of 3.1.1 with return code ${code}`, [
      0x20,
      2,
      0,
      code,
    ])
  }
}

function addPresent(book: Book): void {
  const { all, bad } = book.of(type)
  const present = { kind: type, code: 0, present: true } as const
  const of = (...encoded: Bytes[]): Bytes => frame(0x20, [1, 0], block(...encoded))
  all({
    'Session Present': connack(0, true),
    'Session Present and the method': step(of(methodProperty()), { ...present, method }),
    'Session Present and an assigned identifier': step(of([0x12, ...string('given')]), {
      ...present,
      assigned: true,
    }),
  })
  for (const flags of [2, 4, 8, 16, 32, 64, 128, 255, 3])
    bad('flags of CONNACK', shown(flags), frame(0x20, [flags, 0], block()))
  for (const flags of [2, 128])
    bad('flags of CONNACK', `${shown(flags)} in a refusal`, frame(0x20, [flags, 0x87], block()))
}

function addMethods(book: Book): void {
  const named = (code: number, name: string, ...encoded: Bytes[]): Step =>
    step(frame(0x20, [0, code], block(...encoded)), { kind: type, code, method: name })
  const own = methodProperty()
  const other = 'SCRAM-SHA-1'
  const rest = [[0x13, 0, 60], own, pairProperty(), [0x22, 0, 5], reasonProperty('in')]
  book.of(type).all({
    'the method': authenticated(),
    'the method and data': named(0, method, own, dataProperty(1, 2, 3)),
    'data before the method': named(0, method, dataProperty(9), own),
    'the method and empty data': named(0, method, own, dataProperty()),
    'another method and data': named(0, other, methodProperty(other), dataProperty(1)),
    'the method in other letters': named(0, 'Corpus', methodProperty('Corpus')),
    'the method and a blank': named(0, 'corpus ', methodProperty('corpus ')),
    'an empty method': named(0, '', methodProperty('')),
    'the method among everything that does not matter': named(0, method, ...rest),
    'refusal with the method': named(0x87, method, own),
    'refusal with another method': named(0x8c, 'x', methodProperty('x')),
    'as long as it may be': step(frame(0x20, [0, 0], block(padding(most - 9))), {
      kind: type,
      code: 0,
      pairs: 2,
    }),
  })
}
