/**
 * The hooks of one client, in the order in which they came. Made when the first one comes: a client without hooks has none of this.
 */

import { aborted, deferred, onAbort, rejected, tolerant } from '../common/abort.js'
import { closedError } from '../common/outcome.js'
import { callable, object, optional } from '../common/schema.js'
import { type MqttError, put } from '../errors.js'
import type {
  HandlerRunner,
  Hooks,
  Message,
  PublishCall,
  PublishOptions,
  Receipt,
  Settled,
} from './options/index.js'

const checked = /* @__PURE__ */ object<Hooks>({
  publish: /* @__PURE__ */ optional(callable),
  deliver: /* @__PURE__ */ optional(callable),
})

/** The end of the client, and why. */
interface Ended {
  readonly closed: Promise<unknown>
  readonly why?: string
  readonly failure?: MqttError | undefined
}

/** A message whose end can be watched. */
type Watched = Message & {
  readonly settled: boolean
  settle(reasonCode: number): boolean
  release(): void
}

/** Of a message without hooks to run. */
const direct: HandlerRunner = (handler) => handler()

/** Hooks in use. */
export class HookChain {
  readonly #hooks = new Set<Hooks>()
  readonly #runners = new WeakMap<Message, HandlerRunner>()
  /** Publishes that have not settled: what ends each when the client has ended. */
  readonly #open = new Set<() => void>()
  readonly #states: Ended

  constructor(states: Ended) {
    this.#states = states
    void states.closed.then(() => {
      for (const end of this.#open) end()
    })
  }

  /** Publishes that have gone through none or some, and have not settled. */
  get publishing(): number {
    return this.#open.size
  }

  /** One more; gives what takes it away. @throws MqttError ERR_INVALID_OPTION */
  add(given: Hooks): () => void {
    // A copy: the same one may come twice.
    const hooks = checked(given)
    this.#hooks.add(hooks)
    return () => void this.#hooks.delete(hooks)
  }

  /**
   * Goes through the hooks, and publishes in the end; `over` is called when that has settled. The abort of the call's signal and the end of the client settle it
   * whatever the hooks do; one that goes on after that publishes nothing.
   */
  publish(
    given: PublishCall,
    last: (call: PublishCall) => Promise<Receipt>,
    over: () => void,
  ): Promise<Receipt> {
    const { signal } = Object(given.options) as PublishOptions
    const early = deferred<Receipt>()
    let sent: Promise<Receipt> | undefined
    /** A hook has put a signal of its own in the place of the caller's. */
    let isDeaf = false
    let refused: MqttError | undefined
    const first = [...this.#hooks].reduceRight(
      (next, { publish }) =>
        publish === undefined ? next : (call) => publish(call, (changed = call) => next(changed)),
      (call: PublishCall) => {
        if (refused !== undefined) return rejected(refused)
        const { signal: other = signal } = Object(call.options) as PublishOptions
        isDeaf = other !== signal
        sent = last(
          signal === undefined || isDeaf ? call : { ...call, options: { ...call.options, signal } },
        )
        return sent
      },
    )
    // A publish that reached the client settles by itself.
    const end = (error: MqttError, done: (receipt: Receipt) => void): void => {
      refused ??= error
      if (sent === undefined) early.reject(error)
      else sent.then(done, early.reject)
    }
    const close = (): void => end(closedError(this.#states), early.resolve)
    const unknown = (): void => early.reject(aborted(signal, 'unknown'))
    const abort = (): void => (isDeaf ? unknown() : end(aborted(signal), unknown))
    const stop =
      signal instanceof Object && 'addEventListener' in signal ? onAbort(signal, abort) : undefined
    const done = (): void => {
      stop?.()
      this.#open.delete(close)
      over()
    }
    try {
      const settled = Promise.race([first(given), early.promise])
      this.#open.add(close)
      settled.then(done, done)
      return tolerant(settled)
    } catch (error) {
      stop?.()
      return rejected(error)
    }
  }

  /** A message is handed out. What hooks throw is reported. */
  deliver(
    message: Message,
    host: { report(code: 'MQWIRE_HANDLER_FAILED', text: string, cause: unknown): void },
  ): void {
    const { settle, release } = Object.getPrototypeOf(message) as Watched
    const settled = new Promise<Settled>((resolve) => {
      // An object may have several lives: what is set here is for this one.
      put(message, 'settle', (reasonCode: number) => {
        resolve({ reasonCode })
        return settle.call(message, reasonCode)
      })
      put(message, 'release', () => {
        // One that is left to the session is not.
        if ((message as Watched).settled) resolve({ reasonCode: 0 })
        release.call(message)
      })
    })
    const run = [...this.#hooks].reduce((outer, { deliver }) => {
      try {
        const runner = deliver?.(message, settled)
        if (typeof runner === 'function') return (handler) => outer(() => runner(handler))
      } catch (error) {
        host.report('MQWIRE_HANDLER_FAILED', 'deliver threw', error)
      }
      return outer
    }, direct)
    this.#runners.set(message, run)
  }

  /** Calls a handler, within what `deliver` asked for. */
  run(message: Message, handler: (message: Message) => unknown): unknown {
    // It may have been handed out before there were hooks.
    return (this.#runners.get(message) ?? direct)(() => handler(message))
  }
}
