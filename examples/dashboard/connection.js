/**
 * All that the dashboard does with MQTT: connect, read with `for await`, publish, disconnect. Nothing here knows of the page.
 *
 * A client that was closed stays closed, so each `open()` makes a new one; what the one before still has to say is not heard any more.
 */
import { Client, exponential, MqttError, printable } from 'mqwire'
import { openQueue } from 'mqwire/queue'
import { memoryStore } from 'mqwire/store'
import { retained } from 'mqwire/typed'
import { bytesOfField, pairsIn } from './model/bytes.js'
import { filtersIn, withoutSecrets } from './settings.js'

/** Milliseconds that an answer may take. */
const answerTime = 10_000

/** Milliseconds that a connection lasts which is ended at once. */
const brief = 5000

/** What a connection looks like before there was one. */
const nothing = {
  state: 'idle',
  attempt: 0,
  retryAt: undefined,
  since: undefined,
  error: undefined,
  hint: undefined,
  negotiated: undefined,
  granted: [],
}

/** A connection and what is known of it. */
export class Connection {
  /** What there is to see: replaced, never changed, before each call of `changed`. */
  view = nothing
  #client
  #subscription
  #hasClientId = false
  /** Connections in a row that ended at once. */
  #ended = 0
  /** The queue of this client, as soon as something is to be kept in it. */
  #queue
  #listener

  /**
   * `changed(view)` is called when the view is another one, `received(messages)` with messages, `noted(text)` with what goes into a log, `queued(status)` with
   * the status of the queue whenever it has changed, undefined when there is none.
   */
  constructor(listener) {
    this.#listener = listener
  }

  /** Connects and subscribes; true when it could begin. Everything that comes of it is in the view, also what is wrong with the settings. */
  open(settings) {
    const { url, filter } = settings
    this.close()
    // Whatever comes of this one, what is seen is not about the one before any more.
    this.#client = undefined
    this.#subscription = undefined
    this.#show({ ...nothing, endpoint: withoutSecrets(url), filter })
    try {
      this.#begin(settings)
      return true
    } catch (error) {
      this.#fail(error)
      return false
    }
  }

  #begin({ url, filter, qos, ...settings }) {
    this.#hasClientId = Boolean(settings.clientId)
    const client = new Client(url, {
      ...connectOptionsOf(settings),
      // Not only a lost connection is made good, the first one is waited for too.
      firstConnect: 'wait',
      reconnect: { backoff: exponential({ min: 500, max: 10_000 }) },
    })
    // Made before the client has connected: it is sent as soon as it can be.
    const subscription = client.subscription(filtersIn(filter, qos), { buffer: 4096 })
    this.#client = client
    this.#subscription = subscription
    this.#show({ state: 'connecting' })
    this.#watch(client)
    this.#read(client, subscription)
    // The reason is in the view by then.
    client.connect().catch(() => undefined)
  }

  /** Says goodbye. What is kept and was not delivered is given up. */
  close() {
    this.#queue?.then((queue) => queue.close({ timeout: 0 }))
    this.#queue = undefined
    this.#listener.queued(undefined)
    this.#client?.disconnect({ timeout: 1000 }).catch(() => undefined)
  }

  /** Cuts a wait for the next attempt short. */
  retry() {
    this.#client?.reconnect()
  }

  /** Rejects with an MqttError, whose `outcome` says whether the message may have arrived. */
  async publish(topic, payload, options) {
    return this.#existing().publish(topic, payload, this.#optionsOf(options))
  }

  /** True where messages have properties; MQTT 3.1.1 has none. */
  get hasProperties() {
    return this.view.negotiated?.protocolVersion !== 4
  }

  // The form fills in a content type; where there are no properties it is no more than a wish.
  #optionsOf(form) {
    return optionsOf(this.hasProperties ? form : { ...form, contentType: '' })
  }

  /** Publishes a question, and fulfils with the message that answers it. */
  async request(topic, payload, options) {
    // A request has a response topic and correlation data of its own.
    const { qos, signal, properties } = optionsOf({
      ...options,
      responseTopic: '',
      correlationData: '',
    })
    const timeout = answerTime
    return this.#existing().request(topic, payload, { qos, signal, properties, timeout })
  }

  /** Topics with a retained message that a filter matches, in order. */
  async retainedIn(filter, signal) {
    const topics = new Set()
    for await (const { topic } of retained(this.#existing(), filter, { quiet: 700, signal }))
      topics.add(topic)
    return [...topics].sort()
  }

  /** Removes the retained message of a topic. */
  async removeRetained(topic, signal) {
    await this.#existing().publish(topic, '', { qos: 1, retain: true, signal })
  }

  /** Keeps a message until it is delivered, across lost connections. Gives its number, and what settles as `publish()` does. */
  async keep(topic, payload, options) {
    const client = this.#existing()
    if (client.state === 'closed') throw new MqttError('ERR_CLOSED')
    this.#queue ??= this.#openQueue(client)
    const queue = await this.#queue
    return queue.publish(topic, payload, this.#optionsOf(options))
  }

  /** Gives up what is kept and not on its way yet. */
  giveUp() {
    this.#queue?.then((queue) => queue.clear())
  }

  async #openQueue(client) {
    // It lasts as long as the page. The session does not outlive a connection: a message on its way when one is lost may arrive twice.
    const queue = await openQueue(client, { store: memoryStore(), duplicates: 'allowed' })
    this.#follow(queue, client)
    return queue
  }

  async #follow(queue, client) {
    for await (const status of queue.status())
      if (client === this.#client) this.#listener.queued(status)
  }

  #existing() {
    if (this.#client === undefined)
      throw new MqttError('ERR_NOT_CONNECTED', 'there is no connection yet')
    return this.#client
  }

  /** Messages that were dropped unread, because they came faster than they were read. */
  get dropped() {
    return this.#subscription?.dropped ?? 0
  }

  #watch(client) {
    // The events of a client that was replaced are not for us.
    const on = (type, listener) =>
      client.on(type, (event) => client === this.#client && listener(event))
    on('state', ({ state }) =>
      this.#show({
        state,
        ...(state === 'connected' && { error: undefined, attempt: 0, retryAt: undefined }),
      }),
    )
    on('reconnecting', ({ attempt, delay }) => {
      this.#show({ attempt, retryAt: Date.now() + delay })
      this.#listener.noted(`attempt ${attempt} in ${(delay / 1000).toFixed(1)} s`)
    })
    on('dial', ({ attempt }) => this.#show({ attempt, retryAt: undefined }))
    on('connect', ({ negotiated }) => this.#show({ negotiated, since: Date.now() }))
    on('connecterror', ({ error }) => this.#fail(error))
    on('disconnect', ({ error }) => {
      const { since = 0 } = this.view
      this.#ended = Date.now() - since < brief ? this.#ended + 1 : 0
      // Some servers end the older connection without a word.
      const isTaken = this.#hasClientId && this.#ended > 1
      this.#show({
        since: undefined,
        hint: isTaken ? 'Does another client use this client identifier?' : undefined,
      })
      if (error !== undefined) this.#fail(error)
    })
    on('serverdisconnect', ({ error }) =>
      this.#listener.noted(`the server said goodbye: ${textOf(error)}`),
    )
    on('sessionlost', ({ cause }) => this.#listener.noted(`the session is ${cause}`))
    on('error', ({ error }) => this.#fail(error))
    // What a publish fails with is shown where it was asked for.
    on('drop', ({ direction, topic, reason, size }) => {
      if (direction === 'in' && reason === 'too-large')
        this.#listener.noted(`a message of ${topic} is too large: ${size} bytes`)
    })
    client.closed.then((error) => client === this.#client && error && this.#fail(error))
  }

  async #read(client, subscription) {
    try {
      const { granted } = await subscription.ready
      if (client === this.#client) this.#show({ granted })
      // One of several.
      for (const { filter, error } of granted) {
        if (error === undefined || client !== this.#client) continue
        this.#listener.noted(`${printable(filter)} is refused`)
        this.#fail(error)
      }
      for await (const messages of subscription.batches(500)) {
        if (client !== this.#client) return
        this.#listener.received(messages)
      }
    } catch (error) {
      if (client === this.#client) this.#fail(error)
    }
  }

  #fail(error) {
    const said = this.view.error && textOf(this.view.error)
    // The client, its subscription and each attempt have the same to say.
    if (said !== textOf(error)) this.#listener.noted(textOf(error))
    if (this.view.error !== error) this.#show({ error })
  }

  #show(change) {
    const { state } = this.view
    this.view = { ...this.view, ...change }
    if (this.view.state !== state) this.#listener.noted(this.view.state)
    this.#listener.changed(this.view)
  }
}

/** Options of a connection from what the form says. */
function connectOptionsOf(settings) {
  const { username, password, clientId, protocolVersion, cleanStart } = settings
  const { keepAlive, sessionExpiryInterval, userProperties = '' } = settings
  const { willTo = '', willText, willQoS, willRetain } = settings
  return {
    ...(username !== '' && { username }),
    ...(password !== '' && { password }),
    ...(clientId && { clientId }),
    ...(cleanStart === false && { cleanStart }),
    ...(keepAlive !== undefined && { keepAlive }),
    ...(userProperties.trim() !== '' && { userProperties: pairsIn(userProperties) }),
    ...(willTo !== '' && {
      will: { topic: willTo, payload: willText, qos: willQoS, retain: willRetain },
    }),
    protocolVersion: protocolVersion === 'auto' ? 'auto' : Number(protocolVersion ?? 5),
    ...(protocolVersion !== '4' && {
      // Nothing is to be kept for a page that is gone, unless that is asked for.
      sessionExpiryInterval: sessionExpiryInterval ?? 0,
      // Some brokers, aedes among them, send more at a time than they were asked to, which ends a connection; what is held stays bounded by bytes.
      receiveMaximum: 65_535,
    }),
  }
}

/** Options of a publish from what the form says. */
function optionsOf({ qos, retain, signal, ...form }) {
  const { contentType = '', responseTopic = '', userProperties = '' } = form
  const { correlationData = '', messageExpiryInterval = '', payloadFormatIndicator = '' } = form
  const properties = {
    ...(contentType !== '' && { contentType }),
    ...(responseTopic !== '' && { responseTopic }),
    ...(correlationData !== '' && { correlationData: bytesOfField(correlationData) }),
    ...(messageExpiryInterval !== '' && { messageExpiryInterval: Number(messageExpiryInterval) }),
    ...(payloadFormatIndicator !== '' && {
      payloadFormatIndicator: Number(payloadFormatIndicator),
    }),
    ...(userProperties.trim() !== '' && { userProperties: pairsIn(userProperties) }),
  }
  return { qos, retain, signal, properties }
}

/** An error in one line: its code, what it says, and the server's words. */
export function textOf(error) {
  if (error?.code === 'ERR_CLOSED') return 'ERR_CLOSED: not connected; press Connect'
  if (!MqttError.is(error)) return printable(error.message ?? String(error))
  const { code, message, reasonString } = error
  return `${code}: ${message}${reasonString ? ` (${printable(reasonString)})` : ''}`
}
