/**
 * Medians, ratios and verdicts. Pure: numbers in, numbers and words out.
 */

/** The middle of the values; the mean of both middles when there are two. Not a number when there is none. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** The value below which this share of the values lies: `quantile(values, 0.99)`. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}

/** How far values lie apart, as a share of their median: the distance of the quartiles. */
export function spread(values) {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / median(values)
}

/** How many times as much the second values are, each beside its neighbour in time: the median of the ratios. */
export function paired(first, second) {
  return median(second.map((value, index) => value / first[index]))
}

/**
 * Whether a figure is on the right side of its limit. A figure that is no number never is.
 * @param {number} figure
 * @param {{ atLeast?: number, atMost?: number }} target
 * @returns {'met' | 'missed'}
 */
export function verdict(
  figure,
  { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY },
) {
  return figure >= atLeast && figure <= atMost ? 'met' : 'missed'
}
