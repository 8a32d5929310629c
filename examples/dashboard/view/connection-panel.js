/**
 * The connection as the user sees it: the form, the state in the bar, what was negotiated, what happened, and the figures.
 */

import { textOf } from '../connection.js'
import { age, oneLine, short, size } from '../model/payload.js'
import { StoredConnections } from '../model/stored.js'
import { withoutSecrets } from '../settings.js'
import { byId, make, setFacts, setText, timeOfDay } from './dom.js'
import { fill, valuesOf } from './fields.js'

/** Lines of the log. */
const logLength = 50

/** State of the client to what the title of the window says. */
const titles = {
  idle: 'Not connected',
  connecting: 'Connecting',
  connected: 'Connected',
  reconnecting: 'Reconnecting',
  disconnecting: 'Disconnecting',
  closed: 'Disconnected',
}

/** State of the client to what is read. */
const states = {
  idle: () => 'Not connected',
  connecting: ({ endpoint }) => `Connecting to ${endpoint}`,
  connected: ({ endpoint }) => `Connected to ${endpoint}`,
  reconnecting: ({ endpoint, attempt }) =>
    `Reconnecting to ${endpoint}, attempt ${Math.max(1, attempt)}`,
  disconnecting: () => 'Disconnecting',
  closed: ({ error }) => (error === undefined ? 'Disconnected' : 'Stopped'),
}

const yes = (value) => (value ? 'yes' : 'no')

/** What was negotiated, as terms and texts. */
function factsOf({ negotiated, granted, filter }) {
  if (negotiated === undefined) return [['Nothing yet', 'no connection has been made']]
  const grants = granted.map(
    ({ filter, qos, reasonName }) => `${filter}: ${qos === undefined ? reasonName : `QoS ${qos}`}`,
  )
  return [
    ['Client identifier', oneLine(negotiated.clientId) || '(empty)'],
    ['MQTT version', negotiated.protocolVersion === 5 ? '5.0' : '3.1.1'],
    ['Subscription', oneLine(grants.join(', ') || `${filter}: not granted yet`)],
    ['Session present', yes(negotiated.sessionPresent)],
    ['Keep-alive', negotiated.keepAlive === 0 ? 'off' : `${negotiated.keepAlive} s`],
    ['Session expiry', `${negotiated.sessionExpiryInterval} s`],
    ['Receive Maximum', String(negotiated.receiveMaximum)],
    ['Maximum packet size', size(negotiated.maximumPacketSize)],
    ['Highest QoS', String(negotiated.maximumQoS)],
    ['Retained messages', yes(negotiated.retainAvailable)],
    ['Wildcards', yes(negotiated.wildcardSubscriptionAvailable)],
    ['Shared subscriptions', yes(negotiated.sharedSubscriptionAvailable)],
    ['Topic aliases', String(negotiated.topicAliasMaximum)],
    ...(negotiated.reasonString === undefined
      ? []
      : [['The server says', oneLine(negotiated.reasonString)]]),
  ]
}

/** The title of the window, from which one tells the state without looking at the page. */
function setTitle(state, endpoint) {
  const title = `${state}${endpoint === '' ? '' : ` · ${oneLine(endpoint.replace(/^\w+:\/\//, ''), 60)}`} – mqwire dashboard`
  if (document.title !== title) document.title = title
}

/** The panel. */
export class ConnectionPanel {
  #form = byId('connect')
  #connection
  #view
  #stored = new StoredConnections()

  /** `submitted(settings)` is called with what the form says. */
  constructor(connection, { settings, submitted }) {
    this.#connection = connection
    fill(this.#form, settings)
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault()
      submitted(this.settings)
    })
    byId('recent').addEventListener('change', () => this.#choose())
    byId('save-connection').addEventListener('click', () => this.#save())
    byId('forget-connection').addEventListener('click', () => {
      this.#stored.forget(this.settings.title)
      setText(byId('saved-note'), 'Forgotten.')
      this.#offer()
    })
    this.#form.elements.title.addEventListener('input', () => this.#offer())
    addEventListener('storage', () => {
      this.#stored.read()
      this.#offer()
    })
    this.#offer()
    byId('disconnect').addEventListener('click', () => connection.close())
    byId('retry').addEventListener('click', () => connection.retry())
    for (const type of ['online', 'offline'])
      addEventListener(type, () => this.show(connection.view))
    this.show(connection.view)
  }

  /** What the form says. */
  get settings() {
    const values = valuesOf(this.#form)
    return { ...values, url: values.url.trim(), title: values.title.trim() }
  }

  /**
   * The settings of a page that was loaded with an address: those that were used with it last, if there are such. Undefined when they lack a password,
   * which has to be typed.
   */
  resumed() {
    const { url, filter } = this.settings
    const last = this.#stored.entries.find(
      (entry) => entry.title === '' && entry.url === withoutSecrets(url) && entry.filter === filter,
    )
    if (last !== undefined) fill(this.#form, { ...last, url, qos: this.settings.qos })
    const { settings } = this
    if (settings.username === '' || settings.password !== '') return settings
    const problem = byId('problem')
    const as = oneLine(settings.username, 60)
    setText(problem, `It was used as ${as}: type the password, and press Connect.`)
    problem.hidden = false
    this.#form.elements.password.focus()
    return undefined
  }

  /** A connection that was begun can be chosen again. */
  remember(settings) {
    this.#stored.remember(settings)
    this.#offer()
  }

  #save() {
    if (!this.#form.reportValidity()) return
    const { title } = this.#form.elements
    title.value = this.settings.title || withoutSecrets(this.settings.url)
    const said = URL.canParse(this.settings.url)
      ? this.#stored.save(this.settings)
      : 'Not saved: this is no address.'
    setText(byId('saved-note'), said)
    this.#offer()
  }

  /** The connections that were saved or used last, to choose from. */
  #offer() {
    const { entries } = this.#stored
    const option = (value, text) => make('option', { value }, text)
    const each = entries.map(({ url, filter, username, title }, index) => {
      const used = `${filter} at ${url}${username === '' ? '' : ` as ${username}`}`
      return option(String(index), oneLine(title === '' ? used : `${title}: ${used}`, 120))
    })
    const list = byId('recent')
    const isTitled = ({ title }) => title !== ''
    list.replaceChildren(
      option('', 'choose …'),
      ...each,
      ...(entries.every(isTitled) ? [] : [option('none', 'forget them')]),
    )
    list.closest('label').hidden = each.length === 0
    this.#offerForget()
  }

  #offerForget() {
    const { entries } = this.#stored
    const { title } = this.settings
    byId('forget-connection').disabled = !entries.some(
      (entry) => title !== '' && entry.title === title,
    )
  }

  #choose() {
    const list = byId('recent')
    const chosen = this.#stored.entries[Number(list.value)]
    if (list.value === 'none') {
      this.#stored.read()
      // What was saved has a button of its own.
      this.#stored.write(this.#stored.entries.filter(({ title }) => title !== ''))
      this.#offer()
      this.#form.elements.url.focus()
    } else if (list.value !== '' && chosen !== undefined) {
      fill(this.#form, { ...chosen, keepSecret: chosen.password !== '' })
      this.#offerForget()
    }
  }

  #complain({ error, hint, endpoint = '' }) {
    const problem = byId('problem')
    problem.hidden = error === undefined
    const text = error === undefined ? '' : [textOf(error), hint].filter(Boolean).join('. ')
    if (problem.firstChild?.data === text) return
    problem.replaceChildren(text)
    // A page is not shown why TLS failed; a tab is.
    if (error?.code !== 'ERR_CONNECT_FAILED' || !endpoint.startsWith('wss://')) return
    const href = new URL(endpoint.replace('wss:', 'https:')).origin
    const link = make('a', { href, target: '_blank', rel: 'noreferrer' }, href)
    problem.append(' Whether the browser refuses its certificate is seen at ', link, '.')
  }

  /** Shows a view of the connection. */
  show(view) {
    this.#view = view
    const offline = !navigator.onLine
    const { state, endpoint = '' } = view
    byId('state').dataset.state = offline ? 'offline' : state
    const said = states[state]({ ...view, endpoint: oneLine(endpoint, 60) })
    setText(
      byId('state-text'),
      offline
        ? `Offline: this device has no network (${said[0].toLowerCase()}${said.slice(1)})`
        : said,
    )
    setTitle(offline ? 'Offline' : titles[state], endpoint)
    this.#complain(view)
    const open = !['idle', 'closed', 'disconnecting'].includes(state)
    byId('disconnect').disabled = !open
    byId('retry').hidden = state !== 'reconnecting'
    setFacts(byId('negotiated'), factsOf(view))
    this.tick()
  }

  /** The time until the next attempt; nothing that is read aloud. */
  tick() {
    const { retryAt, state } = this.#view
    const left =
      state === 'reconnecting' && retryAt !== undefined
        ? Math.max(0, retryAt - Date.now())
        : undefined
    setText(byId('countdown'), left === undefined ? '' : `in ${(left / 1000).toFixed(1)} s`)
  }

  /** Adds a line to the log. */
  note(text) {
    const log = byId('log')
    log.prepend(make('li', {}, make('time', {}, timeOfDay(Date.now())), ` ${oneLine(text, 300)}`))
    while (log.children.length > logLength) log.lastElementChild.remove()
  }

  /** The figures of the connection and of what came over it. */
  figures({ rates, topics, history }) {
    const { since } = this.#view
    setFacts(byId('figures'), [
      ['messages/s', short(Math.round(rates.perSecond.messages))],
      ['data/s', size(rates.perSecond.bytes)],
      ['messages', rates.messages.toLocaleString('en')],
      ['topics', short(topics.entries.size)],
      ['messages kept', short(history.size)],
      ['bytes kept', size(history.bytes)],
      ['dropped unread', short(this.#connection.dropped)],
      ['connected for', since === undefined ? '–' : age(Date.now() - since)],
    ])
  }
}
