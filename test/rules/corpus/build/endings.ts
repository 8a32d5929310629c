/** PINGRESP, DISCONNECT and AUTH (sections 3.13 to 3.15): those that say that all is well, that it is over, and who we are. */
import { type Bytes, block, fill, frame, string, text } from '../bytes.js'
import { type Book, method, type Step, shown, step } from '../case.js'
import { anyReasonCode, reasonCodes } from '../facts.js'
import {
  auth,
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
