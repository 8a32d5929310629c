/**
 * The inspector: the last messages of one topic, and one of them with everything that it has.
 */

import { limits } from '../model/history.js'
import { age, formatOf, oneLine, render, size, limits as textLimits } from '../model/payload.js'
import { byId, make, setFacts, setText, timeOfDay } from './dom.js'

const formats = ['text', 'json', 'hex']
const hex = (bytes) => Array.from(bytes.subarray(0, 64), (byte) => byte.toString(16).padStart(2, '0')).join(' ')

/** The flags of a message in few words. */
function flagsOf({ retain, dup, redelivered }) {
  return [retain && 'retained', dup && 'DUP', redelivered && 'redelivered'].filter(Boolean).join(', ')
}

function factsOf({ message, at }) {
  const { topic, qos, payloadLength, properties } = message
  const { userProperties = [], correlationData } = properties
  const given = (name, value) => (value === undefined ? [] : [[name, oneLine(String(value), 300)]])
  return [
    ['Topic', oneLine(topic, 500)],
    ['Received', `${timeOfDay(at)}.${String(Math.floor(at % 1000)).padStart(3, '0')}`],
    ['QoS', [`${qos}`, flagsOf(message)].filter(Boolean).join(', ')],
    ['Size', payloadLength < 1024 ? `${payloadLength} bytes` : `${size(payloadLength)} (${payloadLength.toLocaleString('en')} bytes)`],
    ...given('Content type', properties.contentType),
    ...given('Payload format', ['bytes', 'UTF-8 text'][properties.payloadFormatIndicator]),
    ...given('Expires in', properties.messageExpiryInterval && age(properties.messageExpiryInterval * 1000)),
    ...given('Response topic', properties.responseTopic),
    ...given('Correlation data', correlationData && hex(correlationData)),
    ...given('Subscription ids', properties.subscriptionIdentifiers?.join(', ')),
    ...userProperties.map(([name, value]) => [`“${oneLine(name, 60)}”`, oneLine(value, 300)]),
  ]
}

/** The inspector. */
export class Inspector {
  #recorder
  #list = byId('messages')
  #follow = byId('follow')
  #payload = byId('payload')
  #radios = [...document.getElementsByName('format')]
  /** Number of a record to its item in the list. */
  #items = new Map()
  #records = []
  #shown
  /** The format that the user wants; undefined for the one that suits. */
  #format

  constructor(recorder) {
    this.#recorder = recorder
    // Scrolled with the keyboard.
    this.#payload.tabIndex = 0
    this.#follow.addEventListener('change', () => this.draw())
    for (const radio of this.#radios) {
      radio.addEventListener('change', () => {
        this.#format = radio.value
        this.#showPayload()
      })
    }
    this.#list.addEventListener('click', ({ target }) => {
      const number = Number(target.closest('li')?.dataset.number)
      const record = this.#records.find((each) => each.number === number)
      if (record === undefined) return
      this.#follow.checked = false
      this.#show(record)
    })
  }

  /** Another topic. */
  inspect(topic) {
    this.#recorder.selected = topic
    this.#follow.checked = true
    this.#format = undefined
    this.#shown = undefined
    this.draw()
    // In one column it is far below the table.
    if (matchMedia('(max-width: 60rem)').matches) byId('inspector-title').scrollIntoView()
  }

  draw() {
    const { selected, history, missed } = this.#recorder
    if (selected === undefined) return
    // Whoever walks through the list with the keyboard finds it as it was.
    if (this.#shown !== undefined && this.#list.contains(document.activeElement)) return
    this.#records = history.of(selected)
    const count = this.#records.length
    const paused = missed === undefined ? '' : ' Paused: newer ones are not kept.'
    const none = 'Nothing is kept of it any more.'
    setText(byId('inspected'), `${oneLine(selected, 200)}: ${count === 0 ? none : `the last ${count} (of at most ${limits.perTopic}).`}${paused}`)
    this.#showList()
    const [newest] = this.#records
    if (newest !== undefined && (this.#follow.checked || this.#shown === undefined)) this.#show(newest)
    byId('message').hidden = this.#shown === undefined
  }

  #showList() {
    const numbers = new Set(this.#records.map(({ number }) => number))
    for (const [number, item] of this.#items) {
      if (numbers.has(number)) continue
      item.remove()
      this.#items.delete(number)
    }
    // Newest first: what is new stands before what was there.
    for (const record of [...this.#records].reverse()) {
      if (this.#items.has(record.number)) continue
      const item = this.#makeItem(record)
      this.#items.set(record.number, item)
      this.#list.prepend(item)
    }
  }

  #makeItem({ message, at, number }) {
    const flags = flagsOf(message)
    const button = make(
      'button',
      { type: 'button' },
      make('time', {}, timeOfDay(at)),
      ` QoS ${message.qos} · ${size(message.payloadLength)}${flags && ` · ${flags}`}`,
    )
    return make('li', { dataset: { number: String(number) } }, button)
  }

  #show(record) {
    for (const [number, item] of this.#items) item.firstChild.ariaCurrent = String(number === record.number)
    if (this.#shown === record) return
    this.#shown = record
    byId('message').hidden = false
    setFacts(byId('properties'), factsOf(record))
    this.#showPayload()
  }

  #showPayload() {
    const { payload } = this.#shown.message
    const format = this.#format ?? formatOf(payload)
    this.#radios[formats.indexOf(format)].checked = true
    const { text, note } = render(payload, format)
    setText(this.#payload, text)
    setText(byId('payload-note'), note)
  }
}

/** What is bounded, in a sentence. */
export const bounds = `Messages are kept up to ${limits.perTopic} a topic, ${limits.messages.toLocaleString('en')} and ${size(limits.bytes)} in all; payloads are shown up to ${size(textLimits.text)}`
