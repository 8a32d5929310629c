/**
 * Reads TypeScript source as text: blanks comments and the inside of literals, and lists the imports of a module.
 *
 * A scanner, not a parser: it knows comments, strings, templates and regular expressions, which is all that stands between a text search and
 * a false hit. It assumes source that compiles and that the formatter has been over.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout. */
export const root = fileURLToPath(new URL('../../..', import.meta.url))

/** A module's path below src, with `/`, to its text. */
export type Sources = ReadonlyMap<string, string>

/** Every TypeScript file below `src` (declaration files too) of this checkout, or of another. */
export function readSources(checkout: string = root): Sources {
  const folder = path.join(checkout, 'src')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  const entries = names
    .sort()
    .map((name): [string, string] => [
      name.split(path.sep).join('/'),
      readFileSync(path.join(folder, name), 'utf8'),
    ])
  return new Map(entries)
}

/** One import of a module, in whatever form. */
export interface Import {
  /** As written: `./packets.js`, `node:net`, `ws`. */
  readonly specifier: string
  /** `type`: erased (`import type`, `export type … from`); `value`: loaded with the module; `dynamic`: `import()`; `require`. */
  readonly kind: 'type' | 'value' | 'dynamic' | 'require'
}

const space = (text: string) => text.replace(/[^\n]/g, ' ')

// A slash begins a regular expression where no operand can have ended.
const beforeRegExp =
  /(?:^|[-+*%=!&|^~<>?:;,({[\n]|\b(?:return|typeof|case|in|of|delete|void|do|else|throw|await|yield))\s*$/

const comment = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y
const quoted = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y
const regExp = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y
const plain = /[^'"`/{}]+|[\s\S]/y

function match(pattern: RegExp, code: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(code)?.[0]
}

/** The text with comments and the inside of strings, templates and regular expressions as spaces; every offset and line stays where it was. */
export function blank(code: string): string {
  let out = ''
  // One entry per open brace: whether it is the `${` of a template.
  const braces: boolean[] = []
  while (out.length < code.length) {
    const at = out.length
    const character = code[at] as string
    const ending = character === '}' && braces.pop() === true
    if (character === '`' || ending) {
      const text = templatePart(code, at)
      if (text.endsWith('{')) braces.push(true)
      out += `${character}${space(text.slice(1, -1))}${text.slice(1).slice(-1)}`
      continue
    }
    if (character === '{') braces.push(false)
    out += token(code, at, out)
  }
  return out
}

// From a backtick, or the brace that closes an expression, to the next `${` or the end of the template.
function templatePart(code: string, start: number): string {
  let at = start + 1
  while (at < code.length) {
    if (code[at] === '\\') at += 2
    else if (code[at] === '`') return code.slice(start, at + 1)
    else if (code.startsWith('${', at)) return code.slice(start, at + 2)
    else at += 1
  }
  return code.slice(start)
}

function token(code: string, at: number, before: string): string {
  const note = match(comment, code, at)
  if (note !== undefined) return space(note)
  const text = match(quoted, code, at)
  if (text !== undefined) return `${text[0]}${space(text.slice(1, -1))}${text[0]}`
  const pattern =
    code[at] === '/' && beforeRegExp.test(before.slice(-80)) ? match(regExp, code, at) : undefined
  if (pattern !== undefined) return space(pattern)
  return match(plain, code, at) as string
}

const clause = String.raw`(?:\*(?:\s*as\s+[\w$]+)?|\{[^{}]*\}|[\w$]+(?:\s*,\s*(?:\{[^{}]*\}|\*\s*as\s+[\w$]+))?)`
const fromClause = new RegExp(
  String.raw`\b(?:import|export)\s+(type\s+(?!from\b))?${clause}\s*from\s*(?=['"])`,
  'g',
)
const bare = /\bimport\s*(?=['"])/g
const call = /\b(import|require)\s*\(\s*(?=['"])/g

/** Every import and re-export of a module, in whatever form. An `import()` whose argument is no literal is listed with an empty specifier. */
export function importsOf(code: string): Import[] {
  const text = blank(code)
  const literal = (found: RegExpExecArray) => {
    const start = found.index + found[0].length
    return code.slice(start + 1, text.indexOf(text[start] as string, start + 1))
  }
  const found: Import[] = []
  for (const each of text.matchAll(fromClause))
    found.push({ specifier: literal(each), kind: each[1] === undefined ? 'value' : 'type' })
  for (const each of text.matchAll(bare)) found.push({ specifier: literal(each), kind: 'value' })
  for (const each of text.matchAll(call))
    found.push({ specifier: literal(each), kind: each[1] === 'import' ? 'dynamic' : 'require' })
  for (const _ of text.matchAll(/\bimport\s*\(\s*(?!['"\s])/g))
    found.push({ specifier: '', kind: 'dynamic' })
  return found
}
