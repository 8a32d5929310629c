/**
 * Folders for stores on the disk, below one that is removed in the end.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const root = mkdtempSync(path.join(tmpdir(), 'mqwire-store-'))
process.once('exit', () => rmSync(root, { recursive: true, force: true }))
let count = 0

/** A path where nothing is yet. */
export function newPlace(): string {
  count += 1
  return path.join(root, `store-${count}`)
}
