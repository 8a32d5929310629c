/**
 * The options as their docstrings and `docs/options.md` document them: names, defaults and ranges are those that the parser has.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../src/client/api/index.js'
import { parseOptions } from '../../src/client/parsing/options.js'
import { parseOptions as brokerOptions } from '../../src/testing/broker/common/options.js'
import { declarations, requireDist, root } from './fixture.js'

const read = (name: string): string => readFileSync(path.join(root, name), 'utf8')
await requireDist()
const folder = 'client/api'
const sources = readdirSync(path.join(root, 'dist', folder))
  .filter((name) => name.endsWith('.d.ts'))
  .map((name) => declarations(`${folder}/${name}`))
  .join('\n')
const page = read('docs/options.md')

/** The members of an interface with their docstrings in one line. */
function docsOf(name: string, code = sources): Map<string, string> {
  const body =
    new RegExp(`^export interface ${name} \\{\\n([\\s\\S]*?)^\\}`, 'm').exec(code)?.[1] ?? ''
  const members = [...body.matchAll(/ {2}\/\*\*([\s\S]*?)\*\/\n {2}readonly (\w+)\?/g)]
  return new Map(
    members.map(([, text = '', member = '']) => [
      member,
      text.replace(/\s*\n\s*\* ?/g, ' ').trim(),
    ]),
  )
}

const units: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20 }

/** What a text names as a value: a number, a truth, a word in quotes, nothing, no limit. Anything else is the text itself. */
function asValue(text: string): unknown {
  const bare = text.replaceAll('`', '').trim()
  const number = /^([\d,]+)(?: (KiB|MiB|ms|s))?$/.exec(bare)
  if (number !== null) return Number(number[1]?.replaceAll(',', '')) * (units[number[2] ?? ''] ?? 1)
  const words: readonly (readonly [RegExp, unknown])[] = [
    [/^(?:true|on)$/, true],
    [/^false$/, false],
    [/^no limit$/, Number.POSITIVE_INFINITY],
    [/^(?:none\b.*|\[\])$/, undefined],
  ]
  const found = words.find(([pattern]) => pattern.test(bare))
  return found === undefined ? (/^'([^']*)'/.exec(bare)?.[1] ?? bare) : found[1]
}

/** The default that a docstring names: behind "Default", or before "(default)". */
function defaultIn(text: string): string | undefined {
  return (
    /(`'[\w-]*'`) \(default\)/.exec(text)?.[1] ??
    /\bDefault:? (`[^`]*`|[\d,]+(?: [KM]iB)?|true|false|no limit|none)/.exec(text)?.[1]
  )
}

/** Defaults as the table under a heading of the page gives them. */
function tableUnder(heading: string): Map<string, string> {
  const section = `${page}\n## `.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = [...section.matchAll(/^\| (`[^|]*`) \|([^|]*)\|/gm)]
  return new Map(
    rows.flatMap(([, names = '', value = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, value.trim()] as const),
    ),
  )
}

const table = tableUnder('Client options')

const parsed = parseOptions({}) as unknown as Readonly<Record<string, unknown>>
// What has a value made by the parser, and is "on" or "as those of" in words.
const inWords = ['reconnect', 'subscriptions', 'outbound', 'scanner']
const options = docsOf('ClientOptions')

describe('the options of a client', () => {
  it('are the same in the declarations, the page and the parser', () => {
    expect([...options.keys(), 'set'].sort()).toEqual(Object.keys(parsed).sort())
    expect([...options.keys()]).toEqual(expect.arrayContaining(inWords))
    expect([...table.keys()].sort()).toEqual([...options.keys()].sort())
  })

  it.each([...options].filter(([name]) => !inWords.includes(name)))(
    '%s has the default that is told',
    (name, text) => {
      const told = defaultIn(text)
      expect(told, `no default in: ${text}`).toBeDefined()
      expect(asValue(told ?? '')).toEqual(parsed[name])
      expect(asValue(table.get(name) ?? '')).toEqual(parsed[name])
    },
  )

  const nested = [
    ['subscriptions', 'SubscriptionDefaults', ['overflow', 'buffer']],
    [
      'outbound',
      'OutboundOptions',
      ['maxInflight', 'offline', 'onSessionLost', 'ackTimeout', 'ttl'],
    ],
    ['reconnect', 'ReconnectOptions', ['backoff']],
  ] as const
  it.each(nested)('%s has the defaults that are told', (option, name, told) => {
    const docs = [...docsOf(name)].filter(
      ([member]) => !(told as readonly string[]).includes(member),
    )
    expect([...docsOf(name).keys()]).toEqual(expect.arrayContaining([...told]))
    expect(docs.length).toBeGreaterThan(0)
    const values = parsed[option] as Readonly<Record<string, unknown>>
    expect(
      Object.fromEntries(
        docs.map(([member, text]) => [member, asValue(defaultIn(text) ?? 'nothing')]),
      ),
    ).toEqual(Object.fromEntries(docs.map(([member]) => [member, values[member]])))
  })

  it.each(nested)(
    '%s has a row of the page for each, with the default that is told',
    (option, name, told) => {
      const rows = tableUnder(option)
      expect([...rows.keys()].sort()).toEqual([...docsOf(name).keys()].sort())
      const values = parsed[option] as Readonly<Record<string, unknown>>
      const shown = [...rows].filter(
        ([member]) => !(told as readonly string[]).includes(member) && member !== 'decide',
      )
      expect(shown.length).toBeGreaterThan(0)
      expect(Object.fromEntries(shown.map(([member, value]) => [member, asValue(value)]))).toEqual(
        Object.fromEntries(shown.map(([member]) => [member, values[member]])),
      )
    },
  )

  it('queue or refuse while offline as is told', () => {
    const docs = [...docsOf('OfflineOptions')].map(([member, text]) => [
      member,
      asValue(defaultIn(text) ?? ''),
    ])
    expect(Object.fromEntries(docs)).toEqual((parsed['outbound'] as { offline: object }).offline)
  })
})

describe('the limits of MemoryBroker', () => {
  const text = declarations('testing/broker/common/options.d.ts')
  const limits = ['BrokerLimits', 'BrokerBounds'].flatMap((name) => [...docsOf(name, text)])
  const values = limits.map(([name, docs]) => [name, asValue(defaultIn(docs) ?? '')] as const)
  const told = values.filter(([, value]) => typeof value === 'boolean' || Number.isFinite(value))

  it('have defaults in their documentation', () => expect(told.length).toBeGreaterThan(20))

  it.each(told)('%s is %s, as its documentation says', (name, value) =>
    expect(brokerOptions({})).toHaveProperty(name, value),
  )
})

/** The least and most that a docstring allows. */
function rangeIn(text: string): readonly [number, number] | undefined {
  const [, least, most] = /\b([\d,]+) to ([\d,]+)\b/.exec(text) ?? []
  if (least !== undefined && most !== undefined)
    return [asValue(least) as number, asValue(most) as number]
  return /\b1 or more\b/.test(text) ? [1, Number.MAX_SAFE_INTEGER] : undefined
}

const takes = (given: object): boolean => {
  try {
    parseOptions(given as ClientOptions)
    return true
  } catch {
    return false
  }
}

const levels: readonly (readonly [name: string, under: string | undefined])[] = [
  ['ClientOptions', undefined],
  ['SubscriptionDefaults', 'subscriptions'],
  ['OutboundOptions', 'outbound'],
  ['ReconnectOptions', 'reconnect'],
]
const ranges = levels.flatMap(([name, under]) =>
  [...docsOf(name)].flatMap(([member, text]) => {
    const range = rangeIn(text)
    return range === undefined ? [] : [{ member, under, range }]
  }),
)

describe('the ranges of options', () => {
  it('are told of', () => expect(ranges.length).toBeGreaterThan(12))

  it.each(ranges)(
    '$member takes $range and nothing beyond',
    ({ member, under, range: [least, most] }) => {
      const given = (value: number): object =>
        under === undefined ? { [member]: value } : { [under]: { [member]: value } }
      const beyond = most === Number.MAX_SAFE_INTEGER ? [] : [most + 1]
      expect([least, most].map((value) => takes(given(value)))).toEqual([true, true])
      expect([least - 1, ...beyond].map((value) => takes(given(value)))).toEqual(
        [least - 1, ...beyond].map(() => false),
      )
    },
  )
})

describe('the reader of docstrings', () => {
  it('finds members, defaults and ranges, and tells words from values', () => {
    const docs = docsOf(
      'A',
      'export interface A {\n  /** Seconds,\n   * 0 to 1,000. Default 30. */\n  readonly a?: number\n}\n',
    )
    expect([...docs]).toEqual([['a', 'Seconds, 0 to 1,000. Default 30.']])
    expect(rangeIn(docs.get('a') ?? '')).toEqual([0, 1000])
    const told = [
      'Default 1,024. More',
      "Default `'wait'`: so",
      "`'reject'` (default): one",
      'Default: no limit.',
      'Default 4 MiB.',
      'Default: none, or so',
      'No word',
    ]
    expect(told.map((text) => asValue(defaultIn(text) ?? '?'))).toEqual([
      1024,
      'wait',
      'reject',
      Number.POSITIVE_INFINITY,
      4 * 2 ** 20,
      undefined,
      '?',
    ])
  })
})
