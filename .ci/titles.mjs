/**
 * The titles of tests, read from their sources without running them: literals, the fixed parts of templates, and the texts of tables given to
 * `it.each` that a caller's pattern marks as citing something.
 *
 * It may assume TypeScript sources that parse. It must never import a test. A title proves nothing by itself; that the test does is what its reader checks.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript-5.2'

const openers = ['it', 'test', 'describe']

// `it` of `it(…)`, `it.each(…)(…)`, `describe.for(…)(…)`; undefined for everything else.
function opener(expression) {
  if (ts.isIdentifier(expression)) return expression.text
  if (ts.isPropertyAccessExpression(expression) || ts.isCallExpression(expression)) return opener(expression.expression)
  return undefined
}

/** Every text in an expression, but not those inside functions; names are followed to the constants of the same file. */
function texts(node, constants, seen = new Set()) {
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isTemplateExpression(node)) return [[node.head, ...node.templateSpans.map((span) => span.literal)].map((part) => part.text).join('…')]
  if (ts.isIdentifier(node)) {
    const value = constants.get(node.text)
    if (value === undefined || seen.has(value)) return []
    seen.add(value)
    return texts(value, constants, seen)
  }
  const found = []
  if (!ts.isFunctionLike(node)) ts.forEachChild(node, (child) => void found.push(...texts(child, constants, seen)))
  return found
}

// `it.each(table)` opens nothing before it is called again, with the title.
function takesTable({ expression }) {
  return ts.isPropertyAccessExpression(expression) && ['each', 'for'].includes(expression.name.text)
}

function titlesOf(call, constants, marked) {
  const [title] = call.arguments
  if (title === undefined) return []
  const titles = texts(title, constants)
  const table = ts.isCallExpression(call.expression) ? call.expression.arguments : []
  return [...titles, ...table.flatMap((argument) => texts(argument, constants)).filter((text) => marked.test(text))]
}

/** The titles in the source of a test file. Texts of tables count when `marked`, a pattern without the flag `g`, finds something in them. */
export function titlesIn(source, marked) {
  const file = ts.createSourceFile('titles.ts', source, ts.ScriptTarget.Latest)
  const constants = new Map()
  const calls = []
  const visit = (node) => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer !== undefined)
      constants.set(node.name.text, node.initializer)
    if (ts.isCallExpression(node) && openers.includes(opener(node.expression)) && !takesTable(node)) calls.push(node)
    ts.forEachChild(node, visit)
  }
  visit(file)
  return calls.flatMap((call) => titlesOf(call, constants, marked))
}

/** File → its titles, for every TypeScript file under the folder, by name. */
export function titlesUnder(folder, marked) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.ts'))
  const names = files.map((file) => file.split(path.sep).join('/')).sort()
  return new Map(names.map((name) => [name, titlesIn(readFileSync(path.join(folder, name), 'utf8'), marked)]))
}
