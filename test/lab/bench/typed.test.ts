/** `bench/typed.js` as a program: a verdict for each target, and an exit code that says whether all are met. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { requireDist } from '../../package/fixture.js'
import { root } from './bench.js'

beforeAll(requireDist)

it('judges each target, and exits with 1 when one is missed', { timeout: 60_000 }, () => {
  const parameters = [path.join(root, 'bench', 'typed.js'), '--rounds', '1', '--messages', '1000']
  const { status, stdout, stderr } = spawnSync(process.execPath, parameters, {
    cwd: root,
    encoding: 'utf8',
    timeout: 50_000,
  })
  expect(stderr).toBe('')
  expect(stdout).toContain(`Node ${process.versions.node}`)
  const rows = stdout.split('\n').filter((line) => /^\|.*\| [≤≥] [\d.]+ \|/.test(line))
  expect(rows).toHaveLength(10)
  const targets = rows.map((row) => / ([≤≥] [\d.]+) /.exec(row)?.[1])
  expect(new Set(targets)).toEqual(new Set(['≤ 1.15', '≥ 3', '≤ 1.3']))
  for (const row of rows) {
    const [, ratio, sign, limit, verdict] =
      /([\d.]+) \| ([≤≥]) ([\d.]+) \| (met|missed) \|$/.exec(row) ?? []
    // What is printed is rounded: one that lies on its limit may be either.
    if (ratio === limit) continue
    const met = sign === '≤' ? Number(ratio) <= Number(limit) : Number(ratio) >= Number(limit)
    expect(verdict, row).toBe(met ? 'met' : 'missed')
  }
  expect(status).toBe(rows.some((row) => row.includes('| missed |')) ? 1 : 0)
})
