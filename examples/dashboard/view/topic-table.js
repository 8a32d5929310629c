/**
 * The table of topics: sorted and filtered, a page at a time, so that thousands of topics cost no more than fifty rows.
 *
 * Rows are used again and only what changed is written. While the pointer or the focus is in the table, rows stay in their places.
 * Arrow keys go from row to row, and open and close the branches of the tree.
 */

import { age, short } from '../model/payload.js'
import { columns, pageSize, TableView } from '../model/table.js'
import { isOfServer, limits } from '../model/topics.js'
import { byId, make, setText } from './dom.js'

const titles = {
  topic: 'Topic',
  value: 'Last value',
  qos: 'QoS',
  retain: 'Retain',
  count: 'Count',
  rate: 'Rate/s',
  age: 'Age',
}

/** Milliseconds between two orders of the rows. */
const settle = 1000
/** Up to so many topics, a new one is seen at once; of more, as long as there is room on the page. */
const few = 500

/** Levels that are indented. */
const deepestIndent = 8

/** The table. */
export class TopicTable {
  #recorder
  #view = new TableView()
  #body = byId('rows')
  #heads = new Map()
  #rows = []
  #arranged = 0
  #version

  /** `picked(topic, below)` is called with the topic that the user chose, or with what topics have in common: then `below` is true. */
  constructor(recorder, { picked }) {
    this.#recorder = recorder
    for (const column of columns) this.#addHead(column)
    const search = byId('search')
    search.addEventListener('input', () => {
      this.#view.search(search.value)
      this.draw(true)
    })
    for (const [id, step] of Object.entries({ earlier: -1, later: 1 })) {
      byId(id).addEventListener('click', () => {
        this.#view.page += step
        this.draw(true)
      })
    }
    const tree = byId('tree')
    tree.addEventListener('change', () => {
      this.#view.isTree = tree.checked
      this.#view.page = 0
      this.draw(true)
    })
    const server = byId('with-server')
    server.addEventListener('change', () => {
      this.#view.withServer = server.checked
      this.draw(true)
    })
    this.#body.addEventListener('click', ({ target }) => {
      const { entry } = this.#rows.find(({ row }) => row.contains(target)) ?? {}
      if (entry === undefined) return
      if (entry.isBranch) this.#view.toggle(entry.topic)
      picked(entry.topic, !this.#recorder.topics.entries.has(entry.topic))
      this.draw(entry.isBranch, true)
    })
    this.#body.addEventListener('keydown', (event) => this.#handleKey(event))
  }

  #handleKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    const at = this.#rows.findIndex(({ row }) => row.contains(event.target))
    const { entry } = this.#rows[at] ?? {}
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const opens = { ArrowRight: true, ArrowLeft: false }[event.key]
    if (step !== undefined) this.#rows[at + step]?.button.focus()
    else if (entry?.isBranch && opens !== undefined) {
      this.#view.toggle(entry.topic, opens)
      this.draw(true, true)
    } else return
    event.preventDefault()
  }

  /** Shows the rows; `now` arranges them at once, `still` leaves them in their places. */
  draw(now = false, still = !now && this.#isBusy()) {
    const { topics } = this.#recorder
    const time = performance.now()
    const news =
      topics.version !== this.#version &&
      (topics.entries.size <= few || this.#rows.length < pageSize)
    if (now || news || time - this.#arranged >= settle) {
      this.#arranged = time
      this.#version = topics.version
      this.#view.arrange(topics, still)
    }
    const entries = this.#view.rows
    while (this.#rows.length > entries.length) this.#rows.pop().row.remove()
    while (this.#rows.length < entries.length) this.#addRow()
    const today = Date.now()
    for (const [index, entry] of entries.entries()) this.#fill(this.#rows[index], entry, today)
    this.#tell(topics)
  }

  /** Topics in the table, on all of its pages. */
  get listed() {
    return this.#view.topics
  }

  #isBusy() {
    return this.#body.matches(':hover') || this.#body.contains(document.activeElement)
  }

  #addHead(column) {
    const button = make('button', { type: 'button' }, titles[column])
    const head = make('th', { scope: 'col', className: column }, button)
    button.addEventListener('click', () => {
      this.#view.sortBy(column)
      this.draw(true)
    })
    this.#heads.set(column, head)
    byId('columns').append(head)
  }

  #addRow() {
    const name = make('bdi', { dir: 'ltr' })
    const button = make('button', { type: 'button' }, name)
    const cells = Object.fromEntries(
      columns.map((column) => [column, make('td', { className: column })]),
    )
    cells.topic.append(button)
    const row = make('tr', {}, ...Object.values(cells))
    this.#body.append(row)
    this.#rows.push({ row, button, name, cells, entry: undefined })
  }

  #fill(place, entry, now) {
    const { row, button, name, cells } = place
    place.entry = entry
    const { depth = 0, isBranch = false } = entry
    const isOpen = isBranch && (this.#view.text !== '' || this.#view.open.has(entry.topic))
    const sign = isBranch ? (isOpen ? '▾ ' : '▸ ') : this.#view.isTree ? '\u2002 ' : ''
    setText(name, `${sign}${entry.name}`)
    if (button.title !== entry.name) button.title = entry.name
    const expanded = isBranch ? String(isOpen) : null
    if (button.ariaExpanded !== expanded) button.ariaExpanded = expanded
    // Of deep topics, the name is worth more than its place.
    const indent = depth === 0 ? '' : `${Math.min(depth, deepestIndent) * 0.625}em`
    if (button.style.paddingLeft !== indent) button.style.paddingLeft = indent
    setText(cells.value, entry.value)
    setText(cells.qos, String(entry.qos))
    setText(cells.retain, entry.retain ? 'yes' : '')
    setText(cells.count, short(entry.count))
    setText(cells.rate, short(Math.round(entry.rate * 10) / 10))
    setText(cells.age, age(now - entry.at))
    const isSelected = entry.topic === this.#recorder.selected
    if (button.ariaPressed !== String(isSelected)) button.ariaPressed = String(isSelected)
    const kind = [isSelected && 'selected', isOfServer(entry.topic) && 'server']
    const className = kind.filter(Boolean).join(' ')
    if (row.className !== className) row.className = className
  }

  #tell({ entries, gone, unlisted, ofServer }) {
    const view = this.#view
    for (const [column, head] of this.#heads) {
      const sorted = view.column !== column ? 'none' : view.descending ? 'descending' : 'ascending'
      if (head.ariaSort !== sorted) head.ariaSort = sorted
    }
    const of =
      view.text === ''
        ? `${short(entries.size)} topics`
        : `${short(view.topics.length)} of ${short(entries.size)} topics`
    const silent = gone > 0 ? `; ${short(gone)} that were silent gave way` : ''
    const full =
      unlisted > 0
        ? `; ${short(unlisted)} messages on further topics are not listed (limit ${short(limits.topics)})`
        : ''
    setText(byId('found'), `${of}${silent}${full}.`)
    const from = view.page * pageSize
    setText(
      byId('page'),
      view.size === 0
        ? 'none'
        : `${short(from + 1)} to ${short(Math.min(from + pageSize, view.size))}`,
    )
    byId('with-server').closest('label').hidden = !ofServer
    byId('earlier').disabled = view.page === 0
    byId('later').disabled = view.page >= view.pages - 1
  }
}
