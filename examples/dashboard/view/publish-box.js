/**
 * The publish box: a form, and what came of the last publishes, receipt or typed error.
 */
import { MqttError } from 'mqwire'
import { textOf } from '../connection.js'
import { bytesIn, fieldOfBytes, linesOf, typedBytes } from '../model/bytes.js'
import { isJson, jsonProblem, oneLine, preview } from '../model/payload.js'
import { StoredMessages } from '../model/stored.js'
import { byId, make, setText, timeOfDay } from './dom.js'
import { fill, valuesOf } from './fields.js'

/** Outcomes that stay in sight. */
const kept = 5

/** What an error says of the message. */
const fates = {
  'not-sent': 'it was not sent',
  refused: 'the server refused it',
  unknown: 'it may have arrived',
}

function receiptText({ reasonCode, reasonName, packetId }, qos, milliseconds) {
  if (qos === 0) return 'handed to the network; QoS 0 has no receipt'
  const code = `0x${reasonCode.toString(16).padStart(2, '0')}`
  return `${qos === 1 ? 'PUBACK' : 'PUBCOMP'} ${code} ${oneLine(reasonName)}, packet ${packetId}, ${milliseconds.toFixed(1)} ms`
}

function errorText(error) {
  if (!MqttError.is(error)) return oneLine(error.message)
  return `${oneLine(textOf(error), 200)}: ${error.outcome} (${fates[error.outcome]})`
}

/** What is wrong with a payload that says of itself that it is JSON; an empty text when nothing is. */
function problemOf(contentType, payload) {
  const problem = isJson(contentType) ? jsonProblem(payload) : undefined
  return problem === undefined ? '' : `This is no JSON, and would be sent as it is: ${problem}`
}

/** Keeps a message, says so, and fulfils with its receipt. The signal ends the wait for room only. */
async function deliver(connection, topic, payload, options, said) {
  const { id, delivered } = await connection.keep(topic, payload, options)
  said(`kept as number ${id}`)
  return delivered
}

/** What a message that was typed says, as the fields of the form. */
function fieldsOf({ topic, qos, retain, payload, properties }) {
  const { contentType = '', responseTopic = '', correlationData, userProperties } = properties
  const { text, encoding } = typedBytes(payload)
  return {
    topic,
    payload: text,
    encoding,
    qos,
    retain,
    contentType,
    responseTopic,
    correlationData: correlationData === undefined ? '' : fieldOfBytes(correlationData),
    payloadFormatIndicator: properties.payloadFormatIndicator ?? '',
    messageExpiryInterval: properties.messageExpiryInterval ?? '',
    userProperties: linesOf(userProperties),
  }
}

/** Fields that are folded away. */
const folded = [
  'payloadFormatIndicator',
  'messageExpiryInterval',
  'responseTopic',
  'correlationData',
  'userProperties',
]

/** Fills the form with all of a message, unfolds what it has, and says what of it cannot be typed. */
function fillWhole(form, message) {
  fill(form, message)
  const values = valuesOf(form)
  if (values.encoding !== 'text' || folded.some((name) => values[name] !== ''))
    form.elements.encoding.closest('details').open = true
  const lost = Object.keys(message).filter(
    (name) => name in values && String(values[name]) !== String(message[name]),
  )
  setText(
    byId('save-note'),
    lost.length === 0 ? '' : `It cannot be typed as it was: ${lost.join(', ')}.`,
  )
}

/** Messages that were saved: to be chosen, and sent again. */
function setUpSaved(form, filled) {
  const stored = new StoredMessages()
  const list = byId('saved')
  const forget = byId('forget-message')
  const offer = (chosen = '') => {
    list.replaceChildren(
      make('option', { value: '' }, 'choose …'),
      ...stored.entries.map(({ title }) => make('option', { value: title }, oneLine(title, 80))),
    )
    list.value = chosen
    forget.disabled = chosen === ''
  }
  list.addEventListener('change', () => {
    const chosen = stored.entries.find(({ title }) => title === list.value)
    if (chosen !== undefined) fillWhole(form, chosen)
    filled()
    forget.disabled = chosen === undefined
  })
  byId('save-message').addEventListener('click', () => {
    if (!form.reportValidity()) return
    const values = valuesOf(form)
    const { title, said } = stored.add(values, oneLine(`${values.topic} ${values.payload}`, 80))
    setText(byId('save-note'), said)
    offer(title)
  })
  forget.addEventListener('click', () => {
    stored.forget(list.value)
    setText(byId('save-note'), 'Forgotten.')
    offer()
  })
  addEventListener('storage', () => {
    stored.read()
    offer(list.value)
  })
  offer()
}

/** Makes the box work. Gives `suggest(topic)`, which fills in a topic, `again(message)`, which fills in all of a message, and `focus()`. */
export function setUpPublish(connection, { topic: suggestion }) {
  const form = byId('publish')
  const { topic, payload, contentType, keep, encoding } = form.elements
  const cancel = byId('cancel')
  const waiting = new Set()
  topic.value = suggestion
  const check = () =>
    setText(
      byId('payload-problem'),
      encoding.value === 'text' ? problemOf(contentType.value, payload.value) : '',
    )
  setUpSaved(form, check)
  for (const field of [payload, contentType, encoding]) field.addEventListener('input', check)
  payload.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    if (!event.repeat) form.requestSubmit()
  })
  keep.addEventListener('change', () => {
    byId('keep-note').hidden = !keep.checked
  })
  cancel.addEventListener('click', () => {
    for (const abort of waiting) abort.abort()
    connection.giveUp()
  })

  /** Sends what the form says; `send(values, bytes, said)` fulfils with what is said of it then. */
  const submit = async (send) => {
    const values = valuesOf(form)
    const item = make(
      'li',
      { className: 'waiting' },
      make('time', {}, timeOfDay(Date.now())),
      ` ${oneLine(values.topic, 60)}: `,
      make(
        'span',
        {},
        connection.view.state === 'connected' ? 'under way' : 'waits for the connection',
      ),
    )
    const list = byId('receipts')
    list.prepend(item)
    while (list.children.length > kept) list.lastElementChild.remove()
    const abort = new AbortController()
    waiting.add(abort)
    cancel.hidden = false
    const finish = (kind, text) => {
      item.className = kind
      setText(item.lastElementChild, text)
    }
    try {
      const bytes = bytesIn(values.payload, values.encoding)
      const given = { ...values, signal: abort.signal }
      finish('done', await send(given, bytes, (text) => finish('waiting', text)))
    } catch (error) {
      finish('failed', errorText(error))
    } finally {
      waiting.delete(abort)
      cancel.hidden = waiting.size === 0
    }
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    submit(async (values, bytes, said) => {
      const start = performance.now()
      const receipt = await (values.keep
        ? deliver(connection, values.topic, bytes, values, said)
        : connection.publish(values.topic, bytes, values))
      const text = receiptText(receipt, values.qos, performance.now() - start)
      const isLost = !connection.hasProperties && values.contentType !== ''
      return isLost ? `${text}; MQTT 3.1.1 has no content type` : text
    })
  })
  byId('request').addEventListener('click', () => {
    if (!form.reportValidity()) return
    submit(async (values, bytes) => {
      const start = performance.now()
      const answer = await connection.request(values.topic, bytes, values)
      const time = (performance.now() - start).toFixed(1)
      return `answer after ${time} ms: ${oneLine(preview(answer.payload), 300)}`
    })
  })

  return {
    suggest(name) {
      topic.value = name
    },
    again(message) {
      fillWhole(form, fieldsOf(message))
      check()
      payload.focus()
    },
    focus: () => payload.focus(),
  }
}
