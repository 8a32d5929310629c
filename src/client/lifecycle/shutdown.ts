/**
 * Ends a client in order: what `disconnect()` and `drain()` wait for, and how long.
 *
 * Shared subscriptions are left, running turns end, publishes and acknowledgements are sent, then
 * DISCONNECT. With nothing to wait for, all of this happens immediately, because a page that is
 * being unloaded has no later turn. Messages that are given up are reported. The first call creates
 * the only instance. The shortest timeout of all callers applies, and nothing is handed out that
 * can no longer be acknowledged.
 */
import { deferred, onAbort } from '../../common/abort.js'
import type { Consumer } from '../deliver/consumer.js'
import type { Goodbye } from '../options/check-calls.js'
import { destroy, end, finish } from './closing.js'
import { sessionExpiry } from './connection-events.js'
import type { ClientInternals } from './internals.js'

/** After this many milliseconds, logs what is being waited for. */
const patience = 1000

/** The shutdown of one client. */
export class Shutdown {
  readonly #parts: ClientInternals
  readonly #hurried = deferred<void>()
  /** The time is up. */
  #rushed = false
  #turnEnded: (() => void) | undefined
  #done: Promise<void> | undefined

  constructor(parts: ClientInternals) {
    this.#parts = parts
  }

  /** Starts the shutdown, or joins it. */
  async disconnect(goodbye: Goodbye, drain: boolean): Promise<void> {
    const hurry = (): void => {
      this.#rushed = true
      this.#hurried.resolve()
    }
    // Of several calls, the shortest timeout applies.
    const cancel = this.#parts.platform.setTimer(hurry, goodbye.timeout)
    if (goodbye.timeout === 0) hurry()
    const cease = onAbort(goodbye.signal, hurry)
    if (this.#done === undefined) {
      // Set before listeners run, so that a call from a listener joins.
      const { promise, resolve, reject } = deferred<void>()
      this.#done = promise
      this.#stop(goodbye, drain).then(resolve, reject)
    }
    await this.#done
    cancel()
    cease()
  }

  /** Called when a consumer's turn has ended. */
  handleTurnEnd(): void {
    this.#turnEnded?.()
  }

  async #stop({ reasonCode, properties, timeout }: Goodbye, drain: boolean): Promise<void> {
    const parts = this.#parts
    const { connections, publishing, subscriptions, session, states } = parts
    const { draining } = publishing
    const atOnce = this.#rushed
    const connected = states.current === 'connected'
    states.by ||= drain ? 'drain()' : 'disconnect()'
    // Draining needs a connection.
    states.draining = drain && states.current !== 'idle'
    // A connection that is being replaced by choice is waited for.
    const waits = (states.draining || connections.replaced) && draining.open > 0
    // Not connected and nothing to wait for: an attempt in progress is given up.
    if (
      !connected &&
      subscriptions.openUnsubscribes + subscriptions.membership.running.length === 0 &&
      !waits
    ) {
      destroy(parts)
      return this.#reportUnsent(states.by, timeout, true)
    }
    const hush = parts.platform.setTimer(() => this.#reportWaits(drain), patience)
    states.sessionEnds = (properties.sessionExpiryInterval ?? sessionExpiry(parts)) === 0
    publishing.handleStopping()
    parts.events.transition(() => {
      states.enter('disconnecting')
      subscriptions.close(states.sessionEnds && !atOnce)
      if (!connected && !states.draining && !connections.replaced) finish(parts, undefined)
    })
    if (subscriptions.openUnsubscribes + subscriptions.membership.running.length > 0)
      await this.#patient(this.#turnsEnded())
    states.sealed = true
    // Unless `draining`, the loss of the connection ends the wait.
    if (drain || draining.open > 0) await this.#patient(draining.drained())
    if (publishing.keeper !== undefined) await this.#patient(publishing.keeper.idle())
    const lost = connections.connection === undefined
    subscriptions.membership.letGo()
    subscriptions.senderIfUsed?.flush()
    const link = connections.current
    // If the link was stuck until the timeout, it is closed at once.
    const lingers = this.#rushed && (atOnce || link?.writer.writable === true)
    if (link !== undefined && session.state === 'connected') {
      link.writer.flush()
      session.disconnect(reasonCode, properties)
      link.pump()
      link.end(atOnce ? undefined : timeout)
      await this.#patient(states.closed)
    }
    // A peer that does not close its side is cut off. If DISCONNECT was sent late, the connection
    // itself waits a little longer.
    if (!lingers) link?.destroy()
    hush()
    end(parts, states.failure)
    this.#reportUnsent(states.by, timeout, lost)
  }

  // Messages kept in a store are not lost, so they are not reported.
  #reportUnsent(call: string, timeout: number, lost: boolean): void {
    const { queued, inFlight } = this.#parts.publishing.givenUp
    const count = queued + inFlight
    if (count === 0) return
    const why = lost ? 'there was no connection' : `its timeout was ${timeout} ms`
    const what = `${count === 1 ? '1 publish' : `${count} publishes`} (${queued} queued, ${inFlight} sent and not acknowledged)`
    const wayOut =
      lost && call !== 'drain()' ? 'drain() waits for one' : 'a longer { timeout } waits longer'
    this.#parts.report('MQWIRE_UNSENT', `${call} gave up ${what}: ${why}; ${wayOut}`, undefined)
  }

  // Logs what the shutdown is waiting for.
  #reportWaits(drain: boolean): void {
    const { subscriptions, publishing, connections } = this.#parts
    const { size, inFlight } = publishing
    const open = subscriptions.membership.running.map(turnOf)
    for (const { filter, openUnsubscribes } of subscriptions.membership.byFilter.values())
      if (openUnsubscribes > 0) open.push(`UNSUBACK on ${filter}`)
    if (size + inFlight > 0)
      open.unshift(
        `${inFlight} PUBLISH in flight, ${size} queued${connections.connection ? '' : ', a connection'}`,
      )
    this.#parts.log(
      'warn',
      `${drain ? 'drain' : 'disconnect'}() waits for `,
      open.slice(0, 9).join(', ') || 'the server',
    )
  }

  #patient(wait: Promise<unknown> | undefined): Promise<unknown> {
    return Promise.race([wait, this.#hurried.promise, this.#parts.states.closed])
  }

  // Resolves when no consumer has a message in hand and no UNSUBSCRIBE is unanswered. Each running
  // consumer is checked only until it is done.
  async #turnsEnded(): Promise<void> {
    const { subscriptions } = this.#parts
    for (let running: Consumer[] = []; ; ) {
      while (running.at(-1)?.busy === false) running.pop()
      if (running.length + subscriptions.openUnsubscribes === 0) {
        running = subscriptions.membership.running
        if (running.length === 0) return
      }
      await new Promise<void>((resolve) => {
        this.#turnEnded = resolve
      })
    }
  }
}

// Describes what would end a turn, and its filters.
function turnOf({ readers, config, attended, subscription }: Consumer): string {
  const what = readers.handler
    ? 'a handler'
    : attended && config.ack !== 'manual'
      ? 'a loop'
      : 'next() or ack()'
  return `${what} on ${subscription.granted.map(({ filter }) => filter)}`
}
