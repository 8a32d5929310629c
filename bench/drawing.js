/**
 * The curves of growth as one SVG: a small chart for each, both axes logarithmic, each line named at its end. Pure: curves in, text out.
 *
 * It brings its own background, with colours for light and for dark, so that it can be read on any page.
 */
import { figure, growthOf } from './report.js'

const width = 760
const cell = { width: width / 2, height: 212 }
const head = 58
/** The part of a cell that the lines have. */
const plot = { left: 52, top: 46, width: 196, height: 128 }
const sides = ['mqwire', 'peer']

const style = `
text { font: 11px system-ui, sans-serif; fill: #59636e }
.name { font-size: 13px; font-weight: 600; fill: #1f2328 }
.page { fill: #ffffff }
.grid { stroke: #d8dee4; stroke-width: 1 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
.mqwire { stroke: #0a5bc4 } .peer { stroke: #b04a00; stroke-dasharray: 5 3 }
.dot { stroke: none } .dot.mqwire, .end.mqwire { fill: #0a5bc4; stroke: none } .dot.peer, .end.peer { fill: #b04a00; stroke: none }
.end { font-weight: 600 }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 } .name { fill: #f0f6fc } .page { fill: #0d1117 } .grid { stroke: #30363d }
.mqwire { stroke: #6cb2ff } .peer { stroke: #f2a65e }
.dot.mqwire, .end.mqwire { fill: #6cb2ff } .dot.peer, .end.peer { fill: #f2a65e }
}
`

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
const text = (x, y, words, more = '') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}"${more}>${escaped(words)}</text>`

/** A time in nanoseconds, in the unit that makes it short. */
function timeOf(nanoseconds) {
  const [unit, name] = [
    [1e6, 'ms'],
    [1e3, 'µs'],
    [1, 'ns'],
  ].find(([each]) => nanoseconds >= each) ?? [1, 'ns']
  return figure(nanoseconds / unit, name)
}

/** Whole decades around the values, at least two. */
function decadesOf(values) {
  let low = Math.floor(Math.log10(Math.min(...values)))
  let high = Math.ceil(Math.log10(Math.max(...values)))
  while (high - low < 2) {
    if (Math.log10(Math.max(...values)) > (low + high) / 2) high++
    else low--
  }
  return { low, high }
}

const costsOf = (points) =>
  points.flatMap((point) => sides.map((side) => point[side])).filter((cost) => cost > 0)

/** Labels of the points, from the last one on; one that has no room is left out. */
function labelsOf(points, xOf, bottom) {
  const labels = []
  let free = Number.POSITIVE_INFINITY
  for (const { at, label } of points.toReversed()) {
    const half = label.length * 3 + 3
    if (xOf(at) + half > free) continue
    free = xOf(at) - half
    labels.push(text(xOf(at), bottom, label, ' text-anchor="middle"'))
  }
  return labels
}

function chartOf(curve, left, top) {
  const { name, axis, points, peerName } = curve
  const { low, high } = decadesOf(costsOf(points))
  const [first, last] = [points[0].at, points.at(-1).at].map(Math.log10)
  const xOf = (at) => left + ((Math.log10(at) - first) / (last - first)) * plot.width
  const yOf = (cost) => top + ((high - Math.log10(cost)) / (high - low)) * plot.height
  const grid = Array.from({ length: high - low + 1 }, (_, index) => {
    const y = yOf(10 ** (low + index))
    return `<path class="grid" d="M${left} ${y.toFixed(1)}h${plot.width}"/>${text(left - 6, y + 4, timeOf(10 ** (low + index)), ' text-anchor="end"')}`
  })
  const ends = []
  const lines = sides.map((side) => {
    const known = points.filter((point) => point[side] > 0)
    if (known.length === 0) return ''
    const places = known.map(
      (point) => `${xOf(point.at).toFixed(1)} ${yOf(point[side]).toFixed(1)}`,
    )
    const dots = places.map((place) => {
      const [x, y] = place.split(' ')
      return side === 'mqwire'
        ? `<circle class="dot ${side}" cx="${x}" cy="${y}" r="3"/>`
        : `<path class="dot ${side}" d="M${x} ${y}m-3 -3h6v6h-6z"/>`
    })
    const words = `${side === 'mqwire' ? side : peerName} ×${figure(growthOf(curve, side))}`
    ends.push({ side, words, x: xOf(known.at(-1).at) + 8, y: yOf(known.at(-1)[side]) + 4 })
    return `<path class="line ${side}" d="M${places.join('L')}"/>${dots.join('')}`
  })
  // Two names keep a line's height between them.
  const [upper, lower] = ends.sort((one, other) => one.y - other.y)
  const overlap = lower === undefined ? 0 : Math.max(0, 13 - (lower.y - upper.y)) / 2
  upper.y -= overlap
  if (lower !== undefined) lower.y += overlap
  return [
    text(left, top - 12, name, ' class="name"'),
    ...grid,
    ...labelsOf(points, xOf, top + plot.height + 16),
    text(left + plot.width / 2, top + plot.height + 31, axis, ' text-anchor="middle"'),
    ...lines,
    ...ends.map(({ side, words, x, y }) => text(x, y, words, ` class="end ${side}"`)),
  ].join('\n')
}

/** What the drawing shows, in words. */
function wordsOf(curve) {
  const { name, points, peerName } = curve
  const grown = `mqwire ×${figure(growthOf(curve, 'mqwire'))}, ${peerName} ×${figure(growthOf(curve, 'peer'))}`
  return `${name}, ${points[0].label} to ${points.at(-1).label}: ${grown}.`
}

/**
 * The drawing.
 * @param {{ name: string, axis: string, peerName: string, points: { at: number, label: string, mqwire?: number, peer?: number }[] }[]} curves costs in nanoseconds
 */
export function drawing(curves) {
  const height = head + Math.ceil(curves.length / 2) * cell.height
  const charts = curves.map((curve, index) =>
    chartOf(
      curve,
      (index % 2) * cell.width + plot.left,
      head + Math.floor(index / 2) * cell.height + plot.top - 20,
    ),
  )
  const title = 'Processor time of a message while one number grows'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title words">
<title id="title">${title}</title>
<desc id="words">${escaped(curves.map(wordsOf).join(' '))}</desc>
<style>${style}</style>
<rect class="page" width="${width}" height="${height}" rx="6"/>
${text(20, 26, title, ' class="name"')}
${text(20, 43, 'Upwards: time for one message (fan-out: for one delivery). Both axes are logarithmic. ×: the last point by the first.')}
${charts.join('\n')}
</svg>
`
}
