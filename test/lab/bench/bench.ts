/**
 * The pure parts of `bench/`, typed for the tests: the folder is plain JavaScript, and the compiler does not read it.
 */
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../..', import.meta.url))

export interface Limits {
  readonly atLeast?: number
  readonly atMost?: number
}

export interface Spec extends Limits {
  readonly target?: string
  readonly unit?: string
}

export interface Row {
  readonly name: string
  readonly part: string
  readonly target?: string | undefined
  readonly ratio: number
  readonly verdict?: 'met' | 'missed' | undefined
}

export interface Report {
  readonly machine: string
  readonly peers: string
  readonly rows: readonly Row[]
  readonly skipped: readonly { readonly name: string; readonly reason: string }[]
  readonly failed: readonly { readonly name: string; readonly reason: string }[]
  readonly date?: string
}

interface Statistics {
  median(values: readonly number[]): number
  quantile(values: readonly number[], share: number): number
  verdict(figure: number, limits: Limits): 'met' | 'missed'
}

interface Reports {
  rowOf(part: string, name: string, spec: Spec, measured: object): Row
  jsonOf(report: Report): {
    readonly rows: readonly Row[]
    readonly figures: readonly Row[]
    readonly skipped: unknown
    readonly machine: string
  }
  tableOf(rows: readonly Row[]): string
  documentOf(report: Report): string
  slowerRows(rows: readonly Row[]): readonly Row[]
}

interface Baseline {
  regressions(
    committed: Readonly<Record<string, number>>,
    measured: Readonly<Record<string, number>>,
  ): readonly {
    readonly name: string
    readonly committed: number
    readonly measured: number | undefined
  }[]
}

interface Compare {
  compare(
    candidates: Readonly<Record<string, (count: number) => number | undefined>>,
    options: { readonly rounds: number; readonly roundTime: number; readonly clock: () => number },
  ): Record<string, number>
  compareAsync(
    candidates: Record<string, (count: number) => Promise<number>>,
    options: { rounds: number; warmUp: number; count: number; clock?: () => number },
  ): Promise<Record<string, number[]>>
}

export interface LedgerLike {
  readonly received: number
  readonly twice: number
  readonly disordered: number
  readonly wrong: number
  readonly missing: number
  readonly finished: Promise<void>
  take(payload: Uint8Array): void
}

interface Ledgers {
  readonly lastNumber: number
  readonly Ledger: new (publishers: readonly number[], count: number, size: number) => LedgerLike
  stamp(payload: Uint8Array, publisher: number, number: number): void
}

interface Measurements {
  readonly measurements: readonly {
    readonly part: string
    readonly rows: Readonly<Record<string, Spec>>
  }[]
}

interface Streams {
  makeBlock(
    qos: number,
    size: number,
    properties: number,
    version?: number,
  ): { readonly frame: number; readonly count: number; readonly bytes: Buffer }
}

interface Frame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
}

interface Child {
  ownTimes(profile: {
    readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[]
    readonly samples: readonly number[]
    readonly timeDeltas: readonly number[]
  }): readonly { readonly name: string; readonly place: string; readonly share: number }[]
}

const load = async <T>(name: string): Promise<T> =>
  (await import(new URL(`../../../bench/${name}`, import.meta.url).href)) as T

export const child = await load<Child>('child.js')
export const statistics = await load<Statistics>('statistics.js')
export const report = await load<Reports>('report.js')
export const baseline = await load<Baseline>('baseline.js')
export const { compare, compareAsync } = await load<Compare>('compare.js')
export const ledgers = await load<Ledgers>('profiles/ledger.js')
export const streams = await load<Streams>('peers/stream.js')
export const { measurements } = await load<Measurements>('parts/index.js')
