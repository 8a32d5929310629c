/**
 * What our codec makes of a packet: at once, in every form of memory, in chunks of any size, among other packets, and written again.
 *
 * Memory that was given is written over as soon as the API says that it is the caller's again: what still reads it shows. It must never look at what
 * other codecs say.
 */
import { loadScanner } from '../../../src/wasm/index.js'
import {
  Decoder,
  decode,
  Encoder,
  encode,
  type Packet,
  type PacketInput,
  Scanner,
  WireError,
} from '../../../src/wire/index.js'
import { byteForms, formNames, inForm, type Lend } from '../../unit/wire/byte-forms.js'
import type { Random } from '../../world/random.js'
import type { Case } from './generate.js'
import { type Fields, normalized } from './normalize.js'

/** A packet, or why there is none. */
export type Ours =
  | { readonly packet: Packet; readonly fields: Fields; readonly error?: undefined }
  | { readonly error: string; readonly packet?: undefined; readonly fields?: undefined }

type Setting = Pick<Case, 'version' | 'from'>

const optionsOf = ({ version, from }: Setting): ConstructorParameters<typeof Decoder>[0] => ({
  protocolVersion: version,
  from,
})

function shown(error: unknown): string {
  if (!(error instanceof WireError)) throw error
  return `${error.kind} at ${error.offset}: ${error.message}`
}

/** What `decode` says. */
export function decodeOurs(bytes: Uint8Array, setting: Setting): Ours {
  try {
    const packet = decode(bytes, optionsOf(setting))
    return { packet, fields: normalized(packet) as Fields }
  } catch (error) {
    // What is no WireError has no place here.
    return { error: error instanceof WireError ? shown(error) : `throws ${String(error)}` }
  }
}

type Reader = {
  readonly push: (chunk: Uint8Array) => Iterable<Packet>
  readonly held: () => number
}

function decoder(setting: Setting): Reader {
  const one = new Decoder(optionsOf(setting))
  return { push: (chunk) => one.push(chunk), held: () => one.pending }
}

const webAssembly = await loadScanner()

/** With WebAssembly for some of what servers send. */
function scanner(setting: Setting, random: Random): Reader {
  const finds = setting.from === 'server' && random.chance(0.5) ? webAssembly : undefined
  const one = new Scanner({ ...optionsOf(setting), ...(finds && { scanner: finds }) })
  return {
    *push(chunk) {
      one.push(chunk)
      while (one.next()) yield one.packet()
    },
    held: () => one.pending,
  }
}

/** Every packet of a stream, then its error or how much is held; told when all chunks have been written over. */
function story(reader: Reader, chunks: Iterable<Uint8Array>): string {
  const packets: Packet[] = []
  let end: string
  try {
    for (const chunk of chunks) for (const packet of reader.push(chunk)) packets.push(packet)
    end = `${reader.held()} bytes held`
  } catch (error) {
    end = shown(error)
  }
  return JSON.stringify([...packets.map(normalized), end])
}

/** Pieces of random sizes, down to one byte, and larger ones of what is long. */
function* cut(bytes: Uint8Array, random: Random): Generator<Uint8Array> {
  const drips = random.chance(0.25) && bytes.length < 2000
  const most =
    bytes.length > 100_000 ? 200_000 : bytes.length > 4000 ? 2047 : random.pick([3, 20, 80])
  for (let at = 0; at < bytes.length; ) {
    const size = drips ? 1 : random.between(1, most)
    yield bytes.subarray(at, at + size)
    at += size
  }
}

/** Memory that takes the system a while to make. */
const costly = new Set(['another realm', 'shared memory', 'memory that can grow'])
const cheap = formNames.filter((form) => !costly.has(form))

/** From here on a form that is used again would copy more than the packet. */
const large = 5000

const lenders = new Map<string, Lend>(
  formNames.map((form) => [form, (byteForms[form] as () => Lend)()]),
)

/** A form of memory, seldom a costly one. */
function pickForm(random: Random, size: number): string {
  if (size > large) return random.pick(['a Uint8Array at an offset', 'a Buffer at an offset'])
  return random.pick(random.chance(0.02) ? formNames : cheap)
}

/** What a check says, or what was thrown in it: neither may be. */
function orThrown(check: () => string | undefined): string | undefined {
  try {
    return check()
  } catch (error) {
    return `throws ${error instanceof Error ? error.stack : String(error)}`
  }
}

/** What is not the same when one packet is given in another form, in chunks, or encoded from other memory; undefined when all is. */
export function formsDiffer(each: Case, ours: Ours, random: Random): string | undefined {
  return orThrown(() => formDiffers(each, ours, random))
}

function formDiffers(each: Case, ours: Ours, random: Random): string | undefined {
  const form = pickForm(random, each.bytes.length)
  const lend = lenders.get(form) as Lend
  const { bytes, back } = lend(each.bytes)
  const inThatForm = decodeOurs(bytes, each)
  back()
  if (inThatForm.error !== ours.error) return `decode of ${form}: ${inThatForm.error ?? 'accepted'}`
  const expected = JSON.stringify(ours.fields)
  if (expected !== JSON.stringify(inThatForm.packet && normalized(inThatForm.packet)))
    return `decode of ${form}: other fields once it was overwritten`
  const atOnce = story(decoder(each), [each.bytes])
  if (ours.fields !== undefined && atOnce !== `[${expected},"0 bytes held"]`)
    return `Decoder: ${atOnce}`
  const other = pickForm(random, each.bytes.length)
  const reader = random.chance(0.5) ? decoder(each) : scanner(each, random)
  const inPieces = story(reader, inForm(other, cut(each.bytes, random)))
  if (inPieces !== atOnce) return `in pieces, each ${other}: ${inPieces}, at once: ${atOnce}`
  return ours.packet === undefined ? undefined : encodingDiffers(ours.packet, each, form)
}

/** A packet whose binary fields lie in lent memory. */
function lent(value: unknown, lend: Lend, backs: (() => void)[]): unknown {
  if (value instanceof Uint8Array) {
    const loan = lend(value)
    backs.push(loan.back)
    return loan.bytes
  }
  if (Array.isArray(value)) return value
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, lent(field, lend, backs)]),
  )
}

/** Fields that may be left out where they have this value. */
const otherwise: Readonly<Record<string, unknown>> = {
  ...{
    protocolName: 'MQTT',
    cleanStart: true,
    keepAlive: 0,
    clientId: '',
    sessionPresent: false,
    reasonCode: 0,
  },
  ...{
    qos: 0,
    retain: false,
    dup: false,
    noLocal: false,
    retainAsPublished: false,
    retainHandling: 0,
  },
}

/** A packet without the fields that have a default, and with payload and properties only where they hold something. */
function loosened(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(loosened)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  const entries = Object.entries(value).filter(([key, field]) => {
    if (key === 'payload') return (field as Uint8Array).length > 0
    if (key === 'properties') return Object.keys(field as object).length > 0
    return !(key in otherwise) || otherwise[key] !== field
  })
  const deep = ['will', 'subscriptions']
  return Object.fromEntries(
    entries.map(([key, field]) => [key, deep.includes(key) ? loosened(field) : field]),
  )
}

function encodingDiffers(
  packet: Packet,
  { version, from }: Setting,
  form: string,
): string | undefined {
  const options = { protocolVersion: version }
  const bytes = encode(packet as PacketInput, options)
  const backs: (() => void)[] = []
  // Forms that use one array again hold one field at a time.
  const lend = lenders.get(form.includes('again') ? 'a Buffer at an offset' : form) as Lend
  const written = encode(lent(packet, lend, backs) as PacketInput, options)
  for (const back of backs) back()
  if (Buffer.compare(bytes, written) !== 0)
    return `encode from other memory: ${Buffer.from(written).toString('hex')}`
  const loose = encode(loosened(packet) as PacketInput, options)
  if (Buffer.compare(bytes, loose) !== 0) return 'encode without what has a default'
  const again = decodeOurs(bytes, { version, from })
  const same = JSON.stringify(again.fields) === JSON.stringify(normalized(packet))
  return same ? undefined : `encode and decode: ${again.error ?? JSON.stringify(again.fields)}`
}

type Read = { readonly each: Case; readonly ours: Ours }

/** What is not the same when packets follow each other in one stream, and in one Encoder; undefined when all is. */
export function streamsDiffer(cases: readonly Read[], random: Random): string | undefined {
  const accepted = cases.filter(
    ({ each, ours }) => ours.packet !== undefined && each.bytes.length < large,
  )
  for (const version of [4, 5] as const) {
    const spoken = accepted.filter(({ each, ours: { packet } }) => {
      return (
        each.version === version &&
        (packet?.type !== 'connect' || packet.protocolVersion === version)
      )
    })
    for (const from of ['client', 'server'] as const) {
      const all = spoken.filter(({ each }) => each.from === from)
      for (let at = 0; at < all.length; at += 25) {
        const found = orThrown(() =>
          streamDiffers(all.slice(at, at + 25), { version, from }, random),
        )
        if (found !== undefined) return found
      }
    }
  }
  return undefined
}

function streamDiffers(run: readonly Read[], setting: Setting, random: Random): string | undefined {
  const stream = Buffer.concat(run.map(({ each }) => each.bytes))
  const expected = JSON.stringify([...run.map(({ ours }) => ours.fields), '0 bytes held'])
  const numbers = run.map(({ each }) => each.number).join(', ')
  const chunks = random.chance(0.3) ? [stream] : cut(stream, random)
  const reader = random.chance(0.5) ? decoder(setting) : scanner(setting, random)
  const found = story(reader, inForm(pickForm(random, stream.length), chunks))
  const shownStream = stream.toString('hex').slice(0, 4000)
  if (found !== expected)
    return `packets ${numbers} in one stream, ${shownStream}: ${found.slice(0, 4000)}`
  const encoder = new Encoder({ protocolVersion: setting.version })
  const lend = lenders.get('a Uint8Array at an offset') as Lend
  for (const { ours } of run) {
    const backs: (() => void)[] = []
    encoder.write(lent(ours.packet, lend, backs) as PacketInput)
    for (const back of backs) back()
  }
  const alone = run.map(({ ours }) =>
    encode(ours.packet as PacketInput, { protocolVersion: setting.version }),
  )
  const same = Buffer.compare(encoder.take(), Buffer.concat(alone)) === 0
  return same ? undefined : `packets ${numbers} in one Encoder: other bytes`
}
