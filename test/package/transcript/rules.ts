/** What holds for every line that is printed: it fits on a screen, and shows nothing internal, no line of our own source, no secret. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
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
