/**
 * What the pure folders may not say. The compiler proves that no platform is in scope there (`types: []`, `lib: es2023`); this finds what the language
 * itself offers (time, chance, promises), and declarations that would bring a platform back.
 */
import { blank, type Sources } from './source.js'

export const pureFolders = ['wire/', 'client/session/']

const forbidden: readonly (readonly [string, RegExp])[] = [
  ['Date.now', /\bDate\s*\.\s*now\b/],
  ['new Date', /\bnew\s+Date\b/],
  ['Math.random', /\bMath\s*\.\s*random\b/],
  ['Promise', /\bPromise(?:Like)?\b/],
  ['async', /\basync\b/],
  ['await', /\bawait\b/],
  ['globalThis', /\bglobalThis\b/],
  ['dynamic import', /\bimport\s*\(/],
]

// The one declaration of something outside the language: TextDecoder, which every platform has.
const mayDeclare = new Map([['wire/utf8.ts', /^TextDecoder$/]])

function declarations(text: string): string[] {
  return [
    ...text.matchAll(
      /\bdeclare\s+(?:const|let|var|function|class|abstract\s+class|module|namespace|global)\s*([\w$]*)/g,
    ),
  ].map((found) => found[1] as string)
}

/** Every breach of purity in the pure folders, as `file: what`. */
export function purityViolations(sources: Sources): string[] {
  const found: string[] = []
  for (const [file, code] of sources) {
    if (!pureFolders.some((folder) => file.startsWith(folder))) continue
    const text = blank(code)
    for (const [what, pattern] of forbidden) if (pattern.test(text)) found.push(`${file}: ${what}`)
    for (const name of declarations(text))
      if (!mayDeclare.get(file)?.test(name)) found.push(`${file}: declare ${name}`)
  }
  return found
}

/** Files that have a name that says nothing, or open without saying what they are. */
export function fileViolations(sources: Sources): string[] {
  const found: string[] = []
  for (const [file, code] of sources) {
    if (/(?:^|\/)(?:utils?|helpers?|misc)(?:\.|\/)/.test(file))
      found.push(`${file}: a name that says nothing`)
    if (!/^(?:#![^\n]*\n)?\/\*\*\n/.test(code)) found.push(`${file}: no opening comment`)
  }
  return found
}
