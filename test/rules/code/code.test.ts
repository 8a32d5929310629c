/** The rules of the source tree, each seen to fail: imports between layers, no circles, pure folders, no regular expressions on what a peer sent. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript-5.2'
import { describe, expect, it } from 'vitest'
import { layerOf, layerViolations, unusedAllowances } from './layers.js'
import { blank, importsOf, parsed, patternsIn, readSources, root, type Sources } from './source.js'

/** Files that reach each other by imports of any kind, the largest set first. A file that only imports itself is one of one. */
function circles(sources: Sources): string[][] {
  const graph = new Map([...sources].map(([file, code]) => [file, targetsOf(file, code, sources)]))
  const reached = new Map([...graph.keys()].map((file) => [file, reach(file, graph)]))
  const seen = new Set<string>()
  const found: string[][] = []
  for (const [file, others] of reached) {
    if (seen.has(file) || !others.has(file)) continue
    const circle = [...others].filter((other) => reached.get(other)?.has(file))
    for (const member of circle) seen.add(member)
    found.push(circle.sort())
  }
  return found.sort((one, other) => other.length - one.length)
}

function targetsOf(file: string, code: string, sources: Sources): string[] {
  const relative = importsOf(code).filter(({ specifier }) => specifier.startsWith('.'))
  const targets = relative.map(({ specifier }) =>
    path.posix.join(path.posix.dirname(file), specifier).replace(/\.js$/, '.ts'),
  )
  return [...new Set(targets)].filter((target) => sources.has(target))
}

function reach(start: string, graph: ReadonlyMap<string, readonly string[]>): Set<string> {
  const found = new Set<string>()
  const open = [start]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const next of graph.get(file) ?? []) {
      if (found.has(next)) continue
      found.add(next)
      open.push(next)
    }
  }
  return found
}

/** The folder of a file, or its layer where that is a few files of `src/client` itself. */
function roomOf(file: string): string {
  const folder = path.posix.dirname(file)
  return folder === 'client' ? (layerOf(file) ?? folder) : folder
}

/** Pairs of rooms that import each other, types counted. */
function mutualRooms(sources: Sources): string[] {
  const pairs = new Set<string>()
  for (const [file, code] of sources)
    for (const target of targetsOf(file, code, sources))
      pairs.add(`${roomOf(file)} ${roomOf(target)}`)
  const mutual = [...pairs].filter((pair) => {
    const [from = '', to = ''] = pair.split(' ')
    return from < to && pairs.has(`${to} ${from}`)
  })
  return mutual.sort()
}

/** Names that several classes of these files bear, each with where. */
function repeatedClasses(sources: Sources): string[] {
  const places = new Map<string, string[]>()
  for (const [file, code] of sources) {
    for (const node of parsed(code).statements) {
      if (!ts.isClassDeclaration(node) || node.name === undefined) continue
      places.set(node.name.text, [...(places.get(node.name.text) ?? []), file])
    }
  }
  return [...places]
    .filter(([, files]) => files.length > 1)
    .map(([name, files]) => `${name}: ${files.join(', ')}`)
}

const pureFolders = ['wire/', 'client/session/']

const forbidden: readonly (readonly [string, RegExp])[] = [
  ['Date.now', /\bDate\s*\.\s*now\b/],
  ['new Date', /\bnew\s+Date\b/],
  ['Math.random', /\bMath\s*\.\s*random\b/],
  ['Promise', /\bPromise(?:Like)?\b/],
  ['async', /\basync\b/],
  ['await', /\bawait\b/],
  ['globalThis', /\bglobalThis\b/],
  ['dynamic import', /\bimport\s*\(/],
]

// The one declaration of something outside the language: TextDecoder, which every platform has.
const mayDeclare = new Map([['wire/utf8.ts', /^TextDecoder$/]])

function declarations(text: string): string[] {
  return [
    ...text.matchAll(
      /\bdeclare\s+(?:const|let|var|function|class|abstract\s+class|module|namespace|global)\s*([\w$]*)/g,
    ),
  ].map((found) => found[1] as string)
}

/** Every breach of purity in the pure folders, as `file: what`. */
function purityViolations(sources: Sources): string[] {
  const found: string[] = []
  for (const [file, code] of sources) {
    if (!pureFolders.some((folder) => file.startsWith(folder))) continue
    const text = blank(code)
    for (const [what, pattern] of forbidden) if (pattern.test(text)) found.push(`${file}: ${what}`)
    for (const name of declarations(text))
      if (!mayDeclare.get(file)?.test(name)) found.push(`${file}: declare ${name}`)
  }
  return found
}

/** Files that have a name that says nothing, or open without saying what they are. */
function fileViolations(sources: Sources): string[] {
  const found: string[] = []
  for (const [file, code] of sources) {
    if (/(?:^|\/)(?:utils?|helpers?|misc)(?:\.|\/)/.test(file))
      found.push(`${file}: a name that says nothing`)
    if (!/^(?:#![^\n]*\n)?\/\*\*\n/.test(code)) found.push(`${file}: no opening comment`)
  }
  return found
}

const sources = readSources()
const tree = (...files: [file: string, code: string][]): Map<string, string> => new Map(files)

describe('the import rule', () => {
  it('holds in src, and allows nothing that src does not use', () => {
    expect(layerViolations(sources)).toEqual([])
    expect(unusedAllowances(sources)).toEqual([])
    const without = new Map([...sources].filter(([file]) => !file.startsWith('wasm/')))
    expect(unusedAllowances(without)).toEqual(['wasm', 'wasm wire'])
  })

  const others = ['errors', 'wire/index', 'transport/tcp', 'transport/transport', 'client/client']
  const more = ['client/session/session', 'testing/broker/connection/peer']
  const around = [...others, ...more].map((name): [string, string] => [`${name}.ts`, ''])

  it.each([
    ['wire/a.ts', "import type { A } from '../transport/transport.js'"],
    ['client/a.ts', "import { type Dial } from '../transport/tcp.js'"],
    ['client/a.ts', "const { dial } = await import('../transport/tcp.js')"],
    ['testing/broker/state/a.ts', "import type { Peer } from '../connection/peer.js'"],
    ['testing/broker/helpers/a.ts', ''],
    ['client/a.ts', "import { connect } from 'node:net'"],
    ['transport/tcp.ts', "import { connect } from 'net'"],
    ['transport/tcp.ts', "export * from 'ws'"],
    ['client/a.ts', "import { a } from './missing.js'"],
    ['client/a.ts', "import a from './a.json' with { type: 'json' }"],
    ['client/a.ts', "const a = require('./client.js')"],
    ['client/a.ts', 'await import(name)'],
    ['a.ts', ''],
  ])('objects to %s with %s', (file, code) => {
    expect(layerViolations(tree(...around, [file, code]))).toHaveLength(1)
  })

  it.each([
    ['client/a.ts', "import type { Dial } from '../transport/transport.js'"],
    ['client/node.ts', "import { dial } from '../transport/tcp.js'\nimport 'node:os'"],
    ['transport/websocket-node.ts', "import WebSocket from 'ws'"],
    ['client/a.ts', "// import { dial } from '../transport/tcp.js'\nconst text = `import 'ws'`"],
  ])('accepts %s with %s', (file, code) => {
    expect(layerViolations(tree(...around, [file, code]))).toEqual([])
  })
})

describe('the plan of the house', () => {
  it('has no circle of imports, types counted, no rooms that import each other, no class twice', () => {
    expect([circles(sources), mutualRooms(sources)]).toEqual([[], []])
    // What is published under one name for two platforms.
    expect(repeatedClasses(sources)).toEqual([
      'Client: client/browser.ts, client/node.ts',
      'MemoryBroker: testing/broker/broker.ts, testing/node.ts',
    ])
  })

  it('would be found out', () => {
    const file = 'testing/broker/common/clock.ts'
    const code = `import type { Peer } from '../connection/peer.js'\nclass Session {}\n`
    const planted = new Map([...sources, [file, `${code}${sources.get(file)}`]])
    expect(circles(planted)[0]).toContain(file)
    expect(mutualRooms(planted)).toEqual(['testing/broker/common testing/broker/connection'])
    expect(repeatedClasses(planted)).toContain(
      'Session: client/session/session.ts, testing/broker/common/clock.ts',
    )
  })
})

describe('purity', () => {
  /** What the compiler says about a project; empty when all is well. */
  async function compile(project: string): Promise<string> {
    const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    return promisify(execFile)(process.execPath, [compiler, '-p', project]).then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout || String(error),
    )
  }

  it.each(pureFolders)(
    'src/%s compiles without DOM, Node or timers in scope, and would not with them',
    async (folder) => {
      expect(await compile(path.join(root, 'src', folder))).toBe('')
      const project = await mkdtemp(path.join(tmpdir(), 'mqwire-purity-'))
      try {
        const settings = path.join(root, 'src', folder, 'tsconfig.json')
        const own = JSON.stringify({ extends: settings, include: ['.'] })
        await writeFile(path.join(project, 'tsconfig.json'), own)
        const lines = 'setTimeout(String, 1)\nperformance.now()\nprocess.exit()\nnew TextDecoder()'
        await writeFile(path.join(project, 'a.ts'), lines)
        const said = await compile(project)
        for (const line of lines.split('\n').keys()) expect(said).toContain(`a.ts(${line + 1},`)
      } finally {
        await rm(project, { recursive: true })
      }
    },
  )

  it('knows no clock, chance or promise in the text', () => {
    expect(purityViolations(sources)).toEqual([])
    for (const folder of pureFolders)
      expect([...sources.keys()].filter((file) => file.startsWith(folder)).length).toBeGreaterThan(
        2,
      )
  })

  it.each([
    'const now = Date.now()',
    'const day = new Date()',
    'const id = Math . random()',
    'let p: Promise<void>',
    'const f = async () => 1',
    'for await (const a of b) c(a)',
    'const g = globalThis',
    `const t = \`\${Date.now()}\``,
    'declare const performance: { now(): number }',
    'declare class TextDecoder {}',
    "const m = import('./a.js')",
  ])('the text check finds: %s', (code) => {
    expect(purityViolations(tree(['client/session/a.ts', code]))).not.toEqual([])
    expect(purityViolations(tree(['client/a.ts', code]))).toEqual([])
  })

  it('the text check passes over comments and strings, and lets wire/utf8.ts declare TextDecoder', () => {
    const code = "/** Promise */\nconst text = 'Math.random()' // new Date() and await"
    expect(purityViolations(tree(['wire/a.ts', code]))).toEqual([])
    const decoder = sources.get('wire/utf8.ts') ?? ''
    expect(decoder).toContain('declare const TextDecoder')
    expect(
      purityViolations(tree(['wire/utf8.ts', `${decoder}declare const process: object`])),
    ).toHaveLength(1)
  })
})

it('source files are well named, and open with a comment', () => {
  expect(fileViolations(sources)).toEqual([])
  const wrong = tree(['wire/utils.ts', '/**\n * What it is.\n */\n'], ['wire/a.ts', 'a()\n'])
  expect(fileViolations(wrong)).toHaveLength(2)
})

describe('regular expressions', () => {
  /** Where they may be, with what they see there: never a byte of the peer. */
  const open = Object.entries({
    'auth/saslprep.ts': 'the user name and the password of the caller',
    'cli/': 'the command line and its files: never a message of the peer',
    'auth/scram.ts': 'the nonce option of the caller',
    'common/schema.ts': 'names of our own options',
    'client/options/check-': 'options of the caller',
    'testing/scram-server.ts': "a test double: what its client says is the program's own",
    'transport/tls-context.ts': 'the certificates of the caller',
    'transport/websocket.ts': 'the URL of the caller',
  })

  it('are in none but these places', () => {
    const lines = [...sources].flatMap(([file, code]) =>
      patternsIn(code).map((text) => `${file}: ${text}`),
    )
    const isOpen = (line: string): boolean => open.some(([place]) => line.startsWith(place))
    expect(lines.filter((line) => !isOpen(line))).toEqual([])
    const idle = open.filter(([place]) => !lines.some((line) => line.startsWith(place)))
    expect(idle).toEqual([])
  })

  it.each([
    ['const found = /a+/g.test(text)', ['/a+/g']],
    ['const Alias = globalThis.RegExp; new Alias(text)', ['RegExp']],
    ['text.match("a|b"); text.search(`c`)', ['text.match("a|b")', 'text.search(`c`)']],
    ['// /a/\nconst half = (a + b) / 2 / c, text = "/b/" // new RegExp', []],
    ['trie.match("a", (value) => use(value)); text.replaceAll("a", "b"); text.split("/")', []],
  ])('are found in %s', (code, texts) => {
    expect(patternsIn(code)).toEqual(texts)
  })
})
