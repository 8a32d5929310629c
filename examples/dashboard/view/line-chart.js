/**
 * Lines over time, drawn by uPlot: made anew when other lines are to be seen, otherwise given the new points.
 *
 * A line is `{ key, name, values, count, shown }`; there are eight colours, and from the ninth line on they come again, dashed.
 */
import uPlot from 'uplot'
import { colour } from './theme.js'

const colourCount = 8
/** Seconds that are seen at least, so that the first points do not jump. */
const shortest = 30
/** Fewer points than this are seen as points too. */
const sparse = 25

/** The colour of a line, as the style sheet names it. */
export const lineColour = (index) => `--line-${index % colourCount}`
/** True for a line whose colour another one has too. */
export const isDashed = (index) => index >= colourCount

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 6 })

/** A chart in an element, as large as that. */
export class LineChart {
  #host
  #plot
  #key
  #lines = []
  #onCursor
  #fromZero

  /** `onCursor(index)` is told the point below the pointer, undefined when there is none. `fromZero` keeps 0 in sight. */
  constructor(host, { onCursor = () => {}, fromZero = false } = {}) {
    this.#host = host
    this.#onCursor = onCursor
    this.#fromZero = fromZero
    new ResizeObserver(() => this.#plot?.setSize(this.#size)).observe(host)
  }

  /** Draws the lines over the times. */
  draw(times, lines) {
    this.#lines = lines
    const key = JSON.stringify(lines.map((line) => line.key))
    const data = [times, ...lines.map(({ values }) => values)]
    if (this.#plot === undefined || key !== this.#key) {
      this.#key = key
      this.#plot?.destroy()
      this.#plot = new uPlot(this.#options(lines), data, this.#host)
      return
    }
    lines.forEach(({ shown }, index) => {
      if (this.#plot.series[index + 1].show !== shown)
        this.#plot.setSeries(index + 1, { show: shown })
    })
    this.#plot.setData(data)
  }

  /** The colours are others. */
  recolour() {
    this.#plot?.redraw(false)
  }

  get #size() {
    return {
      width: Math.max(120, this.#host.clientWidth),
      height: Math.max(120, this.#host.clientHeight),
    }
  }

  #options(lines) {
    const axis = {
      stroke: () => colour('--muted'),
      font: '11px system-ui, sans-serif',
      grid: { stroke: () => colour('--grid'), width: 1 },
      ticks: { stroke: () => colour('--grid'), width: 1, size: 4 },
    }
    return {
      ...this.#size,
      padding: [8, 26, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      hooks: { setCursor: [({ cursor }) => this.#onCursor(cursor.idx ?? undefined)] },
      scales: {
        x: { time: true, range: (_plot, min, max) => this.#span(min, max) },
        y: { range: (_plot, min, max) => this.#range(min, max) },
      },
      axes: [
        {
          ...axis,
          size: 28,
          space: 70,
          values: (_plot, ticks) =>
            ticks.map((tick) => new Date(tick * 1000).toLocaleTimeString('en-GB')),
        },
        { ...axis, size: 52, values: (_plot, ticks) => ticks.map((tick) => number.format(tick)) },
      ],
      series: [
        {},
        ...lines.map((line, index) => ({
          label: line.name,
          show: line.shown,
          stroke: () => colour(lineColour(index)),
          width: 1.75,
          ...(isDashed(index) && { dash: [6, 4] }),
          points: { size: 5, show: () => (this.#lines[index]?.count ?? 0) < sparse },
        })),
      ],
    }
  }

  #span(min, max) {
    const end = max ?? Date.now() / 1000
    return [Math.min(min ?? end, end - shortest), end]
  }

  #range(min, max) {
    if (min === null || max === null) return [0, 1]
    const low = this.#fromZero ? Math.min(0, min) : min
    const room = (max - low) * 0.1 || Math.abs(max) * 0.1 || 1
    return [this.#fromZero && low === 0 ? 0 : low - room, max + room]
  }
}
