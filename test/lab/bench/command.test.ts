/** `bench/main.js` as a program: one object on standard output, and rows that a machine cannot measure are skipped with the reason. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { requireDist } from '../../package/fixture.js'
import { type Report, root } from './bench.js'

beforeAll(requireDist)

function bench(parameters: readonly string[], without: string) {
  const env = { ...process.env, BENCH_WITHOUT: without }
  return spawnSync(process.execPath, [path.join(root, 'bench', 'main.js'), ...parameters], {
    cwd: root,
    env,
    encoding: 'utf8',
    timeout: 60_000,
  })
}

it('prints one object and nothing else, with a verdict for each row', { timeout: 60_000 }, () => {
  const { status, stdout } = bench(
    ['--quick', '--json', '--only', 'heap a packet, encode PUBLISH'],
    'cc',
  )
  const report = JSON.parse(stdout) as Report
  expect(stdout.trimEnd().split('\n')).toHaveLength(1)
  expect(report.rows).toHaveLength(1)
  expect(report.rows[0]).toMatchObject({
    name: 'heap a packet, encode PUBLISH',
    target: '≤ 0.5 B',
    ratio: expect.any(Number),
  })
  expect(['met', 'missed']).toContain(report.rows[0]?.verdict)
  expect(report.machine).toContain(process.versions.node)
  expect(report.peers).toContain('written in Node')
  expect(status).toBe(0)
})

it('skips what the machine lacks, says why, and fails for none of it', { timeout: 60_000 }, () => {
  const parts = ['broker', 'native', 'profiles', 'browser'].flatMap((part) => ['--only', part])
  const { status, stdout } = bench(['--json', ...parts], 'mosquitto,go,cargo,cc,chromium')
  const report = JSON.parse(stdout) as Report
  expect(report.rows).toEqual([])
  expect(report.failed).toEqual([])
  expect(report.skipped.length).toBeGreaterThan(30)
  expect(new Set(report.skipped.map(({ reason }) => reason))).toEqual(
    new Set(['mosquitto not found', 'chromium not found']),
  )
  expect(status).toBe(0)
})

it('says why a native client cannot be built', { timeout: 60_000 }, () => {
  const { status, stdout } = bench(['--json', '--only', 'native'], 'go,cargo,cc')
  const { skipped, rows } = JSON.parse(stdout) as Report
  // Without mosquitto that is the reason.
  const reasons = new Set(skipped.map(({ reason }) => reason))
  expect([['go not found', 'cargo not found'], ['mosquitto not found']]).toContainEqual([
    ...reasons,
  ])
  expect(rows).toEqual([])
  expect(status).toBe(0)
})
