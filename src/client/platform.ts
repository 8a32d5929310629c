/**
 * What the client needs from its environment: time, randomness, timers, and how to dial.
 *
 * `client/node.ts` and `client/browser.ts` each provide one; tests use a scripted one. No other
 * client code reads a clock. Random numbers come from here too, except in `exponential()` when the
 * application calls its function without a source.
 */
import type { Reads } from '../common/reads.js'
import { longestTimer, type Parser } from '../common/schema.js'
import type { Dial, SocketOptions, Target, TlsOptions } from '../transport/transport.js'
import type { FrameScanner } from '../wire/frames.js'

/** Cancels a timer; has no effect after it ran. */
export type CancelTimer = () => void

/** The environment of a client. */
export interface Platform {
  /** Monotonic milliseconds. */
  now(): number
  /** Epoch milliseconds; used only to compare with times from outside. */
  date(): number
  /** A number in [0, 1). */
  random(): number
  /** Calls back once after `delay` milliseconds. */
  setTimer(callback: () => void, delay: number): CancelTimer
  /** Runs a callback after the current turn's synchronous code. */
  readonly microtask: (callback: () => void) => void
  /**
   * Runs a callback when this turn has no microtasks left, or soon after: output gathered until
   * then is sent together. If absent, `microtask` is used.
   */
  readonly turnEnd?: (callback: () => void) => void
  /** Runs a callback after timers, I/O and everything else that is due. */
  nextTurn(callback: () => void): void
  /**
   * Calls back when the machine or page may have slept, or the network is back; returns a function
   * that stops this. Absent without such signals.
   */
  onWake?(callback: () => void): CancelTimer
  /**
   * True while timers may be up to a minute late, as in a hidden page. Absent where they never are.
   */
  hidden?(): boolean
  /** Passes every event to a tracer of the program; absent where programs have no tracer. */
  trace?(type: string, event: object): void
  /** True when events of this type are traced. */
  traced?(type: string): boolean
  /**
   * A client was created (`ClientInternals`; must not be kept alive). Returns a function to call at
   * its end. Absent where the exit of a program cannot be observed.
   */
  attend?(client: object): () => void
  /** Prints what no listener of the program receives; absent where there is no console. */
  readonly report?: Report
  /** The supported URL schemes, as text for an error message. */
  readonly schemes: string
  /** The transport for a URL scheme; undefined if this platform has none. */
  dialler(scheme: string): Dial | undefined
  /** Creates the reader of sockets. Absent where the platform has no sockets. */
  reads?(...parts: ConstructorParameters<typeof Reads>): Reads
  /**
   * Allocates memory of exactly this size that need not be zeroed. Absent where that is not
   * cheaper.
   */
  allocate?(size: number): Uint8Array
  /** Loads the default scanner; resolves with undefined where the platform has no scanner. */
  loadScanner?(): Promise<FrameScanner | undefined>
  /**
   * Loads the session keeper for a client (`ClientInternals`) whose store does not include it.
   * Absent where it would enlarge every bundle.
   */
  loadKeeper?(parts: object): Promise<void>
  /** True when this connection failure was caused by TLS. */
  isTlsError(error: unknown): boolean
  /**
   * A platform error in a few words, such as its code, with a hint for this URL; without secrets.
   */
  describe(error: Error, url: URL): string
  /** Name of the first setting of the target that this platform does not support, or undefined. */
  unsupported(target: Target): string | undefined
  /** Check TLS and socket settings, on platforms that have them. */
  readonly tls?: Parser<TlsOptions>
  readonly socket?: Parser<SocketOptions>
}

/**
 * Calls back once this many milliseconds have passed by the monotonic clock or by the calendar: the
 * first may stand still during sleep, the second may be changed.
 */
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

// Random numbers drawn in batches, because each platform call is expensive. None is used twice.
const drawn = /* @__PURE__ */ new Uint32Array(64)
let left = 0

/** The parts that are the same in every runtime. */
export const runtime: Pick<Platform, 'now' | 'date' | 'random' | 'setTimer' | 'microtask'> = {
  now: () => performance.now(),
  date: () => Date.now(),
  // Cryptographic, because response topics and identifiers must not be guessable.
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

/** Subjects of reports. Stable, because programs and command lines compare them. */
export type ReportCode =
  | 'MQWIRE_HANDLER_FAILED'
  | 'MQWIRE_NOT_CONNECTED'
  | 'MQWIRE_OPTION_IGNORED'
  | 'MQWIRE_PUBLISH_REFUSED'
  | 'MQWIRE_UNSENT'

/** The text of a report and details such as a stack. */
export interface Said {
  readonly text: string
  readonly detail?: string | undefined
}

/**
 * Reports the result of `say`, which is called only if it is printed; `count`: number of
 * occurrences, default 1.
 */
export type Report = (code: ReportCode, say: () => Said, count?: number) => void
/** Prints a report. */
export type Print = (code: ReportCode, text: string, detail?: string) => void

interface Waiting {
  count: number
  say: () => Said
}

/**
 * Limits reports to one a second for each code, over all clients of a process. Occurrences in
 * between are counted and reported with the latest one. `afterSecond` calls back once, after a
 * second or at exit.
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
