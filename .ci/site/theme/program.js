/**
 * `<run-program>` around a block of code: runs it, edits it, shows what it prints. `<run-playground>` is the same on a page of its own, with programs to
 * begin with and an address to share.
 *
 * The attribute `state` is `running`, `ended`, `failed` or `stopped` once it has run.
 */

import { at, load, start } from './runner.js'
import { hashOf, programIn } from './share.js'
import starts from './starts.js'

const statuses = {
  running: 'Running …',
  ended: 'Ended.',
  failed: 'Ended by an error.',
  stopped: 'Stopped.',
}

/** Columns of a program that leave room for its output beside it. */
const widest = 64

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}

const button = (text, onclick) => make('button', { type: 'button', textContent: text, onclick })

/** The heading before a program, with a number where it is not the first one behind it. */
function placeOf(program) {
  const counts = new Map()
  let heading = ''
  for (const each of document.querySelectorAll('.vp-doc :is(h1, h2, h3, h4), run-program')) {
    if (each.localName !== 'run-program') heading = each.textContent.replaceAll('\u200b', '').trim()
    else counts.set(heading, (counts.get(heading) ?? 0) + 1)
    if (each === program) break
  }
  const count = counts.get(heading)
  return count > 1 ? `${heading} (${count})` : heading
}

/** A topic that a filter matches. */
const topicOf = (filter) =>
  filter
    .replace(/^\$share\/[^/]*\//, '')
    .replaceAll('+', '1')
    .replace('#', '1')

class Program extends HTMLElement {
  /** The program as the page has it. */
  original = ''
  editor
  running
  /** What it has printed and not shown yet. */
  lines = []
  output = make('div', { className: 'program-output', tabIndex: 0 })
  status = make('span', { className: 'program-status', role: 'status' })
  runButton = button('Run', () => (this.running === undefined ? this.run() : this.running.stop()))
  editButton = button('Edit', () => this.edit())
  resetButton = button('Reset', () => this.reset())
  topic = make('input', { ariaLabel: 'Topic', value: 'demo', required: true, spellcheck: false })
  payload = make('input', { ariaLabel: 'Payload', value: '{"celsius":21.5}', spellcheck: false })
  form = make(
    'form',
    { className: 'program-publish', hidden: true, onsubmit: (event) => this.publish(event) },
    this.topic,
    this.payload,
    make('button', { textContent: 'Publish' }),
  )
  /** What makes the names of its controls distinct on a page of several programs. */
  place = ''

  // Not in the constructor: an element that Vue creates has no content yet.
  connectedCallback() {
    if (this.bar !== undefined) return
    this.code = this.querySelector('div[class*="language-"]')
    this.original ||= this.code.querySelector('pre').textContent
    this.place = this.code === null ? '' : placeOf(this)
    this.bar = make('div', { className: 'program-bar' }, ...this.tools(), this.status)
    this.result = make('div', { className: 'program-result', hidden: true }, this.output, this.form)
    this.output.role = 'log'
    this.output.ariaLabel = this.named('Output')
    this.append(this.bar, this.result)
    this.resetButton.hidden = true
    for (const each of this.querySelectorAll('.program-bar button, .program-publish button'))
      each.ariaLabel = this.named(each.textContent)
    for (const each of [this.topic, this.payload]) each.ariaLabel = this.named(each.ariaLabel)
    const longest = Math.max(...this.original.split('\n').map((line) => line.length))
    this.toggleAttribute('wide', longest > widest)
  }

  disconnectedCallback() {
    this.running?.kill()
  }

  named(name) {
    return this.place === '' ? name : `${name}: ${this.place}`
  }

  tools() {
    const open = button('Open in playground', async () => {
      const hash = await this.hashed()
      if (hash !== undefined) location.href = at(`playground.html${hash}`)
    })
    return [this.runButton, this.editButton, this.resetButton, open]
  }

  /** The program as the hash of an address; undefined, with a message, when it is too long. */
  async hashed() {
    try {
      return await hashOf(this.text())
    } catch (error) {
      this.status.textContent = `No address can hold the program: ${error.message}.`
    }
  }

  text() {
    return this.editor?.text() ?? this.original
  }

  async edit(isAsked = true) {
    if (this.editor !== undefined) return this.editor.focus()
    const { edit } = await load('editor').catch(() => ({}))
    if (this.editor !== undefined) return
    if (edit === undefined) {
      this.status.textContent = 'The editor cannot be loaded.'
      return
    }
    const place = make('div', { className: 'program-editor' })
    if (this.code !== null) this.code.hidden = true
    this.prepend(place)
    this.editor = edit(place, this.original, this.named('Program'), () => this.run())
    this.editButton.hidden = true
    this.resetButton.hidden = false
    if (isAsked) this.editor.focus()
  }

  reset() {
    this.editor.replace(this.original)
    this.editor.focus()
  }

  say(state) {
    this.setAttribute('state', state)
    this.status.textContent = statuses[state]
    this.runButton.textContent = state === 'running' ? 'Stop' : 'Run'
    this.runButton.ariaLabel = this.named(this.runButton.textContent)
  }

  print(level, line) {
    this.lines.push(make('div', { className: `program-${level}`, textContent: line }))
    // Once a frame: each drawing lays out everything that was printed.
    if (this.lines.length === 1) requestAnimationFrame(() => this.draw())
  }

  draw() {
    if (this.lines.length === 0) return
    this.output.append(...this.lines.splice(0))
    this.output.scrollTop = this.output.scrollHeight
  }

  clear() {
    this.lines = []
    this.output.replaceChildren()
  }

  async run() {
    this.running?.kill()
    this.clear()
    this.result.hidden = false
    this.form.hidden = true
    this.say('running')
    let isWanted = true
    const cancel = () => {
      isWanted = false
      this.over('stopped')
    }
    this.running = { stop: cancel, kill: cancel, publish() {} }
    try {
      const { strip } = await load('strip')
      const program = strip(this.text())
      if (isWanted) this.begin(program)
    } catch (error) {
      if (!isWanted) return
      this.print('error', `${error.name}: ${error.message}`)
      this.over('failed')
    }
  }

  begin(program) {
    const waiting = setTimeout(() => {
      this.status.textContent = 'Still running. Stop ends it.'
      this.form.hidden = false
    }, 1500)
    this.running = start(program, {
      line: (level, line) => this.print(level, line),
      filter: (filter) => {
        this.topic.value = topicOf(filter)
      },
      state: (state) => {
        clearTimeout(waiting)
        this.over(state)
      },
    })
  }

  over(state) {
    this.running = undefined
    this.form.hidden = true
    this.draw()
    if (this.output.childElementCount === 0) this.print('note', 'It printed nothing.')
    this.draw()
    this.say(state)
  }

  publish(event) {
    event.preventDefault()
    this.running?.publish({ topic: this.topic.value, payload: this.payload.value })
  }
}

class Playground extends Program {
  menu = make(
    'select',
    {
      ariaLabel: 'Program to begin with',
      onchange: () => this.choose(this.menu.selectedIndex),
    },
    ...starts.map(({ title }) => make('option', { textContent: title })),
    // Selected while the program of an address is open, and not to be chosen.
    make('option', { textContent: 'Shared program', hidden: true, disabled: true }),
  )
  original = starts[0].code

  async connectedCallback() {
    if (this.bar !== undefined) return
    super.connectedCallback()
    this.result.hidden = false
    addEventListener('hashchange', this.shared)
    await this.edit(false)
    await this.shared()
  }

  disconnectedCallback() {
    super.disconnectedCallback()
    removeEventListener('hashchange', this.shared)
  }

  tools() {
    return [this.runButton, this.resetButton, button('Share', () => this.share()), this.menu]
  }

  /** Opens the program of the address. It runs when the reader runs it, never by itself. */
  shared = async () => {
    if (location.hash === this.hash) return
    try {
      const program = await programIn(location.hash)
      if (program === undefined) return
      this.open(program)
      this.menu.selectedIndex = starts.length
    } catch {
      this.choose(0)
      this.status.textContent =
        'The address holds no program that can be read. This is the first one.'
    }
  }

  /** Opens one of the programs to begin with: the address holds none then. */
  choose(index) {
    this.hash = undefined
    history.replaceState(history.state, '', location.pathname + location.search)
    this.menu.selectedIndex = index
    this.open(starts[index].code)
  }

  open(program) {
    this.running?.kill()
    this.original = program
    this.clear()
    this.removeAttribute('state')
    this.status.textContent = ''
    this.editor?.replace(program)
  }

  async share() {
    const hash = await this.hashed()
    if (hash === undefined) return
    this.hash = hash
    history.replaceState(history.state, '', this.hash)
    const isCopied = await navigator.clipboard?.writeText(location.href).then(
      () => true,
      () => false,
    )
    this.status.textContent = `The address of this page holds the program${isCopied ? ', and is copied' : ''}.`
  }
}

customElements.define('run-program', Program)
customElements.define('run-playground', Playground)
