/** What is seen of the form. Text goes into the page as text, never as markup. */

/** Notes that are shown of those that were delivered. */
const kept = 20

const byId = (id) => document.getElementById(id)

/** State of the client to what is read. */
const states = {
  connected: 'Connected: notes leave at once',
  disconnecting: 'Stopping',
  closed: 'Stopped',
}
const offline = 'No connection: notes are kept here'

const timeLeft = (milliseconds) =>
  milliseconds === undefined ? '' : `, ${Math.ceil(milliseconds / 1000)} s left`

function item({ text, code }) {
  const li = document.createElement('li')
  const { place = '', note = text, urgent = false, at } = parsed(text)
  const strong = document.createElement('strong')
  strong.textContent = place
  const time = document.createElement('time')
  time.textContent =
    at === undefined
      ? ''
      : new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  li.append(
    strong,
    ' ',
    time,
    urgent ? ' urgent' : '',
    document.createElement('br'),
    note,
    code === undefined ? '' : ` (${code})`,
  )
  return li
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** The page. */
export class View {
  /** The last status of the queue. */
  status = undefined
  #form = document.forms[0]
  #waiting = new Map()
  /** By number. */
  #delivered = new Map()
  #isConnected = false
  #over = false

  constructor() {
    byId('again').addEventListener('click', () => location.reload())
  }

  /** Another tab has the store. */
  waits() {
    this.#say(
      'waiting',
      'Another tab has the form open. This one takes over as soon as that tab is closed.',
    )
  }

  /** The store is open: notes can be typed. `submitted(note)` is called with each. */
  opened(state, submitted) {
    this.state(state)
    byId('fields').disabled = false
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault()
      const { place, note, urgent } = this.#form.elements
      submitted({ place: place.value, note: note.value, urgent: urgent.checked, at: Date.now() })
    })
  }

  /** The buttons below notes that could not be delivered. */
  onLetters(replay, forget, refresh) {
    byId('replay').addEventListener('click', () => replay().then(refresh))
    byId('forget').addEventListener('click', () => forget().then(refresh))
  }

  /** The state of the client has changed. */
  state(state) {
    this.#isConnected = state === 'connected'
    if (!this.#over)
      this.#say(this.#isConnected ? 'connected' : 'offline', states[state] ?? offline)
  }

  /** A note is safe. */
  saved() {
    this.#form.reset()
    this.#form.elements.place.focus()
    byId('saved').textContent = 'Saved.'
    byId('problem').hidden = true
  }

  /** A note was delivered. */
  delivered(note) {
    this.#delivered.set(note.id, note)
    const latest = [...this.#delivered.values()]
      .sort((one, other) => other.id - one.id)
      .slice(0, kept)
    this.#delivered = new Map(latest.map((each) => [each.id, each]))
    byId('delivered').replaceChildren(...latest.map(item))
  }

  /** Shows the queue. What an earlier page has saved, and what is gone now, was delivered, unless it was refused. */
  show(status, waiting, refused) {
    if (this.#over) return
    this.status = status
    const now = new Map(waiting.map((note) => [note.id, note]))
    const failed = new Set(refused.map(({ text }) => text))
    for (const [id, note] of this.#waiting)
      if (!now.has(id) && !failed.has(note.text) && !this.#delivered.has(id)) this.delivered(note)
    this.#waiting = now
    byId('waiting').replaceChildren(...waiting.map(item))
    byId('nothing').hidden = waiting.length > 0
    byId('refused').replaceChildren(...refused.map(item))
    byId('refused-section').hidden = refused.length === 0
    this.#progress(status)
  }

  /** A note was not saved. It stays in the form. */
  complain(text) {
    const problem = byId('problem')
    problem.hidden = false
    problem.textContent = text
    byId('saved').textContent = ''
  }

  /** Something is wrong for good: no note is taken any more. What was typed, and what waited, can still be copied. */
  stop(text) {
    this.complain(text)
    this.#over = true
    this.#form.querySelector('button').disabled = true
    byId('again').hidden = false
    this.#say('failed', 'Stopped')
  }

  persisted(granted) {
    byId('persisted').textContent = granted
      ? 'The browser has promised to keep the notes, also when the disk runs full.'
      : 'The browser may delete notes that wait when the disk runs full. Some also do so after a week without a visit.'
  }

  #progress({ pending, inFlight, delivered, rate, bytes, timeLeft: left }) {
    byId('pending').textContent = pending === 0 ? '' : `(${pending})`
    byId('count').textContent = delivered === 0 ? '' : `(${delivered})`
    const line = byId('progress')
    line.hidden = pending === 0
    const [bar, text] = line.children
    bar.max = pending + delivered
    bar.value = delivered
    text.textContent = `${inFlight} in flight, ${bytes} bytes, ${rate.toFixed(1)}/s${this.#isConnected ? timeLeft(left) : ''}`
  }

  #say(state, text) {
    const line = byId('state')
    line.closest('.state').dataset.state = state
    line.textContent = text
  }
}
