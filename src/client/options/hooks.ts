/**
 * Hooks: what sees, changes or follows messages on their way through a client. Types only.
 */
import type { Message, Payload } from './message.js'
import type { PublishOptions, Receipt } from './publish.js'

/** A call of `publish`, as it was made. */
export interface PublishCall {
  /** Topic Name. */
  readonly topic: string
  /** The caller's own: not to be written to. */
  readonly payload: Payload
  /** The caller's own: not to be written to. */
  readonly options: PublishOptions | undefined
}

/** How the turn of a message ended. */
export interface Settled {
  /** As the message is acknowledged; 0 at QoS 0, and below 0x80 for success. */
  readonly reasonCode: number
}

/**
 * Hooks of one kind of concern. Several that are in use are called in the order of `use`: the first one is the outermost. What a hook throws is what the
 * call rejects with; of `deliver` it is a line of the log. A hook that hangs holds no caller of `publish` up beyond the abort of its signal, or the end of the
 * client.
 */
export interface Hooks {
  /**
   * Called with each `publish`, also those of `request`, of responders and of what stands on top; not with `post`, and not with what a queue that shares the
   * client's store publishes. `next()` goes on with the same call, `next(call)` with another one. Default: none.
   */
  readonly publish?:
    | ((call: PublishCall, next: (call?: PublishCall) => Promise<Receipt>) => Promise<Receipt>)
    | undefined
  /**
   * Called in the moment in which a message is handed to its reader, before that sees it. `settled` fulfils when its turn is over or it is acknowledged;
   * never where it is left to the session. A function that is returned runs the handler of a `listen`, each time that it is called: it has to call
   * what it is given, and to return what that returns. Default: none.
   */
  readonly deliver?:
    | ((message: Message, settled: Promise<Settled>) => HandlerRunner | undefined)
    | ((message: Message, settled: Promise<Settled>) => void)
    | undefined
}

/** Runs a handler. */
export type HandlerRunner = <T>(handler: () => T) => T
