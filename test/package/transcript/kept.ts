/** What consoles print is kept in `printed.txt`, and compared with what is printed now. `npm run lab -- docs update` writes it anew. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import * as publicNames from '../../../src/client/node.js'
import { root } from '../fixture.js'

/** Two screens of 120 columns. */
const widest = 240

const secret = '5up3r'

/** Where lines of the package, and of what it is made of, would come from. */
const ours = ['/mqwire/dist/', '/node_modules/ws/']

/** Names of classes that nobody outside can import; what they are called in print is another matter. */
function internalClasses(): string[] {
  const sources = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts'),
  )
  const texts = sources.map((name) => readFileSync(path.join(root, 'src', name), 'utf8'))
  const all = texts.flatMap((text) =>
    [...text.matchAll(/^(?:export )?(?:abstract )?class (\w+)/gm)].map(([, name]) => name ?? ''),
  )
  // Words that others use too: of the platform, and of the public types.
  const spoken = [
    ...Object.keys(publicNames),
    'Node',
    'WireError',
    'Decoder',
    'Encoder',
    'Scanner',
    'Connection',
    'Item',
    'Session',
    'Queue',
    'Outbound',
    'Inbound',
    // Chromium prints what a program was given by the name of its class, and has no hook for another.
    'OwnedMessage',
    'BorrowedMessage',
    'SubscriptionHandle',
    'ListenHandle',
  ]
  return [...new Set(all)].filter((name) => !spoken.includes(name))
}

const internal = internalClasses()

/** What is wrong with a line; undefined when nothing is. */
export function objectionTo(line: string): string | undefined {
  if (line.length > widest) return `${line.length} characters`
  if (line.includes(secret)) return 'shows a secret'
  const place = ours.find((part) => line.includes(part))
  if (place !== undefined) return `shows a line of ${place}`
  const name = internal.find((word) => new RegExp(`(?<![\\w'"./-])${word}(?![\\w'"-])`).test(line))
  if (name !== undefined) return `names ${name}`
  // What the build makes of names that nobody outside can reach.
  const field = /(?:^ +|\{ ?|\{[^{}]*, )([A-Za-z]{1,2}): /.exec(line)?.[1]
  return field === undefined ? undefined : `names ${field}`
}

type Transcript = readonly (readonly [title: string, printed: string])[]

const file = path.join(root, 'test', 'package', 'transcript', 'printed.txt')

function keptNow(): Map<string, string> {
  const sections = existsSync(file) ? readFileSync(file, 'utf8').split(/^== /m).slice(1) : []
  return new Map(
    sections.map((section) => [
      section.slice(0, section.indexOf('\n')),
      section.slice(section.indexOf('\n') + 1).trimEnd(),
    ]),
  )
}

/** Holds each line against the rules, and the first line of each stack, which has to be one of the program. */
export function expectRules(transcript: Transcript): void {
  const lines = transcript.flatMap(([, printed]) => printed.split('\n'))
  const isFrame = (line: string | undefined): boolean => /^ {4}at /.test(line ?? '')
  const objections = lines.flatMap((line, index) => {
    const inside =
      isFrame(line) && !isFrame(lines[index - 1]) && !/\/app\/|127\.0\.0\.1:8000/.test(line)
        ? 'begins a stack'
        : undefined
    const objection = objectionTo(line) ?? inside
    return objection === undefined ? [] : [`${objection}: ${line.slice(0, 300)}`]
  })
  expect(objections).toEqual([])
}

/** Fields of an error in one line, without the stacks of its causes. */
const inOneLine = (fields: string): string =>
  fields
    .replace(/\n +at .*?(?=\n| \{)/g, '')
    .replace(/\s+/g, ' ')
    .trim()

/** Errors without the lines of their stacks, the fields of each in one line. */
function condensed(text: string): string {
  const withoutFields = text.replace(
    /(?:\n {4}at .*?)+ \{\n([\s\S]*?)\n\}/g,
    (_, fields: string) => ` { ${inOneLine(fields)} }`,
  )
  const inLines = /^(-- .*\]) \{\n((?: {2}.*\n)+)\}/gm
  return withoutFields
    .replace(/\n {4}at .*/g, '')
    .replace(inLines, (_, head: string, fields: string) => `${head} { ${inOneLine(fields)} }`)
}

/** Holds it against the rules, and against what is kept under the same titles. */
export function expectKept(transcript: Transcript): void {
  expectRules(transcript)
  const kept = keptNow()
  const printed = transcript.map(([title, text]) => [title, condensed(text).trimEnd()] as const)
  if (process.env['MQWIRE_TRANSCRIPT'] === 'update') {
    for (const [title, text] of printed) kept.set(title, text)
    const sections = [...kept].sort(([a], [b]) => (a < b ? -1 : 1))
    writeFileSync(file, sections.map(([title, text]) => `== ${title}\n${text}\n`).join('\n'))
  }
  const same = new Map(printed.map(([title]) => [title, keptNow().get(title)]))
  expect(new Map(printed), 'if this is meant: npm run lab -- docs update').toEqual(same)
}

/** The first line of what is printed for each call, in words that all consoles share. */
function headsOf(text: string): string[] {
  const heads = text.split('\n').filter((line) => line.startsWith('-- '))
  return heads.map((line) =>
    line
      .replace(/ \{ .*$| \(line .*$/, '')
      .replace(/: \[?(?:\w+ )?\[?\w*Error\]*: /, ': ')
      .replace(/\](?: \{)?$/, ''),
  )
}

/** Another console says the same in the first line of each call; the rest looks different there. */
export function expectHeads(title: string, printed: string): void {
  expectRules([[title, printed]])
  expect(headsOf(printed)).toEqual(headsOf(keptNow().get(title) ?? ''))
}
