/**
 * How the pages of the API reference look: typedoc's Markdown without what a reader of a client library does not need, such as where a member is
 * inherited from, and each call with its parameters in one line.
 */

/** What the sources say in a way that suits compilers, put as readers think of it. Before the pages are written. */
export function tidy(app, { Converter, ReflectionFlag, ReflectionKind }, pages) {
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

  app.renderer.markdownHooks.on('content.begin', ({ page }) =>
    page.model === page.project
      ? 'Every entry of the package, with all that it exports. Written by `npm run reference` from the docstrings: change those.'
      : '',
  )
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) rename(module)
    for (const accessor of project.getReflectionsByKind(ReflectionKind.Accessor)) flatten(accessor)
    for (const each of project.getReflectionsByKind(ReflectionKind.Parameter)) if (each.name === '__namedParameters') each.name = 'options'
    // Users meet it as `Client`, which has everything of it.
    const shapes = ReflectionKind.Class | ReflectionKind.Interface | ReflectionKind.Reference
    for (const each of project.getReflectionsByKind(shapes)) if (each.name === 'BaseClient') project.removeReflection(each)
    // A module that is its own default export.
    for (const each of project.getReflectionsByKind(ReflectionKind.Namespace)) if (each.name === 'default') project.removeReflection(each)
    // What `for await` and `await using` call is in the text of what has it.
    for (const each of project.getReflectionsByKind(ReflectionKind.Method)) if (each.name.startsWith('[')) project.removeReflection(each)
  })
}

/** The theme, made of typedoc and its Markdown plugin, which are not installed beside this file. */
export function plainTheme({ ReflectionKind }, { MarkdownTheme, MarkdownThemeContext }) {
  class Context extends MarkdownThemeContext {
    constructor(...given) {
      super(...given)
      const { partials, helpers } = this
      const text = (comment) => helpers.getCommentParts(comment.summary).trim()

      const tags = (comment) =>
        comment.blockTags
          .filter(({ tag }) => tag === '@throws' || tag === '@returns' || tag === '@example')
          .map(({ tag, content }) =>
            tag === '@throws' ? `Throws ${helpers.getCommentParts(content).trim()}` : helpers.getCommentParts(content).trim(),
          )

      // The summary, and what is thrown in a paragraph of its own; in a table all in one cell.
      const comment = (model, { isTableColumn = false, showSummary = true, showTags = true } = {}) => {
        const parts = [...(showSummary ? [text(model)] : []), ...(showTags ? tags(model) : [])].filter((part) => part !== '')
        return isTableColumn ? parts.join(' ').replaceAll('\n', ' ') : parts.join('\n\n')
      }

      const parameters = (model) =>
        (model.parameters ?? []).filter((each) => each.comment !== undefined).map((each) => `- \`${each.name}\`: ${text(each.comment)}`)

      const signature = (model, { hideTitle = false, accessor } = {}) => {
        const about = model.comment ?? model.parent?.comment
        const title = hideTitle ? '' : partials.signatureTitle(model, { accessor })
        return [title, about === undefined ? '' : comment(about), parameters(model).join('\n')].filter((part) => part !== '').join('\n\n')
      }

      // The fields of a property stand in rows of their own below it.
      const reflectionType = ({ declaration }, options) => {
        if (declaration.signatures?.length === 1 && !declaration.children) return this.partials.functionType(declaration.signatures)
        return declaration.children && declaration.parent?.kind === ReflectionKind.Property
          ? '`object`'
          : this.partials.declarationType(declaration, options)
      }

      // Users meet it as `Client`.
      const referenceType = (model, options) => partials.referenceType(model, options).replace('BaseClient', 'Client')

      const nothing = () => ''
      this.partials = { ...partials, comment, signature, reflectionType, referenceType, hierarchy: nothing, inheritance: nothing }
    }
  }

  return class extends MarkdownTheme {
    getRenderContext(page) {
      return new Context(this, page, this.application.options)
    }
  }
}
