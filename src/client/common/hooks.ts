/**
 * The hooks of one client, in the order in which they came. Made when the first one comes: a client without hooks has none of this.
 */
import type { HandlerRunner, Hooks, Message, PublishCall, Receipt, Settled } from '../api/index.js'
import { rejected, silent } from './abort.js'
import { callable, object, optional } from './schema.js'

const checked = /* @__PURE__ */ object<Hooks>({ publish: /* @__PURE__ */ optional(callable), deliver: /* @__PURE__ */ optional(callable) })

/** A message whose end can be watched. */
type Watched = Message & { readonly settled: boolean; settle(reasonCode: number): boolean; release(): void }

/** Hooks in use. */
export class HookChain {
  readonly #hooks = new Set<Hooks>()
  readonly #runners = new WeakMap<Message, HandlerRunner[]>()
  readonly #report: (error: unknown) => void

  /** @param report called with what `deliver` throws */
  constructor(report: (error: unknown) => void) {
    this.#report = report
  }

  /** One more; gives what takes it away. @throws MqttError ERR_INVALID_OPTION */
  add(given: Hooks): () => void {
    // The same one may come twice.
    const hooks = { ...checked(given) }
    this.#hooks.add(hooks)
    return () => void this.#hooks.delete(hooks)
  }

  /** Goes through the hooks, and publishes in the end. */
  publish(given: PublishCall, last: (call: PublishCall) => Promise<Receipt>): Promise<Receipt> {
    const go = (call: PublishCall, [hook, ...others]: Hooks[]): Promise<Receipt> => {
      if (hook === undefined) return last(call)
      const next = (changed = call): Promise<Receipt> => go(changed, others)
      return hook.publish === undefined ? next() : hook.publish(call, next)
    }
    try {
      return silent(Promise.resolve(go(given, [...this.#hooks])))
    } catch (error) {
      return rejected(error)
    }
  }

  /** A message is handed out. */
  deliver(message: Message): void {
    const { settle, release } = Object.getPrototypeOf(message) as Watched
    const settled = new Promise<Settled>((resolve) => {
      // An object may have several lives: what is set here is for this one.
      const watched = {
        settle(this: Watched, reasonCode: number) {
          resolve({ reasonCode })
          return settle.call(this, reasonCode)
        },
        release(this: Watched) {
          // One that is left to the session is not.
          if (this.settled) resolve({ reasonCode: 0 })
          release.call(this)
        },
      }
      for (const [name, value] of Object.entries(watched)) Object.defineProperty(message, name, { value, configurable: true })
    })
    const runners = [...this.#hooks].flatMap(({ deliver }) => {
      try {
        return deliver?.(message, settled) ?? []
      } catch (error) {
        this.#report(error)
        return []
      }
    })
    this.#runners.set(message, runners)
  }

  /** Calls a handler, within what `deliver` asked for. */
  run(message: Message, handler: (message: Message) => unknown): unknown {
    const runners = this.#runners.get(message) ?? []
    return runners.reduceRight<() => unknown>(
      (call, runner) => () => runner(call),
      () => handler(message),
    )()
  }
}
