/**
 * What keeps a fleet from its broker: who failed, why, and what to do about it. The page shows it beside the button that starts the fleet.
 *
 * Bounded: one entry for each client, and the page has at most 1,000.
 */

const advice = {
  1: 'The broker may know MQTT 3.1.1 only; the simulator needs 5.0.',
  132: 'The broker may know MQTT 3.1.1 only; the simulator needs 5.0.',
  133: 'The broker wants other client identifiers: set “Client id”, or the id of the scenario.',
  134: 'Check user name and password.',
  135: 'Check user name and password, and what the broker allows this user.',
  138: 'The broker has banned this client; its administrator can lift that.',
  151: 'The broker allows no more of this: take fewer devices or a lower rate.',
  159: 'The broker allows fewer connections a second: choose a slower start.',
}

const adviceByCode = {
  ERR_CONNECT_FAILED:
    'Check address and port, that the broker listens on WebSocket there, and at wss: that this browser trusts its certificate. The browser does not say more. It is tried again.',
  ERR_CONNECT_TIMEOUT: 'Check address and port. It is tried again.',
  ERR_SUBSCRIBE_REFUSED:
    'The consumer reads all topics of the devices: allow that to its user, or give the consumer a login of its own.',
}

const parties = {
  consumer: ['The consumer, which counts the messages, cannot work', ''],
  device: ['A device cannot connect', 'devices cannot connect'],
  message: [
    'The broker refuses messages of a device',
    'devices: the broker refuses their messages',
  ],
}

/** See the file's comment. */
export class Failures {
  // By who failed: [party, error].
  #entries = new Map()

  /** `party` is `'consumer'`, `'device'` or `'message'`. */
  add(who, party, error) {
    if (error.code !== 'ERR_ABORTED' && error.code !== 'ERR_CLOSED')
      this.#entries.set(who, [party, error])
  }

  delete(who) {
    this.#entries.delete(who)
  }

  clear() {
    this.#entries.clear()
  }

  /** The most important of them as a text; empty when there is none. */
  get text() {
    const all = [...this.#entries.values()]
    const of = (wanted) => all.filter(([party]) => party === wanted)
    const [found = []] = Object.keys(parties)
      .map(of)
      .filter(({ length }) => length > 0)
    const [first] = found
    if (first === undefined) return ''
    const [party, error] = first
    const [one, several] = parties[party]
    const who = found.length === 1 ? one : `${found.length.toLocaleString('en')} ${several}`
    return `${who}: ${explained(error)}`
  }
}

function explained({ code, message, reasonCode, reasonName, reasonString }) {
  const number = `0x${reasonCode?.toString(16).padStart(2, '0')}`
  const reason = reasonCode === undefined ? code : `${reasonName} (${code}, reason code ${number})`
  const isNews = reasonString && reasonString.toLowerCase() !== reasonName?.toLowerCase()
  const parts = [
    `${reason}.`,
    isNews ? `The broker says: “${reasonString.slice(0, 300)}”.` : '',
    advice[reasonCode] ?? adviceByCode[code] ?? message,
  ]
  return parts.filter((part) => part !== '').join(' ')
}
