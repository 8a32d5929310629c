/**
 * The identifier tables of a session, seen from outside: what is in them must be what the session says is in flight.
 *
 * The tables are private. They are found by doing to a session that has not begun what does nothing to it, and noticing which table was touched.
 */
import { IdTable } from '../../src/client/session/packet-identifiers.js'
import type { Session } from '../../src/client/session/session.js'
import { check, checkMost, checkSame } from './oracle.js'

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

/** Exchanges of ours that this connection carries: from PUBLISH to the last acknowledgement. */
const carried = [1, 4] as const
const clearing = [7, 7] as const
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

  /** Occupied slots are what is said to be in flight, within both quotas. `window` is what the server takes. @throws OracleError */
  check(window: number, receiveMaximum: number): void {
    const { receiveWindow, sendWindow } = this.#session
    const out = census(this.#outbound)
    const into = census(this.#inbound)
    checkSame(out.of(...carried), sendWindow.inFlight, 'slots', 'slots of what is in flight')
    checkSame(into.of(...open), receiveWindow.open, 'slots', 'slots of what is open')
    checkSame(out.total, this.#outbound.size, 'slots', 'slots of the outbound table')
    checkSame(into.total, this.#inbound.size, 'slots', 'slots of the inbound table')
    checkMost(sendWindow.inFlight, window, 'quota', 'in flight')
    checkMost(out.of(...clearing), window, 'quota', 'identifiers that are cleared at once')
    checkMost(receiveWindow.open, receiveMaximum, 'quota', 'open')
  }

  /** Between connections nothing is open and nothing in flight. @throws OracleError */
  checkSuspended(): void {
    const { receiveWindow, sendWindow } = this.#session
    checkSame(
      receiveWindow.open + sendWindow.inFlight,
      0,
      'slots',
      'in flight without a connection',
    )
    checkSame(
      census(this.#outbound).of(1, clearing[1]),
      0,
      'slots',
      'slots of a connection that is over',
    )
  }
}

/** How many identifiers a table holds, and how many have one of these states. */
function census(table: IdTable): {
  readonly total: number
  of(first: number, last: number): number
} {
  const states: number[] = []
  original.call(table, (state) => {
    states.push(state)
    return state
  })
  return {
    total: states.length,
    of: (first, last) => states.filter((state) => state >= first && state <= last).length,
  }
}
