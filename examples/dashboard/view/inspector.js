/**
 * The inspector: the last messages of a topic, or of all topics below it, and one of them with everything that it has.
 */

import { limits } from '../model/history.js'
import { age, oneLine, preview, size, limits as textLimits } from '../model/payload.js'
import { byId, exactTime, make, setFacts, setText } from './dom.js'
import { PayloadView } from './payload-view.js'

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

/** Items that the list gets at a time: thousands of messages a second need not be items each. */
const newItems = 60

/** The inspector. */
export class Inspector {
  #recorder
  #list = byId('messages')
  #follow = byId('follow')
  #below = byId('below')
  #payload
  /** Number of a record to its item in the list. */
  #items = new Map()
  #records = []
  #shown

  /**
   * `charted(topic, field)` is called with a number that the user wants to see over time; it gives what came of it. `again(message)` is called with a
   * message that is to be sent again.
   */
  constructor(recorder, { charted, again }) {
    this.#recorder = recorder
    this.#payload = new PayloadView({ charted })
    this.#follow.addEventListener('change', () => this.draw())
    this.#below.addEventListener('change', () =>
      this.inspect(recorder.selected, this.#below.checked),
    )
    byId('again').addEventListener('click', () => again(this.#shown.message))
    this.#list.addEventListener('click', ({ target }) => {
      const number = Number(target.closest('li')?.dataset.number)
      const record = this.#records.find((each) => each.number === number)
      if (record === undefined) return
      this.#follow.checked = false
      this.#show(record)
    })
  }

  /** Another topic; undefined for none. With `below`, all topics below it as well. */
  inspect(topic, below = false) {
    this.#recorder.selected = topic
    this.#recorder.selectsBelow = below
    this.#below.checked = below
    this.#follow.checked = true
    this.#shown = undefined
    if (topic === undefined) return this.#clear()
    // Their names depend on what is selected.
    this.#showList([])
    this.draw()
    // In one column it is far below the table.
    if (!below && matchMedia('(max-width: 60rem)').matches) byId('inspector-title').scrollIntoView()
  }

  draw() {
    const { selected, selectsBelow, missed, topics } = this.#recorder
    if (selected === undefined) return
    // What is walked through with the keyboard stays as it was.
    if (this.#shown !== undefined && this.#isInUse()) return
    this.#below.closest('label').hidden = !selectsBelow && !topics.hasBelow(selected)
    this.#records = this.#recorder.records
    const count = this.#records.length
    const paused = missed === undefined ? '' : ' Paused: newer ones are not kept.'
    const none = 'Nothing is kept of it any more.'
    const most = selectsBelow
      ? limits.perTopic
      : `${limits.perTopic}, or ${size(limits.topicBytes)}`
    setText(
      byId('inspected'),
      `${oneLine(selected, 200) || '(empty)'}${selectsBelow ? ' and below' : ''}: ${count === 0 ? none : `the last ${count} (at most ${most}).`}${paused}`,
    )
    this.#showList(this.#listed())
    const [newest] = this.#records
    if (newest !== undefined && (this.#follow.checked || this.#shown === undefined))
      this.#show(newest)
    byId('message').hidden = this.#shown === undefined
  }

  #isInUse() {
    return this.#payload.isInUse || this.#list.contains(document.activeElement)
  }

  #clear() {
    this.#records = []
    this.#showList([])
    this.#below.closest('label').hidden = true
    setText(byId('inspected'), 'Choose a topic in the table to see its last messages.')
    byId('message').hidden = true
  }

  #showList(records) {
    const numbers = new Set(records.map(({ number }) => number))
    for (const [number, item] of this.#items) {
      if (numbers.has(number)) continue
      item.remove()
      this.#items.delete(number)
    }
    // Newest first. What is in its place is not touched.
    let place = this.#list.firstChild
    for (const record of records) {
      const item = this.#items.get(record.number) ?? this.#makeItem(record)
      this.#items.set(record.number, item)
      if (item === place) place = place.nextSibling
      else this.#list.insertBefore(item, place)
    }
  }

  /** The records of the list: the newest, and of older ones that are not in it yet so many at a time. */
  #listed() {
    let room = newItems
    return this.#records.filter(({ number }) => this.#items.has(number) || room-- > 0)
  }

  #makeItem({ message, at, number }) {
    const { selected, selectsBelow } = this.#recorder
    const flags = flagsOf(message)
    const isBelow = selectsBelow && message.topic !== selected
    const tail = isBelow ? oneLine(message.topic.slice(selected.length + 1), 60) || '(empty)' : ''
    const button = make(
      'button',
      { type: 'button' },
      make('time', {}, exactTime(at)),
      ` QoS ${message.qos} · ${size(message.payloadLength)}${flags && ` · ${flags}`} `,
      ...(tail === '' ? [] : [make('b', {}, `${tail} `)]),
      make('code', {}, preview(message.payload)),
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
    const ofTopic = this.#recorder.history.of(record.message.topic)
    this.#payload.show(
      record,
      ofTopic.find(({ number }) => number < record.number),
    )
  }
}

/** What is bounded, in a sentence. */
export const bounds = `Messages are kept up to ${limits.perTopic} or ${size(limits.topicBytes)} a topic, ${limits.messages.toLocaleString('en')} and ${size(limits.bytes)} in all; payloads are shown up to ${size(textLimits.text)}`
