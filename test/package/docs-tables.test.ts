/** The tables of errors, events and options in `docs` have what the declarations have, and the defaults and ranges that the parser has. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { eventName, parseOptions } from '../../src/client/options/check-options.js'
import type { ClientOptions } from '../../src/client/options/index.js'
import { parseOptions as brokerOptions } from '../../src/testing/broker/common/options.js'
import { compile } from './code-blocks.js'
import { declarations, pages, removeProjects, requireDist, root } from './fixture.js'

const read = (name: string): string => readFileSync(path.join(root, name), 'utf8')

await requireDist()
afterAll(removeProjects)

describe('the table of errors', () => {
  const codesIn = (text: string): string[] => [...new Set(text.match(/\bERR_[A-Z0-9_]+\b/g))].sort()
  const codes = codesIn(declarations('errors.d.ts'))

  it('has a row for each code', () => {
    const cells = read('docs/errors.md').match(/^\| (`ERR_[^|]*) \|/gm) ?? []
    expect(codes.length).toBeGreaterThan(40)
    expect(codesIn(cells.join())).toEqual(codes)
  })

  it.each(pages)('%s names no code that does not exist', (page) =>
    expect(codesIn(read(page)).filter((code) => !codes.includes(code))).toEqual([]),
  )
})

describe('the table of events', () => {
  const source = declarations('client/options/events.d.ts')
  const body = /^export interface ClientEvents \{\n([\s\S]*?)^\}/m.exec(source)?.[1] ?? ''
  const events = new Map(
    [...body.matchAll(/^ {2}(\w+): \{\n([\s\S]*?)^ {2}\}/gm)].map(([, name = '', fields = '']) => [
      name,
      [...fields.matchAll(/^ {4}readonly (\w+):/gm)].map(([, field = '']) => field),
    ]),
  )
  const table = /^\| event \|.*\n\| ---.*\n((?:\|.*\n)+)/m.exec(read('docs/events.md'))?.[1] ?? ''
  const rows = table
    .trim()
    .split('\n')
    .map((line) => line.slice(1, -1).split(' | '))
    .map(([name = '', , carries = '', code = '']) => ({
      name: name.trim().replaceAll('`', ''),
      named: [...carries.matchAll(/`(\w+)`/g)].map(([, word = '']) => word),
      code: code.trim().replaceAll('`', ''),
    }))

  it('has a row for each event, with each field that it carries', () => {
    expect(events.size).toBeGreaterThan(13)
    expect(rows.map(({ name }) => name).sort()).toEqual([...events.keys()].sort())
    for (const { name, named } of rows) {
      expect(eventName(name as 'state')).toBe(name)
      expect(events.get(name)?.length).toBeGreaterThan(0)
      expect(named).toEqual(expect.arrayContaining(events.get(name) ?? []))
    }
  })

  it('has a line of code for each, which compiles against the package', async () => {
    for (const { name, code } of rows)
      expect(code).toMatch(new RegExp(`^client\\.on\\('${name}', \\(\\{ \\w+.* \\}\\) => .*\\)$`))
    const lines = ["declare const client: import('mqwire').Client", ...rows.map(({ code }) => code)]
    expect(await compile({ 'lines.ts': `${lines.join('\n')}\n` })).toBe('')
  }, 60_000)
})

const folder = 'client/options'
const sources = readdirSync(path.join(root, 'dist', folder))
  .filter((name) => name.endsWith('.d.ts'))
  .map((name) => declarations(`${folder}/${name}`))
  .join('\n')

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

/** The default that a docstring names: behind "Default", or before "(default)"; else the text `nothing`. */
function defaultIn(text: string): unknown {
  const found =
    /(`'[\w-]*'`) \(default\)/.exec(text)?.[1] ??
    /\bDefault:? (`[^`]*`|[\d,]+(?: [KM]iB)?|true|false|no limit|none)/.exec(text)?.[1]
  return asValue(found ?? 'nothing')
}

/** Defaults as the table under a heading of the page gives them. */
function tableUnder(heading: string): Map<string, unknown> {
  const page = `${read('docs/options.md')}\n## `
  const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = [...section.matchAll(/^\| (`[^|]*`) \|([^|]*)\|/gm)]
  return new Map(
    rows.flatMap(([, names = '', value = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, asValue(value)] as const),
    ),
  )
}

describe('the options of a client', () => {
  // Defaults are inherited.
  const given = parseOptions({})
  const parsed = { ...Object.getPrototypeOf(given), ...given } as Readonly<
    Record<string, Record<string, unknown>>
  >

  it.each([
    // What has a value made by the parser, and is "on" or "as those of" in words.
    ['', 'ClientOptions', ['reconnect', 'subscriptions', 'outbound', 'scanner']],
    ['subscriptions', 'SubscriptionDefaults', ['overflow', 'buffer']],
    [
      'outbound',
      'OutboundOptions',
      ['maxInflight', 'offline', 'onSessionLost', 'ackTimeout', 'ttl'],
    ],
    ['reconnect', 'ReconnectOptions', ['backoff', 'decide']],
  ] as const)(
    '%s: names and defaults are the same in the declarations, the page and the parser',
    (option, name, inWords) => {
      const values = (option === '' ? parsed : parsed[option]) as Record<string, unknown>
      const docs = docsOf(name)
      const table = tableUnder(option === '' ? 'Client options' : option)
      if (option === '') expect([...docs.keys(), 'set'].sort()).toEqual(Object.keys(values).sort())
      expect([...table.keys()].sort()).toEqual([...docs.keys()].sort())
      expect([...docs.keys()]).toEqual(expect.arrayContaining([...inWords]))
      for (const [member, text] of docs) {
        if ((inWords as readonly string[]).includes(member)) continue
        expect([member, defaultIn(text)]).toEqual([member, values[member]])
        expect([member, table.get(member)]).toEqual([member, values[member]])
      }
    },
  )

  it('queue or refuse while offline as their documentation says', () => {
    const docs = [...docsOf('OfflineOptions')].map(([member, text]) => [member, defaultIn(text)])
    expect(Object.fromEntries(docs)).toEqual(parsed['outbound']?.['offline'])
  })

  it('take the range that their documentation gives, and nothing beyond', () => {
    const levels = [
      ['ClientOptions', undefined],
      ['SubscriptionDefaults', 'subscriptions'],
      ['OutboundOptions', 'outbound'],
      ['ReconnectOptions', 'reconnect'],
    ] as const
    let count = 0
    for (const [name, under] of levels)
      for (const [member, text] of docsOf(name)) {
        const range = rangeIn(text)
        if (range === undefined) continue
        const [least, most] = range
        const takes = (value: number): boolean => {
          const given = { [member]: value }
          try {
            parseOptions((under === undefined ? given : { [under]: given }) as ClientOptions)
            return true
          } catch {
            return false
          }
        }
        const beyond = [least - 1, ...(most === Number.MAX_SAFE_INTEGER ? [] : [most + 1])]
        expect([member, takes(least), takes(most), beyond.some(takes)]).toEqual([
          ...[member, true, true, false],
        ])
        count += 1
      }
    expect(count).toBeGreaterThan(12)
  })
})

function rangeIn(text: string): readonly [number, number] | undefined {
  const [, least, most] = /\b([\d,]+) to ([\d,]+)\b/.exec(text) ?? []
  if (least !== undefined && most !== undefined)
    return [asValue(least) as number, asValue(most) as number]
  return /\b1 or more\b/.test(text) ? [1, Number.MAX_SAFE_INTEGER] : undefined
}

it('the limits of MemoryBroker have the defaults that their documentation gives', () => {
  const text = declarations('testing/broker/common/options.d.ts')
  const limits = ['BrokerLimits', 'BrokerBounds'].flatMap((name) => [...docsOf(name, text)])
  const values = limits.map(([name, docs]) => [name, defaultIn(docs)] as const)
  const told = values.filter(([, value]) => typeof value === 'boolean' || Number.isFinite(value))
  expect(told.length).toBeGreaterThan(20)
  expect(brokerOptions({})).toMatchObject(Object.fromEntries(told))
})
