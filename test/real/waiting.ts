/**
 * Waiting with a deadline: tests against real brokers wait for what they can observe, never for time to pass.
 *
 * A deadline that is missed says what was waited for.
 */
import type { Message, Subscription } from '../../src/client/node.js'
import { MqttError } from '../../src/errors.js'
import { pause } from '../support/pausing.js'

/** Milliseconds that anything local may take. Far above what is needed, so that a busy machine fails nothing; more where the environment says so. */
export const patience = Number(process.env['MQWIRE_PATIENCE'] ?? 12_000)

/** The promise's outcome, or an error that names what did not happen in time. */
export async function within<T>(
  promise: PromiseLike<T>,
  what: string,
  deadline = patience,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${deadline} ms`)), deadline)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Asks again and again, soon and then at leisure, until `probe` gives something other than undefined and false. */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  what = 'it',
  deadline = patience,
): Promise<Exclude<T, undefined | false>> {
  const end = performance.now() + deadline
  for (let delay = 1; ; delay = Math.min(10, delay * 2)) {
    const value = await probe()
    if (value !== undefined && value !== false) return value as Exclude<T, undefined | false>
    if (performance.now() > end) throw new Error(`${what}: not within ${deadline} ms`)
    await pause(delay)
  }
}

export async function take(
  subscription: Subscription,
  what = 'a message',
  deadline = patience,
): Promise<Message> {
  const message = await within(subscription.next(), what, deadline)
  if (message === undefined) throw new Error(`${what}: the subscription ended`)
  return message
}

/** The texts of the next `count` messages. */
export async function takeTexts(subscription: Subscription, count: number): Promise<string[]> {
  const texts: string[] = []
  while (texts.length < count) {
    const message = await take(subscription, `message ${texts.length + 1} of ${count}`)
    texts.push(message.text())
    // The last one would stay in hand, and hold up every acknowledgement behind it.
    message.ack()
  }
  return texts
}

/** The texts of all messages up to and without `last`: what came, and by its absence what did not. */
export async function textsUntil(subscription: Subscription, last: string): Promise<string[]> {
  const texts: string[] = []
  for (;;) {
    const text = (await take(subscription, `${last} after [${texts.join(', ')}]`)).text()
    if (text === last) return texts
    texts.push(text)
  }
}

/** The error of the package that a promise rejects with. May be asked for long before it is awaited. */
export function failure(
  promise: PromiseLike<unknown>,
  what: string,
  deadline = patience,
): Promise<MqttError> {
  const error = failureOf(promise, what, deadline)
  error.catch(() => undefined)
  return error
}

async function failureOf(
  promise: PromiseLike<unknown>,
  what: string,
  deadline: number,
): Promise<MqttError> {
  const outcome = promise.then(
    (value) => new Error(`${what}: fulfilled with ${String(value)}`),
    (error: unknown) =>
      MqttError.is(error) ? error : new Error(`${what}: not a typed error`, { cause: error }),
  )
  const error = await within(outcome, what, deadline)
  if (MqttError.is(error)) return error
  throw error
}

/** Numbers from 0, as texts. */
export function sequence(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index))
}
