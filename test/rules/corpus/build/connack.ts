/** CONNACK (section 3.2): every reason code, Session Present, the method, the assigned identifier, and everything that can be wrong with one. */
import { type Bytes, block, frame, string } from '../bytes.js'
import { type Book, method, shown, step } from '../case.js'
import { anyReasonCode, reasonCodes } from '../facts.js'
import {
  authenticated,
  connack,
  dataProperty,
  methodProperty,
  pairProperty,
  reasonProperty,
} from '../packets.js'
import {
  addFlags,
  addIncomplete,
  addLengths,
  addLong,
  addShort,
  addSizes,
  type Layout,
} from './framing.js'
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
  addFlags(book, layout)
  addLengths(book, layout)
  addShort(book, layout)
  addIncomplete(book, layout)
  addLong(book, layout)
  addSizes(book, type, most, (size) => frame(0x20, [0, 0], block(padding(size - 9))))
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
  const { add, bad } = book.of(type)
  add('Session Present', connack(0, true))
  add(
    'Session Present and the method',
    step(frame(0x20, [1, 0], block(methodProperty())), {
      kind: type,
      code: 0,
      present: true,
      method,
    }),
  )
  add(
    'Session Present and an assigned identifier',
    step(frame(0x20, [1, 0], block([0x12, ...string('given')])), {
      kind: type,
      code: 0,
      present: true,
      assigned: true,
    }),
  )
  for (const flags of [2, 4, 8, 16, 32, 64, 128, 255, 3]) {
    bad('flags of CONNACK', shown(flags), frame(0x20, [flags, 0], block()))
  }
  for (const flags of [2, 128])
    bad('flags of CONNACK', `${shown(flags)} in a refusal`, frame(0x20, [flags, 0x87], block()))
}

function addMethods(book: Book): void {
  const { add } = book.of(type)
  const accepted = (how: string, named: string | undefined, ...encoded: Bytes[]): void =>
    add(
      how,
      step(frame(0x20, [0, 0], block(...encoded)), {
        kind: type,
        code: 0,
        ...(named !== undefined && { method: named }),
      }),
    )
  add('the method', authenticated())
  accepted('the method and data', method, methodProperty(), dataProperty(1, 2, 3))
  accepted('data before the method', method, dataProperty(9), methodProperty())
  accepted('the method and empty data', method, methodProperty(), dataProperty())
  accepted('another method and data', 'SCRAM-SHA-1', methodProperty('SCRAM-SHA-1'), dataProperty(1))
  accepted('the method in other letters', 'Corpus', methodProperty('Corpus'))
  accepted('the method and a blank', 'corpus ', methodProperty('corpus '))
  accepted('an empty method', '', methodProperty(''))
  accepted(
    'the method among everything that does not matter',
    method,
    [0x13, 0, 60],
    methodProperty(),
    pairProperty(),
    [0x22, 0, 5],
    reasonProperty('in'),
  )
  add(
    'refusal with the method',
    step(frame(0x20, [0, 0x87], block(methodProperty())), { kind: type, code: 0x87, method }),
  )
  add(
    'refusal with another method',
    step(frame(0x20, [0, 0x8c], block(methodProperty('x'))), {
      kind: type,
      code: 0x8c,
      method: 'x',
    }),
  )
  add(
    'as long as it may be',
    step(frame(0x20, [0, 0], block(padding(most - 9))), { kind: type, code: 0, pairs: 2 }),
  )
}
