/**
 * The inspector: the last messages of one topic, and one of them with everything that it has.
 */

import { differences } from '../model/differences.js'
import { limits } from '../model/history.js'
import { numbersIn } from '../model/numbers.js'
import {
  age,
  formatOf,
  oneLine,
  pieces,
  render,
  size,
  limits as textLimits,
} from '../model/payload.js'
import { byId, exactTime, make, setFacts, setText } from './dom.js'

const formats = ['text', 'json', 'hex']
const hex = (bytes) =>
  Array.from(bytes.subarray(0, 64), (byte) => byte.toString(16).padStart(2, '0')).join(' ')

/** The flags of a message in few words. */
function flagsOf({ retain, dup, redelivered }) {
  return [retain && 'retained', dup && 'DUP', redelivered && 'redelivered']
    .filter(Boolean)
    .join(', ')
}

function factsOf({ message, at }) {
  const { topic, qos, payloadLength, properties } = message
  const { userProperties = [], correlationData } = properties
  const given = (name, value) => (value === undefined ? [] : [[name, oneLine(String(value), 300)]])
  return [
    ['Topic', oneLine(topic, 500)],
    ['Received', exactTime(at)],
    ['QoS', [`${qos}`, flagsOf(message)].filter(Boolean).join(', ')],
    [
      'Size',
      payloadLength < 1024
        ? `${payloadLength} bytes`
        : `${size(payloadLength)} (${payloadLength.toLocaleString('en')} bytes)`,
    ],
    ...given('Content type', properties.contentType),
    ...given('Payload format', ['bytes', 'UTF-8 text'][properties.payloadFormatIndicator]),
    ...given(
      'Expires in',
      properties.messageExpiryInterval && age(properties.messageExpiryInterval * 1000),
    ),
    ...given('Response topic', properties.responseTopic),
    ...given('Correlation data', correlationData && hex(correlationData)),
    ...given('Subscription ids', properties.subscriptionIdentifiers?.join(', ')),
    ...userProperties.map(([name, value]) => [`“${oneLine(name, 60)}”`, oneLine(value, 300)]),
  ]
}

function makeNumber({ text, field }) {
  const name = oneLine(field)
  return make(
    'button',
    {
      type: 'button',
      className: 'number',
      title: `draw ${name} in a chart`,
      ariaLabel: `${text}, draw ${name} in a chart`,
      dataset: { field },
    },
    text,
  )
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
  /** The pointer is down on the payload: what it is on must not go. */
  #held = false

  /** `charted(topic, field)` is called with a number that the user wants to see over time; it gives what came of it. */
  constructor(recorder, { charted }) {
    this.#recorder = recorder
    this.#payload.addEventListener('pointerdown', () => {
      this.#held = true
    })
    for (const type of ['pointerup', 'pointercancel'])
      addEventListener(type, () =>
        setTimeout(() => {
          this.#held = false
        }),
      )
    this.#payload.addEventListener('click', ({ target }) => {
      const { field } = target.closest('button')?.dataset ?? {}
      if (field !== undefined)
        setText(byId('payload-note'), charted(this.#shown.message.topic, field))
    })
    // Scrolled with the keyboard.
    this.#payload.tabIndex = 0
    this.#follow.addEventListener('change', () => this.draw())
    byId('changes').addEventListener('change', () => this.#showPayload())
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

  /** Another topic; undefined for none. */
  inspect(topic) {
    this.#recorder.selected = topic
    this.#follow.checked = true
    this.#format = undefined
    this.#shown = undefined
    if (topic === undefined) return this.#clear()
    this.draw()
    // In one column it is far below the table.
    if (matchMedia('(max-width: 60rem)').matches) byId('inspector-title').scrollIntoView()
  }

  draw() {
    const { selected, history, missed } = this.#recorder
    if (selected === undefined) return
    // Whoever walks through the list with the keyboard finds it as it was.
    if (this.#shown !== undefined && this.#isInUse()) return
    this.#records = history.of(selected)
    const count = this.#records.length
    const paused = missed === undefined ? '' : ' Paused: newer ones are not kept.'
    const none = 'Nothing is kept of it any more.'
    setText(
      byId('inspected'),
      `${oneLine(selected, 200)}: ${count === 0 ? none : `the last ${count} (at most ${limits.perTopic}, or ${size(limits.topicBytes)}).`}${paused}`,
    )
    this.#showList()
    const [newest] = this.#records
    if (newest !== undefined && (this.#follow.checked || this.#shown === undefined))
      this.#show(newest)
    byId('message').hidden = this.#shown === undefined
  }

  #isInUse() {
    const { activeElement } = document
    // The payload itself can have the focus to be scrolled; its numbers are there to be used.
    const isOnNumber = this.#payload !== activeElement && this.#payload.contains(activeElement)
    return (
      this.#held ||
      isOnNumber ||
      this.#payload.matches(':hover') ||
      this.#list.contains(activeElement)
    )
  }

  #clear() {
    this.#records = []
    this.#showList()
    setText(byId('inspected'), 'Choose a topic in the table to see its last messages.')
    byId('message').hidden = true
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
      make('time', {}, exactTime(at)),
      ` QoS ${message.qos} · ${size(message.payloadLength)}${flags && ` · ${flags}`}`,
    )
    return make('li', { dataset: { number: String(number) } }, button)
  }

  #show(record) {
    for (const [number, item] of this.#items)
      item.firstChild.ariaCurrent = String(number === record.number)
    if (this.#shown === record) return
    this.#shown = record
    byId('message').hidden = false
    setFacts(byId('properties'), factsOf(record))
    this.#showPayload()
  }

  #showPayload() {
    const { message } = this.#shown
    const { payload, properties } = message
    const format = this.#format ?? formatOf(payload)
    this.#radios[formats.indexOf(format)].checked = true
    const { text, note } = render(payload, format, properties.contentType)
    if (byId('changes').checked) return this.#showChanges(text, note, format)
    const fields = new Set(numbersIn(message).map(([name]) => name))
    this.#payload.replaceChildren(
      ...pieces(payload, format, text).map((piece) =>
        fields.has(piece.field) ? makeNumber(piece) : document.createTextNode(piece.text),
      ),
    )
    setText(
      byId('payload-note'),
      note ||
        (fields.size > 0 && format !== 'hex' ? 'A click on a number draws it in a chart.' : ''),
    )
  }

  /** Marks what the message before did not have, and what it had. */
  #showChanges(text, note, format) {
    const { number, message } = this.#shown
    const before = this.#records.find((record) => record.number < number)
    if (before === undefined) {
      this.#payload.replaceChildren(text)
      return setText(byId('payload-note'), `${note} No message before it is kept.`.trim())
    }
    const { payload, properties } = before.message
    const pieces = differences(render(payload, format, properties.contentType).text, text)
    const tags = { '+': 'ins', '-': 'del', ' ': 'span' }
    this.#payload.replaceChildren(...pieces.map((piece) => make(tags[piece.mark], {}, piece.text)))
    const isSame = isEqual(payload, message.payload)
    const seen = isSame
      ? 'As the message before.'
      : pieces.some(({ mark }) => mark !== ' ')
        ? `Since the message before, ${exactTime(before.at)}.`
        : 'It differs from the message before, but not in what is shown.'
    setText(byId('payload-note'), `${note} ${seen}`.trim())
  }
}

const isEqual = (one, other) =>
  one.length === other.length && one.every((byte, at) => byte === other[at])

/** What is bounded, in a sentence. */
export const bounds = `Messages are kept up to ${limits.perTopic} or ${size(limits.topicBytes)} a topic, ${limits.messages.toLocaleString('en')} and ${size(limits.bytes)} in all; payloads are shown up to ${size(textLimits.text)}`
