/** What every packet type has in common: flags and length of the fixed header, fields that end too soon, bytes that are too many. */
import { type Bytes, fill, frame, stretched, vbi } from '../bytes.js'
import { type Book, partial, shown } from '../case.js'
import { firstByte, type PacketName, typeNumbers } from '../facts.js'

export interface Layout {
  readonly type: PacketName
  readonly first: number
  readonly fields: Readonly<Record<string, Bytes>>
  /** Number of fields without which the packet means something else, but is whole. Default: all. */
  readonly optionalFrom?: number
  /** The last field, where it may have any length. */
  readonly openEnd?: string
}

const bodyOf = ({ fields }: Layout): Bytes => Object.values(fields).flat()

/** Wrong flags: each bit alone, all of them, and those of PUBREL upside down [MQTT-2.1.3-1]. */
function addFlags(book: Book, layout: Layout): void {
  const { type } = layout
  const right = firstByte(type)
  for (const flips of [1, 2, 4, 8, 15, 6, 9]) {
    const first = right ^ flips
    book.addBroken(
      type,
      'flags of the fixed header',
      `${shown(first)} instead of ${shown(right)}`,
      frame(first, bodyOf(layout)),
    )
  }
}

/** Remaining Length in forms that it must not have, and forms of it that are not complete. */
export function addLengths(book: Book, layout: Layout): void {
  const { type, first } = layout
  const { add, bad } = book.of(type)
  const body = bodyOf(layout)
  const shortest = vbi(body.length).length
  for (let size = shortest + 1; size <= 4; size++) {
    bad(
      'Remaining Length not minimal',
      `${size} bytes for ${shortest}`,
      [first],
      stretched(body.length, size),
      body,
    )
  }
  bad('Remaining Length of five bytes', 'value of one', [first], stretched(body.length, 5), body)
  bad('Remaining Length of five bytes', 'nothing behind it', [first, 0xff, 0xff, 0xff, 0xff, 0x01])
  bad('Remaining Length of five bytes', 'fifth byte not sent', [first, 0x80, 0x80, 0x80, 0x80])
  if (body.length > 0) bad('Remaining Length not minimal', 'zero in two bytes', [first, 0x80, 0x00])
  add('incomplete: first byte alone', partial([first]))
  for (let size = 1; size <= 3; size++)
    add(
      `incomplete: ${size} of the bytes of Remaining Length`,
      partial([first, ...fill(size, 0x80)]),
    )
}

/** The packet stops inside or before each field, while its Remaining Length says that it is whole. */
export function addShort(book: Book, layout: Layout): void {
  const { type, first, fields, optionalFrom = Infinity, openEnd } = layout
  let before: Bytes = []
  Object.entries(fields).forEach(([name, bytes], index) => {
    if (name === openEnd) return
    for (let size = 0; size < bytes.length; size++) {
      // Where a field begins that may be missing, the packet is whole.
      if (size === 0 && index >= optionalFrom) continue
      const how = size === 0 ? `no ${name}` : `${size} of ${bytes.length} bytes of ${name}`
      book.addBroken(
        type,
        'body ends inside a field',
        how,
        frame(first, before, bytes.slice(0, size)),
      )
    }
    before = [...before, ...bytes]
  })
}

/** The packet has arrived in part, up to each field. */
export function addIncomplete(book: Book, layout: Layout): void {
  const { type, first, fields } = layout
  const whole = frame(first, bodyOf(layout))
  let at = 1 + vbi(bodyOf(layout).length).length
  for (const [name, bytes] of Object.entries(fields)) {
    book.add(type, `incomplete: up to ${name}`, partial(whole.slice(0, at)))
    if (bytes.length > 1)
      book.add(type, `incomplete: into ${name}`, partial(whole.slice(0, at + 1)))
    at += bytes.length
  }
}

function addLong(book: Book, layout: Layout): void {
  const { type, first } = layout
  book.addBroken(type, 'bytes behind the last field', 'one', frame(first, bodyOf(layout), [0]))
  book.addBroken(
    type,
    'bytes behind the last field',
    'many',
    frame(first, bodyOf(layout), fill(200, 0x26)),
  )
}

/** Sizes: most of what is allowed to this kind, and above it, with and without what the header announces. */
function addSizes(
  book: Book,
  type: PacketName,
  most: number,
  wholeOf: (size: number) => Bytes,
): void {
  const { bad } = book.of(type)
  const first = firstByte(type)
  const header = (size: number): Bytes => [first, ...vbi(size - 1 - vbi(size - 4).length)]
  const rule = 'packet above what its kind needs'
  bad(rule, 'by one byte, header alone', header(most + 1))
  bad(rule, 'by one byte, all of it', wholeOf(most + 1))
  bad(rule, 'with a Remaining Length of three bytes, header and a bit', [
    first,
    ...vbi(110_000),
    0,
    1,
  ])
  bad('packet above our Maximum Packet Size', 'with the largest Remaining Length', [
    first,
    0xff,
    0xff,
    0xff,
    0x7f,
  ])
  bad('packet above our Maximum Packet Size', 'by far, header alone', [first, ...vbi(2_000_000)])
}

/** A packet that no server sends: wrong from its first byte on, whatever follows. */
export function addForeign(book: Book, type: PacketName, whole: Bytes): void {
  const { bad } = book.of(type)
  const first = firstByte(type)
  const rule = 'packet that only a client sends'
  bad(rule, 'good for a server', whole)
  bad(rule, 'first byte alone', [first])
  // PINGREQ has no body at all.
  if (whole.length > 2) {
    bad(rule, 'up to the last byte', whole.slice(0, -1))
    bad(rule, 'without a body', [first, 0])
  }
  bad(rule, 'with a Remaining Length of five bytes', [first, 0xff, 0xff, 0xff, 0xff, 0x01])
  bad(rule, 'above our Maximum Packet Size', [first, 0xff, 0xff, 0xff, 0x7f])
  bad(rule, 'twice', whole, whole)
  for (const flips of [1, 2, 4, 8, 15]) {
    const wrong = first ^ flips
    bad('flags of the fixed header', `${shown(wrong)} instead of ${shown(first)}`, [
      wrong,
      ...whole.slice(1),
    ])
  }
}

export function addReserved(book: Book): void {
  const { add, bad } = book.of('reserved')
  for (let flags = 0; flags < 16; flags++) {
    const first = typeNumbers.reserved * 16 + flags
    bad('reserved packet type', `flags ${flags}, alone`, [first])
    if ([0, 2, 8, 15].includes(flags)) {
      bad('reserved packet type', `flags ${flags}, without a body`, [first, 0])
      bad('reserved packet type', `flags ${flags}, with a body`, frame(first, [0, 1, 0]))
    }
  }
  bad(
    'reserved packet type',
    'with a Remaining Length of five bytes',
    [0, 0xff, 0xff, 0xff, 0xff, 0x7f],
  )
  bad('reserved packet type', 'zeros', fill(64, 0))
  const speech = new TextEncoder()
  bad('flags of the fixed header', 'an answer of HTTP', [
    ...speech.encode('HTTP/1.1 400 Bad Request\r\n\r\n'),
  ])
  bad('flags of the fixed header', 'a greeting of SSH', [
    ...speech.encode('SSH-2.0-OpenSSH_9.9\r\n'),
  ])
  bad('flags of the fixed header', 'an alert of TLS', [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28])
  add(
    'incomplete: a greeting of SMTP, which begins like PUBLISH',
    partial([...speech.encode('220 mail.example ESMTP\r\n')]),
  )
}

/** All of these; `wholeOf` gives a packet of the size. */
export function addFraming(
  book: Book,
  layout: Layout,
  most: number,
  wholeOf: (size: number) => Bytes,
): void {
  addFlags(book, layout)
  addLengths(book, layout)
  addShort(book, layout)
  addIncomplete(book, layout)
  if (layout.openEnd === undefined) addLong(book, layout)
  addSizes(book, layout.type, most, wholeOf)
}
