/**
 * How `sub` prints a message: by default its topic and text, as JSON, its bytes alone, or by a
 * format with the codes of mosquitto_sub.
 */
import { type Message, printable } from 'mqwire'
import type { Decoded } from './contract.js'
import { misuse } from './ending.js'
import { recordOf, textOf } from './records.js'
import type { Colours } from './terminal.js'

/** Turns a message into what is written. */
export type Formatter = (message: Message, time: Date, decoded?: Decoded) => string | Uint8Array

/** What the formatter is chosen by. */
export interface FormatChoice {
  readonly json?: boolean | undefined
  readonly raw?: boolean | undefined
  readonly format?: string | undefined
}

/** The codes of `--format`, and what each stands for. */
export const formatCodes = {
  '%t': 'topic',
  '%p': 'payload',
  '%j': 'the message as JSON',
  '%q': 'QoS',
  '%r': 'retained: 0 or 1',
  '%l': 'length of the payload',
  '%x': 'payload in hexadecimal',
  '%b': 'payload in base64',
  '%I': 'time of arrival, ISO 8601',
  '%U': 'time of arrival, seconds since 1970',
  '%C': 'content type',
  '%R': 'response topic',
  '%D': 'correlation data in hexadecimal',
  '%P': 'user properties, NAME:VALUE',
  '%%': 'a percent sign',
  '\\n': 'a line end; \\t: a tab; \\0: a zero byte',
} as const

/** Chooses the formatter. @throws Ending for a code that does not exist */
export function formatterOf(choice: FormatChoice, colours: Colours): Formatter {
  if (choice.json)
    return (message, time, decoded) =>
      `${JSON.stringify({ ...recordOf(message, time), ...(decoded && decodedPart(decoded)) })}\n`
  if (choice.raw) return ({ payload }) => payload
  if (choice.format !== undefined) return byFormat(choice.format)
  return (message, _time, decoded) => {
    const retained = message.retain ? colours.dim('(retained) ') : ''
    const text =
      decoded === undefined ? readable(message.payload) : decodedText(decoded, message, colours)
    return `${topicColour(message.topic, colours)} ${retained}${text}\n`
  }
}

function decodedPart({ json, ...decoded }: Decoded): object {
  return { decoded: { ...decoded, ...(json !== undefined && { value: JSON.parse(json) }) } }
}

function decodedText({ json, problem }: Decoded, { payload }: Message, colours: Colours): string {
  return json === undefined
    ? `${readable(payload)} ${colours.red(`(${visible(problem ?? '')})`)}`
    : visible(json)
}

/** A payload on a line of its own: text with control characters escaped, otherwise hexadecimal. */
export function readable(payload: Uint8Array): string {
  const text = textOf(payload)
  return text === undefined
    ? `${payload.length} bytes: ${Buffer.from(payload.subarray(0, 64)).toString('hex')}${payload.length > 64 ? '…' : ''}`
    : visible(text)
}

/** Text whose line ends and escapes do not reach the terminal. */
// `printable` cuts what is long, so it gets each character alone.
export function visible(text: string): string {
  let safe = ''
  for (const character of text)
    safe += character < ' ' || character > '~' ? printable(character) : character
  return safe
}

/** Topics with the same parent have one colour. */
function topicColour(topic: string, colours: Colours): string {
  const all = [colours.cyan, colours.green, colours.yellow, colours.magenta, colours.blue]
  let hash = 0
  const end = topic.lastIndexOf('/')
  for (let at = 0; at < (end < 0 ? topic.length : end); at++)
    hash = (hash * 31 + topic.charCodeAt(at)) >>> 0
  return (all[hash % all.length] as (text: string) => string)(visible(topic))
}

type Part = string | ((message: Message, time: Date) => string | Uint8Array)

const parts: Readonly<Record<string, Part>> = {
  t: ({ topic }) => topic,
  p: ({ payload }) => payload,
  j: (message, time) => JSON.stringify(recordOf(message, time)),
  q: ({ qos }) => String(qos),
  r: ({ retain }) => (retain ? '1' : '0'),
  l: ({ payloadLength }) => String(payloadLength),
  x: ({ payload }) => Buffer.from(payload).toString('hex'),
  b: ({ payload }) => Buffer.from(payload).toString('base64'),
  I: (_message, time) => time.toISOString(),
  U: (_message, time) => (time.getTime() / 1000).toFixed(3),
  C: ({ properties }) => properties.contentType ?? '',
  R: ({ properties }) => properties.responseTopic ?? '',
  D: ({ properties }) => Buffer.from(properties.correlationData ?? []).toString('hex'),
  P: ({ properties }) =>
    (properties.userProperties ?? []).map(([name, value]) => `${name}:${value}`).join(' '),
  '%': '%',
}

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  '0': '\0',
  '\\': '\\',
}

function byFormat(format: string): Formatter {
  const found: Part[] = [...format.matchAll(/%(.?)|\\(.?)|[^%\\]+/gsu)].map(
    ([whole, code, escaped]) => {
      if (code !== undefined) return known(parts, code, `%${code}`)
      return escaped === undefined ? whole : (known(escapes, escaped, `\\${escaped}`) as string)
    },
  )
  return (message, time) =>
    Buffer.concat(
      found.map((part) => {
        const piece = typeof part === 'string' ? part : part(message, time)
        return typeof piece === 'string' ? Buffer.from(piece) : piece
      }),
    )
}

function known<T>(table: Readonly<Record<string, T>>, code: string, shown: string): T {
  if (Object.hasOwn(table, code)) return table[code] as T
  throw misuse(`--format has no '${shown}'; the codes are in mqwire sub --help`)
}
