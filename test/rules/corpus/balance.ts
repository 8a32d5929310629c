/**
 * Counts cases by packet type, state and end, and prints the table.
 */
import type { Case } from './case.js'
import type { PacketName } from './facts.js'
import { endName, judge } from './oracle.js'
import { type State, statesOf } from './states.js'

/** Number of cases by end, of one packet type in one state. */
export type Ends = ReadonlyMap<string, number>

/** How they are spread: by packet type, by state, by end. */
export type Balance = ReadonlyMap<PacketName, ReadonlyMap<State, Ends>>

/** The ends of a case in each state of its version, in the order of the states. */
export const endsOf = ({ version, meanings }: Case): string[] =>
  statesOf(version).map((state) => endName(judge(version, meanings, state)))

/** Counts the cases of one version. */
export function balanceOf(cases: readonly Case[]): Balance {
  const balance = new Map<PacketName, Map<State, Map<string, number>>>()
  for (const each of cases) {
    const byState = balance.get(each.type) ?? new Map<State, Map<string, number>>()
    balance.set(each.type, byState)
    const ends = endsOf(each)
    statesOf(each.version).forEach((state, index) => {
      const counted = byState.get(state) ?? new Map<string, number>()
      byState.set(state, counted)
      const end = ends[index] as string
      counted.set(end, (counted.get(end) ?? 0) + 1)
    })
  }
  return balance
}

const codes = ['81', '82', '93', '94', '95', '97']

/** All ends, in the order of the table. */
const silent = codes.map((code) => `silent ${code}`)
export const endNames: readonly string[] = [
  'open',
  'waiting',
  'refused',
  'disconnected',
  ...codes,
  ...silent,
  'dropped',
]

/** The table as lines of text. */
export function tableOf(balance: Balance): string[] {
  const used = endNames.filter((end) =>
    [...balance.values()].some((states) => [...states.values()].some((ends) => ends.has(end))),
  )
  const head = ['packet', 'state', ...used, 'all']
  const rows = [...balance].flatMap(([type, states]) =>
    [...states].map(([{ name }, ends]) => {
      const counts = used.map((end) => ends.get(end) ?? 0)
      return [
        type,
        name,
        ...counts.map((count) => (count === 0 ? '.' : String(count))),
        String(counts.reduce((sum, count) => sum + count, 0)),
      ]
    }),
  )
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => (row[column] as string).length)),
  )
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column < 2
          ? cell.padEnd(widths[column] as number)
          : cell.padStart(widths[column] as number),
      )
      .join('  ')
  return [line(head), ...rows.map(line)]
}
