/** One folder for all that tests write on the disk. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

export default function makeFolder(): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-tests-'))
  // A broker may run as another user.
  chmodSync(folder, 0o755)
  for (const name of ['TMPDIR', 'TEMP', 'TMP']) process.env[name] = folder
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}
