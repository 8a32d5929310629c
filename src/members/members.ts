/**
 * Several clients that act as one: by name, with a combined state, a combined end and combined
 * internals.
 */
import type { ClientAccess } from '../client/access.js'
import type { CheckedDisconnect } from '../client/options/check-calls.js'
import type { ClientOptions, ClientState } from '../client/options/index.js'
import { type Deferred, deferred, onAbort, rejected } from '../common/abort.js'
import { anyObject, invalid, optional, type Parser, text } from '../common/schema.js'
import { MqttError } from '../errors.js'
import { MemberListeners } from './listeners.js'
import { accessOf, type Member, type MemberClient, type Time, timeOf } from './member.js'

/**
 * Checks the options shared by several clients as far as client identifiers are derived from them;
 * the clients check the rest.
 * @throws MqttError ERR_INVALID_OPTION
 */
export const baseOptions: Parser<ClientOptions> = (value, path) => {
  const given = anyObject(value, path) as ClientOptions
  optional(text)(given.clientId, `${path}.clientId`)
  return given
}

// From best to worst.
const states: readonly ClientState[] = [
  'connected',
  'connecting',
  'reconnecting',
  'disconnecting',
  'idle',
]

/** Members by name, in the order in which they were added. */
export class Members<C extends MemberClient = MemberClient> {
  readonly listeners = new MemberListeners(() => this.all)
  readonly access = accessOfAll(() => this.all)
  readonly #members = new Map<string, Member<C>>()
  /** Removed members that have not ended. */
  readonly #leaving = new Set<Member<C>>()

  get all(): readonly Member<C>[] {
    return [...this.#members.values()]
  }

  /** The clock of the first member. */
  get time(): Time {
    const [first] = this.#members.values()
    return first?.time ?? timeOf(undefined)
  }

  get(name: string): Member<C> | undefined {
    return this.#members.get(name)
  }

  /** @throws MqttError ERR_INVALID_OPTION, about this option */
  find(name: string, option: string): Member<C> {
    return (
      this.get(name) ??
      invalid(
        option,
        `names of members: ${[...this.#members.keys()].join(', ') || 'there are none'}`,
      )
    )
  }

  /** The error for a call of a group whose members have all ended. */
  get ended(): MqttError {
    return new MqttError('ERR_CLOSED', `every member has ended; add() one:\n${this.story()}`)
  }

  /** Adds a member, or replaces the one with the same name. */
  put(member: Member<C>): void {
    this.#members.set(member.name, member)
    this.listeners.handleAdded(member)
  }

  /**
   * Removes a member. It accepts nothing more, and has ended when this settles.
   * @throws MqttError as `drain` of the client
   */
  async remove(member: Member<C>, options: CheckedDisconnect): Promise<void> {
    this.#members.delete(member.name)
    this.#leaving.add(member)
    try {
      await member.leave(options)
    } finally {
      this.#leaving.delete(member)
      this.listeners.handleRemoved(member)
    }
  }

  /**
   * Ends all members, including those being removed.
   * @throws MqttError the first error, after all have ended
   */
  async end(how: 'disconnect' | 'drain', options: CheckedDisconnect): Promise<void> {
    const members = [...this.all, ...this.#leaving]
    const results = await Promise.allSettled(members.map((member) => member.end(how, options)))
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  /** The best state of any member. @param ended true when all were asked to end */
  state(ended: boolean): ClientState {
    const given = this.all.map(({ client }) => client.state)
    const best = states.find((state) => given.includes(state)) ?? 'closed'
    return ended && best !== 'disconnecting' ? 'closed' : best
  }

  /** One line with the problem of each member that is not up, for at most `most` members. */
  story(most = 16): string {
    const { all } = this
    const lines = all
      .slice(0, most)
      .map(({ name, client, error }) => `${name}: ${error?.message ?? client.state}`)
    return [...lines, ...(all.length > most ? ['…'] : [])].join('\n')
  }

  /** The number of members, and their publishes in flight. */
  counts(): { readonly size: number; readonly up: number; readonly inFlight: number } {
    const { all } = this
    return {
      size: all.length,
      up: all.filter(({ up }) => up).length,
      inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
    }
  }
}

/** Waits for a member that is ready. */
export class Readiness {
  #change: Deferred<void> = deferred()

  /** Fulfils when something changes. */
  get change(): Promise<void> {
    return this.#change.promise
  }

  /** The state of a member, or of the whole, has changed. */
  handleChange(): void {
    this.#change.resolve()
    this.#change = deferred()
  }

  /**
   * Fulfils when one of the promises of `ask` fulfils. `ask` is called first and after each change;
   * its error becomes the rejection.
   */
  async wait(ask: () => readonly Promise<void>[]): Promise<void> {
    for (;;) {
      const change = this.#change.promise.then(() => false)
      // A rejection, of a member that has ended, is followed by a change.
      const ready = ask().map((promise) =>
        promise.then(
          () => true,
          () => change,
        ),
      )
      if (await Promise.race([...ready, change])) return
    }
  }
}

/**
 * Waits until the promise has settled or the time of a `drain()` has passed; returns the options
 * with the time that is left.
 */
export async function settledInTime(
  promise: Promise<unknown>,
  options: CheckedDisconnect,
  time: Time,
): Promise<CheckedDisconnect> {
  const since = time.now()
  const { timeout, signal } = options
  const over = deferred<void>()
  const cancel = time.setTimer(over.resolve, timeout)
  const stop = onAbort(signal, over.resolve as () => void)
  await Promise.race([promise.catch(() => undefined), over.promise])
  cancel()
  stop()
  return { ...options, timeout: Math.max(0, Math.floor(timeout - (time.now() - since))) }
}

// The combined internals of several members, as typed topics use them: those of the member that a
// message came from, otherwise those of the first member.
function accessOfAll(
  members: () => readonly Member[],
): ClientAccess & Required<Pick<ClientAccess, 'refuse'>> {
  const first = (): ClientAccess | undefined => {
    for (const member of members()) {
      const found = accessOf(member)
      if (found !== undefined) return found
    }
    return undefined
  }
  return {
    get modern() {
      return members().every((member) => accessOf(member)?.modern !== false)
    },
    reportInvalid(event, isFirst, message) {
      const by = members().find(
        ({ name }) => name === (message as { readonly member?: string } | undefined)?.member,
      )
      const source = by === undefined ? first() : accessOf(by)
      source?.reportInvalid(event, isFirst, message)
    },
    refuse: (topic, error) => first()?.refuse?.(topic, error) ?? rejected(error),
    log: (level, ...parts) => first()?.log?.(level, ...parts),
    report: (...report) => first()?.report?.(...report),
  }
}
