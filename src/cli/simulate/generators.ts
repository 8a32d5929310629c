/**
 * Values that look like those of real devices: walks, waves, positions on a track.
 *
 * Pure: a generator is made from its settings and seeded random numbers, and gets the time.
 */
import {
  type Check,
  DescriptionError,
  duration,
  flag,
  type Json,
  list,
  named,
  number,
  object,
  optional,
  type Scalar,
  scalar,
  shape,
  shown,
  text,
  whole,
} from './reading.js'

/** Numbers in [0, 1). */
export type Random = () => number

/** A generator of random numbers; the same text gives the same numbers. */
export function seeded(seed: string): Random {
  // FNV-1a spreads the text over 32 bits, and each number is a hash of a counter (Murmur3's finaliser).
  let state = 0x811c9dc5
  for (let at = 0; at < seed.length; at++)
    state = Math.imul(state ^ seed.charCodeAt(at), 0x01000193) >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
  }
}

/** When a value is asked for, and what disturbs it. */
export interface Moment {
  /** Milliseconds since the simulation began. */
  readonly at: number
  /** Milliseconds since 1970. */
  readonly date: number
  readonly fault: 'stuck' | 'spike' | undefined
}

/** Gives the next value. The moments of one generator do not go back. */
export type Generator = (moment: Moment) => Json

/** The device that a generator belongs to. */
export interface Owner {
  /** Random numbers of one purpose. */
  readonly random: (purpose: string) => Random
  /** Number of the device among those of its kind, from 1. */
  readonly index: number
  /** The value of a name: of the state, or a generator of the device. */
  readonly named: (name: string, moment: Moment) => Json
}

/** Makes a generator for one device. */
export type Maker = (owner: Owner) => Generator

/** A row of a CSV file. */
export type Row = Readonly<Record<string, Scalar>>

/** What a description may refer to. */
export interface Surroundings {
  /** The rows of a file. @throws Error that says why there are none */
  readonly rowsOf: (file: string) => readonly Row[]
  readonly stateNames: ReadonlySet<string>
}

type Parse = (value: unknown, path: string, around: Surroundings) => Maker

// `$` has chosen the generator before.
function settings<T>(checks: { readonly [K in keyof T]: Check<T[K]> }): Check<T> {
  return shape({ $: text(), ...checks } as never) as Check<T>
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

const range = { min: number(), max: number(), digits: optional(whole(0, 9), 2) }
type Range = { readonly [K in keyof typeof range]: number }

function checkRange({ min, max }: Range, path: string): void {
  if (min >= max) throw new DescriptionError(`${path}.max`, `must be above min, which is ${min}`)
}

/** A number in its range, or beyond it in a spike. */
function bounded(value: number, { min, max, digits }: Range, { fault }: Moment): number {
  if (fault === 'spike') return rounded(max + (max - min), digits)
  return Math.min(max, Math.max(min, rounded(value, digits)))
}

const walkSettings = settings({ ...range, step: number(0) })
const walk: Parse = (value, path) => {
  const given = walkSettings(value, path)
  checkRange(given, path)
  const { min, max, step } = given
  return (owner) => {
    const random = owner.random(path)
    let now = min + random() * (max - min)
    return (moment) => {
      now += (random() * 2 - 1) * step
      // A step off the range is reflected.
      if (now < min) now = Math.min(max, min + (min - now))
      if (now > max) now = Math.max(min, max - (now - max))
      return bounded(now, given, moment)
    }
  }
}

const sineSettings = settings({ ...range, period: duration, noise: optional(number(0), 0) })
const sine: Parse = (value, path) => {
  const given = sineSettings(value, path)
  checkRange(given, path)
  const { min, max, period, noise } = given
  return (owner) => {
    const random = owner.random(path)
    const phase = random()
    return (moment) => {
      const wave = Math.sin(2 * Math.PI * (moment.at / period + phase))
      const exact = (min + max + wave * (max - min)) / 2 + (random() * 2 - 1) * noise
      return bounded(exact, given, moment)
    }
  }
}

const enumSettings = settings({
  values: list(scalar),
  weights: optional(list(number(0))),
  hold: optional(duration, 0),
})
const enumeration: Parse = (value, path) => {
  const { values, weights = values.map(() => 1), hold } = enumSettings(value, path)
  const sum = weights.reduce((all, weight) => all + weight, 0)
  if (weights.length !== values.length || sum <= 0)
    throw new DescriptionError(
      `${path}.weights`,
      `must have a number for each of the ${values.length} values, not all 0`,
    )
  return (owner) => {
    const random = owner.random(path)
    let until = Number.NEGATIVE_INFINITY
    let now: Scalar = null
    return ({ at }) => {
      if (at < until) return now
      let left = random() * sum
      const found = weights.findIndex((weight) => {
        left -= weight
        return left < 0
      })
      now = values[found] ?? null
      until = at + hold
      return now
    }
  }
}

const counterSettings = settings({ start: optional(number(), 0), step: optional(number(), 1) })
const counter: Parse = (value, path) => {
  const { start, step } = counterSettings(value, path)
  return () => {
    let count = 0
    // Multiplied, because sums of fractions drift.
    return () => rounded(start + count++ * step, 9)
  }
}

const timeSettings = settings({})
const time: Parse = (value, path) => {
  timeSettings(value, path)
  return () => (moment) => new Date(moment.date).toISOString()
}

type Point = readonly [latitude: number, longitude: number]

const radians = Math.PI / 180
const earthRadius = 6_371_000

/** North and east of the first point to the second, in metres; exact enough for a city. */
function between([fromLat, fromLon]: Point, [lat, lon]: Point): Point {
  const shrink = Math.cos(((fromLat + lat) / 2) * radians)
  return [(lat - fromLat) * radians * earthRadius, (lon - fromLon) * radians * earthRadius * shrink]
}

const point: Check<Point> = (value, path) => {
  const [lat, lon] = list((each) => each, 2, 2)(value, path)
  return [number(-90, 90)(lat, `${path}[0]`), number(-180, 180)(lon, `${path}[1]`)]
}

const trackSettings = settings({
  points: list(point, 2, 10_000),
  speed: number(0.01, 10_000),
  loop: optional(flag, true),
})
const track: Parse = (value, path) => {
  const { points, speed, loop } = trackSettings(value, path)
  let total = 0
  const legs = points.flatMap((from, at) => {
    const to = points[at + 1] ?? (loop ? points[0] : undefined)
    if (to === undefined) return []
    const [north, east] = between(from, to)
    const [start, length] = [total, Math.hypot(north, east)]
    total += length
    const heading = Math.round(Math.atan2(east, north) / radians + 360) % 360
    return length === 0 ? [] : [{ from, to, start, length, heading }]
  })
  const [first] = legs
  if (first === undefined) throw new DescriptionError(`${path}.points`, 'must not all be the same')
  return ({ random }) => {
    // On a loop, devices are spread over it.
    const offset = loop ? random(path)() * total : 0
    return ({ at }) => {
      const way = offset + (speed * at) / 1000
      const isOver = !loop && way >= total
      const distance = isOver ? total : way % total
      const leg = legs.findLast(({ start }) => start <= distance) ?? first
      const { from, to, start, length, heading } = leg
      const part = Math.min(1, (distance - start) / length)
      return {
        lat: rounded(from[0] + (to[0] - from[0]) * part, 6),
        lon: rounded(from[1] + (to[1] - from[1]) * part, 6),
        speed: isOver ? 0 : speed,
        heading,
      }
    }
  }
}

const cells = named(scalar, text(0))
const row: Check<Row> = (value, path) => Object.fromEntries(cells(value, path))

const csvSettings = settings({
  file: optional(text()),
  rows: optional(list(row, 1, 100_000)),
  column: text(),
})
const csv: Parse = (value, path, { rowsOf }) => {
  const { file, rows: given, column } = csvSettings(value, path)
  if ((file === undefined) === (given === undefined))
    throw new DescriptionError(path, 'needs either file or rows')
  const rows = given ?? read(file as string, `${path}.file`, rowsOf)
  const columns = Object.keys(rows[0] ?? {})
  if (!columns.includes(column)) {
    const rule = `no ${shown(column)}; the columns are ${columns.map(shown).join(', ')}`
    throw new DescriptionError(`${path}.column`, rule)
  }
  // All columns of a device begin in the same row, so they stay together.
  return ({ index }) => {
    let next = index - 1
    return () => rows[next++ % rows.length]?.[column] ?? null
  }
}

function read(file: string, path: string, rowsOf: Surroundings['rowsOf']): readonly Row[] {
  try {
    return rowsOf(file)
  } catch (error) {
    throw new DescriptionError(path, (error as Error).message)
  }
}

const stateSettings = settings({ key: text() })
const state: Parse = (value, path, around) => {
  const { key } = stateSettings(value, path)
  assertState(key, `${path}.key`, around)
  return (owner) => (moment) => owner.named(key, moment)
}

/** @throws DescriptionError for a key that the state does not have */
export function assertState(key: string, path: string, { stateNames }: Surroundings): void {
  if (stateNames.has(key)) return
  const names = [...stateNames].join(', ')
  const rule = names === '' ? 'the device has no state; add "state"' : `the state has ${names}`
  throw new DescriptionError(path, rule)
}

const sensors: Readonly<Record<string, Parse>> = {
  walk,
  sine,
  enum: enumeration,
  counter,
  track,
  csv,
}
const others: Readonly<Record<string, Parse>> = { time, state }
const parsers = { ...sensors, ...others }

/** Reads a generator: an object with `$`. @throws DescriptionError */
export function generator(value: unknown, path: string, around: Surroundings): Maker {
  const name = String(object(value, path)['$'])
  if (!Object.hasOwn(parsers, name)) {
    const allowed = Object.keys(parsers).join(', ')
    throw new DescriptionError(`${path}.$`, `no generator ${shown(name)}; allowed: ${allowed}`)
  }
  const maker = (parsers[name] as Parse)(value, path, around)
  return Object.hasOwn(sensors, name) ? sticking(maker) : maker
}

/** While a device is stuck, its sensors repeat themselves. */
function sticking(maker: Maker): Maker {
  return (owner) => {
    const next = maker(owner)
    let last: Json | undefined
    return (moment) => {
      if (moment.fault !== 'stuck' || last === undefined) last = next(moment)
      return last
    }
  }
}

/** The rows of a CSV file whose first line has the names; numbers become numbers. */
export function rowsOfCsv(csvText: string): Row[] {
  const lines: string[][] = [[]]
  // A cell in quotes, or up to the next separator; then the separator.
  const cells = csvText
    .replace(/^\uFEFF/, '')
    .matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)
  for (const [, quoted, plain = '', end] of cells) {
    lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain.trim())
    if (end !== ',') lines.push([])
  }
  const [names = [], ...rest] = lines.filter((cells) => cells.some((cell) => cell !== ''))
  return rest.map((cells) =>
    Object.fromEntries(names.map((name, index) => [name, cellOf(cells[index] ?? '')])),
  )
}

function cellOf(cell: string): Scalar {
  return cell !== '' && Number.isFinite(Number(cell)) ? Number(cell) : cell
}
