/**
 * `MATRIX.md`: a table of features and one of programs on brokers, each written from what runs showed, and from nothing else.
 *
 * It runs outside vitest: nothing here may define a test.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Finding } from '../../src/cli/doctor/finding.js'
import { features } from './features.js'
import { verdictOf } from './programs/expectations.js'
import { programs } from './programs/programs.js'
import type { Result } from './programs/run.js'
import type { Missing, Site, SiteName } from './sites.js'

/** The brokers with features, in the order of the columns. */
export const brokerNames = ['aedes', 'mosquitto', 'mochi', 'HiveMQ CE'] as const
export type BrokerName = (typeof brokerNames)[number]

export interface Cell {
  readonly broker: BrokerName
  readonly version: string
  readonly transport: string
  readonly feature: string
  /** It works; the broker does otherwise than the standard says; the broker does not offer it. */
  readonly verdict: 'works' | 'deviates' | 'absent'
  /** Of a deviation or absence. */
  readonly reason?: string
}

export interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly status: string
      readonly meta?: { readonly interop?: Cell }
    }[]
  }[]
}

/** What was shown in a cell, with the transport, window or both where that was. */
type Shown = readonly [text: string, reason: string | undefined, where: string]

interface Row {
  readonly name: string
  readonly title: string
  /** For each column. Nothing: not run. */
  readonly cells: readonly (readonly Shown[])[]
}

/** A table with footnotes, which are numbered in the order in which they are first needed. */
export function table(
  first: string,
  columns: readonly (readonly [name: string, version: string])[],
  rows: readonly Row[],
): string[] {
  const notes: string[] = []
  const marked = (text: string, reason: string | undefined): string => {
    if (reason === undefined) return text
    if (!notes.includes(reason)) notes.push(reason)
    return `${text} [${notes.indexOf(reason) + 1}]`
  }
  const cell = (all: readonly Shown[]): string => {
    if (all.length === 0) return 'not run'
    const places = new Map<string, string[]>()
    for (const [text, reason, where] of all) {
      const shown = marked(text, reason)
      places.set(shown, [...(places.get(shown) ?? []), where])
    }
    if (places.size === 1) return [...places.keys()].join()
    return [...places].map(([text, where]) => `${text} (${where.join(', ')})`).join('; ')
  }
  const lines = rows.map(({ name, title, cells }) => {
    const about = title.replace(/^(?:MQTT-[\d.-]+[ ,]*)+: /, '')
    const words = [`**${name}**${about === '' ? '' : `: ${about}`}`]
    return `| ${[...words, ...cells.map(cell)].map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`
  })
  return [
    `Brokers: ${columns.map(([name, version]) => `${name} ${version || '(not run)'}`).join(', ')}.`,
    '',
    `| ${[first, ...columns.map(([name]) => name)].join(' | ')} |`,
    `| ${['', ...columns].map(() => '---').join(' | ')} |`,
    ...lines,
    '',
    ...notes.map((text, index) => `${index + 1}. ${text}`),
  ]
}

const words = { works: 'works', deviates: 'deviates', absent: 'not offered' } as const

/** Features × brokers, from the report of their tests. Tests that were not run have no cells. */
export function featureTable(
  rows: readonly { readonly name: string; readonly title: string }[],
  { testResults }: Report,
): string[] {
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  const cells = tests.flatMap(({ status, meta }) =>
    meta?.interop === undefined ? [] : [{ ...meta.interop, passed: status === 'passed' }],
  )
  const shown = (broker: BrokerName, name: string): Shown[] =>
    cells
      .filter((each) => each.broker === broker && each.feature === name)
      .sort((one, other) => (one.transport < other.transport ? -1 : 1))
      .map(({ passed, verdict, reason, transport }) =>
        passed ? [words[verdict], reason, transport] : ['**fails**', undefined, transport],
      )
  return table(
    'feature',
    brokerNames.map((name) => [name, cells.find((each) => each.broker === name)?.version ?? '']),
    rows.map((row) => ({ ...row, cells: brokerNames.map((name) => shown(name, row.name)) })),
  )
}

export function programTable(
  results: readonly Result[],
  sites: readonly (Site | Missing)[],
): string[] {
  const shown = (broker: SiteName, name: string): Shown[] =>
    results
      .filter((each) => each.broker === broker && each.program === name)
      .map((result) => {
        const verdict = verdictOf(result)
        const word = { passes: 'passes', broker: 'broker', absent: 'not offered' } as const
        const text = verdict.word === 'fails' ? '**fails**' : word[verdict.word]
        const { transport, window = 'default' } = result
        const where = transport === 'TCP' ? String(window) : `${transport} ${window}`
        return [text, 'reason' in verdict ? verdict.reason : undefined, where]
      })
  return table(
    'program',
    sites.map((site) => [site.name, 'version' in site ? site.version : '']),
    programs.map((row) => ({ ...row, cells: sites.map(({ name }) => shown(name, row.name)) })),
  )
}

const file = 'test/real/MATRIX.md'

/** Writes one part of the file, whose heading stays, with the lines up to the first table. The working directory is the checkout. */
function write(heading: 'Features' | 'Programs', lines: readonly string[]): void {
  const parts = readFileSync(file, 'utf8').split(/^(?=## )/m)
  const written = parts.map((part) => {
    const [about] = part.split(/^(?=Brokers: )/m)
    return part.startsWith(`## ${heading}\n`) ? `${about}${lines.join('\n')}\n\n` : part
  })
  writeFileSync(file, `${written.join('').trimEnd()}\n`)
}

/** What the doctor of the command line said of a broker. */
export interface Examined {
  readonly name: SiteName
  readonly version: string
  readonly findings: readonly Finding[]
}

/** Checks × brokers. What was seen stands in the cell, and what it means in a note. */
export function doctorTable(seen: readonly Examined[]): string[] {
  const isTried = ({ check }: Finding): boolean => check.startsWith('try: ')
  const checks = new Set(
    seen.flatMap(({ findings }) => findings.filter(isTried)).map(({ check }) => check),
  )
  const shown = ({ findings }: Examined, check: string): Shown[] =>
    findings
      .filter((each) => each.check === check)
      .map(({ verdict, seen: what, meaning }) => [
        verdict,
        verdict === 'ok'
          ? undefined
          : [what, ...(meaning === undefined ? [] : [meaning])].join('; '),
        '',
      ])
  return table(
    'probe',
    seen.map(({ name, version }) => [name, version]),
    [...checks].map((check) => ({
      name: check.slice('try: '.length),
      title: '',
      cells: seen.map((each) => shown(each, check)),
    })),
  )
}

/** Writes it between `<!-- doctor -->` and `<!-- /doctor -->` of the guide. */
export function writeDoctor(seen: readonly Examined[]): void {
  const guide = 'docs/cli.md'
  const block = /(<!-- doctor -->\n)[\s\S]*?(\n<!-- \/doctor -->)/
  const text = doctorTable(seen).join('\n')
  writeFileSync(
    guide,
    readFileSync(guide, 'utf8').replace(block, (_all, start, end) => `${start}${text}${end}`),
  )
}

export const writeFeatures = (report: Report): void =>
  write('Features', featureTable(features, report))

export const writePrograms = (...given: Parameters<typeof programTable>): void =>
  write('Programs', programTable(...given))
