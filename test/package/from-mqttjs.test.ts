/** The guide from MQTT.js: its programs run, and its tables have what MQTT.js declares, with counterparts that exist in mqwire. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocksOf, compile, execute, fencesOf, filesOf } from './code-blocks.js'
import { removeProjects, requireDist, root } from './fixture.js'

interface Row {
  readonly heading: string
  readonly line: number
  readonly names: readonly string[]
  /** Cells of mqwire. */
  readonly cells: readonly string[]
}

const cellsOf = (line: string) => line.split('|').slice(1, -1)
const codeIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code as string)

/** The rows of all tables. Other tables than those of MQTT.js have no names. */
function rowsOf(text: string): Row[] {
  const rows: Row[] = []
  let heading = ''
  let columns: readonly string[] = []
  let previous = ''
  for (const [index, line] of text.split('\n').entries()) {
    if (line.startsWith('#')) heading = line.replace(/^#+ /, '')
    if (line.startsWith('|') && !previous.startsWith('|'))
      columns = cellsOf(line).map((cell) => cell.trim())
    else if (line.startsWith('|') && !line.startsWith('| ---'))
      rows.push({ heading, line: index + 1, ...split(cellsOf(line), columns) })
    previous = line
  }
  return rows
}

function split(cells: readonly string[], columns: readonly string[]): Pick<Row, 'names' | 'cells'> {
  const ours = columns.indexOf('mqwire')
  return {
    names: columns[0] === 'MQTT.js' ? codeIn(cells[0] ?? '') : [],
    cells: ours < 0 ? [] : cells.slice(ours),
  }
}

/** What a table must name, by its heading. Of a field that is written out in place, as `will`, the fields are named too. */
const theirs: Readonly<Record<string, string>> = {
  'Options of connect':
    "Known<IClientOptions> | Under<'servers', Given<'servers'>[number]> | Under<'will', Given<'will'>>",
  'The will': "Known<NonNullable<Given<'will'>['properties']>>",
  'Properties of CONNECT': "Known<Given<'properties'>>",
  'Options of publish': 'Names<IClientPublishOptions>',
  'Options of subscribe':
    'Names<IClientSubscribeOptions> | Names<ISubscriptionRequest> | Known<ISubscriptionMap>',
  'Options of unsubscribe': 'Names<IClientUnsubscribeProperties>',
  'Options of reconnect': 'Known<IClientReconnectOptions>',
  'Options of end': 'Names<IDisconnectPacket>',
  'The module': 'Known<typeof mqtt>',
  'Methods and properties': "Known<MqttClient> | Exclude<Known<typeof MqttClient>, 'prototype'>",
  Events: 'Known<MqttClientEventCallbacks>',
  Stores:
    "Known<Given<'incomingStore'>> | Known<NonNullable<ConstructorParameters<typeof Store>[0]>>",
  'A message': 'Names<IPublishPacket>',
  'What the server said': 'Names<IConnackPacket>',
}

/** A module that compiles if each table has every name that MQTT.js has there, and no other. */
function namesModule(text: string): string {
  const rows = rowsOf(text).filter(({ names }) => names.length > 0)
  const found = new Map(Object.keys(theirs).map((heading) => [heading, [] as string[]]))
  for (const { heading, names } of rows) {
    const isMember = heading === 'Methods' || heading === 'Properties'
    found.get(isMember ? 'Methods and properties' : heading)?.push(...names)
  }
  const statements = [...found].map(
    ([heading, names]) =>
      `export const ${heading.replaceAll(' ', '')}: [missing: never, unknown: never] = null as unknown as Same<${theirs[heading]}, ${names.map((name) => `'${name}'`).join(' | ')}>`,
  )
  const types = Object.values(theirs).flatMap(
    (type) => type.match(/\b(?:I[A-Z]|MqttClientE)\w+/g) ?? [],
  )
  return `import * as mqtt from 'mqtt'
import type { MqttClient, Store, ${[...new Set(types)].join(', ')} } from 'mqtt'
type Known<T> = Extract<keyof { [K in keyof T as string extends K ? never : K]: T[K] }, string>
type Under<Name extends string, T> = \`\${Name}.\${Known<T>}\`
type Given<K extends keyof IClientOptions> = NonNullable<IClientOptions[K]>
type Names<T> = Known<T> | (T extends { properties?: infer P } ? Under<'properties', NonNullable<P>> : never)
type Same<Theirs, Ours> = [missing: Exclude<Theirs, Ours>, unknown: Exclude<Ours, Theirs>]
void mqtt
${statements.join('\n')}
`
}

/** Rows that name nothing of mqwire, and give no reason. */
const unanswered = (text: string): string[] =>
  rowsOf(text)
    .filter((row) => row.names.length > 0 && !isAnswered(row))
    .map(({ heading, names }) => `${heading}: ${names.join(', ')}`)

// Code, a link, or `none` with a remark.
function isAnswered({ cells: [counterpart = '', remark = ''] }: Row): boolean {
  const text = counterpart.trim()
  return text === 'none' ? remark.trim() !== '' : codeIn(text).length > 0 || text.includes('](#')
}

const imported = {
  mqwire: ['Client', 'MqttError', 'connect', 'constant', 'exponential'],
  'mqwire/wire': ['reasonName', 'validateTopicFilter'],
  'mqwire/auth': ['scramSha256'],
}

const given = {
  client: 'mqwire.Client',
  subscription: 'mqwire.Subscription',
  grant: 'mqwire.Grant',
  message: 'mqwire.Message',
  receipt: 'mqwire.Receipt',
  error: 'mqwire.MqttError',
  connack: "mqwire.ClientEvents['connect']['connack']",
  listener: '() => void',
  signal: 'AbortSignal',
  url: 'string',
  topic: 'string',
  payload: 'Uint8Array',
}

const preamble = [
  ...Object.entries(imported).map(
    ([from, names]) => `import { ${names.join(', ')} } from '${from}'`,
  ),
  `import type * as mqwire from 'mqwire'`,
  // Options with every field left open, at any depth.
  'type Some<T> = T extends (...given: never[]) => unknown ? T : T extends object ? { [K in keyof T]?: Some<T[K]> | undefined } : T',
  'declare function option<T>(given: Some<T>): void',
  'declare function callable(given: (...given: never[]) => unknown): void',
  ...Object.entries(given).map(([name, type]) => `declare const ${name}: ${type}`),
]

const names = new Set(['console', ...Object.keys(given), ...Object.values(imported).flat()])

/** The options that a cell means by its path, where they are not those of a client. */
const optionTypes: Readonly<Record<string, string>> = {
  'Options of publish': 'mqwire.PublishOptions',
  'Options of subscribe': 'mqwire.SubscribeOptions & mqwire.FilterRequest',
  'Options of unsubscribe': 'mqwire.UnsubscribeOptions',
  'Options of end': 'mqwire.DisconnectOptions',
}

// The statement that compiles if `code` exists.
function statementOf(code: string, heading: string): string {
  if (/^ERR_\w+$/.test(code)) return `{ const code: mqwire.MqttErrorCode = '${code}'; void code }`
  if (code.startsWith('mqwire/')) return `void import('${code}')`
  const event = /^client\.on\(('\w+')\)$/.exec(code)
  if (event) return `client.on(${event[1]}, () => undefined)`
  const [first = ''] = /^\w+/.exec(code) ?? []
  const rest = code.slice(first.length)
  const isExpression = first === 'new' || (names.has(first) && /^(?:$|[.(?])/.test(rest))
  if (isExpression) return code.endsWith('()') ? `callable(${code.slice(0, -2)})` : `void (${code})`
  return optionStatement(code, heading)
}

function optionStatement(code: string, heading: string): string {
  const [path = '', value = 'undefined'] = code.split(/: (.*)/s)
  const endpoint = path.startsWith('endpoint.')
  const type = endpoint
    ? 'mqwire.EndpointOptions'
    : (optionTypes[heading] ?? 'mqwire.ClientOptions')
  const fields = path.split('.').slice(endpoint ? 1 : 0)
  return `option<${type}>(${fields.reduceRight((inner, field) => `{ ${field}: ${inner} }`, value)})`
}

/** What the tables say of mqwire, as a module with a statement on each line. */
interface Claims {
  readonly module: string
  /** How many there are. */
  readonly count: number
  /** What the compiler's output about the module, saved as `claims.ts`, means for the tables; empty when it had nothing to say. */
  wrong(output: string): string[]
}

function claimsOf(text: string): Claims {
  const claims = rowsOf(text).flatMap(({ heading, line, cells }) =>
    cells.flatMap(codeIn).map((code) => ({ code, line, statement: statementOf(code, heading) })),
  )
  const wrong = (output: string) =>
    output.split('\n').flatMap((said) => {
      if (said === '' || said.startsWith(' ')) return []
      const [, line = '0'] = /^claims\.ts\((\d+),/.exec(said) ?? []
      const claim = claims[Number(line) - preamble.length - 1]
      return [claim === undefined ? said : `line ${claim.line}: ${claim.code}`]
    })
  return {
    module: [...preamble, ...claims.map(({ statement }) => statement), ''].join('\n'),
    count: claims.length,
    wrong,
  }
}

const place = 'docs/from-mqttjs.md'
const guide = readFileSync(path.join(root, place), 'utf8')
const blocks = blocksOf(guide)

async function wrongClaims(text: string): Promise<string[]> {
  const claims = claimsOf(text)
  return claims.wrong(await compile({ 'claims.ts': claims.module }))
}

beforeAll(requireDist)
afterAll(removeProjects)

describe('the guide from MQTT.js', () => {
  it('begins with the same program in both, and has only blocks that are checked', () => {
    expect(blocks[0]?.code).toContain("from 'mqtt'")
    expect(blocks[1]?.code).toContain("from 'mqwire'")
    expect(blocks.slice(0, 2).every(({ runs }) => runs)).toBe(true)
    const fences = guide.match(/^```\w.*$/gm) ?? []
    expect(fences).toEqual(fencesOf(guide))
    expect(fences).toHaveLength(blocks.length)
  })

  it('is for the MQTT.js that is installed', () => {
    const { version } = JSON.parse(
      readFileSync(path.join(root, 'node_modules/mqtt/package.json'), 'utf8'),
    ) as { version: string }
    expect(guide).toContain(`\`mqtt\` ${version.split('.').slice(0, 2).join('.')} from npm`)
  })

  it('has only blocks that compile', async () => {
    expect(await compile(filesOf(blocks), ['mqtt'])).toBe('')
  }, 60_000)

  for (const { line, code } of blocks.slice(2).filter((block) => block.runs)) {
    it(`runs the block at line ${line}`, async () => {
      expect(await execute(code)).toMatchObject({ code: 0 })
    }, 40_000)
  }

  it('shows two programs that print the same', async () => {
    const [theirs, ours] = await Promise.all(
      blocks.slice(0, 2).map(({ code }) => execute(code, ['mqtt'])),
    )
    expect(theirs).toEqual({ code: 0, output: 'rooms/7 warm' })
    expect(ours).toEqual(theirs)
  }, 40_000)

  it('has each option, method, property and event of MQTT.js, and an answer for each', async () => {
    expect(await compile({ 'names.ts': namesModule(guide) }, ['mqtt'])).toBe('')
    expect(unanswered(guide)).toEqual([])
  }, 60_000)

  it('names nothing of mqwire that mqwire has not', async () => {
    expect(claimsOf(guide).count).toBeGreaterThan(250)
    expect(await wrongClaims(guide)).toEqual([])
  }, 60_000)
})

it('a wrong name of either library would be found', async () => {
  const changed = (from: string, to: string): string => {
    expect(guide).toContain(from)
    return guide.replace(from, () => to)
  }
  for (const [from, to, name] of [
    ['| `writeCache` |', '| |', 'writeCache'],
    ['| `nl` |', '| `nl`, `nll` |', 'nll'],
  ] as const) {
    const names = namesModule(changed(from, to))
    expect(await compile({ 'names.ts': names }, ['mqtt'])).toContain(`'"${name}"'`)
  }
  expect(unanswered(changed('| `rh` | `retainHandling` |', '| `rh` | |'))).toEqual([
    'Options of subscribe: rh',
  ])
  const wrong = await wrongClaims(changed('`client.drain()`', '`client.drane()`'))
  expect(wrong).toEqual([expect.stringMatching(/^line \d+: client\.drane\(\)$/)])
}, 60_000)
