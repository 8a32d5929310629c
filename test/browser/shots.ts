/**
 * Pictures of pages for the README: small files, in `examples/screenshots`.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { root } from '../package/fixture.js'
import { withPalette } from './palette.js'

/** Bytes of a picture. */
const largest = 150_000

/** Takes a picture of what is seen of a page. */
export async function shoot(page: Page, name: string): Promise<void> {
  const folder = path.join(root, 'examples', 'screenshots')
  await mkdir(folder, { recursive: true })
  const picture = withPalette(await page.screenshot({ animations: 'disabled', caret: 'hide' }))
  expect(picture.length).toBeLessThanOrEqual(largest)
  await writeFile(path.join(folder, `${name}.png`), picture)
}
