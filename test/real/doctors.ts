/**
 * `npm run lab -- brokers doctor`: what `mqwire doctor --probe` says of each broker, into docs/cli.md.
 */
import { execFile } from 'node:child_process'
import type { Finding } from '../../src/cli/doctor/finding.js'
import type { Lab, Result } from '../lab/lab.js'
import { type Examined, writeDoctor } from './matrix.js'
import { site, siteNames } from './sites.js'

function examine(url: string): Promise<readonly Finding[]> {
  const args = ['dist/cli.js', 'doctor', url, '--probe', '--json']
  return new Promise((resolve, reject) => {
    // A broker that differs is exit code 3.
    execFile(process.execPath, args, { timeout: 120_000 }, (error, out) =>
      out === '' ? reject(error ?? new Error('no output')) : resolve(JSON.parse(out).findings),
    )
  })
}

/** Examines the brokers that can be had here, and writes the table. */
export async function doctors({ say }: Lab): Promise<Result> {
  const seen: Examined[] = []
  const skipped: string[] = []
  for (const name of siteNames) {
    const kind = await site(name)
    if ('missing' in kind) {
      skipped.push(`${name}: ${kind.missing}`)
      continue
    }
    const broker = await kind.start('own')
    try {
      seen.push({ name, version: kind.version, findings: await examine(broker.urls.TCP ?? '') })
    } finally {
      await broker.stop()
    }
    say(`${name}: ${seen.at(-1)?.findings.length} lines`)
  }
  writeDoctor(seen)
  return {
    did: `${seen.length} brokers`,
    findings: [],
    ...(skipped.length > 0 && { skipped: skipped.join('; ') }),
  }
}
