/** The sources of a checkout, as the parser of TypeScript reads them: their text without comments and literals, their imports, their regular expressions. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
// The compiler of this project has no parser to call; the one that checks the declarations for old versions has.
import ts from 'typescript-5.2'

export const root = fileURLToPath(new URL('../../..', import.meta.url))

/** A module's path below src, with `/`, to its text. */
export type Sources = ReadonlyMap<string, string>

/** Every TypeScript file below `src` (declaration files too) of this checkout, or of another. */
export function readSources(checkout: string = root): Sources {
  const folder = path.join(checkout, 'src')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  return new Map(
    names
      .sort()
      .map((name) => [
        name.split(path.sep).join('/'),
        readFileSync(path.join(folder, name), 'utf8'),
      ]),
  )
}

export const parsed = (code: string): ts.SourceFile =>
  ts.createSourceFile('file.ts', code, ts.ScriptTarget.Latest, true)

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

/** The text with comments, strings, templates and regular expressions as spaces; every offset and line stays where it was. */
export function blank(code: string): string {
  const file = parsed(code)
  let out = ''
  const space = (end: number): void => {
    out += code.slice(out.length, end).replace(/[^\n]/g, ' ')
  }
  const visit = (node: ts.Node): void => {
    if (ts.isJSDoc(node)) return
    const children = node.getChildren(file)
    if (children.length > 0) return children.forEach(visit)
    space(node.getStart(file))
    const isLiteral =
      ts.isLiteralExpression(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddleOrTemplateTail(node)
    if (isLiteral && !ts.isNumericLiteral(node)) space(node.end)
    else out += node.getText(file)
  }
  visit(file)
  return out
}

/** One import of a module, in whatever form. */
export interface Import {
  /** As written: `./packets.js`, `node:net`, `ws`; empty where it is no literal. */
  readonly specifier: string
  /** `type`: erased (`import type`, `export type … from`); `value`: loaded with the module; `dynamic`: `import()`; `require`. */
  readonly kind: 'type' | 'value' | 'dynamic' | 'require'
}

/** Every import and re-export of a module, in whatever form. */
export function importsOf(code: string): Import[] {
  const found: Import[] = []
  const add = (kind: Import['kind'], given: ts.Node | undefined): void =>
    void found.push({ kind, specifier: given && ts.isStringLiteralLike(given) ? given.text : '' })
  walk(parsed(code), (node) => {
    if (ts.isImportDeclaration(node))
      add(node.importClause?.isTypeOnly ? 'type' : 'value', node.moduleSpecifier)
    else if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined)
      add(node.isTypeOnly ? 'type' : 'value', node.moduleSpecifier)
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
      add('dynamic', node.argument.literal)
    else if (!ts.isCallExpression(node)) return
    else if (node.expression.kind === ts.SyntaxKind.ImportKeyword) add('dynamic', node.arguments[0])
    else if (ts.isIdentifier(node.expression) && node.expression.text === 'require')
      add('require', node.arguments[0])
  })
  return found
}

/** Methods of strings that turn a string argument into a pattern. */
const converting = ['match', 'matchAll', 'search']

/** Every regular expression in a file: literals, `RegExp` by whatever name, and string methods that make one of their argument. */
export function patternsIn(code: string): string[] {
  const found: string[] = []
  walk(parsed(code), (node) => {
    if (isPattern(node)) found.push(node.getText())
  })
  return found
}

// Types are not known here: `match` and the like count where their one argument is a text.
function isPattern(node: ts.Node): boolean {
  if (ts.isRegularExpressionLiteral(node)) return true
  if (ts.isIdentifier(node) && node.text === 'RegExp') return !ts.isTypeReferenceNode(node.parent)
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false
  const [first, second] = node.arguments
  const isText = first && (ts.isStringLiteralLike(first) || ts.isTemplateExpression(first))
  return isText === true && second === undefined && converting.includes(node.expression.name.text)
}
