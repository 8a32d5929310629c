/**
 * Messages as lines of JSON, as `npx mqwire record` writes and `replay` reads them, and their numbers as CSV. Pure.
 */
import { numbersIn } from './numbers.js'

/** Bytes of a file that is opened. */
export const limits = { file: 64 * 1024 * 1024 }

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

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
  try {
    return { payload: strict.decode(bytes) }
  } catch {
    return { base64: base64Of(bytes) }
  }
}

const base64Of = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0))

/** The messages of a file `{ message, at }`, how many lines are none, and what is wrong with the first of them. */
export function recordsIn(text) {
  const records = []
  let wrong = 0
  let problem
  for (const [index, line] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    if (line.trim() === '') continue
    try {
      records.push(recordOf(JSON.parse(line)))
    } catch (error) {
      wrong += 1
      problem ??= `line ${index + 1}: ${error.message}`
    }
  }
  return { records, wrong, problem }
}

function recordOf({ time, topic, qos = 0, retain = false, payload, base64, properties = {} }) {
  const at = Date.parse(time)
  if (Number.isNaN(at)) throw new Error('time must be a date')
  if (typeof topic !== 'string' || topic === '') throw new Error('topic must be a text')
  if (![0, 1, 2].includes(qos)) throw new Error('qos must be 0, 1 or 2')
  if (typeof (payload ?? base64) !== 'string') throw new Error('payload must be a text')
  const { correlationData, ...rest } = Object(properties)
  const bytes = payload === undefined ? bytesOf(base64) : encoder.encode(payload)
  return {
    at,
    message: {
      topic,
      qos,
      retain: retain === true,
      payload: bytes,
      payloadLength: bytes.length,
      properties: {
        ...rest,
        ...(rest.userProperties !== undefined && { userProperties: pairsIn(rest.userProperties) }),
        ...(correlationData !== undefined && { correlationData: bytesOf(String(correlationData)) }),
      },
      json: () => JSON.parse(strict.decode(bytes)),
    },
  }
}

const pairsIn = (given) =>
  (Array.isArray(given) ? given : []).filter(Array.isArray).map((pair) => pair.map(String))

/** The numbers in messages as CSV: a line for each message, a column for each field. */
export function csvOf(records) {
  const rows = records.map(({ message, at }) => [at, new Map(numbersIn(message))])
  const fields = [...new Set(rows.flatMap(([, numbers]) => [...numbers.keys()]))]
  const lines = rows
    .filter(([, numbers]) => numbers.size > 0)
    .map(([at, numbers]) => [
      new Date(at).toISOString(),
      ...fields.map((field) => numbers.get(field) ?? ''),
    ])
  return [['time', ...fields], ...lines]
    .map((cells) => `${cells.map(cellOf).join(',')}\r\n`)
    .join('')
}

// A program for tables would take a name that begins with such a sign for a formula.
function cellOf(value) {
  const text = String(value)
  const safe = typeof value === 'string' && /^[=+@-]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
