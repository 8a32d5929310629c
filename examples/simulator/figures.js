/**
 * The figures as text: tiles that are made once and written when their text changes. Rates are over the time since the last look.
 */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const fine = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const megabyte = 1024 * 1024

const tiles = {
  connected: 'Connected',
  sent: 'Sent',
  acknowledged: 'Acknowledged',
  arrived: 'Arrived',
  open: 'In flight',
  lost: 'Lost, QoS 1 and 2',
  twice: 'Twice, QoS 2',
  p50: 'Latency p50',
  p99: 'Latency p99',
  memory: 'Memory',
}

const count = (value) => whole.format(value)
const milliseconds = (value) => (value < 10 ? `${fine.format(value)} ms` : `${count(value)} ms`)

/** A term and its description, in the element; gives the description's. */
export function row(list, term) {
  const box = document.createElement('div')
  const name = document.createElement('dt')
  const value = document.createElement('dd')
  name.textContent = term
  box.append(name, value)
  list.append(box)
  return value
}

/** Writes a text where it is another one. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** See the file's comment. */
export class FiguresView {
  #values = {}
  #notes = {}
  #allowed
  #before = { at: 0, sent: 0, acknowledged: 0, arrived: 0 }

  constructor(list, allowed) {
    this.#allowed = allowed
    for (const [name, title] of Object.entries(tiles)) {
      const value = row(list, title)
      const text = document.createElement('span')
      const note = document.createElement('small')
      value.append(text, note)
      this.#values[name] = text
      this.#notes[name] = note
    }
  }

  draw(figures, latency, now) {
    const seconds = Math.max(0.001, (now - this.#before.at) / 1000)
    const show = (name, text, note = '') => {
      write(this.#values[name], text)
      write(this.#notes[name], note)
    }
    show(
      'connected',
      `${count(figures.connected)} / ${count(figures.devices)}`,
      `retries: ${count(figures.attempts)}`,
    )
    for (const name of ['sent', 'acknowledged', 'arrived']) {
      show(
        name,
        count(figures[name]),
        `${count(Math.max(0, figures[name] - this.#before[name]) / seconds)} a second`,
      )
    }
    show(
      'open',
      count(figures.open),
      figures.awaited > 0 ? `${count(figures.awaited)} on their way` : '',
    )
    show('lost', count(figures.lost), 'must be 0')
    show('twice', count(figures.twice), 'must be 0')
    for (const name of ['lost', 'twice'])
      this.#values[name].closest('div').className = figures[name] === 0 ? 'good' : 'bad'
    for (const name of ['p50', 'p99'])
      show(name, latency === undefined ? '–' : milliseconds(latency[name]), 'device to consumer')
    const { memory } = performance
    show(
      'memory',
      memory === undefined ? '–' : `${count(memory.usedJSHeapSize / megabyte)} MB`,
      memory === undefined ? 'not told here' : 'heap in use',
    )
    write(this.#allowed, allowed(figures))
    this.#before = {
      at: now,
      sent: figures.sent,
      acknowledged: figures.acknowledged,
      arrived: figures.arrived,
    }
  }
}

// What MQTT, or a fault, allows.
function allowed({ missing0, repeated1, unsure, refused, heldBack }) {
  return [
    `Allowed: QoS 0 on their way or lost ${count(missing0)}`,
    `QoS 1 come twice ${count(repeated1)}`,
    `rejected with outcome unknown ${count(unsure)}, refused or not sent ${count(refused)}`,
    `held back by devices ${count(heldBack)}.`,
  ].join(', ')
}
