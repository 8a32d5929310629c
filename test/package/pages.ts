/**
 * The pages that people write: the front page and the guides. The API reference, which is made for the site, is not among them.
 */
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { root } from './fixture.js'

export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(path.join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
    .sort(),
]
