/** SUBACK and UNSUBACK (sections 3.9, 3.11): every code, too few and too many of them, for identifiers that are known in some states only. */
import { type Bytes, block, fill, frame, u16 } from '../bytes.js'
import { type Book, ids, shown, step } from '../case.js'
import { anyReasonCode, reasonCodes } from '../facts.js'
import { pairProperty, reasonProperty, suback, unsuback } from '../packets.js'
import { addFraming, type Layout } from './framing.js'
import { addProperties, padding, type Shape } from './properties.js'

const most = 100_000
type AnswerKind = 'suback' | 'unsuback'
const firsts = { suback: 0x90, unsuback: 0xb0 }
const answers = { suback, unsuback }

export function addAnswers(book: Book): void {
  for (const kind of ['suback', 'unsuback'] as const) addKind(book, kind)
}

function addKind(book: Book, kind: AnswerKind): void {
  const first = firsts[kind]
  const id = kind === 'suback' ? ids.subscribing : ids.unsubscribing
  const layout: Layout = {
    type: kind,
    first,
    fields: {
      'packet identifier': u16(id),
      properties: block(reasonProperty('ok')),
      'reason codes': [0, 0],
    },
    openEnd: 'reason codes',
  }
  const shape: Shape = {
    type: kind,
    continues: true,
    wrap: (encoded) => frame(first, u16(id), encoded, [0, 0]),
    mean: ({ pairs }) => ({ kind, id, count: 2, ...(pairs !== undefined && { pairs }) }),
  }
  addFraming(book, layout, most, (size) => frame(first, u16(id), block(), fill(size - 7, 0)))
  addProperties(book, shape)
  book.add(
    kind,
    'as long as it may be, with two codes',
    step(frame(first, u16(id), block(padding(most - 11)), [0, 0]), {
      kind,
      id,
      count: 2,
      pairs: 2,
    }),
  )
  addCodes(book, kind, id)
  addIdentifiers(book, kind, id)
}

function addCodes(book: Book, kind: AnswerKind, id: number): void {
  const { add, bad, all, allBad } = book.of(kind)
  const good = reasonCodes[kind] ?? []
  const answer = answers[kind]
  const raw = (...codes: number[]): Bytes => frame(firsts[kind], u16(id), block(), codes)
  const rule = 'reason code of no or another packet'
  for (const code of anyReasonCode) {
    if (!good.includes(code)) {
      bad(rule, shown(code), raw(0, code))
      continue
    }
    const twice = answer(id, [code, code])
    const inUse = step(twice.bytes, { kind, id, count: 2, inUse: true })
    const named = `code ${shown(code)}`
    all({
      [`${named} twice`]: code === 0x91 ? inUse : twice,
      [`${named} first, success second`]: answer(id, [code, 0], pairProperty()),
      [`success first, ${named} second`]: answer(id, [0, code], reasonProperty('so')),
      [`${named} alone, for nothing`]: answer(ids.fresh, [code]),
    })
  }
  allBad(rule, { 'first of two': raw(0x7f, 0), 'last of ten': raw(...fill(9, 0), 0x03) })
  add('every code there is', answer(id, good))
}

function addIdentifiers(book: Book, kind: AnswerKind, id: number): void {
  const { add, allBad } = book.of(kind)
  const answer = answers[kind]
  const others: Readonly<Record<string, number>> = {
    'our publish': ids.ours,
    'the other kind of request': kind === 'suback' ? ids.unsubscribing : ids.subscribing,
    'their QoS 1 message': ids.theirs1,
    'nothing, the first there is': 1,
    'nothing, the last there is': 65_535,
  }
  for (const [what, other] of Object.entries(others)) {
    add(`for ${what}`, answer(other, [0, 0]))
    add(`for ${what}, refused`, answer(other, [0x87, 0x87]))
  }
  for (const count of [1, 3, 4, 100, 1000]) {
    add(`${count} codes`, answer(id, fill(count, 0)))
    add(`${count} refusals`, answer(id, fill(count, 0x80)))
  }
  add('the same twice', answer(id, [0, 0]), answer(id, [0, 0]))
  const raw = (packetId: number, properties: Bytes, codes: Bytes): Bytes =>
    frame(firsts[kind], u16(packetId), properties, codes)
  allBad('no reason codes', {
    'without properties': raw(id, block(), []),
    'with properties': raw(id, block(pairProperty()), []),
    'for nothing': raw(ids.fresh, block(), []),
  })
  allBad('packet identifier 0', {
    'without properties': raw(0, block(), [0]),
    'with properties': raw(0, block(pairProperty()), [0, 0]),
  })
}
