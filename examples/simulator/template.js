/**
 * Templates of topics and payloads: text with placeholders, which are filled in for each message. Pure.
 *
 * Only `{name}` with small letters is a placeholder, so that JSON can be written as it is. A template comes from the user: what it cannot be is said in a
 * sentence, and nothing is ever run.
 */

/** Placeholders: what they stand for, as the page says it, and how they are filled in. */
export const placeholders = {
  device: ['number of the device, from 1', ({ device }) => String(device)],
  n: ['number of the message of this device, from 1', ({ n }) => String(n)],
  random: ['a random number from 0 to 1', ({ random }) => random().toFixed(4)],
  value: [
    'a reading that rises and falls around 20',
    ({ at }) => String(Math.round(200 + 20 * Math.sin(at / 5000)) / 10),
  ],
  time: ['date and time, as 2026-01-31T12:00:00.000Z', ({ date }) => new Date(date).toISOString()],
  ms: ['milliseconds since 1970', ({ date }) => String(date)],
  qos: ['the QoS', ({ qos }) => String(qos)],
  prefix: ['levels that no other run has, as simulator/1a2b3c', ({ prefix }) => prefix],
}

/** The topic as long as nobody changes it. The QoS stands in it: a broker may hand the message on at a lower one. */
export const standardTopic = '{prefix}/{device}/{qos}'

/** The payload that the field begins with. */
export const standardPayload =
  '{ "device": {device}, "n": {n}, "celsius": {value}, "humidity": {random} }'

/** Characters of a template. */
export const longest = 16_384

const pattern = /\{([a-z]+)\}/
const isKnown = (name) => Object.hasOwn(placeholders, name)

/** Texts and names of placeholders by turns, beginning with a text. */
const split = (text) => text.split(pattern)

/** What is wrong with a template; undefined when nothing is. */
export function problemOf(text) {
  if (text.length > longest)
    return `A template has at most ${longest.toLocaleString('en')} characters.`
  const strange = split(text).find((name, index) => index % 2 === 1 && !isKnown(name))
  return strange === undefined ? undefined : `There is no placeholder {${strange}}.`
}

/** The same for a template of a topic. */
export function topicProblemOf(text) {
  if (text === '') return 'A topic has at least one character.'
  if (['+', '#', '\0'].some((character) => text.includes(character)))
    return 'A topic to publish to has no + and no #.'
  if (text.startsWith('$')) return 'Topics that begin with $ belong to the broker.'
  return problemOf(text)
}

/** A template as a function of what is known of a message: `{ device, n, qos, at, date, random, prefix }`. */
export function compile(text) {
  const parts = split(text).map((part, index) => (index % 2 === 1 ? placeholders[part][1] : part))
  return (known) => parts.map((part) => (typeof part === 'string' ? part : part(known))).join('')
}

/** Fills in names of user names, passwords and client identifiers. Other braces stay: a password may have them. */
export const filledIn = (text, known) =>
  text.replaceAll(/\{(device|id)\}/g, (braces, name) => String(known[name] ?? braces))

/** The filter on which everything comes that is published to topics of a template. A level with a placeholder may be anything. */
export function filterOf(text, prefix) {
  const levels = text.replaceAll('{prefix}', prefix).split('/')
  return levels.map((level) => (pattern.test(level) ? '+' : level)).join('/')
}
