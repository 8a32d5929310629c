/**
 * Folders for stores on the disk.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const root = mkdtempSync(path.join(tmpdir(), 'mqwire-store-'))
let count = 0

/** A path where nothing is yet. */
export function newPlace(): string {
  count += 1
  return path.join(root, `store-${count}`)
}
