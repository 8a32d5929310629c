/**
 * Finds every regular expression in TypeScript source: literals, `RegExp` by whatever name, and string methods that make one of their argument.
 *
 * It reads the syntax tree, not text. It may assume source that compiles; types are not known to it, so that `match` and the like count wherever
 * their argument is not known to be no pattern.
 */
import ts from 'typescript-5.2'

/** One place that makes or uses a regular expression. */
export interface Pattern {
  readonly line: number
  /** The literal as written, or the call. */
  readonly text: string
}

/** Methods of strings that turn a string argument into a pattern. */
const converting = new Set(['match', 'matchAll', 'search'])

/** Every pattern in a file. */
export function patternsIn(source: string, name = 'file.ts'): Pattern[] {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true)
  const found: Pattern[] = []
  const visit = (node: ts.Node): void => {
    if (isPattern(node))
      found.push({
        line: file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1,
        text: node.getText(file),
      })
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

function isPattern(node: ts.Node): boolean {
  if (ts.isRegularExpressionLiteral(node)) return true
  // `RegExp` as a value: called, constructed, or handed on.
  if (ts.isIdentifier(node) && node.text === 'RegExp') return !ts.isTypeReferenceNode(node.parent)
  return (
    ts.isCallExpression(node) &&
    ts.isPropertyAccessExpression(node.expression) &&
    convertsText(node.expression.name.text, node.arguments)
  )
}

// `'a'.match(text)` compiles the text; with a function or two arguments it is a method of something else.
function convertsText(name: string, given: readonly ts.Expression[]): boolean {
  const [first] = given
  return (
    converting.has(name) &&
    given.length === 1 &&
    first !== undefined &&
    (ts.isStringLiteralLike(first) || ts.isTemplateExpression(first))
  )
}
