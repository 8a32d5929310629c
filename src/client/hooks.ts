/**
 * The hooks of one client, in the order of `use`. Created with the first one.
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

/** The end of the client and its reason. */
interface Ended {
  readonly closed: Promise<unknown>
  readonly why?: string
  readonly failure?: MqttError | undefined
}

/** A message whose settling can be observed. */
type Watched = Message & {
  readonly settled: boolean
  settle(reasonCode: number): boolean
  release(): void
}

/** The runner for a message without hooks. */
const direct: HandlerRunner = (handler) => handler()

/** The hooks in use. */
export class HookChain {
  readonly #hooks = new Set<Hooks>()
  readonly #runners = new WeakMap<Message, HandlerRunner>()
  /** For each publish in progress, the function that settles it when the client ends. */
  readonly #open = new Set<() => void>()
  readonly #states: Ended

  constructor(states: Ended) {
    this.#states = states
    void states.closed.then(() => {
      for (const end of this.#open) end()
    })
  }

  /** Publishes in hooks or in flight that have not settled. */
  get publishing(): number {
    return this.#open.size
  }

  /** Adds hooks; returns a function that removes them. @throws MqttError ERR_INVALID_OPTION */
  add(given: Hooks): () => void {
    // A copy, so that the same object can be added twice.
    const hooks = checked(given)
    this.#hooks.add(hooks)
    return () => void this.#hooks.delete(hooks)
  }

  /**
   * Runs the hooks, then publishes; `over` is called when that has settled. The call's signal and
   * the end of the client settle it, whatever the hooks do; a hook that continues after that
   * publishes nothing.
   */
  publish(
    given: PublishCall,
    last: (call: PublishCall) => Promise<Receipt>,
    over: () => void,
  ): Promise<Receipt> {
    const { signal } = Object(given.options) as PublishOptions
    const early = deferred<Receipt>()
    let sent: Promise<Receipt> | undefined
    /** A hook has replaced the caller's signal. */
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
    // Once a publish has reached the client, the client settles it.
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

  /** Calls the `deliver` hooks of a message. Errors are reported. */
  deliver(
    message: Message,
    host: { report(code: 'MQWIRE_HANDLER_FAILED', text: string, cause: unknown): void },
  ): void {
    const { settle, release } = Object.getPrototypeOf(message) as Watched
    const settled = new Promise<Settled>((resolve) => {
      // The object may be reused for other messages, so these replacements belong to this one.
      put(message, 'settle', (reasonCode: number) => {
        resolve({ reasonCode })
        return settle.call(message, reasonCode)
      })
      put(message, 'release', () => {
        // A message that is left to the session is not settled.
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

  /** Calls a handler inside the runners that `deliver` returned. */
  run(message: Message, handler: (message: Message) => unknown): unknown {
    // The message may have been handed out before there were hooks.
    return (this.#runners.get(message) ?? direct)(() => handler(message))
  }
}
