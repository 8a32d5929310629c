/**
 * The API reference, written from the docstrings as Markdown, one page for each entry of the exports map: a part of the site (`docs.mjs`).
 *
 * TypeDoc reads the sources with a TypeScript of its own, as it can use neither of those that the project has. Both come from `.ci/tools` and are fetched
 * when they are first wanted. What TypeDoc warns of is an error here: something exported without a docstring, a type that a reader meets and cannot look
 * up, a link that leads nowhere.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { root, tools } from './fetch.mjs'

const { exports: packageExports } = JSON.parse(
  readFileSync(path.join(root, 'package.json'), 'utf8'),
)

/** Source of each entry → the name of its page: `mqwire`, `wire`, `transport/tcp`. */
const pages = new Map(
  Object.entries(packageExports)
    .filter(([, entry]) => typeof entry !== 'string')
    .map(([name, { types }]) => [
      path.join(root, types.replace('./dist/', 'src/').replace('.d.ts', '.ts')),
      name === '.' ? 'mqwire' : name.slice(2),
    ]),
)

const documented = [
  'Module',
  'Class',
  'Interface',
  'TypeAlias',
  'Function',
  'Variable',
  'Property',
  'Method',
  'Accessor',
  'Enum',
  'EnumMember',
]

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
  groupOrder: [
    'Constructors',
    'Properties',
    'Functions',
    'Methods',
    'Classes',
    'Interfaces',
    'Type Aliases',
    'Variables',
  ],
  sort: ['source-order'],
  sortEntryPoints: false,
  validation: {
    notDocumented: true,
    notExported: true,
    invalidLink: true,
    invalidPath: true,
    rewrittenLink: true,
    unusedMergeModuleWith: true,
  },
  requiredToBeDocumented: documented,
  // What only the package itself may touch.
  intentionallyNotExported: [
    'PropertyNotes',
    'TopicTable',
    'Slots',
    'Faults',
    'Reread',
    'src/testing/broker/common/broker-session.ts:SessionSubscription',
  ],
  // `type` in unions of packets, which says itself what it is.
  intentionallyNotDocumented: [
    'wire.PacketInput.__type.type',
    'testing.ScriptedPeer.all.__type.type',
    'testing.ScriptedPeer.last.__type.type',
  ],
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
  pageTitleTemplates: {
    module: ({ name }) => (name === 'mqwire' ? name : `mqwire/${name}`),
    member: '{name}',
  },
}

/** What the sources say in a way that suits compilers, put as readers think of it. Before the pages are written. */
function tidy(app, { Converter, ReflectionFlag, ReflectionKind }, pages) {
  const names = [...pages].map(([file, name]) => [
    file
      .replaceAll('\\', '/')
      .replace(/\.ts$/, '')
      .replace(/\/index$/, ''),
    name,
  ])

  function rename(module) {
    const found = names.filter(([file]) => file.endsWith(`/${module.name}`))
    if (found.length !== 1) throw new Error(`no page for ${module.name}`)
    module.name = found[0][1]
  }

  // A getter is a property that cannot be written to.
  function flatten(accessor) {
    const { getSignature } = accessor
    if (getSignature === undefined || accessor.setSignature !== undefined) return
    accessor.kind = ReflectionKind.Property
    accessor.type = getSignature.type
    accessor.comment = getSignature.comment
    accessor.setFlag(ReflectionFlag.Readonly, true)
    accessor.getSignature = undefined
  }

  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) rename(module)
    for (const accessor of project.getReflectionsByKind(ReflectionKind.Accessor)) flatten(accessor)
    for (const each of project.getReflectionsByKind(ReflectionKind.Parameter))
      if (each.name === '__namedParameters') each.name = 'options'
    // Users meet it as `Client`, which has everything of it.
    const shapes = ReflectionKind.Class | ReflectionKind.Interface | ReflectionKind.Reference
    for (const each of project.getReflectionsByKind(shapes))
      if (each.name === 'BaseClient') project.removeReflection(each)
    // A module that is its own default export.
    for (const each of project.getReflectionsByKind(ReflectionKind.Namespace))
      if (each.name === 'default') project.removeReflection(each)
    // What `for await` and `await using` call is in the text of what has it.
    for (const each of project.getReflectionsByKind(ReflectionKind.Method))
      if (each.name.startsWith('[')) project.removeReflection(each)
  })
}

/**
 * Markdown without what a reader of a client library does not need, such as where a member is inherited from, and each call with its parameters in one line.
 * Made of typedoc and its Markdown plugin, which are not installed beside this file.
 */
function plainTheme({ ReflectionKind }, { MarkdownTheme, MarkdownThemeContext }) {
  class Context extends MarkdownThemeContext {
    constructor(...given) {
      super(...given)
      const { partials, helpers } = this
      const text = (comment) => helpers.getCommentParts(comment.summary).trim()

      const tags = (comment) =>
        comment.blockTags
          .filter(({ tag }) => tag === '@throws' || tag === '@returns' || tag === '@example')
          .map(({ tag, content }) =>
            tag === '@throws'
              ? `Throws ${helpers.getCommentParts(content).trim()}`
              : helpers.getCommentParts(content).trim(),
          )

      // The summary, and what is thrown in a paragraph of its own; in a table all in one cell.
      const comment = (
        model,
        { isTableColumn = false, showSummary = true, showTags = true } = {},
      ) => {
        const parts = [
          ...(showSummary ? [text(model)] : []),
          ...(showTags ? tags(model) : []),
        ].filter((part) => part !== '')
        return isTableColumn ? parts.join(' ').replaceAll('\n', ' ') : parts.join('\n\n')
      }

      const parameters = (model) =>
        (model.parameters ?? [])
          .filter((each) => each.comment !== undefined)
          .map((each) => `- \`${each.name}\`: ${text(each.comment)}`)

      const signature = (model, { hideTitle = false, accessor } = {}) => {
        const about = model.comment ?? model.parent?.comment
        const title = hideTitle ? '' : partials.signatureTitle(model, { accessor })
        return [title, about === undefined ? '' : comment(about), parameters(model).join('\n')]
          .filter((part) => part !== '')
          .join('\n\n')
      }

      // The fields of a property stand in rows of their own below it.
      const reflectionType = ({ declaration }, options) => {
        if (declaration.signatures?.length === 1 && !declaration.children)
          return this.partials.functionType(declaration.signatures)
        return declaration.children && declaration.parent?.kind === ReflectionKind.Property
          ? '`object`'
          : this.partials.declarationType(declaration, options)
      }

      // Users meet it as `Client`.
      const referenceType = (model, options) =>
        partials.referenceType(model, options).replace('BaseClient', 'Client')

      const nothing = () => ''
      this.partials = {
        ...partials,
        comment,
        signature,
        reflectionType,
        referenceType,
        hierarchy: nothing,
        inheritance: nothing,
      }
    }
  }

  return class extends MarkdownTheme {
    getRenderContext(page) {
      return new Context(this, page, this.application.options)
    }
  }
}

/** Writes the pages into a folder. @throws Error when TypeDoc warned of something, which it has printed */
export async function writeReference(out) {
  const { folder, reason } = await tools()
  if (folder === undefined) throw new Error(`typedoc cannot be had: ${reason}`)
  const find = createRequire(path.join(folder, 'package.json')).resolve
  const typedoc = await import(pathToFileURL(find('typedoc')).href)
  const markdown = await import(pathToFileURL(find('typedoc-plugin-markdown')).href)
  const app = await typedoc.Application.bootstrapWithPlugins({
    plugin: [find('typedoc-plugin-markdown')],
    logLevel: 'Warn',
  })
  app.renderer.defineTheme('plain', plainTheme(typedoc, markdown))
  for (const [name, value] of Object.entries({
    ...settings,
    outputs: [{ name: 'markdown', path: out }],
  }))
    app.options.setValue(name, value)
  tidy(app, typedoc, pages)
  const project = await app.convert()
  if (project === undefined) throw new Error('the sources do not compile')
  app.validate(project)
  await app.generateOutputs(project)
  if (app.logger.hasErrors() || app.logger.hasWarnings())
    throw new Error('the docstrings have gaps: see above')
}
