/** Who has to get a publish: it looks at each one as it is handed to a member, and after each call. */
import type { Group } from '../../../src/group/types.js'
import type { History, Published } from './history.js'
import type { Setup } from './schedule.js'

/** A member, as pools and groups show it. */
interface Shown {
  readonly name: string
  readonly state: string
  readonly inFlight: number
  readonly healthy?: boolean
}

/** Publishes that were handed to members, against the rules of routing. */
export class Routes {
  readonly #setup: Setup
  readonly #history: History
  /** Whom the publish before got, and who was there then. */
  #last: { readonly to: string; readonly there: string } | undefined

  constructor(setup: Setup, history: History) {
    this.#setup = setup
    this.#history = history
  }

  /** A publish is about to be handed over. @param members as they are with it */
  handleHanding(record: Published, to: string, members: readonly Shown[]): void {
    const up = members.filter(({ state }) => state === 'connected')
    const healthy = up.filter(({ healthy }) => healthy !== false)
    const there = healthy.length > 0 ? healthy : up
    const report = (why: string): void =>
      this.#history.report('routing', `${record.name} (${record.routing}) goes to ${to}: ${why}`)
    if (record.routing === 'hash') return this.#checkOwner(record, to, report)
    if (record.routing === 'broadcast') return
    const chosen = there.find(({ name }) => name === to)
    if (chosen === undefined)
      return report(
        `it is none of those that take publishes, ${there.map(({ name }) => name).join()}`,
      )
    // It has this one already.
    const less = there.find(({ name, inFlight }) => name !== to && inFlight < chosen.inFlight - 1)
    if (record.routing === 'least-in-flight' && less !== undefined)
      report(`${less.name} has fewer in flight`)
    if (record.routing === 'round-robin') this.#checkTurn(to, there, report)
  }

  /** What a call will do. @param few of a broadcast: whom it names */
  before(
    { routing }: Published,
    group: Group | undefined,
    offline: Setup['offline'],
    few: readonly string[] | undefined,
  ): readonly string[] {
    if (group === undefined || routing !== 'broadcast') return []
    const asked = group.members().filter(({ name }) => few?.includes(name) ?? true)
    const takes = ({ state }: Shown): boolean =>
      state === 'connected' ||
      (offline === 'queue' && state !== 'closed' && state !== 'disconnecting')
    return asked.filter(takes).map(({ name }) => name)
  }

  /** A call has returned. @param wanted what `before` gave */
  after(record: Published, wanted: readonly string[]): void {
    const got = this.#history.handedOf(record.name).map(({ to }) => to)
    if (record.routing !== 'broadcast' || got.join() === wanted.join()) return
    this.#history.report(
      'routing',
      `${record.name} (broadcast) goes to ${got.join() || 'nobody'}, and is for ${wanted.join() || 'nobody'}`,
    )
  }

  #checkTurn(to: string, there: readonly Shown[], report: (why: string) => void): void {
    const names = there.map(({ name }) => name)
    const last = this.#last
    this.#last = { to, there: names.join() }
    if (last?.there !== names.join()) return
    const next = names[(names.indexOf(last.to) + 1) % names.length]
    if (next !== to) report(`it is the turn of ${next}`)
  }

  // While something of a topic is in flight, it stays where it is.
  #checkOwner(record: Published, to: string, report: (why: string) => void): void {
    if (this.#setup.onLost === 'move') return
    for (const { name, to: other, end } of this.#history.handed) {
      if (other === to || end.status !== 'pending') continue
      const published = this.#history.published.get(name)
      if (published?.routing === 'hash' && published.op.topic === record.op.topic)
        return report(`${other} has ${name} of its topic in flight`)
    }
  }
}
