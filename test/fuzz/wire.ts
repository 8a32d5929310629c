/**
 * Fuzz target `wire`: any bytes, whole or in pieces, decode to the same packets or raise the same WireError; what decodes can be encoded again.
 *
 * The first byte chooses version, sender and packet limit, the second the pieces, the rest is the stream. Work is linear in the bytes, and an
 * incomplete packet holds no more than was sent. Scanner and the scanner in WebAssembly tell the same. Deterministic; it must never read a clock.
 */
import { decodeFrame } from '../../src/wire/decode.js'
import { Framer } from '../../src/wire/framer.js'
import {
  Decoder,
  decode,
  encode,
  type Packet,
  type PacketInput,
  Scanner,
  WireError,
} from '../../src/wire/index.js'
import { PublishView } from '../../src/wire/publish.js'
import type { Defect } from '../support/defective.js'
import { always, differs, instantiate, tellFramer, tellScanner } from '../unit/wasm/scanner.js'
import type { Delivery } from '../unit/wasm/story.js'
import { steps } from './counters.js'
import {
  check,
  checkAlike,
  checkMost,
  checkSame,
  difference,
  guarded,
  OracleError,
  shownError,
} from './oracle.js'
import { pieces, Tape } from './tape.js'

interface Setting {
  readonly protocolVersion: 4 | 5
  readonly from: 'server' | 'client'
  readonly maximumPacketSize: number
}

interface Story {
  readonly packets: Packet[]
  readonly error: WireError | undefined
  readonly pending: number
}

const limits = [2000, 268_435_460, 127, 24] as const
const kinds = ['malformed', 'protocol', 'too-large']
/** Steps for each byte, and for each call: half as many again as were ever seen. */
const stepsPerByte = 32
const stepsPerCall = 120

/** One input. @param defect what is wrong with the codec, which has to be found @throws OracleError */
export function run(bytes: Uint8Array, defect?: Defect): void {
  const tape = new Tape(bytes)
  const flags = tape.byte()
  const seed = tape.byte()
  const stream = tape.rest()
  const setting: Setting = {
    protocolVersion: flags & 1 ? 4 : 5,
    from: flags & 2 ? 'client' : 'server',
    maximumPacketSize: limits[(flags >> 2) & 3] as number,
  }
  const sound = read(() => [stream.slice()], setting)
  const whole = {
    ...sound,
    packets: sound.packets.map(defect?.make().decoded ?? ((packet) => packet)),
  }
  for (const pieceSeed of stream.length < 64 ? [seed, -1] : [seed]) {
    const inPieces = read(() => pieces(stream, pieceSeed), setting)
    checkAlike(shown(whole), shown(inPieces), 'wire-chunks', 'in pieces')
  }
  checkCursor(whole, [stream], setting)
  checkCursor(whole, pieces(stream, seed), setting)
  checkSingle(stream, whole, setting)
  checkFixpoints(whole.packets, setting)
  if (setting.from === 'server') {
    checkViews(stream, whole, setting)
    checkScanner(stream, seed, setting)
  }
}

interface Walk extends Story {
  /** What it cost, and what is wrong with that. */
  readonly excess: string | undefined
}

// What the Decoder says of a stream, and the promises that it keeps meanwhile. Tables that are built on first use cost nothing the second time.
function read(chunks: () => Iterable<Uint8Array>, setting: Setting): Story {
  const story = walk(chunks(), setting)
  const excess = story.excess === undefined ? undefined : walk(chunks(), setting).excess
  check(excess === undefined, 'wire-steps', () => excess ?? '')
  return story
}

function walk(chunks: Iterable<Uint8Array>, setting: Setting): Walk {
  const decoder = new Decoder(setting)
  const packets: Packet[] = []
  const before = steps()
  let length = 0
  let calls = 0
  let error: WireError | undefined
  for (const chunk of chunks) {
    length += chunk.length
    calls += 1
    error = push(decoder, chunk, packets)
    // The chunk is ours again.
    chunk.fill(0xee)
    if (error !== undefined) break
    checkMost(
      decoder.pending,
      Math.min(length, setting.maximumPacketSize),
      'wire-memory',
      'bytes held',
    )
  }
  const taken = steps() - before
  if (error !== undefined) checkError(decoder, error, setting)
  const most = length * stepsPerByte + calls * stepsPerCall
  const excess = taken > most ? `${taken} steps for ${length} bytes in ${calls} pieces` : undefined
  return { packets, error, pending: error === undefined ? decoder.pending : 0, excess }
}

function push(decoder: Decoder, chunk: Uint8Array, packets: Packet[]): WireError | undefined {
  try {
    for (const packet of decoder.push(chunk)) packets.push(packet)
    return undefined
  } catch (thrown) {
    if (thrown instanceof WireError) return thrown
    throw new OracleError('wire-throw', shownError(thrown), thrown)
  }
}

// Complete, the peer's fault, and for good.
function checkError(decoder: Decoder, error: WireError, { maximumPacketSize }: Setting): void {
  const { kind, fault, reasonCode, reasonName, offset } = error
  check(kinds.includes(kind), 'wire-error', () => `kind ${kind}`)
  const isComplete = fault === 'remote' && reasonCode !== undefined && reasonName !== undefined
  check(isComplete, 'wire-error', () => `${kind} lacks its reason`)
  const isWithin = Number.isInteger(offset) && offset >= 0 && offset <= maximumPacketSize
  check(isWithin, 'wire-error', () => `offset ${offset}`)
  checkSame(
    push(decoder, Uint8Array.of(0xd0, 0), []),
    error,
    'wire-error',
    'the error of the next time',
  )
}

/** What can be compared of a story. */
const shown = ({ packets, error, pending }: Story): unknown => ({
  packets,
  error: told(error),
  pending,
})

// `Scanner` is the Decoder without objects: the same packets, the same error, and topics that it knows again are what they are.
function checkCursor(whole: Story, chunks: Iterable<Uint8Array>, setting: Setting): void {
  const scanner = new Scanner(setting)
  const packets: Packet[] = []
  const topics = new Map<string, unknown>()
  let error: WireError | undefined
  try {
    for (const chunk of chunks) {
      const window = chunk.slice()
      scanner.push(window)
      while (scanner.next()) {
        packets.push(scanner.packet())
        const record = scanner.type === 'publish' ? scanner.publish.record : undefined
        if (record === undefined) continue
        const known = topics.get(record.name) ?? record
        const isKnown = known === record || record.name.length > 300
        check(isKnown, 'wire-cursor', () => `two records for ${JSON.stringify(record.name)}`)
        topics.set(record.name, known)
      }
      window.fill(0xee)
    }
  } catch (thrown) {
    if (!(thrown instanceof WireError))
      throw thrown instanceof OracleError
        ? thrown
        : new OracleError('wire-throw', shownError(thrown), thrown)
    error = thrown
  }
  const story = { packets, error, pending: error === undefined ? scanner.pending : 0 }
  checkAlike(shown(whole), shown(story), 'wire-cursor', 'Scanner and Decoder')
}

function told(error: WireError | undefined): unknown {
  return error === undefined
    ? undefined
    : [error.kind, error.code, error.reasonCode, error.message, error.offset]
}

// `decode` is the Decoder for one packet.
function checkSingle(stream: Uint8Array, whole: Story, setting: Setting): void {
  let single: Packet | WireError
  try {
    single = decode(stream, setting)
  } catch (thrown) {
    if (!(thrown instanceof WireError))
      throw new OracleError('wire-throw', shownError(thrown), thrown)
    single = thrown
  }
  const { packets, error, pending } = whole
  if (!(single instanceof WireError)) {
    const alone = { packets: [single], error: undefined, pending: 0 }
    return checkAlike(shown(alone), shown(whole), 'wire-single', 'decode and Decoder')
  }
  const { kind, message, reasonCode } = single
  const isFirst = packets.length === 0
  // Or there are bytes after the packet, which only `decode` minds.
  const isMore = packets.length > 1 || pending > 0 || error !== undefined
  const isIncomplete =
    isFirst && error === undefined && pending === stream.length && reasonCode === undefined
  const isSame = isFirst ? kind === error?.kind || message === 'bytes after the packet' : isMore
  check(
    kind === 'incomplete' ? isIncomplete : isSame,
    'wire-single',
    () => `decode says ${message}`,
  )
}

// A CONNECT sets the version of what follows.
function checkFixpoints(packets: readonly Packet[], { protocolVersion, from }: Setting): void {
  let version = protocolVersion
  for (const packet of packets) {
    if (packet.type === 'connect') version = packet.protocolVersion
    checkFixpoint(packet, { protocolVersion: version, from })
  }
}

function checkFixpoint(packet: Packet, options: Pick<Setting, 'protocolVersion' | 'from'>): void {
  guarded('wire-fixpoint', `${packet.type} that was decoded:`, () => {
    const bytes = encode(packet as PacketInput, options)
    const again = decode(bytes, options)
    checkAlike(packet, again, 'wire-fixpoint', packet.type)
    checkAlike(bytes, encode(again as PacketInput, options), 'wire-fixpoint', 'encoded in two ways')
  })
}

// The client reads PUBLISH in place: it must see there what the packet says.
function checkViews(
  stream: Uint8Array,
  whole: Story,
  { protocolVersion, maximumPacketSize }: Setting,
): void {
  const framer = new Framer({ from: 'server', protocolVersion, maximumPacketSize })
  const view = new PublishView()
  framer.push(stream)
  for (const packet of whole.packets) {
    if (!framer.next()) throw new OracleError('wire-view', 'the framer finds fewer packets')
    const { bytes, start, body, end } = framer
    checkAlike(decodeFrame(framer, 'server'), packet, 'wire-view', 'another packet')
    if (packet.type !== 'publish') continue
    view.read(bytes, start, body, end, protocolVersion, 'server')
    const { topicAlias = 0, userProperties = [], subscriptionIdentifiers = [] } = packet.properties
    const { qos, dup, retain, topic, payload, packetId = 0 } = packet
    const expected = [
      qos,
      dup,
      retain,
      topic,
      payload,
      packetId,
      topicAlias,
      userProperties.length,
      subscriptionIdentifiers,
    ]
    const identifiers: number[] = []
    view.forEachSubscriptionIdentifier((identifier) => identifiers.push(identifier))
    const head = [view.qos, view.dup, view.retain, view.topic(), view.payload(), view.packetId]
    const seen = [...head, view.topicAlias, view.userPropertyCount, identifiers]
    checkAlike(expected, seen, 'wire-view', 'PUBLISH in place, its QoS, DUP, RETAIN and so on')
  }
}

let memory: ReturnType<typeof instantiate> | undefined

// The scanner in WebAssembly tells the same as the framer, in other pieces, some read into its window, some kept in between.
function checkScanner(stream: Uint8Array, seed: number, setting: Setting): void {
  memory ??= instantiate()
  const deliveries: Delivery[] = []
  for (const bytes of pieces(stream, seed ^ 0xff)) {
    const chance = (seed >> (deliveries.length & 7)) & 1
    deliveries.push({
      bytes,
      inPlace: chance === 0,
      ...(chance === 0 ? {} : { keepAfter: seed & 3 }),
    })
  }
  const found = differs(
    tellFramer(setting, deliveries),
    tellScanner(memory, setting, deliveries, always),
  )
  check(
    found === undefined,
    'wire-scanner',
    () => `${difference(found?.one, found?.other)} at ${found?.at}`,
  )
}
