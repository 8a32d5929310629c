/**
 * How long the functions of the tests are. A suite is none: a function that holds two tests or more is as long as what it holds.
 *
 * Reads text only, so that the tests can show it a function that breaks the rule.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import type * as TypeScript from 'typescript-5.2'
import { root, type Sources } from './source.js'

const ts = createRequire(import.meta.url)('typescript-5.2') as typeof TypeScript

/** Most lines of one function. */
export const mostLines = 60

/** Every TypeScript file below `test`, by its path there. */
export function readTests(): Sources {
  const folder = path.join(root, 'test')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name))
  return new Map(names.sort().map((name) => [name.split(path.sep).join('/'), readFileSync(path.join(folder, name), 'utf8')]))
}

/** Functions that are too long, as `file:line: lines`. */
export function longFunctions(sources: Sources): string[] {
  return [...sources].flatMap(([file, code]) => {
    // Most files have no such function, and a parser takes its time.
    if (code.split('\n').length <= mostLines) return []
    const source = ts.createSourceFile(file, code, ts.ScriptTarget.ES2022)
    const found: string[] = []
    const lineAt = (position: number): number => source.getLineAndCharacterOfPosition(position).line + 1
    const visit = (node: TypeScript.Node): void => {
      const first = lineAt(node.getStart(source))
      const lines = lineAt(node.end) - first + 1
      if (lines <= mostLines) return
      if (ts.isFunctionLike(node) && testsIn(node, source) < 2) found.push(`${file}:${first}: ${lines}`)
      node.forEachChild(visit)
    }
    source.forEachChild(visit)
    return found
  })
}

/** How many tests are written down in it. */
function testsIn(node: TypeScript.Node, source: TypeScript.SourceFile): number {
  let count = 0
  node.forEachChild((child) => {
    // `it.each(table)` is called in turn.
    const isTest = ts.isCallExpression(child) && /^(?:it|test)\b/.test(child.expression.getText(source))
    if (isTest && !(ts.isCallExpression(node) && node.expression === child)) count += 1
    count += testsIn(child, source)
  })
  return count
}
