/** The list of mutants is sound, what caught each is known, a few of them are really caught, and the runner tells those that nobody catches. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { type Mutant, objections, planted, readMutants, readStatements } from './list.js'
import { markdown, readCaught, staleCaught, unbroken, writeCaught } from './table.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = path.join(root, 'test', 'mutants')
const mutants = readMutants(folder)
const statements = readStatements(root)
const kept = readFileSync(path.join(folder, 'results', 'caught.json'), 'utf8')
const scratch = mkdtempSync(path.join(tmpdir(), 'mqwire-mutants-'))

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

interface Run {
  readonly code: number
  readonly lines: readonly string[]
  readonly errors: string
}

// A vitest within a vitest must not take itself for a worker of the outer one.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST')))

function run(...given: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [path.join(root, '.ci', 'mutants.mjs'), ...given], { cwd: root, env }, (error, output, errors) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, lines: output.trim().split('\n'), errors })
    })
  })
}

/** A list of its own for the runner. */
function listOf(...made: Omit<Mutant, 'area'>[]): string {
  const file = path.join(scratch, 'made-up.json')
  writeFileSync(file, JSON.stringify(made))
  return file
}

const sample: Omit<Mutant, 'area'> = {
  id: 'sample',
  file: 'src/client/parsing/backoff.ts',
  find: 'Math.max(1, min)',
  replace: 'Math.max(2, min)',
  why: 'made up',
  statements: [],
  rows: ['G02'],
  tests: ['test/client/backoff.test.ts'],
}

/** One of each of six areas; which ones changes as the list grows. Transports are left out, as their tests take real time. */
function some(): Mutant[] {
  const areas = [...new Set(mutants.map(({ area }) => area))].filter((area) => area !== 'transport')
  return Array.from({ length: 6 }, (_, index) => {
    const area = areas[(mutants.length + index) % areas.length]
    const mine = mutants.filter((mutant) => mutant.area === area)
    return mine[mutants.length % mine.length] as Mutant
  })
}

describe('the list of mutants', () => {
  it('names texts that occur once, files that exist, and no mutant twice', () => {
    expect(objections(root, mutants, statements)).toEqual([])
  })

  it('breaks every statement that binds a client', () => {
    expect(unbroken(statements, mutants)).toEqual([])
  })

  it('is long enough', () => {
    expect(mutants.length).toBeGreaterThanOrEqual(120)
  })

  it('is what the last whole run caught, each by one of its tests', () => {
    const caught = readCaught(kept)
    expect(kept).toBe(writeCaught(caught))
    expect(staleCaught(mutants, caught)).toEqual([])
    for (const { id, tests } of mutants) expect(tests, id).toContain(/^`([^`]+)`/.exec(caught.get(id) ?? '')?.[1])
    const table = markdown(mutants, statements, caught)
    expect(table).toContain(`${mutants.length} mutants, ${mutants.length} caught.`)
    for (const { id, file } of mutants) expect(table).toContain(`\n| ${id} | \`${file}\` | `)
  })

  it('is found stale when a mutant is new or gone, or what caught it is no longer one of its tests', () => {
    const mutant = { ...sample, area: 'made-up' }
    const caught = new Map([['sample', '`test/client/backoff.test.ts` › x']])
    expect(staleCaught([mutant], caught)).toEqual([])
    expect(staleCaught([mutant, { ...mutant, id: 'new' }], caught)).toEqual(['new'])
    expect(staleCaught([], caught)).toEqual(['sample'])
    expect(staleCaught([{ ...mutant, tests: ['test/client/gone.test.ts'] }], caught)).toEqual(['sample'])
  })

  it.each([
    ['text that is gone', { find: 'nowhere to be found' }, "mutant 'sample': its text occurs 0 times in src/client/parsing/backoff.ts"],
    ['text that occurs twice', { find: 'min' }, /its text occurs \d+ times in src/],
    ['a file that is gone', { file: 'src/gone.ts' }, "mutant 'sample': there is no src/gone.ts"],
    ['a test that is gone', { tests: ['test/gone.test.ts'] }, "mutant 'sample': there is no test/gone.test.ts"],
    ['no test', { tests: [] }, "mutant 'sample': no test catches it"],
    ['a statement that is none', { statements: ['MQTT-9.9.9-9'] }, "mutant 'sample': there is no statement MQTT-9.9.9-9"],
    ['a row that is none', { rows: ['U98'] }, "mutant 'sample': there is no row U98"],
    ['nothing that it breaks', { rows: [] }, "mutant 'sample': it breaks neither a statement nor a row"],
    ['no change', { replace: sample.find }, "mutant 'sample': it changes nothing"],
  ])('is refused with %s', (_name, change, objection) => {
    const found = objections(root, [{ ...sample, ...change, area: 'made-up' }], statements)
    expect(found).toEqual([expect.stringMatching(objection)])
  })

  it('is refused with the same mutant twice', () => {
    const mutant = { ...sample, area: 'made-up' }
    expect(objections(root, [mutant, { ...mutant, id: 'other' }], statements)).toEqual(["mutant 'other' is 'sample' again"])
    expect(objections(root, [mutant, { ...mutant, replace: '1' }], statements)).toEqual(["mutant 'sample' is 'sample' again"])
  })

  it('plants a text as it is, dollar signs included, and throws where it cannot', () => {
    const mutant = { ...sample, find: 'a', replace: '$&$1', area: 'made-up' }
    expect(planted(mutant, 'b a c')).toBe('b $&$1 c')
    expect(() => planted(mutant, 'b c')).toThrow("mutant 'sample': its text occurs 0 times")
  })
})

describe('the runner of mutants', () => {
  it('shows that some of them are caught, by the test files that caught them before', { timeout: 180_000 }, async () => {
    const { code, lines, errors } = await run(
      '--only',
      some()
        .map(({ id }) => id)
        .join(','),
    )
    // Which test of a file is the first to fail may depend on random numbers.
    const files = lines.slice(0, -1).map((line) => line.split(' › ')[0])
    const caught = readCaught(kept)
    expect(files.sort(), errors).toEqual(
      some()
        .map(({ id }) => `${id} | caught by ${caught.get(id)?.split(' › ')[0]}`)
        .sort(),
    )
    expect(lines.at(-1)).toMatch(/^mutants: 6 run, 6 caught, 0 survived, 0 broken; control: (\d) of \1 test files pass/)
    expect(code).toBe(0)
  })

  it('shows that walks which grow with the square are caught, each by the test of its row: npm run mutants:cost', { timeout: 180_000 }, async () => {
    const list = path.join(folder, 'cost', 'quadratic.json')
    const quadratic = readMutants(list)
    expect(objections(root, quadratic, statements)).toEqual([])
    const chosen = quadratic.filter((_mutant, index) => index % 9 === quadratic.length % 9)
    const { code, lines, errors } = await run('--list', list, '--only', chosen.map(({ id }) => id).join(','))
    const caught = chosen.map(({ id, title, tests }) => `${id} | caught by \`${tests[0]}\` › ${title}`)
    expect(lines.slice(0, -1).sort(), errors).toEqual(caught.sort())
    expect(code).toBe(0)
  })

  it('tells those that survive, and those that it cannot judge', { timeout: 180_000 }, async () => {
    const list = listOf(
      // A comment.
      { ...sample, id: 'equal', find: 'return (attempt, _error', replace: '/* */ return (attempt, _error' },
      { ...sample, id: 'unreadable', replace: '((' },
      {
        ...sample,
        id: 'elsewhere',
        file: 'src/client/subscribing/registry.ts',
        find: 'if (filters.length > 0) this.sender.restore(filters)',
        replace: '',
      },
      { ...sample, id: 'mended', find: 'nowhere to be found' },
      { ...sample, id: 'noticed', find: 'min + random()', replace: 'random()' },
    )
    const { code, lines, errors } = await run('--list', list)
    expect(code).toBe(1)
    expect(lines).toContain('equal | SURVIVED')
    expect(lines).toContainEqual(expect.stringMatching(/^unreadable \| BROKEN: test\/client\/backoff.test.ts: .*(?:PARSE_ERROR|Unexpected)/))
    expect(lines).toContain('elsewhere | BROKEN: no test loads it')
    expect(lines).toContainEqual(expect.stringMatching(/^mended \| BROKEN: .*its text occurs 0 times/))
    expect(lines).toContainEqual(expect.stringMatching(/^noticed \| caught by `test\/client\/backoff.test.ts` › /))
    expect(lines.at(-1)).toMatch(/^mutants: 5 run, 1 caught, 1 survived, 3 broken; control: 1 of 1 test files pass/)
    expect(errors).toContain("mutant 'mended': its text occurs 0 times")
  })
})
