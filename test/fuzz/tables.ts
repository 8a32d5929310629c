/**
 * The identifier tables of a session, seen from outside: what is in them must be what the session says is in flight.
 *
 * The tables are private. They are found by doing to a session that has not begun what does nothing to it, and noticing which table was touched.
 */
import { IdTable } from '../../src/client/session/id-table.js'
import type { Session } from '../../src/client/session/session.js'
import { check } from './oracle.js'

const original = IdTable.prototype.update
let touched: IdTable | undefined

IdTable.prototype.update = function (this: IdTable, change: (state: number) => number): void {
  touched = this
  original.call(this, change)
}

function tableOf(suspend: () => void): IdTable {
  touched = undefined
  suspend()
  check(touched !== undefined, 'harness', () => 'the session touched no table')
  return touched
}

/** What a table holds: identifiers by state. */
interface Census {
  readonly total: number
  /** How many have one of these states. */
  of(first: number, last: number): number
}

/** Exchanges of ours that this connection carries: from PUBLISH to the last acknowledgement. */
const carried = [1, 4] as const
const requests = [5, 6] as const
const clearing = [7, 7] as const
const held = 16
/** Exchanges of the server that count against Receive Maximum. */
const open = [1, 3] as const

/** The tables of one session. */
export class Tables {
  readonly #session: Session
  readonly #inbound: IdTable
  readonly #outbound: IdTable

  /** @param session one that has not begun */
  constructor(session: Session) {
    this.#session = session
    this.#inbound = tableOf(() => session.receiveWindow.suspend())
    this.#outbound = tableOf(() => session.sendWindow.suspend())
  }

  /** SUBSCRIBE and UNSUBSCRIBE that wait for their answer. */
  get requests(): number {
    return census(this.#outbound).of(...requests)
  }

  /** Publishes in flight or held for the next connection. */
  get publishes(): number {
    const all = census(this.#outbound)
    return all.of(...carried) + all.of(held + carried[0], held + carried[1])
  }

  /** Occupied slots are what is said to be in flight, within both quotas. `window` is what the server takes. @throws OracleError */
  check(window: number, receiveMaximum: number): void {
    const { receiveWindow, sendWindow } = this.#session
    const out = census(this.#outbound)
    const into = census(this.#inbound)
    check(out.of(...carried) === sendWindow.inFlight, 'slots', () => `${sendWindow.inFlight} in flight, ${out.of(...carried)} slots`)
    check(into.of(...open) === receiveWindow.open, 'slots', () => `${receiveWindow.open} open, ${into.of(...open)} slots`)
    check(out.total === this.#outbound.size && into.total === this.#inbound.size, 'slots', () => 'a table counts wrong')
    check(sendWindow.inFlight <= window, 'quota', () => `${sendWindow.inFlight} in flight, the server takes ${window}`)
    check(out.of(...clearing) <= window, 'quota', () => `${out.of(...clearing)} identifiers are cleared at once`)
    check(receiveWindow.open <= receiveMaximum, 'quota', () => `${receiveWindow.open} open, we take ${receiveMaximum}`)
  }

  /** Between connections nothing is open and nothing in flight. @throws OracleError */
  checkSuspended(): void {
    const { receiveWindow, sendWindow } = this.#session
    check(receiveWindow.open === 0 && sendWindow.inFlight === 0, 'slots', () => 'something is in flight without a connection')
    check(census(this.#outbound).of(1, clearing[1]) === 0, 'slots', () => 'a slot counts for a connection that is over')
  }
}

function census(table: IdTable): Census {
  const states = new Map<number, number>()
  let total = 0
  original.call(table, (state) => {
    total += 1
    states.set(state, (states.get(state) ?? 0) + 1)
    return state
  })
  return {
    total,
    of(first, last) {
      let sum = 0
      for (const [state, count] of states) if (state >= first && state <= last) sum += count
      return sum
    },
  }
}
