/**
 * Makes a program of a page one that a worker can import: without types, on the same lines, and with addresses instead of names of modules.
 *
 * Import maps have no effect in workers, so the names are replaced here.
 */
import { transform } from 'sucrase'
import { fileOf, modules } from '../kinds.mjs'

const naming = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"\n]+)\2/g

/** @throws SyntaxError when it is no TypeScript */
export function strip(program) {
  const { code } = transform(program, { transforms: ['typescript'], disableESTransforms: true })
  return code.replace(naming, (whole, before, quote, name) =>
    modules.includes(name)
      ? `${before}${quote}${new URL(fileOf(name), import.meta.url)}${quote}`
      : whole,
  )
}
