/**
 * The publish box: a form, and what came of the last publishes, receipt or typed error.
 */
import { MqttError } from 'mqwire'
import { textOf } from '../connection.js'
import { isJson, jsonProblem, oneLine } from '../model/payload.js'
import { byId, make, setText, timeOfDay } from './dom.js'

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
  if (!MqttError.is(error)) return oneLine(String(error))
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

/** Makes the box work. Gives `suggest(topic)`, which fills in a topic. */
export function setUpPublish(connection, { topic: suggestion }) {
  const form = byId('publish')
  const { topic, payload, qos, contentType, retain, keep } = form.elements
  const cancel = byId('cancel')
  const waiting = new Set()
  topic.value = suggestion
  const check = () => setText(byId('payload-problem'), problemOf(contentType.value, payload.value))
  for (const field of [payload, contentType]) field.addEventListener('input', check)
  keep.addEventListener('change', () => {
    byId('keep-note').hidden = !keep.checked
  })
  cancel.addEventListener('click', () => {
    for (const abort of waiting) abort.abort()
    connection.giveUp()
  })

  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const level = Number(qos.value)
    const item = make(
      'li',
      { className: 'waiting' },
      make('time', {}, timeOfDay(Date.now())),
      ` ${oneLine(topic.value, 60)}: `,
      make('span', {}, 'under way'),
    )
    const list = byId('receipts')
    list.prepend(item)
    while (list.children.length > kept) list.lastElementChild.remove()
    const abort = new AbortController()
    waiting.add(abort)
    cancel.hidden = false
    const start = performance.now()
    const finish = (kind, text) => {
      item.className = kind
      setText(item.lastElementChild, text)
    }
    try {
      const options = {
        qos: level,
        retain: retain.checked,
        contentType: contentType.value,
        signal: abort.signal,
      }
      const receipt = await (keep.checked
        ? deliver(connection, topic.value, payload.value, options, (text) =>
            finish('waiting', text),
          )
        : connection.publish(topic.value, payload.value, options))
      finish('done', receiptText(receipt, level, performance.now() - start))
    } catch (error) {
      finish('failed', errorText(error))
    } finally {
      waiting.delete(abort)
      cancel.hidden = waiting.size === 0
    }
  })

  return {
    suggest(name) {
      topic.value = name
    },
  }
}
