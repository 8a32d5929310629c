/**
 * Builds the fuzz targets with everything they test into one file, with counters in `src`.
 *
 * Used by the runner and by the tests.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { build, type Plugin } from 'esbuild'
import type * as TypeScript from 'typescript-5.2'
import { nodeBundle } from '../support/node-bundle.js'

// The compiler of this project has no parser to call; the one that checks the declarations for old versions has.
const ts = createRequire(import.meta.url)('typescript-5.2') as typeof TypeScript

interface Insertion {
  readonly at: number
  readonly text: string
  /** Of several at one place: those that close come before those that open, inner ones before outer ones. */
  readonly rank: number
}

/** A source with counters. */
interface Instrumented {
  readonly code: string
  /** How many counters it has. */
  readonly count: number
}

/** Inserts counters `name[first]`, `name[first + 1]` and so on. */
export function instrument(
  source: string,
  file: string,
  name: string,
  first: number,
): Instrumented {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.ES2022, true)
  const insertions: Insertion[] = []
  let count = 0
  let depth = 0
  const next = (): string => `${name}[${first + count++}]++`
  const put = (at: number, text: string, rank: number): void => {
    insertions.push({ at, text, rank })
  }
  const expression = (node: TypeScript.Expression): void => {
    put(node.getStart(tree), `(${next()},`, 1000 + depth)
    put(node.end, ')', -depth)
  }
  const statement = (node: TypeScript.Statement): void => {
    if (ts.isBlock(node)) return put(node.getStart(tree) + 1, `${next()};`, 2000)
    put(node.getStart(tree), `{${next()};`, 500 + depth)
    put(node.end, '}', -depth)
  }
  const instrumentNode = (node: TypeScript.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const body = node.body as TypeScript.ConciseBody
      if (ts.isBlock(body)) put(body.getStart(tree) + 1, `${next()};`, 2000)
      else expression(body)
    } else if (ts.isIfStatement(node)) {
      statement(node.thenStatement)
      if (node.elseStatement === undefined) put(node.end, ` else ${next()};`, 0.5 - depth)
      else if (!ts.isIfStatement(node.elseStatement)) statement(node.elseStatement)
    } else if (ts.isConditionalExpression(node)) {
      expression(node.whenTrue)
      expression(node.whenFalse)
    } else if (ts.isBinaryExpression(node) && isChoice(node.operatorToken.kind))
      expression(node.right)
    else if (ts.isIterationStatement(node, false)) statement(node.statement)
    else if (ts.isCaseOrDefaultClause(node)) put(colonEnd(node, tree), `${next()};`, 2000)
    else if (ts.isCatchClause(node)) put(node.block.getStart(tree) + 1, `${next()};`, 2000)
  }
  const visit = (node: TypeScript.Node): void => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node))
      return
    instrumentNode(node)
    depth += 1
    ts.forEachChild(node, visit)
    depth -= 1
  }
  visit(tree)
  return { code: inserted(source, insertions), count }
}

function isChoice(kind: TypeScript.SyntaxKind): boolean {
  return (
    kind === ts.SyntaxKind.AmpersandAmpersandToken ||
    kind === ts.SyntaxKind.BarBarToken ||
    kind === ts.SyntaxKind.QuestionQuestionToken
  )
}

function colonEnd(clause: TypeScript.CaseOrDefaultClause, tree: TypeScript.SourceFile): number {
  const colon = clause.getChildren(tree).find((child) => child.kind === ts.SyntaxKind.ColonToken)
  return (colon ?? clause).end
}

function inserted(source: string, insertions: Insertion[]): string {
  insertions.sort((first, second) => first.at - second.at || first.rank - second.rank)
  const parts: string[] = []
  let at = 0
  for (const insertion of insertions) {
    parts.push(source.slice(at, insertion.at), insertion.text)
    at = insertion.at
  }
  parts.push(source.slice(at))
  return parts.join('')
}

const hits = '__mqwireHits'

/** Where counters are put, in this order: the codec first, so that its counters can be looked at alone. */
const folders = [
  'src/wire',
  'src/client/session',
  'src/client',
  'src/errors.ts',
  'src/wasm',
] as const

/** Bundles `entry` (below the project's root) to `outfile`, whose name it gives. */
export async function bundle(root: string, entry: string, outfile: string): Promise<string> {
  const sources = new Map<string, string>()
  let count = 0
  let wire = 0
  const files = new Set(folders.flatMap((folder) => filesIn(root, folder)))
  for (const file of files) {
    const made = instrument(readFileSync(file, 'utf8'), file, hits, count)
    sources.set(file, made.code)
    count += made.count
    if (file.startsWith(path.join(root, folders[0]))) wire = count
  }
  const counting: Plugin = {
    name: 'counters',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
        const contents = sources.get(file)
        return contents === undefined ? undefined : { contents, loader: 'ts' }
      })
    },
  }
  const js = `const ${hits} = (globalThis.mqwireHits ??= new Uint32Array(${count})); globalThis.mqwireWire = ${wire};`
  await build({ ...nodeBundle, entryPoints: [entry], outfile, banner: { js }, plugins: [counting] })
  return outfile
}

// Sorted, so that a counter has the same number in every build of the same sources.
function filesIn(root: string, folder: string): string[] {
  const full = path.join(root, folder)
  if (folder.endsWith('.ts')) return [full]
  return readdirSync(full, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => path.join(full, name))
}
