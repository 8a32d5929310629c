/**
 * Hooks, which observe or change messages on their way through a client. Types only.
 */
import type { Message, Payload } from './message.js'
import type { PublishOptions, Receipt } from './publish.js'

/** The arguments of a `publish` call. */
export interface PublishCall {
  /** Topic Name. */
  readonly topic: string
  /** The caller's own object; must not be changed. */
  readonly payload: Payload
  /** The caller's own object; must not be changed. */
  readonly options: PublishOptions | undefined
}

/** How the turn of a message ended. */
export interface Settled {
  /** The reason code of the acknowledgement: 0 at QoS 0, below 0x80 for success. */
  readonly reasonCode: number
}

/**
 * A set of hooks. Several are called in the order of `use`; the first one is the outermost. An
 * error thrown by `publish` rejects the call; one thrown by `deliver` is logged. A hook that hangs
 * delays a caller of `publish` at most until the signal of the call aborts or the client ends.
 */
export interface Hooks {
  /**
   * Called with each `publish`, including those of `request`, of responders and of other modules of
   * this package; not with `post`, and not with publishes of a queue that shares the client's
   * store. `next()` continues with the same call, `next(call)` with another one. Default: none.
   */
  readonly publish?:
    | ((call: PublishCall, next: (call?: PublishCall) => Promise<Receipt>) => Promise<Receipt>)
    | undefined
  /**
   * Called right before a message is handed to its reader. `settled` resolves when its turn is over
   * or it is acknowledged; never if it is left to the session. A returned function runs the handler
   * of a `listen` at each attempt: it must call the function it is given and return its result.
   * Default: none.
   */
  readonly deliver?:
    | ((message: Message, settled: Promise<Settled>) => HandlerRunner | undefined)
    | ((message: Message, settled: Promise<Settled>) => void)
    | undefined
}

/** Runs a handler. */
export type HandlerRunner = <T>(handler: () => T) => T
