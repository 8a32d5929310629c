/**
 * The publish box: a form, and what came of the last publishes, receipt or typed error.
 */
import { MqttError } from 'mqwire'
import { textOf } from '../connection.js'
import { bytesIn, linesOf, typedBytes } from '../model/bytes.js'
import { isJson, jsonProblem, oneLine, preview } from '../model/payload.js'
import { storedMessages } from '../model/stored.js'
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
    correlationData: correlationData === undefined ? '' : typedBytes(correlationData).text,
    payloadFormatIndicator: properties.payloadFormatIndicator ?? '',
    messageExpiryInterval: properties.messageExpiryInterval ?? '',
    userProperties: linesOf(userProperties),
  }
}

/** Messages that were saved: to be chosen, and sent again. */
function setUpSaved(form) {
  const stored = storedMessages()
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
    if (chosen !== undefined) fill(form, chosen)
    forget.disabled = chosen === undefined
  })
  byId('save-message').addEventListener('click', () => {
    const values = valuesOf(form)
    const title = oneLine(`${values.topic} ${values.payload}`, 80)
    if (!stored.save({ ...values, title }))
      setText(byId('payload-problem'), 'A field is too long to be saved.')
    else offer(title)
  })
  forget.addEventListener('click', () => {
    stored.forget(list.value)
    offer()
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
  setUpSaved(form)
  const check = () =>
    setText(
      byId('payload-problem'),
      encoding.value === 'text' ? problemOf(contentType.value, payload.value) : '',
    )
  for (const field of [payload, contentType, encoding]) field.addEventListener('input', check)
  payload.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    form.requestSubmit()
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
      make('span', {}, 'under way'),
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
      return receiptText(receipt, values.qos, performance.now() - start)
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
      fill(form, fieldsOf(message))
      check()
      payload.focus()
    },
    focus: () => payload.focus(),
  }
}
