/** The import rule: which layer of `src` may import which, and how. */
import { builtinModules } from 'node:module'
import path from 'node:path'
import { type Import, importsOf, type Sources } from './source.js'

/**
 * By layer, from the ground up: the folders of `src`, and the rooms of `src/client` and of the broker. Behind the colon what may be imported besides the
 * layer itself and `errors`, and behind the bar that of which only types may be.
 */
const rules: Readonly<
  Record<string, readonly [values: readonly string[], types: readonly string[]]>
> = Object.fromEntries(
  [
    'errors: |',
    'wire: |',
    'transport: |',
    'wasm: wire |',
    'auth: |',
    'common: wire |',
    'aws: common |',
    'store/base: |',
    'store: store/base durable access |',
    'queue: wire common options store/base access |',
    'members: common platform options access |',
    'pool: common options members access |',
    'tracing: common access | options',
    'group: common options deliver members access |',
    'access: | store/base options',
    'platform: common | wire transport',
    'options: wire common platform | transport store/base',
    'session: wire common | options',
    'context: common options | wire platform session',
    'connection: wire common session options | context platform transport',
    'deliver: wire common session options access | context platform connection',
    'publish: wire common session options | context platform connection access',
    'reconnect: common session options platform | wire transport context',
    'subscribe: wire common session options access | context deliver connection',
    'request: wire common options deliver | platform',
    'durable: wire common session options deliver publish store/base access | context platform connection',
    'lifecycle: wire common session platform options connection deliver publish reconnect subscribe access | transport context',
    'client: wire common platform options deliver subscribe request lifecycle access context | transport',
    'entry: client transport wasm platform common options durable | lifecycle',
    'typed: common request access | options',
    'asyncapi: typed |',
    'react: | typed',
    'compat: common access options |',
    'cli: |',
    'broker/common: wire transport |',
    'broker/state: wire broker/common |',
    'broker/connection: wire broker/common broker/state | transport',
    'broker: wire transport broker/common broker/state broker/connection |',
    'testing: wire transport client common platform options durable broker broker/common | store/base',
  ].map((line) => {
    const [layer = '', values = '', types = ''] = line.split(/: | ?\|/)
    const words = (text: string): string[] => text.split(' ').filter((word) => word !== '')
    return [layer, [words(values), words(types)]]
  }),
)

/** Modules of `src/client` itself that are a layer each. */
const own: Readonly<Record<string, string>> = {
  'access.ts': 'access',
  'context.ts': 'context',
  'hooks.ts': 'context',
  'platform.ts': 'platform',
}

const entries = ['client/node.ts', 'client/browser.ts']

const nodeModules = [
  'cli/',
  'client/node.ts',
  ...['file', 'file-lock', 'file-log', 'folder', 'level'].map((name) => `store/${name}.ts`),
  ...[
    'agent',
    'socket',
    'socket-options',
    'tcp',
    'tls',
    'tls-context',
    'unix',
    'websocket-node',
  ].map((name) => `transport/${name}.ts`),
]

/** The packages that may be imported, with where: files, and folders with a slash at the end. */
const packages: Readonly<Record<string, readonly string[]>> = {
  // The command line stands on what is published, and on packages that the build puts into it.
  ...Object.fromEntries(
    [
      'mqwire/typed',
      'mqwire/wire',
      'mqwire/testing',
      'commander',
      'picocolors',
      'string-width',
      'uplot/dist/uPlot.iife.min.js',
      'uplot/dist/uPlot.min.css',
    ].map((name) => [name, ['cli/']]),
  ),
  ws: ['transport/websocket-node.ts'],
  react: ['react/index.ts', 'react/operations.ts', 'react/showing.ts'],
  'classic-level': ['store/level.ts'],
  msgpackr: ['typed/msgpack.ts'],
  'cbor-x/index-no-eval': ['typed/cbor.ts'],
  '@opentelemetry/api': ['carrier', 'measured', 'options', 'trace-context', 'tracing', 'turn'].map(
    (name) => `tracing/${name}.ts`,
  ),
  // The package itself, so that the platform's entry is taken.
  mqwire: [
    'cli/',
    ...[
      'group/index',
      'pool/index',
      'react/index',
      'react/operations',
      'react/shared',
      'react/showing',
    ].map((name) => `${name}.ts`),
    ...['backing', 'calls', 'client', 'errors', 'listeners', 'options', 'packets'].map(
      (name) => `compat/${name}.ts`,
    ),
  ],
}

const isIn = (places: readonly string[], file: string): boolean =>
  places.some((place) => (place.endsWith('/') ? file.startsWith(place) : file === place))

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
  if (folder === 'client') return rest.length > 0 ? room : (own[room] ?? folder)
  if (folder === 'store' && rest.length > 0) return `${folder}/${room}`
  return folder === 'testing' && room === 'broker'
    ? ['broker', ...rest.slice(0, -1)].join('/')
    : folder
}

function resolve(from: string, specifier: string): string {
  return path.posix.join(path.posix.dirname(from), specifier).replace(/\.js$/, '.ts')
}

function objectToRelative(file: string, each: Import, sources: Sources): string | undefined {
  // Data, which the build puts into the command.
  if (each.specifier.endsWith('.json') && layerOf(file) === 'cli') return undefined
  const target = resolve(file, each.specifier)
  if (!sources.has(target)) return `imports ${each.specifier}, which is no module`
  const from = layerOf(file)
  const to = layerOf(target)
  if (from === undefined || to === undefined) return undefined
  const [values, types] = rules[from] as (typeof rules)[string]
  if (from === to || to === 'errors' || values.includes(to)) return undefined
  if (types.includes(to))
    return each.kind === 'type' ? undefined : `imports more than types of ${to}: ${each.specifier}`
  return `${from} must not import ${to}: ${each.specifier}`
}

function objectToPackage(file: string, specifier: string): string | undefined {
  const name = specifier.replace(/^node:/, '')
  if (specifier.startsWith('node:') || builtins.has(name)) {
    if (!specifier.startsWith('node:')) return `imports a Node builtin without node: ${specifier}`
    return isIn(nodeModules, file) ? undefined : `must not import a Node builtin: ${specifier}`
  }
  return isIn(packages[specifier] ?? [], file)
    ? undefined
    : `must not import a package: ${specifier}`
}

function objectTo(file: string, each: Import, sources: Sources): string | undefined {
  if (each.kind === 'require') return `uses require: ${each.specifier}`
  // Modules of the person at the command line.
  if (each.specifier === '' && layerOf(file) === 'cli') return undefined
  if (each.specifier === '') return 'has an import() of something that is not a literal'
  return /^\.{0,2}\//.test(each.specifier)
    ? objectToRelative(file, each, sources)
    : objectToPackage(file, each.specifier)
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
      else
        used.add(
          `${from === 'cli' ? 'cli/' : file} ${specifier.startsWith('node:') ? 'node:' : specifier}`,
        )
    }
  }
  const layers = Object.entries(rules).flatMap(([from, [values, types]]) => [
    from,
    ...[...values, ...types].map((to) => `${from} ${to}`),
  ])
  const modules = [
    ...nodeModules.map((file) => `${file} node:`),
    ...Object.entries(packages).flatMap(([name, files]) => files.map((file) => `${file} ${name}`)),
  ]
  return [...layers, ...modules].filter((allowance) => !used.has(allowance))
}
