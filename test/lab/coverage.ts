/**
 * What the tests of the pure parts reach: the branches of `src/wire` and `src/client/session`, and the normative statements of the standard. One run of
 * vitest gives both. The thresholds are vitest's own, in `test/vitest.config.ts`.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { count, objections } from '../rules/statements.js'
import type { Lab, Result } from './lab.js'

export const about =
  'branches of the codec and the session, by thresholds of vitest; each normative statement is cited by a test that passes'
export const minutes = 3

const folders = [
  'test/unit/wire',
  'test/unit/client',
  'test/unit/testing',
  'test/rules',
  'test/broker',
]
const again = 'npm run lab -- coverage'

interface Report {
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

/** Runs the tests with coverage: their report, and what vitest wrote of thresholds that are missed. */
async function measured(
  root: string,
  folder: string,
): Promise<{ report: Report; code: number; missed: string[] }> {
  const file = path.join(folder, 'tests.json')
  const settings = [
    '--config',
    'test/vitest.config.ts',
    '--project',
    'pure',
    '--coverage',
    `--coverage.reportsDirectory=${path.join(folder, 'coverage')}`,
  ]
  const reporting = ['--reporter=json', `--outputFile.json=${file}`]
  const program = path.join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const running = spawn(process.execPath, [program, 'run', ...settings, ...reporting, ...folders], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let said = ''
  running.stderr.on('data', (text: Buffer) => {
    said += text.toString()
  })
  const code = await new Promise<number>((resolve) =>
    running.on('close', (status) => resolve(status ?? 1)),
  )
  const missed = said.split('\n').filter((line) => line.includes('does not meet'))
  return { report: JSON.parse(readFileSync(file, 'utf8')) as Report, code, missed }
}

export async function run(lab: Lab): Promise<Result> {
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-coverage-'))
  try {
    const { report, code, missed } = await measured(lab.root, folder)
    const all = report.testResults.flatMap(({ name, assertionResults }) =>
      assertionResults.map(({ status, fullName }) => ({
        file: path.relative(path.join(lab.root, 'test'), name),
        title: fullName,
        status,
      })),
    )
    const failed = all
      .filter(({ status }) => status === 'failed')
      .map(({ file, title }) => `test/${file}: ${title} failed`)
    const what = [
      ...failed,
      ...missed,
      ...objections(all.filter(({ status }) => status === 'passed')),
    ]
    if (what.length === 0 && code !== 0) what.push(`vitest ended with ${code}`)
    return {
      did: `${report.numPassedTests} tests, ${count} statements`,
      findings: what.map((text) => ({ what: text, command: again })),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
