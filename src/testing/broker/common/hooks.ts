/**
 * Calls the hooks of a test. They fail closed: anything but a valid verdict refuses. Promises have
 * a time limit, and failures are reported.
 *
 * A synchronous result takes effect synchronously. No promise of this file rejects.
 */
import { isReasonCode } from '../../../wire/reason-codes.js'
import { after, type BrokerClock } from './clock.js'
import type { HookName } from './events.js'

/** A value or its promise. */
export type Eventually<T> = T | Promise<T>

/** What calling hooks needs from the broker. */
export interface HookHost {
  readonly clock: BrokerClock
  /** Reports a failed hook. */
  reportHookError(hook: HookName, clientId: string, error: unknown): void
}

/** One call of a hook: its name, the client, and how to read the result. */
export interface Question<T> {
  readonly hook: HookName
  readonly clientId: string
  run(): unknown
  /** Converts the result of the hook; throws if it is invalid. */
  read(given: unknown): T
  /** The result to use when the hook failed. */
  failed(error: unknown): T
  /**
   * True when the hook throws this error in order to refuse. That is not a failure and is not
   * reported. Default: never.
   */
  meant?(error: unknown): boolean
  /** Milliseconds that a promise may take. */
  readonly timeout: number
}

/** Calls the hook; returns a promise only if the hook does. */
export function ask<T>(host: HookHost, question: Question<T>): Eventually<T> {
  try {
    const given = question.run()
    return isPromise(given) ? settled(host, question, given) : question.read(given)
  } catch (error) {
    return failed(host, question, error)
  }
}

/** Whether the value is a thenable. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'then' in value &&
    typeof value.then === 'function'
  )
}

function failed<T>(host: HookHost, question: Question<T>, error: unknown): T {
  if (question.meant?.(error) !== true)
    host.reportHookError(question.hook, question.clientId, error)
  return question.failed(error)
}

function settled<T>(
  host: HookHost,
  question: Question<T>,
  given: PromiseLike<unknown>,
): Promise<T> {
  const { hook, timeout } = question
  return new Promise((resolve) => {
    let open = true
    const close = (answer: () => T): void => {
      if (!open) return
      open = false
      cancel()
      resolve(answer())
    }
    const fail = (error: unknown): void => close(() => failed(host, question, error))
    const cancel = after(host.clock, timeout, () =>
      fail(new Error(`${hook} did not settle within ${timeout} ms`)),
    )
    // A foreign `then` may throw, or call back twice or synchronously; a native promise does not.
    Promise.resolve(given).then((value) => {
      try {
        const answer = question.read(value)
        close(() => answer)
      } catch (error) {
        fail(error)
      }
    }, fail)
  })
}

/**
 * The reason code in a verdict: true is 0, false 0x87, a code is itself; one of 0x80 or more that
 * the answer (a packet type) does not have is 0x80.
 *
 * @throws TypeError when the value is not a verdict
 */
export function codeOf(verdict: unknown, answer: number): number {
  if (typeof verdict === 'boolean') return verdict ? 0 : notAuthorized
  const code: unknown =
    typeof verdict === 'object' && verdict !== null && 'reasonCode' in verdict
      ? verdict.reasonCode
      : verdict
  if (typeof code !== 'number' || !Number.isInteger(code) || code < 0 || code > 0xff)
    throw new NoVerdict(verdict)
  return code < 0x80 || isReasonCode(answer, code, 'server') ? code : unspecified
}

/** The error for a hook result that is not a verdict. */
export class NoVerdict extends TypeError {
  constructor(given: unknown) {
    const what = given === null ? 'null' : typeof given === 'number' ? String(given) : typeof given
    super(`${what} is no verdict`)
  }
}

/** The reason code to use when a hook failed. */
export function codeWithout(error: unknown): number {
  return error instanceof NoVerdict ? notAuthorized : unspecified
}

const notAuthorized = 0x87
const unspecified = 0x80
