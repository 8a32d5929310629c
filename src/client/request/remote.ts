/**
 * How a responder sends an error to its caller: a User Property `error` with a code, and a text as the payload. Both ends of it.
 */
import { MqttError, printable } from '../../errors.js'
import type { Message } from '../options/index.js'

/** The answers that errors were made of, for those who read more in them than a text. */
export const answers = /* @__PURE__ */ new WeakMap<object, Message>()

/** The error of a caller: what the responder chose to reveal. */
export function remoteError(answer: Message, code: string): MqttError {
  const error = new MqttError('ERR_REMOTE', printable(answer.text()) || undefined, {
    fault: 'remote',
    outcome: 'unknown',
    reasonName: printable(code),
  })
  answers.set(error, answer)
  return error
}

/** Code and text for the caller: those of a local `ERR_REMOTE`. Errors of other kinds reveal nothing. */
export function errorAnswer(error: unknown): readonly [code: string, text: string] {
  if (!MqttError.is(error) || error.code !== 'ERR_REMOTE' || error.fault !== 'local')
    return ['ERR_HANDLER_FAILED', '']
  return [printable(error.reasonName ?? error.code), printable(error.message)]
}

/** The error that the caller gets when an answer is too large to be sent; undefined for any other error. */
export function unsendable(error: unknown): MqttError | undefined {
  if (!MqttError.is(error) || error.code !== 'ERR_PACKET_TOO_LARGE') return undefined
  return new MqttError('ERR_REMOTE', 'the answer is too large', { reasonName: error.code })
}
