/** The alarm for regressions is heard: `.ci/bench.mjs` fails for a ratio that fell under 60 % of its committed value, and for nothing else. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { node, requireDist } from '../package/fixture.js'

const scratch = mkdtempSync(path.join(tmpdir(), 'mqwire-bench-'))

beforeAll(requireDist)
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

function smoke(ratios: Readonly<Record<string, number>>) {
  const file = path.join(scratch, 'baseline.json')
  writeFileSync(file, JSON.stringify({ ratios }))
  return node(['.ci/bench.mjs', '--baseline', file])
}

it('is silent when a ratio is what it was', { timeout: 60_000 }, async () => {
  const { code, output } = await smoke({ 'encode AUTH': 0.1 })
  expect(output).toMatch(/encode AUTH +[\d.]+× +committed 0\.1×/)
  expect(code).toBe(0)
})

it('fails, and names the row, when a ratio has fallen', { timeout: 60_000 }, async () => {
  const { code, output } = await smoke({ 'encode AUTH': 1_000_000 })
  expect(output).toContain('encode AUTH: under 60 % of the committed 1000000×')
  expect(code).toBe(1)
})
