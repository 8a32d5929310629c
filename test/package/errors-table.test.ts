/**
 * Every error code has a line in the README, and the README names no code that does not exist.
 */
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

async function codesOf(file: string): Promise<string[]> {
  const text = await readFile(new URL(`../../${file}`, import.meta.url), 'utf8')
  return [...new Set(text.match(/\bERR_[A-Z0-9_]+\b/g))].sort()
}

it('the README has a line for each error code', async () => {
  const readme = await codesOf('README.md')
  const source = await codesOf('src/errors.ts')
  expect(source.length).toBeGreaterThan(40)
  expect(readme).toEqual(source)
})
