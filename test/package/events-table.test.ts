/** The table of events in `docs/events.md`: every event with each field of what it carries, and a line of code that compiles. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { eventName } from '../../src/client/parsing/event-names.js'
import { compile } from './code-blocks.js'
import { declarations, removeProjects, requireDist, root } from './fixture.js'

const read = (name: string): string => readFileSync(path.join(root, name), 'utf8')

/** Fields of each event of the event map, as its declaration has them. */
function fieldsIn(declarations: string): Map<string, string[]> {
  const body = /^export interface ClientEvents \{\n([\s\S]*?)^\}/m.exec(declarations)?.[1] ?? ''
  const events = [...body.matchAll(/^ {2}(\w+): \{\n([\s\S]*?)^ {2}\}/gm)]
  return new Map(
    events.map(([, name = '', fields = '']) => [
      name,
      [...fields.matchAll(/^ {4}readonly (\w+):/gm)].map(([, field = '']) => field),
    ]),
  )
}

interface Row {
  readonly name: string
  /** Names in backquotes in the column that says what the event carries. */
  readonly named: readonly string[]
  readonly code: string
}

/** Rows of the table of events. */
function rowsIn(page: string): Row[] {
  const table = /^\| event \|.*\n\| ---.*\n((?:\|.*\n)+)/m.exec(page)?.[1] ?? ''
  return table
    .trim()
    .split('\n')
    .map((line) => {
      const [name = '', , carries = '', code = ''] = line
        .slice(1, -1)
        .split(' | ')
        .map((cell) => cell.trim())
      return {
        name: name.replaceAll('`', ''),
        named: [...carries.matchAll(/`(\w+)`/g)].map(([, word = '']) => word),
        code: code.replaceAll('`', ''),
      }
    })
}

await requireDist()
const source = declarations('client/api/events.d.ts')
const events = fieldsIn(source)
const rows = rowsIn(read('docs/events.md'))

afterAll(removeProjects)

describe('the table of events', () => {
  it('has a row for each event, and for nothing else', () => {
    expect(events.size).toBeGreaterThan(13)
    expect(rows.map(({ name }) => name).sort()).toEqual([...events.keys()].sort())
    for (const { name } of rows) expect(eventName(name as 'state')).toBe(name)
  })

  it.each(rows)('$name: names each field of what it carries', ({ name, named }) => {
    const fields = events.get(name) ?? []
    expect(fields.length).toBeGreaterThan(0)
    expect(named).toEqual(expect.arrayContaining(fields))
  })

  it('has a line of code for each, which compiles against the package', async () => {
    for (const { name, code } of rows)
      expect(code).toMatch(new RegExp(`^client\\.on\\('${name}', \\(\\{ \\w+.* \\}\\) => .*\\)$`))
    expect(
      await compile({
        'lines.ts': `declare const client: import('mqwire').Client\n${rows.map(({ code }) => code).join('\n')}\n`,
      }),
    ).toBe('')
  }, 60_000)

  it('an event that carries an error has it as `error`', () => {
    const fields = [...source.matchAll(/^ {4}readonly (\w+): MqttError\b/gm)].map(
      ([, field]) => field,
    )
    expect(fields.filter((field) => field === 'error').length).toBeGreaterThan(4)
    // The former name, until it goes.
    expect(fields.filter((field) => field !== 'error')).toEqual(['cause'])
  })
})

describe('the reader of the table', () => {
  it('finds events and fields, and what is missing', () => {
    const source =
      'export interface ClientEvents {\n  /** A. */\n  one: {\n    /** B. */\n    readonly a: number\n    readonly b: string\n  }\n  two: {\n    readonly c: 1\n  }\n}\n'
    expect([...fieldsIn(source)]).toEqual([
      ['one', ['a', 'b']],
      ['two', ['c']],
    ])
    const page =
      "| event | when | it carries | for example |\n| --- | --- | --- | --- |\n| `one` | now | `a`, not b | `client.on('one', ({ a }) => a)` |\n\n"
    expect(rowsIn(page)).toEqual([
      { name: 'one', named: ['a'], code: "client.on('one', ({ a }) => a)" },
    ])
  })

  it('objects to code that names what an event does not carry', async () => {
    const said = await compile({
      'lines.ts':
        "declare const client: import('mqwire').Client\nclient.on('late', ({ delay }) => delay)\n",
    })
    expect(said).toContain("'delay' does not exist")
  }, 60_000)
})
