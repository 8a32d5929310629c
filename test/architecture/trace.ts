/**
 * Makes functions of a TypeScript source say when they are entered and left, so that a run can be followed from room to room.
 *
 * Text is only inserted. What is asynchronous counts as entered and left at once: what follows its first wait is entered by nobody.
 */
import { createRequire } from 'node:module'
import type * as TypeScript from 'typescript-5.2'

const ts = createRequire(import.meta.url)('typescript-5.2') as typeof TypeScript

/** The source, with a call of `globalThis[hook]` around the body of each function; `place` is handed to it. */
export function traced(source: string, file: string, hook: string, place: string): string {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.ES2022, true)
  const insertions: { readonly at: number; readonly text: string }[] = []
  const visit = (node: TypeScript.Node): void => {
    ts.forEachChild(node, visit)
    // A property that is read is no step, however it comes about.
    if (!ts.isFunctionLike(node) || ts.isGetAccessor(node) || !('body' in node) || node.body === undefined) return
    const body = node.body as TypeScript.ConciseBody
    const enter = `globalThis.${hook}?.(${JSON.stringify(place)})`
    const later = isLater(node)
    if (ts.isBlock(body)) {
      insertions.push({ at: body.getStart(tree) + 1, text: later ? `${enter}();` : `const traceLeft=${enter};try{` })
      if (!later) insertions.push({ at: body.end - 1, text: '}finally{traceLeft?.()}' })
    } else if (!later) {
      insertions.push({ at: body.getStart(tree), text: `((traceLeft)=>{try{return ` })
      insertions.push({ at: body.end, text: `}finally{traceLeft?.()}})(${enter})` })
    }
  }
  visit(tree)
  // Of several at one place the inner ones, which were found first, close first and open last.
  const opening = ({ text }: { readonly text: string }): boolean => !text.startsWith('}')
  const ordered = insertions.map((insertion, index) => ({ ...insertion, index: opening(insertion) ? -index : index }))
  ordered.sort((one, other) => one.at - other.at || one.index - other.index)
  let code = ''
  let at = 0
  for (const insertion of ordered) {
    code += source.slice(at, insertion.at) + insertion.text
    at = insertion.at
  }
  return code + source.slice(at)
}

function isLater(node: TypeScript.Node): boolean {
  const { asteriskToken, modifiers } = node as TypeScript.FunctionDeclaration
  return asteriskToken !== undefined || modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) === true
}
