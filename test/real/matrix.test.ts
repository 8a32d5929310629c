/** The committed matrix has the features of the suite, all of them and no other; and a matrix says what its report says. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { features } from './features.js'
import { brokerNames, type Cell, featuresIn, matrix, type Report, resultsOf } from './matrix.js'

const committed = readFileSync(new URL('MATRIX.md', import.meta.url), 'utf8')

describe('MATRIX.md', () => {
  it('has every feature of the suite once, in order, and no other', () => {
    expect(featuresIn(committed)).toEqual(features.map(({ name }) => name))
    expect(new Set(features.map(({ name }) => name)).size).toBe(features.length)
  })

  it('has a column for each broker, a word in each cell that is known, and no cell that failed', () => {
    const rows = committed.split('\n').filter((line) => line.startsWith('| **'))
    const cells = rows.flatMap((row) => row.split(/(?<!\\) \| /).slice(1))
    expect(cells).toHaveLength(features.length * brokerNames.length)
    expect(
      cells.filter((cell) => !/^(?:works|deviates \[\d+\]|not offered \[\d+\]|not run)/.test(cell)),
    ).toEqual([])
    expect(committed).not.toContain('**fails**')
  })

  it('explains each note that it refers to, and has none besides', () => {
    const [table = '', notes = ''] = committed.split('## Notes')
    const used = new Set([...table.matchAll(/\[(\d+)\]/g)].map(([, number]) => Number(number)))
    const explained = [...notes.matchAll(/^(\d+)\. \S/gm)].map(([, number]) => Number(number))
    expect([...used].sort((a, b) => a - b)).toEqual(explained)
  })
})

describe('a matrix', () => {
  const listed = [
    { name: 'a', title: 'MQTT-3.1.0-1: what a | b is' },
    { name: 'b', title: 'what b is' },
  ]
  const cell = (given: Partial<Cell>): Cell => ({
    broker: 'aedes',
    version: '1.2',
    transport: 'TCP',
    feature: 'a',
    title: 't',
    verdict: 'works',
    ...given,
  })
  const of = (...tests: [status: string, cell?: Cell][]): string => {
    const assertionResults = tests.map(([status, interop]) => ({
      status,
      meta: interop === undefined ? {} : { interop },
    }))
    const report: Report = { testResults: [{ assertionResults }] }
    return matrix(listed, resultsOf(report))
  }
  const row = (table: string, name: string): string | undefined =>
    table.split('\n').find((line) => line.startsWith(`| **${name}**`))

  it('says that what was not run was not run', () => {
    const table = of(['passed', cell({})], ['skipped'])
    expect(row(table, 'a')).toBe('| **a**: what a \\| b is | works | not run | not run | not run |')
    expect(row(table, 'b')).toBe('| **b**: what b is | not run | not run | not run | not run |')
    expect(table).toContain(
      'Brokers: aedes 1.2, mosquitto (not run), mochi (not run), HiveMQ CE (not run).',
    )
    expect(featuresIn(table)).toEqual(['a', 'b'])
  })

  it('never calls a failure anything else', () => {
    for (const verdict of ['works', 'deviates', 'absent'] as const) {
      expect(row(of(['failed', cell({ verdict, reason: 'why' })]), 'a')).toContain('| **fails** |')
    }
  })

  it('tells transports apart where they differ, and numbers its notes', () => {
    const slow = cell({ transport: 'WebSocket', verdict: 'deviates', reason: 'it is slow' })
    const none = cell({ broker: 'mochi', verdict: 'absent', reason: 'it has none' })
    const table = of(
      ['passed', cell({})],
      ['passed', cell({ transport: 'TLS' })],
      ['passed', slow],
      ['passed', none],
    )
    expect(row(table, 'a')).toContain(
      '| works (TCP, TLS); deviates [1] (WebSocket) | not run | not offered [2] | not run |',
    )
    expect(table).toContain('## Notes\n\n1. it is slow\n2. it has none\n')
  })
})
