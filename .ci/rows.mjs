/**
 * Which rows of the acceptance matrix, faults and pains the tests cite: reads the titles of all tests.
 *
 *     npm run rows               writes the table to coverage/rows.md, which is not kept
 *     npm run rows -- --check    writes nothing; fails, as it does otherwise, when a row has neither a test nor a reason, or a test cites what is no row
 *     npm run rows -- --tests F  reads the titles under the folder F instead of test/
 *     npm run rows -- --rows F   reads the rows from the file F
 *
 * Rows, their names and the reasons live in `test/conformance/rows.json`. Titles are read, not run (`titles.mjs`); texts of tables
 * given to `it.each` count when they begin with an id or end with one in parentheses.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'
import { titlesIn as titles, titlesUnder } from './titles.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const rowsFile = path.join(root, 'test', 'conformance', 'rows.json')
const tableFile = path.join(root, 'coverage', 'rows.md')

const numbered = /\b(faults?|pains?) (\d+(?:(?:, (?:and )?| and | to |-)\d+)*)/g
const lettered = /(?<![\w.-])([A-T]\d\d)(?![\w])/g
const marked = /^(?:[A-T]\d\d\b|faults? \d|pains? \d)|\([^()]*(?:\b[A-T]\d\d\b|faults? \d|pains? \d)[^()]*\)$/

/** The ids that a text cites: `A17`, `fault 12`, `pains 6 and 23`, `faults 13 to 18`. */
export function idsOf(text) {
  const ids = [...text.matchAll(lettered)].map(([, id]) => id)
  for (const [, kind, list] of text.matchAll(numbered)) {
    const name = kind.replace(/s$/, '')
    for (const part of list.split(/, and |, | and /)) {
      const [first, last = first] = part.split(/ to |-/).map(Number)
      for (let number = first; number <= last; number++) ids.push(`${name} ${number}`)
    }
  }
  return ids
}

/** The titles in the source of a test file. */
export function titlesIn(source) {
  return titles(source, marked)
}

/** Row id → files that cite it with the number of titles. */
export function citations(folder) {
  const cited = new Map()
  for (const [name, found] of titlesUnder(folder, marked)) {
    for (const title of found) {
      for (const id of new Set(idsOf(title))) {
        const counts = cited.get(id) ?? new Map()
        counts.set(name, (counts.get(name) ?? 0) + 1)
        cited.set(id, counts)
      }
    }
  }
  return cited
}

const versions = { 3: '3.1.1', 5: '5.0', b: 'both' }

function where(id, row, cited) {
  const files = [...(cited.get(id) ?? [])].map(([name, count]) => (count === 1 ? `\`${name}\`` : `\`${name}\` (${count})`))
  const reason = row.reason === undefined ? [] : [files.length === 0 ? `*not covered: ${row.reason}*` : `*in part: ${row.reason}*`]
  return [...files, ...reason].join(', ') || '**nothing**'
}

function section({ title, rows }, cited) {
  const lines = Object.entries(rows).map(([id, row]) => `| ${id} | ${versions[row.v] ?? ''} | ${row.name} | ${where(id, row, cited)} |`)
  return [
    '',
    `## ${title}`,
    '',
    '| id | version | scenario | tests (titles that cite it), or why there is none |',
    '| --- | --- | --- | --- |',
    ...lines,
  ]
}

/** The table, as Markdown. */
export function markdown(sections, cited) {
  const rows = sections.flatMap((each) => Object.entries(each.rows))
  const covered = rows.filter(([id]) => cited.has(id)).length
  const excused = rows.filter(([id, { reason }]) => !cited.has(id) && reason !== undefined).length
  return [
    '# Acceptance rows and the tests that cite them',
    '',
    'Written by `npm run rows` from the titles of all tests and from `rows.json`; not to be edited by hand.',
    '',
    `${rows.length} rows: ${covered} cited by a test, ${excused} not covered for a reason, ${rows.length - covered - excused} open.`,
    ...sections.flatMap((each) => section(each, cited)),
    '',
  ].join('\n')
}

/** Rows without a test or a reason. */
export function open(sections, cited) {
  const rows = sections.flatMap((each) => Object.entries(each.rows))
  return rows.filter(([id, { reason }]) => !cited.has(id) && reason === undefined).map(([id]) => `${id}: neither a test nor a reason`)
}

/** Ids in titles that no row has. */
export function unknown(sections, cited) {
  const ids = new Set(sections.flatMap((each) => Object.keys(each.rows)))
  return [...cited].filter(([id]) => !ids.has(id)).map(([id, files]) => `${id} is no row, but ${[...files.keys()].join(', ')} cites it`)
}

const list = {
  usage: 'npm run rows -- [options]',
  about: 'Writes which rows of the acceptance matrix, faults and pains the tests cite to coverage/rows.md.',
  options: {
    check: { text: 'writes nothing; exits with 1 when a row has neither a test nor a reason, or a test cites what is no row' },
    tests: { value: 'FOLDER', text: 'reads the titles under this folder (default test)' },
    rows: { value: 'FILE', text: 'the rows (default test/conformance/rows.json)' },
  },
}

function main(given) {
  const option = (name, usual) => (given[name] === undefined ? usual : path.resolve(given[name]))
  const sections = JSON.parse(readFileSync(option('rows', rowsFile), 'utf8'))
  const cited = citations(option('tests', path.join(root, 'test')))
  const table = markdown(sections, cited)
  const found = [...open(sections, cited), ...unknown(sections, cited)]
  if (!given.check) {
    mkdirSync(path.dirname(tableFile), { recursive: true })
    writeFileSync(tableFile, table)
  }
  for (const objection of found) console.error(objection)
  console.log(table.split('\n')[4])
  process.exitCode = found.length > 0 ? 1 : 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(argumentsOf(list).values)
