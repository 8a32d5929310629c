/**
 * The alarm for regressions: ratios measured now beside the committed ones of `baseline.json`. Pure.
 */

/** A ratio under this share of its committed value is a regression. */
export const leastShare = 0.6

/**
 * What is wrong with the ratios measured: those under 60 % of their committed value, and those that are missing or no number.
 * @param {Record<string, number>} committed
 * @param {Record<string, number>} measured
 * @returns {{ name: string, committed: number, measured: number | undefined }[]}
 */
export function regressions(committed, measured) {
  return Object.entries(committed)
    .filter(([name, ratio]) => !(measured[name] >= ratio * leastShare))
    .map(([name, ratio]) => ({ name, committed: ratio, measured: measured[name] }))
}
