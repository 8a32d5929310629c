/** Every acceptance row has a test or a reason, every test cites rows that there are, and the table shows both. */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const program = path.join(root, '.ci', 'rows.mjs')
const folders: string[] = []

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'mqwire-rows-'))
  folders.push(made)
  return made
}

afterEach(() => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true })
})

function run(...given: string[]): Promise<{ code: number; errors: string[] }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, '--check', ...given], { cwd: root }, (error, _output, errors) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, errors: errors.split('\n').filter(Boolean) })
    })
  })
}

/** What the program offers to whoever imports it. */
interface Rows {
  titlesIn(source: string): string[]
  idsOf(text: string): string[]
  markdown(sections: readonly object[], cited: ReadonlyMap<string, ReadonlyMap<string, number>>): string
}

describe('the table of acceptance rows', () => {
  it('has a test or a reason for every row', { timeout: 60_000 }, async () => {
    expect(await run()).toMatchObject({ code: 0, errors: [] })
  })

  it('is objected to when a row was added that nobody cites, or one is gone that a test cites', { timeout: 60_000 }, async () => {
    const rows = path.join(folder(), 'rows.json')
    const sections = JSON.parse(readFileSync(path.join(root, 'test', 'conformance', 'rows.json'), 'utf8')) as { rows: object }[]
    sections[0] = { ...sections[0], rows: { ...sections[0]?.rows, A99: { v: 'b', name: 'made up' }, A08: undefined } }
    writeFileSync(rows, JSON.stringify(sections))
    const { code, errors } = await run('--rows', rows)
    expect(code).toBe(1)
    expect(errors).toContainEqual(expect.stringMatching(/^A08 is no row, but .* cites it$/))
    expect(errors).toContain('A99: neither a test nor a reason')
  })

  it('is objected to when the tests of a row are gone', async () => {
    const tests = folder()
    cpSync(path.join(root, 'test', 'client', 'connect.test.ts'), path.join(tests, 'connect.test.ts'))
    const { code, errors } = await run('--tests', tests)
    expect(code).toBe(1)
    expect(errors).toContain('D04: neither a test nor a reason')
    expect(errors).not.toContain('A08: neither a test nor a reason')
  })
})

describe('the table', () => {
  it('has a line for each row, with the files that cite it or the reason why none does, and the sums', async () => {
    const { markdown } = (await import(pathToFileURL(program).href)) as Rows
    const sections = [
      { title: 'Some', rows: { A01: { v: 'b', name: 'one' }, A02: { v: '5', name: 'two', reason: 'no' }, A03: { v: '3', name: 'three' } } },
    ]
    const table = markdown(sections, new Map([['A01', new Map([['test/gone.test.ts', 2]])]]))
    expect(table).toContain('3 rows: 1 cited by a test, 1 not covered for a reason, 1 open.')
    expect(table).toContain('| A01 | both | one | `test/gone.test.ts` (2) |')
    expect(table).toContain('| A02 | 5.0 | two | *not covered: no* |')
    expect(table).toContain('| A03 | 3.1.1 | three | **nothing** |')
  })
})

describe('a title', () => {
  it.each([
    ['it("A17 x")', '= A17'],
    ['it.each([[1]])("A17 %i and G03", () => 0)', '= A17 G03'],
    ['it.each([["H28 x", 1], ["y H29", 2]])("%s", () => 0)', '= H28'],
    ['const table = [{ name: "J01 x" }]\nit.each(table)("$name", () => 0)', '= J01'],
    ['for (const n of [1]) it(`D09 $' + '{n} D10`, () => 0)', '= D09 D10'],
    ['describe("fault 12 fault 13, and pain 7", () => 0)', '= fault 12 fault 13 pain 7'],
    ['it("faults 13 to 15 and 20, pains 1 and 2", () => 0)', '= fault 13 fault 14 fault 15 fault 20 pain 1 pain 2'],
    ['it("x", () => { const text = "A17"; it2("A18") }) // it("A19") too', '='],
    ['it("[MQTT-A17] version-A18.2 XA19 A1 A200", () => 0)', '='],
    ['other("A17")', '='],
  ])('%s cites what it says', async (source, ids) => {
    const { titlesIn, idsOf } = (await import(pathToFileURL(program).href)) as Rows
    expect(['=', ...titlesIn(source).flatMap(idsOf)].join(' ')).toBe(ids)
  })
})
