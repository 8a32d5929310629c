/**
 * What this browser keeps: connections and messages of people, and nothing secret that they did not ask for.
 *
 * What is stored may be anything: only what has the right form is read.
 */
import { withoutSecrets } from '../settings.js'

/** Entries with a title, connections without one, and characters of each text. */
export const limits = { titled: 50, recent: 8, characters: 16_384 }

const isText = (value) => typeof value === 'string' && value.length <= limits.characters
const isFlag = (value) => typeof value === 'boolean'
const isQoS = (value) => [0, 1, 2].includes(value)
const upTo = (most) => (value) => Number.isInteger(value) && value >= 0 && value <= most

/** Fields of a connection: what is right for each, and what it is where nothing else is said. */
const connectionFields = {
  url: [isText],
  filter: [isText],
  qos: [isQoS],
  username: [isText],
  title: [isText, ''],
  password: [isText, ''],
  clientId: [isText, ''],
  protocolVersion: [(value) => ['5', '4', 'auto'].includes(value), '5'],
  keepAlive: [upTo(65_535), 30],
  sessionExpiryInterval: [upTo(2 ** 32 - 1), 0],
  cleanStart: [isFlag, true],
  userProperties: [isText, ''],
  willTo: [isText, ''],
  willText: [isText, ''],
  willQoS: [isQoS, 0],
  willRetain: [isFlag, false],
}

const messageFields = {
  title: [isText],
  topic: [isText],
  payload: [isText],
  qos: [isQoS],
  retain: [isFlag],
  contentType: [isText],
  encoding: [(value) => ['text', 'hex', 'base64'].includes(value), 'text'],
  payloadFormatIndicator: [isText, ''],
  messageExpiryInterval: [isText, ''],
  responseTopic: [isText, ''],
  correlationData: [isText, ''],
  userProperties: [isText, ''],
}

/** An entry with these fields and no others; undefined where one is wrong. */
function entryOf(value, fields) {
  if (typeof value !== 'object' || value === null) return undefined
  const entry = {}
  for (const [name, [isRight, initial]] of Object.entries(fields)) {
    entry[name] = value[name] ?? initial
    if (!isRight(entry[name])) return undefined
  }
  return entry
}

/** A list in the storage of this browser. */
class Stored {
  #key
  #fields
  /** False once the browser has refused to store. */
  #isStored = true

  constructor(key, fields) {
    this.#key = key
    this.#fields = fields
    this.read()
  }

  /** Reads what is stored now: another tab may have written. */
  read() {
    if (this.#isStored)
      this.entries = this.in(read(this.#key)).slice(0, limits.titled + limits.recent)
  }

  /** The entries in a stored text. */
  in(text) {
    try {
      const list = JSON.parse(text)
      return list.map((value) => entryOf(value, this.#fields)).filter(Boolean)
    } catch {
      return []
    }
  }

  /** Keeps an entry in place of one with the same title. Gives what came of it, in a sentence. */
  save(value) {
    this.read()
    const entry = entryOf(value, this.#fields)
    const others = this.entries.filter(({ title }) => title !== value.title)
    if (entry === undefined) return 'Not saved: a field is too long, or no number.'
    if (others.filter(({ title }) => title !== '').length >= limits.titled)
      return `Not saved: there are ${limits.titled} already. Forget one first.`
    this.write([entry, ...others])
    return this.#isStored ? 'Saved.' : 'Kept in this page only: the browser does not store it.'
  }

  forget(title) {
    this.read()
    this.write(this.entries.filter((entry) => entry.title !== title))
  }

  /** Writes a list, as much of it as is kept; an empty one leaves nothing behind. */
  write(list) {
    const recent = list.filter(({ title }) => title === '').slice(0, limits.recent)
    const titled = list.filter(({ title }) => title !== '').slice(0, limits.titled)
    this.entries = [...recent, ...titled]
    try {
      if (this.entries.length === 0) localStorage.removeItem(this.#key)
      else localStorage.setItem(this.#key, JSON.stringify(this.entries))
    } catch {
      this.#isStored = false
    }
  }
}

// Storage may be forbidden.
function read(key) {
  try {
    return localStorage.getItem(key) ?? '[]'
  } catch {
    return '[]'
  }
}

/** Connections: the last ones, and those with a title. */
export class StoredConnections extends Stored {
  constructor() {
    super('mqwire-dashboard-connections', connectionFields)
  }

  /** Keeps one with a title; its password, and what else of its address is secret, only when that is wanted. */
  save(settings) {
    const { url, password, keepSecret } = settings
    return super.save({
      ...settings,
      url: keepSecret ? url : withoutSecrets(url),
      password: keepSecret ? password : '',
    })
  }

  /** One more was used: the same address, filter and user are there once. Without what may be secret and was not asked to be kept. */
  remember(settings) {
    this.read()
    const url = withoutSecrets(settings.url)
    const secrets = { title: '', password: '', userProperties: '', willText: '' }
    const latest = entryOf({ ...settings, url, ...secrets }, connectionFields)
    if (latest === undefined) return
    const isSame = ({ url, filter, username, title }) =>
      title === '' && url === latest.url && filter === latest.filter && username === latest.username
    this.write([latest, ...this.entries.filter((entry) => !isSame(entry))])
  }
}

/** Messages that were saved to be sent again. */
export class StoredMessages extends Stored {
  constructor() {
    super('mqwire-dashboard-messages', messageFields)
  }

  /** Keeps a message under a title that no other one has, and gives it. */
  add(message, title) {
    this.read()
    const { title: _title, ...fields } = entryOf({ ...message, title }, messageFields) ?? {}
    const isSame = (other) => Object.entries(fields).every(([name, value]) => other[name] === value)
    const known = this.entries.find(isSame)
    let unique = known?.title ?? title
    for (let count = 2; known === undefined && this.#has(unique); count += 1)
      unique = `${title} (${count})`
    return { title: unique, said: this.save({ ...message, title: unique }) }
  }

  #has(title) {
    return this.entries.some((entry) => entry.title === title)
  }
}
