/**
 * The API reference, written from the docstrings: one Markdown page below `docs/reference` for each entry of the exports map.
 *
 *     npm run reference             writes the pages
 *     npm run reference -- --check  fails when the committed pages are not what the docstrings give
 *
 * TypeDoc reads the sources with a TypeScript of its own, because it does not know the one that the project is compiled with. Both come from
 * `.ci/tools` and are fetched when they are first wanted. What it warns of is an error here: something exported without a docstring, a type that a
 * reader meets and cannot look up, a link that leads nowhere.
 */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'
import { root, tools } from './fetch.mjs'
import { plainTheme, tidy } from './reference-theme.mjs'

const { check } = argumentsOf({
  usage: 'npm run reference -- [options]',
  about: 'Writes the API reference below docs/reference from the docstrings.',
  options: { check: { text: 'writes nothing; exits with 1 when the committed pages are not what the docstrings give' } },
}).values
const target = path.join(root, 'docs', 'reference')
const { exports: packageExports } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))

/** Source of each entry → the name of its page: `mqwire`, `wire`, `transport/tcp`. */
const pages = new Map(
  Object.entries(packageExports)
    .filter(([, entry]) => typeof entry !== 'string')
    .map(([name, { types }]) => [path.join(root, types.replace('./dist/', 'src/').replace('.d.ts', '.ts')), name === '.' ? 'mqwire' : name.slice(2)]),
)

const documented = ['Class', 'Interface', 'TypeAlias', 'Function', 'Variable', 'Property', 'Method', 'Accessor', 'Enum', 'EnumMember']

const settings = {
  name: 'mqwire',
  entryPoints: [...pages.keys()],
  tsconfig: path.join(root, '.ci', 'tsconfig.build.json'),
  theme: 'plain',
  router: 'module',
  readme: 'none',
  skipErrorChecking: true,
  disableGit: true,
  disableSources: true,
  excludeExternals: true,
  excludeInternal: true,
  excludePrivate: true,
  groupOrder: ['Constructors', 'Properties', 'Functions', 'Methods', 'Classes', 'Interfaces', 'Type Aliases', 'Variables'],
  sort: ['source-order'],
  sortEntryPoints: false,
  validation: { notDocumented: true, notExported: true, invalidLink: true, invalidPath: true, rewrittenLink: true, unusedMergeModuleWith: true },
  requiredToBeDocumented: documented,
  // What only the package itself may touch.
  intentionallyNotExported: ['PropertyNotes', 'TopicTable', 'Slots', 'Faults', 'src/testing/broker/common/broker-session.ts:SessionSubscription'],
  // `type` in unions of packets, which says itself what it is.
  intentionallyNotDocumented: ['wire.PacketInput.__type.type', 'testing.ScriptedPeer.all.__type.type', 'testing.ScriptedPeer.last.__type.type'],
  excludeReferences: true,
  hideBreadcrumbs: true,
  hidePageHeader: true,
  expandParameters: true,
  indexFormat: 'table',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  propertyMembersFormat: 'table',
  typeDeclarationFormat: 'table',
  tableColumnSettings: {
    hideModifiers: true,
    hideDefaults: true,
    hideInherited: true,
    hideOverrides: true,
    hideSources: true,
    leftAlignHeaders: true,
  },
  pageTitleTemplates: { index: 'API reference', module: ({ name }) => (name === 'mqwire' ? name : `mqwire/${name}`), member: '{name}' },
}

/** Writes the pages into a folder. False when something was to be objected to, which it has printed. */
async function write(out) {
  const { folder, reason } = await tools()
  if (folder === undefined) throw new Error(`typedoc cannot be had: ${reason}`)
  const find = createRequire(path.join(folder, 'package.json')).resolve
  const typedoc = await import(pathToFileURL(find('typedoc')).href)
  const markdown = await import(pathToFileURL(find('typedoc-plugin-markdown')).href)
  const app = await typedoc.Application.bootstrapWithPlugins({ plugin: [find('typedoc-plugin-markdown')], logLevel: 'Warn' })
  app.renderer.defineTheme('plain', plainTheme(typedoc, markdown))
  for (const [name, value] of Object.entries({ ...settings, outputs: [{ name: 'markdown', path: out }] })) app.options.setValue(name, value)
  tidy(app, typedoc, pages)
  const project = await app.convert()
  if (project === undefined) throw new Error('the sources do not compile')
  app.validate(project)
  await app.generateOutputs(project)
  return !app.logger.hasErrors() && !app.logger.hasWarnings()
}

const pagesBelow = (folder) => (existsSync(folder) ? readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.md')) : []).sort()

/** The pages that differ between two folders, or are in one of them only. */
function differences(old, fresh) {
  const names = new Set([...pagesBelow(old), ...pagesBelow(fresh)])
  const read = (folder, name) => (existsSync(path.join(folder, name)) ? readFileSync(path.join(folder, name), 'utf8') : undefined)
  return [...names].filter((name) => read(old, name) !== read(fresh, name))
}

const out = mkdtempSync(path.join(tmpdir(), 'mqwire-reference-'))
try {
  if (!(await write(out))) process.exitCode = 1
  const stale = differences(target, out)
  if (!check) {
    rmSync(target, { recursive: true, force: true })
    cpSync(out, target, { recursive: true })
    console.log(stale.length === 0 ? 'nothing changed' : stale.map((name) => `wrote docs/reference/${name}`).join('\n'))
  } else if (stale.length > 0) {
    throw new Error(`not what the docstrings give: ${stale.join(', ')}\nnpm run reference writes them anew`)
  }
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(out, { recursive: true, force: true })
}
