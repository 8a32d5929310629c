/** The table of statements is what titles and vectors say, and every statement that binds a client, and every rule of the codec, has its proof. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const program = path.join(root, '.ci', 'conformance.mjs')

type Titles = ReadonlyMap<string, readonly string[]>

interface Proofs {
  readonly reasons: Readonly<Record<string, string>>
  readonly rules: Readonly<Record<string, readonly (readonly [string, string])[]>>
}

/** What the program offers to whoever imports it. */
interface Conformance {
  readTitles(): Titles
  readProofs(): Proofs
  statementsOf(title: string): string[]
  report(titles: Titles, proofs: Proofs): { table: string; objections: string[]; groups: { name: string; proven: number; all: number }[] }
}

const { readTitles, readProofs, statementsOf, report } = (await import(pathToFileURL(program).href)) as Conformance
const titles = readTitles()
const proofs = readProofs()
const committed = readFileSync(new URL('STATEMENTS.md', import.meta.url), 'utf8')

/** The same without the tests for which `gone` holds. */
function without(gone: (title: string, file: string) => boolean): Titles {
  return new Map([...titles].map(([file, each]) => [file, each.filter((title) => !gone(title, file))]))
}

const fromServer = (file: string): boolean => file.startsWith('testing/') || file.startsWith('conformance/broker-')

describe('the table of statements', () => {
  it('is fresh, and nothing is without a proof', () => {
    const { table, objections } = report(titles, proofs)
    expect(objections).toEqual([])
    expect(table === committed, 'test/conformance/STATEMENTS.md is stale: npm run conformance').toBe(true)
  })

  it('is checked by a program that fails when it is stale or lacks a proof', { timeout: 60_000 }, async () => {
    const tests = mkdtempSync(path.join(tmpdir(), 'mqwire-conformance-'))
    writeFileSync(path.join(tests, 'one.test.ts'), "it('[MQTT-3.1.0-1] CONNECT comes first', () => undefined)")
    const given = [program, '--check', '--tests', tests]
    const { code, errors } = await new Promise<{ code: unknown; errors: string[] }>((resolve) => {
      execFile(process.execPath, given, { cwd: root }, (error, _output, text) => resolve({ code: error?.code ?? 0, errors: text.split('\n') }))
    })
    rmSync(tests, { recursive: true, force: true })
    expect(code).toBe(1)
    expect(errors).toContain('test/conformance/STATEMENTS.md is stale: npm run conformance')
    expect(errors).toContain('MQTT-3.1.2-1: no test of the client cites it')
    expect(errors.join()).not.toContain('MQTT-3.1.0-1')
  })

  it('has all of the 44 statements that bind the client, the 89 that bind both, and the rules of the codec', () => {
    const groups = new Map(report(titles, proofs).groups.map((group) => [group.name, group]))
    expect(groups.get('client')).toMatchObject({ proven: 44, all: 44 })
    expect(groups.get('both, as a client')).toMatchObject({ proven: 89, all: 89 })
    expect(groups.get('all statements')).toMatchObject({ proven: 251, all: 251 })
    const rules = groups.get('codec rules')
    expect(rules?.all).toBeGreaterThan(200)
    expect(rules?.proven).toBe(rules?.all)
  })

  it('is found stale when one test of a statement is gone, though others are left', () => {
    let removed = 0
    const { table, objections } = report(
      without((title) => title.includes('[MQTT-4.6.0-4]') && removed++ === 0),
      proofs,
    )
    expect(removed).toBeGreaterThan(1)
    expect(objections).toEqual([])
    expect(table).not.toBe(committed)
  })

  it.each(['MQTT-3.1.2-11', 'MQTT-4.2.0-1', 'MQTT-3.7.2-3', 'MQTT-2.2.2-1'])(
    'objects when no test of a client cites %s, whatever the broker shows',
    (id) => {
      const { table, objections } = report(
        without((title, file) => statementsOf(title).includes(id) && !fromServer(file)),
        proofs,
      )
      expect(table).not.toBe(committed)
      expect(objections).toContain(`${id}: no test of the client cites it`)
    },
  )

  it('takes a reason for a statement that binds the server alone, and for no other', () => {
    const [server, client] = ['MQTT-4.6.0-6', 'MQTT-3.1.0-1']
    const left = without((title) => [server, client].some((id) => statementsOf(title).includes(id)))
    expect(report(left, proofs).objections).toEqual(
      expect.arrayContaining([`${server}: no proof and no reason`, `${client}: no test of the client cites it`]),
    )
    const { objections } = report(left, { ...proofs, reasons: { [server]: 'because', [client]: 'because' } })
    expect(objections.filter((line) => line.startsWith(server))).toEqual([])
    expect(objections).toContain(`${client}: it binds a client; a reason is no proof`)
    expect(report(titles, { ...proofs, reasons: { [server]: 'because' } }).objections).toEqual([`${server}: has a proof, and needs no reason`])
  })

  it('objects to statements that do not exist, cited by a title or given a reason', () => {
    const found = report(new Map([...titles, ['x.test.ts', ['[MQTT-9.9.9-9] x']]]), { ...proofs, reasons: { 'MQTT-9.9.9-8': 'because' } })
    expect(found.objections).toEqual(['MQTT-9.9.9-9 is no statement, but x.test.ts cites it', 'MQTT-9.9.9-8 is no statement, but has a reason'])
  })

  it('objects when nothing runs the vectors', () => {
    const left = without((title) => title.startsWith('conformance vectors, codec and role'))
    expect(report(left, proofs).objections).toContain('MQTT-3.1.2-12: there is no vector connect-will-qos3, or nothing runs it')
  })

  it('objects when the test of a rule is gone, named by its title or by the list of proofs', () => {
    const byTitle = report(
      without((title) => title.includes('[rule openPoints.0]')),
      proofs,
    ).objections
    expect(byTitle).toEqual([expect.stringMatching(/^rule openPoints\.0 .*: no test$/)])
    const byList = report(
      without((title) => title.startsWith('have the names of section 2.4')),
      proofs,
    ).objections
    expect(byList).toContain('rule reasonCodes: there is no test "have the names of section 2.4, by packet" in wire/tables.test.ts')
    expect(byList).toHaveLength(46)
    expect(
      report(titles, { ...proofs, rules: { ...proofs.rules, sums: [['wire/tables.test.ts', 'have the names of section 2.4, by packet']] } })
        .objections,
    ).toEqual(['rule sums is in no table'])
  })
})

describe('a title', () => {
  it.each([
    ['[MQTT-3.1.2-1] x', ['MQTT-3.1.2-1']],
    ['x (MQTT-6.0.0-1)', ['MQTT-6.0.0-1']],
    ['a [MQTT-4.9.0-1] [MQTT-4.9.0-2] b [MQTT-4.9.0-1]', ['MQTT-4.9.0-1', 'MQTT-4.9.0-2']],
    ['of the older standard [3.1.1: MQTT-3.1.2-1]', []],
    ['MQTT 5.0', []],
  ])('"%s" cites what it says', (title, ids) => {
    expect(statementsOf(title)).toEqual(ids)
  })
})
