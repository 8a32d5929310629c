/** What becomes of pages on their way to the documentation site: names, links, programs, anchors. The site itself is built and used by `site.suite.ts`. */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { pages, requireDist, root } from './fixture.js'

/** What `.ci/docs-pages.mjs` offers. */
interface Pages {
  readonly tables: readonly string[]
  pageOf(file: string): string | undefined
  assetOf(file: string): string | undefined
  textFor(file: string, text: string): string
  startsOf(read: (file: string) => string): readonly { title: string; code: string }[]
  settings(given: { base: string; outDir: string; references: readonly string[] }): {
    themeConfig: { sidebar: { items: { link: string }[] }[] }
  }
}

const program = (await import(pathToFileURL(path.join(root, '.ci/docs-pages.mjs')).href)) as Pages
const { tables, pageOf, assetOf, textFor, settings, startsOf } = program

/** What `.ci/site/kinds.mjs` offers. */
interface Kinds {
  kindOf(info: string, code: string, isGiven?: boolean): 'ends' | 'runs' | 'node' | undefined
}

const { kindOf } = (await import(
  pathToFileURL(path.join(root, '.ci/site/kinds.mjs')).href
)) as Kinds

describe('a page of the site', () => {
  it.each([
    ['README.md', 'index'],
    ['docs/connecting.md', 'connecting'],
    ['docs/README.md', 'guides'],
    ['docs/reference/transport/t.md', 'reference/transport/t'],
    ['examples/testing/meter.test.js', 'programs/meter-test'],
    ['bench/RESULTS.md', 'proofs/bench'],
    ['dist/client/node.js', undefined],
    ['examples/demo/main.js', undefined],
  ])('%s is %s', (file, page) => expect(pageOf(file)).toBe(page))

  it('has links that fit the site, outside code', () => {
    const text =
      'See [a](errors.md#codes), [b](../README.md), [c](#here), [d](https://x.example/y.md), `[e](f.md)`.\n```ts\n[g](h.md)\n```\n'
    expect(textFor('docs/events.md', text)).toBe(
      'See [a](/errors#codes), [b](/), [c](#here), [d](https://x.example/y.md), `[e](f.md)`.\n```ts\n[g](h.md)\n```\n',
    )
    expect(
      textFor('README.md', '<img src="examples/screenshots/dashboard-light.png" alt="x">'),
    ).toBe('<img src="/screenshots/dashboard-light.png" alt="x">')
    expect(assetOf('examples/screenshots/dashboard-light.png')).toBe(
      'screenshots/dashboard-light.png',
    )
  })

  it('is refused when it leads to what the site has not', () => {
    expect(() => textFor('docs/events.md', '[a](../src/errors.ts)')).toThrow(
      'docs/events.md leads to ../src/errors.ts, which the site has not',
    )
  })
})

describe('a block of code on the site', () => {
  const dial = "import { connect } from 'mqwire'\nawait connect('mqtt://127.0.0.1:1883')\n"

  it.each([
    ['ts run', dial, 'ends'],
    ['ts', dial, 'runs'],
    ['js', dial, 'ends'],
    ['js', `${dial}process.once('SIGINT', stop)\n`, 'runs'],
    ['ts', "import {\n  a,\n  type B,\n} from 'mqwire/typed'\nimport { z } from 'zod'\n", 'runs'],
    ['ts run', `import { test } from 'node:test'\n${dial}`, 'node'],
    ['ts', "import {\n  readFile,\n} from 'node:fs/promises'\n", 'node'],
    ['ts run', "import mqtt from 'mqtt'\n", 'node'],
    ['js', `${dial}Buffer.from('x')\n`, 'node'],
    ['ts', `${dial}declare const token: string\n`, undefined],
    ['ts', `${dial}await fetch('/token')\n`, undefined],
    ['ts', 'export default {}\n', undefined],
    ['sh', 'npm install mqwire\n', undefined],
  ])('%s %j: %s', (info, code, kind) => expect(kindOf(info, code)).toBe(kind))

  it('does not run where a comment gives the rest of it', () =>
    expect(kindOf('ts', dial, true)).toBe(undefined))

  it('can be one that the playground begins with', () => {
    const starts = startsOf((file) => readFileSync(path.join(root, file), 'utf8'))
    expect(starts.length).toBeGreaterThan(5)
    expect(new Set(starts.map(({ code }) => code)).size).toBe(starts.length)
    expect(starts[0]?.code).toContain("from 'mqwire'")
  })
})

it('the navigation: has every page that people write, and nothing that is not there', () => {
  const { sidebar } = settings({
    base: '/',
    outDir: 'x',
    references: ['reference/m'],
  }).themeConfig
  const links = sidebar.flatMap(({ items }) =>
    items.map(({ link }) => link.replace(/^\//, '').replace(/(^|\/)$/, '$1index')),
  )
  const there = [...pages, 'SECURITY.md', 'docs/reference/m.md', ...tables].map(pageOf)
  expect(links.sort()).toEqual(there.sort())
})

beforeAll(requireDist)

const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

/** The files that the scripts run, without programs of others. */
function ofScripts(): string[] {
  const words = Object.values(scripts).flatMap((script) => script.split(' '))
  return words.filter((word) => /^(?:\.ci|bench|examples)\/.*\.m?js$/.test(word))
}

/** The files below the folders that read the arguments of their process. */
function readers(): string[] {
  const files = ['.ci', 'bench', 'examples'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`),
  )
  const programs = files.filter((file) => /\.m?js$/.test(file) && !file.includes('node_modules'))
  return programs.filter((file) => {
    const text = readFileSync(path.join(root, file), 'utf8')
    return (
      /\bargumentsOf\(|process\.argv\.slice\(2/.test(text) &&
      !/export function argumentsOf/.test(text)
    )
  })
}

const programs = [...new Set([...ofScripts(), ...readers()])].sort()

interface Ending {
  readonly code: number | null
  readonly out: string
  readonly errors: string
}

function run(file: string, ...args: string[]): Promise<Ending> {
  const child = spawn(process.execPath, [file, ...args], {
    cwd: root,
    timeout: 20_000,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, errors })))
}

it('the programs are found', () => {
  const some = ['.ci/lab.mjs', 'bench/main.js', 'examples/demo/main.js', 'examples/device.js']
  expect(programs).toEqual(expect.arrayContaining(some))
  expect(programs.length).toBeGreaterThan(20)
})

describe.concurrent.each(programs)('%s', (file) => {
  it('prints its usage', async ({ expect }) => {
    const { code, out, errors } = await run(file, '--help')
    expect(errors).toBe('')
    expect(out).toMatch(/^Usage: (?:npm|node) /)
    expect(out.split('\n').length).toBeGreaterThan(2)
    expect(code).toBe(0)
  })

  it('refuses an option that it does not know', async ({ expect }) => {
    const { code, out, errors } = await run(file, '--no-such-flag')
    expect(errors).toMatch(/^[^\n]*'--no-such-flag'[^\n]*--help[^\n]*\n$/)
    expect(errors.length).toBeLessThan(150)
    expect(out).toBe('')
    expect(code).toBe(2)
  })
})

it.each([
  ['.ci/lab.mjs', ['--replya'], 'did you mean --replay?'],
  ['.ci/lab.mjs', ['--seed', 'many'], "--seed takes a whole number of at least 0, not 'many';"],
  ['.ci/lab.mjs', ['--minutes', '--seed'], '--minutes needs a value;'],
  ['.ci/size.mjs', ['--update=3'], '--update takes no value;'],
  ['.ci/size.mjs', ['now'], "Unexpected argument 'now';"],
])('%s %j: %s', async (file, given, said) =>
  expect((await run(file, ...given)).errors).toContain(said),
)
