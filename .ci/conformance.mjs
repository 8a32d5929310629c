/**
 * Which tests prove each normative statement of MQTT 5.0, and each rule of the codec: writes `test/conformance/STATEMENTS.md`.
 *
 *     npm run conformance                  writes the table, prints the summary
 *     npm run conformance -- --check       fails when the table is stale, something has no proof, or a proof is of nothing
 *     npm run conformance -- --tests F     reads the tests under the folder F instead of test/
 *     npm run conformance -- --proofs F    reads the reasons and the proofs of rules from the file F
 *
 * A proof is a test whose title cites the statement (`[MQTT-3.1.2-1]`; an id behind `3.1.1:` is one of the older standard), or a byte-exact vector.
 * Titles are read, not run (`titles.mjs`).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'
import { titlesUnder } from './titles.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = path.join(root, 'test', 'conformance')
const tableFile = path.join(folder, 'STATEMENTS.md')
const vectorTests = 'wire/vectors.test.ts'
const vectorTitle = 'conformance vectors, codec and role (N26)'
/** Tests of the tables themselves: the ids in them are examples. */
const examples = ['conformance/conformance.test.ts']

const cited = /MQTT-\d+\.\d+\.\d+-\d+/g
const older = /\[3\.1\.1:[^\]]*\]/g
const named = /(?<=\[rule )[\w.]+(?=\])/g
const marked = /MQTT-\d|\[rule /

/** The statements of MQTT 5.0 that a title cites. */
export function statementsOf(title) {
  return [...new Set(title.replace(older, '').match(cited) ?? [])]
}

/** Tests that stand on the server's side of the wire. */
function isServer(file) {
  return file.startsWith('testing/') || file.startsWith('conformance/broker-')
}

/** Statement or rule → the tests that name it, as file and title. */
function citations(titles, idsOf) {
  const found = new Map()
  for (const [file, each] of titles) {
    for (const title of new Set(each)) {
      for (const id of idsOf(title)) {
        const tests = found.get(id) ?? []
        tests.push({ file, title })
        found.set(id, tests)
      }
    }
  }
  return found
}

/** Every statement with what proves it. */
function provenStatements({ statements, vectors, titles, proofs }) {
  const tests = citations(titles, statementsOf)
  const known = new Map(vectors.map((vector) => [vector.name, vector]))
  const run = titles.get(vectorTests)?.includes(vectorTitle) ?? false
  return statements.map((statement) => {
    const all = tests.get(statement.id) ?? []
    const names = statement.vectors ?? []
    const each = names.map((name) => known.get(name)).filter((vector) => vector !== undefined)
    return {
      ...statement,
      client: all.filter(({ file }) => !isServer(file)),
      server: all.filter(({ file }) => isServer(file)),
      missing: names.filter((name) => !run || !known.has(name)),
      codec: each.filter(({ layer }) => layer !== 'session'),
      session: each.filter(({ layer }) => layer === 'session'),
      reason: proofs.reasons[statement.id],
    }
  })
}

/** Is it shown? What binds a client must be shown by a client. */
function isProven({ applies, client, server, codec, missing }) {
  const byBytes = codec.length > 0 && missing.length === 0
  return applies === 'server' ? server.length > 0 || byBytes : client.length > 0
}

/** Each entry of the tables as a rule: its path, and what it says. */
function rulesIn(tables) {
  const label = (value) => {
    if (typeof value !== 'object' || value === null) return String(value)
    const { value: number, hex, name, bytes, from, to } = value
    if (bytes !== undefined) return `${bytes} bytes for ${from} to ${to}`
    return [hex ?? number, name].filter((part) => part !== undefined).join(' ') || JSON.stringify(value)
  }
  const leaves = (value, at) => {
    if (Array.isArray(value)) return value.map((item, index) => ({ path: `${at}.${index}`, says: label(item) }))
    return Object.entries(value).flatMap(([key, item]) => {
      if (at === 'errorHandling' && Array.isArray(item)) return leaves(item, `${at}.${key}`)
      const says = `${key}: ${typeof item === 'string' ? item : (item?.value ?? JSON.stringify(item))}`
      return [{ path: `${at}.${key}`, says: says.length > 150 ? `${says.slice(0, 149)}…` : says }]
    })
  }
  return Object.entries(tables)
    .filter(([, value]) => typeof value === 'object')
    .map(([name, value]) => ({ name, rules: leaves(value, name) }))
}

/** Every rule with the tests that name it or one of its parents, and those that `proofs.json` names. */
function provenRules({ tables, titles, proofs }) {
  const tests = citations(titles, (title) => title.match(named) ?? [])
  const objections = []
  const listed = new Map()
  for (const [rule, list] of Object.entries(proofs.rules)) {
    for (const [file, title] of list) {
      const isThere = titles.get(file)?.includes(title) ?? false
      if (isThere) listed.set(rule, [...(listed.get(rule) ?? []), { file, title }])
      else objections.push(`rule ${rule}: there is no test "${title}" in ${file}`)
    }
  }
  const sections = rulesIn(tables).map(({ name, rules }) => ({
    name,
    rules: rules.map((rule) => {
      const parents = rule.path.split('.').map((_, index, parts) => parts.slice(0, index + 1).join('.'))
      return { ...rule, tests: parents.flatMap((at) => [...(tests.get(at) ?? []), ...(listed.get(at) ?? [])]) }
    }),
  }))
  const paths = new Set(sections.flatMap(({ name, rules }) => [name, ...rules.flatMap((rule) => [rule.path, rule.path.replace(/\.\d+$/, '')])]))
  for (const rule of new Set([...tests.keys(), ...listed.keys()])) if (!paths.has(rule)) objections.push(`rule ${rule} is in no table`)
  return { sections, objections }
}

const escaped = (text) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')

// The ids are what the row is about already.
function bare(title) {
  const text = title.replace(/\[(?:MQTT-[\d.-]+)(?:,? MQTT-[\d.-]+)*\]/g, '').replace(/\[rule [\w.]+\]/g, '')
  return escaped(
    text
      .replace(/\s+/g, ' ')
      .replace(/\s+([:,;.])/g, '$1')
      .replace(/^[\s:,]+/, '')
      .trim() || title,
  )
}

function list(tests) {
  const files = new Map()
  for (const { file, title } of tests) files.set(file, [...(files.get(file) ?? []), bare(title)])
  return [...files].map(([file, titles]) => `\`${file}\`: ${[...new Set(titles)].join(' · ')}`).join('<br>')
}

function vectorsCell({ codec, session }) {
  return [codec.length > 0 ? `${codec.length}` : '', session.length > 0 ? `${session.length} in a session` : ''].filter(Boolean).join(', ')
}

function statementRow(row) {
  const server = list(row.server) || (row.reason === undefined ? '' : `*${escaped(row.reason)}*`)
  const cells = [row.id, escaped(row.summary), list(row.client), server, vectorsCell(row)]
  return `| ${cells.join(' | ')} |`
}

function statementTable(title, text, rows) {
  return [
    '',
    `## ${title}`,
    '',
    text,
    '',
    '| id | statement | shown by the client | shown by the broker in memory | vectors |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map(statementRow),
  ]
}

function ruleTable({ name, rules }) {
  // One row where all entries have the same proof.
  const cells = rules.map(({ path: at, says, tests }) => ({ at, says: escaped(says), tests: list(tests) || '**nothing**' }))
  const same = new Set(cells.map(({ tests }) => tests)).size === 1 && cells.length > 1
  const rows = same ? [{ at: name, says: `all ${cells.length} entries`, tests: cells[0].tests }] : cells
  return rows.map(({ at, says, tests }) => `| \`${at}\` | ${says} | ${tests} |`)
}

const percent = (part, whole) => `${whole === 0 ? 100 : Math.floor((100 * part) / whole)} %`

/** One line for each group: name, how many are proven, how many there are, and what else is to be said. */
function summary(rows, sections) {
  const group = (name, members, proven, more) => ({ name, proven: members.filter(proven).length, all: members.length, more })
  const of = (applies) => rows.filter((row) => row.applies === applies)
  const server = of('server')
  const codec = rows.filter((row) => row.codec.length > 0)
  const rules = sections.flatMap((section) => section.rules)
  const vectors = new Set(codec.flatMap((row) => row.codec.map(({ name }) => name))).size
  const excused = server.filter((row) => !isProven(row) && row.reason !== undefined).length
  return [
    group('client', of('client'), isProven, ''),
    group('both, as a client', of('both'), isProven, ''),
    group('both, as the broker in memory', of('both'), (row) => row.server.length > 0, ''),
    group('server, as the broker in memory', server, (row) => row.server.length > 0, excused > 0 ? `${excused} not shown, for a reason` : ''),
    group('decidable from bytes, by vectors', codec, ({ missing }) => missing.length === 0, `${vectors} vectors, whole, byte by byte and cut in two`),
    group('codec rules', rules, ({ tests }) => tests.length > 0, ''),
    group('all statements', rows, (row) => isProven(row) || row.reason !== undefined, ''),
  ]
}

/** The table, as Markdown. */
function markdown(rows, sections) {
  const of = (applies) => rows.filter((row) => row.applies === applies)
  return [
    '# The normative statements of MQTT 5.0, and what proves them',
    '',
    'Written by `npm run conformance` from the titles of all tests, the vectors and `proofs.json`; not to be edited by hand.',
    'Statements and tables are in `statements.json` and `tables.json`, in our own words. Files are below `test/`. Vectors are byte-exact packets, run by',
    `\`${vectorTests}\` whole, byte by byte and cut in two at every byte; those "in a session" are wrong, if they are, by its state alone.`,
    '',
    '| group | proven | of | | |',
    '| --- | --- | --- | --- | --- |',
    ...summary(rows, sections).map(({ name, proven, all, more }) => `| ${name} | ${proven} | ${all} | ${percent(proven, all)} | ${more} |`),
    ...statementTable('Statements that bind the client', 'Each one is shown by a client against a scripted peer.', of('client')),
    ...statementTable('Statements that bind both sides', 'Each one is shown by a client; the broker in memory shows the other side.', of('both')),
    ...statementTable(
      'Statements that bind the server',
      'They do not bind a client. The broker in memory of `mqwire/testing` keeps them.',
      of('server'),
    ),
    '',
    '## Codec rules',
    '',
    'The entries of `tables.json`. Tests that read the table itself stand for all of its entries.',
    '',
    '| entry | says | tests |',
    '| --- | --- | --- |',
    ...sections.flatMap(ruleTable),
    '',
  ].join('\n')
}

/** What has no proof, and what is proof of nothing. */
function objections(rows, sections) {
  return [
    ...rows.filter((row) => row.applies !== 'server' && !isProven(row)).map(({ id }) => `${id}: no test of the client cites it`),
    ...rows.filter((row) => row.applies === 'server' && !isProven(row) && row.reason === undefined).map(({ id }) => `${id}: no proof and no reason`),
    ...rows.filter((row) => row.applies !== 'server' && row.reason !== undefined).map(({ id }) => `${id}: it binds a client; a reason is no proof`),
    ...rows.filter((row) => row.server.length > 0 && row.reason !== undefined).map(({ id }) => `${id}: has a proof, and needs no reason`),
    ...rows.flatMap(({ id, missing }) => missing.map((name) => `${id}: there is no vector ${name}, or nothing runs it`)),
    ...sections.flatMap(({ rules }) => rules.filter(({ tests }) => tests.length === 0)).map((rule) => `rule ${rule.path} (${rule.says}): no test`),
  ]
}

/** Ids in titles and among the reasons that no statement has. */
function unknown(rows, titles, reasons) {
  const ids = new Set(rows.map(({ id }) => id))
  const strangers = [...citations(titles, statementsOf)].filter(([id]) => !ids.has(id))
  return [
    ...strangers.map(([id, tests]) => `${id} is no statement, but ${tests[0].file} cites it`),
    ...Object.keys(reasons).flatMap((id) => (ids.has(id) ? [] : [`${id} is no statement, but has a reason`])),
  ]
}

const json = (file) => JSON.parse(readFileSync(file, 'utf8'))

/** The titles of all tests under a folder. */
export function readTitles(tests = path.join(root, 'test')) {
  return new Map([...titlesUnder(tests, marked)].filter(([file]) => !examples.includes(file)))
}

/** Reasons, and proofs of rules, that titles do not give. */
export function readProofs(file = path.join(folder, 'proofs.json')) {
  return json(file)
}

/** The table, its summary, and everything that is wrong. */
export function report(titles, proofs) {
  const [statements, tables, vectors] = ['statements', 'tables', 'vectors'].map((name) => json(path.join(folder, `${name}.json`)))
  const rows = provenStatements({ statements, vectors, titles, proofs })
  const rules = provenRules({ tables, titles, proofs })
  return {
    table: markdown(rows, rules.sections),
    groups: summary(rows, rules.sections),
    objections: [...rules.objections, ...objections(rows, rules.sections), ...unknown(rows, titles, proofs.reasons)],
  }
}

const commandLine = {
  usage: 'npm run conformance -- [options]',
  about: 'Writes which tests prove each normative statement of MQTT 5.0, and each rule of the codec, to test/conformance/STATEMENTS.md.',
  options: {
    check: { text: 'writes nothing; exits with 1 when the table is stale, something has no proof, or a proof is of nothing' },
    tests: { value: 'FOLDER', text: 'reads the tests under this folder (default test)' },
    proofs: { value: 'FILE', text: 'the reasons and the proofs of rules (default test/conformance/proofs.json)' },
  },
}

function main(given) {
  const option = (name) => (given[name] === undefined ? undefined : path.resolve(given[name]))
  const { table, groups, objections: found } = report(readTitles(option('tests')), readProofs(option('proofs')))
  if (!given.check) writeFileSync(tableFile, table)
  else if (!existsSync(tableFile) || readFileSync(tableFile, 'utf8') !== table)
    found.push('test/conformance/STATEMENTS.md is stale: npm run conformance')
  for (const objection of found) console.error(objection)
  for (const { name, proven, all, more } of groups) {
    console.log(
      `${name.padEnd(32)} ${String(proven).padStart(4)} of ${String(all).padStart(3)}  ${percent(proven, all).padStart(5)}  ${more}`.trimEnd(),
    )
  }
  process.exitCode = found.length > 0 ? 1 : 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(argumentsOf(commandLine).values)
