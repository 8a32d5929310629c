/**
 * Reads a stream through a source of frames and writes down everything that its user can see, so that two sources can be compared.
 *
 * What is written down are copies. A chunk is overwritten as soon as it is its owner's again, so that a source that still reads it tells another
 * story.
 */
import { PUBLISH } from '../../../src/wire/constants.js'
import type { FrameSource, ReadWindow } from '../../../src/wire/frames.js'
import type { ProtocolVersion } from '../../../src/wire/packets.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'
import { byteForms, type Lend } from '../wire/byte-forms.js'
import { shownError } from '../wire/vector-files.js'

/** One delivery of bytes, and what happens while they are walked. */
export interface Delivery {
  readonly bytes: Uint8Array
  /** Read into the window of the source, where it has one. */
  readonly inPlace?: boolean
  /** Elsewhere: the kind of array, one of `byteForms`. Default: a plain one. */
  readonly form?: string
  /** Given with a view of the same bytes. */
  readonly viewed?: boolean
  /** As much of it as there is room for is put where the source wants the rest of a large payload. */
  readonly apart?: boolean
  /** After so many frames of this delivery the rest is kept, and the chunk overwritten; and again after as many, and one. */
  readonly keepAfter?: number
  /** Other settings hold from here on. */
  readonly change?: {
    readonly maximumPacketSize: number
    readonly protocolVersion: ProtocolVersion
  }
}

/** What there was to see: frames, what was held in between, the error. */
export type Story = readonly unknown[]

/** The PUBLISH in the view, with places counted from the start of its frame. */
function publishOf(view: PublishView, start: number): unknown {
  const identifiers: number[] = []
  view.forEachSubscriptionIdentifier((identifier) => identifiers.push(identifier))
  const {
    qos,
    dup,
    retain,
    packetId,
    topicAlias,
    userPropertyCount,
    subscriptionIdentifierCount,
    record,
    willDelay,
  } = view
  view.willDelay = false
  const places = [
    view.topicStart,
    view.topicEnd,
    view.propertiesStart,
    view.propertiesEnd,
    view.payloadStart,
    view.payloadEnd,
  ]
  return {
    ...{
      qos,
      dup,
      retain,
      packetId,
      topicAlias,
      userPropertyCount,
      subscriptionIdentifierCount,
      identifiers,
      willDelay,
    },
    places: places.map((place) => place - start),
    record: record?.name,
    topic: view.topic(),
    text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(
      view.bytes.subarray(view.topicStart, view.topicEnd),
    ),
    properties: view.properties(),
    payload: new Uint8Array(view.payload()),
  }
}

export type Telling = Generator<'begins' | 'reads' | 'keeps' | 'ends', Story>

/** Tells the stream. Stops at the first error, which is the last thing told. */
export function tell(
  source: FrameSource,
  deliveries: Iterable<Delivery>,
  window?: ReadWindow,
  topics?: TopicTable,
): Story {
  const telling = tellStepwise(source, deliveries, window, topics)
  for (;;) {
    const { done, value } = telling.next()
    if (done === true) return value
  }
}

/** The same, with room for other connections between any two steps: before and after each delivery, after each frame, while the rest is kept. */
export function* tellStepwise(
  source: FrameSource,
  deliveries: Iterable<Delivery>,
  window?: ReadWindow,
  topics = new TopicTable(),
): Telling {
  const story: unknown[] = []
  const view = new PublishView(true)
  try {
    for (const delivery of deliveries)
      yield* tellDelivery(source, delivery, window, story, () =>
        tellFrame(source, topics, view, story),
      )
  } catch (error) {
    story.push('error', shownError(error), source.unread)
    source.clear()
  }
  return story
}

function* tellDelivery(
  source: FrameSource,
  delivery: Delivery,
  window: ReadWindow | undefined,
  story: unknown[],
  frame: () => void,
): Telling {
  yield 'begins'
  const { change, keepAfter } = delivery
  if (change !== undefined) {
    source.maximumPacketSize = change.maximumPacketSize
    source.protocolVersion = change.protocolVersion
  }
  const { overwrite } = give(source, delivery, window, story)
  for (let count = 0; ; count++) {
    if (keepAfter !== undefined && count % (keepAfter + 1) === keepAfter) {
      story.push('kept', source.unread)
      source.keep()
      overwrite()
      story.push(source.unread)
      yield 'keeps'
    }
    if (!source.next()) break
    frame()
    yield 'reads'
  }
  overwrite()
  story.push('held', source.pending, source.cost, source.unread)
  yield 'ends'
  return story
}

/** Hands the bytes over; `overwrite` is for when they are their owner's again. */
function give(
  source: FrameSource,
  { bytes, inPlace = false, viewed = false, apart = false, form = 'a Uint8Array' }: Delivery,
  window: ReadWindow | undefined,
  story: unknown[],
): { overwrite: () => void } {
  const room = apart ? source.room : undefined
  const filled = Math.min(room?.length ?? 0, bytes.length)
  room?.set(bytes.subarray(0, filled))
  if (filled > 0) source.fill(filled)
  story.push('filled', filled)
  const rest = bytes.subarray(filled)
  if (filled > 0 && rest.length === 0) return { overwrite: () => {} }
  if (inPlace && window !== undefined) {
    const { bytes: chunk, data } = window
    chunk.set(rest)
    source.push(chunk, rest.length, data)
    return { overwrite: once(() => void chunk.fill(0xee, 0, rest.length)) }
  }
  const { bytes: chunk, back } = (byteForms[form] as () => Lend)()(rest)
  source.push(
    chunk,
    chunk.length,
    viewed ? new DataView(chunk.buffer, chunk.byteOffset, chunk.length) : undefined,
  )
  return { overwrite: once(back) }
}

function once(call: () => void): () => void {
  let called = false
  return () => {
    if (!called) call()
    called = true
  }
}

function tellFrame(
  source: FrameSource,
  topics: TopicTable,
  view: PublishView,
  story: unknown[],
): void {
  const { bytes, start, body, end, limit, unread, size, maximumPacketSize } = source
  story.push(new Uint8Array(bytes.subarray(start, end)), body - start, limit - end, unread, size)
  // What was read past can be known again by its first bytes.
  if (size > maximumPacketSize) story.push(source.apart && new Uint8Array(source.apart))
  if ((bytes[start] as number) >> 4 !== PUBLISH) return
  source.read(view, topics)
  story.push(publishOf(view, start))
}
