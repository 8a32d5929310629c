/**
 * The matrix of a report, with all features of the suite: what `test/lab/brokers.ts` writes to MATRIX.md.
 *
 * It runs outside vitest: nothing here may define a test.
 */
import { features } from './features.js'
import { matrix, type Report, resultsOf } from './matrix.js'

/** MATRIX.md. */
export function tableOf(report: Report): string {
  return matrix(features, resultsOf(report))
}

/** One line for each cell that failed. */
export function failures(report: Report): string[] {
  return resultsOf(report).flatMap(({ passed, broker, transport, feature }) =>
    passed ? [] : [`failed: ${feature}, ${broker} over ${transport}`],
  )
}
