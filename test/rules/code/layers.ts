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

/** By layer: the folders of `src`, and the rooms of `src/client` and of the broker, from the ground up. `errors` may be imported by all of them. */
const rules: Readonly<Record<string, Rule>> = {
  errors: { values: [] },
  wire: { values: [] },
  transport: { values: [] },
  wasm: { values: ['wire'] },
  auth: { values: [] },
  aws: { values: ['common'] },
  'store/base': { values: [] },
  store: { values: ['store/base', 'common', 'durable'] },
  queue: { values: ['wire', 'common', 'parsing', 'store/base'], types: ['api'] },
  members: { values: ['common', 'platform', 'parsing'], types: ['api'] },
  pool: { values: ['common', 'parsing', 'members'], types: ['api'] },
  tracing: { values: ['common'], types: ['api'] },
  group: { values: ['common', 'parsing', 'delivery', 'members'], types: ['api'] },
  // rooms of the client
  api: { values: [], types: ['wire', 'transport', 'store/base'] },
  common: { values: ['wire'], types: ['api', 'store/base'] },
  session: { values: ['wire', 'common'], types: ['api'] },
  memory: { values: [], types: ['wire'] },
  platform: { values: ['common'], types: ['wire', 'transport', 'memory'] },
  parsing: { values: ['wire', 'common'], types: ['api', 'platform', 'transport', 'store/base'] },
  context: { values: [], types: ['wire', 'api', 'common', 'session', 'platform', 'parsing'] },
  connection: { values: ['wire', 'common', 'session', 'memory'], types: ['context', 'parsing', 'platform', 'transport'] },
  delivery: { values: ['wire', 'common', 'session', 'memory', 'parsing'], types: ['api', 'context', 'platform'] },
  publishing: { values: ['wire', 'common', 'session', 'parsing'], types: ['api', 'context', 'platform'] },
  dialling: { values: ['common', 'session', 'parsing'], types: ['wire', 'transport', 'api', 'context', 'platform'] },
  subscribing: { values: ['wire', 'common', 'session'], types: ['api', 'context', 'parsing', 'delivery'] },
  requesting: { values: ['wire', 'common', 'parsing', 'delivery'], types: ['api', 'platform'] },
  fleet: { values: ['wire', 'common'], types: ['api'] },
  // Comes with a store.
  durable: {
    values: ['wire', 'common', 'session', 'parsing', 'delivery', 'publishing', 'store/base'],
    types: ['api', 'context', 'platform', 'connection'],
  },
  lifecycle: {
    values: ['wire', 'common', 'session', 'platform', 'parsing', 'connection', 'delivery', 'publishing', 'dialling', 'subscribing'],
    types: ['transport', 'api', 'context'],
  },
  client: {
    values: ['wire', 'common', 'platform', 'parsing', 'delivery', 'subscribing', 'requesting', 'fleet', 'lifecycle'],
    types: ['transport', 'api'],
  },
  entry: { values: ['client', 'transport', 'wasm', 'platform', 'memory', 'parsing', 'durable'], types: ['api', 'lifecycle'] },
  typed: { values: ['common'], types: ['api'] },
  asyncapi: { values: ['typed'] },
  react: { values: [], types: ['typed'] },
  compat: { values: ['common'] },
  // rooms of the broker
  'broker/common': { values: ['wire', 'transport'] },
  'broker/state': { values: ['wire', 'broker/common'] },
  'broker/connection': { values: ['wire', 'broker/common', 'broker/state'], types: ['transport'] },
  broker: { values: ['wire', 'transport', 'broker/common', 'broker/state', 'broker/connection'] },
  testing: {
    values: ['wire', 'transport', 'client', 'common', 'memory', 'platform', 'parsing', 'durable', 'broker', 'broker/common'],
    types: ['api', 'store/base'],
  },
}

/** The two modules that choose transports. */
const entries = ['client/node.ts', 'client/browser.ts']

/** Modules that may import Node builtins. */
const nodeModules = [
  'client/node.ts',
  'store/file.ts',
  'store/file-lock.ts',
  'store/file-log.ts',
  'store/folder.ts',
  'store/level.ts',
  'transport/agent.ts',
  'transport/socket.ts',
  'transport/socket-options.ts',
  'transport/tcp.ts',
  'transport/tls.ts',
  'transport/tls-context.ts',
  'transport/unix.ts',
  'transport/websocket-node.ts',
]

/** The packages that may be imported, with where. */
const packages: Readonly<Record<string, readonly string[]>> = {
  ws: ['transport/websocket-node.ts'],
  react: ['react/index.ts', 'react/operations.ts', 'react/showing.ts'],
  'classic-level': ['store/level.ts'],
  msgpackr: ['typed/msgpack.ts'],
  'cbor-x/index-no-eval': ['typed/cbor.ts'],
  '@opentelemetry/api': [
    'tracing/carrier.ts',
    'tracing/measured.ts',
    'tracing/options.ts',
    'tracing/trace-context.ts',
    'tracing/tracing.ts',
    'tracing/turn.ts',
  ],
  // The package itself, so that the platform's entry is taken.
  mqwire: [
    'group/index.ts',
    'pool/index.ts',
    'react/index.ts',
    'react/operations.ts',
    'react/shared.ts',
    'react/showing.ts',
    ...['backing', 'calls', 'client', 'errors', 'listeners', 'options', 'packets'].map((name) => `compat/${name}.ts`),
  ],
}

const builtins = new Set(builtinModules)

/** The layer that a module belongs to, or undefined when the rule knows none. */
export function layerOf(file: string): string | undefined {
  if (file === 'errors.ts' || file === 'printing.ts') return 'errors'
  if (entries.includes(file)) return 'entry'
  const layer = nameOf(file.split('/') as [string, ...string[]])
  return layer !== undefined && layer in rules ? layer : undefined
}

function nameOf([folder, room, ...rest]: [string, ...string[]]): string | undefined {
  if (room === undefined) return undefined
  if (folder === 'client' && rest.length > 0) return room
  if (folder === 'store' && rest.length > 0) return `${folder}/${room}`
  return folder === 'testing' && room === 'broker' ? ['broker', ...rest.slice(0, -1)].join('/') : folder
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
  if (from === to || to === 'errors' || rule.values.includes(to)) return undefined
  if (rule.types?.includes(to)) return each.kind === 'type' ? undefined : `imports more than types of ${to}: ${each.specifier}`
  return `${from} must not import ${to}: ${each.specifier}`
}

function objectToPackage(file: string, specifier: string): string | undefined {
  const name = specifier.replace(/^node:/, '')
  if (specifier.startsWith('node:') || builtins.has(name)) {
    if (!specifier.startsWith('node:')) return `imports a Node builtin without node: ${specifier}`
    return nodeModules.includes(file) ? undefined : `must not import a Node builtin: ${specifier}`
  }
  return packages[specifier]?.includes(file) ? undefined : `must not import a package: ${specifier}`
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

/** What the rule allows and nobody does, so that it could go: layers without a module, imports of a layer, builtins, packages. */
export function unusedAllowances(sources: Sources): string[] {
  const used = new Set<string>()
  for (const [file, code] of sources) {
    const from = layerOf(file)
    used.add(`${from}`)
    for (const { specifier } of importsOf(code)) {
      if (specifier.startsWith('.')) used.add(`${from} ${layerOf(resolve(file, specifier))}`)
      else used.add(`${file} ${specifier.startsWith('node:') ? 'node:' : specifier}`)
    }
  }
  const layers = Object.entries(rules).flatMap(([from, { values, types = [] }]) => [from, ...[...values, ...types].map((to) => `${from} ${to}`)])
  const modules = [
    ...nodeModules.map((file) => `${file} node:`),
    ...Object.entries(packages).flatMap(([name, files]) => files.map((file) => `${file} ${name}`)),
  ]
  return [...layers, ...modules].filter((allowance) => !used.has(allowance))
}
