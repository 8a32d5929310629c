/**
 * What the client needs of the world around it: time, randomness, timers, and how to dial. The only window out of `src/client`.
 *
 * `client/node.ts` and `client/browser.ts` each give one; tests give a scripted one. Nothing else in the client reads a clock or a global.
 */
import type { Reads } from '../common/reads.js'
import { longestTimer, type Parser } from '../common/schema.js'
import type { Dial, SocketOptions, Target, TlsOptions } from '../transport/transport.js'
import type { FrameScanner } from '../wire/frames.js'

/** Cancels a timer; harmless when it has run. */
export type CancelTimer = () => void

/** The world as the client sees it. */
export interface Platform {
  /** Monotonic milliseconds. */
  now(): number
  /** Epoch milliseconds: only to compare with times that others gave. */
  date(): number
  /** A number in [0, 1). */
  random(): number
  /** Calls back once after `delay` milliseconds. */
  setTimer(callback: () => void, delay: number): CancelTimer
  /** Runs a callback after the current turn's synchronous code. */
  readonly microtask: (callback: () => void) => void
  /** Runs a callback when this turn has no microtask left, or soon after it: what is gathered until then leaves together. Absent: `microtask` serves. */
  readonly turnEnd?: (callback: () => void) => void
  /** Runs a callback after timers, input and everything else that waits had their turn. */
  nextTurn(callback: () => void): void
  /** Calls back when the machine or the page may have slept, or is back on a network; gives a function that ends that. Absent without such signals. */
  onWake?(callback: () => void): CancelTimer
  /** True where timers may come up to a minute late: a hidden page. Absent where they never do. */
  hidden?(): boolean
  /** Hands every event to a tracer of the program; absent where there is no such thing. */
  trace?(type: string, event: object): void
  /** True when events of this type are traced. */
  traced?(type: string): boolean
  /** A client was made: its `Parts`, not to be kept alive by this; gives what is called at its end. Absent where the end of a program cannot be observed. */
  attend?(client: object): () => void
  /** Prints what no listener in the program takes; absent where there is no console to read. */
  readonly report?: Report
  /** The URL schemes that have a transport, for a sentence. */
  readonly schemes: string
  /** The transport of a URL scheme, or undefined when this platform has none. */
  dialler(scheme: string): Dial | undefined
  /** Makes the reader of sockets. Absent where the platform has no sockets. */
  reads?(...parts: ConstructorParameters<typeof Reads>): Reads
  /** Gives memory that need not be zeroed, of exactly this size, where that is cheaper. */
  allocate?(size: number): Uint8Array
  /** Loads the default scanner; fulfils with undefined where the platform has no such scanner. */
  loadScanner?(): Promise<FrameScanner | undefined>
  /** Keeps the session of a client, its `Parts`, in a store that does not bring what does that. Absent where it would be a part of every bundle. */
  loadKeeper?(parts: object): Promise<void>
  /** Did this failure to connect come from TLS? */
  isTlsError(error: unknown): boolean
  /** A platform error in few words, for example its code, and what to look at where it was dialling this; without anything secret. */
  describe(error: Error, url: URL): string
  /** Name of the first setting of the target that this platform cannot honour, or undefined. */
  unsupported(target: Target): string | undefined
  /** Check the settings of TLS and sockets, on platforms that have them. */
  readonly tls?: Parser<TlsOptions>
  readonly socket?: Parser<SocketOptions>
}

/** Calls back once so many milliseconds have passed by the clock or by the calendar: the one may stand still in sleep, the other be set. */
export function whenPassed(
  platform: Platform,
  duration: number,
  callback: () => void,
): CancelTimer {
  const since = platform.now()
  const from = platform.date()
  let cancel: CancelTimer = () => undefined
  const check = (): void => {
    const left = duration - Math.max(platform.now() - since, platform.date() - from)
    if (left <= 0) callback()
    else cancel = platform.setTimer(check, Math.min(left, longestTimer))
  }
  check()
  return () => cancel()
}

// Drawn many at a time: a call of the platform costs more than the numbers. None is used twice.
const drawn = /* @__PURE__ */ new Uint32Array(64)
let left = 0

/** The parts of a platform that every runtime has under the same names. */
export const runtime: Pick<Platform, 'now' | 'date' | 'random' | 'setTimer' | 'microtask'> = {
  now: () => performance.now(),
  date: () => Date.now(),
  // Response topics and identifiers come from it, and must not be guessed.
  random() {
    if (left === 0) left = crypto.getRandomValues(drawn).length
    left -= 1
    return (drawn[left] as number) / 4_294_967_296
  },
  setTimer(callback, delay) {
    const timer = setTimeout(callback, delay)
    return () => clearTimeout(timer)
  },
  microtask: (callback) => queueMicrotask(callback),
}

/** What a report is about. Stable: programs and command lines compare against it. */
export type ReportCode =
  | 'MQWIRE_HANDLER_FAILED'
  | 'MQWIRE_NOT_CONNECTED'
  | 'MQWIRE_OPTION_IGNORED'
  | 'MQWIRE_PUBLISH_REFUSED'
  | 'MQWIRE_UNSENT'

/** A sentence and, below it, details such as a stack. */
export interface Said {
  readonly text: string
  readonly detail?: string | undefined
}

/** Reports what `say` gives, which is called where that is printed and only there; `count` is how many it stands for, default 1. */
export type Report = (code: ReportCode, say: () => Said, count?: number) => void
/** Prints it. */
export type Print = (code: ReportCode, text: string, detail?: string) => void

interface Waiting {
  count: number
  say: () => Said
}

/**
 * At most one report a second and code, over all clients of a process, as a fault may happen a thousand times a second; the latest of those between
 * follows with their count. `afterSecond` calls back once, in a second or at the end.
 */
export function spaced(print: Print, afterSecond: (callback: () => void) => void): Report {
  const open = new Map<ReportCode, Waiting>()
  return function report(code, say, count = 1) {
    const between = open.get(code)
    if (between !== undefined) {
      between.say = say
      between.count += count
      return
    }
    const next: Waiting = { count: 0, say }
    open.set(code, next)
    const { text, detail } = say()
    print(code, count > 1 ? `${text} (and ${count - 1} more)` : text, detail)
    afterSecond(() => {
      open.delete(code)
      if (next.count > 0) report(code, next.say, next.count)
    })
  }
}
