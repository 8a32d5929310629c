/**
 * Messages as lines of JSON, as `npx mqwire record` writes and `replay` reads them, and their numbers as CSV. Pure.
 */
import { validateTopicName } from 'mqwire/wire'
import { base64Of, bytesIn, textOfBytes } from './bytes.js'
import { numbersIn } from './numbers.js'

/** Bytes of a file that is opened, and lines that may be wrong. */
export const limits = { file: 64 * 1024 * 1024, wrong: 1000 }

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The line of a message. A payload that is no UTF-8, and correlation data, are base64. */
export function lineOf({ message, at }) {
  const { topic, qos, retain, payload, properties } = message
  // Identifiers are those of the subscription.
  const { correlationData, subscriptionIdentifiers: _identifiers, ...rest } = properties
  const given = {
    ...rest,
    ...(correlationData !== undefined && { correlationData: base64Of(correlationData) }),
  }
  return `${JSON.stringify({
    time: new Date(at).toISOString(),
    topic,
    qos,
    retain,
    ...payloadOf(payload),
    ...(Object.keys(given).length > 0 && { properties: given }),
  })}\n`
}

function payloadOf(bytes) {
  const { text, encoding } = textOfBytes(bytes)
  return encoding === 'text' ? { payload: text } : { base64: text }
}

/**
 * The messages of a file `{ message, at }`, how many lines are none, and what is wrong with the first of them. `rest` is awaited now and then; after too
 * many wrong lines the rest is not read.
 */
export async function recordsIn(text, rest) {
  const records = []
  let wrong = 0
  let problem
  for (const [index, line] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    if (index % slice === slice - 1) await rest()
    if (line.trim() === '') continue
    try {
      records.push(recordOf(JSON.parse(line)))
    } catch (error) {
      wrong += 1
      problem ??= `line ${index + 1}: ${error.message}`
      if (wrong === limits.wrong) break
    }
  }
  return { records, wrong, problem }
}

/** Lines between two rests. */
const slice = 5000

function assert(is, problem) {
  if (!is) throw new Error(problem)
}

const isText = (value) => typeof value === 'string'
const isPair = (value) => Array.isArray(value) && value.length === 2 && value.every(isText)

/** What is right for each property. */
const properties = {
  contentType: isText,
  responseTopic: isText,
  correlationData: isText,
  payloadFormatIndicator: (value) => value === 0 || value === 1,
  messageExpiryInterval: (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32,
  userProperties: (value) => Array.isArray(value) && value.every(isPair),
}

function propertiesIn(given) {
  assert(typeof given === 'object' && given !== null, 'properties must be an object')
  const found = {}
  for (const [name, isRight] of Object.entries(properties)) {
    if (given[name] === undefined) continue
    assert(isRight(given[name]), `properties.${name} is wrong`)
    found[name] = name === 'correlationData' ? bytesIn(given[name], 'base64') : given[name]
  }
  return found
}

function recordOf(line) {
  assert(typeof line === 'object' && line !== null, 'it is no object')
  const { time, topic, qos = 0, retain = false, payload, base64 } = line
  const at = isText(time) ? Date.parse(time) : Number.NaN
  assert(!Number.isNaN(at), 'time must be a date')
  assert(isText(topic) && validateTopicName(topic) === undefined, 'topic must be a topic name')
  assert([0, 1, 2].includes(qos), 'qos must be 0, 1 or 2')
  assert(typeof retain === 'boolean', 'retain must be true or false')
  assert(isText(payload === undefined ? base64 : payload), 'payload must be a text')
  const bytes = payload === undefined ? bytesIn(base64, 'base64') : bytesIn(payload)
  return {
    at,
    message: {
      topic,
      qos,
      retain,
      payload: bytes,
      payloadLength: bytes.length,
      properties: propertiesIn(line.properties ?? {}),
      json: () => JSON.parse(strict.decode(bytes)),
    },
  }
}

/** The numbers in messages as CSV: a line for each message, a column for each field, and one for the topic where there are several. */
export function csvOf(records) {
  const rows = records
    .map(({ message, at }) => ({ at, topic: message.topic, numbers: new Map(numbersIn(message)) }))
    .filter(({ numbers }) => numbers.size > 0)
  const fields = [...new Set(rows.flatMap(({ numbers }) => [...numbers.keys()]))]
  const isMixed = new Set(rows.map(({ topic }) => topic)).size > 1
  const lines = rows.map(({ at, topic, numbers }) => [
    new Date(at).toISOString(),
    ...(isMixed ? [topic] : []),
    ...fields.map((field) => numbers.get(field) ?? ''),
  ])
  return [['time', ...(isMixed ? ['topic'] : []), ...fields], ...lines]
    .map((cells) => `${cells.map(cellOf).join(',')}\r\n`)
    .join('')
}

// A program for tables would take a name that begins with such a sign for a formula.
function cellOf(value) {
  const text = String(value)
  const safe = typeof value === 'string' && /^\s*[=+@-]/.test(text) ? `'${text}` : text
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
