/** One device in detail: state, counts, what the broker allows, and buttons. Drawn with the figures. */

import { row, write } from './figures.js'
import { cellState, signs } from './grid.js'

const whole = new Intl.NumberFormat('en')

const lines = {
  State: (device) => signs[cellState(device)][1],
  'Client id': ({ clientId }) => clientId,
  'Shares its connection': ({ sharing }) =>
    sharing === 0 ? 'no' : `with ${whole.format(sharing)} others`,
  'Latest topic': ({ latest }) => latest?.topic ?? 'none',
  'Latest payload': ({ latest }) => latest?.text ?? 'none',
  Sent: ({ sent }) => whole.format(sent),
  Acknowledged: ({ acknowledged }) => whole.format(acknowledged),
  Arrived: ({ arrived }) => whole.format(arrived),
  'In flight': ({ open }) => whole.format(open),
  Connections: ({ connects }) => whole.format(connects),
  'Attempts to return': ({ attempts }) => whole.format(attempts),
  'Last error': ({ lastError }) => lastError ?? 'none',
  'Commands taken, refused': ({ plan, commands }) =>
    plan === undefined ? '–' : `${commands.taken}, ${commands.refused}`,
  'Session kept': ({ negotiated }) =>
    negotiated === undefined ? '–' : negotiated.sessionPresent ? 'yes' : 'no',
  'Keep-alive': ({ negotiated }) => (negotiated === undefined ? '–' : `${negotiated.keepAlive} s`),
  'Receive Maximum': ({ negotiated }) =>
    negotiated === undefined ? '–' : whole.format(negotiated.receiveMaximum),
  'Maximum QoS': ({ negotiated }) =>
    negotiated === undefined ? '–' : String(negotiated.maximumQoS),
}

/** See the file's comment. */
export class DetailsView {
  index
  #parts
  #values = {}

  /** `parts` has the elements, `act(name, device)` does what a button says. */
  constructor(parts, act) {
    this.#parts = parts
    for (const term of Object.keys(lines)) this.#values[term] = row(parts.list, term)
    for (const name of ['toggle', 'cut', 'take', 'close'])
      parts[name].addEventListener('click', () => act(name, this.index))
  }

  /** Shows this device, undefined for none. */
  open(device) {
    this.index = device?.index
    this.#parts.panel.hidden = device === undefined
    if (device !== undefined) write(this.#parts.title, device.title)
  }

  /** `most` is how many devices may run now. */
  draw(devices, most) {
    const device = devices[this.index]
    if (device === undefined) return
    for (const [term, text] of Object.entries(lines)) write(this.#values[term], text(device))
    const { toggle, cut, take } = this.#parts
    write(toggle, device.isRunning ? 'Stop' : 'Start')
    toggle.disabled = this.index >= most
    cut.disabled = !device.isRunning
    take.disabled = !device.isRunning
  }
}
