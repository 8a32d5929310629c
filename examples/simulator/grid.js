/**
 * The devices as cells, one button each: colour and sign tell the state, arrow keys move, Enter or a click chooses.
 *
 * Cells are written only when their state changed, and only when `draw()` is called: once a frame at most, however much happens.
 */

/** State of a cell, with its sign and its words. A client that was ended by an error has failed. */
export const signs = {
  idle: ['·', 'not started'],
  connecting: ['◌', 'connecting'],
  connected: ['●', 'connected'],
  reconnecting: ['↻', 'reconnecting'],
  disconnecting: ['◐', 'stopping'],
  closed: ['○', 'stopped'],
  failed: ['✕', 'ended by an error'],
}

const steps = { ArrowLeft: -1, ArrowRight: 1 }

/** What the cell of a device shows. */
export function cellState({ state, isRunning, isEnded }) {
  if (state !== 'closed') return state
  return isEnded && !isRunning ? 'failed' : 'closed'
}

/** See the file's comment. */
export class Grid {
  #element
  #cells = []
  #shown = []
  #changed = new Set()
  #chosen
  #isNamed = false
  #tabStop = 0

  /** `choose(index)` is called for the device that the reader wants to see. */
  constructor(element, choose) {
    this.#element = element
    element.addEventListener('click', ({ target }) => {
      const index = this.#indexOf(target)
      if (index >= 0) choose(index)
    })
    element.addEventListener('keydown', (event) => this.#move(event))
    element.addEventListener('focusin', ({ target }) => this.#stopAt(this.#indexOf(target)))
  }

  /** This device changed; it is drawn with the next frame. */
  change(index) {
    this.#changed.add(index)
  }

  draw(devices) {
    for (const index of this.#changed) {
      if (devices[index] === undefined) continue
      while (this.#cells.length <= index) this.#add()
      const state = cellState(devices[index])
      if (this.#shown[index] !== state) this.#show(index, state, devices[index].title)
    }
    this.#changed.clear()
  }

  /** Begins again with no device; with `isNamed`, cells show the names of those to come. */
  clear(isNamed) {
    this.#isNamed = isNamed
    this.#element.classList.toggle('named', isNamed)
    this.#element.replaceChildren()
    this.#cells = []
    this.#shown = []
    this.#changed.clear()
    this.#chosen = undefined
    this.#tabStop = 0
  }

  /** Marks the chosen device; undefined for none. */
  mark(index) {
    this.#cells[this.#chosen]?.setAttribute('aria-pressed', 'false')
    this.#chosen = index
    this.#cells[index]?.setAttribute('aria-pressed', 'true')
  }

  focus(index) {
    this.#cells[index]?.focus()
  }

  #add() {
    const cell = document.createElement('button')
    cell.type = 'button'
    cell.tabIndex = this.#cells.length === this.#tabStop ? 0 : -1
    cell.dataset.index = String(this.#cells.length)
    cell.setAttribute('aria-pressed', 'false')
    this.#cells.push(cell)
    this.#element.append(cell)
  }

  #show(index, state, title) {
    const [sign, words] = signs[state]
    const cell = this.#cells[index]
    this.#shown[index] = state
    cell.dataset.state = state
    cell.textContent = this.#isNamed ? `${sign} ${title}` : sign
    cell.setAttribute('aria-label', `${title}, ${words}`)
  }

  #indexOf(target) {
    return target instanceof HTMLButtonElement ? Number(target.dataset.index) : -1
  }

  #stopAt(index) {
    if (index < 0) return
    const before = this.#cells[this.#tabStop]
    if (before !== undefined) before.tabIndex = -1
    this.#tabStop = index
    this.#cells[index].tabIndex = 0
  }

  #move(event) {
    const from = this.#indexOf(event.target)
    const to = this.#goal(event.key, from)
    if (from < 0 || to === undefined) return
    event.preventDefault()
    this.#cells[Math.max(0, Math.min(this.#cells.length - 1, to))].focus()
  }

  #goal(key, from) {
    const columns = getComputedStyle(this.#element).gridTemplateColumns.split(' ').length
    if (key in steps) return from + steps[key]
    if (key === 'ArrowUp') return from < columns ? from : from - columns
    if (key === 'ArrowDown') return from + columns >= this.#cells.length ? from : from + columns
    if (key === 'Home') return 0
    return key === 'End' ? this.#cells.length - 1 : undefined
  }
}
