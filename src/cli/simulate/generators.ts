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

/** What a generator belongs to. */
export interface Owner {
  readonly random: Random
  /** Number of the device among those of its kind, from 1. */
  readonly index: number
  readonly state: ReadonlyMap<string, Scalar>
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

const range = { min: number(), max: number(), digits: optional(whole(0, 9), 2) }

function checkRange({ min, max }: { min: number; max: number }, path: string): void {
  if (min >= max) throw new DescriptionError(`${path}.max`, `must be above min, which is ${min}`)
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

/** A number in its range, or beyond it in a spike. */
function bounded(
  value: number,
  { min, max, digits }: { min: number; max: number; digits: number },
  { fault }: Moment,
): number {
  if (fault === 'spike') return rounded(max + (max - min), digits)
  return Math.min(max, Math.max(min, rounded(value, digits)))
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

type Settings<T> = Check<T & { readonly $: string }>

// `$` has chosen the generator before.
function settings<T>(checks: { readonly [K in keyof T]: Check<T[K]> }): Settings<T> {
  return shape({ $: text(), ...checks } as never) as Settings<T>
}

const walkSettings = settings({ ...range, step: number(0) })
function walk(value: unknown, path: string): Maker {
  const given = walkSettings(value, path)
  checkRange(given, path)
  const { min, max, step } = given
  return ({ random }) => {
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
function sine(value: unknown, path: string): Maker {
  const given = sineSettings(value, path)
  checkRange(given, path)
  const { min, max, period, noise } = given
  return ({ random }) => {
    const phase = random()
    return (moment) => {
      const wave = Math.sin(2 * Math.PI * (moment.at / period + phase))
      const middle = (min + max) / 2
      const exact = middle + (wave * (max - min)) / 2 + (random() * 2 - 1) * noise
      return bounded(exact, given, moment)
    }
  }
}

const enumSettings = settings({
  values: list(scalar),
  weights: optional(list(number(0)), undefined),
  hold: optional(duration, 0),
})
function enumeration(value: unknown, path: string): Maker {
  const { values, weights = values.map(() => 1), hold } = enumSettings(value, path)
  const sum = weights.reduce((all, weight) => all + weight, 0)
  if (weights.length !== values.length || sum <= 0)
    throw new DescriptionError(
      `${path}.weights`,
      `must have a number for each of the ${values.length} values, not all 0`,
    )
  return ({ random }) => {
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
function counter(value: unknown, path: string): Maker {
  const { start, step } = counterSettings(value, path)
  return () => {
    let count = 0
    // Multiplied, because sums of fractions drift.
    return () => rounded(start + count++ * step, 9)
  }
}

const timeSettings = settings({})
function time(value: unknown, path: string): Maker {
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
function track(value: unknown, path: string): Maker {
  const { points, speed, loop } = trackSettings(value, path)
  const ends = loop ? [...points.slice(1), points[0] as Point] : points.slice(1)
  let total = 0
  const legs = ends.map((to, index) => {
    const from = points[index] as Point
    const [north, east] = between(from, to)
    const start = total
    total += Math.hypot(north, east)
    const heading = (Math.atan2(east, north) / radians + 360) % 360
    return { from, to, start, length: total - start, heading }
  })
  if (total === 0) throw new DescriptionError(`${path}.points`, 'must not all be the same')
  return ({ random }) => {
    // On a loop, devices are spread over it.
    const offset = loop ? random() * total : 0
    return ({ at }) => {
      const way = offset + (speed * at) / 1000
      const isOver = !loop && way >= total
      const distance = isOver ? total : way % total
      const leg = legs.findLast(({ start, length }) => start <= distance && length > 0)
      const { from, to, start, length, heading } = leg ?? (legs[0] as (typeof legs)[0])
      const part = Math.min(1, (distance - start) / length)
      return {
        lat: rounded(from[0] + (to[0] - from[0]) * part, 6),
        lon: rounded(from[1] + (to[1] - from[1]) * part, 6),
        speed: isOver ? 0 : speed,
        heading: Math.round(heading) % 360,
      }
    }
  }
}

const row: Check<Row> = (value, path) => {
  const cells = Object.entries(object(value, path))
  return Object.fromEntries(cells.map(([name, cell]) => [name, scalar(cell, `${path}.${name}`)]))
}

const csvSettings = settings({
  file: optional(text(), undefined),
  rows: optional(list(row, 1, 1_000_000), undefined),
  column: text(),
})
function csv(value: unknown, path: string, { rowsOf }: Surroundings): Maker {
  const { file, rows: given, column } = csvSettings(value, path)
  if ((file === undefined) === (given === undefined))
    throw new DescriptionError(path, 'needs either file or rows')
  let rows = given ?? []
  try {
    if (file !== undefined) rows = rowsOf(file)
  } catch (error) {
    throw new DescriptionError(`${path}.file`, (error as Error).message)
  }
  const [first] = rows
  if (first === undefined) throw new DescriptionError(path, 'has no rows')
  if (!Object.hasOwn(first, column)) {
    const columns = Object.keys(first).map(shown).join(', ')
    throw new DescriptionError(`${path}.column`, `no ${shown(column)}; the columns are ${columns}`)
  }
  // All columns of a device begin in the same row, so they stay together.
  return ({ index }) => {
    let next = index - 1
    return () => rows[next++ % rows.length]?.[column] ?? null
  }
}

const stateSettings = settings({ key: text() })
function state(value: unknown, path: string, { stateNames }: Surroundings): Maker {
  const { key } = stateSettings(value, path)
  if (!stateNames.has(key)) {
    const names = [...stateNames].join(', ')
    throw new DescriptionError(
      `${path}.key`,
      names === '' ? 'the device has no state; add "state"' : `unknown; the state has ${names}`,
    )
  }
  return (owner) => () => owner.state.get(key) ?? null
}

type Parse = (value: unknown, path: string, around: Surroundings) => Maker
const stuck =
  (parse: Parse): Parse =>
  (...given) =>
    sticking(parse(...given))

const parsers: Readonly<Record<string, Parse>> = {
  walk: stuck(walk),
  sine: stuck(sine),
  enum: stuck(enumeration),
  counter: stuck(counter),
  time,
  track: stuck(track),
  csv: stuck(csv),
  state,
}

/** Reads a generator: an object with `$`. @throws DescriptionError */
export function generator(value: unknown, path: string, around: Surroundings): Maker {
  const { $: name } = object(value, path)
  if (typeof name === 'string' && Object.hasOwn(parsers, name))
    return (parsers[name] as Parse)(value, path, around)
  const allowed = Object.keys(parsers).join(', ')
  throw new DescriptionError(`${path}.$`, `no generator ${shown(name)}; allowed: ${allowed}`)
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
