/** PUBACK, PUBREC, PUBREL and PUBCOMP (sections 3.4 to 3.7): each length, each reason code, for identifiers that are known in some states only. */
import { type Bytes, block, frame, u16 } from '../bytes.js'
import { type Book, ids, shown, step } from '../case.js'
import { anyReasonCode, reasonCodes } from '../facts.js'
import {
  type AckKind,
  ack,
  ackFirst,
  fullAck,
  pairProperty,
  reasonedAck,
  reasonProperty,
} from '../packets.js'
import { addFraming, type Layout } from './framing.js'
import { addProperties, padding, type Shape } from './properties.js'

const most = 10_000
const kinds: readonly AckKind[] = ['puback', 'pubrec', 'pubrel', 'pubcomp']

const tellingIds: Readonly<Record<string, number>> = {
  'our publish': ids.ours,
  'a SUBSCRIBE': ids.subscribing,
  'an UNSUBSCRIBE': ids.unsubscribing,
  'their QoS 1 message': ids.theirs1,
  'their QoS 2 message': ids.theirs2,
  nothing: ids.fresh,
  'nothing, the first there is': 1,
  'nothing, the last there is': 65_535,
}

export function addAcks(book: Book): void {
  for (const kind of kinds) addKind(book, kind)
}

function addKind(book: Book, kind: AckKind): void {
  const first = ackFirst[kind]
  const id = kind === 'pubrel' ? ids.theirs2 : ids.ours
  const layout: Layout = {
    type: kind,
    first,
    fields: {
      'packet identifier': u16(id),
      'reason code': [0],
      properties: block(reasonProperty('ok')),
    },
    optionalFrom: 1,
  }
  const shape: Shape = {
    type: kind,
    wrap: (encoded) => frame(first, u16(id), [0], encoded),
    mean: ({ pairs }) => ({ kind, id, code: 0, ...(pairs !== undefined && { pairs }) }),
  }
  addFraming(book, layout, most, (size) => frame(first, u16(id), [0], block(padding(size - 8))))
  book.add(
    kind,
    'as long as it may be',
    step(frame(first, u16(id), [0], block(padding(most - 8))), { kind, id, code: 0, pairs: 1 }),
  )
  addProperties(book, shape)
  addCodes(book, kind, id)
  addIdentifiers(book, kind)
}

function addCodes(book: Book, kind: AckKind, id: number): void {
  const { bad, all } = book.of(kind)
  const rule = 'reason code of no or another packet'
  for (const code of anyReasonCode) {
    const named = `reason code ${shown(code)}`
    if (!reasonCodes[kind]?.includes(code))
      bad(rule, shown(code), frame(ackFirst[kind], u16(id), [code]))
    else
      all({
        [named]: reasonedAck(kind, id, code),
        [`${named} and no properties`]: fullAck(kind, id, code),
        [`${named}, a reason and a user property`]: fullAck(
          kind,
          id,
          code,
          reasonProperty('so'),
          pairProperty(),
        ),
      })
  }
  bad(rule, '0xff and a Property Length', frame(ackFirst[kind], u16(id), [0xff], block()))
}

function addIdentifiers(book: Book, kind: AckKind): void {
  const { all, allBad } = book.of(kind)
  const refusal = kind === 'puback' || kind === 'pubrec' ? 0x97 : 0x92
  for (const [what, id] of Object.entries(tellingIds)) {
    const refused = fullAck(kind, id, refusal, pairProperty())
    all({
      [`for ${what}`]: ack(kind, id),
      [`for ${what}, with ${shown(refusal)} and a Property Length`]: refused,
      [`for ${what}, twice`]: [ack(kind, id), ack(kind, id)],
    })
  }
  const zero = (...rest: Bytes[]): Bytes => frame(ackFirst[kind], u16(0), ...rest)
  allBad('packet identifier 0', {
    alone: zero(),
    'with a reason code': zero([0]),
    'with properties': zero([0], block(pairProperty())),
  })
}
