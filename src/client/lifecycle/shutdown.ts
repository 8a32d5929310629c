/**
 * The end of a client in order: what its goodbye waits for, and how long.
 *
 * Shared filters are left, running turns end, publishes and acknowledgements leave, DISCONNECT is last; at once where there is nothing to wait for, as a
 * page that is being left has no later turn. What is given up is reported. There is one for a client, made by the first call. It must
 * never wait longer than its most impatient caller, and never hand out what cannot be acknowledged any more.
 */
import { deferred, onAbort } from '../../common/abort.js'
import type { Consumer } from '../deliver/consumer.js'
import type { Goodbye } from '../options/check-calls.js'
import { destroy, end, finish } from './closing.js'
import type { ClientInternals } from './internals.js'
import { sessionExpiry } from './transitions.js'

/** Milliseconds of a goodbye after which it says what it waits for. */
const patience = 1000

/** The end of one client that has not ended. */
export class Shutdown {
  readonly #parts: ClientInternals
  readonly #hurried = deferred<void>()
  /** No time is left to wait for anything. */
  #rushed = false
  #turnEnded: (() => void) | undefined
  #done: Promise<void> | undefined

  constructor(parts: ClientInternals) {
    this.#parts = parts
  }

  /** Begins the end, or joins it. */
  async disconnect(goodbye: Goodbye, drain: boolean): Promise<void> {
    const hurry = (): void => {
      this.#rushed = true
      this.#hurried.resolve()
    }
    // Of several calls, the shortest timeout decides.
    const cancel = this.#parts.platform.setTimer(hurry, goodbye.timeout)
    if (goodbye.timeout === 0) hurry()
    const cease = onAbort(goodbye.signal, hurry)
    if (this.#done === undefined) {
      // Set before listeners run, so that a listener's own call joins.
      const { promise, resolve, reject } = deferred<void>()
      this.#done = promise
      this.#stop(goodbye, drain).then(resolve, reject)
    }
    await this.#done
    cancel()
    cease()
  }

  /** To be called when a turn of a consumer ended. */
  handleTurnEnd(): void {
    this.#turnEnded?.()
  }

  async #stop({ reasonCode, properties, timeout }: Goodbye, drain: boolean): Promise<void> {
    const parts = this.#parts
    const { connections, publishQueue, subscriptions, session, states } = parts
    const { draining } = publishQueue
    const atOnce = this.#rushed
    const connected = states.current === 'connected'
    states.by ||= drain ? 'drain()' : 'disconnect()'
    // What is to be sent needs a connection.
    states.draining = drain && states.current !== 'idle'
    // A connection that we replace ourselves is as good as there.
    const waits = (states.draining || connections.replaced) && draining.open > 0
    // Nothing to say goodbye to: an attempt that is under way is given up.
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
    publishQueue.handleStopping()
    parts.events.transition(() => {
      states.enter('disconnecting')
      subscriptions.close(states.sessionEnds && !atOnce)
      if (!connected && !states.draining && !connections.replaced) finish(parts, undefined)
    })
    if (subscriptions.openUnsubscribes + subscriptions.membership.running.length > 0)
      await this.#patient(this.#turnsEnded())
    states.sealed = true
    // Without `draining`, the end of the connection ends the wait.
    if (drain || draining.open > 0) await this.#patient(draining.drained())
    if (publishQueue.keeper !== undefined) await this.#patient(publishQueue.keeper.idle())
    const lost = connections.connection === undefined
    subscriptions.membership.letGo()
    subscriptions.senderIfUsed?.flush()
    const link = connections.current
    // A link that was stuck until the time was over gets no more.
    const lingers = this.#rushed && (atOnce || link?.writer.writable === true)
    if (link !== undefined && session.state === 'connected') {
      link.writer.flush()
      session.disconnect(reasonCode, properties)
      link.pump()
      link.end(atOnce ? undefined : timeout)
      await this.#patient(states.closed)
    }
    // A peer that does not end its side is cut off, when our goodbye had time to leave; else the connection gives it a little longer.
    if (!lingers) link?.destroy()
    hush()
    end(parts, states.failure)
    this.#reportUnsent(states.by, timeout, lost)
  }

  // What a store keeps is not lost.
  #reportUnsent(call: string, timeout: number, lost: boolean): void {
    const { queued, inFlight } = this.#parts.publishQueue.givenUp
    const count = queued + inFlight
    if (count === 0) return
    const why = lost ? 'there was no connection' : `its timeout was ${timeout} ms`
    const what = `${count === 1 ? '1 publish' : `${count} publishes`} (${queued} queued, ${inFlight} sent and not acknowledged)`
    const wayOut =
      lost && call !== 'drain()' ? 'drain() waits for one' : 'a longer { timeout } waits longer'
    this.#parts.report('MQWIRE_UNSENT', `${call} gave up ${what}: ${why}; ${wayOut}`, undefined)
  }

  // Who waits this long wants to know for what.
  #reportWaits(drain: boolean): void {
    const { subscriptions, publishQueue, connections } = this.#parts
    const { size, inFlight } = publishQueue
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

  // Fulfils when no consumer has a message in hand, and no UNSUBSCRIBE waits for its answer. A consumer whose turn goes on is asked once.
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

// What ends a turn, and on which filters.
function turnOf({ readers, config, attended, subscription }: Consumer): string {
  const what = readers.handler
    ? 'a handler'
    : attended && config.ack !== 'manual'
      ? 'a loop'
      : 'next() or ack()'
  return `${what} on ${subscription.granted.map(({ filter }) => filter)}`
}
