/** x */

import type { Difference } from './compare.js'
import type { Codec } from './foreign.js'
export interface Judgement {
  readonly name: string
  readonly codecs: readonly Codec[]
  readonly applies: (d: Difference) => boolean
  readonly section: string
  readonly reason: string
}
export const judgements: readonly Judgement[] = []
