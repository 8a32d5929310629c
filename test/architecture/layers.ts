/**
 * The import rule: which layer of `src` may import which, and how.
 *
 * Pure functions over source text, so that the tests can show them a tree that breaks the rule. `layers.test.ts` applies them to the real one.
 */
import { builtinModules } from 'node:module'
import path from 'node:path'
import { type Import, importsOf, type Sources } from './source.js'

interface Rule {
  /** Layers that may be imported in any form, besides the layer itself. */
  readonly values: readonly string[]
  /** Layers of which only types may be imported. */
  readonly types?: readonly string[]
}

const rules: Readonly<Record<string, Rule>> = {
  errors: { values: [] },
  wire: { values: ['errors'] },
  transport: { values: ['errors'] },
  session: { values: ['errors', 'wire'] },
  store: { values: ['errors'], types: ['wire'] },
  wasm: { values: ['errors', 'wire'] },
  client: { values: ['errors', 'wire', 'session'], types: ['transport', 'store'] },
  entry: { values: ['errors', 'wire', 'session', 'client', 'transport', 'wasm'], types: ['store'] },
  auth: { values: ['errors'], types: ['client'] },
  typed: { values: ['errors', 'client'], types: ['wire'] },
  queue: { values: ['errors', 'client', 'typed'], types: ['wire', 'store'] },
  group: { values: ['errors', 'client', 'typed'], types: ['wire', 'store'] },
  cli: { values: ['errors', 'wire', 'transport', 'client', 'entry', 'store', 'typed', 'queue', 'group'] },
  testing: { values: ['errors', 'wire', 'transport', 'session', 'client', 'entry', 'store', 'typed', 'queue', 'group'] },
}

/** The two modules that choose transports. */
const entries = ['client/node.ts', 'client/browser.ts']

/** Where a Node builtin may be imported. */
const nodeModules = /^(?:client\/node|transport\/(?:socket|socket-options|tcp|tls|tls-context|unix|websocket-node)|(?:testing|cli)\/.+)\.ts$/

/** The packages that may be imported, with where. */
const packages: Readonly<Record<string, RegExp>> = { ws: /^transport\/websocket-node\.ts$/ }

const builtins = new Set(builtinModules)

/** The layer that a module belongs to, or undefined when the rule knows none. */
export function layerOf(file: string): string | undefined {
  if (file === 'errors.ts') return 'errors'
  if (entries.includes(file)) return 'entry'
  if (file.startsWith('client/session/')) return 'session'
  const folder = file.includes('/') ? (file.split('/')[0] as string) : undefined
  return folder !== undefined && folder in rules ? folder : undefined
}

/** The file that a relative import means. */
function resolve(from: string, specifier: string): string {
  return path.posix.join(path.posix.dirname(from), specifier).replace(/\.js$/, '.ts')
}

function objectToRelative(file: string, each: Import, sources: Sources): string | undefined {
  const target = resolve(file, each.specifier)
  if (!sources.has(target)) return `imports ${each.specifier}, which is no module`
  const from = layerOf(file)
  const to = layerOf(target)
  if (from === undefined || to === undefined) return undefined
  const rule = rules[from] as Rule
  if (from === to || rule.values.includes(to)) return undefined
  if (rule.types?.includes(to)) return each.kind === 'type' ? undefined : `imports more than types of ${to}: ${each.specifier}`
  return `${from} must not import ${to}: ${each.specifier}`
}

function objectToPackage(file: string, specifier: string): string | undefined {
  const name = specifier.replace(/^node:/, '')
  if (specifier.startsWith('node:') || builtins.has(name)) {
    if (!specifier.startsWith('node:')) return `imports a Node builtin without node: ${specifier}`
    return nodeModules.test(file) ? undefined : `must not import a Node builtin: ${specifier}`
  }
  return packages[specifier]?.test(file) ? undefined : `must not import a package: ${specifier}`
}

function objectTo(file: string, each: Import, sources: Sources): string | undefined {
  if (each.kind === 'require') return `uses require: ${each.specifier}`
  if (each.specifier === '') return 'has an import() of something that is not a literal'
  return /^\.{0,2}\//.test(each.specifier) ? objectToRelative(file, each, sources) : objectToPackage(file, each.specifier)
}

/** Every breach of the import rule, as `file: what`. */
export function layerViolations(sources: Sources): string[] {
  const found: string[] = []
  for (const [file, code] of sources) {
    if (layerOf(file) === undefined) found.push(`${file}: belongs to no layer that the rule knows`)
    for (const each of importsOf(code)) {
      const objection = objectTo(file, each, sources)
      if (objection !== undefined) found.push(`${file}: ${objection}`)
    }
  }
  return found
}

/** Cycles among imports that load (`import()` and types excluded), as `a -> b -> a`; one per set of modules that reach each other. */
export function importCycles(sources: Sources): string[] {
  const graph = new Map<string, string[]>()
  for (const [file, code] of sources) {
    const relative = importsOf(code).filter((each) => each.kind === 'value' && each.specifier.startsWith('.'))
    graph.set(
      file,
      relative.map((each) => resolve(file, each.specifier)),
    )
  }
  const found: string[] = []
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): void => {
    const at = trail.indexOf(file)
    if (at >= 0) found.push([...trail.slice(at), file].join(' -> '))
    if (at >= 0 || done.has(file)) return
    for (const next of graph.get(file) ?? []) visit(next, [...trail, file])
    done.add(file)
  }
  for (const file of graph.keys()) visit(file, [])
  return found
}
