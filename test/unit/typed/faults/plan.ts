/**
 * Plans of the fault world: what a caller asks for, and what goes wrong meanwhile. All of it follows from a seed.
 *
 * A fault strikes before a step: the world counts each thing that happens in it (bytes that arrive, timers that run).
 */
import type { Fault as PacketFault } from '../../../../src/testing/broker/index.js'
import { Random } from '../../../world/random.js'

/** What the caller asks for. */
export interface Ask {
  readonly do: 'stream' | 'call'
  /** Milliseconds of the world. */
  readonly at: number
  /** Answers that the generator gives. */
  readonly length: number
  /** Milliseconds between two answers. */
  readonly gap: number
  readonly window: number
  readonly timeout: number
  /** Of a call. */
  readonly qos: 0 | 1
  /** Leaves after so many answers. */
  readonly leave?: number | undefined
  /** Aborts so many milliseconds after it began. */
  readonly abort?: number | undefined
  /** The handler throws behind the last answer. */
  readonly fails?: boolean | undefined
}

/** Who has a link. */
export type Who = 'caller' | 'server'

/** What goes wrong. */
export type Trouble =
  /** The connection is lost, for so long; silently: no end is reported. */
  | { step: number; what: 'cut'; who: Who; down: number; silently?: boolean | undefined }
  /** The broker dies and comes back, with what it knew or without. */
  | { step: number; what: 'restart'; keep: boolean }
  /** The server dies, and another one comes up after so long: as the same client, or as another; or none does. */
  | { step: number; what: 'kill'; down: number; next: 'same' | 'other' | 'none' }
  /** A second server answers the same requests. */
  | { step: number; what: 'twin' }
  /** The caller's program ends. */
  | { step: number; what: 'close' }

/** One run of the world. */
export interface Plan {
  readonly name: string
  readonly asks: readonly Ask[]
  readonly troubles: readonly Trouble[]
  /** Of single packets. */
  readonly packets: readonly PacketFault[]
  /** How long the broker keeps a session, in seconds. */
  readonly expiry: number
  /** QoS of the serving. */
  readonly qos: 0 | 1
  /** True: nothing in it may make a stream, or a call at QoS 1, fail. */
  readonly gentle: boolean
}

const usual = { do: 'stream', at: 5, gap: 0, window: 1, timeout: 20_000, qos: 1 } as const
/** Streams and calls side by side, none of which waits for time to pass. */
export const usualAsks: readonly Ask[] = [
  { ...usual, at: 0, length: 7, window: 3 },
  { ...usual, do: 'call', at: 0, length: 1 },
  { ...usual, length: 0 },
  { ...usual, length: 30, window: 4, leave: 3 },
  { ...usual, length: 2, gap: 3, window: 2, fails: true },
]

const calm = { asks: usualAsks, packets: [], expiry: 300, qos: 1 } as const

/** The usual asks, with one trouble. */
export function planOf(trouble: Trouble | undefined, gentle: boolean): Plan {
  const name = JSON.stringify(trouble ?? 'nothing')
  return { ...calm, gentle, name, troubles: trouble === undefined ? [] : [trouble] }
}

/** The plan of a seed. */
export function planFrom(seed: number): Plan {
  const random = new Random(seed)
  const gentle = random.chance(0.4)
  const asks = Array.from({ length: random.between(1, 6) }, () => askFrom(random, gentle))
  const trouble = (nth: number): Trouble =>
    gentle ? gentleTrouble(random, nth === 0) : anyTrouble(random)
  const troubles = Array.from({ length: random.between(1, gentle ? 4 : 5) }, (_, nth) =>
    trouble(nth),
  )
  const packets = Array.from({ length: random.chance(0.4) ? random.between(1, 3) : 0 }, () =>
    packetFrom(random),
  )
  const expiry = gentle || random.chance(0.5) ? 300 : 2
  const qos = gentle || random.chance(0.8) ? 1 : 0
  return { name: `seed ${seed}`, asks, troubles, packets, expiry, qos, gentle }
}

function askFrom(random: Random, gentle: boolean): Ask {
  const length = random.pick([0, 1, 2, 5, 12, 40])
  return {
    do: random.chance(0.75) ? 'stream' : 'call',
    at: random.pick([0, 0, 1, 20, 300]),
    length,
    gap: random.pick([0, 0, 1, 40]),
    window: random.pick([1, 2, 3, 8, 16]),
    timeout: gentle ? 20_000 : random.pick([300, 3000, 20_000]),
    qos: gentle || random.chance(0.5) ? 1 : 0,
    leave: random.chance(0.25) ? random.between(0, length) : undefined,
    abort: !gentle && random.chance(0.15) ? random.pick([0, 1, 50, 1000]) : undefined,
    fails: random.chance(0.1),
  }
}

const when = (random: Random): number => random.between(1, random.chance(0.7) ? 80 : 400)

function cut(random: Random, step: number, downs: number[], silently: () => boolean): Trouble {
  const who = random.pick(['caller', 'server'] as const)
  return { step, what: 'cut', who, down: random.pick(downs), silently: silently() }
}

// It takes a keep-alive to notice what is hidden.
function gentleTrouble(random: Random, mayHide: boolean): Trouble {
  const step = when(random)
  if (random.chance(0.25)) return { step, what: 'restart', keep: true }
  return cut(random, step, [0, 10, 500], () => mayHide && random.chance(0.2))
}

const anything = [
  ...(['gentle', 'gentle', 'cut', 'restart'] as const),
  ...(['kill', 'kill', 'twin', 'close'] as const),
]

function anyTrouble(random: Random): Trouble {
  const step = when(random)
  const what = random.pick(anything)
  if (what === 'gentle') return gentleTrouble(random, true)
  if (what === 'cut') return cut(random, step, [5000, 20_000], () => random.chance(0.5))
  if (what === 'kill') {
    const down = random.pick([0, 20, 5000])
    return { step, what, down, next: random.pick(['same', 'same', 'other', 'none'] as const) }
  }
  if (what === 'twin' || (what === 'close' && random.chance(0.3))) return { step, what }
  return { step, what: 'restart', keep: false }
}

// A packet that is lost costs its connection, as with TCP. What comes twice is what a server sends again.
function packetFrom(random: Random): PacketFault {
  const action = random.pick(['close-before', 'close-after', 'twice', 'restart-keep'] as const)
  const packet = action === 'twice' ? 'publish' : random.pick(['publish', 'puback'] as const)
  const clientId = random.pick(['caller', 'server'])
  const direction = action === 'twice' ? 'out' : random.pick(['in', 'out'] as const)
  return { packet, direction, nth: random.between(1, 12), action, clientId }
}
