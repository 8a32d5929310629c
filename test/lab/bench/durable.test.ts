/** `bench/durable/main.js` as a program: a verdict for each target, and an exit code that says whether all are met. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { requireDist } from '../../package/fixture.js'
import { root } from './bench.js'

beforeAll(requireDist)

function bench(...parameters: readonly string[]) {
  const program = path.join(root, 'bench', 'durable', 'main.js')
  const env = { ...process.env, BENCH_WITHOUT: 'mosquitto' }
  return spawnSync(process.execPath, [program, ...parameters], {
    cwd: root,
    env,
    encoding: 'utf8',
    timeout: 110_000,
  })
}

it('judges each target, and exits with 1 when one is missed', { timeout: 120_000 }, () => {
  const { status, stdout, stderr } = bench('--quick', '--only', 'publish', '--only', 'opening')
  expect(stderr).toBe('')
  expect(stdout).toContain(`Node ${process.versions.node}`)
  const rows = stdout.split('\n').filter((line) => /\| (met|missed|–) \|$/.test(line))
  expect(rows).toHaveLength(6)
  expect(rows.filter((row) => /\| [≤≥] [\d.]+ \| (met|missed) \|$/.test(row))).toHaveLength(3)
  expect(status).toBe(rows.some((row) => row.includes('| missed |')) ? 1 : 0)
})

it('names its parts when it is asked for another one', () => {
  const { status, stderr } = bench('--only', 'nothing')
  expect(status).toBe(1)
  expect(stderr).toContain('queue, opening, publish, plain')
})
