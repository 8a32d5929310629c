/**
 * Which scanner a client reads with: the one that the application chose, or the platform's, both of which may still be on their way.
 *
 * Nothing waits for a scanner, and one that does not come is no failure.
 */

import { type Parser, that } from '../../common/schema.js'
import type { FrameScanner } from '../../wire/frames.js'
import type { Platform } from '../platform.js'

/** What the option `scanner` may be. */
export type ScannerOption = FrameScanner | PromiseLike<unknown> | false

/** Checks the option. */
export const scannerOption: Parser<ScannerOption> = that(
  (value) =>
    value === false ||
    isScanner(value) ||
    typeof (value as PromiseLike<unknown> | null)?.then === 'function',
  'what loadScanner() of mqwire/wasm gives, or false',
)

function isScanner(value: unknown): value is FrameScanner {
  return typeof (value as FrameScanner | null | undefined)?.frames === 'function'
}

/** Calls back with the scanner as soon as there is one, which may be never. */
export function findScanner(
  option: ScannerOption | undefined,
  platform: Platform,
  found: (scanner: FrameScanner) => void,
): void {
  if (option === false) return
  if (isScanner(option)) return found(option)
  const take = (loaded: unknown): void => {
    if (isScanner(loaded)) found(loaded)
  }
  Promise.resolve(option ?? platform.loadScanner?.()).then(take, () => undefined)
}
