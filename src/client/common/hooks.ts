/**
 * The hooks of one client, in the order in which they came. Made when the first one comes: a client without hooks has none of this.
 */

import { put } from '../../errors.js'
import type { HandlerRunner, Hooks, Message, PublishCall, Receipt, Settled } from '../api/index.js'
import { rejected, tolerant } from './abort.js'
import { callable, object, optional } from './schema.js'

const checked = /* @__PURE__ */ object<Hooks>({ publish: /* @__PURE__ */ optional(callable), deliver: /* @__PURE__ */ optional(callable) })

/** A message whose end can be watched. */
type Watched = Message & { readonly settled: boolean; settle(reasonCode: number): boolean; release(): void }

/** Of a message that nobody asked to run. */
const direct: HandlerRunner = (handler) => handler()

/** Hooks in use. */
export class HookChain {
  /** Publishes that have gone through none or some, and have not settled. */
  publishing = 0
  readonly #hooks = new Set<Hooks>()
  readonly #runners = new WeakMap<Message, HandlerRunner>()

  /** One more; gives what takes it away. @throws MqttError ERR_INVALID_OPTION */
  add(given: Hooks): () => void {
    // A copy: the same one may come twice.
    const hooks = checked(given)
    this.#hooks.add(hooks)
    return () => void this.#hooks.delete(hooks)
  }

  /** Goes through the hooks, and publishes in the end; `over` is called when that has settled. */
  publish(given: PublishCall, last: (call: PublishCall) => Promise<Receipt>, over: () => void): Promise<Receipt> {
    const first = [...this.#hooks].reduceRight(
      (next, { publish }) => (publish === undefined ? next : (call) => publish(call, (changed = call) => next(changed))),
      last,
    )
    const done = (): void => {
      this.publishing -= 1
      over()
    }
    try {
      const published = Promise.resolve(first(given))
      this.publishing += 1
      published.then(done, done)
      return tolerant(published)
    } catch (error) {
      return rejected(error)
    }
  }

  /** A message is handed out. What hooks throw is reported. */
  deliver(message: Message, host: { report(code: 'MQWIRE_HANDLER_FAILED', text: string, cause: unknown): void }): void {
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
