/** Everything that lists, settings, scripts and comments name is there: files, folders, globs, scripts, and the texts of planted defects. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it, vi } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { tunings } from '../fuzz/bundler.js'
import { defects as fuzzDefects } from '../fuzz/defects.js'
import { defects as scannerDefects, textDefects, topicDefects, weak } from '../wasm/defects.js'
import { defects as worldDefects } from '../world/defects.js'
import { outsideDefects } from '../world/defects-outside.js'
import { allFiles, deadNames, filesOf } from './names.js'
import { root } from './source.js'

const files = allFiles(root)
const scripts = Object.keys(packageJson.scripts)
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')

/** Named, and rightly not there: made by a run, or made up to show a checker what it must find. */
const excused = ['test/programs/MATRIX.md', 'wire/utils.ts', 'client/a/ports.ts']
const madeUp = /\bgone\b|\/[a-z]\.(?:ts|md|png)$/

describe('what is named', () => {
  it('is there, from every file, but for what is excused', () => {
    const texts = files.filter((file) => /\.(?:[jt]sx?|mjs|json|md|html|css|as)$|^\.ci\/run$/.test(file) && !file.endsWith('package-lock.json'))
    expect(texts.length).toBeGreaterThan(500)
    const dead = texts.flatMap((file) => deadNames(file, read(file), files, scripts).map((name) => ({ file, name })))
    expect(dead.filter(({ name }) => !excused.includes(name) && !madeUp.test(name))).toEqual([])
    for (const name of excused) if (filesOf(name, files).length === 0) expect(dead.map((each) => each.name)).toContain(name)
  })

  it.each([
    ["const list = ['src/client/gone.ts', 'src/errors.ts']", ['src/client/gone.ts']],
    ["const glob = 'src/**/*.ts', none = '!test/gone/**/*.ts', two = 'src/gone*.as'", ['test/gone/**/*.ts', 'src/gone*.as']],
    ["const below = ['wire/reader.ts', 'wire/gone.ts', 'wire/', 'wire/gone/', 'other/a', 'other/']", ['wire/gone.ts', 'wire/gone/']],
    ["const near = 'parts/index.js', code = 'parts/gone.ts', there = 'parts/a.ts'", ['parts/gone.ts']],
    [
      '// See test/wire/gone.test.ts, `test/wire`, [it](src/gone/README.md) and https://x.example/src/gone.',
      ['test/wire/gone.test.ts', 'src/gone/README.md'],
    ],
    ['npm run build, npm run -s gone', ['npm run -s gone']],
  ])('is found out when it is gone: %s', (text, dead) => {
    const there = ['src/errors.ts', 'src/wire/reader.ts', 'test/wire/a.ts', 'bench/parts/a.ts']
    expect(deadNames('bench/main.js', text, there, ['build'])).toEqual(dead)
  })
})

describe('the settings of vitest', () => {
  afterAll(() => void vi.unstubAllEnvs())

  it('name files that there are, hear secrets, and leave out no suite', async () => {
    vi.stubEnv('MQWIRE_INTEROP', 'all')
    vi.stubEnv('MQWIRE_FRAMEWORKS', undefined)
    interface Settings {
      readonly include?: readonly string[]
      readonly exclude?: readonly string[]
      readonly setupFiles?: readonly string[]
      readonly projects?: readonly { readonly test: Settings }[]
    }
    const included: string[] = []
    for (const file of files.filter((name) => /\/vitest\.[\w.]*config\.ts$/.test(name))) {
      const { test } = ((await import(pathToFileURL(path.join(root, file)).href)) as { default: { test: Settings } }).default
      for (const { include = [], exclude = [], setupFiles = [] } of test.projects?.map((project) => project.test) ?? [test]) {
        const named = [...include, ...exclude.filter((name) => !name.startsWith('**/'))]
        expect([file, named.filter((name) => filesOf(name, files).length === 0)]).toEqual([file, []])
        expect([file, setupFiles]).toEqual([file, ['test/secrets-setup.ts']])
        included.push(...include.flatMap((name) => filesOf(name, files)))
      }
    }
    const suites = files.filter((name) => /^test\/.*\.(?:test|suite|shots)\.ts$/.test(name))
    expect(suites.filter((name) => !included.includes(name))).toEqual([])
  })
})

describe('the projects of vitest', () => {
  interface Project {
    readonly test: { readonly name: string; readonly include: readonly string[]; readonly exclude?: readonly string[] }
  }

  const suites = files.filter((file) => /^test\/.*\.test\.ts$/.test(file)).sort()
  const all = (globs: readonly string[]): Set<string> => new Set(globs.flatMap((glob) => filesOf(glob, files)))

  async function projects(): Promise<{ readonly name: string; readonly held: readonly string[] }[]> {
    const { default: settings } = await import('../vitest.config.js')
    return (settings as unknown as { test: { projects: readonly Project[] } }).test.projects.map(({ test: { name, include, exclude = [] } }) => {
      const without = all(exclude)
      return { name, held: [...all(include)].filter((file) => !without.has(file)) }
    })
  }

  /** The projects that a script runs: those that it names, or all. */
  function ranBy(script: 'test' | 'test:rest' | 'test:all', names: readonly string[]): string[] {
    const named = [...packageJson.scripts[script].matchAll(/ --project=(\S+)/g)].map(([, name]) => name as string)
    return named.length > 0 ? named : [...names]
  }

  it('have every test file once', async () => {
    expect((await projects()).flatMap(({ held }) => held).sort()).toEqual(suites)
  })

  it('are each run once by `npm test` and `test:rest` together, and by `test:all`', async () => {
    const names = (await projects()).map(({ name }) => name)
    expect([...ranBy('test', names), ...ranBy('test:rest', names)].sort()).toEqual([...names].sort())
    expect(ranBy('test:all', names)).toEqual(names)
    const steps = [...read('.ci/run').matchAll(/^tests \S+ \d+ (?:run )?(test\S*)/gm)].map(([, script]) => script)
    expect(steps).toEqual(['test', 'test:rest'])
  })
})

describe('planted defects, and what is tuned for the fuzzer', () => {
  const scanner = [...scannerDefects, ...textDefects, ...topicDefects, weak]
  const all = [...worldDefects, ...outsideDefects, ...fuzzDefects, ...scanner.map((defect) => ({ ...defect, file: 'wasm/scanner.as' })), ...tunings]

  it('have a text that occurs once in a file that is there', () => {
    const times = all.map(({ file, find }) => [`${file}: ${find}`, read(`src/${file}`).split(find).length - 1])
    expect(times.filter(([, count]) => count !== 1)).toEqual([])
  })
})
