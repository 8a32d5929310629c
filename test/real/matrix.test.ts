/** The committed matrix has every feature and program, no cell that failed, and the notes that it refers to; a table says what was shown. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { features } from './features.js'
import { featureTable, type Report } from './matrix.js'
import { programs } from './programs/programs.js'

const [, featurePart = '', programPart = ''] = readFileSync(
  new URL('MATRIX.md', import.meta.url),
  'utf8',
).split(/^## /m)

it.each([
  ['features', featurePart, features],
  ['programs', programPart, programs],
] as const)('MATRIX.md has all %s once and in order, and knows each cell', (_what, part, rows) => {
  const lines = part.split('\n').filter((line) => line.startsWith('| **'))
  const names = lines.map((line) => /^\| \*\*(.+?)\*\*: /.exec(line)?.[1]?.replaceAll('\\|', '|'))
  expect(names).toEqual(rows.map(({ name }) => name))
  for (const line of lines)
    for (const cell of line
      .slice(0, -2)
      .split(/(?<!\\) \| /)
      .slice(1))
      expect(cell).toMatch(/^(?:works|passes|(?:deviates|broker|not offered) \[\d+\]|not run)/)
  expect(part).not.toContain('**fails**')
  const used = new Set([...part.matchAll(/ \[(\d+)\]/g)].map(([, number]) => Number(number)))
  const explained = [...part.matchAll(/^(\d+)\. \S/gm)].map(([, number]) => Number(number))
  expect([...used].sort((one, other) => one - other)).toEqual(explained)
})

it('a table names transports where they differ, and calls a failure nothing else', () => {
  const cell = { broker: 'aedes', version: '1.2', feature: 'a' } as const
  const slow = { ...cell, transport: 'WebSocket', verdict: 'deviates', reason: 'slow' } as const
  const report: Report = {
    testResults: [
      {
        assertionResults: [
          { status: 'passed', meta: { interop: { ...cell, transport: 'TCP', verdict: 'works' } } },
          { status: 'passed', meta: { interop: slow } },
          { status: 'failed', meta: { interop: { ...slow, broker: 'mochi' } } },
          { status: 'skipped' },
        ],
      },
    ],
  }
  expect(featureTable([{ name: 'a', title: 'MQTT-3.1.0-1: a | b' }], report)).toEqual([
    'Brokers: aedes 1.2, mosquitto (not run), mochi 1.2, HiveMQ CE (not run).',
    '',
    '| feature | aedes | mosquitto | mochi | HiveMQ CE |',
    '| --- | --- | --- | --- | --- |',
    '| **a**: a \\| b | works (TCP); deviates [1] (WebSocket) | not run | **fails** | not run |',
    '',
    '1. slow',
  ])
})
