/**
 * The command line of a program. A program lists its options once; from this list its arguments are read, checked and explained.
 *
 * A list is `{ usage, about, options, operand, notes }`. An option without `value` is a flag. With it, it takes one: `value` is its name in the help,
 * `initial` what it is when it is not given. `number: [least, most]` makes it a number, `whole` a whole one; `many` lets it be given several times.
 * It may be used before anything is installed or built: it needs Node alone. It must never start what the program does.
 */
import { parseArgs } from 'node:util'

/** The arguments cannot be used. The message is one line for the person who typed them. */
export class UsageError extends Error {}

const help = { short: 'h', text: 'show this' }

/** How many letters have to change to make one word of the other. */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at]
    for (let to = 1; to <= other.length; to += 1) {
      const kept = row[to - 1] + (one[at - 1] === other[to - 1] ? 0 : 1)
      next.push(Math.min(kept, row[to] + 1, next[to - 1] + 1))
    }
    row = next
  }
  return row[other.length]
}

/** The known name that was probably meant; undefined when none is near. */
export function nearest(name, known) {
  const near = (other) =>
    name.length > 2 && (other.startsWith(name) || name.startsWith(other))
      ? 1
      : distance(name, other)
  const [best] = known
    .map((other) => ({ other, far: near(other) }))
    .sort((one, other) => one.far - other.far)
  const most = name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3))
  return best !== undefined && best.far <= most ? best.other : undefined
}

function refuse(problem) {
  throw new UsageError(`${problem}; --help shows what there is.`)
}

function checkOption({ name, rawName, value, inlineValue }, options) {
  const option = options[name]
  if (option === undefined) {
    const meant = nearest(name, Object.keys(options))
    refuse(`Unknown option '${rawName}'${meant === undefined ? '' : ` (did you mean --${meant}?)`}`)
  }
  if (option.value === undefined) {
    if (value !== undefined) refuse(`--${name} takes no value`)
  } else if (value === undefined || (inlineValue !== true && value.startsWith('--')))
    refuse(`--${name} needs a value`)
}

function numberOf(name, text, { number: [least, most = Number.POSITIVE_INFINITY], whole }) {
  const value = Number(text)
  if (text.trim() !== '' && value >= least && value <= most && (!whole || Number.isInteger(value)))
    return value
  const range = Number.isFinite(most)
    ? `from ${least} to ${most.toLocaleString('en')}`
    : `of at least ${least}`
  return refuse(`--${name} takes a ${whole ? 'whole ' : ''}number ${range}, not '${text}'`)
}

function readValue(name, given, option) {
  if (option.value === undefined) return given === true
  if (given === undefined) return option.initial ?? (option.many ? [] : undefined)
  const read = (text) => (option.number === undefined ? text : numberOf(name, text, option))
  return option.many ? given.map(read) : read(given)
}

/** Reads arguments by the list. Gives `{ help, operand, values }`, with a value for every option; throws a `UsageError`. */
export function readArguments({ options = {}, operand }, args) {
  const all = { ...options, help }
  const shapes = Object.entries(all).map(([name, { value, many, short }]) => [
    name,
    {
      type: value === undefined ? 'boolean' : 'string',
      multiple: many === true,
      ...(short !== undefined && { short }),
    },
  ])
  const { values, positionals, tokens } = parseArgs({
    args,
    options: Object.fromEntries(shapes),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  for (const token of tokens) if (token.kind === 'option') checkOption(token, all)
  if (values.help === true) return { help: true, values: {}, operand: undefined }
  const extra = positionals[operand === undefined ? 0 : 1]
  if (extra !== undefined) refuse(`Unexpected argument '${extra}'`)
  const read = Object.entries(options).map(([name, option]) => [
    name,
    readValue(name, values[name], option),
  ])
  return { help: false, values: Object.fromEntries(read), operand: positionals[0] }
}

function wrapped(text, indent, width = 120) {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== '' && indent + line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.join(`\n${' '.repeat(indent)}`)
}

const standard = ({ initial, value }) =>
  value === undefined || initial === undefined || initial === '' ? '' : ` (default ${initial})`

/** What `--help` prints. */
export function helpOf({ usage, about, options = {}, operand, notes = [] }) {
  const named = Object.entries({ ...options, help }).map(([name, option]) => {
    const again = option.many ? '; may be given several times' : ''
    return [
      `--${name}${option.value === undefined ? '' : ` ${option.value}`}`,
      `${option.text}${again}${standard(option)}`,
    ]
  })
  const rows = [...(operand === undefined ? [] : [[operand.value, operand.text]]), ...named]
  const column = Math.max(...rows.map(([name]) => name.length)) + 4
  const lines = rows.map(([name, text]) => `  ${name.padEnd(column - 2)}${wrapped(text, column)}`)
  return [
    `Usage: ${usage}`,
    '',
    wrapped(about, 0),
    '',
    ...lines,
    ...(notes.length > 0 ? ['', ...notes.map((note) => wrapped(note, 0))] : []),
  ].join('\n')
}

/** The arguments of this process. Prints the help and ends with 0 where it is asked for; says what is wrong and ends with 2 where something is. */
export function argumentsOf(list, args = process.argv.slice(2)) {
  try {
    const read = readArguments(list, args)
    if (!read.help) return read
    console.log(helpOf(list))
    return process.exit(0)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(error.message)
    return process.exit(2)
  }
}
