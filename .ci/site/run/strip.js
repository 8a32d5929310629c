/**
 * Makes a program of a page one that a worker can import: without types, on the same lines, and with addresses instead of names of modules.
 *
 * Import maps have no effect in workers, so the names are replaced here.
 */
import { init, parse } from 'es-module-lexer'
import { transform } from 'sucrase'
import { parse as tokensOf } from 'sucrase/dist/esm/parser/index.js'
import { ContextualKeyword } from 'sucrase/dist/esm/parser/tokenizer/keywords.js'
import { TokenType } from 'sucrase/dist/esm/parser/tokenizer/types.js'
import { fileOf, modules } from '../kinds.mjs'

await init

const lineAt = (text, position) => text.slice(0, position).split('\n').length

/** Tokens of a program; undefined when it cannot be parsed so. */
function parsed(program, isJsx) {
  try {
    return tokensOf(program, isJsx, true, false).tokens
  } catch {
    return undefined
  }
}

const { _declare, _module, _namespace } = ContextualKeyword

/** Whether a namespace begins here, other than in a declaration. */
function isNamespace(tokens, index) {
  const [before, { contextualKeyword, isType }, name, after] = [-1, 0, 1, 2].map(
    (offset) => tokens[index + offset] ?? {},
  )
  return (
    isType &&
    [_module, _namespace].includes(contextualKeyword) &&
    before.contextualKeyword !== _declare &&
    name.type === TokenType.name &&
    [TokenType.braceL, TokenType.dot].includes(after.type)
  )
}

/** @throws SyntaxError for what is TypeScript and would need a compiler */
function refuseUnsupported(program) {
  const plain = parsed(program, false)
  const tokens = plain ?? parsed(program, true) ?? []
  for (const [index, { type, start }] of tokens.entries()) {
    const isJsx = plain === undefined && type === TokenType.jsxTagStart
    const what =
      (isJsx && 'JSX is') ||
      (type === TokenType.at && 'Decorators are') ||
      (isNamespace(tokens, index) && 'Namespaces are')
    if (what) throw new SyntaxError(`${what} not supported here (line ${lineAt(program, start)})`)
  }
}

/** What stands for the name of a module. @throws TypeError when a page does not have it */
function addressOf(name, line) {
  if (modules.includes(name)) return new URL(fileOf(name), import.meta.url).href
  if (/^(?!node:)[a-z][a-z\d+.-]*:|^\.*\//i.test(name)) return name
  const reason = /^(?:node:|mqwire\/)/.test(name) ? 'Node only' : 'pages have mqwire alone'
  throw new TypeError(`${name} is not there in a page: ${reason} (line ${line})`)
}

/** @throws SyntaxError when it is no TypeScript; TypeError when it imports what a page does not have */
export function strip(program) {
  const text = program.replace(/^#!/, '//')
  refuseUnsupported(text)
  const { code } = transform(text, { transforms: ['typescript'], disableESTransforms: true })
  const [imports] = parse(code)
  return imports.reduceRight((before, { specifier, start, end }) => {
    if (typeof specifier !== 'string') return before
    const address = JSON.stringify(addressOf(specifier, lineAt(code, start)))
    // The positions of a static import are inside its quotes, those of a dynamic one outside.
    const edge = /['"`]/.test(code[start]) ? 0 : 1
    return before.slice(0, start - edge) + address + before.slice(end + edge)
  }, code)
}
