/**
 * CONNACK (section 3.2): every reason code, Session Present, the method, the assigned identifier, and everything that can be wrong with one.
 * PINGRESP, DISCONNECT and AUTH (sections 3.13 to 3.15).
 */
import { type Bytes, block, fill, frame, string, text } from '../bytes.js'
import { type Book, method, type Step, shown, step } from '../case.js'
import { anyReasonCode, reasonCodes } from '../facts.js'
import {
  auth,
  authenticated,
  connack,
  dataProperty,
  disconnect,
  goodbye,
  methodProperty,
  pairProperty,
  pingresp,
  reasonProperty,
} from '../packets.js'
import { counts } from '../states.js'
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

export function addPingresp(book: Book): void {
  const { add, bad } = book.of('pingresp')
  const layout: Layout = { type: 'pingresp', first: 0xd0, fields: {} }
  addFraming(book, layout, 10_000, (size) => frame(0xd0, fill(size - 3, 0)))
  bad('bytes behind the last field', 'as many as this kind may have', frame(0xd0, fill(9_997, 0)))
  bad('bytes behind the last field', 'which look like another PINGRESP', frame(0xd0, [0xd0, 0x00]))
  bad(
    'bytes behind the last field',
    'which look like properties',
    frame(0xd0, block(reasonProperty('pong'))),
  )
  for (const count of [1, 2, 3, 10, 200])
    add(`unasked, ${count} in a row`, ...Array.from({ length: count }, pingresp))
}

export function addDisconnect(book: Book): void {
  const type = 'disconnect'
  const { add, bad } = book.of(type)
  const layout: Layout = {
    type,
    first: 0xe0,
    fields: { 'reason code': [0x8b], properties: block(reasonProperty('bye')) },
    optionalFrom: 0,
  }
  const shape: Shape = {
    type,
    wrap: (encoded) => frame(0xe0, [0x8b], encoded),
    mean: ({ pairs }) => ({ kind: type, code: 0x8b, ...(pairs !== undefined && { pairs }) }),
  }
  addFraming(book, layout, most, (size) => frame(0xe0, [0x8b], block(padding(size - 8))))
  addProperties(book, shape)
  add('without a body', goodbye())
  add(
    'as long as it may be',
    step(frame(0xe0, [0x8b], block(padding(most - 8))), { kind: type, code: 0x8b, pairs: 2 }),
  )
  const good = reasonCodes.disconnect ?? []
  for (const code of anyReasonCode) {
    if (!good.includes(code)) {
      bad('reason code of no or another packet', shown(code), frame(0xe0, [code]))
      bad(
        'reason code of no or another packet',
        `${shown(code)} and a Property Length`,
        frame(0xe0, [code], block()),
      )
      continue
    }
    add(`reason code ${shown(code)}`, step(frame(0xe0, [code]), { kind: type, code }))
    add(`reason code ${shown(code)} and no properties`, disconnect(code))
    add(
      `reason code ${shown(code)}, a reason and a user property`,
      disconnect(code, reasonProperty('so'), pairProperty()),
    )
  }
  for (const code of [0x9c, 0x9d]) {
    add(
      `reason code ${shown(code)} with a server reference`,
      disconnect(code, [0x1c, ...string('other.example')]),
    )
  }
}

export function addAuth(book: Book): void {
  const type = 'auth'
  const layout: Layout = {
    type,
    first: 0xf0,
    fields: { 'reason code': [0x18], properties: block(methodProperty(), dataProperty(1)) },
    optionalFrom: 0,
  }
  const shape: Shape = {
    type,
    always: [0x15, methodProperty()],
    wrap: (encoded) => frame(0xf0, [0x18], encoded),
    mean: ({ pairs, method: name = method }) => ({
      kind: type,
      code: 0x18,
      method: name,
      ...(pairs !== undefined && { pairs }),
    }),
  }
  addFraming(book, layout, most, (size) =>
    frame(0xf0, [0x18], block(methodProperty(), padding(size - 17))),
  )
  addProperties(book, shape)
  book.add(
    type,
    'as long as it may be',
    step(frame(0xf0, [0x18], block(methodProperty(), padding(most - 17))), {
      kind: type,
      code: 0x18,
      method,
      pairs: 2,
    }),
  )
  addAuthCodes(book)
  addDances(book)
}

function addAuthCodes(book: Book): void {
  const { bad, all, allBad } = book.of('auth')
  for (const code of anyReasonCode) {
    if (reasonCodes.auth?.includes(code)) continue
    const bytes = frame(0xf0, [code], block(methodProperty()))
    bad('reason code of no or another packet', shown(code), bytes)
  }
  bad('AUTH without a method', 'no body at all', frame(0xf0))
  for (const code of [0x00, 0x18]) {
    const named = shown(code)
    const of = (...encoded: Bytes[]): Bytes => frame(0xf0, [code], block(...encoded))
    const mean = (name: string) => ({ kind: 'auth', code, method: name }) as const
    allBad('AUTH without a method', {
      [`${named} alone`]: frame(0xf0, [code]),
      [`${named} and no properties`]: of(),
      [`${named} and data`]: of(dataProperty(1)),
      [`${named}, a reason and a user property`]: of(reasonProperty('so'), pairProperty()),
    })
    const [reason, pair] = [reasonProperty('so'), pairProperty()]
    all({
      [`${named} and the method`]: auth(code),
      [`${named}, the method and data`]: auth(code, dataProperty(1, 2, 3)),
      [`${named}, the method and much data`]: auth(code, dataProperty(...fill(40_000, 1))),
      [`${named}, the method, a reason and user properties`]: auth(code, reason, pair, pair),
      [`${named}, data before the method`]: step(
        of(dataProperty(...text('hi')), methodProperty()),
        mean(method),
      ),
    })
    for (const other of ['', 'Corpus', 'corpus2', 'corpu', 'SCRAM-SHA-256', 'PLAIN'])
      all({ [`${named} and the method '${other}'`]: step(of(methodProperty(other)), mean(other)) })
  }
}

function addDances(book: Book): void {
  const { add, all } = book.of('auth')
  const rounds = (count: number): Step[] =>
    Array.from({ length: count }, (_, index) => auth(0x18, dataProperty(index)))
  for (const count of [2, 3, 8]) add(`${count} rounds`, ...rounds(count))
  for (const count of [1, 2, 5]) add(`${count} rounds, then success`, ...rounds(count), auth(0))
  const other = { kind: 'auth', code: 0x18, method: 'x' } as const
  all({
    'success twice': [auth(0), auth(0)],
    'success, then an exchange of the server, then success': [auth(0), auth(0x18), auth(0)],
    'success, then another method': [
      auth(0),
      step(frame(0xf0, [0x18], block(methodProperty('x'))), other),
    ],
    // One round has gone before in the state before CONNACK, none in the other.
    'as many rounds as we bear before CONNACK': rounds(counts.rounds - 1),
    'as many rounds as we bear on an open connection': rounds(counts.rounds),
    'one round more than we bear': rounds(counts.rounds + 1),
    'far more rounds than we bear': rounds(100),
    'as many rounds as we bear, then success': [
      ...rounds(counts.rounds - 1),
      auth(0, dataProperty(7)),
    ],
  })
}
