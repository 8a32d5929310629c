/**
 * The screen of `watch`: what is drawn for a size and a state. Pure.
 */
import stringWidth from 'string-width'
import { readable, visible } from '../common/format.js'
import type { Colours } from '../common/terminal.js'
import { differences, sparkline, type TopicNode, type Topics } from './topics.js'

/** What the person has chosen. */
export interface View {
  /** The selected topic, by its path. */
  selected: string
  /** First row that is shown. */
  top: number
  search: string | undefined
  frozen: boolean
}

/** Rows below the tree: the selected value, and the line of keys. */
const detailRows = 7

/** Rows of the tree on a screen of this height. */
export function treeRows(height: number): number {
  return Math.max(3, height - detailRows - 2)
}

interface Row {
  readonly topic: TopicNode
  readonly depth: number
  readonly label: string
}

/** The rows of the tree, or those that the search finds. */
export function rowsOf(topics: Topics, view: View): Row[] {
  if (view.search !== undefined && view.search !== '')
    return topics.search(view.search, 500).map((topic) => ({ topic, depth: 0, label: topic.path }))
  return topics.rows().map(({ topic, depth }) => ({ topic, depth, label: topic.name }))
}

/** The lines of the screen. */
export function draw(
  topics: Topics,
  view: View,
  {
    width,
    height,
    now,
    colours,
    status,
  }: {
    readonly width: number
    readonly height: number
    readonly now: number
    readonly colours: Colours
    readonly status: string
  },
): string[] {
  const rows = rowsOf(topics, view)
  const space = treeRows(height)
  const labelWidth = Math.max(16, Math.floor(width * 0.42))
  const names = `${padded('topic', labelWidth)} ${'count'.padStart(9)} ${'per s'.padStart(7)} ${'bytes'.padStart(8)}  value`
  const head = colours.bold(padded(names, width))
  const shown = rows.slice(view.top, view.top + space).map((row) => {
    const line = padded(lineOf(row, labelWidth, width, now, colours), width)
    return row.topic.path === view.selected ? colours.inverse(line) : line
  })
  while (shown.length < space) shown.push('')
  const selected = rows.find(({ topic }) => topic.path === view.selected)?.topic
  const beyond =
    topics.beyond > 0 ? `, ${topics.beyond} messages on topics beyond ${topics.size}` : ''
  const summary = `${topics.root.count} messages, ${topics.root.rateAt(now).toFixed(0)}/s, ${topics.size} levels${beyond}${view.frozen ? ', FROZEN' : ''}  ${status}`
  const keys =
    view.search === undefined
      ? '↑↓ move  → open  ← close  / search  f freeze  q quit'
      : `/${view.search}▏ Enter keeps it, Esc ends it`
  return [
    head,
    ...shown,
    ...detailOf(selected, width, colours),
    padded(colours.dim(summary), width),
    padded(keys, width),
  ]
}

function lineOf(
  { topic, depth, label }: Row,
  labelWidth: number,
  width: number,
  now: number,
  colours: Colours,
): string {
  const mark = topic.children.size === 0 ? ' ' : topic.isOpen ? '▾' : '▸'
  const inside = labelWidth - depth * 2 - 2
  const name = `${' '.repeat(depth * 2)}${mark} ${shortened(visible(label) || '(empty)', Math.max(6, inside))}`
  const figures = `${String(topic.count).padStart(9)} ${topic.rateAt(now).toFixed(1).padStart(7)} ${String(topic.last?.size ?? '').padStart(8)}`
  const value = topic.last === undefined ? '' : readable(topic.last.bytes)
  const spark = topic.numbers.length > 2 ? `${sparkline(topic.numbers)} ` : ''
  const left = width - labelWidth - 29
  return `${padded(name, labelWidth)} ${figures}  ${padded(`${colours.green(spark)}${value}`, Math.max(0, left))}`
}

function detailOf(topic: TopicNode | undefined, width: number, colours: Colours): string[] {
  const rule = colours.dim('─'.repeat(width))
  const lines = [rule]
  if (topic !== undefined) {
    lines.push(padded(colours.bold(visible(topic.path)), width))
    const { last, before } = topic
    if (last !== undefined) {
      lines.push(padded(readable(last.bytes), width))
      if (before !== undefined) {
        const [one, other] = [before.bytes, last.bytes].map((bytes) =>
          new TextDecoder().decode(bytes),
        )
        const changed = differences(one as string, other as string)
        const texts = changed ?? (one === other ? [] : [`before: ${readable(before.bytes)}`])
        for (const text of texts.length === 0 ? ['as before'] : texts)
          lines.push(padded(colours.yellow(visible(text)), width))
      }
    }
  }
  return [...lines, '', '', '', '', '', ''].slice(0, detailRows - 1)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: it begins every colour
const colourCode = /(\u001b\[\d+m)/

/** Pads or cuts a text to a width, colours not counted. */
function padded(text: string, width: number): string {
  const own = stringWidth(text)
  if (own <= width) return text + ' '.repeat(width - own)
  let cut = ''
  let used = 0
  // Colour codes have no width and are kept whole.
  for (const piece of text.split(colourCode)) {
    if (piece.startsWith('\u001b')) {
      cut += piece
      continue
    }
    for (const character of piece) {
      const size = stringWidth(character)
      if (used + size > width - 1) break
      cut += character
      used += size
    }
  }
  return `${cut}…${' '.repeat(Math.max(0, width - used - 1))}`
}

/** As {@link padded}, but the end stays readable. */
function shortened(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  const characters = [...text]
  const start: string[] = []
  const end: string[] = []
  let used = 1
  for (let turn = 0; characters.length > 0; turn++) {
    const character = (turn % 3 === 0 ? characters.shift() : characters.pop()) as string
    used += stringWidth(character)
    if (used > width) break
    if (turn % 3 === 0) start.push(character)
    else end.unshift(character)
  }
  return `${start.join('')}…${end.join('')}`
}
