/**
 * Every error code has a row in `docs/errors.md`, and no page names a code that does not exist.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { declarations, requireDist, root } from './fixture.js'
import { pages } from './pages.js'

const read = (name: string): string => readFileSync(path.join(root, name), 'utf8')
const codesIn = (text: string): string[] => [...new Set(text.match(/\bERR_[A-Z0-9_]+\b/g))].sort()
await requireDist()
const codes = codesIn(declarations('errors.d.ts'))

it('docs/errors.md has a row for each error code', () => {
  const cells = [...read('docs/errors.md').matchAll(/^\| (`ERR_[^|]*) \|/gm)].map(
    ([, cell = '']) => cell,
  )
  expect(codes.length).toBeGreaterThan(40)
  expect(codesIn(cells.join())).toEqual(codes)
})

it.each(pages)('%s names no code that does not exist', (page) => {
  expect(codesIn(read(page)).filter((code) => !codes.includes(code))).toEqual([])
})
