/**
 * Results as rows, as a table and as JSON. Pure: no clock, no files.
 *
 * A row is `{ name, part, target, ratio, verdict, … }`: `ratio` is the number that the target speaks about, and `unit` says of what when it is not a
 * ratio. Rows without a target are figures to know; rows that could not be measured are kept apart with the reason.
 */
import { verdict } from './statistics.js'

/** A limit whose rounds lie further apart is shown, and not judged. */
const mostSpread = 0.2

/** One row from its specification and what was measured. */
export function rowOf(part, name, spec, measured) {
  const { target, atLeast, atMost, leastShare, stretch, unit = '×' } = spec
  const { ratio, mqwire, peer, peerName, figures, processor, note, limit, point } = measured
  // A limit that is not steady says nothing.
  const isSteady = limit === undefined || limit.spread <= mostSpread
  const judged =
    leastShare === undefined
      ? [ratio, { atLeast, atMost }]
      : [limit?.share, { atLeast: leastShare }]
  const row = {
    name,
    part,
    target,
    ratio,
    verdict:
      target === undefined || (leastShare !== undefined && !isSteady)
        ? undefined
        : verdict(...judged),
  }
  return {
    ...row,
    unit,
    spread: measured.spread,
    limit,
    lessIsBetter: atMost !== undefined || spec.lessIsBetter === true,
    stretch,
    mqwire,
    peer,
    peerName,
    figures,
    processor,
    note,
    point,
  }
}

/** The object that `--json` prints: rows with targets, figures without, what was skipped and what failed. */
export function jsonOf({ machine, peers, rows, skipped, failed }) {
  return {
    machine,
    peers,
    rows: rows.filter(({ target }) => target !== undefined),
    figures: rows
      .filter(({ target }) => target === undefined)
      .map(({ verdict: _, target: __, ...row }) => row),
    skipped,
    failed,
  }
}

/** A figure with as many digits as mean something. */
export function figure(value, unit = '') {
  if (typeof value !== 'number' || Number.isNaN(value)) return '–'
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  const text = value.toLocaleString('en', {
    minimumFractionDigits: 0,
    maximumFractionDigits: Math.abs(value) < 0.1 ? 3 : digits,
  })
  return unit === ''
    ? text
    : unit === '×' || unit === '%'
      ? `${text}${unit === '%' ? ' %' : unit}`
      : `${text} ${unit}`
}

function sideOf(row, side) {
  if (row[side] === undefined) return '–'
  return figure(row[side], row.figures)
}

/** One line of the table. */
export function lineOf(row) {
  const measured = figure(row.ratio, row.unit)
  const processor = row.processor === undefined ? '–' : `${figure(row.processor.ratio)}`
  const cells = [
    row.name,
    row.target ?? '–',
    row.spread === undefined ? measured : `${measured} ± ${figure(row.spread * 50, '%')}`,
    row.limit === undefined
      ? '–'
      : `${figure(row.limit.share * 100, '%')} ± ${figure(row.limit.spread * 50, '%')} of a ${row.limit.of}`,
    row.verdict ?? '–',
    sideOf(row, 'mqwire'),
    `${sideOf(row, 'peer')}${row.peerName ? ` (${row.peerName})` : ''}`,
    processor,
  ]
  return `| ${cells.join(' | ')} |`
}

/** The head of the table. */
export const tableHead =
  '| row | target | to the peer | to the limit | verdict | mqwire | peer | CPU a message, mqwire ÷ peer |\n| --- | --- | ---: | ---: | --- | ---: | ---: | ---: |'

/** The whole table. */
export function tableOf(rows) {
  return [tableHead, ...rows.map(lineOf)].join('\n')
}

/**
 * The rows of growth as curves: `{ name, axis, about, peerName, points }`, a point `{ at, label, mqwire, peer }`.
 * @returns those of which at least two points were measured
 */
export function curvesOf(rows) {
  const curves = new Map()
  for (const { point, mqwire, peer, peerName } of rows) {
    if (point === undefined) continue
    const { curve: name, axis, about, at, label } = point
    const curve = curves.get(name) ?? { name, axis, about, peerName, points: [] }
    curves.set(name, curve)
    curve.points.push({ at, label, mqwire, peer })
  }
  return [...curves.values()].filter(({ points }) => points.length > 1)
}

/** How many times the cost of the first point the one of the last point is. */
export function growthOf({ points }, side) {
  const costs = points.map((point) => point[side]).filter((cost) => cost !== undefined)
  return costs.at(-1) / costs[0]
}

function growthTable(curves) {
  const lines = curves.flatMap(({ name, peerName, points }) =>
    points.map(({ label, mqwire, peer }) => {
      const grown = [mqwire / points[0].mqwire, peer / points[0].peer]
      const cells = [name, label, figure(mqwire, 'ns'), `${figure(peer, 'ns')} (${peerName})`]
      return `| ${[...cells, ...grown.map((each) => figure(each, '×'))].join(' | ')} |`
    }),
  )
  const head =
    '| curve | at | mqwire | peer | mqwire ÷ its first | peer ÷ its first |\n| --- | --- | ---: | ---: | ---: | ---: |'
  return [head, ...lines].join('\n')
}

/** Rows in which mqwire does worse than its peer. A bare socket or loop is a limit, and no peer. */
export function slowerRows(rows) {
  return rows.filter((row) => {
    if (row.mqwire === undefined || row.peer === undefined) return false
    if (row.peerName?.startsWith('bare')) return false
    return row.lessIsBetter ? row.mqwire > row.peer : row.unit === '×' && row.ratio < 1
  })
}

function listOf(rows, empty) {
  if (rows.length === 0) return empty
  return rows
    .map(
      (row) =>
        `- ${row.name}: ${figure(row.ratio, row.unit)}${row.limit === undefined ? '' : `, ${figure(row.limit.share * 100, '%')} of a ${row.limit.of}`}${row.target === undefined ? '' : `, target ${row.target}`}`,
    )
    .join('\n')
}

/** Where the time of a missed row goes. */
function profileOf({ name, profile }) {
  const parts = profile
    .slice(0, 8)
    .map(
      (each) =>
        `${each.name}${each.place === '' ? '' : ` (${each.place})`} ${(each.share * 100).toFixed(0)} %`,
    )
  return `- ${name}: ${parts.join(', ')}`
}

/** `bench/RESULTS.md`. */
export function documentOf({ machine, peers, rows, skipped, failed, date }) {
  const withTarget = rows.filter(({ target }) => target !== undefined)
  const figures = rows.filter(({ target, point }) => target === undefined && point === undefined)
  const curves = curvesOf(rows)
  const met = withTarget.filter(({ verdict: word }) => word === 'met')
  const missed = withTarget.filter(({ verdict: word }) => word === 'missed')
  const sections = [
    '# Results of `npm run bench`',
    `Written by \`npm run bench -- --write\` on ${date}: ${machine}. ${peers}`,
    'Each row is one run with its peer in turns; medians of the rounds, ± half the distance of their quartiles. The limit is the same bytes moved by a bare socket, or read by a bare loop, in the same run. Differences under 10 % (30 % for sockets) are noise. Figures of another machine differ, ratios less so.',
    'What an application does in the rows of receiving is to add up the length of topic and payload (`message.payloadLength`); rows that take the payload, as an array or as text, or read its bytes, say so.',
    `**${met.length} of ${withTarget.length} rows are met.**`,
    `## Missed\n\n${listOf(missed, 'None.')}`,
    `## Slower than a peer\n\n${listOf(slowerRows(rows), 'Nothing that was measured.')}`,
    `## Rows with a target\n\n${tableOf(withTarget)}`,
    `## Figures without a target\n\n${tableOf(figures)}`,
  ]
  if (curves.length > 0)
    sections.push(
      '## Growth',
      'What a message costs while one number grows: nanoseconds of processor time of the process, drawn in `docs/growth.svg`.',
      curves.map(({ name, about }) => `- ${name}: ${about}`).join('\n'),
      growthTable(curves),
    )
  const profiled = rows.filter(({ profile }) => profile !== undefined)
  if (profiled.length > 0)
    sections.push(`## Where the time of missed rows goes\n\n${profiled.map(profileOf).join('\n')}`)
  const noted = rows.filter(({ note }) => note !== undefined)
  if (noted.length > 0)
    sections.push(`## Notes\n\n${noted.map(({ name, note }) => `- ${name}: ${note}`).join('\n')}`)
  if (skipped.length > 0)
    sections.push(
      `## Not measured\n\n${skipped.map(({ name, reason }) => `- ${name}: ${reason}`).join('\n')}`,
    )
  if (failed.length > 0)
    sections.push(
      `## Failed\n\n${failed.map(({ name, reason }) => `- ${name}: ${reason}`).join('\n')}`,
    )
  return `${sections.join('\n\n')}\n`
}
