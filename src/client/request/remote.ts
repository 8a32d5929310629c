/**
 * How a responder sends an error to the requester: a User Property `error` with a code, and a text
 * as the payload. Both directions.
 */
import { MqttError, printable } from '../../errors.js'
import type { Message } from '../options/index.js'

/** The answer message behind each remote error, for code that reads more than its text. */
export const answers = /* @__PURE__ */ new WeakMap<object, Message>()

/** The error that a requester gets from an error answer. */
export function remoteError(answer: Message, code: string): MqttError {
  const error = new MqttError('ERR_REMOTE', printable(answer.text()) || undefined, {
    fault: 'remote',
    outcome: 'unknown',
    reasonName: printable(code),
  })
  answers.set(error, answer)
  return error
}

/**
 * Code and text of an error answer. Only an `ERR_REMOTE` created by the handler reveals anything;
 * other errors do not.
 */
export function errorAnswer(error: unknown): readonly [code: string, text: string] {
  if (!MqttError.is(error) || error.code !== 'ERR_REMOTE' || error.fault !== 'local')
    return ['ERR_HANDLER_FAILED', '']
  return [printable(error.reasonName ?? error.code), printable(error.message)]
}

/**
 * The error to answer with when the real answer is too large to send; undefined for other errors.
 */
export function unsendable(error: unknown): MqttError | undefined {
  if (!MqttError.is(error) || error.code !== 'ERR_PACKET_TOO_LARGE') return undefined
  return new MqttError('ERR_REMOTE', 'the answer is too large', { reasonName: error.code })
}
