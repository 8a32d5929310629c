/** The guide from MQTT.js: its programs run, and its tables have what MQTT.js declares, with counterparts that exist in mqwire. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocksOf, compile, execute, fencesOf, filesOf } from './code-blocks.js'
import { removeProjects, requireDist, root } from './fixture.js'
import { claimsOf, namesModule, unanswered } from './guide-tables.js'

const place = 'docs/from-mqttjs.md'
const guide = readFileSync(path.join(root, place), 'utf8')
const blocks = blocksOf(guide)

async function wrongClaims(text: string): Promise<string[]> {
  const claims = claimsOf(text)
  return claims.wrong(await compile({ 'claims.ts': claims.module }))
}

beforeAll(requireDist)
afterAll(removeProjects)

describe('the guide from MQTT.js', () => {
  it('begins with the same program in both, and has only blocks that are checked', () => {
    expect(blocks[0]?.code).toContain("from 'mqtt'")
    expect(blocks[1]?.code).toContain("from 'mqwire'")
    expect(blocks.slice(0, 2).every(({ runs }) => runs)).toBe(true)
    const fences = guide.match(/^```\w.*$/gm) ?? []
    expect(fences).toEqual(fencesOf(guide))
    expect(fences).toHaveLength(blocks.length)
  })

  it('is for the MQTT.js that is installed', () => {
    const { version } = JSON.parse(
      readFileSync(path.join(root, 'node_modules/mqtt/package.json'), 'utf8'),
    ) as { version: string }
    expect(guide).toContain(`\`mqtt\` ${version.split('.').slice(0, 2).join('.')} from npm`)
  })

  it('has only blocks that compile', async () => {
    expect(await compile(filesOf(blocks), ['mqtt'])).toBe('')
  }, 60_000)

  for (const { line, code } of blocks.slice(2).filter((block) => block.runs)) {
    it(`runs the block at line ${line}`, async () => {
      expect(await execute(code)).toMatchObject({ code: 0 })
    }, 40_000)
  }

  it('shows two programs that print the same', async () => {
    const [theirs, ours] = await Promise.all(
      blocks.slice(0, 2).map(({ code }) => execute(code, ['mqtt'])),
    )
    expect(theirs).toEqual({ code: 0, output: 'rooms/7 warm' })
    expect(ours).toEqual(theirs)
  }, 40_000)

  it('has each option, method, property and event of MQTT.js, and an answer for each', async () => {
    expect(await compile({ 'names.ts': namesModule(guide) }, ['mqtt'])).toBe('')
    expect(unanswered(guide)).toEqual([])
  }, 60_000)

  it('names nothing of mqwire that mqwire has not', async () => {
    expect(claimsOf(guide).count).toBeGreaterThan(250)
    expect(await wrongClaims(guide)).toEqual([])
  }, 60_000)
})

it('a wrong name of either library would be found', async () => {
  const changed = (from: string, to: string): string => {
    expect(guide).toContain(from)
    return guide.replace(from, () => to)
  }
  for (const [from, to, name] of [
    ['| `writeCache` |', '| |', 'writeCache'],
    ['| `nl` |', '| `nl`, `nll` |', 'nll'],
  ] as const) {
    const names = namesModule(changed(from, to))
    expect(await compile({ 'names.ts': names }, ['mqtt'])).toContain(`'"${name}"'`)
  }
  expect(unanswered(changed('| `rh` | `retainHandling` |', '| `rh` | |'))).toEqual([
    'Options of subscribe: rh',
  ])
  const wrong = await wrongClaims(changed('`client.drain()`', '`client.drane()`'))
  expect(wrong).toEqual([expect.stringMatching(/^line \d+: client\.drane\(\)$/)])
}, 60_000)
