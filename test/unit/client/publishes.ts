/** How calls come out, as text, for tests of sending. */
import type { ScriptedPeer } from '../../../src/testing/scripted-peer.js'

/** Of each promise `'pending'`, `'done'`, or the code of its error and the fate of the message: to be read after `settle()`. */
export function fates(...promises: Promise<unknown>[]): string[] {
  const texts = promises.map(() => 'pending')
  for (const [index, promise] of promises.entries()) {
    const end = (text: string): void => {
      texts[index] = text
    }
    promise.then(
      () => end('done'),
      ({ code, outcome }) => end(`${code} ${outcome}`),
    )
  }
  return texts
}

/** Payloads of the publishes that a connection carried, as text. */
export const texts = (peer: ScriptedPeer): string[] =>
  peer.all('publish').map(({ payload }) => new TextDecoder().decode(payload))
